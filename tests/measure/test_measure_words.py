"""The report explains its words, and the docs every finding."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.measure import RULES, Finding, Severity, diagnose, read_run, write_report
from assay.measure.findings import PAGE
from assay.measure.glossary import WORDS, words_in

ROOT = Path(__file__).parents[2]
NAMES = [type(rule).__name__ for rule in RULES]


def sections() -> dict[str, str]:
    """Heading to text of the docs page."""
    parts = re.split(r"^## (.+)$", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_has_its_paragraphs(name: str) -> None:
    text = " ".join(sections()[name].split())
    for part in ("Meaning", "Look at", "Change"):
        found = re.search(rf"\*\*{part}\.\*\* (.+?)(?=\*\*[A-Z][a-z ]+\.\*\*|$)", text)
        assert found and len(found[1]) > 60, f"{PAGE}#{name.lower()} lacks '{part}'"


def test_the_page_has_no_section_of_a_finding_that_is_gone() -> None:
    assert list(sections()) == ["The doctor finds nothing", *NAMES]


def test_a_finding_names_its_section() -> None:
    found = Finding(
        rule="NoSignal", severity=Severity.NOTE, sentence="All is solved.", action="Stop.", first_step=1, last_step=2, numbers={}
    )
    assert str(found) == "note: All is solved. Stop. (docs/not_learning.md#nosignal)"


@pytest.mark.slow
def test_findings_have_their_place_in_the_report(run_folder: Callable[..., Path]) -> None:
    folder = run_folder("collapsed")
    page = write_report(folder).read_text(encoding="utf-8")
    found = diagnose(read_run(folder).history())
    assert found and all(f.page in page for f in found)


@pytest.mark.slow
def test_the_report_explains_the_words_that_it_uses(run_folder: Callable[..., Path]) -> None:
    page = write_report(run_folder(last=60)).read_text(encoding="utf-8")
    explained = re.findall(r"<dt>([^<]*)</dt><dd>", page.partition('<dl class="words">')[2])
    assert {"entropy", "greedy", "held-out", "reward", "rollout", "signal", "step"} <= set(explained) <= set(WORDS)
    assert "contaminated" not in explained and list(WORDS) == sorted(WORDS, key=str.lower)


def test_words_are_found_in_any_form() -> None:
    assert list(words_in("Held out: 3 Verdicts, KL 0.1")) == ["held-out", "KL", "verdict"]
    assert words_in("armour, goldfish") == {}

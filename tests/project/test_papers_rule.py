"""The rule for a published system: a named part, a docstring with source and formula, a test that names it, and for a whole one a
command and a page that measured it."""

from __future__ import annotations

import inspect
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from assay.cli import main
from assay.core.papers import Paper, load_papers

ROOT = Path(__file__).resolve().parents[2]
ALL = load_papers()
WITHOUT_FORMULA = {
    "bmgq", "codev-r1", "golongrl", "gsm-infinite", "hybridflow",
    "hyperparameters-in-rl", "internbootcamp", "keep-sampling-mask", "masksearch", "oorl",
    "open-rl-benchmark", "polaris", "ruler", "starling", "swe-rl", "theory-of-mind",
    "verltool", "warm-up-before-you-train",
}  # fmt: skip
"""Tasks, tools and systems, whose papers define no quantity that a part here computes."""


def doc(part: str) -> str:
    module, _, name = part.partition(":")
    return inspect.getdoc(getattr(import_module(module), name)) or ""


@cache
def text(path: str) -> str:
    """A test file's text, or that of all in a folder; of a page likewise."""
    place = ROOT / path
    return "\n".join(file.read_text(encoding="utf-8") for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place]))


def squeezed(words: str) -> str:
    return re.sub(r"[\W_]", "", words.casefold())


@pytest.mark.parametrize("paper", ALL, ids=lambda p: p.key)
def test_a_docstring_names_the_source_and_states_the_formula(paper: Paper) -> None:
    docs = [doc(part) for part in paper.parts]
    if paper.arxiv:
        assert any(paper.arxiv in d for d in docs), f"no docstring of {paper.parts} names arXiv {paper.arxiv}"
    else:
        named = re.split(r"\W+", paper.name)[0]
        assert any(re.search(r"\b20\d\d\b", d) or named in d for d in docs), f"no docstring of {paper.parts} names its source"
    formula = any(re.search(r"``[^`]*[=+*/^<>-][^`]*``", d) for d in docs)
    assert formula or paper.key in WITHOUT_FORMULA, f"no docstring of {paper.parts} has a formula"
    assert not paper.whole or paper.key not in WITHOUT_FORMULA


@pytest.mark.parametrize("paper", ALL, ids=lambda p: p.key)
def test_its_tests_name_the_part(paper: Paper) -> None:
    tests = "\n".join(text(path) for path in paper.tests)
    names = [part.partition(":")[2] for part in paper.parts]
    missing = {name for name in names if not re.search(rf"\b{re.escape(name)}\b", tests)}
    families = {n for p, n in zip(paper.parts, names, strict=True) if p.startswith(("assay_tasks.", "assay.tasks."))}
    assert missing <= families or len(missing) < len(names), f"{paper.tests} name none of {names}"
    methods = {n for p, n in zip(paper.parts, names, strict=True) if p.startswith("assay.objective.methods:")}
    assert not missing & methods, f"{paper.tests} name no {missing & methods}"


@pytest.mark.parametrize("paper", [p for p in ALL if p.whole], ids=lambda p: p.key)
def test_a_whole_one_has_a_command_and_a_page_that_measured_it(paper: Paper) -> None:
    assert paper.run and paper.evidence, "declare what is missing, or name a command and a page that measured it"
    page = squeezed(text(paper.evidence))
    names = [paper.name, paper.key, *(part.partition(":")[2] for part in paper.parts)]
    assert any(squeezed(name) in page for name in names), f"{paper.evidence} names none of {names}"
    assert "control" in page or "base" in page


@pytest.mark.prove
def test_every_command_that_trains_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of those of which tests/cli takes a handful: ten CPU-seconds."""
    monkeypatch.chdir(tmp_path)
    Path("runs", "quickstart-1").mkdir(parents=True)  # empty: a folder that is not there would be looked for on the hub
    for paper in ALL:
        words = shlex.split(paper.run)
        if words[:2] == ["assay", "train"]:
            read_later = "--stages.0.curriculum.classroom" in words  # at the first draw, and a run that goes on needs it no more
            theirs = [w for w in words if (w.startswith("runs/") and not read_later) or w.endswith(".jsonl")]
            assert main(["explain", *words[2:], "--json"]) == (2 if theirs else 0), paper.run
            assert all(word in capsys.readouterr().err for word in theirs)

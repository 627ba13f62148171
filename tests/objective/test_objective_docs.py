"""The pages' code runs, and the parts that they show keep the laws."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.objective import Objective, PolicyGradient, evaluate, grpo
from assay.objective.methods import registry
from assay.testing import check_statistic
from assay.testing.objective import check_objective, check_term

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def names_of(page: str) -> dict[str, Any]:
    """What the Python blocks of a page define, run one after another."""
    names: dict[str, Any] = {"__name__": __name__}
    for block in blocks(page):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_rooms_page_composes_grpo() -> None:
    assert names_of("packages/objective.md")["grpo"] == grpo()


PARTS = {"Hinge": "gradient", "Damped": "gradient", "Fade": "weight", "ByPassRate": "state"}
"""The parts of the page, each with the last law that it is held to."""


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_copied_from_the_page_alone_and_keeps_the_laws(name: str, seeds: range) -> None:
    (block,) = [b for b in blocks("add/term.md") if f"class {name}(" in b]
    names: dict[str, Any] = {"__name__": __name__}
    exec(compile(block, name, "exec"), names)
    assert check_term(names[name](), seeds).passed[-1] == PARTS[name]
    part = block[block.index("@dataclass") :]
    assert len([line for line in part.splitlines() if line.strip()]) <= 10


def test_parts_shown_are_used_as_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_METHODS", dict(registry.registered_methods()))  # the page registers a method of its own
    names = names_of("add/term.md")
    check_objective(grpo() + names["Hinge"](coef=0.1), range(2))
    for policy in (PolicyGradient(ratio=names["Damped"](), trust=None), PolicyGradient(trust=names["Fade"]())):
        check_objective(replace(grpo(), policy=policy), range(2))
    assert len([b for b in blocks("add/term.md") if "@method" not in b and "Shortness" not in b]) == len(PARTS)


def test_the_statistic_shown_is_one() -> None:
    names = names_of("add/statistic.md")
    check_statistic(names["TailMass"](2))
    check_term(names["Unsure"](), range(2))
    assert names["sharp"].plan().vocab == (names["TailMass"](20),)
    inputs = {"mask": [[1]], "ids": [[3]], "logits": np.log([[[0.5, 0.25, 0.125, 0.125]]])}
    tail = Objective(terms=(names["StatLoss"](names["TailMass"](2)),))
    assert evaluate(tail, inputs).loss == pytest.approx(0.25)
    uniform = np.zeros((1, 1, 40))
    inputs = {"mask": [[1]], "ids": [[3]], "logits": uniform, "logits_old": uniform}
    assert evaluate(Objective(terms=(names["Unsure"](),)), inputs).loss == pytest.approx(0.5 * np.log(40))

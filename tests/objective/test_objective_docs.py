"""The pages' code runs, and the parts that they show keep the laws."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.objective import Objective, evaluate, grpo
from assay.testing import check_statistic
from assay.testing.objective import check_objective, check_term

DOCS = Path(__file__).parents[2] / "docs"


def names_of(page: str) -> dict[str, Any]:
    """What the Python blocks of a page define, run one after another."""
    names: dict[str, Any] = {"__name__": __name__}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_rooms_page_composes_grpo() -> None:
    assert names_of("rooms/objective.md")["grpo"] == grpo()


def test_terms_shown_keep_the_laws() -> None:
    names = names_of("add/term.md")
    assert "gradient" in check_term(names["Hinge"](), range(3)).passed
    check_term(names["ByPassRate"](), range(3))
    check_objective(grpo() + names["Hinge"](coef=0.1), range(2))


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

"""The table of ``docs/adr/0015``: what six methods that differ most ask of the machinery, there and in the code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay.core.plan import Scope
from assay.objective import build_method
from assay.objective.reducers import Partials, Sum
from assay.testing.objective import evaluate, head_widths, random_batch, random_live

PAGE = Path(__file__).parents[2] / "docs" / "adr" / "0015-objective-plans.md"


@dataclass(frozen=True)
class Asked:
    """A method's plan: columns of passes once a batch and once a step, brought columns, live ones, statistics but for counts."""

    batch: set[str]
    step: set[str] = field(default_factory=set[str])
    fresh: set[str] = field(default_factory=set[str])
    brought: set[str] = field(default_factory=set[str])
    live: set[str] = field(default_factory=lambda: {"logp_new"})
    statistics: set[str] = field(default_factory=set[str])


GROUPS = {"credit/0/moments", "credit/1/moments"}
CRITICS = {"q1", "q2", "v1", "v2"}
PLANS = {
    "grpo": Asked({"logp_old", "logp_ref"}, fresh={"logp_old"}, statistics=GROUPS),
    "pacs": Asked({"logp_old"}, {"logp_now"}),
    "clip_cov": Asked(
        {"logp_old"}, {"logp_now"}, statistics=GROUPS | {f"policy/{name}" for name in ("advantage", "logp_now", "lowest")}
    ),
    "kl_cov": Asked(
        {"logp_old"}, {"logp_now"}, {"logp_old"}, statistics=GROUPS | {f"kl_cov/{n}" for n in ("advantage", "logp_now", "lowest")}
    ),
    "lp_reg": Asked({"logp_old", "logp_proxy"}, {"logp_now"}, {"logp_old"}, statistics=GROUPS | {"lp_reg/lowest"}),
    "archer": Asked(
        {f"{head}_old" for head in CRITICS},
        {f"{head}_target" for head in CRITICS},
        brought={"call"},
        live={"logp_new"} | CRITICS,
    ),
}


@dataclass
class Noted:
    """A single process's reducer that notes what is no count."""

    seen: set[str]

    def reduce(self, partials: Partials) -> Partials:
        self.seen.update(name for name, value in partials.items() if not isinstance(value, Sum))
        return partials


def statistics(name: str) -> set[str]:
    objective, noted = build_method(name), Noted(set())
    program = objective.compile(reducer=noted)
    plan = program.plan
    batch = random_batch(0, [*plan.columns, *(f.column for f in plan.forwards)])
    evaluate(program, program.credit(batch), random_live(batch, plan.live, 0, head_widths(objective)))
    return noted.seen


@pytest.mark.parametrize("name", PLANS)
def test_what_the_six_ask_for(name: str) -> None:
    wanted, plan = PLANS[name], build_method(name).plan()
    assert {f.column for f in plan.forwards if f.when == "batch"} == wanted.batch
    assert {f.column for f in plan.forwards if f.when == "step"} == wanted.step
    fewer = build_method(name).plan(updates=1)
    assert {f.column for f in plan.forwards} - {f.column for f in fewer.forwards} == wanted.fresh
    assert set(plan.columns) == wanted.brought
    assert set(plan.live) == wanted.live
    assert statistics(name) == wanted.statistics
    assert plan.split is Scope.TOKEN


def test_the_page_says_the_same() -> None:
    lines = [line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    names = [re.findall(r"`(\w+)`", cell)[0] for cell in lines[0]]
    assert names == list(PLANS)
    rows = {row[0]: [set(re.findall(r"`([\w/]+)`", cell)) for cell in row[1:]] for row in lines[2:]}
    for row, part in {
        "pass without gradient, once a batch": "batch",
        "the same, once a step": "step",
        "left out at one update a batch": "fresh",
        "from engine or rows": "brought",
        "with the gradient": "live",
    }.items():
        assert rows[row] == [getattr(plan, part) for plan in PLANS.values()], row
    for name, said in zip(PLANS, rows["statistics over ranks, besides counts"], strict=True):
        told = {s for s in said if "/" in s and not s.endswith("/count")} | (GROUPS if "grpo" in said else set())
        assert told == PLANS[name].statistics, name
    assert rows["kept whole in a micro-batch"] == [set()] * len(PLANS)

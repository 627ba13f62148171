"""Bills whose look-ups may bring another line, and a turn that judges each."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from assay.core.errors import ConfigError
from assay.testing import check_environment, check_task_source
from assay.verify.rollouts import rollout_of
from assay_tasks import JudgedBills
from assay_tasks.judged_bills import SameLine

SOURCE = JudgedBills()
TASK = SOURCE.task("judged_bills", 2, "train", 2)  # Bpy>: 38, then mn: 40; the first look-up of mn brings another line


def said(actions: list[str], source: JudgedBills = SOURCE) -> list[tuple[str, bool, bool]]:
    """What is shown to each action, whether it was an error, and whether the episode is over."""
    world = source.environment(source.task("judged_bills", 2, "train", 2).public_view())

    async def play() -> list[tuple[str, bool, bool]]:
        await world.start()
        steps = [await world.step(action) for action in actions]
        return [("".join(m.content for m in s.obs.messages), any(r.error for r in s.results), s.done) for s in steps]

    return asyncio.run(play())


def test_it_is_a_family() -> None:
    source = JudgedBills(levels=(1, 2))
    check_task_source(source)
    check_environment(source, source.task("judged_bills", 2, "train", 2))


def test_the_oracle_judges_every_look_up_and_asks_again() -> None:
    turns = [m.content for m in SOURCE.trace(TASK, 0.0, np.random.default_rng(0))]
    assert " ".join(turns) == ("?py =py38mn> y .> #38 =38> ?mn =rk33kb> n .> ?mn =mn40.> y .> #40 =78> 78")
    assert SOURCE.verifier()(TASK, rollout_of(TASK, turns[-1])).primary == 1.0
    heard = said(turns[::2])
    assert [text for text, _, _ in heard] == [*turns[1::2], ""]
    assert [error for _, error, _ in heard] == [False] * len(heard)


def test_noise_rejects_what_is_of_use_and_accepts_what_is_not() -> None:
    turns = [m.content for m in SOURCE.trace(TASK, 1.0, np.random.default_rng(0))]
    for asked, found, says in zip(turns[:-2:2], turns[1::2], turns[2::2], strict=False):
        if asked.startswith("?") and turns.count(asked) < 3:  # a third look-up is accepted
            assert (found[1:3] == asked[1:]) == (says == "n")


def test_turns_out_of_order_are_errors_and_the_last_turn_ends_it() -> None:
    heard = said(["y", "#1", "?zz", "?py", "?py", "#38", "n", "#38", "y", "?py", "y", "#x", "#38", "38"], JudgedBills(spare=9))
    bad = [True, True, True, False, True, True, False, True, True, False, False, True, False, False]
    assert [error for _, error, _ in heard] == bad
    assert heard[12][0] == "=38>" and heard[13] == ("", False, True)
    assert [done for _, _, done in said(["?py", "y", "#38", *"yyyyyyy"], JudgedBills(spare=0))] == [False] * 9 + [True]


def test_as_many_look_ups_are_of_no_use_as_was_said() -> None:
    found = []
    for index in range(300):
        task = SOURCE.task("judged_bills", 1, "train", index)
        (asked, brought), *_ = [(m.content, n.content) for m, n in [SOURCE.trace(task, 0.0, np.random.default_rng(0))[:2]]]
        found.append(SameLine()(task, asked, brought[1:]))
    assert 0.62 <= np.mean(found) <= 0.78  # .7, three standard errors of .026


@pytest.mark.parametrize("given", [{"useless": 1.0}, {"useless": -0.1}, {"form": "calls"}, {"lies": 0.5}, {"levels": (7,)}])
def test_settings_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="JudgedBills"):
        JudgedBills(**given)

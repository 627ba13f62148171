"""Metrics that a context manager or the settings of a sampler report of a step's rollouts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import pytest
from live import coin_toss, rollouts, session
from test_samplers import running

from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.rollout import KeepLast, PlayerSpec
from assay.testing import ContractError, check_context_manager, check_sampler
from assay.train.rollout_metrics import rollout_metrics
from assay.train.run import Run
from assay.train.runner import StepResult


@dataclass(frozen=True)
class Counting(KeepLast):
    """Keeps the last turns, and says how many calls the rollouts took."""

    n: int = 1

    def rollout_metrics(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        return {"context/calls": sum(len(r.calls) for r in rollouts) / len(rollouts), "context/nothing": nan}


@dataclass(frozen=True)
class Measured(PlayerSpec):
    """A player that reports something itself, right or wrong."""

    found: Any = 1.0
    name: str = "sampler/own"

    @property
    def player(self) -> PlayerSpec:
        return PlayerSpec(context=self.context)

    def rollout_metrics(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        return {self.name: self.found}


def stepped(run: Run) -> StepResult:
    runner = session(coin_toss(run))

    async def work() -> StepResult:
        await runner.parts.calibrate()
        return await runner.step()

    return asyncio.run(work())


def test_a_stage_records_what_its_context_manager_reports() -> None:
    result = stepped(running(PlayerSpec(context=Counting())))
    played = rollouts(result)
    assert result.metrics["context/calls"] == sum(len(r.calls) for r in played) / len(played) > 1
    assert "context/nothing" not in result.metrics


def test_other_parts_report_nothing() -> None:
    assert rollout_metrics(PlayerSpec(context=KeepLast(n=1)), (), ()) == {}


def test_a_sampler_reports_beside_its_context_manager() -> None:
    result = stepped(running(Measured(context=Counting())))
    assert result.metrics["sampler/own"] == 1.0 and "context/calls" in result.metrics


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (Measured(name="reward/mean"), "Measured.rollout_metrics gives 'reward/mean', which the step has already"),
        (Measured(found="many"), "Measured.rollout_metrics gives 'sampler/own' as 'many'; give a number"),
    ],
)
def test_what_is_no_metric_of_its_own_is_refused(spec: Measured, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        rollout_metrics(spec, (), ("reward/mean",))


def test_the_checks_hold_the_metrics() -> None:
    assert check_context_manager(Counting()).passed[-1] == "metrics"
    assert check_sampler(Measured()).passed[-1] == "metrics"
    with pytest.raises(ContractError, match="reports sampler/own=inf; give finite numbers"):
        check_sampler(Measured(found=inf))

"""`check_schedule` passes what is built in and finds each law broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from assay.core.protocols import State
from assay.guide import Piecewise, Ramp, StepSchedule, WhenFlat, WhenReached
from assay.testing import ContractError, check_schedule

CALLS = {"n": 0}


@dataclass(frozen=True, kw_only=True)
class Sound(StepSchedule):
    """From 1 to 2, which others below break in one place each."""

    values = (1.0, 2.0)

    def at(self, step: int, state: State) -> float:
        return 1.0 + min(step / 100, 1.0)


@pytest.mark.parametrize(
    "spec",
    [
        Sound(),
        Piecewise(points=((0, 1.0), (50, 0.1))),
        Ramp(points=((0, 0.1), (3, 0.3), (100, 0.7))),
        WhenReached(metric="reward/mean", at_least=0.5, values=(1, 2, 3), patience=2),
        WhenFlat(metric="length/mean", values=(1, 2, 3), window=3, tolerance=0.1),
        WhenReached(metric="eval/greedy/all", at_most=0.5, values=(3, 2, 1)),
    ],
)
def test_sound_schedules_pass(spec: Any) -> None:
    report = check_schedule(spec)
    assert report.passed == ("frozen", "can be filed", "within its values", "pure", "exact resume")
    assert report.numbers["values seen"] >= 2


class Beyond(Sound):
    def at(self, step: int, state: State) -> float:
        return 1.0 + step / 100


class Nan(Sound):
    def at(self, step: int, state: State) -> float:
        return float("nan")


class Impure(Sound):
    def at(self, step: int, state: State) -> float:
        CALLS["n"] += 1
        return 1.0 + CALLS["n"] % 2


class Unnamed(Sound):
    values = ()


class Timed(Sound):
    reads = ("time/step",)


class Needy(Sound):
    reads = ("reward/mean",)

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        return {"last": metrics["reward/mean"]}


class Changing(Sound):
    reads = ("reward/mean",)

    def init(self) -> State:
        return {"n": 0}

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        state["n"] += 1
        return state


class Looking(Changing):
    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        return {"n": state["n"] + 1}

    def at(self, step: int, state: State) -> float:
        state["n"] = 7
        return 1.0


class Forgetful(Looking):
    """Its state has numbers for keys, which JSON makes text of."""

    def init(self) -> State:
        return {0: 1.0}  # type: ignore[dict-item]

    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        return state

    def at(self, step: int, state: State) -> float:
        return state.get(0, 2.0)  # type: ignore[call-overload]


class Opaque(Forgetful):
    def init(self) -> State:
        return {"seen": object()}


class Hidden(Looking):
    def advance(self, state: State, metrics: Mapping[str, float]) -> State:
        CALLS["n"] += 1
        return {"n": CALLS["n"]}

    def at(self, step: int, state: State) -> float:
        return 1.0


def loose() -> Any:
    @dataclass
    class Thawed:
        values: tuple[float, ...] = (1.0,)

    return Thawed()


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Beyond(), "its values lie between 1 and 2: name all in 'values'"),
        (Nan(), "gives nan at step 0"),
        (Impure(), "'at' is not pure"),
        (Unnamed(), "name finite numbers"),
        (Timed(), "differ between two runs of one seed"),
        (Needy(), "a step may lack 'reward/mean'"),
        (Changing(), "'advance' changes the state"),
        (Looking(), "'at' changes the state"),
        (Forgetful(), "another value at step 0 from a saved state"),
        (Opaque(), "its state is not plain"),
        (Hidden(), "'advance' is not pure"),
        (loose(), "is no frozen dataclass"),
    ],
)
def test_each_law_broken_is_found(spec: Any, text: str) -> None:
    with pytest.raises(ContractError, match=text):
        check_schedule(spec)

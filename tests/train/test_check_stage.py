"""The contract of stages passes those that come with assay, and catches planted faults."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from assay.core.batch import Batch, pack_rows
from assay.core.errors import ConfigError
from assay.core.fields import check_positive
from assay.core.rollout import ids_of
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.guide import Recent
from assay.lab.controls import RandomReward, Rewarded
from assay.objective import Objective, nll
from assay.runtime.settings import LearnerSettings
from assay.testing import ContractError, check_stage
from assay.train import Imitate, OneUpdate, Prefer, Reinforce, StageRunner, Texts, WarmUp
from assay.train.offline_rows import RowsRunner
from assay_tasks import SortDigits

TASKS = SortDigits(levels=(1, 2))
ROWS = [{"prompt": f"{a}+{b}=", "completion": str(a + b)} for a in range(6) for b in range(6)]
PAIRS = [{"prompt": r["prompt"], "chosen": r["completion"], "rejected": "0"} for r in ROWS if r["completion"] != "0"]
TEXTS = [{"text": f"{r['prompt']}{r['completion']}."} for r in ROWS]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "bad"),
    [
        (WarmUp(batch=4), []),
        (Imitate(data=ROWS, batch=4), [Imitate(data=[{"prompt": "a" * 200, "completion": "b"}], batch=1)]),
        (Prefer(data=PAIRS, batch=4), [Prefer(data=PAIRS, batch=4, objective=nll())]),
        (Texts(data=TEXTS, batch=2, max_tokens=16), [Texts(data=[{"text": "ünknown"}], batch=1, max_tokens=8)]),
        (Reinforce(groups=2, group_size=4), [Reinforce(groups=2, group_size=4, replay=Recent(capacity=4))]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_the_stages_of_assay_pass(stage: Any, bad: Sequence[Any]) -> None:
    """By a coin's rewards, so that every group of rollouts teaches."""
    report = check_stage(stage, tasks=Rewarded(source=TASKS, scorer=RandomReward()), bad=bad)
    assert report.passed[-1] == "refuses bad input" and not report.skipped


# ---- planted faults -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise(OneUpdate):
    """A stage on random tokens."""

    steps: int = 4
    batch: int = 2
    objective: Objective = field(default_factory=nll)
    learner: LearnerSettings = field(default_factory=LearnerSettings)

    def __post_init__(self) -> None:
        check_positive(self, "steps", "batch")

    @property
    def name(self) -> str:
        return "noise"

    def rows(self, run: Any, tokenizer: Any) -> Any:
        return Drawn(run.seed, self.batch)


class Drawn:
    """Rows of eight random tokens."""

    def __init__(self, seed: int, size: int) -> None:
        self.seed, self.size = seed, size

    def rng(self, step: int) -> np.random.Generator:
        return generator("noise", self.seed, "step", step)

    def batch(self, step: int) -> Batch:
        ids = self.rng(step).integers(2, 60, (self.size, 8))
        mask = np.arange(8) > 0
        rows = [Sample(rollout=str(i), ids=ids_of(row), mask=mask, stream="expert") for i, row in enumerate(ids)]
        return pack_rows(list(enumerate(rows)), {"group": np.arange(self.size)})


class Unseeded(Noise):
    __slots__ = ()

    def rows(self, run: Any, tokenizer: Any) -> Any:
        class Anyhow(Drawn):
            def rng(self, step: int) -> np.random.Generator:
                return np.random.default_rng(random.getrandbits(32))

        return Anyhow(run.seed, self.batch)


class Counting(Noise):
    """Goes by a counter of its own, which no checkpoint knows."""

    __slots__ = ()

    def rows(self, run: Any, tokenizer: Any) -> Any:
        class Counted(Drawn):
            calls = 0

            def rng(self, step: int) -> np.random.Generator:
                self.calls += 1
                return generator("noise", self.seed, "call", self.calls)

        return Counted(run.seed, self.batch)


class Endless(Noise):
    __slots__ = ()

    def __post_init__(self) -> None:
        """Takes anything."""


@dataclass(slots=True, kw_only=True)
class Loose(OneUpdate):
    """Can be changed."""

    steps: int = 4
    name: str = "loose"


class Idle(Noise):
    """Leaves the learner alone."""

    __slots__ = ()

    def open(self, parts: Any) -> StageRunner:
        class Nothing(RowsRunner):
            async def step(self) -> Any:
                from assay.train import StepResult

                return StepResult(metrics={"loss/total": 0.0})

        return Nothing(parts, Drawn(0, 1))


class Silent(Noise):
    __slots__ = ()

    def open(self, parts: Any) -> StageRunner:
        class Untold(RowsRunner):
            async def step(self) -> Any:
                from dataclasses import replace

                result = await RowsRunner.step(self)
                kept: Mapping[str, float] = {k: v for k, v in result.metrics.items() if k != "loss/total"}
                return replace(result, metrics=kept)

        return Untold(parts, Drawn(0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusting(Noise):
    """Says that it refuses a word, and does not."""

    word: str = "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class Careful(Trusting):
    def check(self, run: Any) -> None:
        if self.word != "good":
            raise ConfigError(f"Careful.word={self.word!r}; use 'good'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetful(Noise):
    """Comes back from a file with another number."""

    size: int = 3

    def __post_init__(self) -> None:
        check_positive(self, "steps", "batch")
        object.__setattr__(self, "size", self.size + 1)


@pytest.mark.slow
def test_a_healthy_stage_of_a_few_lines_passes() -> None:
    assert len(check_stage(Noise(), tasks=TASKS).passed) == 6
    assert check_stage(Careful(), tasks=TASKS, bad=[Careful(word="bad")]).subject == "stage Careful"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "finding"),
    [
        (Unseeded(), "two runs with one seed differ"),
        (Counting(), "stopped and resumed from step 2 ends otherwise"),
        (Endless(), "takes steps=0"),
        (Idle(), "no gradient"),
        (Silent(), r"gives no 'loss/total' among the metrics of steps \[1, 2, 3, 4\]"),
        (Forgetful(), "comes back from a file as Forgetful"),
        (Loose(), "is no frozen dataclass"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Noise) else None,
)
def test_planted_faults_are_caught(stage: Any, finding: str) -> None:
    with pytest.raises(ContractError, match=finding):
        check_stage(stage, tasks=TASKS)


@pytest.mark.slow
def test_bad_input_that_is_taken_is_caught() -> None:
    with pytest.raises(ContractError, match=r"takes Trusting.*word='bad'"):
        check_stage(Trusting(), tasks=TASKS, bad=[Trusting(word="bad")])

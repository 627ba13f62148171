"""Suites: some families, one small model. It is shown their easy levels, and climbs to the others by RL from their verifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from assay.core.errors import UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.guide import Frontier
from assay.lab.cells import Cell
from assay.lab.controls import FormatOnly, RandomReward, Rewarded
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon
from assay.tasks import TaskMixture
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp

__all__ = ["Suite"]

_KINDS = ("rl", "random", "format", "longer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Families with what a base is shown of them, and the runs that follow from that.

    Attributes:
        name: of the run of RL; the base's is ``base-NAME``, a control's ``NAME-KIND``.
        title: of the mixture of families.
        families: those that are practised and scored, and those that are only shown, each of one arm.
        shown: arm of each scored family to the levels that the base is shown; all others it must find by itself.
        auxiliary: arm of each family that is only shown, to the levels that the base is shown.
        warm_up: steps of the base's supervised stage, which shows all of ``shown`` and ``auxiliary``.
        batch: traces per step there.
        gate: lowest temperature-1 accuracy of each scored arm on what it was shown, at that stage's end.
        steps: rollout batches of RL.
    """

    name: str
    title: str
    families: tuple[TaskSource, ...]
    shown: Mapping[str, tuple[int, ...]]
    auxiliary: Mapping[str, tuple[int, ...]]
    warm_up: int = 1450
    batch: int = 128
    gate: float = 0.6
    steps: int = 600

    def tasks(self, *, auxiliary: bool = True) -> TaskMixture:
        """The families.

        Args:
            auxiliary: with those that are only shown.
        """
        wanted = {*self.shown, *(self.auxiliary if auxiliary else ())}
        return TaskMixture(name=self.title, sources=tuple(f for f in self.families if f.name in wanted))

    def base(self, seed: int = 0) -> Run:
        """0.34M parameters, supervised on fresh traces of the easy levels.

        Of a head's 16 pairs of dimensions the 12 slow ones are blind to position: what they learn of short texts holds for
        longer. One trace in seven holds a slip, so that the base errs in length too: one that never does would never find a
        longer answer. The gate allows for these slips.
        """
        shown = WarmUp(
            steps=self.warm_up,
            batch=self.batch,
            demonstrations=0,
            noise=0.15,
            gate=self.gate,
            levels={**self.shown, **self.auxiliary},
            learner=LearnerSettings(optimizer=Muon(lr=4e-3), schedule=LearningRateSchedule(kind="linear", start=0.5)),
        )
        arms = self.tasks(auxiliary=False).arms()
        return Run(
            name=f"base-{self.name}",
            seed=seed,
            model=Scratch(shape=DecoderShape(rope_pairs=4), seed=seed),
            tasks=self.tasks(),
            stages=(shown,),
            sampling=Sampling(max_new_tokens=20),
            evaluation=Evaluation(every=0, final_per_level=24, levels=arms, kl_to_base=False),
            checkpoint_every=200,
        )

    def rl(self, seed: int = 0) -> Run:
        """GRPO on all scored families at once: each has a frontier, which begins one level past what the base was shown."""
        arms = self.tasks(auxiliary=False).arms()
        return Run(
            name=self.name,
            seed=seed,
            model=Built(run=self.base(seed)),
            tasks=self.tasks(),
            stages=(
                Reinforce(
                    steps=self.steps,
                    groups=64,
                    group_size=8,
                    levels=arms,
                    objective=replace(grpo(kl=0.0), aggregate=Token()),
                    curriculum=Frontier(start={arm: max(self.shown[arm]) + 1 for arm in arms}),
                    learner=LearnerSettings(
                        optimizer=AdamW(lr=2e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
                    ),
                ),
            ),
            sampling=Sampling(max_new_tokens=20),
            evaluation=Evaluation(every=50, per_level=8, final_per_level=24, levels=arms, kl_to_base=False),
        )

    def cell(self, kind: str, seed: int, steps: int | None = None) -> Cell:
        """A cell of the suite's study: ``rl``, the run, or a control from the same base.

        ``random`` and ``format`` are the run under another reward; ``longer`` is the base's supervised stage once more, at
        half its learning rate.

        Args:
            kind: which.
            seed: of run and base.
            steps: fewer or more than the stage's own.

        Raises:
            UnknownNameError: no such cell.
        """
        if kind not in _KINDS:
            raise UnknownNameError("cell", kind, _KINDS)
        run, truth = self.rl(seed), self.tasks(auxiliary=False)
        stage = cast(Reinforce, run.stages[0])
        stage = stage if steps is None else replace(stage, steps=steps)
        if kind == "rl":
            return Cell(run=replace(run, stages=(stage,)), truth=truth)
        # the run's own evaluation would use the wrong reward: the cell is judged afterwards, by the truth
        quiet = Evaluation(every=0, final_per_level=1, levels=run.evaluation.levels, kl_to_base=False)
        run = replace(run, name=f"{self.name}-{kind}", evaluation=quiet)
        if kind == "longer":
            shown = cast(WarmUp, self.base(seed).stages[-1])
            learner = LearnerSettings(optimizer=Muon(lr=2e-3), schedule=LearningRateSchedule(kind="linear"))
            more = replace(shown, steps=steps or shown.steps, gate=0.0, learner=learner)
            return Cell(run=replace(run, stages=(more,)), truth=truth)
        judge = run.tasks.verifier()
        scorer = RandomReward(seed) if kind == "random" else FormatOnly(judge)
        return Cell(run=replace(run, tasks=Rewarded(source=run.tasks, scorer=scorer), stages=(stage,)), truth=truth)

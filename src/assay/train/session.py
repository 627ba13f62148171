"""What the stages of a run share while one is at work: learner, engine, text, verdicts, proof, and the count of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.core.batch import Batch
from assay.core.errors import RewardError
from assay.core.group import Group
from assay.core.plan import Plan
from assay.core.protocols import Engine, IndexPolicy, Sampler, SamplerParts, Tokenizer
from assay.core.rollout import Sampling
from assay.core.score import Score
from assay.core.timing import span
from assay.objective.program import Program
from assay.rollout.spec import PlayerSpec
from assay.runtime.settings import LearnerSettings
from assay.train.independent_check import IndependentChecker
from assay.train.judgements import RunJudges
from assay.train.mismatch import Agreement
from assay.train.record import ids_digest
from assay.train.run import Run
from assay.train.stage import Stage
from assay.train.weights import ServedWeights
from assay.verify import ScoringPool

__all__ = ["Parts"]


@dataclass(slots=True, kw_only=True)
class Parts(ServedWeights):
    """What a stage at work is made of, whatever its kind; what concerns its weights is said at `ServedWeights`.

    Attributes:
        run, stage: settings.
        settings: the learner's, with what the evaluation and a scorer need besides the stage's own.
        tokenizer: the policy's text.
        pool: scores rollouts by the tasks' own verifier.
        program, plan: the compiled objective.
        index: which task comes next in each stream, where a curriculum leaves it open.
        agreement: compares engine and learner.
        checker: a second judge; None without one.
        judges: models that a scorer may ask; None outside a run's folder.
        step: global step, the number of steps finished.
        stage_step: the same within the stage.
        ids: running digest of all sampled token ids.
        untrained: names of tensors that are trained and have had no gradient at any step so far.
        folder: of the run; None outside one.
        replays: the stage replays what its log says was sampled (`assay.train.replay`).
        judged: verdicts by rollout id that were given before the step asked for them.
        news: kinds and sentences for the journal, of what happened beside the steps.
    """

    run: Run
    stage: Stage
    settings: LearnerSettings
    tokenizer: Tokenizer
    pool: ScoringPool
    program: Program
    plan: Plan
    index: IndexPolicy
    agreement: Agreement
    checker: IndependentChecker | None = None
    judges: RunJudges | None = None
    step: int = 0
    stage_step: int = 0
    ids: str = ""
    untrained: tuple[str, ...] = ()
    folder: Path | None = None
    replays: bool = False
    judged: Mapping[str, Score] = field(default_factory=dict[str, Score])
    news: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def remember(self, groups: Sequence[Group]) -> None:
        """Adds the sampled ids to the running digest."""
        self.ids = ids_digest(self.ids, groups)

    def annotate(self, batch: Batch) -> Batch:
        """The batch with the columns that the objective asks the learner for before the first update: none, often."""
        wanted = [f for f in self.plan.forwards if f.when == "batch"]
        with span("annotate"):
            return self.learner.annotate(batch, *wanted) if wanted else batch

    def sampler_parts(self, sampling: Sampling, engine: Engine | None = None) -> SamplerParts:
        """What a sampler of the run is built from, with its own engine or another."""
        return SamplerParts(
            engine=engine or self.engine,
            tokenizer=self.tokenizer,
            source=self.run.tasks,
            sampling=sampling,
            seed=self.run.seed,
            max_turns=self.run.max_turns,
            deadline=self.run.environment_deadline,
            pictures=self.run.pictures,
        )

    def player(self, sampling: Sampling) -> Sampler:
        """What plays single rollouts in the contexts of training, without search."""
        return self.stage.sampler.player.build(self.sampler_parts(sampling))

    def evaluation_player(self, sampling: Sampling) -> Sampler:
        """What plays single rollouts of evaluations; its context manager may differ there from training."""
        player = self.stage.sampler.player
        spec = player.for_evaluation() if isinstance(player, PlayerSpec) else player
        return spec.build(self.sampler_parts(sampling))

    def state_dict(self) -> dict[str, Any]:
        """Everything but the learner and the runner, JSON-able."""
        return {
            "step": self.step,
            "stage_step": self.stage_step,
            "ids": self.ids,
            "proved": self.proved,
            "counter": self.index.state_dict(),
            "program": self.program.state_dict(),
            "pool": self.pool.state_dict(),
            "checker": self.checker.state_dict() if self.checker else None,
            "proof": self.proof.state_dict() if self.proof else [],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`; the mapping may hold more."""
        self.step, self.stage_step, self.ids = int(state["step"]), int(state["stage_step"]), str(state["ids"])
        self.proved = bool(state["proved"])
        self.index.load_state_dict(state["counter"])
        self.program.load_state_dict(state["program"])
        self.pool.load_state_dict(state["pool"])
        if self.checker is not None:
            self.checker.load_state_dict(state["checker"])
        if self.proof is not None:
            self.proof.load_state_dict(state["proof"])

    def reward_error(self) -> RewardError | None:
        """What the run is to end with because the user's reward failed since the last call; None where it is to go on."""
        failure = self.pool.take_failure()
        if failure is None or self.run.reward_errors != "stop":
            return None
        return RewardError(
            f"{failure}\nThe run stops and keeps the {self.step} steps that it has. Mend the reward and go on with 'assay "
            "resume RUN --allow-inexact' (the code has changed). Run.reward_errors='count' counts such rollouts as faults instead"
        )

    def counts(self) -> dict[str, int]:
        """What the scoring pool and the judges counted so far."""
        return {**self.pool.counts, **(self.judges.counts() if self.judges else {})}

    def close(self) -> None:
        """Ends the processes that share the learner; what the next stage takes over stays."""
        for subscriber in self.subscribers:
            subscriber.close()
        self.learner.close()

    def notes(self) -> list[tuple[str, str]]:
        """What of this stage's machinery is not as one would expect: kinds and sentences for the journal."""
        return [*self.learner.notes(), *(self.proof.notes() if self.proof else ())]

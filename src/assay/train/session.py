"""The live side of a run: everything that has state, built from the run's settings, saved and restored as one."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError
from assay.core.group import Group, Outcome
from assay.core.manifest import Manifest
from assay.core.plan import Plan
from assay.core.protocols import (
    Curriculum,
    Engine,
    Guidance,
    IndexPolicy,
    Replay,
    Sampler,
    SamplerParts,
    SamplerSpec,
    ServesOldWeights,
    SharesStates,
    Tokenizer,
)
from assay.core.rollout import Sampling
from assay.core.scoring import Scorer
from assay.core.seeds import derive
from assay.guide import InOrder
from assay.objective.program import Program
from assay.rollout.saying import end_ids
from assay.rollout.spec import PlayerSpec
from assay.train.check import Checker
from assay.train.judgements import RunJudges
from assay.train.levels import arms_of
from assay.train.models import from_folder
from assay.train.proof import WeightProof, probe_rows
from assay.train.reinforce import Reinforce
from assay.train.run import Run, Stage, learner_of
from assay.train.support import sampling_of
from assay.verify import FromTasks, ScoringPool

if TYPE_CHECKING:
    from assay.runtime.distributed.mesh import AnyLearner
    from assay.runtime.models.any_model import AnyModel

__all__ = ["Practice", "Session", "open_session", "parts_of", "player_of", "sampler_of", "with_stop"]


@dataclass(slots=True)
class Practice:
    """What a stage of reinforcement learning has besides.

    Attributes:
        stage: its settings.
        curriculum: chooses what to practise.
        guidance: poses it.
        replay: groups kept for later steps; None without one.
    """

    stage: Reinforce
    curriculum: Curriculum
    guidance: Guidance
    replay: Replay | None

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Tells curriculum and guidance what became of each graded group of a step."""
        self.curriculum.observe(outcomes)
        self.guidance.observe(outcomes)

    def metrics(self) -> dict[str, float]:
        """Numbers of curriculum and guidance."""
        return {**self.curriculum.metrics(), **self.guidance.metrics()}

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state of curriculum, guidance and replay."""
        return {
            "curriculum": self.curriculum.state_dict(),
            "guidance": self.guidance.state_dict(),
            "replay": self.replay.state_dict() if self.replay is not None else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        self.curriculum.load_state_dict(state["curriculum"])
        self.guidance.load_state_dict(state.get("guidance", {}))
        if self.replay is not None:
            self.replay.load_state_dict(state["replay"])


@dataclass(slots=True)
class Session:
    """One stage of a run, alive.

    Attributes:
        run, stage: settings.
        learner, engine, tokenizer, player: the policy's two halves, its text, and who plays it.
        pool: scores attempts.
        program, plan: the compiled objective.
        index: which task comes next in each stream, where the curriculum leaves it open.
        proof: checks the engine's weights; None when switched off.
        practice: what only reinforcement learning has; None in the other stages.
        checker: a second judge; None without one.
        scorer: gives the rewards of a stage of reinforcement learning.
        judges: models that it may ask; None outside a run's folder.
        step: global step, the number of steps finished.
        stage_step: the same within the stage.
        ids: running digest of all sampled token ids.
        proved: state of the last weight proof.
        version: of the weights published last.
        untrained: names of tensors that are trained and have had no gradient at any step so far.
    """

    run: Run
    stage: Stage
    learner: AnyLearner
    engine: Engine
    tokenizer: Tokenizer
    player: Sampler
    pool: ScoringPool
    program: Program
    plan: Plan
    index: IndexPolicy
    proof: WeightProof | None
    practice: Practice | None = None
    checker: Checker | None = None
    scorer: Scorer = field(default_factory=FromTasks)
    judges: RunJudges | None = None
    step: int = 0
    stage_step: int = 0
    ids: str = ""
    proved: bool = False
    version: int = 0
    untrained: tuple[str, ...] = ()

    @property
    def rl(self) -> Practice:
        """`practice`, in a stage that must be one of reinforcement learning."""
        assert self.practice is not None, f"a stage of type {type(self.stage).__name__} has no practice"
        return self.practice

    def remember(self, groups: Sequence[Group]) -> None:
        """Adds the sampled ids to the running digest."""
        h = hashlib.blake2b(self.ids.encode(), digest_size=16)
        for group in groups:
            for rollout in group.rollouts:
                h.update(rollout.id.encode())
                for call in rollout.calls:
                    h.update(call.completion.ids.tobytes())
        self.ids = h.hexdigest()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the learner, JSON-able."""
        return {
            "step": self.step,
            "stage_step": self.stage_step,
            "ids": self.ids,
            "proved": self.proved,
            "counter": self.index.state_dict(),
            "practice": self.practice.state_dict() if self.practice else None,
            "program": self.program.state_dict(),
            "pool": self.pool.state_dict(),
            "scorer": self.scorer.state_dict(),
            "checker": self.checker.state_dict() if self.checker else None,
            "proof": self.proof.state_dict() if self.proof else [],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`."""
        self.step, self.stage_step, self.ids = int(state["step"]), int(state["stage_step"]), str(state["ids"])
        self.proved = bool(state["proved"])
        self.index.load_state_dict(state["counter"])
        if self.practice is not None:
            self.practice.load_state_dict(state["practice"])
        self.program.load_state_dict(state["program"])
        self.pool.load_state_dict(state["pool"])
        if "scorer" in state:  # not in checkpoints of before there were scorers
            self.scorer.load_state_dict(state["scorer"])
        if self.checker is not None:
            self.checker.load_state_dict(state["checker"])
        if self.proof is not None:
            self.proof.load_state_dict(state["proof"])

    def counts(self) -> dict[str, int]:
        """What the scoring pool and the judges counted so far."""
        return {**self.pool.counts, **(self.judges.counts() if self.judges else {})}

    def save(self, folder: Path) -> None:
        """Writes the learner's files, and the weights that wait for their turn in the engine."""
        self.learner.save(folder)
        if (lagged := self.lagged) is not None:
            lagged.save(folder)

    def restore(self, folder: Path, state: dict[str, Any]) -> None:
        """Continues from a checkpoint: what `save` wrote in ``folder``, the rest in ``state``."""
        self.learner.load(folder)
        if (lagged := self.lagged) is not None:
            lagged.load(folder)
        self.load_state_dict(state)

    @property
    def lagged(self) -> ServesOldWeights | None:
        """The engine, where it serves weights that are old on purpose."""
        return self.engine if isinstance(self.engine, ServesOldWeights) else None

    def recorded(self) -> AbstractContextManager[None]:
        """Inside, what the engine computes of what it samples is kept for the gradient pass, where both can (`Native.recall`)."""
        return self.engine.recorded() if isinstance(self.engine, SharesStates) else nullcontext()

    def close(self) -> None:
        """Ends the processes that share the learner; what the next stage takes over stays."""
        self.learner.close()

    def notes(self) -> list[tuple[str, str]]:
        """What of this stage's machinery is not as one would expect: kinds and sentences for the journal."""
        found: list[tuple[str, str]] = []
        if self.learner.policy.note:
            found.append(("rows", f"rows are padded to rectangles: {self.learner.policy.note}"))
        if self.proof and self.proof.blind:
            names = ", ".join(self.proof.blind[:3]) + (" and others" if len(self.proof.blind) > 3 else "")
            found.append(("proof", f"no witness tells whether {names} arrive in the engine: weights count as unproven"))
        if self.proof and not self.proof.steady:
            found.append(("proof", "the engine does not repeat itself to the bit: only checksums can prove its weights"))
        return found

    async def serve(self) -> Manifest:
        """Publishes the learner's present weights to the engine."""
        manifest = self.published()
        await self.engine.swap(manifest)
        self.version = manifest.version
        return manifest

    def published(self) -> Manifest:
        """The learner's present weights as the engine takes them."""
        info = self.engine.info()
        return self.learner.publish(info.dtype, info.digests)

    @asynccontextmanager
    async def present(self) -> AsyncGenerator[None]:
        """Inside, the engine serves the newest weights even where it lags; behind it those that are due, proved again."""
        lagged = self.lagged
        if lagged is None:
            yield
            return
        async with lagged.present():
            yield
        if self.proof:
            await self.proof.due(self.engine)


def open_session(
    run: Run,
    stage: Stage,
    model: AnyModel,
    pool: ScoringPool,
    step: int,
    before: Session | None = None,
    others: Callable[[str], AnyModel] = from_folder,
    checker: Checker | None = None,
    judges: RunJudges | None = None,
) -> Session:
    """Builds a stage from its settings and the weights that it starts from.

    Args:
        run, stage: settings.
        model: starting weights; anchors start there too, unless they name another model.
        pool: scores attempts.
        step: steps finished by earlier stages.
        before: the stage before, whose weight versions, task streams and alike value heads go on.
        others: gives the models that anchors name.
        checker: a second judge.
        judges: models that a scorer may ask.

    Raises:
        ConfigError: lengths beyond the context, no arm left for the stage's levels, an anchor of another vocabulary.
    """
    from assay.runtime.distributed.mesh import build_learner

    if run.sampling.max_new_tokens >= model.shape.max_positions:
        raise ConfigError(
            f"Run.sampling.max_new_tokens={run.sampling.max_new_tokens} leaves no room for a prompt in the model's context of "
            f"{model.shape.max_positions} tokens; lower it"
        )
    arms = arms_of(run.tasks, stage.levels)
    if not arms:
        raise ConfigError(f"no arm of task family {run.tasks.name!r} has a level of {stage.levels}")
    settings = learner_of(run, stage)
    learner = build_learner(
        model,
        settings,
        total_steps=stage.steps * stage.updates,
        version=before.learner.version if before else 0,
        models={a.model: others(a.model) for a in settings.anchors if a.model},
        mesh=run.mesh,
        threads=run.threads,
    )
    lag = stage.lag if isinstance(stage, Reinforce) else 0
    try:
        if before:
            learner.carry(before.learner.heads.kept())
        engine = _engine(run, learner, lag)
    except BaseException:
        learner.close()
        raise
    program = stage.taught.compile(stage.updates, offers=stage.learner.offers)
    return Session(
        run=run,
        stage=stage,
        learner=learner,
        engine=engine,
        tokenizer=model.tokenizer,
        player=sampler_of(stage).build(parts_of(run, engine, model.tokenizer, sampling_of(run, stage))),
        pool=pool,
        program=program,
        plan=program.plan,
        index=_index(run, stage, before),
        proof=_proof(run, model, lag, learner.policy.replay is not None) if run.prove_weights else None,
        practice=_practice(run, stage, arms, step) if isinstance(stage, Reinforce) else None,
        checker=checker,
        scorer=stage.reward.build() if isinstance(stage, Reinforce) else FromTasks(),
        judges=judges,
        step=step,
    )


def _engine(run: Run, learner: AnyLearner, lag: int) -> Engine:
    from assay.runtime.engine.stale import Lagged

    engine = run.engine.build(learner)
    if learner.settings.replay_routing and "routed_experts" not in engine.info().columns:
        raise ConfigError(
            f"LearnerSettings.replay_routing: the engine of Run.engine={run.engine} does not tell where it sends tokens; use "
            "InProcess(), or leave it out"
        )
    return Lagged(engine, lag) if lag else engine


def _proof(run: Run, model: AnyModel, lag: int, experts: bool) -> WeightProof:
    vocabulary, context = model.shape.vocab_size, model.shape.max_positions
    more = probe_rows(vocabulary, context, run.seed, rows=8, length=32)
    return WeightProof(probe_rows(vocabulary, context, run.seed), rehearsal=more, lag=lag, spared=0.25 if experts else 0.0)


def _practice(run: Run, stage: Reinforce, arms: Mapping[str, tuple[int, ...]], step: int) -> Practice:
    seed = derive("curriculum", run.seed, "stage", step) if step else run.seed
    replay = stage.replay.build(run.seed) if stage.replay else None
    return Practice(stage, stage.curriculum.build(arms, seed), stage.guidance.build(run.seed), replay)


def _index(run: Run, stage: Stage, before: Session | None) -> IndexPolicy:
    """The stage's index policy; one of the stage before's kind goes on where that stood."""
    index = (stage.index if isinstance(stage, Reinforce) else InOrder()).build(run.seed)
    if before and type(index) is type(before.index):
        index.load_state_dict(before.index.state_dict())
    return index


def sampler_of(stage: Stage) -> SamplerSpec:
    """How a stage's rollouts come about: one by one, where it does not say."""
    return stage.sampler if isinstance(stage, Reinforce) else PlayerSpec()


def parts_of(run: Run, engine: Engine, tokenizer: Tokenizer, sampling: Sampling) -> SamplerParts:
    """What a sampler of a run is built from."""
    return SamplerParts(
        engine=engine,
        tokenizer=tokenizer,
        source=run.tasks,
        sampling=sampling,
        seed=run.seed,
        max_turns=run.max_turns,
        deadline=run.environment_deadline,
    )


def player_of(s: Session, sampling: Sampling) -> Sampler:
    """What plays a stage's single rollouts, as in evaluations: in the contexts of training, without search."""
    return sampler_of(s.stage).player.build(parts_of(s.run, s.engine, s.tokenizer, sampling))


def with_stop(sampling: Sampling, tokenizer: Tokenizer) -> Sampling:
    """``sampling`` that ends at the tokenizer's end tokens, unless it names stop tokens itself."""
    return sampling if sampling.stop_ids else replace(sampling, stop_ids=end_ids(tokenizer))

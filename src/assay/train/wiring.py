"""A method by its name, with all that it needs: heads and their models, anchors, columns, streams, updates.

What follows from the composition is derived from it; what the sources say besides is declared beside the method
(`assay.objective.methods.requires`). Settings that a person gave (``given``) are left as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError, UnknownNameError
from assay.guide import Compose, Plain, Privileged
from assay.objective.loss.score import ScoreLoss
from assay.objective.methods import Method, method_named, methods
from assay.objective.methods.registry import describe_part
from assay.objective.methods.requires import Critic
from assay.objective.objective import Objective
from assay.runtime.anchors import Anchor, Every
from assay.runtime.settings import AdamW, LearnerSettings, Trunk, ValueHead
from assay.train.method_names import TEACHER, NamedMethod, settle_settings
from assay.train.providers import AUTOMATIC, DEFAULTS
from assay.train.reference_value import ReferenceValue
from assay.train.reinforce import Reinforce
from assay.train.row_sources import streams_in
from assay.train.stage import Stage
from assay.train.streams import AsStream, WithStored
from assay.train.warmup import WarmUp

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["WiredPart", "Wiring", "models_in", "models_of", "updates_of", "wire", "wire_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredPart:
    """Something that was put into a stage for a method.

    Attributes:
        method: for which.
        place: the field, with dots, below the run: ``stages.0.learner.heads``.
        value: what stands there now, as text.
        why: in a sentence.
    """

    method: str
    place: str
    value: str
    why: str


def updates_of(objective: Objective) -> int:
    """Fewest optimiser steps per rollout batch at which every part of an objective acts: two where a loss compares with the
    policy that drew, which only a second step can tell from the present one.

    >>> from assay.objective.methods import grpo, opo
    >>> updates_of(grpo()), updates_of(opo())
    (2, 1)
    """
    if isinstance(objective.policy, ScoreLoss):
        return 1
    anchors = {a for t in objective.losses for a in t.anchors}
    read = {n for t in objective.losses for n in t.needs if n.startswith("logp_") and n.endswith("_old")}
    return 2 if read or anchors & {"old", "engine"} else 1


def models_of(objective: Objective) -> tuple[str, ...]:
    """Models beside the policy and its reference whose distributions an objective reads, sorted.

    >>> from assay.objective.methods import grpo, opd
    >>> models_of(grpo()), models_of(opd())
    ((), ('teacher',))
    """
    return tuple(sorted(models_in(objective) - {"policy", "ref"}))


def models_in(objective: Objective) -> set[str]:
    """All models whose distributions an objective reads, the policy and its reference included."""
    plan = objective.plan(2)
    stats = (*plan.vocab, *(f.stat for f in plan.forwards if f.stat))
    return {*(f.model for f in plan.forwards), *(m for s in stats for m in s.models)}


def wire_run(run: Run, named: Mapping[int, NamedMethod]) -> tuple[Run, tuple[WiredPart, ...]]:
    """A run whose stages learn by methods that were named, with all that these need.

    Args:
        run: with any objective in these stages.
        named: by the number of the stage.

    Returns:
        The run, and what was put into it, in order.

    Raises:
        UnknownNameError: no such stage, method or setting.
        ConfigError: the stage cannot be one that the method learns from, or a teacher is missing; with a fix.
    """
    stages, wires = list(run.stages), list[WiredPart]()
    for index, name in named.items():
        if not 0 <= index < len(stages):
            raise UnknownNameError("stage", str(index), [str(i) for i in range(len(stages))])
        stages[index], found = wire(stages[index], name, answer=run.sampling.max_new_tokens)
        wires += [replace(w, place=f"stages.{index}.{w.place}") for w in found]
    return replace(run, stages=tuple(stages)), tuple(wires)


def wire(stage: Stage, named: NamedMethod | str, *, answer: int = 0) -> tuple[Stage, tuple[WiredPart, ...]]:
    """A stage that learns by a named method, with all that it needs.

    Args:
        stage: settings; its objective is replaced.
        named: the method, or its name alone.
        answer: most tokens of an answer, for methods that divide by a length; their own example's when 0.

    Raises:
        UnknownNameError, ConfigError: as `wire_run`.

    >>> made, wires = wire(Reinforce(), "ppo")
    >>> [h.name for h in made.learner.heads], [w.place for w in wires]
    (['values'], ['minibatches', 'learner.heads'])
    """
    named = NamedMethod(method=named, settings={}) if isinstance(named, str) else named
    known = methods()
    if (name := method_named(named.method)) is None:
        raise UnknownNameError("method", named.method, known)
    method, named = known[name], replace(named, method=name)
    objective, wires = _objective(method, named, answer)
    made = stage.wire(Wiring(method, named, wires), objective)
    return made, tuple(wires)


def _objective(method: Method, named: NamedMethod, answer: int) -> tuple[Objective, list[WiredPart]]:
    """The composition under a person's settings, then what the method requires, then what the run knows."""
    own = settle_settings(method, {k: v for k, v in named.settings.items() if k != TEACHER})
    needed = {k: v for k, v in method.requires.settings.items() if k not in own}
    reasons = dict.fromkeys(needed, method.requires.why)
    if answer and "length" in method.example and "length" not in own:
        needed["length"], reasons["length"] = answer, "the longest answer that the run samples"
    wires = [
        WiredPart(method=method.name, place=f"objective.{name}", value=repr(value), why=reasons[name])
        for name, value in needed.items()
    ]
    return method.objective(**{**needed, **own}), wires


@dataclass(frozen=True, slots=True)
class Wiring:
    """Puts into a stage what a method needs, and notes it.

    Attributes:
        method: as it is registered.
        named: what a person says of it.
        wires: what was put into the stage so far.
    """

    method: Method
    named: NamedMethod
    wires: list[WiredPart]

    def teachers(self, objective: Objective) -> tuple[str, ...]:
        """Models beside the policy and its reference that an objective reads, as `models_of`."""
        return models_of(objective)

    def _warm_up(self, stage: Reinforce, objective: Objective) -> WarmUp:
        """A stage on the family's own solutions in the place of one of reinforcement learning."""
        made = WarmUp(
            steps=stage.steps,
            batch=stage.groups * 2,
            levels=stage.levels,
            noise=0.0,
            objective=objective,
            learner=stage.learner,
            until=stage.until,
        )
        why = f"{self.method.requires.why}, so it gets the family's own solutions (WarmUp); of rows of yours: a stage Imitate"
        self.wires.append(WiredPart(method=self.method.name, place="kind", value="WarmUp", why=why))
        return made

    def reinforce(self, stage: Reinforce, objective: Objective) -> Reinforce | WarmUp:
        """Everything of a stage of reinforcement learning. The fields are settled together: some are only right so."""
        if self.method.requires.demonstrations:
            return self._warm_up(stage, objective)
        changes: dict[str, Any] = {"objective": objective}
        if stage.group_size < objective.min_group:
            self._put(changes, "group_size", objective.min_group, "its baseline compares so many rollouts of a prompt")
        if stage.updates == 1 and not stage.lag and updates_of(objective) > 1 and not self._gave("minibatches", "epochs"):
            # No method changes the updates by its name: two names are then compared at equal numbers of steps.
            why = (
                "one update per batch, as without a name: the ratio to the policy that drew is then 1, and a clip range has no "
                "effect; --minibatches 2 makes it act"
            )
            self.wires.append(WiredPart(method=self.method.name, place="minibatches", value="1", why=why))
        own = {stream for source in stage.sources for stream in streams_in(source)}
        expert = any("expert" in streams for streams in _streams(objective)) and "expert" not in own
        if expert != stage.experts and not self._gave("experts"):
            why = "it learns from an expert's answer beside the rollouts" if expert else "it learns from its own rollouts alone"
            self._put(changes, "experts", expert, why)
        self._rows(stage, objective, changes)
        self._columns(stage, objective, changes)
        columns: tuple[Any, ...] = changes.get("columns", stage.columns)
        also = {p.model for p in columns if isinstance(p, ReferenceValue) and not p.solved}
        changes["learner"] = self.learner(stage.learner, objective, stage.steps * stage.updates, also)
        read = "privileged" in models_of(objective)
        if read and isinstance(stage.guidance, Plain) and not self._gave("guidance"):
            self._put(changes, "guidance", Privileged(), "its teacher reads the solution, and this writes it there")
        return replace(stage, **changes)

    def learner(
        self, learner: LearnerSettings, objective: Objective, updates: int, also: Collection[str] = ()
    ) -> LearnerSettings:
        """The learner with models (``also``: those that columns are made by), heads and their models."""
        changes: dict[str, Any] = {}
        if anchors := tuple(self._anchors(learner, {*models_in(objective), *also} - {"policy"})):
            why = self.method.requires.why or "it reads their probabilities"
            self._put(changes, "learner.anchors", (*learner.anchors, *anchors), why, anchors)
        heads = tuple(self._heads(learner, objective))
        if heads:
            self._put(changes, "learner.heads", (*learner.heads, *heads), "its losses fit these values", heads)
        wanted = {h.trunk for h in heads if h.trunk} - {t.name for t in learner.trunks}
        if wanted:
            trunks = tuple(self._trunk(c) for c in _first_of_each(self.method.requires.critics) if c.model in wanted)
            self._put(changes, "learner.trunks", (*learner.trunks, *trunks), self.method.requires.why, trunks)
        first = min(self.method.requires.critics_first, updates // 4)
        if heads and first and not learner.policy_after and not self._gave("learner.policy_after"):
            self._put(changes, "learner.policy_after", first, self.method.requires.why)
        return replace(learner, **changes) if changes else learner

    # ---- one by one

    def _rows(self, stage: Reinforce, objective: Objective, changes: dict[str, Any]) -> None:
        """The composer: stored answers where the terms act on nothing else, or on these too."""
        if self._gave("composer"):
            return
        brought = any("offline" in streams_in(source) for source in stage.sources)
        stored = all(set(t.streams) == {"offline"} for t in objective.losses) and not brought
        beside = self.method.requires.stored == "beside" and not brought
        if stored and not isinstance(stage.composer, AsStream):
            self._put(
                changes,
                "composer",
                AsStream(stream="offline", inner=stage.composer),
                "it learns from stored answers: the step's own rollouts are taken for such",
            )
        elif beside and isinstance(stage.composer, Compose):
            self._put(changes, "composer", WithStored(least=0.75), self.method.requires.why)
        elif not stored and not beside and isinstance(stage.composer, AsStream | WithStored):
            self._put(changes, "composer", Compose(), "it learns from its own rollouts")

    def _columns(self, stage: Reinforce, objective: Objective, changes: dict[str, Any]) -> None:
        plan = objective.plan(2)
        read = [n for n in dict.fromkeys((*plan.rollout_columns, *plan.columns)) if n in DEFAULTS and n not in AUTOMATIC]
        kept = tuple(p for p in stage.columns if p.name in {*plan.rollout_columns, *plan.columns} or self._gave("columns"))
        added = tuple(DEFAULTS[n] for n in read if n not in {p.name for p in kept})
        if added or kept != stage.columns:
            why = f"it reads {', '.join(read)} unless the verifier says it" if added else "it reads no such column"
            self._put(changes, "columns", (*kept, *added), why)

    def _anchors(self, learner: LearnerSettings, read: Collection[str]) -> Iterator[Anchor]:
        have, requires = {a.name for a in learner.anchors}, self.method.requires
        given: Any = self.named.settings.get(TEACHER, ())
        teachers = [str(given)] if isinstance(given, str) else [str(x) for x in given]
        for name in sorted({*read} - have):
            if name == "ref":
                yield Anchor()
            elif name == "privileged":
                yield Anchor(name, privileged=True)
            elif name in requires.refresh:
                yield Anchor(name, refresh=Every(steps=requires.refresh[name]))
            elif teachers:
                yield Anchor(name, model=teachers.pop(0))
            elif not self._gave("learner.anchors"):
                raise ConfigError(
                    f"{self.method.name} learns from a model {name!r}, and the run has none: name a model folder or a finished "
                    f"run, --stages.0.objective.{TEACHER} runs/NAME-1, or give LearnerSettings(anchors=(..., Anchor({name!r}, "
                    "model=...)))"
                )
        if teachers:
            raise ConfigError(
                f"{self.method.name}: {TEACHER}={', '.join(teachers)} would teach nothing, for it reads the models "
                f"{', '.join(sorted(read)) or 'none'}; leave it out"
            )

    def _heads(self, learner: LearnerSettings, objective: Objective) -> Iterator[ValueHead]:
        have = {h.name for h in learner.heads}
        critics = {c.name: c for c in self.method.requires.critics}
        targets = {f.column.removesuffix("_target") for f in objective.plan(2).forwards if f.column.endswith("_target")}
        fitted = {n: s for t in objective.losses for n, s in t.heads.items()}
        for name in (n for n in dict.fromkeys((*critics, *fitted)) if n in fitted and n not in have):
            yield _head(fitted[name], critics.get(name, Critic(name=name, tau=0.1 if name in targets else 0.0)))

    def _trunk(self, critic: Critic) -> Trunk:
        return Trunk(name=critic.model, tau=critic.tau, optimizer=AdamW(lr=critic.model_lr) if critic.model_lr else None)

    def _put(self, changes: dict[str, Any], place: str, value: Any, why: str, added: Any = None) -> None:
        """Notes a change; ``added`` is what is new of the value, where that is only a part."""
        changes[place.rpartition(".")[2]] = value
        self.wires.append(
            WiredPart(method=self.method.name, place=place, value=describe_part(value if added is None else added), why=why)
        )

    def _gave(self, *places: str) -> bool:
        """Whether a person gave one of these fields, or something in it."""
        return any(g == p or g.startswith(f"{p}.") for g in self.named.given for p in places)


def _streams(objective: Objective) -> Iterator[Sequence[str]]:
    yield objective.scalarise.streams
    for part in (*objective.credit, *objective.losses):
        yield part.streams


def _first_of_each(critics: Collection[Critic]) -> list[Critic]:
    return list({c.model: c for c in critics}.values())


def _head(spec: tuple[str, int, float, float], critic: Critic) -> ValueHead:
    """A head of the form that a loss fits."""
    form, outputs, low, high = spec
    ranged: dict[str, Any] = {} if form == "scalar" else {"form": form, "outputs": outputs, "low": low, "high": high}
    return ValueHead(
        name=critic.name,
        trunk=critic.model,
        behind=critic.behind,
        tau=critic.tau,
        init=critic.init,
        optimizer=AdamW(lr=critic.lr) if critic.lr else None,
        **ranged,
    )

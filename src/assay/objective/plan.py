"""Compiles an objective to a `Plan`, or says why it cannot be right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from assay.core.errors import PlanError, nearest
from assay.core.plan import Forward, Offers, Plan, Scope
from assay.core.sample import STREAMS
from assay.core.vocab import VocabStat
from assay.objective.credit.baseline import Center
from assay.objective.credit.filters import DropZeroVariance
from assay.objective.credit.normalise import Whiten
from assay.objective.loss.base import LossTerm
from assay.objective.loss.policy import UNSAMPLED, PolicyGradient
from assay.objective.loss.vocab import standard
from assay.objective.loss.wrap import title, unwrap

if TYPE_CHECKING:
    from assay.objective.objective import Objective

__all__ = ["aggregate_name", "compile_plan", "corrects_sampler", "forward_of", "is_fresh", "lagging"]

_ENGINE = ("ids", "mask", "logp_engine", "weight_version", "call", "entropy")
_QUANTITIES = ("logp", "entropy")
_SOURCES = {"old": ("policy", "batch"), "now": ("policy", "step"), "ref": ("ref", "batch"), "teacher": ("teacher", "batch")}
_OF_HEADS = {"old": "batch", "now": "step", "target": "step"}
_HEADS = ("values",)
_ORDER = (Scope.TOKEN, Scope.SEQUENCE, Scope.GROUP, Scope.BATCH)


def forward_of(column: str, heads: Collection[str] = _HEADS, models: Collection[str] = ()) -> Forward | None:
    """The forward pass that fills a column, by its name ``QUANTITY_SOURCE``; None when no pass does.

    A source is ``old``, ``now``, ``ref``, ``teacher`` or one of ``models``.

    >>> forward_of("logp_ref")
    Forward(column='logp_ref', model='ref', when='batch')
    >>> forward_of("logp_engine") is None
    True
    """
    for known in _QUANTITIES:
        model = column.removeprefix(f"{known}_")
        if model != column and model in models and model != "policy":
            return Forward(column, model)
    quantity, _, source = column.rpartition("_")
    if quantity in heads and source in _OF_HEADS:
        return Forward(column, "policy", _OF_HEADS[source])
    if source not in _SOURCES:
        return None
    model, when = _SOURCES[source]
    if quantity in _QUANTITIES:
        return Forward(column, model, when)
    stat = standard(quantity)
    return None if stat is None else Forward(column, model, when, stat)


def is_fresh(objective: Objective, updates: int) -> bool:
    """Whether the policy at the start of the batch is the current one, and stands in for ``logp_old``."""
    return updates == 1 and "logp_old" not in objective.brings


def corrects_sampler(objective: Objective) -> bool:
    """Whether the policy term weighs tokens by the learner's probability over the sampler's: a ratio to ``engine``, or a
    correction from ``old`` to ``engine`` (truncated importance sampling, decoupled PPO).

    >>> from assay.objective import grpo, tis
    >>> corrects_sampler(grpo()), corrects_sampler(tis())
    (False, True)
    """
    policy = unwrap(objective.policy) if objective.policy else None
    return isinstance(policy, PolicyGradient) and (any(w.corrects for w in policy.weights) or policy.ratio.anchor == "engine")


def lagging(objective: Objective) -> Objective:
    """The objective for rollouts that older weights sampled, so that none of them passes for the current policy's.

    A ratio to ``engine``, and a correction from ``old`` to ``engine`` (decoupled PPO, truncated importance sampling), account
    for their age already: ``old`` stays the learner's policy at the start of the batch. Otherwise ``old`` has to be the
    policy that sampled, and the rows bring ``logp_old``: the values of ``logp_engine``.

    Raises:
        PlanError: nothing compares with the policy that sampled, or ``old`` is read of rows that no sampler wrote.

    >>> from assay.objective import areal, grpo
    >>> lagging(grpo()).brings, lagging(areal()).brings
    (('logp_old',), ())
    """
    policy = unwrap(objective.policy) if objective.policy else None
    if corrects_sampler(objective):
        return objective
    if not isinstance(policy, PolicyGradient) or policy.ratio.level == "none" or policy.ratio.anchor != "old":
        raise PlanError(
            "rollouts come from older weights, and the objective's policy term has no ratio to correct for it; use a method with "
            "one (grpo, dapo, areal, ...)"
        )
    readers = {t.name: _streams(t) for t in objective.losses if "old" in t.anchors or "logp_old" in t.needs}
    readers |= {type(t).__name__: set(t.streams) for t in objective.credit if "logp_old" in t.needs}
    for name, streams in readers.items():
        if blind := sorted(streams & set(UNSAMPLED)):
            raise PlanError(
                f"rollouts come from older weights, and {name!r} reads ``old``, then the policy that sampled, of the "
                f"streams {blind}, which no sampler wrote: give these streams a term of their own that does not"
            )
    return replace(objective, brings=tuple(dict.fromkeys((*objective.brings, "logp_old"))))


def aggregate_name(objective: Objective, term: LossTerm) -> str:
    """Name of the counts that a term's losses are divided by: ``aggregate/DENOMINATOR/STREAMS``."""
    way = term.aggregate or objective.aggregate
    return f"aggregate/{way.denominator}/{'+'.join(term.streams) or 'all'}"


def compile_plan(objective: Objective, updates: int = 0, offers: Offers | None = None) -> Plan:
    """What an objective asks of learner, engine and batch.

    Args:
        objective: the composition.
        updates: optimiser steps per rollout batch; with exactly 1 the policy at the start of the batch is the current one, so
            a ratio to it needs no pass of its own. 0 when unknown.
        offers: what the learner can do, as `assay.runtime.LearnerSettings` says it; nothing is asked of it when None.

    Raises:
        PlanError: the composition cannot be right, or the learner does not offer what it needs; names the parts and a fix.
    """
    for check in (_check_terminals, _check_names, _check_order, _check_policy, _check_filters, _check_credit_use):
        check(objective)
    for term in objective.losses:
        term.check()
        (term.aggregate or objective.aggregate).check()
    needed = dict(_columns(objective, updates))
    heads = {*_HEADS, *(name for t in objective.losses for name in t.heads)}
    made = {"advantage", *(name for t in objective.credit for name in t.makes)} if objective.uses_reward else set[str]()
    special = {f.column: f for t in objective.losses for f in t.forwards}
    forwards: list[Forward] = []
    brought: list[str] = []
    for column, part in needed.items():
        forward = special.get(column) or forward_of(column, heads, offers.models if offers else ())
        if column in _ENGINE or column in objective.brings:
            brought.append(column)
        elif column in made:
            continue
        elif forward is not None:
            _check_forward(forward, part, offers)
            forwards.append(forward)
        else:
            raise PlanError(_nobody(column, part, objective))
    _check_live(objective, offers)
    _check_stats(objective, offers)
    return Plan(
        forwards=tuple(sorted(forwards, key=lambda f: (f.when, f.column))),
        columns=tuple(sorted(brought)),
        rollout_columns=tuple(
            sorted(
                {n for p in (*(objective.credit if objective.uses_reward else ()), *objective.losses) for n in p.rollout_columns}
            )
        ),
        live=tuple(dict.fromkeys(["logp_new", *(n for t in objective.losses for n in t.live)])),
        reductions=tuple(dict.fromkeys(_reductions(objective))),
        split=max((t.scope for t in objective.losses), key=_ORDER.index, default=Scope.TOKEN),
        skip=all(t.sparse for t in objective.losses),
        vocab=tuple(dict.fromkeys(s for t in objective.losses for s in t.stats)),
    )


def _columns(objective: Objective, updates: int) -> Iterator[tuple[str, str]]:
    """Needed columns, each with a part that needs it."""
    parts: Sequence[object] = (*objective.credit, *objective.losses)
    for part in parts:
        for column in part.needs:  # type: ignore[attr-defined]
            yield column, title(part)
    for term in objective.losses:
        way = term.aggregate or objective.aggregate
        for column in way.needs if term.averages else ():
            yield column, title(way)
        for anchor in term.anchors:
            if not (anchor == "old" and is_fresh(objective, updates)):
                yield f"logp_{anchor}", title(term)


def _reductions(objective: Objective) -> Iterator[str]:
    """Parts whose statistics cross ranks."""
    yield from (f"credit/{i}" for i, t in enumerate(objective.credit) if t.reduces)
    yield from (t.name for t in objective.losses if t.reduces)
    yield from (aggregate_name(objective, t) for t in objective.losses)
    if any(t.reports for t in objective.losses):
        yield "report"


def _check_forward(forward: Forward, part: str, offers: Offers | None) -> None:
    quantity, _, source = forward.column.rpartition("_")
    if offers and forward.stat is None and quantity not in _QUANTITIES and source in _OF_HEADS:
        if quantity not in offers.heads:
            raise PlanError(
                f"{part} needs {forward.column!r}, but the learner has no value head {quantity!r}: give it one, "
                f"LearnerSettings(heads=(ValueHead(name={quantity!r}),)), or name the column if your rows bring it: "
                f"Objective(brings=({forward.column!r},))"
            )
        if source == "target" and quantity not in offers.targets:
            raise PlanError(
                f"{part} needs {forward.column!r}, but the learner's head {quantity!r} has no target weights: use "
                f"ValueHead(name={quantity!r}, tau=...)"
            )
    if offers and forward.model not in offers.models:
        raise PlanError(
            f"{part} needs {forward.column!r}, but the learner has no model {forward.model!r}: "
            f"{_list_offered(forward.model, offers.models)}. "
            f"Give it one, LearnerSettings(anchors=(..., Anchor({forward.model!r}, "
            f"...))). If your sampler or rows bring the column, name it: Objective(brings=({forward.column!r},))"
        )


def _check_live(objective: Objective, offers: Offers | None) -> None:
    for term in objective.losses:
        stats = {s.name for s in term.stats}
        for name, form in term.heads.items():
            if offers and name in offers.heads and offers.heads[name] != form:
                raise PlanError(
                    f"{title(term)} ({term.name!r}) fits a head with (form, outputs, low, high) = {form}, the learner's "
                    f"head {name!r} has {offers.heads[name]}: make them alike"
                )
        for name in term.live:
            if offers and name not in offers.live and name not in stats:
                raise PlanError(
                    f"{title(term)} ({term.name!r}) needs the live column {name!r}, which the learner's gradient pass "
                    f"does not compute: {_list_offered(name, offers.live)}. Leave the term out, or use a learner that computes it"
                )


def _check_stats(objective: Objective, offers: Offers | None) -> None:
    seen: dict[str, VocabStat] = {}
    for term in objective.losses:
        for stat in (*term.stats, *(f.stat for f in term.forwards if f.stat is not None)):
            if seen.setdefault(stat.name, stat) != stat:
                raise PlanError(
                    f"two statistics fill the column {stat.name!r}, {seen[stat.name]} and {stat} of {term.name!r}: give one of "
                    "them a label of its own"
                )
            for model in stat.models:
                if offers and model not in offers.models:
                    raise PlanError(
                        f"{title(term)} ({term.name!r}) reads the distributions of {model!r}, which the learner does not "
                        f"have: {_list_offered(model, offers.models)}. "
                        f"Give it one, LearnerSettings(anchors=(..., Anchor({model!r}, "
                        "...)))"
                    )


def _list_offered(name: str, offered: Sequence[str]) -> str:
    close = nearest(name, offered)
    return (f"did you mean {close!r}? " if close else "") + f"it offers {', '.join(offered)}"


def _nobody(column: str, part: str, objective: Objective) -> str:
    known = [*_ENGINE, *objective.brings, *(f"logp_{s}" for s in _SOURCES)]
    close = nearest(column, known)
    hint = f"did you mean {close!r}? " if close else ""
    if column == "advantage":
        hint = "no term here asks for rewards; "
    return (
        f"{part} needs the column {column!r}, which neither the engine, the learner nor this chain produces: {hint}"
        f"if your sampler or rows bring it, name it: Objective(brings=({column!r},)); a learner with an anchor of that name "
        "fills logp_NAME and entropy_NAME"
    )


def _streams(term: LossTerm) -> set[str]:
    return set(term.streams or STREAMS)


def _check_terminals(objective: Objective) -> None:
    if not objective.losses:
        raise PlanError("the objective has neither a policy term nor another term, so nothing would be learned; give it one")
    for a, b in combinations([t for t in objective.losses if t.terminal], 2):
        if shared := sorted(_streams(a) & _streams(b)):
            raise PlanError(
                f"two terminals, {title(a)} and {title(b)}, both teach the rows of {shared}: keep one, "
                f"or give them different streams"
            )


def _check_names(objective: Objective) -> None:
    for a, b in combinations(objective.losses, 2):
        if a.name == b.name:
            raise PlanError(f"two terms are named {a.name!r} ({title(a)} and {title(b)}); tell them apart with label=...")


def _check_order(objective: Objective) -> None:
    seen: list[tuple[str, str]] = []
    for i, term in enumerate(objective.credit):
        term.check(objective.credit[:i])
        kinds, name = [k for k, _ in seen], type(term).__name__
        if term.kind == "scale" and "baseline" not in kinds and "whiten" not in kinds:
            raise PlanError(f"{name} divides by a spread before anything was centred: put Center(...) before {name}")
        if term.kind == "baseline" and ("scale" in kinds or "whiten" in kinds):
            raise PlanError(f"{name} comes after {dict(seen).get('scale', 'Whiten')}: centre first, then scale")
        if term.kind == "baseline" and "baseline" in kinds:
            raise PlanError(
                f"two baselines, {dict(seen)['baseline']} and {name}: the second changes nothing or undoes the first; keep one"
            )
        if "whiten tokens" in kinds and term.kind in ("scale", "whiten"):
            raise PlanError(f"{name} comes after Whiten('token'), whose values per token it would not change: put it first")
        if term.kind == "shape" and set(kinds) & {"baseline", "scale", "whiten"}:
            raise PlanError(f"{name} shapes the reward after {seen[-1][1]} has used it: put {name} first")
        seen.append((term.kind, name))
        if isinstance(term, Whiten) and term.unit == "token":
            seen.append(("whiten tokens", name))


def _check_policy(objective: Objective) -> None:
    for term in map(unwrap, objective.losses):
        if not isinstance(term, PolicyGradient):
            continue
        if term.ratio.level == "none" and term.trust is not None:
            raise PlanError(
                f"{type(term.trust).__name__} bounds a ratio, but Ratio('none') has none: set trust=None or choose a ratio level"
            )


def _check_filters(objective: Objective) -> None:
    kinds = {type(t) for t in objective.credit}
    grouped = any(isinstance(t, Center) and t.scope is Scope.GROUP for t in objective.credit)
    only_policy = all(isinstance(unwrap(t), PolicyGradient) for t in objective.losses)
    drawn = all((t.aggregate or objective.aggregate).denominator == "drawn" for t in objective.losses)
    shaped = any(t.kind in ("shape", "scale", "whiten", "transform") and t.scope is not Scope.GROUP for t in objective.credit)
    if DropZeroVariance in kinds and grouped and only_policy and drawn and not shaped and not objective.scalarise.combines:
        raise PlanError(
            "DropZeroVariance with denominator='drawn' changes nothing: under a group baseline those groups have no "
            "advantage anyway; use denominator='kept' or drop the filter"
        )


def _check_credit_use(objective: Objective) -> None:
    weighed = [t for t in objective.credit if t.weighs]
    whole = [t for t in objective.losses if t.grouped]
    if weighed and whole:
        raise PlanError(
            f"{type(weighed[0]).__name__} gives rollouts other weights than 0 and 1, which {title(whole[0])}, a loss on "
            "the scores of whole groups, cannot hold: drop one of them"
        )
    if objective.credit and not objective.uses_reward:
        raise PlanError(
            f"{type(objective.credit[0]).__name__} computes advantages, but no term of "
            f"{[t.name for t in objective.losses]} reads them: "
            "add a PolicyGradient or drop the credit chain"
        )

"""The laws of the algebra over every named method and over random compositions."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from objective_batches import plain, run, slopes, tiny

from assay.core.columns import TokenColumn
from assay.core.errors import PlanError
from assay.core.plan import Scope
from assay.objective import (
    AdaptiveKl,
    Aggregation,
    BalancedBce,
    Center,
    ColumnTarget,
    Constant,
    Correct,
    CreditTerm,
    DivergenceMask,
    DropTruncated,
    DropZeroVariance,
    Entropy,
    Gate,
    GroupSoftmax,
    IcePop,
    Interpolated,
    Kl,
    KlInReward,
    LossTerm,
    Marked,
    MinClip,
    Mixture,
    Nll,
    Objective,
    OutcomeTarget,
    Overlong,
    Pairwise,
    PassRate,
    PolicyGradient,
    Prompt,
    Ratio,
    Scale,
    ScoreLoss,
    SeqMean,
    SeqSum,
    SoftGate,
    SortedGaps,
    Sum,
    TdLoss,
    Token,
    Truncate,
    TrustRegion,
    TurnMean,
    View,
    WeightClip,
    Whiten,
)
from assay.objective.methods import methods
from assay.testing import ContractError
from assay.testing.objective import check_objective, check_term, evaluate, over_ranks, random_batch, random_live

NAMED = {name: m.objective() for name, m in methods().items()}

aggregations = st.one_of(
    *(st.builds(kind, denominator=st.sampled_from(["kept", "drawn"])) for kind in (Token, SeqMean, SeqSum, Prompt)),
    st.builds(Constant, length=st.integers(1, 64), denominator=st.sampled_from(["kept", "drawn"])),
)
centers = st.sampled_from(
    [Center(), Center("leave_one_out"), Center("batch"), Center("constant", value=0.3), Center("ema", decay=0.8)]
)
scales = st.builds(
    Scale, st.sampled_from(["group", "batch"]), ddof=st.integers(0, 1), of=st.sampled_from(["reward", "advantage"])
)
filters = st.sampled_from([DropZeroVariance(), DropTruncated()])
shapes = st.sampled_from([Overlong(limit=6, cache=3), KlInReward(coef=0.1)])
chains = st.builds(
    lambda *parts: tuple(term for part in parts for term in part),
    st.lists(shapes, max_size=1),
    st.lists(filters, max_size=1),
    st.lists(centers, max_size=1),
    st.lists(st.one_of(scales, st.builds(Whiten, st.sampled_from(["token", "rollout"]))), max_size=1),
)
bounds = st.tuples(st.floats(0, 1), st.floats(1, 3))
trusts = st.one_of(
    st.builds(MinClip, low=st.floats(0, 1), high=st.floats(0, 1), dual=st.floats(1, 5)),
    st.builds(WeightClip, positive=bounds, negative=bounds),
    st.builds(Gate, positive=bounds, negative=bounds),
)
levels = st.sampled_from(["token", "sequence_mean", "sequence_product"])
corrections = st.one_of(
    st.builds(Truncate, level=levels, cap=st.floats(0.5, 4), normalise=st.booleans()),
    st.builds(IcePop, level=levels, low=st.floats(0, 1), high=st.floats(1, 4), unit=st.booleans()),
)
policies = st.one_of(
    st.builds(
        PolicyGradient,
        ratio=st.builds(Ratio, levels, anchor=st.sampled_from(["old", "engine"])),
        trust=st.none() | trusts,
        weights=st.lists(corrections, max_size=2).map(tuple),
        coef=st.floats(0.1, 2),
    ),
    st.just(plain()),
    st.builds(ScoreLoss, phi=st.sampled_from([BalancedBce(), GroupSoftmax()]), score=st.sampled_from(["sum", "mean"])),
)
extras = st.lists(
    st.sampled_from(
        [Kl("k3", coef=0.1), Kl("rk3", coef=0.2), AdaptiveKl("k2", label="tied"), Entropy(coef=0.01), Nll(coef=0.3), TdLoss()]
    ),
    max_size=2,
    unique_by=lambda term: term.name,
).map(tuple)
compositions = st.builds(Objective, credit=chains, policy=policies, aggregate=aggregations, terms=extras)


@pytest.mark.parametrize("name", NAMED)
def test_named_methods(name: str) -> None:
    assert len(check_objective(NAMED[name], range(1)).passed) == 9


@pytest.mark.prove
@pytest.mark.parametrize("name", NAMED)
def test_named_methods_on_more_batches(name: str) -> None:
    check_objective(NAMED[name], range(1, 12))


@pytest.mark.slow
@settings(max_examples=30)
@given(compositions, st.integers(0, 10**6))
def test_random_compositions(objective: Objective, seed: int) -> None:
    try:
        objective.plan()
    except PlanError:
        objective = replace(objective, credit=(), policy=plain())
    check_objective(objective, [seed])


# ---- laws about what is computed --------------------------------------------------------------------------------------

rewards = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=8, max_size=8)
TWO = [0] * 4 + [1] * 4
LENGTHS = [1, 3, 2, 2, 4, 1, 1, 2]
COLUMNS = {"logp_old": -1.0, "logp_engine": -1.0, "logp_ref": -1.0}


def graded(values: list[float]) -> Any:
    return tiny(values, TWO, LENGTHS, columns=COLUMNS)


@given(rewards, trusts, st.sampled_from(["old", "engine"]), st.sampled_from(["token", "sequence_mean"]))
def test_on_policy_every_surrogate_has_the_same_gradient(values: list[float], trust: Any, anchor: str, level: str) -> None:
    weights = (Truncate(cap=1.5), IcePop(unit=True)) if anchor == "old" else ()
    policy = PolicyGradient(ratio=Ratio(level, anchor=anchor), trust=trust, weights=weights)
    objective = Objective(credit=(Center(), Scale()), policy=policy, aggregate=Token())
    expected = slopes(replace(objective, policy=plain()), graded(values))
    np.testing.assert_allclose(slopes(objective, graded(values)), expected, atol=1e-12)


def test_on_policy_named_methods_agree() -> None:
    batch = graded([1, 0, 0, 0.5, 1, 0, 1, 1])
    same = ["dapo", "cispo", "dispo", "areal", "icepop"]
    token = [slopes(NAMED[name], batch) for name in same]
    for gradient in token[1:]:
        np.testing.assert_allclose(gradient, token[0], atol=1e-12)
    np.testing.assert_allclose(slopes(NAMED["gspo"], batch), slopes(NAMED["grpo"], batch), atol=1e-12)
    np.testing.assert_allclose(slopes(NAMED["tis"], batch), slopes(NAMED["grpo"], batch), atol=1e-12)


@given(compositions, st.integers(0, 1000))
def test_no_signal_no_policy_gradient(objective: Objective, seed: int) -> None:
    """Constant rewards in every group: nothing to learn under a group baseline."""
    policy = objective.policy if isinstance(objective.policy, PolicyGradient) else plain()
    credit = tuple(t for t in objective.credit if t.kind == "filter")
    quiet = replace(objective, credit=(*credit, Center(), Scale()), policy=policy, terms=())
    try:
        plan = quiet.plan()
    except PlanError:
        return
    batch = random_batch(seed, [*plan.columns, *(f.column for f in plan.forwards)])
    batch = batch.with_rollouts(**{"components/correct": np.array([0.1, 0.7, 0.3])[batch.rollout("group")]})
    outcome = evaluate(quiet.compile(), batch, random_live(batch, plan.live, seed))
    assert outcome.loss == 0
    assert not outcome.gradients["logp_new"].any()


def advantages(values: list[float], *credit: CreditTerm) -> np.ndarray:
    return Objective(credit=credit, policy=plain()).compile().credit(graded(values)).rollout("advantage")


@given(rewards, st.floats(-3, 3), st.floats(0.1, 5))
def test_shift_and_scale(values: list[float], shift: float, factor: float) -> None:
    shifted, scaled = [v + shift for v in values], [v * factor for v in values]
    for center in (Center(), Center("leave_one_out"), Center("batch")):
        np.testing.assert_allclose(advantages(shifted, center), advantages(values, center), atol=1e-9)
        np.testing.assert_allclose(advantages(scaled, center), factor * advantages(values, center), atol=1e-9)
    chain = (Center(), Scale(eps=0))
    np.testing.assert_allclose(advantages(scaled, *chain), advantages(values, *chain), atol=1e-9)


@given(rewards)
def test_leave_one_out_is_a_rescaled_group_mean(values: list[float]) -> None:
    np.testing.assert_allclose(advantages(values, Center("leave_one_out")), 4 / 3 * advantages(values, Center()), atol=1e-12)
    batch, budget = graded(values), Constant(length=64)
    dr = slopes(NAMED["dr_grpo"], batch)
    np.testing.assert_allclose(dr, 0.75 * slopes(replace(NAMED["rloo"], aggregate=budget), batch), atol=1e-12)


@given(st.integers(1, 3), st.floats(-3, 0))
def test_a_constant_divisor_weighs_by_length(length: int, logp: float) -> None:
    objective = Objective(terms=(Nll(),), aggregate=Constant(length=16))
    one, two = (run(objective, tiny([0], lengths=[n]), logp).loss for n in (length, 2 * length))
    assert two == pytest.approx(2 * one)


@given(st.integers(0, 1000), st.sampled_from([Token(), SeqMean(), Prompt(), Constant(length=9), SeqSum()]))
def test_appended_masked_tokens_change_nothing(seed: int, aggregate: Aggregation) -> None:
    batch = random_batch(seed, ["logp_old"])
    live = random_live(batch, ["logp_new"], seed)
    objective = replace(NAMED["dapo"], aggregate=aggregate)
    first = evaluate(objective.compile(), batch, live)
    keep = np.append(np.arange(int(batch.offsets[-1])), int(batch.offsets[-1]) - 1)  # one more token in the last row
    longer = {
        n: TokenColumn(n, np.where(np.arange(len(keep)) < len(keep) - 1, c.values[keep], 0)) for n, c in batch.tokens.items()
    }
    longer["mask"] = TokenColumn("mask", longer["mask"].values.astype(bool))
    padded = replace(batch, tokens=longer, offsets=batch.offsets + (np.arange(len(batch.offsets)) == len(batch)))
    second = evaluate(objective.compile(), padded, {"logp_new": np.append(live["logp_new"], 5.0)})
    assert first.loss == pytest.approx(second.loss)
    np.testing.assert_allclose(second.gradients["logp_new"], np.append(first.gradients["logp_new"], 0.0))


def test_bypass_makes_the_mismatch_one() -> None:
    """With ``logp_old := logp_engine`` a correction changes nothing; anchoring at the engine refuses one."""
    batch = graded([1, 0, 0, 1, 1, 0, 1, 1])
    np.testing.assert_array_equal(slopes(NAMED["tis"], batch, -0.7), slopes(replace(NAMED["grpo"], terms=()), batch, -0.7))


# ---- terms of one's own, and planted faults ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinge(LossTerm):
    """Lifts tokens whose log-probability lies under a floor: a user's term."""

    floor: float = -1.0

    def apply(self, view: View) -> Any:
        return (self.floor - view.live("logp_new")).clamp(min=0.0)


@pytest.mark.parametrize(
    "term",
    [
        Hinge(),
        Kl("k3"),
        Kl("k2"),
        Kl("rk3"),
        AdaptiveKl("k2"),
        Entropy(),
        Nll(),
        PolicyGradient(),
        ScoreLoss(),
        TdLoss(target=ColumnTarget(column="returns")),
        TdLoss(target=ColumnTarget(column="advantage")),
        TdLoss(target=OutcomeTarget(column="advantage"), clip=0.2),
        TdLoss(),
        Center(),
        Center("leave_one_out"),
        Center("batch"),
        Center("ema", decay=0.5),
        Scale(),
        Scale("batch"),
        Whiten(),
        Whiten("rollout"),
        DropZeroVariance(),
        DropTruncated(),
        Overlong(limit=6, cache=3),
        KlInReward(coef=0.1),
        Truncate(normalise=True),
        IcePop(level="sequence_mean"),
        Token(),
        SeqMean(denominator="drawn"),
        TurnMean(),
        SeqSum(),
        Prompt(),
        Constant(length=5),
    ],
    ids=repr,
)
def test_parts_pass_the_public_check(term: Any, seeds: range) -> None:
    report = check_term(term, seeds)
    assert report.subject == type(term).__name__
    assert ("gradient" in report.passed) == isinstance(term, LossTerm)


@pytest.mark.parametrize(
    ("part", "last"),
    [
        (Ratio(), "gradient"),
        (Ratio("sequence_mean"), "gradient"),
        (Mixture(), "gradient"),
        (Interpolated(), "gradient"),
        (MinClip(), "weight"),
        (WeightClip(), "weight"),
        (SoftGate(), "weight"),
        (DivergenceMask(), "weight"),
        (BalancedBce(), "gradient"),
        (Pairwise(), "gradient"),
        (SortedGaps(), "gradient"),
        (Correct(), "gradient"),
        (PassRate(low=0.5), "gradient"),
        (Marked("flag"), "gradient"),
    ],
    ids=repr,
)
def test_parts_of_terms_pass_the_public_check(part: Any, last: str) -> None:
    report = check_term(part, range(2))
    assert (report.subject, report.passed[-1]) == (type(part).__name__, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrue(TrustRegion):
    """Broken: its loss has another gradient than its weight says."""

    def weight(self, view: View, ratio: Any, advantage: Any) -> Any:
        return ratio

    def loss(self, view: View, ratio: Any, advantage: Any) -> Any:
        return -advantage * ratio.square() / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shut(TrustRegion):
    """Broken: lets nothing through."""

    def weight(self, view: View, ratio: Any, advantage: Any) -> Any:
        return ratio * 0


@dataclass(frozen=True, slots=True)
class LocalRatio(Ratio):
    """Broken: compares with the others of the micro-batch."""

    def of(self, view: View) -> Any:
        gap = view.log_ratio(self.anchor)
        return (gap - gap.mean()).exp()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMean(LossTerm):
    """Broken: divides by what happens to be in the micro-batch."""

    def apply(self, view: View) -> Any:
        return -view.live("logp_new") / len(view.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaky(LossTerm):
    """Broken: reads log-probabilities outside the mask."""

    def apply(self, view: View) -> Any:
        return view.tensors["logp_new"].nan_to_num().mean() * -view.live("logp_new")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle(LossTerm):
    """Broken: teaches nothing."""

    def apply(self, view: View) -> Any:
        return view.live("logp_new") * 0


@dataclass(frozen=True, slots=True)
class FaultsAreZeros(CreditTerm):
    """Broken: a faulty rollout pulls everybody's baseline."""

    def apply(self, credit: Any, stats: Any, state: Any) -> Any:
        return credit.with_advantage(credit.advantage - credit.batch.rollout("components/correct").mean())


@dataclass(frozen=True, slots=True)
class LocalBatch(CreditTerm):
    """Broken: takes a statistic of its own rank for the whole batch's."""

    def apply(self, credit: Any, stats: Any, state: Any) -> Any:
        return credit.with_advantage(credit.advantage - credit.advantage[credit.counted].mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Everyone(Hinge):
    """Broken: a statistic over rows of streams that are not its own."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ("logp_ref",)

    def prepare(self, batch: Any, share: Any, reducer: Any) -> Any:
        return {"weight": share * np.abs(batch.token("logp_ref"))[batch.token("mask")].mean()}


@dataclass(frozen=True, slots=True)
class Drifts(CreditTerm):
    """Broken: rollouts outside the statistics move its state."""

    def init(self) -> Any:
        return {"sum": 0.0}

    def local(self, credit: Any) -> Any:
        return {"sum": Sum(credit.reward.sum(keepdims=True))}

    def advance(self, state: Any, stats: Any) -> Any:
        return {"sum": float(stats["sum"].values[0])}

    def apply(self, credit: Any, stats: Any, state: Any) -> Any:
        return credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent(Hinge):
    """Broken: says that it has statistics, and has none."""

    @property
    def reduces(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRow(Aggregation):
    """Broken: a rollout in two rows weighs twice."""

    def share(self, s: Any) -> Any:
        return s.here / np.bincount(np.cumsum(s.owner != -1) * 0 + s.owner)[s.owner]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse(Idle):
    """Broken: acts on tokens that it says carry no weight."""

    def total(self, view: View) -> Any:
        return super(Sparse, self).total(view) - view.tensors["logp_new"][-1:].sum()


@pytest.mark.parametrize(
    ("term", "law"),
    [
        (LocalMean(), "partition law"),
        (Leaky(), "partition law|mask law"),
        (Idle(), "teaches nothing"),
        (FaultsAreZeros(), "fault law"),
        (LocalBatch(), "rank law"),
        (ByRow(), "row-split law"),
        (Everyone(), "stream law"),
        (Drifts(), "stream law.*the state is"),
        (Silent(), r"reduction law.*\['aggregate/kept/on_policy\+replay', 'silent'\], a run reduces \['aggregate"),
        (Sparse(), "partition law"),
        (Untrue(), "weight law, seed 0"),
        (Shut(), "teaches nothing"),
        (LocalRatio(), "partition law"),
    ],
    ids=repr,
)
def test_broken_parts_are_caught(term: Any, law: str) -> None:
    with pytest.raises(ContractError, match=law):
        check_term(term, range(4))


def test_ranks_that_reduce_unequally_are_caught() -> None:
    one = Sum(np.ones(1))
    with pytest.raises(ContractError, match="equally often"):
        over_ranks(lambda rank, reducer: reducer.reduce({"x": one}) if rank else {}, 2)
    with pytest.raises(ContractError, match="different names"):
        over_ranks(lambda rank, reducer: reducer.reduce({str(rank): one}), 2)
    both = over_ranks(lambda rank, reducer: float(reducer.reduce({"x": one})["x"].values[0]), 3)
    assert both == [3.0, 3.0, 3.0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(LocalMean):
    """`LocalMean`, sound because it declares what it must see whole."""

    unit: Scope = Scope.BATCH

    @property
    def scope(self) -> Scope:
        return self.unit

    def apply(self, view: View) -> Any:
        key = np.zeros(int(view.batch.offsets[-1]), np.int64)
        if self.unit is Scope.GROUP:
            key = np.repeat(view.batch.per_row("group"), view.batch.lengths)
        size = np.bincount(key[view.index])[key[view.index]]
        return -view.live("logp_new") / view.tensor(size)


@pytest.mark.parametrize("unit", [Scope.GROUP, Scope.BATCH])
def test_a_wide_scope_keeps_its_unit_together(unit: Scope) -> None:
    objective = Objective(terms=(Together(unit=unit),))
    assert objective.plan().split is unit
    if unit is Scope.GROUP:
        check_term(Together(unit=unit), range(4))
    with pytest.raises(ContractError, match="partition law" if unit is Scope.GROUP else "rank law"):
        check_term(Declared(unit=unit) if unit is Scope.GROUP else Together(unit=unit), range(4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Together):
    """Broken: needs whole groups and does not say so."""

    @property
    def scope(self) -> Scope:
        return Scope.TOKEN

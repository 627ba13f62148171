"""Methods that learn from experts, teachers, offline data and targets: published numbers, limits, and oracles by enumeration."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from law_batches import check_mixed
from objective_batches import plain, run, slopes, spread, tiny

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError
from assay.objective import Center, Nll, Objective, PolicyGradient, Ratio, SeqSum, Token, rloo
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.expert import AlignExpert, SmoothExpert
from assay.objective.credit.tilt import LogMean, Tilt
from assay.objective.loss.base import View
from assay.objective.loss.hybrid import Calibrated, Confidence, OutcomeMean, PrefixScore
from assay.objective.loss.select import Correct
from assay.objective.loss.weights import TokenWeight
from assay.objective.loss.wrap import Where
from assay.objective.methods.hybrid import (
    a_lol,
    calib_rl,
    echo,
    gdc,
    kdrl,
    kl_rl,
    oreal,
    r_gold,
    rest_grpo,
    rl_plus,
    visurf,
    weighted_bc,
)
from assay.objective.methods.trust import prime_rl
from assay.testing.laws import LAWS
from assay.testing.objective import check_objective, check_term, over_ranks

LOG = math.log
OFF = ["offline"] * 3


def credited(batch: Batch, *credit: CreditTerm, **parts: Any) -> Batch:
    """The batch after a credit chain."""
    return Objective(credit=credit, policy=plain(), aggregate=SeqSum(), **parts).compile().credit(batch)


# ---- KDRL ------------------------------------------------------------------------------------------------------------


def test_kdrl_adds_the_gap_to_the_teacher() -> None:
    """k2's gradient is ``d`` per token, over all tokens; without it, and with the teacher as student, it is GRPO without
    ratio.
    """
    batch = tiny([1, 0, 0, 0], lengths=[2, 1, 1, 1], columns={"logp_teacher": [-1.5, -0.5, -1.0, -1.2, -0.7]})
    without = slopes(kdrl(kl=0.0), batch)
    np.testing.assert_allclose(without * 5, [-1.5, -1.5, 0.5, 0.5, 0.5], atol=1e-5)
    gap = np.array([0.5, -0.5, 0.0, 0.2, -0.3])
    np.testing.assert_allclose(slopes(kdrl(), batch), without + 5e-3 * gap / 5)
    equal = tiny([1, 0, 0, 0], columns={"logp_teacher": -1.0})
    np.testing.assert_array_equal(slopes(kdrl(kl=0.5), equal), slopes(kdrl(kl=0.0), equal))
    assert kdrl(kl=0.0).plan().forwards == ()


def test_kdrl_without_rewards_is_on_policy_distillation() -> None:
    batch = tiny([0, 0], columns={"logp_teacher": [-2.0, -0.5]})
    np.testing.assert_allclose(slopes(kdrl(kl=1.0, step=0.0), batch) * 2, [1.0, -0.5])


def test_kdrl_teaches_what_the_mask_leaves() -> None:
    """Wrong rollouts, or groups without a success; the mean runs over what is taught."""
    columns = {"logp_teacher": -2.0}
    batch = tiny([1, 0, 0, 0], [0, 0, 1, 1], [1, 2, 1, 1], columns=columns)
    free = slopes(kdrl(kl=0.0), batch)
    wrong = slopes(kdrl(mask="incorrect"), batch) - free
    np.testing.assert_allclose(wrong, 5e-3 / 4 * np.array([0, 1, 1, 1, 1]))
    hard = slopes(kdrl(mask="unsolved"), batch) - free
    np.testing.assert_allclose(hard, 5e-3 / 2 * np.array([0, 0, 0, 1, 1]))
    with pytest.raises(ConfigError, match="did you mean 'incorrect'"):
        kdrl(mask="correct")


# ---- experts ---------------------------------------------------------------------------------------------------------


def test_an_unlikely_expert_token_weighs_by_mixture_and_focus() -> None:
    """RL-PLUS: p = .1 under p_old = .2 has the ratio .25 and the focus .9487, so A times .2372."""
    streams = ["on_policy"] * 2 + ["expert"]
    batch = tiny([1, 0, 1], streams=streams, columns={"logp_old": [-1.0, -1.0, LOG(0.2)]})
    found = run(rl_plus(length=4, own=2), batch, [-1.0, -1.0, LOG(0.1)], entropy=1.0)
    shares = found.gradients["logp_new"][batch.token("mask")]
    np.testing.assert_allclose(shares[2], -0.5 * 0.2372 / 4 / 3, rtol=3e-4)
    np.testing.assert_allclose(shares[:2], [-0.5 / 4 / 3, 0.5 / 4 / 3])
    np.testing.assert_allclose(found.gradients["entropy"][batch.token("mask")], [-1e-3 / 4 / 2] * 2 + [0.0])
    paper = run(rl_plus(length=4, own=2, uniform=1e-9, entropy=0.0), batch, [-1.0, -1.0, LOG(0.1)])
    np.testing.assert_allclose(paper.gradients["logp_new"][batch.token("mask")][2], -0.5 * 0.6667 * 0.9487 / 4 / 3, rtol=3e-4)
    with pytest.raises(ConfigError, match="at least one own rollout"):
        rl_plus(own=0)


@pytest.mark.parametrize(("right", "d", "loss"), [(True, 0.3, -0.15), (True, -0.3, 0.3), (False, 0.3, 0.3), (False, -0.3, -0.15)])
def test_calibration_of_a_token(right: bool, d: float, loss: float) -> None:
    """CalibRL's four cases, times 0.1 |A|."""
    reward = 1.0 if right else 0.0
    batch = tiny([reward], columns={"logp_expert": -1.0 - d, "expert_here": 1.0})
    credit = (Center("constant", value=0.5),)
    own = {"aggregate": Token(), "brings": ("logp_expert", "expert_here")}
    term = Objective(credit=credit, policy=plain(), terms=(Calibrated(),), **own)  # type: ignore[arg-type]
    found = run(term, batch, -1.0)
    assert found.metrics["loss/calibrated"] == pytest.approx(0.1 * 0.5 * loss)
    assert found.metrics["calibrated/ahead"] == float(loss < 0)


def test_without_advantage_or_expert_nothing_is_calibrated() -> None:
    own = {"aggregate": Token(), "brings": ("logp_expert", "expert_here")}
    objective = Objective(credit=(Center(),), policy=plain(), terms=(Calibrated(),), **own)  # type: ignore[arg-type]
    columns = {"logp_expert": -2.0, "expert_here": 1.0}
    assert "loss/calibrated" not in run(objective, tiny([1, 1], columns=columns)).metrics
    assert "loss/calibrated" not in run(objective, tiny([1, 0], columns={**columns, "expert_here": 0.0})).metrics
    assert check_term(Calibrated(slope=0.2), range(3)).passed[-1] == "gradient"
    with pytest.raises(ConfigError, match=r"slope=1.5 is a share"):
        Calibrated(slope=1.5)


def expert_batch() -> Batch:
    """Two prompts: two own rollouts of 1 and 3 tokens and an expert of 2; one own rollout without an expert."""
    return tiny(
        [1, 0, 1, 0],
        [0, 0, 0, 1],
        [1, 3, 2, 1],
        streams=["on_policy", "on_policy", "expert", "on_policy"],
        columns={"logp_old": [-1, -2, -3, -4, -0.5, -0.7, -6]},
    )


def test_the_expert_is_aligned_by_place() -> None:
    record = AlignExpert()
    batch = expert_batch()
    start = Objective(policy=plain()).scalarise.start(batch)
    made = record.apply(start, record.local(start), {})
    here, logp = (made.columns[n][batch.token("mask")] for n in ("expert_here", "logp_expert"))
    assert here.tolist() == [1, 1, 1, 0, 1, 1, 0]
    assert logp.tolist() == [-0.5, -0.5, -0.7, 0, -0.5, -0.7, 0]
    assert (record.needs, record.makes) == (("logp_old",), ("logp_expert", "expert_here"))
    assert AlignExpert(column="logp_engine").needs == ("logp_engine",)
    alone = tiny([1, 0], columns={"logp_old": -1.0})
    start = Objective(policy=plain()).scalarise.start(alone)
    none = record.apply(start, record.local(start), {})
    assert not none.columns["expert_here"].any()
    two = tiny([1, 1], streams=["expert", "expert"], columns={"logp_old": -1.0})
    start = Objective(policy=plain()).scalarise.start(two)
    with pytest.raises(DataError, match="two expert rollouts"):
        record.apply(start, record.local(start), {})


def test_the_expert_may_stand_on_another_rank() -> None:
    batch = expert_batch()
    record = AlignExpert()
    whole = Objective(policy=plain()).scalarise.start(batch)
    expected = record.apply(whole, record.local(whole), {}).columns["logp_expert"]
    parts = [batch.micro([0, 1, 3]), batch.micro([2])]

    def rank(i: int, reducer: Any) -> np.ndarray:
        start = Objective(policy=plain()).scalarise.start(parts[i])
        return record.apply(start, reducer.reduce(record.local(start)), {}).columns["logp_expert"]

    found = over_ranks(rank, 2)
    np.testing.assert_array_equal(np.concatenate([found[0][:6], found[1], found[0][6:]]), expected)


def test_an_expert_who_is_no_better_gets_no_advantage() -> None:
    """ViSurf's smoothing: the second prompt is solved without help."""
    streams = ["on_policy", "on_policy", "expert"] * 2
    batch = tiny([0, 0, 1, 1, 0, 1], [0] * 3 + [1] * 3, streams=streams, columns={"logp_old": -1.0})
    found = visurf().compile().credit(batch).rollout("advantage")
    np.testing.assert_allclose(found[:3], [-0.57735, -0.57735, 1.154701], atol=1e-5)
    np.testing.assert_allclose(found[3:], [1.0, -1.0, 0.0], atol=1e-5)
    rough = visurf(smooth=False).compile().credit(batch).rollout("advantage")
    np.testing.assert_allclose(rough[3:], [0.57735, -1.154701, 0.57735], atol=1e-5)
    assert (SmoothExpert().kind, SmoothExpert().streams, AlignExpert().streams) == ("shape", ("expert",), ("expert",))


def test_what_tools_answered_may_be_predicted() -> None:
    columns = {"logp_engine": -1.0}
    batch = tiny([1, 0, 0], [0, 0, 1], [1, 1, 2], streams=["on_policy", "on_policy", "expert"], columns=columns)
    found = slopes(echo(alpha=0.2), batch)
    np.testing.assert_allclose(found[2:], [-0.1, -0.1])
    np.testing.assert_allclose(found[:2], slopes(prime_rl(), tiny([1, 0], columns=columns)))


@pytest.mark.parametrize(
    "make",
    [lambda: rl_plus(8), visurf, echo, kdrl, lambda: kdrl(mask="unsolved"), lambda: kdrl(mask="incorrect", step=0.0)],
)
def test_hybrid_methods_keep_the_laws(make: Callable[[], Objective], monkeypatch: pytest.MonkeyPatch) -> None:
    check_mixed(monkeypatch, make(), ("on_policy", "on_policy", "expert", "offline"))


def test_calib_rl_keeps_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but one: the expert's rows do change what is learned, though no loss acts on them."""
    monkeypatch.setitem(LAWS, "streams", lambda *_: None)
    check_mixed(monkeypatch, calib_rl(), ("on_policy", "on_policy", "expert", "on_policy"))


def test_calib_rl_is_grpo_without_deviation_and_a_term() -> None:
    assert [type(t).__name__ for t in calib_rl().credit] == ["AlignExpert", "Center"]
    assert calib_rl(coef=0.3, slope=0.1).terms == (Calibrated(coef=0.3, slope=0.1),)


# ---- OREAL -----------------------------------------------------------------------------------------------------------


def scores(beliefs: list[float]) -> list[float]:
    """Scores whose prefix means are the logits of the beliefs."""
    means = [LOG(p / (1 - p)) for p in beliefs]
    return [m * (i + 1) - (means[i - 1] * i if i else 0.0) for i, m in enumerate(means)]


def weighed(weight: TokenWeight, batch: Batch) -> np.ndarray:
    return weight.weigh(batch, {})[batch.token("mask")]


def test_weights_from_a_token_reward_model() -> None:
    """OREAL: beliefs .3, .6, .9 weigh 0, .2, .8 in a correct rollout and .4, 0, 0 in a wrong one."""
    batch = tiny([1, 0], lengths=[3, 1], columns={"token_score_old": [*scores([0.3, 0.6, 0.9]), 800.0]})
    np.testing.assert_allclose(weighed(PrefixScore(), batch), [0, 0.2, 0.8, 1.0], atol=1e-12)
    np.testing.assert_allclose(weighed(PrefixScore(wrong=True), batch), [0.4, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(weighed(PrefixScore(threshold=0.0), batch), [0.3, 0.6, 0.9, 1.0], atol=1e-12)
    assert check_term(PrefixScore(column="token_score_old"), range(3)).passed
    assert PrefixScore().scope.value == "sequence"
    with pytest.raises(ConfigError, match=r"threshold=1.0 is a belief"):
        PrefixScore(threshold=1.0)


def test_oreal_learns_the_two_classes_apart() -> None:
    """A leave-one-out advantage; each class is a mean over its own tokens; a wrong one with k of K correct has -k / (K - 1)."""
    batch = tiny([1, 0, 0, 1], lengths=[2, 3, 1, 2])
    found = slopes(oreal(kl=0.0, balance=False), batch)
    np.testing.assert_allclose(found, [-2 / 3 / 4] * 2 + [0.5 * 2 / 3 / 4] * 4 + [-2 / 3 / 4] * 2)
    plain_kl = oreal(balance=False)
    assert [f.column for f in plain_kl.plan().forwards] == ["logp_ref"]
    alone = tiny([1, 1, 1], lengths=[2, 1, 1])
    assert not slopes(oreal(kl=0.0, balance=False), alone).any()


def test_oreal_with_its_reward_model() -> None:
    objective = oreal(kl=0.0, scores="token_score", balance=False)
    beliefs = scores([0.3, 0.6, 0.9])
    batch = tiny([1, 0], lengths=[3, 3], columns={"token_score_old": [*beliefs, *beliefs]})
    assert "token_score_old" in [f.column for f in objective.plan().forwards]
    found = run(objective, batch, -1.0, token_score=0.0).gradients
    np.testing.assert_allclose(found["logp_new"][batch.token("mask")], np.array([0, -0.2, -0.8, 0.5 * 0.4, 0, 0]) / 3, atol=1e-12)
    np.testing.assert_allclose(found["token_score"][batch.token("mask")], [-0.5 / 6] * 3 + [0.5 / 6] * 3)


def test_a_head_learns_the_outcome_by_its_mean() -> None:
    """Against autograd of the published loss; in any cut into micro-batches that keeps rollouts whole."""
    values = np.array([0.5, -1.0, 2.0, 0.3, -0.7])
    live = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    means = torch.stack([live[:2].mean(), live[2:].mean()])
    loss = bce(means, torch.tensor([1.0, 0.0], dtype=torch.float64))
    (slope,) = torch.autograd.grad(loss, live)
    batch = tiny([1, 0], lengths=[2, 3])
    found = run(Objective(terms=(OutcomeMean(head="score"),)), batch, -1.0, score=values)
    assert found.loss == pytest.approx(float(loss.detach()))
    np.testing.assert_allclose(found.gradients["score"][batch.token("mask")], slope.numpy())
    assert not found.gradients["logp_new"].any()
    assert found.metrics["outcome_mean/right"] == 0.0
    assert check_term(OutcomeMean(), range(4)).passed[-1] == "gradient"
    with pytest.raises(ConfigError, match="SeqMean"):
        OutcomeMean(aggregate=Token())
    wide = {"logp_new": torch.zeros(7), "score": torch.zeros(7, 2)}
    ready = batch.with_tokens(TokenColumn("outcome_mean/label", spread(batch, 1.0)))
    with pytest.raises(DataError, match="ValueHead"):
        OutcomeMean(head="score").apply(View(ready, wide, np.flatnonzero(batch.token("mask")), "outcome_mean"))


@pytest.mark.parametrize("settings", [{}, {"balance": False}, {"kl": 0.0, "negative": 0.1}, {"scores": "token_score"}])
def test_oreal_keeps_the_laws(settings: dict[str, Any], seeds: range) -> None:
    assert len(check_objective(oreal(**settings), seeds).passed) == 9


# ---- offline ---------------------------------------------------------------------------------------------------------


def test_a_lol_weighs_by_the_clipped_ratio_of_whole_answers() -> None:
    """Log-ratios of .9 and -5 weigh 1.9 and .1; an answer below the reference's value has no part, in D neither."""
    columns = {"logp_ref": [-1.4, -1.5, 3.0, -1.0]}
    batch = tiny([1.0, 0.9, 0.2], lengths=[2, 1, 1], streams=OFF, columns=columns, value_ref=[0.5, 0.4, 0.6])
    found = slopes(a_lol(), batch, [-1.0, -1.0, -2.0, -1.0])
    np.testing.assert_allclose(found, np.array([-1.9 * 0.5, -1.9 * 0.5, -0.1 * 0.5, 0.0]) / 2)
    token = slopes(a_lol("token"), batch, [-1.0, -1.0, -2.0, -1.0])
    np.testing.assert_allclose(token, np.array([-math.exp(0.4) * 0.5, -math.exp(0.5) * 0.5, -0.1 * 0.5, 0.0]) / 2)
    free = slopes(a_lol("reference_free"), batch, -1.0)
    np.testing.assert_allclose(free, np.array([-0.5, -0.5, -0.5, 0.0]) / 2)
    equal = tiny([1.0, 0.9, 0.2], lengths=[2, 1, 1], streams=OFF, columns={"logp_ref": -1.0}, value_ref=[0.5, 0.4, 0.6])
    np.testing.assert_allclose(slopes(a_lol(), equal, -1.0), free)  # at the reference it is advantage-weighted cloning
    penalty = slopes(a_lol("kl", beta=0.2), equal, -1.0)
    np.testing.assert_allclose(penalty, free + np.array([0.2, 0.2, 0.2, 0.0]) / 2)
    rewards = slopes(a_lol(advantage=False), equal, -1.0)
    np.testing.assert_allclose(rewards, -np.array([1.0, 1.0, 0.9, 0.2]) / 3)
    with pytest.raises(ConfigError, match="variant of A-LoL"):
        a_lol("seq")
    assert a_lol(eps=2.0).policy.trust.positive == (0.0, 3.0)  # type: ignore[union-attr]


def test_cloning_by_reward_and_gold() -> None:
    batch = tiny([1.0, 0.5, -1.0], lengths=[2, 1, 1], streams=OFF)
    np.testing.assert_allclose(slopes(weighted_bc(), batch, -1.0), -np.array([1, 1, 0.5, 0]) / 3)
    logp = np.log([0.5, 0.02, 0.3, 0.9])
    np.testing.assert_allclose(slopes(r_gold(), batch, logp), -np.array([0.5, 0.1, 0.15, 0]) / 3)
    np.testing.assert_allclose(weighed(Confidence(), tiny([0]).with_tokens(TokenColumn("logp_now", np.ones(2)))), [1.0])
    assert check_term(Confidence(0.3), range(3)).passed
    with pytest.raises(ConfigError, match=r"floor=1.0 is a least probability"):
        Confidence(1.0)


@pytest.mark.parametrize(
    "make",
    [a_lol, lambda: a_lol("token"), lambda: a_lol("kl"), lambda: a_lol(advantage=False), weighted_bc, r_gold],
)
def test_offline_methods_keep_the_laws(make: Callable[[], Objective], monkeypatch: pytest.MonkeyPatch) -> None:
    check_mixed(monkeypatch, make(), ("offline", "on_policy", "offline"), {"value_ref": [0.4, 0.2, 0.9, -0.1]})


# ---- targets ---------------------------------------------------------------------------------------------------------

BASE, REWARD, BETA = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 0.0]), 0.5
TARGET = BASE * np.exp(REWARD / BETA) / (BASE * np.exp(REWARD / BETA)).sum()


def policy_slope(objective: Objective, logits: np.ndarray, drawn: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Expected gradient at the logits of a policy over three answers of one token, whose shares ``drawn`` stand in the batch."""
    counts = np.round(drawn * 1000).astype(int)
    answer = np.repeat(np.arange(3), counts)
    z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    logp = torch.log_softmax(z, 0)
    batch = tiny(REWARD[answer], columns={n: v[answer] for n, v in columns.items()})
    found = slopes(objective, batch, logp.detach().numpy()[answer])
    (slope,) = torch.autograd.grad((torch.tensor(np.bincount(answer, found, 3)) * logp).sum(), z)
    return slope.numpy()


def test_the_optimum_under_a_kl_penalty() -> None:
    """pi0 = [.5, .3, .2], R = [0, 1, 0], beta .5: p* = [.1714, .7600, .0686] and J* = beta log Z = .5352."""
    np.testing.assert_allclose(TARGET, [0.1714, 0.7600, 0.0686], atol=5e-5)
    z = (BASE * np.exp(REWARD / BETA)).sum()
    assert BETA * LOG(z) == pytest.approx(0.5352, abs=5e-5)
    assert (TARGET * REWARD).sum() - BETA * (TARGET * np.log(TARGET / BASE)).sum() == pytest.approx(BETA * LOG(z))


def test_kl_rl_descends_the_reverse_divergence_to_it() -> None:
    logits = np.log([0.2, 0.5, 0.3])
    pi = np.exp(logits)
    columns = {"logp_old": np.log(pi), "logp_ref": np.log(BASE)}
    for baseline in ("none", "group"):
        found = policy_slope(kl_rl(BETA, baseline), logits, pi, columns)
        z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
        live = torch.softmax(z, 0)
        (slope,) = torch.autograd.grad(BETA * (live * (live.log() - torch.tensor(np.log(TARGET)))).sum(), z)
        np.testing.assert_allclose(found, slope.numpy(), atol=1e-6)
    exact = {"logp_old": np.log(TARGET), "logp_ref": np.log(BASE)}
    batch = tiny(REWARD, columns=exact)
    worth = credited(batch, kl_rl(BETA, "none").credit[0]).rollout("reward")
    np.testing.assert_allclose(worth, worth[0])  # at the optimum all answers are worth the same
    assert kl_rl(0.03) == rloo(kl=0.03)


def test_gdc_descends_the_forward_divergence_to_it() -> None:
    """From any policy, on samples of any other: the weights are P / (Z q), with mean 1."""
    logits, drawn = np.log([0.2, 0.5, 0.3]), np.array([0.4, 0.25, 0.35])
    columns = {"logp_engine": np.log(drawn), "logp_ref": np.log(BASE)}
    z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(-(torch.tensor(TARGET) * torch.log_softmax(z, 0)).sum(), z)
    for settings in ({}, {"over": "group"}):
        np.testing.assert_allclose(policy_slope(gdc(BETA, **settings), logits, drawn, columns), slope.numpy(), atol=1e-9)
    at = policy_slope(gdc(BETA), np.log(TARGET), drawn, columns)
    np.testing.assert_allclose(at, 0.0, atol=1e-9)
    own = {"logp_old": np.exp(logits) * 0 + logits, "logp_ref": np.log(BASE)}
    both = [policy_slope(gdc(BETA, behaviour="old", baseline=b), logits, np.exp(logits), own) for b in (False, True)]
    np.testing.assert_allclose(both[1], both[0], atol=1e-9)
    success = policy_slope(gdc(None), logits, drawn, columns)
    (solved,) = torch.autograd.grad(-torch.log_softmax(z, 0)[1], z)
    np.testing.assert_allclose(success, solved.numpy(), atol=1e-9)


def weights_of(term: Tilt, *batches: Batch) -> list[np.ndarray]:
    program = Objective(credit=(term,), policy=plain(), aggregate=SeqSum()).compile()
    out: list[np.ndarray] = []
    for batch in batches:
        out.append(program.credit(batch).rollout("reward"))
        again = Objective(credit=(term,), policy=plain(), aggregate=SeqSum()).compile()
        again.load_state_dict(json.loads(json.dumps(program.state_dict())))
        program = again
    return out


def test_z_is_a_mean_over_all_batches() -> None:
    """Two tokens per answer add up; a batch of nothing but zeros has no weight, and counts."""
    columns = {"logp_engine": -1.0, "logp_ref": [-1.0, -1.0, -0.5, -1.0]}
    batch = tiny([0.0, 1.0], lengths=[2, 2], columns=columns)
    raw = np.exp([0.0, 0.5 + 1.0])
    first, second = weights_of(Tilt(), batch, batch.with_rollouts(**{"components/correct": np.zeros(2)}))
    np.testing.assert_allclose(first, raw / raw.mean())
    later = np.exp([0.0, 0.5])
    np.testing.assert_allclose(second, later / np.concatenate([raw, later]).mean())
    none, some = weights_of(Tilt(beta=None), batch.with_rollouts(**{"components/correct": np.zeros(2)}), batch)
    np.testing.assert_allclose(none, 0.0)
    np.testing.assert_allclose(some, [0.0, 4.0])
    np.testing.assert_allclose(weights_of(Tilt(cap=1.2), batch)[0], np.minimum(raw / raw.mean(), 1.2))
    two = tiny([0.0, 1.0, 0.0, 0.0], [0, 0, 1, 1], columns={"logp_engine": -1.0, "logp_ref": -1.0})
    np.testing.assert_allclose(weights_of(Tilt(over="group", beta=None), two)[0], [0, 2, 0, 0])
    assert Tilt(anchor="old", behaviour="old").needs == ("logp_old",)
    merged = LogMean.of(np.log([1.0]), np.array([0]), 1).merge(LogMean.of(np.log([3.0, 5.0]), np.array([0, 1]), 2))
    np.testing.assert_allclose(np.exp(merged.mean), [2.0, 5.0])


@pytest.mark.parametrize("term", [Tilt(), Tilt(over="group"), Tilt(beta=None), Tilt(beta=None, over="group"), Tilt(cap=1.5)])
def test_tilts_keep_the_laws(term: Tilt, seeds: range) -> None:
    assert check_term(term, seeds).passed


@pytest.mark.parametrize("objective", [kl_rl(), kl_rl(baseline="none"), gdc(), gdc(over="group", baseline=True), rest_grpo()])
def test_methods_keep_the_laws(objective: Objective, seeds: range) -> None:
    assert len(check_objective(objective, seeds).passed) == 9


def test_rest_grpo_leaves_out_prompts_without_spread() -> None:
    """Kept from a standard deviation of 0.05 on."""
    columns = {"logp_old": -1.0, "logp_ref": -1.0}
    batch = tiny([0.1, 0.2, 0.5, 0.5901], [0, 0, 1, 1], columns=columns)
    assert (slopes(rest_grpo(kl=0.0), batch) != 0).tolist() == [True, True, False, False]
    with pytest.raises(ConfigError, match="keep it positive"):
        rest_grpo(spread=0.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Tilt(beta=0.0), "positive temperature"),
        (lambda: Tilt(over="batch"), "scope of Z"),
        (lambda: Tilt(cap=0.0), "leaves nothing"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_expert_iteration_is_reinforce_up_to_its_denominator() -> None:
    batch = tiny([1, 0, 1, 0], lengths=[2, 1, 1, 3])
    imitate = Objective(terms=(Where(Nll(aggregate=Token()), (Correct(),), per="selected"),))
    reinforce = Objective(policy=PolicyGradient(ratio=Ratio("none"), trust=None), aggregate=Token())
    np.testing.assert_allclose(slopes(imitate, batch) * 3, slopes(reinforce, batch) * 7)

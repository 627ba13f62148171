"""`evaluate` from logits: float64 autograd of formulas written out here, every named method, and every input that is wrong."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from padded_inputs import random_inputs

from assay.core.errors import DataError
from assay.core.plan import Forward, Plan
from assay.core.seeds import generator
from assay.objective import (
    Distill,
    Entropy,
    FullKl,
    Kl,
    Nll,
    Objective,
    PolicyGradient,
    SparseDivergence,
    StatLoss,
    SupportLogp,
    Token,
    TopKModel,
    TopP,
    evaluate,
    torch_loss,
)
from assay.objective.logits import Logits
from assay.objective.loss.vocab_columns import live_columns
from assay.objective.methods import methods
from assay.objective.padded_batch import required_inputs

NAMED = {name: m.objective() for name, m in methods().items()}

SIZE = 5
MASK = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0], [1, 1, 1]])
IDS = np.array([[0, 3, 1], [4, 9, 2], [2, 2, -7], [1, 0, 4]])
"""Outside the mask stands what is no token."""
ADVANTAGES = [1.0, -0.5, 0.7, -1.0]
USED = torch.tensor(MASK, dtype=torch.float64)
A = torch.tensor(ADVANTAGES, dtype=torch.float64)[:, None]

Tensor = torch.Tensor


def drawn(model: str, shape: tuple[int, ...] = (*MASK.shape, SIZE), mask: Any = MASK) -> np.ndarray:
    """Logits of a model, NaN outside the mask."""
    return np.where(mask[..., None] > 0, generator("tests/logits", 0, model).normal(size=shape) * 1.5, np.nan)


def given(*models: str, **more: Any) -> dict[str, Any]:
    """The current policy's logits and those of some models."""
    logits = {"logits": drawn("policy")} | {f"logits_{m}": drawn(m) for m in models}
    return {"mask": MASK, "ids": IDS, **logits, **more}


def logp(logits: Any) -> Tensor:
    return torch.log_softmax(torch.as_tensor(np.nan_to_num(logits)) if isinstance(logits, np.ndarray) else logits, -1)


def of_drawn(distribution: Tensor) -> Tensor:
    """``[B, T]`` of ``[B, T, V]``; of any token outside the mask."""
    return distribution.gather(2, torch.tensor(IDS * MASK)[..., None])[..., 0]


def tokens(values: Tensor) -> Tensor:
    return (values * USED).sum() / USED.sum()


def rows(values: Tensor) -> Tensor:
    return ((values * USED).sum(1) / USED.sum(1)).mean()


def clipped(x: Tensor, old: Tensor, low: float, high: float) -> Tensor:
    ratio = (x - old).exp()
    return torch.maximum(-A * ratio, -A * ratio.clamp(1 - low, 1 + high))


def formula(method: str | Objective, inputs: Mapping[str, Any], loss: Callable[[Tensor], Tensor], **settings: Any) -> None:
    """Loss and gradient against autograd of a formula of the current log-probabilities ``[B, T, V]``."""
    leaf = torch.tensor(np.nan_to_num(inputs["logits"]), requires_grad=True)
    expected = loss(logp(leaf))
    expected.backward()
    found = evaluate(method, inputs, **settings)
    assert found.loss == pytest.approx(expected.item(), abs=1e-12)
    assert found.gradient["logits"].any()
    np.testing.assert_allclose(found.gradient["logits"], leaf.grad, atol=1e-12)
    assert not found.gradient["logits"][MASK == 0].any()


# ---- formulas ---------------------------------------------------------------------------------------------------------


def test_exact_entropy() -> None:
    def entropy(p: Tensor) -> Tensor:
        return -(p.exp() * p).sum(-1)

    formula("entropy_only", given(), lambda p: -0.25 * rows(entropy(p)), coef=0.25)
    old = of_drawn(logp(drawn("old")))
    both = given("old", advantages=ADVANTAGES)
    formula("grpo_entropy", both, lambda p: rows(clipped(of_drawn(p), old, 0.2, 0.2) - 0.1 * entropy(p)), coef=0.1)


def test_uniform_logits_have_the_entropy_of_the_vocabulary() -> None:
    found = evaluate("entropy_only", {"mask": [[1]], "ids": [[0]], "logits": np.full((1, 1, SIZE), 7.0)}, coef=1.0)
    assert found.loss == pytest.approx(-math.log(SIZE), abs=1e-12)
    np.testing.assert_allclose(found.gradient["logits"], 0.0, atol=1e-12)


def test_full_divergence_from_the_reference() -> None:
    ref = logp(drawn("ref"))
    method = Objective(terms=(StatLoss(FullKl("ref"), coef=0.3),), aggregate=Token())
    formula(method, given("ref"), lambda p: 0.3 * tokens((p.exp() * (p - ref)).sum(-1)))
    other = Objective(terms=(StatLoss(FullKl("ref", under="model")),), aggregate=Token())
    formula(other, given("ref"), lambda p: tokens((ref.exp() * (ref - p)).sum(-1)))


def test_lp_reg() -> None:
    """Six tokens have A < 0, the three least likely ones are chosen, and regularised where they lie below the proxy."""
    old = logp(drawn("old"))
    proxy = torch.full_like(old, -math.inf)
    for place in np.ndindex(MASK.shape):
        p = old[place].exp()
        kept = p >= 0.2 * p.max()
        proxy[place] = torch.where(kept, (p / p[kept].sum()).log(), -math.inf)
    proxy = of_drawn(proxy)
    now = of_drawn(logp(drawn("policy")))
    least = sorted(float(now[at]) for at in np.ndindex(MASK.shape) if MASK[at] and ADVANTAGES[at[0]] < 0)[:3]
    chosen = (USED > 0) & (A < 0) & (now <= least[-1]) & (proxy > -math.inf) & (now < proxy)
    assert 0 < chosen.sum() < 3  # one of the three has no proxy, or lies above it

    def loss(p: Tensor) -> Tensor:
        x = of_drawn(p)
        lift = (proxy - x).exp() - 1 - (proxy - x)
        return tokens(clipped(x, of_drawn(old), 1.0, 9.0) + 0.7 * torch.where(chosen, lift, 0.0))

    formula("lp_reg", given("old", advantages=ADVANTAGES), loss, kappa=0.2, fraction=0.6, coef=0.7)


def test_nlpo() -> None:
    """Both policies keep the nucleus of the mask policy; a drawn token outside it teaches nothing."""
    nucleus = torch.zeros((*MASK.shape, SIZE), dtype=torch.bool)
    for place in np.ndindex(MASK.shape):
        p = logp(drawn("mask"))[place].exp()
        reached = 0.0
        for token in p.argsort(descending=True):
            if reached < 0.7:
                nucleus[(*place, int(token))] = True
            reached += float(p[token])
    inside = of_drawn(nucleus)
    assert 0 < (inside & (USED > 0)).sum() < USED.sum()

    def restricted(p: Tensor) -> Tensor:
        return of_drawn(p.masked_fill(~nucleus, -math.inf).log_softmax(-1))

    old = restricted(logp(drawn("old")))
    inputs = given("old", "mask", rewards=[1.0, 0.0, 0.5, 0.0], values=np.where(MASK, 0.3, np.nan))
    made = torch.tensor(evaluate("nlpo", inputs, kl=0.0, target=None, p=0.7, least=1).advantages)

    def loss(p: Tensor) -> Tensor:
        gap = torch.where(inside, restricted(p) - old, 0.0)
        ratio = gap.exp()
        return tokens(torch.where(inside, torch.maximum(-made * ratio, -made * ratio.clamp(0.8, 1.2)), 0.0))

    leaf = torch.tensor(np.nan_to_num(inputs["logits"]), requires_grad=True)
    loss(logp(leaf)).backward()
    found = evaluate("nlpo", inputs, kl=0.0, target=None, p=0.7, least=1)
    np.testing.assert_allclose(found.gradient["logits"], leaf.grad, atol=1e-12)
    assert found.metrics["loss/policy"] == pytest.approx(loss(logp(leaf)).item(), abs=1e-12)
    assert found.gradient["values"].any()  # heads stay inputs beside the logits


@pytest.mark.parametrize("support", ["policy", "model"])
def test_top_k_reverse_divergence(support: str) -> None:
    """Over the three most likely tokens of either model, and all others as one token more."""
    teacher = logp(drawn("teacher"))
    at = (logp(drawn("policy")) if support == "policy" else teacher).topk(3, -1).indices

    def loss(p: Tensor) -> Tensor:
        s, t = p.gather(2, at), teacher.gather(2, at)
        rest_s, rest_t = (1 - s.exp().sum(-1)).log(), (1 - t.exp().sum(-1)).log()
        return tokens((s.exp() * (s - t)).sum(-1) + rest_s.exp() * (rest_s - rest_t))

    stat = TopKModel("teacher", k=3, support=support, sparse=SparseDivergence(direction="reverse", rest="tail"))
    formula(Objective(terms=(Distill(stat),), aggregate=Token()), given("teacher"), loss)


def test_top_k_of_a_teacher_that_rows_bring() -> None:
    teacher, ids = (x.numpy() for x in logp(drawn("teacher")).topk(2, -1))
    inputs = given(teacher_ids=ids, teacher_logps=teacher)

    def loss(p: Tensor) -> Tensor:
        s, t = p.gather(2, torch.tensor(ids)), torch.tensor(teacher)
        return tokens((s.exp() * (s - t)).sum(-1).clamp(0, 10))

    formula("kd_topk", inputs, loss, direction="reverse")


def test_rapo_reads_what_the_batch_prepares() -> None:
    """The reference is flattened by the group's mean reward, which is known before the gradient pass only."""
    reward = np.array([1.0, 0.0, 0.5, 0.0])
    phi = torch.tensor([0.5, 0.5, 0.25, 0.25], dtype=torch.float64)[:, None, None]
    reference = (phi * logp(drawn("ref"))).log_softmax(-1)
    inputs = given("ref", "old", rewards=reward, group_id=[0, 0, 1, 1])
    found = evaluate("rapo", inputs, estimator="full", alpha=1.0, entropy=0.0)
    assert found.metrics["loss/rapo"] == pytest.approx(
        rows((reference.exp() * (reference - logp(drawn("policy")))).sum(-1)).item(), abs=1e-12
    )


def test_grpo_by_the_chain_rule() -> None:
    p = logp(drawn("policy"))
    old, ref = of_drawn(logp(drawn("old"))).numpy(), of_drawn(logp(drawn("ref"))).numpy()
    rest = {"rewards": [1.0, 0.0, 0.5, 0.0], "group_id": [0, 0, 1, 1]}
    plain = evaluate("grpo", {"mask": MASK, "logp_new": of_drawn(p).numpy(), "logp_old": old, "logp_ref": ref, **rest}, kl=0.1)
    slope = torch.tensor(plain.gradient["logp_new"])[..., None]
    chained = slope * (torch.nn.functional.one_hot(torch.tensor(IDS * MASK), SIZE) - p.exp())
    for inputs in (given("old", "ref", **rest), given("old", logp_ref=ref, **rest), given(logp_old=old, logp_ref=ref, **rest)):
        found = evaluate("grpo", inputs, kl=0.1)
        assert found.loss == pytest.approx(plain.loss, abs=1e-12)
        assert sorted(found.gradient) == ["logits"]
        np.testing.assert_allclose(found.gradient["logits"], chained, atol=1e-12)
        np.testing.assert_array_equal(found.advantages, plain.advantages)


def test_logits_of_other_models_beside_plain_columns() -> None:
    now = of_drawn(logp(drawn("policy"))).numpy()
    inputs = {"mask": MASK, "ids": IDS, "logp_new": now, "logits_old": drawn("old"), "advantages": ADVANTAGES}
    found = evaluate("dapo", inputs)
    plain = evaluate(
        "dapo",
        {
            "mask": MASK,
            "logp_new": now,
            "logp_old": of_drawn(logp(drawn("old"))).numpy(),
            "advantages": ADVANTAGES,
        },
    )
    assert found.loss == pytest.approx(plain.loss, abs=1e-12)
    np.testing.assert_allclose(found.gradient["logp_new"], plain.gradient["logp_new"], atol=1e-12)


def test_an_entropy_that_the_credit_chain_reads_too() -> None:
    plan = Plan(columns=("entropy",), live=("logp_new", "entropy"))
    assert Logits.of(["logits"], plan).forwards == (Forward("entropy", when="step"),)
    assert not Logits.of(["logits"], Plan(columns=("entropy",))).forwards


# ---- every named method -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in NAMED if n != "rapo"])
def test_every_named_method_from_logits(name: str) -> None:
    """From logits as from the columns that they stand for, by the chain rule."""
    objective, plan = NAMED[name], NAMED[name].plan()
    inputs, source = random_inputs(objective, 5), Logits.all(plan)
    used = inputs["mask"] & inputs["valid"][:, None]
    shape = (*used.shape, 7)
    ids = generator("tests/logits", 1).integers(0, 7, used.shape)
    logits = {n: drawn(n, shape, used) for n in required_inputs(objective).logits if n != "ids"}
    rest = {n: v for n, v in inputs.items() if n not in source.columns and n != "ids"}
    found = evaluate(objective, {**rest, "ids": ids, **logits})

    leaf = torch.tensor(np.nan_to_num(logits["logits"]), requires_grad=True)
    flat = {n: logp(v).reshape(-1, 7) for n, v in logits.items()}
    index = torch.tensor(ids).reshape(-1)
    others = {n.partition("_")[2]: p for n, p in flat.items() if n != "logits"}
    read = {
        n: torch.tensor(np.nan_to_num(v)).reshape(index.shape[0], -1) for n, v in rest.items() if np.shape(v)[:2] == used.shape
    }

    def column(column: str, stat: Any, p: Tensor) -> Tensor:
        if stat is not None:
            return stat.of(p, index, others, read).reshape(used.shape)
        full = -(p.exp() * p).sum(1) if column.startswith("entropy") else p[torch.arange(len(p)), index]
        return full.reshape(used.shape)

    stats = {s.name: s for s in plan.vocab}
    live = {n: column(n, stats.get(n), logp(leaf).reshape(-1, 7)) for n in source.live}
    fixed = {f.column: column(f.column, f.stat, flat[source.instead(f.column)[0]]) for f in source.forwards}
    columns = {n: np.where(used, v.detach().numpy(), np.nan) for n, v in {**live, **fixed}.items()}
    plain = evaluate(objective, {**rest, **({"ids": ids} if "ids" in inputs else {}), **columns})

    assert found.loss == pytest.approx(plain.loss, abs=1e-10)
    np.testing.assert_allclose(found.advantages, plain.advantages, atol=1e-10)
    sum(
        (torch.tensor(plain.gradient[n]) * v.where(torch.tensor(used), v.new_tensor(0.0))).sum() for n, v in live.items()
    ).backward()
    np.testing.assert_allclose(found.gradient["logits"], leaf.grad, atol=1e-10)
    assert found.gradient.keys() == {"logits", *plain.gradient} - set(live)
    for head in plain.gradient.keys() - live.keys():
        np.testing.assert_allclose(found.gradient[head], plain.gradient[head], atol=1e-10)


# ---- log-probabilities beside logits --------------------------------------------------------------------------------------


def test_logits_are_those_of_the_statistics_where_log_probabilities_are_given() -> None:
    """The interface of trainers that have both: no ids, a gradient by each."""
    now, ref = -0.1 - generator("tests/logits", 0, "given").random(MASK.shape), drawn("ref")
    terms = (Entropy(coef=0.3), StatLoss(FullKl("ref"), coef=0.2))
    objective = Objective(policy=PolicyGradient(trust=None), aggregate=Token(), terms=terms)
    inputs = {"mask": MASK, "logp_new": now, "logp_old": now - 0.2, "advantages": ADVANTAGES}
    found = evaluate(objective, {**inputs, "logits": drawn("policy"), "logits_ref": ref})

    leaf, x = torch.tensor(np.nan_to_num(drawn("policy")), requires_grad=True), torch.tensor(now, requires_grad=True)
    p, q = logp(leaf), logp(ref)
    h, kl = -(p.exp() * p).sum(-1), (p.exp() * (p - q)).sum(-1)
    loss = tokens(-A * (x - (x.detach() - 0.2)).exp()) - 0.3 * tokens(h) + 0.2 * tokens(kl)
    loss.backward()
    assert found.loss == pytest.approx(float(loss.detach()), abs=1e-12)
    assert set(found.gradient) == {"logits", "logp_new"}
    np.testing.assert_allclose(found.gradient["logits"], leaf.grad, atol=1e-12)
    np.testing.assert_allclose(found.gradient["logp_new"], x.grad, atol=1e-12)


def test_a_given_column_counts_before_the_logits_of_its_model() -> None:
    old = -1.0 - generator("tests/logits", 0, "given").random(MASK.shape)
    found = evaluate("lp_reg", given("old", logp_old=old, advantages=ADVANTAGES))
    plain = evaluate("lp_reg", given("old", advantages=ADVANTAGES))
    assert found.loss != plain.loss and found.gradient.keys() == plain.gradient.keys()


def test_logits_that_give_nothing_are_refused() -> None:
    rest = {"mask": MASK, "logp_new": -1.0 * MASK, "logp_old": -1.0 * MASK, "advantages": ADVANTAGES}
    with pytest.raises(DataError, match="'logits' is not used"):
        evaluate("cispo", {**rest, "logits": drawn("policy")})
    with pytest.raises(DataError, match="'ids' is not used"):
        evaluate("entropy_only", {"mask": MASK, "logp_new": -1.0 * MASK, "logits": drawn("policy"), "ids": IDS}, coef=1.0)


def test_a_statistic_of_the_drawn_token_asks_for_ids() -> None:
    full = Objective(policy=PolicyGradient(trust=None), aggregate=Token(), terms=(StatLoss(SupportLogp(support=TopP(0.9))),))
    rest = {"mask": MASK, "logp_new": -1.0 * MASK, "logp_old": -1.0 * MASK, "advantages": ADVANTAGES, "logits": drawn("policy")}
    with pytest.raises(DataError, match="needs the input 'ids', which is missing"):
        evaluate(full, rest)
    plan = Plan(live=("logp_new",))
    with pytest.raises(DataError, match="'ids', the tokens that were drawn, are missing"):
        live_columns(plan, {"policy": torch.zeros(1, 4)}, None)


# ---- what is wrong ----------------------------------------------------------------------------------------------------

WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "a model that nothing reads": ({"logits_ref": drawn("ref")}, "'logits_ref' is not used"),
    "no ids": ({"ids": None}, "needs the input 'ids', which is missing"),
    "no logits of the old policy": ({"logits_old": None}, r"'logp_old', which is missing \(or 'logits_old' and 'ids'"),
    "an id beyond the vocabulary": ({"ids": IDS * 2}, r"ids\[0, 1\] is 6: the logits have 5 tokens"),
    "an id below it": ({"ids": IDS - 1}, r"ids\[0, 0\] is -1"),
    "half an id": ({"ids": IDS + 0.5}, r"ids\[0, 0\] is 0.5"),
    "ids of another shape": ({"ids": IDS[..., None]}, r"ids has the shape \[4, 3, 1\]; give \[rollouts, tokens\]"),
    "two axes": ({"logits": -1.0 * MASK}, r"logits has the shape \[4, 3\]; give \[rollouts, tokens, vocabulary\]"),
    "an empty vocabulary": ({"logits": np.ones((4, 3, 0))}, "give .rollouts, tokens, vocabulary"),
    "two vocabularies": ({"logits_old": drawn("old")[..., :4]}, "vocabularies differ, {'logits': 5, 'logits_old': 4}"),
    "infinite logits": ({"logits": np.full((4, 3, SIZE), -np.inf)}, r"logits\[0, 0\] is .*must be finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    change, said = WRONG[case]
    inputs = {n: v for n, v in (given("old", advantages=ADVANTAGES) | change).items() if v is not None}
    with pytest.raises(DataError, match=said):
        evaluate("lp_reg", inputs)


def test_a_statistic_asks_for_the_model_it_compares_with() -> None:
    full = Objective(terms=(StatLoss(FullKl("ref")),), aggregate=Token())
    with pytest.raises(DataError, match="needs the input 'logits_ref', which is missing"):
        evaluate(full, given())
    with pytest.raises(DataError, match=r"needs the input 'kl_pi_ref', which is missing \(or 'logits' and 'ids'"):
        evaluate(full, {"mask": MASK, "logp_new": -1.0 * MASK})
    with pytest.raises(DataError, match="'logits_ref' is not used"):
        evaluate(full, {"mask": MASK, "logp_new": -1.0 * MASK, "kl_pi_ref": MASK, "logits_ref": drawn("ref")})
    with pytest.raises(DataError, match="'ids' is not used"):
        evaluate(full, {"mask": MASK, "logp_new": -1.0 * MASK, "kl_pi_ref": MASK, "ids": IDS})
    with pytest.raises(DataError, match="did you mean 'logits_ref'"):
        evaluate(full, {**given("ref"), "logits_rfe": drawn("ref")})


def test_a_column_that_only_looks_like_logits() -> None:
    """A user's own column keeps its name."""
    brought = Objective(terms=(Kl("k2", anchor="mine"), Nll(streams=("on_policy",))), brings=("logp_mine", "logits_mine"))
    assert Logits.of(["logits_mine"], brought.plan()) == Logits.of(["logits_mine"], Plan(columns=("logits_mine",))) == Logits()


def test_nothing_to_learn_from() -> None:
    for empty in ({"mask": 0 * MASK}, {"valid": np.zeros(4)}):
        found = evaluate(Objective(terms=(Entropy(coef=1.0), StatLoss(FullKl("ref")))), {**given("ref"), **empty})
        assert found.loss == 0
        assert found.gradient["logits"].shape == (*MASK.shape, SIZE) and not found.gradient["logits"].any()
    found = evaluate("dapo", {**given("old", advantages=ADVANTAGES), "mask": 0 * MASK})
    assert found.loss == 0 and not found.gradient["logits"].any()


def test_a_loss_on_a_graph_takes_columns() -> None:
    with pytest.raises(DataError, match="'logits' is not used"):
        torch_loss("entropy_only")({"mask": MASK, "logits": drawn("policy")})

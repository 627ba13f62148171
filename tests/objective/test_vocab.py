import itertools
import math

import numpy as np
import pytest
import torch

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.vocab import FullEntropy, VocabStat
from assay.objective.loss import vocab
from assay.objective.loss.vocab import (
    OUTSIDE,
    ChoiceLogp,
    Floor,
    MaxLogp,
    MeanLogp,
    MinP,
    PowerLogp,
    SquaredMass,
    SupportLogp,
    TopKEntropy,
    TopP,
    standard,
)
from assay.objective.loss.vocab_divergence import AlphaDivergence, FDivergence, FullKl, Jsd, PowerKl

P, Q = [0.5, 0.5], [0.25, 0.75]


def logs(*rows):
    return torch.tensor(rows, dtype=torch.float64).log()


def of(stat, rows, ids=None, model=None, **columns):
    """Values of a statistic at places with these probabilities, another model's at the same places being ``model``."""
    logp = rows if isinstance(rows, torch.Tensor) else logs(*rows)
    index = torch.zeros(len(logp), dtype=torch.int64) if ids is None else torch.tensor(ids)
    others = {name: model if isinstance(model, torch.Tensor) else logs(*model) for name in stat.models}
    given = {name: torch.tensor(values, dtype=torch.float64) for name, values in columns.items()}
    return stat.of(logp, index, others, given)


def random_logits(rows=5, size=7, seed=0):
    return torch.randn(rows, size, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 1.5


GENERATORS = {
    "kl": lambda u: u * math.log(u),
    "reverse_kl": lambda u: -math.log(u),
    "js": lambda u: u * math.log(u) - (u + 1) * math.log((u + 1) / 2),
    "hellinger": lambda u: (math.sqrt(u) - 1) ** 2,
    "total_variation": lambda u: abs(u - 1) / 2,
    "chi2": lambda u: (u - 1) ** 2,
}

STATS = [
    FullEntropy(),
    TopKEntropy(3),
    MeanLogp(),
    MaxLogp(),
    ChoiceLogp("ref"),
    SquaredMass(),
    SupportLogp(support=MinP(0.2)),
    SupportLogp(support=TopP(0.7), model="ref"),
    FullKl("ref"),
    FullKl("ref", under="model"),
    Jsd("ref", beta=0.3),
    AlphaDivergence("ref"),
    *(FDivergence("ref", generator=g) for g in GENERATORS),
    PowerKl("ref", power="phi"),
]


# ---- entropies --------------------------------------------------------------------------------------------------------


def test_the_entropy_of_a_uniform_distribution_is_log_k_and_has_no_slope():
    logits = torch.zeros(1, 6, dtype=torch.float64, requires_grad=True)
    entropy = of(FullEntropy(), logits.log_softmax(1))
    entropy.sum().backward()
    assert float(entropy.detach()) == pytest.approx(math.log(6), abs=1e-12)
    assert logits.grad.abs().max() < 1e-15


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_entropy_of_a_coin_has_the_slope_of_its_logit(p):
    logit = torch.tensor(math.log(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    logp = torch.stack([logit, torch.zeros_like(logit)])[None].log_softmax(1)
    of(FullEntropy(), logp).sum().backward()
    assert float(logit.grad) == pytest.approx(-p * (1 - p) * math.log(p / (1 - p)), abs=1e-12)


def test_a_truncated_entropy_is_a_lower_bound_that_rises_to_the_entropy():
    logp = random_logits().log_softmax(1)
    exact = of(FullEntropy(), logp)
    bounds = [of(TopKEntropy(k), logp) for k in range(1, 9)]
    for lower, higher in itertools.pairwise(bounds):
        assert torch.all(lower <= higher + 1e-12)
    assert torch.all(bounds[2] < exact)
    assert torch.allclose(bounds[6], exact, atol=1e-12)
    assert torch.equal(bounds[7], bounds[6])  # more tokens than the vocabulary has
    assert float(of(TopKEntropy(2), [[0.5, 0.3, 0.2]])) == pytest.approx(-0.5 * math.log(0.5) - 0.3 * math.log(0.3))


# ---- divergences ------------------------------------------------------------------------------------------------------


def test_divergences_of_two_coins():
    numbers = {
        FullKl("ref"): 0.5 * math.log(2) + 0.5 * math.log(2 / 3),
        FullKl("ref", under="model"): 0.130812,
        Jsd("ref"): 0.033822,
        FDivergence("ref"): 2 * 0.033822,
        AlphaDivergence("ref"): 0.140555,
        FDivergence("ref", generator="reverse_kl"): 0.130812,
        FDivergence("ref", generator="total_variation"): 0.25,
    }
    for stat, number in numbers.items():
        assert float(of(stat, [P], model=[Q])) == pytest.approx(number, abs=1e-6), stat


@pytest.mark.parametrize("generator", GENERATORS)
def test_an_f_divergence_is_the_other_models_mean_of_its_generator(generator):
    p, q = (random_logits(seed=s).log_softmax(1) for s in (0, 1))
    f = GENERATORS[generator]
    plain = [
        sum(b * f(a / b) for a, b in zip(x, y, strict=True)) for x, y in zip(p.exp().tolist(), q.exp().tolist(), strict=True)
    ]
    stat = FDivergence("teacher", generator=generator)
    assert of(stat, p, model=q).tolist() == pytest.approx(plain, abs=1e-12)
    assert of(stat, p, model=p).tolist() == pytest.approx([0.0] * 5, abs=1e-12)
    assert stat.name == f"f_{generator}_teacher"


@pytest.mark.parametrize("beta", [0.2, 0.5, 0.9])
def test_a_generalised_jsd_is_two_divergences_from_the_mixture(beta):
    p, q = (random_logits(seed=s).softmax(1).numpy() for s in (0, 1))
    mixed = beta * q + (1 - beta) * p
    plain = beta * (q * np.log(q / mixed)).sum(1) + (1 - beta) * (p * np.log(p / mixed)).sum(1)
    found = of(Jsd("teacher", beta=beta), torch.tensor(p).log(), model=torch.tensor(q).log())
    assert found.tolist() == pytest.approx(plain.tolist(), abs=1e-12)


def test_the_ends_of_a_generalised_jsd_are_the_two_divergences():
    p, q = (random_logits(seed=s).log_softmax(1) for s in (0, 1))
    toward, away = FullKl("ref", under="model"), FullKl("ref")
    assert torch.equal(of(Jsd("ref", beta=0.0), p, model=q), of(toward, p, model=q))
    assert torch.equal(of(Jsd("ref", beta=1.0), p, model=q), of(away, p, model=q))
    assert torch.allclose(of(Jsd("ref", beta=1e-6), p, model=q) / 1e-6, of(toward, p, model=q), atol=1e-4)
    assert torch.allclose(of(Jsd("ref", beta=1 - 1e-6), p, model=q) / 1e-6, of(away, p, model=q), atol=1e-4)


def test_an_alpha_divergence_lies_between_the_two_divergences():
    p, q = (random_logits(seed=s).log_softmax(1) for s in (0, 1))
    assert torch.allclose(of(AlphaDivergence("ref", alpha=1e-7), p, model=q), of(FullKl("ref"), p, model=q), atol=1e-5)
    toward = of(FullKl("ref", under="model"), p, model=q)
    assert torch.allclose(of(AlphaDivergence("ref", alpha=1 - 1e-7), p, model=q), toward, atol=1e-5)


def slope_of(loss):
    """d/da of a loss of the policy (a, 0) at a = 0, which is P; the loss gets log-probabilities of both tokens."""
    a = torch.zeros((), dtype=torch.float64, requires_grad=True)
    logp = torch.stack([a, torch.zeros_like(a)]).log_softmax(0)
    loss(logp).backward()
    return float(a.grad)


def test_sampled_estimates_have_the_slopes_of_whole_divergences():
    ref = logs(Q)[0]
    p = torch.tensor(P, dtype=torch.float64)

    def mean(estimate):
        return lambda logp: (p * estimate(logp - ref, (logp - logp.detach()).exp())).sum()

    away, toward = (slope_of(lambda x, s=s: s.of(x[None], None, {"ref": ref[None]}, {}).sum()) for s in STATS[8:10])
    assert away == pytest.approx(0.274653, abs=1e-6)
    assert toward == pytest.approx(0.25, abs=1e-12)
    assert slope_of(mean(lambda d, r: d)) == pytest.approx(0.0, abs=1e-12)
    assert slope_of(mean(lambda d, r: d**2 / 2)) == pytest.approx(away, abs=1e-12)
    assert slope_of(mean(lambda d, r: (-d).exp() - 1 + d)) == pytest.approx(toward, abs=1e-12)
    assert slope_of(mean(lambda d, r: r * ((-d).exp() - 1 + d))) == pytest.approx(away, abs=1e-12)


def test_values_of_sampled_estimates():
    for p, ref, numbers in ((0.5, 0.25, (0.6931, 0.2402, 0.1931)), (0.25, 0.5, (-0.6931, 0.2402, 0.3069))):
        d = math.log(p / ref)
        assert (d, d * d / 2, math.exp(-d) - 1 + d) == pytest.approx(numbers, abs=5e-5)
    d = np.log(np.array(P) / Q)
    assert float(np.dot(P, d)) == pytest.approx(0.14384, abs=5e-6)
    assert float(np.dot(P, np.exp(-d) - 1 + d)) == pytest.approx(0.14384, abs=5e-6)
    assert float(np.dot(P, d**2 / 2)) == pytest.approx(0.16121, abs=5e-6)


def test_the_estimate_of_rapo_needs_the_live_ratio_in_front():
    ref = logs(Q)[0]

    def estimate(logp):
        u = (ref - logp).exp()
        return u * (ref - logp) - u + 1

    p = torch.tensor(P, dtype=torch.float64)
    assert float((p * estimate(p.log())).sum()) == pytest.approx(0.130812, abs=1e-6)
    assert slope_of(lambda x: (p * (x - x.detach()).exp() * estimate(x)).sum()) == pytest.approx(0.25, abs=1e-12)
    assert slope_of(lambda x: (p * estimate(x)).sum()) == pytest.approx(0.238693, abs=1e-6)


# ---- parts of a distribution ------------------------------------------------------------------------------------------


def test_the_proxy_of_lp_reg():
    found = of(SupportLogp(support=MinP(0.02)), [[0.6, 0.39, 0.01]] * 3, ids=[0, 1, 2])
    assert found[:2].exp().tolist() == pytest.approx([0.606061, 0.393939], abs=1e-6)
    assert float(found[2]) == OUTSIDE
    logp = random_logits().log_softmax(1)
    ids = [0, 1, 2, 3, 4]
    assert torch.allclose(
        of(SupportLogp(support=MinP(0.0)), logp, ids), logp[range(5), ids], atol=1e-12
    )  # all tokens: the policy


def test_a_fixed_threshold_always_keeps_the_most_likely_token():
    assert Floor(0.1).mask(logs([0.6, 0.39, 0.01])).tolist() == [[True, True, False]]
    assert Floor(0.7).mask(logs([0.6, 0.39, 0.01])).tolist() == [[True, False, False]]
    assert float(of(SupportLogp(support=Floor(0.7)), [[0.6, 0.39, 0.01]])) == pytest.approx(0.0, abs=1e-12)


def test_the_nucleus_is_the_smallest_set_that_reaches_its_mass():
    row = logs([0.05, 0.5, 0.15, 0.3])
    assert TopP(0.9).mask(row).tolist() == [[False, True, True, True]]
    found = of(SupportLogp(support=TopP(0.9)), row.expand(4, 4), ids=[1, 3, 2, 0])
    assert found[:3].exp().tolist() == pytest.approx([0.526316, 0.315789, 0.157895], abs=1e-6)
    assert float(found[3]) == OUTSIDE
    assert TopP(0.5).mask(row).sum() == 1
    assert TopP(0.1, least=3).mask(row).tolist() == [[False, True, True, True]]
    assert TopP(1.0).mask(row).all()


def test_a_nucleus_that_is_larger_than_most_is_found_too(monkeypatch):
    logits = random_logits(6, 40, seed=3)
    logits[::2] *= 6
    logp = logits.log_softmax(1)
    ordered, order = logp.exp().sort(dim=1, descending=True)
    plain = (ordered.cumsum(1) - ordered < 0.9).gather(1, order.argsort(1))
    for first in (1, 5, 20, 128):
        monkeypatch.setattr(vocab, "_NUCLEUS", first)
        assert torch.equal(TopP(0.9).mask(logp), plain)
    assert plain.sum(1).min() < 5 < 20 < plain.sum(1).max()


def test_a_support_of_another_model_restricts_this_one():
    stat = SupportLogp(support=TopP(0.6), model="mask")
    assert stat.models == ("mask",)
    found = of(stat, [[0.2, 0.3, 0.5]] * 3, ids=[0, 1, 2], model=[[0.6, 0.3, 0.1]] * 3)
    assert found.tolist() == pytest.approx([0.0, OUTSIDE, OUTSIDE], abs=1e-12)
    wide = of(SupportLogp(support=TopP(0.8), model="mask"), [[0.2, 0.3, 0.5]], ids=[1], model=[[0.6, 0.3, 0.1]])
    assert float(wide.exp()) == pytest.approx(0.6)


def test_a_token_outside_a_support_has_no_slope():
    logits = random_logits(2, 4).requires_grad_()
    ids = torch.stack([logits[0].argmax(), logits[1].argmin()])
    SupportLogp(support=MinP(0.9)).of(logits.log_softmax(1), ids, {}, {}).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert not logits.grad[1].any()


def test_a_reweighted_reference_goes_from_uniform_to_itself():
    ref = random_logits(3, 4).log_softmax(1)
    policy = random_logits(3, 4, seed=1).log_softmax(1)
    found = of(PowerLogp("ref", power="phi"), policy, ids=[1, 1, 1], model=ref[:1].expand(3, 4), phi=[0.0, 0.5, 1.0])
    middle = 0.5 * ref[0, 1] - (0.5 * ref[0]).logsumexp(0)
    assert found.tolist() == pytest.approx([-math.log(4), float(middle), float(ref[0, 1])], abs=1e-12)
    stat = PowerKl("ref", power="phi")
    assert (stat.needs, stat.models, stat.name) == (("phi",), ("ref",), "kl_power_ref_pi")
    whole = of(FullKl("ref", under="model"), policy, model=ref)
    assert torch.allclose(of(stat, policy, model=ref, phi=[1.0] * 3), whole, atol=1e-12)
    flat = -math.log(4) - of(MeanLogp(), policy)  # phi = 0: raise the mean log-probability over the vocabulary
    assert torch.allclose(of(stat, policy, model=ref, phi=[0.0] * 3), flat, atol=1e-12)


def test_plain_numbers_of_a_distribution():
    rows = [[0.2, 0.5, 0.3]]
    assert float(of(MeanLogp(), rows)) == pytest.approx(sum(math.log(x) for x in rows[0]) / 3)
    assert float(of(MaxLogp(), rows)) == pytest.approx(math.log(0.5))
    assert float(of(SquaredMass(), rows)) == pytest.approx(0.38)
    assert float(of(ChoiceLogp("ref"), rows, model=[[0.1, 0.2, 0.7]])) == pytest.approx(math.log(0.3))


# ---- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stat", STATS, ids=lambda s: s.name)
def test_gradients_are_right(stat):
    ref = random_logits(seed=1).log_softmax(1)
    ids = ref.argmax(1)
    phi = {"phi": torch.full((5,), 0.4, dtype=torch.float64)}

    def value(logits):
        return stat.of(logits.log_softmax(1), ids, {"ref": ref}, phi)

    assert torch.autograd.gradcheck(value, (random_logits().requires_grad_(),))


@pytest.mark.parametrize("stat", [*STATS, PowerLogp("ref", power="phi")], ids=lambda s: s.name)
def test_each_place_is_treated_on_its_own(stat):
    logp, ref = random_logits().log_softmax(1), random_logits(seed=1).log_softmax(1)
    ids = torch.tensor([0, 1, 2, 3, 6])
    phi = torch.linspace(0, 1, 5, dtype=torch.float64)
    whole = stat.of(logp, ids, {"ref": ref}, {"phi": phi})
    parts = [stat.of(logp[i : i + 1], ids[i : i + 1], {"ref": ref[i : i + 1]}, {"phi": phi[i : i + 1]}) for i in range(5)]
    assert whole.shape == (5,)
    assert torch.allclose(torch.cat(parts), whole, atol=1e-14)


def test_names_and_labels():
    names = [s.name for s in STATS]
    assert len(set(names)) == len(names)
    assert FullKl("ref", label="mine").name == "mine"
    assert len({FullKl("ref"), FullKl("ref"), FullKl("teacher")}) == 2
    assert standard("logp_mean") == MeanLogp()
    assert standard("entropy_top20") is None


def test_a_statistic_says_what_it_is():
    with pytest.raises(TypeError, match="abstract"):
        VocabStat()


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: TopKEntropy(0), ConfigError),
        (lambda: MinP(1.5), ConfigError),
        (lambda: Floor(1.0), ConfigError),
        (lambda: TopP(0.0), ConfigError),
        (lambda: TopP(0.5, least=0), ConfigError),
        (lambda: FullKl("ref", under="both"), UnknownNameError),
        (lambda: Jsd("ref", beta=1.1), ConfigError),
        (lambda: AlphaDivergence("ref", alpha=1.0), ConfigError),
        (lambda: FDivergence("ref", generator="kk"), UnknownNameError),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, error):
    with pytest.raises(error):
        make()

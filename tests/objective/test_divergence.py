"""Divergences on the anchor's own samples, and methods that differ in what they hold on to."""

import math

import numpy as np
import pytest
import torch
from law_batches import check_mixed
from objective_batches import run, slopes, spread, tiny

from assay.core.errors import ConfigError, PlanError
from assay.objective import Kl, Objective, SeqSum
from assay.objective.loss.divergence import AnchorDivergence
from assay.objective.methods.anchors import dph_rl, pro_rl, pro_rl_v2
from assay.objective.methods.group import dapo
from assay.testing.objective import check_objective, evaluate

LOG = math.log
P, Q = np.array([0.5, 0.5]), np.array([0.25, 0.75])


def expected(term: AnchorDivergence, p: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """``E_Q[f(P / Q)]`` and its gradient at the logit of P, by the program itself."""
    a = torch.tensor(LOG(p[0] / p[1]), dtype=torch.float64, requires_grad=True)
    logp = torch.stack([torch.nn.functional.logsigmoid(a), torch.nn.functional.logsigmoid(-a)])
    batch = tiny([0, 0], streams=["offline"] * 2, columns={"logp_ref": np.log(q)})
    program = Objective(terms=(term,), aggregate=SeqSum()).compile()
    ready = program.prepare(batch)
    total = torch.zeros((), dtype=torch.float64)
    for row in range(2):
        live = torch.zeros(2, dtype=torch.float64).index_add(0, torch.tensor([1]), logp[row : row + 1])
        total = total + 2 * q[row] * program.micro(ready.micro([row]), {"logp_new": live})[0]
    total.backward()
    assert a.grad is not None
    return float(total.detach()), float(a.grad)


def exact(generator: str, p: np.ndarray, q: np.ndarray) -> float:
    m = (p + q) / 2
    return {
        "forward_kl": (q * np.log(q / p)).sum(),
        "reverse_kl": (p * np.log(p / q)).sum(),
        "js": (p * np.log(p / m)).sum() + (q * np.log(q / m)).sum(),
        "hellinger": ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(),
        "chi2": ((p - q) ** 2 / q).sum(),
        "total_variation": np.abs(p - q).sum() / 2,
    }[generator]


GENERATORS = ["forward_kl", "reverse_kl", "js", "hellinger", "chi2", "total_variation"]


def test_the_published_numbers() -> None:
    """DPH-RL: P = [.5, .5], Q = [.25, .75]."""
    assert expected(AnchorDivergence(), P, Q)[0] == pytest.approx(0.130812, abs=5e-7)
    assert expected(AnchorDivergence("js"), P, Q)[0] / 2 == pytest.approx(0.033822, abs=5e-7)
    assert expected(AnchorDivergence("alpha", alpha=0.2), P, Q)[0] == pytest.approx(0.14056, abs=5e-6)


@pytest.mark.parametrize("p", [0.1, 0.4, 0.9])
@pytest.mark.parametrize("generator", GENERATORS)
def test_value_and_gradient_are_the_divergences(generator: str, p: float) -> None:
    both, h = np.array([p, 1 - p]), 1e-6
    up, down = (1 / (1 + np.exp(-(LOG(p / (1 - p)) + s))) for s in (h, -h))
    slope = (exact(generator, np.array([up, 1 - up]), Q) - exact(generator, np.array([down, 1 - down]), Q)) / (2 * h)
    assert expected(AnchorDivergence(generator), both, Q) == (
        pytest.approx(exact(generator, both, Q)),
        pytest.approx(slope, rel=1e-6),
    )


@pytest.mark.parametrize("near", [0.001, 0.999])
def test_alpha_lies_between_both_divergences(near: float) -> None:
    limit = "reverse_kl" if near < 0.5 else "forward_kl"
    assert expected(AnchorDivergence("alpha", alpha=near), P, Q)[0] == pytest.approx(exact(limit, P, Q), abs=2e-4)


@pytest.mark.parametrize("generator", [*GENERATORS, "alpha"])
def test_every_token_adds_nothing_at_equality_and_never_less(generator: str) -> None:
    term = AnchorDivergence(generator, alpha=0.2 if generator == "alpha" else None)
    objective = Objective(terms=(term,), aggregate=SeqSum())
    x = np.array([-3.0, -0.5, 0.0, 0.4, 2.0])
    batch = tiny([0] * 5, streams=["offline"] * 5, columns={"logp_ref": -4.0})
    one = [run(objective, tiny([0], streams=["offline"], columns={"logp_ref": -4.0}), -4.0 + v).loss for v in x]
    assert min(one) == pytest.approx(0.0, abs=1e-12)
    assert sum(v > 1e-9 for v in one) == 4
    assert slopes(objective, batch, -4.0 + x)[2] == pytest.approx(0.0, abs=1e-12)
    far = tiny([0, 0], streams=["offline"] * 2, columns={"logp_ref": [-50.0, -1.0]})
    outcome = run(objective, far, [-1.0, -50.0])
    assert math.isfinite(outcome.loss)
    assert not outcome.gradients["logp_new"].any()


def test_it_reports_the_divergence_from_the_anchor() -> None:
    batch = tiny([0], streams=["offline"], columns={"logp_base": -2.0})
    term = AnchorDivergence("js", anchor="base")
    found = run(Objective(terms=(term,), brings=("logp_base",)), batch, -1.0).metrics
    assert found["divergence/kl_from_base"] == pytest.approx(math.e - 2)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"generator": "jss"}, "did you mean 'js'"),
        ({"generator": "alpha"}, "alpha belongs to"),
        ({"alpha": 0.2}, "alpha belongs to"),
        ({"generator": "alpha", "alpha": 1.0}, r"in \(0, 1\)"),
        ({"clamp": 0.0}, "leaves nothing"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        AnchorDivergence(**settings)  # type: ignore[arg-type]


def test_on_the_policys_own_samples_it_is_refused() -> None:
    for streams in ((), ("offline", "on_policy"), ("replay",)):
        with pytest.raises(PlanError, match="the policy's own"):
            AnchorDivergence(streams=streams)


@pytest.mark.parametrize("settings", [{}, {"generator": "js"}, {"generator": "alpha", "alpha": 0.2}])
def test_dph_rl_keeps_the_laws(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    check_mixed(monkeypatch, dph_rl(**settings), ("on_policy", "offline", "expert"))  # type: ignore[arg-type]


def test_dph_rl_explores_on_its_own_rows_and_holds_on_the_base_models() -> None:
    """Own rows learn as under DAPO, and stored ones are held alone."""
    own = {"logp_old": -1.0, "logp_ref": [0.0] * 4 + [-2.0, -0.5]}
    both = tiny([1, 0, 0, 0, 1, 1], [0] * 4 + [1, 1], streams=["on_policy"] * 4 + ["offline"] * 2, columns=own)
    found = slopes(dph_rl(coef=0.02), both)
    np.testing.assert_allclose(found[:4], slopes(dapo(filter_groups=False), tiny([1, 0, 0, 0], columns={"logp_old": -1.0})))
    np.testing.assert_allclose(found[4:], 0.02 / 2 * (np.exp([1.0, -0.5]) - 1))
    assert dph_rl().plan().columns == ("logp_ref",)
    assert "logp_ref" in [f.column for f in dph_rl(stored=False).plan().forwards]


@pytest.mark.parametrize("objective", [pro_rl(), pro_rl(0.01, "k2"), pro_rl_v2(), pro_rl_v2(band=None)])
def test_pro_rl_keeps_the_laws(objective: Objective, seeds: range) -> None:
    assert len(check_objective(objective, seeds).passed) == 9


@pytest.mark.parametrize("make", [pro_rl, pro_rl_v2])
def test_behind_a_reset_the_reference_pulls_no_more(make: type) -> None:
    columns = {"logp_old": -1.0, "logp_engine": -1.0}
    reset = tiny([1, 0, 0, 0], columns={**columns, "logp_ref": -1.0})
    moved = tiny([1, 0, 0, 0], columns={**columns, "logp_ref": -1.5})
    free = slopes(make(kl=0.0), reset)
    np.testing.assert_allclose(slopes(make(), reset), free)
    assert np.abs(slopes(make(), moved) - free).max() > 0
    assert [t for t in make().terms if isinstance(t, Kl)]


def test_pro_rl_without_its_divergence_is_dapo_with_another_bound() -> None:
    columns = {"logp_old": -1.0}
    batch = tiny([1, 0, 0, 0], columns=columns)
    np.testing.assert_array_equal(slopes(pro_rl(kl=0.0, high=0.28), batch), slopes(dapo(), batch))


def test_the_laws_of_a_single_micro_batch_hold_for_stored_rows() -> None:
    batch = tiny([0, 0], streams=["offline", "on_policy"], lengths=[2, 1], columns={"logp_ref": [-1.0, -2.0, 0.0]})
    term = AnchorDivergence()
    outcome = evaluate(Objective(terms=(term,)).compile(), batch, {"logp_new": spread(batch, -1.5)})
    assert not outcome.gradients["logp_new"][-1:].any()

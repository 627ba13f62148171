import numpy as np
import pytest
import torch

from assay.core.errors import DataError
from assay.core.plan import Forward, Plan
from assay.objective import Entropy, Kl, Objective, Token
from assay.objective.loss.vocab import MeanLogp, PowerLogp, SupportLogp, TopP
from assay.objective.loss.vocab_columns import fixed_columns, live_columns
from assay.objective.loss.vocab_divergence import FullKl
from assay.objective.loss.vocab_terms import StatLoss

IDS = torch.tensor([2, 0, 1])


def logits(seed):
    return torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_live_columns_carry_the_gradient_to_the_logits():
    plan = Objective(terms=(StatLoss(FullKl("ref")), Entropy(coef=0.1), Kl("k3", anchor="ref")), aggregate=Token()).plan()
    policy, ref = logits(0).requires_grad_(), logits(1).requires_grad_()
    found = live_columns(plan, {"policy": policy, "ref": ref}, IDS)
    assert found.keys() == {"logp_new", "entropy", "kl_pi_ref"}
    (slope,) = torch.autograd.grad(found["kl_pi_ref"].sum(), policy, retain_graph=True)
    p, gap = policy.softmax(1), policy.log_softmax(1) - ref.log_softmax(1)
    assert torch.allclose(slope, p * (gap - found["kl_pi_ref"][:, None]))
    found["kl_pi_ref"].sum().backward()
    assert ref.grad is None  # another model's distribution is fixed


def test_only_what_the_plan_names():
    found = live_columns(Plan(live=(), vocab=(MeanLogp(),)), {"policy": logits(0)}, IDS)
    assert torch.equal(found["logp_mean"], logits(0).log_softmax(1).mean(1))
    assert found.keys() == {"logp_mean"}


def test_fixed_columns_by_model_and_time():
    given = {"policy": logits(0), "old": logits(1).requires_grad_(), "ref": logits(2), "mask": logits(3)}
    kept = SupportLogp(support=TopP(0.5), model="mask")
    asked = [
        Forward("logp_old"),
        Forward("logp_now", when="step"),
        Forward("logp_ref", "ref"),
        Forward("entropy_old"),
        Forward("kept", stat=kept),
        Forward("power", when="step", stat=PowerLogp("ref", power="phi")),
    ]
    phi = torch.ones(3, dtype=torch.float64)
    found = fixed_columns(asked, given, IDS, {"phi": phi})
    logp = {name: x.detach().log_softmax(1) for name, x in given.items()}
    for column, model in (("logp_old", "old"), ("logp_now", "policy"), ("logp_ref", "ref"), ("power", "ref")):
        assert found[column].numpy() == pytest.approx(logp[model][np.arange(3), IDS].numpy()), column
    assert torch.allclose(found["entropy_old"], -(logp["old"].exp() * logp["old"]).sum(1))
    assert torch.equal(found["kept"], kept.of(logp["old"], IDS, {"mask": logp["mask"]}, {}))
    assert not any(x.requires_grad for x in found.values())


def test_what_is_missing_is_named():
    with pytest.raises(DataError, match="logits of 'ref' are missing"):
        live_columns(Plan(vocab=(FullKl("ref"),)), {"policy": logits(0)}, IDS)
    with pytest.raises(DataError, match="reads the column 'phi'"):
        live_columns(Plan(vocab=(PowerLogp("ref", power="phi"),)), {"policy": logits(0), "ref": logits(1)}, IDS)
    with pytest.raises(DataError, match="'values_old' is nothing that logits give"):
        fixed_columns([Forward("values_old")], {"old": logits(0)}, IDS)

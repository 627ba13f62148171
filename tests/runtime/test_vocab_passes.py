"""Statistics over the vocabulary through decoder and learner, against all logits at once."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learner_cases import SHAPE, Weighted, random_batch, small_model

from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Forward, Plan
from assay.objective import Entropy, Objective, Token
from assay.objective.loss.vocab import MeanLogp, MinP, SupportLogp, TopP
from assay.objective.loss.vocab_columns import fixed_columns, live_columns
from assay.objective.loss.vocab_divergence import FullKl, Jsd, PowerKl
from assay.objective.loss.vocab_terms import StatLoss
from assay.objective.methods.entropy import clip_cov, kl_cov, lp_reg, rapo, skywork_or1, steer, top_entropy
from assay.runtime.learner import forwards as passes
from assay.runtime.learner.decoder import Decoder
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.learner.lm_head import head_columns
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.settings import AdamW, LearnerSettings


def decoder(seed=0, shape=SHAPE):
    made = Decoder(shape)
    made.load_tensors(small_model(shape, seed).tensors)
    return made


def learner(micro_tokens=64, seed=0, lr=0.01):
    settings = LearnerSettings(micro_tokens=micro_tokens, optimizer=AdamW(lr=lr))
    made = TorchLearner(small_model(seed=seed), settings, total_steps=8)
    made.anchors["ref"].load_tensors(small_model(seed=7).tensors)
    return made


def inputs(batch):
    ids = torch.from_numpy(batch.token("ids").astype(np.int64))
    return ids, pack_offsets(batch.offsets), torch.from_numpy(np.flatnonzero(batch.token("mask")))


def logits_of(model, batch):
    """``[M, V]`` logits that each loss token was drawn from."""
    ids, _, where = inputs(batch)
    return model.logits(ids, batch.offsets)[where - 1]


def graded(batch):
    """A batch that a credit chain can start from: the second rollout of each group is right."""
    reward = (np.arange(len(batch.rollout("group"))) % 3 == 1).astype(float)
    tokens = {n: c for n, c in batch.tokens.items() if n != "advantage"}
    return replace(batch, tokens=tokens).with_rollouts(**{"components/correct": reward, "valid": np.ones(len(reward), bool)})


# ---- decoder ----------------------------------------------------------------------------------------------------------


def test_statistics_of_a_decoder_equal_those_of_its_logits():
    policy, ref, batch = decoder(), decoder(7).requires_grad_(False), random_batch()
    stats = (FullKl("ref"), MeanLogp(), PowerKl("ref", power="phi"))
    phi = torch.rand(int(batch.offsets[-1]), generator=torch.Generator().manual_seed(0))
    ids, packing, where = inputs(batch)
    found = policy.statistics(ids, packing, where, stats, {"ref": ref}, {"phi": phi[where]})
    logp, other = (logits_of(m, batch).log_softmax(1) for m in (policy, ref))
    plain = [s.of(logp, ids[where], {"ref": other}, {"phi": phi[where]}) for s in stats]
    assert torch.allclose(found[0], logp.gather(1, ids[where][:, None])[:, 0], atol=1e-5)
    for mine, theirs in zip(found[1:], plain, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


def test_models_that_cannot_be_compared_are_refused():
    policy, batch = decoder(), random_batch()
    with pytest.raises(UnknownNameError, match="teacher"):
        policy.statistics(*inputs(batch), (FullKl("teacher"),), {"ref": decoder(7)}, {})
    small = Decoder(replace(SHAPE, vocab_size=12))
    with pytest.raises(ConfigError, match="vocabulary of 12, this one of 16"):
        policy.statistics(*inputs(batch), (FullKl("ref"),), {"ref": small}, {})


# ---- learner ----------------------------------------------------------------------------------------------------------


def test_a_pass_fills_columns_with_statistics():
    made, batch = learner(), random_batch()
    stats = [MeanLogp(), SupportLogp(support=MinP(0.3)), SupportLogp(support=TopP(0.6), model="ref"), Jsd("ref")]
    asked = [Forward(f"c{i}", "policy", "batch", s) for i, s in enumerate(stats)] + [
        Forward("d", "ref", "batch", FullKl("policy"))
    ]
    filled = made.annotate(batch, *asked)
    here = batch.token("mask")
    ids = inputs(batch)[0][here]
    with torch.no_grad():
        logp, other = (logits_of(m, batch).log_softmax(1) for m in (made.policy, made.anchors["ref"]))
    for i, stat in enumerate(stats):
        plain = stat.of(logp, ids, {"ref": other}, {})
        assert filled.token(f"c{i}")[here] == pytest.approx(plain.numpy(), abs=1e-5)
        assert not filled.token(f"c{i}")[~here].any()
    assert filled.token("d")[here] == pytest.approx(FullKl("policy").of(other, ids, {"policy": logp}, {}).numpy(), abs=1e-5)


def test_statistics_and_log_probabilities_share_one_pass_of_the_head(monkeypatch):
    made, batch = learner(), random_batch()
    plain = [Forward("logp_old"), Forward("entropy_old")]
    alone = made.annotate(batch, *plain)
    calls = []
    monkeypatch.setattr(passes, "head_columns", lambda *a: calls.append(a) or head_columns(*a))
    filled = made.annotate(batch, *plain, Forward("c", "policy", "batch", Jsd("ref")))
    assert calls == []
    for name in ("logp_old", "entropy_old"):
        assert filled.token(name) == pytest.approx(alone.token(name), abs=1e-6)
        assert np.abs(filled.token(name)[batch.token("mask")]).min() > 0
    gradients = []
    for vocab in ((), (MeanLogp(),)):
        made.step(batch, Plan(live=("logp_new", "entropy", *(s.name for s in vocab)), vocab=vocab), Weighted(bonus=0.1))
        gradients.append(made.gradient.buffer.clone())
        made = learner()
    assert calls == []  # neither with gradient
    assert torch.allclose(gradients[0], gradients[1], atol=1e-6)


class Summed(Weighted):
    """Loss = mean of a live statistic."""

    name = "jsd_ref"

    def active(self, batch):
        return np.ones(len(batch), np.bool_)

    def micro(self, batch, live):
        return live[self.name].sum() / batch.counts.tokens, {}


@pytest.mark.parametrize("micro_tokens", [16, 10_000])
def test_the_gradient_of_a_statistic_is_that_of_all_logits(micro_tokens):
    made, batch = learner(micro_tokens, lr=0.0), random_batch()
    made.step(batch, Plan(live=("logp_new", "jsd_ref"), vocab=(Jsd("ref"),)), Summed())
    policy = decoder()
    logp, other = (logits_of(m, batch).log_softmax(1) for m in (policy, made.anchors["ref"]))
    (Jsd("ref").of(logp, None, {"ref": other.detach()}, {}).sum() / batch.counts.tokens).backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in policy.parameters()))
    scale = min(1.0, 1.0 / float(norm))  # the learner's own clipping
    for name, parameter in policy.named_parameters():
        assert torch.allclose(made.parameters[name].grad, parameter.grad * scale, atol=1e-5), name


def test_a_divergence_over_the_vocabulary_falls():
    made, batch = learner(lr=0.005), random_batch()
    objective = Objective(terms=(StatLoss(FullKl("ref", under="model")), Entropy(coef=1e-9)), aggregate=Token())
    plan = objective.plan(offers=LearnerSettings().offers)
    assert plan.live == ("logp_new", "kl_ref_pi", "entropy")
    losses = [made.step(batch, plan, objective.compile()).metrics["loss/kl_ref_pi"] for _ in range(12)]
    assert losses[-1] < 0.5 * losses[0]


METHODS = {
    "clip_cov": clip_cov(fraction=0.1, least=0.0),
    "kl_cov": kl_cov(fraction=0.1),
    "lp_reg": lp_reg(fraction=0.3, kappa=0.1),
    "rapo": rapo(alpha=0.1),
    "rapo full": rapo(alpha=0.1, estimator="full"),
    "skywork_or1": skywork_or1(start=0.1, target=5.0),
    "steer": steer(),
    "top_entropy": top_entropy(fraction=0.3),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_the_same_step_by_logits_and_by_learner(name):
    objective, batch = METHODS[name], graded(random_batch())
    made = learner(lr=0.0)
    plan = objective.plan(offers=LearnerSettings().offers)
    program = objective.compile()
    once = [f for f in plan.forwards if f.when == "batch"]
    ready = made.annotate(batch, *once) if once else batch
    stats = made.step(program.credit(ready), plan, program).metrics

    policy = decoder()
    logits = logits_of(policy, batch)
    others = {"old": logits.detach(), "ref": logits_of(made.anchors["ref"], batch).detach()}
    here = batch.token("mask")
    ids = inputs(batch)[0][here]

    def with_columns(to, forwards, version=0):
        found = fixed_columns(forwards, {"policy": logits, **others}, ids)
        full = {n: np.zeros(len(here), np.float32) for n in found}
        for n, values in found.items():
            full[n][here] = values.numpy()
        return to.with_tokens(*(TokenColumn(n, v, "learner", version) for n, v in full.items()))

    program = objective.compile()
    plain = program.prepare(with_columns(program.credit(with_columns(batch, once)), [f for f in plan.forwards if f not in once]))
    columns = {n: torch.tensor(np.asarray(plain.token(n))[here], dtype=torch.float32) for s in plan.vocab for n in s.needs}
    nothing = torch.zeros(len(here))
    where = torch.from_numpy(np.flatnonzero(here))
    found = live_columns(plan, {"policy": logits, **others}, ids, columns)
    loss, _ = program.micro(plain, {n: nothing.index_copy(0, where, v) for n, v in found.items()})
    loss.backward()
    assert stats["loss/total"] == pytest.approx(float(loss.detach()), abs=1e-5)
    norm = torch.sqrt(sum((p.grad**2).sum() for p in policy.parameters()))
    assert stats["grad/norm"] == pytest.approx(float(norm), rel=1e-3)
    assert float(norm) > 0

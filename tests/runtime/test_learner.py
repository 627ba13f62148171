import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learner_cases import SHAPE, Likelihood, Weighted, random_batch, small_model

from assay.core.columns import TokenColumn
from assay.core.errors import DataError, NonFiniteError, PlanError, UnknownNameError
from assay.core.manifest import manifest_of
from assay.core.plan import Forward, Plan, Scope
from assay.core.rollout import ids_of
from assay.runtime.learner import learner as learner_module
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.settings import AdamW, LearnerSettings, LearningRateSchedule, Muon

ENTROPY = Plan(live=("logp_new", "entropy"))
RAW = LearnerSettings(clip_norm=0.0)


def learner(settings=RAW, *, total_steps=100, shape=SHAPE):
    return TorchLearner(small_model(shape), settings, total_steps=total_steps)


def gradient_of(batch, plan=ENTROPY, program=None, settings=RAW):
    made = learner(settings)
    stats = made.step(batch, plan, program or Weighted(bonus=0.1))
    return made.gradient.buffer.clone(), stats.metrics


# ---- loss and gradient


def test_loss_and_gradient_equal_a_plain_forward_of_each_row():
    batch, made = random_batch(), learner()
    decoder, total = made.policy, 0.0
    for row in range(len(batch)):
        a, b = batch.offsets[row], batch.offsets[row + 1]
        ids = torch.from_numpy(batch.token("ids")[a:b].astype(np.int64))
        table = torch.log_softmax(decoder.logits(ids, np.array([0, b - a])), 1)
        logp = table[:-1].gather(1, ids[1:, None])[:, 0]
        entropy = -(table.exp() * table).sum(1)[:-1]
        keep = torch.from_numpy(batch.token("mask")[a + 1 : b])
        advantage = torch.from_numpy(batch.token("advantage")[a + 1 : b])
        total = total - ((advantage * logp + 0.1 * entropy) * keep).sum() / batch.counts.tokens
    wanted = torch.cat([g.flatten() for g in torch.autograd.grad(total, list(made.parameters.values()))])
    gradient, metrics = gradient_of(batch)
    assert metrics["loss/total"] == pytest.approx(float(total.detach()), abs=1e-6)
    assert (gradient - wanted).abs().max() < 1e-5 * wanted.abs().max()
    assert metrics["grad/norm"] == pytest.approx(float(wanted.norm()), rel=1e-5)


@given(st.integers(1, 400), st.sampled_from(list(Scope)))
@settings(max_examples=15)
def test_loss_and_gradient_do_not_depend_on_the_micro_batches(micro_tokens, split):
    batch = random_batch(rollouts=9, rows_each=2, seed=3)
    wanted, all_metrics = gradient_of(batch)
    plan = Plan(live=ENTROPY.live, split=split)
    found, metrics = gradient_of(batch, plan, settings=LearnerSettings(clip_norm=0.0, micro_tokens=micro_tokens))
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()
    assert metrics["loss/total"] == pytest.approx(all_metrics["loss/total"], abs=1e-6)
    assert metrics["terms"] == batch.counts.tokens


@pytest.mark.parametrize(("split", "whole"), [(Scope.SEQUENCE, "rollout"), (Scope.GROUP, "group")])
def test_a_unit_is_shown_to_the_loss_whole(split, whole):
    batch, program = random_batch(rollouts=9, rows_each=2), Weighted()
    learner(LearnerSettings(micro_tokens=60)).step(batch, Plan(split=split), program)
    assert len(program.seen) > 1
    units = [set((m.rows["rollout"] if whole == "rollout" else m.per_row("group")).tolist()) for m in program.seen]
    assert sum(map(len, units)) == len(set().union(*units))
    assert all(m.counts == batch.counts for m in program.seen)


def test_skipped_rows_change_neither_loss_nor_gradient():
    batch = random_batch()
    full, of_all = gradient_of(batch, Plan(), Weighted())
    part, of_some = gradient_of(batch, Plan(skip=True), Weighted())
    assert (of_all["rows/computed"], of_all["waste/rows_skipped"]) == (12, 0)
    assert (of_some["rows/computed"], of_some["rows/skipped"]) == (8, 4)
    assert of_some["waste/rows_skipped"] == pytest.approx(1 / 3)
    assert of_some["tokens/trained"] < of_all["tokens/trained"] == batch.counts.tokens
    assert of_some["loss/total"] == pytest.approx(of_all["loss/total"], abs=1e-7)
    assert (part - full).abs().max() < 1e-6 * full.abs().max()


@pytest.mark.parametrize("optimizer", [AdamW(), Muon()])
def test_a_step_without_active_rows_equals_one_with_zero_gradient(optimizer):
    batch = random_batch()
    zero = batch.with_tokens(TokenColumn("advantage", np.zeros_like(batch.token("advantage"))))
    ends = []
    for plan in (Plan(), Plan(skip=True)):
        made = learner(LearnerSettings(optimizer=optimizer))
        made.step(batch, Plan(), Weighted())
        after_one = made.publish().digest
        metrics = made.step(zero, plan, Weighted()).metrics
        assert metrics["grad/norm"] == 0.0
        assert made.publish().digest != after_one  # momentum
        ends.append(made.state_digest())
    assert ends[0] == ends[1]
    assert metrics["rows/computed"] == metrics["tokens/trained"] == 0


class Constant(Weighted):
    """A loss that no weight touches."""

    def micro(self, batch, live):
        return torch.tensor(0.25), {}


def test_a_loss_without_gradient_is_a_step_with_zero_gradient():
    metrics = learner().step(random_batch(), Plan(), Constant()).metrics
    assert (metrics["loss/total"], metrics["grad/norm"]) == (0.25, 0.0)


def test_training_lowers_the_loss():
    made, batch = learner(LearnerSettings(optimizer=AdamW(lr=1e-2))), random_batch()
    losses = [made.step(batch, Plan(), Likelihood()).metrics["loss/total"] for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]
    assert made.version == 30


# ---- plan


class TwoPass(Weighted):
    """PACS-like: Phi is the mean over rollouts of softplus(-sign * s / 20), s a rollout's summed log-probability."""

    @staticmethod
    def phi(scores, sign):
        return torch.nn.functional.softplus(-sign * 0.05 * scores).sum() / len(scores)

    def prepare(self, batch):
        total = np.zeros(len(batch.rollouts["group"]))
        rollout = batch.rows["rollout"][batch.row_of_token]
        np.add.at(total, rollout, np.where(batch.token("mask"), batch.token("logp_now"), 0.0))
        scores = torch.from_numpy(total).requires_grad_()
        sign = torch.from_numpy(1.0 - 2.0 * (np.arange(len(total)) % 2))
        (slope,) = torch.autograd.grad(self.phi(scores, sign), scores)
        return batch.with_tokens(TokenColumn("advantage", -slope.numpy()[rollout].astype(np.float32) * batch.counts.tokens))


def test_two_pass_gradient_equals_autograd_of_the_set_loss():
    batch, made = random_batch(rollouts=6, rows_each=2), learner()
    where = torch.from_numpy(np.flatnonzero(batch.token("mask")))
    ids = torch.from_numpy(batch.token("ids").astype(np.int64))
    logp, _ = made.policy.columns(ids, pack_offsets(batch.offsets), where)
    rollout = torch.from_numpy(batch.rows["rollout"][batch.row_of_token])[where]
    scores = torch.zeros(6).index_add(0, rollout, logp)
    phi = TwoPass.phi(scores, torch.tensor([1.0, -1.0] * 3))
    wanted = torch.cat([g.flatten() for g in torch.autograd.grad(phi, list(made.parameters.values()))])
    found, _ = gradient_of(
        batch, Plan(forwards=(Forward("logp_now", when="step"),)), TwoPass(), LearnerSettings(clip_norm=0.0, micro_tokens=50)
    )
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()


class Now(Weighted):
    """Keeps the columns filled before the step."""

    def prepare(self, batch):
        self.now = {n: c for n, c in batch.tokens.items() if c.producer == "learner"}
        return batch


def test_step_forwards_are_taken_anew_before_every_update():
    batch, made, program = random_batch(), learner(), Now()
    plan = Plan(forwards=(Forward("logp_old"), Forward("logp_now", when="step"), Forward("logp_ref", "ref", "step")))
    made.step(batch, plan, program)
    assert set(program.now) == {"logp_now", "logp_ref"}  # logp_old is the loop's to fill, once per rollout batch
    first = program.now["logp_now"]
    assert first.version == 0
    assert np.array_equal(first.values, program.now["logp_ref"].values)
    assert np.array_equal(first.values, program.seen[0].micro(np.argsort(program.seen[0].rows["rollout"])).token("logp_now"))
    made.step(batch, plan, program)
    assert program.now["logp_now"].version == 1
    assert not np.array_equal(first.values, program.now["logp_now"].values)
    assert np.array_equal(first.values, program.now["logp_ref"].values)


def test_an_unknown_live_column_is_refused_by_name():
    with pytest.raises(PlanError, match=r"'values'.*logp_new and entropy"):
        learner().step(random_batch(), Plan(live=("logp_new", "values")), Weighted())


def test_what_the_settings_offer_is_done():
    offers, batch = LearnerSettings().offers, random_batch()
    made, given = learner(LearnerSettings()), []

    class Looks(Weighted):
        def micro(self, batch, live):
            given.append(set(live))
            assert all(bool(values[batch.token("mask")].abs().sum() > 0) for values in live.values())
            return super().micro(batch, live)

    made.step(batch, Plan(live=offers.live), Looks())
    assert given and all(names == set(offers.live) for names in given)
    for name in offers.models:
        for column in (f"logp_{name}", f"entropy_{name}"):
            assert made.annotate(batch, Forward(column, name)).token(column)[batch.token("mask")].any()


def test_a_column_of_the_users_own_travels_untouched():
    batch, program = random_batch(), Weighted()
    routing = np.arange(int(batch.offsets[-1]) * 6, dtype=np.int16).reshape(-1, 2, 3)
    batch = batch.with_tokens(TokenColumn("routing", routing, "engine", 7), TokenColumn("at", np.arange(len(routing))))
    made = learner(LearnerSettings(micro_tokens=40))
    batch = made.annotate(batch, Forward("logp_ref", "ref"))
    made.step(batch, Plan(columns=("routing",)), program)
    assert batch.tokens["routing"].values is routing
    at = np.concatenate([m.token("at") for m in program.seen])
    assert sorted(at.tolist()) == list(range(len(routing)))
    for micro in program.seen:
        column = micro.tokens["routing"]
        assert (column.dtype, column.producer, column.version) == (np.int16, "engine", 7)
        assert np.array_equal(column.values, routing[micro.token("at")])


# ---- annotate and score


def test_annotate_fills_loss_tokens_of_policy_and_anchor():
    made, batch = learner(), random_batch()
    mask = batch.token("mask")
    filled = made.annotate(made.annotate(batch, Forward("logp_old")), Forward("entropy_ref", "ref"))
    logp, entropy = filled.token("logp_old"), filled.token("entropy_ref")
    assert logp.dtype == np.float32
    assert (logp[mask] < 0).all()
    assert (entropy[mask] > 0).all()
    assert not logp[~mask].any()
    for row in range(len(batch)):
        a, b = batch.offsets[row], batch.offsets[row + 1]
        scored = made.score([batch.token("ids")[a:b]])[0]
        assert np.allclose(np.where(mask[a:b], scored, 0), logp[a:b], atol=2e-6)
    made.step(batch, Plan(), Weighted())
    again = made.annotate(made.annotate(batch, Forward("logp_new_old")), Forward("logp_ref", "ref"))
    assert np.array_equal(again.token("logp_ref"), logp)
    assert not np.allclose(again.token("logp_new_old"), logp, atol=1e-5)
    assert again.tokens["logp_new_old"].version == 1


def test_score_of_empty_and_short_rows():
    scored = learner().score([ids_of([]), ids_of([3]), ids_of([3, 4])])
    assert [s.tolist() for s in scored[:2]] == [[], [0.0]]
    assert scored[2][0] == 0
    assert scored[2][1] < 0
    assert [s.dtype for s in scored] == [np.float32] * 3
    assert learner().score([]) == []
    assert learner().score([ids_of([3])])[0].tolist() == [0.0]


def test_names_that_nothing_answers_to():
    made = learner()
    with pytest.raises(UnknownNameError, match="unknown model 'rfe': did you mean 'ref'"):
        made.annotate(random_batch(), Forward("logp_ref", "rfe"))
    with pytest.raises(PlanError, match="not 'values'"):
        made.annotate(random_batch(), Forward("values"))


# ---- bad input


def test_rows_that_the_model_cannot_read():
    made = learner()
    with pytest.raises(DataError, match=r"a row has 49 tokens, .* is 48"):
        made.score([ids_of([1] * 49)])
    with pytest.raises(DataError, match="from 0 to 16, the model's vocabulary has 16"):
        made.score([ids_of([0, 16])])
    batch = random_batch()
    mask = batch.token("mask").copy()
    mask[0] = True
    with pytest.raises(DataError, match="first token of a row"):
        made.step(batch.with_tokens(TokenColumn("mask", mask)), Plan(), Weighted())


def poisoned(what):
    batch, program = random_batch(), Weighted(poison=what)
    if what == "advantage":
        values = batch.token("advantage").copy()
        values[np.flatnonzero(batch.token("mask"))[-1]] = np.nan
        batch = batch.with_tokens(TokenColumn("advantage", values))
    return batch, program


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("advantage", r"step 1: the loss is nan in micro-batch \d+; first bad quantity: token column 'advantage'"),
        ("loss", r"step 1: the loss is nan in micro-batch 0; first bad quantity: the loss itself"),
        ("gradient", r"step 1: the gradient norm is nan; first bad quantity: gradient of model.embed_tokens.weight"),
    ],
)
@pytest.mark.parametrize("optimizer", [AdamW(), Muon()])
def test_a_value_that_is_not_finite_stops_the_step_and_changes_nothing(what, message, optimizer):
    made = learner(LearnerSettings(optimizer=optimizer, micro_tokens=60))
    made.step(random_batch(seed=1), Plan(), Weighted())
    before = made.state_digest()
    batch, program = poisoned(what)
    with pytest.raises(NonFiniteError, match=message):
        made.step(batch, Plan(), program)
    assert made.state_digest() == before
    made.step(random_batch(seed=1), Plan(), Weighted())  # nothing of the bad gradient is left
    other = learner(LearnerSettings(optimizer=optimizer, micro_tokens=60))
    for _ in range(2):
        other.step(random_batch(seed=1), Plan(), Weighted())
    assert made.state_digest() == other.state_digest()


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        (1.0, r"the gradient norm is inf; the squares overflow"),
        (1e4, r"first bad quantity: live column 'logp_new' of the forward pass"),
    ],
)
def test_overflow_of_finite_weights_is_named(embedding, message):
    made = learner()
    with torch.no_grad():
        made.parameters["model.norm.weight"].fill_(1e38)
        made.parameters["model.embed_tokens.weight"].mul_(embedding)
    with pytest.raises(NonFiniteError, match=message):
        made.step(random_batch(), Plan(), Weighted())


def test_a_broken_weight_is_named():
    made = learner()
    with torch.no_grad():
        made.parameters["model.layers.1.mlp.up_proj.weight"][0, 0] = float("inf")
    with pytest.raises(NonFiniteError, match=r"first bad quantity: weight model.layers.1.mlp.up_proj.weight"):
        made.step(random_batch(), Plan(), Weighted())


# ---- settings


def test_clipping_scales_the_whole_gradient():
    batch = random_batch()
    raw, metrics = gradient_of(batch)
    clipped, same = gradient_of(batch, settings=LearnerSettings(clip_norm=0.01))
    assert metrics["grad/norm"] == same["grad/norm"] > 0.01
    assert float(clipped.norm()) == pytest.approx(0.01, rel=1e-3)
    assert torch.allclose(clipped / clipped.norm(), raw / raw.norm(), atol=1e-6)
    loose, _ = gradient_of(batch, settings=LearnerSettings(clip_norm=1e3))
    assert torch.equal(loose, raw)


def test_the_schedule_sets_the_learning_rate():
    made = learner(
        LearnerSettings(optimizer=AdamW(lr=0.1), schedule=LearningRateSchedule(kind="linear", warmup=1)), total_steps=3
    )
    rates = [made.step(random_batch(), Plan(), Weighted()).metrics["lr"] for _ in range(4)]
    assert rates == pytest.approx([0.05, 0.1, 0.05, 0.0])


def test_bf16_is_near_fp32_and_keeps_fp32_master_weights():
    batch = random_batch()
    exact, of_fp32 = gradient_of(batch)
    made = learner(LearnerSettings(precision="bf16", clip_norm=0.0))
    metrics = made.step(batch, ENTROPY, Weighted(bonus=0.1)).metrics
    cosine = float(torch.nn.functional.cosine_similarity(made.gradient.buffer, exact, dim=0))
    assert 0.99 < cosine < 1.0
    assert metrics["loss/total"] == pytest.approx(of_fp32["loss/total"], abs=0.02)
    assert {p.dtype for p in made.parameters.values()} == {torch.float32}
    rows = [ids_of(range(12))]
    assert np.array_equal(made.score(rows, "ref")[0], learner().score(rows)[0])  # scores are fp32 whatever the precision


def test_stats_name_everything_and_count_tokens():
    batch = random_batch()
    metrics = learner().step(batch, Plan(), Weighted()).metrics
    assert set(metrics) == {
        "loss/total",
        "grad/norm",
        "lr",
        "rows/computed",
        "rows/skipped",
        "waste/rows_skipped",
        "waste/attention_padding",
        "tokens/trained",
        "tokens/computed",
        "time/tokens_recalled",
        "time/prepare",
        "time/forward_backward",
        "time/optimizer",
        "terms",
    }
    assert metrics["tokens/trained"] == batch.counts.tokens
    assert metrics["tokens/computed"] == batch.offsets[-1]
    assert 0 <= metrics["waste/attention_padding"] < 1
    assert all(isinstance(v, float) for v in metrics.values())


# ---- weights out


def test_published_weights_are_the_live_ones():
    model = small_model()
    made = TorchLearner(model, RAW, total_steps=1)
    manifest = made.publish()
    start = manifest_of(0, {n: t.numpy() for n, t in model.tensors.items()})
    assert manifest.version == 0
    assert manifest.tensors == start.tensors
    made.step(random_batch(), Plan(), Weighted())
    after = made.publish()
    assert after.version == 1
    assert all(after.tensors[n].digest != start.tensors[n].digest for n in start.tensors)
    assert manifest_of(0, {n: t.numpy() for n, t in model.tensors.items()}).tensors == start.tensors  # the model was copied
    assert np.shares_memory(after.payload["model.norm.weight"], made.parameters["model.norm.weight"].detach().numpy())


def test_a_clock_is_read_when_the_device_is_done(monkeypatch):
    """CUDA works on behind the call: what it still has to do would count as the part of a step that waits for it."""
    told = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: told.append(device.type))
    monkeypatch.setattr(learner_module.time, "perf_counter", lambda: told.append("clock") or 1.0)
    assert learner_module._now(torch.device("cuda")) == learner_module._now(torch.device("cpu")) == 1.0
    assert told == ["cuda", "clock", "clock"]


@pytest.mark.parametrize("settings", [LearnerSettings(), LearnerSettings(optimizer=Muon()), LearnerSettings(precision="bf16")])
def test_equal_inputs_give_equal_bits(settings):
    digests = set()
    for _ in range(2):
        made = learner(settings)
        for seed in range(3):
            made.step(random_batch(seed=seed), ENTROPY, Weighted(bonus=0.1))
        digests.add(made.state_digest())
    assert len(digests) == 1

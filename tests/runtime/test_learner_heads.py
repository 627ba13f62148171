"""Critics beside the policy: what their columns hold, who learns from what, how they move, and that they come back exactly."""

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import Weighted, random_batch, small_model
from safetensors.numpy import load_file, save_file
from test_learner_checkpoint import redigest

from assay.core.batch import Batch
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError, NonFiniteError, PlanError, UnknownNameError
from assay.core.plan import Forward, Plan
from assay.objective.loss.td_fits import Bce, HlGauss, TwoHot
from assay.objective.loss.vocab import ChoiceLogp, MaxLogp
from assay.runtime.learner.critics import LinearHead
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.settings import AdamW, LearnerSettings, Muon, Trunk, ValueHead

V = ValueHead(init=1.0)
BOTH = Plan(live=("logp_new", "values"))


@dataclass
class Critic(Weighted):
    """Squared distance of heads' outputs from ``target``, beside the policy's loss times ``actor``."""

    names: tuple[str, ...] = ("values",)
    target: float = 1.0
    actor: float = 0.0
    spoil: str = ""

    def active(self, batch: Batch) -> Any:
        return np.ones(len(batch), np.bool_)

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[torch.Tensor, Mapping[str, float]]:
        policy, _ = super().micro(batch, live)
        self.shapes = {name: tuple(live[name].shape) for name in self.names}
        mask = torch.from_numpy(batch.token("mask"))
        loss = self.actor * policy
        for name in self.names:
            loss = loss + (live[name][mask] - self.target).square().sum() / batch.counts.tokens
        if self.spoil:
            loss = loss + 0.0 * (live[self.spoil][mask] * 0.0).sqrt().sum()
        return loss, {}


def learner(*heads: ValueHead, seed: int = 0, **changes: Any) -> TorchLearner:
    settings = LearnerSettings(**{"micro_tokens": 80, "heads": heads, **changes})
    return TorchLearner(small_model(seed=seed), settings, total_steps=100)


def hidden(made: TorchLearner, batch: Batch) -> np.ndarray:
    """``[N, hidden]`` states behind every token."""
    with torch.no_grad():
        ids = torch.from_numpy(batch.token("ids").astype(np.int64))
        return made.policy.hidden_states(ids, pack_offsets(batch.offsets)).numpy()


def head_of(made: TorchLearner, name: str = "values") -> tuple[np.ndarray, np.ndarray]:
    parts = made.tensors()["heads"]
    return parts[f"{name}/weight"].numpy().copy(), parts[f"{name}/bias"].numpy().copy()


def outputs(made: TorchLearner, batch: Batch, name: str = "values", behind: bool = False) -> np.ndarray:
    """``[M, k]`` at the loss tokens, from the hidden states themselves."""
    where = np.flatnonzero(batch.token("mask")) - (0 if behind else 1)
    weight, bias = head_of(made, name)
    return hidden(made, batch)[where] @ weight.T + bias


def at(batch: Batch, column: str) -> np.ndarray:
    return batch.token(column)[batch.token("mask")]


# ---- columns ------------------------------------------------------------------------------------------------------------


def test_values_stand_at_the_token_that_is_chosen_there_or_behind_it():
    made, batch = learner(V, ValueHead(name="q", init=1.0, behind=True)), random_batch()
    filled = made.annotate(batch, Forward("values_old"), Forward("q_old"), Forward("logp_old"))
    np.testing.assert_allclose(at(filled, "values_old"), outputs(made, batch)[:, 0], atol=1e-5)
    np.testing.assert_allclose(at(filled, "q_old"), outputs(made, batch, "q", behind=True)[:, 0], atol=1e-5)
    assert np.abs(at(filled, "values_old")).min() > 0
    alone = made.annotate(batch, Forward("logp_old"))
    np.testing.assert_array_equal(filled.token("logp_old"), alone.token("logp_old"))
    assert (filled.tokens["q_old"].producer, filled.tokens["q_old"].version) == ("learner", 0)
    assert not filled.token("values_old")[~batch.token("mask")].any()
    np.testing.assert_array_equal(made.annotate(batch, Forward("values")).token("values"), filled.token("values_old"))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_one_pass_gives_what_several_give(precision):
    made, batch = learner(V, precision=precision), random_batch()
    wanted = [
        Forward("logp_old"),
        Forward("entropy_old"),
        Forward("values_old"),
        Forward("logp_ref", "ref"),
        Forward("logp_max_now", "policy", "step", MaxLogp()),
        Forward("logp_choice_now", "policy", "step", ChoiceLogp()),
    ]
    together = made.annotate(batch, *wanted)
    for forward in wanted:
        alone = made.annotate(batch, forward).token(forward.column)
        np.testing.assert_allclose(together.token(forward.column), alone, atol=1e-6)
        assert alone.dtype == np.float32
    assert (at(together, "logp_max_now") >= at(together, "logp_old") - 1e-6).all()
    # The frozen policy's favourite is the policy's own at the start.
    np.testing.assert_allclose(at(together, "logp_choice_now"), at(together, "logp_max_now"), atol=1e-6)


@pytest.mark.parametrize(
    ("head", "value"),
    [
        (V, lambda z: z[:, 0]),
        (replace(V, form="bernoulli", low=0.0, high=1.0), lambda z: Bce().value(torch.from_numpy(z[:, 0])).numpy()),
        (replace(V, form="bernoulli", low=-2.0, high=3.0), lambda z: -2 + 5 / (1 + np.exp(-z[:, 0]))),
        (
            replace(V, form="two_hot", outputs=5, low=-2.0, high=3.0),
            lambda z: TwoHot(low=-2.0, high=3.0, bins=5).value(torch.from_numpy(z)).numpy(),
        ),
        (
            replace(V, form="hl_gauss", outputs=7, low=-2.0, high=3.0),
            lambda z: HlGauss(low=-2.0, high=3.0, bins=7).value(torch.from_numpy(z)).numpy(),
        ),
    ],
)
def test_a_column_holds_values_and_the_gradient_pass_outputs(head, value):
    made, batch, critic = learner(head), random_batch(), Critic()
    z = outputs(made, batch)
    np.testing.assert_allclose(at(made.annotate(batch, Forward("values_old")), "values_old"), value(z), atol=1e-5)
    made.step(batch, BOTH, critic)
    assert critic.shapes["values"][1:] == (() if head.outputs == 1 else (head.outputs,))


def test_fits_and_heads_mean_the_same():
    for fit in (Bce(), TwoHot(), HlGauss(bins=7, low=-1.0, high=2.0)):
        form, count, low, high = fit.form
        assert ValueHead(form=form, outputs=count, low=low, high=high).spec == fit.form
    assert ValueHead().spec == ("scalar", 1, 0.0, 0.0)


def test_what_no_pass_gives_is_named():
    made = learner(V)
    for forward, says in (
        (Forward("values_ref", "ref"), "not 'values_ref' of 'ref'"),
        (Forward("values_old", "ref"), "values of its heads \\(values\\)"),
        (Forward("value_old"), "not 'value_old'"),
        (Forward("values_target"), r"target weights, and the head has none: use ValueHead\(name='values', tau=...\)"),
    ):
        with pytest.raises(PlanError, match=says):
            made.annotate(random_batch(), forward)
    with pytest.raises(PlanError, match=r"none, without LearnerSettings\(heads="):
        learner().annotate(random_batch(), Forward("values_old"))
    with pytest.raises(UnknownNameError, match="did you mean 'ref'"):
        made.annotate(random_batch(), Forward("logp_x", "rfe"))
    with pytest.raises(PlanError, match="logp_new and entropy and values only"):
        made.step(random_batch(), Plan(live=("logp_new", "value")), Weighted())


def test_a_statistic_and_a_head_share_the_gradient_pass():
    made, batch = learner(V), random_batch()
    plan, seen = Plan(live=("logp_new", "logp_max", "values"), vocab=(MaxLogp(),)), {}

    class Looks(Critic):
        def micro(self, batch, live):
            seen.update({name: values.detach() for name, values in live.items()})
            return super().micro(batch, live)

    made.step(batch, plan, Looks(actor=1.0))
    assert set(seen) == {"logp_new", "logp_max", "values"}
    assert bool((seen["logp_max"] >= seen["logp_new"] - 1e-5).all())
    plain = learner(V)
    plain.step(batch, BOTH, Critic(actor=1.0))
    for a, b in zip(made.parameters.values(), plain.parameters.values(), strict=True):
        np.testing.assert_allclose(a.detach(), b.detach(), atol=1e-4)


# ---- who learns ---------------------------------------------------------------------------------------------------------


def slopes(made: TorchLearner, loss: Critic, plan: Plan = BOTH) -> tuple[float, dict[str, float]]:
    """Gradient norms of one step: the policy's, and each head's."""
    metrics = made.step(random_batch(), plan, loss).metrics
    return metrics["grad/norm"], {
        k.removeprefix("grad/"): v for k, v in metrics.items() if k.startswith("grad/") and "norm" not in k
    }


def test_a_detached_critic_teaches_the_policy_nothing():
    made = learner(replace(V, detach=True))
    before = made.publish()
    policy, heads = slopes(made, Critic())
    assert policy == 0
    assert heads["values"] > 0
    assert [t.digest for t in made.publish().tensors.values()] == [t.digest for t in before.tensors.values()]
    attached, again = slopes(learner(V), Critic())
    assert attached > 0
    assert again == heads  # what the head itself learns is the same


def test_the_actor_teaches_the_critic_nothing():
    made = learner(V)
    before = head_of(made)
    policy, heads = slopes(made, Critic(names=(), actor=1.0))
    assert policy > 0
    assert heads == {"values": 0.0}
    np.testing.assert_array_equal(head_of(made)[0], before[0])


def test_a_heads_gradient_is_that_of_its_loss():
    made, batch = learner(V, clip_norm=0.0), random_batch()
    z, where = outputs(made, batch)[:, 0], np.flatnonzero(batch.token("mask")) - 1
    norm = made.step(batch, BOTH, Critic()).metrics["grad/values"]
    error = 2 * (z - 1) / batch.counts.tokens
    wanted = np.append(error @ hidden(learner(V), batch)[where], error.sum())
    assert norm == pytest.approx(float(np.linalg.norm(wanted)), rel=1e-4)


@pytest.mark.parametrize("micro_tokens", [30, 4000])
def test_the_trunk_learns_from_heads_on_both_sides_of_a_token(micro_tokens):
    """Against autograd on a plain pass over each row by itself."""
    heads, batch = (V, ValueHead(name="q", init=1.0, behind=True), ValueHead(name="d", init=1.0, detach=True)), random_batch()
    made, total = learner(*heads), 0.0
    weights = {name: [torch.from_numpy(x) for x in head_of(made, name)] for name in ("values", "q", "d")}
    for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        ids = torch.from_numpy(batch.token("ids")[a:b].astype(np.int64))
        states = made.policy.hidden_states(ids, pack_offsets(np.array([0, b - a])))
        keep = torch.from_numpy(batch.token("mask")[a:b])
        for name, seen in (("values", states[:-1]), ("q", states[1:]), ("d", states[:-1].detach())):
            value = (seen @ weights[name][0].T + weights[name][1])[:, 0]
            total = total + ((value - 1).square() * keep[1:]).sum() / batch.counts.tokens
        logp = torch.log_softmax(states[:-1] @ made.policy.head.weight.T, 1).gather(1, ids[1:, None])[:, 0]
        advantage = torch.from_numpy(batch.token("advantage")[a + 1 : b])
        total = total - (advantage * logp * keep[1:]).sum() / batch.counts.tokens
    wanted = torch.cat([g.flatten() for g in torch.autograd.grad(total, list(made.parameters.values()))])
    made = learner(*heads, clip_norm=0.0, micro_tokens=micro_tokens)
    plan = Plan(live=("logp_new", "values", "q", "d"))
    metrics = made.step(batch, plan, Critic(names=("values", "q", "d"), actor=1.0)).metrics
    assert metrics["loss/total"] == pytest.approx(float(total.detach()), rel=1e-5)
    assert (made.gradient.buffer - wanted).abs().max() < 1e-5 * wanted.abs().max()


def test_a_policy_with_a_detached_critic_is_the_policy_without():
    alone, beside = learner(), learner(replace(V, detach=True))
    for seed in range(3):
        alone.step(random_batch(seed=seed), Plan(), Weighted())
        beside.step(random_batch(seed=seed), replace(BOTH, skip=False), Critic(actor=1.0))
    assert alone.publish() == beside.publish()
    assert set(alone.tensors()) == {"weights", "optimizer", "anchors"}
    assert not any("values" in name for name in beside.publish().tensors)


def test_a_critic_learns_what_it_is_told():
    made = learner(ValueHead(detach=True, optimizer=AdamW(lr=0.05)))
    losses = [made.step(random_batch(), BOTH, Critic()).metrics["loss/total"] for _ in range(60)]
    assert losses[0] == pytest.approx(1.0)  # every value starts at 0
    assert losses[-1] < 0.05


# ---- how they move ------------------------------------------------------------------------------------------------------


def test_target_weights_follow_slowly():
    """tau .1 from 0 to 1: .1, .19, .271."""
    made = learner(ValueHead(tau=0.1, optimizer=AdamW(lr=0.0)))
    made.tensors()["heads"]["values/bias"].fill_(1.0)
    found = []
    for _ in range(3):
        made.step(random_batch(), BOTH, Critic())
        found.append(float(made.tensors()["heads"]["values/target/bias"]))
    np.testing.assert_allclose(found, [0.1, 0.19, 0.271], atol=1e-6)
    batch = made.annotate(random_batch(), Forward("values_now"), Forward("values_target"))
    np.testing.assert_allclose(at(batch, "values_now"), 1.0)
    np.testing.assert_allclose(at(batch, "values_target"), 0.271, atol=1e-6)


def test_a_step_reads_targets_of_before_it():
    class Reads(Critic):
        def prepare(self, batch):
            self.read = at(batch, "values_target").copy()
            return batch

    made, program = learner(ValueHead(tau=1.0)), Reads()
    plan = replace(BOTH, forwards=(Forward("values_target", "policy", "step"), Forward("values_old")))
    made.step(random_batch(), plan, program)
    assert not program.read.any()
    made.step(random_batch(), plan, program)
    assert program.read.any()


def test_periods_of_heads_and_policy():
    heads = (replace(V, period=2, tau=0.5), ValueHead(name="often", init=1.0))
    made = learner(*heads, policy_after=2, policy_every=3)
    plan, moved = Plan(live=("logp_new", "values", "often")), []
    for _ in range(7):
        state = (head_of(made)[0], head_of(made, "often")[0], made.parameters["model.norm.weight"].detach().clone().numpy())
        rate = made.step(random_batch(), plan, Critic(names=("values", "often"), actor=1.0)).metrics["lr"]
        after = (head_of(made)[0], head_of(made, "often")[0], made.parameters["model.norm.weight"].detach().numpy())
        moved.append([not np.array_equal(a, b) for a, b in zip(state, after, strict=True)])
        assert (rate > 0) == moved[-1][2]
    assert [m[0] for m in moved] == [False, True] * 3 + [False]
    assert all(m[1] for m in moved)
    assert [m[2] for m in moved] == [False, False, True, False, False, True, False]
    assert made.version == 7


def test_heads_start_at_their_middle_or_apart():
    batch = random_batch()
    for head, middle in (
        (ValueHead(), 0.0),
        (ValueHead(form="bernoulli", low=0.0, high=4.0), 2.0),
        (ValueHead(form="two_hot", outputs=3, low=1.0, high=2.0), 1.5),
    ):
        np.testing.assert_allclose(at(learner(head).annotate(batch, Forward("values_old")), "values_old"), middle, atol=1e-6)
    two = learner(ValueHead(name="a", init=1.0), ValueHead(name="b", init=1.0))
    assert np.abs(head_of(two, "a")[0] - head_of(two, "b")[0]).max() > 0.01
    assert np.linalg.norm(head_of(two, "a")[0]) == pytest.approx(1.0, abs=0.4)
    np.testing.assert_array_equal(head_of(learner(V, seed=3))[0], head_of(learner(V))[0])


def test_a_heads_gradient_is_clipped_by_itself():
    loose, tight = (learner(replace(V, detach=True), clip_norm=c) for c in (0.0, 1e-3))
    norms = [made.step(random_batch(), BOTH, Critic()).metrics["grad/values"] for made in (loose, tight)]
    assert norms[0] == norms[1] > 1e-3
    assert float(torch.linalg.vector_norm(tight.heads._heads["values"].gradient)) == pytest.approx(1e-3, rel=1e-3)
    assert float(torch.linalg.vector_norm(loose.heads._heads["values"].gradient)) == pytest.approx(norms[0])


@pytest.mark.parametrize("spoil", ["values", "logp_new"])
def test_what_is_not_finite_changes_nothing(spoil):
    made = learner(replace(V, detach=True, tau=0.1))
    made.step(random_batch(), BOTH, Critic(actor=1.0))
    before = made.state_digest()
    with pytest.raises(NonFiniteError, match="gradient of values/" if spoil == "values" else "gradient of model"):
        made.step(random_batch(), BOTH, Critic(actor=1.0, spoil=spoil))
    assert made.state_digest() == before


def test_a_loss_that_is_not_finite_names_a_heads_weight():
    made = learner(V)
    made.tensors()["heads"]["values/bias"].fill_(float("nan"))
    with pytest.raises(NonFiniteError, match="first bad quantity: weight values/bias"):
        made.step(random_batch(), BOTH, Critic())


# ---- trunks -------------------------------------------------------------------------------------------------------------

TRUNK = Trunk()
ON = ValueHead(name="b", init=1.0, trunk="critic")


def trunk_weights(made: TorchLearner) -> dict[str, np.ndarray]:
    head = made.tensors()["heads"]
    return {n: t.numpy().copy() for n, t in head.items() if n.startswith("critic/") and not n.startswith("critic/target/")}


def test_a_trunk_begins_as_the_policy_and_only_its_heads_losses_move_it():
    made, batch = learner(V, ON, trunks=(TRUNK,)), random_batch()
    whole = {f"critic/{n}": p.detach().numpy().copy() for n, p in made.policy.named_parameters() if n != "lm_head.weight"}
    assert trunk_weights(made).keys() == whole.keys()
    assert all((trunk_weights(made)[n] == w).all() for n, w in whole.items())
    filled = made.annotate(batch, Forward("values_old"), Forward("b_old"), Forward("logp_old"))
    np.testing.assert_allclose(at(filled, "b_old"), outputs(made, batch, "b")[:, 0], atol=1e-5)
    # the policy's loss and that of the head on its states leave the trunk alone
    made.step(batch, Plan(live=("logp_new", "values", "b")), Critic(actor=1.0))
    assert all((trunk_weights(made)[n] == w).all() for n, w in whole.items())
    # its own head's loss moves all of it, and nothing of the policy
    other = learner(ON, trunks=(TRUNK,))
    start = {n: p.detach().clone() for n, p in other.policy.named_parameters()}
    stats = other.step(batch, Plan(live=("logp_new", "b")), Critic(names=("b",))).metrics
    assert stats["grad/critic"] > 0 and stats["grad/b"] > 0 and stats["grad/norm"] == 0
    now = trunk_weights(other)
    assert all((now[n] != w).any() for n, w in whole.items())
    assert all(torch.equal(p, start[n]) for n, p in other.policy.named_parameters())
    assert not any("critic" in name for name in other.publish().tensors)


def test_a_detached_head_learns_from_a_trunk_that_another_teaches():
    batch, taught = random_batch(), learner(ON, trunks=(TRUNK,))
    both = learner(ON, replace(ON, name="d", detach=True), trunks=(TRUNK,))
    taught.step(batch, Plan(live=("logp_new", "b")), Critic(names=("b",)))
    both.step(batch, Plan(live=("logp_new", "b", "d")), Critic(names=("b", "d")))
    assert all((trunk_weights(both)[n] == w).all() for n, w in trunk_weights(taught).items())
    assert (head_of(both, "d")[0] != head_of(learner(*both.settings.heads, trunks=(TRUNK,)), "d")[0]).any()


def test_a_policy_that_moves_does_not_take_its_critics_states_along():
    made, batch = learner(V, ON, trunks=(TRUNK,), policy_every=1), random_batch()
    before = made.annotate(batch, Forward("b_now"), Forward("values_now"))
    made.step(batch, BOTH, Critic(names=(), actor=1.0))
    after = made.annotate(batch, Forward("b_now"), Forward("values_now"))
    np.testing.assert_array_equal(before.token("b_now"), after.token("b_now"))
    assert (at(before, "values_now") != at(after, "values_now")).any()


def test_target_weights_of_a_head_read_those_of_its_trunk():
    on = replace(ON, tau=0.5)
    lone, both = (learner(on, trunks=(replace(TRUNK, tau=tau),)) for tau in (0.0, 0.5))
    batch = random_batch()
    for made in (lone, both):
        made.step(batch, Plan(live=("logp_new", "b")), Critic(names=("b",)))
    kept, moved = trunk_weights(learner(on, trunks=(TRUNK,))), trunk_weights(both)
    found = both.tensors()["heads"]
    for name, weight in moved.items():
        expected = torch.from_numpy(kept[name]).lerp(torch.from_numpy(weight), 0.5)
        torch.testing.assert_close(found[name.replace("critic/", "critic/target/")], expected)
    target, alone = (m.annotate(batch, Forward("b_target"), Forward("b_now")) for m in (both, lone))
    np.testing.assert_array_equal(target.token("b_now"), alone.token("b_now"))
    assert (at(target, "b_target") != at(alone, "b_target")).any()
    for key, tensor in found.items():  # with both target weights those of now, target and present values are one
        if "/target/" in key:
            tensor.copy_(found[key.replace("/target/", "/")])
    same = both.annotate(batch, Forward("b_target"), Forward("b_now"))
    np.testing.assert_array_equal(same.token("b_target"), same.token("b_now"))


def test_a_trunk_moves_by_its_own_optimiser_and_period():
    batch = random_batch()
    made = learner(ON, trunks=(Trunk(period=2, optimizer=AdamW(lr=0.0)),))
    start = trunk_weights(made)
    for _ in range(2):
        made.step(batch, Plan(live=("logp_new", "b")), Critic(names=("b",)))
    assert all((trunk_weights(made)[n] == w).all() for n, w in start.items())
    for period, moved in ((1, True), (2, False)):
        made = learner(ON, trunks=(Trunk(period=period, optimizer=Muon()),))
        made.step(batch, Plan(live=("logp_new", "b")), Critic(names=("b",)))
        assert any((trunk_weights(made)[n] != w).any() for n, w in start.items()) == moved


def test_a_later_stage_takes_trunk_and_heads_over():
    first, batch = learner(ON, trunks=(replace(TRUNK, tau=0.0),)), random_batch()
    first.step(batch, Plan(live=("logp_new", "b")), Critic(names=("b",)))
    second = learner(ON, V, trunks=(TRUNK,), seed=5)
    second.heads.load_heads(first.heads.export_heads())
    assert all((trunk_weights(second)[n] == w).all() for n, w in trunk_weights(first).items())
    assert (head_of(second, "b")[0] == head_of(first, "b")[0]).all()
    on_policy = learner(replace(ON, trunk=""), seed=5)  # the same head on other states means another thing
    on_policy.heads.load_heads(first.heads.export_heads())
    assert (head_of(on_policy, "b")[0] != head_of(first, "b")[0]).any()


# ---- state --------------------------------------------------------------------------------------------------------------

TRUNKS = (Trunk(tau=0.2, period=2), Trunk(name="other", optimizer=Muon()))
MANY = (
    replace(V, tau=0.1),
    replace(ON, tau=0.3),
    ValueHead(name="o", trunk="other", behind=True, init=1.0),
    ValueHead(name="q", behind=True, form="hl_gauss", outputs=5, optimizer=AdamW(lr=0.01, weight_decay=0.1), init=0.5),
    ValueHead(name="slow", detach=True, period=3, init=1.0),
)
NAMES = ("values", "b", "o", "q", "slow")
ALL = Plan(
    live=("logp_new", *NAMES), forwards=(Forward("values_target", "policy", "step"), Forward("b_target", "policy", "step"))
)
FILES = [
    "anchors.safetensors",
    "heads.safetensors",
    "heads_optimizer.safetensors",
    "learner.json",
    "optimizer.safetensors",
    "weights.safetensors",
]


def trained(steps: int = 4, **changes: Any) -> TorchLearner:
    made = learner(*MANY, trunks=TRUNKS, policy_after=1, policy_every=2, **changes)
    for seed in range(steps):
        made.step(random_batch(seed=seed), ALL, Critic(names=NAMES, actor=1.0))
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """The checkpoint of a trained learner, to read or to copy."""
    folder = tmp_path_factory.mktemp("saved")
    trained().save(folder)
    return folder


@pytest.mark.parametrize(
    ("steps", "changes"),
    [(0, {}), (2, {"optimizer": Muon()}), (4, {"precision": "bf16"})]
    + [
        pytest.param(steps, changes, marks=pytest.mark.prove)
        for steps, changes in product([0, 2, 4], [{}, {"optimizer": Muon()}, {"precision": "bf16"}])
    ],
)
def test_a_learner_with_heads_continues_bit_for_bit(steps, changes, tmp_path):
    first = trained(steps, **changes)
    first.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    second = learner(*MANY, trunks=TRUNKS, policy_after=1, policy_every=2, seed=9, **changes)
    second.tensors()["heads"]["values/target/bias"].fill_(3.0)
    assert second.state_digest() != first.state_digest()
    second.load(tmp_path)
    assert second.state_digest() == first.state_digest()
    for seed in range(5, 8):
        a, b = (m.step(random_batch(seed=seed), ALL, Critic(names=NAMES, actor=1.0)).metrics for m in (first, second))
        assert {k: v for k, v in a.items() if "time/" not in k} == {k: v for k, v in b.items() if "time/" not in k}
    assert second.state_digest() == first.state_digest()


def test_every_part_of_the_state_is_in_the_digest():
    made = trained()
    before = made.state_digest()
    for part, tensors in made.tensors().items():
        names = list(tensors)
        for name, tensor in ((n, tensors[n]) for n in dict.fromkeys((names[0], names[len(names) // 2], names[-1]))):
            kept = tensor.clone()
            tensor.add_(1.0)
            assert made.state_digest() != before, (part, name)
            tensor.copy_(kept)
    assert made.state_digest() == before


@pytest.mark.parametrize(
    ("heads", "trunks", "says"),
    [
        ((), (), "heads is {.*} there and None here"),
        ((V, *MANY[1:]), TRUNKS, "heads is"),
        ((replace(MANY[0], name="another"), *MANY[1:]), TRUNKS, "heads is"),
        ((*MANY[:3], replace(MANY[3], low=-1.0), MANY[4]), TRUNKS, "heads is"),
        ((*MANY[:3], replace(MANY[3], behind=False), MANY[4]), TRUNKS, "heads is"),
        (MANY[:4], TRUNKS, "heads is"),
        ((MANY[0], replace(MANY[1], trunk="other"), *MANY[2:]), TRUNKS[1:], "heads is"),
        (MANY, (replace(TRUNKS[0], tau=0.0), TRUNKS[1]), "heads is"),
        (MANY, (TRUNKS[0], replace(TRUNKS[1], optimizer=AdamW())), "heads is"),
    ],
)
def test_a_checkpoint_of_other_heads_is_refused(heads, trunks, says, saved):
    stranger = learner(*heads, trunks=trunks)
    before = stranger.state_digest()
    with pytest.raises(CheckpointError, match=says):
        stranger.load(saved)
    assert stranger.state_digest() == before


def test_a_checkpoint_without_heads_is_refused(tmp_path):
    learner().save(tmp_path)
    with pytest.raises(CheckpointError, match="heads is None there and"):
        trained().load(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["heads", "heads_optimizer"])
@pytest.mark.parametrize("how", ["missing", "unknown", "shape", "file"])
def test_foreign_tensors_of_heads_are_refused_and_change_nothing(part, how, saved, tmp_path):
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    path = tmp_path / f"{part}.safetensors"
    tensors = load_file(path)
    name = "values/bias" if part == "heads" else "values/exp_avg/bias"
    if how == "missing":
        del tensors[name]
    elif how == "unknown":
        tensors["stranger/bias"] = np.zeros(1, np.float32)
    else:
        tensors[name] = np.zeros(7, np.float32)
    save_file(tensors, path)
    if how == "file":
        path.unlink()
    else:
        redigest(tmp_path, part)
    made = trained(2)
    before = made.state_digest()
    says = {"unknown": "stranger", "file": f"{part}.safetensors is missing"}.get(how, name.removeprefix("values/exp_avg/"))
    with pytest.raises(CheckpointError, match=says):
        made.load(tmp_path)
    assert made.state_digest() == before


def test_a_learner_without_heads_writes_what_it_always_wrote(tmp_path):
    learner().save(tmp_path)
    names = ["anchors.safetensors", "learner.json", "optimizer.safetensors", "weights.safetensors"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert '"heads"' not in (tmp_path / "learner.json").read_text()
    shutil.rmtree(tmp_path)


# ---- settings -----------------------------------------------------------------------------------------------------------


def test_bad_heads_are_named():
    for make, says in (
        (lambda: ValueHead(name="logp_v"), "names a column of its own"),
        (lambda: ValueHead(name="returns"), "names a column"),
        (lambda: ValueHead(name="values_old"), "names a column"),
        (lambda: ValueHead(name="a/b"), "names a column"),
        (lambda: ValueHead(form="scaler"), "did you mean 'scalar'"),
        (lambda: ValueHead(outputs=2), "have two outputs or more"),
        (lambda: ValueHead(form="two_hot"), "have two outputs or more"),
        (lambda: ValueHead(outputs=0), "'scalar' and 'bernoulli' one"),
        (lambda: ValueHead(low=1.0), "low below high"),
        (lambda: ValueHead(init=-1.0), "ValueHead.init=-1.0"),
        (lambda: ValueHead(period=0), "ValueHead.period=0"),
        (lambda: ValueHead(tau=1.5), "ValueHead.tau=1.5"),
        (lambda: LearnerSettings(heads=(V, V)), "a name of its own"),
        (lambda: LearnerSettings(heads=(V, ON), trunks=(Trunk(name="values"), TRUNK)), "a name of its own"),
        (lambda: LearnerSettings(heads=(ON,)), r"trunks are \[\]; give trunks=\(Trunk\(name='critic'\),\)"),
        (lambda: LearnerSettings(heads=(V,), trunks=(TRUNK,)), "no head teaches it"),
        (lambda: LearnerSettings(heads=(replace(ON, detach=True),), trunks=(TRUNK,)), "no head teaches it"),
        (lambda: LearnerSettings(heads=(ON,), trunks=(replace(TRUNK, tau=0.1),)), "none of its heads has target weights"),
        (lambda: Trunk(name="a/b"), "Trunk.name='a/b' is no word"),
        (lambda: Trunk(tau=2.0), "Trunk.tau=2.0"),
        (lambda: Trunk(period=0), "Trunk.period=0"),
        (lambda: LearnerSettings(policy_after=3), "without heads nothing would move"),
        (lambda: LearnerSettings(policy_every=2), "without heads"),
        (lambda: LearnerSettings(heads=(V,), policy_every=0), "policy_every=0"),
        (lambda: LearnerSettings(heads=(V,), policy_after=-1), "policy_after=-1"),
    ):
        with pytest.raises(ConfigError, match=says):
            make()


def test_settings_offer_their_heads():
    settings = LearnerSettings(heads=(V, ValueHead(name="q")))
    assert settings.offers.live == ("logp_new", "entropy", "values", "q")
    assert settings.offers.models == LearnerSettings().offers.models


def test_heads_are_written_to_a_file_and_read_back():
    settings = LearnerSettings(heads=MANY, trunks=TRUNKS, policy_after=2, policy_every=3)
    assert from_dict(LearnerSettings, loads_toml(dumps_toml(to_dict(settings)))) == settings
    assert from_dict(LearnerSettings, {"micro_tokens": 7}) == LearnerSettings(micro_tokens=7)


@pytest.mark.parametrize("settings", [ValueHead(), ValueHead(form="bernoulli"), ValueHead(form="two_hot", outputs=5)])
def test_a_heads_outputs_stay_where_the_states_are(settings, monkeypatch):
    """States of a micro-batch are the largest thing there is besides logits: they do not travel to another device for a few
    numbers each."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # there is none on the device that computes nothing
    head = LinearHead(settings, 8, AdamW())
    weights = {n: p.detach().to("meta") for n, p in head.parameters.items()}
    states = torch.empty(4, 8, device="meta")
    outputs = head.outputs((states, states), weights)
    assert outputs.device.type == head.values(outputs).device.type == "meta"
    assert outputs.shape == (4, settings.outputs) and head.values(outputs).shape == (4,)

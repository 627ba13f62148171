"""Anchors: what moves when, which version a column carries, other models as teachers, privileged prompts, exact resume."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from learner_cases import SHAPE, Weighted, random_batch, small_model

from assay.core.batch import pack_rows
from assay.core.columns import TokenColumn
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError, DataError, UnknownNameError
from assay.core.plan import Forward, Plan
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.objective.loss.vocab_divergence import FullKl
from assay.runtime import Anchor, Ema, Every, Frozen
from assay.runtime.anchors import check_vocabulary
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.model import init_model
from assay.runtime.settings import AdamW, LearnerSettings, ValueHead
from assay.runtime.text.tokenizer import char_tokenizer

MOVING = (Anchor(), Anchor("reset", refresh=Every(steps=2)), Anchor("ema", refresh=Ema(decay=0.75)))
LARGE = replace(SHAPE, hidden_size=32, num_layers=1, tied=False, max_positions=64)


def learner(*anchors, models=None, version=0, seed=0, **changes):
    settings = LearnerSettings(**{"anchors": anchors, "micro_tokens": 80, "optimizer": AdamW(lr=0.01), **changes})
    return TorchLearner(small_model(seed=seed), settings, total_steps=100, models=models, version=version)


def weights(made, name="policy"):
    decoder = made.policy if name == "policy" else made.anchors[name]
    return {n: p.detach().clone() for n, p in decoder.named_parameters()}


def equal(a, b):
    return all(torch.equal(a[n], b[n]) for n in a)


def stepped(made, count=1, first=0):
    for seed in range(first, first + count):
        made.step(random_batch(seed=seed), Plan(), Weighted())


# ---- settings -----------------------------------------------------------------------------------------------------------


def test_by_default_there_is_the_frozen_reference():
    assert LearnerSettings().anchors == (Anchor("ref", refresh=Frozen(), model=""),)
    settings = LearnerSettings(anchors=(*MOVING, Anchor("t", model="runs/t")))
    assert settings.offers.models == ("policy", "ref", "reset", "ema", "t")
    assert from_dict(LearnerSettings, loads_toml(dumps_toml(to_dict(settings)))) == settings


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Anchor("policy"), r"Anchor.name='policy'.*use a word such as 'ref'"),
        (lambda: Anchor("old"), "Anchor.name='old'"),
        (lambda: Anchor("mean"), "Anchor.name='mean'"),
        (lambda: Anchor("a/b"), "Anchor.name='a/b'"),
        (lambda: Anchor(""), "Anchor.name=''"),
        (lambda: Anchor("base", refresh=Every(steps=1)), r"Anchor\('base'\) is what the stage started from, frozen"),
        (lambda: Anchor("base", model="x"), r"Anchor\('base'\)"),
        (lambda: Every(steps=0), "Every.steps=0"),
        (lambda: Ema(decay=1.0), r"Ema.decay=1.0.*Frozen\(\)"),
        (lambda: Ema(decay=-0.1), "Ema.decay=-0.1"),
        (lambda: Ema(decay=0.5, every=0), "Ema.every=0"),
        (lambda: LearnerSettings(anchors=(Anchor(), Anchor(refresh=Every(steps=2)))), r"anchors are called \['ref', 'ref'\]"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_shares_and_whether_anchors_rest_within_a_batch():
    assert [Every(steps=3).share(k, k + 1) for k in range(6)] == [0, 0, 1, 0, 0, 1]
    assert Every(steps=3).share(1, 8) == 1.0
    assert [Ema(decay=0.9, every=2).share(k, k + 1) for k in range(4)] == pytest.approx([0, 0.1, 0, 0.1])
    assert Ema(decay=0.9).share(4, 7) == pytest.approx(1 - 0.9**3)
    assert Frozen().share(0, 9) == 0.0
    rests = [r.rests(2) for r in (Frozen(), Every(steps=4), Every(steps=3), Ema(decay=0.5), Ema(decay=0.5, every=2))]
    assert rests == [True, True, False, False, True]


# ---- who moves when --------------------------------------------------------------------------------------------------------


def test_each_anchor_moves_by_its_own_rule():
    made = learner(*MOVING)
    start, mean = weights(made), weights(made)
    for k in range(5):
        stepped(made, first=k)
        now = weights(made)
        assert equal(weights(made, "ref"), start)
        assert equal(weights(made, "reset"), now) == (k % 2 == 1)
        mean = {n: 0.75 * mean[n] + 0.25 * now[n] for n in now}
        for name, value in weights(made, "ema").items():
            torch.testing.assert_close(value, mean[name], atol=1e-6, rtol=1e-5)
        assert made.anchors.versions == {"ref": 0, "reset": (k + 1) // 2 * 2, "ema": k + 1}
    assert not equal(weights(made, "ema"), weights(made))


def test_steps_that_found_nothing_to_learn_from_count():
    made = learner(*MOVING)
    stepped(made)
    made.skip(1)
    assert equal(weights(made, "reset"), weights(made))
    assert made.anchors.versions == {"ref": 0, "reset": 1, "ema": 1}
    before, now = weights(made, "ema"), weights(made)
    made.skip(2)
    for name, value in weights(made, "ema").items():
        torch.testing.assert_close(value, 0.75**2 * before[name] + (1 - 0.75**2) * now[name], atol=1e-6, rtol=1e-5)


def test_a_column_carries_the_version_of_its_weights():
    made = learner(*MOVING, Anchor("t", model="t"), models={"t": small_model(seed=5)}, version=7)
    stepped(made, 3)
    asked = [Forward("logp_old"), *(Forward(f"logp_{n}", n) for n in ("ref", "reset", "ema", "t"))]
    filled = made.annotate(random_batch(), *asked)
    versions = {n: filled.tokens[n].version for n in ("logp_old", "logp_ref", "logp_reset", "logp_ema", "logp_t")}
    assert versions == {"logp_old": 10, "logp_ref": 7, "logp_reset": 9, "logp_ema": 10, "logp_t": -1}


class Remembers(Weighted):
    def prepare(self, batch):
        self.batch = batch
        return batch


def test_a_column_is_never_older_than_its_anchor():
    """A reference that is reset between two updates of a rollout batch: the second update reads the new one."""
    made, batch = learner(*MOVING), random_batch()
    names = ("ref", "reset", "ema")
    plan = Plan(forwards=tuple(Forward(f"logp_{n}", n) for n in names))
    batch = made.annotate(batch, *plan.forwards)
    user = TokenColumn("logp_ema", np.full_like(batch.token("logp_ema"), -9.0), "user")
    programs = [Remembers(), Remembers(), Remembers(), Remembers()]
    for program, given in zip(programs, (batch, batch, batch, batch.with_tokens(user)), strict=True):
        made.step(given, plan, program)
    seen = [p.batch for p in programs]
    assert [b.tokens["logp_ref"].version for b in seen] == [0, 0, 0, 0]
    assert [b.tokens["logp_reset"].version for b in seen] == [0, 0, 2, 2]
    assert [b.tokens["logp_ema"].version for b in seen] == [0, 1, 2, -1]
    assert seen[1].token("logp_ref") is batch.token("logp_ref")  # what did not move is not computed again
    assert not np.array_equal(seen[2].token("logp_reset"), batch.token("logp_reset"))
    assert seen[3].token("logp_ema") is user.values  # nor what rows bring


def test_a_statistic_that_reads_the_policy_too_is_left_as_it_was():
    made, batch = learner(*MOVING), random_batch()
    plan = Plan(forwards=(Forward("gap", "ema", "batch", FullKl("policy")),))
    batch, program = made.annotate(batch, *plan.forwards), Remembers()
    made.step(batch, plan, program)
    made.step(batch, plan, program)
    assert program.batch.token("gap") is batch.token("gap")


# ---- other models ----------------------------------------------------------------------------------------------------------


def test_a_teacher_of_another_shape_scores_the_same_tokens():
    teacher = small_model(LARGE, seed=3)
    made, batch = learner(Anchor(), Anchor("teacher", model="t"), models={"t": teacher}), random_batch()
    alone = TorchLearner(teacher, LearnerSettings(anchors=()), total_steps=1)
    filled = made.annotate(batch, Forward("logp_teacher", "teacher"), Forward("kl", "policy", "batch", FullKl("teacher")))
    own = alone.annotate(batch, Forward("logp_old")).token("logp_old")
    np.testing.assert_allclose(filled.token("logp_teacher"), own, atol=1e-6)
    assert (filled.token("kl")[batch.token("mask")] > 0).all()
    rows = [batch.token("ids")[:6].astype(np.int32)]
    np.testing.assert_allclose(made.score(rows, "teacher")[0], alone.score(rows)[0], atol=1e-6)


def test_a_model_that_starts_elsewhere_can_follow_the_policy():
    made = learner(Anchor("mask", model="m", refresh=Every(steps=2)), models={"m": small_model(seed=4)})
    assert not equal(weights(made, "mask"), weights(made))
    stepped(made, 2)
    assert equal(weights(made, "mask"), weights(made))
    assert made.anchors.versions == {"mask": 2}


@pytest.mark.parametrize(
    ("model", "refresh", "message"),
    [
        (init_model(SHAPE, char_tokenizer("0123456789>ab"), 0), Frozen(), "knows 15 ids, the policy's 13"),
        (init_model(SHAPE, char_tokenizer("9876543210>"), 0), Frozen(), "other ids to the same texts"),
        (small_model(replace(SHAPE, vocab_size=24)), Frozen(), "its head has 24 rows, the policy's 16"),
        (small_model(LARGE), Ema(decay=0.9), r"Ema\(decay=0.9, every=1\) follows the policy.*same shape"),
    ],
)
def test_models_whose_tokens_mean_something_else_are_refused(model, refresh, message):
    anchor = Anchor("teacher", model="t", refresh=refresh)
    with pytest.raises(ConfigError, match=message):
        check_vocabulary(anchor, small_model(), model)
    with pytest.raises(ConfigError, match=r"Anchor\('teacher', model='t'\).*" + message):
        learner(anchor, models={"t": model})


def test_a_model_that_was_not_given_and_one_with_a_short_context():
    with pytest.raises(ConfigError, match=r"Anchor\('teacher'\) starts from 'runs/t'.*models="):
        learner(Anchor("teacher", model="runs/t"))
    short = small_model(replace(SHAPE, max_positions=8))
    made = learner(Anchor("teacher", model="t"), models={"t": short})
    with pytest.raises(DataError, match=r"the context of 'teacher' \(DecoderShape.max_positions\) is 8"):
        made.annotate(random_batch(), Forward("logp_teacher", "teacher"))
    with pytest.raises(UnknownNameError, match="did you mean 'teacher'"):
        made.score([], "teachr")


# ---- privileged prompts ------------------------------------------------------------------------------------------------------


def posed(rows=6, lone=None):
    """Rows with a prompt of 2 to 4 tokens and a privileged one of 1 to 6, and the rows that the privileged reader sees."""
    rng = generator("privileged", 0)
    made, other, prompts, secrets = [], [], [], []
    for i in range(rows):
        prompt, secret = (rng.integers(0, SHAPE.vocab_size, n).astype(np.int32) for n in (rng.integers(2, 5), 1 + i))
        said = rng.integers(0, SHAPE.vocab_size, 5).astype(np.int32)
        tail = np.array([True, True, False, True, True])  # a tool's word in between
        for out, start in ((made, prompt), (other, secret)):
            ids, mask = np.concatenate([start, said]), np.concatenate([np.zeros(len(start), bool), tail])
            advantage = TokenColumn("advantage", np.ones(len(ids), np.float32))
            out.append((i, Sample(rollout=str(i), ids=ids, mask=mask, columns={"advantage": advantage})))
        prompts.append(len(prompt))
        secrets.append(secret)
    table = {"group": np.arange(rows)}
    privileged = np.full((rows, max(map(len, secrets))), -1, np.int32)
    for i, secret in enumerate(secrets):
        privileged[i, : len(secret)] = secret if i != lone else -1
    batch = pack_rows(made, table)
    return replace(batch, rows={**batch.rows, "prompt": np.array(prompts), "privileged": privileged}), pack_rows(other, table)


def test_a_privileged_anchor_reads_the_same_tokens_behind_another_prompt():
    made = learner(Anchor("privileged", refresh=Every(steps=1), privileged=True))
    batch, other = posed()
    stats = (FullKl("privileged", label="kl"), FullKl("policy", label="back"))
    filled = made.annotate(
        batch,
        Forward("logp_privileged", "privileged"),
        Forward("kl", "policy", "batch", stats[0]),
        Forward("back", "privileged", "batch", stats[1]),
        Forward("logp_old"),
    )
    here, there = batch.token("mask"), other.token("mask")
    expected = made.annotate(other, Forward("logp_old")).token("logp_old")
    np.testing.assert_allclose(filled.token("logp_privileged")[here], expected[there], atol=1e-6)
    assert not filled.token("logp_privileged")[~here].any()
    assert np.abs(filled.token("logp_privileged") - filled.token("logp_old"))[here].max() > 1e-3
    ours, theirs = (logits(made, b) for b in (batch, other))
    ours, theirs = ours[here].log_softmax(1), theirs[there].log_softmax(1)
    np.testing.assert_allclose(filled.token("kl")[here], (ours.exp() * (ours - theirs)).sum(1), atol=1e-5)
    np.testing.assert_allclose(filled.token("back")[here], (theirs.exp() * (theirs - ours)).sum(1), atol=1e-5)


def logits(made, batch):
    """``[N, V]`` of the distribution that each token was drawn from."""
    with torch.no_grad():
        found = made.policy.logits(torch.from_numpy(batch.token("ids").astype(np.int64)), batch.offsets)
    return torch.cat([found[:1], found[:-1]])


def test_the_gradient_towards_a_privileged_distribution_does_not_depend_on_micro_batches():
    norms = []
    for micro_tokens in (16, 10_000):
        made = learner(Anchor("privileged", refresh=Every(steps=1), privileged=True), micro_tokens=micro_tokens)
        plan = Plan(live=("logp_new", "kl"), vocab=(FullKl("privileged", label="kl"),))

        class Divergence(Weighted):
            def micro(self, batch, live):
                return live["kl"].sum() / batch.counts.tokens, {}

        norms.append(made.step(posed()[0], plan, Divergence()).metrics["grad/norm"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    assert norms[0] > 1e-3


def test_rows_without_a_privileged_prompt_are_refused():
    made = learner(Anchor("tutor", privileged=True))
    for batch in (random_batch(), posed(lone=2)[0]):
        with pytest.raises(
            DataError, match=r"anchor 'tutor' reads rollouts behind their privileged prompts, and row .* has none"
        ):
            made.annotate(batch, Forward("logp_tutor", "tutor"))


# ---- exact resume ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 3])
def test_a_learner_with_moving_anchors_continues_bit_for_bit(steps, tmp_path):
    anchors = (*MOVING, Anchor("t", model="t"), Anchor("own", refresh=Every(steps=1), privileged=True))
    first = learner(*anchors, models={"t": small_model(LARGE, seed=3)}, version=4, heads=(ValueHead(),))
    stepped(first, steps)
    first.save(tmp_path)
    second = learner(*anchors, models={"t": small_model(LARGE, seed=9)}, seed=9, heads=(ValueHead(),))
    assert second.state_digest() != first.state_digest()
    second.load(tmp_path)
    assert second.anchors.versions == first.anchors.versions
    plan = Plan(forwards=tuple(Forward(f"logp_{n}", n, "step") for n in ("ref", "reset", "ema", "t")))
    for seed in range(5, 9):
        programs = Remembers(), Remembers()
        for made, program in zip((first, second), programs, strict=True):
            made.step(random_batch(seed=seed), plan, program)
        for name in ("logp_ref", "logp_reset", "logp_ema", "logp_t"):
            one, two = (p.batch.tokens[name] for p in programs)
            assert np.array_equal(one.values, two.values)
            assert one.version == two.version
    assert second.state_digest() == first.state_digest()


def test_the_versions_of_anchors_are_part_of_the_state(tmp_path):
    made = learner(*MOVING)
    stepped(made, 2)
    made.save(tmp_path)
    before = made.state_digest()
    made.anchors.versions = {**made.anchors.versions, "reset": 0}
    assert made.state_digest() != before
    facts = json.loads((tmp_path / "learner.json").read_text())
    assert facts["anchored"] == {"ref": 0, "reset": 2, "ema": 2}
    del facts["anchored"]["reset"]
    (tmp_path / "learner.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match="lacks versions of anchors"):
        made.load(tmp_path)

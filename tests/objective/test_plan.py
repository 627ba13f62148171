"""What compiles, what is refused and why, and what a program promises."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import plain, run, slopes, tiny

import assay.objective as room
from assay.core.errors import CheckpointError, ConfigError, DataError, PlanError
from assay.core.plan import Forward, Offers, Plan, Scope
from assay.objective import (
    AdaptiveKl,
    Center,
    Correct,
    CreditTerm,
    DropTruncated,
    DropZeroVariance,
    Entropy,
    HeadValue,
    Kl,
    KlInReward,
    LossTerm,
    Nll,
    Objective,
    Overlong,
    PolicyGradient,
    Ratio,
    Scalarise,
    Scale,
    SeqMean,
    SeqSum,
    TdLoss,
    Token,
    Truncate,
    View,
    WeightClip,
    Where,
    Whiten,
    areal,
    cispo,
    dapo,
    dispo,
    dr_grpo,
    grpo,
    gspo,
    lite_ppo,
    nll,
    pacs,
    reinforce,
    reinforce_pp,
    reinforce_pp_baseline,
    rloo,
    scale_rl,
    tis,
    visurf,
)
from assay.objective.loss.topk import Distill
from assay.objective.loss.vocab_divergence import Jsd
from assay.objective.methods import calib_rl, methods
from assay.objective.plan import forward_of, lagging
from assay.testing.objective import check_objective, evaluate, random_batch, random_live

OLD, REF = Forward("logp_old"), Forward("logp_ref", "ref")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needy(LossTerm):
    """A term that reads a column of its own, in a few lines."""

    column: str = "routing"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.column,)

    def apply(self, view: View) -> Any:
        return -view.column(self.column) * view.live("logp_new")


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (Objective(), "nothing would be learned"),
        (Objective(policy=plain(), terms=(PolicyGradient(label="again"),)), "two terminals"),
        (replace(pacs(), terms=(PolicyGradient(),)), "two terminals, ScoreLoss and PolicyGradient"),
        (Objective(terms=(Nll(), Nll())), "label="),
        (Objective(policy=plain(), credit=(Scale(),)), "put Center"),
        (Objective(policy=plain(), credit=(Center("batch"), Scale("batch"), Center())), "comes after Scale"),
        (Objective(policy=plain(), credit=(Whiten(), Center())), "comes after Whiten"),
        (Objective(policy=plain(), credit=(Center(), Center("leave_one_out"))), "two baselines"),
        (Objective(policy=plain(), credit=(Whiten(), Scale("batch"))), "Scale comes after Whiten\\(.token"),
        (Objective(policy=plain(), credit=(Center(), Overlong(limit=8, cache=4))), "put Overlong first"),
        (Objective(policy=plain(), credit=(Center(), KlInReward(coef=0.1))), "put KlInReward first"),
        (Objective(policy=PolicyGradient(ratio=Ratio("none"))), "MinClip bounds a ratio"),
        (Objective(policy=PolicyGradient(ratio=Ratio("none"), trust=WeightClip())), "WeightClip bounds a ratio"),
        (Objective(policy=PolicyGradient(ratio=Ratio(anchor="engine"), weights=(Truncate(),))), "holds already"),
        (Objective(policy=plain(), credit=(DropTruncated(), Overlong(limit=8, cache=4))), "not both"),
        (
            Objective(policy=plain(), credit=(DropZeroVariance(), Center()), aggregate=Token(denominator="drawn")),
            "changes nothing",
        ),
        (Objective(terms=(Nll(),), credit=(Center(),)), "Center computes advantages, but no term"),
        (dr_grpo(), "generation budget"),
        (Objective(policy=plain(), terms=(Kl("k3", anchor="rfe"),)), "did you mean 'logp_ref'"),
        (Objective(terms=(Needy(),)), "Objective\\(brings=\\('routing',\\)\\)"),
        (Objective(terms=(Needy(column="zzz"),)), "produces: if your"),
        (Objective(terms=(Needy(column="advantage"),)), "no term here asks for rewards"),
    ],
)
def test_refused(objective: Objective, says: str) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        objective.plan()
    assert isinstance(caught.value, ConfigError)
    with pytest.raises(PlanError):
        objective.compile()


def test_allowed_because_it_changes_something() -> None:
    drawn = Token(denominator="drawn")
    filtered = Objective(policy=plain(), credit=(DropZeroVariance(), Center()), aggregate=drawn)
    for objective in (
        replace(filtered, terms=(Nll(),)),
        replace(filtered, credit=(DropZeroVariance(), Center(), Scale("batch"))),
        replace(filtered, credit=(Overlong(limit=9, cache=3), DropZeroVariance(), Center())),
        replace(filtered, credit=(DropZeroVariance(), Center("batch"))),
        replace(filtered, aggregate=Token()),
        replace(filtered, scalarise=Scalarise(weights=(("correct", 1.0), ("format", 0.5)))),
        replace(filtered, scalarise=Scalarise(every=True)),
        Objective(policy=plain(), terms=(PolicyGradient(label="expert", streams=("expert",)),)),
        Objective(policy=plain(), credit=(Whiten("rollout"), Scale("group"))),
    ):
        assert objective.plan().live[0] == "logp_new"


def test_plans() -> None:
    assert grpo().plan().forwards == (OLD, REF)
    assert grpo(kl=0.0).plan().forwards == (OLD,)
    assert rloo().plan().forwards == ()
    assert rloo(kl=0.1).plan().forwards == (OLD, REF)
    assert tis().plan().columns == ("logp_engine",)
    assert scale_rl().plan().forwards == ()
    assert pacs().plan().forwards == (OLD, Forward("logp_now", when="step"))
    assert gspo().plan().split is Scope.SEQUENCE
    assert nll().plan() == Plan(reductions=("aggregate/kept/all",))
    assert (nll() + Entropy(coef=0.1)).plan().live == ("logp_new", "entropy")
    assert (nll() + Needy()).brings == ()
    assert replace(nll() + Needy(), brings=("routing",)).plan().columns == ("routing",)
    assert (grpo() + Needy(column="advantage")).plan() == grpo().plan()
    assert forward_of("entropy_now") == Forward("entropy_now", when="step")
    assert forward_of("logp_moon") is forward_of("magic_old") is None
    assert forward_of("values_old") == Forward("values_old")


def test_reductions_are_the_parts_that_a_reducer_hears_of() -> None:
    kept = "aggregate/kept/on_policy+replay"
    expected = {
        grpo(kl=0.0): ("credit/0", "credit/1", kept, "report"),
        reinforce(): (kept, "report"),
        replace(reinforce(0.5), credit=(Center("constant", value=0.5), DropTruncated())): (kept, "report"),
        pacs(): ("score", kept),
        nll() + Needy(streams=("expert",), aggregate=Token(denominator="drawn")): (
            "aggregate/kept/all",
            "aggregate/drawn/expert",
        ),
        nll() + AdaptiveKl("k2"): ("kl", "aggregate/kept/all", kept, "report"),
        tis(): ("credit/0", "credit/1", kept, "report"),
        replace(tis(), policy=PolicyGradient(weights=(Truncate(normalise=True),))): (
            "credit/0",
            "credit/1",
            "policy",
            kept,
            "report",
        ),
    }
    for objective, parts in expected.items():
        objective = replace(objective, brings=("routing",))
        assert objective.plan().reductions == parts
        check_objective(objective, [0])  # the reduction law: a run of the program reduces just these


def test_statistics_that_are_not_declared_do_not_cross_ranks() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Secret(Needy):
        def prepare(self, batch: Any, share: Any, reducer: Any) -> Any:
            return {"weight": share / reducer.reduce({"n": room.Sum(np.ones(1))})["n"].values[0]}

    batch = tiny([0, 0], columns={"routing": 1.0})
    with pytest.raises(PlanError, match=r"secret merges the statistics \['n'\] over ranks, .* override `reduces`"):
        run(Objective(terms=(Secret(),), brings=("routing",)), batch)


CPU = Offers(live=("logp_new", "entropy"), models=("policy", "ref"))


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (
            grpo() + TdLoss(label="critic"),
            r"TdLoss \('critic'\) needs the live column 'values', .* it offers logp_new, entropy\. Leave the term out",
        ),
        (grpo() + TdLoss(value=HeadValue(name="entropies")), r"'entropies', .*: did you mean 'entropy'\? it offers"),
        (
            nll() + Kl("k2", anchor="teacher"),
            r"Kl needs 'logp_teacher', but the learner has no model 'teacher': it offers policy, ref\..*brings=\('logp_teacher',",
        ),
        (replace(rloo(), credit=(KlInReward(coef=0.1, anchor="teacher"),)), "KlInReward needs 'logp_teacher'"),
    ],
)
def test_what_a_learner_does_not_offer_is_refused(objective: Objective, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        objective.plan(offers=CPU)
    every = Offers(live=("logp_new", "entropy", "values", "entropies"), models=("policy", "teacher", "ref"))
    assert objective.plan(offers=every) == objective.plan()


def test_every_method_runs_on_what_the_learner_offers() -> None:
    more = set[str]()
    for name, method in methods().items():
        objective = method.objective()
        heads = {head: form for term in objective.losses for head, form in term.heads.items()}
        asked = {
            f.column.rpartition("_")[0] for f in objective.plan().forwards if f.column.startswith(("values", "q1", "q2", "v1"))
        }
        models = (*CPU.models, "teacher", "mask", "privileged")
        fitted = replace(CPU, live=(*CPU.live, *heads), models=models, heads=heads, targets=tuple(heads))
        if heads or asked:
            more.add(name)
        assert objective.plan(offers=fitted) == objective.plan(), name
    assert {"ppo", "ppo_hl_gauss", "archer"} <= more
    assert not {"grpo", "pacs", "clip_cov", "lp_reg", "dpo"} & more


def test_any_model_of_the_learner_fills_columns_of_its_name() -> None:
    offers = Offers(live=("logp_new", "entropy"), models=("policy", "ema", "old_teacher"))
    plan = (nll() + Kl("k2", anchor="ema") + Kl("k2", anchor="old_teacher", label="more")).plan(offers=offers)
    assert plan.forwards == (Forward("logp_ema", "ema"), Forward("logp_old_teacher", "old_teacher"))
    assert (nll() + Kl("k2", anchor="ema")).compile(offers=offers).plan.forwards == plan.forwards[:1]
    assert forward_of("entropy_ema", (), offers.models) == Forward("entropy_ema", "ema")
    assert forward_of("logp_policy", (), offers.models) is None
    with pytest.raises(PlanError, match=r"'logp_ema'.*a learner with an anchor of that name fills logp_NAME"):
        (nll() + Kl("k2", anchor="ema")).plan()
    with pytest.raises(PlanError, match=r"reads the distributions of 'ema'.*LearnerSettings\(anchors=\(..., Anchor\('ema'"):
        Objective(terms=(Distill(Jsd("ema")),)).plan(offers=Offers())


def test_a_column_that_is_brought_asks_nothing_of_the_learner() -> None:
    taught = replace(nll() + Kl("k2", anchor="teacher"), brings=("logp_teacher",))
    plan = taught.plan(offers=CPU)
    assert (plan.columns, plan.forwards) == (("logp_teacher",), ())
    batch = tiny([0], columns={"logp_teacher": -1.0})
    np.testing.assert_allclose(slopes(taught, batch, -0.5), [-1.0 + 0.5])
    # Who brings the old policy's log-probabilities means them, also where one update follows.
    brought = replace(grpo(kl=0.0), brings=("logp_old",))
    assert brought.plan(updates=1).columns == ("logp_old",)
    batch = tiny([1, 0], columns={"logp_old": -1.5})
    live = {"logp_new": np.where(batch.token("mask"), -1.0, 0.0)}
    metrics = evaluate(brought.compile(updates=1), batch, live).metrics
    assert metrics["policy/kl_old"] == pytest.approx(np.exp(0.5) - 1.5)


def test_skipping_is_planned_only_where_something_can_be_skipped() -> None:
    assert grpo(kl=0.0).plan().skip
    assert not grpo().plan().skip
    assert not nll().plan().skip


def test_group_baselines_ask_for_two_attempts() -> None:
    needs = {name: m.objective().min_group for name, m in methods().items()}
    assert {needs[name] for name in ("nll", "reinforce", "reinforce_pp")} == {1}
    assert {needs[name] for name in ("grpo", "rloo", "dapo", "gspo", "pacs", "dpo", "opo", "maxrl")} == {2}


def test_methods_are_plain_values() -> None:
    for name, method in methods().items():
        objective = method.objective()
        assert objective == method.objective()
        assert hash(objective)
        assert (
            eval(repr(objective), {**vars(room), **{n: getattr(room, n) for n in room.__all__}, "inf": float("inf")}) == objective
        )
        assert getattr(room, name) is method.make
        assert method.summary and method.source


def test_variants_of_methods() -> None:
    assert reinforce(0.5).credit == (Center("constant", value=0.5),)
    assert reinforce_pp_baseline(kl=0.0).terms == ()
    assert reinforce_pp().credit == (Whiten(),)
    masked = dapo(overlong=DropTruncated(), filter_groups=False)
    assert masked.credit == (DropTruncated(), Center(), Scale())
    assert dispo(overlong=Overlong(limit=8, cache=4)).credit[0] == Overlong(limit=8, cache=4)
    assert cispo(cap=1.28).policy == PolicyGradient(trust=WeightClip(positive=(0, 1.28), negative=(0, 1.28)))


def test_dapo_without_its_parts_is_grpo() -> None:
    batch = tiny([1, 0, 0, 1], lengths=[1, 2, 3, 4], columns={"logp_old": -1.0})
    logp = -1.0 + 0.1 * np.arange(10)
    bare = dapo(low=0.2, high=0.2, filter_groups=False)
    np.testing.assert_allclose(slopes(bare, batch, logp), slopes(replace(grpo(kl=0.0), aggregate=Token()), batch, logp))
    np.testing.assert_allclose(slopes(replace(bare, aggregate=SeqMean()), batch, logp), slopes(grpo(kl=0.0), batch, logp))


def test_an_objective_imports_without_torch() -> None:
    code = "import sys\nfrom assay.objective import *\ngrpo().compile()\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing
    assert "grpo" in dir(room)


# ---- programs ---------------------------------------------------------------------------------------------------------


def test_credit_runs_once_and_before_mini_batches() -> None:
    program = lite_ppo().compile()
    batch = tiny([1, 0, 1, 1, 1, 0], [0, 0, 1, 1, 2, 2], columns={"logp_old": -1.0})
    whole = program.credit(batch)
    part = whole.mini([0, 1])
    np.testing.assert_array_equal(program.prepare(part).token("advantage"), whole.micro([0, 1]).token("advantage"))


def test_inactive_rows_have_no_weight_anywhere() -> None:
    batch = tiny([1, 0, 1, 1], [0, 0, 1, 1], columns={"logp_old": -1.0, "logp_ref": -1.0})
    for objective, active in ((grpo(kl=0.0), [True, True, False, False]), (grpo(), [True] * 4)):
        program = objective.compile()
        assert program.active(program.prepare(batch)).tolist() == active


def test_a_micro_batch_without_active_tokens_still_has_a_gradient() -> None:
    batch = tiny([1, 1], columns={"logp_old": -1.0})
    program = grpo(kl=0.0).compile()
    live = torch.full((4,), float("nan"), requires_grad=True)
    loss, metrics = program.micro(program.prepare(batch), {"logp_new": live})
    loss.backward()
    assert live.grad is not None
    assert live.grad.tolist() == [0.0] * 4
    assert (float(loss.detach()), metrics) == (0.0, {})


def test_what_is_missing_is_named() -> None:
    batch = tiny([1, 0])
    with pytest.raises(DataError, match="logp_old"):
        run(grpo(kl=0.0), batch)
    with pytest.raises(DataError, match="'entropy' needs the live column 'entropy'"):
        run(nll() + Entropy(coef=0.1), batch)
    program = nll().compile()
    with pytest.raises(DataError, match="nll/weight"):
        program.micro(batch, {"logp_new": torch.zeros(4, requires_grad=True)})


def test_precision_and_long_batches_are_kept() -> None:
    """Indices never pass through the precision of the log-probabilities."""
    n = 700
    batch = tiny([0] * n, lengths=[1] * n)
    live = torch.zeros(2 * n, dtype=torch.bfloat16, requires_grad=True)
    program = replace(nll(), aggregate=SeqSum()).compile()
    loss, _ = program.micro(program.prepare(batch), {"logp_new": live})
    loss.backward()
    assert live.grad is not None
    assert ((live.grad != 0).numpy() == batch.token("mask")).all()


def test_state_is_plain_and_belongs_to_its_objective() -> None:
    objective = Objective(credit=(Center("ema", decay=0.9),), policy=plain(), aggregate=SeqSum())
    program = objective.compile()
    program.credit(tiny([1, 0]))
    state = json.loads(json.dumps(program.state_dict()))
    other = objective.compile()
    other.load_state_dict(state)
    assert other.state_dict() == program.state_dict()
    other.credit(tiny([1, 1]))
    assert other.state_dict() != state
    assert program.state_dict() == state
    with pytest.raises(CheckpointError, match="resume with the recipe"):
        grpo().compile().load_state_dict(state)


def test_a_term_of_ones_own() -> None:
    objective = replace(nll() + Needy(coef=2.0), brings=("routing",))
    batch = tiny([0, 0], columns={"routing": [3.0, 5.0]})
    np.testing.assert_allclose(slopes(objective, batch), [-0.5 - 3.0, -0.5 - 5.0])


def test_a_credit_term_of_ones_own() -> None:
    @dataclass(frozen=True, slots=True)
    class ByPassRate(CreditTerm):
        """Weighs a prompt by how hard it was for the group (UniVG-R1, exponential form)."""

        @property
        def scope(self) -> Scope:
            return Scope.GROUP

        def local(self, credit: Any) -> Any:
            return {"m": room.Moments.of(credit.metric[credit.counted], credit.group[credit.counted], credit.groups)}

        def apply(self, credit: Any, stats: Any, state: Any) -> Any:
            return credit.with_advantage(credit.advantage * np.exp(1 - stats["m"].mean)[credit.group])

    batch = tiny([0.2, 0.2, 0.1, 0.3, 0.8, 0.8, 0.7, 0.9], [0] * 4 + [1] * 4)
    weighed = Objective(credit=(Center(), ByPassRate()), policy=plain()).compile().credit(batch).rollout("advantage")
    plainly = Objective(credit=(Center(),), policy=plain()).compile().credit(batch).rollout("advantage")
    np.testing.assert_allclose(weighed[[3, 7]] / plainly[[3, 7]], [2.2255, 1.2214], atol=5e-5)


def test_weights_alone_decide_the_loss_across_many_updates() -> None:
    batch = random_batch(3, ["logp_old", "logp_ref"])
    live = random_live(batch, ["logp_new"], 0)
    program = grpo().compile()
    first, second = evaluate(program, batch, live), evaluate(program, program.prepare(batch), live)
    assert first.loss == second.loss


# ---- rollouts that older weights sampled ------------------------------------------------------------------------------------


def test_old_is_who_sampled_where_nothing_corrects_for_age() -> None:
    aged = lagging(grpo())
    assert aged == replace(grpo(), brings=("logp_old",)) and lagging(aged) == aged
    plan = aged.plan(updates=1)
    assert plan.columns == ("logp_old",) and [f.column for f in plan.forwards] == ["logp_ref"]
    batch = tiny([1, 0, 0, 1], columns={"logp_old": -2.0, "logp_ref": -1.0, "logp_engine": -1.0})
    expected = run(grpo(), batch, -1.0).metrics["policy/kl_old"]
    assert run(aged, batch, -1.0).metrics["policy/kl_old"] == pytest.approx(expected) == pytest.approx(np.exp(1.0) - 2.0)


@pytest.mark.parametrize("objective", [tis(), scale_rl(), replace(tis(), policy=replace(plain(), weights=(Truncate(),)))])
def test_a_correction_or_a_ratio_to_the_sampler_accounts_for_age(objective: Objective) -> None:
    assert lagging(objective) == objective


@pytest.mark.parametrize(
    "objective", [reinforce(), nll(), pacs(), replace(grpo(), policy=PolicyGradient(ratio=Ratio(anchor="ref")))]
)
def test_age_that_nothing_corrects_is_refused(objective: Objective) -> None:
    with pytest.raises(PlanError, match="rollouts come from older weights, and the objective's policy term has no ratio"):
        lagging(objective)


def test_a_wrapped_policy_is_corrected_like_the_one_inside() -> None:
    inside = replace(grpo(), policy=Where(grpo().policy, (Correct(),)))
    assert lagging(inside).brings == ("logp_old",)
    assert lagging(replace(areal(), policy=Where(areal().policy, (Correct(),)))).brings == ()


def test_rows_that_no_sampler_wrote_have_no_old_policy_then() -> None:
    with pytest.raises(
        PlanError, match=r"'kl' reads ``old``, then the policy that sampled, of the streams \['expert', 'preference'\]"
    ):
        lagging(grpo(kl=0.0) + Kl(anchor="old", streams=()))
    with pytest.raises(PlanError, match=r"'AlignExpert' reads ``old``.* of the streams \['expert'\], which no sampler wrote"):
        lagging(replace(calib_rl(), terms=()))
    with pytest.raises(PlanError, match=r"'policy' reads ``old``.* of the streams \['expert'\], which no sampler wrote"):
        lagging(visurf())
    assert lagging(grpo() + Nll(streams=("expert",))).brings == ("logp_old",)

"""Methods by name, what they say of themselves, and what plans refuse of the parts that they bring together."""

import importlib
from dataclasses import replace

import pytest

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.plan import Offers
from assay.objective import (
    FullKl,
    HeadValue,
    Jsd,
    Objective,
    Prompt,
    Resample,
    Scalarise,
    StatLoss,
    TdLoss,
    build_method,
    grpo,
    icepop,
    nll,
    pacs,
)
from assay.objective.methods import methods
from assay.objective.methods.registry import Method, composition, method


def test_compositions_read_as_they_are_built() -> None:
    known = methods()
    assert known["grpo"].composition == "Center() | Scale() >> PolicyGradient(Ratio(), MinClip()) >> SeqMean() + Kl(coef=0.001)"
    assert known["nll"].composition == "Nll() >> Token()"
    assert known["pacs"].composition == "ScoreLoss(BalancedBce())"
    assert known["scale_rl"].composition.startswith("DropZeroVariance() | Center() | Scale('batch') >> ")
    assert "Ratio(anchor='engine')" in known["scale_rl"].composition
    assert "weights=(IcePop(),)" in composition(icepop())
    weighed = replace(grpo(kl=0.0), scalarise=Scalarise(weights=(("correct", 1.0), ("format", 0.1))))
    assert composition(weighed).startswith("Scalarise(weights=(('correct', 1.0), ('format', 0.1))) | Center()")
    for found in known.values():
        assert found.composition and found.summary and found.source


def test_a_method_knows_its_settings() -> None:
    grpo_ = methods()["grpo"]
    assert dict(grpo_.settings) == {"kl": 0.001, "clip": 0.2, "eps": 1e-6}
    assert grpo_.needs == ("logp_old", "logp_ref")
    assert methods()["dr_grpo"].settings["length"] == 64
    assert build_method("grpo", kl=0.0) == grpo(kl=0.0)
    with pytest.raises(UnknownNameError, match=r"unknown method 'grpp': did you mean 'grpo'"):
        build_method("grpp")
    with pytest.raises(UnknownNameError, match=r"unknown setting of 'grpo' 'klip': did you mean 'clip'"):
        build_method("grpo", klip=0.1)


def test_what_a_method_may_not_be() -> None:
    def needy(length: int) -> Objective:
        """Needs a length."""
        return nll()

    asking = Method(name="needy", make=needy, source="here")
    with pytest.raises(ConfigError, match=r"needy needs the settings \['length'\]"):
        asking.objective()
    with pytest.raises(UnknownNameError, match="method status"):
        Method(name="needy", make=needy, source="here", status="maybe")

    def grpo() -> Objective:
        """A namesake."""
        return nll()

    with pytest.raises(ConfigError, match="two methods are called 'grpo'"):
        method("here")(grpo)


def test_heads_that_a_learner_lacks_are_refused() -> None:
    plain = Offers(live=("logp_new", "values"), models=("policy", "ref"))
    clipped = replace(grpo(kl=0.0), terms=(TdLoss(clip=0.2),))
    with pytest.raises(PlanError, match=r"needs 'values_old', but the learner has no value head 'values'"):
        clipped.plan(offers=plain)
    fitted = replace(plain, heads={"values": ("scalar", 3, 0.0, 1.0)})
    with pytest.raises(PlanError, match=r"the learner's head 'values' has \('scalar', 3"):
        clipped.plan(offers=fitted)
    assert composition(clipped).endswith("+ TdLoss(HeadValue(), OutcomeTarget(), Square(), clip=0.2)") or HeadValue()


def test_target_weights_that_a_learner_lacks_are_refused() -> None:
    archer = methods()["archer"].objective()
    heads = {name: form for term in archer.losses for name, form in term.heads.items()}
    learner = Offers(live=("logp_new", *heads), models=("policy", "ref"), heads=heads)
    with pytest.raises(PlanError, match=r"has no target weights: use ValueHead\(name='.*', tau=...\)"):
        archer.plan(offers=learner)


def test_statistics_that_clash_or_lack_a_model_are_refused() -> None:
    learner = Offers(live=("logp_new", "entropy"), models=("policy",))
    pulled = replace(nll(), terms=(*nll().terms, StatLoss(stat=FullKl(model="ref"))))
    with pytest.raises(PlanError, match=r"reads the distributions of 'ref', which the learner does not have"):
        pulled.plan(offers=learner)
    assert pulled.plan(offers=replace(learner, models=("policy", "ref"))).vocab
    twice = replace(
        nll(), terms=(StatLoss(stat=Jsd(model="ref", beta=0.5)), StatLoss(stat=Jsd(model="ref", beta=0.1), label="b"))
    )
    with pytest.raises(PlanError, match=r"two statistics fill the column 'jsd_ref', .*: give one of them a label of its own"):
        twice.plan()


def test_copies_have_no_place_in_a_loss_on_scores() -> None:
    with pytest.raises(PlanError, match=r"Resample gives rollouts other weights than 0 and 1, which ScoreLoss"):
        replace(pacs(), credit=(Resample(),)).plan()


def test_prompts_are_groups() -> None:
    assert Prompt().grouped
    assert replace(nll(), aggregate=Prompt()).grouped
    assert not nll().grouped


def test_names_that_are_no_method_are_no_attributes() -> None:
    package = importlib.import_module("assay.objective.methods")
    assert {"build_method", "grpo", "methods"} <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'grqo'"):
        _ = package.grqo


def test_a_name_in_another_case_or_with_dashes_means_the_method() -> None:
    from assay.objective.methods import method_named

    assert [method_named(name) for name in ("DAPO", "Dr-GRPO", "grpo", "gpro")] == ["dapo", "dr_grpo", "grpo", None]

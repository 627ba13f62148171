"""What a method's name puts into a stage, what a person's own settings keep, and what cannot be."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from live import coin_toss, session, walk
from tiny_runs import imitate, only_rl, prefer, reinforce, tiny, warm_up

from assay.core import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.guide import Compose, Privileged
from assay.objective.methods import grpo, methods, ppo, registry, remax
from assay.objective.methods.requires import Critic, Requires
from assay.runtime.anchors import Anchor, Every
from assay.runtime.settings import AdamW, LearnerSettings, Trunk, ValueHead
from assay.train.driver import resume, train
from assay.train.method_names import NamedMethod, names_in, read_setting, settle_settings
from assay.train.preflight import check_run
from assay.train.providers import PlayerRole, ReferenceValue
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import Imitate, Prefer, WarmUp
from assay.train.streams import AsStream, WithStored
from assay.train.wiring import wire, wire_run


def wired(name: str, stage: Any = None, given: tuple[str, ...] = (), **settings: Any) -> Any:
    return wire(stage or reinforce(), NamedMethod(method=name, settings=settings, given=frozenset(given)))[0]


def places(name: str, stage: Any = None, **settings: Any) -> list[str]:
    return [w.place for w in wire(stage or reinforce(), NamedMethod(method=name, settings=settings))[1]]


# ---- what is put there ------------------------------------------------------------------------------------------------


def test_a_critic_gets_a_head_of_the_form_that_its_loss_fits() -> None:
    assert wired("ppo").learner.heads == (ValueHead(),)
    assert wired("ppo_hl_gauss", bins=11).learner.heads == (ValueHead(form="hl_gauss", outputs=11, low=-0.1, high=1.1),)
    assert wired("b_coder").learner.heads == (ValueHead(tau=0.1, optimizer=AdamW(lr=3e-3)),)
    assert wired("oreal", scores="belief").learner.heads[0].name == "belief"


def test_critics_on_a_model_of_their_own() -> None:
    learner = wired("archer", reinforce(steps=400)).learner
    assert learner.trunks == (Trunk(tau=0.1, optimizer=AdamW(lr=1e-3)),)
    assert [(h.name, h.behind, h.trunk, h.tau) for h in learner.heads] == [
        ("v1", False, "critic", 0.1),
        ("v2", False, "critic", 0.1),
        ("q1", True, "critic", 0.1),
        ("q2", True, "critic", 0.1),
    ]
    assert learner.policy_after == 40


def test_critics_do_not_learn_alone_for_most_of_a_short_stage() -> None:
    assert wired("vapo", reinforce(steps=400)).learner.policy_after == 50
    assert wired("vapo", reinforce(steps=20)).learner.policy_after == 5, "a quarter of 20 steps"
    assert wired("vapo", reinforce(steps=20, minibatches=2)).learner.policy_after == 10, "of two updates"
    assert wired("vapo", reinforce(steps=1)).learner.policy_after == 0


def test_models_that_an_objective_reads() -> None:
    assert wired("nlpo").learner.anchors == (Anchor(), Anchor("mask", refresh=Every(steps=10)))
    assert wired("sdpo").learner.anchors == (Anchor(), Anchor("privileged", privileged=True))
    assert wired("sdpo").guidance == Privileged()
    assert wired("opd", teacher_model="runs/a").learner.anchors == (Anchor(), Anchor("teacher", model="runs/a"))
    two = wired("opd", teachers=("first", "second"), by="arm", teacher_model=("runs/a", "runs/b"))
    assert [(a.name, a.model) for a in two.learner.anchors[1:]] == [("first", "runs/a"), ("second", "runs/b")]
    bare = reinforce(learner=LearnerSettings(anchors=()))
    assert wired("copg", bare).learner.anchors == (Anchor(),)
    assert wired("grpo", bare, kl=0.0).learner.anchors == ()
    assert wired("a_lol", bare, variant="reference_free").learner.anchors == (Anchor(),), "its values are the reference's"


def test_columns_streams_and_experts() -> None:
    assert wired("rae").columns == (PlayerRole(),)
    assert wired("a2po").columns == (ReferenceValue(name="optimal_value", temperature=0.5),)
    assert wired("remax").columns == (), "what needs no choice comes by itself"
    assert wired("weighted_bc").composer == AsStream(stream="offline")
    assert wired("weighted_bc", reinforce(composer=Compose(drop_zero_signal=True))).composer.inner.drop_zero_signal
    assert wired("dph_rl").composer == WithStored(least=0.75)
    assert wired("visurf").experts
    assert wired("gui_g1", column="mine").columns == (), "a column that nobody knows is the verifier's"


def test_a_name_changes_no_number_of_updates_and_says_where_a_ratio_cannot_move() -> None:
    for name in ("grpo", "dapo", "rloo", "opo", "ppo"):
        for stage in (reinforce(), reinforce(epochs=2), reinforce(minibatches=2), reinforce(lag=1), reinforce(groups=1)):
            assert wired(name, stage).updates == stage.updates
    assert "minibatches" in places("grpo") and "minibatches" in places("grpo", reinforce(groups=1))
    assert "minibatches" not in places("opo") + places("pacs") + places("grpo", reinforce(minibatches=2))
    assert "minibatches" not in places("grpo", reinforce(lag=1)), "what is old already differs"
    (told, *_) = wire(reinforce(), "grpo")[1]
    assert told.value == "1" and "a clip range has no effect; --minibatches 2" in told.why


def test_a_group_as_large_as_the_baseline_asks() -> None:
    assert wired("srpo", reinforce(group_size=4)).group_size == 5
    assert "group_size" not in places("srpo", reinforce(group_size=8))


def test_settings_that_stand_for_rows_nobody_has() -> None:
    assert wired("kd_topk", teacher_model="x").objective == methods()["kd_topk"].objective(k=8)
    assert wired("kd_topk", k=3, teacher_model="x").objective == methods()["kd_topk"].objective(k=3)
    assert wired("dr_grpo").objective == methods()["dr_grpo"].objective(length=64)
    run, wires = wire_run(only_rl(), {0: NamedMethod(method="dr_grpo", settings={})})
    assert run.stages[0].objective == methods()["dr_grpo"].objective(length=5)
    assert next((w.place, w.value) for w in wires) == ("stages.0.objective.length", "5")


def test_what_was_wired_for_another_method_goes() -> None:
    stage = wired("rl_plus", wired("weighted_bc"))
    assert (stage.experts, stage.composer) == (True, Compose())
    again = wired("grpo", wired("rae", stage))
    assert (again.experts, again.columns, again.composer) == (False, (), Compose())


def test_likelihood_gets_demonstrations() -> None:
    stage, wires = wire(reinforce(steps=7, levels=(1, 2)), "nll")
    assert isinstance(stage, WarmUp)
    assert (stage.steps, stage.levels, stage.objective) == (7, (1, 2), methods()["nll"].objective())
    assert [w.place for w in wires] == ["kind"]
    assert wired("nll", imitate()).objective == methods()["nll"].objective()


def test_preferences_learn_where_they_are_given() -> None:
    stage = wired("simpo", prefer())
    assert isinstance(stage, Prefer)
    assert stage.objective == methods()["simpo"].objective()


# ---- a person's own ---------------------------------------------------------------------------------------------------


def test_given_settings_stay() -> None:
    assert wired("grpo", given=("minibatches",)).minibatches == 1
    assert wired("grpo", given=("epochs",)).minibatches == 1
    mine = (ValueHead(tau=0.5),)
    assert wired("ppo", reinforce(learner=LearnerSettings(heads=mine))).learner.heads == mine
    assert wired("vapo", reinforce(steps=400), given=("learner.policy_after",)).learner.policy_after == 0
    assert wired("visurf", given=("experts",)).experts is False
    assert wired("weighted_bc", given=("composer.drop_zero_signal",)).composer == Compose()
    assert wired("sdpo", reinforce(guidance=Privileged(text="{solution};{prompt}"))).guidance.text == "{solution};{prompt}"
    own = (ReferenceValue(name="optimal_value", temperature=0.25),)
    assert wired("a2po", reinforce(columns=own)).columns == own
    teacher = LearnerSettings(anchors=(Anchor(), Anchor("teacher", model="runs/a")))
    assert wired("opd", reinforce(learner=teacher)).learner == teacher
    assert wired("opd", given=("learner.anchors.1.name",)).learner.anchors == (Anchor(),)


def test_contradictions_are_told() -> None:
    def check(stage: Reinforce) -> None:
        check_run(replace(only_rl(), stages=(stage,)))

    other = (ValueHead(form="bernoulli"),)
    with pytest.raises(PlanError, match="make them alike"):
        check(wired("ppo", reinforce(learner=LearnerSettings(heads=other))))
    with pytest.raises(PlanError, match=r"has no target weights: use ValueHead"):
        check(wired("b_coder", reinforce(learner=LearnerSettings(heads=(ValueHead(),)))))
    with pytest.raises(ConfigError, match=r"use Reinforce\(experts=True\)"):
        check(wired("rl_plus", given=("experts",), length=5))
    with pytest.raises(ConfigError, match="learns from a model 'teacher', and the run has none"):
        wired("opd")
    with pytest.raises(ConfigError, match="teacher_model=runs/a would teach nothing, for it reads the models ref"):
        wired("grpo", teacher_model="runs/a")


@pytest.mark.parametrize(
    ("name", "stage", "said"),
    [
        ("grpo", warm_up(), "grpo learns from sampled rollouts, and the stage is WarmUp.*quickstart"),
        ("entropy_only", imitate(), "entropy_only learns from sampled rollouts, and the stage is Imitate"),
        ("grpo", prefer(), "grpo does not learn from given preferences.*quickstart.*dpo"),
        ("nll", prefer(), "nll does not learn from given preferences"),
    ],
)
def test_a_stage_that_a_method_cannot_learn_from(name: str, stage: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        wired(name, stage)


def test_names_that_are_none() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'pacs'"):
        wired("pcs")
    with pytest.raises(UnknownNameError, match="setting of 'ppo' 'kll': did you mean 'kl'"):
        wired("ppo", kll=0.1)
    with pytest.raises(UnknownNameError, match="stage '3'"):
        wire_run(tiny(), {3: NamedMethod(method="ppo", settings={})})


def test_requirements_that_mean_nothing() -> None:
    assert Requires(critics=(Critic(),)).critics[0].name == "values"
    with pytest.raises(UnknownNameError, match="kind of stored answers 'own'"):
        Requires(stored="own")
    with pytest.raises(ConfigError, match="critics_first=-1"):
        Requires(critics_first=-1)


# ---- in a file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["ppo", {"kind": "ppo"}, {"kind": "ppo", "kl": 0.05}])
def test_a_file_names_a_method(objective: Any) -> None:
    table = to_dict(only_rl())
    (stage,) = table["stages"]
    stage |= {"objective": objective}
    del stage["minibatches"], stage["epochs"]
    run = from_dict(Run, loads_toml(dumps_toml(table)))
    wanted = wired("ppo", only_rl().stages[0], kl=0.05)
    assert run.stages == (wanted,)
    assert wanted.objective == ppo()
    again = from_dict(Run, loads_toml(dumps_toml(to_dict(run))))
    assert again == run, "what is written down is the run as it was wired"


def test_a_file_says_more_of_the_stage() -> None:
    table = to_dict(only_rl())
    (stage,) = table["stages"]
    stage |= {"objective": "grpo", "minibatches": 1}
    assert from_dict(Run, table).stages[0].minibatches == 1
    assert names_in(table)[1][0].given >= {"minibatches", "learner", "learner.optimizer", "learner.optimizer.lr"}


def test_files_without_names_are_read_as_ever() -> None:
    run = replace(tiny(), stages=(warm_up(), prefer(), imitate(), reinforce(objective=remax())))
    table = to_dict(run)
    assert names_in(table) == (table, {})
    assert from_dict(Run, table) == run
    assert names_in({"stages": "none"}) == ({"stages": "none"}, {})
    assert names_in({"stages": [3]}) == ({"stages": [3]}, {})
    named = {"stages": [{"objective": {"kind": "none"}}]}
    assert names_in(named) == (named, {})


def test_settings_take_the_form_of_their_defaults() -> None:
    known = methods()

    def settled(name: str, **settings: Any) -> dict[str, Any]:
        return settle_settings(known[name], settings)

    assert repr(settled("ppo", kl=1)) == "{'kl': 1.0}"
    assert settled("opd", teachers="a") == {"teachers": ("a",)}
    assert settled("opd", teachers=["a", "b"]) == {"teachers": ("a", "b")}
    assert settled("ppo", whiten=3) == {"whiten": "3"}
    assert settled("pro_rl_v2", band=None) == {"band": None}
    assert settled("vapo", adaptive=None) == {"adaptive": None}
    assert settled("oreal", scores=["a"]) == {"scores": ("a",)}
    for name, value in (("kl", "much"), ("kl", True)):
        with pytest.raises(ConfigError, match=rf"ppo: {name}=.*give one like its default, 0\.05"):
            settled("ppo", **{name: value})
    with pytest.raises(ConfigError, match=r"stored='no' is .*give one like its default, True"):
        settled("dph_rl", stored="no")
    assert [read_setting([w]) for w in ("true", "False", "inf", "3", "a.b")] == [True, False, float("inf"), 3, "a.b"]


def test_a_run_by_name_is_written_down_whole_and_goes_on(tmp_path: Path) -> None:
    run = replace(only_rl(steps=2), evaluation=Evaluation(every=0, final_per_level=2), checkpoint_every=1)
    named, _ = wire_run(run, {0: NamedMethod(method="ppo", settings={"kl": 0.0})})
    train(named, tmp_path / "run")
    text = (tmp_path / "run" / "run.toml").read_text(encoding="utf-8")
    assert "ValueHead" in text or "[[stages.learner.heads]]" in text
    assert "ppo" not in text
    assert resume(tmp_path / "run", steps=3).step == 3


def test_python_names_a_stage_too() -> None:
    stage, _ = wire(Reinforce(steps=3), "pacs")
    assert isinstance(stage, Reinforce)
    assert stage.objective == methods()["pacs"].objective() != grpo()
    assert isinstance(wire(imitate(), "nll")[0], Imitate)
    name: Any = "pacs"
    for make in (reinforce, warm_up, prefer, imitate):
        with pytest.raises(ConfigError, match=r"objective='pacs' is a name; .* by assay\.train\.wire\("):
            make(objective=name)


# ---- the page -----------------------------------------------------------------------------------------------------------


def test_the_page_adds_a_method_and_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    methods()  # loads them all: what is registered later is the page's own
    monkeypatch.setattr(registry, "_METHODS", dict(registry.registered_methods()))
    page = (Path(__file__).parents[2] / "docs" / "add" / "term.md").read_text(encoding="utf-8")
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    scope = vars(module)
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if "my_vapo" in block or "Shortness" in block:
            exec(block, scope)
    stage = wired("my_vapo", reinforce(steps=400), low=0.2)
    assert stage.learner.heads == (ValueHead(optimizer=AdamW(lr=1e-3)),)
    assert stage.learner.policy_after == 20
    shortness = scope["Shortness"]()
    result = walk(session(coin_toss(only_rl(objective=methods()["gui_g1"].objective(length=5), columns=(shortness,)))))[0]
    for g in result.groups:
        assert [s.columns["difficulty"] for s in g.scores] == [1 / (1 + r.length) for r in g.rollouts]

"""Methods named on the command line and in files: what is wired and told, what a person's own options keep, what is refused."""

import tomllib

import pytest

TINY = ("mine.py:tiny", "--stages.0.objective.kind")


def stage_of(said):
    assert said.code == 0, said.err
    return tomllib.loads(said.out)["stages"][0]


@pytest.mark.parametrize("flag", ["--stages.0.objective", "--stages.0.objective.kind"])
@pytest.mark.parametrize("form", ["{flag} ppo", "{flag}=ppo"])
def test_a_method_comes_with_what_it_needs(assay, mine, flag, form):
    stage = stage_of(assay("explain", "mine.py:tiny", *form.format(flag=flag).split(), "--toml"))
    assert [h["name"] for h in stage["learner"]["heads"]] == ["values"]
    assert stage["minibatches"] == 1, "a name changes no number of updates"
    assert stage["steps"] == 3, "all else is the recipe's"


def test_explain_says_what_was_wired_and_why(assay, mine):
    said = assay("explain", *TINY, "a2po", "--json").json
    assert [(w["method"], w["place"]) for w in said["wired"]] == [("a2po", "stages.0.columns")]
    assert "unless the verifier says it" in said["wired"][0]["why"]
    text = assay("explain", *TINY, "a2po").out
    assert "wired for a2po\n  stages.0.columns  (ReferenceValue(name='optimal_value', temperature=0.5),)\n" in text
    assert "wired" not in assay("explain", "mine.py:tiny").out
    assert assay("explain", "mine.py:tiny", "--json").json["wired"] == []


def test_settings_of_the_method(assay, mine):
    args = ("--stages.0.objective.kl", "0.5", "--stages.0.objective.whiten=rollout", "--toml")
    stage = stage_of(assay("explain", *TINY, "ppo", *args))
    kinds = {t["kind"].rpartition(":")[2]: t for t in stage["objective"]["credit"]}
    assert kinds["KlInReward"]["coef"] == 0.5
    assert kinds["Whiten"]["unit"] == "rollout"
    stage = stage_of(assay("explain", *TINY, "pro_rl_v2", "--stages.0.objective.band", "0.25", "4", "--toml"))
    assert (stage["objective"]["policy"]["weights"][0]["low"], stage["objective"]["policy"]["weights"][0]["high"]) == (0.25, 4)


def test_options_of_ones_own_win(assay, mine):
    args = (
        "--stages.0.minibatches",
        "2",
        "--stages.0.learner.heads.0.tau",
        "0.5",
        "--stages.0.objective.policy.trust.low",
        "0.1",
    )
    stage = stage_of(assay("explain", *TINY, "ppo", *args, "--toml"))
    assert stage["minibatches"] == 2
    assert stage["learner"]["heads"][0]["tau"] == 0.5
    assert stage["objective"]["policy"]["trust"]["low"] == 0.1
    stage = stage_of(assay("explain", *TINY, "grpo", "--stages.0.epochs", "2", "--toml"))
    assert (stage["epochs"], stage["minibatches"]) == (2, 1)


def test_a_provider_of_ones_own_by_name(assay, mine):
    args = ("--stages.0.columns.0.kind", "assay.train.providers:ConstantValue", "--stages.0.columns.0.name", "role")
    stage = stage_of(assay("explain", *TINY, "rae", *args, "--toml"))
    assert [c["kind"] for c in stage["columns"]] == ["assay.train.providers:ConstantValue"]


def test_the_base_learns_by_name_too(assay, mine):
    args = ("quickstart", "--model.run.stages.0.objective.kind", "nll", "--stages.0.objective", "rloo")
    said = assay("explain", *args, "--json").json
    assert said["settings"]["model"]["run"]["stages"][0]["objective"]["terms"][0]["kind"].endswith(":Nll")
    refused = assay("explain", "mine.py:tiny", "--model.run.stages.0.objective", "nll")
    assert (refused.code, "the run has no base that is built first" in refused.err) == (2, True)


def test_a_file_names_a_method(assay, mine, tmp_path):
    text = assay("explain", "mine.py:tiny", "--toml").out
    head, _, _ = text.partition("[stages.objective]")
    tail = text[text.index("[stages.learner]") :]
    for name, table in (("table", '[stages.objective]\nkind = "ppo"\nkl = 0.5\n\n'), ("word", "")):
        word = 'kind = "assay.train.run:Reinforce"\nobjective = "ppo"\n'
        first = head if table else head.replace('kind = "assay.train.run:Reinforce"\n', word)
        (tmp_path / f"{name}.toml").write_text(first + table + tail)
        said = assay("explain", f"{name}.toml", "--json").json
        assert said["settings"]["stages"][0]["learner"]["heads"][0]["name"] == "values"
        assert [w["place"] for w in said["wired"]] == ["stages.0.learner.heads"], "the file says how many minibatches"


def test_a_run_tells_what_was_wired_and_records_the_whole(assay, mine, tmp_path):
    said = assay("train", *TINY, "ppo", "--folder", "by-name", "--plain", "--no-report", "--steps", "1")
    assert said.code == 0, said.err
    assert "ppo: stages.0.learner.heads = (ValueHead(),): its losses fit these values" in said.err
    recorded = tomllib.loads((tmp_path / "by-name" / "run.toml").read_text())
    assert recorded["stages"][0]["learner"]["heads"][0]["name"] == "values"
    assert assay("resume", "by-name", "--steps", "2", "--plain", "--no-report").code == 0


def test_methods_side_by_side(assay, mine):
    from assay.cli.multi_run import Study, members_of
    from assay.cli.train import TrainOptions

    words = ("--vary", "stages.0.objective=ppo,rloo")
    asked = Study(recipe="mine.py:tiny", args=words)
    found = members_of(asked, TrainOptions(vary=("stages.0.objective=ppo,rloo",)))
    assert [(m.name, len(m.run.stages[0].learner.heads)) for m in found] == [("objective=ppo", 1), ("objective=rloo", 0)]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("--stages.0.objective.kind pcs", "unknown method of --stages.0.objective.kind 'pcs': did you mean 'pacs'?"),
        ("--stages.0.objective", "--stages.0.objective needs a value: the name of a method"),
        ("--stages.0.objective ppo --stages.0.objective.kll 1", "setting of 'ppo' in --stages.0.objective.kll 'kll'"),
        ("--stages.0.objective ppo --stages.0.objective.kl", "--stages.0.objective.kl needs a value"),
        ("--stages.0.objective ppo --stages.0.objective.kl x", "ppo: kl='x' is a str; give one like its default, 0.05"),
        ("--stages.0.objective opd", "--stages.0.objective.teacher_model runs/NAME-1"),
        ("--stages.3.objective ppo", "stage '3'"),
    ],
)
def test_what_is_refused(assay, mine, args, said):
    found = assay("explain", "mine.py:tiny", *args.split())
    assert (found.code, said in found.err) == (2, True), found.err


def test_parts_of_ones_own_still_stand_there(assay, mine):
    mine.write_text(
        mine.read_text()
        + "\nfrom assay.objective.objective import Objective\n"
        + "from assay.objective.methods import rloo\n\n@dataclass(frozen=True, kw_only=True)\nclass Own(Objective):\n"
        + "    policy: object = field(default_factory=lambda: rloo().policy)\n"
    )
    stage = stage_of(assay("explain", *TINY, "Own", "--toml"))
    assert stage["objective"]["kind"].endswith("mine:Own")


def test_help_says_that_a_method_may_be_named(assay, mine):
    from cli_support import flat

    assert "a method of 'assay methods', with all that it needs" in flat(assay("train", "mine.py:tiny", "--help-all").out)
    assert "--stages.0.objective.kind ppo" in assay("methods", "ppo").out

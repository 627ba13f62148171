"""Exit codes: 2 where an argument, or what it names, is wrong; 1 where the work fails. As docs/packages/cli.md says."""

import pytest
from cli_support import Said, flat

from assay.core.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    EngineError,
    GateError,
    InexactResumeError,
    MissingExtraError,
    NonFiniteError,
    RewardError,
    StorageError,
    UnknownNameError,
)

ROWS = '''
"""Recipes on rows."""
from dataclasses import replace
from mine import tiny
from assay.tasks import Rows
from assay.train.models import Built

ROWS = [{"prompt": f"S{a}{b}>", "answer": "1"} for a in range(5) for b in range(5)]

def all_rows():
    """Holds no row out."""
    return replace(tiny(), name="all", tasks=Rows(ROWS, test_share=0), model=Built(run=tiny()))

def bad_rows():
    """A row without an answer."""
    return replace(tiny(), tasks=Rows([{"prompt": "S1>"}]))

def fails():
    """Fails."""
    return 1 // 0

def bad_source():
    """A family without rows."""
    return Rows([])
'''


@pytest.fixture
def here(assay, mine, tmp_path):
    """A folder with a file that is no run, an empty folder, a model that is none, and recipes."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "own").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.toml").write_text("a = = 1")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "metrics.jsonl").write_text("nonsense\n{}\n")
    (tmp_path / "more.py").write_text(ROWS)
    return assay


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # ---- names
        ("trian", "did you mean 'train'"),
        ("runs lst", "did you mean 'list'"),
        ("tasks lst", "did you mean 'list'"),
        ("train quickstrat", "did you mean 'quickstart'"),
        ("explain quickstrat", "did you mean 'quickstart'"),
        ("explain mine.py:tinny", "did you mean 'tiny'"),
        ("explain assay.recipes:quikstart", "did you mean 'quickstart'"),
        ("tasks show srot", "did you mean 'sort'"),
        ("tasks check srot", "did you mean 'sort'"),
        ("tasks show sort --arm srot", "did you mean 'sort'"),
        ("tasks show sort --level 44", "the nearest is 10"),
        ("runs compare runs/a runs/b --mode gready", "did you mean 'greedy'"),
        ("explain quickstart --tasks.kind Wrong", "--tasks.kind Wrong: there is no such part; known: BarCharts, Bills, Gsm8k, "),
        ("explain quickstart --tasks.kind srot", "did you mean 'sort'"),
        ("explain quickstart --model.kind Fodler", "did you mean 'Folder'"),
        ("explain quickstart --sampling.kind X", "there is no such part; known: Sampling"),
        ("explain quickstart --stages.0.replay.kind Recen", "did you mean 'Recent'? known: Recent, DeferredReplay, RowReplay\n"),
        ("explain quickstart --stages.0.curriculum.kind uniform", "did you mean 'Uniform'"),
        ("explain quickstart --stages.0.objective.terms.0.kind entropy", "did you mean 'Entropy'"),
        ("explain quickstart --stagez.0.kind WarmUp", "did you mean 'stages'"),
        ("explain quickstart --tasks.kind assay_tasks:SortDigit", "did you mean 'SortDigits'"),
        ("explain quickstart --tasks.kind assay.tasks:SortDigits", "write: from assay_tasks import SortDigits"),
        ("explain quickstart --stages.0.until.kind Until --stages.0.until.metric eval/gredy/all", "did you mean 'eval/greedy"),
        # ---- options
        ("explain quickstart --seeed 3", "did you mean --seed?"),
        ("explain quickstart --stages.0.stepz 4", "did you mean --stages.0.steps?"),
        ("explain quickstart --stages.7.steps 4", "--stages.7.steps: there is no such option"),
        ("runs list --rot x", "--root PATH"),
        ("runs list extra", "extra does not exist"),
        ("runs list a --root b", "a and --root b both name the folder of runs"),
        ("recipes x", "Unrecognized options: x"),
        ("eval runs/a --tempretaure 1", "--temperature FLOAT"),
        ("train --plain quickstart", "give the recipe first"),
        ("sample runs/a", "PROMPT"),
        ("sample runs/a S1> --greedy --temperature 1", "--greedy gives the same answer every time"),
        ("sample runs/a S1> --greedy --n 2", "--greedy gives the same answer every time"),
        ("resume", "RUN"),
        ("report", "RUN"),
        ("runs", ""),
        ("tasks", ""),
        ("explain", ""),
        # ---- values
        ("explain quickstart --seed x", "is no whole number"),
        ("explain quickstart --stages.0.steps x", "is not a whole number"),
        ("explain quickstart --stages.0.steps 0", "use a whole number, at least 1"),
        ("explain quickstart --sampling.max-new-tokens 120", "exceeds the model's context of 128"),
        ("explain quickstart --model.run.sampling.max-new-tokens 128", "leaves no room for a prompt"),
        ("train quickstart --sampling.max-new-tokens 120", "exceeds the model's context of 128"),
        ("train quickstart --stages.0.minibatches 99", "exceeds groups"),
        ("eval runs/a --n 0", "give at least 1"),
        ("resume runs/a --steps 0", "at least 1"),
        ("tasks show sort --index -1", "must be >= 0"),
        ("sample runs/a S1> --n 0", "give at least 1"),
        ("runs compare runs/a", "needs two runs or more"),
        ("explain more.py:all_rows", "test_share is 0; give a share"),
        ("train more.py:all_rows", "test_share is 0; give a share"),
        ("explain more.py:bad_rows", "row 1, field 'answer'"),
        ("explain more.py:fails", "failed: ZeroDivisionError"),
        ("tasks show more.py:fails", "failed: ZeroDivisionError"),
        ("tasks check more.py:bad_source", "needs at least one row"),
        # ---- paths
        ("train gone.toml", "cannot read a run from gone.toml"),
        ("train gone.py:x", "gone.py does not exist"),
        ("train quickstart --folder file", "file is not an empty folder"),
        ("train quickstart --folder full", "full is not an empty folder"),
        ("train quickstart --model.kind Folder --model.path gone", "gone does not exist"),
        ("explain quickstart --model.kind Folder --model.path broken", "broken/config.json"),
        ("resume gone", "gone does not exist; 'assay runs list'"),
        ("resume file", "file is no run folder"),
        ("resume empty", "empty is no run folder"),
        ("resume torn", "torn is no run folder"),
        ("resume damaged", "is damaged"),
        ("eval gone", "gone does not exist"),
        ("eval file", "file holds neither"),
        ("eval empty", "empty holds neither"),
        ("eval damaged", "has not finished"),
        ("eval broken --tasks sort", "config.json"),
        ("sample gone S1>", "gone does not exist"),
        ("sample broken S1>", "config.json"),
        ("report gone", "gone does not exist"),
        ("report empty", "empty is no run folder"),
        ("report file", "file is no run folder"),
        ("report torn", "line 1"),
        ("runs show gone", "gone does not exist"),
        ("runs show torn", "line 1"),
        ("runs list --root gone", "gone does not exist"),
        ("runs list --root file", "file is no folder"),
        ("runs compare gone empty", "gone does not exist"),
        ("tasks show gone.py:x", "gone.py does not exist"),
    ],
)
def test_a_wrong_argument_is_2_and_leaves_nothing_behind(here, tmp_path, words, said):
    before = sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts)
    got = here(*words.split())
    assert got.code == 2
    assert said in got.err or said in flat(got.err)
    assert "go on with" not in got.err
    assert sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts) == before


def test_a_mistyped_run_names_the_nearest(assay, tmp_path):
    (tmp_path / "runs" / "sort-1").mkdir(parents=True)
    (tmp_path / "runs" / "sort-1" / "run.toml").write_text("")
    for words in ("resume", "report", "eval", "sample", "runs show"):
        got = assay(*words.split(), "runs/srot-1", *(["S1>"] if words == "sample" else []))
        assert (got.code, got.err) == (2, "assay: unknown run in runs 'srot-1': did you mean 'sort-1'? known: sort-1\n")


REFUSED = (ConfigError("x"), UnknownNameError("x", "y", ()), DataError("x"), CheckpointError("x"), InexactResumeError("x"))
FAILED = (
    EngineError("x"),
    GateError("x"),
    NonFiniteError("x"),
    RewardError("x"),
    StorageError("x"),
    OSError("x"),
    MissingExtraError("x", "x"),
)


@pytest.mark.parametrize(("error", "code"), [(e, 2) for e in REFUSED] + [(e, 1) for e in FAILED], ids=lambda x: type(x).__name__)
def test_each_error_has_its_code(assay, monkeypatch, error, code):
    from assay.cli import recipes

    def fail(args):
        raise error

    monkeypatch.setattr(recipes, "recipes_command", fail)
    assert assay("recipes").code == code


@pytest.mark.slow
@pytest.mark.parametrize("error", [DataError("x"), EngineError("x"), OSError("x")], ids=lambda x: type(x).__name__)
def test_an_error_in_the_middle_of_a_run_is_1_and_says_how_to_go_on(assay, mine, monkeypatch, error):
    """Whatever its type: the arguments were right when the run began."""
    from assay.train.progress_view import PlainView

    def log(self, step, metrics):
        if step == 1:
            raise error

    monkeypatch.setattr(PlainView, "log", log)
    said = assay("train", "mine.py:tiny", "--plain", "--no-report", "--folder", "r")
    assert said.code == 1
    assert f"assay: {error}\nthe run stopped with an error; once mended, continue with: assay resume r\n" in said.err
    monkeypatch.undo()
    monkeypatch.chdir(mine.parent)
    assert assay("resume", "r", "--plain", "--no-report").code == 0


def test_a_base_that_fails_is_gone_on_with_by_the_run_that_wants_it(assay, mine):
    mine.with_name("gated.py").write_text(
        "from dataclasses import replace\n"
        "from mine import tiny\n"
        "from assay.train.models import Built\n"
        "from assay.train.stages import WarmUp\n"
        "def gated():\n"
        "    '''Its base cannot reach its gate.'''\n"
        "    base = replace(tiny(), name='low', stages=(WarmUp(steps=1, batch=2, demonstrations=4, gate=1.0),))\n"
        "    return replace(tiny(), model=Built(run=base))\n"
    )
    said = assay("train", "gated.py:gated", "--plain", "--folder", "r")
    assert said.code == 1
    assert "below its gate" in said.err
    assert said.err.endswith("continue with: assay resume r\n")
    assert (mine.parent / "r" / "run.toml").exists()


def test_json_is_json(assay, mine):
    """What JSON lacks stands as a word that `float` reads; `Said.json` refuses anything else."""
    from assay.objective import MinClip

    settings = assay("explain", "mine.py:tiny", "--json", "--stages.0.objective.policy.trust.kind", "MinClip").json["settings"]
    assert settings["stages"][0]["objective"]["policy"]["trust"]["dual"] == "inf"
    assert float("inf") == MinClip().dual
    with pytest.raises(ValueError, match="Infinity is no JSON"):
        _ = Said(0, '{"x": Infinity}', "").json

"""Schedules on the command line, in TOML, and in what `assay explain` tells."""

import json

import pytest

from assay.cli.recipe import settle
from assay.cli.train import TrainOptions
from assay.guide import Ramp, WhenReached

TEMPERATURE = ("--stages.0.schedules.temperature.kind", "Ramp", "--stages.0.schedules.temperature.points", "0", "0.5", "2", "1.0")
LENGTH = (
    *("--stages.0.schedules.max_new_tokens.kind", "WhenReached", "--stages.0.schedules.max_new_tokens.metric", "length/mean"),
    *("--stages.0.schedules.max-new-tokens.at-least", "0", "--stages.0.schedules.max_new_tokens.values", "2", "4"),
)


def test_options_add_entries_to_the_mapping(assay, mine):
    _, run = settle(TrainOptions, "mine.py:tiny", [*TEMPERATURE, *LENGTH], "assay train")
    assert dict(run.stages[0].schedules) == {
        "temperature": Ramp(points=((0, 0.5), (2, 1.0))),
        "max_new_tokens": WhenReached(metric="length/mean", at_least=0.0, values=(2, 4)),
    }


def test_a_file_says_the_same_and_an_option_changes_it(assay, mine, tmp_path):
    toml = assay("explain", "mine.py:tiny", *TEMPERATURE, "--toml").out
    assert "[stages.schedules.temperature]" in toml
    (tmp_path / "run.toml").write_text(toml)
    assert assay("explain", "run.toml", "--toml").out == toml
    _, run = settle(TrainOptions, "run.toml", ["--stages.0.schedules.temperature.points", "0", "0.7"], "assay train")
    assert dict(run.stages[0].schedules) == {"temperature": Ramp(points=((0, 0.7),))}
    _, run = settle(TrainOptions, "run.toml", LENGTH, "assay train")
    assert list(run.stages[0].schedules) == ["temperature", "max_new_tokens"]


def test_explain_tells_the_schedules(assay, mine):
    out = assay("explain", "mine.py:tiny", *TEMPERATURE, *LENGTH).out
    assert "schedules of stage 0, in training alone" in out
    assert "Ramp: 0.5 at step 0, to 1 at step 2" in out
    assert "WhenReached: 2, then 4: the next when length/mean is at least 0" in out
    assert "schedules of stage" not in assay("explain", "mine.py:tiny").out


def test_a_run_trains_by_them(assay, mine, tmp_path):
    assert assay("train", "mine.py:tiny", *TEMPERATURE, *LENGTH, "--folder", "run", "--plain", "--no-report").code == 0
    lines = [json.loads(line)["metrics"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    found = [(m["schedule/temperature"], m["schedule/max_new_tokens"]) for m in lines if "schedule/temperature" in m]
    assert found == [(0.5, 2), (0.75, 4), (1.0, 4)]


def test_a_schedule_of_ones_own_file(assay, mine):
    mine.write_text(
        mine.read_text()
        + """
from assay.guide import StepSchedule

@dataclass(frozen=True, kw_only=True)
class Half(StepSchedule):
    \"\"\"Half of a temperature.\"\"\"

    whole: float = 1.0

    @property
    def values(self):
        return (self.whole / 2,)

    def at(self, step, state):
        return self.whole / 2
"""
    )
    words = ("--stages.0.schedules.temperature.kind", "Half", "--stages.0.schedules.temperature.whole", "1.5")
    out = assay("explain", "mine.py:tiny", *words).out
    assert "temperature  Half: Half(whole=1.5)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("temprature.kind", "Ramp", "temprature.points", "0", "1"), "did you mean 'temperature'?"),
        (("temperature.kind", "Rump"), "did you mean 'Ramp'? known: Ramp, Piecewise, WhenFlat, WhenReached"),
        (("temperature.kind", "Ramp"), "--stages.0.schedules.temperature.points"),
        (("temperature.kind", "Ramp", "temperature.points", "5", "1"), "begin with step 0"),
        (("temperature.kind", "Ramp", "temperature.points", "0", "0"), "use temperatures above 0"),
        (("max_new_tokens.kind", "Ramp", "max_new_tokens.points", "0", "5"), "above Run.sampling.max_new_tokens=4"),
    ],
)
def test_bad_schedules_are_refused(assay, mine, capsys, words, said):
    args = [f"--stages.0.schedules.{w}" if "." in w else w for w in words]
    try:
        got = assay("explain", "mine.py:tiny", *args)
        code, err = got.code, got.err
    except SystemExit as refused:
        code, err = refused.code, capsys.readouterr().err
    assert code == 2
    assert said in err

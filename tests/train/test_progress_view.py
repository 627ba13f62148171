"""The views of a run, at chosen times."""

import errno
import io
import os
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from assay.recipes import quickstart
from assay.train import progress_view as shown
from assay.train.progress_view import LiveView, PlainView, RunProgress, view
from assay.train.stages import WarmUp


def flat(text: str) -> str:
    """Text of a box as one line."""
    return " ".join(text.translate(str.maketrans("│╭╮╰╯─", "      ")).split())


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def run():
    run = quickstart()
    return replace(run, stages=(replace(run.stages[0], steps=40),), evaluation=replace(run.evaluation, every=10))


@pytest.fixture
def clock():
    return Clock()


def test_an_evaluation_of_a_part_says_of_how_many_items_it_is(run, clock, capsys):
    """0.68 of 50 items, 0.875 of 16 and 0.86 of 50 are no rise and fall."""
    evaluated = [(0, 50, False, 0.68), (10, 16, True, 0.875), (40, 50, False, 0.86)]
    plain, p = PlainView(run, "t"), RunProgress(run, clock)
    live = LiveView(run, "t", Console(file=io.StringIO(), width=90), clock)
    seen = []
    for step, items, part, value in evaluated:
        for one in (plain, live, p):
            assert one is p or isinstance(one, shown.ObservesEvaluations)
            one.observe_evaluation(items, part)
        metrics = {"eval/greedy/all": value, "eval/sampled/all": value / 2}
        p.take(step, metrics)
        plain.log(step, metrics)
        live.log(step, metrics)
        seen.append(p.show_change("eval/greedy/all"))
    live.close()
    assert seen == ["0.680", "0.875 of 16 items", "0.680 → 0.860"]
    said = capsys.readouterr().out.splitlines()[1:]
    assert [line.partition("held-out ")[2].partition("  left")[0] for line in said] == [
        "greedy 0.680 sampled 0.340",
        "greedy 0.875 sampled 0.438 of 16 items",
        "greedy 0.860 sampled 0.430",
    ]
    deaf = RunProgress(run, clock)  # of another process, as in a study: the plan tells
    for step, _, _, value in evaluated[:2]:
        deaf.take(step, {"eval/greedy/all": value})
    assert deaf.show_change("eval/greedy/all") == "0.875"
    deaf.take(40, {"eval/greedy/all": 0.86})
    assert deaf.show_change("eval/greedy/all") == "0.680 → 0.860"


def test_training_tasks_are_not_called_held_out(run, clock, capsys):
    run = replace(run, evaluation=replace(run.evaluation, split="train"))
    plain, live = PlainView(run, "t"), LiveView(run, "t", console := Console(file=io.StringIO(), width=90), clock)
    for one in (plain, live):
        one.log(0, {"eval/greedy/all": 0.5, "eval/sampled/all": 0.5})
    console.print(live.panel())
    live.close()
    said = capsys.readouterr().out + console.file.getvalue()
    assert "training greedy 0.500" in said and "training, greedy" in said and "held-out" not in said
    p = RunProgress(run, clock)
    p.take(9, {})
    clock.now += 5
    assert p.doing == "evaluating on training tasks (5 s)"


def test_where_nothing_was_earned_from_the_start_the_view_says_what_to_do(run, clock, capsys):
    view = PlainView(run, "t")
    for step in range(5):
        view.log(step, {"eval/greedy/all": 0.0, "eval/sampled/all": 0.0} | ({"reward/mean": 0.0} if step else {}))
    assert capsys.readouterr().out.count("begin with easier rows, or with demonstrations (docs/add/demonstrations.md)") == 1
    view.log(5, {"reward/mean": 0.1})
    p = RunProgress(run, clock)
    p.take(0, {"eval/sampled/all": 0.0})
    assert p.hint == "", "before the first step nothing is known of the reward"
    p.take(1, {"reward/mean": 0.0})
    assert p.hint
    console = Console(file=io.StringIO(), width=90)
    live = LiveView(run, "t", console, clock)
    live.log(1, {"eval/sampled/all": 0.0, "reward/mean": 0.0})
    console.print(live.panel())
    live.close()
    assert "no answer was right, and none has earned a reward" in flat(console.file.getvalue())
    p.take(2, {"reward/mean": 0.2})
    assert p.hint == ""


def test_of_several_rewards_the_metric_and_the_sum_are_shown(run, clock, capsys):
    """``reward/mean`` is then of the reward that says what is right, and training learns from the sum."""
    of = {"reward": 0.747, "correct": 0.547, "form": 1.0}
    metrics = {"reward/mean": 0.547, **{f"reward/component/{name}": value for name, value in of.items()}}
    live = LiveView(run, "t", console := Console(file=io.StringIO(), width=90), clock)
    for one in (PlainView(run, "t"), live):
        one.log(40, metrics)
    console.print(live.panel())
    live.close()
    assert "correct 0.547  reward 0.747" in capsys.readouterr().out
    drawn = [line.split()[1:3] for line in console.file.getvalue().splitlines() if "0.547" in line or "0.747" in line]
    assert drawn[-2:] == [["correct", "0.547"], ["reward", "0.747"]]
    alone = RunProgress(run, clock)
    alone.take(1, {"reward/mean": 0.5, "reward/component/reward": 0.5})
    assert alone.rewards == (("reward", "reward/mean"),)


def test_a_reward_that_is_earned_is_not_denied(run, clock):
    p = RunProgress(run, clock)
    p.take(0, {"eval/sampled/all": 0.0})
    p.take(
        1, {"reward/mean": 0.0, **{f"reward/component/{n}": v for n, v in {"correct": 0.0, "reward": 0.01, "form": 0.04}.items()}}
    )
    assert p.hint.startswith("no answer was right, although 'form' gave a reward: begin with")


def test_time_left_counts_evaluations_and_not_the_start(run, clock):
    p = RunProgress(run, clock)
    assert p.eta == ""
    clock.now += 50  # loading
    p.take(0, {"eval/greedy/all": 0.5})
    assert p.eta == ""
    for step in range(1, 5):
        clock.now += 2
        p.take(step, {"reward/mean": 0.1 * step})
    assert p.eta == "1:12"  # 36 steps of 2 s
    clock.now += 400
    p.take(5, {})
    assert p.eta == "47:36"  # (8 + 400) / 5 = 81.6 s for each of 35
    clock.now += 10_000
    p.take(6, {})
    assert p.eta == "16:22:58"  # 10,408 s / 6 for each of 34: 58,978 s


def test_a_run_that_goes_on_begins_where_it_was(run, clock, capsys):
    p = RunProgress(run, clock, first=31)
    clock.now += 3
    assert (p.step, p.doing) == (30, "starting (3 s)")
    p.take(31, {})
    clock.now += 2
    p.take(32, {})
    assert p.eta == "0:16"  # 8 steps of 2 s
    view(run, "t", True, 31)
    assert capsys.readouterr().out == "t: 40 steps in sort, 30 done\n"
    view(run, "t", True)
    assert capsys.readouterr().out == "t: 40 steps in sort\n"


def test_what_is_going_on(run, clock):
    p = RunProgress(run, clock)
    clock.now += 3
    assert p.doing == "first evaluation, or loading (3 s)"
    p.take(0, {})
    assert p.doing == "working on step 1"
    for step in range(1, 10):
        clock.now += 1
        p.take(step, {})
    assert p.doing == "working on step 10"
    clock.now += 5
    assert p.doing == "evaluating on held-out tasks (5 s)"
    p.take(10, {})
    clock.now += 9
    assert p.doing == "working on step 11 (9 s)"
    p.take(40, {})
    assert p.doing == "finishing"


def test_a_warm_up_starts_without_an_evaluation_and_ends_with_one(run, clock):
    first = replace(run, stages=(WarmUp(steps=5), *run.stages), evaluation=replace(run.evaluation, every=0))
    p = RunProgress(first, clock)
    clock.now += 2
    assert p.doing == "starting (2 s)"
    p.take(4, {})
    clock.now += 5
    assert p.doing == "evaluating on held-out tasks (5 s)"
    p.take(5, {})
    clock.now += 16
    assert p.doing == "working on step 6 (16 s)"
    p.take(44, {})
    clock.now += 5
    assert p.doing == "evaluating on held-out tasks (5 s)"
    p.take(45, {})
    assert p.doing == "finishing"


def test_courses_and_moves(run, clock):
    p = RunProgress(run, clock)
    assert (p.show("x"), p.show_change("x"), p.spark("x")) == ("–", "–", "")
    p.take(1, {"x": 0.0})
    assert p.show_change("x") == "0.000"
    for step, value in enumerate((0.5, 1.0), 2):
        p.take(step, {"x": value})
    assert p.show_change("x", ".1f") == "0.0 → 1.0"
    assert p.spark("x") == "▁▅█"  # 3.5 of 7 is rounded to the even 4
    assert p.spark("x", 1) == "█"
    p.take(4, {"y": -1.0})
    p.take(5, {"y": 0.0})
    assert p.spark("y") == "▁█"


def test_plain_lines(run, capsys):
    plain = PlainView(run, "mine")
    plain.log(0, {"eval/greedy/all": 0.25, "eval/sampled/all": 0.2})
    for step in range(1, 6):
        plain.log(step, {"reward/mean": 0.5, "signal/fraction": 0.75, "entropy/mean": 0.1, "time/tokens_per_second": 12345.6})
    plain.log(6, {"loss/total": 1.5})
    plain.log(40, {"eval/greedy/all": 0.75, "eval/sampled/all": 0.7})
    plain.close()
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "mine: 40 steps in sort"
    assert out[1] == "step 0/40  held-out greedy 0.250 sampled 0.200"
    assert out[2].startswith("step 2/40  reward 0.500  signal 0.75  entropy 0.100  tok/s 12,346  left ")
    assert out[4].startswith("step 6/40  loss 1.500")
    assert out[5] == "step 40/40  held-out greedy 0.750 sampled 0.700"
    assert len(out) == 6


def test_live_panel(run, clock):
    from rich.console import Console

    console = Console(file=io.StringIO(), width=90, force_terminal=True, color_system=None, legacy_windows=False)
    live = LiveView(run, "mine", console, clock)
    try:
        live.observe_evaluation(8, False)
        live.log(0, {"eval/greedy/all": 0.25, "eval/sampled/all": 0.2, "kl/base": 0.01})
        for step in range(1, 10):
            clock.now += 1
            live.log(
                step,
                {
                    "reward/mean": 0.5,
                    "loss/total": 0.3,
                    "signal/fraction": 0.75,
                    "time/tokens_per_second": 12345.6,
                    "proof/state": 1.0,
                },
            )
        clock.now += 4
        with console.capture() as shown:
            console.print(live.panel())
        text = flat(shown.get())
        for wanted in (
            "mine",
            "held-out, greedy 0.250",
            "reward 0.500",
            "signal fraction 0.75",
            "KL to base, nats 0.0100",
            "tokens/s 12,346",
            "step 9/40",
            "left 0:31",
            "weights proved",
            "evaluating on held-out tasks (4 s)",
        ):
            assert wanted in text
        assert "loss" not in text
        live.log(10, {"proof/state": 0.0, "eval/greedy/all": 0.5})
    finally:
        live.close()
    with console.capture() as shown:
        console.print(live.panel())
    text = flat(shown.get())
    assert "0.250 → 0.500" in text
    assert "weights unproven" in text
    assert "left" not in text
    assert "working" not in text


def test_the_output_decides_the_view(run, monkeypatch, capsys):
    assert isinstance(view(run, "t", False), PlainView)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert isinstance(view(run, "t", True), PlainView)
    live = view(run, "t", False)
    try:
        assert isinstance(live, LiveView)
    finally:
        live.close()


def test_a_reader_that_goes_away_does_not_end_the_run(run, monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    plain = PlainView(run, "title")
    plain.log(0, {"eval/greedy/all": 0.5})
    plain.close()
    assert sys.stdout.name == os.devnull
    sys.stdout.close()


def test_a_terminal_that_is_closed_does_not_end_the_run(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

    closed = Closed()
    monkeypatch.setattr(sys, "stdout", closed)
    shown.say("a line")
    assert sys.stdout is not closed, "what is said from now on goes nowhere"
    shown.say("another")
    sys.stdout.close()


def test_other_failures_of_the_output_are_told(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="No space left"):
        shown.say("a line")

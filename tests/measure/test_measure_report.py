"""The report: self-contained, right in what it says, and there for every kind of folder."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import DataError, MissingExtraError
from assay.measure import html, panels, plots, report
from assay.measure.accuracy_at_k import eval_items
from assay.measure.history import Series
from assay.measure.intervals import Interval, paired_difference
from assay.measure.rollout_line import RolloutLine
from assay.measure.runs import EvalLine, RunView, read_run
from assay.runs import MetricLine

Make = Callable[..., Path]
FACTS = ("time/cpu", "time/step", "tokens/sampled", "proof/state")
VOID = {"meta", "path", "rect", "use", "stop", "line", "circle"}


class Checker(HTMLParser):
    """Collects text and attributes; knows whether elements close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.labels: list[str] = []
        self.wrong: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._note(dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "title"):
            self.words.append(data)

    def _note(self, attrs: dict[str, str | None]) -> None:
        self.ids += [attrs["id"] or ""] if "id" in attrs else []
        self.links += [attrs[n] or "" for n in ("src", "href") if n in attrs]
        self.labels += [attrs["aria-label"] or ""] if attrs.get("role") == "img" else []

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


def written(folder: Path) -> tuple[str, Checker]:
    path = report.write_report(folder)
    assert path == folder / "report.html"
    page = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.wrong == []
    assert checker.open == []
    return page, checker


def without_figures(folder: Path) -> Path:
    for name in ("metrics.jsonl", "evals.jsonl"):
        (folder / name).unlink()
    return folder


def finished(folder: Path) -> Path:
    (folder / "done.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory, build_run: Make) -> tuple[Path, str, Checker]:
    """A finished healthy run with its report, made once."""
    folder = finished(build_run(tmp_path_factory.mktemp("healthy") / "run"))
    return folder, *written(folder)


def test_report_of_a_healthy_run(healthy: tuple[Path, str, Checker]) -> None:
    folder, page, found = healthy
    final, base = (read_run(folder).final("greedy"), read_run(folder).base("greedy"))
    assert final is not None
    assert base is not None
    now, then = final.accuracy(), base.accuracy()
    ends = f"from {100 * then.value:.1f} % [{100 * then.low:.1f}, {100 * then.high:.1f}] to {100 * now.value:.1f} %"
    assert f"200 steps of reinforcement learning on sort raised held-out greedy accuracy {ends}" in found.text
    assert "over 288 items" in found.text
    for said in (
        "The loss reads about 0",
        "level 10",
        "difference, paired",
        "Early, step 20",
        "200 of 200",
        "90 s",
        "x86_64, 2 cores",
    ):
        assert said in found.text, said
    assert "has not finished" not in found.text
    for title in (
        "Greedy and sampled",
        "Per level",
        "Reward",
        "Entropy",
        "KL to base",
        "Response length",
        "Signal",
        "Update",
        "Waste",
        "time went",
    ):
        assert title in found.text, title
    assert "stages[1].group_size" in found.text
    assert sum("over steps" in label or "Accuracy per level" in label for label in found.labels) == 9
    assert any(re.search(r"Reward over steps\. 0\.\d+ at step 21, 0\.9\d* at step 220", label) for label in found.labels)
    assert folder.as_posix() not in page


def test_every_fact_of_the_head_is_as_the_run_recorded_it(run_folder: Make) -> None:
    folder = run_folder()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines[-1]["metrics"]["proof/state"] = 0.0  # one update of all was not proved
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = read_run(folder)
    cpu, step, tokens, proof = ([x.metrics[n] for x in run.metrics if n in x.metrics] for n in FACTS)
    assert cpu and step and tokens and proof
    facts = {name: (value, more) for name, value, more in report._facts(run)}
    ends = {mode: (run.base(mode), run.final(mode)) for mode in ("greedy", "sampled")}
    for mode, (base, now) in ends.items():
        assert base is not None and now is not None
        value = f"{100 * base.accuracy(1.0).value:.1f} → {100 * now.accuracy(1.0).value:.1f}\u00a0%"
        assert facts.pop(f"Held out, {mode}") == (value, f"step {base.step} to {now.step}")
    assert facts == {
        "Steps": ("220", "of 220 planned"),
        "Tokens sampled": (report._short(sum(tokens)), "in training"),
        "CPU time": (report._duration(max(cpu)), f"{report._duration(sum(step))} by the clock, evaluation apart"),
        "Seed": ("3", "x86_64, 2 cores, threads: 1"),
        "Weights proved": (f"{proof.count(1.0)} of {len(proof)}", "after each update, in the sampler"),
        "Evaluation items in training": ("not looked for", run.overlap),
    }


def test_facts_that_were_not_recorded(run_folder: Make) -> None:
    """Without processor time the clock's; without a proof, seed or plan the report says so."""
    folder = run_folder()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line["metrics"] = {n: v for n, v in line["metrics"].items() if n not in ("time/cpu", "proof/state", "tokens/sampled")}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "run.toml").unlink()
    run = read_run(folder)
    facts = {name: (value, more) for name, value, more in report._facts(run)}
    seconds = sum(line["metrics"].get("time/step", 0.0) for line in lines)
    assert facts["Time in steps"] == (report._duration(seconds), "by the clock") and "CPU time" not in facts
    assert facts["Weights proved"] == ("unproven", "no proof was recorded")
    assert facts["Steps"] == ("220", "") and "Tokens sampled" not in facts
    assert facts["Seed"][0] == "unknown"


def test_curves_that_share_a_figure_are_told_apart(healthy: tuple[Path, str, Checker]) -> None:
    labels = {label.partition(" over steps. ")[0]: label for label in healthy[2].labels}
    for title, told in {
        "Waste": r"filtered: 10 % at step 21, 30 % at step 220\. no gradient: .* infra: 0 % at step 21",
        "KL to base": r"held out: 0\.002 at step 21, 0\.4 at step 220\. training: 0\.0015 at step 21, 0\.3 at step 220",
        "Response length": r"all: .* right: 13 at step 21, 16 at step 220\. wrong: 16 at step 21, 22 at .* cut off: 0\.4 % at",
        "Update": r"gradient norm: 0\.\d+ at step 21, .* tokens clipped: 2\.0 % at step 21, 3\.0 % at step 220",
    }.items():
        assert re.search(told, labels[title]), labels[title]


def test_the_accuracy_curve_is_of_the_items_that_all_evaluations_have(healthy: tuple[Path, str, Checker]) -> None:
    assert "On the 108 items that every evaluation has; the largest has 288." in healthy[2].text
    run = read_run(healthy[0])
    common = set(run.evaluations("greedy")[1].scores())
    ends = [np.mean([x.scores()[i] for i in common]) for x in (run.evaluations("greedy")[0], run.evaluations("greedy")[-1])]
    (label,) = [label for label in healthy[2].labels if label.startswith("Held-out accuracy over steps.")]
    assert f"Greedy: {100 * ends[0]:.0f} % at step 20, {100 * ends[1]:.0f} % at step 220." in label


def test_what_the_curve_says_of_its_items() -> None:
    def shown(*evals: EvalLine) -> str:
        return " ".join(panels.accuracy_figures(RunView(folder=Path("r"), settings={}, versions={}, metrics=(), evals=evals)))

    assert "<figcaption>" not in shown(line(0, 1, 4), line(9, 2, 4))
    assert "On the 2 items that every evaluation has; the largest has 4." in shown(line(0, 1, 4), line(9, 2, 2))
    other = replace(line(9, 2, 2), items=eval_items([{"id": "x", "arm": "sort", "level": 1, "values": [1.0]}]))
    assert "Evaluations are of 1 to 4 items and share none" in shown(line(0, 1, 4), other)


def test_report_needs_nothing_from_elsewhere(healthy: tuple[Path, str, Checker]) -> None:
    _, page, found = healthy
    assert "http" not in page
    assert "<script" not in page
    assert "url(" not in re.sub(r"url\(#", "", page)
    assert [x for x in found.links if not x.startswith("#")] == ["rollouts.html"]  # beside it
    assert len(found.ids) == len(set(found.ids))
    assert {x[1:] for x in found.links if x.startswith("#")} <= set(found.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(found.ids)
    for marker in ("#010101", "#040404", "DejaVu"):
        assert marker not in page


@pytest.mark.slow
def test_report_is_a_function_of_the_folder(run_folder: Make) -> None:
    folder = run_folder(last=60)
    (folder / "metrics.jsonl").unlink()
    assert written(folder)[0] == written(folder)[0]


@pytest.mark.slow
def test_report_of_a_collapsed_run_says_so(run_folder: Make) -> None:
    _, found = written(finished(run_folder("collapsed")))
    for said in (
        "lowered held-out greedy accuracy",
        "Entropy fell from",
        "it was not proved",
        "Held-out accuracy",
        "171 of 200",
        "verifier fault",
    ):
        assert said in found.text, said


@pytest.mark.slow
def test_report_of_a_run_killed_early(run_folder: Make) -> None:
    folder = run_folder(last=33)
    metrics = folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    for name in ("rollouts.jsonl", "versions.json"):
        (folder / name).unlink()
    _, found = written(folder)
    assert "held-out greedy accuracy was 41" in found.text
    assert "The run has not finished: it stands at step 32 of 220." in found.text
    for said in ("line 33: cut off", "rollouts.jsonl is missing", "versions.json is missing"):
        assert said in found.text, said
    assert "Sampled rollouts" not in found.text


def test_a_run_whose_programs_nothing_contained_has_a_red_banner(run_folder: Make) -> None:
    folder = without_figures(run_folder(last=70))
    said = {"reward": {"tag": "strong", "held": True}, "check": {"tag": "rlimits (UNSAFE)", "held": False}}
    (folder / "isolation.json").write_text(json.dumps(said), encoding="utf-8")
    page, found = written(folder)
    assert page.count('class="unsafe"') == 1 and "reward.tag" in found.text
    assert "UNSAFE: the check ran programs at rlimits (UNSAFE), which contains nothing" in found.text
    (folder / "isolation.json").write_text(json.dumps({"reward": said["reward"]}), encoding="utf-8")
    assert 'class="unsafe"' not in written(folder)[0]


def test_evaluation_items_among_training_prompts_are_a_line_or_a_red_banner(run_folder: Make) -> None:
    folder = without_figures(run_folder(last=70))
    assert "nobody looked whether training prompts contain evaluation items" in written(folder)[1].text
    record = {"mode": "report", "prompts": 1200, "whole": True, "near": True, "items": 300, "contaminated": 0, "found": 0}
    (folder / "contamination.json").write_text(json.dumps(record), encoding="utf-8")
    page, found = written(folder)
    assert (
        "0 of 1,200 prompts0 of 1,200 training prompts match 300 evaluation items" in found.text and 'class="unsafe"' not in page
    )
    record |= {"contaminated": 7, "found": 4, "examples": [{"prompt": "task 'rows/1'", "file": "aime.jsonl", "line": 3}]}
    (folder / "contamination.json").write_text(json.dumps(record), encoding="utf-8")
    page, found = written(folder)
    assert page.count('class="unsafe"') == 1 and "aime.jsonl" in found.text
    said = "7 of 1,200 training prompts match 4 of 300 evaluation items; allowed by Run.contamination.mode='report'"
    assert f"CONTAMINATED: {said}. Held-out accuracies may be memory" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["run.toml", "versions.json", "metrics.jsonl", "evals.jsonl", "rollouts.jsonl", "events.jsonl"])
def test_any_single_file_is_enough(run_folder: Make, kept: str) -> None:
    folder = run_folder(last=70)
    for path in folder.iterdir():
        if path.name != kept:
            path.unlink()
    _, found = written(folder)
    assert found.text.count("is missing") == (5 if kept == "events.jsonl" else 4)


def test_damage_is_an_error_not_a_wrong_report(run_folder: Make, tmp_path: Path) -> None:
    folder = run_folder(last=30)
    (folder / "evals.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"evals\.jsonl, line 1"):
        report.write_report(folder)
    assert not (folder / "report.html").exists()
    with pytest.raises(DataError, match="not a folder"):
        report.write_report(str(tmp_path / "none"))


def test_without_matplotlib_the_extra_is_named(run_folder: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"assay-rl\[report\]"):
        report.write_report(run_folder(last=30))


def test_what_the_model_wrote_cannot_become_markup(run_folder: Make) -> None:
    folder = run_folder()
    path = folder / "rollouts.jsonl"
    path.write_text(
        path.read_text(encoding="utf-8").replace("take <3>", "<script>alert(1)</script>\\u0000\\ud800"), encoding="utf-8"
    )
    found = Checker()
    page = report.render(replace(read_run(folder), metrics=(), evals=()))
    found.feed(page)
    assert "<script" not in page
    assert "<script>alert(1)</script>\ufffd\ufffd" in found.text


def test_verdicts(run_folder: Make) -> None:
    flat = read_run(run_folder(last=45))
    evals = tuple(
        e if e.step == 45 else type(e)(step=e.step, split=e.split, mode=e.mode, items=flat.evals[-2].items) for e in flat.evals
    )
    same = type(flat)(folder=flat.folder, settings=flat.settings, versions={}, metrics=flat.metrics, evals=evals)
    assert "showed no change of held-out greedy accuracy: from" in report.verdict(same)
    sampled = type(flat)(
        folder=flat.folder,
        settings={},
        versions={},
        metrics=flat.metrics,
        evals=tuple(e for e in flat.evals if e.mode == "sampled"),
    )
    assert "on sort raised held-out sampled accuracy" in report.verdict(sampled)
    warm = type(flat)(folder=flat.folder, settings={}, versions={}, metrics=flat.metrics[:9], finished=True)
    assert report.verdict(warm) == "9 steps of supervised warm-up on unknown tasks, without a held-out evaluation."
    unscored = tuple(MetricLine(step=s, stage="rl", metrics={"rollouts/faulty": 1.0}) for s in range(3))
    silent = type(flat)(folder=flat.folder, settings={}, versions={}, metrics=unscored, finished=True)
    assert report.verdict(silent).startswith("2 steps of reinforcement learning on"), "no rollout had a verdict"
    stopped = type(flat)(folder=flat.folder, settings={}, versions={}, metrics=unscored[:1])
    assert report.verdict(stopped).startswith("0 steps of reinforcement learning on"), "stopped before a step"
    given = tuple(
        MetricLine(step=s, stage="preferences", metrics={"loss/total": 0.5, "score/margin": s / 2}) for s in range(1, 5)
    )
    preferring = replace(warm, metrics=(*flat.metrics[:9], *given))
    assert report.verdict(preferring).startswith("4 steps of learning from preferences, evaluated on unknown tasks, without")
    assert "Gap between the scores of better and worse answers" in report.render(preferring)


def line(step: int, right: int, items: int, mode: str = "greedy") -> EvalLine:
    """An evaluation in which the first ``right`` of ``items`` items are answered."""
    outcomes = eval_items([{"id": f"i{i}", "arm": "sort", "level": 1, "values": [float(i < right)]} for i in range(items)])
    return EvalLine(step=step, split="test", mode=mode, items=outcomes)


def told(*evals: EvalLine, stages: Sequence[tuple[str, int, int]] = (("rl", 1, 9),)) -> str:
    kinds = {"rl": "reward/mean"}
    metrics = tuple(
        MetricLine(step=s, stage=name, metrics={kinds.get(name, "loss/total"): 0.5})
        for name, first, last in stages
        for s in range(first, last + 1)
    )
    return report.verdict(RunView(folder=Path("r"), settings={}, versions={}, metrics=metrics, evals=evals, finished=True))


def test_raised_is_said_only_where_the_exact_test_agrees() -> None:
    """Three items more of 200: the bootstrap interval excludes 0, the sign-flip test has p = 0.250."""
    p = paired_difference(line(0, 3, 200).scores(), line(9, 6, 200).scores())
    assert p.difference.low > 0 and p.p_value == 0.25
    assert "sort showed no change of held-out greedy accuracy: from" in told(line(0, 3, 200), line(9, 6, 200))
    assert told(line(0, 3, 200), line(9, 6, 200)).endswith("over 200 items (p = 0.250).")
    assert "showed no change" in told(line(0, 6, 200), line(9, 3, 200))
    assert "sort raised held-out" in told(line(0, 3, 200), line(9, 12, 200))
    assert "sort lowered held-out" in told(line(0, 12, 200), line(9, 3, 200))


def test_an_evaluation_of_a_part_is_compared_on_the_items_of_both() -> None:
    """The first 8 of 24 items are answered before and after: nothing rose."""
    said = told(line(0, 8, 24), line(9, 8, 8))
    assert "showed no change of held-out greedy accuracy: from 100.0" in said and "over 8 items" in said


def test_what_imitation_did_is_not_told_of_reinforcement_learning() -> None:
    stages = (("sft", 1, 40), ("rl", 41, 100))
    said = told(line(0, 0, 50), line(40, 49, 50), line(41, 50, 50), line(100, 50, 50), stages=stages)
    assert said.startswith("60 steps of reinforcement learning on sort showed no change of held-out greedy accuracy: from 98.0")
    assert "Before that, 40 steps of imitation raised held-out greedy accuracy from 0.0" in said
    only = told(line(20, 0, 50), line(40, 49, 50), line(100, 50, 50), stages=stages)  # not evaluated before imitation
    assert "Before that" not in only


def test_accuracy_on_training_tasks_is_not_called_held_out() -> None:
    evals = tuple(replace(x, split="train") for x in (line(0, 40, 50), line(9, 10, 50)))
    metrics = tuple(MetricLine(step=s, stage="rl", metrics={"reward/mean": s / 10, "proof/state": 1.0}) for s in range(1, 10))
    run = RunView(folder=Path("r"), settings={}, versions={}, metrics=metrics, evals=evals, finished=True)
    page = re.sub("<[^>]*>", " ", report.render(run).partition("</head>")[2])
    assert "Accuracy on training tasks" in page and "nothing was held out, so this may be memory" in page
    assert (
        "Accuracy on training tasks (greedy) fell from 80 %" in page and "but accuracy on training tasks went from 80 %" in page
    )
    glossary = page.index("Words") if "Words" in page else len(page)
    assert [said for said in re.findall(r"[Hh]eld[- ]out accuracy", page[:glossary]) if said] == ["held-out accuracy"]


def test_what_was_trained_is_named_by_its_arms_else_by_its_kind(run_folder: Make) -> None:
    run = read_run(run_folder(last=30))
    assert report._tasks(run) == "sort"
    assert report._tasks(replace(run, evals=(), rollouts=())) == "Sorting"


def test_other_items_than_before_are_not_paired(run_folder: Make) -> None:
    folder = finished(run_folder())
    path = folder / "evals.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines[:-2], *(x.replace("sort-", "new-") for x in lines[-2:])]) + "\n", encoding="utf-8")
    run = read_run(folder)
    assert "other items than before, so not paired" in report.verdict(run)
    assert "– –" in re.sub("<[^>]*>", " ", report._levels(run)).replace("  ", " ")


def test_durations_and_sizes() -> None:
    assert [report._duration(s) for s in (0.5, 99, 100, 7200)] == ["0.5 s", "99 s", "1.7 min", "2.0 h"]
    assert [report._short(x) for x in (12, 1234, 5.6e6, 7e9)] == ["12", "1.23 k", "5.6 M", "7 G"]
    assert report._cut("ab" * 4000).count("\n") == 2


def attempt(value: float, fault: str = "none") -> RolloutLine:
    return RolloutLine(
        step=1,
        stage="rl",
        id="r",
        task="t",
        arm="a",
        level=1,
        prompt="p",
        text="",
        stop="done",
        components={} if fault != "none" else {"correct": value},
        fault=fault,
        length=1,
    )


def test_shown_rollouts_hold_failures_and_faults() -> None:
    good, bad, faulty = attempt(1.0), attempt(0.0), attempt(0.0, "infra")
    shown = report.sample_of([good] * 3 + [attempt(1.0), bad, attempt(0.0), faulty])
    assert len(report.sample_of([attempt(1.0) for _ in range(9)])) == 4
    assert len(report.sample_of([attempt(0.0) for _ in range(9)])) == 4
    assert any(r.fault == "infra" for r in shown)
    assert any(r.primary == 0.0 for r in shown)
    assert any(r.primary == 1.0 for r in shown)
    mixed = report.sample_of([attempt(1.0), *(attempt(0.0) for _ in range(9))])
    assert [r.primary for r in mixed].count(1.0) == 1
    assert len(mixed) == 4


def test_moving_average_by_hand() -> None:
    found = plots.moving_average(np.array([0.0, 3.0, 6.0, 0.0]), 3)
    assert found.tolist() == pytest.approx([1.5, 3.0, 3.0, 3.0])
    assert plots.moving_average(np.arange(5.0), 1).tolist() == [0, 1, 2, 3, 4]


def series(*values: float) -> Series:
    return Series(np.arange(len(values)), np.array(values))


def test_figures_bear_odd_numbers() -> None:
    below = plots.lines("below", [[plots.Curve(label="x", series=series(-1.0, 2.0))]])
    zero = plots.lines("zero", [[plots.Curve(label="x", series=series(0.0, float("nan"), 0.0))]], percent=(True,))
    nothing = plots.lines("nothing", [[plots.Curve(label="x", series=series())]])
    none = plots.bars("none", {"a": 0.0}, "s")
    for svg in (below, zero, nothing, none):
        assert svg.startswith("<svg viewBox=")
        assert svg.endswith("</svg>")
    assert "−1" in below


def test_end_labels_never_meet() -> None:
    point = (Interval(0.5, 0.4, 0.6),)
    svg = plots.interval_lines("meet", [plots.Curve(label=n, series=series(0.5), intervals=point) for n in ("left", "right")], 9)
    heights = [float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>(?:left|right)<', svg)]
    assert len(heights) == 2
    assert abs(heights[0] - heights[1]) >= 10


def test_settings_are_flattened() -> None:
    found = html.details("Settings", {"a": {"b": [1, 2]}, "s": [{"x": 1}, {"x": 2}], "e": {}})
    assert re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", found) == [("a.b", "1, 2"), ("s[0].x", "1"), ("s[1].x", "2"), ("e", "{}")]
    assert html.details("Settings", {}) == ""
    assert html.section("Title", "") == ""

"""Which figures a report shows, and their descriptions in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.measure.findings import percent
from assay.measure.history import History, Series
from assay.measure.html import figure
from assay.measure.plots import Curve, bars, heat_map, interval_lines, lines
from assay.measure.runs import EvalLine, RunView

__all__ = ["ProfiledPart", "accuracy_figures", "profile_figure", "profile_of", "training_figures"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A figure of the training section: stacked axes, each with metric names, their labels, and whether they are shares."""

    title: str
    metrics: Sequence[Sequence[tuple[str, str]]]
    percent: tuple[bool, ...]
    caption: str
    labels: tuple[str, ...] = ()


PANELS = (
    Panel(
        title="Reward",
        metrics=[[("reward/mean", "reward")]],
        percent=(False,),
        caption="Mean over the step's rollouts. The curriculum changes what is practised, so compare with held-out accuracy.",
    ),
    Panel(
        title="Signal fraction",
        metrics=[[("signal/fraction", "signal")]],
        percent=(True,),
        caption="Groups whose rollouts differ in reward. The others teach a group baseline nothing.",
    ),
    Panel(
        title="Preferences",
        percent=(False, True),
        labels=("margin", "in order"),
        metrics=[[("score/margin", "margin")], [("score/accuracy", "in order")]],
        caption="Gap between the scores of better and worse answers, and the share of pairs that the scores put in order.",
    ),
    Panel(
        title="Entropy",
        metrics=[[("entropy/mean", "entropy")]],
        percent=(False,),
        caption="Nats per sampled token. A fall while reward rises is learning; a fall to 0 without it is collapse.",
    ),
    Panel(
        title="KL to base",
        metrics=[[("kl/base", "held out"), ("kl/base_train", "training")]],
        percent=(False,),
        caption="Divergence from the starting weights, nats per token, on sampled answers.",
    ),
    Panel(
        title="Response length",
        percent=(False, True),
        labels=("tokens", "cut off"),
        metrics=[
            [("length/mean", "all"), ("length/mean_right", "right"), ("length/mean_wrong", "wrong")],
            [("length/truncated", "cut off")],
        ],
        caption="Sampled tokens per rollout, of right and wrong ones apart, and the share of rollouts cut off at the limit.",
    ),
    Panel(
        title="Help",
        percent=(True, True),
        labels=("given", "success"),
        metrics=[
            [("help/share", "rollouts with help"), ("help/prefix", "of a solution, by prefixes")],
            [("help/success", "with help"), ("help/success_without", "without")],
        ],
        caption="Rollouts that began with a hint, a prefix or a later state, and how they and the others succeeded. Evaluations "
        "give no help.",
    ),
    Panel(
        title="Tokens of others",
        percent=(True, False, False),
        labels=("share", "nats", "ratio"),
        metrics=[
            [("sources/share", "of the loss tokens"), ("sources/unlikely", "unlikely"), ("sources/clipped", "clipped")],
            [("sources/entropy", "entropy"), ("sources/logprob", "log-probability")],
            [("sources/ratio", "to the old policy"), ("sources/gradient_weight", "gradient weight")],
        ],
        caption="Tokens that the policy did not sample: demonstrations, stored and replayed answers. Unlikely are those to which "
        "it gives less than 0.1; clipped are those beyond the trust region, from which nothing is learned.",
    ),
    Panel(
        title="Forgetting",
        metrics=[[("forgetting/greedy", "passed before, fails now")]],
        percent=(True,),
        caption="Of the held-out tasks that an earlier evaluation passed, those that fail now. Greedy answers.",
    ),
    Panel(
        title="Age of rollouts",
        percent=(False, False),
        labels=("steps", "dropped"),
        metrics=[[("async/age_mean", "mean"), ("async/age_max", "greatest")], [("async/dropped", "dropped")]],
        caption="Publications of weights since a group's oldest token was sampled, and groups that were dropped as too old.",
    ),
    Panel(
        title="Calls of tools",
        percent=(False, True),
        labels=("per rollout", "failed"),
        metrics=[[("tools/calls", "calls")], [("tools/errors", "failed")]],
        caption="Calls per rollout, and the share of them that had an error for an answer.",
    ),
    Panel(
        title="Calls of agent programs",
        percent=(False, True),
        labels=("per run", "of calls"),
        metrics=[
            [("agent/calls", "calls")],
            [("agent/spliced", "spliced"), ("agent/rendered", "rendered"), ("agent/undelivered", "undelivered")],
        ],
        caption="Calls per run; histories that came back in another form, those that say something else and begin a row of their "
        "own, and answers without loss.",
    ),
    Panel(
        title="Update",
        metrics=[[("grad/norm", "norm")], [("policy/clip_fraction", "clipped")]],
        percent=(False, True),
        caption="Norm before it is scaled down, and tokens whose ratio left the clip. The loss itself reads about 0 on fresh "
        "samples and is not shown.",
        labels=("gradient norm", "tokens clipped"),
    ),
    Panel(
        title="Reward and independent check",
        percent=(False, True),
        labels=("mean verdict", "right for the reward alone"),
        metrics=[[("check/reward", "reward"), ("check/value", "check")], [("check/overpaid", "overpaid")]],
        caption="On the rollouts that both judged; a growing gap is a reward that the policy has learned to please.",
    ),
    Panel(
        title="Stated confidence",
        percent=(False,),
        metrics=[
            [("calibration/sampled/ece", "ECE"), ("calibration/sampled/brier", "Brier"), ("calibration/sampled/auroc", "AUROC")]
        ],
        caption="Of sampled held-out answers. ECE and Brier score are best at 0; AUROC is 1/2 where confidence says nothing.",
    ),
    Panel(
        title="Waste",
        percent=(True, True),
        labels=("rows that taught nothing", "faults"),
        metrics=[
            [("waste/rows_filtered", "filtered"), ("waste/rows_skipped", "no gradient")],
            [("fault/rate", "infra"), ("fault/policy", "policy")],
        ],
        caption="Sampled rows that filters removed, and rows of the batch without gradient; rollouts lost to verifier or "
        "infrastructure faults, and the model's own.",
    ),
)


PROFILE = ("time/profile/", "time/profile_cpu/")
"""Wall and CPU seconds by part, of steps that were profiled."""


def accuracy_figures(run: RunView) -> Iterator[str]:
    """Held-out accuracy with intervals, and greedy accuracy per level."""
    whole = {mode: run.evaluations(mode) for mode in ("greedy", "sampled")}
    found = {mode: _on_common_items(evals) for mode, evals in whole.items()}
    sizes = [[len(x.items) for evals in lines.values() for x in evals] for lines in (whole, found)]
    curves = [
        Curve(label=m, series=_accuracy(run, x), intervals=tuple(y.accuracy(run.threshold) for y in x))
        for m, x in found.items()
        if x
    ]
    if curves:
        alt = f"{'Held-out accuracy' if run.held_out else 'Accuracy on training tasks'} over steps. " + " ".join(
            f"{c.label.capitalize()}: {_series_text(c.series, True)}" for c in curves
        )
        roomy, narrow = (interval_lines(f"accuracy-{n}", curves, run.last_step, narrow=bool(n)) for n in (0, 1))
        yield figure("Greedy and sampled", roomy, alt, _items_caption(*sizes), narrow=narrow)
    line = found["greedy"] or found["sampled"]
    arms = sorted({arm for x in line for arm in x.arms})
    for arm in arms:
        own = [x.only(arm=arm) for x in line]
        levels = sorted({level for x in own for level in x.levels})
        if len(levels) > 1:
            yield _level_figure(run, own, levels, f"{arm}, " if len(arms) > 1 else "")


def _on_common_items(evals: Sequence[EvalLine]) -> tuple[EvalLine, ...]:
    """The evaluations on the items that all of them have, so that a curve shows the policy and not the choice of items.

    As they are where no item is in all of them.
    """
    ids = [frozenset(i.id for i in x.items) for x in evals]
    common = frozenset[str]() if not ids else ids[0].intersection(*ids[1:])
    kept = [replace(x, items=tuple(i for i in x.items if i.id in common)) for x in evals]
    return tuple(kept if common else evals)


def _items_caption(recorded: Sequence[int], shown: Sequence[int]) -> str:
    """Says of which items the points are, where evaluations are of different sizes; empty elsewhere."""
    least, most = min(shown), max(recorded)
    if len(set(shown)) > 1:
        return f"Evaluations are of {least} to {most} items and share none, so their points are of different items."
    return f"On the {least} items that every evaluation has; the largest has {most}." if least < most else ""


def _accuracy(run: RunView, evals: Sequence[EvalLine]) -> Series:
    return Series(np.array([x.step for x in evals], np.int64), np.array([x.accuracy(run.threshold).value for x in evals]))


def _level_figure(run: RunView, evals: Sequence[EvalLine], levels: Sequence[int], arm: str) -> str:
    values = np.full((len(levels), len(evals)), np.nan)
    for x, line in enumerate(evals):
        for y, level in enumerate(levels):
            scores = line.only(level).scores(run.threshold)
            if scores:
                values[y, x] = np.mean(list(scores.values()))
    words = ", ".join(f"level {lv} {_ends(row)}" for lv, row in zip(levels, values, strict=True))
    steps, rows = [x.step for x in evals], [f"level {x}" for x in levels]
    roomy, narrow = (heat_map(f"levels-{arm.rstrip(', ')}{n}", steps, rows, values, narrow=bool(n)) for n in (0, 1))
    alt = f"Accuracy per level, {arm}first to last evaluation: {words}."
    return figure(
        f"Per level, {arm}{evals[0].mode}",
        roomy,
        alt,
        "Percent of items solved; darker is better, harder levels stand higher.",
        narrow,
    )


def _ends(row: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    known = row[np.isfinite(row)]
    return f"{percent(float(known[0]))} to {percent(float(known[-1]))}" if len(known) else "not evaluated"


def training_figures(run: RunView) -> Iterator[str]:
    """Reward, signal, entropy, divergence, length, gradient, waste, time; only what the run recorded."""
    whole = run.history()
    history = whole.learning()
    for index, panel in enumerate(PANELS):
        curves = [
            [Curve(label=label, series=history[n]) for n, label in axis if len(history[n].finite())] for axis in panel.metrics
        ]
        kept = [(c, p, label) for c, p, label in zip(curves, panel.percent, panel.labels or [""] * len(curves), strict=True) if c]
        if not kept:
            continue
        shown = [c for c, _, _ in kept]
        svg = lines(
            f"panel-{index}", shown, percent=[p for _, p, _ in kept], labels=[n for _, _, n in kept] if panel.labels else ()
        )
        said = " ".join(f"{c.label if len(cs) > 1 else n}: {_series_text(c.series.finite(), p)}" for cs, p, n in kept for c in cs)
        yield figure(panel.title, svg, f"{panel.title} over steps. {said.removeprefix(': ')}", panel.caption)
    taught = whole.supervised_part("loss/total").finite()
    if len(taught):
        alt = f"Loss of the supervised stage. {_series_text(taught, False)}"
        yield figure(
            "Warm-up loss",
            lines("warm-up", [[Curve(label="loss", series=taught)]]),
            alt,
            "Of the supervised stage, nats per token.",
        )
    yield from _time_figure(history)


def _time_figure(history: History) -> Iterator[str]:
    whole = history["time/step"].finite().values.sum()
    apart = {"time/step", "time/cpu", "time/evaluate", "time/other", "time/tokens_per_second", "time/tokens_recalled"}
    parts = {
        n.removeprefix("time/").replace("_", " "): float(history[n].finite().values.sum())
        for n in history.names("time/")
        if n not in apart and not n.startswith(PROFILE)
    }
    if not whole or not parts:
        return
    parts = {n: v for n, v in parts.items() if v >= 0.005 * float(whole)}
    parts["other"] = max(0.0, float(whole) - sum(parts.values()))
    words = ", ".join(f"{n} {percent(v / float(whole))}" for n, v in sorted(parts.items(), key=lambda x: -x[1]))
    yield figure(
        "Where the time went",
        bars("time", parts, "s"),
        f"Shares of step time: {words}.",
        "Seconds by the clock over all steps, evaluation apart.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledPart:
    """A part of the steps that were profiled: wall and CPU seconds over all of them."""

    name: str
    wall: float
    cpu: float


def profile_of(run: RunView) -> tuple[int, tuple[ProfiledPart, ...]]:
    """How many steps were profiled, and their parts, the largest first; of reinforcement learning where there is any."""
    history = run.history().learning()
    parts = [
        ProfiledPart(
            name=n.removeprefix(PROFILE[0]),
            wall=float(history[n].finite().values.sum()),
            cpu=float(history[n.replace(PROFILE[0], PROFILE[1])].finite().values.sum()),
        )
        for n in history.names(PROFILE[0])
    ]
    steps = max((len(history[n].finite()) for n in history.names(PROFILE[0])), default=0)
    return steps, tuple(sorted(parts, key=lambda p: -p.wall))


def profile_figure(steps: int, parts: Sequence[ProfiledPart]) -> str:
    """The parts of a mean step as bars."""
    ms = {p.name: 1e3 * p.wall / steps for p in parts}
    whole = sum(ms.values()) or 1.0
    words = ", ".join(f"{n} {percent(v / whole)}" for n, v in ms.items())
    return figure("A mean step", bars("profile", ms, "ms"), f"Shares of a step: {words}.", "Milliseconds by the clock.")


def _series_text(series: Series, share: bool) -> str:
    first, last = series.span
    a, b = float(series.values[0]), float(series.values[-1])
    shown = (percent(a), percent(b)) if share else (f"{a:.3g}", f"{b:.3g}")
    return f"{shown[0]} at step {first}, {shown[1]} at step {last}."

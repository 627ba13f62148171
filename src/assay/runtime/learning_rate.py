"""Schedules of the learning rate by one word, and in words."""

from __future__ import annotations

from assay.runtime.settings import LearningRateSchedule

__all__ = ["describe_schedule", "schedule_of_kind"]


def schedule_of_kind(schedule: LearningRateSchedule, kind: str | None) -> LearningRateSchedule:
    """The schedule itself for None and where it is of that kind; else one of that kind with the same warm-up, after which it
    decays to 0.

    >>> schedule_of_kind(LearningRateSchedule(kind="linear", warmup=5, start=0.5, floor=0.1), "cosine")
    LearningRateSchedule(kind='cosine', warmup=5, start=0.0, floor=0.0)
    """
    return schedule if kind in (None, schedule.kind) else LearningRateSchedule(kind=kind, warmup=schedule.warmup)


def describe_schedule(schedule: LearningRateSchedule, lr: float, total: int) -> str:
    """The rate over a stage of ``total`` updates, in words.

    >>> describe_schedule(LearningRateSchedule(kind="linear", warmup=5, start=0.5, floor=0.1), 1e-4, 100)
    'rises to 0.0001 in 5 updates, stays, and from update 50 of 100 falls linearly to 1e-05'
    """
    warmup = schedule.warmup
    rise = f"rises to {lr:g} in {warmup} update{'s' if warmup > 1 else ''}" if warmup else ""
    if schedule.kind == "constant":
        return f"{rise}, then constant" if rise else f"constant at {lr:g}"
    begin = round(max(schedule.start * total, float(warmup)))
    curve, low = "linearly" if schedule.kind == "linear" else "along a cosine", f"{schedule.floor * lr:g}"
    if begin <= warmup:
        up = f"{rise}, then falls {curve}" if rise else f"falls {curve} from {lr:g},"
        return f"{up} to {low} at update {total}"
    return f"{f'{rise}, stays,' if rise else f'stays at {lr:g},'} and from update {begin} of {total} falls {curve} to {low}"

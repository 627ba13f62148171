"""A queue of jobs with plans."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_QUEUE = '''\
"""Jobs that wait."""


class JobQueue:
    """Jobs with priorities. The highest priority comes first; among equal ones the job that came first."""

    def __init__(self):
        self.jobs = []
        self.count = 0

    def push_job(self, name, priority=0):
        """Let a job wait; return how many jobs wait now."""
        self.jobs.append([-priority, self.count, name])
        self.count += 1
        return len(self.jobs)

    def pop_job(self):
        """The name of the job whose turn it is, which then waits no more. IndexError where none waits."""
        if not self.jobs:
            raise IndexError("no job waits")
        best = min(self.jobs)
        self.jobs.remove(best)
        return best[2]

    def drop_job(self, name):
        """Remove all jobs of a name; return how many there were."""
        before = len(self.jobs)
        self.jobs = [job for job in self.jobs if job[2] != name]
        return before - len(self.jobs)

    def waiting(self):
        """The names of all jobs in the order in which they will have their turns."""
        return [name for _, _, name in sorted(self.jobs)]
'''

_PLAN = '''\
"""Plans for jobs that need others."""

from .queue import JobQueue


def plan_order(needs, priorities=None):
    """An order of jobs in which each comes after all that it needs.

    needs maps each job to a list of jobs. Of the jobs that may come next, the one with the highest priority does (0 for those
    that have none), among equal ones the first in alphabetical order. KeyError where a job needs one that is not in needs,
    ValueError where jobs need each other.
    """
    priorities = priorities or {}
    for others in needs.values():
        for other in others:
            if other not in needs:
                raise KeyError(other)
    order = []
    while len(order) < len(needs):
        queue = JobQueue()
        for name in sorted(needs):
            if name not in order and all(other in order for other in needs[name]):
                queue.push_job(name, priorities.get(name, 0))
        if not queue.waiting():
            raise ValueError("jobs need each other")
        order.append(queue.pop_job())
    return order


def finish_times(needs, hours):
    """When each job ends if each starts as soon as all that it needs have ended, the first ones at 0."""
    ends = {}
    for name in plan_order(needs):
        start = max([ends[other] for other in needs[name]], default=0)
        ends[name] = start + hours[name]
    return ends


def total_hours(needs, hours):
    """When the last job ends; 0 without jobs."""
    return max(finish_times(needs, hours).values(), default=0)


def needed_by(needs, job):
    """All jobs that a job needs, directly or not, in alphabetical order."""
    found = []
    todo = list(needs[job])
    while todo:
        other = todo.pop()
        if other not in found:
            found.append(other)
            todo.extend(needs[other])
    return sorted(found)
'''

_JOBS = ["wash", "sort", "pack", "load", "scan", "print", "bake", "mix", "test", "ship"]


def _draw_queue(rng: Random) -> list[str]:
    lines = ["queue = JobQueue()"]
    for job in rng.sample(_JOBS, rng.randint(2, 5)):
        lines.append(f"queue.push_job({job!r}{rng.choice(('', f', {rng.randint(-1, 3)}', f', {rng.randint(0, 2)}'))})")
    return lines


def _queue_asked(rng: Random) -> Example:
    asks = ("queue.waiting()", "queue.pop_job()", "[queue.pop_job(), queue.pop_job()]", "queue.push_job('fix', 1)")
    return _draw_queue(rng), rng.choice(asks)


def _queue_dropped(rng: Random) -> Example:
    lines = _draw_queue(rng)
    name = lines[1].split("'")[1]
    lines += rng.choice(([], [f"queue.push_job({name!r}, 1)"]))
    return lines, f"[queue.drop_job({rng.choice((name, 'none'))!r}), queue.waiting()]"


def _queue_empty(rng: Random) -> Example:
    lines = ["queue = JobQueue()", f"queue.push_job({rng.choice(_JOBS)!r})", "queue.pop_job()"]
    return lines, rng.choice(("queue.pop_job()", "queue.waiting()"))


def _needs(rng: Random) -> dict[str, list[str]]:
    jobs = rng.sample(_JOBS, rng.randint(3, 5))
    needs = {job: rng.sample(jobs[:i], min(i, rng.choice((0, 1, 1, 2)))) for i, job in enumerate(jobs)}
    return {job: needs[job] for job in rng.sample(jobs, len(jobs))}


def _draw_order(rng: Random) -> Example:
    needs = _needs(rng)
    priorities = rng.choice(("", f", { ({job: rng.randint(0, 3) for job in needs}) }"))
    return [f"needs = {needs}"], f"plan_order(needs{priorities})"


def _plan_refused(rng: Random) -> Example:
    a, b, c = rng.sample(_JOBS, 3)
    return [f"needs = {rng.choice(({a: [b], b: [c], c: [a]}, {a: [], b: [a, c]}, {a: [a]}))}"], "plan_order(needs)"


def _ends(rng: Random) -> Example:
    needs = _needs(rng)
    lines = [f"needs = {needs}", f"hours = { ({job: rng.randint(1, 9) for job in needs}) }"]
    return lines, rng.choice(("finish_times(needs, hours)", "total_hours(needs, hours)", "total_hours({}, {})"))


def _draw_needs(rng: Random) -> Example:
    needs = _needs(rng)
    job = max(needs, key=lambda name: len(needs[name]))
    return [f"needs = {needs}"], f"needed_by(needs, {job!r})"


KIND = Kind(
    "jobs",
    {"queue": _QUEUE, "plan": _PLAN},
    {
        "JobQueue queue": ("JobQueue queue", "WaitList waitlist", "Backlog backlog"),
        "plan": ("plan", "planning", "schedule"),
        "push_job pop_job": ("push_job pop_job", "add_job next_job", "enqueue dequeue"),
        "drop_job": ("drop_job", "cancel", "discard"),
        "plan_order": ("plan_order", "order_jobs", "sequence"),
        "finish_times": ("finish_times", "end_times", "ends_of"),
        "total_hours": ("total_hours", "makespan", "whole_time"),
        "needed_by": ("needed_by", "all_needs", "prerequisites"),
    },
    (_queue_asked, _queue_dropped, _queue_empty, _draw_order, _plan_refused, _ends, _draw_needs),
    (
        Plant("missing step", "plan", "            todo.extend(needs[other])\n", ""),
        Plant("missing step", "queue", "        self.jobs.remove(best)\n", ""),
        Plant("missing step", "queue", "        self.count += 1\n", ""),
        Plant(
            "missing case",
            "plan",
            "            if other not in needs:\n                raise KeyError(other)\n",
            "            pass\n",
        ),
        Plant("wrong name", "queue", "[-priority, self.count, name]", "[-priority, name, name]"),
    ),
)
"""A queue of jobs with plans."""

"""``assay tasks check``: a family held to its contract, and each of its problems to theirs."""

from __future__ import annotations

from assay.cli.output import busy, show
from assay.cli.sources import own_code
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import TaskSource

__all__ = ["check_family"]

_ENOUGH = 8
"""Questions a level from which the efforts of two levels can be compared."""


def check_family(family: TaskSource, name: str, n: int, deadline: float, as_json: bool) -> int:
    """Checks a family, and prints each promise as soon as it has held; with ``as_json`` all at the end.

    Args:
        family: what is checked; of `assay.tasks.Problems` each problem, too.
        name: as it was named on the command line.
        n: tasks of each arm, level and split.
        deadline: seconds for one verdict of a verifier that is not ``trusted``.
        as_json: print JSON.

    Raises:
        ContractError: a promise is broken.
    """
    from assay.tasks import Problems
    from assay.testing import ContractError, Report, check_problem, check_task_source

    def report_new(prefix: str, report: Report, said: bool) -> None:
        """Adds a report to what was found; prints what of it was not yet."""
        passed.extend(prefix + p for p in report.passed)
        skipped.extend(prefix + s for s in report.skipped)
        numbers.update({prefix + k: v for k, v in report.numbers.items()})
        if not as_json:
            lines = report.lines()[len(report.passed) if said else 0 :]
            print("\n".join(f"{line[:6]}{prefix}{line[6:]}" for line in lines), flush=True)

    def say(promise: str) -> None:
        print(f"pass  {promise}", flush=True)

    passed, skipped, numbers = list[str](), list[str](), dict[str, float]()
    subject = f"task family {family.name}"
    if not as_json:
        print(subject, flush=True)
    try:
        with own_code(name), busy(f"checking {family.name}" if as_json else ""):
            report_new("", check_task_source(family, n=n, deadline=deadline, say=None if as_json else say), said=True)
            for problem in family.problems if isinstance(family, Problems) else ():
                found = check_problem(problem, n=n, growth=None if n >= _ENOUGH else 0.0, deadline=deadline)
                report_new(f"{problem.name}: ", found, said=False)
    except (ConfigError, DataError) as error:  # the check's own finding, not a wrong argument
        raise ContractError(f"{subject}: {error}") from error
    return show(as_json, {"subject": subject, "passed": passed, "skipped": skipped, "numbers": numbers}, lambda: None)

"""Parts run one after another: each is passed, failed or not available, whatever happens in it."""

from __future__ import annotations

import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import assay
from assay.core.canon import FrozenMap
from assay.core.errors import MissingExtraError, missing_extra
from assay.core.util.owned_folder import OwnedFolder
from assay.lab.machine import describe_machine, load_average
from assay.selftest.selftest_part import NotAvailable, SelftestContext, SelftestPart

__all__ = ["SelftestOutcome", "report", "run_parts"]

PASSED, FAILED, MISSING = "passed", "failed", "not available"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelftestOutcome:
    """What came of a part.

    Attributes:
        name, shows: of the part.
        outcome: ``passed``, ``failed`` or ``not available``.
        why: what is not met, what went wrong, or what is missing; empty after a pass.
        numbers: what it measured.
        seconds, cpu_seconds: by the clock, and of this process and the children that it waited for.
    """

    name: str
    shows: str
    outcome: str
    why: str = ""
    numbers: Any = field(default_factory=FrozenMap)
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def run_parts(parts: Sequence[SelftestPart], gpus: int, say: Callable[[str], None]) -> Iterator[SelftestOutcome]:
    """Runs parts one after another.

    Args:
        parts: in their order.
        gpus: CUDA devices that may be used; parts that need more are not available.
        say: takes a line about what goes on.

    Yields:
        Each part's outcome as soon as it is known. What is left of its folder is deleted.
    """
    for part in parts:
        say(f"{part.name}: {part.shows}")
        yield _one(part, gpus, say)


def report(outcomes: Sequence[SelftestOutcome], *, stopped: bool = False) -> dict[str, Any]:
    """All that was found, as plain JSON values.

    Args:
        outcomes: of the parts that ran.
        stopped: a person ended the test before all parts had run.
    """
    count = {kind: sum(o.outcome == kind for o in outcomes) for kind in (PASSED, FAILED, MISSING)}
    return {
        "assay": assay.__version__,
        "machine": describe_machine(),
        "load": load_average(),
        "date": datetime.now(UTC).date().isoformat(),
        "stopped": stopped,
        **count,
        "seconds": sum(o.seconds for o in outcomes),
        "parts": [{**asdict(o), "numbers": _json_value(o.numbers)} for o in outcomes],
    }


def _json_value(value: Any) -> Any:
    """Plain JSON values; infinity and NaN, which JSON has not, by their names."""
    if isinstance(value, Mapping):
        return {str(k): _json_value(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_json_value(v) for v in cast("Sequence[Any]", value)]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _one(part: SelftestPart, gpus: int, say: Callable[[str], None]) -> SelftestOutcome:
    if part.gpus > gpus:
        why = f"needs {part.gpus} GPU(s), and --gpus is {gpus}"
        return SelftestOutcome(name=part.name, shows=part.shows, outcome=MISSING, why=why)
    folder = OwnedFolder("assay-selftest-")
    clock, cpu = time.monotonic(), _cpu()
    numbers: Any = {}
    try:
        found = part.check(SelftestContext(folder.path, lambda text: say(f"  {text}")))
        outcome, why, numbers = (FAILED if found.failures else PASSED), "; ".join(found.failures), found.numbers
    except (NotAvailable, MissingExtraError) as error:
        outcome, why = MISSING, str(error)
    except Exception as error:
        lacking = missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
        last = traceback.extract_tb(error.__traceback__)[-1]
        failed = f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
        outcome, why = (MISSING, str(lacking)) if lacking else (FAILED, failed)
    finally:
        folder.close()
    return SelftestOutcome(
        name=part.name,
        shows=part.shows,
        outcome=outcome,
        why=why,
        numbers=numbers,
        seconds=round(time.monotonic() - clock, 2),
        cpu_seconds=round(_cpu() - cpu, 2),
    )


def _cpu() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system

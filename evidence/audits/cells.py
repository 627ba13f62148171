"""What is audited, one cell each: a built-in verifier, math-verify, a scorer of reasoning-gym; and fuzz of the built-in ones."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import assay.audit
from assay.audit import BUILT_IN, Audit, AuditSettings, Check, audit, cases_of, resolve
from assay.core import UnknownNameError, digest
from assay.testing import fuzz
from assay.verify import about, verifier, verifiers
from evidence.audits.gym import UNKNOWN, data_sets, gym_cases
from evidence.audits.rewards import MATH_VERIFY, SECOND

__all__ = ["AuditCell", "BuiltIn", "Fuzz", "Gym", "MathVerify", "cell", "cells"]

_ITEMS = 24
_DEADLINE = 5.0
_FUZZ, _FUZZ_PROCESSES = 100_000, 1_000
_PROCESSES = ("assay.verify.code", "assay.verify.hardware", "assay.verify.proof")
"""Packages whose verifiers start programs for each answer."""
_JUNK = ("empty", "junk", "constants", "long", "echo")
_DRAWN = ("built_in.py", "built_code.py", "built_graphs.py")
_ASKED = ("cases.py", "checks.py", "hostile.py", "probes.py", "answer_variants.py")
"""Files of `assay.audit` that decide what is asked, and what counts as a finding."""


@dataclass(frozen=True, slots=True)
class AuditCell(ABC):
    """One thing to measure; its record holds for the code and packages that ``made_of`` names.

    Attributes:
        name: of the subject.
    """

    name: str
    group: ClassVar[str] = ""

    @property
    def key(self) -> str:
        """Its name among all cells, also of its file."""
        return f"{self.group}-{self.name}"

    @abstractmethod
    def made_of(self) -> dict[str, str]:
        """Digests of code and versions of packages on which the result depends."""
        ...

    @abstractmethod
    def measure(self) -> dict[str, Any]:
        """The result, as plain data."""
        ...


class BuiltIn(AuditCell):
    """A built-in verifier on its own cases, beside the plainest function that does the same."""

    __slots__ = ()
    group: ClassVar[str] = "assay"

    def made_of(self) -> dict[str, str]:
        return {"audit": _audit_code(), "verifier": _code_of(self.name), "cases": _files(*_own(_DRAWN))}

    def measure(self) -> dict[str, Any]:
        second = SECOND.get(self.name)
        against = None if second is None else resolve(f"evidence.audits.rewards:{second}")
        settings = AuditSettings(items=_ITEMS, deadline=20.0, max_p99=5.0, max_disagreement=1.0)
        return summary(audit(self.name, against=against, settings=settings))


class MathVerify(AuditCell):
    """The library math-verify as people call it, on the cases of assay's own verifier of mathematics."""

    __slots__ = ()
    group: ClassVar[str] = "math-verify"

    def made_of(self) -> dict[str, str]:
        return {"audit": _audit_code(), "cases": _files(*_own(_DRAWN)), "math-verify": _version("math-verify")}

    def measure(self) -> dict[str, Any]:
        settings = AuditSettings(items=_ITEMS, deadline=_DEADLINE, must=BUILT_IN["math"].must, max_disagreement=1.0)
        return summary(audit(resolve(MATH_VERIFY), cases_of("math", "math", 0, _ITEMS), against="math", settings=settings))


class Gym(AuditCell):
    """A data set's scorer. It is handed the answer alone, as reasoning-gym's own trainers do after they have cut it out.

    Its gold is made with its tasks, so that a row cannot lose it; it judges one answer at a time, without signals or threads, and
    judging all again in fresh processes would double hours of importing: what is asked is right, wrong, hanging and running.
    """

    __slots__ = ()
    group: ClassVar[str] = "reasoning-gym"

    def made_of(self) -> dict[str, str]:
        return {
            "audit": _audit_code(),
            "reasoning-gym": _version("reasoning-gym"),
            "adapter": _files(Path(__file__).with_name("gym.py")),
        }

    def measure(self) -> dict[str, Any]:
        skip = ("missing_gold", "order", "threads", "determinism", *(("gold", "formats") if self.name in UNKNOWN else ()))
        settings = AuditSettings(items=_ITEMS, deadline=_DEADLINE, template="{answer}", skip=skip, max_disagreement=1.0)
        cases = gym_cases(self.name)
        against = resolve("evidence.audits.rewards:as_text") if all(c.unique for c in cases) else None
        return summary(audit(resolve(f"evidence.audits.gym:{self.name}"), cases, against=against, settings=settings))


class Fuzz(AuditCell):
    """A built-in verifier under right answers with slips."""

    __slots__ = ()
    group: ClassVar[str] = "fuzz"

    def made_of(self) -> dict[str, str]:
        return {"fuzz": _files(Path(inspect.getfile(fuzz))), "verifier": _code_of(self.name), "cases": _files(*_own(_DRAWN))}

    def measure(self) -> dict[str, Any]:
        asked = [(c.task, c.gold) for c in cases_of(self.name, self.name, 0, 12)]
        found = asdict(fuzz(verifier(self.name), asked, _FUZZ_PROCESSES if _starts(self.name) else _FUZZ))
        return {
            "first_fault": found.pop("error"),
            "cpu_seconds": found.pop("seconds"),
            **found,
        }


def cells() -> list[AuditCell]:
    """All of them.

    Raises:
        MissingExtraError: reasoning-gym is not installed.
    """
    own = [kind(name) for kind in (BuiltIn, Fuzz) for name in verifiers()]
    return [*own, MathVerify("math-verify"), *map(Gym, data_sets())]


def cell(key: str) -> AuditCell:
    """The cell of that key.

    Raises:
        UnknownNameError: none.
    """
    kinds = {kind.group: kind for kind in (BuiltIn, Fuzz, MathVerify, Gym)}
    for group, kind in kinds.items():
        if key.startswith(f"{group}-"):
            return kind(key.removeprefix(f"{group}-"))
    raise UnknownNameError("audit cell", key, kinds)


# ---- what a page needs of an audit ------------------------------------------------------------------------------------


def summary(found: Audit) -> dict[str, Any]:
    """An audit in numbers, with a few examples of each failed check."""
    checks = {check.name: check for check in found.checks}
    wrong = [line for name in ("wrong_answers", "tricks") if name in checks for line in checks[name].lines]
    return {
        "name": found.name,
        "against": found.against,
        "template": found.template,
        "probes": found.probes,
        "left_out": found.left_out,
        "failed": list(found.failed),
        "must": list(found.settings.must),
        "inform": list(found.settings.inform),
        "seed": found.settings.seed,
        "items": found.items,
        "isolation": found.isolation,
        "status": {name: str(check.status) for name, check in checks.items()},
        "says": {name: check.says for name, check in checks.items() if check.status in ("fail", "skipped")},
        "rates": {name: _rates(check) for name, check in checks.items() if name not in ("wrong_answers", "tricks")},
        "wrong": {line.name: [line.rate.failed, line.rate.of, line.highest, line.counts] for line in wrong},
        "junk": max((line.highest or 0.0 for line in wrong if line.name in _JUNK or line.name.startswith("trick_")), default=0.0),
        "latency": None if found.latency is None else asdict(found.latency),
        "examples": {name: _examples(check) for name, check in checks.items() if check.examples},
    }


def _rates(check: Check) -> dict[str, list[int]]:
    return {line.name: [line.rate.failed, line.rate.of] for line in check.lines}


def _examples(check: Check) -> list[list[str]]:
    """The shortest of each family."""
    first: dict[str, list[str]] = {}
    for x in check.examples:
        first.setdefault(x.family, [x.family, x.gold[:120], x.answer[:120], x.finding[:160]])
    return list(first.values())[:4]


# ---- what a record holds for ------------------------------------------------------------------------------------------


def _own(names: tuple[str, ...]) -> list[Path]:
    return [Path(str(assay.audit.__file__)).with_name(name) for name in names]


@cache
def _audit_code() -> str:
    return _files(*_own(_ASKED))


def _code_of(name: str) -> str:
    """The verifier's own package; for one that stands beside other rooms of verify, its file."""
    file = Path(inspect.getfile(type(verifier(name))))
    return _files(file) if file.parent.name == "verify" else _files(*sorted(file.parent.glob("*.py")))


def _files(*files: Path) -> str:
    return digest([file.read_text(encoding="utf-8") for file in files], 8)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _starts(name: str) -> bool:
    return about(name).kind.startswith(_PROCESSES)

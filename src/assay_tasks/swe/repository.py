"""A repository made of kinds of modules, and bugs that are proved to be ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from random import Random
from typing import Any

from assay.core.canon import canonical
from assay_tasks.swe.bugs import Bug, bugs_of, function_of
from assay_tasks.swe.kind import PACKAGE, Example, Kind, rename_identifiers
from assay_tasks.swe.kinds import cache, calculator, config, formatter, grid, jobs, ledger, spans, stats, stock
from assay_tasks.swe.loaded import Endless, Loaded

__all__ = [
    "KINDS",
    "SHARES",
    "Repository",
    "about",
    "bug_in",
    "changed_example",
    "run_example",
    "hidden_examples",
    "measure_bug",
    "profile",
    "written_shares",
]

_MODULES = (calculator, cache, config, formatter, grid, jobs, ledger, spans, stats, stock)
KINDS: dict[str, Kind] = {module.KIND.name: module.KIND for module in _MODULES}
"""Every kind of module by name."""

_PACKAGES = (
    "toolbox",
    "kitbag",
    "helpers",
    "basics",
    "handy",
    "workshop",
    "gearbox",
    "satchel",
    "bits",
    "sundry",
    "drawer",
    "bench",
)
SHARES = "shares.json"
"""For each built-in kind, how many of `_SAMPLES` examples of each sort each bug changes, in the order of `bugs_of`."""

_SAMPLES, _NONE = 6, "-"
_SAME, _OTHERS = 6, 3


@dataclass(frozen=True, slots=True)
class Repository:
    """A package of modules with names of its own.

    Attributes:
        package: its name.
        kinds: names of the kinds of its modules.
        files: how many modules: of each kind those that come first, and all but the last of them have both.
        names: for each kind, identifiers with their other names.
    """

    package: str
    kinds: Sequence[str]
    files: int
    names: Sequence[Mapping[str, str]]

    @classmethod
    def draw(cls, files: int, rng: Random) -> Repository:
        """One of so many modules, no two of which have a name in common."""
        kinds = rng.sample(sorted(KINDS), (files + 1) // 2)
        while True:
            made = cls(rng.choice(_PACKAGES), kinds, files, [KINDS[name].draw_names(rng) for name in kinds])
            if len(set(made.places())) == files:
                return made

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Repository:
        """The one that some facts are about."""
        return cls(facts["package"], facts["kinds"], facts["files"], facts["names"])

    def facts(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"package": self.package, "kinds": list(self.kinds), "files": self.files, "names": [dict(n) for n in self.names]}

    def modules(self) -> list[tuple[int, str]]:
        """The number of a kind, and one of its modules that is here."""
        every = [(at, module) for at, name in enumerate(self.kinds) for module in KINDS[name].modules]
        return every[: self.files]

    def places(self) -> list[str]:
        """The path of each module."""
        return [self.path(at, module) for at, module in self.modules()]

    def path(self, at: int, module: str) -> str:
        """Where a module stands."""
        return f"{self.package}/{self.names[at].get(module, module)}.py"

    def text(self, at: int, text: str) -> str:
        """Source about a kind with the names that are used here."""
        return rename_identifiers(text, {**self.names[at], PACKAGE: self.package})

    def sources(self) -> dict[str, str]:
        """Path to source, with no bug."""
        return {self.path(at, module): self.text(at, KINDS[self.kinds[at]].modules[module]) for at, module in self.modules()}

    def usable(self, at: int) -> list[int]:
        """The numbers of a kind's examples whose modules are all here."""
        here, kind = {module for other, module in self.modules() if other == at}, KINDS[self.kinds[at]]
        return [i for i, homes in enumerate(_homes(kind)) if homes <= here]

    def program(self, at: int, example: Example) -> list[str]:
        """Import lines and statements of an example, under the names that are used here."""
        kind = KINDS[self.kinds[at]]
        return [self.text(at, line) for line in [*kind.imports(example), *example[0]]]


@lru_cache(maxsize=64)
def _homes(kind: Kind) -> tuple[frozenset[str], ...]:
    """The modules that each of a kind's examples ever imports from."""
    rng = Random(0)
    drawn = [[draw(rng) for _ in range(12)] for draw in kind.examples]
    words = [{line.split()[1].partition(".")[2] for e in several for line in kind.imports(e)} for several in drawn]
    return tuple(frozenset(found) for found in words)


@lru_cache(maxsize=2048)
def _load_kind(kind: Kind, bug: Bug | None) -> Loaded:
    sources = {kind.path(module): source for module, source in kind.modules.items()}
    if bug is not None:
        sources[kind.path(bug.module)] = bug.put_into(kind.modules[bug.module])
    return Loaded(sources)


def run_example(kind: Kind, example: Example, bug: Bug | None = None) -> dict[str, Any]:
    """What an example gives, as `Loaded.run` says it, with a bug or without one.

    Raises:
        Endless: the bug makes it run on.
    """
    code, ask = _whole(kind, example)
    return _right(kind, code, ask)[0] if bug is None else _run_kind(kind, code, ask, bug)


def _whole(kind: Kind, example: Example) -> tuple[str, str]:
    """All lines of an example, and what is asked."""
    return "\n".join([*kind.imports(example), *example[0]]), example[1]


@lru_cache(maxsize=8192)
def _run_kind(kind: Kind, code: str, ask: str, bug: Bug) -> dict[str, Any]:
    right, reached = _right(kind, code, ask)
    place = function_of(kind, bug)
    return right if place and place not in reached else _load_kind(kind, bug).run([code], ask)


@lru_cache(maxsize=8192)
def _right(kind: Kind, code: str, ask: str) -> tuple[dict[str, Any], frozenset[str]]:
    """What an example gives with no bug, and the functions that it comes to."""
    loaded = _load_kind(kind, None)
    return loaded.run([code], ask), frozenset(loaded.reached)


@lru_cache(maxsize=64)
def _samples(kind: Kind) -> tuple[tuple[tuple[str, str], ...], ...]:
    rng = Random(0)
    return tuple(tuple(_whole(kind, draw(rng)) for _ in range(_SAMPLES)) for draw in kind.examples)


def profile(kind: Kind, bug: Bug) -> tuple[float, ...] | None:
    """The share of examples of each sort that a bug changes; None for a bug that makes one run on or recurse without end.

    That of a built-in kind was measured before: to measure all of them takes seconds.
    """
    shares = _known_effects(kind)[bug] if KINDS.get(kind.name) is kind else measure_bug(kind, bug)
    return None if shares is None else tuple(share / _SAMPLES for share in shares)


@lru_cache(maxsize=64)
def _known_effects(kind: Kind) -> dict[Bug, list[int] | None]:
    return {bug: _parse_shares(shares) for bug, shares in zip(bugs_of(kind), _shares()[kind.name].split(), strict=True)}


@lru_cache(maxsize=1)
def _shares() -> dict[str, str]:
    return json.loads(files("assay_tasks.swe").joinpath(SHARES).read_text(encoding="utf-8"))


def _parse_shares(shares: str) -> list[int] | None:
    return None if shares == _NONE else [int(share) for share in shares]


def measure_bug(kind: Kind, bug: Bug) -> list[int] | None:
    """Of a few examples of each sort, how many a bug changes; None for a bug that makes one run on or recurse without end."""
    shares: list[int] = []
    for examples in _samples(kind):
        changed = 0
        for example in examples:
            try:
                found = _run_kind(kind, *example, bug)
            except Endless:
                return None
            if found == {"raises": "RecursionError"}:
                return None
            changed += found != _right(kind, *example)[0]
        shares.append(changed)
    return shares


def written_shares(kind: Kind, bugs: Sequence[Bug]) -> str:
    """What `measure_bug` finds of some bugs, a word for each, as the file `SHARES` holds it for all of a kind."""
    found = [measure_bug(kind, bug) for bug in bugs]
    return " ".join(_NONE if shares is None else "".join(map(str, shares)) for shares in found)


def changed_example(kind: Kind, bug: Bug, by: int, rng: Random, tries: int = 40) -> Example | None:
    """An example of a sort that a bug changes; None where none is found."""
    for _ in range(tries):
        example = kind.examples[by](rng)
        try:
            if run_example(kind, example, bug) != run_example(kind, example):
                return example
        except Endless:
            return None
    return None


def about(repository: Repository, report: Mapping[str, Any]) -> list[Example]:
    """What is tried when a bug that was reported is mended. A function of its arguments.

    The report's own example, others of the same sort, and one of each other sort of its kind.
    """
    at, rng = int(report["kind"]), Random(canonical([report, "hidden"]))
    kind = KINDS[repository.kinds[at]]
    same: list[Example] = [(list(report["lines"]), report["ask"]), *(kind.examples[report["by"]](rng) for _ in range(_SAME))]
    return [*same, *(kind.examples[by](rng) for by in repository.usable(at) if by != report["by"])]


def hidden_examples(repository: Repository, reports: Sequence[Mapping[str, Any]]) -> list[tuple[int, Example]]:
    """All that is tried: the numbers of kinds, and examples, of reported bugs and some of other kinds, none of them twice."""
    found = [(report["kind"], example) for report in reports for example in about(repository, report)]
    known, rng = {report["kind"] for report in reports}, Random(canonical([repository.package, *reports]))
    rest = [(at, by) for at in range(len(repository.kinds)) if at not in known for by in repository.usable(at)]
    found += [(at, KINDS[repository.kinds[at]].examples[by](rng)) for at, by in rng.sample(rest, min(_OTHERS, len(rest)))]
    return list({str(one): one for one in found}.values())


def bug_in(repository: Repository, at: int, rng: Random, subtle: bool, far: bool) -> tuple[Bug, int] | None:
    """A bug in the modules of a kind, and the sort of examples by which it is noticed; None where the one drawn does not serve.

    Args:
        repository: where.
        at: the number of the kind.
        rng: draws it.
        subtle: it changes at most one in eight of the examples, and else at least one in four.
        far: it stands in another module than the one that is used.
    """
    kind, here = KINDS[repository.kinds[at]], {module for other, module in repository.modules() if other == at}
    bug = rng.choice(bugs_of(kind))
    shares = profile(kind, bug) if bug.module in here else None
    if shares is None:
        return None
    usable, homes = repository.usable(at), _homes(kind)
    mean = sum(shares[by] for by in usable) / len(usable)
    noticed = [by for by in usable if shares[by] > 0.3 and not (far and homes[by] == frozenset((bug.module,)))]
    if not noticed or not (0.0 < mean <= 0.125 if subtle else mean >= 0.25):
        return None
    return bug, rng.choice(noticed)

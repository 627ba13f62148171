"""``assay tasks``: what there is to practise on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.cli.listing_cache import kept_rows, task_packages
from assay.cli.options import parse
from assay.cli.output import busy, cell, choose, grid, lines, note, show, unquoted
from assay.cli.recipe import own_code, source
from assay.cli.tasks_admit import admit
from assay.cli.tasks_sample import sample
from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.util.hub import PREFIX, commit_of

__all__ = ["tasks_command"]

_FAMILY = {"positional": True, "arg": {"metavar": "FAMILY"}}
_ARM, _N = {"arg": {"metavar": "ARM"}}, {"arg": {"metavar": "N"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksListOptions:
    """Lists the task families, and the suites that are made of them.

    Attributes:
        arms: a line for each arm, not for each family.
        json: print JSON.
    """

    arms: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksShowOptions:
    """Shows a task family: arms, levels, verifier, an example with its answer.

    Attributes:
        name: a task family, one of its arms, or a suite ('assay tasks list' names them), rows.jsonl, puzzle.toml, or
            my_file.py:my_source.
        arm: the example's arm; the first when not given.
        level: the example's level; the lowest when not given.
        index: number of the example in the training stream.
        json: print JSON.
    """

    name: str = field(metadata=_FAMILY)
    arm: str | None = field(default=None, metadata=_ARM)
    level: int | None = field(default=None, metadata=_N)
    index: int = field(default=0, metadata=_N)
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCheckOptions:
    """Holds a task family to its contract: gold scores 1, junk scores the floor, splits never overlap, tasks are pure functions.

    Attributes:
        name: a task family, one of its arms, or a suite ('assay tasks list' names them), rows.jsonl, puzzle.toml, or
            my_file.py:my_source.
        n: tasks of each arm, level and split.
        json: print JSON.
    """

    name: str = field(metadata=_FAMILY)
    n: int = field(default=16, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksExportOptions:
    """Writes a family as an installable environment of the library verifiers.

    Attributes:
        family: a task family, one of its arms, or a suite ('assay tasks list' names them), package.module:my_source, or a
            file, which is copied: my_file.py:my_source, rows.jsonl, puzzle.toml.
        folder: new; 'pip install ./FOLDER' installs what is written there.
        name: of the package; assay- and the family's name when not given.
        license: SPDX identifier; the licence of the package that has the family when not given.
        author: 'Name <mail>'; the authors of the package that has the family when not given.
        json: print JSON.
    """

    family: str = field(metadata=_FAMILY)
    folder: Path = field(metadata={"positional": True, "arg": {"metavar": "FOLDER"}})
    name: str = field(default="", metadata={"arg": {"metavar": "NAME"}})
    license: str = field(default="", metadata={"arg": {"metavar": "SPDX"}})
    author: str = field(default="", metadata={"arg": {"metavar": "AUTHOR"}})
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksImportOptions:
    """Imports rows of other formats: writes a file with a verifier for each row, and one of refused rows with reasons. SOURCE is
    a file of rows (.jsonl, .jsonl.gz, .csv, .parquet, .arrow), a folder of them or of a data set that the library datasets
    saved, hub:OWNER/NAME for a data set on the hub (hub:OWNER/NAME@REVISION:FILES for some of its files), gym:NAME for a data
    set of reasoning-gym, or taskset:ID for an installed taskset of verifiers.

    Attributes:
        source: what to read.
        out: the file to write; rows that were refused go to OUT.rejected.jsonl beside it.
        verifier: the verifier of rows that name none: a name ('assay verify list'), or a table as JSON. When not given: math for
            known mathematical data sets and for solutions that end in '#### 42'; else the whole text must be the answer.
        prompt: the field of the question, if it has no usual name.
        gold: the field of the gold answer, if it has no usual name.
        license: license of rows that name none.
        data_source: name of the data set, for rows without data_source.
        n: how many items of gym: and taskset: sources.
        level: curriculum level of gym: sources, from 2 on.
        seed: seed of gym: sources.
        json: print the summary as JSON.
    """

    source: str = field(metadata={"positional": True, "arg": {"metavar": "SOURCE"}})
    out: Path = field(metadata={"positional": True, "arg": {"metavar": "OUT"}})
    verifier: str = field(default="", metadata={"arg": {"metavar": "VERIFIER"}})
    prompt: str = field(default="", metadata={"arg": {"metavar": "FIELD"}})
    gold: str = field(default="", metadata={"arg": {"metavar": "FIELD"}})
    license: str = field(default="", metadata={"arg": {"metavar": "LICENSE"}})
    data_source: str = field(default="", metadata={"arg": {"metavar": "NAME"}})
    n: int = field(default=1000, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    level: int = field(default=1, metadata=_N)
    seed: int = field(default=0, metadata=_N)
    json: bool = False


def tasks_command(args: list[str]) -> int:
    """``assay tasks list | show NAME | sample NAME | import SOURCE OUT | export NAME FOLDER | admit MODEL NAME | check NAME``."""
    return choose(
        "tasks",
        args,
        {
            "list": (_list, "the task families"),
            "show": (_show, "arms, levels, verifier and an example of a family"),
            "sample": (sample, "tasks of a family as JSON Lines, with or without their answers"),
            "import": (_import, "rows of files, reasoning-gym or verifiers, each with its verifier, tried before they are taken"),
            "export": (_export, "a family as an installable environment of the library verifiers"),
            "admit": (admit, "which arms of a suite a model may practise, and which are only evaluated"),
            "check": (_check, "hold a family to its contract, also one of your own: my_file.py:my_source"),
        },
    )


def _list(args: list[str]) -> int:
    own = parse(TasksListOptions, args, "assay tasks list")
    with busy("reading the families"):
        every = kept_rows("tasks", _rows, task_packages())
    rows, whole = [r for r in every if r["parts"] is None], [r for r in every if r["parts"] is not None]

    def text() -> None:
        if own.arms:
            arms = [(a, _span(r["arms"][a]), x) for r in rows for a, x in r["problems"].items()]
            grid(("arm", "domain", "levels", ""), [[a, x["domain"], ls, unquoted(x["summary"])] for a, ls, x in arms])
            return
        grid(
            ("name", "domain", "arms", "levels", "oracle", "tools", ""),
            [
                [
                    r["name"],
                    ", ".join(r["domains"]),
                    len(r["arms"]),
                    _reach([n for ls in r["arms"].values() for n in ls]),
                    cell(r["oracle"]),
                    cell(r["tools"]),
                    unquoted(r["summary"]),
                ]
                for r in rows
            ],
            right=(2,),
        )
        grid(
            ("suite", "parts", "families", "arms", ""),
            [
                [
                    r["name"],
                    len(r["parts"]),
                    sum(map(len, r["parts"].values())),
                    len(r["arms"]),
                    r["summary"],
                ]
                for r in whole
            ],
            right=(1, 2, 3),
        )

    return show(own.json, rows + whole, text)


def _rows() -> list[dict[str, Any]]:
    """A row for each family and suite; a package that is broken is told of, and the others are listed."""
    from assay.tasks import families, suites
    from assay.tasks.packages import installed

    for package, why in installed().broken.items():
        note(f"package of tasks {package} cannot be read: {why}")
    rows: list[dict[str, Any]] = []
    for name in (*families(), *suites()):
        try:
            rows.append(_listed(name))
        except ConfigError as error:
            note(str(error))
    return rows


def _listed(name: str) -> dict[str, Any]:
    """A family or a suite as a row of the list; only a suite has ``parts``."""
    from assay.tasks import TaskMixture, card, family

    source = family(name)
    c = card(source)
    parts = {part: list(of) for part, of in source.members().items()} if isinstance(source, TaskMixture) else None
    return {
        "name": name,
        "summary": c.summary,
        "domains": sorted(set(c.domains.values())),
        "arms": {a: list(ls) for a, ls in c.arms.items()},
        "problems": {a: {"domain": c.domains[a], "summary": c.summaries[a]} for a in c.arms},
        "oracle": c.has_trace,
        "tools": c.has_tools,
        "parts": parts,
    }


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _show(args: list[str]) -> int:
    from assay.tasks import TaskMixture, card
    from assay.tasks.judged import judge_of, spec_of
    from assay.train.levels import check_levels

    own = parse(TasksShowOptions, args, "assay tasks show")
    family = source(own.name)
    with own_code(own.name):
        known = card(family)
    arm = known.example.arm if own.arm is None else own.arm
    if arm not in known.arms:
        raise UnknownNameError(f"arm of {family.name}", arm, known.arms)
    if own.level is not None:
        check_levels(family, (own.level,), "--level")
    level = known.arms[arm][0] if own.level is None else own.level
    with own_code(own.name):
        task = family.task(arm, level, "train", own.index)
    messages = [[m.role, m.content] for m in task.exposed().messages]
    example = {"id": task.id, "arm": arm, "level": level, "messages": messages, "private": dict(task.private)}
    value = {
        "name": known.name,
        "summary": known.summary,
        "arms": {a: list(ls) for a, ls in known.arms.items()},
        "verifier": known.verifier,
        "oracle": known.has_trace,
        "tools": known.has_tools,
        "example": example,
    }

    spec = None if isinstance(family, TaskMixture) else spec_of(judge_of(family.verifier(), task))
    judge = known.verifier if spec is None else _json(spec) + (" on this arm" if len(known.arms) > 1 else "")

    def text() -> None:
        lines(
            {
                "name": known.name,
                "": unquoted(known.summary),
                **_offered(family, known.arms),
                "verifier": judge,
                "oracle": cell(known.has_trace),
                "tools": cell(known.has_tools),
                "example": f"{task.id} (level {level})",
                **{f"  {role}": content for role, content in messages},
                **{f"  {k} (private)": v if isinstance(v, str) else _json(v) for k, v in task.private.items()},
            }
        )

    return show(own.json, value, text)


def _offered(family: TaskSource, arms: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """The arms with their levels; of a suite its parts, with the families of each."""
    from assay.tasks import TaskMixture

    if not isinstance(family, TaskMixture):
        return {"levels": ", ".join(_span(ls) if len(arms) == 1 else f"{a} {_span(ls)}" for a, ls in arms.items())}
    return {
        "families" if family.parts is None else part: ", ".join(
            f"{name} {_reach([n for a in of for n in arms[a]])}" + (f" ({len(of)} arms)" if len(of) > 1 else "")
            for name, of in families.items()
        )
        for part, families in family.members().items()
    }


def _import(args: list[str]) -> int:
    from assay.curate.rows import Source, entries
    from assay.tasks.exchange.importing import Importer, Summary, found_in, write_rows

    own = parse(TasksImportOptions, args, "assay tasks import")
    if own.n < 1 or own.level < 1:
        raise ConfigError(f"-n {own.n}, --level {own.level}: both are at least 1")
    if own.out.exists() and Path(own.source).exists() and own.out.samefile(own.source):
        raise ConfigError(f"{own.out} is what is read; name another file to write")
    files = (
        []
        if own.source.partition(":")[0] in ("gym", "taskset")
        else [Source.of(path) for path in entries(own.source, one_split=True)]
    )
    repo = own.source.removeprefix(PREFIX).partition(":")[0].partition("@")[0] if own.source.startswith(PREFIX) else ""
    importer = Importer(
        prompt=own.prompt,
        gold=own.gold,
        license=own.license,
        source=own.data_source or repo,
        verifier=_verifier(own.verifier),
    )
    summary = Summary()
    with busy(f"reading {own.source}"):
        refused = write_rows(importer.run(found_in(own.source, own.n, own.level, own.seed), summary), own.out)
    counts = summary.record()

    def text() -> None:
        use = f"; as a family: assay.tasks.load_rows({str(own.out)!r})" if summary.taken else ""
        print(f"{own.out}: {summary.taken} of {summary.read} rows{use}")
        if repo:
            print(
                f"from {repo} at commit {commit_of(files[0].path)}: {', '.join(f'{Path(f.path).name} {f.digest}' for f in files)}"
            )
        for name in ("rejected", "licences", "verifiers", "sources"):
            if counts[name]:
                print(f"{name}: {', '.join(f'{k} {n}' for k, n in counts[name].items())}")
        if summary.rejected:
            print(f"why each row was refused: {refused}")

    show(own.json, {"out": str(own.out), "rejects": str(refused), "files": plain(files), **counts}, text)
    return 0 if summary.taken else 1


def _verifier(word: str) -> str | dict[str, Any] | None:
    """What --verifier names, tried before any row is read."""
    from assay.tasks import verifier_of

    try:
        spec: str | dict[str, Any] | None = json.loads(word) if word.startswith("{") else word or None
    except json.JSONDecodeError as error:
        raise ConfigError(f'--verifier {word!r} is no JSON: {error}; give a name, or {{"name": ..., settings}}') from None
    if spec is not None:
        verifier_of(spec)
    return spec


def _export(args: list[str]) -> int:
    from assay.tasks.exchange.packaging import write_package

    own = parse(TasksExportOptions, args, "assay tasks export")
    made = write_package(own.family, own.folder, name=own.name, license=own.license or None, author=own.author or None)
    path = str(own.folder) if own.folder.is_absolute() else f"./{own.folder}"  # a bare name is one of the index to pip
    value = {
        "folder": str(own.folder),
        "name": made.name,
        "files": sorted(made.files),
        "license": made.license or None,
        "authors": list(made.authors),
        "dependencies": list(made.dependencies),
    }

    def text() -> None:
        lines(
            {
                "package": f"{made.name}: {', '.join(sorted(made.files))}",
                "needs": ", ".join(made.dependencies),
                "licence": made.license or "none stamped: the family's package names none; --license MIT would",
                "authors": ", ".join(made.authors) or "none named; --author 'Name <mail>' would",
                "next": f"pip install {path}; then as {own.folder / 'README.md'} says",
            }
        )

    return show(own.json, value, text)


def _check(args: list[str]) -> int:
    from assay.testing import ContractError, check_task_source

    own = parse(TasksCheckOptions, args, "assay tasks check")
    if own.n < 1:
        raise ConfigError(f"-n {own.n}: check at least one task of each cell")
    family = source(own.name)
    with busy(f"checking {family.name}"):
        try:
            with own_code(own.name):
                found = check_task_source(family, n=own.n)
        except (ConfigError, DataError) as error:  # the check's own finding, not a wrong argument
            raise ContractError(f"task family {family.name}: {error}") from error
    value = {
        "subject": found.subject,
        "passed": list(found.passed),
        "skipped": list(found.skipped),
        "numbers": dict(found.numbers),
    }
    return show(own.json, value, lambda: print("\n".join((found.subject, *found.lines()))))


def _reach(levels: Sequence[int]) -> str:
    """The lowest and the highest of the levels of several arms."""
    return _span(range(min(levels), max(levels) + 1))


def _span(levels: Sequence[int]) -> str:
    """Levels in short: ``3-10``, or the one that there is; one by one where some between are missing."""
    known = sorted(set(levels))
    if len(known) < known[-1] - known[0] + 1:
        return " ".join(map(str, known))
    return f"{known[0]}-{known[-1]}" if len(known) > 1 else str(known[0])

"""``assay tasks import`` and ``assay tasks export``: rows of other formats, and families for other libraries."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from assay.cli.options import parse
from assay.cli.output import busy, lines, show
from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.core.util.hub import PREFIX, commit_of

__all__ = ["export_family", "import_rows"]

_FAMILY = {"positional": True, "arg": {"metavar": "FAMILY"}}
_N = {"arg": {"metavar": "N"}}


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
        verifier: the verifier of rows that name none: a name ('assay verify list'), or a table as JSON. When not given, the
            row's form decides: its fields, their kinds and its source; a row of no known form is refused.
        prompt: the field of the question, if it has no usual name.
        gold: the field of the gold answer, if it has no usual name.
        option_base: number of the first option where right options are named by numbers: 0 or 1. When not given, the rows of each
            file decide it together; where both fit, they are refused.
        choices: keep multiple choice, or ask it open: without options, answered in words; what then means nothing is refused.
        license: license of rows that name none.
        data_source: name of the data set, for rows without data_source.
        n: how many items of gym: and taskset: sources.
        level: curriculum level of gym: sources, from 2 on.
        seed: seed of gym: sources.
        force: write over OUT if it is there.
        json: print the summary as JSON.
    """

    source: str = field(metadata={"positional": True, "arg": {"metavar": "SOURCE"}})
    out: Path = field(metadata={"positional": True, "arg": {"metavar": "OUT"}})
    verifier: str = field(default="", metadata={"arg": {"metavar": "VERIFIER"}})
    prompt: str = field(default="", metadata={"arg": {"metavar": "FIELD"}})
    gold: str = field(default="", metadata={"arg": {"metavar": "FIELD"}})
    option_base: Literal["0", "1"] | None = None
    choices: Literal["keep", "open"] = "keep"
    license: str = field(default="", metadata={"arg": {"metavar": "LICENSE"}})
    data_source: str = field(default="", metadata={"arg": {"metavar": "NAME"}})
    n: int = field(default=1000, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    level: int = field(default=1, metadata=_N)
    seed: int = field(default=0, metadata=_N)
    force: bool = False
    json: bool = False


def import_rows(args: list[str]) -> int:
    """``assay tasks import SOURCE OUT``."""
    from assay.curate.rows import Source, entries
    from assay.tasks.exchange.importing import Importer, Summary, found_in, write_rows

    own = parse(TasksImportOptions, args, "assay tasks import")
    if own.n < 1 or own.level < 1:
        raise ConfigError(f"-n {own.n}, --level {own.level}: both are at least 1")
    if own.out.exists() and Path(own.source).exists() and own.out.samefile(own.source):
        raise ConfigError(f"{own.out} is what is read; name another file to write")
    if own.out.exists() and not own.force:
        raise ConfigError(f"{own.out} is there already; name another file, or write over it with --force")
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
        option_base=None if own.option_base is None else int(own.option_base),
        choices=own.choices,
    )
    summary = Summary()
    with busy(f"reading {own.source}"):
        refused = write_rows(importer.run(found_in(own.source, own.n, own.level, own.seed), summary), own.out, summary)
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


def export_family(args: list[str]) -> int:
    """``assay tasks export NAME FOLDER``."""
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

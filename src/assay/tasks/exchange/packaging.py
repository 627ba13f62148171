"""Writes a family as an installable package for the library ``verifiers``."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from assay.core.canon import digest, plain
from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.core.protocols import TaskSource
from assay.core.task import Task
from assay.interop.taskset import vf
from assay.tasks.draws import SPLITS, in_turn, rows_of_cell
from assay.tasks.exchange.origin import OWN, FamilyOrigin, check_license, origin_of, own_version, read_authors
from assay.tasks.exchange.tasksets import prompt_of, source_of, taskset_of

__all__ = ["WrittenPackage", "write_package"]

_TAKEN = {"assay", "assay_tasks", "verifiers", *sys.stdlib_module_names}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPackage:
    """A package that was written.

    Attributes:
        name: of the distribution; ``vf-eval NAME`` finds it.
        module: that it installs.
        files: relative path to content.
        license: SPDX expression; "" where none was stamped.
        authors: as ``Name <mail>``.
        dependencies: its requirements.
    """

    name: str
    module: str
    files: Mapping[str, str]
    license: str
    authors: tuple[str, ...]
    dependencies: tuple[str, ...]


def write_package(
    family: str, folder: Path, *, name: str = "", license: str | None = None, author: str | None = None
) -> WrittenPackage:
    """A folder that ``pip install`` makes an environment of ``verifiers``: a taskset, and where needed an environment.

    The package holds the family's name, no tasks: they are drawn where it runs, of the arms, levels, stream and number that its
    config says (``--env.taskset.levels``, ``--env.taskset.num-tasks``, ...). It depends on the package that has the family. A
    family that lives in one file is copied into it.

    Args:
        family: of an installed package, one of its arms or a suite; ``package.module:thing``; or ``FILE.py:thing``,
            ``rows.jsonl``, ``puzzle.toml``.
        folder: new, or empty.
        name: of the package; ``assay-`` and the family's name when not given.
        license: SPDX expression; that of the family's package when not given, and none for a file.
        author: ``Name <mail>``; those of the family's package when not given.

    Raises:
        UnknownNameError: no such family.
        ConfigError: no installed package has the family, a name or licence that cannot be, or a file that cannot stand alone.
        DataError: the folder holds something already.
    """
    stamped = None if license is None else check_license(license)
    source = source_of(family)
    for arm, levels in source.arms().items():
        prompt_of(_first_task(source, arm, levels))
    origin = origin_of(family)
    dashed = _with_dashes(name or _default_name(family), origin, given=bool(name))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is there already and not empty; name another folder")
    module = dashed.replace("-", "_")
    copied, inside = _copy_files(family, module)
    files = {**copied, f"{module}/__init__.py": _init(family if inside is None else inside, source.name, _plays(source))}
    made = WrittenPackage(
        name=dashed,
        module=module,
        files=files,
        license=origin.license if stamped is None else stamped,
        authors=tuple(map(_line, read_authors(author) if author else origin.authors)),
        dependencies=(f"assay-rl>={own_version()}", *origin.dependencies, "verifiers>=0.4"),
    )
    files["pyproject.toml"] = _project(made, source.name, origin)
    files["README.md"] = _readme(made, source, origin)
    there = folder.exists()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    try:
        if inside is not None:
            _compare(source, folder / module / "family.py", inside.rpartition(":")[2])
        _load_one(family, _first_task(source, *next(iter(source.arms().items()))).split)
    except Exception:
        _remove(folder, itself=not there)
        raise
    return made


def _load_one(family: str, split: str) -> None:
    """Loads a task with the taskset that the package defines, where ``verifiers`` is installed.

    Raises:
        ConfigError: it does not load.
    """
    try:
        kind = taskset_of(family)
        config = vf("utils.generic").concrete_type(kind, vf().TasksetConfig)
        next(iter(kind(config(num_tasks=1, split=split))))
    except MissingExtraError:
        return
    except Exception as error:  # a library that is not assay's checks it
        reason = str(error).splitlines()[0] if str(error) else "it has no task"
        raise ConfigError(f"the export of {family} does not load in verifiers: {type(error).__name__}: {reason}") from error


def _remove(folder: Path, *, itself: bool) -> None:
    for path in [folder] if itself else list(folder.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


# ---- names ------------------------------------------------------------------------------------------------------------


def _default_name(family: str) -> str:
    """``assay-`` and the family's name, so that it is the name of no module that the family itself needs."""
    if family.endswith((".jsonl", ".toml")):
        family = Path(family).stem
    words = re.sub(r"[^a-z0-9]+", "-", family.rpartition(":")[2].lower()).strip("-")
    return "assay-" + words.removeprefix("assay-")


def _with_dashes(name: str, origin: FamilyOrigin, *, given: bool) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*", name):
        what = "--name" if given else "the name of the family"
        raise ConfigError(f"{what} {name!r} is no name of a package; give letters, digits and '-': --name my-tasks")
    dashed = re.sub(r"[-_.]+", "-", name).lower()
    if dashed.replace("-", "_") in {*_TAKEN, *origin.modules}:
        raise ConfigError(
            f"--name {name}: a module of that name is needed by the export itself; give another, such as {name}-env"
        )
    return dashed


# ---- files ------------------------------------------------------------------------------------------------------------


def _plays(source: TaskSource) -> bool:
    """Whether a task of any arm is played in an environment."""
    firsts = (_first_task(source, arm, levels) for arm, levels in source.arms().items())
    return any(source.environment(task.public_view()) is not None for task in firsts)


def _first_task(source: TaskSource, arm: str, levels: Sequence[int]) -> Task:
    """The first task of an arm: of rows, of the first cell that has any."""
    for split in SPLITS:
        for level in levels:
            if rows_of_cell(source, arm, level, split) != 0:
                return source.task(arm, level, split, 0)
    return source.task(arm, levels[0], "train", 0)


def _copy_files(family: str, module: str) -> tuple[dict[str, str], str | None]:
    """The files that a family in one file becomes, and the family's name inside of the package; None where nothing is copied."""
    where, _, thing = family.rpartition(":")
    if where.endswith(".py"):
        return {f"{module}/family.py": Path(where).read_text(encoding="utf-8")}, f"{module}.family:{thing}"
    if where or not family.endswith((".jsonl", ".toml")):
        return {}, None
    reader = _ROWS if family.endswith(".jsonl") else _FILE
    beside = Path(family).name
    return {
        f"{module}/{beside}": Path(family).read_text(encoding="utf-8"),
        f"{module}/family.py": reader.format(name=beside),
    }, f"{module}.family:source"


def _compare(source: TaskSource, copy: Path, thing: str) -> None:
    """Raises where the copy is not the family that it was made of."""
    try:
        copied = source_of(f"{copy}:{thing}")
        same = [_first_digests(copied), _first_digests(source)]
    except Exception as error:
        raise ConfigError(
            f"the family cannot stand in a file of its own: {error}; put it and what it reads into a package, install that, "
            "and export package.module:thing"
        ) from error
    if same[0] != same[1]:
        raise ConfigError(
            f"the copy of {source.name!r} draws other tasks than the file: it depends on where it lies; put it into a package"
        )


def _first_digests(source: TaskSource) -> list[str]:
    return [digest(plain(_first_task(source, arm, levels).public)) for arm, levels in source.arms().items()]


def _init(family: str, called: str, plays: bool) -> str:
    return (_PLAYED if plays else _PLAIN).format(name=called, family=_quote_text(family))


def _quote_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _project(made: WrittenPackage, called: str, origin: FamilyOrigin) -> str:
    project: dict[str, Any] = {
        "name": made.name,
        "version": origin.version or "0.1.0",
        "description": f"Tasks of the family {called} as an environment of verifiers.",
        "readme": "README.md",
        "requires-python": ">=3.11",
    }
    if made.license:
        project["license"] = made.license
    if made.authors:
        project["authors"] = [dict(a) for line in made.authors for a in read_authors(line)]
    project["dependencies"] = list(made.dependencies)
    build = {"requires": ["hatchling>=1.27"], "build-backend": "hatchling.build"}
    tool = {"hatch": {"build": {"targets": {"wheel": {"packages": [made.module]}}}}}
    return tomli_w.dumps({"build-system": build, "project": project, "tool": tool})


def _line(author: Mapping[str, str]) -> str:
    name, mail = author.get("name", ""), author.get("email", "")
    return f"{name} <{mail}>" if name and mail else name or mail


def _enough(source: TaskSource) -> tuple[int, str]:
    """How many tasks the page may ask for, at most 20, and of which split: a small family has few, or none that are held out."""
    for n, split in ((20, "test"), (5, "test"), (1, "test"), (5, "train"), (1, "train")):
        try:
            for one in dict.fromkeys((split, "train")):
                list(in_turn(source, n, one))
        except DataError:
            continue
        return n, split
    return 1, "train"


def _readme(made: WrittenPackage, source: TaskSource, origin: FamilyOrigin) -> str:
    plays = _plays(source)
    n, split = _enough(source)
    folders = ("../assay", *([f"../{origin.package}"] if origin.package not in ("", OWN) else ()))
    return _README.format(
        n=n,
        tasks="one task" if n == 1 else f"{n} tasks",
        questions="one question" if n == 1 else f"{n} questions",
        folders=" ".join(folders),
        split=split,
        name=made.name,
        module=made.module,
        family=source.name,
        role="player" if plays else "agent",
        scoring="" if plays else _SCORING.format(name=made.name, n=n),  # a play is more than one answer
        arms=", ".join(f"`{arm}`" for arm in source.arms()),
        levels=" ".join(map(str, next(iter(source.arms().values()))[:2])),
        needs=", ".join(f"`{one}`" for one in made.dependencies),
    )


_PLAIN = '''"""Tasks of the family {name}, drawn where this runs and judged by the family's own verifier."""

from assay.tasks.exchange.tasksets import taskset_of

AssayTaskset = taskset_of({family})

__all__ = ["AssayTaskset"]
'''

_PLAYED = '''"""Tasks of the family {name}: drawn where this runs, played in its environment, judged by its verifier."""

from assay.tasks.exchange.tasksets import environment_of, taskset_of

AssayTaskset, AssayEnv = taskset_of({family}), environment_of()

__all__ = ["AssayEnv", "AssayTaskset"]
'''

_ROWS = '''"""Rows as a family."""

from pathlib import Path

from assay.core.protocols import TaskSource
from assay.core.task import Task
from assay.interop.taskset import vf
from assay.tasks import load_rows


def source() -> TaskSource:
    """The rows of the file beside this one."""
    return load_rows(Path(__file__).with_name("{name}"))
'''

_FILE = '''"""A family that a file describes."""

from pathlib import Path

from assay.core.protocols import TaskSource
from assay.core.task import Task
from assay.interop.taskset import vf
from assay.tasks.packages import installed_packages


def source() -> TaskSource:
    """The family of the file beside this one."""
    made = installed_packages().read(str(Path(__file__).with_name("{name}")))
    assert made is not None, "no installed package reads {name}"
    return made
'''

_SCORING = """
A score of an answer, without a model or a server:

```python
from assay.tasks import judged_rows
from assay.tasks.exchange.tasksets import taskset_rows
from assay.verify import rollout_of

source = judged_rows(taskset_rows("{name}", {n}), test_share=0)
(arm, (level, *_)), *_ = source.arms().items()
task = source.task(arm, level, "train", 0)
print(task.public_view().messages[-1].content, source.verifier()(task, rollout_of(task, "my answer")).primary)
```
"""

_README = """# {name}

Tasks of the family `{family}` as an environment of `verifiers`. It needs {needs}. In this folder:

    pip install . uv

What your index does not have goes into the same line by the folder of its source: `pip install {folders} . uv`. `assay-rl`
without extras brings no PyTorch; `pip install 'assay-rl[train]'` adds it, to train. Leave assay's `constraints.txt` out here:
`verifiers` pins other versions. `uv` runs the programs of `verifiers`.

Check {tasks} without a model: each task's own solution must be right, and no answer at all must not be.

    vf-validate {name} --taskset.num-tasks {n} --runtime.type subprocess

Ask a model behind any OpenAI-compatible server {questions} of the {split} split, with no tools and no container:

    vf-eval {name} -m MODEL --client.base-url http://localhost:8000/v1 --env.{role}.harness.id null \\
        --env.{role}.runtime.type subprocess --env.taskset.split {split} --env.taskset.num-tasks {n} --no-push

`verifiers` 0.4 says that `vf-eval` will be deprecated: its successor is `uv run eval` of prime-rl, which takes the same package.

In Python, the taskset:

```python
import verifiers.v1 as vf

config = vf.taskset_config_type("{name}")
for task in vf.load_taskset(config(id="{name}", num_tasks={n})):
    print(task.data.prompt)
```
{scoring}
Config of the taskset, each an option `--env.taskset.OPTION`: `arm` (one of {arms}; all when not given), `levels` (such as
`--env.taskset.levels {levels}`), `split` (`train` or `test`: told apart by content), `seed`, `form` (how answers are asked
for, where the family has several), `num-tasks`: without it all rows of a file of rows, 1000 tasks of a family that generates
them. No task occurs twice. Tasks hold no answers: a task's reward makes it anew from
its place in the family.
"""

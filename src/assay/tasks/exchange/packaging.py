"""Writes a family as an installable package for the library ``verifiers``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import assay
from assay.core.errors import ConfigError, DataError
from assay.tasks.exchange.tasksets import source_of

__all__ = ["write_package"]


def write_package(name: str, folder: Path) -> Mapping[str, str]:
    """A folder that ``pip install`` makes an environment of ``verifiers``: a taskset, and where needed an environment.

    The package holds the family's name, no tasks: they are drawn where it runs, of the arms, levels, stream and number that its
    config says (``--env.taskset.levels``, ``--env.taskset.num-tasks``, ...).

    Args:
        name: of a built-in family, one of its arms or a suite, or ``package.module:thing`` of an installed package.
        folder: new, or empty.

    Returns:
        Relative path to content of each file written.

    Raises:
        UnknownNameError: no such family.
        ConfigError: a family in a file of its own, which an installed package could not find.
        DataError: the folder holds something already.
    """
    if ".py:" in name or name.endswith((".py", ".toml", ".jsonl")):
        raise ConfigError(
            f"{name} is a file, which an installed package could not find; put the family in a package of its own: "
            "package.module:my_source"
        )
    source = source_of(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is there already and not empty; name another folder")
    arm, levels = next(iter(source.arms().items()))
    several = source.environment(source.task(arm, levels[0], "train", 0).exposed()) is not None
    dashed = "assay-" + re.sub(r"[^a-z0-9]+", "-", name.rpartition(":")[2].lower()).strip("-").removeprefix("assay-")
    package = dashed.replace("-", "_")
    files = {
        "pyproject.toml": _PROJECT.format(dashed=dashed, package=package, version=assay.__version__, name=name),
        "README.md": _README.format(dashed=dashed, name=name, arms=", ".join(source.arms()), package=package),
        f"{package}/__init__.py": (_WORLD if several else _PLAIN).format(name=name),
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return files


_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{dashed}"
version = "{version}"
description = "Tasks of assay's family {name} as an environment of verifiers."
requires-python = ">=3.11"
license = "Apache-2.0"
dependencies = ["assay-rl>={version}", "verifiers>=0.4"]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""

_PLAIN = '''"""Tasks of assay's family {name}, drawn where this runs and judged by its own verifier."""

from assay.tasks.exchange.tasksets import taskset_of

AssayTaskset = taskset_of("{name}")

__all__ = ["AssayTaskset"]
'''

_WORLD = '''"""Tasks of assay's family {name}: drawn where this runs, played in its environment, judged by its verifier."""

from assay.tasks.exchange.tasksets import environment_of, taskset_of

AssayTaskset, AssayEnv = taskset_of("{name}"), environment_of()

__all__ = ["AssayEnv", "AssayTaskset"]
'''

_README = """# {dashed}

Tasks of assay's family `{name}` as an environment of `verifiers`.

    pip install .
    vf-eval {package} --env.taskset.num-tasks 20 --env.taskset.split test

Config of the taskset: `family`, `arm` (one of {arms}), `levels`, `split` (train or test: told apart by content), `seed`,
`form` (how answers are asked for) and `num_tasks`. No task occurs twice. Tasks hold no answers: a task's reward makes it anew
from its place in the family.
"""

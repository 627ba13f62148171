"""``assay init``: a package for a part of one's own, which passes its checks as it is written."""

from __future__ import annotations

import importlib.util
import json
import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import assay
from assay.cli.options import parse
from assay.cli.output import lines, show
from assay.cli.scaffolds import PROJECT, README, SCAFFOLDS
from assay.core.errors import ConfigError, DataError, UnknownNameError

__all__ = ["init_command", "scaffold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions:
    """Writes a small package for a part of your own: one module, a test that passes, and a README with the next commands.

    Attributes:
        kind: task (prompts of a few characters), problem (questions in words), environment (several turns), reward, verifier
            or recipe.
        name: of the package, and of its family.
        about: what it is, in a line of your own: description, README and docstring begin with it.
        author: 'Name <mail>'.
        license: SPDX identifier, as MIT.
        out: the new folder; NAME when not given.
        json: print JSON.
    """

    kind: str = field(metadata={"positional": True, "arg": {"metavar": "KIND"}})
    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    about: str = field(default="", metadata={"arg": {"metavar": "TEXT"}})
    author: str = field(default="", metadata={"arg": {"metavar": "AUTHOR"}})
    license: str = field(default="", metadata={"arg": {"metavar": "SPDX"}})
    out: Path | None = field(default=None, metadata={"arg": {"metavar": "DIR"}})
    json: bool = False


def init_command(args: list[str]) -> int:
    """``assay init KIND NAME``."""
    own = parse(InitOptions, args, "assay init")
    folder = own.out or Path(own.name)
    files = scaffold(own.kind, own.name, folder, about=own.about, author=own.author, license=own.license)
    commands = re.findall(r"^    (\S.*)$", files["README.md"], re.MULTILINE)
    value = {"folder": str(folder), "files": sorted(files), "next": commands}

    def text() -> None:
        lines({"wrote": f"{folder}: {', '.join(sorted(files))}", "next": "\n".join([f"cd {folder}", *commands])})

    return show(own.json, value, text)


def scaffold(kind: str, name: str, folder: Path, *, about: str = "", author: str = "", license: str = "") -> Mapping[str, str]:
    """Writes a package.

    Args:
        kind: of `SCAFFOLDS`.
        name: of the package: letters, digits and ``-``.
        folder: new, or empty.
        about: what the package is, in one line; what the scaffold does when not given.
        author: ``Name <mail>``, several with commas; none when not given.
        license: SPDX expression; none when not given.

    Returns:
        Relative path to content of each file written.

    Raises:
        UnknownNameError: no such kind.
        ConfigError: a text of several lines, no licence, a name that is none of a package, or of a module, a family or a suite
            that is there already, or a keyword.
        DataError: the folder holds something already.
    """
    if kind not in SCAFFOLDS:
        raise UnknownNameError("kind of part", kind, SCAFFOLDS)
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigError(f"{name!r} is no name of a package; give small letters, digits and '-', such as my-{kind}")
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise ConfigError(f"{name!r} is a keyword of Python, so no module can have that name; give another, such as my-{name}")
    if module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        raise ConfigError(f"{name}: there is a module {module!r} already, which the new one would hide; give another name")
    if "entry" in SCAFFOLDS[kind] and (package := _offering_package(name)) is not None:
        raise ConfigError(
            f"{name!r} is a family or suite of {package} already ('assay tasks list'); give another, such as my-{name}"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} is there already and not empty; name another folder with --out")
    parts, said = SCAFFOLDS[kind], about.strip()
    if "\n" in said or '"""' in said or "\\" in said or said.endswith('"'):
        raise ConfigError(f"--about {about!r}: give one line, without backslashes, three quotes or a quote at its end")
    texts = {
        "pyproject.toml": PROJECT + parts.get("entry", ""),
        "README.md": README.replace("@look@", parts["look"]),
        ".gitignore": "".join(f"{name}/\n" for name in ("__pycache__", "build", "dist", "outputs", "runs", "*.egg-info")),
        f"{module}/__init__.py": parts["module"],
        f"tests/test_{module}.py": parts["test"],
        **({"cases.jsonl": parts["cases"]} if "cases" in parts else {}),
    }
    named = {
        "name": name,
        "module": module,
        "Class": "".join(word.capitalize() for word in name.split("-")),
        "about": said or parts["about"],
        "described": json.dumps(said or parts["about"], ensure_ascii=False),
        "stamped": _license_lines(author, license),
        "page": parts["page"],
        "version": assay.__version__,
    }
    files = {path: re.sub(r"@(\w+)@", lambda m: named[m.group(1)], text) for path, text in texts.items()}
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return files


def _license_lines(author: str, license: str) -> str:
    """The lines of a ``pyproject.toml`` that name licence and authors."""
    import tomli_w

    from assay.tasks.exchange.origin import check_license, read_authors

    table: dict[str, object] = {"license": check_license(license)} if license else {}
    if author:
        table["authors"] = list(read_authors(author))
    return tomli_w.dumps(table)


def _offering_package(name: str) -> str | None:
    """The package that offers a family or suite of this name."""
    from assay.tasks.packages import installed_packages

    found = installed_packages()
    return (found.packages.get(name) or "an installed package") if name in found.families or name in found.suites else None

"""Programming languages: how a program of each is compiled and run, one TOML file each."""

from __future__ import annotations

import dataclasses
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from glob import glob
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from assay.core.errors import ConfigError, ToolchainError, UnknownNameError
from assay.sandbox.limits import Limits

__all__ = ["PATH", "Language", "language", "languages"]

PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where contained programs find others, and so where a toolchain is looked for."""

_EVERYWHERE = ("/usr/bin", "/usr/local/bin", "/etc/alternatives")
_LIMITS = frozenset(f.name for f in dataclasses.fields(Limits))

_COMPILER = Limits()
_KEYS = {
    "names": "texts",
    "file": "text",
    "run": "texts",
    "compile": "texts",
    "keep": "texts",
    "needs": "table of texts",
    "reads": "texts",
    "compile_limits": "limits",
    "extra": "table of numbers",
    "no_memory": "texts",
    "note": "text",
}
"""What a TOML file may say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How a program of one language is compiled and run. The fields are those of its TOML file.

    Attributes:
        names: what it is called, on a command line and behind a fence, in lower case; the first is its name.
        file: what the source's file is called.
        run: program and arguments, in a folder with ``file``, or with what was kept. Empty: the sandbox's own Python.
        compile: program and arguments, in a folder with ``file``; empty where nothing is compiled.
        keep: files, or folders of files, that compiling makes and running needs.
        needs: programs that must be here, each with the Debian package that has it.
        reads: host paths that compiler and program may read besides the programs in ``/usr/bin`` and shared libraries, with
            ``*`` for what differs between versions; those that are not there are left out.
        compile_limits: of the compiler.
        extra: what its runtime takes for itself, by the limits' names: added to the limits of a run (`Program.extra`).
        no_memory: what a program prints on its standard error when it fails for want of memory.
        note: what one who writes such a program must know.

    Raises:
        ConfigError: a field that is empty and may not be, or does not fit another.
    """

    names: tuple[str, ...]
    file: str
    run: tuple[str, ...] = ()
    compile: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    reads: tuple[str, ...] = ()
    compile_limits: Limits = _COMPILER
    extra: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)
    no_memory: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.names or any(not n or n != n.lower() or n.split() != [n] for n in self.names):
            raise ConfigError(f"Language.names={list(self.names)}: give at least one word in lower case")
        if not self.file or "/" in self.file:
            raise ConfigError(f"Language.file={self.file!r}: give the name of a file, as main.c")
        if bool(self.compile) != bool(self.keep):
            raise ConfigError(f"language {self.name!r}: compile and keep go together: keep says what compiling makes")
        if self.compile and not self.run:
            raise ConfigError(f"language {self.name!r}: compile needs run: how to run what was made")
        if bool(self.run) != bool(self.needs):
            raise ConfigError(f"language {self.name!r}: needs says which programs run and compile use, and their packages")
        for name in self.extra:
            if name not in _LIMITS:
                raise UnknownNameError(f"limit in extra of {self.name!r}", name, _LIMITS)

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0]

    def find_programs(self) -> dict[str, str | None]:
        """Where each program of its toolchain is; None for one that is missing."""
        return {program: shutil.which(program, path=PATH) for program in self.needs}

    def missing(self) -> tuple[str, ...]:
        """The Debian packages that its toolchain lacks here."""
        return tuple(dict.fromkeys(self.needs[program] for program, place in self.find_programs().items() if place is None))

    def require(self) -> None:
        """Refuses to go on without its toolchain.

        Raises:
            ToolchainError: a program is missing; names it and its package.
        """
        absent = ", ".join(program for program, place in self.find_programs().items() if place is None)
        if absent:
            raise ToolchainError(
                f"language {self.name!r} needs {absent}, not found in {PATH}; on Debian: "
                f"apt-get install {' '.join(self.missing())}"
            )

    def admit(self, layers: Mapping[str, str]) -> None:
        """Refuses a way of containing programs under which its compiler or its programs cannot run.

        Args:
            layers: what holds programs, as `assay.sandbox.Worker` says.

        Raises:
            ConfigError: they are several processes, and a program is one; or only Python can be run there.
        """
        if self.run and layers.get("languages") == "python":
            raise ConfigError(
                f"language {self.name!r}: in WebAssembly programs are Python alone; others need 'strong' or 'landlock' "
                "('assay sandbox probe' says what is granted)"
            )
        who = "compiler" if self.compile and self.compile_limits.processes > 1 else ""
        who = who or ("interpreter" if self.extra.get("processes") else "")
        if who and layers.get("processes") == "one":
            raise ConfigError(
                f"language {self.name!r}: its {who} starts other processes, and here a program is one process; several need the "
                "level 'strong' and Linux 5.14 or newer ('assay sandbox probe' says what is granted)"
            )

    def places(self) -> tuple[str, ...]:
        """The host paths that its programs may read: those of ``reads`` that are here, and where programs are."""
        if not self.run:
            return ()
        return tuple(path for pattern in (*_EVERYWHERE, *self.reads) for path in sorted(glob(pattern)))


@cache
def _built_in() -> Mapping[str, Language]:
    """Every name of every language that comes with the library."""
    out: dict[str, Language] = {}
    place = files("assay.sandbox") / "languages"
    for entry in sorted(place.iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            found = _parse_language(entry.read_text(encoding="utf-8"), entry.name)
            for name in found.names:
                if name in out:
                    raise ConfigError(f"languages {out[name].name!r} and {found.name!r} are both called {name!r}")
                out[name] = found
    return MappingProxyType(out)


def languages() -> tuple[Language, ...]:
    """The languages that come with the library, by name.

    >>> [language.name for language in languages()][:3]
    ['c', 'cpp', 'fortran']
    """
    return tuple(sorted(set(_built_in().values()), key=lambda one: one.name))


def language(name: str) -> Language:
    """A language by any of its names, or one of your own by the path of its TOML file.

    Args:
        name: as ``c++``; or a path that ends with ``.toml``.

    Raises:
        UnknownNameError: no such language; says the nearest. Or no such key in a file.
        ConfigError: the file cannot be read, or a key in it is wrong; names both.

    >>> language("c++").file
    'main.cpp'
    """
    if not name.endswith(".toml"):
        known = _built_in()
        if name.lower() not in known:
            raise UnknownNameError("language", name, {one.name for one in known.values()})
        return known[name.lower()]
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the language {name}: {error}") from None
    made = _parse_language(text, name)
    if not made.run:  # which is how the library's own Python says that the sandbox runs it itself
        raise ConfigError(f'{name}: the key \'run\' is missing: program and arguments, as run = ["lua", "main.lua"]')
    return made


def _parse_language(text: str, name: str) -> Language:
    try:
        table = tomllib.loads(text)
        for key in table:
            if key not in _KEYS:
                raise UnknownNameError("key", key, _KEYS)
        for key in ("names", "file"):
            if key not in table:
                raise ConfigError(f"the key {key!r} is missing")
        return Language(**{key: _value(key, value) for key, value in table.items()})
    except (tomllib.TOMLDecodeError, ConfigError) as error:
        said = f"not TOML: {error}" if isinstance(error, tomllib.TOMLDecodeError) else str(error)
        raise ConfigError(f"{name}: {said}") from None


def _value(key: str, value: Any) -> Any:
    """A key's value as `Language` takes it."""
    kind = _KEYS[key]
    if kind == "texts" and isinstance(value, list) and _all(cast("list[Any]", value), str):
        return tuple(cast("list[str]", value))
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if kind == "limits":
            return Limits.parse(",".join(f"{k}={v}" for k, v in table.items()))
        if (kind == "table of texts" and _all(table.values(), str)) or (kind == "table of numbers" and _all(table.values(), int)):
            return table
    if kind == "text" and isinstance(value, str):
        return value
    raise ConfigError(f"{key} = {value!r}; give {'' if kind in ('texts', 'limits') else 'a '}{kind}")


def _all(items: Iterable[Any], kind: type) -> bool:
    return all(type(item) is kind for item in items)

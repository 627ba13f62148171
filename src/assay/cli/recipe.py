"""From a word on the command line to a recipe, a task family or a verifier."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from assay.cli.options import parse_with
from assay.cli.row_recipe import RowRecipe, names_rows
from assay.cli.user_files import USER_FILES, module_of
from assay.core.config import from_dict, loads_toml
from assay.core.errors import AssayError, ConfigError, UnknownNameError, a_kind
from assay.core.protocols import TaskSource, Verifier
from assay.core.rowfile import rows_beside
from assay.core.util.hub import PREFIX

if TYPE_CHECKING:  # a list of families or verifiers needs no run
    from assay.train.run import Run
    from assay.train.wiring import WiredPart

__all__ = [
    "find",
    "first_line",
    "module_of",
    "own_code",
    "reduced",
    "scorer",
    "settle",
    "settle_wired",
    "source",
    "user_files",
    "user_modules",
    "with_rows",
]

O = TypeVar("O")  # noqa: E741


def user_modules() -> tuple[str, ...]:
    """Names of the modules that were loaded from a person's own files."""
    return tuple(USER_FILES)


def user_files() -> tuple[str, ...]:
    """Absolute paths of the same."""
    return tuple(str(p) for p in USER_FILES.values())


# ---- recipes ----------------------------------------------------------------------------------------------------------


def find(word: str) -> Callable[..., Run]:
    """The recipe that a word names: one of assay's, ``my_file.py:function``, ``package.module:function``, ``run.toml``,
    or rows: ``rows.jsonl``, ``hub:OWNER/NAME``.

    Raises:
        UnknownNameError: no recipe of that name; with the nearest.
        ConfigError: the file or function is not there, or importing it fails.
    """
    from assay.recipes import RECIPES

    if word.endswith(".toml"):
        return _Written(Path(word))
    if names_rows(word):
        return RowRecipe(word, _reward)
    if ":" not in word:
        if word.endswith(".py"):
            raise ConfigError(f"recipe {word!r} names a file only; say which function: {word}:my_recipe")
        if word not in RECIPES:
            raise UnknownNameError("recipe", word, RECIPES)
        word = RECIPES[word]
    found = _named(word, "recipe")
    if not callable(found):
        raise ConfigError(f"recipe {word} is {a_kind(found)}; it must be a function that returns an assay Run")
    return cast("Callable[..., Run]", found)


def _reward(word: str) -> Any:
    """The reward function that a word names.

    Raises:
        ConfigError, UnknownNameError: there is none.
    """
    found = _named(word, "reward")
    if not callable(found):
        raise ConfigError(f"reward {word} is {a_kind(found)}; name a function of (prompt, completion, row)")
    return found


def settle(options: type[O], word: str, args: Sequence[str], prog: str) -> tuple[O, Run]:
    """A command's options, and the run of a recipe with the command line's changes.

    Raises:
        ConfigError: the recipe does not give a `Run`, or a change is refused.
        SystemExit: a usage error, or ``--help``.
    """
    return settle_wired(options, word, args, prog)[:2]


def settle_wired(options: type[O], word: str, args: Sequence[str], prog: str) -> tuple[O, Run, tuple[WiredPart, ...]]:
    """The same, and what was put into the run for methods that a file or the command line names.

    Raises:
        ConfigError, SystemExit: as `settle`.
    """
    from assay.cli.method_options import split_names, wire_named

    recipe = find(word)
    seed, rest = _seed(args)
    if isinstance(recipe, RowRecipe):
        recipe, rest = recipe.taking(rest)
    run, wires = _call(recipe, word, seed), recipe.wires if isinstance(recipe, _Written) else ()
    rest, named = split_names(rest, _objectives())
    if named:
        run, more = wire_named(run, named)
        wires = (*wires, *more)
    own, run = parse_with(options, run, rest, f"{prog} {word}", first_line(recipe).replace("`", ""), user_modules())
    return own, run, wires


def _objectives() -> tuple[str, ...]:
    """Classes by whose bare names an objective can be replaced."""
    from assay.objective.objective import Objective

    kinds = [(n, v) for m in user_modules() for n, v in vars(sys.modules[m]).items() if isinstance(v, type)]
    return ("Objective", *(n for n, v in kinds if issubclass(v, Objective)))


def reduced(run: Run) -> Run:
    """The run with a small random model in place of its own, and a line for the person on each thing that is then different.

    Raises:
        ConfigError: the run begins from no model that is brought.
    """
    from assay.cli.output import note
    from assay.recipes.dry import random_init

    changed, told = random_init(run)
    for line in told:
        note(f"random-init: {line}")
    return changed


def with_rows(run: Run) -> Run:
    """The run itself, or where its rows are not here and it can name others of their form, the run on generated ones: what is
    only looked at, its sizes, does not depend on them.
    """
    try:
        arm, levels = next(iter(run.tasks.arms().items()))
        run.tasks.task(arm, levels[0], "train", 0)
        return run
    except AssayError as error:
        from assay.cli.output import note
        from assay.recipes.dry import stand_in

        tasks = stand_in(run.tasks)
        if tasks is None:
            raise
        note(f"the rows of {run.tasks.name} are not here ({error}); generated ones stand for them")
        return replace(run, tasks=tasks)


def first_line(value: object) -> str:
    """First line of a docstring."""
    return inspect.cleandoc(value.__doc__ or "").split("\n")[0]


@dataclass(slots=True)
class _Written:
    """The run that a TOML file holds, as `assay explain --toml` and run folders write it.

    Attributes:
        path: of the file.
        wires: what was put into the run for methods that the file names, once it was read.
    """

    path: Path
    wires: tuple[WiredPart, ...] = ()

    def __call__(self) -> Run:
        from assay.train.method_names import names_in
        from assay.train.run import Run

        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read a run from {self.path}: {error}") from None
        with rows_beside(self.path.parent):
            plain, named = names_in(loads_toml(text))
            run = from_dict(Run, plain)
            if named:
                from assay.train.wiring import wire_run

                run, self.wires = wire_run(run, named)
            return run


def _call(recipe: Callable[..., Run], word: str, seed: int | None) -> Run:
    """A recipe that takes a ``seed`` gets the command line's, so that what it builds first (its base) follows the seed too."""
    from assay.train.run import Run

    takes = "seed" in _parameters(recipe, f"recipe {word}")
    try:
        run: Any = recipe(seed=seed) if takes and seed is not None else recipe()
    except AssayError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"recipe {word} failed: {_told(error)}") from error
    if not isinstance(run, Run):
        raise ConfigError(f"recipe {word} gave {a_kind(run)}; it must return an assay Run")
    return run if takes or seed is None else replace(run, seed=seed)


def _told(error: BaseException) -> str:
    """An error of a person's own code: its type, its text, and where it was raised, if possible in their own file."""
    places = traceback.extract_tb(error.__traceback__)
    place = next((p for p in reversed(places) if p.filename in user_files()), places[-1])
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"


def _parameters(function: Callable[..., Any], what: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function that is about to be called without any.

    Raises:
        ConfigError: one has no default.
    """
    found = inspect.signature(function).parameters
    for p in found.values():
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ConfigError(f"{what} needs a value for {p.name!r}; give the parameter a default")
    return found


def _seed(args: Sequence[str]) -> tuple[int | None, list[str]]:
    """``--seed`` taken out of the arguments: the recipe itself may depend on it."""
    rest = list(args)
    seed: int | None = None
    while (at := next((i for i, a in enumerate(rest) if a == "--seed" or a.startswith("--seed=")), None)) is not None:
        flag, equals, given = rest[at].partition("=")
        value = given if equals else rest[at + 1] if at + 1 < len(rest) else ""
        try:
            seed = int(value)
        except ValueError:
            raise ConfigError(f"{flag} {value!r} is no whole number; give one, as in --seed 3") from None
        del rest[at : at + (1 if equals else 2)]
    return seed, rest


# ---- task families ----------------------------------------------------------------------------------------------------


def source(word: str) -> TaskSource:
    """The task family that a word names: assay's, rows in a ``.jsonl`` file, a puzzle in a ``.toml`` file, or
    ``my_file.py:my_source``: a family, its class, or a function giving one.

    Raises:
        UnknownNameError: no such family; with the nearest.
        ConfigError: what was named is no task family.
    """
    from assay.tasks import Problem, family, load_rows
    from assay.tasks.packages import installed

    if word.endswith(".jsonl"):
        return load_rows(word)
    if ":" not in word and (read := installed().read(word)):
        return read
    if word.startswith(PREFIX):
        raise ConfigError(f"{word}: rows on the hub become a family by 'assay tasks import {word} rows.jsonl'")
    if ":" not in word:
        if word.endswith((".json", ".ndjson", ".gz", ".parquet", ".arrow", ".csv")):
            raise ConfigError(f"{word}: a file of rows is a family as .jsonl; 'assay tasks import {word} rows.jsonl' makes one")
        if word.endswith(".py"):
            raise ConfigError(f"task family {word!r} names a file only; say which: {word}:my_source")
        return family(word)
    found: object = _named(word, "task family")
    if callable(found):
        _parameters(found, f"task family {word}")
    try:
        made: object = found() if callable(found) else found
    except AssayError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"task family {word} failed: {_told(error)}") from error
    if not isinstance(made, TaskSource):
        hint = "; a Problem is an arm: return Problems(name=..., problems=(it,))" if isinstance(made, Problem) else ""
        raise ConfigError(
            f"task family {word} is {a_kind(made)} without the methods of a TaskSource (assay.core.protocols){hint}"
        )
    return made


@contextmanager
def own_code(word: str) -> Generator[None]:
    """Where tasks are drawn: an exception of a family in a file or module of a person's own is told in one line.

    Raises:
        ConfigError: such a family raised what is no error of assay's; names it and where. Built-in ones are let through.
    """
    try:
        yield
    except (AssayError, OSError):
        raise
    except Exception as error:
        if ":" not in word:
            raise
        raise ConfigError(f"task family {word} failed: {_told(error)}") from error


# ---- verifiers --------------------------------------------------------------------------------------------------------


def scorer(word: str, settings: Mapping[str, Any]) -> Verifier:
    """The verifier that a word names: assay's, or ``my_file.py:name`` of a verifier, its class, or anybody's reward function.

    What is no verifier becomes one by `assay.interop.adapt`. Settings are fields of the class, or of
    `assay.verify.RewardFunction` for a function of ``(prompt, completion, row)``.

    Raises:
        UnknownNameError: no such verifier or setting; with the nearest.
        ConfigError: what was named is no verifier, or a setting is wrong.
    """
    from assay.interop import adapt, load
    from assay.verify import RewardFunction, verifier

    if ":" not in word:
        if word.endswith(".py"):
            raise ConfigError(f"verifier {word!r} names a file only; say which: {word}:my_verifier")
        return verifier(word, **settings)
    found: Any = load(word)
    if isinstance(found, type):
        kind = cast("type[Any]", found)
        found, settings = from_dict(kind, settings) if is_dataclass(kind) else _built(kind, word, settings), {}
    if settings and isinstance(found, FunctionType) and settings.keys() <= {"batched", "floor"}:
        return RewardFunction(found, **dict(settings))
    return _refused(word, settings) if settings else adapt(found, name=word)


def _built(kind: Callable[..., Any], word: str, settings: Mapping[str, Any]) -> Any:
    try:
        return kind(**settings)
    except AssayError:
        raise
    except Exception as error:
        raise ConfigError(f"verifier {word} failed: {_told(error)}") from error


def _refused(word: str, settings: Mapping[str, Any]) -> Any:
    raise ConfigError(f"{word} has no settings {sorted(settings)}; a function of (prompt, completion, row) has batched and floor")


# ---- modules ----------------------------------------------------------------------------------------------------------


def _named(word: str, what: str) -> object:
    where, _, name = word.rpartition(":")
    module = sys.modules[module_of(where)] if where.endswith(".py") else _module(where)
    if not hasattr(module, name):
        offered = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if _own(n, v, module)]
        raise UnknownNameError(f"{what} in {where}", name, offered)
    return getattr(module, name)


def _own(name: str, value: object, module: ModuleType) -> bool:
    """Whether a module's name is its own: public, no module, no class or function from elsewhere."""
    if name.startswith("_") or isinstance(value, ModuleType):
        return False
    return not isinstance(value, type | FunctionType) or value.__module__ == module.__name__


def _module(where: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except ImportError as error:
        raise ConfigError(f"cannot import {where}: {error}") from error

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
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from assay.cli.config_files import config_options, names_recipe, read_config, recipe_of, split_config
from assay.cli.given_options import GivenOption, Mistakes, split_options, words_of
from assay.cli.options import print_all
from assay.cli.part_tree import Node, take
from assay.cli.row_recipe import RowRecipe, names_rows
from assay.cli.run_settings import HELPS, Settled, change_run, name_own, seed_of
from assay.cli.tracker_options import file_options, split_trackers, tracker_words
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
    "settle_all",
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
        ConfigError: the recipe does not give a `Run`, or changes are refused: all of them.
        SystemExit: ``--help``.
    """
    found = settle_all(options, [word, *args], prog)
    return found.own, found.run


def settle_all(options: type[O], args: Sequence[str], prog: str) -> Settled[O]:
    """The same with all that is known of the request; the recipe stands first, or in a file of settings.

    Raises:
        ConfigError, SystemExit: as `settle`.
    """
    named, given = split_options(args)
    mistakes = Mistakes()
    files, given = split_config(name_own(options, given))
    if named and named[0].endswith(".toml") and names_recipe(Path(named[0])):
        files.insert(0, Path(named.pop(0)))
    tables = {path: read_config(path) for path in files}
    trackers = [o for path, table in tables.items() for o in file_options(path, table)]
    if "tracker" in getattr(options, "__dataclass_fields__", ()):
        typed_trackers, given = split_trackers(given)
        trackers += typed_trackers
    word = _recipe_word(named, tables, f"{prog} RECIPE {' '.join(args)}")
    for stray in named[1:]:
        mistakes.add([], f"{stray} belongs to no option")
    recipe = find(word)
    seed, typed = seed_of([*_seeds(tables), *given], mistakes)
    taken: list[GivenOption] = []
    if isinstance(recipe, RowRecipe):
        recipe, taken, typed = recipe.taking(typed)
    run, wires = _call(recipe, word, seed), recipe.wires if isinstance(recipe, _Written) else ()
    typed = _in_layers(tables, run, typed)
    helps = [o for o in typed if o.path in HELPS]
    try:
        asked = [o for o in typed if o not in helps]
        own, changed, more, given = change_run(options, run, asked, _objectives(), user_modules(), mistakes)
    except ConfigError:
        if helps:
            _print_help(options, run, helps[-1], f"{prog} {word}", first_line(recipe))
        raise
    if helps:
        _print_help(options, changed, helps[-1], f"{prog} {word}", first_line(recipe))
    said = tuple(args[1:])
    if tables:
        said = (*words_of([*taken, *given]), *tracker_words(trackers), *(() if seed is None else ("--seed", str(seed))))
    return Settled(own=own, run=changed, wires=(*wires, *more), recipe=word, words=said, trackers=tuple(trackers))


def _recipe_word(named: Sequence[str], tables: Mapping[Path, Mapping[str, Any]], usage: str) -> str:
    """The recipe of the command line, else the one that the last of the files names."""
    words = [w for path, table in tables.items() if (w := recipe_of(path, table))]
    if not named and not words:
        raise ConfigError(f"give the recipe first: {usage}, or name it in a file: recipe = ...")
    return named[0] if named else words[-1]


def _in_layers(tables: Mapping[Path, Mapping[str, Any]], run: Run, typed: Sequence[GivenOption]) -> list[GivenOption]:
    """What files of settings say, in their order, then the options of the command line."""
    if not tables:
        return list(typed)
    tree = cast(Node, take(run))
    rows = [o for layer, (path, table) in enumerate(tables.items()) for o in config_options(path, table, tree, layer)]
    return [*(o for o in rows if o.path != "seed"), *(replace(o, layer=len(tables)) for o in typed)]


def _seeds(tables: Mapping[Path, Mapping[str, Any]]) -> list[GivenOption]:
    """The seeds that files of settings give."""
    return [
        GivenOption(path="seed", words=(str(table["seed"]),), typed="seed", file=str(path))
        for path, table in tables.items()
        if "seed" in table
    ]


def _print_help(options: type[Any], run: Run, asked: GivenOption, prog: str, description: str) -> NoReturn:
    """The help that was asked for, after which the command ends."""
    if asked.path == "help_all":
        print_all(options, cast(Node, take(run)), prog, description.replace("`", ""))
    from assay.cli.run_help import find_options, short_help

    words, description = " ".join(asked.words), description.replace("`", "")
    print(find_options(options, run, prog, words) if words else short_help(options, run, prog, description))
    raise SystemExit(0)


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

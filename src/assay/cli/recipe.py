"""From a word on the command line to a recipe, and to its run with the command line's changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from assay.cli.config_files import config_options, names_recipe, recipe_of, split_config, with_bases
from assay.cli.given_options import GivenOption, Mistakes, split_options, words_of
from assay.cli.options import print_all
from assay.cli.part_tree import Node, take
from assay.cli.row_recipe import RowRecipe, names_rows
from assay.cli.run_settings import HELPS, Settled, change_run, kept_settings, name_own, options_alike, seed_of
from assay.cli.sources import reward_of
from assay.cli.tracker_options import file_options, split_trackers, tracker_words
from assay.cli.user_objects import default_parameters, error_text, first_line, named_object, user_modules
from assay.core.config import from_dict, loads_toml
from assay.core.errors import AssayError, ConfigError, UnknownNameError, a_kind
from assay.core.rowfile import rows_beside

if TYPE_CHECKING:  # a list of families or verifiers needs no run
    from assay.train.run import Run
    from assay.train.wiring import WiredPart

__all__ = [
    "find",
    "shrink_run",
    "settle",
    "settle_all",
    "with_rows",
]

O = TypeVar("O")  # noqa: E741


# ---- recipes ----------------------------------------------------------------------------------------------------------


def find(word: str) -> Callable[..., Run]:
    """The recipe that a word names: one of assay's, ``my_file.py:function``, ``package.module:function``, ``run.toml``,
    or rows: ``rows.jsonl``, a folder of such files, ``hub:OWNER/NAME``.

    Raises:
        UnknownNameError: no recipe of that name; with the nearest.
        ConfigError: the file or function is not there, or importing it fails.
    """
    from assay.recipes import RECIPES

    if word.endswith(".toml"):
        return _Written(Path(word))
    if (Path(word) / "config.json").is_file() and word not in RECIPES:
        raise ConfigError(
            f"{word} is a model's folder, not a recipe: name rows or a recipe first, as in assay train ROWS.jsonl --model {word}"
        )
    if names_rows(word) and word not in RECIPES:
        return RowRecipe(word, reward_of)
    if ":" not in word:
        if word.endswith(".py"):
            raise ConfigError(f"recipe {word!r} names a file only; say which function: {word}:my_recipe")
        if word not in RECIPES:
            raise UnknownNameError("recipe", word, RECIPES)
        word = RECIPES[word]
    found = named_object(word, "recipe")
    if not callable(found):
        raise ConfigError(f"recipe {word} is {a_kind(found)}; it must be a function that returns an assay Run")
    return cast("Callable[..., Run]", found)


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
    tables = with_bases(files)
    trackers = [o for path, table in tables.items() for o in file_options(path, table)]
    if "tracker" in getattr(options, "__dataclass_fields__", ()):
        typed_trackers, given = split_trackers(given)
        trackers += typed_trackers
    word = _recipe_word(named, tables, f"{prog} RECIPE {' '.join(args)}")
    for stray in named[1:]:
        dashes = f"; an option begins with dashes: --{stray}" if "=" in stray else ""
        mistakes.add([], f"{stray} belongs to no option{dashes}")
    recipe = find(word)
    seed, typed = seed_of([*_seeds(tables), *given], mistakes)
    taken: list[GivenOption] = []
    if isinstance(recipe, RowRecipe):
        for path in tables:
            recipe, tables[path] = recipe.in_file(path, tables[path])
        recipe, _, typed = recipe.taking(typed)
        taken = recipe.options
    try:
        run, own_seed = _call(recipe, word, seed)
    except AssayError as error:
        if not isinstance(recipe, RowRecipe):
            raise
        run, own_seed = recipe.note_mistakes(error, mistakes), seed
    wires = recipe.wires if isinstance(recipe, _Written) else ()
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
    alike = (*options_alike(run, changed, given), *(("seed",) if seed is not None and seed == own_seed else ()))
    return Settled(
        own=own,
        run=changed,
        wires=(*wires, *more),
        recipe=word,
        words=said,
        trackers=tuple(trackers),
        unchanged=alike,
        kept=kept_settings(run, changed, bool(getattr(own, "for_model", False))),
    )


def _recipe_word(named: Sequence[str], tables: Mapping[Path, Mapping[str, Any]], usage: str) -> str:
    """The recipe of the command line, else the one that the last of the files names that build on no other file."""
    known = {path.resolve() for path in tables}
    words = [w for path, table in tables.items() if (w := recipe_of(path, table)) and Path(w).resolve() not in known]
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


def shrink_run(run: Run) -> Run:
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
        except FileNotFoundError:
            raise ConfigError(f"cannot read a run from {self.path}: there is no such file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read a run from {self.path}: {error}") from None
        try:
            table = loads_toml(text)
        except ConfigError as error:
            raise ConfigError(f"{self.path}: {error}") from None
        with rows_beside(self.path.parent):
            plain, named = names_in(table)
            run = from_dict(Run, plain)
            if named:
                from assay.train.wiring import wire_run

                run, self.wires = wire_run(run, named)
            return run


def _call(recipe: Callable[..., Run], word: str, seed: int | None) -> tuple[Run, int | None]:
    """A recipe's run, and the seed that it has without another. A recipe that takes a ``seed`` gets the command line's, so that
    what it builds first (its base) follows the seed too.
    """
    from assay.train.run import Run

    parameter = default_parameters(recipe, f"recipe {word}").get("seed")
    takes = parameter is not None
    try:
        run: Any = recipe(seed=seed) if takes and seed is not None else recipe()
    except AssayError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"recipe {word} failed: {error_text(error)}") from error
    if not isinstance(run, Run):
        raise ConfigError(f"recipe {word} gave {a_kind(run)}; it must return an assay Run")
    if parameter is not None:
        return run, parameter.default
    return (run if seed is None else replace(run, seed=seed)), run.seed

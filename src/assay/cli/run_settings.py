"""From a recipe's run to the one that a person asked for: aliases, methods by name, then every other option."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from assay.cli.aliases import OWN_ALIASES, replace_aliases
from assay.cli.apply_options import apply_options
from assay.cli.given_options import GivenOption, Mistakes, last_given
from assay.cli.model_chat import drop_foreign_options
from assay.cli.output import note
from assay.cli.part_tree import Node, at, class_word, take
from assay.core.errors import AssayError
from assay.recipes.setting_names import SHORT

if TYPE_CHECKING:
    from assay.train.run import Run
    from assay.train.wiring import WiredPart

__all__ = ["HELPS", "Settled", "change_run", "kept_settings", "name_own", "options_alike", "seed_of"]

O = TypeVar("O")  # noqa: E741

HELPS = ("h", "help", "help_all")
"""Options that ask for help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[O]):
    """What a command was asked for.

    Attributes:
        own: the command's own options.
        run: the recipe's, with every change.
        wires: what was put into it for methods that were named.
        recipe: the word that names the recipe, on the command line or in a file.
        words: of the command line behind the recipe, which say the same without the files of settings.
        trackers: what was said of trackers.
        unchanged: options that say what the recipe says too, by the names that they were given by.
        kept: what a run on another model keeps of the recipe's settings, in a line.
    """

    own: O
    run: Run
    wires: tuple[WiredPart, ...]
    recipe: str
    words: tuple[str, ...]
    trackers: tuple[GivenOption, ...] = ()
    unchanged: tuple[str, ...] = ()
    kept: str = ""


def name_own(options: type[Any], given: Sequence[GivenOption]) -> list[GivenOption]:
    """A command's own options by the names that it calls them by, where they have others: ``--out`` is ``--folder``."""
    own = {f.name for f in fields(options)}
    named = {other: name for other, name in OWN_ALIASES.items() if name in own}
    return [replace(o, path=named[o.path]) if o.path in named and not o.file else o for o in given]


def seed_of(given: Sequence[GivenOption], mistakes: Mistakes) -> tuple[int | None, list[GivenOption]]:
    """The seed, taken out of the options: the recipe itself may depend on it."""
    seed: int | None = None
    for option in given:
        if option.path != "seed":
            continue
        word = " ".join(option.words)
        try:
            seed = int(word)
        except ValueError:
            mistakes.add([option], f"{option.typed} {word!r} is no whole number; give one, as in --seed 3")
    return seed, [o for o in given if o.path != "seed"]


def change_run(
    options: type[O], run: Run, given: Sequence[GivenOption], parts: Sequence[str], modules: Sequence[str], mistakes: Mistakes
) -> tuple[O, Run, tuple[WiredPart, ...], list[GivenOption]]:
    """The command's own options, the run with all changes, what was wired, and the options as they were understood.

    Args:
        options: of the command, a dataclass.
        run: as the recipe gives it.
        given: in the order in which they count.
        parts: names of classes that may stand in the place of an objective.
        modules: the user's own, where bare names of parts are looked up too.
        mistakes: what was wrong before.

    Raises:
        ConfigError: something is wrong; all of it, each with its place.
    """
    from assay.cli.method_options import wire_all  # loads objectives, which a list of verifiers does not need

    own = {f.name for f in fields(cast(Any, options))}
    if "for_model" in own and any(o.path == "for_model" and not o.file for o in given):
        run = _fitted_to_model(run, given, modules)
    given = replace_aliases(run, given, own, mistakes)
    root = cast(Node, take(run))
    given = last_given(given, lambda path: _replaced_part(path, root))
    wired, wires, rest = wire_all(run, given, parts, mistakes)
    made, changed = apply_options(options, wired, rest, mistakes, modules)
    changed, left_out = drop_foreign_options(run, changed)
    if left_out:
        note(left_out)
    return made, changed, wires, given


def _fitted_to_model(run: Run, given: Sequence[GivenOption], modules: Sequence[str]) -> Run:
    """The run on the model that is asked for, with what follows from it; every other option counts after that."""
    from assay.recipes.model_fit import fit_to_model

    names = {name.replace("-", "_") for name in ("model", *SHORT["model"][0].split())}
    asked = [o for o in given if o.path in names or o.path.startswith("model.")]
    mistakes = Mistakes()
    _, on_it = apply_options(_NoOptions, run, replace_aliases(run, asked, (), mistakes), mistakes, modules)
    return fit_to_model(drop_foreign_options(run, on_it)[0])


@dataclass(frozen=True, slots=True)
class _NoOptions:
    """Of no command."""


def kept_settings(before: Run, after: Run, fitted: bool) -> str:
    """What a run on another model keeps of the recipe's settings, and how to derive them; empty where nothing."""
    from assay.train.models import Folder

    if fitted or before.model == after.model or not isinstance(after.model, Folder):
        return ""
    from assay.recipes.model_fit import settings_kept

    try:
        kept = settings_kept(after)
    except AssayError:  # of a model that is not here: it is told where the run begins
        return ""
    return f"kept from the recipe's model: {'; '.join(kept)}. --for-model derives them from this one" if kept else ""


def options_alike(before: Run, after: Run, given: Sequence[GivenOption]) -> tuple[str, ...]:
    """Options that leave their setting as the recipe has it, by the names that a list of words has them by.

    Args:
        before: as the recipe gives it.
        after: with all changes.
        given: as `change_run` understood them.
    """
    old, new = take(before), take(after)
    alike: dict[str, bool] = {}
    for option in given:
        name = option.path if option.file else option.typed.lstrip("-+").replace("-", "_")
        if option.path == "steps":  # the command's own, which is not in the run yet
            same = option.words == (str(before.stages[-1].steps),)
        else:
            same = _setting(old, option.path) == _setting(new, option.path) != ()
        alike[name] = alike.get(name, True) and same
    return tuple(name for name, same in alike.items() if same)


def _setting(root: Any, path: str) -> tuple[Any, ...]:
    """What stands in a place, the class where the last word asks for that; nothing where there is no such place."""
    *above, word = path.split(".")
    node = at(root, above)
    if not isinstance(node, Node):
        return ()
    if word in node.fields:
        return (node.fields[word],)
    return (node.kind,) if word == class_word(node) else ()


def _replaced_part(path: str, root: Node) -> str:
    """The part that an option replaces, or the objective that it names."""
    head, _, word = path.rpartition(".")
    if word == "objective":
        return path
    return head if head and word == class_word(at(root, head.split("."))) else ""

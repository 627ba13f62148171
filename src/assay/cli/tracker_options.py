"""``--tracker wandb --tracker.project sums``: the trackers of a run, on the command line and in files of settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from assay.cli.apply_options import apply_options
from assay.cli.given_options import GivenOption, Mistakes, words_of
from assay.cli.user_files import module_of
from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.import_path import load_class
from assay.measure.trackers.state import TRACKERS
from assay.measure.trackers.tracker import TrackerSettings

__all__ = ["TRACKER", "choose_trackers", "file_options", "split_trackers", "tracker_words"]

TRACKER = "tracker"
"""The option, and the table in a file of settings."""

NONE = "none"


def split_trackers(given: Sequence[GivenOption]) -> tuple[list[GivenOption], list[GivenOption]]:
    """The options about trackers, and the others."""
    about = [o for o in given if o.path == TRACKER or o.path.startswith(f"{TRACKER}.")]
    return about, [o for o in given if o not in about]


def split_words(args: Sequence[str]) -> tuple[list[GivenOption], list[str]]:
    """The same of the words of a command line.

    >>> about, rest = split_words(["runs/a", "--tracker", "wandb", "--plain", "--tracker.project=x"])
    >>> [o.place for o in about], rest
    (['--tracker wandb', '--tracker.project x'], ['runs/a', '--plain'])
    """
    about: list[GivenOption] = []
    rest: list[str] = []
    inside = False
    for word in args:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            inside = name == f"--{TRACKER}" or name.startswith(f"--{TRACKER}.")
            if inside:
                path = name.removeprefix("--").replace("-", "_")
                about.append(GivenOption(path=path, typed=name, words=(value,) if equals else ()))
                continue
        elif inside:
            about[-1] = dataclasses.replace(about[-1], words=(*about[-1].words, word))
            continue
        rest.append(word)
    return about, rest


def file_options(path: Path, table: dict[str, Any]) -> list[GivenOption]:
    """What a file of settings says of trackers, taken out of its table: ``tracker = ["wandb"]``, or a table ``[tracker.wandb]``
    with settings.

    Raises:
        ConfigError: it says something else.
    """
    found: Any = table.pop(TRACKER, None)
    if found is None:
        return []
    if isinstance(found, str | list):
        names = [found] if isinstance(found, str) else cast("list[object]", found)
        return [GivenOption(path=TRACKER, words=tuple(map(str, names)), typed=TRACKER, file=str(path))]
    tables = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    if not tables or not all(isinstance(of, dict) for of in tables.values()):
        raise ConfigError(
            f'{path}: tracker is {a_kind(cast(object, found))}; write tracker = ["wandb"], or a table [tracker.wandb] with '
            "settings"
        )
    out = [GivenOption(path=TRACKER, words=tuple(tables), typed=TRACKER, file=str(path))]
    for name, of in tables.items():
        for key, value in cast("dict[str, Any]", of).items():
            several = isinstance(value, list)
            words = (
                tuple(map(str, cast("list[Any]", value)))
                if several
                else (str(value).lower() if isinstance(value, bool) else str(value),)
            )
            full = f"{TRACKER}.{name}.{key}"
            out.append(GivenOption(path=full.replace("-", "_"), words=words, typed=full, file=str(path)))
    return out


def tracker_words(about: Sequence[GivenOption]) -> tuple[str, ...]:
    """Words of a command line that says the same."""
    return words_of([dataclasses.replace(o, value=None) for o in about])


def choose_trackers(
    about: Sequence[GivenOption], flags: Sequence[str] = (), before: Sequence[TrackerSettings] = ()
) -> tuple[TrackerSettings, ...]:
    """The trackers that options choose.

    Args:
        about: `split_trackers`, in the order in which they count. A later ``--tracker`` replaces an earlier one,
            with what files say of trackers that it leaves out.
        flags: names that are chosen besides.
        before: those that the run had: where no option names any they are chosen, and a chosen one keeps its settings.

    Raises:
        ConfigError: settings that no chosen tracker has, or values that it refuses; all of them.
        UnknownNameError: no tracker of a name.
    """
    had = {tracker.tracker_name(): tracker for tracker in before}
    named = [o for o in about if o.path == TRACKER]
    words = [w for w in named[-1].words if w] if named else []
    if named and not words:
        raise ConfigError(f"{named[-1].place} needs a value: {', '.join(TRACKERS)}, or none")
    chosen = dict(had) if not named and not flags else {}
    for word in [*([] if words == [NONE] else words), *flags]:
        tracker = _tracker(word, named[-1].place if named else word)
        chosen[tracker.tracker_name()] = had.get(tracker.tracker_name(), tracker)
    settings = [o for o in about if o.path != TRACKER and not (o.file and words and not _is_chosen(o, chosen))]
    if not settings:
        return tuple(chosen.values())
    return _apply_settings(chosen, settings)


def _is_chosen(option: GivenOption, chosen: Mapping[str, TrackerSettings]) -> bool:
    """Whether a file's settings are of a tracker that is chosen: the last choice wins, and takes those of others with it."""
    return option.path.removeprefix(f"{TRACKER}.").partition(".")[0] in chosen


def _tracker(word: str, place: str) -> TrackerSettings:
    if ":" not in word:
        if word not in TRACKERS:
            raise UnknownNameError("tracker", word, TRACKERS)
        return TRACKERS[word]()
    where, _, name = word.rpartition(":")
    kind = load_class(f"{module_of(where)}:{name}" if where.endswith(".py") else word, place)
    if not issubclass(kind, TrackerSettings):
        raise ConfigError(f"{place}: {word} is no tracker; derive it from assay.measure.TrackerSettings")
    return kind()


def _apply_settings(chosen: Mapping[str, TrackerSettings], settings: Sequence[GivenOption]) -> tuple[TrackerSettings, ...]:
    """With settings: ``tracker.wandb.project`` of one, ``tracker.project`` of each that has a project."""
    mistakes = Mistakes()
    rows: list[GivenOption] = []
    for option in settings:
        head, _, rest = option.path.removeprefix(f"{TRACKER}.").partition(".")
        if head in chosen and rest:
            rows.append(option)
            continue
        if rest or head in TRACKERS:
            asked = head if head in TRACKERS else option.typed
            mistakes.add(
                [option], f"{asked} is not among the trackers chosen ({', '.join(chosen) or 'none'}); add --tracker {head}"
            )
            continue
        having = [name for name, tracker in chosen.items() if head in {f.name for f in dataclasses.fields(tracker)}]
        if not having:
            known = sorted({f.name.replace("_", "-") for t in chosen.values() for f in dataclasses.fields(t)})
            mistakes.add(
                [option],
                f"no tracker chosen ({', '.join(chosen) or 'none'}) has {head!r}; they have {', '.join(known) or 'nothing'}",
            )
        rows += [dataclasses.replace(option, path=f"{TRACKER}.{name}.{head}") for name in having]
    parts = dataclasses.make_dataclass("Trackers", [(n, type(t)) for n, t in chosen.items()], frozen=True, kw_only=True)
    root = dataclasses.make_dataclass("Chosen", [(TRACKER, parts)], frozen=True, kw_only=True)
    _, changed = apply_options(_Nothing, root(tracker=parts(**chosen)), rows, mistakes)
    return tuple(getattr(changed.tracker, name) for name in chosen)


@dataclasses.dataclass(frozen=True)
class _Nothing:
    """No options of a command."""

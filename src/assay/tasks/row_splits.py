"""Splits that rows come with: which of them train, and which are held out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from assay.core.canon import check_row_text
from assay.core.errors import ConfigError, DataError, UnknownNameError, a_kind
from assay.curate.rows import entries, parse_entry, read_rows, split_of
from assay.tasks.row_table import QUESTIONS, without_question

__all__ = ["TEST", "TEST_ROWS", "TRAIN", "Split", "number_rows_apart", "read_splits", "train_and_test"]

TRAIN = ("train", "training")
TEST = ("test", "validation", "valid", "val", "dev", "eval", "evaluation", "testing")
"""Names of splits, those that are taken first in front; a data set with more than one of `TEST` has the others left out."""

TEST_ROWS = "test rows: "
"""Stands before what an error says of a row that is held out."""

Split = Sequence[Mapping[str, Any]]


def train_and_test(splits: Mapping[str, Any], names: str | Sequence[str] | None = None) -> tuple[Split, Split]:
    """The rows to train on and those to hold out, of a ``DatasetDict`` of the library ``datasets`` or any such mapping.

    Official test items never become training rows: splits keep their meaning, and one whose name says nothing is asked for.

    Args:
        splits: name to rows, or to where they are.
        names: the split to train on, or that and the one to hold out; None: by the names, ``train`` and the first of ``test``,
            ``validation``, ``valid``, ``val``, ``dev`` and ``eval``. A data set with a single split needs no such name.

    Returns:
        Both; the second empty where no split is held out, so that a share of the first can be.

    Raises:
        ConfigError: no split, names that say nothing, or a split that is no sequence of rows, or no file of rows.
        DataError: a file that cannot be read; names the row.
        UnknownNameError: a name that there is not; says the nearest.

    >>> rows = {"train": [{"prompt": "a"}], "validation": [{"prompt": "b"}], "test": [{"prompt": "c"}]}
    >>> train_and_test(rows), train_and_test(rows, "validation")
    (([{'prompt': 'a'}], [{'prompt': 'c'}]), ([{'prompt': 'b'}], ()))
    """
    if not splits:
        raise ConfigError("the rows are a mapping without splits; give a list of rows, or a mapping such as {'train': rows}")
    chosen = _by_name(list(splits)) if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not 1 <= len(chosen) <= 2:
        raise ConfigError(f"split={chosen!r}; give the split to train on, or a pair: that, and the one to hold out")
    for name in chosen:
        if name not in splits:
            raise UnknownNameError("split", name, splits)
    train, *test = (_rows(name, _read_split(name, splits[name])) for name in chosen)
    return train, test[0] if test else ()


def _by_name(known: list[str]) -> tuple[str, ...]:
    low = {str(name).lower(): name for name in known}
    train = next((low[name] for name in TRAIN if name in low), None)
    test = next((low[name] for name in TEST if name in low), None)
    if train is None and len(known) == 1 and test is None:
        train = known[0]
    if train is None:
        raise ConfigError(
            f"the rows have the splits {', '.join(map(repr, known))}, and none says that it trains; name one, split="
            f"{known[0]!r}, or a pair: the one to train on and the one to hold out"
        )
    return (train,) if test is None else (train, test)


def _read_split(name: str, value: Any) -> Any:
    """The rows of a split that is given as a path."""
    if not isinstance(value, str | Path):
        return value
    try:
        found = read_splits(value)
    except ConfigError as error:
        raise ConfigError(f"split {name!r}: {error}") from None
    if isinstance(found, Mapping):
        raise ConfigError(f"split {name!r}: {value} holds splits of its own, {', '.join(sorted(found))}; name one file of them")
    return found


def _rows(name: str, value: Any) -> Split:
    if isinstance(value, str | bytes | Mapping) or not (hasattr(value, "__len__") and hasattr(value, "__iter__")):
        raise ConfigError(
            f"split {name!r} is {a_kind(cast(object, value))}, no list of rows; rows are dicts with 'prompt', in a list"
        )
    return cast("Split", value)


def read_splits(path: str | Path) -> Split | dict[str, Split]:
    """The rows of a file; of a folder or a data set on the hub by the splits that the names of its files say.

    Args:
        path: as `assay.curate.entries` takes it: JSON lines, CSV, Parquet, Arrow, a folder of them, or ``hub:OWNER/NAME:FILES``.

    Returns:
        The rows, or name to rows where the files are of splits.

    Raises:
        ConfigError: there is no such file, or some files of a folder are of splits and others are not.
        DataError: a file that cannot be read, or a line that is no row; names it.
    """
    files = entries(path)
    if files == [Path(path)]:
        return _read(files[0])
    found: dict[str, list[Mapping[str, Any]]] = {}
    for file in files:
        found.setdefault(split_of(file), []).extend(_read(file))
    if "" in found and len(found) > 1:
        odd = next(file.name for file in files if not split_of(file))
        raise ConfigError(
            f"{path}: {odd} says no split, and other files do ({', '.join(sorted(filter(None, found)))}); name the files"
        )
    return found[""] if "" in found else dict(found)


def _read(file: Path) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for number, entry in read_rows(file):
        place = f"{file}, row {number}"
        try:
            rows.append(parse_entry(entry))
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        check_row_text(rows[-1], place)
        if not {"prompt", "messages", *QUESTIONS} & set(rows[-1]):
            raise DataError(f"{place} {without_question(rows[-1])}")
    return rows


@contextmanager
def number_rows_apart(parts: Sequence[tuple[str, Split]], check: Callable[[Split], object]) -> Generator[None]:
    """Where rows are read that were put together from parts: an error names a row by its number in its own part.

    Rows are read once where none is wrong; else each part is checked by itself to find the row.

    Args:
        parts: as they were given, each with what the error shall say first.
        check: raises DataError of rows that are wrong.

    >>> def check(rows: Split) -> None:
    ...     if {} in rows:
    ...         raise DataError(f"row {rows.index({}) + 1} is empty")
    >>> train, test = [{"prompt": "a"}], [{"prompt": "b"}, {}]
    >>> with number_rows_apart([("", train), (TEST_ROWS, test)], check):
    ...     check([*train, *test])
    Traceback (most recent call last):
        ...
    assay.core.errors.DataError: test rows: row 2 is empty
    """
    try:
        yield
    except DataError:
        for place, rows in parts:
            try:
                if len(rows):
                    check(rows)
            except DataError as error:
                raise DataError(f"{place}{error}") from None
        raise

"""Rows as they are found: JSON lines, CSV, Parquet and Arrow, also of data sets on a hub, one at a time, each with its place."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

from assay.core.errors import ConfigError, DataError, MissingExtraError, a_kind
from assay.core.util.hub import PREFIX, HubName, fetch
from assay.core.util.jsonl import object_of
from assay.curate.text import normal

__all__ = ["Fields", "Row", "Source", "dump_line", "entries", "parse_entry", "read_rows", "row_id"]

OWN = "curate"
"""The field that holds what curation found out about a row."""

_LINES = (".jsonl", ".ndjson", ".json")
_TABLES = (".parquet", ".arrow")
_SHEETS = (".csv",)
_FORMS = (*_LINES, *_TABLES, *_SHEETS)
_SPLITS = ("train", "test", "valid", "dev")
_SPLIT_WORD = re.compile(r"(?:^|[^a-z])(train(?:ing)?|test(?:ing)?|valid(?:ation)?|val|dev|eval(?:uation)?)(?:[^a-z]|$)")
_SPLIT_WORDS = {
    "train": ("train", "training"),
    "test": ("test", "testing"),
    "validation": ("valid", "validation", "val"),
    "eval": ("eval", "evaluation"),
}
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_MARK = "\ufeff".encode()
"""Some editors begin a file with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Where a row holds its question and its gold; of several names the first that the row has.

    A question is text or a list of chat messages; of messages the system's are left out, since all rows share them. A name with
    dots goes into objects.

    Attributes:
        question: names of the question's field.
        gold: names of the gold answer's field.

    >>> Fields().question_of({"prompt": [{"role": "user", "content": "2+2?"}]})
    '2+2?'
    >>> Fields().gold_of({"reward_model": {"ground_truth": "4"}})
    '4'
    """

    question: tuple[str, ...] = ("prompt", "messages", "question", "problem")
    gold: tuple[str, ...] = ("answer", "gold", "reward_model.ground_truth", "final_answer")

    def question_of(self, row: Mapping[str, Any]) -> str:
        """The text of the question.

        Raises:
            DataError: there is none, or it is empty or of another type; names the field.
        """
        found = _first(row, self.question)
        if found is None:
            raise DataError(f"no question: none of {', '.join(self.question)} among its fields {sorted(row)}")
        name, value = found
        text = value if isinstance(value, str) else _messages_text(name, value)
        if not text.strip():
            raise DataError(f"{name!r} is empty")
        return text

    def gold_of(self, row: Mapping[str, Any]) -> Any:
        """The gold answer, or None where the row has none."""
        found = _first(row, self.gold)
        return None if found is None else found[1]


@dataclass(frozen=True, slots=True)
class Row:
    """A row with its place.

    Attributes:
        id: digest of its content.
        file: number of the file among the inputs.
        line: line of the file, or row of the table, from 1.
        data: its fields, as they were found.
        text: its question, normalised.
        gold: its gold answer, if it has one.
        question: its question as it was written.
    """

    id: str
    file: int
    line: int
    data: Mapping[str, Any]
    text: str
    gold: Any
    question: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A row as the work folder keeps it: what was read, byte for byte, behind what is known of it.

    Attributes:
        file, number, id: its place and digest.
        test: it belongs to the test split.
        own: which fields it has already: 1 an ``id``, 2 those of an earlier curation.
        raw: the JSON object, without a line's end.
    """

    file: int
    number: int
    id: str
    test: bool
    own: int
    raw: bytes

    @classmethod
    def of(cls, row: Row, entry: bytes | dict[str, Any], test: bool) -> Stored:
        """From what was read."""
        raw = entry.strip().removeprefix(_MARK) if isinstance(entry, bytes) else dump_line(entry)[:-1]
        return cls(row.file, row.line, row.id, test, 2 if OWN in row.data else int("id" in row.data), raw)

    @classmethod
    def read(cls, line: bytes) -> Stored:
        """From a line of the work folder."""
        file, number, id, test, own, raw = line.split(b" ", 5)
        return cls(int(file), int(number), id.decode(), test == b"1", int(own), raw)

    @property
    def line(self) -> bytes:
        """For the work folder."""
        return b"%d %d %s %d %d %s\n" % (self.file, self.number, self.id.encode(), self.test, self.own, self.raw)

    def output_line(self, scores: Mapping[str, Any]) -> bytes:
        """The output line of a row that is kept: its own fields as they were, then ``id`` and ``curate``."""
        added = dump_line({OWN: {"id": self.id, **scores}})[1:]
        if self.own == 2:
            row = {name: value for name, value in json.loads(self.raw).items() if name != OWN}
            raw, named = dump_line(row)[:-1], "id" in row
        else:
            raw, named = self.raw, bool(self.own)
        return raw[:-1].rstrip() + b", " + (b"" if named else b'"id": "%s", ' % self.id.encode()) + added


@dataclass(frozen=True, slots=True)
class Source:
    """A file of rows.

    Attributes:
        path: as it was named.
        bytes, digest: of its content: size, and hex blake2b.
    """

    path: str
    bytes: int
    digest: str

    @classmethod
    def of(cls, path: Path) -> Source:
        """Reads the file for its digest."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        return cls(str(path), path.stat().st_size, digest)


def entries(path: Path | str, one_split: bool = False) -> list[Path]:
    """The files that a name stands for: itself, or what a folder holds, by name.

    A folder may be a dataset of the ``datasets`` library saved to disk, with its splits or without, or hold files of rows of any
    form; what is hidden is left out. ``FOLDER:FILES`` are those of its files that match a pattern such as ``train*``.
    ``hub:OWNER/NAME``, ``hub:OWNER/NAME@REVISION`` and ``hub:OWNER/NAME:FILES`` are a data set on the hub.

    Args:
        path: the name.
        one_split: refuse files of several splits, by their names: what becomes training rows must not be the official test items.

    Raises:
        ConfigError: it does not exist, holds no rows, is of a form that is not read, or holds several splits.
        HubError: a name on the hub that neither the cache nor the hub gives.
    """
    hub = str(path).startswith(PREFIX)
    found = _on_hub(str(path).removeprefix(PREFIX)) if hub else _here(path)
    splits = {split: file for file in reversed(found) if (split := split_of(file))}
    if one_split and len(splits) > 1:
        shown = ", ".join(f"{name} ({splits[name].name})" for name in sorted(splits))
        whole = str(path).rpartition(":")[0] if str(path).count(":") > int(hub) else str(path)
        first = next(s for s in ("train", *sorted(splits)) if s in splits)
        raise ConfigError(
            f"{path} has several splits: {shown}; together, rows to evaluate on would be trained on: name the "
            f"files of one, such as {whole}:*{first}*"
        )
    return found


def split_of(file: Path) -> str:
    """The split that a file's name, or its folder's, says; empty where neither says one.

    >>> [split_of(Path(file)) for file in ("main/train-00000-of-00001.parquet", "validation/data.arrow", "a.jsonl")]
    ['train', 'validation', '']
    """
    for part in (file.name, file.parent.name):
        if found := _SPLIT_WORD.search(part.lower()):
            word = found[1]
            return next((name for name, words in _SPLIT_WORDS.items() if word in words), word)
    return ""


def _here(path: Path | str) -> list[Path]:
    """The files of a name that is not on a hub."""
    folder, colon, pattern = str(path).rpartition(":")
    if colon and Path(folder).is_dir() and not Path(path).exists():
        files = [p for p in _here(folder) if fnmatch(p.relative_to(folder).as_posix(), pattern)]
        if not files:
            raise ConfigError(f"{folder} holds no file of rows like {pattern}")
        return files
    place = Path(path)
    if not place.exists():
        raise ConfigError(
            f"{place} does not exist; give a .jsonl, .jsonl.gz, .csv or .parquet file, a folder of them, or hub:OWNER/NAME"
        )
    if not place.is_dir():
        if not _form(place):
            raise ConfigError(f"{place}: rows are read from {', '.join(_FORMS)}, and from .gz of the first three")
        return [place]
    splits = place / "dataset_dict.json"
    if splits.is_file():
        names = json.loads(splits.read_text(encoding="utf-8")).get("splits", [])
        return [path for name in names for path in _here(place / str(name))]
    state = place / "state.json"
    if state.is_file():  # in the order that the library wrote them, which need not be by name
        named = json.loads(state.read_text(encoding="utf-8")).get("_data_files", [])
        return [place / str(entry["filename"]) for entry in named]
    inside = (p for p in place.rglob("*") if not any(part.startswith(".") for part in p.relative_to(place).parts))
    found = sorted(p for p in inside if p.is_file() and _form(p))
    if not found:
        raise ConfigError(f"{place} holds no file of rows ({', '.join(_FORMS)}); name the files")
    return found


def _on_hub(text: str) -> list[Path]:
    """The files of a data set on the hub; without a pattern only where there is no choice between configurations or splits."""
    repo, colon, pattern = text.partition(":")
    name = HubName.read(repo)
    if name is None:
        raise ConfigError(f"{PREFIX}{text} is no name on the hub; write {PREFIX}OWNER/NAME, {PREFIX}OWNER/NAME@REVISION:FILES")
    wanted = (pattern,) if colon else tuple(f"*{form}" for form in (*_FORMS, ".jsonl.gz"))

    def chosen_files(folder: Path) -> list[Path]:
        files = sorted(p for p in folder.rglob("*") if p.is_file() and _form(p) and p.name != "dataset_infos.json")
        return [p for p in files if any(fnmatch(p.relative_to(folder).as_posix(), w) for w in wanted)]

    snapshot = fetch(name, "dataset", wanted, lambda folder: "" if chosen_files(folder) else f"no file of rows like {wanted[0]}")
    files = chosen_files(snapshot.folder)
    shown = [p.relative_to(snapshot.folder).as_posix() for p in files]
    splits = {word for word in _SPLITS for file in shown if word in file.lower()}
    if not colon and (len({p.parent for p in files}) > 1 or len(splits) > 1):
        listed = ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
        raise ConfigError(f"{PREFIX}{text} has several parts: {listed}; say which, as {PREFIX}{repo}:{shown[0]}")
    return files


def read_rows(path: Path) -> Iterator[tuple[int, bytes | dict[str, Any]]]:
    """The rows of a file with their numbers from 1: lines that are not blank, or rows of a table; in CSV all values are text.

    Raises:
        DataError: a file that cannot be read on, as a compressed one that was cut off.
        MissingExtraError: Parquet or Arrow without pyarrow.
    """
    form = _form(path)
    if form in _TABLES:
        yield from enumerate(_table_rows(path, form), 1)
        return
    if form in _SHEETS:
        yield from enumerate(_sheet_rows(path), 1)
        return
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(cast("Iterator[bytes]", file), 1):
                if line.strip():
                    yield number, line
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be decompressed: {error}; fetch it again") from None


def parse_entry(entry: bytes | dict[str, Any]) -> dict[str, Any]:
    """The fields of what `read_rows` gave.

    Raises:
        DataError: no JSON object, a field that is not JSON, or one that stands twice.
    """
    if isinstance(entry, dict):
        try:
            return json.loads(_SORTED.encode(entry))
        except (TypeError, ValueError) as error:
            raise DataError(f"a field that is not JSON: {error}") from None
    return object_of(entry, finite=True)


def dump_line(value: Any) -> bytes:
    """A line of JSON, its keys in the order given; halves of characters escaped, for UTF-8 has none."""
    try:
        return _PLAIN.encode(value).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False).encode() + b"\n"


def row_id(row: Mapping[str, Any]) -> str:
    """The digest of a row's content: hex blake2b of its canonical JSON, without what an earlier curation added.

    >>> row_id({"prompt": "2+2?", "answer": "4"})
    '6944b20433eaacef15c890ce51837404'
    """
    own: Any = row.get(OWN)
    if isinstance(own, dict):
        added = {OWN, "id"} if cast("dict[str, Any]", own).get("id") == row.get("id") else {OWN}
        row = {name: value for name, value in row.items() if name not in added}
    return hashlib.blake2b(_SORTED.encode(row).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def row_of(data: Mapping[str, Any], fields: Fields, file: int, line: int, id: str | None = None) -> Row:
    """A row with everything that steps read.

    Raises:
        DataError: it has no question.
    """
    own: Any = data.get(OWN, {"id": ""})
    if not isinstance(own, dict) or "id" not in own:
        raise DataError(f"{OWN!r} is a field that curation writes; rename it")
    question = fields.question_of(data)
    return Row(id or row_id(data), file, line, data, normal(question), fields.gold_of(data), question)


def _first(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, Any] | None:
    for name in names:
        value: Any = row
        for part in name.split("."):
            value = cast("Any", value).get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return name, value
    return None


def _messages_text(name: str, value: Any) -> str:
    """What the messages of a conversation say, but for the system's."""
    if not isinstance(value, list):
        raise DataError(f"{name!r} is {a_kind(value)}; give text or a list of messages")
    said: list[str] = []
    for message in cast("list[Any]", value):
        content: Any = cast("Any", message).get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, str):
            raise DataError(f'{name!r} holds {message!r:.80}; give messages {{"role": ..., "content": text}}')
        if cast("Mapping[str, Any]", message).get("role") not in ("system", "developer", "assistant"):
            said.append(content)
    return "\n".join(said)


def _form(path: Path) -> str:
    """The ending that says how a file is read; empty where none does."""
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    return suffix if suffix in _LINES or (suffix in _FORMS and path.suffix != ".gz") else ""


def _sheet_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                if None in row or None in row.values():
                    raise DataError(f"{path}, line {reader.line_num}: it has not as many fields as the first line; mend it")
                yield row
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as CSV in UTF-8: {error}; save it again as such") from None


def _table_rows(path: Path, form: str) -> Iterator[dict[str, Any]]:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        if form == ".parquet":
            batches: Any = importlib.import_module("pyarrow.parquet").ParquetFile(path).iter_batches(1024)
        else:
            importlib.import_module("pyarrow.ipc")
            batches = _record_batches(arrow, path)
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read as {form[1:]}: {error}") from None
    for batch in batches:
        for start in range(0, batch.num_rows, 1024):
            yield from batch.slice(start, 1024).to_pylist()


def _record_batches(arrow: Any, path: Path) -> Any:
    """Of an Arrow file in either of its two forms."""
    try:
        return arrow.ipc.open_stream(arrow.memory_map(str(path)))
    except arrow.ArrowInvalid:
        reader = arrow.ipc.open_file(arrow.memory_map(str(path)))
        return (reader.get_batch(i) for i in range(reader.num_record_batches))

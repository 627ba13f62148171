"""Writing that survives a kill at any moment.

A file or folder appears under its final name only when all its bytes are on the disk: write beside, fsync, rename, fsync the
parent. ``on_write`` is told the name of each point between two such operations; tests kill the process there.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.core.canon import plain
from assay.core.errors import AssayError, CheckpointError, DataError, StorageError

__all__ = ["fresh_folder", "storage_errors", "read_json", "remove", "sync_file", "write_bytes", "write_json", "write_text"]

_NO_PLACE = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP, errno.EROFS)
"""Of paths that no space and no permission makes usable."""

on_write: Callable[[str], None] = lambda point: None  # noqa: E731


@contextmanager
def storage_errors(path: Path) -> Generator[None]:
    """Turns what the file system refuses inside the block into a `StorageError` that names ``path``."""
    try:
        yield
    except AssayError:
        raise
    except OSError as error:
        if error.errno in _NO_PLACE:
            raise StorageError(f"cannot write {path}: {error.strerror}; name another place") from error
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free some space or fix the permissions, then go on: "
            "what had been saved is intact"
        ) from error


def sync_file(path: Path) -> None:
    """Forces a file's or folder's bytes to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Replaces ``path`` by ``text``, whole or not at all.

    Raises:
        StorageError: the disk is full or the folder not writable; the old file is intact.
        DataError: half of a surrogate pair in the text, which no file can hold; likewise.
    """
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path.name} cannot be written: {text[max(0, error.start - 30) : error.end]!a} ends with half of a surrogate pair, "
            "which is no character; mend the setting or the row that holds it"
        ) from None
    write_bytes(path, data)


def write_bytes(path: Path, data: bytes | bytearray) -> None:
    """`write_text` of bytes."""
    beside = path.with_name(f".{path.name}.tmp")
    with storage_errors(path):
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                on_write(f"write:{path.name}")
                os.fsync(file.fileno())
            on_write(f"rename:{path.name}")
            beside.replace(path)
            sync_file(path.parent)
            on_write(f"done:{path.name}")
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def remove(path: Path) -> None:
    """Removes a file, if it is there, for good.

    Raises:
        StorageError: the folder is not writable.
    """
    with storage_errors(path):
        path.unlink(missing_ok=True)
        sync_file(path.parent)
        on_write(f"removed:{path.name}")


def write_json(path: Path, value: Any) -> None:
    """`write_text` of pretty JSON with sorted keys."""
    write_text(path, json.dumps(plain(value), indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """A JSON file's value.

    Raises:
        CheckpointError: missing or not JSON; names the file.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: {path.parent} is not complete") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}; remove it or restore the folder from a copy") from None


@contextmanager
def fresh_folder(path: Path) -> Generator[Path]:
    """A folder to fill that takes the name ``path`` only when the block ends without error and all is on the disk.

    Raises:
        StorageError: the disk is full or not writable; nothing is left behind.
    """
    beside = path.with_name(f".{path.name}.tmp")
    with storage_errors(path):
        shutil.rmtree(beside, ignore_errors=True)  # of a process that was killed here
        beside.mkdir(parents=True)
        try:
            yield beside
            on_write(f"filled:{path.name}")
            for entry in sorted(beside.rglob("*")):
                sync_file(entry)
            sync_file(beside)
            on_write(f"synced:{path.name}")
            if path.exists():  # a run that was killed and went on writes the same step again
                shutil.rmtree(path)
                on_write(f"removed:{path.name}")
            beside.replace(path)
            sync_file(path.parent)
            on_write(f"renamed:{path.name}")
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise

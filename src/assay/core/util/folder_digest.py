"""Folders of weights whose files are known by their digests, so that a flipped byte is found before anything reads it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from assay.core.errors import CheckpointError

__all__ = ["SEAL", "check_seal", "seal_folder"]

SEAL = "digests.json"
"""File name to digest, of every other file in the folder."""

_PIECE = 1 << 22


def seal_folder(folder: Path) -> None:
    """Writes the digests of a folder's files into it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = (Path(place) / "a").write_text("1")
    ...     seal_folder(Path(place))
    ...     sorted(json.loads((Path(place) / SEAL).read_text()))
    ['a']
    """
    found = {path.relative_to(folder).as_posix(): _digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    found.pop(SEAL, None)
    (folder / SEAL).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def check_seal(folder: Path) -> None:
    """Compares a folder's files with their digests; one without digests passes.

    Raises:
        CheckpointError: a file is missing or differs; names it.
    """
    try:
        known: dict[str, str] = json.loads((folder / SEAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except ValueError as error:
        raise CheckpointError(f"{folder / SEAL} is damaged: {error}; restore the folder from a copy") from None
    for name, digest in known.items():
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{path} is missing; restore the folder from a copy")
        if _digest(path) != digest:
            raise CheckpointError(
                f"{path} is not what was written: its bytes have changed since (damaged, or edited). Restore it from a copy; if "
                f"the change is yours, remove {folder / SEAL}"
            )


def _digest(path: Path) -> str:
    found = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()

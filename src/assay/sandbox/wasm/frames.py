"""How the caller and a worker talk: a table as JSON and blobs behind it, each with its length."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import IO, Any

__all__ = ["put", "take"]


def put(file: IO[bytes], table: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> None:
    """Writes one frame."""
    head = json.dumps({**table, "sizes": [len(b) for b in blobs]}).encode()
    file.write(b"".join((len(head).to_bytes(8, "little"), head, *blobs)))
    file.flush()


def take(file: IO[bytes]) -> tuple[dict[str, Any], list[bytes]] | None:
    """Reads one frame; None where the other side has ended, be it in the middle of one.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> put(file, {"order": "run"}, [b"code"])
    >>> _ = file.seek(0)
    >>> take(file)[1], take(file)
    ([b'code'], None)
    """
    size = int.from_bytes(_exactly(file, 8), "little")
    head = _exactly(file, size)
    if not size or len(head) < size:
        return None
    table: dict[str, Any] = json.loads(head)
    blobs = [_exactly(file, length) for length in table["sizes"]]
    return (table, blobs) if [len(b) for b in blobs] == table["sizes"] else None


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    return data if len(data) == size else b""

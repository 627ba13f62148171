"""Pictures in conversations: messages name them by digest, and whoever needs their pixels asks a port for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError

__all__ = ["PLACEHOLDER", "Album", "Media", "Pictures", "check_media_seen", "media_of", "prefix_key"]

PLACEHOLDER = "<image>"
"""Where a picture stands in the text of a message."""

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Media:
    """What a message shows besides text, by name.

    Attributes:
        kind: ``image``.
        digest: of the decoded pixels and their shape: files of other formats that decode to the same are the same picture.
        size: height, width and channels.

    Raises:
        DataError: another kind, or a size that is none.
    """

    kind: str
    digest: str
    size: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.kind != "image" or not self.digest:
            raise DataError(f"Media(kind={self.kind!r}, digest={self.digest!r}): give kind 'image' and the digest of its pixels")
        if len(self.size) != 3 or min(self.size) < 1:
            raise DataError(f"Media.size={self.size}; give height, width and channels")


def media_of(pixels: Pixels) -> Media:
    """The name of a picture.

    Args:
        pixels: ``[height, width, channels]`` uint8, decoded.

    Raises:
        DataError: another shape or type.

    >>> media_of(np.zeros((2, 3, 3), np.uint8)).size
    (2, 3, 3)
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3:
        raise DataError(f"a picture is an array [height, width, channels] of uint8, not {pixels.dtype}{list(pixels.shape)}")
    made = blake2b(repr(pixels.shape).encode(), digest_size=16)
    made.update(np.ascontiguousarray(pixels).tobytes())
    return Media("image", made.hexdigest(), tuple(int(n) for n in pixels.shape))


class Pictures(Protocol):
    """Gives pixels by digest: what engines and learners that see look up, and families that show pictures offer."""

    def pixels(self, digest: str) -> Pixels:
        """``[height, width, channels]`` uint8.

        Raises:
            DataError: no such picture.
        """
        ...


@dataclass(slots=True)
class Album:
    """Pictures in memory; implements `Pictures`.

    >>> album = Album()
    >>> shown = album.add(np.zeros((2, 3, 3), np.uint8))
    >>> album.pixels(shown.digest).shape
    (2, 3, 3)
    """

    _kept: dict[str, Pixels] = field(default_factory=dict[str, Pixels])

    def add(self, pixels: Pixels) -> Media:
        """Keeps a picture, and gives its name; raises as `media_of`."""
        media = media_of(pixels)
        kept = np.array(pixels)
        kept.setflags(write=False)
        self._kept[media.digest] = kept
        return media

    def pixels(self, digest: str) -> Pixels:
        """The picture, read-only.

        Raises:
            DataError: there is none of this digest.
        """
        if digest not in self._kept:
            raise DataError(f"there is no picture {digest} among {len(self._kept)}: whoever shows one has to keep it")
        return self._kept[digest]


def check_media_seen(media: Iterable[Media], seen: Iterable[str], subject: str, engine: str) -> None:
    """Looks whether an engine sees what a prompt shows.

    Args:
        media: pictures of the prompt.
        seen: kinds that the engine sees (`assay.core.EngineInfo.media`).
        subject, engine: what shows them, and who is to see them, for the error.

    Raises:
        ConfigError: it does not; with fixes.
    """
    shown = tuple(media)
    if shown and (unseen := {m.kind for m in shown} - set(seen)):
        raise ConfigError(
            f"{subject} shows {len(shown)} pictures ({sorted(unseen)}), and {engine} reads text alone: use one that sees them, a "
            "task without, or Run.pictures='placeholder' (--pictures placeholder) to have their placeholders read"
        )


def prefix_key(ids: NDArray[Any], media: Iterable[Media]) -> bytes:
    """What two prompts have in common if and only if a model reads the same in them: their tokens, and their pictures in order.

    >>> ids = np.array([1, 2], np.int32)
    >>> prefix_key(ids, ()) == ids.tobytes()
    True
    """
    shown = "|".join(f"{m.kind}:{m.digest}" for m in media)
    return ids.tobytes() + (b"\0media\0" + shown.encode() if shown else b"")

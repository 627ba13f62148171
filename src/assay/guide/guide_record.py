"""What is known of a part that decides what a step practises, or what it learns from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import Any, Literal, cast

__all__ = ["PLACES", "Guide"]

Kind = Literal[
    "curriculum", "row curriculum", "index policy", "guidance", "screen", "filter", "refill", "replay", "schedule", "composer"
]

PLACES: Mapping[str, str] = {
    "curriculum": "curriculum",
    "row curriculum": "curriculum",
    "index policy": "index",
    "guidance": "guidance",
    "screen": "screen",
    "filter": "filter",
    "refill": "refill",
    "replay": "replay",
    "schedule": "schedules.temperature",
    "composer": "composer",
}
"""Field of `assay.train.Reinforce` where a part of a kind stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A named part that decides what a step practises, or what it learns from.

    Attributes:
        name: of its class in `assay.guide`.
        kind: what it decides.
        source: where it was published; empty for assay's own.
        observes: what it goes by.
        needs: what a run needs for it besides; empty for nothing.
        status: ``published``; ``unsure`` where a part of the source was not found and the docstring says which; ``own``.
        example: settings without which it cannot be made.
    """

    name: str
    kind: Kind
    source: str
    observes: str
    needs: str = ""
    status: Literal["published", "unsure", "own"] = "published"
    example: str = ""

    @property
    def part(self) -> type[Any]:
        """The class."""
        return cast("type[Any]", getattr(import_module("assay.guide"), self.name))

    @property
    def doc(self) -> str:
        """Its docstring."""
        return inspect.cleandoc(self.part.__doc__ or "")

    @property
    def sentence(self) -> str:
        """The first sentence of its docstring, on one line."""
        return " ".join(self.doc.partition("\n\n")[0].split())

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings with their defaults; those without a default have None."""
        out: dict[str, Any] = {}
        for f in fields(self.part):
            out[f.name] = (
                f.default if f.default is not MISSING else f.default_factory() if f.default_factory is not MISSING else None
            )
        return out

    @property
    def command(self) -> str:
        """The options that train with it."""
        place = f"--stages.0.{PLACES[self.kind]}"
        return " ".join(filter(None, ("assay train quickstart", f"{place}.kind {self.name}", self.example.replace("@", place))))

"""``assay guides``: curricula, guidance, filters, schedules: what each goes by, its source, how to train with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.cli.listing_cache import kept_rows
from assay.cli.options import parse
from assay.cli.output import grid, lines, show, strip_marks
from assay.cli.text_wrap import columns, fill
from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.guide.guide_record import Guide

__all__ = ["guides_command"]

_HELP = {
    "list": "all of them, or those of a --kind; --json",
    "show NAME": "one: what it does, its settings, the command that trains with it; --json",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideListOptions:
    """Lists what can decide which tasks a step practises and what it learns from.

    Attributes:
        kind: only those of a kind, as it stands in the list.
        json: print JSON.
    """

    kind: str | None = field(default=None, metadata={"arg": {"metavar": "KIND"}})
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideShowOptions:
    """Shows one part.

    Attributes:
        name: of the part.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    json: bool = False


def guides_command(args: list[str]) -> int:
    """``assay guides list | show NAME``."""
    if not args or args[0] in ("-h", "--help"):
        print("usage: assay guides list | show NAME\n")
        print(fill("What decides which tasks a step practises, how they are posed, and what is learned from."), end="\n\n")
        print(columns(_HELP))
        return 0
    word, rest = args[0], args[1:]
    if word == "list":
        return _list(parse(GuideListOptions, rest, "assay guides list"))
    if word == "show":
        return _show(parse(GuideShowOptions, rest, "assay guides show"))
    raise ConfigError(f"assay guides {word}: use 'list' or 'show NAME'")


def _list(own: GuideListOptions) -> int:
    rows = [row for row in kept_rows("guides", _rows) if own.kind in (None, row["kind"])]
    if not rows:
        kinds = sorted({row["kind"] for row in kept_rows("guides", _rows)})
        raise ConfigError(f"--kind {own.kind!r}: there are {', '.join(kinds)}")

    def text() -> None:
        grid(
            ("name", "kind", "what it does", "observes"),
            [[r["name"], r["kind"], strip_marks(r["sentence"]), r["observes"]] for r in rows],
        )
        print("assay guides show NAME: source, status, settings and the command that trains with it")

    return show(own.json, rows, text)


def _rows() -> list[dict[str, Any]]:
    from assay.guide.catalog import guides

    return [_row(guide) for guide in guides().values()]


def _row(guide: Guide) -> dict[str, Any]:
    return {
        "name": guide.name,
        "kind": guide.kind,
        "sentence": guide.sentence,
        "source": guide.source,
        "observes": guide.observes,
        "needs": guide.needs,
        "status": guide.status,
        "command": guide.command,
    }


def _show(own: GuideShowOptions) -> int:
    from assay.guide.catalog import guide_named

    guide = guide_named(own.name)
    settings = {
        name: value if isinstance(value, (bool, int, float, str)) else repr(value) for name, value in guide.settings.items()
    }
    value = {**_row(guide), "settings": settings, "doc": guide.doc}

    def text() -> None:
        print(strip_marks(guide.doc), end="\n\n")
        lines(
            {
                "kind": guide.kind,
                "source": guide.source or "assay's own",
                "observes": guide.observes,
                "needs": guide.needs or "–",
                "status": guide.status,
                "settings": ", ".join(f"{name}={value!r}" for name, value in guide.settings.items()) or "none",
                "in a run": guide.command,
            }
        )

    return show(own.json, value, text)

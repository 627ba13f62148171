"""``assay recipes``: complete runs by name."""

from __future__ import annotations

from dataclasses import dataclass

from assay.cli.options import parse
from assay.cli.output import lines, show, strip_marks
from assay.cli.recipe import find
from assay.cli.user_objects import first_line

__all__ = ["recipes_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipesOptions:
    """Lists the recipes: complete runs by name.

    Attributes:
        json: print JSON.
    """

    json: bool = False


def recipes_command(args: list[str]) -> int:
    """``assay recipes``; ``list``, as other commands have it, lists too."""
    from assay.recipes import RECIPES

    own = parse(RecipesOptions, args[args[:1] == ["list"] :], "assay recipes")
    rows = [{"name": name, "function": where, "summary": first_line(find(name))} for name, where in RECIPES.items()]
    return show(own.json, rows, lambda: lines({r["name"]: strip_marks(r["summary"]) for r in rows}))

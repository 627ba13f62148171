"""Help of a command that takes a recipe, where none is named."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from assay.cli.options import option_rows
from assay.cli.output import strip_marks
from assay.cli.recipe import find
from assay.cli.text_wrap import columns, fill
from assay.cli.user_objects import first_line
from assay.core.errors import ConfigError

__all__ = ["asks_usage", "usage"]


def asks_usage(args: Sequence[str]) -> bool:
    """Whether there is no recipe, neither as a word nor in a file of settings."""
    return (
        not args
        or args[0] in ("-h", "--help")
        or (args[0].startswith("-") and not any(a.split("=")[0] == "--config" for a in args))
    )


def usage(command: str, options: type[Any], args: Sequence[str]) -> int:
    """Help of a command that takes a recipe first, whose fields are options too; ``options`` are the command's own."""
    from assay.recipes import RECIPES

    if args and args[0] not in ("-h", "--help"):
        raise ConfigError(f"give the recipe first: assay {command} RECIPE {' '.join(args)}")
    own = {
        "my_file.py:my_recipe": "a function that returns an assay Run; also my_package.module:my_recipe",
        "rows.jsonl": "your rows, with --model MODEL and --reward my_file.py:my_reward; settings fit the model and the machine",
        "my_run.toml": "settings as 'assay explain RECIPE --toml' prints them",
    }
    parts = (
        f"usage: assay {command} RECIPE [OPTIONS]",
        fill(inspect.cleandoc(options.__doc__ or "").split("\n")[0]),
        f"recipes:\n{columns({name: strip_marks(first_line(find(name))) for name in RECIPES})}",
        f"your own:\n{columns(own)}",
        f"options:\n{columns(option_rows(options))}",
        fill(
            f"Every field of a recipe is an option too; 'assay {command} RECIPE --help' shows the important ones with their "
            "values, --help-all every one, --help WORD those about a word. For example:"
        )
        + f"\n  assay {command} quickstart --objective gspo --lr 1e-4"
        + f"\n  assay {command} quickstart --config what_differs.toml"
        + f"\n  assay {command} quickstart --stages.0.epochs 2",
    )
    print("\n\n".join(parts))
    return 0 if args else 2

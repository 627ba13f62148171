"""Help of a command that takes a recipe: the important options with their values in this recipe on one screen, or a search."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from assay.cli.aliases import ALIASES, OWN_ALIASES, Alias, shown_value
from assay.cli.leaf_options import flag_of
from assay.cli.option_values import value_name
from assay.cli.options import helps_of, option_rows
from assay.cli.part_help import part_rows
from assay.cli.part_tree import Node, take
from assay.cli.peer_hints import hint_of
from assay.cli.text_wrap import columns, fill, table_rows
from assay.recipes.setting_names import peer_names

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["find_options", "short_help"]

_LEFT_OUT = ("steps", "allow-inexact")
"""Options of the command that the screen has no line for: one stands above, the other is named where it is needed."""

_WIDEST = 10
"""Most characters of a value that stands there now."""


def short_help(options: type[Any], run: Run, prog: str, description: str) -> str:
    """The options that are changed most, with what stands there now.

    Args:
        options: the command's own, a dataclass.
        run: of the recipe.
        prog: the command with its recipe.
        description: one line.
    """
    groups = [f"usage: {prog} [OPTIONS]", fill(description)]
    for heading, aliases in ALIASES.items():
        groups.append(f"{heading}:\n{table_rows([_alias_row(run, a) for a in aliases if a.important])}")
        if heading == "method":
            groups[-1] += f"\n{_objective(run)}"
    aliases_of = {name: other.replace("_", "-") for other, name in reversed(OWN_ALIASES.items())}
    own = {
        flag: _first(text) + (f" (--{aliases_of[name]})" if (name := _name(flag)) in aliases_of else "")
        for flag, text in option_rows(options).items()
        if _name(flag) not in _LEFT_OUT
    }
    own = {"--config FILE [...]": "TOML files of settings; the command line wins", **own}
    groups.append(f"command:\n{table_rows([(flag, '', text) for flag, text in own.items()])}")
    groups.append(
        fill(
            f"Every field is an option: '{prog} --help-all' lists them, '{prog} --help WORD' those about a word, 'assay methods' "
            "the methods."
        )
    )
    return "\n\n".join(groups)


def find_options(options: type[Any], run: Run, prog: str, word: str) -> str:
    """The options whose name or help has a word in it, else what sets the same where another library's name has it."""
    wanted = word.lower().lstrip("-").replace("-", "_")
    rows: dict[str, str] = {}
    for flag, text in option_rows(options).items():
        if wanted in flag.lower().replace("-", "_") or wanted in text.lower():
            rows[flag] = text
    for aliases in ALIASES.values():
        for alias in aliases:
            names = ", ".join(f"--{name}" for name in alias.names)
            if wanted in names.replace("-", "_") or wanted in alias.says.lower():
                rows[f"{names} {alias.metavar}".rstrip()] = f"{alias.says} (now {shown_value(run, alias) or 'see --help'})"
    tree = cast(Node, take(run))
    rows |= part_rows(tree, wanted)
    _search(tree, "", wanted, rows)
    rows = rows or _peer_rows(tree, re.sub(r"[ _]", "-", wanted))
    if not rows:
        return f"no option of {prog} is about {word!r}; --help-all lists all"
    return f"options about {word!r}:\n{columns(rows)}"


def _peer_rows(root: Node, word: str) -> dict[str, str]:
    """What a word is that only names of other libraries have: the options that set the same, with these names."""
    names: dict[str, list[str]] = {}
    for name in peer_names():
        if re.search(rf"\b{re.escape(word)}", name):
            names.setdefault(hint_of(name, (), root) or "", []).append(name)
    return {", ".join(known): f"of another library; in assay {here}" for here, known in names.items()}


def _search(node: Node, above: str, word: str, rows: dict[str, str]) -> None:
    texts = helps_of(node.kind)
    for name, child in node.fields.items():
        if isinstance(child, Node):
            _search(child, f"{above}{name}.", word, rows)
        elif (flag := flag_of(child, node.declared_at(name))) is not None:
            text = texts.get(name, "")
            if word in name.lower() or re.search(rf"\b{re.escape(word)}", text.lower()):
                rows[f"--{above}{name}".replace("_", "-") + f" {value_name(flag)}"] = f"{text} (now {flag.shown})"


def _name(flag: str) -> str:
    return flag.partition(" ")[0].removeprefix("--")


def _objective(run: Run) -> str:
    """The objective of the stage of RL that is trained last, as a composition, with the method's name where it is one at its
    default settings.
    """
    from assay.objective.methods import methods
    from assay.objective.methods.registry import composition

    now = next((s for s in reversed(run.stages) if s.samples), run.stages[-1]).objective
    name = next((m.name for m in methods().values() if m.objective() == now), "")
    return columns({"now": f"{name}: {composition(now)}" if name else composition(now)})


def _alias_row(run: Run, alias: Alias) -> tuple[str, str, str]:
    name, *others = alias.names
    also = f" (--{others[0]})" if others else ""
    value = str(run.stages[-1].steps) if "steps" in alias.names else shown_value(run, alias)
    long = len(value) > _WIDEST
    return f"--{name} {alias.metavar}".rstrip(), "" if long else value, alias.says + also + (f"; now {value}" if long else "")


def _first(text: str) -> str:
    """The first clause of a help text."""
    clause = re.split(r"[;:.] |[;.]$", text)[0]
    return clause if clause.count("(") == clause.count(")") else clause.rpartition(" (")[0]

"""What a Verilog text says before any tool reads it: its modules, and what a design has no need of."""

from __future__ import annotations

import re

from assay.core.errors import DataError

__all__ = ["bare", "has_directives", "illegal_in", "names_module", "top_of"]

_HIDDEN = re.compile(r'//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|\\[^ \t\b\f\r\n]+', re.DOTALL)
_MODULE = re.compile(r"\b(?:macro)?module\s+(?:automatic\s+|static\s+)?([A-Za-z_][\w$]*)")
_INSTANCE = (
    r"(?!(?:or|and|if|begin|else|case[xz]?|for|while|repeat|posedge|negedge|inside|iff)\b)[A-Za-z_][\w$]*\s*(?:\[[^\];]*\]\s*)?\("
)
"""The name of an instance, and where its ports begin."""
_SYSTEM = re.compile(r"(?<![\w$])\$[A-Za-z_$][\w$]*")
_DIRECTIVE = re.compile(r"`\s*(\w*)")
_WORD = re.compile(r"(?<![\w$.'])(?:force|release|bind|config|library|program)(?![\w$])|\b(?:import|export)\s*\"")
_FUNCTIONS = frozenset(
    (
        "$signed",
        "$unsigned",
        "$clog2",
        "$bits",
        "$size",
        "$left",
        "$right",
        "$high",
        "$low",
        "$increment",
        "$dimensions",
        "$unpacked_dimensions",
        "$countones",
        "$onehot",
        "$onehot0",
        "$isunknown",
    )
)
"""System functions of values alone: no time, no chance, no files, no words."""
_REFUSED = frozenset({"include", "line", "pragma", "uselib", "protect", "protected"})


def bare(source: str) -> str:
    r"""A source without its comments; strings and escaped names are emptied, so that nothing in them looks like code.

    >>> bare('a /* $x */ = "$y"; // $z')
    'a   = ""; '
    """
    return _HIDDEN.sub(_empty_text, source)


def _empty_text(found: re.Match[str]) -> str:
    return {"/": " ", '"': '""', "\\": "_"}[found.group()[0]] if not found.group().startswith("//") else ""


def has_directives(source: str) -> bool:
    """Whether a source must be preprocessed before it is read.

    >>> has_directives("`define W 8"), has_directives("// `define")
    (True, False)
    """
    return "`" in bare(source)


def illegal_in(source: str) -> str:
    """What a source has that no design needs and that could reach out of it; empty where there is nothing of it.

    System tasks and functions, but for those of values alone; ``force`` and its like; ``include`` and directives that change
    what a message says of its place. Names in comments, strings and escaped names are none.

    >>> illegal_in("initial $finish;"), illegal_in("assign y = $signed(a) >>> 1; // $finish")
    ('$finish', '')
    """
    code = bare(source)
    for found in _SYSTEM.finditer(code):
        if found.group() not in _FUNCTIONS:
            return found.group()
    for found in _DIRECTIVE.finditer(code):
        if found.group(1) in _REFUSED:
            return f"`{found.group(1)}"
    word = _WORD.search(code)
    return " ".join(word.group().split()) if word else ""


def names_module(source: str, name: str) -> bool:
    """Whether a source has a word that is the name of a module, as itself or escaped.

    >>> names_module("module adder(input a);", "add"), names_module("module add(input a);", "add")
    (False, True)
    """
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", source) is not None


def top_of(source: str, named: str = "") -> str:
    """The name of the outermost module: the one given, or the only one that no other makes use of.

    Raises:
        DataError: there is none, or more than one.

    >>> top_of("module a; b u(); endmodule module b; endmodule")
    'a'
    """
    code = bare(source)
    modules = list(dict.fromkeys(_MODULE.findall(code)))
    if named:
        if named not in modules:
            raise DataError(f"the golden design has no module {named!r}; it has {modules}")
        return named
    rest = _MODULE.sub(" ", code)
    used = {m for m in modules if re.search(rf"(?<![\w$.`']){re.escape(m)}(?![\w$])\s*(?:#\s*[\w(]|{_INSTANCE})", rest)}
    tops = [m for m in modules if m not in used]
    if len(tops) != 1:
        said = f"has modules {modules}, and it is not plain which is outermost" if modules else "has no module"
        raise DataError(f"the golden design {said}; give 'golden': source and 'top': name")
    return tops[0]

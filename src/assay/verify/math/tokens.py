r"""Cuts the writing of an answer, when it is cleaned (`clean`), into tokens.

A token is a string: a number (``12``, ``1.5e3``), a letter, a command (``\\frac``), a sign, ``@word`` for a word that is not a
product of letters, and ``unit:cm`` for a unit behind a number.
"""

from __future__ import annotations

import re

from assay.verify.math.poly import Undecidable
from assay.verify.math.units import unit_of

__all__ = ["LONGEST", "tokens"]

LONGEST = 2000
"""Characters of an answer that are read as mathematics."""

_MOST = 600

_SAME = {
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\cfrac": r"\frac",
    r"\leq": r"\le",
    r"\geq": r"\ge",
    r"\leqslant": r"\le",
    r"\geqslant": r"\ge",
    r"\neq": r"\ne",
    r"\lt": "<",
    r"\gt": ">",
    r"\{": r"\lbrace",
    r"\}": r"\rbrace",
    r"\dbinom": r"\binom",
    r"\tbinom": r"\binom",
    r"\varnothing": r"\emptyset",
    r"\degree": r"\circ",
    r"\%": "%",
    r"\colon": ":",
    r"\vert": "|",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\times": "*",
    r"\cdot": "*",
    r"\ast": "*",
    r"\div": "/",
    r"\union": r"\cup",
    r"\mid": "|",
    r"\lparen": "(",
    r"\rparen": ")",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\dots": r"\ldots",
    r"\cdots": r"\ldots",
    r"\bar": r"\overline",
    r"\dot": r"\overline",
    r"\mathopen": "",
    r"\mathclose": "",
    r"\operatorname": r"\text",
    r"\mathrm": r"\text",
    r"\textrm": r"\text",
    r"\mbox": r"\text",
    r"\textbf": r"\text",
    r"\textit": r"\text",
    r"\mathbf": r"\text",
    r"\mathit": r"\text",
    r"\textnormal": r"\text",
    r"\bf": "",
    r"\hbox": r"\text",
    r"\rm": "",
    r"\texttt": r"\text",
    r"\mathsf": r"\text",
    r"\boldsymbol": r"\text",
    r"\it": "",
    r"\bm": r"\text",
    r"\geqq": r"\ge",
    r"\leqq": r"\le",
    r"\pmod": r"\mod",
    r"\bmod": r"\mod",
    r"\sim": r"\approx",
    r"\simeq": r"\approx",
    r"\cong": r"\approx",
    r"\doteq": r"\approx",
    r"\implies": r"\Rightarrow",
    r"\Longrightarrow": r"\Rightarrow",
    r"\vec": "",
    r"\hat": "",
    r"\overrightarrow": "",
    r"\widehat": "",
    r"\tilde": "",
    r"\angle": "",
    r"\measuredangle": "",
    r"\triangle": "",
    r"\upi": r"\pi",
    r"\uppi": r"\pi",
    r"\imath": "i",
}
_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?)"
    r"|(?P<command>\\[A-Za-z]+|\\.)|(?P<word>[A-Za-z]+)|(?P<space>\s+)|(?P<sign>.)",
    re.DOTALL,
)
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_BARE_UNIT = re.compile(
    r"(?<=[\d})])\s*((?:sq(?:uare)?\.? |cubic )?[A-Za-z£]{2,}\.?[A-Za-z0-9 /^{}.*]*"
    r"|\s[mgshLlNJWV](?:\^?\{?\d\}?)?(?:/[a-z]+(?:\^?\{?\d\}?)?)?)\s*$"
)
_LABELS = re.compile(r"(?<=[\d})])\s+([A-Za-z]{4,}(?:[ -][A-Za-z]{2,}){0,3}|men|pens|cats|dogs|boys|cows|eggs)\s*$")
_BEHIND_SYMBOL = re.compile(r"(?:\\pi|(?<![A-Za-z\\])[A-Za-z])\s+([A-Za-z]{2,}(?:\^?\{?\d\}?)?(?:/[a-z]+(?:\^?\{?\d\}?)?)?)\s*$")
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
_COLUMNS = re.compile(r"\s*(?:\[\w\])?\s*\{[^{}]*\}")
_NUMERIC = frozenset("-+([.0123456789")
_INLINE = re.compile(r"[-+(\[.]?\s*\d[^@]*")

_NO_UNITS = frozenset(["in", "min", "mi"])
"""Units that are words or functions as well, behind a symbol."""
_ALPHABETS = frozenset(
    ["\\mathrm", "\\mathbf", "\\mathit", "\\mathsf", "\\boldsymbol", "\\textbf", "\\bm", "\\textit", "\\textrm"]
)

FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "ln",
        "log",
        "lg",
        "exp",
        "sqrt",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "abs",
        "floor",
        "ceil",
        "max",
        "min",
        "gcd",
        "lcm",
    ]
)
_NAMES = {
    "pi": "\\pi",
    "inf": "\\infty",
    "infinity": "\\infty",
    "oo": "\\infty",
    "theta": "\\theta",
    "or": "\\or",
    "and": "\\and",
    "percent": "%",
    "mod": "\\mod",
    "U": "\\cup",
}
_WORDS = frozenset(
    [
        "yes",
        "no",
        "true",
        "false",
        "even",
        "odd",
        "none",
        "all",
        "red",
        "any",
        "and",
        "not",
        "the",
        "men",
        "two",
        "one",
        "six",
        "ten",
        "win",
        "for",
        "day",
        "sat",
        "sun",
        "mon",
        "tue",
    ]
)


def tokens(text: str) -> list[str]:
    """The tokens of a cleaned text.

    Raises:
        Undecidable: the text is too long.
    """
    if len(text) > LONGEST:
        raise Undecidable("an answer that is too long")
    if "," in text and not any(c in text for c in "([") and "\\{" not in text:
        text = _THOUSANDS.sub(lambda m: m.group(1) + m.group(2).replace(",", ""), text)
    out: list[str] = []
    unit = _BARE_UNIT.search(text) if text[-1:].isalnum() or text[-1:] in "}." else None
    tail = None
    if unit is not None and unit_of(unit.group(1)) is not None and not _is_text(text, unit.start()):
        text, tail = text[: unit.start()], "unit:" + unit.group(1).strip()
    elif " " in text and (text[-1].isalpha() or text[-1] in "23}") and (unit := _counted_noun(text)) is not None:
        text, tail = text[: unit.start(1)], "unit:" + unit.group(1)
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        at = match.end()
        kind, written = match.lastgroup, match.group()
        if kind == "command":
            at = _command(text, at, _SAME.get(written, written), out, written)
        elif kind == "word":
            _word(written, out)
        elif kind != "space":
            out.append(written)
        if len(out) > _MOST:
            raise Undecidable("an answer with too many parts")
    return [*out, tail] if tail else out


def _counted_noun(text: str) -> re.Match[str] | None:
    r"""What is counted, behind a number (``12 apples``), or a unit behind a symbol (``12\pi cm^2``)."""
    found = _LABELS.search(text)
    if found is not None and unit_of(found.group(1), label=True) is not None and not _is_text(text, found.start()):
        return found
    found = _BEHIND_SYMBOL.search(text)
    known = found is not None and found.group(1) not in _NO_UNITS and unit_of(found.group(1)) is not None
    return found if found is not None and known and not _is_text(text, found.start()) else None


def _is_text(text: str, at: int) -> bool:
    return text.rfind("\\text", 0, at) > text.rfind("}", 0, at)


def _command(text: str, at: int, name: str, out: list[str], written: str) -> int:
    if name == "\\text":
        match = _TEXT.match("\\text" + text[at : at + 200])
        if (match is None or "\\" in match.group(1)) and written in _ALPHABETS:
            return at  # an alphabet of mathematics around a formula
        if match is None:
            out.append("@?")
            return at
        _inside(match.group(1).strip(), out)
        return at + match.end() - 5
    if name in ("\\begin", "\\end"):
        close = text.find("}", at)
        if close < 0 or close - at > 20:
            raise Undecidable("a broken environment")
        environment = text[at:close].strip(" {*")
        out.append(name + "{" + environment + "}")
        columns = _COLUMNS.match(text, close + 1) if name == "\\begin" and environment in ("array", "tabular") else None
        return columns.end() if columns else close + 1
    if name:
        out.append(name)
    return at


def _inside(words: str, out: list[str]) -> None:
    r"""Words in a ``\text``: a separator, a unit behind a number, or a text."""
    low = words.lower()
    if low in ("or", "and", "percent", "mod"):
        out.append(_NAMES[low])
    elif low in FUNCTIONS:
        out.append("\\" + low)
    elif not words:
        return
    elif _united(words, out):
        out.append("unit:" + words)
    elif low in ("pi", "infinity", "inf"):
        out.append(_NAMES[low])
    elif len(words) == 1 and words.isalpha():
        out.append(words)
    elif (words[0] in _NUMERIC and _INLINE.fullmatch(words) is not None) or low.startswith(("mod ", "(mod ")):
        out.extend(tokens(words))
    else:
        out.append("@" + words)


def _united(words: str, out: list[str]) -> bool:
    r"""Whether words in a ``\text`` are a unit: behind another, a number or bracket, or a symbol, where only known ones are."""
    if any(token.startswith("unit:") for token in out[-3:]) and unit_of(words) is not None:
        return True
    if not out or not (out[-1][0].isdigit() or out[-1][-1] in "})" or out[-1] == "\\pi" or len(out[-1]) == 1):
        return False
    behind_number = out[-1][0].isdigit() or out[-1][-1] in "})"
    return (behind_number or out[-1] == "\\pi" or out[-1].isalpha()) and unit_of(words, label=behind_number) is not None


def _word(word: str, out: list[str]) -> None:
    if out and out[-1][0] == "\\" and out[-1] in ("\\mathbb", "\\mathcal"):
        out.append(word)
    elif word in _NAMES:
        out.append(_NAMES[word])
    elif word in FUNCTIONS:
        out.append("\\" + word)
    elif len(word) >= 4 or word.lower() in _WORDS:
        out.append("@" + word)
    else:
        out.extend(word)

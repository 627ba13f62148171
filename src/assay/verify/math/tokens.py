r"""Cleans the writing of an answer and cuts it into tokens.

A token is a string: a number (``12``, ``1.5e3``), a letter, a command (``\\frac``), a sign, ``@word`` for a word that is not a
product of letters, and ``unit:cm`` for a unit behind a number.
"""

from __future__ import annotations

import re

from assay.verify.math.poly import Undecidable
from assay.verify.math.units import unit_of

__all__ = ["LONGEST", "clean", "tokens"]

LONGEST = 2000
"""Characters of an answer that are read as mathematics."""

_MOST = 600

_SIGNS = {
    "−": "-", "–": "-", "—": "-", "×": r" \times ", "÷": "/", "·": r" \cdot ", "∙": r" \cdot ", "⋅": r" \cdot ", "≤": r" \le ",
    "≥": r" \ge ", "≠": r" \ne ", "∞": r" \infty ", "π": r" \pi ", "√": r" \sqrt ", "°": r"^\circ ", "±": r" \pm ", "∓": r" \mp ",
    "∪": r" \cup ", "∩": r" \cap ", "∅": r" \emptyset ", "∈": r" \in ", "ℝ": r" \mathbb{R} ", "½": r"\frac{1}{2}",
    "⅓": r"\frac{1}{3}", "⅔": r"\frac{2}{3}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "⅕": r"\frac{1}{5}", "⅙": r"\frac{1}{6}",
    "⅛": r"\frac{1}{8}", "⅜": r"\frac{3}{8}", "⅝": r"\frac{5}{8}", "⅞": r"\frac{7}{8}", "θ": r" \theta ", "α": r" \alpha ",
    "β": r" \beta ", "γ": r" \gamma ", "λ": r" \lambda ", "μ": r" \mu ", "φ": r" \phi ", "⁄": "/", "′": "'", "’": "'", "“": '"',
    "”": '"', "⟨": r" \langle ", "⟩": r" \rangle ", "€": r" \text{ euro } ", "\u00a0": " ", "\u202f": " ", "\u2009": " ",
    "，": ",", "．": ".", "（": "(", "）": ")", "…": r" \ldots ",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_MAP = str.maketrans({**_SIGNS, **{chr(0xFF10 + n): str(n) for n in range(10)}})
_RUN_UP = re.compile(f"[{''.join(_RAISED)}]+")
_RUN_DOWN = re.compile(f"[{''.join(_LOWERED)}]+")

_DROP = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits|quad|qquad|nobreak|hfill|middle)(?![A-Za-z])\.?"
    r"|(?<!\\)\\[,;:! ()\[\]]|~|\$|\\mathstrut"
)
_MONEY = re.compile(r"\\\$|(?<![\\\d\w])\$(?=\s*\d[\d,.]*\s*$)")
_SAME = {
    r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\leq": r"\le", r"\geq": r"\ge", r"\leqslant": r"\le",
    r"\geqslant": r"\ge", r"\neq": r"\ne", r"\lt": "<", r"\gt": ">", r"\{": r"\lbrace", r"\}": r"\rbrace", r"\dbinom": r"\binom",
    r"\tbinom": r"\binom", r"\varnothing": r"\emptyset", r"\degree": r"\circ", r"\%": "%", r"\colon": ":", r"\vert": "|",
    r"\lvert": "|", r"\rvert": "|", r"\times": "*", r"\cdot": "*", r"\ast": "*", r"\div": "/", r"\union": r"\cup",
    r"\mid": "|", r"\lparen": "(", r"\rparen": ")", r"\lbrack": "[", r"\rbrack": "]", r"\dots": r"\ldots",
    r"\cdots": r"\ldots", r"\bar": r"\overline", r"\dot": r"\overline", r"\mathopen": "", r"\mathclose": "",
    r"\operatorname": r"\text", r"\mathrm": r"\text", r"\textrm": r"\text", r"\mbox": r"\text",
    r"\textbf": r"\text", r"\textit": r"\text", r"\mathbf": r"\text", r"\mathit": r"\text", r"\textnormal": r"\text", r"\bf": "",
    r"\hbox": r"\text", r"\rm": "", r"\texttt": r"\text", r"\mathsf": r"\text", r"\boldsymbol": r"\text", r"\it": "",
}  # fmt: skip
_TOKEN = re.compile(
    r"(?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+(?![\w.]))?)"
    r"|(?P<command>\\[A-Za-z]+|\\.)|(?P<word>[A-Za-z]+)|(?P<space>\s+)|(?P<sign>.)",
    re.DOTALL,
)
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_SPACED = re.compile(r"(?<![\d.,])(\d{1,3})((?:(?:\\[,;:! ]|\{,\}|,\\!) ?\d{3})+)(?!\d)")
_BARE_UNIT = re.compile(
    r"(?<=[\d})])\s*((?:sq(?:uare)?\.? |cubic )?[A-Za-z£]{2,}\.?[A-Za-z0-9 /^{}.*]*"
    r"|\s[mgshLlNJWV](?:\^?\{?\d\}?)?(?:/[a-z]+(?:\^?\{?\d\}?)?)?)\s*$"
)
_ZEROS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LARGE = re.compile(rf"(?<=\d)\s*(?:\\(?:text|mathrm)\{{\s*({'|'.join(_ZEROS)})\s*\}}|({'|'.join(_ZEROS)})\b)")
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")

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


def clean(text: str) -> str:
    r"""The text without wrappers that carry no meaning: math delimiters, spacing, sizes, a full stop, bold.

    >>> clean(r"$\left( 1{,}000 \right)$.")
    '( 1000  )'
    """
    text = text.strip()
    if not text.isascii():
        text = _RUN_UP.sub(lambda m: "^{" + "".join(_RAISED[c] for c in m.group()) + "}", text)
        text = _RUN_DOWN.sub(lambda m: "_{" + "".join(_LOWERED[c] for c in m.group()) + "}", text)
        text = text.translate(_MAP)
    while len(text) > 4 and text[:2] == text[-2:] == "**":
        text = text[2:-2].strip()
    text = text.strip("`").rstrip(" \t\r\n.;,")
    if text.endswith("\\"):  # a spacing command at the end
        text = text[:-1]
    if "\\" in text or "$" in text or "~" in text or "{,}" in text:
        text = _SPACED.sub(lambda m: m.group(1) + re.sub(r"\D", "", m.group(2)), text)
        if text[:1] == "$" and text[-1:] == "$" and len(text) > 1:
            text = text[1:-1]
        text = _MONEY.sub(r" \\text{dollars} ", text)
        text = _DROP.sub(" ", text)
    if "illion" in text or "hundred" in text or "thousand" in text:
        text = _LARGE.sub(lambda m: rf" \times 10^{{{_ZEROS[m.group(1) or m.group(2)]}}} ", text)
    return text.strip().rstrip(".;,").strip()


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
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None
        at = match.end()
        kind, written = match.lastgroup, match.group()
        if kind == "command":
            at = _command(text, at, _SAME.get(written, written), out)
        elif kind == "word":
            _word(written, out)
        elif kind != "space":
            out.append(written)
        if len(out) > _MOST:
            raise Undecidable("an answer with too many parts")
    return [*out, tail] if tail else out


def _is_text(text: str, at: int) -> bool:
    return text.rfind("\\text", 0, at) > text.rfind("}", 0, at)


def _command(text: str, at: int, name: str, out: list[str]) -> int:
    if name == "\\text":
        match = _TEXT.match("\\text" + text[at : at + 200])
        if match is None:
            out.append("@?")
            return at
        _inside(match.group(1).strip(), out)
        return at + match.end() - 5
    if name in ("\\begin", "\\end"):
        close = text.find("}", at)
        if close < 0 or close - at > 20:
            raise Undecidable("a broken environment")
        out.append(name + "{" + text[at:close].strip(" {") + "}")
        return close + 1
    if name:
        out.append(name)
    return at


def _inside(words: str, out: list[str]) -> None:
    r"""Words in a ``\text``: a separator, a unit behind a number, or a text."""
    low = words.lower()
    if low in ("or", "and", "percent"):
        out.append(_NAMES[low])
    elif low in FUNCTIONS:
        out.append("\\" + low)
    elif not words:
        return
    elif (any(token.startswith("unit:") for token in out[-3:]) and unit_of(words) is not None) or (
        out and (out[-1][0].isdigit() or out[-1][-1] in "})") and unit_of(words, label=True) is not None
    ):
        out.append("unit:" + words)
    else:
        out.append("@" + words)


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

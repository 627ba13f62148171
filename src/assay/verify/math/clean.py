r"""Cleans the writing of an answer: what means the same is written in one way, and what means nothing is dropped."""

from __future__ import annotations

import re

from assay.verify.math.phrases import without_lead
from assay.verify.math.spelled import respell_sign
from assay.verify.math.units import unit_of
from assay.verify.math.words import FACTORS

__all__ = ["clean"]

_SIGNS = {
    "−": "-",
    "–": "-",
    "—": "-",
    "×": r" \times ",
    "÷": "/",
    "·": r" \cdot ",
    "∙": r" \cdot ",
    "⋅": r" \cdot ",
    "≤": r" \le ",
    "≥": r" \ge ",
    "≠": r" \ne ",
    "∞": r" \infty ",
    "π": r" \pi ",
    "√": r" \sqrt ",
    "°": r"^\circ ",
    "±": r" \pm ",
    "∓": r" \mp ",
    "∪": r" \cup ",
    "∩": r" \cap ",
    "∅": r" \emptyset ",
    "∈": r" \in ",
    "ℝ": r" \mathbb{R} ",
    "½": r"\frac{1}{2}",
    "⅓": r"\frac{1}{3}",
    "⅔": r"\frac{2}{3}",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
    "⅕": r"\frac{1}{5}",
    "⅙": r"\frac{1}{6}",
    "⅛": r"\frac{1}{8}",
    "⅜": r"\frac{3}{8}",
    "⅝": r"\frac{5}{8}",
    "⅞": r"\frac{7}{8}",
    "θ": r" \theta ",
    "α": r" \alpha ",
    "β": r" \beta ",
    "γ": r" \gamma ",
    "λ": r" \lambda ",
    "μ": r" \mu ",
    "φ": r" \phi ",
    "⁄": "/",
    "′": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "⟨": r" \langle ",
    "⟩": r" \rangle ",
    "€": r" \text{ euro } ",
    "\u00a0": " ",
    "\u202f": " ",
    "\u2009": " ",
    "，": ",",
    "．": ".",
    "（": "(",
    "）": ")",
    "…": r" \ldots ",
    "、": ",",
    "：": ":",
    "＝": "=",
    "＋": "+",
    "－": "-",
    "％": "%",
    "｜": "|",
    "≈": r" \approx ",
    "≅": r" \approx ",
    "≃": r" \approx ",
    "∼": r" \sim ",
    "≡": r" \equiv ",
    "∴": " ",
    "⇒": r" \Rightarrow ",
    "⌊": r" \lfloor ",
    "⌋": r" \rfloor ",
    "⌈": r" \lceil ",
    "⌉": r" \rceil ",
    "∠": r" \angle ",
    "△": r" \triangle ",
    "℃": " celsius ",
    "℉": " fahrenheit ",
    "✓": " ",
    "✔": " ",
    "✅": " ",
    "■": " ",
    "□": " ",
    "∎": " ",
    "\ufe0f": " ",
    "\u200b": " ",
    "ｘ": "x",
    "＞": ">",
    "＜": "<",
    "∘": r"^\circ ",
    "º": r"^\circ ",
    "［": "[",
    "］": "]",
    "。": ".",
    "¢": r" \text{ cents} ",
}
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_ZEROS = (0x0660, 0x06F0, 0x0966, 0x09E6, 0xFF10)
"""The digit 0 of the Arabic, Persian, Devanagari, Bengali and full-width writings."""
_MAP = str.maketrans({**_SIGNS, **{chr(zero + n): str(n) for zero in _ZEROS for n in range(10)}})
_RUN_UP = re.compile(f"[{''.join(_RAISED)}]+")
_RUN_DOWN = re.compile(f"[{''.join(_LOWERED)}]+")


_DROP = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|limits|quad|qquad|nobreak|hfill|middle|large|Large|LARGE|huge|Huge|small|"
    r"normalsize|bfseries|ensuremath|noindent|underline)(?![A-Za-z])\.?"
    r"|(?<!\\)\\[,;:! ()\[\]]|~|\$|\\mathstrut"
)
_ASIDE = re.compile(r"\\(?:color|textcolor|hspace|vspace|hskip|label|tag|phantom|hphantom|vphantom)\*?\s*\{[^{}]*\}")
_DONE = re.compile(r"(?:\s|\\(?:checkmark|blacksquare|square|Box|qed|therefore|star)(?![A-Za-z]))+\Z")
_MONEY = re.compile(r"\\\$|(?<![\\\d\w])\$(?=\s*\d[\d,.]*\s*$)")
_SPACED = re.compile(r"(?<![\d.,])(\d{1,3})((?:(?:\\[,;:! ]|\{,\}|,\\!) ?\d{3})+)(?!\d)")
_FACTOR = re.compile(
    rf"(?<=\d)\s*(?:\\(?:text|mathrm)\{{\s*({'|'.join(FACTORS)})s?(?:\s+of)?\s*\}}|({'|'.join(FACTORS)})s?\b(?!-))"
)
_SIGNS_IN_FRONT = frozenset(["ap", "si", "co", "do", "th"])
_LEADING = re.compile(
    r"(?:\s|=|\\(?:approx|sim|simeq|cong|doteq|therefore)(?![A-Za-z])|(?:about|approximately|approx\.?|roughly)\s(?=[\s\d$\\.-]))+"
)
_PER_CENT = re.compile(r"(?<=[\d}\s{])(?:per cent|percent|pct)\b\.?")
_NOT_EQUAL = re.compile(r"(?<![\d)!])!=|(?<=\s)!=")
_POWER = re.compile(r"(?<=[\w)}\]])\s*\*\*\s*(?=[\w(\\{-])")
_OF_UNITS = re.compile(
    r"\\[dt]?frac\s*\{\s*\\(?:text|mathrm)\s*\{([^{}]*)\}\s*\}\s*\{\s*\\(?:text|mathrm)\s*\{([^{}]*)\}(\^\{?\d\}?)?\s*\}"
)
_DEGREES = re.compile(
    r"(?:\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree)\s*(?:\\(?:text|mathrm|rm)\s*\{?\s*([CF])(?:elsius|ahrenheit)?\s*\}?"
    r"|([CF])(?:elsius|ahrenheit)?(?![A-Za-z]))"
)
_ORDINAL = re.compile(
    r"(?<![\w.])(\d+)\s*(?:\^\s*\{\s*\\(?:text|mathrm|rm)\s*\{?\s*(st|nd|rd|th)\s*\}?\s*\}|\^\s*\{\s*(st|nd|rd|th)\s*\}"
    r"|(?:\^\s*)?\\(?:text|mathrm|textsuperscript)\s*\{\s*(st|nd|rd|th)\s*\}|(st|nd|rd|th)(?![A-Za-z]))"
)
_ANGLES = re.compile(r"<\s*([^<>=]*,[^<>=]*)>")
_TEXT_LEAD = re.compile(r"\\text\s*\{\s*(?:the\s+)?(?:final\s+|correct\s+)?answer\s*(?:is|[:=])?\s*", re.IGNORECASE)
_IN = re.compile(r"([A-Za-z])\s+in\s+(?=[\[({\\])")


def clean(text: str) -> str:
    r"""The text without wrappers that carry no meaning: math delimiters, spacing, sizes, a full stop, bold, "answer:", "about".

    >>> clean(r"$\left( 1{,}000 \right)$."), clean("Answer: x >= 3"), clean(r"20^\circ\text{C}")
    ('( 1000  )', 'x  \\ge  3', '20 \\text{celsius}')
    """
    text = respell_sign(text.strip())
    if not text.isascii():
        text = _RUN_UP.sub(lambda m: "^{" + "".join(_RAISED[c] for c in m.group()) + "}", text)
        text = _RUN_DOWN.sub(lambda m: "_{" + "".join(_LOWERED[c] for c in m.group()) + "}", text)
        text = text.translate(_MAP).strip()
    while len(text) > 4 and text[:2] == text[-2:] == "**":
        text = text[2:-2].strip()
    if len(text) > 2 and text[0] == text[-1] == "*":
        text = text[1:-1].strip()
    text = text.strip("`").rstrip(" \t\r\n.;,")
    if text.endswith("\\"):  # a spacing command at the end
        text = text[:-1]
    if "\\" in text or "$" in text or "~" in text or "{,}" in text:
        text = _tex(text)
    first = text[:1]
    if first == "=" or (first == "\\" and text[1:3] in _SIGNS_IN_FRONT) or (first.isalpha() and len(text) > 5) or "nswer" in text:
        text = _without_words(text)
    if len(text) > 5 and _has_factor(text):
        text = _FACTOR.sub(lambda m: rf" \times {FACTORS[m.group(1) or m.group(2)]} ", text)
    return _signs(text).strip().rstrip(".;,").strip()


def _has_factor(text: str) -> bool:
    big = "illion" in text or "hundred" in text or "thousand" in text
    return big or "tenth" in text or "dozen" in text or "tens" in text or "lakh" in text or "crore" in text


def _tex(text: str) -> str:
    text = _SPACED.sub(lambda m: m.group(1) + re.sub(r"\D", "", m.group(2)), text)
    if text[:1] == "$" and text[-1:] == "$" and len(text) > 1:
        text = text[1:-1]
    if "$" in text:
        text = _MONEY.sub(r" \\text{dollars} ", text)
    if "color" in text or "phantom" in text or "space" in text or "\\tag" in text or "\\label" in text:
        text = _ASIDE.sub(" ", text)
    text = _DROP.sub(" ", text)
    if text.rstrip()[-1:].isalpha():
        text = _DONE.sub("", text)
    if "frac" in text and "{\\" in text:
        text = _OF_UNITS.sub(_quotient, text)
    if "\\circ" in text or "\\degree" in text:
        text = _DEGREES.sub(lambda m: r" \text{celsius}" if "C" in (m.group(1), m.group(2)) else r" \text{fahrenheit}", text)
    return text


def _quotient(match: re.Match[str]) -> str:
    r"""``\frac{\text{km}}{\text{h}}`` as ``\text{km/h}``."""
    unit = f"{match.group(1).strip()}/{match.group(2).strip()}{match.group(3) or ''}".replace("{", "").replace("}", "")
    return match.group() if unit_of(unit) is None else rf"\text{{ {unit}}}"


def _without_words(text: str) -> str:
    """Without "answer:", "about" or a sign of equality in front."""
    if ":" in text or "nswer" in text:
        text = without_lead(_TEXT_LEAD.sub(r"\\text{", text))
    leading = _LEADING.match(text)
    return text[leading.end() :] if leading is not None and leading.end() < len(text) else text


def _signs(text: str) -> str:
    """Relations, powers and ordinals as they are typed."""
    if "=" in text:
        text = text.replace(">=", r" \ge ").replace("<=", r" \le ").replace("=<", r" \le ").replace("==", "=")
        text = _NOT_EQUAL.sub(r" \\ne ", text) if "!=" in text else text
    if "**" in text:
        text = _POWER.sub("^", text)
    if "per cent" in text or "pct" in text:
        text = _PER_CENT.sub("percent", text)
    if "th" in text or "st" in text or "nd" in text or "rd" in text:
        text = _ORDINAL.sub(_cardinal, text)
    if text[:1] == "<":
        text = _ANGLES.sub(r"\\langle \1 \\rangle", text)
    if " in " in text and (inside := _IN.match(text)) is not None:
        text = rf"{inside.group(1)} \in {text[inside.end() :]}"
    return text


def _cardinal(match: re.Match[str]) -> str:
    """The number without its ordinal's end, where that belongs to it: ``22nd``, ``13th``."""
    digits, end = match.group(1), next(group for group in match.groups()[1:] if group)
    last = {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th") if digits[-2:-1] != "1" else "th"
    return digits if end == last else match.group()

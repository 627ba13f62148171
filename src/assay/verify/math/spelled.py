r"""Signs, units and clock times as they are spelled: ``\text{negative }12``, ``5\mu\text{m}``, ``10{:}30``."""

from __future__ import annotations

import re

from assay.verify.math.words import number_word

__all__ = ["respell_sign"]

_LEAD = re.compile(
    r"(?:\\(?:text|textbf|mathrm|textrm|mbox)\s*\{\s*(negative|minus|positive|exactly)\s*\}|(negative|minus|positive|exactly)\s)\s*"
    r"(?=[\d.(]|\\[dt]?frac|\\sqrt|[a-z])",
    re.IGNORECASE,
)
_OMEGA = re.compile(
    r"(?<=[\d}])\s*(?:\\(?:text|mathrm)\s*\{\s*([kMm])\s*\}|([kMm]))?\s*(?:\\(?:text|mathrm)\s*\{\s*)?(?:\\[Oo]mega(?![A-Za-z])|Ω)\s*\}?\s*\Z"
)
_MICRO = re.compile(r"(?<=[\d}])\s*\\mu\s*\\(?:text|mathrm|rm)\s*\{?\s*([msgLlAVFWNJCH]|mol)\s*\}?\s*\Z")
_MICRO_SIGN = re.compile(r"(?<=[\d}])\s*(?:µ([msgLlAVFWNJCH]|mol)|μ([msL]))(?![A-Za-z])")
_SPACING = re.compile(r"\\[,;:! ]\s*")
_COLON = re.compile(r"(?<=\d)\s*(?:(?:\\text\s*)?\{\s*:\s*\}|\\colon(?![a-z]))\s*(?=\d)")


def respell_sign(text: str) -> str:
    r"""An answer with a sign for the words "negative" and "minus" in front, units for Greek letters behind a number, and ``:``
    for a colon in braces.

    ``\mu`` in front of a letter of mathematics stays a symbol: ``2\mu g`` may be a product.

    >>> texts = (r"\text{negative }12", "minus seven", r"12\,\Omega", r"5\mu\text{m}", r"2\mu g", "10{:}30")
    >>> [respell_sign(text) for text in texts]
    ['-12', '-7', '12\\text{ ohm}', '5\\text{ um}', '2\\mu g', '10:30']
    """
    if "{" in text or "colon" in text:
        text = _COLON.sub(":", text)
    if "mega" in text or "Ω" in text:
        text = _OMEGA.sub(lambda m: rf"\text{{ {m[1] or m[2] or ''}ohm}}", _SPACING.sub("", text))
    if "mu" in text or "µ" in text or "μ" in text:
        text = _MICRO.sub(lambda m: rf"\text{{ u{m[1]}}}", _SPACING.sub("", text) if text.endswith("}") else text)
        text = _MICRO_SIGN.sub(lambda m: rf"\text{{ u{m[1] or m[2]}}}", text)
    lead = _LEAD.match(text) if text[:1] in "\\nNmMpPeE" else None
    if lead is None:
        return text
    sign = "-" if (lead[1] or lead[2]).lower() in ("negative", "minus") else ""
    rest = text[lead.end() :]
    named = number_word(rest)
    if named is not None:
        return f"{sign}{named}"
    return text if rest[0].isalpha() else sign + rest

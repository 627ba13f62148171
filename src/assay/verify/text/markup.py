"""A text without the markup of LaTeX and HTML that gives letters a style."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["without_markup"]

_STYLE = (
    r"\\(?:text(?:bf|it|rm|sf|tt|up|sc|normal)?|math(?:rm|bf|sf|tt|it|cal|bb|normal)|operatorname|mbox|hbox|emph|bold|bm"
    r"|boldsymbol)"
)
_STYLED = re.compile(_STYLE + r"\*?\s*\{([^{}]*)\}")
_SPACING = re.compile(r"\\(?:left|right|big|Big|displaystyle|quad|qquad|bf|rm)(?![A-Za-z])|\\[,;:! ()\[\]]|~|\u200b|\ufeff")


def without_markup(text: str) -> str:
    r"""A text in its compatible characters (full-width letters as plain ones), without LaTeX's and HTML's styles.

    >>> without_markup(r"\text{B}"), without_markup(r"\textbf{(B)}\ London"), without_markup("<b>Ｂ</b>")
    ('B', '(B) London', 'B')
    """
    text = re.sub(r"</?(?:b|i|strong|em|u|code|p|br|span)\s*/?>", "", unicodedata.normalize("NFKC", text), flags=re.IGNORECASE)
    for _ in range(4):  # styles inside styles
        text, n = _STYLED.subn(r"\1", text)
        if not n:
            break
    return _SPACING.sub(lambda m: {"(": "", ")": "", "[": "", "]": ""}.get(m.group()[-1], " "), text)

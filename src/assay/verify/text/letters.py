"""Whether a lone capital is the label of an option, or a part of a word or a name."""

from __future__ import annotations

import re

__all__ = ["in_phrase"]

_NOUNS = re.compile(
    r"\b(?:vitamine?|vitamina|hepatitis|hépatite|epatite|influenza|plan|type|blood|strain|appendix|schedule|mr|mrs|ms|dr)\.?\s\Z",
    re.IGNORECASE,
)
"""Words whose name goes on with the letter behind them."""
_BROKEN = re.compile(r" (?!(?:y|e|o|u|i)\b)([a-z]+)(?![^\W\d_])")
_VERB = re.compile("(?:s|ed|ing|ly)$")
_WORDS = (
    "is isn was wasn are were be been being has had have does doesn did do can cannot could may might must should would "
    "will shall seems looks appears or and nor but yet so not rather instead than vs versus over under because since as "
    "if unless although though while whereas when where which who that this these those for of in on at by to from with "
    "without within among between into through during after before above below here there then thus hence therefore too "
    "also only just now still even alone again given based according per due regarding despite like unlike about against "
    "via plus minus exactly it its the a an my our your his her their all both each no yes one out up down correct right "
    "wrong false true best better closest likely most more less wins answer option choice however indeed obviously "
    "clearly definitely probably certainly maybe perhaps please thanks thank und oder ist nicht weil denn da aber "
    "richtig falsch et ou est car parce puisque mais pas correcte es porque ya pues pero por la el le les correcta "
    "correcto se que che o oppure ovvero ma corretta sono pois mas correto karena adalah bukan yang benar dan atau ve "
    "veya en want omdat men och att jest bo ale i lub albo"
)
_GOES_ON = frozenset(_WORDS.split())
"""Words that may stand behind a letter that is the label of an option; others make it part of a word."""


def in_phrase(text: str, span: tuple[int, int], option: str) -> bool:
    """Whether the lone capital at ``span`` is a part of a word or a name: ``B erlin``, ``Vitamin B``.

    Args:
        text: in which it stands.
        span: where it begins and ends.
        option: the folded text of the option that it labels, which may stand behind it; empty where none is known.

    >>> [in_phrase(said, (0, 1), "london") for said in ("B erlin", "B because", "B london")]
    [True, False, False]
    """
    start, end = span
    if _NOUNS.search(text, max(0, start - 14), start):
        return True
    behind = _BROKEN.match(text, end)
    if behind is None or text[start:end] in ("A", "I") or behind[1] in _GOES_ON or _VERB.search(behind[1]):
        return False
    return not option.startswith(behind[1])

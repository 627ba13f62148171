"""In which language a text is written, told by its script and by its commonest small words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from assay.core.errors import UnknownNameError
from assay.verify.constraints.base import Constraint
from assay.verify.constraints.wording import Script

__all__ = ["LANGUAGES", "Language", "language_of"]

# the small words that are common in a language and rare, or of other use, in those beside it
_SMALL_WORDS = {
    "english": "the of and is are was to in that it for with you this not have be on at by from they we what which there will",
    "german": "der die das und ist sind war nicht ein eine einen mit zu den dem auf für sich auch von wir ich sie es wie aber",
    "french": "le la les des et est sont était une un dans pour que qui pas avec ce cette nous vous il elle sur plus du au je",
    "spanish": "el la los las y es son fue una un en para que con no por se su del al lo como pero más este hay muy",
    "portuguese": "o a os as e é são foi uma um em para que com não por se do da dos das no na mais mas muito você",
    "italian": "il la gli le e è sono era una un in per che con non di del della si lo come ma più questo nel alla",
    "dutch": "de het een en is zijn was niet met voor van op te dat die ik je we er ook maar naar als bij wordt",
    "swedish": "och det att en ett är var inte med för på som den av till jag vi har om från men kan de",
    "polish": "i w na nie to jest się z do że jak był była są ale po co dla od tak przez jego",
    "turkish": "ve bir bu için ile de da çok ne o gibi daha var ama olarak değil ben sen kadar sonra mi",
    "indonesian": "yang dan di ini itu dengan untuk tidak dari ke adalah pada akan saya kami mereka juga bisa sudah dalam",
    "vietnamese": "là và của có không được cho một những các trong với này đã người tôi để khi rất đến",
    "russian": "и в не на что это он она с как я по но к из у за от так же был была для мы вы они",
    "ukrainian": "і в не на що це він вона з як я по але до із у за від так же був була для ми ви вони є та",
    "bulgarian": "и в не на че това той тя с как аз по но към от за са е беше да ще се ние вие те",
}
_SCRIPT_OF = {
    **dict.fromkeys(("russian", "ukrainian", "bulgarian"), "cyrillic"),
    "greek": "greek",
    "hebrew": "hebrew",
    "arabic": "arabic",
    "hindi": "devanagari",
    "bengali": "bengali",
    "tamil": "tamil",
    "thai": "thai",
    "georgian": "georgian",
    "armenian": "armenian",
    "chinese": "chinese",
    "japanese": "japanese",
    "korean": "korean",
}
LANGUAGES: Mapping[str, str] = {name: _SCRIPT_OF.get(name, "latin") for name in (*_SMALL_WORDS, *_SCRIPT_OF)}
"""Languages that can be told apart here, each with its script."""

_WORDS = {name: frozenset(words.split()) for name, words in _SMALL_WORDS.items()}
_LETTERS = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3040-\u30ff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Language(Constraint):
    """The text is in a language: its script, and of languages with one script the one whose small words occur most.

    A short text without small words, or one that is as much of another language, does not keep it: it says too little.

    Attributes:
        language: a name of `LANGUAGES`.

    Raises:
        UnknownNameError: no such language.
    """

    language: str

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise UnknownNameError("language", self.language, LANGUAGES)

    def describe(self) -> str:
        """As a sentence."""
        return f"Write in {self.language.capitalize()}, and in no other language."

    def holds(self, text: str) -> bool:
        """Whether it is the language found."""
        return language_of(text) == self.language


def language_of(text: str) -> str:
    """The language of a text, by its script and small words; empty where that leaves it open.

    IFEval asks a trained classifier (langdetect) instead, which guesses on short texts too. Kana tell Japanese from Chinese.

    Source: the instruction on a response's language of IFEval (arXiv 2311.07911).

    >>> [language_of(text) for text in ("Es ist nicht weit von hier.", "Il n'est pas loin d'ici, et la nuit est claire.", "OK")]
    ['german', 'french', '']
    """
    scripts = [script for script in dict.fromkeys(LANGUAGES.values()) if Script(script=script).holds(text)]
    if "japanese" in scripts:
        scripts = ["japanese"] if _KANA.search(text) else ["chinese"]
    if len(scripts) != 1:
        return ""
    known = [name for name, script in LANGUAGES.items() if script == scripts[0]]
    if len(known) == 1:
        return known[0]
    said = _LETTERS.findall(text.casefold())
    counts = sorted(((sum(word in _WORDS[name] for word in said), name) for name in known), reverse=True)
    (most, best), (second, _) = counts[:2]
    return best if most > second else ""

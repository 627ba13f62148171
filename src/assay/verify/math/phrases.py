"""The words with which texts announce an answer, in the languages with the most speakers, and where what they announce ends."""

from __future__ import annotations

import re

from assay.verify.math.words import number_word

__all__ = ["announced", "cut_clause", "without_lead"]

_ALPHABETIC = "answers?|respuestas?|réponses?|respostas?|antwort(?:en)?|jawab(?:an)?(?:nya)?|rispost[ae]|cevap|cevabı|yanıt|đáp án|đáp số|ответ"
_OTHERS = "答案|答え|解答|正解|정답|답|উত্তর|उत्तर|जवाब|الجواب|الإجابة|الاجابة|جواب"
_BESIDE = (
    r"(?:\s(?:finale?|correcta|akhir|النهائي|النهائية|الصحيح|الصحيحة))?"
    r"(?:\s(?:to|a|de|à)\s(?:the|this|your|la|esta)\s\w{1,20})?[*_]*"
)
_COPULA = (
    "is|are|equals|(?:would|will|should|must) be|es|son|será|sería|est|sont|é|são|ist|lautet|sind|adalah|ialah|è|sono|là|равен|هو|هي|হল|"
    "হলো|होगा|है"
)
_ADVERB = r"(?:\s(?:therefore|thus|then|hence|so|simply|just|indeed|also|donc|portanto|somit))?"
_MARK = re.compile(
    rf"####|(?:{_ALPHABETIC}){_BESIDE}\s*(?:(?:{_COPULA})\b{_ADVERB}[ \t*_]*[:：]?|[:：=]|—)"
    rf"|(?:{_OTHERS}){_BESIDE}\s*(?:(?:是|为|為|等于|は|은|는|{_COPULA})\s*[:：]?|[:：=]|—|(?=[-−$\\(\d]))"
    r"|(?<!\w)答\s*[:：]"
    r"|^[#*_ \t]*(?:the\s)?(?:final\s|correct\s)?answer[*_ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_HINTS = ("nswer", "NSWER", "####", "espuesta", "esposta", "ntwort", "awab", "ispost", "evap", "evab")
"""Parts of the words in ASCII: a text without any of them is not searched."""
_LEAD = re.compile(
    rf"(?:the\s|my\s|our\s)?(?:final\s|correct\s)?(?:{_ALPHABETIC}|{_OTHERS}){_BESIDE}\s*(?:(?:{_COPULA})\b\s*:?|[:：=])\s*",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[ \t]*(?:[*_]+(?=[\s$\\])[ \t]*)?")
_EMPTY = re.compile(r"(?:[ \t*_`]|\\\[|\$\$)*(?:\n|\Z)")
_REMARK = re.compile(
    r"[*_ \t]*(?:as follows|below|here|the following|correct|right|helpful|useful|clear|complete|verified|consistent|reasonable|wrong)"
    r"[*_ \t]*(?=[:.!\n]|\Z)",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"[*_ \t]*(?:as follows|below|here|the following)[*_ \t]*[:.]?[*_ \t]*(?=\n)", re.IGNORECASE)
_END = re.compile(r"\n|[.!?](?=[\s*_]|\Z)|[。！？।؟]")
_CLAUSE = re.compile(
    r",?\s+(?:because|since|which|whereas|so that|meaning|as (?:required|desired|expected|claimed|needed|stated|shown|we|it|can))\b"
    r"|,\s+(?:so|hence|thus|therefore|as|i\.e\.|that is)(?!\w)|;\s+(?=[A-Za-z]{2,}\s)|\s+—\s+(?=[A-Za-z]{2})",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"(?P<first>[^()]{1,80}?)\s*\((?P<second>[^()]{1,80})\)")
_SAID = re.compile(r"\s*(?:です|でした|である|입니다|이다|है|हैं|ہے|হয়|হবে)\s*\Z")


def announced(text: str) -> tuple[int, int] | None:
    r"""Where what a text calls its answer last begins and ends: the rest of that line, or the next one, up to the end of the clause.

    >>> text = "The answer is 41. No, it was wrong.\n**Final answer:**\n$42$, because $6 \\cdot 7 = 42$."
    >>> text[slice(*announced(text))]
    '$42$'
    """
    if text.isascii() and not any(hint in text for hint in _HINTS):
        return None
    last = None
    for match in _MARK.finditer(text):
        if _REMARK.match(text, match.end()) is None or _FOLLOWS.match(text, match.end()) is not None:
            last = match
    if last is None:
        return None
    start = last.end()
    follows = _FOLLOWS.match(text, start)
    start = follows.end() if follows else start
    while start < len(text) and (empty := _EMPTY.match(text, start)) is not None:
        start = empty.end()
    start = _MARKUP.match(text, start).end()
    stop = _END.search(text, start)
    return start, start + cut_clause(text[start : stop.start() if stop else len(text)])


def cut_clause(text: str) -> int:
    """How much of a sentence's end is the answer: without a clause that gives a reason, and a number that is said twice.

    >>> [s[: cut_clause(s)] for s in ("42, because it is", "42 (forty-two)", "5 (mod 7)", "1, 2, and 3")]
    ['42', '42', '5 (mod 7)', '1, 2, and 3']
    """
    clause = _CLAUSE.search(text)
    end = clause.start() if clause else len(text)
    if not text.isascii():
        said = _SAID.search(text, 0, end)
        end = said.start() if said else end
    aside = _ASIDE.fullmatch(text, 0, end)
    if aside is not None:
        named = number_word(aside["second"].strip(" *_"))
        if named is not None and aside["first"].strip(" $*_") == str(named):
            end = aside.end("first")
    return len(text[:end].rstrip(" \t\r*_`"))


def without_lead(text: str) -> str:
    """An answer without the word "answer" in front of it.

    >>> without_lead("Answer: B"), without_lead("the final answer is 7"), without_lead("answers")
    ('B', '7', 'answers')
    """
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead is not None and lead.end() < len(text) else text

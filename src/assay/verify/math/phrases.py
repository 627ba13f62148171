"""The words with which texts announce an answer, in the languages with the most speakers, and where what they announce ends."""

from __future__ import annotations

import re

from assay.verify.language import doubted, is_reason
from assay.verify.math.words import number_word

__all__ = ["find_announced", "cut_clause", "is_prose", "without_lead"]

_ALPHABETIC = (
    "answers?|respuestas?|réponses?|respostas?|antwort(?:en)?|jawab(?:an)?(?:nya)?|rispost[ae]|"
    "cevap|cevabı|yanıt|đáp án|đáp số|ответ"
)
_OTHERS = "答案|答え|解答|正解|정답|답|উত্তর|उत्तर|जवाब|الجواب|الإجابة|الاجابة|جواب"
_BESIDE = (
    r"(?:\s(?:finale?|correcta|akhir|النهائي|النهائية|الصحيح|الصحيحة))?"
    r"(?:\s(?:to|a|de|à)\s(?:the|this|your|la|esta)\s\w{1,20})?[*_]*"
)
_COPULA = (
    "is|are|equals|comes to|(?:comes|turns|works) out (?:to be|to|as)|"
    "(?:would|will|should|must) be|es|son|será|sería|est|sont|é|são|ist|lautet|"
    "sind|adalah|ialah|è|sono|là|равен|هو|هي|হল|"
    "হলো|होगा|है"
)
_ADVERB = r"(?:\s(?:therefore|thus|then|hence|so|simply|just|indeed|also|donc|portanto|somit))?"
_MARK = re.compile(
    rf"####|(?:{_ALPHABETIC}){_BESIDE}\s*(?:(?:{_COPULA})\b{_ADVERB}[ \t*_]*[:：]?|[:：=]|—)"
    rf"|(?:{_OTHERS}){_BESIDE}\s*(?:(?:是|为|為|等于|は|은|는|{_COPULA})\s*[:：]?|[:：=]|—|(?=[-−$\\(\d]))"
    r"|答\s*[:：]|(?P<heading>answer[*_ \t]*(?=\n))",
    re.IGNORECASE,
)
_HEADING = re.compile(r"[#*_ \t]*(?:the\s)?(?:final\s|correct\s)?", re.IGNORECASE)
_ASCII = (
    ("nswer", 1),
    ("NSWER", 1),
    ("####", 0),
    ("espuesta", 1),
    ("esposta", 1),
    ("ntwort", 1),
    ("awab", 1),
    ("ispost", 1),
    ("evap", 1),
)
_WIDE = (
    ("éponse", 1),
    ("твет", 1),
    ("áp án", 1),
    ("áp số", 1),
    ("anıt", 1),
    ("evabı", 1),
    ("答", 0),
    ("解答", 0),
    ("正解", 0),
    ("답", 0),
    ("정답", 0),
    ("উত্তর", 0),
    ("उत्तर", 0),
    ("जवाब", 0),
    ("الجواب", 0),
    ("الإجابة", 0),
    ("الاجابة", 0),
    ("جواب", 0),
)
"""Parts of the words that are looked for first, and how many letters stand before them."""
_AT_ONCE = re.compile(r"nswer(?: is|:) ?(-?\d+)\.?\Z")
_LEAD = re.compile(
    rf"(?:the\s|my\s|our\s)?(?:final\s|correct\s)?(?:{_ALPHABETIC}|{_OTHERS}){_BESIDE}\s*(?:(?:{_COPULA})\b\s*:?|[:：=])\s*",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[ \t]*(?:[*_]+(?=[\s$\\])[ \t]*)?")
_AROUND = re.compile(r"[*_`]{1,3}")
_EMPTY = re.compile(r"(?:[ \t*_`]|\\\[|\$\$)*(?:\n|\Z)")
_REMARK = re.compile(
    r"[*_ \t]*(?:as follows|below|here|the following|correct|right|helpful|useful|clear|complete|verified|consistent|reasonable)"
    r"[*_ \t]*(?=[:.!\n]|\Z)",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"[*_ \t]*(?:as follows|below|here|the following)[*_ \t]*[:.]?[*_ \t]*(?=\n)", re.IGNORECASE)
_END = re.compile(r"\n|[.!?](?=[\s*_]|\Z)|[。！？।؟]")
_CLAUSE = re.compile(
    r",?\s+(?:because|since|which|whereas|so that|meaning|"
    r"as (?:required|desired|expected|claimed|needed|stated|shown|we|it|can))\b"
    r"|,\s+(?:so|hence|thus|therefore|as|i\.e\.|that is|not|and not)(?!\w)|;\s+(?=[A-Za-z]{2,}\s)|\s+—\s+(?=[A-Za-z]{2})",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:wrong|incorrect|false|mistaken?|impossible|contradict\w*|but|however|instead|actually|rather|unless|except)\b|n['’]t\b"
    r"|\bnot (?:right|correct|possible|true|the answer|what)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_ASIDE = re.compile(r"(?P<first>[^()]{1,80}?)\s*\((?P<second>[^()]{1,80})\)")
_SAID = re.compile(r"\s*(?:です|でした|である|입니다|이다|है|हैं|ہے|হয়|হবে)\s*\Z")


def find_announced(text: str) -> tuple[int, int] | None:
    r"""Where what a text calls its answer begins and ends, the last time: the rest of that line or the next, or of its clause.

    >>> text = "The answer is 41. No, it was wrong.\n**Final answer:**\n$42$, because $6 \\cdot 7 = 42$."
    >>> text[slice(*find_announced(text))]
    '$42$'
    """
    if "w" not in text and "p" not in text and "W" not in text and "#" not in text and text.isascii():
        return None  # no word of `_ASCII`
    last = text.rfind("nswer")
    if last >= 0 and (plain := _AT_ONCE.match(text, last)) is not None and not _doubted(text, last - 1):
        return plain.span(1)
    last = _last_mark(text)
    if last is None:
        return None
    start = last.end()
    follows = _FOLLOWS.match(text, start)
    start = follows.end() if follows else start
    same_line = start
    while start < len(text) and (empty := _EMPTY.match(text, start)) is not None:
        start = empty.end()
    markup = _MARKUP.match(text, start)
    start = markup.end() if markup else start
    stop = _END.search(text, start)
    if stop is not None and stop[0] in "?؟":
        return None  # asked, not said
    if start > same_line and text.find("\n", same_line, start) >= 0:  # on a line of its own, where reasoning may stand as well
        line = text[start : text.find("\n", start) if text.find("\n", start) >= 0 else len(text)]
        if is_prose(line):
            return None
    end = start + cut_clause(text[start : stop.start() if stop else len(text)])
    mark = _AROUND.match(text, start, end)
    if mark is not None and text.startswith(mark[0], end):  # ``**17**``: what closes is cut off already
        start = mark.end()
    return start, end


def is_prose(text: str) -> bool:
    """Whether there are more words in it, besides commands, than an answer has.

    >>> is_prose("12 red apples"), is_prose("First, we multiply six by seven")
    (False, True)
    """
    return len(_WORD.findall(text)) > 3


def _last_mark(text: str) -> re.Match[str] | None:
    """Where an answer is announced last, and more than a remark about it follows."""
    last = None
    for hint, before in _ASCII if text.isascii() else _ASCII + _WIDE:
        at = text.rfind(hint)
        while at >= 0 and (last is None or at > last.end()):
            match = _MARK.match(text, at - before) if at >= before else None
            if match is not None and _announces(text, match):
                last = match
                break
            at = text.rfind(hint, 0, at)
    return last


def _announces(text: str, match: re.Match[str]) -> bool:
    if match["heading"] and _HEADING.fullmatch(text, text.rfind("\n", 0, match.start()) + 1, match.start()) is None:
        return False
    if _doubted(text, match.start()):
        return False
    return _REMARK.match(text, match.end()) is None or _FOLLOWS.match(text, match.end()) is not None


def _doubted(text: str, at: int) -> bool:
    """Whether the clause before a place says that the answer behind it is wrong or doubtful."""
    return at > 0 and doubted(text[max(0, at - 80) : at])


def cut_clause(text: str) -> int:
    """How much of a sentence's end is the answer: without a clause that gives a reason, and a number that is said twice.

    >>> [s[: cut_clause(s)] for s in ("42, because it is", "42 (forty-two)", "42 (since 6*7=42)", "5 (mod 7)", "1, 2, and 3")]
    ['42', '42', '42', '5 (mod 7)', '1, 2, and 3']
    """
    clause = _CLAUSE.search(text)
    if clause is not None and _TAKEN_BACK.search(text, clause.start()) is not None:
        clause = None
    end = clause.start() if clause else len(text)
    if not text.isascii():
        said = _SAID.search(text, 0, end)
        end = said.start() if said else end
    aside = _ASIDE.fullmatch(text, 0, end) if "(" in text else None
    if aside is not None:
        named = number_word(aside["second"].strip(" *_"))
        twice = named is not None and aside["first"].strip(" $*_") == str(named)
        if twice or (is_reason(aside["second"]) and any(map(str.isalnum, aside["first"]))):
            end = aside.end("first")
    return len(text[:end].rstrip(" \t\r*_`"))


def without_lead(text: str) -> str:
    """An answer without the word "answer" in front of it.

    >>> without_lead("Answer: B"), without_lead("the final answer is 7"), without_lead("answers")
    ('B', '7', 'answers')
    """
    lead = _LEAD.match(text)
    return text[lead.end() :] if lead is not None and lead.end() < len(text) else text

"""Which of several lettered options a text settles on.

A text says its answer in one of a few ways: in a statement ("the answer is (B)", "I would choose B over A", "Answer: London"),
in a verdict on an option ("B is correct"), in a conclusion ("so B"), or by naming one option and no other. What is said of other
options beside that ("A is wrong", "Note that A is a distractor", "P.S. B") is no answer. A text that names several options and
says of none that it is the answer has none: to take the last one would pay a policy for mentioning letters.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.verify.language import OR, denied, denied_behind, doubted
from assay.verify.text.letters import in_phrase
from assay.verify.text.markup import without_markup

__all__ = ["fold", "option_in"]

_BEHIND = r"(?=[\s).:,;!?*_`/&\]}\"”>。、」】—–$|]|\Z)"
_LETTER = re.compile(rf"(?<![A-Za-z0-9'’\\.])(?:\(\s*([A-Za-z])\s*\)|\[\s*([A-Za-z])\s*\]|([A-Z]){_BEHIND}(?!\.[A-Za-z]))")
_ALONE = re.compile(r"[*_`$(\[{#> ]*(?:(?:option|choice|answer)\s+)?[*_`$(\[{ ]*([A-Za-z])[*_`$)\]}.:, ]*", re.IGNORECASE)
_LABEL = re.compile(r"[*_`$(\[{ ]*([A-Za-z])[*_`$)\]}]*[.:)\]} ] *(.+)", re.DOTALL)

_WORDS = (
    r"answer|答案|答え|正解|정답|답|r[ée]ponse|respuesta|resposta|risposta|antwort|ответ|jawaban|svar|cevap|"
    r"الإجابة|الجواب|उत्तर|উত্তর|đáp án"
    r"|(?:correct|right|best|final|my|our|chosen|preferred|正确|正確)\s*(?:answer\s+)?(?:choice|option|response|solution|selection|选项|選項)"
)
_FILLERS = (
    r"(?:(?:most\s+likely|definitely|clearly|certainly|probably|obviously|indeed|therefore|thus|hence|simply|then|just|now|still|"
    r"in\s+fact|of\s+course|option|choice|letter|answer|number|the|be|is|both|either)\b[,:]?\s*){0,8}"
)
_STATED = re.compile(
    rf"(?:\b(?:{_WORDS}))(?:\s+(?:to|for|of|in|here|above|below|below|there)\b(?:\s[^.:=\n]{{1,60}}?)?)?[*_`\s)]{{0,6}}"
    rf"(?:\b(?:is|are|must\s+be|should\s+be|would\s+be|will\s+be|has\s+to\s+be|being|est|es|é|è|ist|adalah|là)\b"
    rf"|是|为|為|は|は、|:|=|→|->|=>|\s(?=[*_(\[`]{{0,3}}[A-Z][*_)\]`]{{0,3}}(?:[.!\s]|\Z)))[*_`\s:]{{0,8}}",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"\b(?:I|we)(?:['’](?:d|ll|m|ve)|\s+(?:would|will|should|must|shall|am|have|now|therefore|thus|hence|finally|so|do|going\s+to|"
    r"have\s+to|can))*\s+(?:choose|chose|chosen|choosing|pick(?:ed|ing)?|select(?:ed|ing)?|go(?:ing)?\s+(?:with|for)|"
    r"opt(?:ing)?\s+for|vote\s+for|settle\s+(?:on|for)|say|guess|answer|conclude|recommend|think|believe)\s*:?\s*"
    r"(?:that\s+)?(?:it['’]s\s+|it\s+is\s+|it\s+must\s+be\s+)?",
    re.IGNORECASE,
)
_CONCLUDED = re.compile(
    r"(?:\b(?:so|thus|hence|therefore|ergo|conclusion|conclude|finally|it\s+is|it['’]s|(?:has|have|got|needs?)\s+to\s+be|"
    r"(?:(?:can|could)\s+only|must|will)\s+(?:surely\s+|then\s+)?be|leaves|leaving|left\s+with|"
    r"no(?=[:,.!])|yes(?=[:,.!])|I\s+mean|I\s+meant|instead|correct(?=:)|right(?=:))|∴|⇒)[*_`]{0,3}[\s:,.!]*(?:it['’]s|it\s+is|we\s+have)?\s*",
    re.IGNORECASE,
)
_PRAISED = re.compile(
    r"[)\]*_`]*,?\s+(?:it\s+(?:is|must\s+be|has\s+to\s+be)(?=\s*(?:[.,;:!—–]|\Z))|(?:is|must\s+be|would\s+be|should\s+be|has\s+to\s+be|seems|appears|looks)\s+(?:(?:clearly|therefore|thus|indeed|the|"
    r"most|only|probably|definitely|obviously|hence|our|my|to\s+be|a|very|absolutely|certainly|single|one)\s+)*"
    r"(?:correct|right(?!\s+(?:next|behind|beside|after|before|about|in|on|at|there|away|now|above|below))|best|true|answer|accurate)\b)",
    re.IGNORECASE,
)
_AS_CLAUSE = re.compile(
    r"[)\]*_`]*\s+(?:is|are|was|were|has|have|had|does|did|isn['’]t|wasn['’]t|doesn['’]t|could|might|may|cannot|can['’]t|can|seems?|"
    r"looks?|appears?)\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"[)\]*_`]*(?:\s+(?:(?:is|are|was|were|seems?|looks?|appears?|can|could|would|must|should|does|do|did|has|to|be)\s+)+"
    r"(?:(?:clearly|also|therefore|thus|obviously|definitely|probably|simply|just|a|an|the|both|all|ruled|be|common|mere|only)\s+)*"
    r"(?:not|never|wrong|incorrect|false|untrue|impossible|out|bad|invalid|inaccurate|eliminated|excluded|rejected|distractors?|trap)\b"
    r"|\s+(?:isn|aren|wasn|weren|can|couldn|doesn|won|wouldn|didn)['’]?t\b|\s+cannot\b"
    r"|\s*[:—–-]?\s*(?:no|false|wrong|incorrect)\b(?!\s*:)|\s+(?:out|fails?)\b|\s*\?\s*no\b)",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"\b(?:over|than|everything\s+but|all\s+but|apart\s+from|besides|instead\s+of|unlike|eliminat\w*|exclud\w*|reject\w*|rul\w*\s+out|cross\w*\s+out|dismiss\w*|avoid\w*|discard\w*|"
    r"(?:not|never|n['’]t|cannot)\s+(?:say|choose|pick|select|go\s+with|take|mean|want|think|believe|it['’]s)|"
    r"(?:wrong|incorrect|false|tempting|trap|distractor|confused\s+with|mistaken\s+for|similar\s+to|opposite\s+of)"
    r"(?:\s+(?:answers?|options?|choices?|ones?))?(?:\s+(?:is|are|was|be|would\s+be))?\s*:?)"
    r"(?:\s+(?:option|choice|answer|be|it|is|the|that|out))*[\s$*_`(\[:]*\Z",
    re.IGNORECASE,
)
_UNASSERTED = re.compile(
    r"(?:\b(?:if|suppose|supposing|assum\w+|whether|unless|imagine|pretend|when|were|would\s+be\s+if|say\s+that|thought|thinking)\b"
    r"[^,]*|(?:\b(?:not|never|doubt\w*|den(?:y|ies)|false|hardly|unlikely|cannot|no\s+reason|no\s+way)|n['’]t)\b[^,:]*"
    r"|\b(?:some|others|people|many|they|you|he|she|one|students?|anyone|everyone|most|who|friend|user)\b.*"
    r"\b(?:say|says|said|think|thinks|claims?|claimed|believes?|argues?|guess|guesses|answers?|tempted)\b.*"
    r"|\b(?:wrong|incorrect|false|bad|worst|other|another|alternative|tempting|distracting|common|second|worse|popular|na[iï]ve|usual|typical|"
    r"first|initial|previous|earlier|his|her|their|your|which|what|closest|possible|no|any|every|each)\s+(?:\w+\s+){0,2}"
    r"|\b(?:is|was)\s+(?:the|that|this|my)\s+(?:\w+\s+)?)\Z",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r".*(?:[.;!?\n]|\b(?:but|yet|however|though)\b)", re.IGNORECASE | re.DOTALL)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correction|sorry|oops|hmm+|scratch\s+that|mistaken?|I\s+mean|I\s+meant|second\s+thought|kidding|no(?=\s*[,.:;!—–-])|"
    r"but|however|yet|instead|still)\b",
    re.IGNORECASE,
)
_JOINED = re.compile(
    rf"[\s)\]*_`$\"”]*(?:[,;]|[,;.]?\s*{OR}|[,;]?\s*\b(?:and|und|et|y|und|и|e)\b|/|&|\+|\|)?(?:\s*\b(?:maybe|perhaps|possibly|also|else|even|option|choice|"
    r"both|the\s+answer\s+is|it\s+is|is)\b)*[\s(\[*_`$\"“]*",
    re.IGNORECASE,
)
_OR_LINK = re.compile(rf"{OR}|/|&", re.IGNORECASE)
_TOO = re.compile(r"[^.;\n]{0,60}\b(?:also|too|as\s+well|equally|both|another)\b", re.IGNORECASE)
_ARTICLE = re.compile(
    r"\s+(?!(?:is|isn|was|or|and|over|because|since|as|but|not|rather|instead|than|vs|versus|seems|looks|appears|would|must|should|"
    r"cannot|can|could|may|might|gives|says|states|fits|works|means|which|due|only|too|also|while|whereas|although|though|if|unless|"
    r"nor|does|doesn|has|contains|describes|matches|refers|where|by|fails|wins|makes|of\s+the\s+options|given|it\s+is|it\s+must)\b)[a-z]"
)
_REASON = re.compile(
    r"\w[^.;!?\n]*\b(?:given(?:\s+that)?|seeing\s+that|considering\s+that)\s+(?:option\s+)?[(\[*_`]*\Z", re.IGNORECASE
)
_SENTENCE = re.compile(r"\s*([^.!\n]{1,200})[.!]\s+(?=\S)")
_END_OF_TEXT = re.compile(
    r"[*_`$)\]}\"”]*(?:\s*\Z|\s*\n|[.,;:!?](?=\s|\Z)|\s*[(—–]|\s+(?:because|since|given|as|for|which|and\s+not|not|rather|over|instead|but)\b)",
    re.IGNORECASE,
)
_NEAR, _FAR = 60, 300
_TRIED = 64
"""So many statements are tried, from the last on."""
_MOST = 20_000
"""Characters at the end of a text that are read."""


@dataclass(frozen=True, slots=True)
class _Mention:
    """A letter that stands as the label of an option, and where."""

    letter: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a text calls its answer at one place: the letter, or None where it names two; where that begins and ends."""

    letter: str | None
    start: int
    end: int


def fold(text: str) -> str:
    """A text as options are compared: without case, markup around it, a last full stop, or differences of white space."""
    return " ".join(text.casefold().split()).strip(" .*_`$\"'“”")


def option_in(text: str, options: Mapping[str, str], *, named: bool) -> str | None:
    """The letter of the option that a text settles on; None where it settles on none, or on two.

    Args:
        text: what is read; of a long one its last 20,000 characters.
        options: the folded text of each option by its letter (`fold`); empty where any letter is an option.
        named: the text is itself what an answer was said to be (inside a box or tags), so a label at its beginning is the answer
            and the rest explains it.

    >>> option_in("The answer is (A). Option (B) is in England.", {}, named=False)
    'A'
    >>> option_in("Paris is (A), London is (B)", {}, named=False) is None
    True
    """
    return _Reader(without_markup(text[-_MOST:]), options).read(named)


def _denied(behind: str) -> bool:
    """Whether what stands behind an option says that it is none."""
    return denied_behind(behind) or _REFUSED.match(behind) is not None


class _Reader:
    """One text and its options."""

    def __init__(self, text: str, options: Mapping[str, str]) -> None:
        self.text, self.options = text, options
        self.gone: dict[int, bool] = {}
        self.texts = sorted(((text, letter) for letter, text in options.items() if text), key=lambda pair: -len(pair[0]))
        self.longest = max(map(len, options.values()), default=0)
        self.mentions = list(self._mentioned())
        self.starts = [m.start for m in self.mentions]
        self.stated = list(_STATED.finditer(text))

    def read(self, named: bool) -> str | None:
        """As `option_in`."""
        whole = self._whole(self.text)
        if whole is not None:
            return whole or None
        if named and (first := self._begins(0, len(self.text))) is not None:
            return first.letter
        claim = self._claimed()
        return self._only_one() if claim is None else claim.letter

    # ---- what is an option

    def _known(self, letter: str) -> str | None:
        return letter.upper() if not self.options or letter.upper() in self.options else None

    def _whole(self, text: str) -> str | None:
        """The option that a text is and nothing else; empty where it is two, None where it is none."""
        if len(text) > 2 * self.longest + _FAR:
            return None
        alone = _ALONE.fullmatch(text.strip())
        if alone:
            return self._known(alone[1]) or ""
        said = fold(text)
        texts = [letter for option, letter in self.texts if option == said]
        if texts:
            return texts[0] if len(texts) == 1 else ""
        labelled = _LABEL.fullmatch(text.strip())
        if labelled and self.options.get(labelled[1].upper()) == fold(labelled[2]):
            return labelled[1].upper()
        return None

    def _mentioned(self) -> Iterator[_Mention]:
        for found in _LETTER.finditer(self.text):
            letter = next(group for group in found.groups() if group)
            if self._known(letter) and not self._is_word(found):
                yield _Mention(letter.upper(), found.start(), found.end())

    def _is_word(self, found: re.Match[str]) -> bool:
        """Whether a lone capital is the article A or the pronoun I."""
        if found[3] and in_phrase(self.text, found.span(), self.options.get(found[3], "")):
            return True
        if found[3] not in ("A", "I"):
            return False
        behind, before = self.text[found.end() : found.end() + 20], self.text[max(0, found.start() - 12) : found.start()]
        if re.search(r"\b(?:option|choice|answer|letter)\s+\Z", before, re.IGNORECASE):
            return False
        if found[3] == "A":
            return _ARTICLE.match(behind) is not None
        return re.match(r"\s+(?!(?:is|or|and)\b)[a-z]", behind) is not None

    # ---- what is said of it

    def _dismissed(self, mention: _Mention) -> bool:
        """Whether the text says that an option is none, or names it beside the one that it prefers."""
        if mention.start not in self.gone:
            before = self.text[max(0, mention.start - _NEAR) : mention.start]
            behind = self.text[mention.end : mention.end + _NEAR]
            self.gone[mention.start] = bool(denied(before) or doubted(before) or _LEFT_OUT.search(before) or _denied(behind))
        return self.gone[mention.start]

    def _begins(self, at: int, end: int) -> _Claim | None:
        """The option that a part of the text begins with, by letter or by text; without a letter where it names two."""
        lead = re.compile(rf"[\s*_`$\"“>]{{0,40}}{_FILLERS}[*_`$\"“]{{0,9}}", re.IGNORECASE).match(self.text, at, end)
        start = lead.end() if lead else at
        label = self._label_at(start)
        if label is not None:
            if _denied(self.text[label.end : label.end + _NEAR]):
                return None
            return _Claim(None if self._joined(label.end, label.letter) else label.letter, at, label.end)
        return self._option_at(start)

    def _label_at(self, start: int) -> _Mention | None:
        found = _LETTER.match(self.text, start)
        if found:
            letter = next(group for group in found.groups() if group)
            known = self._known(letter) and not self._is_word(found)
            return _Mention(letter.upper(), start, found.end()) if known else None
        small = re.compile(r"([a-z])(?=[.,;:!)*_`$]*(?:\s*\Z|\s*\n|\s+(?:because|since|as|or|and)\b|[.,;:]\s))").match(
            self.text, start
        )
        if small and self._known(small[1]):
            return _Mention(small[1].upper(), start, small.end())
        return None

    def _option_at(self, start: int) -> _Claim | None:
        """The longest option whose text stands at a place, and ends there too."""
        if not self.texts:
            return None
        part = self.text[start : start + 2 * self.longest + _NEAR].lstrip(" \t\"'“‘*_`$(")
        begin = start + len(self.text[start : start + 2 * self.longest + _NEAR]) - len(part)
        for option, letter in self.texts:
            found = re.match(r"\s+".join(map(re.escape, option.split())), part, re.IGNORECASE)
            if found and _END_OF_TEXT.match(self.text, begin + found.end()):
                same = [other for text, other in self.texts if text == option]
                end = begin + found.end()
                return _Claim(None if len(same) > 1 or self._joined(end, letter) else letter, start, end)
        behind = self._joined_option(part)
        return _Claim(None, start, start + 1) if behind else None

    def _joined_option(self, part: str) -> bool:
        """Whether two options stand side by side: ``London or Paris``."""
        for option, _ in self.texts:
            found = re.match(
                r"\s+".join(map(re.escape, option.split())) + r"\s*(?:,|/|&|,?\s*\b(?:or|and)\b)\s*", part, re.IGNORECASE
            )
            if found and any(fold(part[found.end() :]).startswith(other) for other, _ in self.texts if other != option):
                return True
        return False

    def _joined(self, end: int, letter: str) -> bool:
        """Whether another option stands behind one as its equal: ``A or B``."""
        link = _JOINED.match(self.text, end, end + _NEAR)
        assert link is not None  # it may be empty
        found = _LETTER.match(self.text, link.end())
        if found and link.end() > end:
            other = next(group for group in found.groups() if group).upper()
            mention = _Mention(other, found.start(), found.end())
            clause = _AS_CLAUSE.match(self.text, found.end()) and not _OR_LINK.search(link.group())
            if other != letter and self._known(other) and not self._is_word(found) and not clause:
                return not self._dismissed(mention)
        if _OR_LINK.search(link.group()) or re.search(r"\band\b", link.group()):
            rest = fold(self.text[link.end() : link.end() + self.longest + _NEAR])
            return any(rest.startswith(text) for text, other in self.texts if other != letter)
        return False

    # ---- what it calls its answer

    def _claimed(self) -> _Claim | None:
        """The last statement of an answer, or else the last verdict or conclusion; what takes a statement back stands for it."""
        strong, weak = self._last_statement(), self._last_conclusion()
        if strong is None or weak is None:
            last = strong or weak
        else:
            between = self.text[strong.end : weak.start + 12] if weak.start > strong.start else ""
            last = weak if _TAKEN_BACK.search(between) else strong
        return None if last is None else self._kept(last)

    def _kept(self, claim: _Claim) -> _Claim:
        """A claim that nothing behind it takes back."""
        rest = self.text[claim.end :]
        for mention in self.mentions:
            if mention.start < claim.end:
                continue
            if mention.letter == claim.letter and self._dismissed(mention):
                return _Claim(None, claim.start, claim.end)
            hard = re.search(
                r"\b(?:wait|correction|sorry|oops|scratch\s+that|I\s+meant?|second\s+thought|kidding|no(?=\s*[,.:;!—–-]))",
                rest[max(0, mention.start - claim.end - _NEAR) : mention.start - claim.end],
                re.IGNORECASE,
            )
            if hard and mention.letter != claim.letter and not self._dismissed(mention):
                return _Claim(None, claim.start, claim.end)
        return claim

    def _last_statement(self) -> _Claim | None:
        found: list[tuple[int, int, bool]] = [(m.start(), m.end(), True) for m in self.stated]
        found += [(m.start(), m.end(), False) for m in _CHOSEN.finditer(self.text)]
        for start, end, answer in sorted(found, reverse=True)[:_TRIED]:
            if self._unasserted(start):
                continue
            claim = self._begins(end, len(self.text))
            if claim is not None and (answer or not _AS_CLAUSE.match(self.text, claim.end)):
                return _Claim(claim.letter, start, claim.end)
            if claim is None and answer and (claim := self._in_line(start, end)) is not None:
                return claim
        return None

    def _in_line(self, start: int, end: int) -> _Claim | None:
        """What a statement that does not begin with an option says in its sentence."""
        line = re.compile(r"[^.\n]{0,300}").match(self.text, end)
        stop = line.end() if line else end
        inside = self.mentions[bisect_left(self.starts, end) : bisect_left(self.starts, stop)]
        inside = [m for m in inside if not self._dismissed(m)]
        letters = {m.letter for m in inside}
        return _Claim(letters.pop() if len(letters) == 1 else None, start, inside[-1].end) if inside else None

    def _last_conclusion(self) -> _Claim | None:
        """The last option that is praised, concluded, or stands by itself at the end or on the first line."""
        claims: list[_Claim] = []
        for found in _CONCLUDED.finditer(self.text):
            claim = self._begins(found.end(), len(self.text))
            closed = claim is not None and _END_OF_TEXT.match(self.text, claim.end)
            if claim is not None and (claim.letter is None or closed) and not self._unasserted(found.start()):
                claims.append(_Claim(claim.letter, found.start(), claim.end))
        for mention in self.mentions:
            praised = _PRAISED.match(self.text, mention.end)
            if praised and not self._dismissed(mention) and not self._unasserted(mention.start):
                too = _TOO.match(self.text, praised.end()) and any(c.letter != mention.letter for c in claims)
                claims.append(_Claim(None if too else mention.letter, mention.start, praised.end()))
        apart = self._apart()
        claims += [apart] if apart else []
        return max(claims, key=lambda c: c.start, default=None)

    def _unasserted(self, at: int) -> bool:
        """Whether what begins at a place is supposed, denied, asked, or said to be what others say."""
        before = self.text[max(0, at - _NEAR) : at]
        return doubted(before) or _UNASSERTED.search(_CLAUSE.sub("", before)) is not None

    def _apart(self) -> _Claim | None:
        """The option that is the last line of several, or the first; without a letter where two lines are different ones."""
        lines = [line for line in self.text.split("\n") if line.strip()]
        if len(lines) < 2:
            return None
        first, second, before, last = (self._whole(lines[i]) for i in (0, 1, -2, -1))
        first = None if second is not None and len(lines) > 2 else first  # a list of the options
        found = {letter for letter in (first, last if last is None else before, last) if letter is not None}
        if not found:
            return None
        at = self.text.rindex(lines[-1]) if last is not None else 0
        return _Claim(found.pop() if len(found) == 1 and "" not in found else None, at, at + len(lines[-1 if at else 0]))

    def _only_one(self) -> str | None:
        """The only option that the text names, and does not dismiss."""
        kept = {m.letter for m in self.mentions if not self._dismissed(m) and not self._in_doubt(m)}
        left_out = {m.letter for m in self.mentions if self._dismissed(m)}
        first = _SENTENCE.match(self.text)
        lead = self._whole(first[1]) if first else None
        if first and lead and len(kept) == 1 and lead not in kept and not _TAKEN_BACK.search(self.text, first.end()):
            return lead  # a sentence by itself, and another option is named behind it
        return next(iter(kept)) if len(kept) == 1 and not kept & left_out else None

    def _in_doubt(self, mention: _Mention) -> bool:
        """Whether a statement about an option is no assertion: ``I doubt that the answer is B``."""
        for found in self.stated[max(0, self._stated_before(mention.start) - 2) :][:3]:
            if 0 <= mention.start - found.end() <= 12:
                return self._unasserted(found.start())
        if self.text[mention.end : mention.end + 3].lstrip(")*_`").startswith("?"):
            return True
        if _REASON.search(self.text, max(0, mention.start - _NEAR), mention.start):
            return True
        return _PRAISED.match(self.text, mention.end) is not None and self._unasserted(mention.start)

    def _stated_before(self, at: int) -> int:
        return bisect_left(self.stated, at, key=lambda found: found.start())

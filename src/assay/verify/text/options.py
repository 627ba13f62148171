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

from assay.verify.language import denied, denied_behind, doubted, text_behind
from assay.verify.text.letters import in_phrase, only_mentioned
from assay.verify.text.markup import without_markup
from assay.verify.text.statements import (
    ALONE,
    ARTICLE,
    AS_CLAUSE,
    BY_OTHERS,
    CHOSEN,
    CLAUSE,
    CONCLUDED,
    END_OF_TEXT,
    FILLERS,
    GAP,
    JOINED,
    LABEL,
    LEFT_OUT,
    LETTER,
    LISTED,
    OR_LINK,
    PRAISED,
    PRAISED_BEHIND,
    REASON,
    REFUSED,
    SENTENCE,
    STATED,
    TAKEN_BACK,
    TOO,
    UNASSERTED,
)

__all__ = ["fold", "option_in"]

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
    return denied_behind(behind) or REFUSED.match(behind) is not None


class _Reader:
    """One text and its options."""

    def __init__(self, text: str, options: Mapping[str, str]) -> None:
        self.text, self.options = text, options
        self.gone: dict[int, bool] = {}
        self.texts = sorted(((text, letter) for letter, text in options.items() if text), key=lambda pair: -len(pair[0]))
        self.longest = max(map(len, options.values()), default=0)
        self.mentions = list(self._mentions())
        self.starts = [m.start for m in self.mentions]
        self.stated = list(STATED.finditer(text))

    def read(self, named: bool) -> str | None:
        """As `option_in`."""
        whole = self._whole(self.text)
        if whole is not None:
            return whole or None
        if named and (first := self._begins(0, len(self.text))) is not None:
            return first.letter
        claim = self._last_claim()
        return self._only_one() if claim is None else claim.letter

    # ---- what is an option

    def _known_letter(self, letter: str) -> str | None:
        return letter.upper() if not self.options or letter.upper() in self.options else None

    def _whole(self, text: str) -> str | None:
        """The option that a text is and nothing else; empty where it is two, None where it is none."""
        if len(text) > 2 * self.longest + _FAR:
            return None
        alone = ALONE.fullmatch(text.strip())
        if alone:
            return self._known_letter(alone[1]) or ""
        said = fold(text)
        texts = [letter for option, letter in self.texts if option == said]
        if texts:
            return texts[0] if len(texts) == 1 else ""
        labelled = LABEL.fullmatch(text.strip())
        if labelled and self.options.get(labelled[1].upper()) == fold(labelled[2]):
            return labelled[1].upper()
        return None

    def _mentions(self) -> Iterator[_Mention]:
        for found in LETTER.finditer(self.text):
            letter = next(group for group in found.groups() if group)
            if self._known_letter(letter) and not self._is_word(found):
                yield _Mention(letter.upper(), found.start(), found.end())

    def _praised_options(self) -> Iterator[_Mention]:
        """The options whose texts the text praises: ``London is the correct answer``."""
        if not self.texts:
            return
        for found in PRAISED_BEHIND.finditer(self.text):
            before = self.text[max(0, found.start() - self.longest - _NEAR) : found.start()].casefold().rstrip("\"'”’")
            named = [(text, letter) for text, letter in self.texts if re.search(rf"(?<!\w){re.escape(text)}\Z", before)]
            if named and sum(text == named[0][0] for text, _ in named) == 1:  # the longest, and no other option's text too
                yield _Mention(named[0][1], found.start() - len(named[0][0]), found.start())

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
            return ARTICLE.match(behind) is not None
        return re.match(r"\s+(?!(?:is|or|and)\b)[a-z]", behind) is not None

    # ---- what is said of it

    def _dismissed(self, mention: _Mention) -> bool:
        """Whether the text says that an option is none, or names it beside the one that it prefers."""
        if mention.start not in self.gone:
            before = self.text[max(0, mention.start - _NEAR) : mention.start]
            behind = self.text[mention.end : mention.end + _NEAR]
            self.gone[mention.start] = bool(denied(before) or doubted(before) or LEFT_OUT.search(before) or _denied(behind))
        return self.gone[mention.start]

    def _begins(self, at: int, end: int) -> _Claim | None:
        """The option that a part of the text begins with, by letter or by text; without a letter where it names two."""
        lead = re.compile(rf"[\s*_`$\"“>]{{0,40}}{FILLERS}[*_`$\"“]{{0,9}}", re.IGNORECASE).match(self.text, at, end)
        start = lead.end() if lead else at
        label = self._label_at(start)
        if label is not None:
            if _denied(self.text[label.end : label.end + _NEAR]):
                return None
            two = self._joined(label.end, label.letter) or self._beside_another(label)
            return _Claim(None if two else label.letter, at, label.end)
        return self._option_at(start)

    def _beside_another(self, label: _Mention) -> bool:
        """Whether another option's text stands behind a letter as its own (``(B) Paris``), or more letters (``B. C. D.``)."""
        gap = GAP.match(self.text, label.end)
        option = self._option_at(gap.end()) if gap else None
        another = option is not None and option.letter not in (None, label.letter) and option.end + 2 >= len(self.text.rstrip())
        return another or LISTED.match(self.text, label.end) is not None

    def _label_at(self, start: int) -> _Mention | None:
        found = LETTER.match(self.text, start)
        if found:
            letter = next(group for group in found.groups() if group)
            known = self._known_letter(letter) and not self._is_word(found)
            return _Mention(letter.upper(), start, found.end()) if known else None
        small = re.compile(r"([a-z])(?=[.,;:!)*_`$]*(?:\s*\Z|\s*\n|\s+(?:because|since|as|or|and)\b|[.,;:]\s))").match(
            self.text, start
        )
        if small and self._known_letter(small[1]):
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
            if found and END_OF_TEXT.match(self.text, begin + found.end()):
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
        link = JOINED.match(self.text, end, end + _NEAR)
        assert link is not None  # it may be empty
        found = LETTER.match(self.text, link.end())
        if found and link.end() > end:
            other = next(group for group in found.groups() if group).upper()
            mention = _Mention(other, found.start(), found.end())
            clause = AS_CLAUSE.match(self.text, found.end()) and not OR_LINK.search(link.group())
            if other != letter and self._known_letter(other) and not self._is_word(found) and not clause:
                return not self._dismissed(mention)
        if OR_LINK.search(link.group()) or re.search(r"\band\b", link.group()):
            rest = fold(self.text[link.end() : link.end() + self.longest + _NEAR])
            return any(rest.startswith(text) for text, other in self.texts if other != letter)
        return False

    # ---- what it calls its answer

    def _last_claim(self) -> _Claim | None:
        """The last statement of an answer, or else the last verdict or conclusion; what takes a statement back stands for it."""
        strong, weak = self._last_statement(), self._last_conclusion()
        if strong is None or weak is None:
            last = strong or weak
        else:
            between = self.text[strong.end : weak.start + 12] if weak.start > strong.start else ""
            last = weak if TAKEN_BACK.search(between) else strong
        return None if last is None else self._keep_claim(last)

    def _keep_claim(self, claim: _Claim) -> _Claim:
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
        found += [(m.start(), m.end(), False) for m in CHOSEN.finditer(self.text)]
        for start, end, answer in sorted(found, reverse=True)[:_TRIED]:
            if self._unasserted(start):
                continue
            claim = self._begins(end, len(self.text))
            if claim is not None and (answer or not AS_CLAUSE.match(self.text, claim.end)):
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
        for found in CONCLUDED.finditer(self.text):
            claim = self._begins(found.end(), len(self.text))
            closed = claim is not None and END_OF_TEXT.match(self.text, claim.end)
            if claim is not None and (claim.letter is None or closed) and not self._unasserted(found.start()):
                claims.append(_Claim(claim.letter, found.start(), claim.end))
        for mention in (*self.mentions, *self._praised_options()):
            praised = PRAISED.match(self.text, mention.end)
            if praised and not self._dismissed(mention) and not self._unasserted(mention.start):
                too = TOO.match(self.text, praised.end()) and any(c.letter != mention.letter for c in claims)
                claims.append(_Claim(None if too else mention.letter, mention.start, praised.end()))
        apart = self._lone_option()
        claims += [apart] if apart else []
        return max(claims, key=lambda c: c.start, default=None)

    def _unasserted(self, at: int) -> bool:
        """Whether what begins at a place is supposed, denied, asked, or said to be what others say."""
        before = self.text[max(0, at - _NEAR) : at]
        return doubted(before) or UNASSERTED.search(text_behind(CLAUSE, before)) is not None

    def _lone_option(self) -> _Claim | None:
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
        first = SENTENCE.match(self.text)
        lead = self._whole(first[1]) if first else None
        if first and lead and self._led(lead, kept, left_out) and not TAKEN_BACK.search(self.text, first.end()):
            return lead  # a sentence by itself, and another option is named behind it
        told = any(m.letter in kept and not self._told_of(m) for m in self.mentions)
        return next(iter(kept)) if len(kept) == 1 and told and not kept & left_out else None

    def _led(self, lead: str, kept: set[str], left_out: set[str]) -> bool:
        """Whether a first sentence is an option by itself, and the others behind it are only spoken of or left out."""
        if lead not in kept:
            return len(kept) == 1
        others = [m for m in self.mentions if m.letter != lead]
        spoken = all(self._dismissed(m) or AS_CLAUSE.match(self.text, m.end) for m in others)
        return bool(others) and spoken and lead not in left_out

    def _told_of(self, mention: _Mention) -> bool:
        """Whether a text speaks of a letter and does not choose it, or puts another option's text behind it."""
        before = self.text[max(0, mention.start - self.longest - _NEAR) : mention.start].casefold().rstrip(' *_`"”')
        named = next((letter for text, letter in self.texts if re.search(rf"(?<!\w){re.escape(text)}\Z", before)), mention.letter)
        return named != mention.letter or only_mentioned(self.text, mention.start, mention.end) or self._beside_another(mention)

    def _in_doubt(self, mention: _Mention) -> bool:
        """Whether a statement about an option is no assertion: ``I doubt that the answer is B``."""
        for found in self.stated[max(0, self._stated_before(mention.start) - 2) :][:3]:
            if 0 <= mention.start - found.end() <= 12:
                return self._unasserted(found.start())
        if self.text[mention.end : mention.end + 3].lstrip(")*_`").startswith("?"):
            return True
        before = self.text[max(0, mention.start - _NEAR) : mention.start]
        if REASON.search(before) or BY_OTHERS.search(text_behind(CLAUSE, before)):
            return True
        return PRAISED.match(self.text, mention.end) is not None and self._unasserted(mention.start)

    def _stated_before(self, at: int) -> int:
        return bisect_left(self.stated, at, key=lambda found: found.start())

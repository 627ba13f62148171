"""Programs over text, and patterns: what a chain of operations gives, which strings a regular expression matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.text.items import SetMatch
from assay_tasks.code.dialects import dialect

__all__ = ["Matches", "Strings", "pattern_text"]

_WORDS = (
    "apple",
    "banana",
    "cherry",
    "dragon",
    "eleven",
    "falcon",
    "ginger",
    "hammer",
    "island",
    "jungle",
    "kitten",
    "lemon",
    "marble",
    "needle",
    "orange",
    "pepper",
)
_LANGUAGES = ("python", "javascript", "perl", "lua")

_LINES: Mapping[str, Mapping[str, str]] = {
    "python": {
        "reverse": "s = s[::-1]",
        "upper": "s = s.upper()",
        "replace": 's = s.replace("{a}", "{b}")',
        "front": 's = "{a}" + s',
        "back": 's = s + "{a}"',
        "cut": "s = s[{i}:]",
        "head": "s = s[:{i}]",
        "twice": "s = s + s",
        "turn": "s = s[{i}:] + s[:{i}]",
        "every": "s = s[::2]",
    },
    "javascript": {
        "reverse": 's = s.split("").reverse().join("");',
        "upper": "s = s.toUpperCase();",
        "replace": 's = s.split("{a}").join("{b}");',
        "front": 's = "{a}" + s;',
        "back": 's = s + "{a}";',
        "cut": "s = s.slice({i});",
        "head": "s = s.slice(0, {i});",
        "twice": "s = s + s;",
        "turn": "s = s.slice({i}) + s.slice(0, {i});",
        "every": 's = [...s].filter((c, i) => i % 2 === 0).join("");',
    },
    "perl": {
        "reverse": "$s = reverse $s;",
        "upper": "$s = uc $s;",
        "replace": "$s =~ s/{a}/{b}/g;",
        "front": '$s = "{a}" . $s;',
        "back": '$s = $s . "{a}";',
        "cut": "$s = substr($s, {i});",
        "head": "$s = substr($s, 0, {i});",
        "twice": "$s = $s . $s;",
        "turn": "$s = substr($s, {i}) . substr($s, 0, {i});",
        "every": "$s =~ s/(.)./$1/g;",
    },
    "lua": {
        "reverse": "s = s:reverse()",
        "upper": "s = s:upper()",
        "replace": 's = s:gsub("{a}", "{b}")',
        "front": 's = "{a}" .. s',
        "back": 's = s .. "{a}"',
        "cut": "s = s:sub({i} + 1)",
        "head": "s = s:sub(1, {i})",
        "twice": "s = s .. s",
        "turn": "s = s:sub({i} + 1) .. s:sub(1, {i})",
        "every": 's = s:gsub("(.).", "%1")',
    },
}
_FRAMES = {
    "python": ('s = "{s}"', "print(s)"),
    "javascript": ('let s = "{s}";', "console.log(s);"),
    "perl": ('my $s = "{s}";', 'print "$s\\n";'),
    "lua": ('local s = "{s}"', "print(s)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strings(Problem):
    """What a program that changes a string prints, in one of four languages. The level is the number of operations, 1 to 9.

    >>> Strings().solve({"word": "lemon", "language": "lua", "ops": [["reverse"], ["cut", 2], ["back", "x"]]}).answer
    'melx'
    """

    name: str = "code/strings"
    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "What does this {language} program print?\n\n{code}",
        "Give the output of the following {language} program.\n\n{code}",
        "Which text is written when this {language} program runs?\n\n{code}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Operations that keep between 3 and 24 letters."""
        first = rng.choice(_WORDS) + (rng.choice(_WORDS) if level < 3 or rng.random() < 0.5 else "")
        word, ops = first, list[Any]()
        while len(ops) < 2 * level - 1:
            op = self._op(word, rng)
            after = _change_word(word, op)
            if 3 <= len(after) <= 24 and after != word and (not ops or op[0] != ops[-1][0]):
                ops.append(op)
                word = after
        return {"word": first, "language": rng.choice(_LANGUAGES), "ops": ops}

    def _op(self, word: str, rng: Random) -> list[Any]:
        kind = rng.choice(tuple(_LINES["python"]))
        match kind:
            case "replace":
                return [kind, rng.choice(word), rng.choice("klmnoprst")]
            case "front" | "back":
                return [kind, rng.choice("aeiouxyz") + rng.choice("aeiouxyz")]
            case "cut" | "head" | "turn":
                return [kind, rng.randint(1, len(word) - 1)]
            case _:
                return [kind]

    def solve(self, facts: Facts) -> Solution:
        """One operation after another."""
        word, steps = facts["word"], list[str]()
        for op in facts["ops"]:
            word = _change_word(word, op)
            steps.append(word)
        return Solution(answer=word, steps="\n".join(steps), effort=sum(map(len, steps)))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The program in a fence."""
        language = facts["language"]
        first, last = _FRAMES[language]
        lines = [first.format(s=facts["word"]), *(_line(language, op) for op in facts["ops"]), last]
        return {"language": dialect(language).title, "code": "\n".join([f"```{language}", *lines, "```"])}


def _change_word(word: str, op: Sequence[Any]) -> str:
    match op[0]:
        case "reverse":
            return word[::-1]
        case "upper":
            return word.upper()
        case "replace":
            return word.replace(op[1], op[2])
        case "front":
            return op[1] + word
        case "back":
            return word + op[1]
        case "cut":
            return word[op[1] :]
        case "head":
            return word[: op[1]]
        case "twice":
            return word + word
        case "turn":
            return word[op[1] :] + word[: op[1]]
        case _:
            return word[::2]


def _line(language: str, op: Sequence[Any]) -> str:
    line = _LINES[language][op[0]]
    values = op[1:]
    return (
        line.replace("{a}", str(values[0]) if values else "")
        .replace("{i}", str(values[0]) if values else "")
        .replace("{b}", str(values[-1]) if values else "")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches(Problem):
    """Which of some strings a regular expression matches as a whole. The level is the size of the expression.

    >>> Matches().solve({"pattern": ["cat", ["star", ["set", "ab"]], ["lit", "c"]], "strings": ["c", "abc", "acb"]}).answer
    'c, abc'
    """

    name: str = "code/matches"
    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "Which of these strings does the regular expression {pattern} match as a whole?\n{strings}\nList them, separated by "
        "commas.",
        "Take the regular expression {pattern}. Name all strings in this list that match it from the first to the last "
        "character, "
        "separated by commas.\n{strings}",
        "From the list\n{strings}\ngive those strings that the regular expression {pattern} matches completely, with commas "
        "between.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """An expression, strings that it makes, and others that are near to them."""
        for _ in range(100):
            pattern = _pattern(1 + level, rng)
            strings: list[str] = []
            while len(strings) < 5 + level // 2:
                text = _make_match(pattern, rng)
                if rng.random() < 0.6:
                    text = _bend_text(text, rng)
                if 0 < len(text) <= 12 and text not in strings:
                    strings.append(text)
                elif rng.random() < 0.02:
                    break
            found = sum(len(text) in _ends(pattern, text, {0}) for text in strings)
            if len(strings) >= 5 and 0 < found < len(strings):
                return {"pattern": pattern, "strings": strings}
        raise DataError(f"{self.name}: level {level}: no expression told strings apart")

    def solve(self, facts: Facts) -> Solution:
        """By the sets of places that each part of the expression may end at."""
        found = [text for text in facts["strings"] if len(text) in _ends(facts["pattern"], text, {0})]
        others = [text for text in facts["strings"] if text not in found]
        steps = f"These do not match: {', '.join(others)}."
        effort = len(pattern_text(facts["pattern"])) * sum(map(len, facts["strings"]))
        return Solution(answer=", ".join(found), gold=found, steps=steps, effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The expression, and the strings one to a line."""
        return {"pattern": f"`{pattern_text(facts['pattern'])}`", "strings": "\n".join(facts["strings"])}

    def verifier(self, form: Form) -> Verifier:
        """The set, case not forgiven."""
        return SetMatch(casefold=False, where=form.place)


Pattern = list[Any]
"""``["lit", text]``, ``["set", letters]``, ``["cat" | "alt", pattern, ...]`` or ``["star" | "plus" | "maybe", pattern]``."""


def _pattern(size: int, rng: Random) -> Pattern:
    parts: list[Pattern] = []
    for _ in range(size):
        kind = rng.randrange(4)
        if kind == 0:
            text = "".join(rng.choice("abc") for _ in range(rng.randint(1, 2)))
            if parts and parts[-1][0] == "lit":  # ab then c reads as a then bc: one expression, so one pattern
                parts[-1] = ["lit", parts[-1][1] + text]
            else:
                parts.append(["lit", text])
        elif kind == 1:
            parts.append([rng.choice(("star", "plus", "maybe")), ["set", "".join(sorted(rng.sample("abcd", 2)))]])
        elif kind == 2:
            options = {"".join(rng.choice("abcd") for _ in range(rng.randint(1, 2))) for _ in range(6)}
            parts.append(["alt", *(["lit", o] for o in sorted(options)[:2])])
        else:
            inner = ["cat", ["lit", rng.choice("abc")], ["set", "".join(sorted(rng.sample("abcd", 2)))]]
            parts.append([rng.choice(("star", "plus", "maybe")), inner])
    return ["cat", *parts]


def pattern_text(p: Pattern) -> str:
    """The expression as it is written."""
    match p[0]:
        case "lit":
            return p[1]
        case "set":
            return f"[{p[1]}]"
        case "cat":
            return "".join(map(pattern_text, p[1:]))
        case "alt":
            return f"({'|'.join(map(pattern_text, p[1:]))})"
        case _:
            inner = pattern_text(p[1]) if p[1][0] == "set" else f"({pattern_text(p[1])})"
            return inner + {"star": "*", "plus": "+", "maybe": "?"}[p[0]]


def _ends(p: Pattern, text: str, starts: set[int]) -> set[int]:
    """Where a match of the expression may end that begins at one of some places."""
    match p[0]:
        case "lit":
            return {i + len(p[1]) for i in starts if text.startswith(p[1], i)}
        case "set":
            return {i + 1 for i in starts if i < len(text) and text[i] in p[1]}
        case "cat":
            for part in p[1:]:
                starts = _ends(part, text, starts)
            return starts
        case "alt":
            return set[int]().union(*(_ends(part, text, starts) for part in p[1:]))
        case "maybe":
            return starts | _ends(p[1], text, starts)
        case _:
            found = _ends(p[1], text, starts) if p[0] == "plus" else set(starts)
            new = found
            while new:
                new = _ends(p[1], text, new) - found
                found = found | new
            return found


def _make_match(p: Pattern, rng: Random) -> str:
    """A string that the expression matches."""
    match p[0]:
        case "lit":
            return p[1]
        case "set":
            return rng.choice(p[1])
        case "cat":
            return "".join(_make_match(part, rng) for part in p[1:])
        case "alt":
            return _make_match(rng.choice(p[1:]), rng)
        case kind:
            low, high = {"star": (0, 2), "plus": (1, 3), "maybe": (0, 1)}[kind]
            return "".join(_make_match(p[1], rng) for _ in range(rng.randint(low, high)))


def _bend_text(text: str, rng: Random) -> str:
    at = rng.randrange(len(text) + 1)
    return rng.choice((text[:at] + rng.choice("abcd") + text[at:], text[:at] + text[at + 1 :], text[::-1]))

"""Problems with letters and words: counting, order, anagrams, ciphers, edits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from string import ascii_lowercase
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.items import ListMatch
from assay_tasks.math.arithmetic import number_in
from assay_tasks.text.lexicon import WORDS

__all__ = ["Alphabetical", "Anagram", "Caesar", "Edits", "Letters", "Substitution", "Transposition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text(Problem):
    """Base: answers are compared as text, in any case of letters."""

    domain: str = "text"

    def verifier(self, form: Form) -> Verifier:
        """Exact match but for case and outer white space."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters(Problem):
    """How often a letter occurs in some words. The level is the number of words.

    >>> Letters().solve({"letter": "e", "words": ["cheese", "tree"]}).answer
    '5'
    """

    name: str = "text/letters"
    domain: str = "text"
    levels: tuple[int, ...] = tuple(range(1, 11))

    unique: ClassVar[bool | None] = True
    templates: ClassVar[tuple[str, ...]] = (
        "How many times does the letter '{letter}' occur in: {text}?",
        "Count the letter '{letter}' in the following text: {text}",
        "In '{text}', how often do you find the letter '{letter}'?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Different words, and a letter of them, or now and then one that they lack."""
        words = rng.sample(WORDS, level + 1)
        return {"letter": rng.choice("".join(words) if rng.random() < 0.9 else ascii_lowercase), "words": words}

    def solve(self, facts: Facts) -> Solution:
        """Word by word."""
        counts = [word.count(facts["letter"]) for word in facts["words"]]
        return Solution(answer=str(sum(counts)), effort=sum(map(len, facts["words"])))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The words in a row."""
        return {"letter": facts["letter"], "text": " ".join(facts["words"])}

    def verifier(self, form: Form) -> Verifier:
        """Equality of numbers."""
        return number_in(form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alphabetical(Problem):
    """Put words in alphabetical order. The level says how many, 4 to 40.

    From level 4 on many of them begin alike.

    >>> Alphabetical().solve({"words": ["tulip", "apple", "tiger"]}).answer
    'apple, tiger, tulip'
    """

    name: str = "text/alphabetical"
    domain: str = "text"
    levels: tuple[int, ...] = tuple(range(1, 9))

    templates: ClassVar[tuple[str, ...]] = (
        "Sort these words in alphabetical order: {words}. Separate them by commas.",
        "Put the following words into alphabetical order, with commas between them: {words}",
        "Here is a list of words: {words}. Write the list in the order of a dictionary, separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Different words; on higher levels of few first letters."""
        count = (4, 6, 8, 10, 14, 20, 28, 40)[level - 1]
        firsts = set(rng.sample("bcdfghlmprstw", 5)) if level > 3 else set(ascii_lowercase)
        return {"words": rng.sample([word for word in WORDS if word[0] in firsts], count)}

    def solve(self, facts: Facts) -> Solution:
        """By insertion, each word compared with those before it."""
        ordered, compared = list[str](), 0
        for word in facts["words"]:
            at = 0
            while at < len(ordered) and ordered[at] < word:
                at, compared = at + 1, compared + 1
            ordered.insert(at, word)
            compared += 1
        return Solution(answer=", ".join(ordered), gold=ordered, effort=compared)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The words in a row."""
        return {"words": ", ".join(facts["words"])}

    def verifier(self, form: Form) -> Verifier:
        """The list in its order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anagram(_Text):
    """Which word of a list is made of the same letters as a scrambled one. The level says how many words there are, 3 to 40.

    On higher levels most words have nearly the letters: one of the scrambled word's is changed for another in them. Words of
    the list are invented, so that only letters help.

    >>> Anagram().solve({"letters": "loppa", "words": ["palop", "polap", "lappo"]}).answer
    Traceback (most recent call last):
    ...
    ValueError: too many values to unpack (expected 1)
    >>> Anagram().solve({"letters": "loppa", "words": ["pulop", "polat", "lappo"]}).answer
    'lappo'
    """

    name: str = "text/anagram"
    levels: tuple[int, ...] = tuple(range(1, 8))

    templates: ClassVar[tuple[str, ...]] = (
        "Exactly one of these strings is an anagram of '{letters}': {words}. Which one?",
        "Rearranging the letters of '{letters}' gives one item of this list: {words}. Name it.",
        "Find the anagram of '{letters}' among the following: {words}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A shuffled word, and others in which a letter or two are changed."""
        count, length = (3, 4, 6, 9, 14, 22, 40)[level - 1], 4 + level
        letters = [rng.choice(ascii_lowercase) for _ in range(length)]
        words: list[str] = []
        while len(words) < count:
            other = letters.copy()
            rng.shuffle(other)
            if words:  # the first is right; in the others a letter makes way for one that changes the multiset
                at = rng.randrange(length)
                other[at] = rng.choice([c for c in ascii_lowercase if c != other[at]])
            if other != letters and "".join(other) not in words:
                words.append("".join(other))
            elif len(set(letters)) == 1:
                letters[0] = rng.choice(ascii_lowercase)
        rng.shuffle(words)
        return {"letters": "".join(letters), "words": words}

    def solve(self, facts: Facts) -> Solution:
        """By sorting the letters of each."""
        wanted = sorted(facts["letters"])
        (found,) = [word for word in facts["words"] if sorted(word) == wanted]
        return Solution(answer=found, effort=sum(map(len, facts["words"])))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The list."""
        return {"letters": facts["letters"], "words": ", ".join(facts["words"])}


def _phrase(rng: Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caesar(_Text):
    """Read a text in which each letter was shifted along the alphabet. The level is the number of words.

    >>> Caesar().solve({"cipher": "ebc", "shift": 1}).answer
    'dab'
    """

    name: str = "text/caesar"
    levels: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12)

    templates: ClassVar[tuple[str, ...]] = (
        "In this text each letter was replaced by the one {shift} places later in the alphabet (after z comes a again): "
        "{cipher}\nWhat was the text before?",
        "Decode this Caesar cipher, in which letters were shifted forward by {shift}: {cipher}",
        "Someone moved every letter of a message {shift} steps forward in the alphabet, starting again at a after z, and got: "
        "{cipher}\nRestore the message.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Words, shifted."""
        shift = rng.randrange(1, 26)
        return {"cipher": _map_text(_phrase(rng, level), _alphabet(shift)), "shift": shift}

    def solve(self, facts: Facts) -> Solution:
        """Back by as many places."""
        text = _map_text(facts["cipher"], _alphabet(-facts["shift"]))
        return Solution(answer=text, effort=len(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution(_Text):
    """Read a text in which each letter stands for another, by a table. The level is the number of words.

    >>> Substitution().solve({"cipher": "ba", "key": "bcdefghijklmnopqrstuvwxyza"}).answer
    'az'
    """

    name: str = "text/substitution"
    levels: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12)

    templates: ClassVar[tuple[str, ...]] = (
        "A text was enciphered letter by letter. The letters\n{plain}\nbecame, in this order,\n{key}\nThe result is: "
        "{cipher}\nWhat was the text?",
        "Decipher '{cipher}'. It was made by replacing each letter of the upper row by the letter below it:\n{plain}\n{key}",
        "Here is a substitution table, plain letters above and cipher letters below:\n{plain}\n{key}\nDecode the message: "
        "{cipher}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Words, and a shuffled alphabet."""
        key = "".join(rng.sample(ascii_lowercase, 26))
        return {"cipher": _map_text(_phrase(rng, level), key), "key": key}

    def solve(self, facts: Facts) -> Solution:
        """The table read upwards."""
        text = facts["cipher"].translate(str.maketrans(facts["key"], ascii_lowercase))
        return Solution(answer=text, effort=26 + len(text))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both rows of the table."""
        return {"plain": " ".join(ascii_lowercase), "key": " ".join(facts["key"]), "cipher": facts["cipher"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transposition(_Text):
    """Read a text that was written in rows and read by columns in the order of a key. The level is the number of words.

    >>> Transposition().solve({"cipher": "ebhlo", "key": [2, 1]}).answer  # rows he, lb, o; first the second column
    'helbo'
    """

    name: str = "text/transposition"
    levels: tuple[int, ...] = tuple(range(1, 8))

    templates: ClassVar[tuple[str, ...]] = (
        "A text without spaces was written into rows of {columns} letters, the last row perhaps shorter. Then its columns were "
        "read from top to bottom in this order (1 is the leftmost): {key}. The result is {cipher}. What was the text?",
        "Undo this columnar transposition. The plain text, {length} letters without spaces, was put row by row into {columns} "
        "columns; the columns were then copied out in the order {key}, counted from the left. Cipher text: {cipher}",
        "Cipher text: {cipher}. It was made by writing a message row by row into a grid {columns} letters wide and reading off "
        "whole columns, first column {first}, and so on in the order {key}. Give the message (no spaces).",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Words without spaces between, and an order of columns."""
        columns = 2 + (level + 1) // 2
        text = _phrase(rng, level).replace(" ", "")
        key = rng.sample(range(1, columns + 1), columns)
        return {"cipher": "".join(text[k - 1 :: columns] for k in key), "key": key}

    def solve(self, facts: Facts) -> Solution:
        """Columns cut off the cipher one by one, as long as each was."""
        cipher, key = facts["cipher"], facts["key"]
        rows, more = divmod(len(cipher), len(key))
        columns, at = dict[int, str](), 0
        for k in key:
            size = rows + (k <= more)
            columns[k] = cipher[at : at + size]
            at += size
        text = "".join(columns[i % len(key) + 1][i // len(key)] for i in range(len(cipher)))
        return Solution(answer=text, effort=len(text) * len(key))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The key in words."""
        key = facts["key"]
        return {
            "cipher": facts["cipher"],
            "key": ", ".join(map(str, key)),
            "columns": str(len(key)),
            "first": str(key[0]),
            "length": str(len(facts["cipher"])),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits(_Text):
    """What a string becomes by a list of edits. The level is the number of edits.

    >>> edits = [["reverse"], ["swap", 1, 3], ["delete", 2], ["insert", "x", 1], ["move"], ["replace", "a", "q"], ["double", 1]]
    >>> Edits().solve({"start": "abc", "edits": edits}).answer  # cba, abc, ac, xac, acx, qcx
    'qqcx'
    """

    name: str = "text/edits"
    levels: tuple[int, ...] = tuple(range(1, 11))

    templates: ClassVar[tuple[str, ...]] = (
        "Start with the string '{start}' and do this, one after another:\n{edits}\nWhat is the string at the end?",
        "Apply these edits in order to '{start}':\n{edits}\nGive the final string.",
        "The string '{start}' is edited as follows.\n{edits}\nWhat is left when all is done?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Edits that each change something."""
        text = start = "".join(rng.choice(ascii_lowercase) for _ in range(4 + level // 2))
        edits: list[list[Any]] = []
        while len(edits) < level:
            edit = _edit(rng, text)
            after = _apply_edit(text, edit)
            if after not in ("", text):
                edits.append(edit)
                text = after
        return {"start": start, "edits": edits}

    def solve(self, facts: Facts) -> Solution:
        """Edit by edit."""
        text, steps, effort = facts["start"], list[str](), 0
        for edit in facts["edits"]:
            text = _apply_edit(text, edit)
            steps.append(text)
            effort += len(text)
        return Solution(answer=text, steps="\n".join(steps), effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The edits, numbered."""
        lines = [f"{i}. {_SAID[edit[0]].format(*edit[1:])}" for i, edit in enumerate(facts["edits"], 1)]
        return {"start": facts["start"], "edits": "\n".join(lines)}


_SAID = {
    "reverse": "Reverse the string.",
    "swap": "Swap the characters at positions {} and {} (the first is position 1).",
    "delete": "Delete the character at position {} (the first is position 1).",
    "insert": "Insert '{}' so that it is the character at position {} (the first is position 1).",
    "move": "Move the first character to the end.",
    "replace": "Replace every '{}' by '{}'.",
    "double": "Double the character at position {} (the first is position 1).",
}


def _edit(rng: Random, text: str) -> list[Any]:
    kind, at = rng.choice(list(_SAID)), rng.randint(1, len(text))
    match kind:
        case "swap":
            return [kind, at, rng.randint(1, len(text))]
        case "insert":
            return [kind, rng.choice(ascii_lowercase), at]
        case "replace":
            return [kind, text[at - 1], rng.choice(ascii_lowercase)]
        case "delete" | "double":
            return [kind, at]
        case _:
            return [kind]


def _apply_edit(text: str, edit: list[Any]) -> str:
    kind, *rest = edit
    match kind:
        case "reverse":
            return text[::-1]
        case "swap":
            i, j = sorted(n - 1 for n in rest)
            return text if i == j else text[:i] + text[j] + text[i + 1 : j] + text[i] + text[j + 1 :]
        case "delete":
            return text[: rest[0] - 1] + text[rest[0] :]
        case "insert":
            return text[: rest[1] - 1] + rest[0] + text[rest[1] - 1 :]
        case "move":
            return text[1:] + text[:1]
        case "replace":
            return text.replace(rest[0], rest[1])
        case _:
            return text[: rest[0]] + text[rest[0] - 1 :]


def _alphabet(shift: int) -> str:
    return ascii_lowercase[shift % 26 :] + ascii_lowercase[: shift % 26]


def _map_text(text: str, key: str) -> str:
    return text.translate(str.maketrans(ascii_lowercase, key))

"""Games of hidden words and codes: Mastermind, Wordle, hangman."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay_tasks.games.play import Game, Match

__all__ = ["Hangman", "Mastermind", "Wordle", "marks", "pegs"]

_CODES = ((2, 5, 6), (3, 4, 6), (3, 5, 7), (4, 4, 7), (4, 5, 8), (4, 6, 9))
"""Places, letters and turns of each level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mastermind(Game):
    """Find a code of letters from how many of each guess are right. Levels go from 2 places of 5 letters to 4 places of 6.

    Each guess is told how many letters stand in the right place, and how many of the others occur elsewhere in the code.

    >>> pegs("abca", "aacb"), Mastermind().solve({"letters": "ab", "code": "bb", "turns": 4}).answer.split()
    ((2, 2), ['aa', 'bb'])
    """

    name: str = "games/mastermind"
    levels: tuple[int, ...] = tuple(range(1, 7))
    move: ClassVar[str] = "guess"

    templates: ClassVar[tuple[str, ...]] = (
        "I have a secret code of {places} letters. Each is one of {letters}, and a letter may occur more than once. After each "
        "guess I tell you how many letters are right and in the right place, and how many of the others occur elsewhere in the "
        "code. Find the code with at most {turns} guesses. A guess is {places} letters without spaces, such as {example}.",
        "Mastermind: break a code of {places} letters, each from {letters}; repeats are possible. Your guess ({places} letters, "
        "written like {example}) is answered with two numbers: letters in the right place, and further letters that are in the "
        "code but in another place. You have {turns} guesses.",
        "Guess a hidden string of {places} letters over the letters {letters} (a letter can be used several times). For every "
        "guess, for example {example}, you learn how many positions are exactly right and how many of the remaining letters are "
        "right but misplaced. You must hit the string within {turns} guesses.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Any letters, any code of them."""
        places, count, turns = _CODES[level - 1]
        letters = "".join(sorted(rng.sample("abcdefghijklmnopqrstuvwxyz", count)))
        return {"letters": letters, "code": "".join(rng.choice(letters) for _ in range(places)), "turns": turns}

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle finds the code in time, and not at its first guess."""
        match, actions = self.play_oracle(facts)
        return match.won and len(actions) > 1

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Rules in numbers."""
        letters, places = facts["letters"], len(facts["code"])
        return {
            "places": str(places),
            "letters": ", ".join(letters),
            "turns": str(facts["turns"]),
            "example": (letters * places)[-places:],
        }

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Code(facts)


class _Code(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._letters: str = facts["letters"]
        self._code: str = facts["code"]
        self._left: list[str] | None = None
        self._told: list[tuple[str, tuple[int, int]]] = []

    def answer(self, action: str) -> str:
        guess = action.replace(" ", "").replace(",", "")
        if len(guess) != len(self._code) or not set(guess) <= set(self._letters):
            return f"A guess is {len(self._code)} of the letters {', '.join(self._letters)}."
        found = pegs(guess, self._code)
        self._told.append((guess, found))
        if guess == self._code:
            self.win()
            return "Yes, that is the code."
        self.progress = max(self.progress, found[0] / len(self._code))
        return f"{guess}: {found[0]} in the right place, {found[1]} elsewhere."

    def advise(self) -> str:
        """The first code, in the order of the letters, that agrees with all that was told."""
        if self._left is None:
            self._left = list(map("".join, product(self._letters, repeat=len(self._code))))
        for guess, found in self._told:
            self.effort += len(self._left)
            self._left = [code for code in self._left if pegs(guess, code) == found]
        self._told.clear()
        return self._left[0]


def pegs(guess: str, code: str) -> tuple[int, int]:
    """Letters in the right place, and right letters in another place, each letter of the code counted once."""
    right = sum(a == b for a, b in zip(guess, code, strict=True))
    common = sum(min(guess.count(c), code.count(c)) for c in set(guess))
    return right, common - right


def _coin_words(rng: Random, count: int, length: int, letters: int) -> list[str]:
    """Different invented words that can be spoken: consonants and vowels in turn, of few letters, so that they are alike."""
    consonants, vowels = rng.sample("bdfgklmnprstvz", letters), rng.sample("aeiou", 3)
    sets = [consonants if i % 2 == 0 else vowels for i in range(length)]
    words = set[str]()
    while len(words) < count:
        words.add("".join(map(rng.choice, sets)))
    found = sorted(words)
    rng.shuffle(found)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Wordle(Game):
    """Find a word of a list from marks on each guess. The level says how many words there are, 8 to 80.

    The words are invented, of five letters, and stand in the prompt; a guess must be one of them. ``G`` marks a letter in its
    place, ``Y`` one that the word has elsewhere, ``-`` one that it has not, or not so often.

    >>> marks("lala", "alla"), marks("baba", "alla")
    ('YYGG', '-Y-G')
    """

    name: str = "games/wordle"
    levels: tuple[int, ...] = tuple(range(1, 9))
    move: ClassVar[str] = "guess"

    templates: ClassVar[tuple[str, ...]] = (
        "One of these words is the secret: {words}. Guess one of them in each turn. I answer with a mark for each letter: G if "
        "the letter is in the right place, Y if the secret has it in another place, - if the secret does not have it (or not "
        "that often). Find the word with at most {turns} guesses.",
        "A secret word was chosen from this list: {words}. Each guess must be a word of the list and gets one mark per letter: "
        "G = right letter, right place; Y = right letter, wrong place; - = the letter is not in the word, or no more of it. You "
        "have {turns} guesses.",
        "Find the hidden word. The possible words are {words}. For each guess (one of these words) you see, letter by letter, G "
        "for a letter that is in place, Y for one that belongs elsewhere and - for one that does not occur (again). After "
        "{turns} wrong guesses you lose.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A list of words that are alike."""
        count = (8, 12, 16, 24, 32, 48, 64, 80)[level - 1]
        return {
            "words": _coin_words(rng, count, 5, 4 + level // 4),
            "secret": rng.randrange(count),
            "turns": 4 if level < 5 else 5,
        }

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle finds the word in time, and not at its first guess."""
        match, actions = self.play_oracle(facts)
        return match.won and len(actions) > 1

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The list."""
        return {"words": ", ".join(facts["words"]), "turns": str(facts["turns"])}

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Marked(facts)


class _Marked(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._words: list[str] = facts["words"]
        self._left = self._words
        self._secret: str = self._words[facts["secret"]]

    def answer(self, action: str) -> str:
        if action not in self._words:
            return "That is not a word of the list."
        if action == self._secret:
            self.win()
            return "Yes, that is the word."
        found = marks(action, self._secret)
        self.progress = max(self.progress, found.count("G") / len(found))
        self._left = [word for word in self._left if marks(action, word) == found]
        return f"{action}: {found}"

    def advise(self) -> str:
        """The word, of those that may still be it, whose marks leave the fewest on average; of 24 that stand first."""
        self.effort += len(self._left)

        def expected_left(guess: str) -> int:
            return sum(n * n for n in Counter(marks(guess, word) for word in self._left).values())

        return min(self._left[:24], key=expected_left)


@lru_cache(maxsize=8192)
def marks(guess: str, word: str) -> str:
    """``G``, ``Y`` or ``-`` for each letter of a guess; a letter gets no more marks than the word has of it."""
    rest = [b for a, b in zip(guess, word, strict=True) if a != b]
    out = ""
    for a, b in zip(guess, word, strict=True):
        if a == b:
            out += "G"
        elif a in rest:
            rest.remove(a)
            out += "Y"
        else:
            out += "-"
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Hangman(Game):
    """Find a word of a list letter by letter. The level says how many words there are, 6 to 60.

    The words are invented, of six letters, and stand in the prompt. A letter is answered with all places where it stands; one
    that the word does not have, and a wrong word, is a mistake, of which 3 lose.

    >>> facts = {"words": ["tara", "bora", "bara"], "secret": 2, "mistakes": 3, "turns": 8}
    >>> Hangman().solve(facts).answer.split()
    ['a', 'b', 'bara']
    """

    name: str = "games/hangman"
    levels: tuple[int, ...] = tuple(range(1, 8))
    move: ClassVar[str] = "letter or word"

    templates: ClassVar[tuple[str, ...]] = (
        "Let us play hangman. The word is one of these: {words}. In each turn say a letter, and I show where it stands in the "
        "word, or say the whole word. With {mistakes} wrong letters or words you lose. You have {turns} turns and win by saying "
        "the whole word.",
        "Hangman with a list: {words}. One of these words is hidden. Name a letter to see its places, or name the word itself, "
        "which ends the game if it is right. {mistakes} wrong letters or words lose the game, and so do {turns} turns without "
        "the word.",
        "I chose one word of the following: {words}. Say one letter per turn and you are shown every place where it occurs. Say "
        "the complete word to win. You lose when {mistakes} of your letters or words were wrong, or after {turns} turns.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A list of words that are alike."""
        count = (6, 9, 14, 20, 30, 42, 60)[level - 1]
        return {
            "words": _coin_words(rng, count, 6, 6),
            "secret": rng.randrange(count),
            "mistakes": 3,
            "turns": (count - 1).bit_length() + 3,
        }

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle finds the word in time, and not at once."""
        match, actions = self.play_oracle(facts)
        return match.won and len(actions) > 1

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The list, and the bounds."""
        return {"words": ", ".join(facts["words"]), "turns": str(facts["turns"]), "mistakes": str(facts["mistakes"])}

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Hanging(facts)


class _Hanging(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._left: list[str] = facts["words"]
        self._word: str = self._left[facts["secret"]]
        self._lives: int = facts["mistakes"]
        self._said = set[str]()

    def opening(self) -> str:
        return self._board_text()

    def answer(self, action: str) -> str:
        if action == self._word:
            self.win()
            return "Yes, that is the word."
        if len(action) == len(self._word) and action.isalpha():
            self._left = [word for word in self._left if word != action]
            return self._mistake(f"The word is not {action}.")
        if len(action) != 1 or not action.isalpha():
            return "Say one letter, or the whole word."
        if action in self._said:
            return f"You have said {action} before. {self._board_text()}"
        self._said.add(action)
        places = [i for i, c in enumerate(self._word) if c == action]
        self._left = [word for word in self._left if [i for i, c in enumerate(word) if c == action] == places]
        if not places:
            return self._mistake(f"There is no {action}.")
        self.progress = sum(c in self._said for c in self._word) / len(self._word)
        return self._board_text()

    def advise(self) -> str:
        """The word when one is left; else the letter whose places tell most, the rarer risk first."""
        self.effort += len(self._left)
        if len(self._left) == 1:
            return self._left[0]
        best, least = "", (len(self._left) ** 2 + 1, 0)
        for letter in sorted(set("".join(self._left)) - self._said):
            groups: Counter[tuple[int, ...]] = Counter()
            for word in self._left:
                groups[tuple(i for i, c in enumerate(word) if c == letter)] += 1
            cost = sum(n * n for n in groups.values()), groups[()]
            if cost < least:
                best, least = letter, cost
        return best

    def _mistake(self, said: str) -> str:
        self._lives -= 1
        if not self._lives:
            self.lose()
        return f"{said} {self._board_text()}"

    def _board_text(self) -> str:
        word = " ".join(c if c in self._said else "_" for c in self._word)
        return f"{word} ({self._lives} mistake{'s' if self._lives > 1 else ''} left)"

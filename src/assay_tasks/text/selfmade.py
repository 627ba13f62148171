"""Questions out of anybody's own text: what comes next, what is missing, in which order, what was changed."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.core.seeds import derive
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.constraints.base import sentences
from assay.verify.exact import ExactMatch
from assay.verify.text.choice import Choice
from assay.verify.text.items import ListMatch

__all__ = ["Altered", "Masked", "NextSegment", "SentenceOrder", "leaks", "load_texts", "self_supervised"]

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_LETTERS = "ABCDEFGHIJ"
_LEAK = 5


def load_texts(paths: Iterable[str | Path]) -> tuple[str, ...]:
    """The texts of files in UTF-8.

    Raises:
        DataError: a file that cannot be read or is no such text; names it.
    """
    found: list[str] = []
    for path in paths:
        try:
            found.append(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read a text from {path}: {error}") from error
    return tuple(found)


def leaks(target: str, shown: str, n: int = _LEAK) -> bool:
    """Whether ``n`` words in a row of a target (all of them, if it has fewer) stand in what is shown.

    >>> leaks("The red fox ran over it.", "Then the red fox ran over a hill.", 5), leaks("So the red fox.", "The red fox", 3)
    (True, True)
    >>> leaks("It ran away.", "It ran off.", 5)
    False
    """
    size = min(n, len(_WORD.findall(target)))
    return size > 0 and not _grams(target, size).isdisjoint(_grams(shown, size))


@lru_cache(maxsize=4096)
def _grams(text: str, n: int) -> frozenset[tuple[str, ...]]:
    words = [w.casefold() for w in _WORD.findall(text)]
    return frozenset(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnText(Problem, ABC):
    """Base: a question is a place in a text and a level; all else is drawn from these two, so one place is one question.

    Attributes:
        texts: any number of texts, split into sentences.

    Raises:
        ConfigError: fewer than 12 sentences of 4 words or more in all.
    """

    texts: tuple[str, ...] = field(default=(), repr=False)
    domain: str = "text"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    hidden: ClassVar[bool] = True
    _sentences: tuple[tuple[str, ...], ...] = field(init=False, repr=False, compare=False)
    _words: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        split = tuple(tuple(" ".join(s.split()) for s in sentences(text) if len(_WORD.findall(s)) > 3) for text in self.texts)
        if sum(map(len, split)) < 12:
            raise ConfigError(f"{self.name} needs texts with 12 sentences of 4 words or more, got {sum(map(len, split))}")
        object.__setattr__(self, "_sentences", split)
        words = {w for of in split for s in of for w in _WORD.findall(s) if len(w) > 3 and w.islower()}
        object.__setattr__(self, "_words", tuple(sorted(words)))

    def length(self, level: int) -> int:
        """Sentences of a passage."""
        return level + 2

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A passage that can be asked about."""
        size = self.length(level)
        places = [(i, len(of) - size) for i, of in enumerate(self._sentences) if len(of) > size]
        for _ in range(TRIES if places else 0):
            text, last = rng.choices(places, [n for _, n in places])[0]
            passage = list(self._sentences[text][(at := rng.randrange(last + 1)) : at + size])
            fresh = Random(derive(self.name, 0, digest(passage), level))
            made = self.pose(passage, level, fresh)
            if made is not None:
                return {"passage": passage, **made}
        raise DataError(f"{self.name}: the texts have no passage of {size} sentences that suits level {level}; give longer ones")

    @abstractmethod
    def pose(self, passage: list[str], level: int, rng: Random) -> dict[str, Any] | None:
        """What else there is to a question on a passage; None where it makes none."""
        ...

    def others(self, passage: list[str], count: int, rng: Random) -> list[str]:
        """Sentences from elsewhere that share no run of words with a passage, or fewer if there are not so many."""
        every = [s for of in self._sentences for s in of]
        shown, found = " ".join(passage), list[str]()
        for s in rng.sample(every, len(every)):
            if len(found) == count:
                break
            if s not in found and not leaks(s, shown):
                found.append(s)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSegment(_OwnText):
    """Which sentence comes next in a text. The level is the number of wrong ones, which are from elsewhere.

    After RLPT (arXiv 2509.19249), with a choice in place of a model that judges a free continuation. What is to be told shares
    no five words in a row with what is shown.
    """

    name: str = "own/next"
    levels: tuple[int, ...] = (1, 2, 3, 5, 7)

    templates: ClassVar[tuple[str, ...]] = (
        "Here is part of a text:\n{shown}\nWhich sentence comes next?\n{options}\nAnswer with its letter.",
        "Read this: {shown}\nOne of the following continues it directly. Which? Give the letter.\n{options}",
        "{shown}\n\nChoose the sentence that follows in the original text, by its letter:\n{options}",
    )

    def length(self, level: int) -> int:
        """Three that are shown and the one to find."""
        return 4

    def pose(self, passage: list[str], level: int, rng: Random) -> dict[str, Any] | None:
        """The right one among others."""
        options = self.others(passage, level, rng)
        if len(options) < level or leaks(passage[-1], " ".join(passage[:-1])):
            return None
        at = rng.randrange(level + 1)
        options.insert(at, passage[-1])
        return {"options": options}

    def solve(self, facts: Facts) -> Solution:
        """Looks it up in the passage."""
        return Solution(answer=_LETTERS[facts["options"].index(facts["passage"][-1])], effort=len(facts["options"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """What is shown, and the options."""
        options = "\n".join(f"{_LETTERS[i]}. {s}" for i, s in enumerate(facts["options"]))
        return {"shown": " ".join(facts["passage"][:-1]), "options": options}

    def verifier(self, form: Form) -> Verifier:
        """The letter."""
        return Choice(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked(_OwnText):
    """Words that are missing in a passage, to be chosen from twice as many. The level is the number of gaps.

    A word that is masked stands once in the passage, and long words are masked rather than short ones.
    """

    name: str = "own/masked"
    levels: tuple[int, ...] = (1, 2, 3, 4, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "Fill the gaps of this passage with words of the list.\n{text}\nWords: {words}\nGive the words for the gaps in order, "
        "with commas between; each is used once, and half of them are not needed.",
        "{text}\n\nWhich of these words were taken out, in the order of the gaps? {words}. Half of the list does not belong. "
        "Separate the words by commas.",
        "Some words of a text are masked:\n{text}\nChoose from: {words} (half of them are wrong). Write what belongs in gap 1 "
        "and so on, separated by commas.",
    )

    def length(self, level: int) -> int:
        """A sentence for each gap, and one more."""
        return level + 1

    def pose(self, passage: list[str], level: int, rng: Random) -> dict[str, Any] | None:
        """Words that stand once, and as many that do not stand there."""
        said = _WORD.findall(" ".join(passage))
        there = {w.casefold() for w in said}
        count = {w: sum(v.casefold() == w for v in said) for w in there}
        free = [w for w in dict.fromkeys(said) if count[w.casefold()] == 1 and len(w) > 3 and w.islower()]
        more = [w for w in self._words if w not in there]
        if len(free) < level or len(more) < level:
            return None
        masked = set[str]()
        while len(masked) < level:
            masked.update(rng.choices([w for w in free if w not in masked], [len(w) for w in free if w not in masked]))
        words = [*sorted(masked), *rng.sample(more, level)]
        rng.shuffle(words)
        return {"masked": [w for w in said if w in masked], "words": words}

    def solve(self, facts: Facts) -> Solution:
        """In the order of the passage."""
        masked: list[str] = facts["masked"]
        return Solution(answer=", ".join(masked), gold=masked, effort=len(masked) * len(facts["words"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The passage with numbered gaps."""
        text = " ".join(facts["passage"])
        for number, word in enumerate(facts["masked"], 1):
            text = re.sub(rf"(?<![\w'’-]){re.escape(word)}(?![\w'’-])", f"({number}) ____", text, count=1)
        return {"text": text, "words": ", ".join(facts["words"])}

    def verifier(self, form: Form) -> Verifier:
        """The words in order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceOrder(_OwnText):
    """The order in which shuffled sentences stood. The level is their number, less 2.

    Texts in which another order reads as well make some of these unanswerable: look at a sample of your own first.
    """

    name: str = "own/order"

    templates: ClassVar[tuple[str, ...]] = (
        "These sentences are out of order:\n{options}\nGive their letters in the order of the original text, separated by "
        "commas.",
        "Put the sentences back into their order:\n{options}\nAnswer with all letters in order, with commas between them.",
        "A passage was cut into sentences and shuffled.\n{options}\nIn which order did they stand? List the letters, separated "
        "by commas.",
    )

    def pose(self, passage: list[str], level: int, rng: Random) -> dict[str, Any] | None:
        """Any order but the right one."""
        order = list(range(len(passage)))
        while len(set(passage)) == len(passage) and order == sorted(order):
            rng.shuffle(order)
        return {"order": order} if len(set(passage)) == len(passage) else None

    def solve(self, facts: Facts) -> Solution:
        """Where each sentence of the passage stands in what is shown."""
        letters = [_LETTERS[facts["order"].index(i)] for i in range(len(facts["order"]))]
        return Solution(answer=", ".join(letters), gold=letters, effort=len(letters) ** 2)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The sentences by letter."""
        return {"options": "\n".join(f"{_LETTERS[k]}. {facts['passage'][i]}" for k, i in enumerate(facts["order"]))}

    def verifier(self, form: Form) -> Verifier:
        """The letters in order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered(_OwnText):
    """Which sentence of a passage was replaced by one from elsewhere. The level is the number of sentences, less 2.

    The one put in shares no five words in a row with the passage.
    """

    name: str = "own/altered"

    templates: ClassVar[tuple[str, ...]] = (
        "One sentence of this passage was replaced by one from another place. Which? Give its number.\n{options}",
        "{options}\nOne of these numbered sentences does not belong here; it was put in the place of the right one. Answer with "
        "its number.",
        "Find the sentence that was swapped for a foreign one, and say its number:\n{options}",
    )

    def pose(self, passage: list[str], level: int, rng: Random) -> dict[str, Any] | None:
        """A place, and what stands there now."""
        foreign = self.others(passage, 1, rng)
        return {"at": rng.randrange(len(passage)), "foreign": foreign[0]} if foreign else None

    def solve(self, facts: Facts) -> Solution:
        """By comparison with the passage."""
        shown = self._options_of(facts)
        (at,) = [i for i, (a, b) in enumerate(zip(shown, facts["passage"], strict=True), 1) if a != b]
        return Solution(answer=str(at), effort=len(shown))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The sentences by number."""
        return {"options": "\n".join(f"{i}. {s}" for i, s in enumerate(self._options_of(facts), 1))}

    def verifier(self, form: Form) -> Verifier:
        """The number."""
        return ExactMatch(strip=True, where=form.place)

    @staticmethod
    def _options_of(facts: Facts) -> list[str]:
        return [facts["foreign"] if i == facts["at"] else s for i, s in enumerate(facts["passage"])]


def self_supervised(texts: Iterable[str], name: str = "own") -> Problems:
    """A family out of one's own texts, without a label in them: arms ``name/next``, ``masked``, ``order`` and ``altered``.

    Passages are held out by what they say. Sentences of a passage may also stand in another one that overlaps it: hold out whole
    texts, as a second family, where that matters.

    Raises:
        ConfigError: too few sentences.
    """
    every = tuple(texts)
    return Problems(
        name=name,
        summary="Questions out of texts of one's own.",
        problems=(
            NextSegment(name=f"{name}/next", texts=every),
            Masked(name=f"{name}/masked", texts=every),
            SentenceOrder(name=f"{name}/order", texts=every),
            Altered(name=f"{name}/altered", texts=every),
        ),
    )

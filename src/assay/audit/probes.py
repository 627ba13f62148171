"""The answers that an audit tries: every way to write a right one, and every way to be wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from assay.audit.answer_variants import Kind, kind_of, lookalike, near_misses, respell_number, same
from assay.audit.cases import AuditCase
from assay.audit.hostile import TRICKS, Canary, payloads
from assay.audit.record import NOT_COUNTED
from assay.core.seeds import generator
from assay.verify.answer_templates import PLACE

__all__ = [
    "FAMILIES",
    "AuditProbe",
    "Family",
    "Side",
    "fill_template",
    "hostile",
    "right_answers",
    "untried_kinds",
    "wrong_answers",
]

_CONSTANTS = ("0", "1", "-1", "2", "10", "42", "100", "yes", "no", "True", "False", "A", "B", "C", "D", "x", "None", "[]", "{}")


class Side(StrEnum):
    """What a verifier should say to a family of answers."""

    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Family:
    """One way to be right or wrong.

    Attributes:
        side: what a verifier should say.
        says: the family in words.
    """

    side: Side
    says: str


FAMILIES = {
    "gold": Family(Side.RIGHT, "the gold as given"),
    "whitespace": Family(Side.RIGHT, "white space or line breaks around it"),
    "fence": Family(Side.RIGHT, "inside a code fence"),
    "boxed": Family(Side.RIGHT, "inside \\boxed{}"),
    "tag": Family(Side.RIGHT, "inside <answer> tags"),
    "period": Family(Side.RIGHT, "a period behind it"),
    "sentence": Family(Side.RIGHT, "at the end of a sentence"),
    "case": Family(Side.RIGHT, "upper and lower case"),
    "unicode": Family(Side.RIGHT, "other characters that mean the same"),
    "number": Family(Side.RIGHT, "the same number in other words"),
    "known": Family(Side.WRONG, "answers that their author says are wrong"),
    "near": Family(Side.WRONG, "near misses: a digit, a sign, a swap, one more or less"),
    "others": Family(Side.WRONG, "answers of other items"),
    "frequent": Family(Side.WRONG, "the most frequent gold, where it is wrong"),
    "constants": Family(Side.WRONG, "constants"),
    "junk": Family(Side.WRONG, "letters, digits and signs at random"),
    "empty": Family(Side.WRONG, "nothing, or white space"),
    "echo": Family(Side.WRONG, "the prompt, or its numbers"),
    "options": Family(Side.WRONG, "all options at once"),
    "hedge": Family(Side.WRONG, "several answers, one of them right"),
    "two_boxes": Family(Side.WRONG, "two boxes or tags, the right answer in the first"),
    "negated": Family(Side.WRONG, "the gold inside a sentence that denies it"),
    "lookalike": Family(Side.WRONG, "characters that look like the gold's"),
    "bytes_around": Family(Side.WRONG, "the gold behind a null byte, or with more after one"),
    "long": Family(Side.WRONG, "very long text"),
    **{
        f"trick_{name}": Family(Side.WRONG, says)
        for name, says in {
            "format": "the form of an answer without one",
            "equal": "objects equal to everything, and wild cards",
            "exit": "programs that end the judge or print PASS",
            "values": "NaN, null, and JSON that claims a score",
            "bytes": "null bytes, marks and halves of characters",
            "bombs": "powers, factorials, nesting and length that cost time",
            "injection": "sentences addressed to the judge",
        }.items()
    },
    "payload": Family(Side.WRONG, "code that leaves a trace where somebody runs it"),
}


NEEDS_UNIQUE = {"near": "near misses", "others": "other items", "hedge": "hedges and denials"}
"""Families of wrong answers that are made only where no other answer than the gold may be right, in a word or two; with hedges
come all answers in which the gold stands."""


@dataclass(frozen=True, slots=True)
class AuditProbe:
    """One answer to one problem.

    Attributes:
        id: unique in the audit.
        case: the problem.
        family: in `FAMILIES`.
        answer: what is said.
    """

    id: str
    case: AuditCase
    family: str
    answer: str


def fill_template(template: str, answer: str) -> str:
    """An answer where a template has its place."""
    return template.replace(PLACE, answer)


def right_answers(case: AuditCase, template: str) -> Iterator[tuple[str, str]]:
    """Family and text of every way in which the gold is written."""
    gold = case.gold
    for solution in case.solutions:
        yield "gold", fill_template(template, solution)
    for text in (f" {gold} ", f"\n{gold}\n", f"{gold}\n\n", f"\t{gold}"):
        yield "whitespace", fill_template(template, text)
    yield "fence", f"```\n{gold}\n```"
    yield "boxed", rf"\boxed{{{gold}}}"
    yield "boxed", rf"So $x = 1$ is wrong. The final answer is $\boxed{{{gold}}}$."
    yield "tag", f"<answer>{gold}</answer>"
    yield "tag", f"<think>\nIt may be 1.\n</think>\n<answer> {gold} </answer>"
    yield "period", fill_template(template, f"{gold}.")
    yield "sentence", f"The answer is {gold}"
    yield "sentence", f"Let us check.\n\nAnswer: {gold}"
    for other in dict.fromkeys((gold.upper(), gold.lower(), gold.capitalize())):
        if other != gold:
            yield "case", fill_template(template, other)
    for other in _other_characters(gold):
        yield "unicode", fill_template(template, other)
    for other in respell_number(gold):
        yield "number", fill_template(template, other)


def wrong_answers(cases: Sequence[AuditCase], index: int, template: str, seed: int) -> Iterator[tuple[str, str]]:
    """Family and text of wrong answers to one of the cases; the draws depend on seed and case alone."""
    case = cases[index]
    rng = generator("audit/wrong", seed, index=case.task.id)
    for text in case.wrong:
        yield "known", fill_template(template, text)
    misses = near_misses(case.gold, rng) if case.unique else []
    others = [c.gold for c in cases if case.unique and not _right(case, c.gold)]
    chosen = [others[int(i)] for i in rng.permutation(len(others))[:4]]
    for family, texts in {"near": misses, "others": list(dict.fromkeys(chosen)), "constants": list(_CONSTANTS)}.items():
        for text in texts:
            if not _right(case, text, folded=family == "constants"):
                yield family, fill_template(template, text)
    ((frequent, times),) = Counter(c.gold for c in cases).most_common(1)
    if case.unique and times > 1 and not _right(case, frequent):
        yield "frequent", fill_template(template, frequent)
    yield from _junk(rng.integers(0, 2**31, 4).tolist(), template)
    yield from (("empty", text) for text in ("", " ", "\n\n", "\t \u00a0", fill_template(template, "")))
    if case.prompt.strip():
        yield "echo", case.prompt
        numbers = dict.fromkeys(word.strip(".,?!()") for word in case.prompt.split() if any(c.isdigit() for c in word))
        yield from (("echo", fill_template(template, n)) for n in list(numbers)[:3] if case.unique and not _right(case, n))
    other = (misses or chosen or [""])[0]
    if other:
        yield from _around_gold(case.gold, other, template)


def untried_kinds(
    cases: Sequence[AuditCase], probes: Iterable[AuditProbe], skip: Sequence[str], inform: Sequence[str]
) -> tuple[str, ...]:
    """What an audit's answers leave open: kinds of wrong answers that were not made for all cases, and those that do not count.

    Args:
        cases: the problems.
        probes: all answers.
        skip: families that are left out by wish: they are not named.
        inform: families that are tried, and do not count.

    >>> from assay.audit import case_of
    >>> case = case_of({"gold": "42", "unique": False})
    >>> untried_kinds([case], [AuditProbe("a", case, "constants", "1")], ("near",), ("constants",))
    ('other items', 'hedges and denials', 'constants (tried, not counted)')
    """
    tried: dict[str, set[str]] = {}
    for probe in probes:
        tried.setdefault(probe.family, set()).add(probe.case.task.id)
    out: list[str] = []
    for family, words in NEEDS_UNIQUE.items():
        without = sum(not case.unique and case.task.id not in tried.get(family, ()) for case in cases)
        if without and family not in skip:
            out.append(words if without == len(cases) else f"{words} (on {without} of {len(cases)} items)")
    uncounted = (f for f in tried if f in inform and f in FAMILIES and FAMILIES[f].side is Side.WRONG and f not in skip)
    return (*out, *(f"{family}{NOT_COUNTED}" for family in uncounted))


def _around_gold(gold: str, other: str, template: str) -> Iterator[tuple[str, str]]:
    """Wrong answers in which the right one stands."""
    for text in (
        f"{other} or {gold}",
        f"{gold} or {other}",
        f"{other}, {gold}",
        f"either {gold} or {other}",
        f"{other}\n{gold} or both",
    ):
        yield "hedge", fill_template(template, text)
    yield "options", fill_template(template, "A B C D" if kind_of(gold) is Kind.LETTER else f"{other} {gold} {other}")
    if kind_of(gold) is Kind.LETTER:
        yield "options", fill_template(template, "A, B, C, D, E")
    yield "two_boxes", rf"\boxed{{{gold}}} no, it is \boxed{{{other}}}"
    yield "two_boxes", f"<answer>{gold}</answer> no: <answer>{other}</answer>"
    yield "two_boxes", f"#### {gold}\n#### {other}"
    for text in (f"not {gold}", f"The answer is not {gold}", f"anything but {gold}"):
        yield "negated", fill_template(template, text)
    if (alike := lookalike(gold)) is not None:
        yield "lookalike", fill_template(template, alike)
    yield "bytes_around", fill_template(template, f"{gold}\x00{other}")
    yield "bytes_around", fill_template(template, f"{other}\x00{gold}")


def hostile(cases: Iterable[AuditCase], template: str, canary: Canary) -> Iterator[tuple[AuditCase, str, str]]:
    """Case, family and text of the library of tricks, on a few of the cases."""
    for case in cases:
        for name, texts in TRICKS.items():
            for text in texts:
                for written in dict.fromkeys((text, fill_template(template, text))):
                    if not _right(case, text, folded=True):
                        yield case, f"trick_{name}", written
        for text in payloads(canary):
            yield case, "payload", text
        for text in ("word " * 20_000, "0123456789" * 5_000, "x" * 100_000, "\n" * 50_000, f"{case.prompt} hm. " * 2_000):
            yield case, "long", text
        yield case, "long", fill_template(template, " ".join(str(n) for n in range(10_000)))


def _junk(seeds: Iterable[int], template: str) -> Iterator[tuple[str, str]]:
    signs = "abcdefghijklmnopqrstuvwxyz 0123456789 +-*/=(){}[]<>\\$_^%#&.,:;!?'\""
    for seed in seeds:
        rng = generator("audit/junk", int(seed))
        text = "".join(signs[int(i)] for i in rng.integers(0, len(signs), int(rng.integers(8, 200))))
        yield "junk", f"{text} zq"
        yield "junk", fill_template(template, f"zq{text[:6]}")


def _right(case: AuditCase, text: str, *, folded: bool = False) -> bool:
    """Whether a text is plainly one of the case's right answers; ``folded``: or would be in another case."""
    return any(same(text, s) or (folded and text.strip().casefold() == s.strip().casefold()) for s in case.solutions)


def _other_characters(gold: str) -> Iterator[str]:
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in gold)
    minus = gold.replace("-", "\u2212")
    for other in dict.fromkeys((wide, minus, f"\u00a0{gold}\u2009", f"{gold[:1]}\u200b{gold[1:]}", f"\ufeff{gold}")):
        if other != gold:
            yield other

"""The proofs of Metamath: a stack, and substitution."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.verify.proof.database import Assertion, Expression, Hypothesis, MetamathDatabase

__all__ = ["Gap", "Misstep", "TooMuch", "check_steps", "steps_of"]

_DIGITS = re.compile(r"[U-Y]{0,11}[A-T]|Z|\?|.", re.DOTALL)


class Misstep(Exception):
    """A step does not follow; says which and why."""


class Gap(Exception):
    """A step is left open."""


class TooMuch(Exception):
    """The proof is larger than allowed."""


@dataclass(slots=True)
class _Budget:
    """How many symbols may still be written."""

    left: int

    def spend(self, symbols: int) -> None:
        self.left -= symbols + 1
        if self.left < 0:
            raise TooMuch


def steps_of(words: Sequence[str], asked: Assertion) -> Iterator[str | int | None]:
    """The steps of a proof, normal or compressed: a label, the number of a kept step to repeat, or None to keep the last one.

    Raises:
        Gap: a step is ``?``.
        Misstep: the compressed form is broken.
    """
    if words[:1] != ["("]:
        for word in words:
            if word == "?":
                raise Gap
            yield word
        return
    if ")" not in words:
        raise Misstep("the list of labels has no end")
    end = words.index(")")
    needed = [h.label for h in asked.needs]
    labels = [*needed, *words[1:end]]
    if set(words[1:end]) & set(needed):
        raise Misstep("the list of labels has hypotheses that are in it anyway")
    for found in _DIGITS.findall("".join(words[end + 1 :])):
        if found == "?":
            raise Gap
        if found == "Z":
            yield None
            continue
        number = _number(found)
        yield labels[number] if number < len(labels) else number - len(labels)


def _number(letters: str) -> int:
    if not "A" <= letters[-1] <= "T":
        raise Misstep(f"{letters[:20]!r} is no step")
    number = 0
    for letter in letters[:-1]:
        number = number * 5 + ord(letter) - ord("U") + 1
    return number * 20 + ord(letters[-1]) - ord("A")


def check_steps(words: Sequence[str], asked: Assertion, database: MetamathDatabase, symbols: int) -> int:
    """Follows a proof; how many steps it has.

    Args:
        words: the proof.
        asked: what it is to prove.
        database: whose assertions before ``asked`` it may use.
        symbols: how many symbols may be written on the way; more is ``TooMuch``.

    Raises:
        Misstep: it is no proof of that.
        Gap: it leaves steps open.
        TooMuch: it is larger than allowed.
    """
    hypotheses = {h.label: h for h in asked.scope}
    for label in words[1 : words.index(")")] if words[:1] == ["("] and ")" in words else ():
        if label not in hypotheses:
            _earlier(label, asked, database)  # also where no step uses it
    variables = {h.expression[1] for h in asked.scope if h.floating}
    budget, stack, kept, count = _Budget(symbols), list[Expression](), list[Expression](), 0
    for step in steps_of(words, asked):
        count += 1
        if step is None:
            if not stack:
                raise Misstep("nothing is there to be kept")
            kept.append(stack[-1])
        elif isinstance(step, int):
            if step >= len(kept):
                raise Misstep(f"there is no kept step {step}")
            stack.append(kept[step])
        elif step in hypotheses:
            stack.append(hypotheses[step].expression)
        else:
            _apply(_earlier(step, asked, database), asked, variables, stack, budget)
        budget.spend(0)
    if len(stack) != 1:
        raise Misstep(f"{len(stack)} expressions are left; a proof leaves one")
    if stack[0] != asked.expression:
        raise Misstep(f"it proves {' '.join(stack[0])[:100]!r}")
    return count


def _earlier(step: str, asked: Assertion, database: MetamathDatabase) -> Assertion:
    used = database.assertions.get(step)
    if used is None or used.order >= asked.order:
        raise Misstep(f"{step[:60]!r} is no hypothesis in force and no earlier assertion")
    return used


def _apply(used: Assertion, asked: Assertion, variables: set[str], stack: list[Expression], budget: _Budget) -> None:
    step = used.label
    base = len(stack) - len(used.needs)
    if base < 0:
        raise Misstep(f"{step!r} needs {len(used.needs)} hypotheses, and {len(stack)} are there")
    given: dict[str, Expression] = {}
    for hypothesis, found in zip(used.needs, stack[base:], strict=True):
        _fits(hypothesis, found, given, step, budget)
    for a, b in used.apart:
        first, second = (variables.intersection(given[v]) for v in (a, b))
        budget.spend(len(given[a]) + len(given[b]) + len(first) * len(second))
        for x in first:
            for y in second:
                if x == y or (min(x, y), max(x, y)) not in asked.kept:
                    raise Misstep(f"{step!r} needs {a} and {b} distinct, and {x} and {y} are not")
    del stack[base:]
    stack.append(_put(used.expression, given, budget))


def _fits(hypothesis: Hypothesis, found: Expression, given: dict[str, Expression], step: str, budget: _Budget) -> None:
    if hypothesis.floating:
        kind, variable = hypothesis.expression
        if found[0] != kind:
            raise Misstep(f"{step!r} needs a {kind} for {variable}, and is given a {found[0]}")
        given[variable] = found[1:]
    elif _put(hypothesis.expression, given, budget) != found:
        raise Misstep(f"{step!r} needs its hypothesis {hypothesis.label}, and is given {' '.join(found)[:100]!r}")


def _put(expression: Expression, given: dict[str, Expression], budget: _Budget) -> Expression:
    """An expression with variables replaced."""
    budget.spend(sum(len(given.get(s, "1")) for s in expression))
    out: list[str] = []
    for symbol in expression:
        out.extend(given.get(symbol, (symbol,)))
    return tuple(out)

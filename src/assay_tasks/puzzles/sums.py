"""Numbers that add up: sums across and down, magic squares, letters for digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.structure.roles import Assignment
from assay_tasks.puzzles.constraints import AllDifferent, Linear, mask_of
from assay_tasks.puzzles.puzzle import GridPuzzle, Puzzle, board, bullets, given_constraint, list_words
from assay_tasks.puzzles.solver import Model
from assay_tasks.puzzles.squares import grid_of, move_cells, repair_givens, turning, with_givens

__all__ = ["Cryptarithm", "Kakuro", "Magic"]

_DIGITS = mask_of(range(1, 10))
_LETTERS = "ABCDEFGHKLMNPRSTUVWY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kakuro(GridPuzzle):
    r"""Digits from the sums of their runs across and down, none twice in a run. The level counts rows, columns and known digits.

    >>> facts = {"size": 2, "cells": list("....") , "across": [[0, 2, 3], [2, 2, 4]], "down": [[0, 2, 4], [1, 2, 3]]}
    >>> Kakuro().solve(facts).answer
    '1 2\n3 1'
    """

    name: str = "grids/kakuro"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 0, 1), (3, 1, 3), (4, 3, 4), (5, 5, 6), (6, 8, 9))
    templates: ClassVar[tuple[str, ...]] = (
        "Solve this kakuro. Fill every dot with a digit from 1 to 9; # is a wall. A run is an unbroken line of two or more "
        "cells without a wall; no digit occurs twice in one run, and each run has the sum stated. Digits already in the grid "
        "stay.\n\n{grid}\n\nAcross:\n{across}\n\nDown:\n{down}\n\nThe cells are named by row and column: r1c2 is row 1, "
        "column 2. {rows}",
        "{grid}\n\nReplace the dots in the grid above by digits 1 to 9 (# marks walls, digits are given). The digits of each "
        "of the following groups of cells must all be different and have the given sum; r2c1 means row 2, column 1.\n\n"
        "Horizontal groups:\n{across}\n\nVertical groups:\n{down}\n\n{rows}",
        "Cross sums: every dot stands for a digit between 1 and 9.\n\n{grid}\n\nRows add up as follows, from cell to cell (r "
        "for row, c for column):\n{across}\n\nand columns as follows:\n{down}\n\nWithin each of these stretches no digit is "
        "repeated. Cells marked # hold nothing. Find the digits. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Walls and digits at random; digits are told until there is one solution."""
        n, walls, keep = self.shapes[level - 1]
        cells = [True] * (n * n)
        for cell in rng.sample(range(n * n), walls):
            cells[cell] = False
        across, down = _stretches(n, cells, 1), _stretches(n, cells, n)
        if {c for first, size in across for c in range(first, first + size)} | {
            c for first, size in down for c in range(first, first + size * n, n)
        } != {c for c in range(n * n) if cells[c]}:
            return None  # a cell that no run holds
        facts: dict[str, Any] = {
            "size": n,
            "cells": ["." if free else "#" for free in cells],
            "across": [[*run, 0] for run in across],
            "down": [[*run, 0] for run in down],
        }
        truth = self._rules(facts, sums=False).sample(rng)
        if truth is None:
            return None
        for run in facts["across"]:
            run[2] = sum(truth[run[0] : run[0] + run[1]])
        for run in facts["down"]:
            run[2] = sum(truth[run[0] : run[0] + run[1] * n : n])
        model = self._rules(facts, sums=True)
        for cell in range(n * n):
            if not cells[cell]:
                model.domains[cell] = 1
        given = repair_givens(model, truth, keep, rng)
        if given is None:
            return None
        return {**facts, "cells": [text if free else "#" for text, free in zip(given, cells, strict=True)]}

    def model(self, facts: Facts) -> Model:
        """Runs and their sums."""
        model = self._rules(facts, sums=True)
        return with_givens(model, ["." if cell == "#" else cell for cell in facts["cells"]])

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The grid with its walls."""
        n = facts["size"]
        cells = ["#" if text == "#" else str(v) for text, v in zip(facts["cells"], values, strict=True)]
        rows = [cells[i : i + n] for i in range(0, n * n, n)]
        return Solution(answer=board(rows), gold=rows)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Rows and columns exchanged, or upside down."""
        n, cells, across, down = facts["size"], facts["cells"], facts["across"], facts["down"]
        if rng.random() < 0.5:
            cells = [cells[c % n * n + c // n] for c in range(n * n)]
            across, down = ([[c % n * n + c // n, k, total] for c, k, total in runs] for runs in (down, across))
        if rng.random() < 0.5:
            cells = [cells[(n - 1 - c // n) * n + c % n] for c in range(n * n)]
            across = [[(n - 1 - c // n) * n + c % n, k, total] for c, k, total in across]
            down = [[(n - k - c // n) * n + c % n, k, total] for c, k, total in down]
        return {"size": n, "cells": cells, "across": sorted(across), "down": sorted(down)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid and the runs."""
        n = facts["size"]

        def line(first: int, last: int, total: int) -> str:
            return f"r{first // n + 1}c{first % n + 1} to r{last // n + 1}c{last % n + 1}: {total}"

        return {
            "grid": grid_of(facts["cells"], n),
            "across": bullets(line(c, c + k - 1, total) for c, k, total in facts["across"]) or "none",
            "down": bullets(line(c, c + (k - 1) * n, total) for c, k, total in facts["down"]) or "none",
            "rows": "Write the finished grid row by row with spaces between the cells, # for a wall.",
        }

    @staticmethod
    def _rules(facts: Facts, *, sums: bool) -> Model:
        n, model = facts["size"], Model()
        model.block(n * n, _DIGITS)
        for cell, text in enumerate(facts["cells"]):
            if text == "#":
                model.domains[cell] = 1
        for runs, step in ((facts["across"], 1), (facts["down"], n)):
            for first, size, total in runs:
                run = range(first, first + size * step, step)
                model.add(AllDifferent(run))
                if sums:
                    model.add(Linear(run, (1,) * size, total, total))
        return model


def _stretches(n: int, free: Sequence[bool], step: int) -> list[tuple[int, int]]:
    """First cell and length of each run of two or more free cells, along rows (step 1) or columns (step n)."""
    out: list[tuple[int, int]] = []
    for i in range(n):
        line = [i * n + k if step == 1 else k * n + i for k in range(n)]
        first = 0
        for k in range(n + 1):
            if k == n or not free[line[k]]:
                if k - first > 1:
                    out.append((line[first], k - first))
                first = k + 1
    return sorted(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Magic(GridPuzzle):
    r"""A magic square is completed. The level counts size and empty cells.

    >>> Magic().solve({"size": 3, "most": 9, "total": 15, "cells": ["2", ".", ".", "9", ".", ".", ".", ".", "."]}).answer
    '2 7 6\n9 5 1\n4 3 8'
    """

    name: str = "grids/magic"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 6), (3, 4), (4, 9), (4, 7), (4, 5))
    templates: ClassVar[tuple[str, ...]] = (
        "Complete this magic square. Its {n} rows, its {n} columns and its two diagonals all have the sum {total}. All "
        "numbers are different whole numbers from 1 to {most}.\n\n{grid}\n\n{rows}",
        "In the {n} by {n} square below, dots stand for unknown whole numbers between 1 and {most}.\n\n{grid}\n\nNo number "
        "occurs twice, and every row, every column and both diagonals add up to {total}. Fill in the dots. {rows}",
        "{grid}\n\nReplace the dots by whole numbers (1 to {most}, no number used twice in the square) so that the numbers "
        "of each row, of each column and of each of the two diagonals sum to {total}. {rows}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A magic square of any numbers, of which cells are kept."""
        n, keep = self.shapes[level - 1]
        truth = _magic(n, rng)
        if truth is None:
            return None
        most = max(truth) + rng.randint(0, 3)
        facts = {"size": n, "most": most, "total": sum(truth[:n])}
        cells = repair_givens(self._rules(facts), truth, keep, rng)
        return None if cells is None else {**facts, "cells": cells}

    def model(self, facts: Facts) -> Model:
        """All different, and all sums."""
        return with_givens(self._rules(facts), facts["cells"])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Turned or mirrored."""
        return {**facts, "cells": move_cells(facts["cells"], turning(facts["size"], rng))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid."""
        n = facts["size"]
        rows = "Write the finished square row by row, with spaces between the numbers."
        return {
            "grid": grid_of(facts["cells"], n),
            "n": str(n),
            "total": str(facts["total"]),
            "most": str(facts["most"]),
            "rows": rows,
        }

    @staticmethod
    def _rules(facts: Facts) -> Model:
        n, total, model = facts["size"], facts["total"], Model()
        model.block(n * n, mask_of(range(1, facts["most"] + 1)))
        model.add(AllDifferent(range(n * n)))
        lines = [range(i * n, i * n + n) for i in range(n)] + [range(i, n * n, n) for i in range(n)]
        for line in (*lines, range(0, n * n, n + 1), range(n - 1, n * n - 1, n - 1)):
            model.add(Linear(line, (1,) * n, total, total))
        return model


def _magic(n: int, rng: Random) -> list[int] | None:
    """A magic square of different numbers from 1; None where a try failed.

    Of three rows: the general form about its middle number. Of four: the sum of two orthogonal Latin squares.
    """
    if n == 3:
        a, b = rng.sample(range(1, 9), 2)
        c = a + b + rng.randint(1, 9)
        cells = [c - b, c + a + b, c - a, c - a + b, c, c + a - b, c + a, c - a - b, c + b]
    else:
        first, second = (rng.sample(range(10), 4) for _ in range(2))
        one, two = "0123 2301 3210 1032".replace(" ", ""), "0123 3210 1032 2301".replace(" ", "")
        cells = [first[int(i)] + second[int(j)] * 2 + 1 for i, j in zip(one, two, strict=True)]
    cells = move_cells(cells, turning(n, rng))
    return cells if len(set(cells)) == n * n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cryptarithm(Puzzle):
    """A sum written in letters, each for a digit of its own. The level counts digits and summands, and fewer of the letters are
    told.

    >>> Cryptarithm().solve({"words": ["SEND", "MORE"], "total": "MONEY", "known": {}}).answer
    'D: 7, E: 5, M: 1, N: 6, O: 0, R: 8, S: 9, Y: 2'
    """

    name: str = "riddles/cryptarithm"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 2, 3), (2, 3, 3), (2, 3, 1), (2, 4, 0), (2, 5, 0), (3, 5, 0))
    templates: ClassVar[tuple[str, ...]] = (
        "In this sum every letter stands for a digit, different letters for different digits, and no number begins with "
        "0:\n\n{sum}\n\n{known}Which digit is each letter? {how}",
        "Solve the cryptarithm {sum}. Each letter is one digit from 0 to 9, no two letters are the same digit, and the first "
        "letter of a number is never 0. {known}{how}",
        "The digits of an addition were replaced by letters, equal digits by equal letters and different digits by different "
        "letters. This is the result:\n\n{sum}\n\nNo number starts with a zero. {known}Find the digits. {how}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random sum, its digits replaced by letters, some of which are told until there is one reading."""
        count, digits, keep = self.shapes[level - 1]
        numbers = [rng.randrange(10 ** (digits - 1), 10**digits) for _ in range(count)]
        texts = [str(number) for number in (*numbers, sum(numbers))]
        used = sorted(set("".join(texts)))
        if len(used) < min(4, digits + 2):
            return None
        letters = dict(zip(used, rng.sample(_LETTERS, len(used)), strict=True))
        digit = {letter: int(d) for d, letter in letters.items()}
        *words, total = ("".join(letters[d] for d in text) for text in texts)
        facts: dict[str, Any] = {"words": words, "total": total, "known": {}}
        names = sorted(digit)
        order = rng.sample(names, len(names))
        for letter in order[: min(keep, len(order) - 2)]:
            facts["known"][letter] = digit[letter]
        base = self.model(facts)
        truth = self._truth(facts, digit, len(base.domains))
        rest = [letter for letter in order if letter not in facts["known"]]
        more = base.clues(truth, [given_constraint(names.index(letter), digit[letter]) for letter in rest], rng, lean=False)
        if more is None or len(more) > len(rest) - 2:
            return None
        known = {**facts["known"], **{rest[i]: digit[rest[i]] for i in more}}
        return {**facts, "known": dict(sorted(known.items()))}

    @staticmethod
    def _truth(facts: Facts, digit: Mapping[str, int], size: int) -> list[int]:
        """Values of the model's variables: the letters', then the carries'."""
        values, carry = [digit[letter] for letter in sorted(digit)], 0
        for place in range(1, size - len(digit) + 1):
            carry = (carry + sum(digit[w[-place]] for w in facts["words"] if place <= len(w))) // 10
            values.append(carry)
        return values

    def model(self, facts: Facts) -> Model:
        """Letters all different, and each column with its carry."""
        words, total = facts["words"], facts["total"]
        model = Model()
        letters = sorted(set("".join((*words, total))))
        of = {letter: model.var(range(10), letter) for letter in letters}
        for word in (*words, total):
            model.domains[of[word[0]]] &= ~1
        for letter, digit in facts["known"].items():
            model.domains[of[letter]] &= 1 << digit
        model.add(AllDifferent(list(of.values())))
        carry: int | None = None
        for place in range(1, len(total) + 1):
            weights: dict[int, int] = {}
            for word in words:
                if place <= len(word):
                    weights[of[word[-place]]] = weights.get(of[word[-place]], 0) + 1
            weights[of[total[-place]]] = weights.get(of[total[-place]], 0) - 1
            if carry is not None:
                weights[carry] = 1
            carry = model.var(range(len(words)), f"carry{place}") if place < len(total) else None
            if carry is not None:
                weights[carry] = -10
            cells = [cell for cell, factor in weights.items() if factor]
            model.add(Linear(cells, [weights[cell] for cell in cells], 0, 0))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The digit of each letter."""
        letters = sorted(set("".join((*facts["words"], facts["total"]))))
        gold = {letter: str(values[i]) for i, letter in enumerate(letters)}
        return Solution(answer=", ".join(f"{letter}: {digit}" for letter, digit in gold.items()), gold=gold)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other letters."""
        letters = sorted(set("".join((*facts["words"], facts["total"]))))
        other = str.maketrans("".join(letters), "".join(rng.sample(_LETTERS, len(letters))))
        return {
            "words": [word.translate(other) for word in facts["words"]],
            "total": facts["total"].translate(other),
            "known": dict(sorted((letter.translate(other), digit) for letter, digit in facts["known"].items())),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The sum."""
        letters = sorted(set("".join((*facts["words"], facts["total"]))))
        how = f"Give the digit of every letter like this, for all letters: {letters[0]}: 1, {letters[1]}: 2"
        told = list_words([f"{letter} = {digit}" for letter, digit in facts["known"].items()])
        known = f"It is known that {told}. " if told else ""
        return {"sum": f"{' + '.join(facts['words'])} = {facts['total']}", "how": how, "known": known}

    def verifier(self, form: Form) -> Verifier:
        """All letters."""
        return Assignment(roles=tuple("0123456789"), where=form.place)

"""Games against an opponent with a fixed rule: subtraction, nim, three in a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay.tasks.turns import list_names
from assay_tasks.games.play import MOST_TURNS, Game, Match

__all__ = ["ConnectThree", "Nim", "Subtraction", "TicTacToe"]

_SPARE = 3
"""Turns beyond the longest match, for moves that are not understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtraction(Game):
    """Take the last of a pile against a perfect opponent. The level says how large the pile is, about 8 for each.

    A move takes one of a few given numbers, 1 and an even one among them. The position is won, the opponent makes no mistake
    after one of the player, and one wrong move loses. The lowest level has only 453 positions.

    >>> Subtraction().solve({"pile": 10, "moves": [1, 2, 3]}).answer.split(chr(10))
    ['take 2', 'take 3', 'take 3']
    """

    name: str = "games/subtraction"
    levels: tuple[int, ...] = tuple(range(1, 9))

    templates: ClassVar[tuple[str, ...]] = (
        "There are {pile} matches on the table. We take turns, and you begin. A move takes {moves} of them. Whoever takes the "
        "last match wins. I play perfectly, but you can win. Say 'take' and the number, such as 'take 1'.",
        "A game against a perfect player: from a heap of {pile} stones each of us in turn removes {moves}, you first. The one "
        "who removes the last stone wins. The position is a win for you. A move is written like 'take 1'.",
        "{pile} coins lie in a row. You and I alternate, you start, and each move removes {moves} coins. Taking the last coin "
        "wins the game, and you can force that. I make no mistakes. Write a move as 'take 1'.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A won pile and moves that are not so many as to win at once."""
        while True:
            moves = sorted({1, *rng.sample(range(2, 8 + level), rng.randint(1, 3))})
            pile = rng.randint(8 * level, 8 * level + 16)
            if pile > 2 * moves[-1] and any(move % 2 == 0 for move in moves) and _won_piles(pile, moves)[pile]:
                return {"pile": pile, "moves": moves}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Pile and moves in words."""
        moves = list(map(str, facts["moves"]))
        return {"pile": str(facts["pile"]), "moves": f"{', '.join(moves[:-1])} or {moves[-1]}"}

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Pile(facts)


class _Pile(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(min(MOST_TURNS, facts["pile"] // 2 + 1 + _SPARE))
        self._pile: int = facts["pile"]
        self._moves: list[int] = facts["moves"]
        self._won = _won_piles(self._pile, self._moves)

    def answer(self, action: str) -> str:
        number = action.removeprefix("take ").strip()
        if not number.isascii() or not number.isdigit() or len(number) > 9 or int(number) not in self._moves:
            return f"A move is 'take' and one of {', '.join(map(str, self._moves))}."
        if int(number) > self._pile:
            return f"There are only {self._pile} left."
        self._pile -= int(number)
        if not self._pile:
            self.win()
            return "You took the last one and win."
        mine = self._best()
        self._pile -= mine
        if not self._pile:
            self.lose()
            return f"I take {mine}, the last, and win."
        return f"I take {mine}. {self._pile} left."

    def advise(self) -> str:
        """A move to a pile that loses for whom it is left, where there is one."""
        self.effort += self._pile * len(self._moves)
        return f"take {self._best()}"

    def _best(self) -> int:
        legal = [move for move in self._moves if move <= self._pile]
        return next((move for move in legal if not self._won[self._pile - move]), legal[0])


def _won_piles(pile: int, moves: list[int]) -> list[bool]:
    """For each pile up to this one, whether who is to move wins."""
    won = [False]
    for size in range(1, pile + 1):
        won.append(any(move <= size and not won[size - move] for move in moves))
    return won


_NIM = ((3, 6), (3, 8), (3, 11), (3, 15), (4, 12), (4, 16), (5, 15), (5, 20))
"""Piles and the most in one, of each level."""
_TAKE = re.compile("(?:take )?([0-9]{1,6}) from (?:pile )?([a-e])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nim(Game):
    """Nim against a perfect opponent. Levels go from 3 piles of up to 6 to 5 of up to 20.

    Whoever takes the last stone wins. The position is won, the opponent makes no mistake after one of the player, and one wrong
    move loses; in a lost position it takes 1 from the first of the largest piles. The lowest level has only 192 positions.

    >>> Nim().solve({"piles": [3, 5, 2]}).answer.split(chr(10))[0]
    'take 4 from b'
    """

    name: str = "games/nim"
    levels: tuple[int, ...] = tuple(range(1, 9))

    templates: ClassVar[tuple[str, ...]] = (
        "We play Nim. There are these piles of stones: {piles}. A move takes any number of stones, at least one, from one pile. "
        "We move in turn, you first, and whoever takes the last stone of all wins. I play perfectly, but you can win. Write a "
        "move like 'take 1 from a'.",
        "Nim: the piles are {piles}. Each turn, a player removes one or more stones from a single pile; who removes the very "
        "last stone wins. You start from a winning position against a player who makes no mistakes. A move looks like 'take 1 "
        "from a'.",
        "Stones lie in piles: {piles}. You and I remove stones by turns, as many as we like but from one pile only and at least "
        "one. The last stone wins. It is your move, and the game is yours if you play it right. Say for example 'take 1 from a'.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Piles that are not balanced, at least two of them."""
        count, most = _NIM[level - 1]
        while True:
            piles = [rng.randint(1, most) for _ in range(count)]
            if _nim_sum(piles) and sum(piles) // 2 + 1 + _SPARE <= MOST_TURNS:
                return {"piles": piles}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The piles by letter."""
        return {"piles": _piles(facts["piles"])}

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Nim(facts)


class _Nim(Match):
    def __init__(self, facts: Facts) -> None:
        self._piles: list[int] = list(facts["piles"])
        super().__init__(sum(self._piles) // 2 + 1 + _SPARE)

    def answer(self, action: str) -> str:
        found = _TAKE.fullmatch(action)
        count, at = (int(found[1]), ord(found[2]) - 97) if found else (0, 0)
        if at >= len(self._piles) or not 1 <= count <= self._piles[at]:
            return f"That is no move. The piles are {_piles(self._piles)}."
        self._piles[at] -= count
        if not any(self._piles):
            self.win()
            return "You took the last stone and win."
        mine, where = self._best()
        self._piles[where] -= mine
        said = f"I take {mine} from {chr(97 + where)}."
        if not any(self._piles):
            self.lose()
            return f"{said} That was the last stone, and I win."
        return f"{said} The piles are {_piles(self._piles)}."

    def advise(self) -> str:
        """The move that balances the piles (their exclusive or becomes 0), where there is one."""
        self.effort += sum(self._piles)
        count, at = self._best()
        return f"take {count} from {chr(97 + at)}"

    def _best(self) -> tuple[int, int]:
        total = _nim_sum(self._piles)
        for at, pile in enumerate(self._piles):
            if pile ^ total < pile:
                return pile - (pile ^ total), at
        return 1, self._piles.index(max(self._piles))


def _nim_sum(piles: list[int]) -> int:
    total = 0
    for pile in piles:
        total ^= pile
    return total


def _piles(piles: list[int]) -> str:
    return list_names([f"{chr(97 + i)} with {n}" for i, n in enumerate(piles)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _InARow(Game):
    """Base of games on a board: three stones in a row win, the player has X and moves first.

    The opponent completes a row if it can, else it stops one that the player could complete, else it takes the first place that
    is free; so the same moves are always answered alike. A position is one that X can win in as many moves as the level says,
    and not in fewer.
    """

    width: ClassVar[int] = 3
    height: ClassVar[int] = 3
    falls: ClassVar[bool] = False
    """Whether a stone falls to the lowest free cell of its column."""
    stones: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """How many stones of each player a position may have."""

    def wins_in(self, level: int) -> int:
        """Moves of the player that a level needs."""
        return level + 1

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random stones; whether the level fits is seen by `fair`."""
        board, each = ["."] * (self.width * self.height), rng.choice(self.stones)
        for stone in "XO" * each:
            places = _places(board, self.width, self.falls)
            at = rng.choice(places)
            board[_cell(board, self.width, at) if self.falls else at] = stone
        return {"board": "".join(board), "moves": self.wins_in(level)}

    def fair(self, facts: Facts) -> bool:
        """Whether nobody has won, and X needs as many moves as said."""
        if _row(facts["board"], self.width, "X") or _row(facts["board"], self.width, "O"):
            return False
        plan, _ = _plan(facts["board"], self.width, self.falls, facts["moves"])
        return len(plan) == facts["moves"]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The board in rows."""
        return {"board": _board_text(facts["board"], self.width), "moves": str(facts["moves"])}

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Board(facts, self.width, self.falls)


_OPPONENT = "I complete three in a row if I can; else I block a place where you could complete three; else I take the first free"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicTacToe(_InARow):
    """Beat a simple opponent at tic-tac-toe. At level n the position is won in n + 1 moves, and in no fewer.

    The opponent completes or blocks a row, else takes the first free cell: only two threats at once beat it. Positions have
    none, one or two stones of each. There are only 200 of level 1 and 118 of level 2.

    >>> TicTacToe().solve({"board": "O...X....", "moves": 3}).answer.split()
    ['c3', 'c1', 'a3']
    """

    name: str = "games/tictactoe"
    levels: tuple[int, ...] = (1, 2)

    templates: ClassVar[tuple[str, ...]] = (
        "We play tic-tac-toe. You are X, I am O, and it is your move. Columns are a, b, c from the left, rows 1, 2, 3 from the "
        "top:\n{board}\n" + _OPPONENT + " cell, row by row from the top left. Get three in a row, across, down or diagonally. "
        "A move is a cell, such as a1.",
        "Tic-tac-toe, with X (you) to move:\n{board}\nCells are named by column (a to c, left to right) and row (1 to 3, top to "
        "bottom). This is how I play O: " + _OPPONENT + " cell in reading order. Win the game; name one cell per move, like a1.",
        "Win this game of noughts and crosses as X. The board (columns a to c, rows 1 to 3 from the top):\n{board}\nMy rule "
        "for O is fixed. " + _OPPONENT + " cell, reading from the top left. Write your move as a cell, for example a1.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectThree(_InARow):
    """Beat a simple opponent at connect three, 6 columns by 4 rows. At level n the position is won in n + 1 moves, no fewer.

    Stones fall to the lowest free cell of a column. The opponent completes or blocks a row, else takes the first free column.

    >>> ConnectThree().solve({"board": "." * 18 + "O.X...", "moves": 2}).answer.split()
    ['d', 'e']
    """

    name: str = "games/connect"
    levels: tuple[int, ...] = (1, 2, 3)
    width: ClassVar[int] = 6
    height: ClassVar[int] = 4
    falls: ClassVar[bool] = True
    stones: ClassVar[tuple[int, ...]] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "We play connect three on a board of 6 columns and 4 rows. A stone dropped into a column falls to its lowest free cell. "
        "You are X, I am O, and it is your move:\n{board}\n" + _OPPONENT + " column from the left. Get three in a row, across, "
        "down or diagonally. A move is a column, a to f.",
        "Connect three, X (you) to move. Columns are a to f:\n{board}\nStones fall down. My play is fixed. "
        + _OPPONENT
        + " column, counted from a. Make three in a row in any direction. Name one column per move.",
        "Win as X. Stones are dropped into the columns a to f of this board and fall as far as they can:\n{board}\nThree in a "
        "row (horizontal, vertical or diagonal) win. I have O and play like this: " + _OPPONENT + " column from the left. Each "
        "move is the letter of a column.",
    )


class _Board(Match):
    def __init__(self, facts: Facts, width: int, falls: bool) -> None:
        self._board, self._width, self._falls = list(facts["board"]), width, falls
        super().__init__(self._board.count(".") // 2 + 1 + _SPARE)
        self._planned: list[int] = []

    def answer(self, action: str) -> str:
        at = self._place(action)
        if at not in _places(self._board, self._width, self._falls):
            return "That is no free place."
        said = _reply(self._board, self._width, self._falls, at)
        self._planned = self._planned[1:] if self._planned[:1] == [at] else []
        if said < 0:
            if _row(self._board, self._width, "X"):
                self.win()
                return "Three in a row: you win."
            self.lose()
            return "The board is full: nobody wins."
        shown = f"I take {self._name(said)}.\n{_board_text(''.join(self._board), self._width)}"
        if _row(self._board, self._width, "O") or "." not in self._board:
            self.lose()
        return shown

    def advise(self) -> str:
        """The next move of a shortest win; the first free place where there is none."""
        if not self._planned:
            self._planned, nodes = _plan("".join(self._board), self._width, self._falls, 5)
            self.effort += nodes
        place = self._planned[0] if self._planned else _places(self._board, self._width, self._falls)[0]
        return self._name(place)

    def _place(self, action: str) -> int:
        if not re.fullmatch("[a-z]" if self._falls else "[a-z][1-9]", action):
            return -1
        column = ord(action[0]) - 97
        if column >= self._width:
            return -1
        return column if self._falls else (int(action[1]) - 1) * self._width + column

    def _name(self, place: int) -> str:
        return chr(97 + place) if self._falls else f"{chr(97 + place % self._width)}{place // self._width + 1}"


def _places(board: list[str], width: int, falls: bool) -> list[int]:
    """Where a stone may be put: cells, or columns where stones fall."""
    return [i for i, c in enumerate(board[:width] if falls else board) if c == "."]


def _cell(board: list[str], width: int, column: int) -> int:
    return next(i for i in range(len(board) - width + column, -1, -width) if board[i] == ".")


def _reply(board: list[str], width: int, falls: bool, place: int) -> int:
    """Puts X at a place and the opponent's answer; returns its place, or -1 where the match ended before."""
    at = _cell(board, width, place) if falls else place
    board[at] = "X"
    if _row(board, width, "X", at):
        return -1
    places = _places(board, width, falls)
    if not places:
        return -1
    for stone in "OX":
        for other in places:
            at = _cell(board, width, other) if falls else other
            board[at] = stone
            found = _row(board, width, stone, at)
            board[at] = "O" if found else "."
            if found:
                return other
    board[_cell(board, width, places[0]) if falls else places[0]] = "O"
    return places[0]


def _plan(board: str, width: int, falls: bool, most: int) -> tuple[list[int], int]:
    """A shortest win of X within so many moves, [] where there is none, and the positions looked at."""
    layer: list[tuple[list[int], list[str]]] = [([], list(board))]
    seen, nodes = {board}, 0
    for _ in range(most):
        following: list[tuple[list[int], list[str]]] = []
        for moves, here in layer:
            for place in _places(here, width, falls):
                nodes += 1
                after = here.copy()
                said = _reply(after, width, falls, place)
                if said < 0:
                    if _row(after, width, "X"):
                        return [*moves, place], nodes
                    continue
                key = "".join(after)
                if key not in seen and not _row(after, width, "O"):
                    seen.add(key)
                    following.append(([*moves, place], after))
        layer = following
    return [], nodes


def _lines(width: int, cells: int) -> list[tuple[int, int, int]]:
    height = cells // width
    return [
        (y * width + x, (y + dy) * width + x + dx, (y + 2 * dy) * width + x + 2 * dx)
        for y in range(height)
        for x in range(width)
        for dx, dy in ((1, 0), (0, 1), (1, 1), (-1, 1))
        if 0 <= x + 2 * dx < width and y + 2 * dy < height
    ]


_LINES = {(width, cells): _lines(width, cells) for width, cells in ((3, 9), (6, 24))}


_THROUGH = {size: [[line for line in lines if cell in line] for cell in range(size[1])] for size, lines in _LINES.items()}


def _row(board: list[str] | str, width: int, stone: str, at: int | None = None) -> bool:
    """Whether a stone stands three times in a row; with a cell, in a row through it."""
    size = width, len(board)
    for a, b, c in _LINES[size] if at is None else _THROUGH[size][at]:
        if board[a] == stone and board[b] == stone and board[c] == stone:
            return True
    return False


def _board_text(board: str, width: int) -> str:
    rows = [" ".join(board[i : i + width]) for i in range(0, len(board), width)]
    columns = "  " + " ".join(chr(97 + i) for i in range(width))
    return "\n".join([columns, *(f"{i} {row}" for i, row in enumerate(rows, 1))])

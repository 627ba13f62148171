"""The families of puzzles by name."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.puzzles import amounts, choices, dates, logic, marks, orders, places, spaced, squares, sums
from assay_tasks.puzzles import plans as planning

__all__ = ["grids", "plans", "riddles"]


def grids() -> Problems:
    """Grids to be filled or marked, each in the one way that its rules leave."""
    return Problems(
        name="grids",
        summary="Puzzles on squares, each with one solution.",
        problems=(
            squares.Sudoku(),
            squares.Latin(),
            squares.Futoshiki(),
            squares.Kropki(),
            squares.Skyscrapers(),
            squares.Kenken(),
            marks.Takuzu(),
            marks.Nonogram(),
            marks.Mines(),
            spaced.StarBattle(),
            spaced.Hitori(),
            spaced.Tents(),
            spaced.Akari(),
            marks.Queens(),
            sums.Kakuro(),
            sums.Magic(),
        ),
    )


def riddles() -> Problems:
    """Riddles in words and numbers, each with the one answer that it leaves."""
    return Problems(
        name="riddles",
        summary="Puzzles of numbers, orders and people, each with one solution.",
        problems=(
            places.Zebra(),
            places.Order(),
            places.Seating(),
            orders.Purchases(),
            orders.Schedule(),
            sums.Cryptarithm(),
            amounts.Ages(),
            amounts.Balance(),
            amounts.Coins(),
            amounts.Code(),
            amounts.Digits(),
            dates.Calendar(),
            choices.Knapsack(),
            choices.SubsetSum(),
            choices.Change(),
            logic.Tellers(),
            logic.Boxes(),
            logic.Syllogism(),
            logic.Circuit(),
            logic.Colouring(),
        ),
    )


def plans() -> Problems:
    """Puzzles that are solved step by step, by any plan that is short enough."""
    return Problems(
        name="plans",
        summary="Sequences of actions in small worlds; any plan that is short enough is right.",
        problems=(
            planning.Jugs(),
            planning.Hanoi(),
            planning.Pancakes(),
            planning.Lights(),
            planning.Slide(),
            planning.Blocks(),
            planning.Warehouse(),
        ),
    )

"""All games as one family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.games.battleship import Battleship
from assay_tasks.games.guessing import BlackBox, GuessNumber, TwentyQuestions
from assay_tasks.games.opponents import ConnectThree, Nim, Subtraction, TicTacToe
from assay_tasks.games.quests import Cook, Deliver, Find, Light, Unlock
from assay_tasks.games.words import Hangman, Mastermind, Wordle

__all__ = ["games"]


def games() -> Problems:
    """Games of one player, in several turns.

    Carries: AgentGym-RL (arXiv 2509.08755), in part.
    """
    return Problems(
        name="games",
        summary="Games of one player, in several turns: what they lead to decides.",
        problems=(
            GuessNumber(),
            TwentyQuestions(),
            BlackBox(),
            Mastermind(),
            Wordle(),
            Hangman(),
            Battleship(),
            Subtraction(),
            Nim(),
            TicTacToe(),
            ConnectThree(),
            Find(),
            Deliver(),
            Unlock(),
            Light(),
            Cook(),
        ),
    )

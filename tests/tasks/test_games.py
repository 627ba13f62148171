"""Games: rules by hand, oracles against brute force, and a verifier that agrees with the environment on every play."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product
from random import Random
from statistics import mean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.canon import FrozenMap, plain
from assay.core.errors import DataError
from assay.core.protocols import Snapshots
from assay.core.rollout import Rollout, Stop
from assay.core.task import Task
from assay.rollout.positions import context_after
from assay.tasks import Form
from assay.tasks.problems import Problems
from assay.tasks.turns import actions_of
from assay.testing import check_environment
from assay.verify.rollouts import rollout_of
from assay_tasks.games.family import games
from assay_tasks.games.guessing import BlackBox
from assay_tasks.games.house import House
from assay_tasks.games.opponents import ConnectThree, Nim, Subtraction, TicTacToe
from assay_tasks.games.play import Game, Replay
from assay_tasks.games.words import marks, pegs

GAMES: Problems = games()
ARMS = list(GAMES.arms())


def game(arm: str) -> Game:
    found = GAMES.problem(arm)
    assert isinstance(found, Game)
    return found


def played(facts: dict[str, Any], arm: str, *actions: str) -> tuple[bool, list[str]]:
    match = game(arm).match(facts)
    return match.won, [match.act(a) for a in actions if not match.over] + [f"won {match.won} over {match.over}"]


# ---- the protocol of all games


def test_what_is_hidden_stands_in_the_world_alone() -> None:
    task = GAMES.task("games/number", 3, "train", 0)
    assert set(task.public["facts"]) == {"problem", "digest"}
    assert set(task.world["facts"]) == {"problem", "low", "high", "secret", "turns"}
    secret = task.world["facts"]["secret"]
    others = {GAMES.task("games/number", 3, "train", i).world["facts"]["secret"] for i in range(20)}
    assert secret in range(task.world["facts"]["low"], task.world["facts"]["high"] + 1) and len(others) > 15
    with_same_prompt = Problems(name="games", problems=(game("games/nim"),)).task("games/nim", 1, "train", 0)
    assert set(with_same_prompt.public) == {"prompt", "facts"}


@pytest.mark.parametrize("form", list(Form))
def test_oracles_win_in_every_form(form: Form) -> None:
    source = replace(GAMES, form=form)
    for arm, levels in GAMES.arms().items():
        task = source.task(arm, levels[-1], "train", 1)
        trace = source.trace(task, 0.0, np.random.default_rng(0))
        said = [m.content for m in trace if m.role == "assistant"]
        score = source.verifier()(task, rollout_of(task, *said))
        assert dict(score.components) == {"correct": 1.0, "progress": 1.0} and score.info["verdict"] == "won"
        assert said == task.private["solution"].split("\n") and len(said) <= 60
        early = source.verifier()(task, rollout_of(task, *said[:-1]))
        assert early.primary == 0.0 and early.components["progress"] < 1.0 and early.info["verdict"] == "unfinished"


@pytest.mark.parametrize("arm", ARMS)
def test_the_verifier_sees_what_the_environment_saw(arm: str) -> None:
    """Plays with slips and junk: won by the environment's own match exactly where the replay says so."""
    task, rng = GAMES.task(arm, GAMES.arms()[arm][0], "train", 2), np.random.default_rng(0)
    seen = Counter[bool]()
    for noise in (0.0, 0.3, 0.3, 1.0):
        trace = GAMES.trace(task, noise, rng)
        said = [m.content for m in trace if m.role == "assistant"]
        match = game(arm).match(plain(task.world["facts"]))
        shown = [match.opening()] if match.opening() else []
        for text in said:
            shown.append(match.act(text))
        assert match.over and [m.content for m in trace if m.role == "user"] == shown[:-1]
        score = GAMES.verifier()(task, rollout_of(task, *said))
        assert score.primary == float(match.won) and score.info["turns"] == len(said)
        seen[match.won] += 1
    assert seen[True] >= 1


def test_an_action_that_was_cut_off_was_never_made() -> None:
    task = GAMES.task("games/number", 1, "train", 0)
    said = task.private["solution"].split("\n")
    cut = rollout_of(task, *said, stop=Stop.LENGTH)
    assert actions_of(cut) == said[:-1] and Replay(game("games/number"))(task, cut).primary == 0.0
    assert actions_of(Rollout(id="r", context=cut.context, calls=(), stop=Stop.LENGTH, seed=0)) == []


def test_nothing_counts_behind_the_end() -> None:
    task = GAMES.task("games/number", 1, "train", 0)
    secret = task.world["facts"]["secret"]
    wrong = [f"<answer>{n}</answer>" for n in range(100, 105)]
    assert GAMES.verifier()(task, rollout_of(task, *wrong, f"<answer>{secret}</answer>")).info["verdict"] == "lost"
    assert GAMES.verifier()(task, rollout_of(task, f"<answer>{secret}</answer>", "junk")).primary == 1.0


def test_a_task_without_facts_is_refused() -> None:
    task = Task(id="t", domain="games", arm="games/number", level=1, split="train", index=0, public=FrozenMap({"prompt": "p"}))
    with pytest.raises(DataError, match="task 't' has no 'facts' in its world to play again"):
        Replay(game("games/number"))(task, rollout_of(task, "1"))


def effort(arm: str, level: int, n: int) -> float:
    return mean(GAMES.task(arm, level, "train", i).private["effort"] for i in range(n))


@pytest.mark.parametrize("arm", ARMS)
def test_the_last_level_takes_more_than_the_first(arm: str) -> None:
    levels = GAMES.arms()[arm]
    assert effort(arm, levels[-1], 8) > 2 * effort(arm, levels[0], 8)


@pytest.mark.prove
@pytest.mark.parametrize("arm", ARMS)
def test_higher_levels_take_more(arm: str) -> None:
    found = [effort(arm, level, 60) for level in GAMES.arms()[arm]]
    assert all(b > 0.95 * a for a, b in pairwise(found)) and found[-1] > 2.5 * found[0], found


FIRST = {arm: GAMES.task(arm, 1, "train", 0) for arm in ARMS}


@settings(max_examples=30)
@given(st.sampled_from(ARMS), st.lists(st.text(max_size=30), max_size=6))
def test_no_action_makes_a_match_raise(arm: str, actions: list[str]) -> None:
    task = FIRST[arm]
    score = GAMES.verifier()(task, rollout_of(task, *actions))
    assert score.valid and score.info["turns"] <= len(actions)


def test_environments_are_single_use() -> None:
    async def twice() -> None:
        world = GAMES.environment(GAMES.task("games/nim", 1, "train", 0).public_view())
        assert world is not None and (await world.start()).messages == ()
        with pytest.raises(DataError, match="start while it is open; environments are single use"):
            await world.start()

    asyncio.run(twice())


# ---- rules by hand


def test_the_number_game() -> None:
    facts = {"low": 11, "high": 18, "secret": 16, "turns": 4}
    said = played(facts, "games/number", "14", "it is <answer> 17. </answer>", "x", "16")[1]
    assert said == [
        "My number is higher than 14.",
        "My number is lower than 17.",
        "Please guess a whole number.",
        "Yes, that is it.",
        "won True over True",
    ]
    assert played(facts, "games/number", *"1234")[1][-1] == "won False over True"


def test_questions_about_a_table() -> None:
    rows = [["bik", "red", "new"], ["dan", "red", "old"], ["fel", "blue", "new"], ["gom", "blue", "old"]]
    facts = {"attributes": ["colour", "age"], "things": rows, "secret": 3, "turns": 5}
    said = played(facts, "games/questions", "Colour red?", "ask age old", "size huge", "fel", "gom")[1]
    assert said[:2] == ["No.", "Yes."] and said[2].startswith("Ask about one of colour, age")
    assert said[3:] == ["No, that is not it.", "Yes, that is it.", "won True over True"]


def test_polynomials_agree_with_numpy() -> None:
    problem, rng, facts = BlackBox(), Random(0), dict[str, Any]()
    for level in problem.levels:
        facts = problem.draw(level, rng)
        match = problem.match(facts)
        for x in (-9, 0, 4):
            assert match.act(str(x)) == f"f({x}) = {int(np.polyval(facts['coefficients'], x))}"
        assert problem.solve(facts).answer.endswith(f"coefficients {', '.join(map(str, facts['coefficients']))}")
    assert problem.match(facts).act("10").startswith("Say a whole number from -9")
    assert problem.match(facts).act("coefficients 1, x").startswith("A statement has 7 whole numbers")
    assert problem.match(facts).act("Coefficients: 1, 2, 3, 4, 5, 6, 7") == "No, that is not f."


def test_pegs_and_marks_against_their_definitions() -> None:
    """Pegs by multisets; marks by the rule that a letter is marked, left to right, as often as the word has it."""
    for guess, code in product(product("abc", repeat=3), repeat=2):
        exact = sum(a == b for a, b in zip(guess, code, strict=True))
        assert pegs("".join(guess), "".join(code)) == (exact, sum((Counter(guess) & Counter(code)).values()) - exact)
        found = marks("".join(guess), "".join(code))
        for letter in "abc":
            at = [i for i, c in enumerate(guess) if c == letter]
            green = [i for i in at if code[i] == letter]
            yellow = [i for i in at if i not in green][: code.count(letter) - len(green)]
            assert [found[i] for i in at] == ["G" if i in green else "Y" if i in yellow else "-" for i in at]


def test_hangman_counts_mistakes() -> None:
    facts = {"words": ["tara", "bora", "bara"], "secret": 2, "mistakes": 3, "turns": 9}
    said = played(facts, "games/hangman", "a", "a", "x", "bora", "?", "y", "bara")[1]
    assert said == [
        "_ a _ a (3 mistakes left)",
        "You have said a before. _ a _ a (3 mistakes left)",
        "There is no x. _ a _ a (2 mistakes left)",
        "The word is not bora. _ a _ a (1 mistake left)",
        "Say one letter, or the whole word.",
        "There is no y. _ a _ a (0 mistake left)",
        "won False over True",
    ]


def test_battleship_answers() -> None:
    facts = {"side": 3, "ships": [[[0, 0], [1, 0]], [[0, 2], [1, 2], [2, 2]]], "turns": 9}
    said = played(facts, "games/battleship", "c1", "c1", "b1", "a1", "d1", "a3", "b3", "c3")[1]
    assert said == [
        "c1: miss",
        "You have shot at c1 before.",
        "b1: hit",
        "a1: hit, and the ship of 2 cells is sunk",
        "Name a cell from a1 to c3.",
        "a3: hit",
        "b3: hit",
        "c3: hit, and the ship of 3 cells is sunk",
        "won True over True",
    ]


def test_subtraction_against_brute_force() -> None:
    problem, rng = Subtraction(), Random(0)
    for level in problem.levels:
        facts = problem.draw(level, rng)
        moves = tuple(facts["moves"])

        @lru_cache(None)
        def wins(pile: int, moves: tuple[int, ...] = moves) -> bool:
            return any(m <= pile and not wins(pile - m) for m in moves)

        pile, match = facts["pile"], problem.match(facts)
        assert wins(pile)
        wrong = next((m for m in moves if wins(pile - m)), None)
        if wrong is not None:  # the opponent punishes every mistake
            match.act(f"take {wrong}")
            while not match.over:
                match.act(match.advise())
            assert not match.won
    assert played({"pile": 3, "moves": [1, 2]}, "games/subtraction", "take 3", "2")[1] == [
        "A move is 'take' and one of 1, 2.",
        "I take 1, the last, and win.",
        "won False over True",
    ]


def test_nim_against_brute_force() -> None:
    @lru_cache(None)
    def wins(piles: tuple[int, ...]) -> bool:
        rest = (tuple(sorted((*piles[:i], n, *piles[i + 1 :]))) for i in range(len(piles)) for n in range(piles[i]))
        return any(not wins(after) for after in rest)

    for piles in product(range(1, 5), repeat=3):
        if wins(tuple(sorted(piles))):
            match, _ = Nim().play_oracle({"piles": list(piles)})
            assert match.won, piles
    assert all(wins(tuple(sorted(Nim().draw(1, Random(i))["piles"]))) for i in range(20))
    said = played({"piles": [2, 1]}, "games/nim", "take 3 from a", "take 2 from a", "x")[1]
    assert said[:2] == [
        "That is no move. The piles are a with 2 and b with 1.",
        "I take 1 from b. That was the last stone, and I win.",
    ]


@pytest.mark.parametrize("problem", [TicTacToe(), ConnectThree()])
def test_boards_are_won_in_as_many_moves_and_no_fewer(problem: TicTacToe | ConnectThree) -> None:
    """Every sequence of moves is played through the match itself."""
    names = [f"{c}{r}" for r in "123" for c in "abc"] if isinstance(problem, TicTacToe) else list("abcdef")
    for level in problem.levels[:2]:
        for index in range(4):
            facts = plain(GAMES.task(problem.name, level, "train", index).world["facts"])

            def wins(actions: tuple[str, ...], facts: Any = facts) -> bool:
                match = problem.match(facts)
                for action in actions:
                    if not match.over:
                        match.act(action)
                return match.won

            for length in range(1, level + 1):
                assert not any(wins(a) for a in product(names, repeat=length))
            assert len(problem.solve(facts).answer.split("\n")) == level + 1


def test_a_board_by_hand() -> None:
    facts = {"board": "XX.......", "moves": 1}
    assert played(facts, "games/tictactoe", "z9", "c2", "c1")[1] == [
        "That is no free place.",
        "I take c1.\n  a b c\n1 X X O\n2 . . X\n3 . . .",
        "That is no free place.",
        "won False over False",
    ]
    assert played(facts, "games/tictactoe", "c1")[1] == ["Three in a row: you win.", "won True over True"]
    lost = {"board": "OO.XX.X..", "moves": 1}
    assert played(lost, "games/tictactoe", "c3")[1][-1] == "won False over True"
    assert TicTacToe().fair({"board": "OOO...XX.", "moves": 2}) is False
    full = {"board": "XOXXOO.XO", "moves": 1}
    assert played(full, "games/tictactoe", "a3")[1] == ["Three in a row: you win.", "won True over True"]
    assert played({"board": "XOXOXOOX.", "moves": 1}, "games/tictactoe", "c3")[1][-1] == "won True over True"
    assert played({"board": "OXOXXOXO.", "moves": 1}, "games/tictactoe", "c3")[1][0] == "The board is full: nobody wins."


# ---- the house

HOUSE = {
    "rooms": ["hall", "kitchen", "cellar"],
    "exits": [["hall", "north", "kitchen", "red door"], ["hall", "east", "cellar", ""]],
    "locks": {"red door": ["locked", "red key"], "tin box": ["closed", ""], "pot": ["open", ""]},
    "boxes": {"tin box": "hall", "oak table": "hall", "pot": "kitchen"},
    "things": {"red key": "cellar", "lamp": "tin box", "matches": "oak table", "egg": "hall", "knife": "hall"},
    "dark": ["cellar"],
    "stove": "kitchen",
    "goal": [["is", "egg", "chopped fried"], ["in", "egg", "pot"]],
    "start": "hall",
    "turns": 40,
}


def test_the_house_by_hand() -> None:
    house = House(HOUSE)
    script = {
        "l": "You are in the hall. Exits: east, north (locked, takes the red key: red door). You see the tin box (closed), "
        "the oak table (on it the matches), the egg and the knife.",
        "n": "I do not understand that.",
        "go north": "The red door is locked.",
        "go south": "There is no way in that direction.",
        "open red door": "The red door is locked.",
        "take the lamp": "You see no such thing here.",
        "open the tin box": "You open the tin box. In it: the lamp.",
        "close tin box": "You close the tin box.",
        "close red door": "The red door is locked.",
        "open pot": "You see nothing of that name to open.",
        "unlock red door with red key": "You do not have that.",
    }
    assert {command: house.act(command) for command in script} == script
    for command in ("open tin box", "get lamp from tin box", "take matches"):
        house.act(command)
    assert house.act("inventory") == "You carry the lamp and the matches."
    assert house.act("east") == "You are in the cellar. Exits: west. It is too dark to see anything else."
    assert house.act("take red key") == "You see no such thing here."
    assert house.act("light lamp").startswith("You light the lamp. You are in the cellar. Exits: west. You see the red key.")
    assert [house.act(c) for c in ("take red key", "take red key", "west")][:2] == [
        "You take the red key.",
        "You have it already.",
    ]
    assert house.act("unlock red door with lamp") == "It does not fit."
    assert house.act("unlock red door with red key") == "You unlock the red door. It is closed."
    for command in ("open red door", "take egg", "take knife", "chop egg", "north"):
        house.act(command)
    assert house.act("chop egg") == "It is chopped already." and house.act("chop knife") == "You do not have that."
    assert house.act("fry egg") == "You have fried the egg." and house.progress == 0.5
    assert house.act("put egg in tin box") == "You see no such place here."
    assert house.act("drop egg") == "You drop the egg." and house.act("put egg in pot") == "You do not have that."
    assert "the chopped fried egg" in house.act("look") and house.act("take chopped fried egg") == "You take the egg."
    assert house.act("put egg into the pot") == "You put the egg in the pot." and house.won


def test_what_cannot_be_done() -> None:
    house = House(HOUSE | {"turns": 3})
    assert house.act("light lamp") == "You have no such thing to light." and house.act("fry egg") == "You do not have that."
    house.act("take egg")
    assert house.over and not house.won
    house = House(HOUSE)
    for command in ("take egg", "open tin box", "take lamp"):
        house.act(command)
    assert house.act("chop egg") == "You need a knife." and house.act("fry egg") == "There is no stove here."
    assert house.act("light lamp") == "You need matches." and house.act("take egg from pot") == "You have it already."
    assert house.act("take ring from pot") == "You see no such thing there." and house.act("drop ring") == "You do not have that."


def test_the_walkthrough_of_a_house_wins_it() -> None:
    house, steps = House(HOUSE), list[str]()
    while not house.over:
        steps.append(house.advise())
        house.act(steps[-1])
    assert house.won and len(steps) < 20
    assert steps.index("light lamp") < steps.index("take red key") < steps.index("unlock red door with red key")


@pytest.mark.parametrize("arm", ["games/find", "games/deliver", "games/unlock", "games/light", "games/cook"])
def test_random_play_does_not_win(arm: str) -> None:
    """Other random plays than those by which the house was chosen win rarely."""
    won = 0
    for index in range(40):
        task = GAMES.task(arm, 1 + index % 5, "train", index)
        won += House(plain(task.world["facts"])).wander(Random(index))
    assert won <= 6


def test_every_command_offered_does_something() -> None:
    for arm, seed in product(("games/light", "games/cook", "games/unlock"), range(3)):
        house, rng = House(plain(GAMES.task(arm, 3, "train", seed).world["facts"])), Random(seed)
        while not house.over:
            command = rng.choice(house.admissible())
            assert not house.act(command).startswith(
                ("I do not", "You do not", "You see no", "There is no", "It does", "You need")
            )


def test_codes_and_orders_are_not_fixed() -> None:
    """No action of a fixed order is the oracle's first in most tasks of the guessing games."""
    for arm in ("games/wordle", "games/mastermind", "games/number"):
        first = Counter(GAMES.task(arm, 2, "train", i).private["answer"].split("\n")[0] for i in range(60))
        assert max(first.values()) < 36


# ---- snapshots


@pytest.mark.parametrize("arm", ARMS)
def test_a_match_goes_on_from_its_snapshot_and_is_judged_from_there(arm: str) -> None:
    task = GAMES.task(arm, GAMES.arms()[arm][0], "test", 0)
    said = [m.content for m in GAMES.trace(task, 0.0, np.random.default_rng(0)) if m.role == "assistant"]
    assert "snapshots restore" in check_environment(GAMES, task).passed
    half = len(said) // 2
    start = rollout_of(task, *said[half:])
    posed = asyncio.run(context_after(GAMES, start.context, said[:half]))
    assert posed.snapshot == {"actions": said[:half]}
    whole, later = (GAMES.verifier()(task, r) for r in (rollout_of(task, *said), replace(start, context=posed)))
    assert (later.components, whole.primary) == (whole.components, 1.0)


def test_a_restored_match_shows_what_was_said_and_heard() -> None:
    task = GAMES.task("games/number", 3, "test", 0)
    trace = GAMES.trace(task, 0.0, np.random.default_rng(0))
    said = [m.content for m in trace if m.role == "assistant"]
    world = GAMES.environment(task.public_view())
    assert isinstance(world, Snapshots)
    shown = asyncio.run(world.restore({"actions": said[:1]}))
    assert list(shown.messages) == list(trace[: len(shown.messages)])
    for wrong, words in (({"actions": said}, "the match is over behind the snapshot"), ("x", "'x' is no snapshot of a match")):
        world = GAMES.environment(task.public_view())
        assert isinstance(world, Snapshots)
        with pytest.raises(DataError, match=words):
            asyncio.run(world.restore(wrong))

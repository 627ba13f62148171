"""Mazes: drawn and solved by hand, measured by another search, and walked."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest

from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.tasks import Form, family
from assay.testing.problems import check_problem
from assay.verify.rollouts import rollout_of, task_and_rollout
from assay_tasks.mazes.family import AnyWay, MazeDistance, MazeReachable, ShortestWay
from assay_tasks.mazes.grid import carve
from assay_tasks.mazes.maze import shortest
from assay_tasks.mazes.walk import MazeWalk
from assay_tasks.mazes.winding import WindingWay, count_turns

SMALL = "S.#.G\n.#...\n....#"


def _graph(rows: list[str]) -> Any:
    """The open cells as a networkx graph."""
    graph: Any = nx.grid_2d_graph(len(rows), len(rows[0]))
    graph.remove_nodes_from([(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == "#"])
    return graph


def _mark(rows: list[str], mark: str) -> tuple[int, int]:
    return next((r, c) for r, row in enumerate(rows) for c, here in enumerate(row) if here == mark)


def test_a_maze_by_hand() -> None:
    assert ShortestWay().solve({"maze": SMALL}).answer == "down, down, right, right, up, right, up, right"
    assert MazeDistance().solve({"maze": SMALL}).answer == "8"
    assert MazeReachable().solve({"maze": SMALL.replace("....#", ".#..#")}).answer == "no"
    drawn, told = (AnyWay().word({"maze": SMALL}, variant) for variant in (0, 1))
    assert f"\n{SMALL}\n" in drawn
    assert "3 rows and 5 columns" in told and "The walls: (0, 2), (1, 1), (2, 4). The start is (0, 0), the goal (0, 4)." in told
    assert "The walls: none." in AnyWay().word({"maze": "SG"}, 1)


@pytest.mark.parametrize(
    "problem", [AnyWay(), ShortestWay(), MazeDistance(), MazeReachable(), WindingWay()], ids=lambda p: p.name
)
def test_each_problem_keeps_the_contract(problem: Any) -> None:
    check_problem(problem, n=16, growth=5.0)


def test_distances_agree_with_networkx() -> None:
    seen = 0
    for problem in (ShortestWay(), MazeReachable()):
        for level in problem.levels:
            for index in range(6):
                rows = problem.draw(level, Random(index))["maze"].split("\n")
                graph, start, goal = _graph(rows), _mark(rows, "S"), _mark(rows, "G")
                way, _ = shortest(rows)
                assert (way is not None) == nx.has_path(graph, start, goal)
                if way is not None:
                    assert len(way) == nx.shortest_path_length(graph, start, goal)
                    seen += 1
    assert seen > 60


def test_mazes_without_loops_are_trees() -> None:
    rows = ["".join(row) for row in carve(5, 7, 0.0, Random(3))]
    assert (len(rows), len(rows[0])) == (9, 13) and nx.is_tree(_graph(rows))
    whole = ["".join(row) for row in carve(5, 7, 1.0, Random(3))]
    assert all("#" not in row[::2] for row in whole[::2]) and sum(row.count("#") for row in whole) == 4 * 6


def test_a_winding_way_is_the_only_one_and_has_its_moves_and_turns() -> None:
    """Ariadne's control of difficulty, by another search: exact length, exact turns, one simple path."""
    problem, dead_ends = WindingWay(), 0
    for level, (moves, turns) in enumerate(problem.stages, 1):
        for index in range(12):
            rows = problem.draw(level, Random(index))["maze"].split("\n")
            graph, start, goal = _graph(rows), _mark(rows, "S"), _mark(rows, "G")
            ways = list(nx.all_simple_paths(graph, start, goal))
            found, _ = shortest(rows)
            assert len(ways) == 1 and found is not None and len(found) == len(ways[0]) - 1 == moves
            assert count_turns(found) == turns
            dead_ends += graph.number_of_nodes() > moves + 1 and nx.has_path(graph, start, goal)
    assert dead_ends > 60, "most mazes have cells off the way"


def test_going_to_and_fro_is_no_winding_way() -> None:
    solution = WindingWay().solve({"maze": "S.#\n#.G"})
    judge = WindingWay().verifier(Form.PLAIN)
    said = ("right, down, right", "right, left, right, down, right", "down, right, right")
    assert [judge(*task_and_rollout(solution.gold, text)).primary for text in said] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "settings", [{"stages": ((3, 3),)}, {"stages": ((1, 0),)}, {"loops": 0.1}, {"dead": 2.0}, {"levels": (99,)}]
)
def test_impossible_winding_ways_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"mazes/winding"):
        WindingWay(**{"levels": (1,), **settings})


def test_half_of_the_goals_can_be_reached() -> None:
    share = sum(MazeReachable().solve(MazeReachable().draw(2, Random(i))).answer == "yes" for i in range(200)) / 200
    assert abs(share - 0.5) < 0.12


@pytest.mark.parametrize("settings", [{"loops": 1.5}, {"levels": (21,)}])
def test_impossible_mazes_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"mazes/path\.(loops|levels)"):
        AnyWay(**settings)


# ---- walks

FACTS = {"maze": "S....#..G\n####.###.\n........."}


def _say(*actions: str) -> list[str]:
    """What a walk shows, the opening first."""
    match = MazeWalk().match(FACTS)
    return [match.opening(), *[match.act(action) for action in actions]]


def test_a_walk_by_hand() -> None:
    said = _say("right", "jump", "down", "RIGHT", "Answer: west")
    assert said[0] == "You are in row 1, column 1. Open ways: right."
    assert said[1] == "You are in row 1, column 2. Open ways: left, right."
    assert said[2] == f"Please say up, down, left or right. {said[1]}"
    assert said[3] == f"There is a wall. {said[1]}"
    assert said[4:] == ["You are in row 1, column 3. Open ways: down, left.", said[1]]
    text = MazeWalk().word(FACTS, 0)
    assert "2 rows and 5 columns" in text and "the exit is in row 1, column 5" in text and "at most 18 turns" in text


def test_walks_are_won_by_their_oracle_and_seen_only_from_inside() -> None:
    source, rng = family("mazes").only("mazes/walk"), np.random.default_rng(0)  # pyright: ignore
    efforts: list[float] = []
    for level in MazeWalk().levels:
        tasks = [source.task("mazes/walk", level, "train", i) for i in range(30)]
        efforts.append(sum(task.private["effort"] for task in tasks))
        for task in tasks:
            assert set(task.public["facts"]) == {"problem", "digest"} and "#" not in task.public["prompt"]
            said = [m.content for m in source.trace(task, 0.0, rng) if m.role == "assistant"]
            score = source.verifier()(task, rollout_of(task, *said))
            assert score.primary == 1.0 and len(said) <= 2 * (len(_rooms(task)) - 1)
            assert source.verifier()(task, rollout_of(task, *said[:-1])).primary == 0.0
    assert efforts == sorted(efforts) and efforts[-1] > 3 * efforts[0]


def _rooms(task: Any) -> list[tuple[int, int]]:
    rows = plain(task.world["facts"])["maze"].split("\n")
    return [(r, c) for r in range(0, len(rows), 2) for c in range(0, len(rows[0]), 2)]


def test_a_slip_does_not_lose_the_way() -> None:
    source, rng = family("mazes").only("mazes/walk"), np.random.default_rng(0)  # pyright: ignore
    task = source.task("mazes/walk", 5, "train", 0)
    for _ in range(20):
        turns = source.trace(task, 0.3, rng)

        async def play(said: list[str]) -> list[str]:
            environment = source.environment(task.public_view())
            assert environment is not None
            shown = [m.content for m in (await environment.start()).messages]
            for text in said:
                shown += [m.content for m in (await environment.step(text)).obs.messages]
            return shown

        said = [m.content for m in turns if m.role == "assistant"]
        assert asyncio.run(play(said)) == [m.content for m in turns if m.role == "user"]


@pytest.mark.parametrize(
    "settings",
    [
        {"levels": (6,)},
        {"sizes": ((6, 6),), "levels": (1,)},
        {"sizes": ((1, 1),), "levels": (1,)},
        {"loops": -0.1},
    ],
)
def test_impossible_walks_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"mazes/walk\.(levels|sizes|loops)"):
        MazeWalk(**settings)

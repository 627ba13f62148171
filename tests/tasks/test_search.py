"""An invented world and its encyclopedia: nothing is known beforehand, everything asked stands on a page, clues are unique."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from itertools import pairwise
from statistics import mean
from typing import Any

import numpy as np
import pytest

from assay.core.canon import plain
from assay.core.errors import DataError
from assay.core.rollout import Stop
from assay.core.task import Task
from assay.tasks import Problems
from assay.testing import check_verifier
from assay.verify.rollouts import rollout_of, task_and_rollout
from assay_tasks.search.environment import SearchEnvironment, SearchVerifier, parse_call
from assay_tasks.search.lore import KINDS, PHRASES, RELATIONS, lore
from assay_tasks.search.questions import Clues, Hops, Masks, search

SEARCH: Problems = search()


def tasks(arm: str, level: int, n: int) -> list[Task]:
    return [SEARCH.task(arm, level, "train", i) for i in range(n)]


# ---- the world


def test_names_are_a_bijection_and_pages_say_every_fact() -> None:
    world = lore(0, 400)
    names = [name for kind in KINDS for name in world.names[kind]]
    assert len(names) == len({n.casefold() for n in names}) == len(world.pages) == 400
    for name in names:
        said = world.pages[name]
        assert said.startswith(f"{name} is a {world.kind[name]}.") and said.count(".") == 1 + len(world.facts[name])
        assert all(f"{PHRASES[r][1].format(v)}." in said for r, v in world.facts[name].items())
    for one in world.names["person"]:
        other = world.facts[one]["spouse"]
        assert other != one and world.facts[other]["spouse"] == one
    for country in world.names["country"]:
        assert world.facts[world.facts[country]["capital"]]["country"] == country


def test_invented_names_are_no_words_of_the_pages() -> None:
    world = lore(0, 1000)
    common = {w.casefold() for _, verb in PHRASES.values() for w in re.findall(r"\w+", verb)} | set(KINDS)
    parts = {w.casefold() for kind in ("city", "country", "person") for n in world.names[kind] for w in n.split()}
    assert not parts & common


def test_worlds_are_shared_and_depend_on_their_seed() -> None:
    assert lore(0, 200) is lore(0, 200) and lore(1, 200).pages != lore(0, 200).pages
    assert set(lore(1, 200).names["film"]).isdisjoint(lore(0, 200).names["film"])


def test_searching() -> None:
    world = lore(0, 200)
    for kind in KINDS:
        for name in world.names[kind][:10]:
            assert world.search(name, 3)[0] == name
    assert world.search('" OR * NEAR( -', 3) != [""] and world.search("?!", 3) == []
    assert len(world.search("person", 7)) == 7


# ---- the desk


def ask(task: Task, *turns: str) -> list[str]:
    async def play() -> list[str]:
        desk = SEARCH.environment(task.public_view())
        assert isinstance(desk, SearchEnvironment) and (await desk.start()).messages == ()
        shown: list[str] = []
        for turn in turns:
            step = await desk.step(turn)
            shown.append("|".join([m.content for m in step.obs.messages] + [r.error or "" for r in step.results]))
            if step.done:
                return [*shown, "over"]
        return shown

    return asyncio.run(play())


def test_calls_in_a_turn() -> None:
    assert parse_call("I look.\n SEARCH: a b ") == ("search", 3, "a b") and parse_call("read: X\nno") is None
    assert parse_call("search(99): a") == ("search", 10, "a") and parse_call("search(x): a") is None and parse_call("") is None


def test_the_desk_answers_until_the_answer() -> None:
    (task,) = tasks("search/hops", 1, 1)
    start = task.public["facts"]["start"]
    world = lore(0, 200)
    shown = ask(task, f"read: {start}", "read: nothing", "search: ,", f"search(2): {start}", "It is X.")
    assert shown[0] == f"{world.pages[start]}|" and shown[1] == "There is no page of that title.|unknown page 'nothing'"
    assert shown[2].startswith("No page has any of these words.|nothing found")
    assert shown[3].startswith(f"1. {start} is a ") and shown[3].count("\n") == 1 and shown[-1] == "over"
    calls = task.world["calls"]
    assert len(ask(task, *["search: x"] * 30)) == calls + 2  # one more call than there are ends it


def test_tools_say_what_they_take() -> None:
    (task,) = tasks("search/hops", 1, 1)
    desk = SEARCH.environment(task.public_view())
    assert isinstance(desk, SearchEnvironment)
    for name, tool in desk.tools.items():
        (needed,) = tool.schema["parameters"]["required"]
        assert tool.schema["name"] == name and asyncio.run(tool.call({needed: ""}, task.public_view())).error
    with pytest.raises(DataError, match="step while it is new"):
        asyncio.run(desk.step("x"))


# ---- the verifier


def test_answers_and_evidence() -> None:
    gold = {"items": ["Bada Kel", "1950"], "pages": ["P", "Q"]}
    task, _ = task_and_rollout(gold, "")
    read = rollout_of(task, "read: P", "search: Q", "Answer: bada  kel, 1950.")
    assert dict(SearchVerifier()(task, read).components) == {"correct": 1.0, "evidence": 0.5}
    check_verifier(
        SearchVerifier(),
        [
            (task, rollout_of(task, "bada kel , 1950"), 1.0),
            (task, rollout_of(task, "1950, Bada Kel"), 0.0),
            (task, rollout_of(task, "Bada Kel, 1950", stop=Stop.LENGTH), 0.0),
            (task, rollout_of(task), 0.0),
            (task, rollout_of(task, ""), 0.0),
        ],
    )
    with pytest.raises(DataError, match="has no gold with 'items' and 'pages' but 'x'"):
        SearchVerifier()(*task_and_rollout("x", "x"))


# ---- what is asked


@pytest.mark.parametrize("arm", list(SEARCH.arms()))
def test_every_answer_stands_on_a_page_and_is_found(arm: str) -> None:
    verifier = SEARCH.verifier()
    for level in SEARCH.arms()[arm][:4]:
        for task in tasks(arm, level, 6):
            gold: Any = task.private["answer"]
            pages = lore(0, plain(task.world["lore"])[1]).pages
            assert all(any(item in page for page in pages.values()) for item in gold["items"])
            trace = SEARCH.trace(task, 0.0, np.random.default_rng(0)) or ()
            said = [m.content for m in trace if m.role == "assistant"]
            assert dict(verifier(task, rollout_of(task, *said)).components) == {"correct": 1.0, "evidence": 1.0}
            closed = verifier(task, rollout_of(task, said[-1]))
            assert closed.components["evidence"] == 0.0  # the answer alone shows no work
            noisy = SEARCH.trace(task, 1.0, np.random.default_rng(1)) or ()
            assert len(noisy) >= len(trace)


def test_chains_against_the_pages() -> None:
    """Each hop is read off the text of a page, by its sentence."""
    for level in Hops().levels:
        for task in tasks("search/hops", level, 8):
            facts = plain(task.public["facts"])
            pages, at, met = lore(0, facts["pages"]).pages, facts["start"], {facts["start"]}
            for relation in facts["path"]:
                found = re.search(
                    re.escape(PHRASES[relation][1]).replace(r"\{\}", "((?!the year ).+?)") + r"\.(?: |$)", pages[at]
                )
                assert found
                at = found[1]
                assert at not in met
                met.add(at)
            assert plain(task.private["answer"])["items"] == [at]


def test_no_clue_is_enough_and_all_are() -> None:
    """Candidates by brute force over all things of the kind, following relations one by one."""
    for level in Clues().levels:
        for task in tasks("search/clues", level, 6):
            facts = plain(task.public["facts"])
            world = lore(0, facts["pages"])

            def fits(name: str, path: list[str], value: str, decade: bool, facts: Any = world.facts) -> bool:
                for relation in path:
                    name = facts[name][relation]
                return (name[:3] == value[:3]) if decade else name == value

            sets = [{n for n in world.names[facts["kind"]] if fits(n, *clue)} for clue in facts["clues"]]
            assert all(len(s) > 1 for s in sets) and len(sets) > 1
            assert set.intersection(*sets) == set(plain(task.private["answer"])["items"])
            rest = [set.intersection(*[s for s in sets if s is not one]) for one in sets]
            assert all(len(r) > 1 for r in rest)


def test_unmasking_gives_the_passage() -> None:
    for level in Masks().levels:
        for task in tasks("search/masks", level, 8):
            facts, items = plain(task.world["facts"]), plain(task.private["answer"])["items"]
            world = lore(0, facts["pages"])
            text = Masks().fields(facts)["passage"]
            assert len(items) == (level - 1) % 3 + 1 == len(set(facts["masked"]))
            assert facts["page"] not in items and (level < 4 or facts["page"] not in text)
            for number, item in enumerate(items, 1):
                assert text.count(f"[{number}]") == 1
                text = text.replace(f"[{number}]", item)
            if level > 3:
                text = text.replace("This is a", f"{facts['page']} is a", 1)
            assert text == world.pages[facts["page"]]


def test_no_fixed_answer_and_harder_levels() -> None:
    for arm, levels in SEARCH.arms().items():
        effort = [mean(t.private["effort"] for t in tasks(arm, level, 20)) for level in levels]
        assert all(b > 0.95 * a for a, b in pairwise(effort)) and effort[-1] > 2 * effort[0], effort
        said = Counter(str(t.private["answer"]["items"]) for t in tasks(arm, levels[0], 60))
        assert max(said.values()) < 8


def test_every_relation_has_words() -> None:
    assert {r for of in RELATIONS.values() for r in of} == set(PHRASES)

"""Questions out of a graph of facts of one's own."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError
from assay.tasks import Problems
from assay.testing import check_problem, check_task_source, rollout_of
from assay_tasks import load_triples, self_supervised_graph
from assay_tasks.text.triples import Clues, InOrder, Walk

RELATIONS = ("knows", "lives in", "works for", "was taught by", "owns")


def _drawn() -> tuple[tuple[str, str, str], ...]:
    rng = Random(3)
    names = [f"{a}{b}" for a in ("Ka", "Lo", "Mi", "Nu", "Pe", "Ra") for b in ("don", "fel", "mar", "sen", "tis", "zan")]
    return tuple((rng.choice(names), rng.choice(RELATIONS), rng.choice(names)) for _ in range(240))


GRAPH = _drawn()
OWN: Problems = self_supervised_graph(GRAPH)
LINE = tuple((str(i), "before", str(i + 1)) for i in range(12))


def test_own_graphs_keep_the_contract() -> None:
    assert not check_task_source(OWN, n=1).skipped
    for problem in OWN.problems:
        assert "effort grows with the level" in check_problem(problem, n=12, growth=2.0).passed


def test_by_hand() -> None:
    shown = [("Ann", "owns", "a boat"), ("Ben", "owns", "a boat"), ("Ben", "knows", "Ann"), ("Eve", "knows", "Ann")]
    assert Walk(triples=LINE).solve({"shown": shown, "start": "Eve", "ways": ["knows", "owns"]}).answer == "a boat"
    clues = [("", "owns", "a boat"), ("", "knows", "Ann")]
    found = Clues(triples=LINE).solve({"shown": shown, "clues": clues})
    assert (found.answer, found.steps, found.effort) == ("Ben", "Ben | owns | a boat\nBen | knows | Ann", 8)
    chain = InOrder(triples=LINE).solve({"shown": [("c", "r", "d"), ("a", "r", "b"), ("b", "s", "c")]})
    assert (chain.answer, chain.gold) == ("B; C; A", ["B", "C", "A"])


def test_answers_follow_from_what_is_shown_alone() -> None:
    every = set(GRAPH)
    for arm, levels in OWN.arms().items():
        for level in levels:
            for index in range(12):
                task = OWN.task(arm, level, "train", index)
                facts = plain(task.public["facts"])
                shown = [tuple(fact) for fact in facts["shown"]]
                assert set(shown) <= every and len(set(shown)) == len(shown)
                assert all(f"{h} | {r} | {t}" in task.public["prompt"] for h, r, t in shown)
                if arm == "own/walk":
                    reached = {facts["start"]}
                    for way in facts["ways"]:
                        reached = {t for h, r, t in shown if h in reached and r == way}
                    assert reached == {task.private["answer"]} and len(facts["ways"]) == level
                elif arm == "own/clues":
                    names = {e for h, _, t in shown for e in (h, t)}
                    fit = [n for n in names if all(tuple(p or n for p in clue) in shown for clue in facts["clues"])]
                    assert fit == [task.private["answer"]] and len(facts["clues"]) == level
                else:
                    ordered = [shown["ABCDEFGHIJ".index(letter)] for letter in task.private["answer"]]
                    assert all(a[2] == b[0] for a, b in pairwise(ordered)) and len(ordered) == level + 2
                assert OWN.verifier()(task, rollout_of(task, task.private["solution"])).primary == 1.0


def test_graphs_that_are_too_small_or_of_one_kind() -> None:
    with pytest.raises(ConfigError, match="own/walk needs a graph of 12 facts or more, got 1"):
        self_supervised_graph([("a", "b", "c")] * 20)
    star = tuple(("hub", "r", f"leaf {i}") for i in range(12))
    with pytest.raises(DataError, match="own/walk: the graph has no path of 1 facts"):
        Walk(triples=star).draw(1, Random(0))
    short = tuple((f"a{i}", "r", f"b{i}") for i in range(12))
    with pytest.raises(DataError, match="own/walk: the graph has no path of 2 facts"):
        Walk(triples=short).draw(2, Random(0))
    with pytest.raises(DataError, match="own/clues: the graph has no entity that 2 of its facts"):
        Clues(triples=short).draw(2, Random(0))
    for wrong in ("abc", ("a", "b"), ("a", " ", "c"), ("a", 1, "c")):
        with pytest.raises(DataError, match="a fact is a head, a relation and a tail"):
            self_supervised_graph([*LINE, wrong])  # type: ignore[list-item]
    with pytest.raises(DataError, match=r"holds '\|'"):
        self_supervised_graph([*LINE, ("a|b", "r", "c")])


def test_facts_from_files(tmp_path: Path) -> None:
    forms = {
        "facts.tsv": "Ann\tlives in\tRome\n\nAnn\tlives in\tRome\nRome\tlies  in\tItaly\n",
        "facts.csv": 'Ann,lives in,Rome\nRome,lies in,"Italy"\n',
        "facts.jsonl": '{"head": "Ann", "relation": "lives in", "tail": "Rome"}\n'
        '{"head": "Rome", "relation": "lies in", "tail": "Italy"}',
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert load_triples(tmp_path / name) == (("Ann", "lives in", "Rome"), ("Rome", "lies in", "Italy"))
    for name, text, says in (
        ("a.tsv", "Ann\tRome\n", "line 1: a fact is a head"),
        ("b.jsonl", "{", "line 1: not JSON"),
        ("c.jsonl", '{"head": "a"}', "line 1: a fact is"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=says):
            load_triples(tmp_path / name)
    with pytest.raises(DataError, match="cannot read facts from"):
        load_triples(tmp_path / "none.tsv")

"""Problems of letters, words, records and one's own texts: by hand, and against second solvers."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import pytest

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.task import Task
from assay.tasks import Form, Problems
from assay.testing import check_task_source
from assay.testing.problems import check_problem
from assay.verify.rollouts import rollout_of, task_and_rollout
from assay_tasks import load_texts, self_supervised
from assay_tasks.text.classes import NamedClass
from assay_tasks.text.family import text
from assay_tasks.text.lexicon import WORDS
from assay_tasks.text.selfmade import Masked, NextSegment, leaks
from assay_tasks.text.strings import Caesar, Edits, Substitution, Transposition
from assay_tasks.text.tables import Classify

TEXT: Problems = text()


def tasks(arm: str, n: int, source: Problems = TEXT) -> list[Task]:
    levels = source.arms()[arm]
    return [source.task(arm, levels[i % len(levels)], "train", i) for i in range(n)]


def facts_of(task: Task) -> dict[str, Any]:
    return plain(task.public["facts"])


def test_words() -> None:
    assert len(set(WORDS)) == len(WORDS) > 250 and all(re.fullmatch("[a-z]{4,9}", w) for w in WORDS)


def test_letters_and_orders_against_python() -> None:
    for task in tasks("text/letters", 60):
        facts = facts_of(task)
        assert task.private["answer"] == str(Counter("".join(facts["words"]))[facts["letter"]])
    for task in tasks("text/alphabetical", 40):
        assert list(task.private["answer"]) == sorted(facts_of(task)["words"])
    for task in tasks("text/anagram", 40):
        facts = facts_of(task)
        same = [w for w in facts["words"] if Counter(w) == Counter(facts["letters"])]
        assert same == [task.private["answer"]] and facts["letters"] not in facts["words"]


def test_ciphers_come_back() -> None:
    """Enciphered here in another way than the problems do."""
    for task in tasks("text/caesar", 30):
        facts, plain_text = facts_of(task), task.private["answer"]
        again = "".join(c if c == " " else chr((ord(c) - 97 + facts["shift"]) % 26 + 97) for c in plain_text)
        assert again == facts["cipher"] and set(plain_text.split()) <= set(WORDS)
    for task in tasks("text/substitution", 30):
        facts = facts_of(task)
        table = dict(zip("abcdefghijklmnopqrstuvwxyz ", facts["key"] + " ", strict=True))
        assert "".join(table[c] for c in task.private["answer"]) == facts["cipher"]
    for task in tasks("text/transposition", 30):
        facts, plain_text = facts_of(task), task.private["answer"]
        width = len(facts["key"])
        rows = [plain_text[i : i + width] for i in range(0, len(plain_text), width)]
        assert "".join(row[k - 1] for k in facts["key"] for row in rows if len(row) >= k) == facts["cipher"]
    assert Caesar().solve({"cipher": "a b", "shift": 25}).answer == "b c"
    assert Substitution().fields({"cipher": "x", "key": "ab"})["key"] == "a b"
    assert Transposition().solve({"cipher": "adbec", "key": [1, 2, 3]}).answer == "abcde"


def test_edits_against_lists() -> None:
    """The same edits on a list of characters."""
    for task in tasks("text/edits", 80):
        facts = facts_of(task)
        chars = list(facts["start"])
        for kind, *rest in facts["edits"]:
            before = chars.copy()
            if kind == "reverse":
                chars.reverse()
            elif kind == "swap":
                chars[rest[0] - 1], chars[rest[1] - 1] = chars[rest[1] - 1], chars[rest[0] - 1]
            elif kind == "delete":
                chars.pop(rest[0] - 1)
            elif kind == "insert":
                chars.insert(rest[1] - 1, rest[0])
            elif kind == "move":
                chars.append(chars.pop(0))
            elif kind == "replace":
                chars = [rest[1] if c == rest[0] else c for c in chars]
            else:
                chars.insert(rest[0], chars[rest[0] - 1])
            assert chars != before
        assert "".join(chars) == task.private["answer"] and len(facts["edits"]) == task.level
    assert Edits().solve({"start": "ab", "edits": [["swap", 1, 1]]}).answer == "ab"


def test_labels_by_a_rule_that_is_found() -> None:
    for arm, wrong in (("text/classify", 0.0), ("text/classify_noisy", 0.1)):
        said = Counter[int]()
        for task in tasks(arm, 24):
            facts = facts_of(task)
            assert facts["wrong"] == int(wrong * len(facts["examples"])) and facts["asked"] not in [
                t for t, _ in facts["examples"]
            ]
            assert bool(facts["wrong"]) == ("wrong." in task.public["prompt"])
            said[facts["labels"].index(task.private["answer"])] += 1
        assert min(said.values()) > 4
    with pytest.raises(ConfigError, match=r"text/classify\.noise must be a share from 0 to 0\.3, got 0\.5"):
        Classify(noise=0.5)


def test_ranks_and_records() -> None:
    verifier = TEXT.verifier()
    for task in tasks("text/rank", 18):
        facts, gains = facts_of(task), plain(task.private["answer"])["gains"]
        assert gains == {n: len(set(facts["query"]) & set(words)) for n, words in facts["documents"].items()}
        backwards = ", ".join(sorted(gains, key=lambda n: gains[n]))
        assert 0.0 < verifier(task, rollout_of(task, f"<answer>{backwards}</answer>")).primary < 1.0
    for task in tasks("text/extract", 14):
        prompt, orders = task.public["prompt"], plain(task.private["answer"])
        assert json.loads(task.private["solution"].removeprefix("<answer>").removesuffix("</answer>")) == orders
        at = [prompt.index(order["item"]) for order in orders]
        assert at == sorted(at) and all(
            str(order[k]) in prompt for order in orders for k in ("customer", "city", "count", "price")
        )
        assert prompt.count("paid") - 1 == len(orders)


@pytest.mark.parametrize("arm", list(TEXT.arms()))
def test_higher_levels_take_more(arm: str) -> None:
    found = [mean(TEXT.task(arm, lv, "train", i).private["effort"] for i in range(10)) for lv in TEXT.arms()[arm]]
    assert all(b > a for a, b in pairwise(found)) and found[-1] > 2.5 * found[0], found


# ---- one's own texts

STORY = " ".join(
    f"On day {i} the {a} met a {b} near the old {c}. They spoke about the {d} for {i} hours until the {e} began to sing."
    for i in range(40)
    for a, b, c, d, e in [Random(i).sample(WORDS, 5)]
)
OWN: Problems = self_supervised((STORY,))


def test_own_texts_keep_the_contract() -> None:
    report = check_task_source(OWN, n=1)
    assert not report.skipped


def test_own_questions_are_about_the_text() -> None:
    verifier = OWN.verifier()
    for arm in OWN.arms():
        seen: dict[str, str] = {}
        for task in tasks(arm, 30, OWN):
            facts = plain(task.world["facts"])
            assert all(s in STORY for s in facts["passage"]) and set(task.public["facts"]) == {"problem", "digest"}
            assert verifier(task, rollout_of(task, task.private["solution"])).primary == 1.0
            key = f"{task.level} {facts['passage']}"  # one passage is one question
            assert seen.setdefault(key, task.content) == task.content
    for task in tasks("own/next", 20, OWN):
        facts = plain(task.world["facts"])
        assert not leaks(facts["passage"][-1], " ".join(facts["passage"][:-1])) and len(facts["options"]) == task.level + 1
    for task in tasks("own/masked", 20, OWN):
        facts = plain(task.world["facts"])
        passage = Masked(texts=(STORY,)).fields(facts)["text"]
        for number, word in enumerate(facts["masked"], 1):
            passage = passage.replace(f"({number}) ____", word)
        assert passage == " ".join(facts["passage"]) and len(facts["words"]) == 2 * task.level


def test_own_texts_that_are_too_short_or_alike() -> None:
    with pytest.raises(ConfigError, match=r"own/next needs texts with 12 sentences of 4 words or more, got 1"):
        self_supervised(["One sentence is not enough."])
    twelve = ["This is the same sentence here. " * 12]
    with pytest.raises(DataError, match="the texts have no passage of 4 sentences that suits level 1"):
        NextSegment(name="own/next", texts=tuple(twelve)).draw(1, Random(0))
    with pytest.raises(DataError, match="the texts have no passage of 4 sentences"):
        NextSegment(name="own/next", texts=("A sentence of five words.",) * 12).draw(1, Random(0))


def test_leaks() -> None:
    assert leaks("A b c d e f.", "x B c d e F") and not leaks("a b c d e f", "a b c d x e f", 5) and not leaks("", "a b c")


def test_texts_from_files(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(STORY, encoding="utf-8")
    assert load_texts([path]) == (STORY,)
    path.write_bytes(b"\xff\xfe\x00")
    for wrong in (path, tmp_path / "none.txt"):
        with pytest.raises(DataError, match=f"cannot read a text from {wrong}"):
            load_texts([wrong])


# ---- classes

FLAT = {
    "labels": ["dax", "wug"],
    "meanings": [["red", "round"], ["blue", "flat"]],
    "examples": [],
    "asked": ["old", "blue", "flat"],
}


def test_a_class_is_named_by_both_of_its_traits() -> None:
    problem = NamedClass()
    assert problem.solve(FLAT).answer == "wug" and problem.solve(FLAT).steps == "blue and flat"
    judge = problem.verifier(Form.PLAIN)
    assert [judge(*task_and_rollout("wug", said)).primary for said in ("wug", "The wug", "Wug", "dax")] == [1.0, 0.0, 0.0, 0.0]


def test_thinking_is_judged_by_tags_and_label() -> None:
    problem = NamedClass(thinking=True)
    said = problem.format_solution(problem.solve(FLAT), Form.PLAIN)
    assert said == "<think>blue and flat</think><answer>wug</answer>"
    found = problem.verifier(Form.PLAIN)(*task_and_rollout("wug", said)).components
    assert dict(found) == {"correct": 1.0, "format": 1.0}


def test_halves_share_no_class_and_every_trait() -> None:
    names: dict[str, set[str]] = {}
    for part in ("base", "new"):
        drawn = [NamedClass(part=part).draw(5, Random(i)) for i in range(60)]  # type: ignore[arg-type]
        names[part] = {label for facts in drawn for label in facts["labels"]}
        traits = {trait for facts in drawn for meaning in facts["meanings"] for trait in meaning}
        assert len(names[part]) == 8 and len(traits) == 8
    assert not names["base"] & names["new"]


def test_the_dimensions_of_the_question_are_settings() -> None:
    word = NamedClass().word(NamedClass().draw(1, Random(0)), 0)
    assert "(" in word and "unsure" not in word and ": " in word
    bare = NamedClass(definitions=False, examples=3, uncertain=True, numeric=True)
    facts = bare.draw(2, Random(0))
    said = bare.word(facts, 0)
    assert all(label.isdigit() for label in facts["labels"]) and "unsure (if you cannot tell)" in said
    assert len(facts["examples"]) == 3 and all(f"{', '.join(thing)}: {label}" in said for thing, label in facts["examples"])
    assert not any(" and ".join(meaning) in said for meaning in facts["meanings"])
    for thing, label in facts["examples"]:
        assert set(thing) >= set(facts["meanings"][facts["labels"].index(label)])


@pytest.mark.parametrize(
    "settings",
    [{}, {"part": "new"}, {"thinking": True}, {"numeric": True, "uncertain": True}, {"definitions": False, "examples": 4}],
)
def test_classes_keep_the_contract(settings: dict[str, Any]) -> None:
    check_problem(NamedClass(**settings), n=16)


@pytest.mark.parametrize("wrong", [{"levels": (8,)}, {"examples": -1}])
def test_classes_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"text/classes\.(levels|examples)"):
        NamedClass(**wrong)
    with pytest.raises(UnknownNameError, match="part"):
        NamedClass(part="old")  # type: ignore[arg-type]

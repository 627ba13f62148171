"""Long texts: every answer read off the prompt again by another reader, and lengths as promised."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.core.task import Task
from assay.tasks import Problems
from assay_tasks.context.haystacks import LENGTHS, Needles, VariableTracking, context

CONTEXT: Problems = context()


def tasks(arm: str, n: int = 12) -> list[tuple[Task, dict[str, Any], str, Any]]:
    made = [CONTEXT.task(arm, 1 + i % 5, "train", i) for i in range(n)]
    return [(t, plain(t.public["facts"]), t.public["prompt"], t.private["answer"]) for t in made]


@pytest.mark.parametrize("arm", ["context/needle", "context/needle_keys", "context/needle_values"])
def test_needles_are_in_the_text(arm: str) -> None:
    for task, facts, prompt, gold in tasks(arm):
        found = re.findall(r"One secret number of ([a-z-]+) is (\d+)\.", prompt)
        assert sorted(v for k, v in found if k in facts["asked"]) == sorted(gold)
        assert len(found) == len(facts["pairs"]) and all(key in prompt.split("\n\n")[-1] + prompt for key in facts["asked"])
        assert 0.95 * LENGTHS[task.level - 1] < len(prompt.split()) < LENGTHS[task.level - 1] + 130


def test_variables_by_running_the_text() -> None:
    for _, facts, prompt, gold in tasks("context/variables"):
        value: dict[str, str] = {}
        for name, source, number in re.findall(r"Set (X\d{3}) to (?:the value of (X\d{3})|(\d+))\.", prompt):
            value[name] = value[source] if source else number
        asked = str(facts["values"][0])
        assert {name for name, v in value.items() if v == asked} == set(gold) and len(gold) == VariableTracking().links
        assert len(value) == VariableTracking().links * VariableTracking().chains and asked in prompt


def test_frequent_words_by_counting_the_text() -> None:
    for task, facts, prompt, gold in tasks("context/frequent"):
        text = max(prompt.split("\n\n"), key=len)
        counts = Counter(text.split())
        ranked = counts.most_common()
        assert {w for w, _ in ranked[:3]} == set(gold) and ranked[2][1] >= 1.2 * ranked[3][1]
        assert counts == Counter(dict(zip(facts["words"], facts["counts"], strict=True)))
        assert 0.9 * LENGTHS[task.level - 1] < sum(counts.values()) <= LENGTHS[task.level - 1]


def test_sums_latest_and_mentions_by_reading() -> None:
    for _, facts, prompt, gold in tasks("context/sum"):
        records = re.findall(r"Record: the (\w+) shop sold (\d+) of", prompt)
        assert sum(int(n) for shop, n in records if shop == facts["shop"]) == int(gold) and len(records) > 3
    for _, facts, prompt, gold in tasks("context/latest"):
        changes = re.findall(r"The price of the (\w+) is now (\d+)\.", prompt)
        assert dict(changes)[facts["key"]] == gold and len(changes) == 12
    for _, facts, prompt, gold in tasks("context/mentions"):
        there = [who for who, place in re.findall(r"Then (\w+) visited the (\w+)\.", prompt) if place == facts["place"]]
        assert gold == there[0 if facts["which"] == "first" else -1] and len(there) > 1 and facts["which"] in prompt


def test_levels_are_lengths() -> None:
    for arm, levels in CONTEXT.arms().items():
        found = [len(CONTEXT.task(arm, level, "train", 0).public["prompt"].split()) for level in (levels[0], levels[6])]
        assert found[0] < 330 and 7000 < found[1] < 8600


def test_places_are_spread() -> None:
    """A needle stands in each third of the text about as often."""
    thirds = Counter[int]()
    for index in range(90):
        prompt = CONTEXT.task("context/needle", 3, "train", index).public["prompt"]
        thirds[3 * prompt.index("One secret number") // len(prompt)] += 1
    assert min(thirds.values()) > 15


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="needs 1 <= asked <= keys <= 40 and 1 to 8 values, got asked=3, keys=2"):
        Needles(keys=2, asked=3)
    with pytest.raises(ConfigError, match=r"context/needle.lengths needs 2 ascending numbers of 64 or more, got \(128,\)"):
        Needles(levels=(1, 2), lengths=(128,))
    assert Needles(levels=(1,), lengths=(64,)).length(1) == 64

"""The streams of all built-in families, pinned: a change of any arm's tasks is seen, and said in the changelog.

python tests/tasks/test_digests.py        # writes digests.json anew
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.core.canon import FrozenMap
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.task import Message, Task, TaskView
from assay.tasks import families, family
from assay.testing import stream_digest
from assay_tasks import SortDigits

PINNED = Path(__file__).with_name("digests.json")
RENEW = "python tests/tasks/test_digests.py"


def digests(name: str) -> Iterator[tuple[str, str]]:
    source = family(name)
    for arm in source.arms():
        yield arm, stream_digest(source, arm)


def differences(name: str, pinned: dict[str, str], found: dict[str, str]) -> list[str]:
    """What is not as it was, in words."""
    changed = [f"{arm}: its tasks changed" for arm in found if arm in pinned and found[arm] != pinned[arm]]
    new = [f"{arm}: a new arm" for arm in found if arm not in pinned]
    return changed + new + [f"{arm}: the arm is gone" for arm in pinned if arm not in found]


@pytest.mark.parametrize("name", families())
def test_streams_stay_the_same(name: str) -> None:
    """A change here changes every run and every held-out set: it needs a changelog entry."""
    pinned: dict[str, dict[str, str]] = json.loads(PINNED.read_text(encoding="utf-8"))
    wrong = differences(name, pinned.get(name, {}), dict(digests(name)))
    assert not wrong, f"family {name}: {'; '.join(wrong)}. If that is meant: {RENEW}, and a fragment in changelog.d says so"


def test_no_family_is_pinned_that_is_gone() -> None:
    assert sorted(json.loads(PINNED.read_text(encoding="utf-8"))) == list(families())


def test_what_is_said_of_a_change() -> None:
    assert differences("x", {"x/a": "1", "x/b": "2", "x/c": "3"}, {"x/a": "1", "x/b": "0", "x/d": "4"}) == [
        "x/b: its tasks changed",
        "x/d: a new arm",
        "x/c: the arm is gone",
    ]


# ---- the digest itself --------------------------------------------------------------------------------------------------


class Changed:
    """Sort, with something else in its tasks."""

    def __init__(self, **fields: object) -> None:
        self.source, self.fields = SortDigits(), fields
        self.name = "sort"

    def arms(self) -> dict[str, tuple[int, ...]]:
        return {"sort": (3, 4, 5, 6)}

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        task = self.source.task(arm, level, split, index)
        if level not in (3, 5, 6) or (split, index) != ("train", 0):  # what no digest looks at
            return replace(task, private=FrozenMap({**task.private, "never": index}))
        return replace(task, private=FrozenMap({**task.private, **self.fields}))

    def verifier(self) -> Verifier:
        return self.source.verifier()

    def environment(self, world: TaskView) -> Environment | None:
        return None

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        return None


def test_three_levels_count_and_all_of_a_task() -> None:
    bare: TaskSource = Changed()
    assert stream_digest(bare, "sort") == stream_digest(SortDigits(levels=(3, 5, 6)), "sort")
    assert stream_digest(Changed(note="x"), "sort") != stream_digest(bare, "sort")


def test_last_bits_of_floats_do_not_count() -> None:
    one, other, third = (stream_digest(Changed(value=[{"x": x}]), "sort") for x in (0.1 + 0.2, 0.3, 0.3000001))
    assert one == other != third


if __name__ == "__main__":
    text = json.dumps({name: dict(digests(name)) for name in families()}, indent=1)
    PINNED.write_text(text + "\n", encoding="utf-8")
    print(f"{PINNED}: {len(families())} families")

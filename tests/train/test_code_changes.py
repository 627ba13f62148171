"""Code that a run was made with: an edited reward, verifier or tool is an event, and refused unless it is allowed."""

from __future__ import annotations

import functools
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import SHAPE, reinforce, tiny, warm_up

from assay.core.errors import InexactResumeError
from assay.core.rollout import Sampling
from assay.runs import user_code
from assay.runs.user_code import _Reader, code_digests
from assay.tasks import Rows
from assay.train import resume, train
from assay.train.models import Scratch
from assay.train.record import code_of
from assay.train.run import Evaluation, Run
from assay.verify import RewardFunction

HELPER = """
LIMITS = {"most": 9}
lower = 0.5

def near(a, b):
    return abs(a - b) < LIMITS["most"]
"""

REWARD = '''
import re
import json as data

import helper_of_runs as helper
from helper_of_runs import near

WEIGHT = 0.25
UNUSED = 1


class Counter:
    """Counts."""

    step = 1

    def __init__(self):
        self.seen = 0

    def add(self):
        self.seen += self.step


def unused():
    return 1


def reward(prompt, completion, row):
    # the share of digits
    counter = Counter()
    counter.add()
    if near(len(completion), 3) and helper.lower:
        return WEIGHT * len(re.findall("[0-9]", completion))
    return 0.0
'''

Edit = Callable[[str, str], tuple[str, str]]

EDITS: dict[str, Edit] = {
    "the function": lambda r, h: (r.replace("[0-9]", "[1-9]"), h),
    "a constant": lambda r, h: (r.replace("WEIGHT = 0.25", "WEIGHT = 0.5"), h),
    "a method of a class": lambda r, h: (r.replace("self.seen += self.step", "self.seen -= self.step"), h),
    "an attribute of a class": lambda r, h: (r.replace("step = 1", "step = 2"), h),
    "a function of another module": lambda r, h: (r, h.replace("<", "<=")),
    "a table of another module": lambda r, h: (r, h.replace("9", "8")),
    "a value behind a module": lambda r, h: (r, h.replace("lower = 0.5", "lower = 0.0")),
}
SAME: dict[str, Edit] = {
    "a comment": lambda r, h: (r.replace("# the share of digits", "# digits"), h),
    "lines": lambda r, h: ("\n\n" + r.replace("    counter = Counter()\n", "\n    counter = Counter()\n"), h),
    "what it does not use": lambda r, h: (r.replace("UNUSED = 1", "UNUSED = 2").replace("return 1", "return 3"), h),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Edit], Any]]:
    """Writes the two modules as an edit leaves them, and imports them afresh."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(edit: Edit) -> Any:
        reward, helper = edit(REWARD, HELPER)
        (folder / "reward_of_runs.py").write_text(reward)
        (folder / "helper_of_runs.py").write_text(helper)
        for name in ("reward_of_runs", "helper_of_runs"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("reward_of_runs")

    yield load
    for name in ("reward_of_runs", "helper_of_runs"):
        sys.modules.pop(name, None)


def plain(reward: str, helper: str) -> tuple[str, str]:
    return reward, helper


def judged_by(fn: Any) -> Run:
    """A run of a few steps whose rows are judged by a function."""
    rows = tuple({"prompt": f"S{i}>", "answer": str(i)} for i in range(12))
    return Run(
        name="judged",
        seed=0,
        model=Scratch(shape=SHAPE, seed=0),
        tasks=Rows(rows, name="rows", reward=fn, test_share=0.25),
        stages=(reinforce(steps=2, groups=2),),
        sampling=Sampling(max_new_tokens=4),
        evaluation=Evaluation(every=9, per_level=1, final_per_level=1),
        checkpoint_every=1,
    )


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def digest_of(fn: Any) -> dict[str, str]:
    return code_digests(code_of(judged_by(fn)))


# ---- what counts as a change ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edit", EDITS)
def test_what_is_reached_by_name_counts(project: Any, edit: str) -> None:
    before = digest_of(project(plain).reward)
    assert list(before) == ["reward_of_runs:reward"]
    assert digest_of(project(EDITS[edit]).reward) != before
    assert digest_of(project(plain).reward) == before


@pytest.mark.parametrize("edit", SAME)
def test_what_changes_nothing_does_not(project: Any, edit: str) -> None:
    assert digest_of(project(plain).reward) == digest_of(project(SAME[edit]).reward)


def test_builtin_parts_are_told_by_versions() -> None:
    assert code_digests(code_of(tiny())) == {}
    assert code_digests(code_of(judged_by(RewardFunction(len)))) == {}  # type: ignore[arg-type]


# ---- a run ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_edited_reward_is_refused_and_told(project: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(judged_by(project(plain).reward), folder)
    assert list(json.loads((folder / user_code.FILE).read_text())) == ["reward_of_runs:reward"]
    project(SAME["a comment"])
    assert resume(folder, steps=3).step == 3
    assert "inexact" not in {e["kind"] for e in events(folder)}

    project(EDITS["a constant"])
    with pytest.raises(InexactResumeError, match=r"reward_of_runs:reward: edited\).*--allow-inexact"):
        resume(folder, steps=4)
    assert resume(folder, steps=4, allow_inexact=True).step == 4
    (told,) = [e for e in events(folder) if e["kind"] == "inexact"]
    assert told["message"] == "resumed with other code: reward_of_runs:reward: edited" and told["step"] == 3
    assert resume(folder, steps=5).step == 5  # what it was gone on with is what counts from then on


@pytest.mark.slow
def test_folders_that_do_not_say_are_gone_on_with(project: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(judged_by(project(plain).reward), folder)
    (folder / user_code.FILE).unlink()
    project(EDITS["the function"])
    assert resume(folder, steps=3).step == 3
    project(plain)
    with pytest.raises(InexactResumeError, match="edited"):
        resume(folder, steps=4)


def test_a_run_without_own_code_has_no_such_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(replace(tiny(warm=1, rl=1), stages=(warm_up(steps=1),)), folder)
    assert not (folder / user_code.FILE).exists()


def test_a_reward_that_changes_its_row_is_told_once(tmp_path: Path) -> None:
    def spoil(prompt: str, completion: str, row: dict[str, Any]) -> float:
        row["answer"] = completion
        return float(len(completion))

    train(judged_by(spoil), tmp_path / "run")
    (told,) = [e for e in events(tmp_path / "run") if e["kind"] == "reward"]
    assert "changes the row" in told["message"] and "answer" in told["message"]


# ---- parts ------------------------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = 1


PATTERN = re.compile("[a-z]+")
SIZES = (1, frozenset({"a", "b"}), Colour.RED)


def cached(function: Any) -> Any:
    return functools.lru_cache(maxsize=None)(function)


@cached
def slow(x: int) -> int:
    return x + 1


def recursive(n: int) -> int:
    return n if n < 1 else recursive(n - 1)


@dataclass
class Judge:
    """A verifier of one's own."""

    weight: float = 1.0
    names: tuple[str, ...] = ("reward",)

    @property
    def double(self) -> float:
        return self.weight * 2

    @staticmethod
    def same(a: str) -> str:
        return a

    @classmethod
    def made(cls) -> Judge:
        return cls()

    def __call__(self, task: Any, rollout: Any) -> Any:
        return slow(1), recursive(2), PATTERN, SIZES, json.dumps, Path, self.double


def maker(limit: int, table: dict[str, int]) -> Callable[..., float]:
    def inner(prompt: str, completion: str, row: Any, *, most: int = 3, of: Any = Judge) -> float:
        return float(min(limit, most, table["a"]))

    return inner


def test_closures_defaults_and_partials() -> None:
    table = {"a": 1}
    assert _Reader(maker(1, table)).digest() == _Reader(maker(1, {"b": 2})).digest()  # what can change is no code
    assert _Reader(maker(1, table)).digest() != _Reader(maker(2, table)).digest()
    partial = functools.partial(maker, 1)
    assert _Reader(functools.wraps(maker)(lambda: partial)).digest()
    found = code_digests(code_of(judged_by(RewardFunction(functools.partial(recursive, 1)))))
    assert list(found) == [f"{__name__}:recursive"]


def test_classes_bound_methods_and_instances() -> None:
    found = code_digests(code_of(judged_by(RewardFunction(Judge().__call__))))
    assert set(found) == {f"{__name__}:Judge", f"{__name__}:Judge.__call__"}
    assert all(re.fullmatch("[0-9a-f]+", d) for d in found.values())
    changed = type("Judge", (Judge,), {"double": property(lambda self: 3.0), "__module__": __name__, "__qualname__": "Judge"})
    assert _Reader(changed).digest() != _Reader(Judge).digest()


def test_what_has_no_source_is_read_all_the_same() -> None:
    scope: dict[str, Any] = {"__name__": "nowhere_at_all", "WEIGHT": 2, "TABLE": {"a": 1}}
    exec("def f(p, c, r):\n    return WEIGHT * TABLE['a']", scope)
    first = _Reader(scope["f"]).digest()
    scope["WEIGHT"] = 3
    assert _Reader(scope["f"]).digest() != first


def test_cells_that_are_not_filled() -> None:
    def outer() -> Any:
        def inner() -> Any:
            return later

        digest = _Reader(inner).digest()
        later = 1
        return digest, inner, later

    assert outer()[0]

"""Generated families: numbers by hand, laws, and a second, independent judge of the judge."""

import asyncio
import pickle
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.rollout import Stop
from assay.core.seeds import content_split
from assay.core.task import Message
from assay.tasks import Problems, Rows, TaskMixture, card, distinct, families, family, slip
from assay.testing import ContractError, check_environment, check_task_source, rollout_of, sources
from assay_tasks import BarCharts, KeyValue, Reverse, SortDigits
from assay_tasks.keyvalue import Store

ROOT = Path(__file__).parents[2]
QUICK = [name for name in families() if not isinstance(family(name), Problems)] + ["arithmetic", "words"]
"""Families held to their contract each time; all of them are at length in `test_family_audits.py`, as proofs."""


@pytest.mark.parametrize("name", QUICK)
def test_families_keep_the_contract(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sources, "digest_elsewhere", _here)  # the next test takes one interpreter for all of them
    source = family(name)
    report = check_task_source(source, n=max(1, 30 // sum(map(len, source.arms().values()))), closely=24)
    assert report.skipped == ()
    assert "no constant answer is right too often" in report.passed


def _here(blob: bytes, places: Sequence[tuple[str, int, str, int]]) -> str:
    source = pickle.loads(blob)
    return digest([source.task(*place) for place in places])


def test_no_task_depends_on_the_hash_seed() -> None:
    """The same families here and in an interpreter with another seed."""
    blob = pickle.dumps(TaskMixture(name="quick", sources=tuple(family(name) for name in QUICK)))
    arms = TaskMixture.arms(pickle.loads(blob))
    places = [(arm, level, "train", index) for arm, levels in arms.items() for level in levels for index in range(2)]
    assert len(places) > 200
    assert sources.digest_elsewhere(blob, places) == _here(blob, places)


@pytest.mark.parametrize(
    ("source", "arm", "level", "split", "index", "prompt", "answer"),
    [
        (SortDigits(), "sort", 5, "train", 0, "S41996>", "14699"),
        (SortDigits(seed=1), "sort", 5, "train", 0, "S03924>", "02349"),
        (Reverse(), "reverse", 4, "test", 3, "Rchhe>", "ehhc"),
        (KeyValue(), "keyvalue", 1, "train", 0, "K1oa>", "80"),
        (BarCharts(), "charts", 2, "train", 0, "B2mi>", "5"),
    ],
)
def test_tasks_stay_the_same(source: TaskSource, arm: str, level: int, split: str, index: int, prompt: str, answer: str) -> None:
    """A change here changes every run and every held-out set: it needs a changelog entry."""
    task = source.task(arm, level, split, index)
    assert (task.public["prompt"], task.private["answer"]) == (prompt, answer)
    assert task.id == f"{source.name}/{arm}/{level}/{split}/{index}"


@given(st.integers(3, 10), st.sampled_from(["train", "test"]), st.integers(0, 10**6))
def test_sort_tasks(level: int, split: str, index: int) -> None:
    task = SortDigits().task("sort", level, split, index)
    assert content_split(task.public) == split
    digits = task.public["prompt"][1:-1]
    assert (len(digits), Counter(digits)) == (level, Counter(task.private["answer"]))
    assert set(task.public["prompt"] + task.private["answer"]) <= set(SortDigits().alphabet)


def test_sort_prompts_are_even_over_the_split() -> None:
    """Chi-square of 8,000 draws over the 1,000 contents of length 3, and over digits and positions."""
    drawn = [SortDigits().task("sort", 3, "train", i).public["prompt"][1:-1] for i in range(8_000)]
    train = [f"{i:03d}" for i in range(1000) if content_split({"prompt": f"S{i:03d}>"}) == "train"]
    counts = Counter(drawn)
    assert set(counts) <= set(train)
    expected = len(drawn) / len(train)
    chi2 = sum((counts[c] - expected) ** 2 / expected for c in train)
    assert abs(chi2 - (len(train) - 1)) < 5 * (2 * len(train)) ** 0.5


def test_sort_verifier_against_an_independent_judge() -> None:
    """2,000 random answers, near misses among them: equality with the gold against multiset and order of the prompt's digits."""
    source, rng = SortDigits(), np.random.default_rng(0)
    verifier, right = source.verifier(), 0
    for i in range(2_000):
        task = source.task("sort", 3 + i % 8, "train", i // 40)
        digits = task.public["prompt"][1:-1]
        text = sorted(digits)
        for _ in range(int(rng.integers(0, 3))):
            where, what = int(rng.integers(0, len(text) + 1)), str(rng.integers(0, 10))
            match int(rng.integers(0, 5)):
                case 0:
                    text[where : where + 1] = [what]
                case 1:
                    text.insert(where, what)
                case 2:
                    del text[where : where + 1]
                case 3:
                    text.insert(where, "S> \n"[int(rng.integers(0, 4))])
                case _:
                    rng.shuffle(text)
        answer, stop = "".join(text), Stop.LENGTH if rng.random() < 0.1 else Stop.DONE
        score = verifier(task, rollout_of(task, answer, stop=stop))
        numbers = [ord(c) for c in answer]
        sound = Counter(numbers) == Counter(map(ord, digits)) and all(a <= b for a, b in pairwise(numbers))
        shape = len(answer) == len(digits) and all(c in "0123456789" for c in answer)
        assert score.components["correct"] == float(sound and stop is Stop.DONE), (digits, answer)
        assert score.components["format"] == float(shape and stop is Stop.DONE), (digits, answer)
        right += int(score.primary)
    assert 600 < right < 1600


@pytest.mark.parametrize("name", [name for name in families() if hasattr(family(name), "alphabet")])
def test_the_alphabet_is_all_that_a_family_writes(name: str) -> None:
    source, rng, written = family(name), np.random.default_rng(0), set[str]()
    for arm, levels in source.arms().items():
        for level in levels:
            for index in range(60):
                task = source.task(arm, level, "train", index)
                written.update(task.public["prompt"], *(m.content for m in source.trace(task, 0.2, rng) or ()))
    alphabet: str = source.alphabet  # pyright: ignore
    assert len(set(alphabet)) == len(alphabet)
    assert written == set(alphabet)


def test_clean_and_noisy_traces() -> None:
    source, rng = SortDigits(), np.random.default_rng(0)
    tasks = [source.task("sort", 10, "train", i) for i in range(500)]
    assert all(source.trace(t, 0.0, rng)[0] == Message("assistant", t.private["answer"]) for t in tasks)
    noisy = [source.trace(t, 0.2, rng)[0].content for t in tasks for _ in range(4)]
    right = [t.private["answer"] for t in tasks for _ in range(4)]
    lengths = [len(b) - len(a) for a, b in zip(right, noisy, strict=True)]
    # one in five slips, and a quarter of those each inserts and drops; standard deviation 0.005
    assert abs(np.mean([n == 1 for n in lengths]) - 0.05) < 0.02
    assert abs(np.mean([n == -1 for n in lengths]) - 0.05) < 0.02
    assert max(map(abs, lengths)) == 1


def test_every_kind_of_slip() -> None:
    seen = {slip("abc", 1.0, "X", np.random.default_rng(seed)) for seed in range(400)}
    replaced, inserted, dropped = {"Xbc", "aXc", "abX"}, {"Xabc", "aXbc", "abXc"}, {"bc", "ac", "ab"}
    assert seen == replaced | inserted | dropped | {"abc", "bac", "acb"}
    assert slip("", 0.5, "ab", np.random.default_rng(0)) == ""
    with pytest.raises(ConfigError, match=r"in \[0, 1\], got 1\.5"):
        slip("a", 1.5, "ab", np.random.default_rng(0))


def test_a_slip_draws_equally_many_numbers_whatever_comes_of_it() -> None:
    a, b = np.random.default_rng(0), np.random.default_rng(0)
    slip("abc", 0.0, "X", a)
    slip("abc", 1.0, "X", b)
    assert a.random() == b.random()


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (("srot", 3, "train", 0), "unknown arm of sort 'srot': did you mean 'sort'"),
        (("sort", 11, "train", 0), "unknown level of sort/sort '11'.*known: 3, 4"),
        (("sort", 3, "tset", 0), "unknown split 'tset': did you mean 'test'"),
        (("sort", 3, "train", -1), "must be >= 0, got -1"),
    ],
)
def test_unknown_cells_are_refused(cell: tuple[str, int, str, int], told: str) -> None:
    with pytest.raises((UnknownNameError, DataError), match=told):
        SortDigits().task(*cell)


def test_an_exhausted_level_names_level_split_and_tries() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Once(Reverse):
        """A family with a single prompt."""

        def ask(self, level: int, rng: np.random.Generator) -> str:
            return "Ra>"

    here = content_split({"prompt": "Ra>"})
    assert here == "train"
    with pytest.raises(DataError, match=r"level 3 is exhausted: 1000 draws gave no task of split 'test'"):
        Once().task("reverse", 3, "test", 0)
    with pytest.raises(ContractError, match="a declared level has nothing to evaluate on: test of reverse/3"):
        check_task_source(Once())


def test_distinct_tasks() -> None:
    found = distinct(SortDigits(), "sort", 3, "test", 64)
    assert len({t.content for t in found}) == 64
    assert [t.index for t in found] == sorted(t.index for t in found)
    assert distinct(SortDigits(), "sort", 3, "test", 0) == []
    with pytest.raises(DataError, match=r"level 3 has only .* different tasks of split 'test'"):
        distinct(SortDigits(), "sort", 3, "test", 200)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SortDigits(levels=()), "SortDigits.levels must be"),
        (lambda: SortDigits(levels=(4, 3)), "ascending"),
        (lambda: SortDigits(levels=(0, 1)), "from 1"),
        (lambda: SortDigits(test_share=0.0), "test_share"),
        (lambda: KeyValue(levels=(10,)), "from 1 to 9"),
        (lambda: KeyValue(spare=-1), "spare"),
        (lambda: KeyValue(test_share=1.0), "test_share"),
    ],
)
def test_wrong_settings_are_refused(make, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


# ---- the key-value store


def play(source: KeyValue, actions: list[str], level: int = 2) -> list[tuple[str, bool, str | None]]:
    async def run() -> list[tuple[str, bool, str | None]]:
        store = source.environment(source.task("keyvalue", level, "train", 0).public_view())
        assert (await store.start()).messages == ()
        seen: list[tuple[str, bool, str | None]] = []
        for action in actions:
            step = await store.step(action)
            shown = "".join(m.content for m in step.obs.messages)
            seen.append((shown, step.done, step.results[0].error if step.results else None))
        return seen

    return asyncio.run(run())


def test_the_store_answers_calls() -> None:
    # the task is K2dq>: dq holds cq, cq holds 31
    assert play(KeyValue(), ["?dq", "?cq", "31"]) == [("=cq>", False, None), ("=31>", False, None), ("", True, None)]


def test_the_store_says_what_is_wrong_with_a_call() -> None:
    seen = play(KeyValue(), ["?", "?d", "?zz"])
    assert [s[0] for s in seen] == ["!>"] * 3
    assert seen[0][2] == "malformed call '?': a call is ? and two letters"
    assert seen[2][2] == "unknown key 'zz'"


def test_the_store_answers_through_its_tool() -> None:
    """The policy's ``?`` is a call of a `Tool`, whose schema says which arguments it takes."""
    world = KeyValue().task("keyvalue", 2, "train", 0).public_view()
    store = KeyValue().environment(world)
    assert isinstance(store, Store)
    tool = store.tools["?"]
    (name,) = tool.schema["parameters"]["required"]
    for key in ("dq", "zz", "d", "", "?dq", "dq\n"):
        fresh = KeyValue().environment(world)
        asyncio.run(fresh.start())
        (result,) = asyncio.run(fresh.step(f"?{key}")).results
        assert asyncio.run(tool.call({name: key}, world)) == result
        assert (result.error is None) == (key in world.world["store"])
        assert bool(re.search(tool.schema["parameters"]["properties"][name]["pattern"] + r"\Z", key)) == (key in ("dq", "zz"))
    assert asyncio.run(tool.call({}, world)).error == "malformed call '?': a call is ? and two letters"


def test_the_store_ends_at_its_step_limit() -> None:
    assert [s[1] for s in play(KeyValue(spare=1), ["?dq", "?dq", "?dq"])] == [False, False, True]
    with pytest.raises(DataError, match="while it is over; environments are single use"):
        play(KeyValue(spare=1), ["?dq"] * 4)


def test_the_store_is_single_use() -> None:
    store = KeyValue().environment(KeyValue().task("keyvalue", 1, "train", 0).public_view())
    with pytest.raises(DataError, match="step while it is new"):
        asyncio.run(store.step("?oa"))
    check_environment(KeyValue(), KeyValue().task("keyvalue", 3, "test", 1))


@given(st.integers(1, 3), st.integers(0, 300))
def test_following_the_chain_gives_the_answer(level: int, index: int) -> None:
    task = KeyValue().task("keyvalue", level, "train", index)
    key = task.public["prompt"][2:-1]
    for _ in range(level):
        key = task.world["store"][key]
    assert key == task.private["answer"]
    assert len(task.world["store"]) == level
    trace = KeyValue().trace(task, 0.0, np.random.default_rng(0))
    assert [m.role for m in trace] == ["assistant", "tool"] * level + ["assistant"]
    assert KeyValue().verifier()(task, rollout_of(task, *[m.content for m in trace if m.role == "assistant"])).primary == 1.0


def test_equal_prompts_have_equal_stores() -> None:
    tasks = [KeyValue().task("keyvalue", 2, s, i) for s in ("train", "test") for i in range(400)]
    stores: dict[str, object] = {}
    for task in tasks:
        assert stores.setdefault(task.public["prompt"], task.world) == task.world
    assert len(stores) < len(tasks)


def test_noisy_calls_are_answered_as_they_are_and_made_again() -> None:
    source = KeyValue()
    for index in range(20):
        task = source.task("keyvalue", 3, "train", index)
        clean = [m.content for m in source.trace(task, 0.0, np.random.default_rng(index))]
        noisy = [m.content for m in source.trace(task, 1.0, np.random.default_rng(index))][:-1]
        pairs = list(zip(noisy[::2], noisy[1::2], strict=True))
        assert all(heard == f"={task.world['store'].get(said[1:], '')}>" for said, heard in pairs if heard != "!>")
        assert len([said for said, heard in pairs if heard == "!>"]) == len(noisy) // 2 - 3
        assert [text for pair in pairs if pair[1] != "!>" for text in pair] == clean[:-1]


# ---- names


def test_family_by_name() -> None:
    assert family("sort") == SortDigits()
    with pytest.raises(UnknownNameError, match="unknown task family 'srot': did you mean 'sort'"):
        family("srot")


def test_cards() -> None:
    found = {name: card(family(name)) for name in families()}
    assert all(c.has_trace and c.summary for c in found.values())
    assert found["keyvalue"].has_tools and not found["sort"].has_tools
    assert found["sort"].arms == {"sort": tuple(range(3, 11))}
    assert (
        found["sort"].summary
        == "Write the digits in ascending order: ``S3020>`` asks for ``0023``. The level is the number of digits."
    )
    assert found["keyvalue"].trace == (("assistant", "?oa"), ("tool", "=80>"), ("assistant", "80"))
    bare = card(Rows([{"prompt": f"say {i}"} for i in range(40)], reward=lambda p, c, r: 1.0))
    assert (bare.has_trace, bare.trace) == (False, ())


def test_the_shown_family_is_short_and_shown_whole() -> None:
    code = (ROOT / "src/assay_tasks/reverse.py").read_text()
    assert len(code.splitlines()) < 60
    assert code in (ROOT / "docs/add/task.md").read_text()


def test_the_page_names_every_family() -> None:
    page = (ROOT / "docs/packages/tasks.md").read_text()
    assert [name for name in families() if f"`{name}`" not in page] == []
    assert [name for name in families() if not card(family(name)).summary] == []

"""Pass rates by model, and what is kept by them: the published rules on hand-made attempts."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from curate_support import Result, curated, write
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.curate import Band, Hardest, Passes, PassRates, Unsolved, WeakStrong, rate_bin, row_id

NAMES = "abcdefgh"
ROWS = [{"prompt": name, "n": name} for name in NAMES]


def passes(folder: Path, model: str, rates: dict[str, tuple[int, int]]) -> Passes:
    return Passes(
        model=model, file=write(folder / f"{model}.jsonl", [{"prompt": k, "passed": p, "n": n} for k, (p, n) in rates.items()])
    )


def kept(found: Result) -> str:
    return "".join(found.lines_kept())


def why(found: Result) -> dict[str, str]:
    return {r["row"]["n"]: r["reason"] for r in found.rejected}


def test_weak_and_strong_as_guru_says(tmp_path: Path) -> None:
    weak = passes(tmp_path, "weak", {"a": (10, 10), "b": (5, 10), "c": (0, 10), "d": (6, 10), "e": (9, 10), "f": (0, 10)})
    strong = passes(
        tmp_path, "strong", {"a": (10, 10), "b": (9, 10), "c": (0, 10), "d": (4, 10), "e": (10, 10), "f": (2, 10), "g": (1, 1)}
    )
    found = curated(tmp_path, ROWS, [WeakStrong(weak=weak, strong=strong)])
    assert kept(found) == "bf"
    assert why(found) == {
        "a": "too easy",
        "c": "too hard",
        "d": "weak beats strong",
        "e": "too easy",
        "g": "no attempts",
        "h": "no attempts",
    }
    evidence = {r["row"]["n"]: r["evidence"] for r in found.rejected}
    assert (evidence["d"], evidence["g"]) == ({"weak": 0.6, "strong": 0.4}, {"model": "weak"})


def test_five_attempts_keep_one_to_four(tmp_path: Path) -> None:
    rates = passes(tmp_path, "m", {NAMES[i]: (i, 5) for i in range(6)})
    found = curated(tmp_path, ROWS, [Band(passes=rates)])
    assert kept(found) == "bcde"
    assert why(found) == {"a": "too hard", "f": "too easy", "g": "no attempts", "h": "no attempts"}


def test_a_models_own_attempts_and_the_votes_of_two_others(tmp_path: Path) -> None:
    """Skywork-OR1 (arXiv 2505.22312): 1 to 15 of the model's own 16 attempts pass, and 9 of two judges' 32 votes are for it."""
    own = passes(tmp_path, "policy", {"a": (0, 16), "b": (1, 16), "c": (15, 16), "d": (16, 16), "e": (8, 16), "f": (8, 16)})
    votes = passes(tmp_path, "judges", {"b": (32, 32), "c": (9, 32), "e": (8, 32), "f": (0, 32)})
    found = curated(tmp_path, ROWS, [Band(passes=own, low=1 / 16, high=15 / 16), Band(passes=votes, low=9 / 32, high=1.0)])
    assert kept(found) == "bc"
    assert why(found) == {
        "a": "too hard",
        "d": "too easy",
        "e": "too hard",
        "f": "too hard",
        "g": "no attempts",
        "h": "no attempts",
    }


def test_rates_come_with_wilson_intervals_and_bins(tmp_path: Path) -> None:
    found = curated(tmp_path, ROWS[:2], [PassRates(passes=passes(tmp_path, "weak", {"a": (0, 10)}))])
    scored, other = sorted(found.kept, key=lambda r: r["n"])
    scores = {"weak.pass_rate": 0.0, "weak.attempts": 10, "weak.low": 0.0, "weak.high": 0.277533, "weak.bin": "0"}
    assert scored["curate"] == {"id": scored["id"], **scores}
    assert other["curate"] == {"id": other["id"]}


def test_bins_are_those_of_guru() -> None:
    edges = [0, 0.19, 0.2, 0.39, 0.4, 0.6, 0.8, 0.99, 1]
    assert [rate_bin(r) for r in edges] == [
        "0",
        "(0, 0.2)",
        "[0.2, 0.4)",
        "[0.2, 0.4)",
        "[0.4, 0.6)",
        "[0.6, 0.8)",
        "[0.8, 1)",
        "[0.8, 1)",
        "1",
    ]


def test_single_attempts_add_up_and_rows_are_named_in_three_ways(tmp_path: Path) -> None:
    rows = [{"prompt": "q", "n": 1}, {"prompt": "r", "id": 7, "n": 2}, {"prompt": "S  s", "n": 3}]
    rollouts = [{"id": row_id(rows[0]), "passed": p} for p in (True, False, True)]
    rollouts += [{"id": 7, "passed": 1, "n": 4}, {"question": "s S", "passed": 2, "n": 2}, {"id": "nobody", "passed": True}]
    step = PassRates(passes=Passes(model="m", file=write(tmp_path / "m.jsonl", rollouts)))
    found = curated(tmp_path, rows, [step], chunk=1)
    rates = {r["n"]: (r["curate"]["m.pass_rate"], r["curate"]["m.attempts"]) for r in found.kept}
    assert rates == {1: (2 / 3, 3), 2: (0.25, 4), 3: (1.0, 2)}
    again = curated(tmp_path, found.kept, [step])
    assert {r["n"]: r["curate"]["m.attempts"] for r in again.kept} == {1: 3, 2: 4, 3: 2}, "curated rows keep their names"


@pytest.mark.parametrize(
    "entry",
    [{"passed": 3, "n": 2}, {"passed": 1}, {"passed": 0.5, "n": 1}, {"n": 3}, {"passed": -1, "n": 1}, {"passed": 0, "n": 0}],
)
def test_attempts_that_say_nothing_are_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    file = write(tmp_path / "m.jsonl", [{"prompt": "a", "passed": True}, {"prompt": "a", **entry}])
    with pytest.raises(DataError, match=r"m\.jsonl, line 2: passed="):
        curated(tmp_path, ROWS, [Band(passes=Passes(model="m", file=file))])


def test_an_entry_without_a_row_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "m.jsonl", [{"passed": True}])
    with pytest.raises(DataError, match="line 1: no question"):
        curated(tmp_path, ROWS, [Unsolved(passes=Passes(model="m", file=file))])


def test_what_is_solved_greedily_goes(tmp_path: Path) -> None:
    rates = passes(tmp_path, "base", {name: (solved, 1) for name, solved in zip("abcd", (1, 0, 0, 1), strict=True)})
    found = curated(tmp_path, ROWS[:5], [Unsolved(passes=rates)])
    assert kept(found) == "bc"
    assert why(found) == {"a": "solved already", "d": "solved already", "e": "no attempts"}


@settings(max_examples=12)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.booleans())
def test_hardest_are_a_nested_chain(tmp_path_factory: pytest.TempPathFactory, solved: list[int], unsolved: bool) -> None:
    folder = tmp_path_factory.mktemp("hardest")
    rows = [{"prompt": f"q{i}", "rate": s} for i, s in enumerate(solved)]
    rates = Passes(
        model="m", file=write(folder / "m.jsonl", [{"prompt": r["prompt"], "passed": r["rate"], "n": 4} for r in rows])
    )
    step = Hardest(passes=rates, sizes=(5, 3, 1), unsolved=unsolved)
    found, turned = curated(folder, [*rows, {"prompt": "new"}], [step]), curated(folder, rows[::-1], [step])
    eligible = [s for s in solved if s or unsolved]
    chain = [[r["rate"] for r in found.kept if r["curate"]["phase"] > k] for k in range(3)]
    assert [len(c) for c in chain] == [min(size, len(eligible)) for size in step.sizes]
    dropped = [r["row"]["rate"] for r in found.rejected if r["reason"] == "not among the hardest"]
    assert max(chain[0], default=0) <= min(dropped, default=4)
    assert all(max(inner, default=0) <= max(outer, default=0) for outer, inner in pairwise(chain))
    assert sorted(r["prompt"] for r in found.kept) == sorted(r["prompt"] for r in turned.kept)
    assert why_rates(found) == {"no attempts": 1, **({} if unsolved or 0 not in solved else {"never solved": solved.count(0)})}


def why_rates(found: Result) -> dict[str, int]:
    reasons = [r["reason"] for r in found.rejected if r["reason"] != "not among the hardest"]
    return {reason: reasons.count(reason) for reason in reasons}


def test_wrong_settings(tmp_path: Path) -> None:
    p = passes(tmp_path, "m", {})
    for wrong in (
        lambda: Band(passes=p, low=0.9),
        lambda: WeakStrong(weak=p, strong=p, low=0.9, high=0.9),
        lambda: Hardest(passes=p, sizes=(1, 2)),
        lambda: Hardest(passes=p, sizes=()),
        lambda: PassRates(passes=p, confidence=1.0),
    ):
        with pytest.raises(ConfigError):
            wrong()

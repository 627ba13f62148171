"""The page of scale: laws that are there are found, what was measured stands there, and what is not as it should be is said."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.core.errors import DataError
from assay.core.util.paths import cache_folder
from assay.lab.cells import LabError
from assay.runs.storage import read_json, write_json
from evidence import scale_page
from evidence.__main__ import main
from evidence.pages import STUDIES
from evidence.scale import AXES, Cost, Held, Point, measure
from evidence.scale_laws import exponents, growth, law

# ---- laws ------------------------------------------------------------------------------------------------------------


@given(
    b=st.floats(0.2, 2.0),
    scale=st.floats(1e-3, 1e3),
    sizes=st.lists(st.integers(1, 10_000), min_size=2, max_size=8, unique=True),
)
def test_an_exponent_is_found_whatever_each_repeat_is_scaled_by(b: float, scale: float, sizes: list[int]) -> None:
    assume(max(sizes) >= 1.1 * min(sizes))  # of sizes that hardly differ the exponent is a quotient of roundings
    curve = np.array(sizes, float) ** b
    found = exponents(sizes, [curve * scale, curve, curve * 3])
    assert found.value == pytest.approx(b) and found.high - found.low < 1e-9


def test_an_exponents_interval_holds_what_repeats_say() -> None:
    x = np.geomspace(1, 1000, 7)
    rng = np.random.default_rng(0)
    runs = [[x**0.9 * np.exp(rng.normal(0, 0.05, 7)) for _ in range(5)] for _ in range(200)]
    held = sum(found.low <= 0.9 <= found.high for found in (exponents(x, repeats) for repeats in runs))
    assert 180 <= held <= 199


@given(fixed=st.floats(0, 10), linear=st.floats(0.01, 10), square=st.floats(0, 0.1))
def test_a_sum_of_powers_is_found(fixed: float, linear: float, square: float) -> None:
    x = np.array([8, 16, 32, 64, 128, 256])
    found = law(x, fixed + linear * x + square * x * x, square=True)
    assert found.off < 1e-6
    assert (found.fixed, found.linear, found.square) == pytest.approx((fixed, linear, square), rel=1e-3, abs=1e-4)
    assert sum(found.share(what, 100.0) for what in ("fixed", "linear", "square")) == pytest.approx(1.0)


def test_no_part_of_a_law_is_negative() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    found = law(x, 10 * x - 5)
    assert found.fixed == 0.0 and found.linear > 0.0 and found.off > 0.1


@pytest.mark.parametrize(
    ("sizes", "seconds"), [([1], [[1.0], [2.0]]), ([1, 2], [[1.0, 0.0], [1.0, 2.0]]), ([0, 1], [[1.0, 2.0]])]
)
def test_numbers_without_a_logarithm_are_refused(sizes: list[int], seconds: list[list[float]]) -> None:
    with pytest.raises(DataError, match="positive numbers"):
        exponents(sizes, seconds)


def stairs(last: int, per_step: float = 0.0, jump: int = 0, files: int = 4) -> list[Held]:
    return [
        Held(
            step=s,
            resident=int(300e6 + (5e6 if s else 0) + per_step * s + (jump if s > last // 2 else 0)),
            objects=1000,
            files=files if s > last // 2 else 4,
            threads=1,
            cpu=0.01 * s,
        )
        for s in range(0, last + 1, 100)
    ]


def test_growth_is_told_from_a_jump() -> None:
    grows, jumps = growth(stairs(10_000, 300.0), 1000).resident, growth(stairs(10_000, jump=10_000_000), 1000).resident
    assert grows.low == pytest.approx(grows.high) and grows.value == pytest.approx(300_000, rel=1e-3)
    assert jumps.value > 1e6 and jumps.low < 0 < jumps.high
    with pytest.raises(DataError, match="make the run longer"):
        growth(stairs(3000), 1000)


# ---- measuring -------------------------------------------------------------------------------------------------------


def test_a_step_that_is_measured_has_the_size_that_was_asked_for() -> None:
    """And every step of it updates; of answers that end, a measurement says so."""
    small = measure(Point(width=32, layers=1, attempts=16, tokens=8))
    large = measure(Point(width=32, layers=1, attempts=32, tokens=24))
    assert (small.tokens, large.tokens) == (128.0, 768.0)
    assert small.cpu > 0 and small.wall > 0
    assert {"engine", "forward", "backward", "optimizer", "publish", "proof"} <= set(small.parts)
    assert sum(small.parts.values()) <= small.cpu * 1.05


def test_answers_that_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.runtime import init_model, save_model
    from assay.train.models import Scratch, scratch_tokenizer

    def ending(point: Point, folder: Path) -> None:
        from evidence.scale import shape_of

        save_model(init_model(shape_of(point), scratch_tokenizer(Scratch()), 0), folder)

    monkeypatch.setattr("evidence.scale._save_unending", ending)
    with pytest.raises(DataError, match="did not sample 1024 tokens"):
        measure(Point(width=32, layers=1, attempts=16, tokens=64))


def cost(point: Point, repeat: int) -> Cost:
    """What a step would take: ten milliseconds, a part by weights, and attention."""
    tokens = point.attempts * point.tokens
    cpu = 0.01 + tokens * (2e-5 + 4e-11 * point.parameters + 1e-7 * point.tokens) * (1 + repeat / 100)
    parts = {"engine": cpu / 4, "forward": cpu / 4, "backward": cpu / 4, "publish": cpu / 4}
    return Cost(cpu=cpu, wall=2 * cpu, parts=parts, tokens=float(tokens), load=0.5)


def records() -> dict[str, dict[str, Any]]:
    every = list(dict.fromkeys(point for axis in AXES.values() for point in axis))
    common = {"machine": "Abacus, 2 cores", "load": [0.5, 1.25]}
    seeds = {"seconds": 120.0, "cpu": 110.0, "peak": 500 << 20, "digests": {"seed-0": "aa", "seed-1": "bb"}}
    times = {
        f"times-{repeat}": {"costs": [{"point": asdict(p), **asdict(cost(p, repeat))} for p in every]}
        for repeat in range(scale_page.REPEATS)
    }
    memory = {"held": [asdict(h) for h in stairs(10_000)]}
    kinds = {**times, "memory": memory, "apart": seeds, "together": {**seeds, "seconds": 80.0, "cpu": 130.0}}
    return {kind: {**record, **common} for kind, record in kinds.items()}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a study that is done."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "studies" / "scale"
    folder.mkdir(parents=True)
    for kind, record in records().items():
        write_json(folder / f"{kind}.json", record)
    return folder


def change(work: Path, kind: str, **changes: Any) -> None:
    write_json(work / f"{kind}.json", read_json(work / f"{kind}.json") | changes)


@pytest.mark.slow
def test_the_page_says_what_was_measured(work: Path, tmp_path: Path) -> None:
    assert STUDIES["scale"](tmp_path) == []
    page = (tmp_path / "scale.md").read_text(encoding="utf-8")
    assert "All of that is so." in page and "Abacus, 2 cores" in page and "0.5 to 1.2 for the repeats" in page
    assert "| one after another | 120 | 110 | 0.92 | 500 | 60 |" in page
    assert "| side by side | 80 | 130 | 1.62 | 500 | 90 |" in page and "take 0.67 of the time and 1.18 of the CPU-seconds" in page
    assert "| resident memory, MiB | 286.1 | 290.9 | 290.9 | 0.00 [0.00, 0.00] |" in page
    fixed = law([p.attempts for p in AXES["attempts"]], [cost(p, 2).cpu for p in AXES["attempts"]]).fixed
    assert fixed == pytest.approx(0.01) and "10 ms whatever the batch" in page
    assert (tmp_path / "scale.svg").stat().st_size > 5000
    assert set(read_json(tmp_path / "scale.json")) == set(scale_page.KINDS)


@pytest.mark.slow
def test_what_is_not_as_it_should_be_is_said(work: Path, tmp_path: Path) -> None:
    change(work, "memory", held=[asdict(h) for h in stairs(10_000, per_step=2000.0, files=9)])
    change(work, "together", digests={"seed-0": "aa", "seed-1": "cc"})
    for repeat in range(scale_page.REPEATS):
        costs = read_json(work / f"times-{repeat}.json")["costs"]
        change(work, f"times-{repeat}", costs=[line | {"cpu": line["cpu"] * line["point"]["tokens"]} for line in costs])
    failures = scale_page.make_page(tmp_path)
    assert [f.partition(" ")[0] for f in failures] == ["CPU-seconds", "memory", "there", "runs"], failures
    assert "by tokens with exponent" in failures[0] and "1.91 [1.91, 1.91] MiB" in failures[1] and "5 more files" in failures[2]
    assert "Not so: " in (tmp_path / "scale.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_is_missing_is_measured_in_a_process_of_its_own(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is read; a process that fails is quoted, and nothing is taken for measured."""
    before = (work / "apart.json").read_bytes()
    (work / "memory.json").rename(tmp_path / "kept.json")
    asked: list[tuple[str, ...]] = []

    class Fake(scale_page.Processes):
        def start(self, job: scale_page.ProcessJob) -> None:
            asked.append(job.words)
            if len(asked) > 1:
                (tmp_path / "kept.json").rename(work / "memory.json")
            word = "pass" if len(asked) > 1 else "raise SystemExit('no room')"
            (tmp_path / "stand_in.py").write_text(word, encoding="utf-8")
            super().start(replace(job, words=("stand_in",)))

    monkeypatch.setattr(scale_page, "Processes", Fake)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    with pytest.raises(LabError, match=r"measuring memory failed: no room"):
        scale_page.make_page(tmp_path)
    assert scale_page.make_page(tmp_path) == []
    assert asked == [("evidence", "--scale", "memory", str(work))] * 2
    assert (work / "apart.json").read_bytes() == before


@pytest.mark.evidence  # which measures by this command; here twenty seconds of a processor at sizes that tell nothing
def test_each_kind_is_measured_through_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small, but for real: sizes, a long run, and seeds with the digest that they have alone."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").symlink_to(cache_folder() / "kernels")
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    few: Mapping[str, tuple[Point, ...]] = {"attempts": tuple(Point(width=32, layers=1, attempts=n, tokens=4) for n in (16, 32))}
    monkeypatch.setattr(scale_page, "AXES", few)
    monkeypatch.setattr(scale_page, "STEPS", 100)
    monkeypatch.setattr(scale_page, "SEEDS", (3,))
    monkeypatch.setattr(scale_page, "RECIPE", "evidence.scale:long_run")
    for kind in ("times-0", "memory", "apart"):
        assert main(["--scale", kind, str(tmp_path)]) == 0
    times, memory, apart = (read_json(tmp_path / f"{kind}.json") for kind in ("times-0", "memory", "apart"))
    assert sorted(line["point"]["attempts"] for line in times["costs"]) == [16, 32]
    assert [h["step"] for h in memory["held"]] == list(range(0, 101)) and memory["held"][-1]["resident"] > 1e8
    assert list(apart["digests"]) == ["seed-3"] and apart["peak"] > 1e8 and apart["cpu"] > 0.5 and apart["seconds"] > 0.5
    assert {"machine", "load"} <= set(apart)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["apart.json", "cache", "memory.json", "times-0.json"]

"""Passes, chunks, kills: nothing that is written depends on them."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curate_support import curated, read, sentence, write

from assay.core.errors import ConfigError, DataError
from assay.curate import (
    Chunk,
    Decision,
    Decontaminate,
    Exact,
    NearDuplicates,
    Pipeline,
    Row,
    RowStep,
    SetStep,
    Substrings,
    drop,
    keep,
)
from assay.curate import pipeline as pipeline_module
from assay.curate.work_folder import WorkFolder

SCRIPT = Path(__file__).with_name("curation_to_kill.py")
OUTPUTS = ("train.jsonl", "test.jsonl", "rejected.jsonl", "manifest.json")


@dataclass(frozen=True, slots=True)
class Short(RowStep):
    """Drops questions of few words."""

    least: int = 3
    costly = True

    def look(self, row: Row, ready: Any) -> Any:
        words = len(row.text.split())
        return keep(words=words) if words >= self.least else drop("too short", {"words": words}, least=self.least)


@dataclass(frozen=True, slots=True)
class Longest(SetStep):
    """Keeps the longest question."""

    def note(self, chunk: Chunk, ready: Any) -> Any:
        return {"length": np.array([len(row.text) for row in chunk.rows])}

    def decide(self, seen: Any, ready: Any) -> Sequence[Decision]:
        length = seen.column("length")
        best = np.lexsort((seen.rank, -length * seen.alive))[0]
        gone = np.flatnonzero(seen.alive & (np.arange(len(length)) != best))
        return [
            Decision("shorter", seen.positions[gone], np.full(len(gone), seen.positions[best]), scores={"length": length * 1.0})
        ]


def test_steps_see_what_is_left_and_name_what_they_drop(tmp_path: Path) -> None:
    rows = [{"prompt": p, "n": i} for i, p in enumerate(["a b c d", "A b c d", "x", "e f g", "h i j k l"])]
    found = curated(tmp_path, rows, [Exact(), Short(), Longest()], chunk=2, test_share=0.0)
    assert found.lines_kept() == [4]
    assert found.kept[0]["curate"] == {"id": found.kept[0]["id"], "words": 5, "length": 9.0}
    assert {(step, reason) for _, step, reason in found.reasons()} == {
        ("exact", "duplicate"),
        ("longest", "shorter"),
        ("short", "too short"),
    }
    assert sorted(line for line, _, _ in found.reasons()) == [1, 2, 3, 4]
    by_step = {r["step"]: r for r in found.rejected}
    assert (by_step["short"]["evidence"], by_step["short"]["scores"]) == ({"least": 3}, {"words": 1})
    assert by_step["longest"]["evidence"] == {"of": found.kept[0]["id"]}
    assert by_step["exact"]["scores"] == {}, "no score of a step behind the one that dropped it"
    steps = found.manifest["counts"]["steps"]
    assert [(s["step"], s["seen"], s["kept"]) for s in steps] == [("exact", 5, 4), ("short", 4, 3), ("longest", 3, 1)]
    assert not (found.out / ".work").exists()


@dataclass(frozen=True, slots=True)
class Wrong(RowStep):
    """Gives no verdicts."""

    def judge(self, chunk: Chunk, ready: Any) -> Any:
        return []


@dataclass(frozen=True)
class Scores(RowStep):
    """Gives scores."""

    _given: tuple[Any, ...]

    def look(self, row: Row, ready: Any) -> Any:
        return keep(**dict(self._given))


@dataclass(frozen=True, slots=True)
class Named(SetStep):
    """Gives a score with a name that is taken."""

    def note(self, chunk: Chunk, ready: Any) -> Any:
        return {}

    def decide(self, seen: Any, ready: Any) -> Sequence[Decision]:
        return [Decision("", np.empty(0, np.int64), scores={"id": np.zeros(len(seen.alive))})]


@dataclass(frozen=True, slots=True)
class Unwritten(RowStep):
    """Has no method."""


@dataclass(frozen=True, slots=True)
class UnwrittenSet(SetStep):
    """Has no method."""


def test_broken_steps_are_told(tmp_path: Path) -> None:
    rows = [{"prompt": "a"}]
    with pytest.raises(DataError, match="'wrong' gave 0 verdicts on 1 rows"):
        curated(tmp_path, rows, [Wrong()])
    for scores, why in (
        ({"id": 1}, "'scores' gave a score called 'id'"),
        ({"x": np.float32(1)}, "not JSON"),
        ({"x": float("nan")}, "not JSON"),
    ):
        with pytest.raises(DataError, match=why):
            curated(tmp_path, rows, [Scores(tuple(scores.items()))])
    with pytest.raises(DataError, match="'named' gave a score called 'id'"):
        curated(tmp_path, rows, [Named()])
    with pytest.raises(DataError, match="neither look"):
        curated(tmp_path, rows, [Unwritten()])
    with pytest.raises(DataError, match="no note"):
        curated(tmp_path, rows, [UnwrittenSet()])
    with pytest.raises(DataError, match="no decide"):
        UnwrittenSet().decide(None, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match="without a reason"):
        drop("")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"steps": (Exact(), Exact())}, "two steps are called 'exact'"),
        ({"steps": (3,)}, "3 is no step"),
        ({"steps": (RowStep(),)}, "RowStep is no dataclass"),
        ({"steps": (), "test_share": 1.5}, "test_share"),
    ],
)
def test_wrong_pipelines(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Pipeline(**settings)


def test_wrong_runs(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"prompt": "a"}])
    with pytest.raises(ConfigError, match="at least 1 row"):
        Pipeline(steps=()).run([source], tmp_path / "out", chunk=0)
    with pytest.raises(ConfigError, match="is a file"):
        Pipeline(steps=()).run([source], source)
    with pytest.raises(ConfigError, match="nothing to curate"):
        Pipeline(steps=()).run([], tmp_path / "out")
    with pytest.raises(ConfigError, match="is inside"):
        Pipeline(steps=()).run([tmp_path], tmp_path / "out")
    (tmp_path / "out").mkdir()
    write(tmp_path / "out" / "train.jsonl", [{"mine": 1}])
    with pytest.raises(ConfigError, match="no curation has written"):
        Pipeline(steps=()).run([source], tmp_path / "out")
    assert read(tmp_path / "out" / "train.jsonl") == [{"mine": 1}]


def test_split_is_by_content_and_seed(tmp_path: Path) -> None:
    rows = [{"prompt": sentence(i), "n": i} for i in range(200)]
    found = curated(tmp_path, rows, [], chunk=64, test_share=0.3)
    more = curated(tmp_path, [*rows[::-1], {"prompt": "new", "n": -1}], [], chunk=64, test_share=0.3)
    test = {r["n"] for r in found.test}
    assert 30 < len(test) < 90
    assert test == {r["n"] for r in more.test} - {-1}
    assert test != {r["n"] for r in curated(tmp_path, rows, [], chunk=64, test_share=0.3, seed=1).test}
    assert found.manifest["counts"]["test"] == len(test)


def test_a_finished_run_is_not_done_again_and_another_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"prompt": "a b c"}, {"prompt": "b"}])
    pipeline, out = Pipeline(steps=(Short(),)), tmp_path / "out"
    manifest = pipeline.run([source], out)
    (out / "train.jsonl").unlink()
    assert pipeline.run([source], out) == manifest
    assert not (out / "train.jsonl").exists(), "nothing was done"
    with pytest.raises(ConfigError, match=r"holds another curation \(its settings differ\)"):
        replace(pipeline, seed=1).run([source], out)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no manifest of a curation"):
        pipeline.run([source], tmp_path / "other")
    write(source, [{"prompt": "c"}])
    with pytest.raises(ConfigError, match="its inputs differ"):
        pipeline.run([source], out)
    assert pipeline.run([source], out, fresh=True)["counts"]["read"] == 1
    assert (out / "train.jsonl").exists()
    with WorkFolder(out / ".work").alone():
        with pytest.raises(ConfigError, match="another curation is writing"):
            pipeline.run([source], out, fresh=True)
        (out / ".work" / "rows").mkdir()
        (out / ".work" / "plan.json").touch()
    assert pipeline.run([source], out, fresh=True)["counts"]["read"] == 1
    assert not (out / ".work").exists()


@dataclass(frozen=True, slots=True)
class Stops(RowStep):
    """Stops at a row, as Ctrl-C does."""

    costly = True

    def look(self, row: Row, ready: Any) -> None:
        if "stop" in row.data and os.environ.get("STOP"):
            raise KeyboardInterrupt


def test_a_stopped_run_goes_on_and_looks_at_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"prompt": f"p{i}"} for i in range(9)] + [{"prompt": "p9", "stop": 1}]
    source, out, pipeline = write(tmp_path / "in.jsonl", rows), tmp_path / "out", Pipeline(steps=(Exact(), Stops()))
    monkeypatch.setenv("STOP", "1")
    with pytest.raises(KeyboardInterrupt):
        pipeline.run([source], out, chunk=4)
    with pytest.raises(ConfigError, match=r"the beginning of another curation \(its settings differ\)"):
        replace(pipeline, test_share=0.5).run([source], out)
    monkeypatch.delenv("STOP")
    looked: list[str] = []
    monkeypatch.setattr(Stops, "look", lambda self, row, ready: looked.append(row.text))
    assert pipeline.run([source], out, chunk=1)["counts"]["rejected"] == 0
    assert looked == ["p8", "p9"], "chunks stay as large as they were"


def test_a_run_that_failed_before_its_first_row_does_not_hold_its_folder(tmp_path: Path) -> None:
    source, eval_, out = (
        write(tmp_path / "in.jsonl", [{"prompt": "a b c"}, {"prompt": "d"}]),
        tmp_path / "eval.jsonl",
        tmp_path / "out",
    )
    pipeline = Pipeline(steps=(Decontaminate(against=(eval_,)),))
    eval_.write_text("no row\n")
    with pytest.raises(DataError):
        pipeline.run([source], out)
    write(eval_, [{"prompt": "d"}])
    assert pipeline.run([source], out)["counts"]["rejected"] == 1


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"prompt": "a"}])
    with WorkFolder(tmp_path / "out" / ".work").alone(), pytest.raises(ConfigError, match="another curation is writing"):
        Pipeline(steps=()).run([source], tmp_path / "out")


# ---- killed -----------------------------------------------------------------------------------------------------------


def many(count: int) -> list[dict[str, Any]]:
    texts = [sentence(i % max(1, count - 6), 12) for i in range(count)]
    texts[3:3] = [f"{texts[0]} {sentence(600, 30)}", texts[1].replace("x5", "x6"), f"so {sentence(500, 10)}"]
    return [{"prompt": t, "answer": str(i)} for i, t in enumerate(texts)]


def child(folder: Path, out: str, moment: int, chunk: int = 7, seed: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "CHUNK": str(chunk), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(SCRIPT), "in.jsonl", out, "eval.jsonl", str(moment)]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def outputs(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in OUTPUTS]


def killed_everywhere(folder: Path, count: int, moments: Sequence[int] | None) -> None:
    write(folder / "in.jsonl", [*many(count), "broken"])
    write(folder / "eval.jsonl", [{"prompt": sentence(500, 10)}])
    whole = child(folder, "whole", 0)
    assert whole.returncode == 0, whole.stderr
    expected = outputs(folder / "whole")
    assert {r["step"] for r in read(folder / "whole" / "rejected.jsonl")} >= {"read", "exact", "substrings", "decontaminate"}
    last = int(whole.stdout)
    for moment in range(1, last + 1) if moments is None else (m % last + 1 for m in moments):
        out = f"killed{moment}"
        assert child(folder, out, moment).returncode == -signal.SIGKILL
        again = child(folder, out, 0, seed=str(moment))
        assert again.returncode == 0, again.stderr
        assert outputs(folder / out) == expected, f"killed at {moment}"
        assert not (folder / out / ".work").exists()


@pytest.mark.slow
def test_killed_and_resumed_is_byte_identical(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, 20, (0, 11))


@pytest.mark.prove
def test_killed_at_every_moment_is_byte_identical(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, 12, None)


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_chunks_and_hash_seeds_change_no_byte(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("in.jsonl"), [*many(12), "broken"])
    write(Path("eval.jsonl"), [{"prompt": sentence(500, 10)}])
    steps = (Exact(), NearDuplicates(threshold=0.5), Substrings(), Decontaminate(against=(Path("eval.jsonl"),)), Short())
    for name, size in (("one", chunk), ("two", 3)):
        Pipeline(steps=steps).run(["in.jsonl"], name, chunk=size)
    assert outputs(Path("one")) == outputs(Path("two"))


def test_steps_before_and_after_costly_ones_have_passes_of_their_own() -> None:
    cheap, costly = Exact(), Short()
    number = [[i for i, _ in steps] for steps in pipeline_module._passes([costly, cheap, Longest(), costly, costly])]  # pyright: ignore[reportPrivateUsage]
    assert number == [[], [0], [1, 2], [3], [4]]

"""All rollouts of recorded steps, in files of their own: bounded, cut at a resume, outside the digest."""

from __future__ import annotations

import errno
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live import coin_toss, session, walk
from tiny_runs import digest_of, only_rl, tiny

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, StorageError
from assay.core.score import Score
from assay.core.task import Task
from assay.measure import read_rollouts
from assay.runs import RolloutFiles, storage
from assay.train import Until, load_run, resume, train
from assay.train.group_outcomes import outcomes_of
from assay.train.metrics import gold_text, kept_rollouts, shorten


def record(step: int, text: str = "1") -> dict[str, Any]:
    return {"step": step, "text": text}


def noise(n: int) -> str:
    return "".join(random.Random(n).choices("0123456789abcdef", k=n))


def test_a_step_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = RolloutFiles(tmp_path)
    lines = [record(3, "a\u2028b\nc"), record(3, "🙂")]
    files.write(3, lines, of=8)
    assert files.read(3) == ({"step": 3, "kept": 2, "of": 8}, lines)
    files.write(3, [record(3, "\ud800")], of=1)  # half a surrogate pair, which no file can hold
    assert files.read(3)[1] == [record(3, "?")]
    assert files.items() == [] and files.steps() == (3,)
    files.write_items([{"id": "a", "prompt": "1+1="}])
    assert files.items() == [{"id": "a", "prompt": "1+1="}] and files.steps() == (3,)


def test_equal_records_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        RolloutFiles(tmp_path / name).write(1, [record(1)], of=1)
    assert len({p.read_bytes() for p in tmp_path.rglob("*.gz")}) == 1


def test_beyond_the_bound_what_is_kept_still_spans_the_run(tmp_path: Path) -> None:
    files = RolloutFiles(tmp_path, most_bytes=12_000)
    for step in range(1, 41):
        files.write(step, [record(step, noise(1000 + step))], of=1)
        assert sum(p.stat().st_size for p in files.folder.iterdir()) <= 12_000
        assert files.steps()[0] == 1 and files.steps()[-1] == step
    assert len(files.steps()) >= 6 and max(b - a for a, b in zip(files.steps(), files.steps()[1:], strict=False)) <= 20
    lone = RolloutFiles(tmp_path / "lone", most_bytes=10)
    lone.folder.parent.mkdir()
    lone.write(1, [record(1, noise(1000))], of=1)
    assert lone.steps() == (1,)


def test_what_is_later_is_cut_and_halves_of_files_go(tmp_path: Path) -> None:
    files = RolloutFiles(tmp_path)
    for step in (1, 5, 9):
        files.write(step, [record(step)], of=1)
    (files.folder / ".step_00000009.jsonl.gz.tmp").write_bytes(b"half")
    files.cut(5)
    assert files.steps() == (1, 5) and len(list(files.folder.iterdir())) == 2
    files.cut(-1)
    assert files.steps() == ()


@pytest.mark.parametrize("damage", [b"", b"no gzip", "half"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: bytes | str) -> None:
    files = RolloutFiles(tmp_path)
    files.write(2, [record(2, noise(400))], of=1)
    path = files.folder / "step_00000002.jsonl.gz"
    path.write_bytes(path.read_bytes()[:100] if isinstance(damage, str) else damage)
    with pytest.raises(DataError, match=r"step_00000002\.jsonl\.gz is damaged"):
        files.read(2)
    with pytest.raises(DataError, match=r"step_00000004\.jsonl\.gz does not exist; recorded steps: 2"):
        files.read(4)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match=r"cannot write .*step_00000001\.jsonl\.gz: No space left"):
        RolloutFiles(tmp_path).write(1, [], of=0)


# ---- what is recorded --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def step() -> Any:
    s = session(coin_toss(only_rl(groups=6, group_size=4)))
    return s.parts.tokenizer, walk(s)[0]


def test_every_rollout_of_a_step_with_its_advantage_and_gold(step: Any) -> None:
    tokenizer, result = step
    kept = kept_rollouts(result.groups, result.outcomes, tokenizer, {}, 512)
    rollouts = {r.id: g for g in result.groups for r in g.rollouts}
    assert [line["id"] for line in kept] == list(rollouts) and len(kept) == 24
    for line in kept:
        group = rollouts[line["id"]]
        assert (line["group"], line["task"], line["gold"]) == (group.key, group.task.id, group.task.private["answer"])
        (outcome,) = [o for o in result.outcomes if o.group.key == group.key]
        place = [r.id for r in group.rollouts].index(line["id"])
        assert line["advantage"] == pytest.approx(outcome.advantages[place])
        asked, said = line["raw"]
        assert asked == line["prompt"] and re.sub("<[a-z]+>", "", said) == line["text"]
        assert said.endswith("<eos>") == (line["stop"] == "done")
    assert any(abs(line["advantage"]) > 0.1 for line in kept)


def test_of_a_large_step_whole_groups_are_kept_that_span_it(step: Any) -> None:
    tokenizer, result = step
    keys = [g.key for g in result.groups]
    kept = kept_rollouts(result.groups, result.outcomes, tokenizer, {}, 8)
    assert [line["group"] for line in kept] == [keys[0]] * 4 + [keys[3]] * 4
    assert len(kept_rollouts(result.groups, result.outcomes, tokenizer, {}, 3)) == 3


def test_a_second_verdict_and_a_rollout_that_was_not_learned_from(step: Any) -> None:
    tokenizer, result = step
    first = result.groups[0].rollouts[0].id
    outcomes = outcomes_of(result.groups, None)
    kept = kept_rollouts(result.groups, outcomes, tokenizer, {first: Score(components={"correct": 0.5})}, 512)
    assert kept[0]["check"] == {"correct": 0.5} and "check" not in kept[1]
    assert {line["advantage"] for line in kept} == {None}


def test_what_is_right_as_a_text() -> None:
    def task(**private: Any) -> Task:
        return Task(
            id="a",
            domain="d",
            arm="x",
            level=1,
            split="train",
            index=0,
            public=FrozenMap({"prompt": "?"}),
            private=FrozenMap(private),
        )

    assert [gold_text(task(answer="1/2", solution="?1/2")), gold_text(task(solution="abc")), gold_text(task())] == [
        "1/2",
        "abc",
        "",
    ]
    assert [gold_text(task(answer=4)), gold_text(task(tests=("a", "b")))] == ["4", '{"tests": ["a", "b"]}']
    assert len(shorten("x" * 100_000)) < 8100 and "92,000 characters left out" in shorten("x" * 100_000)


# ---- in a run ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_recording_changes_no_digest_and_a_resume_cuts_it(tmp_path: Path) -> None:
    run = tiny(warm=2, rl=6)
    quiet = train(replace(run, rollouts_kept=0), tmp_path / "quiet", progress=False)
    assert not (tmp_path / "quiet" / "rollouts").exists()
    whole = train(run, tmp_path / "whole", progress=False)
    files = RolloutFiles(whole.folder)
    assert whole.digest == quiet.digest and files.steps() == (3, 4, 6, 8)
    assert read_rollouts(whole.folder).sampled == len(read_rollouts(whole.folder).lines) == 4 * 16
    assert {item["prompt"][0] for item in files.items()} == {"S"} and len(files.items()) == 11

    def crash(point: str) -> None:
        if point == "renamed:step_0000006":  # recorded, but LATEST names step 4
            raise ZeroDivisionError

    storage.on_write = crash
    try:
        with pytest.raises(ZeroDivisionError):
            train(replace(run, checkpoint_every=2), tmp_path / "cut", progress=False)
    finally:
        storage.on_write = lambda point: None
    assert RolloutFiles(tmp_path / "cut").steps() == (3, 4, 6)
    assert resume(tmp_path / "cut", progress=False).finished
    assert digest_of(tmp_path / "cut") and RolloutFiles(tmp_path / "cut").steps() == (3, 4, 6, 8)
    same = [RolloutFiles(folder).read(6) for folder in (tmp_path / "cut", whole.folder)]
    assert same[0] == same[1]
    assert "rollouts_kept" not in (whole.folder / "run.toml").read_text()
    assert load_run(tmp_path / "quiet").rollouts_kept == 0


def test_the_last_step_of_a_stage_is_recorded_however_it_ends(tmp_path: Path) -> None:
    """In files only: the journal, which the digest covers, has the steps that it always had."""
    run = replace(tiny(warm=2, rl=3), rollouts_every=25)
    assert RolloutFiles(train(run, tmp_path / "short", progress=False).folder).steps() == (3, 5)
    journal = (tmp_path / "short" / "rollouts.jsonl").read_text().splitlines()
    assert {json.loads(line)["step"] for line in journal} == {3}
    assert {r.step for r in read_rollouts(tmp_path / "short", "last").lines} == {5}
    assert len(read_rollouts(tmp_path / "short", "last").lines) == 16
    early = replace(run.stages[-1], until=Until(at_least=0.0))
    often = replace(run, stages=(run.stages[0], early), evaluation=replace(run.evaluation, every=2))
    assert RolloutFiles(train(often, tmp_path / "early", progress=False).folder).steps() == (3, 4)


def test_a_number_of_rollouts_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="rollouts_kept=-1"):
        replace(tiny(), rollouts_kept=-1)

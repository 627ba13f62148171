"""Runs on many rows: these stand beside run.toml, resume reads them there, and folders of before go on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.cli.recipe import _Written  # pyright: ignore[reportPrivateUsage]
from assay.core import FrozenMap, rowfile
from assay.core.config import dumps_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError, DataError
from assay.core.rollout import Sampling
from assay.runtime.settings import DecoderShape
from assay.tasks import Rows, TaskMixture
from assay.train import record
from assay.train.driver import load_run, resume, train
from assay.train.models import Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay_tasks import SortDigits

SHAPE = DecoderShape(
    hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=16, intermediate_size=32, max_positions=64
)


def rows(count: int = 300, mixed: bool = False) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"prompt": f"S{n}>", "answer": "".join(sorted(str(n)))} for n in range(100, 100 + count)]
    found[5]["solution"] = [1, None, {"a": 0.5}]
    if mixed:
        found[3]["level"], found[4]["arm"] = 2, "other"
    return [*found, dict(found[9])]


def on(tasks: Any, **settings: Any) -> Run:
    return Run(
        name="rows",
        model=Scratch(shape=SHAPE),
        tasks=tasks,
        stages=(Reinforce(steps=1, groups=2, group_size=2),),
        sampling=Sampling(max_new_tokens=3),
        evaluation=Evaluation(every=0, final_per_level=2),
        **settings,
    )


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.glob("rows-*"))


def test_many_rows_stand_beside_run_toml_and_a_resume_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = on(Rows(rows(), test_share=0.2))
    first = train(run, tmp_path / "run")
    with monkeypatch.context() as inline:
        inline.setattr(rowfile, "FEW", 10**9)
        assert train(run, tmp_path / "inline").digest == first.digest
    assert files(tmp_path / "run") == [".jsonl", ".npz"] and (tmp_path / "run" / "run.toml").stat().st_size < 10_000
    back = load_run(tmp_path / "run")
    assert back == run and isinstance(back.tasks.rows, rowfile.RowFile)  # pyright: ignore[reportAttributeAccessIssue]
    assert load_run(tmp_path / "run", run) == run == _Written(tmp_path / "run" / "run.toml")()
    assert record.run_id(back) == record.run_id(run)
    again = resume(tmp_path / "run", steps=2)
    assert again.step == 2 and again.digest != first.digest and files(tmp_path / "run") == [".jsonl", ".npz"]
    with pytest.raises(CheckpointError, match="differs from the one in"):
        load_run(tmp_path / "run", on(Rows(rows(299), test_share=0.2)))


def test_a_folder_whose_rows_stand_in_run_toml_goes_on_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = on(TaskMixture(name="both", sources=(Rows(rows(), name="mine"), SortDigits(levels=(3,)))))
    with monkeypatch.context() as before:
        before.setattr(rowfile, "FEW", 10**9)
        train(run, tmp_path / "old")
        assert files(tmp_path / "old") == []
    text = (tmp_path / "old" / "run.toml").read_text()
    assert text == dumps_toml(to_dict(run)) and load_run(tmp_path / "old", run) == run
    train(run, tmp_path / "new")
    done = [resume(tmp_path / name, steps=2) for name in ("old", "new")]
    assert done[0].digest == done[1].digest
    assert files(tmp_path / "old") == [".jsonl", ".npz"] and len((tmp_path / "old" / "run.toml").read_text()) < len(text) / 4
    assert resume(tmp_path / "old", steps=3).digest == resume(tmp_path / "new", steps=3).digest
    with pytest.raises(CheckpointError, match="belongs to another run"):
        changed = (tmp_path / "new" / "run.toml").read_text().replace("seed = 0", "seed = 1", 1)
        (tmp_path / "new" / "run.toml").write_text(changed)
        resume(tmp_path / "new", steps=4)


def test_a_stored_table_says_what_the_rows_say() -> None:
    made = Rows(rows(mixed=True), test_share=0.3, name="mine")
    data, (_, notes) = rowfile.as_lines(made.rows), made._table_loader()  # pyright: ignore[reportPrivateUsage]
    again = Rows(rows())._table_loader()[1]  # pyright: ignore[reportPrivateUsage]
    for stored in (rowfile.RowFile(data, notes()), rowfile.RowFile(data), rowfile.RowFile(data, again())):
        back = Rows(stored, test_share=0.3, name="mine")
        assert back == made and back.arms() == made.arms() and back.repeated == made.repeated == 1
        assert back.alphabet == made.alphabet and made.alphabet == "".join(sorted(set("S>0123456789")))
        for arm, levels in made.arms().items():
            for level in levels:
                for split in ("train", "test"):
                    size = made.size(arm, level, split)
                    assert back.size(arm, level, split) == size
                    mine, its = ([of.task(arm, level, split, i) for i in range(size)] for of in (made, back))
                    assert mine == its
                    told = [(t.id, t.public_view().messages[0].content, t.content) for t in mine]
                    assert (
                        list(made.row_questions(arm, level, split) or ())
                        == list(back.row_questions(arm, level, split) or ())
                        == told
                    )
        rng = np.random.default_rng(0)
        assert back.trace(back.task("mine", 1, "train", 0), 0.0, rng) == made.trace(made.task("mine", 1, "train", 0), 0.0, rng)


def test_questions_of_turns_are_asked_as_tasks() -> None:
    turns = [{"messages": [{"role": "user", "content": f"q{i}"}], "answer": "a"} for i in range(5)]
    assert Rows(turns, test_share=0.0).row_questions("rows", 1, "train") is None
    assert "q" in Rows(turns, test_share=0.0).alphabet


def test_a_run_that_cannot_begin_leaves_no_rows_and_those_of_a_killed_one_are_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises((ConfigError, DataError)):
        train(on(Rows([*rows(), {"prompt": "x" * 99, "answer": "y"}], test_share=0.2)), folder)
    assert files(folder) == []
    folder.mkdir(exist_ok=True)
    (folder / "rows-0.jsonl").write_text("{}")
    (folder / ".rows-1.jsonl.tmp").write_text("{")
    assert train(on(Rows(rows(), test_share=0.2)), folder).finished
    assert files(folder) == [".jsonl", ".npz"]


def test_rows_of_a_run_that_was_changed_are_taken_away(tmp_path: Path) -> None:
    first, second = on(Rows(rows())), on(Rows(rows(400)))
    record.write_run(tmp_path, first)
    old = next(tmp_path.glob("*.jsonl"))
    record.write_run(tmp_path, second)
    assert not old.exists() and files(tmp_path) == [".jsonl", ".npz"] and load_run(tmp_path) == second
    assert FrozenMap(rows()[0]) == load_run(tmp_path).tasks.rows[0]  # pyright: ignore[reportAttributeAccessIssue]

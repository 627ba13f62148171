"""A run that is refused leaves nothing: neither its folder, nor those above it."""

from pathlib import Path

import pytest

REFUSED = {
    "an unknown recipe": "quickstrt",
    "a recipe that fails": "mine.py:fails",
    "an unknown option": "mine.py:tiny --lrr 3",
    "a value of another type": "mine.py:tiny --lr high",
    "a value out of range": "mine.py:tiny --group-size 0",
    "an unknown method": "mine.py:tiny --objective gpro",
    "a method without its teacher": "mine.py:tiny --objective opd",
    "an option of the command": "mine.py:tiny --steps 0",
    "a file that is not there": "mine.py:tiny --config gone.toml",
    "a mistake in a file": "mine.py:tiny --config a.toml",
    "several runs, one setting wrong": "mine.py:tiny --seeds 2 --vary lr=0.1,high",
    "several runs of one seed": "mine.py:tiny --seeds 2 --seed 3",
    "a model that is not there": "mine.py:tiny --model gone",
    "answers longer than the context": "mine.py:tiny --max-new-tokens 500",
    "an alphabet that lacks a character": "mine.py:tiny --model.alphabet 01",
    "evaluation items among the prompts": "mine.py:rewarded --against eval.jsonl",
    "a file of evaluation items that is not there": "mine.py:rewarded --against gone.jsonl",
    "an engine that does not answer": "mine.py:tiny --engine.kind VllmSettings --engine.url http://127.0.0.1:9",
    "a level that is not there": "mine.py:tiny --evaluation.levels 9",
    "no CUDA device": "mine.py:tiny --device cuda",
}


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", "--folder deep/er/r"], ids=["default", "named"])
@pytest.mark.parametrize("why", REFUSED)
def test_nothing_is_left(assay, mine: Path, monkeypatch: pytest.MonkeyPatch, why: str, folder: str) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    mine.with_name("eval.jsonl").write_text('{"problem": "S34>"}\n{"problem": "S21>"}\n')
    mine.with_name("a.toml").write_text("lr = true\n")
    before = here(mine.parent)
    said = assay("train", *REFUSED[why].split(), "--plain", "--no-report", *folder.split())
    assert said.code in (1, 2) and "assay: " in said.err, said
    assert here(mine.parent) == before


def here(root: Path) -> set[str]:
    """All paths but those of caches."""
    found = {str(p.relative_to(root)) for p in root.rglob("*")}
    return {p for p in found if not p.startswith("cache") and "__pycache__" not in p}


def test_a_folder_that_was_there_stays(assay, mine: Path) -> None:
    (mine.parent / "r").mkdir()
    mine.with_name("eval.jsonl").write_text('{"problem": "S34>"}\n')
    assert assay("train", "mine.py:rewarded", "--against", "eval.jsonl", "--folder", "r", "--plain").code == 2
    assert (mine.parent / "r").is_dir()

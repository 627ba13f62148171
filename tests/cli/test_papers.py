"""Published systems: each declaration names parts that exist, tests that exist, and a command that is understood."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from assay.cli import main
from assay.core import papers
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.papers import CONTROLS, Paper, load_papers, paper_named

ROOT = Path(__file__).resolve().parents[2]
ALL = load_papers()


def test_there_are_papers_and_each_is_declared_once() -> None:
    assert len(ALL) >= 100
    ids = [p.arxiv for p in ALL if p.arxiv]
    assert sorted({i for i in ids if not re.fullmatch(r"\d{4}\.\d{4,5}", i)}) == []
    names = [name for p in ALL for name in {p.key.casefold(), p.name.casefold()}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("paper", ALL, ids=lambda p: p.key)
def test_parts_tests_and_evidence_exist(paper: Paper) -> None:
    for part in paper.parts:
        module, _, name = part.partition(":")
        assert getattr(import_module(module), name, None) is not None, part
    for path in (*paper.tests, *filter(None, [paper.evidence])):
        assert (ROOT / path).exists(), path
    assert paper.here.endswith(".") and not paper.missing.endswith(".")


def test_every_page_of_evidence_says_its_control(capsys: pytest.CaptureFixture[str]) -> None:
    assert {p.evidence for p in ALL if p.evidence} == set(CONTROLS)
    assert all(p.control for p in ALL if p.whole)
    assert main(["papers", "show", "dpo"]) == 0
    assert "random rewards were tried under GRPO and RLOO alone" in " ".join(capsys.readouterr().out.split())
    assert main(["papers", "show", "april"]) == 0
    assert "nothing trained beside a control" in " ".join(capsys.readouterr().out.split())


def test_commands_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A seeded handful of those that train: `assay explain` takes the same words and runs nothing; a run of the user's own that
    they name is asked for."""
    monkeypatch.chdir(tmp_path)
    Path("runs", "quickstart-1").mkdir(parents=True)  # empty: a folder that is not there would be looked for on the hub
    trained = [p for p in ALL if p.run.startswith("assay train ")]
    for paper in [paper_named("kdrl"), *random.Random(0).sample(trained, 6)]:
        words = shlex.split(paper.run)
        theirs = [word for word in words if word.startswith("runs/") or word.endswith(".jsonl")]
        assert main(["explain", *words[2:], "--json"]) == (2 if theirs else 0), paper.run
        said = capsys.readouterr()
        assert all(word in said.err for word in theirs)
        assert theirs or json.loads(said.out)
    for paper in ALL:
        assert paper.run == "" or paper.run.startswith(("assay ", "make ", "python ")), paper.run


def test_commands_that_sample_tasks_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)  # one of them names a file of the repository
    sampling = [p for p in ALL if p.run.startswith("assay tasks sample ")]
    for paper in random.Random(0).sample(sampling, 6):
        assert main(shlex.split(paper.run)[1:]) == 0, paper.run
        assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) == 3


def test_commands_on_files_of_the_users_ask_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    reading = [
        p for p in ALL if p.run.startswith(("assay curate ", "assay tasks import ", "assay contamination ", "assay eval "))
    ]
    assert reading
    for folder in ("model", "quickstart-1"):  # empty: a folder that is not there would be looked for on the hub
        Path("runs", folder).mkdir(parents=True)
    for paper in reading:
        words = shlex.split(paper.run)[1:]
        named = [word.rpartition("=")[2] for word in words if word.endswith(".jsonl") or word.startswith("runs/")]
        assert main(words) == 2, paper.run
        said = capsys.readouterr().err
        assert any(word in said for word in named), said


def test_list_show_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["papers", "list"]) == 0
    assert "2505.14970" in capsys.readouterr().out
    assert main(["papers", "list", "--whole", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["key"] for row in rows} == {p.key for p in ALL if p.whole}
    assert main(["papers", "show", "2504.09710"]) == 0
    assert "assay.guide:Dump" in capsys.readouterr().out
    assert main(["papers"]) == 0
    assert "usage: assay papers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "secc"], "did you mean 'sec'"),
        (["run"], "name a paper"),
        (["find"], "use list, show or run"),
    ],
)
def test_wrong_words_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["papers", *words]) == 2
    assert message in capsys.readouterr().err


def test_run_hands_its_command_and_further_options_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import assay.cli.train as train

    seen: list[list[str]] = []
    monkeypatch.setattr(train, "train_command", lambda args: seen.append(args) or 0)
    assert main(["papers", "run", "sec", "--steps", "3"]) == 0
    assert seen == [["quickstart", "--stages.0.curriculum.kind", "Sec", "--steps", "3"]]
    assert "assay train quickstart" in capsys.readouterr().out
    silent = Paper(key="x", title="t", name="X", parts=("a:b",), here="h.", tests=("t",))
    monkeypatch.setattr("assay.cli.papers.paper_named", lambda key: silent)
    assert main(["papers", "run", "x"]) == 2


def test_wrong_declarations_name_file_and_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def declared(text: str) -> None:
        (tmp_path / "guide").mkdir(exist_ok=True)
        (tmp_path / "guide" / "papers.toml").write_text(text)
        monkeypatch.setattr(papers, "files", lambda package: tmp_path)
        load_papers()

    whole = 'title="t"\nname="n"\nparts=["a:b"]\ntests=["t"]\nhere="h."\n'
    declared(f"[x]\n{whole}")
    for text, message in (
        (f"[x]\n{whole}pages=3", r"assay/guide/papers.toml, x: unknown fields \['pages'\]"),
        ('[x]\ntitle="t"', "x: no name, parts, here, tests"),
        ("x = 3", "x: a paper is a table"),
        (f"[x]\n{whole}".replace('["t"]', "[]"), "name the parts"),
    ):
        with pytest.raises(DataError, match=message):
            declared(text)
    (tmp_path / "verify").mkdir()
    (tmp_path / "verify" / "papers.toml").write_text(f"[x]\n{whole}")
    with pytest.raises(DataError, match="'x' is declared twice"):
        declared(f"[x]\n{whole}")


def test_an_unknown_paper_is_refused() -> None:
    for key in ("nothing like it", "", "(", "9999.99999"):
        with pytest.raises(UnknownNameError):
            paper_named(key)


@pytest.mark.slow
def test_a_paper_is_found_by_key_name_title_and_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(papers, "load_papers", lambda: ALL)
    for paper in ALL:
        for said in (paper.key, paper.name, paper.title.upper(), f"{paper.title} (2025)", *filter(None, [paper.arxiv])):
            assert paper_named(said) == paper
        assert not paper.arxiv or paper_named(f"https://arxiv.org/abs/{paper.arxiv}v2") == paper


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("DAPO", "dynamic-sampling"),  # before the title's colon
        ("GRPO", "grpo"),
        ("MiniMax-M1", "cispo"),  # in parentheses
        ("KL-Cov", "entropy-mechanism"),  # behind a comma
        ("random policy valuation", "rover"),  # words of one title
        ("arXiv:2503.14476", "dynamic-sampling"),
    ],
)
def test_a_paper_is_found_by_what_people_call_it(said: str, key: str) -> None:
    assert paper_named(said).key == key


def test_words_of_several_titles_are_asked_back() -> None:
    with pytest.raises(ConfigError, match="'Back to Basics' fits 2 papers: name one, such as progrpo, rloo"):
        paper_named("Back to Basics")


def test_an_unknown_name_of_many_is_answered_in_a_line_or_two(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["papers", "show", "dapo-2"], "'assay papers list' lists them all"),
        (["methods", "gpro"], "did you mean 'grpo'?"),
        (["explain", "quickstart", "--stages.1.objective", "gpro"], "'assay methods' lists them all"),
        (["tasks", "show", "srot"], "'assay tasks list' lists them all"),
        (["verify", "run", "zzz", "x"], "'assay verify list' lists them all"),
    ):
        assert main(words) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert said in told and len(told.split()) < 40, told


def test_the_page_is_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "papers_page.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout

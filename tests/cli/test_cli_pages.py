"""Pages about parts of one's own: their code stands in a file, and trains. Their commands: tests/project/test_pages_run.py."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from assay.core.protocols import Environment
from assay.core.task import TaskView
from assay.testing import check_environment
from assay_tasks import KeyValue

PAGES = Path(__file__).parents[2] / "docs" / "add"
NAMES = ["curriculum", "guidance", "group_filter", "judge", "sampler", "context_manager", "engine"]


def text_of(page: str) -> str:
    return (PAGES / f"{page}.md").read_text(encoding="utf-8")


def code_of(page: str) -> str:
    """The page's part: its first piece of Python, or its first example without prompts, up to the end of the class."""
    text = text_of(page)
    if "```python\n" in text:
        return text.split("```python\n", 1)[1].split("```", 1)[0]
    example = re.search(r"^>>> (?:.*\n)(?:(?:>>>|\.\.\.).*\n)*", text, flags=re.MULTILINE)
    assert example is not None
    lines = [line[4:] for line in example.group().splitlines()]
    last = max(i for i, line in enumerate(lines) if line.startswith("    "))
    return "\n".join(lines[: last + 1]) + "\n"


def commands_of(page: str) -> list[list[str]]:
    return [shlex.split(line)[2:] for line in re.findall(r"^    (assay train .*)$", text_of(page), flags=re.MULTILINE)]


def test_every_command_of_the_pages_is_found() -> None:
    for page in NAMES:
        assert commands_of(page), page
        assert len(commands_of(page)) == text_of(page).count("assay train"), f"{page}: a command stands elsewhere than by itself"


@pytest.mark.slow
@pytest.mark.parametrize("page", [name for name in NAMES if name != "judge"])  # a judge trains in test_cli_judge.py
def test_the_part_of_the_page_trains(assay, mine: Path, page: str, tmp_path: Path) -> None:
    (tmp_path / "my_file.py").write_text(code_of(page))
    (words,) = [words for words in commands_of(page) if any("my_file.py" in word for word in words)]
    options = words[1:]
    said = assay("train", "mine.py:tiny", *options, "--folder", "run", "--plain", "--no-report")
    assert said.code == 0, said.err
    steps = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert max(line["step"] for line in steps if line["stage"] == "rl") == 2


def test_the_environment_of_the_page_keeps_its_promises() -> None:
    here: dict[str, type[Environment]] = {}
    exec(compile(code_of("environment"), "environment.md", "exec"), here)

    class Counting(KeyValue):
        def environment(self, world: TaskView) -> Environment:
            return here["CountDown"](world)  # type: ignore[call-arg]

    source = Counting(levels=(3,))
    report = check_environment(source, source.task("keyvalue", 3, "train", 0))
    wrong = "answers its oracle's actions a little wrong"
    assert report.passed == ("deterministic", "single use", "answers anything", "ends", wrong)
    assert report.numbers["steps until the end (junk)"] == 3.0

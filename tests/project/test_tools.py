"""The size report and the coverage floors, on numbers counted by hand."""

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tool_{name}", TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SAMPLE = '''"""Two
lines of docstring."""

from dataclasses import dataclass


@dataclass
class Pair:
    """A docstring."""

    left: int  # a comment
    right: int = 0

    def total(self, extra: int, *, scale: int = 1) -> int:
        """Another."""
        # only a comment

        text = """not a docstring,
        two lines"""
        return (self.left + self.right + extra) * scale + len(text)
'''


def test_sizes_count_code_and_not_words(tmp_path: Path) -> None:
    sizes = load("sizes")
    path = tmp_path / "sample.py"
    path.write_text(SAMPLE)
    # import, decorator, class, two fields, def, two lines of text, return
    assert len(sizes.code_lines(SAMPLE, ast.parse(SAMPLE))) == 9
    found = sizes.measure([path])
    assert [e.size for e in found.files] == [len(SAMPLE.splitlines())] == [20]
    assert [(e.size, e.place.split()[-1]) for e in found.functions] == [(4, "Pair.total")]
    assert [e.size for e in found.arguments] == [2]
    assert [e.size for e in found.fields] == [2]


def test_sizes_print_the_largest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("def short() -> None:\n    pass\n\n\ndef long() -> int:\n    x = 1\n    return x\n")
    assert load("sizes").main([str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("    3  ") < printed.index("    2  ")
    assert "code lines per function (of 2, median 2)" in printed


def summary(lines: int, hit: int, branches: int, branches_hit: int) -> dict[str, object]:
    counts = {
        "num_statements": lines,
        "covered_lines": hit,
        "num_branches": branches,
        "covered_branches": branches_hit,
    }
    return {"summary": counts, "missing_lines": [7], "missing_branches": [[3, -1]]}


@pytest.mark.parametrize(
    ("core", "other", "code"),
    [
        ((10, 10, 4, 4), (10, 9, 10, 9), 0),
        ((10, 10, 4, 3), (10, 9, 10, 9), 1),  # one branch of core missed
        ((10, 10, 4, 4), (100, 100, 10, 8), 1),  # 98 % of both, but 80 % of branches
    ],
)
def test_floors_judge_each_room(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    core: tuple[int, int, int, int],
    other: tuple[int, int, int, int],
    code: int,
) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.assay.coverage-floors]\n"src/assay" = 90\n"src/assay/core" = 100\n')
    files = {"src/assay/core/a.py": summary(*core), "src/assay/train/loop.py": summary(*other)}
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": files}))
    assert load("coverage_floors").main(str(report), str(project)) == code
    printed = capsys.readouterr().out
    assert ("LOW" in printed) == (code == 1)
    assert ("lines 7; branches 3->-1" in printed) == (code == 1)


def test_floor_owner_is_the_longest_folder_not_the_longest_text() -> None:
    floors = {"src/assay": 90.0, "src/assay/core": 100.0, "src/assay/verify/workers/pool": 90.0}
    owner = load("coverage_floors").owner
    assert owner("src/assay/core/task.py", floors) == "src/assay/core"
    assert owner("src/assay/core_extra.py", floors) == "src/assay"
    assert owner("src/assay/verify/workers/pool.py", floors) == "src/assay/verify/workers/pool"
    assert owner("elsewhere/a.py", floors) is None


@pytest.mark.parametrize("files", [{}, {"elsewhere/a.py": summary(1, 1, 0, 0)}])
def test_floors_refuse_a_report_that_says_nothing(files: dict[str, object]) -> None:
    with pytest.raises(SystemExit):
        load("coverage_floors").tally({"files": files}, {"src/assay": 90.0})

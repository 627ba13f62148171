"""Bars of the layout that no other test holds: short stages, short parts, nothing concrete named in the loop, a light start."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
TRAIN = SOURCES / "assay" / "train"

STAGE_FILES = (
    *("session", "weights", "opening", "run_driver", "stage_driver", "run_log", "runner", "stage", "stage_rows", "step_size"),
    *("reinforce", "reinforce_checks", "reinforce_runner", "collect", "texts", "imitate", "prefer", "warmup", "offline_rows"),
)
LINES_OF_A_STAGE_FILE = 200


def test_files_of_stages_and_of_the_session_are_short() -> None:
    count = {name: len((TRAIN / f"{name}.py").read_text(encoding="utf-8").splitlines()) for name in STAGE_FILES}
    assert {name: n for name, n in count.items() if n >= LINES_OF_A_STAGE_FILE} == {}, "split it by what its parts do"


# ---- parts ------------------------------------------------------------------------------------------------------------

PARTS = {
    ("assay/guide/bandits.py", "Sec"): 40,
    ("assay/guide/bandits.py", "Dump"): 40,
    ("assay/guide/bandits.py", "RuleReasoner"): 40,
    ("assay/guide/hints.py", "Ghpo"): 60,
    ("assay/scorers/rubric_judge.py", "RubricJudge"): 80,
    ("assay/rollout/branching.py", "Branching BranchingSampler"): 150,
    ("assay_tasks/heaps.py", "Heaps _Table"): 150,
    ("assay/rollout/summarise.py", "Summarise"): 150,
}
"""What the protocols ask of an author: lines of the classes of a part, without their docstrings."""


def lines_of(path: str, names: str) -> int:
    classes = [n for n in ast.parse((SOURCES / path).read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
    chosen = [n for n in classes if n.name in names.split()]
    assert len(chosen) == len(names.split()), f"{path} has no longer all of {names}"
    return sum(whole(n) - documented(n) for n in chosen)


def whole(node: ast.ClassDef) -> int:
    return (node.end_lineno or 0) - node.lineno + 1 + len(node.decorator_list)


def documented(node: ast.ClassDef) -> int:
    first = node.body[0]
    return (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part[1])
def test_a_published_part_takes_few_lines(part: tuple[str, str]) -> None:
    assert 10 < lines_of(*part) <= PARTS[part]


# ---- protocols ----------------------------------------------------------------------------------------------------------

CONCRETE = {
    *("InProcess", "Native", "VllmSettings", "VllmServer"),
    *("NativeEngine", "TransformersEngine", "VllmEngine", "StaleEngine", "TorchLearner", "MeshLearner"),
}


def names_in(tree: ast.Module) -> set[str]:
    """Names that code uses, texts left out."""
    imported = {alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for alias in n.names}
    return imported | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def test_the_loop_names_no_engine_and_no_learner() -> None:
    found = {path.name: names_in(ast.parse(path.read_text(encoding="utf-8"))) & CONCRETE for path in sorted(TRAIN.glob("*.py"))}
    assert len(found) > 60
    assert {name: used for name, used in found.items() if used} == {}, "ask for a protocol"
    assert names_in(ast.parse("from assay.runtime import Native as N\nx = TorchLearner('InProcess')")) & CONCRETE == {
        "Native",
        "TorchLearner",
    }


# ---- start-up ------------------------------------------------------------------------------------------------------------

STARTS = {"--help": 20, "methods": 180, "explain quickstart": 350}
"""Modules of assay that a command may load with an empty cache: what its start costs, whatever else the machine does.

`benchmarks/import_time.py` measures the CPU-seconds: at most 0.3 of ``--help``, 0.6 of lists and 1.2 of ``explain``.
"""

LOADED = """
import contextlib, io, json, sys
from assay.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", STARTS)
def test_a_command_loads_what_it_needs(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command.split()],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ASSAY_CACHE": str(tmp_path)},
    )
    loaded = json.loads(done.stdout)
    ours = [name for name in loaded if name.partition(".")[0] in ("assay", "assay_tasks")]
    assert 5 < len(ours) <= STARTS[command], "import what only some commands run inside of them"
    assert not {"torch", "transformers", "scipy", "pandas", "sympy"} & set(loaded)
    assert command != "--help" or "numpy" not in loaded


# ---- names -----------------------------------------------------------------------------------------------------------------

PARTICIPLE = re.compile(
    "[a-z]{2,}ed|told|said|laid|drawn|posed|shown|given|kept|made|taken|found|seen|held|left|written|gone|done|built|sent|brought"
    "|taught|heard|known|grown|thrown|begun|chosen|spoken|broken|hidden|won|lost|led|met|apart|aside|beside|ahead|elsewhere"
    "|behind|beyond|without|around|above|below|under|over|along|between"
)
OTHER_WORDS = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"}
NAMED_BEFORE = {"cached", "constrained", "mixed"}
"""A method and a recipe by the names that commands know them by, and what sources of control data define."""


def is_participle(name: str) -> bool:
    word = name.strip("_")
    return PARTICIPLE.fullmatch(word) is not None and word not in OTHER_WORDS


def lone_participles(text: str) -> list[str]:
    """Functions of a module that are named by a participle or preposition alone; questions, which return a bool, may be."""
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_participle(node.name)
        and not any("property" in ast.unparse(part) for part in node.decorator_list)
        and (node.returns is None or ast.unparse(node.returns) != "bool")
    ]


def test_a_function_is_named_by_a_verb_and_its_object() -> None:
    code = "def told(x): ...\ndef is_told(x): ...\ndef _joined(x) -> str: ...\ndef done() -> bool: ...\ndef seed(x): ..."
    assert lone_participles(code) == ["told", "_joined"]
    found = {
        p.relative_to(SOURCES).as_posix(): set(lone_participles(p.read_text(encoding="utf-8"))) for p in SOURCES.rglob("*.py")
    }
    assert {path: sorted(names - NAMED_BEFORE) for path, names in found.items() if names - NAMED_BEFORE} == {}

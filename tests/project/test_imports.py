"""Importing stays light: no package loads torch by being imported."""

import ast
import contextlib
import io
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import assay
from assay.cli import main

SOURCE = Path(__file__).parents[2] / "src" / "assay"
PACKAGES = sorted(m.name for m in pkgutil.iter_modules([str(SOURCE)]) if m.ispkg)
TORCH_FAMILY = ("torch", "transformers", "safetensors", "tokenizers")
HEAVY = (*TORCH_FAMILY, "matplotlib", "tensorboard", "wandb", "scipy", "pandas")
TORCH_PLACES = ("runtime", "objective/loss", "testing")


def fresh(code: str) -> list[str]:
    """Run `code` in a new interpreter; it must print one JSON list, which is returned."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_import_assay_loads_nothing_heavy() -> None:
    code = "import json, sys, assay; print(json.dumps(sorted(sys.modules)))"
    loaded = fresh(code)
    assert "assay" in loaded
    assert not set(loaded) & {*HEAVY, "numpy", "rich", "tyro"}


def test_help_loads_no_torch() -> None:
    code = """
import contextlib, io, json, sys
from assay.cli import main
text = io.StringIO()
with contextlib.redirect_stdout(text):
    try:
        code = main(["--help"])
    except SystemExit as stop:
        code = stop.code
assert not code, code
assert "train" in text.getvalue(), text.getvalue()
print(json.dumps(sorted(sys.modules)))
"""
    assert not set(fresh(code)) & set(HEAVY)


def test_room_inits_load_nothing_heavy() -> None:
    assert PACKAGES
    code = f"""
import importlib, json, sys
found = []
for package in {PACKAGES!r}:
    importlib.import_module("assay." + package)
    found += [package + " loads " + name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps(found))
"""
    assert fresh(code) == []


@pytest.mark.slow
def test_no_module_outside_runtime_loads_torch() -> None:
    code = """
import importlib, json, pkgutil, sys
import assay
names = [m.name for m in pkgutil.walk_packages(assay.__path__, "assay.")]
found = []
for name in names:
    if name.startswith("assay.runtime") or name.endswith("__main__"):
        continue
    importlib.import_module(name)
    if "torch" in sys.modules:
        found = [name]
        break
print(json.dumps(found))
"""
    assert fresh(code) == []


def test_torch_is_named_only_where_it_belongs() -> None:
    """import-linter holds static imports; this also sees imports by name, and keeps the others lazy."""
    misplaced: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith("runtime"):
            continue
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in TORCH_FAMILY):
            continue  # most files, and to parse them takes seconds
        tree = ast.parse(text)
        top_level = {id(node) for node in tree.body}
        allowed = place.startswith(TORCH_PLACES)
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            elif (
                isinstance(node, ast.Call)
                and getattr(node.func, "attr", getattr(node.func, "id", "")).endswith("import_module")
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                names = [str(node.args[0].value)]
            family = [n for n in names if n.split(".")[0] in TORCH_FAMILY]
            if family and (not allowed or id(node) in top_level):
                misplaced.append(f"{place}:{getattr(node, 'lineno', 0)} {family[0]}")
    assert misplaced == []


def test_every_package_is_an_attribute_of_assay() -> None:
    assert sorted(assay.__all__) == PACKAGES
    assert sorted(set(assay.__all__) & set(dir(assay))) == sorted(assay.__all__)
    for package in PACKAGES:
        assert getattr(assay, package).__name__ == f"assay.{package}"


def test_unknown_attribute_is_an_attribute_error() -> None:
    assert not hasattr(assay, "no_such_room")


QUIET = "import contextlib, io, json, sys\nfrom assay.cli import main\n"


def loaded_by(*words: str) -> set[str]:
    call = f"with contextlib.redirect_stdout(io.StringIO()):\n    assert main({list(words)!r}) == 0\n"
    return set(fresh(QUIET + call + "print(json.dumps(sorted(sys.modules)))"))


@pytest.mark.slow
def test_commands_load_what_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    for words in (("methods",), ("verify", "list"), ("tasks", "list")):
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(list(words)) == 0  # makes the list
        again = loaded_by(*words)
        packages = {name for name in again if name.startswith(("assay.objective", "assay.train", "assay.tasks", "assay.verify"))}
        assert not packages, f"{words} reads what was made before"
        assert "tyro" not in again, f"{words} names no option"
    explained = loaded_by("explain", "quickstart")
    assert not {"torch", "tyro", "assay_tasks.gsm8k", "assay.train.wiring", "assay.objective.methods.trust"} & explained

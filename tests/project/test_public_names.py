"""Every module says what is public, and everything public is documented."""

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "assay"
PACKAGES = sorted(m.name for m in pkgutil.iter_modules([str(SOURCE)]) if m.ispkg)
MODULES = sorted(SOURCE.rglob("*.py"))


def public(path: Path) -> bool:
    """Whether no part of the module's name begins with an underscore (`__init__` stands for its package)."""
    names = [*path.relative_to(SOURCE).parts[:-1], path.stem]
    return not any(name.startswith("_") for name in names if name != "__init__") and path.stem != "__main__"


@cache
def facts_of(path: Path) -> tuple[bool, set[str] | None]:
    """Whether the module has a docstring, and the names in its literal `__all__`, or None where it has none. A module is read
    once for all tests here.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return bool(ast.get_docstring(tree)), listed(tree)


def declared(path: Path) -> set[str] | None:
    return facts_of(path)[1]


def listed(tree: ast.Module) -> set[str] | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            return set(ast.literal_eval(node.value)) if isinstance(node.value, (ast.List, ast.Tuple)) else set()
    return None


def has_own_docstring(value: object) -> bool:
    """Whether `value` brings a docstring; the signature that a dataclass writes itself is none."""
    if inspect.isclass(value):
        text = value.__dict__.get("__doc__") or ""
        return bool(text.strip()) and not text.startswith(f"{value.__name__}(")
    return bool((inspect.getdoc(value) or "").strip())


@pytest.mark.slow
def test_every_public_module_declares_its_names() -> None:
    assert [p.relative_to(ROOT).as_posix() for p in MODULES if public(p) and declared(p) is None] == []


def test_every_module_has_a_docstring() -> None:
    assert [p.relative_to(ROOT).as_posix() for p in MODULES if not facts_of(p)[0]] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_of_a_package_exist_and_have_docstrings(package: str) -> None:
    module = importlib.import_module(f"assay.{package}")
    assert module.__all__, f"assay.{package} offers nothing"
    assert len(module.__all__) == len(set(module.__all__)), f"assay.{package}.__all__ repeats a name"
    values = {name: getattr(module, name) for name in module.__all__}
    described = {n: v for n, v in values.items() if inspect.isclass(v) or inspect.isfunction(v)}
    assert [name for name, value in described.items() if not has_own_docstring(value)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_of_a_package_is_that_of_a_module_in_it(package: str) -> None:
    """Once the module is imported it would stand in the name's place."""
    module = importlib.import_module(f"assay.{package}")
    assert {m.name for m in pkgutil.iter_modules(module.__path__)} & set(module.__all__) == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_of_a_package_lists_its_lazy_names(package: str) -> None:
    module = importlib.import_module(f"assay.{package}")
    assert set(module.__all__) <= set(dir(module))
    assert not hasattr(module, "no_such_name")

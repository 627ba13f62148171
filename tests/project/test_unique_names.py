"""One name, one class: no two packages offer different classes under the same name."""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest

import assay
import assay_control
import assay_tasks

# Name: why two classes share it.
ALLOWED: dict[str, str] = {}


def packages(top: ModuleType) -> Iterator[ModuleType]:
    yield top
    for found in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
        if found.ispkg:
            yield importlib.import_module(found.name)


def classes(*modules: ModuleType) -> dict[str, dict[str, list[str]]]:
    """Name to classes (``module:Name``) to the packages that offer them."""
    found: dict[str, dict[str, list[str]]] = {}
    for module in modules:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, type):
                found.setdefault(name, {}).setdefault(f"{value.__module__}:{value.__qualname__}", []).append(module.__name__)
    return found


def clashes(found: dict[str, dict[str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    return {name: homes for name, homes in found.items() if len(homes) > 1}


def test_no_public_class_name_is_in_two_packages() -> None:
    found = clashes(classes(*packages(assay), *packages(assay_control), *packages(assay_tasks)))
    assert {name: homes for name, homes in found.items() if name not in ALLOWED} == {}


def test_what_is_allowed_still_clashes() -> None:
    assert set(ALLOWED) <= set(clashes(classes(*packages(assay), *packages(assay_control), *packages(assay_tasks))))


def test_a_clash_is_found() -> None:
    one, two, same = ModuleType("one"), ModuleType("two"), ModuleType("same")
    first, second = type("Twice", (), {"__module__": "one"}), type("Twice", (), {"__module__": "two"})
    for module, value in ((one, first), (two, second), (same, first)):
        module.__dict__.update(Twice=value, __all__=["Twice"])
    assert clashes(classes(one, two)) == {"Twice": {"one:Twice": ["one"], "two:Twice": ["two"]}}
    assert clashes(classes(one, same)) == {}


@pytest.mark.parametrize("name", ["assay.verify.Plan", "assay.core.World", "assay.runtime.Lagged"])
def test_a_name_of_before_says_what_it_is_called_now(name: str) -> None:
    package, _, old = name.rpartition(".")
    with pytest.raises(ImportError, match=f"{old} is called .* now; write: from {package} import"):
        getattr(importlib.import_module(package), old)

"""The tree of errors: what callers may catch, and messages that name a fix."""

import pickle
from pathlib import Path

import pytest

from assay.core import errors
from assay.core.errors import AssayError, MissingExtraError, UnknownNameError, how_to_install, missing_extra, nearest

BUILTIN = {
    "ConfigError": ValueError,
    "UnknownNameError": KeyError,
    "DataError": ValueError,
    "EngineError": RuntimeError,
    "NonFiniteError": ArithmeticError,
    "StorageError": OSError,
    "MissingExtraError": ImportError,
    "SandboxError": RuntimeError,
}
CLASSES = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]


def make(cls: type[AssayError]) -> AssayError:
    if cls is UnknownNameError:
        return UnknownNameError("level", 4, [1, 2])
    return MissingExtraError("torch", "train") if cls is MissingExtraError else cls("what, where, fix")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_ours_and_what_python_users_expect(cls: type[AssayError]) -> None:
    assert issubclass(cls, AssayError)
    assert issubclass(cls, BUILTIN.get(cls.__name__, Exception))
    assert cls.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_survives_a_process_boundary(cls: type[AssayError]) -> None:
    error = make(cls)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == str(error)


def test_subtrees() -> None:
    assert issubclass(errors.UnknownNameError, errors.ConfigError)
    assert issubclass(errors.PlanError, errors.ConfigError)
    assert issubclass(errors.InexactResumeError, errors.CheckpointError)


def test_unknown_name_says_the_nearest_and_all_known() -> None:
    error = UnknownNameError("arm", "sotr", ["sort", "reverse"])
    assert str(error) == "unknown arm 'sotr': did you mean 'sort'? known: reverse, sort"
    assert str(UnknownNameError("arm", "zzz", ["sort"])) == "unknown arm 'zzz': known: sort"
    assert str(UnknownNameError("arm", "zzz", [])) == "unknown arm 'zzz': known: none"


def test_nearest() -> None:
    assert nearest("curiculum", ["curriculum", "replay"]) == "curriculum"
    assert nearest("xyz", ["curriculum"]) is None


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("gpro", ["dapo", "grpo", "gspo", "prpo", "rloo"], "grpo"),
        ("rgpo", ["grpo", "prpo", "rpo"], "grpo"),
        ("dpao", ["dapo", "dpo", "apo"], "dapo"),
        ("grpoo", ["grpo", "gfpo"], "grpo"),
        ("grp", ["grpo", "gspo"], "grpo"),
        ("stpes", ["steps", "stages", "types"], "steps"),
        ("setps", ["steps", "seeds"], "steps"),
        ("same", ["same", "sane"], "same"),
        ("reward", ["rewards", "reward_fn"], "rewards"),
        ("ppo", ["objective", "lora"], None),
        ("", ["a"], None),
        ("a", [], None),
    ],
)
def test_the_nearest_name_is_the_fewest_slips_away(name: str, known: list[str], meant: str | None) -> None:
    assert nearest(name, known) == nearest(name, known[::-1]) == meant


def test_the_nearest_name_ignores_case_and_numbers_stand_in_their_order() -> None:
    assert nearest("sortdigits", ["SortDigits", "Reverse"]) == "SortDigits"
    assert str(UnknownNameError("level", 7, [10, 9, 3])) == "unknown level '7': known: 3, 9, 10"
    assert str(UnknownNameError("level", 99, [10, 9, 3])) == "unknown level '99': known: 3, 9, 10"


MANY = [f"name{i:02d}" for i in range(40)]


def test_a_short_list_of_names_is_said_whole_and_a_long_one_by_its_nearest() -> None:
    assert str(UnknownNameError("arm", "zzz", MANY[:20])) == f"unknown arm 'zzz': known: {', '.join(MANY[:20])}"
    error = UnknownNameError("arm", "nmae07", MANY)
    said = str(error)
    assert said.startswith("unknown arm 'nmae07': did you mean 'name07'? 40 are known, most like it: name07, name")
    assert said.count("name") == 7 and "lists them all" not in said  # the hint and six
    assert error.known == tuple(MANY)
    assert str(UnknownNameError("arm", "zzz", MANY)) == f"unknown arm 'zzz': 40 are known, such as {', '.join(MANY[:6])}"


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("method", "assay methods"),
        ("method of --stages.1.objective", "assay methods"),
        ("paper", "assay papers list"),
        ("task family", "assay tasks list"),
        ("verifier", "assay verify list"),
        ("recipe", "assay recipes"),
        ("language", "assay sandbox languages"),
    ],
)
def test_a_long_list_names_the_command_that_has_all(kind: str, command: str) -> None:
    said = str(UnknownNameError(kind, "zzz", MANY))
    assert said.endswith(f"; {command!r} lists them all") and len(said) < 250
    assert str(pickle.loads(pickle.dumps(UnknownNameError(kind, "zzz", MANY)))) == said


def test_a_module_of_no_extra_is_no_missing_extra() -> None:
    found = missing_extra(ModuleNotFoundError("No module named 'jinja2.ext'", name="jinja2.ext"))
    assert isinstance(found, MissingExtraError) and (found.module, found.extra) == ("jinja2", "train")
    assert missing_extra(ModuleNotFoundError("No module named 'mine'", name="mine")) is None
    assert missing_extra(ModuleNotFoundError("a name that nobody gave")) is None


def test_an_extra_is_installed_by_the_checkouts_command_in_a_checkout_alone(tmp_path: Path) -> None:
    package = tmp_path / "src" / "assay"
    assert how_to_install("lora", package) == "pip install 'assay-rl[lora]'"
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    said = "pip install 'assay-rl[lora]', or in this checkout: pip install -c constraints.txt -e '.[lora]'"
    assert how_to_install("lora", package) == said
    assert how_to_install("lora", tmp_path / "site-packages" / "assay") == "pip install 'assay-rl[lora]'"
    assert str(MissingExtraError("peft", "lora")) == f"peft is not installed: {how_to_install('lora')}"
    assert missing_extra(ModuleNotFoundError("", name="peft.tuners")).extra == "lora"  # pyright: ignore[reportOptionalMemberAccess]

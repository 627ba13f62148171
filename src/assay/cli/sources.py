"""From a word on the command line to a task family or a verifier."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from assay.cli.user_objects import default_parameters, error_text, named_object
from assay.core.config import from_dict
from assay.core.errors import AssayError, ConfigError, DataError, a_kind
from assay.core.protocols import TaskSource, Verifier
from assay.core.util.hub import PREFIX

__all__ = ["held_out_rows", "own_code", "reward_of", "scorer", "source"]


# ---- task families ----------------------------------------------------------------------------------------------------


def source(word: str) -> TaskSource:
    """The task family that a word names: assay's, rows in a file, a puzzle in a ``.toml`` file, or
    ``my_file.py:my_source``: a family, its class, or a function giving one.

    Raises:
        UnknownNameError: no such family; with the nearest.
        ConfigError: what was named is no task family.
    """
    from assay.tasks import Problem, family, judged_rows, load_rows, read_splits
    from assay.tasks.packages import installed_packages

    if word.endswith(".jsonl"):
        return load_rows(word)
    if ":" not in word and (read := installed_packages().read(word)):
        return read
    if word.startswith(PREFIX):
        raise ConfigError(f"{word}: rows on the hub become a family by 'assay tasks import {word} rows.jsonl'")
    if ":" not in word:
        if word.endswith((".json", ".ndjson", ".gz", ".parquet", ".arrow", ".csv")):
            return judged_rows(cast("Any", read_splits(word)), name=Path(word).name.partition(".")[0])
        if word.endswith(".py"):
            raise ConfigError(f"task family {word!r} names a file only; say which: {word}:my_source")
        return family(word)
    found: object = named_object(word, "task family")
    if callable(found):
        default_parameters(found, f"task family {word}")
    try:
        made: object = found() if callable(found) else found
    except AssayError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(f"task family {word} failed: {error_text(error)}") from error
    if not isinstance(made, TaskSource):
        hint = "; a Problem is an arm: return Problems(name=..., problems=(it,))" if isinstance(made, Problem) else ""
        raise ConfigError(
            f"task family {word} is {a_kind(made)} without the methods of a TaskSource (assay.core.protocols){hint}"
        )
    return made


def held_out_rows(word: str, reward: str | None) -> TaskSource:
    """Rows to evaluate on, all of them: of a file, of the test split of a folder or of a data set on the hub.

    Args:
        word: where they are.
        reward: a reward function's ``my_file.py:name``; without one rows name their verifiers, or are matched with ``answer``.

    Raises:
        ConfigError: there are none, or no such reward.
        DataError: a row is wrong; names the file and the row.
    """
    from assay.tasks import Rows, judged_rows, read_splits, train_and_test

    found = read_splits(word)
    if isinstance(found, Mapping):
        train, test = train_and_test({"train": (), **found})
        found = test if len(test) else train
    if not len(found):
        raise ConfigError(f"{word} holds no rows; give some")
    settings: dict[str, Any] = {"tests": len(found), "name": Path(word.rstrip("/")).name.partition(".")[0] or "rows"}
    try:
        return judged_rows(found, **settings) if reward is None else Rows(found, reward=reward_of(reward), **settings)
    except DataError as error:
        raise DataError(f"{word}: {error}") from None


def reward_of(word: str) -> Any:
    """The reward function that a word names.

    Raises:
        ConfigError, UnknownNameError: there is none.
    """
    found = named_object(word, "reward")
    if not callable(found):
        raise ConfigError(f"reward {word} is {a_kind(found)}; name a function of (prompt, completion, row)")
    return found


@contextmanager
def own_code(word: str) -> Generator[None]:
    """Where tasks are drawn: an exception of a family in a file or module of a person's own is told in one line.

    Raises:
        ConfigError: such a family raised what is no error of assay's; names it and where. Built-in ones are let through.
    """
    try:
        yield
    except (AssayError, OSError):
        raise
    except Exception as error:
        if ":" not in word:
            raise
        raise ConfigError(f"task family {word} failed: {error_text(error)}") from error


# ---- verifiers --------------------------------------------------------------------------------------------------------


def scorer(word: str, settings: Mapping[str, Any]) -> Verifier:
    """The verifier that a word names: assay's, or ``my_file.py:name`` of a verifier, its class, or anybody's reward function.

    What is no verifier becomes one by `assay.tasks.named_rewards`, called as a run on rows calls it. Settings are fields of the
    class, or of `assay.verify.RewardFunction` for a function of ``(prompt, completion, row)``.

    Raises:
        UnknownNameError: no such verifier or setting; with the nearest.
        ConfigError: what was named is no verifier, or a setting is wrong.
    """
    from assay.interop import load
    from assay.tasks.named_rewards import named_verifier
    from assay.verify import RewardFunction, verifier

    if ":" not in word:
        if word.endswith(".py"):
            raise ConfigError(f"verifier {word!r} names a file only; say which: {word}:my_verifier")
        return verifier(word, **settings)
    found: Any = load(word)
    if isinstance(found, type):
        kind = cast("type[Any]", found)
        found, settings = from_dict(kind, settings) if is_dataclass(kind) else _build_part(kind, word, settings), {}
    if settings and isinstance(found, FunctionType) and settings.keys() <= {"batched", "floor"}:
        return RewardFunction(found, **dict(settings))
    return _refuse_settings(word, settings) if settings else named_verifier(found, name=word)


def _build_part(kind: Callable[..., Any], word: str, settings: Mapping[str, Any]) -> Any:
    try:
        return kind(**settings)
    except AssayError:
        raise
    except Exception as error:
        raise ConfigError(f"verifier {word} failed: {error_text(error)}") from error


def _refuse_settings(word: str, settings: Mapping[str, Any]) -> Any:
    raise ConfigError(f"{word} has no settings {sorted(settings)}; a function of (prompt, completion, row) has batched and floor")

"""Answers to judge as JSON objects, and verdicts as JSON objects: the form of files, pipes and the reward service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, UnknownNameError, a_kind
from assay.core.protocols import TaskSource
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.core.util.jsonl import object_of
from assay.verify.rollouts import rollout_of, task_and_rollout

__all__ = ["case_of", "parse_row", "verdict_row"]

_FIELDS = ("id", "domain", "arm", "level", "split", "index", "public", "world", "private")


def parse_row(line: str | bytes, place: str) -> Mapping[str, Any]:
    """The JSON object on a line.

    Args:
        line: text, or its bytes in UTF-8.
        place: where it stands, for the error.

    Raises:
        DataError: it is none, or says one key twice; names the place.

    >>> parse_row(b'{"gold": 4, "answer": "4"}', "line 1")["gold"]
    4
    """
    try:
        return object_of(line)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


def case_of(row: object, place: str, *, id: str = "case", family: TaskSource | None = None) -> tuple[Task, Rollout]:
    """The task and the rollout that a row stands for.

    Args:
        row: ``{"gold": ..., "answer": "text"}``, besides ``"prompt"`` where the verifier reads it; or ``{"task": {...}, "answer":
            "text"}`` with the fields of a `Task`; with a ``family``, ``"task"`` may be the id of one of its tasks.
        place: where it stands, for errors.
        id: of the rollout, unique among those judged together.
        family: whose tasks are meant by their ids.

    Raises:
        DataError: a field is missing, unknown or of the wrong type; names place and field.

    >>> task, rollout = case_of({"gold": "4", "answer": "It is 4."}, "row 0")
    >>> task.private["answer"], rollout.text
    ('4', 'It is 4.')
    """
    try:
        return _case(_object(row, place), place, id, family)
    except RecursionError:
        raise DataError(f"{place}: lists or objects in one another, too deep to be read; flatten them") from None


def _case(table: Mapping[str, Any], place: str, id: str, family: TaskSource | None) -> tuple[Task, Rollout]:
    answer: Any = table.get("answer")
    if not isinstance(answer, str):
        what = f"'answer' is {a_kind(answer)}" if "answer" in table else f"there is no 'answer'; it has {sorted(table)}"
        raise DataError(f"{place}: {what}; give the text that the model wrote")
    if ("gold" in table) == ("task" in table):
        raise DataError(f"{place}: it has {'both' if 'gold' in table else 'neither'} of 'gold' and 'task'; give one of them")
    if "gold" in table:
        prompt: Any = table.get("prompt", "")
        if not isinstance(prompt, str):
            raise DataError(f"{place}: 'prompt' is {a_kind(prompt)}; give text")
        return task_and_rollout(table["gold"], answer, id=id, prompt=prompt)
    task = _task(table["task"], place, family)
    return task, rollout_of(task, answer, id=id, group=id)


def verdict_row(score: Score, seconds: float | None = None) -> dict[str, Any]:
    """A verdict as a JSON object: ``value`` (None for a fault), ``components``, ``fault``, ``verdict``; ``seconds`` where they
    are known; for a fault its ``error``; where programs were run, in what ``isolation``.

    >>> verdict_row(Score(components={"correct": 1.0}))
    {'value': 1.0, 'components': {'correct': 1.0}, 'fault': 'none', 'verdict': None}
    """
    said = score.info.get("verdict")
    row: dict[str, Any] = {
        "value": score.primary if score.valid else None,
        "components": dict(score.components),
        "fault": score.fault.value,
        "verdict": None if said is None else str(said),
    }
    if seconds is not None:
        row["seconds"] = round(seconds, 6)
    if not score.valid:
        row["error"] = f"a {score.fault.value} fault, without a word on why"
    return row | {name: str(score.info[name]) for name in ("error", "isolation") if name in score.info}


def _task(given: Any, place: str, family: TaskSource | None) -> Task:
    if isinstance(given, Mapping):
        return _whole_task(cast("Mapping[str, Any]", given), place)
    if family is None or not isinstance(given, str):
        raise DataError(f"{place}: 'task' is {given!r}; give a task as an object, or its id and --family")
    name, *where = given.rsplit("/", 4)
    if len(where) != 4 or name != family.name or not (where[1] + where[3]).isdecimal():
        raise DataError(f"{place}: 'task' {given!r} is no id of the family {family.name}: {family.name}/ARM/LEVEL/SPLIT/INDEX")
    try:
        return family.task(where[0], int(where[1]), where[2], int(where[3]))
    except (ConfigError, DataError) as error:
        raise DataError(f"{place}: 'task' {given!r}: {error}") from None


def _whole_task(table: Mapping[str, Any], place: str) -> Task:
    """A task given whole; what it does not say is filled in."""
    unknown = [name for name in table if name not in (*_FIELDS, "prompt")]
    if unknown:
        raise DataError(f"{place}: 'task': {UnknownNameError('field', unknown[0], _FIELDS)}")
    parts = {name: FrozenMap(_object(table.get(name, {}), f"{place}: 'task': {name!r}")) for name in _FIELDS[6:]}
    if not {"prompt", "messages"} & parts["public"].keys():
        parts["public"] = FrozenMap({**parts["public"], "prompt": str(table.get("prompt", ""))})
    numbers = {name: table.get(name, 0) for name in ("level", "index")}
    wrong = [name for name, value in numbers.items() if not isinstance(value, int)]
    if wrong:
        raise DataError(f"{place}: 'task': {wrong[0]!r} is {numbers[wrong[0]]!r}; give a whole number")
    words = {name: str(table.get(name, "case")) for name in ("id", "domain", "arm", "split")}
    return cast("Any", Task)(**words, **numbers, **parts)


def _object(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f'{place}: {a_kind(value)}, not an object; give an object, {{"name": value, ...}}')
    return cast("Mapping[str, Any]", value)

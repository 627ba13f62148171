"""The user's preferences as a batch: a preference is a group of judged attempts in the stream ``preference``.

So a loss on preferences does not ask where they come from: groups that the policy sampled have their verifier's rewards, a user's
pair has 1 and 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import DataError, nearest
from assay.core.rollout import Ids
from assay.core.sample import Sample, supervised
from assay.core.task import Message

__all__ = ["Preference", "preference_batch", "preference_rows"]

_PAIR, _VERDICT, _LIST = ("chosen", "rejected", "probability"), ("completion", "label"), ("answers", "rewards")
_KEPT = ("id", "curate")
"""Fields that curation gives each row."""
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Answers to a prompt, and how good each is.

    Attributes:
        messages: the conversation that is answered.
        answers: one text or more.
        rewards: one number per answer. Losses on pairs compare them, and read nothing but the order with ``label="hard"``; losses
            on single attempts take 1/2 and more for good.
        place: where it was read, for messages.
        fields: the answers' fields there.
    """

    messages: tuple[Message, ...]
    answers: tuple[str, ...]
    rewards: tuple[float, ...]
    place: str = field(default="preference", compare=False)
    fields: tuple[str, ...] = field(default=(), compare=False)

    @staticmethod
    def of(row: Mapping[str, Any], place: str = "preference") -> Preference:
        """A row in one of three forms; each has a ``prompt``, which is a text or a list of ``{"role", "content"}``.

        - a pair: ``chosen`` and ``rejected``, with rewards 1 and 0; or p and 1 - p with ``probability`` p;
        - a verdict: ``completion`` and ``label``, true or false, with reward 1 or 0;
        - a list: ``answers`` and ``rewards``; without rewards the best comes first, and they fall evenly from 1 to 0.

        Raises:
            DataError: a field is missing, unknown, or wrong; names the place, the field and a fix.

        >>> Preference.of({"prompt": "2+2=", "chosen": "4", "rejected": "5"}).rewards
        (1.0, 0.0)
        >>> Preference.of({"prompt": "2+2=", "completion": "4", "label": True}).rewards
        (1.0,)
        >>> Preference.of({"prompt": "2+2=", "answers": ["4", "5", "dog"]}).rewards
        (1.0, 0.5, 0.0)
        """
        form = next((f for f in _FORMS if any(name in row for name in f)), _PAIR)
        known = ("prompt", *form)
        for name in row:
            if name not in (*known, *_KEPT):
                close = nearest(name, known)
                hint = f"did you mean {close!r}? " if close else ""
                raise DataError(f"{place}, field {name!r}: {hint}a row has {', '.join(known)} here; leave others out")
        table, rewards = _FORMS[form](row, place)
        answers = tuple(_text(table, name, place) for name in table)
        for i, text in enumerate(answers):
            if text in answers[:i]:
                raise DataError(f"{place}: two answers are the same text, {_short(text)}; leave the row out, or one of them")
        return Preference(messages=_messages(row, place), answers=answers, rewards=rewards, place=place, fields=tuple(table))


def preference_rows(path: str | Path) -> tuple[Preference, ...]:
    """The preferences of a JSONL file, one object per line; empty lines are left out.

    Raises:
        DataError: the file cannot be read or holds no rows, or a line is no preference; names file and line (from 1), the field
            and a fix.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read preferences from {path}: {error}") from error
    rows = tuple(_lines(path, text))
    if not rows:
        raise DataError(f"{path} holds no preferences; give one JSON object per line")
    return rows


def preference_batch(
    preferences: Sequence[Preference], prompt: Callable[[Sequence[Message]], Ids], answer: Callable[[str], Ids]
) -> Batch:
    """Preferences as one optimiser batch: preference i is group i, its answers are the attempts, in their order.

    Args:
        preferences: at least one.
        prompt: a conversation to ids, as the model is to be asked.
        answer: text of an answer to ids, the end token included.

    Raises:
        DataError: no preferences, or a text without tokens; names its place.

    >>> from assay.core.rollout import ids_of
    >>> pair = Preference.of({"prompt": "2+2=", "chosen": "4", "rejected": "5"})
    >>> batch = preference_batch([pair], lambda messages: ids_of([1]), lambda text: ids_of([int(text), 2]))
    >>> batch.rollout("components/reward").tolist(), batch.rollout("group").tolist(), batch.rollout("tokens").tolist()
    ([1.0, 0.0], [0, 0], [2, 2])
    """
    rows: list[tuple[int, Sample]] = []
    for i, preference in enumerate(preferences):
        asked = prompt(preference.messages)
        for side, text in enumerate(preference.answers):
            said = answer(text)
            if not len(asked) or not len(said):
                raise DataError(f"{preference.place}: the {'answer' if len(asked) else 'prompt'} has no tokens; leave it out")
            sample = supervised(f"preference/{i}/{side}", [(asked, False), (said, True)], "preference")
            rows.append((len(rows), sample))
    table = {
        "group": np.repeat(np.arange(len(preferences)), [len(p.answers) for p in preferences]),
        "valid": np.ones(len(rows), np.bool_),
        "length": np.array([int(sample.mask.sum()) for _, sample in rows], np.int64),
        "truncated": np.zeros(len(rows), np.bool_),
        "components/reward": np.array([reward for p in preferences for reward in p.rewards], np.float64),
    }
    return pack_rows(rows, table)


# ---- inside -----------------------------------------------------------------------------------------------------------

Judged = tuple[Mapping[str, Any], tuple[float, ...]]
"""Field to answer, and the rewards in the same order."""


def _lines(path: str | Path, text: str) -> Iterator[Preference]:
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: texts may hold other line separators
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row: object = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{place}: not JSON ({error.msg}); write one object per line") from error
        if not isinstance(row, dict):
            raise DataError(f"{place}: {_short(row)} is no object; write one object per line")
        yield Preference.of(cast(dict[str, Any], row), place)


def _pair(row: Mapping[str, Any], place: str) -> Judged:
    chance = row.get("probability", 1.0)
    if not _is_number(chance) or not 0 <= chance <= 1:
        raise DataError(f"{place}, field 'probability': {_short(chance)} is none; give a number in [0, 1], or leave it out")
    return _named(row, _PAIR[:2]), (float(chance), 1 - float(chance))


def _verdict(row: Mapping[str, Any], place: str) -> Judged:
    label = row.get("label")
    if not isinstance(label, bool):
        raise DataError(f"{place}, field 'label': {_said(row, 'label')}; give true for a good answer, false for a bad one")
    return _named(row, _VERDICT[:1]), (float(label),)


def _list(row: Mapping[str, Any], place: str) -> Judged:
    texts = _listed(row.get("answers"))
    if not texts:
        raise DataError(f"{place}, field 'answers': {_said(row, 'answers')}; give a list of texts")
    found = {f"answers[{i}]": text for i, text in enumerate(texts)}
    if "rewards" not in row:
        if len(found) < 2:
            raise DataError(f"{place}, field 'rewards': missing, and one answer alone has no rank; give its reward")
        return found, tuple((len(found) - 1 - i) / (len(found) - 1) for i in range(len(found)))
    numbers = _listed(row["rewards"])
    if not numbers or not all(_is_number(x) for x in numbers):
        raise DataError(f"{place}, field 'rewards': {_short(row['rewards'])} is no list of finite numbers; give one per answer")
    if len(numbers) != len(found):
        raise DataError(f"{place}, field 'rewards': {len(numbers)} numbers for {len(found)} answers; give one number per answer")
    return found, tuple(float(x) for x in numbers)


def _named(row: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Those of the fields; None stands for one that is missing."""
    return {name: row.get(name) for name in names}


_FORMS: Mapping[tuple[str, ...], Callable[[Mapping[str, Any], str], Judged]] = {
    _PAIR: _pair, _VERDICT: _verdict, _LIST: _list
}  # fmt: skip
"""The fields of each form besides ``prompt``, and how it is read."""


def _text(row: Mapping[str, Any], name: str, place: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise DataError(f"{place}, field {name!r}: {_said(row, name)}; give a text")
    if not value:
        raise DataError(f"{place}, field {name!r}: an empty text; give an answer of at least one character, or leave the row out")
    return value


def _messages(row: Mapping[str, Any], place: str) -> tuple[Message, ...]:
    prompt = row.get("prompt")
    turns = [_turn(turn, f"{place}, field 'prompt'") for turn in _listed(prompt)]
    if turns:
        if turns[-1].role == "assistant":
            raise DataError(f"{place}, field 'prompt': the last turn is the assistant's, but answers follow; leave it out")
        return tuple(turns)
    if not isinstance(prompt, str) or not prompt:
        raise DataError(f"{place}, field 'prompt': {_said(row, 'prompt')}; give a text, or a list of turns")
    return (Message("user", prompt),)


def _turn(turn: Any, place: str) -> Message:
    shown = _short(turn)
    fields = cast("Mapping[str, Any]", turn if isinstance(turn, Mapping) else {})
    role, content = fields.get("role"), fields.get("content")
    if isinstance(role, str) and role in _ROLES and isinstance(content, str) and len(fields) == 2:
        return Message(role, content)
    raise DataError(f"{place}: {shown} is no turn; give {{'role': one of {', '.join(_ROLES)}, 'content': text}}")


def _listed(value: Any) -> Sequence[Any]:
    """The entries of a list; none of anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _said(row: Mapping[str, Any], name: str) -> str:
    return "missing" if row.get(name) is None else f"it is {_short(row[name])}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

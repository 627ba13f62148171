"""The user's preferences as a batch: a preference is a group of judged rollouts in the stream ``preference``.

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
from assay.core.sample import Sample, supervised_sample
from assay.core.task import Message
from assay.objective.preference_turns import answer_of, field_text, list_entries, prompt_of, shorten

__all__ = ["Preference", "preference_batch", "preference_rows", "shared_prompts"]

_PAIR, _VERDICT, _LIST = ("chosen", "rejected", "probability"), ("completion", "label"), ("answers", "rewards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Answers to a prompt, and how good each is.

    Attributes:
        messages: the conversation that is answered.
        answers: one text or more.
        rewards: one number per answer. Losses on pairs compare them, and read nothing but the order with ``label="hard"``; losses
            on single rollouts take 1/2 and more for good.
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
        """A row in one of three forms; each has a ``prompt``, which is a text or a list of ``{"role", "content"}``, and maybe a
        ``system`` text in front of it. An answer is a text, or such a list that ends with the assistant's turn; the turns in
        front of that are the prompt, where the row has no other.

        - a pair: ``chosen`` and ``rejected``, with rewards 1 and 0; or p and 1 - p with ``probability`` p;
        - a verdict: ``completion`` and ``label``, true or false, with reward 1 or 0;
        - a list: ``answers`` and ``rewards``; without rewards the best comes first, and they fall evenly from 1 to 0.

        Other fields are not read.

        Raises:
            DataError: a field is missing, wrong, or written almost like one that is missing; names the place, the field and a
                fix.

        >>> Preference.of({"prompt": "2+2=", "chosen": "4", "rejected": "5"}).rewards
        (1.0, 0.0)
        >>> Preference.of({"prompt": "2+2=", "completion": "4", "label": True}).rewards
        (1.0,)
        >>> Preference.of({"prompt": "2+2=", "answers": ["4", "5", "dog"]}).rewards
        (1.0, 0.5, 0.0)
        """
        form = next((f for f in _FORMS if any(name in row for name in f)), _PAIR)
        _check_names(row, form, place)
        table, rewards = _FORMS[form](row, place)
        found = {name: answer_of(table, name, place) for name in table}
        answers = tuple(text for _, text in found.values())
        for i, text in enumerate(answers):
            if text in answers[:i]:
                raise DataError(f"{place}: two answers are the same text, {shorten(text)}; leave the row out, or one of them")
        messages = prompt_of(row, found, place)
        return Preference(messages=messages, answers=answers, rewards=rewards, place=place, fields=tuple(table))


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
    """Preferences as one optimiser batch: preference i is group i, its answers are the rollouts, in their order.

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
            sample = supervised_sample(f"preference/{i}/{side}", [(asked, False), (said, True)], "preference")
            rows.append((len(rows), sample))
    table = {
        "group": np.repeat(np.arange(len(preferences)), [len(p.answers) for p in preferences]),
        "valid": np.ones(len(rows), np.bool_),
        "length": np.array([int(sample.mask.sum()) for _, sample in rows], np.int64),
        "truncated": np.zeros(len(rows), np.bool_),
        "components/reward": np.array([reward for p in preferences for reward in p.rewards], np.float64),
    }
    return pack_rows(rows, table)


def shared_prompts(preferences: Sequence[Preference]) -> int:
    """How many of the preferences have the prompt of one before them.

    >>> pairs = [{"prompt": "2+2=", "chosen": "4", "rejected": wrong} for wrong in ("5", "22")]
    >>> shared_prompts([Preference.of(row) for row in pairs])
    1
    """
    return len(preferences) - len({p.messages for p in preferences})


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
            raise DataError(f"{place}: {shorten(row)} is no object; write one object per line")
        yield Preference.of(cast(dict[str, Any], row), place)


def _check_names(row: Mapping[str, Any], form: tuple[str, ...], place: str) -> None:
    """Raises DataError for a field that is written almost like one that the row has not; other fields are not read."""
    known = ("prompt", *form)
    lacking = [name for name in known if row.get(name) is None]
    if any(list_entries(row.get(name)) for name in form if name != "answers"):
        lacking = [name for name in lacking if name != "prompt"]  # the answers' own turns may say it
    for name in row:
        close = nearest(name, lacking) if name not in known else None
        if close:
            raise DataError(f"{place}, field {name!r}: did you mean {close!r}? a row has {', '.join(known)} here")


def _pair(row: Mapping[str, Any], place: str) -> Judged:
    chance = row.get("probability", 1.0)
    if not _is_number(chance) or not 0 <= chance <= 1:
        raise DataError(f"{place}, field 'probability': {shorten(chance)} is none; give a number in [0, 1], or leave it out")
    return _select_fields(row, _PAIR[:2]), (float(chance), 1 - float(chance))


def _verdict(row: Mapping[str, Any], place: str) -> Judged:
    label = row.get("label")
    if not isinstance(label, bool):
        raise DataError(f"{place}, field 'label': {field_text(row, 'label')}; give true for a good answer, false for a bad one")
    return _select_fields(row, _VERDICT[:1]), (float(label),)


def _list(row: Mapping[str, Any], place: str) -> Judged:
    texts = list_entries(row.get("answers"))
    if not texts:
        raise DataError(f"{place}, field 'answers': {field_text(row, 'answers')}; give a list of texts")
    found = {f"answers[{i}]": text for i, text in enumerate(texts)}
    if "rewards" not in row:
        if len(found) < 2:
            raise DataError(f"{place}, field 'rewards': missing, and one answer alone has no rank; give its reward")
        return found, tuple((len(found) - 1 - i) / (len(found) - 1) for i in range(len(found)))
    numbers = list_entries(row["rewards"])
    if not numbers or not all(_is_number(x) for x in numbers):
        raise DataError(f"{place}, field 'rewards': {shorten(row['rewards'])} is no list of finite numbers; give one per answer")
    if len(numbers) != len(found):
        raise DataError(f"{place}, field 'rewards': {len(numbers)} numbers for {len(found)} answers; give one number per answer")
    return found, tuple(float(x) for x in numbers)


def _select_fields(row: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Those of the fields; None stands for one that is missing."""
    return {name: row.get(name) for name in names}


_FORMS: Mapping[tuple[str, ...], Callable[[Mapping[str, Any], str], Judged]] = {_PAIR: _pair, _VERDICT: _verdict, _LIST: _list}
"""The fields of each form besides ``prompt``, and how it is read."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

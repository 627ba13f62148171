"""The user's preferences as a batch: a pair is a group of two attempts in the stream ``preference``, with rewards 1 and 0.

So a loss on pairs does not ask where they come from: groups that the policy sampled have their verifier's rewards, a user's pair
has these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.errors import DataError, nearest
from assay.core.rollout import Ids
from assay.core.sample import Sample, supervised

__all__ = ["Preference", "preference_batch", "preference_rows"]

_TEXTS = ("prompt", "chosen", "rejected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """Two answers to a prompt, of which one is preferred.

    Attributes:
        prompt, chosen, rejected: texts.
        probability: that ``chosen`` is the better one; the rewards of the two are this and 1 minus this. Losses with
            ``label="hard"`` only read which is greater, and drop the pair at 1/2.
    """

    prompt: str
    chosen: str
    rejected: str
    probability: float = 1.0

    @staticmethod
    def of(row: Mapping[str, Any], place: str = "row") -> Preference:
        """A row ``{"prompt", "chosen", "rejected"}``, maybe with ``probability``.

        Raises:
            DataError: a field is missing, unknown, or wrong; names the place.

        >>> Preference.of({"prompt": "2+2=", "chosen": "4", "rejected": "5"}).probability
        1.0
        """
        known = (*_TEXTS, "probability")
        for name in row:
            if name not in known:
                close = nearest(name, known)
                hint = f"did you mean {close!r}? " if close else ""
                raise DataError(f"{place}: unknown field {name!r}; {hint}a preference has {', '.join(known)}")
        for name in _TEXTS:
            if not isinstance(row.get(name), str):
                raise DataError(f"{place}: {name!r} is {row.get(name)!r}; give a text")
        if row["chosen"] == row["rejected"]:
            raise DataError(f"{place}: chosen and rejected are the same text; leave the row out")
        chance = row.get("probability", 1.0)
        if isinstance(chance, bool) or not isinstance(chance, int | float) or not 0 <= chance <= 1:
            raise DataError(f"{place}: 'probability' is {chance!r}; give a number in [0, 1]")
        return Preference(prompt=row["prompt"], chosen=row["chosen"], rejected=row["rejected"], probability=float(chance))


def preference_rows(path: str | Path) -> tuple[Preference, ...]:
    """The preferences of a JSONL file, one object per line; empty lines are left out.

    Raises:
        DataError: no rows, or a line that is no preference; names file and line (from 1).
    """
    rows = tuple(_lines(Path(path)))
    if not rows:
        raise DataError(f"{path} holds no preferences; give one JSON object per line")
    return rows


def _lines(path: Path) -> Iterator[Preference]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            row: object = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{place}: not JSON ({error.msg})") from error
        if not isinstance(row, dict):
            raise DataError(f"{place}: {row!r} is no object")
        yield Preference.of(cast(dict[str, Any], row), place)


def preference_batch(pairs: Sequence[Preference], prompt: Callable[[str], Ids], answer: Callable[[str], Ids]) -> Batch:
    """Preferences as one optimiser batch: pair i is group i, its attempts are 2 i (chosen) and 2 i + 1 (rejected).

    Args:
        pairs: the preferences.
        prompt: text of a prompt to ids, as the model is to be asked.
        answer: text of an answer to ids, the end token included.

    Raises:
        DataError: no pairs, or a text without tokens.

    >>> from assay.core.rollout import ids_of
    >>> pair = Preference(prompt="2+2=", chosen="4", rejected="5")
    >>> batch = preference_batch([pair], lambda t: ids_of([1]), lambda t: ids_of([int(t), 2]))
    >>> batch.rollout("components/reward").tolist(), batch.rollout("group").tolist(), batch.rollout("tokens").tolist()
    ([1.0, 0.0], [0, 0], [2, 2])
    """
    rows: list[tuple[int, Sample]] = []
    for i, pair in enumerate(pairs):
        asked = prompt(pair.prompt)
        for side, text in enumerate((pair.chosen, pair.rejected)):
            said = answer(text)
            if not len(asked) or not len(said):
                raise DataError(f"preference {i}: the {'prompt' if not len(asked) else 'answer'} has no tokens; leave it out")
            sample = supervised(f"preference/{i}/{side}", [(asked, False), (said, True)], "preference")
            rows.append((2 * i + side, sample))
    chance = np.array([p.probability for p in pairs])
    table = {
        "group": np.repeat(np.arange(len(pairs)), 2),
        "valid": np.ones(len(rows), np.bool_),
        "length": np.array([int(sample.mask.sum()) for _, sample in rows], np.int64),
        "truncated": np.zeros(len(rows), np.bool_),
        "components/reward": np.stack([chance, 1 - chance], 1).reshape(-1),
    }
    return pack_rows(rows, table)

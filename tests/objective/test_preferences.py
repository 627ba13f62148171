"""A user's preferences as rows and as a batch."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from objective_batches import run

from assay.core.columns import TokenColumn
from assay.core.errors import DataError
from assay.core.rollout import Ids, ids_of
from assay.core.sample import STREAMS
from assay.objective import Objective, ScoreLoss
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.methods.preference import dpo
from assay.objective.preferences import Preference, preference_batch, preference_rows

ROWS = [
    {"prompt": "2+2=", "chosen": "4", "rejected": "22"},
    {"prompt": "3+3=", "chosen": "6", "rejected": "5", "probability": 0.75},
]


def ids(text: str) -> Ids:
    return ids_of([ord(c) for c in text])


def written(folder: Path, *lines: str) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_rows_become_groups_of_two(tmp_path: Path) -> None:
    pairs = preference_rows(written(tmp_path, json.dumps(ROWS[0]), "", json.dumps(ROWS[1])))
    assert [p.probability for p in pairs] == [1.0, 0.75]
    batch = preference_batch(pairs, ids, lambda text: ids(text + "."))
    assert batch.rollout("group").tolist() == [0, 0, 1, 1]
    assert batch.rollout("components/reward").tolist() == [1.0, 0.0, 0.75, 0.25]
    assert batch.rollout("tokens").tolist() == batch.rollout("length").tolist() == [2, 3, 2, 2]
    assert set(batch.rows["stream"]) == {STREAMS.index("preference")}
    assert batch.counts.prompts == 2
    first = batch.token("ids")[: batch.offsets[1]]
    assert bytes(first.tolist()).decode() == "2+2=4."
    assert batch.token("mask")[: batch.offsets[1]].tolist() == [False] * 4 + [True] * 2


def test_the_batch_is_what_dpo_learns_from() -> None:
    batch = preference_batch([Preference.of(row) for row in ROWS], ids, ids)
    batch = batch.with_tokens(TokenColumn("logp_ref", np.full(int(batch.offsets[-1]), -1.0)))
    logp = [-0.5, -1.0, -1.5, -0.9, -1.1]
    hard = [math.log1p(math.exp(-0.1 * gap)) for gap in (0.5 + 0.5, 0.2)]
    assert run(dpo(), batch, logp).loss == pytest.approx(sum(hard) / 2)
    soft = Objective(policy=ScoreLoss(phi=Pairwise(label="probability"), anchor="ref", streams=("preference",)))
    second = 0.75 * hard[1] + 0.25 * math.log1p(math.exp(0.02))
    assert run(soft, batch, logp).loss == pytest.approx((hard[0] + second) / 2)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "a", "chosen": "b"}, "'rejected' is None"),
        ({"prompt": "a", "chosen": "b", "rejected": 3}, "'rejected' is 3; give a text"),
        ({"prompt": "a", "chosen": "b", "rejected": "b"}, "the same text"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "propability": 1}, "did you mean 'probability'"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "zzz": 1}, "unknown field 'zzz'; a preference has"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "probability": 1.5}, r"'probability' is 1.5"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "probability": True}, r"'probability' is True"),
        ({"prompt": "a", "chosen": "b", "rejected": "c", "probability": "1"}, r"'probability' is '1'"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=rf"pairs.jsonl, line 2: .*{says}"):
        preference_rows(written(tmp_path, json.dumps(ROWS[0]), json.dumps(row)))


def test_wrong_files_are_named(tmp_path: Path) -> None:
    for lines, says in (((), "holds no preferences"), (("{",), "line 1: not JSON"), (("[1]",), r"line 1: \[1\] is no object")):
        with pytest.raises(DataError, match=says):
            preference_rows(written(tmp_path, *lines))


def test_texts_without_tokens_are_refused() -> None:
    pair = Preference(prompt="a", chosen="b", rejected="")
    with pytest.raises(DataError, match="preference 0: the answer has no tokens"):
        preference_batch([pair], ids, ids)
    with pytest.raises(DataError, match="preference 0: the prompt has no tokens"):
        preference_batch([pair], lambda _: ids_of([]), ids)
    with pytest.raises(DataError, match="at least one row"):
        preference_batch([], ids, ids)

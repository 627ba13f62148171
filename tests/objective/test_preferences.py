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
from assay.core.task import Message
from assay.objective import Objective, ScoreLoss
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.methods.preference import dpo
from assay.objective.preferences import Preference, preference_batch, preference_rows, shared_prompts

ROWS: list[dict[str, Any]] = [
    {"prompt": "2+2=", "chosen": "4", "rejected": "22"},
    {"prompt": "3+3=", "chosen": "6", "rejected": "5", "probability": 0.75},
]


def ids(text: str) -> Ids:
    return ids_of([ord(c) for c in text])


def asked(messages: Any) -> Ids:
    return ids("".join(m.content for m in messages))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_rows_become_groups_of_two(tmp_path: Path) -> None:
    pairs = preference_rows(written(tmp_path, json.dumps(ROWS[0]), "", json.dumps(ROWS[1])))
    assert [p.rewards for p in pairs] == [(1.0, 0.0), (0.75, 0.25)]
    assert pairs[1].place == f"{tmp_path}/pairs.jsonl, line 3"
    batch = preference_batch(pairs, asked, lambda text: ids(text + "."))
    assert batch.rollout("group").tolist() == [0, 0, 1, 1]
    assert batch.rollout("components/reward").tolist() == [1.0, 0.0, 0.75, 0.25]
    assert batch.rollout("tokens").tolist() == batch.rollout("length").tolist() == [2, 3, 2, 2]
    assert set(batch.rows["stream"]) == {STREAMS.index("preference")}
    assert batch.counts.prompts == 2
    first = batch.token("ids")[: batch.offsets[1]]
    assert bytes(first.tolist()).decode() == "2+2=4."
    assert batch.token("mask")[: batch.offsets[1]].tolist() == [False] * 4 + [True] * 2


def test_verdicts_and_lists_are_groups_of_other_sizes() -> None:
    rows = [
        {"prompt": "a", "completion": "b", "label": False},
        {"prompt": "a", "answers": ["best", "good", "bad"]},
        {"prompt": "a", "answers": ["bad", "good"], "rewards": [-1, 2.5]},
    ]
    made = [Preference.of(row) for row in rows]
    assert [p.rewards for p in made] == [(0.0,), (1.0, 0.5, 0.0), (-1.0, 2.5)]
    batch = preference_batch(made, asked, ids)
    assert batch.rollout("group").tolist() == [0, 1, 1, 1, 2, 2]
    assert batch.rollout("components/reward").tolist() == [0.0, 1.0, 0.5, 0.0, -1.0, 2.5]


def test_a_prompt_may_be_a_conversation() -> None:
    turns = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "2+2="}]
    found = Preference.of({"prompt": turns, "chosen": "4", "rejected": "5"})
    assert found.messages == (Message("system", "be brief"), Message("user", "2+2="))
    assert Preference.of(ROWS[0]).messages == (Message("user", "2+2="),)


def test_the_batch_is_what_dpo_learns_from() -> None:
    batch = preference_batch([Preference.of(row) for row in ROWS], asked, ids)
    batch = batch.with_tokens(TokenColumn("logp_ref", np.full(int(batch.offsets[-1]), -1.0)))
    logp = [-0.5, -1.0, -1.5, -0.9, -1.1]
    hard = [math.log1p(math.exp(-0.1 * gap)) for gap in (0.5 + 0.5, 0.2)]
    assert run(dpo(), batch, logp).loss == pytest.approx(sum(hard) / 2)
    soft = Objective(policy=ScoreLoss(phi=Pairwise(label="probability"), anchor="ref", streams=("preference",)))
    second = 0.75 * hard[1] + 0.25 * math.log1p(math.exp(0.02))
    assert run(soft, batch, logp).loss == pytest.approx((hard[0] + second) / 2)


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


USER = {"role": "user", "content": "a"}
PAIR = {"prompt": "a", "chosen": "b", "rejected": "c"}
TEXT = "give a text, or a list of turns"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "a", "chosen": "b"}, "field 'rejected': missing; give a text"),
        ({"prompt": "a"}, "field 'chosen': missing; give a text"),
        (PAIR | {"rejected": 3}, "field 'rejected': it is 3; give a text"),
        (PAIR | {"rejected": ""}, "field 'rejected': an empty text"),
        (PAIR | {"rejected": "b"}, "two answers are the same text, 'b'"),
        (PAIR | {"propability": 1}, "field 'propability': did you mean 'probability'"),
        ({"prompt": "a", "chosen": "b", "rejcted": "c"}, "field 'rejcted': did you mean 'rejected'. a row has prompt, chosen"),
        ({"prompts": "a", "chosen": "b", "rejected": "c"}, "field 'prompts': did you mean 'prompt'"),
        (PAIR | {"tools": [{"name": "f"}]}, "field 'tools': it would not be learned from"),
        (PAIR | {"probability": 1.5}, "field 'probability': 1.5"),
        (PAIR | {"probability": True}, "field 'probability': True"),
        (PAIR | {"probability": "1"}, "field 'probability': '1'"),
        ({"chosen": "b", "rejected": "c"}, f"field 'prompt': missing; {TEXT}"),
        (PAIR | {"prompt": ""}, f"field 'prompt': it is ''; {TEXT}"),
        (PAIR | {"prompt": []}, f"field 'prompt': it is .*; {TEXT}"),
        (PAIR | {"prompt": ["a"]}, "field 'prompt': 'a' is no turn; give"),
        (PAIR | {"prompt": [{"role": "robot", "content": "a"}]}, "field 'prompt': .* is no turn"),
        (PAIR | {"prompt": [{"role": "user", "content": 1}]}, "field 'prompt': .* is no turn"),
        (
            PAIR | {"prompt": [{"role": "user", "content": "a", "tool_calls": [1]}]},
            "field 'prompt': 'tool_calls' of a turn would",
        ),
        (PAIR | {"prompt": [{"role": "assistant", "content": "a"}]}, "field 'prompt': the last turn is the assistant's"),
        ({"prompt": "a", "completion": "b"}, "field 'label': missing; give true"),
        ({"prompt": "a", "completion": "b", "label": 1}, "field 'label': it is 1; give true"),
        ({"prompt": "a", "label": True}, "field 'completion': missing"),
        ({"prompt": "a", "answers": "abc"}, "field 'answers': it is 'abc'; give a list of texts"),
        ({"prompt": "a", "answers": []}, "field 'answers': it is"),
        ({"prompt": "a", "answers": ["b", 2]}, r"field 'answers\[1\]': it is 2; give a text"),
        ({"prompt": "a", "answers": ["b", "b"]}, "two answers are the same text"),
        ({"prompt": "a", "answers": ["b"]}, "field 'rewards': missing, and one answer alone has no rank"),
        ({"prompt": "a", "answers": ["b"], "rewards": 1}, "field 'rewards': 1 is no list"),
        ({"prompt": "a", "answers": ["b"], "rewards": [math.inf]}, "field 'rewards': .*finite"),
        ({"prompt": "a", "answers": ["b" * 99, "b" * 98], "rewards": [1]}, "field 'rewards': 1 numbers for 2 answers"),
        (PAIR | {"rejected": ["b" * 99]}, r"field 'rejected': 'b{56}\.\.\. is no turn; give"),
        (PAIR | {"rejected": []}, "field 'rejected': it is ..; give a text"),
        (PAIR | {"chosen": [USER]}, "field 'chosen': the last turn is of role 'user'; an answer ends with the assistant's"),
        (PAIR | {"chosen": [USER, said("")]}, "field 'chosen': an empty text"),
        (
            {"chosen": [USER, said("b")], "rejected": [said("x"), said("c")]},
            "field 'rejected': its conversation is not .* turn 1",
        ),
        (
            {"chosen": [USER, said("b")], "rejected": [USER, USER, said("c")]},
            "field 'rejected': .* of 'chosen' at turn 2, before",
        ),
        ({"chosen": [said("b")], "rejected": [said("c")]}, "field 'prompt': missing"),
        (
            PAIR | {"prompt": "z", "chosen": [USER, said("b")]},
            "field 'prompt': it is 'z', but the turns in front .* otherwise: 'a'",
        ),
        (
            {"chosen": [said("a"), said("b")], "rejected": [said("a"), said("c")]},
            "field 'prompt': the last turn is the assistant's",
        ),
        (
            PAIR | {"system": "s", "prompt": [{"role": "system", "content": "t"}, USER]},
            "field 'system': the conversation has another",
        ),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=rf"pairs.jsonl, line 2(, |: ){says}"):
        preference_rows(written(tmp_path, json.dumps(ROWS[0]), json.dumps(row)))


FEEDBACK = {
    "prompt": "a",
    "prompt_id": "9f",
    "chosen": [USER, said("b")],
    "rejected": [USER, said("c")],
    "messages": [USER, said("b")],
    "score_chosen": 8.5,
    "score_rejected": 6.0,
    "source": "x",
    "chosen-rating": 5,
    "model": None,
}
SYSTEM = {"role": "system", "content": "s"}
EARLIER = [USER, said("x"), USER]
TALKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "of UltraFeedback": (FEEDBACK, ("a",)),
    "without a prompt": ({k: v for k, v in FEEDBACK.items() if k != "prompt"}, ("a",)),
    "answers alone": ({"prompt": [USER], "chosen": [said("b")], "rejected": [said("c")]}, ("a",)),
    "one of them a text": ({"prompt": "a", "chosen": [USER, said("b")], "rejected": "c"}, ("a",)),
    "other words for roles": (
        {"chosen": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], "rejected": [USER, said("c")]},
        ("a",),
    ),
    "prompt begins it": (FEEDBACK | {"chosen": [*EARLIER, said("b")], "rejected": [*EARLIER, said("c")]}, ("a", "x", "a")),
    "prompt ends it": (
        FEEDBACK | {"prompt": " a\n", "chosen": [SYSTEM, USER, said("b")], "rejected": [SYSTEM, USER, said("c")]},
        ("s", "a"),
    ),
    "prompt holds more": (FEEDBACK | {"prompt": [SYSTEM, USER]}, ("s", "a")),
    "a system text": (FEEDBACK | {"system": "s"}, ("s", "a")),
    "a system text twice": (FEEDBACK | {"system": "s ", "prompt": [SYSTEM, USER]}, ("s", "a")),
    "no system": (FEEDBACK | {"system": ""}, ("a",)),
    "further fields": (PAIR | {"zzz": 1, "label": True, "score": 3}, ("a",)),
}


@pytest.mark.parametrize("name", TALKS)
def test_answers_may_be_turns_beside_further_fields(name: str) -> None:
    row, prompt = TALKS[name]
    found = Preference.of(row)
    assert found.answers == ("b", "c") and found.rewards == (1.0, 0.0)
    assert tuple(m.content for m in found.messages) == prompt
    assert found.messages[-1].role == "user" and (found.messages[0].role == "system") == (prompt[0] == "s")


def test_verdicts_and_lists_may_be_turns() -> None:
    found = Preference.of({"prompt": [USER], "completion": [said("b")], "label": True, "id": 3})
    assert (found.messages, found.answers, found.rewards) == ((Message("user", "a"),), ("b",), (1.0,))
    listed = Preference.of({"answers": [[USER, said("b")], [USER, said("c")]]})
    assert (listed.messages, listed.answers) == ((Message("user", "a"),), ("b", "c"))


def test_prompts_that_several_rows_share_are_counted() -> None:
    rows = [PAIR, PAIR | {"rejected": "d"}, FEEDBACK, PAIR | {"prompt": "z"}]
    assert shared_prompts([Preference.of(row) for row in rows]) == 2
    assert shared_prompts([]) == 0


def test_wrong_files_are_named(tmp_path: Path) -> None:
    for lines, says in (((), "holds no preferences"), (("{",), "line 1: not JSON"), (("[1]",), r"line 1: \[1\] is no object")):
        with pytest.raises(DataError, match=says):
            preference_rows(written(tmp_path, *lines))
    with pytest.raises(DataError, match=r"cannot read preferences from .*nothing.jsonl"):
        preference_rows(tmp_path / "nothing.jsonl")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot read preferences"):
        preference_rows(tmp_path / "bytes")


def test_line_separators_inside_a_text_end_no_line(tmp_path: Path) -> None:
    odd = json.dumps(ROWS[0] | {"chosen": "a\u2028b"}, ensure_ascii=False)
    assert preference_rows(written(tmp_path, odd, "", json.dumps(ROWS[1])))[0].answers[0] == "a\u2028b"


def test_texts_without_tokens_are_refused() -> None:
    pair = Preference.of(PAIR, "here")
    with pytest.raises(DataError, match="here: the answer has no tokens"):
        preference_batch([pair], asked, lambda _: ids_of([]))
    with pytest.raises(DataError, match="here: the prompt has no tokens"):
        preference_batch([pair], lambda _: ids_of([]), ids)
    with pytest.raises(DataError, match="at least one row"):
        preference_batch([], asked, ids)

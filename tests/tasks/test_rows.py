"""Users' own rows: splits, epochs, and an error for everything that is wrong with a row."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.seeds import content_split
from assay.core.task import Message, Task
from assay.tasks import Rows, load_jsonl
from assay.testing import check_task_source, rollout_of
from assay.verify import ExactMatch, RewardFunction

SUMS = [{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a in range(8) for b in range(8)]


def one(prompt: str, completion: str, row: dict[str, object]) -> float:
    return float(completion == row["answer"])


@pytest.mark.slow
def test_rows_keep_the_contract() -> None:
    assert check_task_source(Rows(SUMS, reward=one), n=8).skipped == ()


def test_rows_of_a_lambda_are_checked_but_for_the_other_interpreter() -> None:
    report = check_task_source(Rows(SUMS, reward=lambda p, c, r: float(c == r["answer"])), n=4)
    assert [s.split(":")[0] for s in report.skipped] == ["same tasks under another PYTHONHASHSEED"]


def test_every_row_is_met_once_an_epoch_in_its_own_split() -> None:
    source = Rows(SUMS)
    for split in ("train", "test"):
        n = source.size("rows", 1, split)
        wanted = sorted(r["prompt"] for r in SUMS if content_split({"prompt": r["prompt"]}) == split)
        epochs = [[source.task("rows", 1, split, e * n + i).public["prompt"] for i in range(n)] for e in range(3)]
        assert [sorted(e) for e in epochs] == [wanted] * 3
    train = source.size("rows", 1, "train")
    orders = [[source.task("rows", 1, "train", e * train + i).id for i in range(train)] for e in range(2)]
    assert orders[0] != orders[1]
    assert [Rows(SUMS, seed=1).task("rows", 1, "train", i).id for i in range(train)] != orders[0]


def test_the_split_is_decided_by_the_prompt_alone() -> None:
    """Other answers, other order, more rows: no prompt changes sides."""
    first = {r["prompt"] for r in SUMS if content_split({"prompt": r["prompt"]}) == "test"}
    other = Rows([{"prompt": "new"}, *({**r, "answer": "?", "level": 2} for r in reversed(SUMS))], reward=one)
    n = other.size("rows", 2, "test")
    assert {other.task("rows", 2, "test", i).public["prompt"] for i in range(n)} == first


def test_a_task_shows_the_prompt_and_hides_the_rest() -> None:
    task = Rows([{"prompt": "p", "answer": 4, "hint": "h", "level": 3, "arm": "x"}] * 2, test_share=0.0).task("x", 3, "train", 0)
    assert dict(task.public) == {"prompt": "p"}
    assert dict(task.world) == {}
    assert task.private["answer"] == 4
    assert task.private["row"]["hint"] == "h"


def test_conversations() -> None:
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    source = Rows([{"messages": turns, "answer": "ab", "solution": "because ab"}], test_share=0.0)
    task = source.task("rows", 1, "train", 0)
    assert task.public_view().messages == (Message("system", "s"), Message("user", "u"))
    assert task.private["solution"] == "because ab"
    assert source.alphabet == "absu"


def test_the_reward_is_used() -> None:
    task = Rows(SUMS).task("rows", 1, "train", 0)
    answer = task.private["answer"]
    assert Rows(SUMS).verifier()(task, rollout_of(task, f" {answer}\n")).primary == 1.0
    assert Rows(SUMS, scorer=ExactMatch()).verifier()(task, rollout_of(task, f" {answer}")).primary == 0.0
    assert Rows(SUMS, reward=one).verifier()(task, rollout_of(task, answer)).primary == 1.0
    batched = RewardFunction(lambda p, c, r: [0.5] * len(c), batched=True)
    assert Rows(SUMS, reward=batched).verifier() is batched
    assert Rows(SUMS).environment(task.public_view()) is None


def test_traces_are_the_answers() -> None:
    source, rng = Rows([{"prompt": "p", "answer": 42}], test_share=0.0), np.random.default_rng(0)
    task = source.task("rows", 1, "train", 0)
    assert source.trace(task, 0.0, rng) == (Message("assistant", "42"),)
    assert set(source.trace(task, 1.0, rng)[0].content) <= {"4", "2"}
    bare = Rows([{"prompt": "p"}], reward=one, test_share=0.0)
    assert bare.trace(bare.task("rows", 1, "train", 0), 0.0, rng) is None


def whole(source: Rows) -> list[Task]:
    return [source.task("rows", 1, split, i) for split in ("train", "test") for i in range(source.size("rows", 1, split))]


def test_repeated_rows_are_counted_and_dropped() -> None:
    source = Rows([*SUMS, *SUMS[:5]])
    assert (source.repeated, source.differing, len(whole(source))) == (5, 0, 64)


def test_rows_that_differ_at_one_prompt_are_tasks_of_their_own() -> None:
    other = {"prompt": "0+0=", "answer": "1"}
    more = [other, other, SUMS[0], {"prompt": "0+0=", "answer": "0", "source": "x"}]
    source = Rows([*SUMS, *more])
    assert (source.repeated, source.differing) == (2, 2)
    same = [t for t in whole(source) if t.public["prompt"] == "0+0="]
    assert sorted(t.private["answer"] for t in same) == ["0", "0", "1"]
    assert len({t.id for t in whole(source)}) == 66 and len({t.split for t in same}) == 1
    plain = {t.private["answer"]: t for t in whole(Rows(SUMS))}
    assert next(t.id for t in same if "source" not in t.private["row"] and t.private["answer"] == "0") in {
        t.id for t in plain.values()
    } | {t.id for t in whole(Rows(SUMS))}


def test_files_hold_no_numbers_that_json_lacks(tmp_path: Path) -> None:
    for text, says in (("NaN", "NaN is not JSON"), ("-1e999", "the number -1e999 is"), ("1e400", "the number 1e400 is beyond")):
        wrong = f'{{"prompt": "c", "answer": "d", "x": [{text}]}}'
        (tmp_path / "rows.jsonl").write_text(f'{{"prompt": "a", "answer": "b"}}\n{wrong}\n')
        with pytest.raises(DataError, match=rf"rows\.jsonl, line 2: {says}"):
            load_jsonl(tmp_path / "rows.jsonl")
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a", "answer": 1e308, "x": -1.5e-400}\n')
    assert load_jsonl(tmp_path / "rows.jsonl") == [{"prompt": "a", "answer": 1e308, "x": 0.0}]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("text", "row 2 is a str; make it a dict"),
        ({"prrompt": "x"}, "row 2 has no 'prompt' and no 'messages'; rename 'prrompt'"),
        ({"answer": "x"}, "row 2 has no 'prompt' and no 'messages'; add one"),
        ({"prompt": "x", "messages": []}, "row 2 has both"),
        ({"prompt": ""}, "row 2, field 'prompt': '' is not text"),
        ({"prompt": 3}, "row 2, field 'prompt': 3 is not text"),
        ({"messages": "x"}, "row 2, field 'messages': 'x' is not a list"),
        ({"messages": []}, "field 'messages'"),
        ({"messages": ["x"]}, "field 'messages': 'x' is not"),
        ({"messages": [{"role": "boss", "content": "x"}]}, "field 'messages'.*one of"),
        ({"messages": [{"role": "user", "content": 1}]}, "field 'messages'"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "the last turn is the assistant's"),
        ({"prompt": "x", "answer": "y", "level": "2"}, "field 'level': '2' is not a whole number"),
        ({"prompt": "x", "answer": "y", "level": True}, "field 'level'"),
        ({"prompt": "x", "answer": "y", "arm": 2}, "field 'arm': 2 is not a name"),
        ({"prompt": "x"}, "row 2, field 'answer': None cannot be matched; give text, or pass a reward"),
        ({"prompt": "x", "answer": b"y"}, "row 2, field 'answer': cannot write a bytes"),
        ({"prompt": "x", "answer": "y", "level": 10**30}, "row 2, field 'level': 10{30} is beyond 1,000,000,000"),
        ({"prompt": "x", "answer": "y", "level": -(10**30)}, "row 2, field 'level': -10{30} is beyond"),
        ({"prompt": "x\ud83d", "answer": "y"}, r"row 2, field 'prompt': character 2, '.ud83d', is half of a surrogate pair"),
        ({"prompt": "x", "answer": "\udc00"}, r"row 2, field 'answer': character 1, '.udc00', is half"),
        ({"prompt": "x", "answer": "y", "z": {"a": ["b", "\ud83d"]}}, r"row 2, field 'z'\['a'\]\[1\]: character 1"),
        ({"prompt": "x", "answer": "y", "\ud83d": 1}, "row 2, the name of a field: character 1"),
    ],
)
def test_wrong_rows_name_row_field_and_fix(row: object, told: str) -> None:
    with pytest.raises(DataError, match=told):
        Rows([SUMS[0], row])  # pyright: ignore


def test_wrong_settings() -> None:
    with pytest.raises(DataError, match="at least one row"):
        Rows([])
    with pytest.raises(ConfigError, match="both a reward and a scorer"):
        Rows(SUMS, reward=one, scorer=ExactMatch())
    with pytest.raises(ConfigError, match="test_share"):
        Rows(SUMS, test_share=1.0)
    with pytest.raises(UnknownNameError, match="did you mean 'rows'"):
        Rows(SUMS).task("row", 1, "train", 0)
    with pytest.raises(DataError, match=r"none of the 2 rows of level 1 falls in the test split; .*test_share \(0.01\)"):
        Rows(SUMS[:2], test_share=0.01).task("rows", 1, "test", 0)
    with pytest.raises(DataError, match=r"no row falls in the test split, .* test_share is 0; give a share, such as 0.1"):
        Rows(SUMS, test_share=0.0).task("rows", 1, "test", 0)


def test_rows_print_short_and_compare_by_content() -> None:
    assert len(repr(Rows(SUMS))) < 120
    assert Rows(SUMS) == Rows([dict(r) for r in SUMS])
    assert Rows(SUMS) != Rows(SUMS[:5])
    assert hash(Rows(SUMS)) == hash(Rows(SUMS))


@given(st.integers(0, 10**6))
def test_index_to_row_is_pure(index: int) -> None:
    assert Rows(SUMS[:20]).task("rows", 1, "train", index) == Rows(SUMS[:20]).task("rows", 1, "train", index)


def test_load_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps(SUMS[0]), "", '{"prompt": "ü\u2028"}']), encoding="utf-8")
    assert load_jsonl(path) == [SUMS[0], {"prompt": "ü\u2028"}]
    for text, told in {
        "{": "line 1: not JSON",
        "\n[1]": "line 2: a list, not an object",
        '{"a": 1, "a": 1}': "line 1: the key 'a' stands twice",
    }.items():
        path.write_text(text)
        with pytest.raises(DataError, match=told):
            load_jsonl(path)
    with pytest.raises(DataError, match="cannot read rows"):
        load_jsonl(tmp_path / "absent.jsonl")


def test_a_column_that_a_reward_reads_must_be_in_every_row() -> None:
    """Of TRL's signature too, which once got another column's gold, or None."""

    def trl(prompts: list[str], completions: list[str], answer: list[str], **columns: Any) -> list[float]:
        return [float(c == a) for c, a in zip(completions, answer, strict=True)]

    def own(completion: str, answer: str, hint: str = "") -> float:
        return float(completion == answer)

    def other(completions: list[str], solution: list[str], **columns: Any) -> list[float]:
        return [1.0 for _ in completions]

    rows = [{"prompt": "1+1=", "answer": "2"}, {"prompt": "2+2="}]
    for reward in (trl, own, {"right": trl, "form": lambda completion: 1.0}):
        with pytest.raises(DataError, match=r"row 2 has no 'answer', which the reward .*test_rows.py:\d+\) takes; add it"):
            Rows(rows, reward=reward)
        assert Rows([rows[0], {**rows[1], "answer": None}], reward=reward, test_share=0).size("rows", 1, "train") == 2
    with pytest.raises(DataError, match=r"takes the column 'solution', and the rows have .*rename the parameter to 'answer'"):
        Rows(rows[:1], reward=other)

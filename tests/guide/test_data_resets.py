"""DR-PO's resets: the law of the cut, and which answers are reset to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from assay.core import FrozenMap, Task
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Moment
from assay.guide import DataReset, Plain
from assay.testing import check_guidance, graded_group

TASK = Task(id="t", domain="d", arm="x", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))


def written(folder: Path, *rows: object) -> str:
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(folder / "pairs.jsonl")


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    return written(
        tmp_path, {"prompt": "1+1=", "chosen": "abcdefghij", "rejected": "zzz"}, {"prompt": "1+1=", "answer": "klmnopqrst"}
    )


def test_it_keeps_the_laws_of_guidance(pairs: str) -> None:
    check_guidance(DataReset(data=pairs), TASK)


def test_cuts_are_even_on_all_tokens_but_the_last_and_each_preferred_answer_as_likely(pairs: str) -> None:
    guidance = DataReset(data=pairs)
    begun = [guidance.next(TASK, [], Moment(key=f"k{i}"))[0].context.prefill for i in range(4000)]
    assert all(p is not None and 0.0 <= p.share < 1.0 for p in begun)
    lengths = Counter(int(p.share * 10) for p in begun if p)  # the sampler rounds down: 0 to 9 of ten tokens
    assert set(lengths) == set(range(10)) and all(abs(n / 4000 - 0.1) < 0.02 for n in lengths.values())
    texts = Counter(p.text for p in begun if p)
    assert set(texts) == {"abcdefghij", "klmnopqrst"} and abs(texts["abcdefghij"] / 4000 - 0.5) < 0.03


def test_probability_0_and_prompts_that_the_data_lack_are_plain(pairs: str) -> None:
    for key in ("a", "b", "c"):
        plain = Plain().next(TASK, [], Moment(key=key))
        assert list(DataReset(data=pairs, probability=0.0).next(TASK, [], Moment(key=key))) == list(plain)
    other = Task(id="u", domain="d", arm="x", level=1, split="train", index=1, public=FrozenMap({"prompt": "2+2="}))
    assert DataReset(data=pairs).next(other, [], Moment(key="k"))[0].context.prefill is None
    share = sum(
        DataReset(data=pairs, probability=0.25).next(TASK, [], Moment(key=f"k{i}"))[0].context.prefill is not None
        for i in range(2000)
    )
    assert abs(share / 2000 - 0.25) < 0.03
    assert DataReset(data=pairs).next(TASK, [graded_group(TASK, [0.0])], Moment(key="k")) == ()


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for row in ({"prompt": "1+1="}, {"prompt": 3, "chosen": "4"}, ["a"], {"prompt": "1+1=", "chosen": ""}):
        (tmp_path / str(hash(str(row)))).mkdir()
        path = written(tmp_path / str(hash(str(row))), {"prompt": "x", "chosen": "y"}, row)
        with pytest.raises(DataError, match="line 2"):
            DataReset(data=path).next(TASK, [], Moment(key="k"))
    with pytest.raises(DataError, match="cannot be read"):
        DataReset(data=str(tmp_path / "none")).next(TASK, [], Moment(key="k"))
    with pytest.raises(ConfigError, match="probability"):
        DataReset(data="x", probability=2.0)

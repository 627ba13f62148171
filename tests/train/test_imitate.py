"""The stage of given demonstrations: what carries loss, what it reads, what it refuses, and that it resumes exactly."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from chat_families import FAMILIES, folder_of
from hub_server import COMMIT, cached
from huggingface_hub import ModelCard
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import SHOWN, at_named, imitate, imitating, in_child, prefer, resumed, trained
from tokenizers import AddedToken, Regex, Tokenizer, pre_tokenizers
from tokenizers import models as hub_models

from assay.core import Message, Thinking, dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError, DataError, PlanError, UnknownNameError
from assay.core.sample import STREAMS
from assay.objective import dpo, grpo, nll
from assay.objective.methods import methods
from assay.publish import export
from assay.rollout.decode_text import AnswerReader
from assay.runtime.text.chat import Chat
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer
from assay.tasks import TaskMixture
from assay.train import load_run, models
from assay.train.contamination import look
from assay.train.data import data_digests, rows_of
from assay.train.demonstration import Demonstration, conversation_row
from assay.train.driver import resume, train
from assay.train.imitate import Imitations, demonstrations_of
from assay.train.prefer import preferences_of
from assay.train.preflight import check_fits, check_run
from assay.train.run import ContaminationCheck, Run
from assay.train.stages import Imitate
from assay_tasks import SortDigits
from assay_tasks.gsm8k import Gsm8k

Row = Mapping[str, Any]
CHARACTERS = char_tokenizer("0123456789+=?\n")  # padding is 0, the end 1, "0" is 2


def turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


TALK = [turn("system", "s"), turn("user", "u"), turn("assistant", "a"), turn("tool", "t"), turn("assistant", "b")]


def written(folder: Path, rows: Sequence[Row] = SHOWN) -> str:
    path = folder / "shown.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


# ---- what carries loss --------------------------------------------------------------------------------------------------


def test_the_answer_and_its_end_carry_loss() -> None:
    row = Demonstration.of({"prompt": "2+2=", "completion": "4"}).row("r", AnswerReader.of(CHARACTERS))
    assert row.ids.tolist() == [4, 12, 4, 13, 6, 1]
    assert row.mask.tolist() == [False] * 4 + [True] * 2
    assert row.stream == "expert"


def test_everything_but_the_first_token_carries_loss_where_that_is_wanted() -> None:
    row = Demonstration.of({"prompt": "2+2=", "completion": "4"}).row("r", AnswerReader.of(CHARACTERS), everything=True)
    assert row.mask.tolist() == [False] + [True] * 5


def test_every_turn_of_the_assistant_carries_loss_and_nothing_that_the_template_writes(tmp_path: Path) -> None:
    tokenizer = HubTokenizer.load(folder_of(FAMILIES["chatml"], tmp_path / "m"))
    row = Demonstration.of({"messages": TALK}).row("r", AnswerReader.of(tokenizer))
    runs = [(learned, [int(i) for i, _ in of]) for learned, of in groupby(zip(row.ids, row.mask, strict=True), lambda x: x[1])]
    assert [(bool(learned), tokenizer.backend.decode(ids, skip_special_tokens=False)) for learned, ids in runs] == [
        (False, "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n"),
        (True, "a<|im_end|>"),
        (False, "\n<|im_start|>tool\nt<|im_end|>\n<|im_start|>assistant\n"),
        (True, "b<|im_end|>"),
    ]


def test_turns_of_the_prompt_are_only_read(tmp_path: Path) -> None:
    shown = {"prompt": TALK[:4], "completion": "b"}
    assert Demonstration.of(shown).opening == tuple(Message(t["role"], t["content"]) for t in TALK[:4])
    row = Demonstration.of(shown).row("r", AnswerReader.of(HubTokenizer.load(folder_of(FAMILIES["chatml"], tmp_path / "m"))))
    assert row.mask.sum() == 2


@given(st.lists(st.text("0123456789+=?", min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_row_is_what_was_asked_and_answered(said: list[str]) -> None:
    """Of any conversation: tokens with loss are the answers with their ends, the others what the template writes alone."""
    talk = [m for text in said for m in (Message("user", "?"), Message("assistant", text))]
    row = conversation_row("r", talk[:1], talk[1:], AnswerReader.of(CHARACTERS))
    learned = [int(i) for text in said for i in (*CHARACTERS.encode(text), CHARACTERS.eos)]
    assert row.ids[row.mask].tolist() == learned
    assert row.ids[~row.mask].tolist() == CHARACTERS.render([Message("user", "?")]).tolist() * len(said)


def test_thoughts_stay_as_the_template_begins_them(tmp_path: Path) -> None:
    tokenizer = HubTokenizer.load(folder_of(FAMILIES["chatml"], tmp_path / "m"))
    thinking = tokenizer.with_chat(Chat(thinking=Thinking()))
    text = "<think>12 + 30</think>42"
    said = Demonstration.of({"prompt": "u", "completion": text}).row("r", AnswerReader.of(thinking))
    assert thinking.decode(said.ids[said.mask][:-1]) == text
    plain = Demonstration.of({"prompt": "u", "completion": "42"}).row("r", AnswerReader.of(thinking))
    assert thinking.decode(plain.ids[plain.mask][:-1]) == "42"
    must = tokenizer.with_chat(Chat(thinking=Thinking(required=True)))
    empty = Demonstration.of({"prompt": "u", "completion": "42"}).row("r", AnswerReader.of(must))
    assert must.decode(empty.ids[empty.mask][:-1]) == "<think></think>\n\n42"
    opener = "'<|im_start|>assistant\\n' }}{% endif"
    begins = FAMILIES["chatml"].template.replace(opener, opener.replace("assistant\\n", "assistant\\n<think>\\n"))
    begun = tokenizer.with_chat(Chat(template=begins, thinking=Thinking()))
    assert begun.opener.endswith("<think>\n")
    rest = Demonstration.of({"prompt": "u", "completion": text}).row("r", AnswerReader.of(begun))
    assert begun.decode(rest.ids[rest.mask][:-1]) == "12 + 30</think>42", "the template has written the tag"


def test_a_tag_that_the_template_has_written_is_not_learned() -> None:
    assert Thinking().format_answer("<think>\n7 + 5</think>12", "<think>\n") == "7 + 5</think>12"
    assert Thinking().format_answer("<think>7 + 5</think>12") == "<think>7 + 5</think>12"


# ---- forms --------------------------------------------------------------------------------------------------------------

FORMS: list[Row] = [
    {"prompt": "u", "completion": "a"},
    {"question": "u", "answer": "a", "id": 7, "source": "somewhere"},
    {"problem": "u", "response": "a", "answer": "the gold"},
    {"instruction": "u", "input": "", "output": "a"},
    {"prompt": [turn("user", "u")], "completion": [turn("assistant", "a")]},
    {"messages": [turn("user", "u"), turn("assistant", "a")], "prompt": "u"},
    {"messages": [turn("user", "u")], "answer": "a"},
    {"conversations": [{"from": "human", "value": "u"}, {"from": "gpt", "value": "a", "role": None}], "tools": None},
]


@pytest.mark.parametrize("row", FORMS, ids=[" ".join(row) for row in FORMS])
def test_rows_in_the_forms_that_data_has(row: Row) -> None:
    assert Demonstration.of(row) == Demonstration(opening=(Message("user", "u"),), turns=(Message("assistant", "a"),))


def test_an_instruction_has_its_input_behind_it() -> None:
    assert Demonstration.of({"instruction": "Add.", "input": "2, 2", "output": "4"}).opening[0].content == "Add.\n2, 2"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompts": "u", "completion": "a"}, "here, field 'prompts': did you mean 'prompt'?"),
        ({"prompt": "u", "completions": "a"}, "here, field 'completions': did you mean 'completion'?"),
        ({"text": "u"}, "here: none of 'prompt', .* among its fields .'text'.; give 'prompt', or 'messages'"),
        ({"prompt": "u"}, "here: none of 'completion', .* or 'messages' that end with the assistant's turn"),
        ({"prompt": "", "completion": "a"}, "field 'prompt': an empty text"),
        ({"prompt": "u", "completion": ""}, "field 'completion': an empty text"),
        ({"prompt": "u", "completion": 4}, "field 'completion': it is 4; give a text, or a list of turns"),
        ({"messages": []}, "field 'messages': it is ..; give a text"),
        ({"messages": [turn("user", "u"), turn("robot", "a")]}, "turn 2: .* is no turn; give"),
        ({"messages": [turn("user", "u"), "a"]}, "turn 2: 'a' is no turn"),
        ({"messages": [turn("assistant", "a")]}, "the first turn is the assistant's; begin with what it answers"),
        ({"messages": [*TALK, turn("assistant", "c")]}, "two turns of the assistant behind one another"),
        ({"messages": [turn("user", "u"), turn("assistant", "")]}, "an empty turn of the assistant"),
        ({"prompt": TALK, "completion": "c"}, "field 'prompt': the last turn is the assistant's, but an answer follows"),
        ({"prompt": "u", "completion": TALK[3:]}, "the first turn is of role 'tool'"),
        ({"prompt": "u", "completion": TALK[2:4]}, "the last turn is of role 'tool'"),
        (
            {"messages": [turn("user", "u"), turn("assistant", "a") | {"tool_calls": [1]}]},
            "turn 2, field 'tool_calls': 1 is no call",
        ),
        ({"prompt": "u", "completion": "a", "tools": "[{"}, "field 'tools': .* is no JSON"),
        ({"prompt": "u", "completion": "a", "tools": ["x"]}, "field 'tools': .* is no list of schemas"),
    ],
)
def test_rows_that_are_wrong_are_named(row: Row, says: str) -> None:
    with pytest.raises(DataError, match=says):
        Demonstration.of(row, "here")


# ---- files --------------------------------------------------------------------------------------------------------------


def in_csv(path: Path, rows: Sequence[Row]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows)
    return path


def in_parquet(path: Path, rows: Sequence[Row]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def test_files_of_every_form_hold_the_same_rows(tmp_path: Path) -> None:
    rows = [{"messages": [turn("user", str(i)), turn("assistant", "a")]} for i in range(3)]
    with gzip.open(tmp_path / "c.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    files = [in_csv(tmp_path / "a.csv", rows), in_parquet(tmp_path / "b.parquet", rows), tmp_path / "c.jsonl.gz"]
    for path in files:
        assert demonstrations_of(imitate(data=path, batch=1)) == demonstrations_of(imitate(data=rows, batch=1))
    assert len(demonstrations_of(imitate(data=tmp_path, batch=1))) == 9
    places = [rows_of(imitate(data=path))[1][0] for path in files]
    assert places == [f"{tmp_path}/a.csv, row 2", f"{tmp_path}/b.parquet, row 2", f"{tmp_path}/c.jsonl.gz, line 2"]


def test_preferences_come_from_tables_too(tmp_path: Path) -> None:
    pairs = [{"prompt": "S21>", "chosen": "12", "rejected": "21", "probability": 0.9}]
    judged = [{"prompt": "S21>", "completion": "12", "label": True}, {"prompt": "S21>", "completion": "21", "label": False}]
    for i, rows in enumerate((pairs, judged)):
        for path in (in_csv(tmp_path / f"{i}.csv", rows), in_parquet(tmp_path / f"{i}.parquet", rows)):
            assert [dict(row) for _, row in rows_of(prefer(data=path))] == rows
    (tmp_path / "x.csv").write_text("prompt,completion,label\nS21>,12,True\n")
    assert rows_of(prefer(data=tmp_path / "x.csv"))[0][1]["label"] is True


def test_data_of_the_hub_is_pinned_to_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path(written(cached(tmp_path / "hf" / "hub", "dataset", "some/rows"))).rename(
        tmp_path / "hf/hub/datasets--some--rows/snapshots" / COMMIT / "train.jsonl"
    )
    for named, pinned in {"hub:some/rows": "", "hub:some/rows:train*": ":train*", "hub:some/rows@main:train*": ":train*"}.items():
        run = imitating(imitate(data=named, steps=1))
        found = models.pin_commits(run)
        assert found.stages[0].data == f"hub:some/rows@{COMMIT}{pinned}"  # type: ignore[union-attr]
        assert models.pin_commits(found) is found
    asked = TaskMixture(name="both", sources=(SortDigits(), Gsm8k(train="hub:some/rows:train*", test="")))
    pinned_tasks = models.pin_commits(replace(found, tasks=asked)).tasks
    assert pinned_tasks.sources == (SortDigits(), Gsm8k(train=f"hub:some/rows@{COMMIT}:train*", test=""))  # type: ignore[union-attr]
    assert rows_of(found.stages[0])[0][0] == f"hub:some/rows@{COMMIT}:train*, train.jsonl, line 1"  # type: ignore[arg-type]
    assert trained(run, tmp_path / "run")
    assert f'data = "hub:some/rows@{COMMIT}:train*"' in (tmp_path / "run" / "run.toml").read_text()
    assert load_run(tmp_path / "run", run) == found, "the same recipe is the same run"
    export(tmp_path / "run", tmp_path / "out", check=False)
    card = ModelCard.load(tmp_path / "out" / "README.md")
    assert card.data.datasets == ["some/rows"]
    assert f"| data sets | some/rows at commit {COMMIT}, files `train*`, {len(SHOWN)} rows: given to Imitate |" in card.text
    with pytest.raises(DataError, match=r"dataset other/rows: it is not in the cache"):
        train(imitating(imitate(data="hub:other/rows")), tmp_path / "refused")
    assert not (tmp_path / "refused" / "run.toml").exists()


def test_digests_are_of_what_the_files_hold(tmp_path: Path) -> None:
    run = imitating(data=written(tmp_path))
    before = data_digests(run)
    assert list(before) == [str(tmp_path / "shown.jsonl")]
    written(tmp_path, SHOWN[::-1])
    assert data_digests(run) != before
    (tmp_path / "more.jsonl").write_text("{}")
    both = data_digests(imitating(data=tmp_path))
    (tmp_path / "more.jsonl").write_text("{ }")
    assert data_digests(imitating(data=tmp_path)) != both


# ---- batches ------------------------------------------------------------------------------------------------------------


def supply(stage: Imitate, seed: int = 0) -> Imitations:
    run = replace(imitating(stage), seed=seed)
    return Imitations(run, stage, models.load_source(run.model, lambda run, folder: folder).tokenizer)


def questions(rows: Imitations, steps: range) -> list[tuple[int, ...]]:
    found = []
    for step in steps:
        batch = rows.batch(step)
        found += [tuple(batch.token("ids")[a : a + 4]) for a in batch.offsets[:-1]]
    return found


def test_every_row_is_seen_once_an_epoch_each_time_in_another_order() -> None:
    rows = supply(imitate(batch=15))
    first, second = questions(rows, range(6)), questions(rows, range(6, 12))
    assert len(set(first)) == 90 and sorted(first) == sorted(second) and first != second
    assert first == questions(supply(imitate(batch=15)), range(6)) != questions(supply(imitate(batch=15), seed=1), range(6))
    assert set(rows.batch(0).rows["stream"]) == {STREAMS.index("expert")}


# ---- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "né", "completion": "a"}, "line 21: the tokenizer's alphabet lacks 'é'"),
        ({"prompt": "a", "completion": "né"}, "line 21, the assistant's 'né': the model's tokenizer lacks 'é', so it would"),
        ({"prompt": "a" * 20, "completion": "b" * 12}, r"line 21: 33 tokens with .* context holds 32: shorten"),
    ],
)
def test_rows_that_do_not_fit_the_model_are_named(tmp_path: Path, row: Row, says: str) -> None:
    with pytest.raises(DataError, match=says):
        train(imitating(data=written(tmp_path, [*SHOWN[:20], row])), tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()


def test_the_longest_row_that_fits_is_taken_and_its_tokens_are_counted() -> None:
    found = supply(imitate(data=[{"prompt": "a" * 20, "completion": "b" * 11}], batch=1)).check(32)
    assert (found.rows, found.learned) == (32, 12)
    found = supply(imitate(data=[{"prompt": "a" * 20, "completion": "b" * 11}], batch=1, learn="all")).check(32)
    assert (found.rows, found.learned) == (32, 31)


def test_with_all_tokens_learned_questions_must_be_spelled_too() -> None:
    """A tokenizer that writes ``<unk>`` for what it does not know refuses nothing itself."""
    known = Tokenizer(hub_models.WordLevel({"<eos>": 0, "<unk>": 1, "a": 2}, unk_token="<unk>"))
    known.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    known.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<eos>", "<unk>")])
    tokenizer, rows = HubTokenizer(known, eos=0), [{"prompt": "c", "completion": "a"}]
    read, learned = (imitate(data=rows, batch=1, learn=learn) for learn in ("assistant", "all"))
    assert Imitations(imitating(read), read, tokenizer).check(99).learned == 2
    with pytest.raises(DataError, match=r"row 1, the user's 'c': the model's tokenizer lacks 'c'"):
        Imitations(imitating(learned), learned, tokenizer).check(99)


def test_a_turn_that_the_template_cannot_write_is_named(tmp_path: Path) -> None:
    tokenizer = HubTokenizer.load(folder_of(FAMILIES["mistral"], tmp_path / "m"))
    stage = imitate(data=[{"messages": TALK[1:]}], batch=1)
    with pytest.raises(DataError, match=r"Imitate.data, row 1: .*'tool'"):
        Imitations(imitating(stage), stage, tokenizer).check(99)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"data": ""}, ConfigError, "Imitate.data is empty; name a file of rows"),
        ({"data": "nowhere.jsonl"}, ConfigError, "Imitate.data: nowhere.jsonl does not exist"),
        ({"batch": 91}, ConfigError, "Imitate.batch=91, but the data has 90 rows; use at most 90"),
        ({"data": [{"prompt": "a"}], "batch": 1}, DataError, "Imitate.data, row 1: none of 'completion'"),
        ({"objective": grpo()}, PlanError, "Imitate: PolicyGradient .* reads rewards, and demonstrations have none"),
        ({"objective": dpo()}, PlanError, "Imitate: ScoreLoss .* reads rewards"),
        (
            {"objective": replace(nll(), terms=(replace(nll().terms[0], streams=("on_policy",)),))},
            PlanError,
            "so it would do nothing",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        check_run(imitating(**changes))


def test_settings_that_are_wrong_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"Imitate\.learn"):
        imitate(learn="answers")
    with pytest.raises(ConfigError, match=r"Imitate\.data, row 1 is an int"):
        imitate(data=3)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"shown.jsonl holds no rows"):
        check_run(imitating(data=written(tmp_path, [])))
    (tmp_path / "shown.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"shown.jsonl, line 1: not JSON"):
        check_run(imitating(data=tmp_path / "shown.jsonl"))


def test_every_supervised_method_is_taken() -> None:
    taken = []
    for name, found in methods().items():
        try:
            check_run(imitating(imitate(objective=found.make(**dict(found.example)))))
        except PlanError:
            continue
        taken.append(name)
    assert {"nll"} <= set(taken) and not {"grpo", "dpo", "kto"} & set(taken)


def test_held_out_questions_are_found_in_any_turn(tmp_path: Path) -> None:
    run = replace(imitating(), contamination=ContaminationCheck(mode="report"))
    held = run.tasks.task("sort", 2, "test", 0).public["prompt"]
    talk = [turn("user", "S12>"), turn("assistant", "12"), turn("user", held), turn("assistant", "12")]
    stage = imitate(data=[{"messages": talk}], batch=1)
    (tmp_path / "run").mkdir()
    found = look(replace(run, stages=(stage,)), tmp_path / "run")
    assert found["contaminated"] >= 1 and "Imitate.data, row 1" in {hit["prompt"] for hit in found["examples"]}


# ---- as a value, and resumed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["shown.jsonl", [{"messages": TALK}]])
def test_a_run_with_demonstrations_goes_to_toml_and_back(data: Any) -> None:
    run = imitating(data=data, learn="all", objective=nll())
    again = from_dict(Run, loads_toml(dumps_toml(to_dict(run))))
    assert again == run and hash(again.stages[0]) == hash(run.stages[0])


@pytest.mark.parametrize(
    "moment",
    [
        "synced:step_0000003",
        pytest.param("synced:step_0000006", marks=pytest.mark.prove),
        pytest.param("synced:step_0000008", marks=pytest.mark.prove),
    ],
)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path, moment: str) -> None:
    """In the stage; where it ends; in the stages behind it, which begin with its weights."""
    run = imitating(data=written(tmp_path))
    whole = trained(run, tmp_path / "whole")

    def work() -> None:
        at_named(moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        train(run, tmp_path / "run")

    assert in_child(work) == -signal.SIGKILL
    written(tmp_path, SHOWN[::-1])
    with pytest.raises(CheckpointError, match=r"shown\.jsonl is not the file that the run began with"):
        resume(tmp_path / "run")
    written(tmp_path)
    assert resumed(tmp_path / "run") == whole


def test_the_levels_of_the_tasks_are_for_the_other_stages() -> None:
    run = imitating(imitate(steps=1))
    check_fits(run, models.load_source(run.model, lambda run, folder: folder))
    assert run.stages[0].levels == ()


def test_cells_that_are_no_json_are_left_to_the_reader_of_the_field(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("prompt,completion,label\nS21>,12,maybe\n")
    with pytest.raises(DataError, match=r"x\.csv, row 1, field 'label': it is 'maybe'; give true"):
        preferences_of(prefer(data=tmp_path / "x.csv"))

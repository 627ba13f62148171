"""The first call: rows, a reward and a model, with nothing else said, or all of it."""

from __future__ import annotations

import json
from collections import UserDict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from assay.core.canon import digest
from assay.core.config import to_dict
from assay.core.errors import ConfigError, DataError, HubError, UnknownNameError
from assay.objective.methods import grpo
from assay.recipes import on_rows
from assay.recipes.prompt_lengths import fit_prompts, longest_answer, longest_prompt
from assay.runtime import Chat, DecoderShape, Lora, char_tokenizer
from assay.runtime.models.reduced import write_reduced
from assay.runtime.settings import LearningRateSchedule
from assay.tasks import Rows, TaskMixture
from assay.train import Policy, train
from assay.train.contamination import look
from assay.train.models import Built, Folder, Scratch
from assay.train.run import Run
from assay.train.stages import WarmUp

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(6) for b in range(6)]
QWEN = {"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES = {"head_dim": 16, "intermediate_size": 128, "max_position_embeddings": 1024, "vocab_size": 99, "tie_word_embeddings": True}


class LookAlike(dict[str, Any]):
    """As much of ``datasets.DatasetDict`` as rows need: a dict of objects that have a length and give dicts."""


class Split:
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


def share_right(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return sum(a == b for a, b in zip(completion, row["answer"], strict=False)) / max(len(completion), len(row["answer"]))


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("hub") / "small"
    write_reduced({**QWEN, **SIZES}, folder)
    return str(folder)


def prompts(run: Run, split: str) -> set[str]:
    tasks = run.tasks
    assert isinstance(tasks, Rows)
    cells = [(arm, level) for arm, levels in tasks.arms().items() for level in levels]
    return {
        tasks.task(arm, level, split, i).public_view().messages[0].content
        for arm, level in cells
        for i in range(tasks.size(arm, level, split))
    }


def stage_of(run: Run) -> Any:
    return run.stages[0]


# ---- settings ---------------------------------------------------------------------------------------------------------


def test_runs_of_the_embedded_base_are_what_they_were() -> None:
    known = ("2a90017d954ff5f0a087450c07606f27", "16eb1fe93e192735313243a7464530f3")
    assert (digest(to_dict(on_rows(ROWS))), digest(to_dict(on_rows(ROWS, steps=7, max_new_tokens=4, seed=3)))) == known


def test_another_model_gets_settings_of_its_own(model: str) -> None:
    run = on_rows(ROWS, model=model, device="cpu")
    learner = stage_of(run).learner
    assert (learner.device, learner.precision, learner.adapter) == ("cpu", "fp32", None)
    assert run.sampling.max_new_tokens == 16  # four times an answer of three tokens, its end included
    assert stage_of(on_rows(ROWS, model=Folder(model))).learner.device == "auto"


def test_every_setting_can_be_given(model: str) -> None:
    run = on_rows(
        ROWS,
        model=model,
        learning_rate=3e-4,
        groups=2,
        group_size=3,
        max_new_tokens=9,
        temperature=0.7,
        lora=4,
        precision="bf16",
        device="cpu",
        micro_tokens=512,
        threads=1,
        objective=grpo(),
        chat=Chat(system="Sort."),
        seed=5,
    )
    stage = stage_of(run)
    assert (stage.learner.optimizer.lr, stage.groups, stage.group_size) == (3e-4, 2, 3)
    assert (run.sampling.max_new_tokens, run.sampling.temperature, run.seed) == (9, 0.7, 5)
    assert stage.learner.adapter == Lora(rank=4, alpha=8.0)
    assert (stage.learner.precision, stage.learner.device, stage.learner.micro_tokens) == ("bf16", "cpu", 512)
    assert stage.objective == grpo()
    assert run.model == Folder(model, chat=Chat(system="Sort."))
    changed = on_rows(ROWS, learning_rate=1e-4, groups=2, device="auto")
    assert (stage_of(changed).learner.optimizer.lr, stage_of(changed).groups, changed.threads) == (1e-4, 2, 1)
    assert stage_of(changed).learner.device == "auto"


def test_a_method_comes_by_its_name_with_what_it_needs(model: str) -> None:
    stage = stage_of(on_rows(ROWS, model=model, objective="ppo"))
    assert [head.name for head in stage.learner.heads] == ["values"]
    assert stage_of(on_rows(ROWS, objective="dapo")).objective != stage_of(on_rows(ROWS)).objective
    assert isinstance(on_rows(ROWS, model=model, objective="nll").stages[0], WarmUp)
    with pytest.raises(UnknownNameError, match="grpo"):
        on_rows(ROWS, objective="grppo")


def test_a_reference_that_an_objective_reads_is_kept(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.train.model_settings._LARGEST_REFERENCE", 1)
    quiet = on_rows(ROWS, model=model)
    assert stage_of(quiet).learner.anchors == ()
    assert not quiet.evaluation.kl_to_base
    assert [a.name for a in stage_of(on_rows(ROWS, model=model, objective=grpo(kl=0.1))).learner.anchors] == ["ref"]


def test_models_of_other_kinds() -> None:
    fresh = Scratch(alphabet="S>0123456789")
    assert on_rows(ROWS, model=fresh).model == fresh
    inner = Built(run=replace(on_rows(ROWS, model=fresh), name="mine"))
    assert on_rows(ROWS, model=inner).model == inner
    with pytest.raises(ConfigError, match="chat is for a model folder"):
        on_rows(ROWS, chat=Chat())
    with pytest.raises(ConfigError, match="model is"):
        on_rows(ROWS, model=3)  # pyright: ignore[reportArgumentType]


def test_a_name_on_the_hub_that_is_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HubError, match="nobody/knows"):
        on_rows(ROWS, model="nobody/knows")
    run = on_rows(ROWS, model="Qwen/Qwen3-0.6B", device="cpu")  # its sizes are known
    assert stage_of(run).learner.optimizer.lr in (2e-6, 2e-5)
    assert run.sampling.max_new_tokens == 2048
    quiet = on_rows(ROWS, model="Qwen/Qwen3-0.6B", chat=Chat(options={"enable_thinking": False}))
    assert quiet.sampling.max_new_tokens == 512


def test_tools_are_given_to_the_sampler(model: str) -> None:
    assert stage_of(on_rows(ROWS, model=model, tools=[double])).sampler.tools == (double,)


# ---- splits and evaluation --------------------------------------------------------------------------------------------


def test_splits_are_kept() -> None:
    splits = LookAlike(train=Split(ROWS[:20]), test=Split(ROWS[20:30]), validation=Split(ROWS[30:]))
    run = on_rows(splits, share_right)  # pyright: ignore[reportArgumentType]
    assert prompts(run, "train") == {row["prompt"] for row in ROWS[:20]}
    assert prompts(run, "test") == {row["prompt"] for row in ROWS[20:30]}
    other = on_rows(UserDict(splits), share_right, split=("train", "validation"))  # pyright: ignore[reportArgumentType]
    assert prompts(other, "test") == {row["prompt"] for row in ROWS[30:]}


def test_splits_whose_names_say_nothing_are_asked_for() -> None:
    with pytest.raises(ConfigError, match="split='first'"):
        on_rows({"first": ROWS[:9], "second": ROWS[9:]})
    assert prompts(on_rows({"first": ROWS[:9], "second": ROWS[9:]}, split=["second", "first"]), "test") == {
        row["prompt"] for row in ROWS[:9]
    }
    with pytest.raises(ConfigError, match="come in no splits"):
        on_rows(ROWS, split="train")


def test_levels_that_only_one_split_has() -> None:
    train, test = [{**row, "level": 1} for row in ROWS[:9]], [{**row, "level": 2} for row in ROWS[9:]]
    run = on_rows({"train": train, "test": test})
    assert dict(stage_of(run).levels) == {"rows": (1,)}


def test_rows_to_evaluate_on_are_given() -> None:
    run = on_rows(ROWS[:20], evaluate=ROWS[20:])
    assert (len(prompts(run, "train")), len(prompts(run, "test"))) == (20, 16)
    both = on_rows(ROWS[:20], evaluate={"test": ROWS[20:]})
    assert both.tasks == run.tasks
    with pytest.raises(ConfigError, match="evaluate holds no rows"):
        on_rows(ROWS, evaluate=[])


def test_a_suite_is_evaluated_on() -> None:
    run = on_rows(ROWS, evaluate="sort")
    assert isinstance(run.tasks, TaskMixture)
    assert dict(stage_of(run).levels) == {"rows": (1,)}
    assert list(run.evaluation.levels) == ["sort"]
    assert run.tasks.source("rows").size("rows", 1, "test") == 0  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UnknownNameError, match="did you mean"):
        on_rows(ROWS, evaluate="assay-sixx")


def test_one_prompt_can_be_overfitted(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = on_rows([{"prompt": [{"role": "user", "content": "S21>"}]}], share_right_or_none, model=model, steps=2, group_size=4)
    assert (stage_of(run).groups, run.evaluation.split) == (1, "train")
    assert train(replace(run, evaluation=replace(run.evaluation, final_per_level=2)), tmp_path / "run", progress=True).finished
    told = capsys.readouterr().err.splitlines()
    assert len(told) <= 5
    assert told[0].startswith(f"model {model}: ")
    assert "; no row is held out" in told[-2]
    assert told[-1].startswith("accuracy = share of answers with reward >= 1.0 by `share_right_or_none`")
    evals = [json.loads(text) for text in (tmp_path / "run" / "evals.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["split"] for line in evals} == {"train"}
    assert Policy(tmp_path / "run").evaluate(run.tasks, n=0, split="train", per_level=1)


def share_right_or_none(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return completion.count("a") / 64


def test_held_out_rows_that_are_trained_on_are_refused_however_many(tmp_path: Path) -> None:
    """All of the test split as well as a part of it; to overfit on purpose, hold nothing out."""
    for number, held in enumerate((ROWS[:5], ROWS[4:8])):
        for run in (on_rows({"train": ROWS[:6], "test": held}), on_rows(ROWS[:6], evaluate=held)):
            assert run.contamination.mode == "refuse"
            with pytest.raises(DataError, match="so that no evaluation of this run would mean what it says"):
                look(run, tmp_path / f"{number}")
    nothing = on_rows(ROWS[:6], test_share=0.0)
    assert nothing.evaluation.split == "train" and not look(nothing, tmp_path)["contaminated"]


def test_rows_name_their_verifiers() -> None:
    run = on_rows([{**row, "verifier": "numeric"} for row in ROWS])
    assert type(run.tasks.verifier()).__name__ == "Routed"


# ---- files ------------------------------------------------------------------------------------------------------------


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_files_are_read_with_their_splits(tmp_path: Path) -> None:
    one = written(tmp_path / "rows.jsonl", ROWS)
    assert on_rows(one).tasks == on_rows(ROWS).tasks
    folder = tmp_path / "folder"
    folder.mkdir()
    written(folder / "train-0.jsonl", ROWS[:10])
    written(folder / "train-1.jsonl", ROWS[10:20])
    written(folder / "test.jsonl", ROWS[20:])
    run = on_rows(str(folder))
    assert (len(prompts(run, "train")), len(prompts(run, "test"))) == (20, 16)
    written(folder / "more.jsonl", ROWS[20:])
    with pytest.raises(ConfigError, match=r"more.jsonl says no split"):
        on_rows(folder)


# ---- long prompts -----------------------------------------------------------------------------------------------------

LONG = [{"prompt": "12"}, {"prompt": "1" * 30}, {"prompt": "2" * 20, "answer": "2"}]


def test_long_prompts_are_counted_and_refused() -> None:
    with pytest.raises(DataError, match=r"2 of 3 prompts exceed the 12 tokens .* row 2, has 30"):
        fit_prompts(LONG, char_tokenizer("12"), 16, 4)
    with pytest.raises(DataError, match=r"2 of 2 .* has 30. Cut off their beginning"):  # no fewer tokens, and none to leave out
        fit_prompts(LONG[1:], char_tokenizer("12"), 16, 4)
    with pytest.raises(DataError, match=r"1 of 2 .* has 20. Lower max_new_tokens to 4 or less; or leave them out .*; or cut"):
        fit_prompts(LONG[::2], char_tokenizer("12"), 24, 8)
    rows = [*ROWS, {"prompt": "S" + "1" * 200 + ">", "answer": "1"}]
    with pytest.raises(DataError, match="the embedded base writes single characters and only sorts digits; give model="):
        on_rows(rows)
    with pytest.raises(DataError, match="1 of 37 prompts exceed the 112 tokens"):
        on_rows(rows)
    with pytest.warns(UserWarning, match="training rows: 1 of 37 prompts left out") as warned:
        assert len(on_rows(rows, long_prompts="skip").tasks.rows) == 36  # pyright: ignore
    assert warned[0].filename == __file__, "the line that calls on_rows"
    with pytest.warns(
        UserWarning, match="evaluation rows: 1 of 1 prompts cut at their front, with any instruction there, to 112 tokens"
    ):
        assert on_rows(ROWS, evaluate=rows[-1:], long_prompts="truncate").steps == 100


def test_a_fresh_model_is_told_the_positions_that_its_rows_need() -> None:
    rows = [{"prompt": "What do five figs cost? " * 5, "answer": "15"}]
    with pytest.raises(
        DataError, match=r"has \d+. Give the fresh model more positions: Scratch\(shape=(.*?)\); or lower"
    ) as found:
        on_rows(rows, model=Scratch(), max_new_tokens=32)
    assert "DecoderShape(max_positions=256)" in str(found.value)
    fits = Scratch(shape=DecoderShape(max_positions=256))
    assert on_rows(rows, model=fits, max_new_tokens=32).model == fits
    other = Scratch(shape=DecoderShape(hidden_size=48))
    with pytest.raises(DataError, match=r"Scratch\(shape=DecoderShape\(..., max_positions=256\)\)"):
        on_rows(rows, model=other, max_new_tokens=32)


def test_a_fresh_model_is_told_the_positions_that_its_tools_need(tmp_path: Path) -> None:
    run = on_rows(ROWS, model=Scratch(chat=Chat(template="dialogue")), tools=[double], max_new_tokens=4, steps=1)
    with pytest.raises(ConfigError, match=r"give the fresh model more positions: Scratch\(shape=.*max_positions=512"):
        train(run, tmp_path / "run", progress=False)


def test_long_prompts_are_left_out_or_cut() -> None:
    tokenizer = char_tokenizer("12")
    kept, said = fit_prompts(LONG, tokenizer, 16, 4, "skip")
    assert kept == ({"prompt": "12"},)
    assert said.startswith("2 of 3 prompts left out")
    cut, _ = fit_prompts(LONG, tokenizer, 16, 4, "truncate")
    assert [len(row["prompt"]) for row in cut] == [2, 12, 12]
    assert cut[2]["answer"] == "2"
    turns = [{"role": "system", "content": "1" * 5}, {"role": "user", "content": "12" * 10}]
    (chat,), _ = fit_prompts([{"messages": turns}], tokenizer, 16, 4, "truncate")
    assert chat["messages"][0] == turns[0]
    assert chat["messages"][1]["content"] == ("12" * 10)[-7:]


def test_prompts_that_cannot_be_made_to_fit() -> None:
    tokenizer = char_tokenizer("12")
    system = [{"role": "system", "content": "1" * 30}, {"role": "user", "content": "12"}]
    with pytest.raises(DataError, match="without its longest turn"):
        fit_prompts([{"prompt": system}], tokenizer, 16, 4, "truncate")
    with pytest.raises(DataError, match="leaves none"):
        fit_prompts(LONG[1:], tokenizer, 16, 4, "skip")
    with pytest.raises(ConfigError, match="leaves no room"):
        fit_prompts(LONG, tokenizer, 16, 16)
    with pytest.raises(UnknownNameError, match="truncate"):
        fit_prompts(LONG, tokenizer, 16, 4, "trunctate")  # pyright: ignore[reportArgumentType]


def test_rows_that_are_wrong_are_left_to_whoever_names_their_fault() -> None:
    wrong: list[Any] = [{"prompt": 3}, {"prompt": "ß"}, "text", {}]
    tokenizer = char_tokenizer("12")
    assert fit_prompts(wrong, tokenizer, 16, 4) == (wrong, "")
    assert longest_prompt(wrong, tokenizer) == 0
    assert longest_answer([{"answer": "ß"}], tokenizer) == 0
    assert longest_answer([{"answer": "12"}, {}], tokenizer) == 0
    assert longest_answer([{"answer": "12"}, {"answer": 1}], tokenizer) == 3
    with pytest.raises(DataError, match="row 3"):
        on_rows(wrong)


def test_a_schedule_of_the_learning_rate_by_one_word() -> None:
    def schedule(**given: Any) -> LearningRateSchedule:
        run = on_rows([{"prompt": f"S{n}>", "answer": str(n)} for n in range(100, 200)], steps=40, **given)
        return run.stages[0].learner.schedule

    assert schedule() == schedule(lr_schedule="linear") == LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
    assert schedule(lr_schedule="cosine") == schedule(lr_scheduler_type="cosine") == LearningRateSchedule(kind="cosine")
    assert schedule(lr_schedule="constant", objective="gspo") == LearningRateSchedule()
    with pytest.raises(ConfigError, match="use 'constant', 'linear' or 'cosine'"):
        schedule(lr_schedule="step")


def test_rows_that_an_exact_match_would_misjudge_need_a_reward_or_a_verifier() -> None:
    rows = [{"question": f"{n}+1?", "answer": f"One more.\n#### {n + 1}"} for n in range(4)]
    with pytest.raises(DataError, match=r"row 1 names no verifier, .*'#### 1', which 'math' judges\. Run 'assay tasks import"):
        on_rows(rows)
    assert on_rows(rows, lambda completion, answer: float(completion in answer), steps=1).steps == 1


def test_a_wrong_row_goes_by_its_own_number_whatever_stands_before_it() -> None:
    long = {"prompt": "S" + "1" * 200 + ">", "answer": "1"}
    wrong: dict[str, Any] = {"prompt": "S21>", "answer": "12", "level": "two"}
    with pytest.warns(UserWarning, match="1 of 38 prompts left out"), pytest.raises(DataError, match=r"^row 38, field 'level'"):
        on_rows([long, *ROWS, wrong], long_prompts="skip")
    with pytest.raises(DataError, match=r"^test rows: row 2, field 'level'"):
        on_rows({"train": ROWS[2:], "test": [ROWS[0], wrong]})
    with pytest.raises(DataError, match=r"^row 35, field 'level'"):
        on_rows({"train": [*ROWS[2:], wrong], "test": ROWS[:2]})
    with pytest.raises(DataError, match=r"^test rows: row 1, field 'verifier'"):
        on_rows({"train": ROWS[2:], "test": [{**ROWS[0], "verifier": "exakt"}]})
    with pytest.raises(DataError, match=r"^test rows: row 2 names no verifier"):
        on_rows({"train": ROWS[2:], "test": [ROWS[0], {"prompt": "S1>", "answer": "It is. #### 5"}]})
    with pytest.raises(DataError, match=r"^test rows: row 2 has no 'digits', which the reward"):
        digits: list[dict[str, Any]] = [{**row, "digits": 2} for row in ROWS[1:]]
        on_rows({"train": digits[1:], "test": [digits[0], ROWS[0]]}, lambda completion, digits: 0.0)
    with pytest.raises(DataError, match=r"^test rows: 1 of 1 prompts exceed"):
        on_rows(ROWS, evaluate=[long])
    with pytest.raises(DataError, match=r"^test rows: row 2, field 'level'"):
        Rows(cast("Any", {"train": ROWS[2:], "test": [ROWS[0], wrong]}))


def test_rows_keep_their_numbers_or_have_none() -> None:
    def places(source: Any, arm: str, split: str, count: int) -> set[str]:
        return {source.row_place(source.task(arm, 1, split, i)) for i in range(count)}

    mine = on_rows(ROWS[:8], evaluate="countdown")
    assert isinstance(mine.tasks, TaskMixture)
    assert places(mine.tasks, "rows", "train", 8) == {f"row {n}" for n in range(1, 9)}
    arm, levels = next((arm, levels) for arm, levels in mine.tasks.arms().items() if arm != "rows")
    assert mine.tasks.row_place(mine.tasks.task(arm, levels[0], "test", 0)) == ""
    assert places(on_rows({"train": ROWS[2:], "test": ROWS[:2]}).tasks, "rows", "test", 2) == {"test row 1", "test row 2"}
    with pytest.warns(UserWarning, match="left out"):
        skipped = on_rows([{"prompt": "S" + "1" * 200 + ">", "answer": "1"}, *ROWS], long_prompts="skip")
    assert places(skipped.tasks, "rows", "train", 9) == {""}


def test_numbers_of_rows_change_no_digest() -> None:
    assert "numbered" not in to_dict(Rows(ROWS)) and to_dict(Rows(ROWS, numbered=False))["numbered"] is False

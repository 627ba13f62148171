"""Evaluation items among training prompts: found, refused, allowed, and told."""

import json
import random
import re
import sys
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from disguised_items import in_templates

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, MissingExtraError, UnknownNameError
from assay.core.rollout import Sampling
from assay.core.task import Task
from assay.curate import Matching
from assay.measure.runs import RunView, read_run
from assay.runtime import save_model
from assay.runtime.settings import DecoderShape, Lora
from assay.tasks import Rows, TaskMixture
from assay.testing.models import random_model
from assay.train import contamination
from assay.train.contamination import look
from assay.train.driver import resume, train
from assay.train.models import Built, Folder, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import ContaminationCheck, Evaluation, Run
from assay.train.stages import Prefer, WarmUp
from assay_tasks import SortDigits

WORDS = [
    "apple",
    "river",
    "stone",
    "cloud",
    "horse",
    "table",
    "green",
    "seven",
    "music",
    "paper",
    "lamp",
    "ocean",
    "bread",
    "forest",
]
SHAPE = DecoderShape(
    hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=16, intermediate_size=32, max_positions=200
)


def questions(count: int = 40, length: int = 12, seed: int = 0) -> list[dict[str, str]]:
    """Rows of random words: no two share a run of words."""
    rng = random.Random(seed)
    return [{"prompt": " ".join(rng.choice(WORDS) for _ in range(length)), "answer": "yes"} for _ in range(count)]


def on(rows: list[dict[str, str]], test_share: float = 0.2, **check: object) -> Run:
    return Run(
        name="rows",
        model=Scratch(shape=SHAPE),
        tasks=Rows(rows, test_share=test_share),
        stages=(Reinforce(steps=1, groups=2, group_size=2),),
        sampling=Sampling(max_new_tokens=3),
        evaluation=Evaluation(every=0, final_per_level=2),
        contamination=ContaminationCheck(**check),
    )


def training(run: Run) -> list[str]:
    return [run.tasks.task("rows", 1, "train", i).public["prompt"] for i in range(run.tasks.size("rows", 1, "train"))]


def overlap(folder: Path) -> str:
    """What a report says of a record."""
    found = json.loads((folder / "contamination.json").read_text())
    return RunView(folder=folder, settings={}, versions={}, contamination=found).overlap


def written(path: Path, *questions: str) -> str:
    path.write_text("".join(json.dumps({"question": q}) + "\n" for q in questions))
    return str(path)


def test_clean_rows_say_how_much_was_looked_at(tmp_path):
    rows = questions()
    file = written(tmp_path / "eval.jsonl", *(q["prompt"] for q in questions(5, seed=1)))
    run = on(rows, against=(file,))
    found = look(run, tmp_path)
    held, trained = run.tasks.size("rows", 1, "test"), run.tasks.size("rows", 1, "train")
    assert held + trained == 40 and held > 2  # more than the run evaluates on: all of them are looked for
    assert found["prompts"] == trained and found["whole"] and found["near"] and found["contaminated"] == found["found"] == 0
    assert found["sources"] == [{"name": "held out", "items": held}, {"name": file, "items": 5}]
    assert found["items"] == held + 5 and contamination.sentence(found) == ""
    assert json.loads((tmp_path / "contamination.json").read_text()) == found
    assert overlap(tmp_path) == f"0 of {trained} training prompts match {held + 5} evaluation items"


def refused(run: Run, folder: Path) -> str:
    with pytest.raises(DataError) as error:
        look(run, folder)
    assert not (folder / "contamination.json").exists()
    return str(error.value)


def test_a_file_that_holds_a_training_prompt_is_refused(tmp_path):
    rows = questions()
    prompt = training(on(rows))[3]
    file = written(tmp_path / "eval.jsonl", "something else", prompt.upper().replace(" ", "  "), prompt)
    said = refused(on(rows, against=[file]), tmp_path)
    trained = len(training(on(rows)))
    assert said.startswith(f"1 of {trained} training prompts contain 2 of ")
    assert (
        f"is the same as {file}, line 2: {prompt!r}" in said and "(arm 'rows', level 1)" in said and "task 'rows/rows/1/" in said
    )
    assert f"'assay curate IN OUT --against {file}'" in said and "--allow-contamination" in said


@pytest.mark.parametrize(("kept", "hits"), [(7, 0), (8, 1)])
def test_a_run_of_eight_words_is_found_and_one_of_seven_is_not(tmp_path, kept, hits):
    rows = questions(length=30)
    run = on(rows)
    words = training(run)[0].split()[4 : 4 + kept]
    file = written(tmp_path / "eval.jsonl", " ".join(["Zeta", *words, "omega psi chi phi"]))
    found = look(replace(run, contamination=ContaminationCheck(against=(file,), mode="report")), tmp_path)
    assert (found["contaminated"], found["found"]) == (hits, hits)
    if hits:
        assert found["examples"][0]["kind"] == "run" and found["examples"][0]["run"] == " ".join(words)
        assert f"shares the run of 8 words {' '.join(words)!r} with {file}, line 1" in contamination.sentence(found)


def test_a_near_duplicate_in_a_file(tmp_path):
    rows = questions(length=40)
    words = training(on(rows))[0].split()
    words[20] = "zebra"  # 3 of 38 runs of three words change: 35 of 41 are shared
    file = written(tmp_path / "eval.jsonl", " ".join(words))
    run = on(rows, against=(file,), matching=Matching(n=0))
    said = refused(run, tmp_path)
    assert f"is nearly the same (similarity 0.85) as {file}, line 1: {' '.join(words)[:97]!r}"[:-1] + "...'" in said
    strict = replace(run.contamination, matching=Matching(n=0, near=0.9))
    assert look(replace(run, contamination=strict), tmp_path)["contaminated"] == 0


def alike(change: str) -> list[dict[str, str]]:
    """Pairs of rows, one of which the split holds out and the other not, as ``change`` makes the second from the first."""
    rows = questions(1, 40)
    for q in questions(60, 40, seed=3):
        other = q["prompt"].upper() if change == "case" else q["prompt"] + f" {change}"
        rows += [q | {"prompt": q["prompt"] + (" 7" if change.isdecimal() else "")}, {"prompt": other, "answer": "yes"}]
    return rows


@pytest.mark.parametrize(("change", "kind"), [("case", "same"), ("please", "near"), ("8", None)])
def test_held_out_rows_that_training_rows_repeat(tmp_path, change, kind):
    found = look(on(alike(change), mode="report"), tmp_path)
    assert (found["contaminated"] > 5) == (kind is not None)
    assert {e["kind"] for e in found["examples"]} == ({kind} if kind else set())
    if kind:
        said = refused(on(alike(change)), tmp_path / "none")
        assert "the held-out task 'rows/rows/1/" in said and "'assay curate IN OUT --against HELD_OUT.jsonl'" in said


class Leaky(SortDigits):
    """Held-out tasks that are training tasks."""

    def task(self, arm, level, split, index):
        return super().task(arm, level, "train", index)


def test_a_source_without_end_is_sampled_and_held_to_its_split(tmp_path):
    def run(tasks):
        return replace(on(questions()), tasks=tasks, evaluation=Evaluation(final_per_level=64), stages=(WarmUp(steps=1),))

    found = look(run(SortDigits(levels=(3, 4))), tmp_path)
    assert (found["prompts"], found["whole"], found["sample"], found["contaminated"]) == (32, False, 16, 0)
    assert overlap(tmp_path) == "0 of 32 training prompts, the first 16 of each level, match 128 evaluation items"
    said = refused(run(Leaky(levels=(3, 4))), tmp_path / "none")
    assert said.startswith("32 of 32 training prompts contain 32 of 128 evaluation items")
    both = run(TaskMixture(name="both", sources=(Rows(questions(), name="mine"), SortDigits(levels=(3,)))))
    found = look(both, tmp_path)
    assert found["prompts"] == 16 + both.tasks.source("mine").size("mine", 1, "train") and not found["whole"]


def test_bases_and_preferences_are_training_too(tmp_path):
    rows, base = questions(), questions(seed=9)
    file = written(tmp_path / "eval.jsonl", training(on(base))[0])
    run = on(rows, against=(file,))
    (tmp_path / "alone").mkdir()
    assert look(run, tmp_path / "alone")["contaminated"] == 0
    built = replace(run, model=Built(run=replace(on(base), name="first")))
    assert "base 'first', task 'rows/rows/1/" in refused(built, tmp_path)
    row = {"prompt": training(on(base))[0], "chosen": "a", "rejected": "b"}
    preferred = replace(run, stages=(Prefer(data=[row], steps=1, batch=1),))
    assert "Prefer.data, row 1 is the same as" in refused(preferred, tmp_path)
    assert look(replace(preferred, contamination=ContaminationCheck()), tmp_path)["prompts"] == 1


@pytest.mark.parametrize(
    ("name", "text", "error", "words"),
    [
        ("eval.jsonl", "", DataError, "holds no rows"),
        ("eval.jsonl", "\n\n", DataError, "holds no rows"),
        ("eval.jsonl", '{"answer": "4"}\n', DataError, "line 1: no question"),
        ("eval.jsonl", "{", DataError, "line 1: not JSON"),
        ("eval.xlsx", "a,b", ConfigError, "rows are read from"),
        ("missing.jsonl", None, ConfigError, "does not exist"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, error, words):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=words):
        look(on(questions(), against=(str(tmp_path / name),)), tmp_path)


def test_settings_that_mean_nothing(tmp_path):
    with pytest.raises(UnknownNameError, match=r"refuse"):
        ContaminationCheck(mode="refus")
    with pytest.raises(ConfigError, match=r"sample=0"):
        ContaminationCheck(sample=0)
    with pytest.raises(ConfigError, match=r"nothing would be looked for"):
        look(on(questions(), against=("x.jsonl",), mode="off"), tmp_path)
    assert look(on(alike("case"), mode="off"), tmp_path) == {"mode": "off"}
    assert overlap(tmp_path) == "nobody looked whether training prompts contain evaluation items"


def test_without_the_library_near_duplicates_of_rows_are_not_looked_for_and_the_record_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(contamination, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "rensa", None)
    found = look(on(alike("please")), tmp_path)
    assert not found["near"] and found["contaminated"] == 0
    assert re.match(r"\d+ held-out rows .* pip install 'assay-rl\[curate\]'", contamination.describe_unsearched(found))
    assert not contamination.describe_unsearched({**found, "unsearched": 0}) and not contamination.describe_unsearched(
        {"mode": "off"}
    )
    assert overlap(tmp_path).endswith("evaluation items (near-duplicates were not looked for)")
    file = written(tmp_path / "eval.jsonl", "one two three")
    with pytest.raises(MissingExtraError, match=r"assay-rl\[curate\]"):
        look(on(questions(), against=(file,)), tmp_path)
    assert look(on(questions(), against=(file,), matching=Matching(near=0)), tmp_path)["items"] > 1


def test_whatever_model_learns_its_prompts_are_looked_at(tmp_path):
    """Of transformers' families, and with an adapter, as of assay's own."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 200}
    model = random_model("gpt2", {**sizes, "n_positions": 200})
    save_model(model, tmp_path / "gpt2")
    save_model(model.with_adapter(Lora(rank=2)), tmp_path / "adapter")
    rows = questions()
    for name in ("gpt2", "adapter"):
        run = replace(on(rows), model=Folder(str(tmp_path / name)))
        named = written(tmp_path / "items.jsonl", training(run)[0])
        run = replace(run, contamination=ContaminationCheck(against=(named,)))
        with pytest.raises(DataError, match=r"1 of \d+ training prompts contain 1 of"):
            train(run, tmp_path / f"run-{name}")
        allowed = replace(run, contamination=replace(run.contamination, mode="report"))
        train(allowed, tmp_path / f"run-{name}")
        assert "1 of" in overlap(tmp_path / f"run-{name}")


def test_train_refuses_and_leaves_the_folder_free_then_trains_when_told_to(tmp_path, capsys):
    rows = questions(12, 6)
    prompt = training(on(rows))[0]
    file, folder = written(tmp_path / "eval.jsonl", prompt, "unlike"), tmp_path / "run"
    with pytest.raises(DataError, match=r"contain 1 of \d+ evaluation items"):
        train(on(rows, against=(file,)), folder)
    assert not (folder / "run.toml").exists()
    done = train(on(rows, against=(file,), mode="report"), folder)
    assert done.finished and "contamination: 1 of " in capsys.readouterr().err
    view = read_run(folder)
    (event,) = [e for e in view.events if e.kind == "contamination"]
    assert prompt in event.message and "allowed by Run.contamination.mode='report'" in event.message
    assert "training prompts match 1 of" in view.overlap and view.overlap.endswith("; allowed by Run.contamination.mode='report'")


def test_a_resume_looks_again_only_where_something_changed(tmp_path, monkeypatch):
    rows = questions(12, 6)
    file, folder = written(tmp_path / "eval.jsonl", "unlike", "anything"), tmp_path / "run"
    train(on(rows, against=(file,)), folder)
    times, looked = [], contamination._find_overlaps
    monkeypatch.setattr(contamination, "_find_overlaps", lambda run: times.append(1) or looked(run))
    before = (folder / "contamination.json").read_text()
    assert resume(folder, steps=2).step == 2 and not times
    assert (folder / "contamination.json").read_text() == before
    written(Path(file), "unlike", "anything", "more of it")
    assert resume(folder, steps=3).step == 3 and len(times) == 1
    assert json.loads((folder / "contamination.json").read_text())["sources"][1]["items"] == 3
    written(Path(file), training(on(rows))[0])
    with pytest.raises(DataError, match="is the same as"):
        resume(folder, steps=4)
    written(Path(file), "unlike", "anything", "more of it")
    assert resume(folder, steps=4).step == 4


@dataclass(frozen=True)
class WithTools(Rows):
    """Rows whose tasks declare a long list of tools, the same for all."""

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        made = super().task(arm, level, split, index)
        schemas = [{"name": f"tool_{word}", "description": " ".join(WORDS)} for word in WORDS]
        return replace(made, public=FrozenMap({**made.public, "tools": schemas}))


def test_tools_that_tasks_declare_are_no_part_of_what_they_ask(tmp_path: Path) -> None:
    run = on(questions(), matching=Matching(near=0.7))
    told = replace(run, tasks=WithTools(questions(), test_share=0.2))
    for at, of in enumerate((run, told)):
        (tmp_path / str(at)).mkdir()
        assert look(of, tmp_path / str(at))["contaminated"] == 0


def test_rows_of_ten_templates_are_told_apart_by_what_they_ask(tmp_path: Path) -> None:
    rows = [{"prompt": p, "answer": "yes"} for p, _ in in_templates()]
    others = [p for p, _ in in_templates(100, seed=7, but=[t for _, t in in_templates()])]
    file = written(tmp_path / "eval.jsonl", *others, "What is 12+30?", "Name the capital of Ghana.")
    run = on(rows, against=(file,))
    found = look(run, tmp_path)
    assert (found["prompts"], found["contaminated"]) == (run.tasks.size("rows", 1, "train"), 0) and found["prompts"] > 350
    held = [run.tasks.task("rows", 1, "test", i).public["prompt"] for i in range(20)]
    again = on([*rows, *({"prompt": p + " Thanks.", "answer": "yes"} for p in held)], mode="report")
    trained = sum(prompt.endswith("Thanks.") for prompt in training(again))
    assert 0.7 * trained <= look(again, tmp_path)["contaminated"] <= trained, "and what repeats a held-out row is found"


def test_passages_with_several_questions_are_no_repetitions(tmp_path: Path) -> None:
    passages = [q["prompt"] for q in questions(30, 60, seed=4)]
    asked = ("who built the lamp", "where does the river end", "why is bread so dear today", "when did music begin")
    rows = [{"prompt": f"{passage} {ask}?", "answer": "yes"} for passage in passages for ask in asked]
    assert look(on(rows), tmp_path)["contaminated"] == 0


def test_a_short_item_that_stands_whole_in_a_prompt_is_told(tmp_path: Path) -> None:
    file = written(tmp_path / "eval.jsonl", "Compute $\\sin 60^\\circ$.", "unlike")
    texts = (f"**Compute** \\(\\sin 60^{{\\circ}}\\)\nThink step by step.{' ' * n}" for n in count())
    tried = ([{"prompt": text, "answer": "yes"}, *questions()] for text in texts)
    rows = next(rows for rows in tried if rows[0]["prompt"] in training(on(rows)))
    assert f"holds the whole of {file}, line 1" in refused(on(rows, against=(file,)), tmp_path)
    changed = written(tmp_path / "changed.jsonl", "Compute $\\sin 75^\\circ$.")
    assert look(on(rows, against=(changed,)), tmp_path)["contaminated"] == 0
    variants = on(rows, against=(changed,), matching=Matching(variants=True), mode="report")
    assert look(variants, tmp_path)["contaminated"] == 1


def test_what_the_starting_weights_were_trained_on_is_no_held_out_row(tmp_path: Path) -> None:
    """A run, a run that began with it, and the model that the first one began with, which knows nothing yet."""
    rows = questions()
    first, second = tmp_path / "first", tmp_path / "second"
    seen = [Rows(rows, test_share=0).task("rows", 1, "train", i).id for i in range(39)]  # all but one
    for folder, model in ((first, ""), (second, f'[model]\npath = "{first}/model"\n')):
        folder.mkdir()
        (folder / "run.toml").write_text(model)
    (first / "row_history.jsonl").write_text(json.dumps({"step": 1, "id": seen}) + '\n{"step": 2, "id": ["ro')
    plain = on(rows)
    held = [plain.tasks.task("rows", 1, "test", i).id for i in range(plain.tasks.size("rows", 1, "test"))]
    both = len(set(held) & set(seen))
    for model in (first, second, first / "model"):
        words = refused(replace(plain, model=Folder(str(model))), tmp_path)
        assert words.startswith(
            f"{both} of {40 - len(held) + both} training prompts contain {both} of {len(held)} evaluation items"
        )
        assert (
            f"a row that trained the model, in {first}, is the same as the held-out task 'rows/rows/1/" in words
            and "Hold out what that run did not train on" in words
        )
    for name in "ab":
        (tmp_path / name).mkdir()
    assert look(replace(plain, model=Folder(str(first / "start"))), tmp_path / "a")["contaminated"] == 0
    theirs = replace(plain, tasks=Rows([*rows, *questions(9, seed=7)], tests=9), model=Folder(str(first)))
    assert look(theirs, tmp_path / "b")["contaminated"] == 0


def test_what_was_not_looked_for_is_said_once_in_a_folder_of_runs(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, found in ((one, {"unsearched": 3}), (other, {"items": 3})):
        folder.mkdir()
        (folder / "contamination.json").write_text(json.dumps(found))
    assert contamination.told_before(other) and not contamination.told_before(one)

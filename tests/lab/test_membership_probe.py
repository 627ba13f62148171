"""A model that knows some items by heart, and one that does not: what the scores say of both."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hub_cases import hub_model

from assay.cli import main
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.rollout import Sampling
from assay.core.task import Message
from assay.measure import mean_log_prob, min_k_prob, self_critique
from assay.runtime import DecoderShape, LearnerSettings, Lora, Muon, load_model, save_model
from assay.runtime.models.likelihood import LikelihoodReader
from assay.select import MembershipProbe, membership
from assay.select.membership_probe import grade_answers
from assay.tasks import Rows
from assay.train.driver import train
from assay.train.models import Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from evidence import contamination_page
from evidence.cells.contamination import contamination_cell
from evidence.contamination_page import CELLS, SCORES, SEEDS, failures, items, row_of

RNG = Random(1)
FACTS = [{"prompt": f">{n:04d}S", "answer": f"{RNG.randrange(100):02d}"} for n in RNG.sample(range(10**4), 64)]
SOURCE = Rows(FACTS, name="facts", test_share=0.5)
SEEN, FRESH = ([SOURCE.task("facts", 1, s, i) for i in range(SOURCE.size("facts", 1, s))] for s in ("train", "test"))
SHAPE = DecoderShape(
    hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=32
)
ASKED = {"retry": "{question}", "max_new_tokens": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A model that was shown 32 facts a hundred times each; its start was not."""
    folder = tmp_path_factory.mktemp("membership") / "run"
    stage = WarmUp(
        steps=100, batch=len(SEEN), demonstrations=len(SEEN), noise=0.0, learner=LearnerSettings(optimizer=Muon(lr=1e-2))
    )
    whole = Run(
        model=Scratch(shape=SHAPE, alphabet="0123456789S>"),
        tasks=SOURCE,
        stages=(stage,),
        sampling=Sampling(max_new_tokens=4),
        evaluation=Evaluation(every=0, final_per_level=4),
        prove_weights=False,
    )
    train(whole, folder)
    return folder


def test_what_is_known_by_heart_is_told_from_what_is_not(run):
    found = membership(MembershipProbe(model=run, **ASKED), SEEN, FRESH, SOURCE.verifier())
    assert (found.items, found.fresh) == (len(SEEN), len(FRESH)) and set(found.scores) == set(SCORES)
    assert found.scores["answer"].low > 0.9 and found.scores["answer_min_k"].low > 0.9 and found.scores["certainty"].low > 0.5
    assert found.accuracy > 0.9 and found.fresh_accuracy < 0.2 and found.gap.low > 0.6
    before = membership(MembershipProbe(model=run / "start", **ASKED), SEEN, FRESH, SOURCE.verifier())
    assert before.scores["answer"].low < 0.5 < before.scores["answer"].high and before.accuracy < 0.2
    assert before.gap.low < 0 < before.gap.high


def test_scores_are_those_of_the_readings(run):
    model = load_model(run / "model")
    tokenizer, reader = model.tokenizer, LikelihoodReader(model)
    told = MembershipProbe(model=run, **ASKED)(SEEN[:3])
    for i, task in enumerate(SEEN[:3]):
        prompt = tokenizer.render(task.public_view().messages)
        gold = [*tokenizer.encode(str(task.private["answer"])), tokenizer.eos]
        whole = reader.read([np.concatenate([prompt, gold]).astype(np.int32)])[0].logp
        answer = whole[len(prompt) - 1 :]
        assert told.scores["answer"][i] == pytest.approx(mean_log_prob(answer), abs=1e-5)
        assert told.scores["answer_min_k"][i] == pytest.approx(min_k_prob(answer), abs=1e-5)
        assert told.scores["prompt"][i] == pytest.approx(mean_log_prob(whole[: len(prompt) - 1]), abs=1e-5)
        said = [*tokenizer.encode(told.answers[i]), *([tokenizer.eos] if told.finished[i] else [])]
        first = reader.read([np.concatenate([prompt, said]).astype(np.int32)])[0].entropy[len(prompt) - 1 :]
        assert told.scores["certainty"][i] == pytest.approx(-first.mean(), abs=1e-5)
        again = tokenizer.render(
            [*task.public_view().messages, Message("assistant", told.answers[i]), Message("user", task.public["prompt"])]
        )
        assert 0.0 <= told.scores["self_critique"][i] <= 1.0 and len(again) > len(prompt)
    repeated = MembershipProbe(model=run, **ASKED)(SEEN[:3])
    assert all((told.scores[n] == repeated.scores[n]).all() for n in told.scores) and told.answers == repeated.answers
    assert self_critique(first, first) == 1.0


def test_items_without_a_gold_have_no_scores_of_it_and_that_is_said(run):
    bare = [replace(task, private=type(task.private)({})) for task in SEEN[:3]]
    told = MembershipProbe(model=run, **ASKED)([SEEN[3], *bare])
    assert set(told.scores) == {"self_critique", "certainty", "prompt", "prompt_min_k"}
    why = f"task {bare[0].id!r} has no answer that is text or a number"
    assert dict(told.missing) == dict.fromkeys(("answer", "answer_min_k", "zlib"), why)
    assert not MembershipProbe(model=run, **ASKED)(SEEN[:3]).missing
    short = Rows([{"prompt": "1", "answer": "1"}], test_share=0.0).task("rows", 1, "train", 0)
    told = MembershipProbe(model=run, **ASKED)([SEEN[0], short])
    assert set(told.missing) == {"prompt", "prompt_min_k", "zlib"} and set(told.scores) == set(SCORES) - set(told.missing)
    assert told.missing["zlib"] == f"the prompt of task {short.id!r} is a single token"


class Broken:
    """A verifier that fails on some answers."""

    def __init__(self, sparing: int) -> None:
        self.sparing = sparing

    def __call__(self, task, rollout):
        if int(rollout.id) >= self.sparing:
            raise RuntimeError("broken")
        return SOURCE.verifier()(task, rollout)


@pytest.mark.slow
def test_answers_without_a_verdict_are_said(run):
    probe = MembershipProbe(model=run, **ASKED)
    found = membership(probe, SEEN[:4], FRESH[:4], SOURCE.verifier(), Broken(3))
    assert found.missing == {"verdicts on fresh ones": "the verifier failed on 1 of 4 answers, which are left out"}
    with pytest.raises(RewardError, match="broken"):
        membership(probe, SEEN[:4], FRESH[:4], Broken(0))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gpt2", "gemma2", "an adapter"])
def test_any_model_is_asked(family, tmp_path):
    model = hub_model("gemma2" if family == "an adapter" else family)
    save_model(model.with_adapter(Lora(rank=2)) if family == "an adapter" else model, tmp_path / "m")
    found = membership(MembershipProbe(model=tmp_path / "m", **ASKED), SEEN[:4], FRESH[:4], SOURCE.verifier())
    assert set(found.scores) == set(SCORES) and not found.missing and found.accuracy == 0.0
    told, task = MembershipProbe(model=tmp_path / "m", **ASKED)(SEEN[:1]), SEEN[0]
    prompt = model.tokenizer.render(task.public_view().messages)
    gold = [*model.tokenizer.encode(str(task.private["answer"])), model.tokenizer.eos]
    (read,) = LikelihoodReader(model).read([np.concatenate([prompt, gold]).astype(np.int32)])
    assert told.scores["answer"][0] == pytest.approx(mean_log_prob(read.logp[len(prompt) - 1 :]), abs=1e-4)


def test_what_is_refused(run):
    with pytest.raises(DataError, match=r"2 items are also fresh ones, such as 'facts/facts/1"):
        membership(MembershipProbe(model=run, **ASKED), SEEN, [*FRESH, *SEEN[:2]], SOURCE.verifier())
    with pytest.raises(ConfigError, match="max_new_tokens=0"):
        MembershipProbe(model=run, max_new_tokens=0)
    with pytest.raises(ConfigError, match=r"use \{question\} and \{answer\}"):
        MembershipProbe(model=run, retry="{prompt}")
    with pytest.raises(DataError, match=r"task 'facts/facts/1/.*tokenizer's alphabet lacks"):
        MembershipProbe(model=run)(SEEN[:1])  # the usual words
    long = Rows([{"prompt": "1" * 31 + "S", "answer": "1"}], test_share=0.0).task("rows", 1, "train", 0)
    with pytest.raises(DataError, match="32 tokens of prompt leave no room for an answer in the context of 32"):
        MembershipProbe(model=run, **ASKED)([long])
    odd = Rows([{"prompt": "1S", "answer": "é"}], test_share=0.0).task("rows", 1, "train", 0)
    with pytest.raises(DataError, match=r"its answer: .*lacks 'é'"):
        MembershipProbe(model=run, **ASKED)([odd])


def test_an_answer_that_was_cut_off_is_not_right(run):
    told = MembershipProbe(model=run, **ASKED)(SEEN[:4])
    assert grade_answers(SOURCE.verifier(), SEEN[:4], replace(told, finished=(False,) * 4)).sum() == 0
    assert grade_answers(SOURCE.verifier(), SEEN[:4], told).sum() == 4


# ---- the command ------------------------------------------------------------------------------------------------------


def files(folder: Path) -> tuple[str, str]:
    for name, tasks in (("seen", SEEN), ("fresh", FRESH)):
        rows = [{"question": t.public["prompt"], "final_answer": t.private["answer"], "level": "hard"} for t in tasks]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / "seen.jsonl"), str(folder / "fresh.jsonl")


def test_the_command_prints_areas_and_the_difference(run, tmp_path, capsys):
    words = ["contamination", str(run), *files(tmp_path), "--retry", "{question}", "--max-new-tokens", "4"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "answer_min_k" in said and "members score higher" in said and f"of {len(SEEN)}" in said
    assert main([*words, "--json", "--count", "20", "--verifier", "numeric"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["items"], found["fresh"]) == (20, 20) and found["gap"]["low"] > 0.4 and found["scores"]["answer"]["value"] > 0.9


def test_the_command_generates_fresh_tasks_of_a_family(run, tmp_path, capsys):
    words = ["contamination", str(run), files(tmp_path)[0], "sort", "--retry", "{question}", "--max-new-tokens", "4"]
    assert main([*words, "--levels", "3", "4", "--count", "9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fresh"] == 9
    assert main([*words, "--levels", "77"]) == 2 and "no level 77" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--count", "1"], "at least 2 items"),
        (["--set", "relative=0.1"], "name it: --verifier"),
        (["--retry", "{x}"], "cannot be filled in"),
        (["--question", "nothing"], "line 1: no question: none of nothing"),
    ],
)
def test_the_command_refuses(run, tmp_path, capsys, words, says):
    assert main(["contamination", str(run), *files(tmp_path), *words]) == 2
    assert says in capsys.readouterr().err


# ---- the study --------------------------------------------------------------------------------------------------------


def test_cells_train_on_members_alone_and_hold_the_others_out():
    cell = contamination_cell("sort-sft-4", 1)
    members, others = (cell.truth.size("sort", 1, split) for split in ("train", "test"))
    assert members + others == 512 and 200 < members < 312
    (stage,) = cell.run.stages
    assert stage.demonstrations == members and stage.steps == -(-4 * members // 64) and cell.run.tasks == items("sort", 1)
    prompts = [
        {cell.truth.task("sort", 1, s, i).public["prompt"] for i in range(n)} for s, n in (("train", members), ("test", others))
    ]
    assert len(prompts[0]) == members and not prompts[0] & prompts[1]
    (rl,) = contamination_cell("sort-rl-4", 1, steps=2).run.stages
    assert isinstance(rl, Reinforce) and rl.steps == 2
    task = items("facts", 0).task("facts", 1, "train", 0)
    assert len(task.private["answer"]) == 4 and items("facts", 0) == items("facts", 0) != items("facts", 1)
    for wrong in ("sort-sft", "sort-dpo-4", "sort-sft-0", "words-sft-4"):
        with pytest.raises(ConfigError, match="unknown"):
            contamination_cell(wrong, 0)


def told(shift: float, n: int = 200, seed: int = 0) -> dict:
    rng = np.random.default_rng([seed, int(100 * shift)])
    members = {s: (rng.normal(size=n) + shift).tolist() for s in SCORES}
    others = {s: rng.normal(size=n).tolist() for s in SCORES}
    return {
        "members": {"scores": members, "right": [1.0] * n},
        "others": {"scores": others, "right": [1.0] * (n // 2) + [0.0] * (n - n // 2)},
    }


def test_the_page_says_what_was_found_and_what_was_missed():
    rows = [row_of(name, [told(0.0, seed=s) for s in SEEDS]) for name in ("facts", "sort")]
    rows += [row_of(name, [told(3.0 if name == CELLS[3] else 0.02, seed=s) for s in SEEDS]) for name in CELLS]
    assert failures(rows) == []
    assert rows[5].telling == list(SCORES) and rows[5].gap.value == pytest.approx(0.5)
    record = {"cpu_seconds": 15.0, "base_cpu_seconds": 60.0, "seed": 0, "machine": "a machine"}
    page = contamination_page._page(rows, [record] * 4)
    assert "Both hold." in page and "about 2 CPU-minutes" in page and "| facts: none, the base | " in page
    assert "| facts: supervised, 64× | **.98 [.9" in page and "- zlib: above .5 on facts: supervised, 64×" in page
    assert contamination_page._plain(rows[5])["gap"][0] == 0.5
    rows[0] = row_of("facts", [told(1.0, seed=s) for s in SEEDS])
    rows[5] = row_of(CELLS[3], [told(0.0, seed=s) for s in SEEDS])
    wrong = failures(rows)
    assert (
        len(wrong) == len(SCORES) + 1
        and "which the models never saw" in wrong[0]
        and wrong[-1].endswith("though each was seen 64 times")
    )
    assert "Not met: " in contamination_page._page(rows, [record])
    clean = [row_of(name, [told(0.0, seed=7)]) for name in ("facts", "sort", *CELLS)]
    flat = [replace(r, gap=replace(r.gap, low=-0.1), scores={n: replace(a, low=0.4) for n, a in r.scores.items()}) for r in clean]
    quiet = contamination_page._page(flat, [record])
    assert "nowhere above .5 beyond its interval" in quiet and "The difference is nowhere above 0." in quiet


def test_models_are_asked_once(run, tmp_path, monkeypatch):
    asked, kept = [], contamination_page._ask_probe
    monkeypatch.setattr(contamination_page, "_ask_probe", lambda *args: asked.append(args) or kept(*args))
    monkeypatch.setattr(contamination_page, "items", lambda kind, seed: SOURCE)
    (tmp_path / "facts-sft-1-0").symlink_to(run)
    first = contamination_page._ask_model(tmp_path, "facts-sft-1", 0, "model", "digest")
    assert contamination_page._ask_model(tmp_path, "facts-sft-1", 0, "model", "digest") == first and len(asked) == 2
    assert sum(first["members"]["right"]) > sum(first["others"]["right"])
    contamination_page._ask_model(tmp_path, "facts-sft-1", 0, "model", "another digest")
    assert len(asked) == 4

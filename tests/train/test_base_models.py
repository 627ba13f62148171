"""Runs of a base model whose tokenizer puts a BOS in front: every stage, evaluation, samples and the export write it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hub_cases import hub_model
from tiny_runs import warm_up
from tokenizers import AddedToken, Tokenizer, processors
from transformers import AutoTokenizer

from assay.core.batch import Batch
from assay.core.errors import DataError
from assay.core.protocols import Request
from assay.core.rollout import Sampling
from assay.objective.methods import dpo
from assay.publish import export
from assay.runtime import NativeEngine, TorchLearner, char_tokenizer, load_model, save_model
from assay.runtime.models import exported as files
from assay.runtime.text.tokenizer import HubTokenizer
from assay.train import Evaluation, Folder, Imitate, Policy, Prefer, Reinforce, Run, train
from assay_tasks import SortDigits

BOS = 2


def bos_tokenizer() -> Tokenizer:
    """One id per character, with ``<bos>`` in front of plain text."""
    plan = json.loads(char_tokenizer("".join(map(chr, range(32, 127))) + "\n").backend.to_str())
    for token, index in plan["model"]["vocab"].items():
        plan["model"]["vocab"][token] = index + (index >= BOS)
    plan["model"]["vocab"]["<bos>"] = BOS
    made = Tokenizer.from_str(json.dumps(plan))
    made.add_special_tokens([AddedToken("<bos>", special=True, normalized=False)])
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", BOS)])
    return made


@pytest.fixture
def base(tmp_path) -> Path:
    """A folder without chat template, as transformers writes it."""
    model = hub_model("llama")
    save_model(model, tmp_path / "base")
    plain = HubTokenizer(bos_tokenizer(), eos=1, config={"bos_token": "<bos>"})
    plain.template = None
    plain.save(tmp_path / "base")
    return tmp_path / "base"


PAIRS = [{"prompt": f"S{i}1>", "chosen": f"1{i}", "rejected": f"{i}1"} for i in range(2, 6)]
STAGES = {
    "WarmUp": warm_up(steps=1, batch=4),
    "Imitate": Imitate(steps=1, batch=4, data=[{"prompt": p["prompt"], "completion": p["chosen"]} for p in PAIRS]),
    "Prefer": Prefer(steps=1, batch=4, data=PAIRS, objective=dpo()),
    "Reinforce": Reinforce(steps=1, groups=2, group_size=2),
}


def run_of(base: Path, *stages: Any) -> Run:
    return Run(
        model=Folder(str(base)),
        tasks=SortDigits(levels=(1, 2)),
        stages=stages,
        sampling=Sampling(max_new_tokens=4),
        evaluation=Evaluation(every=0, final_per_level=1),
    )


@pytest.fixture
def firsts(monkeypatch) -> dict[str, list[int]]:
    """First ids of what the engine is asked, and of the rows that are learned from."""
    found: dict[str, list[int]] = {"asked": [], "learned": []}
    one, generate, step = NativeEngine.generate, NativeEngine.generate_all, TorchLearner.step

    async def asked_one(self: NativeEngine, request: Request, *rest: Any, **others: Any) -> Any:
        found["asked"].append(int(request.prompt[0]))
        return await one(self, request, *rest, **others)

    async def asked(self: NativeEngine, requests: Sequence[Request]) -> Any:
        found["asked"] += [int(request.prompt[0]) for request in requests]
        return await generate(self, requests)

    def learned(self: TorchLearner, batch: Batch, *rest: Any) -> Any:
        found["learned"] += batch.token("ids")[batch.offsets[:-1]].tolist()
        return step(self, batch, *rest)

    monkeypatch.setattr(NativeEngine, "generate", asked_one)
    monkeypatch.setattr(NativeEngine, "generate_all", asked)
    monkeypatch.setattr(TorchLearner, "step", learned)
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_rows_and_prompts_of_every_stage_begin_with_it(stage, base, firsts, tmp_path):
    train(run_of(base, STAGES[stage]), tmp_path / "run")
    assert len(firsts["learned"]) >= 4 and set(firsts["learned"]) == {BOS}
    assert firsts["asked"] and set(firsts["asked"]) == {BOS}
    firsts["asked"].clear()
    policy = Policy(tmp_path / "run")
    policy.sample("S31>", sampling=Sampling(max_new_tokens=2))
    policy.evaluate(SortDigits(levels=(1,)), per_level=2, n=0)
    assert firsts["asked"] == [BOS] * 3


def test_an_export_encodes_prompts_as_the_run_did(base, tmp_path, monkeypatch):
    train(run_of(base, STAGES["WarmUp"]), tmp_path / "run")
    made = export(tmp_path / "run", tmp_path / "out")
    assert made.reloaded is not None and made.reloaded.texts
    theirs: Any = AutoTokenizer.from_pretrained(tmp_path / "out")
    ours = load_model(tmp_path / "out").tokenizer
    assert theirs("S31>").input_ids == [BOS, *ours.encode("S31>").tolist()]
    assert json.loads((tmp_path / "out" / "generation_config.json").read_text())["bos_token_id"] == BOS
    real = files.write_exported

    def without(model: Any, folder: Path, **options: Any) -> None:
        real(model, folder, **options)
        plan = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps(plan | {"post_processor": None}))

    monkeypatch.setattr(files, "write_exported", without)
    with pytest.raises(DataError, match=r"reads '.*' otherwise than the run's: token 0 of"):
        export(tmp_path / "run", tmp_path / "other")


def test_the_start_of_a_run_keeps_it(base, tmp_path):
    train(replace(run_of(base, STAGES["WarmUp"]), checkpoint_every=1), tmp_path / "run")
    for part in ("start", "model"):
        assert load_model(tmp_path / "run" / part).tokenizer.bos_ids.tolist() == [BOS]

"""The page on losses in other trainers: its code, run; TRL with a tiny model, verl's registered function alone."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from assay.objective import evaluate
from assay.objective.padded_loss import torch_loss

PAGE = Path(__file__).parents[2] / "docs" / "add" / "trl.md"


def code(heading: str) -> dict[str, Any]:
    """What the Python blocks under a heading define."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    (found,) = [s for s in section if s.startswith(heading)]
    names: dict[str, Any] = {"torch": torch, "torch_loss": torch_loss, "__name__": __name__}
    if heading != "A loop of your own":
        names |= {k: v for k, v in code("A loop of your own").items() if not k.startswith("__")}
        exec("from assay.core import Counts", names)
    for block in re.findall(r"```python\n(.*?)```", found, re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def some_batch() -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(3)
    mask = np.arange(4) < np.array([4, 2, 3, 1])[:, None]
    return {
        "mask": torch.tensor(mask),
        "logp_old": torch.tensor(-np.abs(rng.normal(size=(4, 4)))),
        "rewards": torch.tensor([1.0, 0.0, 0.5, 0.25]),
        "group_id": torch.tensor([0, 0, 1, 1]),
    }


class Moves(torch.nn.Module):
    """A policy that is one number away from the old one."""

    def __init__(self) -> None:
        super().__init__()
        self.by = torch.nn.Parameter(torch.tensor(0.1, dtype=torch.float64))

    def forward(self, batch: dict[str, torch.Tensor], rows: Any = slice(None)) -> torch.Tensor:
        return batch["logp_old"][rows] + self.by * batch["mask"][rows]


def test_a_loop_of_your_own() -> None:
    names, batch = code("A loop of your own"), some_batch()
    whole, parts = Moves(), Moves()
    metrics = names["step"](whole, torch.optim.SGD(whole.parameters(), lr=0.5), batch)
    names["step_in_parts"](parts, torch.optim.SGD(parts.parameters(), lr=0.5), batch, [[0, 3], [1], [2]])
    inputs = {k: v.numpy() for k, v in batch.items()}
    inputs |= {"logp_new": inputs["logp_old"] + 0.1 * inputs["mask"]}
    found = evaluate("cispo", inputs, cap=5.0)
    assert whole.by.item() == pytest.approx(0.1 - 0.5 * found.gradient["logp_new"].sum(), abs=1e-12)
    assert parts.by.item() == pytest.approx(whole.by.item(), abs=1e-12)
    assert metrics["policy/kl_old"] == pytest.approx(found.metrics["policy/kl_old"])


# ---- verl's signature -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["cispo", "dapo", "gspo", "dr_grpo", "sapo", "reinforce"])
def test_a_policy_loss_of_verls_signature(method: str) -> None:
    settings = {"length": 8} if method == "dr_grpo" else {}
    compute, batch = code("verl")["policy_loss"](method, **settings), some_batch()
    mask, old = batch["mask"], batch["logp_old"]
    advantages = torch.tensor([1.0, -0.5, 0.75, -0.25], dtype=torch.float64)[:, None] * mask
    weights = torch.tensor([[0.5, 1.0, 2.0, 0.0]], dtype=torch.float64).expand(4, 4)

    def gradient(parts: list[Any], config: Any, factor: Any = None) -> np.ndarray:
        live = (old + 0.1).requires_grad_(True)
        for rows in parts:
            loss, metrics = compute(
                old[rows],
                live[rows],
                advantages[rows],
                mask[rows],
                "token-mean",
                config,
                None if factor is None else factor[rows],
            )
            loss.backward()
            assert "actor/loss/policy" in metrics
        return live.grad.numpy()

    def ours(a: torch.Tensor) -> np.ndarray:
        inputs = {"mask": mask.numpy(), "logp_new": (old + 0.1).numpy(), "logp_old": old.numpy(), "advantages": a.numpy()}
        if method == "reinforce":
            del inputs["logp_old"]
        return evaluate(method, inputs, **settings).gradient["logp_new"]

    whole = SimpleNamespace(global_batch_info={"dp_size": 1, "batch_num_tokens": int(mask.sum()), "global_batch_size": 4})
    alone = SimpleNamespace(global_batch_info={})
    np.testing.assert_allclose(gradient([slice(None)], alone), ours(advantages), atol=1e-12)
    np.testing.assert_allclose(gradient([slice(None)], None), ours(advantages), atol=1e-12)
    np.testing.assert_allclose(gradient([[0, 1], [2], [3]], whole), ours(advantages), atol=1e-12)
    np.testing.assert_allclose(gradient([slice(None)], whole, weights), ours(advantages * weights), atol=1e-12)
    whole.global_batch_info["dp_size"] = 2
    np.testing.assert_allclose(gradient([slice(None)], whole), 2 * ours(advantages), atol=1e-12)


@pytest.mark.evidence
def test_verl_finds_it_under_its_name() -> None:
    algos = pytest.importorskip("verl.trainer.ppo.core_algos", exc_type=ImportError)
    algos.register_policy_loss("assay_cispo")(code("verl")["policy_loss"]("cispo", cap=5.0))
    batch = some_batch()
    live, mask = (batch["logp_old"] + 0.1).requires_grad_(True), batch["mask"].double()
    compute = algos.get_policy_loss_fn("assay_cispo")
    loss, _ = compute(
        batch["logp_old"], live, torch.ones(4, 4).double(), mask, "token-mean", SimpleNamespace(global_batch_info={})
    )
    loss.backward()
    np.testing.assert_allclose(live.grad, -np.exp(0.1) * mask / mask.sum(), atol=1e-7)


# ---- TRL --------------------------------------------------------------------------------------------------------------


def tiny(folder: Path) -> tuple[Any, Any]:
    """A model of two layers, and a tokenizer of single characters."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {c: i for i, c in enumerate(["<pad>", "<eos>", "<unk>", *"0123456789+="])}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = Split("", "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder / "model")  # the reference is loaded from where the model was
    return LlamaForCausalLM.from_pretrained(folder / "model"), tokenizer


def trained(kind: Any, folder: Path, loss_type: str, beta: float = 0.0, **more: Any) -> tuple[torch.Tensor, Any]:
    """All weights after some steps of a trainer."""
    from datasets import Dataset
    from trl import GRPOConfig

    model, tokenizer = tiny(folder)
    args = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        per_device_train_batch_size=4,
        num_generations=4,
        gradient_accumulation_steps=2,
        num_iterations=2,
        max_steps=4,
        max_completion_length=5,
        learning_rate=3e-2,
        logging_steps=1,
        bf16=False,
        seed=7,
        temperature=1.0,
        loss_type=loss_type,
        epsilon=0.2,
        beta=beta,
        scale_rewards="group",
        lr_scheduler_type="constant",
        disable_tqdm=True,
    )

    def reward(completions: list[str], **columns: Any) -> list[float]:
        return [sum(c.isdigit() for c in text) / 5 + 0.1 * text.count("7") for text in completions]

    data = Dataset.from_list([{"prompt": f"{a}+{b}="} for a in range(3) for b in range(4)])
    trainer = kind(model=model, reward_funcs=reward, args=args, train_dataset=data, processing_class=tokenizer, **more)
    trainer.train()
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()]), trainer


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("loss_type", "here", "beta"),
    [
        ("dapo", "Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())", 0.0),
        ("dr_grpo", "Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Constant(length=5))", 0.0),
        ("dapo", "Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token(), terms=(Kl('rk3', coef=0.05),))", 0.05),
        ("sapo", "sapo()", 0.0),
    ],
)
def test_a_trl_trainer_with_our_loss_learns_what_trls_own_does(tmp_path: Path, loss_type: str, here: str, beta: float) -> None:
    """Four optimiser steps, two per generation, two micro-batches each: the weights agree to single precision."""
    trl = pytest.importorskip("trl", exc_type=ImportError)
    from assay.objective.peers import PeerMatch

    objective = PeerMatch(peer="trl", kind="loss", name=loss_type, code=here).objective()
    theirs, _ = trained(trl.GRPOTrainer, tmp_path / "theirs", loss_type, beta)
    mine, trainer = trained(code("TRL")["AssayTrainer"], tmp_path / "mine", loss_type, beta, loss=torch_loss(objective))
    start = torch.cat([p.detach().flatten() for p in tiny(tmp_path)[0].parameters()])
    assert (theirs - start).abs().max() > 0.05
    torch.testing.assert_close(mine, theirs, atol=3e-4, rtol=0)  # Adam makes more of rounding; the weights move by 0.1
    logged = {key for entry in trainer.state.log_history for key in entry}
    assert {"assay/loss/policy", "assay/policy/clip_fraction"} <= logged or loss_type == "sapo"


@pytest.mark.evidence
@pytest.mark.parametrize("method", ["gspo", "cispo", "gmpo", "opsm"])
def test_methods_train_inside_trl(tmp_path: Path, method: str) -> None:
    pytest.importorskip("trl", exc_type=ImportError)
    settings = {"anchor": "old"} if method == "opsm" else {}
    after, _ = trained(code("TRL")["AssayTrainer"], tmp_path, "dapo", loss=torch_loss(method, **settings))
    start = torch.cat([p.detach().flatten() for p in tiny(tmp_path)[0].parameters()])
    assert torch.isfinite(after).all() and (after - start).abs().max() > 1e-3

"""A verifier and a loss of assay inside a trainer of your own, here a loop over transformers.

The reward function has TRL's signature, so `GRPOTrainer(reward_funcs=reward, ...)` takes it as it is.

    python examples/own_trainer.py --steps 20
"""

import torch
import tyro
from transformers import Qwen3Config, Qwen3ForCausalLM

from assay.interop import as_trl
from assay.objective import torch_loss
from assay.verify import ExactMatch

SYMBOLS = "0123456789+="
PAD, GROUP = len(SYMBOLS), 16


def make_model() -> Qwen3ForCausalLM:
    """Two layers with random weights, and one id per symbol."""
    config = Qwen3Config(vocab_size=PAD + 1, pad_token_id=PAD, eos_token_id=None, hidden_size=32, intermediate_size=64)
    config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, config.head_dim = 2, 2, 2, 16
    config.layer_types = ["full_attention"] * 2
    return Qwen3ForCausalLM(config)


def logp_of(model: Qwen3ForCausalLM, ids: torch.Tensor, width: int) -> torch.Tensor:
    """Log-probabilities [B, width] of the last tokens of each row, among the symbols."""
    logits = model(ids).logits[:, -width - 1 : -1, :PAD]
    return torch.log_softmax(logits, -1).gather(-1, ids[:, -width:, None])[..., 0]


def main(steps: int = 20, method: str = "dr_grpo", seed: int = 0) -> None:
    """Train on sums of one digit by a method that needs no second model; `assay methods` lists all."""
    reward = as_trl(ExactMatch(), gold="answer")  # before the model: it may start processes
    torch.manual_seed(seed)
    model, loss_of = make_model(), torch_loss(method)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        pairs = torch.randint(0, 5, (8, 2)).tolist()
        asked = [f"{a}+{b}=" for a, b in pairs for _ in range(GROUP)]
        prompts = torch.tensor([[SYMBOLS.index(c) for c in text] for text in asked])
        with torch.no_grad():
            chances = torch.softmax(model(prompts).logits[:, -1, :PAD], -1)
        ids = torch.cat([prompts, torch.multinomial(chances, 1)], 1)
        said = [SYMBOLS[i] for i in ids[:, -1].tolist()]
        rewards = torch.tensor(reward(asked, said, answer=[str(a + b) for a, b in pairs for _ in range(GROUP)]))
        logp = logp_of(model, ids, 1)
        group = torch.arange(len(asked)) // GROUP
        batch = {"mask": torch.ones_like(logp), "logp_new": logp, "logp_old": logp.detach()}
        loss, _ = loss_of({**batch, "rewards": rewards, "group_id": group})
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(f"step {step}/{steps}  reward {rewards.mean():.3f}")


if __name__ == "__main__":
    tyro.cli(main)

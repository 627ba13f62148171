"""Preferences of sorted digits, and a reward model that is fitted to them."""

from __future__ import annotations

import json
import random
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.runtime import save_model
from assay.scorers import RewardModel
from assay.train import Scratch, load_source
from assay_tasks import SortDigits

HARD, TASKS = 7, 256
SORT = SortDigits()


@cache
def pairs(dispreferred: bool = False) -> tuple[dict[str, str], ...]:
    """Right answers to the tasks that are trained on, preferred to answers with a slip; or turned round."""
    rows: list[dict[str, str]] = []
    for i in range(TASKS):
        task = SORT.task("sort", HARD, "train", i)
        rows.append(pair_of(str(task.public["prompt"]), str(task.private["answer"]), random.Random(i)))
    return tuple(r | {"chosen": r["rejected"]} for r in rows if r["rejected"]) if dispreferred else tuple(rows)


def pair_of(prompt: str, answer: str, rng: random.Random) -> dict[str, str]:
    """A right answer, and one with two digits exchanged, one replaced, left out or doubled, or cut off somewhere."""
    wrong = answer
    while wrong == answer:
        i, j = rng.randrange(len(answer)), rng.randrange(len(answer))
        made = list(answer)
        made[i], made[j] = made[j], made[i]
        replaced = answer[:i] + rng.choice("0123456789") + answer[i + 1 :]
        wrong = rng.choice(("".join(made), replaced, answer[:i] + answer[i + 1 :], answer[: i + 1] + answer[i:], answer[:i]))
    return {"prompt": prompt, "chosen": answer, "rejected": wrong}


@cache
def reward_model(steps: int = 400) -> RewardModel:
    """A classifier of 0.1M weights, fitted to pairs of levels 3 to 7: ``-log sigmoid(r(chosen) - r(rejected))``."""
    torch: Any = import_module("torch")  # both without types
    transformers: Any = import_module("transformers")
    folder = Path(tempfile.mkdtemp(prefix="assay-reward-"))
    save_model(load_source(Scratch(), lambda run, place: place), folder)
    ids = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    torch.manual_seed(0)
    model = transformers.LlamaForSequenceClassification(
        transformers.LlamaConfig(
            vocab_size=len(ids) + 2,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_labels=1,
            pad_token_id=0,
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = random.Random(0)

    def margins(size: int, level: int, first: int) -> Any:
        drawn = [SORT.task("sort", level, "train", first + rng.randrange(4096)) for _ in range(size)]
        rows = [pair_of(str(t.public["prompt"]), str(t.private["answer"]), rng) for t in drawn]
        texts = [row["prompt"] + row[key] for key in ("chosen", "rejected") for row in rows]
        longest = max(map(len, texts))
        table = torch.tensor([[ids[c] for c in text] + [0] * (longest - len(text)) for text in texts])
        mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in texts])
        scores = model(input_ids=table, attention_mask=mask).logits[:, 0]
        return scores[:size] - scores[size:]

    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 20, 2 * (1 - step / steps))
        loss = -torch.nn.functional.logsigmoid(margins(48, 3 + step % 5, 1000)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"reward model: right of two in {float((margins(512, HARD, 10_000) > 0).float().mean()):.3f} of pairs", flush=True)
    model.save_pretrained(folder)
    return RewardModel(path=str(folder))

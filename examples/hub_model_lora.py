"""A model in Hugging Face format with an adapter (LoRA): training, evaluation and export.

Without a model it makes a folder that looks like Qwen3's, with random weights, so that it runs anywhere. For a real one:

    python examples/hub_model_lora.py --model Qwen/Qwen3-0.6B --steps 100
"""

import tempfile
from pathlib import Path

import tyro

from assay.publish import export
from assay.recipes import on_rows
from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model
from assay.train import Run, train

ALPHABET = "".join(map(chr, range(32, 127))) + "\n"


def make_model(folder: Path) -> str:
    """A small Qwen3 folder with random weights: config.json, model.safetensors and a tokenizer of characters."""
    tokenizer = char_tokenizer(ALPHABET)
    shape = DecoderShape(vocab_size=tokenizer.size, num_layers=2, hidden_size=64, max_positions=256)
    save_model(init_model(shape, tokenizer, seed=0), folder)
    return str(folder)


def my_recipe(model: str, steps: int = 100, seed: int = 0) -> Run:
    """Sums below sixty by Dr. GRPO; only an adapter of rank 8 is trained."""
    rows = [{"prompt": f"What is {a} + {b}?", "answer": str(a + b)} for a in range(30) for b in range(30)]
    return on_rows(rows, model=model, objective="dr_grpo", lora=8, max_new_tokens=16, steps=steps, seed=seed)


def main(steps: int = 3, model: str | None = None, folder: Path | None = None, to: Path | None = None) -> None:
    """Train an adapter and export it.

    Args:
        steps: of training.
        model: a model folder or a name on the hub; a small random one is made when not given.
        folder: of the run; a new one below runs/ when not given.
        to: where the exported model goes; nothing is exported when not given.
    """
    with tempfile.TemporaryDirectory() as place:
        done = train(my_recipe(model or make_model(Path(place) / "model"), steps), folder)
        print(done.sentence)
        if to is not None:
            print(export(done.folder, to).folder)


if __name__ == "__main__":
    tyro.cli(main)

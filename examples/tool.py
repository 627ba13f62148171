"""A typed Python function as a tool: the model reads its docstring, calls it, and hears what it returns.

python examples/tool.py --model Qwen/Qwen3-0.6B --steps 100
"""

from pathlib import Path

import tyro

from assay.recipes import on_rows
from assay.runtime import DecoderShape
from assay.train import Run, Scratch, train

PRICES = {"figs": 3, "nuts": 4, "tea": 7}


def price(thing: str) -> int:
    """What one of a thing costs.

    Args:
        thing: its name, for example "figs".
    """
    return PRICES[thing]


def my_recipe(model: str | None = None, steps: int = 100, seed: int = 0) -> Run:
    """Questions whose answers need the prices, which only the tool knows."""
    asked = [(n, kind) for n in range(2, 60) for kind in PRICES]
    rows = [{"prompt": f"What do {n} {kind} cost?", "answer": str(n * PRICES[kind])} for n, kind in asked]
    source = model or Scratch(shape=DecoderShape(max_positions=1024))  # a prompt with the tool's schema is long
    return on_rows(rows, model=source, tools=[price], max_new_tokens=32, steps=steps, groups=4, group_size=4, seed=seed)


def main(steps: int = 3, model: str | None = None, folder: Path | None = None) -> None:
    """Train with the tool; `assay.testing.check_tool` checks one before.

    Args:
        steps: of training.
        model: a model folder or a name on the hub; small random weights, which learn nothing, when not given.
        folder: of the run; a new one below runs/ when not given.
    """
    print(train(my_recipe(model, steps), folder).sentence)


if __name__ == "__main__":
    tyro.cli(main)

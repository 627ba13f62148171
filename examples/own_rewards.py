"""Your own rows, and several rewards with weights; one of them abstains where it has nothing to say.

python examples/own_rewards.py                 # about a minute: builds the embedded base first
python examples/own_rewards.py --steps 2 --model FOLDER
"""

import random
from pathlib import Path

import tyro

from assay.recipes import on_rows
from assay.train import Policy, Run, train


def right_digits(completion: str, answer: str) -> float:
    """The share of positions that are right."""
    return sum(a == b for a, b in zip(completion, answer, strict=False)) / max(len(completion), len(answer))


def ascending(completion: str) -> float | None:
    """Whether the digits ascend; None, which is no score at all, where there are none."""
    return float(list(completion) == sorted(completion)) if completion.isdigit() else None


def my_recipe(steps: int = 100, model: str = "base", seed: int = 0) -> Run:
    """Sort seven digits; the report shows each reward by itself."""
    numbers = [str(n) for n in random.Random(0).sample(range(10**6, 10**7), 1000)]
    rows = [{"prompt": f"S{n}>", "answer": "".join(sorted(n))} for n in numbers]
    rewards = {"right_digits": right_digits, "ascending": (ascending, 0.2)}
    return on_rows(rows, rewards, steps=steps, model=model, seed=seed)


def main(steps: int = 100, model: str = "base", folder: Path | None = None) -> None:
    """Train, then ask the model.

    Args:
        steps: of training.
        model: a model folder, a name on the hub, or "base".
        folder: of the run; a new one below runs/ when not given.
    """
    done = train(my_recipe(steps, model), folder)
    print(f"accuracy {done.accuracy_before:.3f} -> {done.accuracy:.3f}")
    print(Policy(done.folder).sample("S3142956>", n=4))


if __name__ == "__main__":
    tyro.cli(main)

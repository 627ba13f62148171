"""A language model as the judge: a rubric, a server of OpenAI's protocol, and its verdicts kept in the run folder.

Without a URL it starts a stand-in on this machine's loopback, which gives marks by a rule:

    python examples/judge.py
    python examples/judge.py --url http://127.0.0.1:8000/v1 --judge my-model --model Qwen/Qwen3-0.6B --steps 50
"""

import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import tyro

from assay.clients import Judge
from assay.core import Message
from assay.recipes import on_rows
from assay.scorers import Criterion, Rubric, RubricJudge
from assay.testing import JudgeServer
from assay.train import Run, Scratch, train

NAMES = ("Ann", "Bo", "Cy", "Di", "Ed", "Flo", "Gus", "Hal")
POLITE, NAMES_THEM = Criterion(name="polite", text="Is it polite?"), Criterion(name="names", text="Does it name the person?")
RUBRIC = Rubric(criteria=(POLITE, NAMES_THEM))


def my_recipe(url: str, judge: str, model: str | None = None, steps: int = 100, seed: int = 0) -> Run:
    """Thanks for a gift; the judge's marks are the reward, and one that does not answer is a fault, never a 0."""
    rows = [{"prompt": f"Thank {name} for the gift.", "answer": name} for name in NAMES]
    run = on_rows(rows, model=model or Scratch(), max_new_tokens=24, steps=steps, groups=4, group_size=4, seed=seed)
    (stage,) = run.stages
    judges = (Judge(name="judge", url=url, model=judge),)
    return replace(run, stages=(replace(stage, reward=RubricJudge(rubric=RUBRIC)),), judges=judges)


def stand_in(messages: list[Message]) -> str:
    """Marks as a model would write them: by the letters of the answer, which stands in the question."""
    marks = {"polite": int("e" in messages[-1].content.lower()), "names": int(len(messages[-1].content) % 2)}
    return json.dumps(marks)


def main(steps: int = 3, url: str = "", judge: str = "stand-in", model: str | None = None, folder: Path | None = None) -> None:
    """Train on the marks of a judge.

    Args:
        steps: of training.
        url: of the judge's server, up to and with /v1; a stand-in is started when empty.
        judge: the judge's name on its server.
        model: a model folder or a name on the hub; small random weights, which learn little, when not given.
        folder: of the run; a new one below runs/ when not given.
    """
    with ExitStack() as stack:
        server = url or stack.enter_context(JudgeServer(stand_in)).url
        print(train(my_recipe(server, judge, model, steps), folder).sentence)


if __name__ == "__main__":
    tyro.cli(main)

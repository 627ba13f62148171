"""What ``assay init`` writes: a package with one module, a test, and the commands that come next.

``@name@`` is the name that was given, ``@module@`` the module, ``@Class@`` its main class, ``@about@`` what the author says
of it, else what the scaffold does.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.cli.scaffold_problem import PROBLEM, PROBLEM_TEST
from assay.cli.scaffold_recipe import IMPORTS, RUN
from assay.cli.scaffold_tasks import ENVIRONMENT, ENVIRONMENT_TEST, TASK, TASK_TEST

__all__ = ["SCAFFOLDS"]

_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "@name@"
version = "0.1.0"
description = @described@
readme = "README.md"
requires-python = ">=3.11"
@stamped@dependencies = ["assay-rl>=@version@"]

[project.optional-dependencies]
train = ["assay-rl[train]>=@version@"]
test = ["pytest"]

[tool.setuptools]
packages = ["@module@"]
"""

_ENTRY = """
[project.entry-points."assay.tasks"]
@module@ = "@module@"
"""

_ROWS = '''

def rows() -> list[dict[str, Any]]:
    """Questions with their answers: yours, or `assay.tasks.load_jsonl("rows.jsonl")`."""
    numbers = Random(0).sample(range(100, 1000), 200)
    return [{"prompt": f"S{n}>", "answer": "".join(sorted(str(n)))} for n in numbers]
'''

_REWARD = (
    '''"""@about@"""

from __future__ import annotations

from random import Random
from typing import Any

'''
    + IMPORTS.replace("from assay.train", "from assay.tasks import Rows\nfrom assay.train")
    + '''

def reward(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """From 0 to 1: the share of the places of the answer that are right."""
    right = sum(a == b for a, b in zip(completion, row["answer"], strict=False))
    return right / max(len(completion), len(row["answer"]))
'''
    + _ROWS
    + RUN.replace("@tasks@", "Rows(rows(), reward=reward)").replace("@levels@", "(1,)")
)

_REWARD_TEST = '''"""The reward pays what it should, as a verifier too, and its recipe is a run."""

from @module@ import recipe, reward, rows

from assay.testing import check_verifier, rollout_of


def test_what_is_paid() -> None:
    row = {"answer": "123"}
    assert [reward("", said, row) for said in ("123", "193", "", "1234")] == [1.0, 2 / 3, 0.0, 3 / 4]


def test_it_keeps_the_contract_of_verifiers() -> None:
    source = recipe().tasks
    task = source.task("rows", 1, "train", 0)
    answer = task.private["answer"]
    check_verifier(source.verifier(), [(task, rollout_of(task, answer), 1.0), (task, rollout_of(task, ""), 0.0)])


def test_the_rows_have_answers() -> None:
    assert all(row["answer"] for row in rows())
'''

_VERIFIER = (
    '''"""@about@"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from assay.core import Score
'''
    + IMPORTS.replace("from assay.train", "from assay.tasks import Rows\nfrom assay.train")
    + '''from assay.verify import AnswerVerifier
from assay.verify.answer_verifier import answer_in, verdict_score


@dataclass(frozen=True, slots=True)
class @Class@(AnswerVerifier):
    """``correct`` is 1 when the last number of the answer is the gold."""

    def rule(self, gold: Any, text: str) -> Score:
        found = re.findall(r"[0-9]+", answer_in(text) or "")
        if not found:
            return self.nothing("unparsed")
        right = found[-1] == gold
        return verdict_score("equal" if right else "different", {"correct": float(right)})
'''
    + _ROWS
    + RUN.replace("@tasks@", "Rows(rows(), scorer=@Class@())").replace("@levels@", "(1,)")
)

_VERIFIER_TEST = '''"""The verifier keeps its contract, and its recipe is a run."""

from @module@ import @Class@, recipe

from assay.testing import check_verifier, rollout_of


def test_the_verifier_keeps_its_contract() -> None:
    task = recipe().tasks.task("rows", 1, "train", 0)
    answer = task.private["answer"]
    cases = {f"it is {answer}": 1.0, f"{answer}, no, 7": 0.0, "": 0.0, "no number": 0.0}
    check_verifier(@Class@(), [(task, rollout_of(task, said), worth) for said, worth in cases.items()])
'''

_RECIPE = '''"""@about@"""

from __future__ import annotations

from assay.core import Sampling
from assay.guide import Uniform
from assay.objective import rloo
from assay.runtime import DecoderShape
from assay.train import Evaluation, Reinforce, Run, Scratch, WarmUp
from assay_tasks import SortDigits


def recipe(seed: int = 0) -> Run:
    """A tiny model that is shown answers and then practises, in seconds of CPU. For yours: model=Folder("path/to/model")."""
    return Run(
        name="@name@",
        seed=seed,
        model=Scratch(shape=DecoderShape(max_positions=64)),
        tasks=SortDigits(levels=(2, 3)),
        stages=(
            WarmUp(steps=100, levels=(2,)),
            Reinforce(steps=20, groups=8, group_size=8, curriculum=Uniform(), objective=rloo()),
        ),
        sampling=Sampling(max_new_tokens=8),
        evaluation=Evaluation(every=10, per_level=4, final_per_level=8),
    )
'''

_RECIPE_TEST = '''"""The recipe is a run that can be written down and read again."""

from @module@ import recipe

from assay.core import digest
from assay.core.config import from_dict, to_dict
from assay.train import Run


def test_the_recipe_can_be_filed() -> None:
    assert digest(to_dict(from_dict(Run, to_dict(recipe())))) == digest(to_dict(recipe()))


def test_the_seed_is_its_own() -> None:
    assert recipe(seed=3).seed == 3
'''

_README = """# @name@

@about@

The code is `@module@/__init__.py`, its test `tests/test_@module@.py`. Install it with what the test needs:

    pip install -e '.[test]'
    python -m pytest
    @look@

This much needs no PyTorch. Training does; the file `constraints.txt` of assay's repository has the versions that assay is tested
with, and `pip install -c constraints.txt ...` takes them (for a machine without a GPU add
`--extra-index-url https://download.pytorch.org/whl/cpu`, and no CUDA is fetched):

    pip install -e '.[train]'
    assay train @module@:recipe

Then change the code, and run the test again. The documentation of `assay-rl` has more in `docs/add/@page@.md`.
"""

_CASES = """{"gold": "123", "answer": "123"}
{"gold": "123", "answer": "it is 123"}
{"gold": "123", "answer": "321"}
"""

SCAFFOLDS: Mapping[str, Mapping[str, str]] = {
    "task": {
        "about": "Tasks with levels: write every second digit of a number.",
        "module": TASK,
        "test": TASK_TEST,
        "entry": _ENTRY,
        "page": "task",
        "look": "assay tasks check @name@",
    },
    "problem": {
        "about": "Questions in words with levels: what some things cost together.",
        "module": PROBLEM,
        "test": PROBLEM_TEST,
        "entry": _ENTRY,
        "page": "task",
        "look": "assay tasks check @name@",
    },
    "environment": {
        "about": "Tasks of several turns: the environment answers what the policy asks, until it answers itself.",
        "module": ENVIRONMENT,
        "test": ENVIRONMENT_TEST,
        "entry": _ENTRY,
        "page": "environment",
        "look": "assay tasks check @name@",
    },
    "reward": {
        "about": "A reward: how much of an answer is right, place by place.",
        "module": _REWARD,
        "test": _REWARD_TEST,
        "cases": _CASES,
        "page": "rows",
        "look": "assay verify run @module@:reward cases.jsonl",
    },
    "verifier": {
        "about": "A verifier: the last number of an answer must be the gold.",
        "module": _VERIFIER,
        "test": _VERIFIER_TEST,
        "cases": _CASES,
        "page": "verifier",
        "look": "assay verify run @module@:@Class@ cases.jsonl",
    },
    "recipe": {
        "about": "A recipe: digits are sorted, with a method and a curriculum that you choose.",
        "module": _RECIPE,
        "test": _RECIPE_TEST,
        "page": "model",
        "look": "assay explain @module@:recipe",
    },
}
"""By kind: its parts by name; ``entry`` where it offers families, ``cases`` where there is something to judge."""

PROJECT, README = _PROJECT, _README
"""Of every package."""

"""Open questions asked as multiple choice: with answers of other rows as the wrong options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.core.canon import digest
from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.seeds import generator
from assay.tasks.exchange.forms.choice import LETTERS, choice_gold
from assay.tasks.judged import verifier_of
from assay.verify.rollouts import task_and_rollout

__all__ = ["offer_options"]


def offer_options(rows: Iterable[Mapping[str, Any]], options: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with open answers as multiple choice, each with the answers of others of the same verifier as wrong options.

    A wrong option is the answer of another row that the row's own verifier does not take for right, so that ``1/2`` is never
    offered beside ``0.5``. Which ones, and their order, is a pure function of ``seed``, the question and the rows. The right
    option keeps the gold's text. Rows whose answer is no text, and those for which too few others are wrong, stay as they are.

    Source: Nemotron-CrossThink (arXiv 2504.13941), whose templates ask a row as multiple choice or openly. UNSURE: where its
    wrong options come from.

    Args:
        rows: as ``assay tasks import`` writes them: ``prompt``, ``answer``, ``verifier``.
        options: of each question, the right one among them; 2 to 26.
        seed: of the choice.

    Raises:
        ConfigError: a number of options out of range.

    >>> rows = [{"prompt": f"{n}+{n}?", "answer": str(2 * n), "verifier": "math"} for n in range(1, 5)]
    >>> found = offer_options(rows, options=3)
    >>> print(found[0]["prompt"])
    1+1?
    A. 2
    B. 4
    C. 6
    >>> found[0]["answer"]["answer"], found[0]["verifier"]
    ('A', 'choice')
    """
    if not 2 <= options <= len(LETTERS):
        raise ConfigError(f"offer_options: options={options}; use 2 to {len(LETTERS)}")
    given = [dict(row) for row in rows]
    known: dict[str, dict[str, None]] = {}
    for row in given:
        if isinstance(row["answer"], str):
            known.setdefault(str(row["verifier"]), {})[row["answer"].strip()] = None
    return [_add_options(row, list(known.get(str(row["verifier"]), ())), options, seed) for row in given]


def _add_options(row: dict[str, Any], known: list[str], options: int, seed: int) -> dict[str, Any]:
    """The row with options; as it is where there are too few."""
    if not isinstance(row["answer"], str):
        return row
    right, judge = row["answer"].strip(), verifier_of(row["verifier"])
    rng = generator("import/offered", seed, index=digest([row["prompt"], right]))
    wrong: list[str] = []
    places: list[int] = rng.permutation(len(known)).tolist()
    for i in places:
        if len(wrong) == options - 1:
            break
        if known[i].casefold() not in {right.casefold(), *map(str.casefold, wrong)} and not _takes(judge, right, known[i]):
            wrong.append(known[i])
    if len(wrong) < options - 1:
        return row
    texts = [right, *wrong]
    order: list[int] = rng.permutation(options).tolist()
    listed = {LETTERS[place]: texts[i] for place, i in enumerate(order)}
    shown = "\n".join(f"{letter}. {text}" for letter, text in listed.items())
    letter = LETTERS[order.index(0)]
    return {**row, "prompt": f"{row['prompt']}\n{shown}", "answer": choice_gold(listed, letter), "verifier": "choice"}


def _takes(judge: Verifier, right: str, said: str) -> bool:
    """Whether a verifier takes an answer for right."""
    score = judge(*task_and_rollout(right, said))
    return score.valid and score.primary >= 1.0

"""What a row of another library asks and what its gold is, under whatever names; and the form by which it is judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from assay.core.canon import plain
from assay.core.errors import DataError
from assay.tasks.exchange.forms import Asked, Route, Unsupported, known_route
from assay.tasks.exchange.forms.text import by_gold, refuse_lone_letter

__all__ = ["GOLDS", "PROMPTS", "check_exact", "gold_in", "is_numbered", "prompt_fields", "question_of", "guess_by_gold"]

PROMPTS = ("prompt", "messages", "question", "problem", "instruction", "conversations", "query")
GOLDS = ("answer", "gold", "ground_truth", "final_answer", "solution", "label", "target", "output", "response")
_ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
_GSM = re.compile(r"^(.*)\n?#### ?(.+)$", re.DOTALL)


def prompt_fields(row: Mapping[str, Any], names: tuple[str, ...], required: bool = True) -> tuple[dict[str, Any], set[str]]:
    """What a row asks, as ``prompt`` or ``messages``, and the fields that it was read from; nothing where it need not ask.

    Raises:
        DataError: there is no question, or a turn is none; says which fields there are.
    """
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            more = row.get("input") if name == "instruction" else None
            return {"prompt": f"{value}\n{more}" if more else value}, {name, "input"} if more else {name}
        if isinstance(value, list) and value:
            return {"messages": [_turn(name, turn) for turn in cast("list[Any]", value)]}, {name}
    if not required:  # its form may know another field
        return {}, set()
    there = next((name for name in names if row.get(name) is not None), "")
    if there:
        raise DataError(f"no question: {there!r} is {row[there]!r}; give text or chat messages, not empty")
    raise DataError(f"no question: none of {', '.join(names)} among its fields {sorted(row)}; name its field (--prompt)")


def question_of(posed: Mapping[str, Any]) -> str:
    """The text of what is asked; of a conversation its last turn, "" without any."""
    turns = cast("list[dict[str, str]]", posed.get("messages") or [])
    return str(posed.get("prompt") or (turns[-1]["content"] if turns else ""))


def _turn(name: str, turn: Any) -> dict[str, str]:
    said: dict[str, Any] = dict(cast("Mapping[str, Any]", turn)) if isinstance(turn, Mapping) else {}
    role, content = said.get("role", said.get("from")), said.get("content", said.get("value"))
    if role not in _ROLES or not isinstance(content, str):
        raise DataError(f"{name!r}: {turn!r} is no turn: give a role (of {', '.join(_ROLES)}) and its content as text")
    return {"role": _ROLES[role], "content": content}


def gold_in(row: Mapping[str, Any], names: tuple[str, ...]) -> tuple[Any, str]:
    """The gold, None without one, and the solution that it came with."""
    model = row.get("reward_model")
    solution = str(row.get("solution") or "")
    if isinstance(model, Mapping) and "ground_truth" in model:
        return plain(cast("Mapping[str, Any]", model)["ground_truth"]), solution
    for name in names:
        value = plain(row.get(name))
        if value is None or value == "":
            continue
        worked = _GSM.match(value) if isinstance(value, str) else None
        if worked:
            return worked[2].strip().replace(",", ""), value
        return value, "" if name == "solution" else solution
    return None, solution


def is_numbered(solution: str, gold: Any) -> bool:
    """Whether a solution ends in ``#### gold``, as those of GSM8K, whose answers are judged as mathematics."""
    worked = _GSM.match(solution)
    return worked is not None and worked[2].strip().replace(",", "") == gold


def guess_by_gold(row: Mapping[str, Any], names: tuple[str, ...]) -> Callable[[Asked], Route]:
    """The guess by a gold's kind; where there is no question or no gold, the error that says which fields there are."""

    def decide(asked: Asked) -> Route:
        if not asked.question:
            prompt_fields(row, names)
        if asked.gold is None:
            raise DataError(f"no gold: none of {', '.join(GOLDS)} among its fields {sorted(row)}; name its field (--gold)")
        return by_gold(asked)

    return decide


def check_exact(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Raises DataError where a row that names no verifier is of a form whose ``answer`` no answer would match as it stands.

    Of rows with the same fields the first 64 are looked at closely, all others for a worked solution: a form is that of a file.

    Args:
        rows: with ``answer``, and their numbers from 1.

    >>> check_exact([(1, {"prompt": "2+3?", "answer": "5"})])
    >>> check_exact([(1, {"prompt": "2+3?", "answer": "Two and three. #### 5"})])
    Traceback (most recent call last):
        ...
    assay.core.errors.DataError: row 1 names no verifier, so its 'answer' would have to be matched as it stands, and it is a \
worked solution that ends in '#### 5', which 'math' judges. Run 'assay tasks import ROWS OUT.jsonl' first: it gives each row its \
verifier. Or name one in the row ("verifier": "exact" matches the answer as it stands), or give a reward function
    """
    alike: Counter[tuple[str, ...]] = Counter()
    for number, row in rows:
        if not isinstance(row, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            continue  # `Rows` says what is wrong
        fields = tuple(row)
        alike[fields] += 1
        found = _why_misjudged(row) if alike[fields] <= _CLOSELY or "####" in str(row.get("answer")) else ""
        if found:
            raise DataError(
                f"row {number} names no verifier, so its 'answer' would have to be matched as it stands, and {found}. Run 'assay "
                'tasks import ROWS OUT.jsonl\' first: it gives each row its verifier. Or name one in the row ("verifier": '
                '"exact" matches the answer as it stands), or give a reward function'
            )


_CLOSELY = 64


def _why_misjudged(row: Mapping[str, Any]) -> str:
    """Why an exact match would misjudge a row; "" where nothing says so."""
    try:
        gold = gold_in(row, ("answer",))[0]
        if is_numbered(str(row.get("answer")), gold):
            return f"it is a worked solution that ends in '#### {gold}', which 'math' judges"
        question = question_of(prompt_fields(row, PROMPTS, required=False)[0])
        source = str(row.get("data_source") or "rows")
        asked = Asked(question=question, gold=gold, solution=gold_in(row, GOLDS)[1], source=source)
        if route := known_route(row, asked):
            spec = route.verifier
            return f"the row is of a known form ({route.form}), which {spec if isinstance(spec, str) else spec['name']!r} judges"
        refuse_lone_letter(asked)
    except Unsupported as error:
        return str(error)
    except DataError:  # no conversation: `Rows` says what is wrong
        pass
    return ""

"""Users' rows of many kinds in one file: each is judged by the verifier that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.core.canon import canonical, plain
from assay.core.config import from_dict, to_dict
from assay.core.errors import AssayError, ConfigError, DataError, UnknownNameError
from assay.core.protocols import Verifier
from assay.core.task import Task
from assay.tasks.exchange.reading import check_exact
from assay.tasks.row_golds import check_gold
from assay.tasks.rows import Rows, load_jsonl
from assay.tasks.verifier_spec import Spec
from assay.verify.catalog import verifier, verifiers
from assay.verify.exact import ExactMatch
from assay.verify.routing import Routed

__all__ = ["Spec", "judge_of", "judged_rows", "load_rows", "spec_of", "verifier_of"]

_FOREIGN = {
    "taskset": ("assay.interop.taskset", "TasksetReward"),
    "reasoning_gym": ("assay.interop.gym", "GymReward"),
}
"""Verifiers that exist for rows of other libraries only."""


def verifier_of(spec: Spec) -> Verifier:
    """The verifier that a row names: one of `assay.verify.verifiers`, ``taskset`` for rows of the library ``verifiers``, or
    ``reasoning_gym`` for rows of that.

    A row is data, so it can name no code of its own.

    Raises:
        DataError: neither a name nor a table with one.
        UnknownNameError: no such verifier or setting; says the nearest.
        ConfigError: a setting is wrong.

    >>> verifier_of({"name": "numeric", "relative": 0.01}).relative
    0.01
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(f"{spec!r} names no verifier; give a name, or a table such as {{'name': 'numeric', 'relative': 0.01}}")
    name, settings = str(spec["name"]), {k: plain(v) for k, v in spec.items() if k != "name"}
    if name in _FOREIGN:
        module, kind = _FOREIGN[name]
        return from_dict(getattr(import_module(module), kind), settings)
    if name not in verifiers():
        raise UnknownNameError("verifier", name, (*verifiers(), *_FOREIGN))
    return verifier(name, **settings)


def judge_of(judge: Verifier, task: Task) -> Verifier:
    """What judges this task: of a `Routed` verifier, the one at the end of its way."""
    while isinstance(judge, Routed):
        judge = judge.route(task)
    return judge


def spec_of(judge: Verifier) -> dict[str, Any] | None:
    """The table of which `verifier_of` makes the same verifier: a name, and the settings that are not its defaults.

    Returns:
        None where no name stands for its class, or a setting is no data.

    >>> from assay.verify import Numeric
    >>> spec_of(Numeric(relative=0.01))
    {'name': 'numeric', 'relative': 0.01}
    """
    name = next((name for name in verifiers() if type(verifier(name)) is type(judge)), None)
    if name is None:
        return None
    try:
        usual, own = to_dict(verifier(name)), to_dict(judge)
    except ConfigError:
        return None
    return {"name": name, **{k: v for k, v in own.items() if k not in usual or v != usual[k]}}


def judged_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    default: Verifier | None = None,
    routes: Mapping[str, Spec] | None = None,
    **settings: Any,
) -> Rows:
    """Rows of which each is judged by its own verifier.

    A row's field ``verifier`` names it (`verifier_of`); else ``routes`` does, by its ``data_source``, and the row then says so;
    else it is ``default``, or, without one, an exact match of ``answer``. A row of a form that an exact match would misjudge,
    such as a worked solution in the place of the answer, is refused: ``assay tasks import`` finds its verifier.

    Args:
        rows: with ``prompt`` or ``messages``.
        default: for rows that name none.
        routes: ``data_source`` to verifier.
        settings: of `Rows`: ``name``, ``seed``, ``test_share``.

    Raises:
        DataError: a row that is wrong, names no verifier that there is, or needs one and names none; says its number.

    >>> rows = [{"prompt": "1/2+1/2=", "answer": "1", "data_source": "sums"}, {"prompt": "sky?", "answer": "blue"}]
    >>> source = judged_rows(rows, routes={"sums": "math"}, test_share=0)
    >>> sorted({type(source.verifier().route(source.task("rows", 1, "train", i))).__name__ for i in range(2)})
    ['ExactMatch', 'MathAnswer']
    """
    known: dict[str, Verifier] = {}
    named: list[dict[str, Any]] = []
    exact: list[tuple[int, Mapping[str, Any]]] = []
    for number, row in enumerate(rows, 1):
        spec = row.get("verifier", (routes or {}).get(str(row.get("data_source"))))
        if spec is None:
            if default is None and row.get("answer") is None:
                raise DataError(
                    f"row {number} names no verifier and has no 'answer' to be matched; add one of them, or judge the rows by a "
                    f"reward function (on the command line --reward my_file.py:my_reward). It has {sorted(row)}"
                )
            exact.append((number, row))
            named.append(dict(row))
            continue
        try:
            key = spec if isinstance(spec, str) else canonical(spec).decode()
            known[key] = known[key] if key in known else verifier_of(spec)
        except AssayError as error:
            raise DataError(f"row {number}, field 'verifier': {error}") from None
        check_gold(row, spec if isinstance(spec, str) else str(spec["name"]), f"row {number}")
        named.append({**row, "verifier": spec})
    if default is None:
        check_exact(exact)
    other = default or ExactMatch(strip=True)
    if not known:
        return Rows(rows, scorer=other, **settings)
    return Rows(named, scorer=Routed(known, by="verifier", default=other), **settings)


def load_rows(path: str | Path, **settings: Any) -> Rows:
    """The rows of a JSON Lines file, each judged by the verifier that it names (`judged_rows`), as a family called like the file.

    Raises:
        DataError: the file cannot be read, or a row is wrong; names the file.
    """
    settings.setdefault("name", Path(path).stem)
    try:
        return judged_rows(load_jsonl(path), **settings)
    except DataError as error:
        raise DataError(str(error) if str(path) in str(error) else f"{path}: {error}") from None

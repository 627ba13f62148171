"""Rows of other people made assay's: recognised, given a verifier, tried, and refused with a reason where they fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, cast

from assay.core.canon import canonical, check_row_text, digest, plain
from assay.core.errors import AssayError, ConfigError, DataError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.curate.rows import entries, parse_entry, read_rows
from assay.tasks.exchange.forms import Asked, Route, Unsupported, route_of
from assay.tasks.exchange.forms.choice import option_number
from assay.tasks.exchange.forms.open_question import open_question
from assay.tasks.exchange.forms.option_base import OptionNumber, base_of
from assay.tasks.exchange.gym import gym_rows
from assay.tasks.exchange.reading import GOLDS, PROMPTS, gold_in, guess_by_gold, is_numbered, prompt_fields, question_of
from assay.tasks.exchange.results import Rejected, Summary
from assay.tasks.exchange.tasksets import taskset_rows
from assay.tasks.exchange.writing import contradiction, question_key, write_rows
from assay.tasks.gold_text import gold_text
from assay.tasks.judged import Spec, verifier_of
from assay.tasks.rows import Rows
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["ROUTES", "ImportableRows", "Importer", "Rejected", "Summary", "found_in", "write_rows"]

ROUTES: Mapping[str, Spec] = {
    "openai/gsm8k": "math",
    "gsm8k": "math",
    "lighteval/MATH": "math",
    "DigitalLearningGmbH/MATH-lighteval": "math",
    "HuggingFaceH4/MATH-500": "math",
    "math_dapo": "math",
    "aime": "math",
    "aime24": "math",
    "aime25": "math",
    "amc": "math",
    "numina_math": "math",
    "hiyouga/geometry3k": "math",
    "deepscaler": "math",
    "math": "math",
}
"""Verifiers of data sets by the name that trainers' rows give under ``data_source``."""

_LICENCES = ("license", "licence")
_CHUNK = 256


@dataclass(frozen=True, slots=True)
class ImportableRows:
    """A row with its place: the file or source, and the number in it from 1."""

    place: str
    number: int
    row: Mapping[str, Any] | None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """Makes rows of many forms rows that `assay.tasks.load_rows` reads, and refuses what would teach the wrong thing.

    A row's question stands under ``prompt``, ``question``, ``problem``, ``instruction`` (with ``input``), or as turns under
    ``prompt``, ``messages`` or ``conversations`` (also with the roles ``human`` and ``gpt``). Its gold stands under ``answer``,
    ``ground_truth``, ``solution``, ..., or under ``reward_model.ground_truth``; of ``reasoning #### 42``, 42 is the gold, and
    ``math`` judges it where nothing else is said. A last turn of the assistant is its solution, and its gold where the row has
    no other. Everything else is kept.

    Where nothing says how a row is judged, its form does (`assay.tasks.exchange.forms`): fields, kinds and source of the
    well-known data sets of mathematics, multiple choice, programs, instructions, questions, logic and tables. A form that no
    verifier here judges, and a gold of a kind from which none can be guessed, is ``unsupported``, with the reason and the
    nearest route.

    A row is refused when it is no row (step ``read``), has no question or gold (``fields``), is of no form that can be judged
    (``unsupported``), names a verifier that there is not (``verifier``), asks what a row before it asked (``repeated``; where
    their answers differ both are ``differing``), or when its own gold does not score 1, or silence or junk do (``gold``):
    whatever a model answered, it would be judged wrongly.

    Attributes:
        prompt: the field of the question, where its name is none of these; gold: that of the gold.
        verifier: what judges rows that do not say.
        routes: ``data_source`` to verifier, before what the form says.
        license: of rows that do not say; "" leaves it ``unknown``.
        source: name of the data set, for rows without ``data_source``.
        deadline: seconds for one verdict.
        option_base: number of the first option, 0 or 1, where golds are numbers; None: the rows of each file tell it together.
        choices: multiple choice stays so (``keep``), or is asked without its options and answered in words (``open``).

    Raises:
        ConfigError: ``choices`` is ``open`` beside a ``verifier``, which would judge letters.
    """

    prompt: str = ""
    gold: str = ""
    verifier: Spec | None = None
    routes: Mapping[str, Spec] = field(default_factory=dict[str, Spec])
    license: str = ""
    source: str = ""
    deadline: float = 5.0
    option_base: int | None = None
    choices: Literal["keep", "open"] = "keep"

    def __post_init__(self) -> None:
        if self.choices == "open" and self.verifier is not None:
            raise ConfigError(
                f"Importer(choices='open', verifier={self.verifier!r}) (--choices open --verifier): a question asked without its "
                "options is judged by what its right option says, and its verifier follows from that; leave one of the two out"
            )

    def run(self, found: Iterable[ImportableRows], summary: Summary) -> Iterator[dict[str, Any] | Rejected]:
        """Each row as it is taken, or why not, in the order of what was found; counted in ``summary``."""
        seen: dict[str, tuple[str, str]] = {}
        chunk: list[tuple[ImportableRows, dict[str, Any] | Rejected]] = []
        for item, base in self._with_option_base(found):
            chunk.append((item, self._first(item, seen, base)))
            if len(chunk) == _CHUNK:
                yield from self._try_chunk(chunk, summary)
                chunk = []
        yield from self._try_chunk(chunk, summary)

    def row_of(self, raw: Mapping[str, Any], option_base: int | None = None) -> dict[str, Any]:
        """A row in assay's form, with its verifier.

        Args:
            raw: as it came.
            option_base: what the other rows of its file say of numbers that name an option.

        Raises:
            DataError: it has no question or no gold; says what it has.
            UnknownNameError: it names a verifier that there is not.
        """
        row = dict(raw)
        source = str(row.get("data_source") or self.source or "rows")
        gold, solution = gold_in(row, (self.gold,) if self.gold else GOLDS)
        named = row.get("verifier") or self.routes.get(source) or self.verifier
        posed, used = prompt_fields(row, (self.prompt,) if self.prompt else PROMPTS, required=bool(named))
        turns = posed.get("messages")
        if turns and turns[-1]["role"] == "assistant":
            solution = solution or turns[-1]["content"]
            posed["messages"] = turns[:-1]
            gold = turns[-1]["content"] if gold is None else gold
        if named or "data" in row or "entry" in row:
            route = None
            spec = named or ROUTES.get(source) or {"name": "exact", "strip": True}
        elif is_numbered(solution, gold):
            route, spec = None, "math"
        else:
            asked = Asked(question=question_of(posed), gold=gold, solution=solution, source=source, option_base=option_base)
            given = {**row, "answer": gold} if self.gold else row
            route = route_of(given, asked, guess_by_gold(row, (self.prompt,) if self.prompt else PROMPTS))
            if self.choices == "open":
                route = open_question(route, asked.question or route.question)
            spec, gold, solution = route.verifier, route.answer, route.solution or solution
            posed = _with_form(posed, route)
        if not posed:
            prompt_fields(row, (self.prompt,) if self.prompt else PROMPTS)
        if gold is None and "data" not in row and "entry" not in row:
            raise DataError(f"no gold: none of {', '.join(GOLDS)} among its fields {sorted(raw)}; name its field (--gold)")
        uses = {*used, *(route.uses if route else ()), "prompt", "messages"}
        gone = {*uses, *_LICENCES, "verifier", "data_source", "answer", "reward_model"}
        kept = _further_fields({k: v for k, v in row.items() if k not in gone})
        known = {"answer": gold} if gold is not None else {}
        told = {"solution": solution} if solution else {}
        licence = next((str(row[name]) for name in _LICENCES if row.get(name)), self.license or "unknown")
        return {**posed, **known, **kept, **told, "data_source": source, "license": licence, "verifier": spec}

    def _with_option_base(self, found: Iterable[ImportableRows]) -> Iterator[tuple[ImportableRows, int | None]]:
        """Each row, with the number of the first option in its file where golds are numbers.

        A file is held from its first such row on, until all of it has said what it counts from.
        """
        for _, items in groupby(found, key=lambda item: item.place):
            held: list[ImportableRows] = []
            numbers: list[OptionNumber] = []
            for item in items:
                number = None if self.option_base is not None else self._option_number(item.row)
                if number is None and not held:
                    yield item, self.option_base
                    continue
                held.append(item)
                numbers.extend([] if number is None else [number])
            base = base_of(numbers)
            yield from ((item, base) for item in held)

    def _option_number(self, row: Mapping[str, Any] | None) -> OptionNumber | None:
        if row is None or row.get("verifier") or self.verifier:
            return None
        return option_number({**row, "answer": row.get(self.gold)} if self.gold else row)

    def _first(
        self, item: ImportableRows, seen: dict[str, tuple[str, str]], option_base: int | None
    ) -> dict[str, Any] | Rejected:
        """A row as it is taken if its gold stands the trial; ``seen`` has place and gold of each question before it."""
        if item.row is None:
            return Rejected(item.place, item.number, "read", item.error, None)
        try:
            row = self.row_of(item.row, option_base)
        except Unsupported as error:
            return Rejected(item.place, item.number, "unsupported", str(error), item.row)
        except DataError as error:
            return Rejected(item.place, item.number, "fields", str(error), item.row)
        try:
            verifier_of(row["verifier"])
        except AssayError as error:
            return Rejected(item.place, item.number, "verifier", str(error), item.row)
        key = question_key(row)
        here, gold = f"{item.place}, row {item.number}", digest(plain(row.get("answer")))
        first, known = seen.setdefault(key, (here, gold))
        if first != here:
            if gold != known:
                reason = contradiction(here, first)
                return Rejected(item.place, item.number, "differing", reason, item.row, key, first)
            return Rejected(item.place, item.number, "repeated", f"the same question as {first}", item.row)
        return row

    def _try_chunk(
        self, chunk: list[tuple[ImportableRows, dict[str, Any] | Rejected]], summary: Summary
    ) -> Iterator[dict[str, Any] | Rejected]:
        rows = [(item, row) for item, row in chunk if not isinstance(row, Rejected)]
        findings = _findings([row for _, row in rows], self.deadline)
        why = {id(row): finding for (_, row), finding in zip(rows, findings, strict=True)}
        for item, made in chunk:
            summary.read += 1
            out = made
            if not isinstance(made, Rejected) and why[id(made)]:
                out = Rejected(item.place, item.number, "gold", why[id(made)], item.row)
            if isinstance(out, Rejected):
                summary.rejected[out.step] += 1
            else:
                summary.taken += 1
                summary.licences[str(out["license"])] += 1
                summary.sources[str(out["data_source"])] += 1
                summary.verifiers[_name(out["verifier"])] += 1
            yield out


def _findings(rows: list[dict[str, Any]], deadline: float) -> list[str]:
    """What is wrong with each row's gold; "" where nothing is."""
    out = [""] * len(rows)
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(canonical(row["verifier"]).decode(), []).append(i)
    for places in groups.values():
        judge = verifier_of(rows[places[0]]["verifier"])
        tasks: dict[int, Task] = {}
        for i in places:
            try:
                tasks[i] = _task(rows[i], judge)
            except DataError as error:
                out[i] = str(error)
        with ScoringPool(judge, deadline, refuse=False) as pool:
            for i, finding in _judge_tasks(pool, tasks, rows).items():
                out[i] = finding
    return out


def _judge_tasks(pool: ScoringPool, tasks: Mapping[int, Task], rows: list[dict[str, Any]]) -> dict[int, str]:
    items: list[tuple[Task, Rollout]] = []
    for i, task in tasks.items():
        any_text = _name(rows[i]["verifier"]) == "constraints"  # what is said does not matter there, only how
        for kind, text in (("gold", gold_text(rows[i])), ("silence", ""), ("junk", None if any_text else "I cannot say.")):
            if text is not None:
                items.append((task, rollout_of(task, text, id=f"{i} {kind}", group=f"{i}")))
    scores = pool.score(items)
    out: dict[int, str] = {}
    for i in tasks:
        right = scores.get(f"{i} gold")
        wrong = [scores[f"{i} {kind}"] for kind in ("silence", "junk") if f"{i} {kind}" in scores]
        broken = next((s for s in (right, *wrong) if s is not None and not s.valid), None)
        if broken is not None:
            said = str(broken.info.get("error", "no detail")).strip().splitlines()[-1:]
            out[i] = f"with its gold there is no verdict: {' '.join(said)}"
        elif right is not None and right.primary < 1.0:
            out[i] = f"its own gold {gold_text(rows[i])!r} scores {right.primary:g}, not 1"
        elif any(s.primary >= 1.0 for s in wrong):
            out[i] = "an answer that says nothing scores 1"
    return out


def _task(row: dict[str, Any], judge: Verifier) -> Task:
    source = Rows([{k: v for k, v in row.items() if k != "level" and k != "arm"}], scorer=judge, test_share=0.0)
    return source.task("rows", 1, "train", 0)


def _with_form(posed: dict[str, Any], route: Route) -> dict[str, Any]:
    """What is asked, with what a form puts before and behind it."""
    turns = cast("list[dict[str, str]]", posed.get("messages") or [])
    text = question_of(posed) or route.question
    if not text:
        return {}
    text = f"{route.before}{text}{route.behind}"
    return {"messages": [*turns[:-1], {**turns[-1], "content": text}]} if turns else {"prompt": text}


def _further_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The further fields; ``level`` as a whole number (``Level 5`` is 5) and ``arm`` as a name, else under another name."""
    out = dict(row)
    if "level" in out and (isinstance(out["level"], bool) or not isinstance(out["level"], int)):
        given = out.pop("level")
        found = re.fullmatch(r"(?i)\s*(?:level)?\s*(\d{1,6})\s*", given) if isinstance(given, str) else None
        out["level" if found else "source_level"] = int(found[1]) if found else given
    if "arm" in out and not (isinstance(out["arm"], str) and out["arm"]):
        out["source_arm"] = out.pop("arm")
    return out


def _name(spec: Spec) -> str:
    return spec if isinstance(spec, str) else str(spec.get("name"))


# ---- where rows come from, and go to ----------------------------------------------------------------------------------


def found_in(source: str, n: int = 1000, level: int = 1, seed: int = 0) -> Iterator[ImportableRows]:
    """The rows of a source with their places; of a line that is no row, why.

    Args:
        source: a file, a folder or a data set on the hub (`assay.curate.entries`), ``gym:NAME`` (`gym_rows`) or ``taskset:ID``
            (`taskset_rows`).
        n, level, seed: of ``gym:``; ``n`` also of ``taskset:``.

    Raises:
        ConfigError: there is no such source, or it is of a form that is not read.
        MissingExtraError: what is needed to read it is not installed.
    """
    kind, colon, name = source.partition(":")
    if colon and kind in ("gym", "taskset"):
        rows = gym_rows(name, n, seed=seed, level=level) if kind == "gym" else taskset_rows(name, n)
        return (ImportableRows(source, number, row) for number, row in enumerate(rows, 1))
    return _read(entries(source, one_split=True))


def _read(files: Iterable[Path]) -> Iterator[ImportableRows]:
    for path in files:
        for number, entry in read_rows(path):
            try:
                row = parse_entry(entry)
                check_row_text(row, "a row")
                yield ImportableRows(str(path), number, row)
            except DataError as error:
                yield ImportableRows(str(path), number, None, str(error))

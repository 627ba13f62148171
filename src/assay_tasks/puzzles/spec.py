"""A puzzle as data: variables, constraints, a question and its wordings in one TOML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any, ClassVar, cast

from assay.core.canon import FrozenMap, digest, plain
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import checked_levels
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay_tasks.math.arithmetic import number_in
from assay_tasks.puzzles.checks import Checks
from assay_tasks.puzzles.clued import list_in, table_in
from assay_tasks.puzzles.constraints import Constraint
from assay_tasks.puzzles.puzzle import bullets, list_words
from assay_tasks.puzzles.solver import Model
from assay_tasks.puzzles.terms import Ref, Term, constraint_of, domain_of, read, replace_names, value_of

__all__ = ["Spec"]

TRIES = 300
"""Draws before a level counts as impossible."""

SOLUTIONS = 64
"""Solutions with one answer that a question may have; more than that are not looked through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec(Problem):
    """A kind of puzzle that a file describes. The level counts what the file says.

    A draw gives values to secret names and parameters, finds clues if there are any, and is refused where it has no answer or
    more than one: PuzzleClone (arXiv 2508.15180). The page ``docs/add/puzzle.md`` describes every key.

    Attributes:
        texts: wordings in which ``{name}`` is a parameter, ``{name[0]}`` an element of one, and ``{clues}`` the clues.
        parameters: name to how its value is drawn: ``[low, high]``, ``{choose: list}``, ``{choose: list, count: n}``, or an
            expression over names before it. They are public.
        secret: the same for names that only parameters may use: the solution that a puzzle is made from.
        by_level: parameters and secret names that a level draws in its own way.
        variables: name to ``[low, high]`` of numbers or expressions over parameters; or a table with ``each``, a list
            parameter, for a list of variables, and ``range``.
        constraints: expressions over parameters and variables.
        clues: tables ``for`` (index name to list parameter), ``holds``, ``text`` and if wanted ``value``, an expression over the
            solution that both may use; clues that are true are given until one solution is left.
        answer: ``{value: expression}``, ``{values: [expressions]}``, ``{names: list parameter, values: variables}``, ``{order:
            list parameter, by: variables}`` or ``{word: list parameter, at: expression}``.
        maximize: an expression that shall be greatest; a draw with a second best solution is refused.
        minimize: the same for least.
        easier: parameters of which a larger value makes the puzzle easier; `assay_tasks.puzzles.difficulty` uses it.

    Raises:
        ConfigError: names the key, the value and a fix.

    >>> legs = Spec(name="farm/legs", domain="math", levels=(1,), texts=("{heads} heads, {legs} legs. How many hens?",),
    ...             secret={"h": [2, 9], "c": [2, 9]}, parameters={"heads": "h + c", "legs": "2*h + 4*c"},
    ...             variables={"hens": [0, 40], "cows": [0, 40]},
    ...             constraints=("hens + cows == heads", "2*hens + 4*cows == legs"), answer={"value": "hens"})
    >>> legs.solve({"heads": 7, "legs": 22}).answer
    '3'
    """

    texts: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=FrozenMap)
    secret: Mapping[str, Any] = field(default_factory=FrozenMap)
    by_level: Mapping[str, Mapping[str, Any]] = field(default_factory=FrozenMap)
    variables: Mapping[str, Any] = field(default_factory=FrozenMap)
    constraints: tuple[str, ...] = ()
    clues: tuple[Mapping[str, Any], ...] = ()
    answer: Mapping[str, Any] = field(default_factory=FrozenMap)
    maximize: str = ""
    minimize: str = ""
    easier: tuple[str, ...] = ()

    unique: ClassVar[bool | None] = True  # a draw with two answers is refused

    def __post_init__(self) -> None:
        if not self.name or not self.domain:
            raise ConfigError(f"a puzzle needs a name and a domain, got {self.name!r} and {self.domain!r}")
        checked_levels(self.name, self.levels, 1, 1000)
        for key in ("parameters", "secret", "by_level", "variables", "answer"):
            object.__setattr__(self, key, FrozenMap(getattr(self, key)))
        object.__setattr__(self, "clues", tuple(FrozenMap(clue) for clue in self.clues))
        Checks(self).all()

    @property
    def variants(self) -> int:
        """How many wordings there are."""
        return len(self.texts)

    def word(self, facts: Facts, variant: int) -> str:
        """The question in one of its wordings."""
        return self.texts[variant].format_map(self.fields(facts)).strip()

    def fields(self, facts: Facts) -> Mapping[str, Any]:
        """Parameters, lists in a row of speech, and the clues one to a line."""
        shown = {name: _text_of(value) for name, value in facts.items() if name != "clues"}
        if self.clues:
            shown["clues"] = bullets(self._sentence(facts, clue) for clue in facts["clues"])
        return shown

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Values and clues at random, until there is exactly one answer."""
        why: Counter[str] = Counter()
        for _ in range(TRIES):
            drawn = self._draw_facts(level, rng)
            facts = {name: drawn[name] for name in self.parameters}
            if self.clues:
                chosen = self._clues(facts, rng)
                if chosen is None:
                    why["no clues that leave one solution"] += 1
                    continue
                facts["clues"] = chosen
            found = self._answers(facts)[0]
            if len(found) == 1:
                return facts
            why["more than one answer" if found else "no solution"] += 1
        reasons = ", ".join(f"{times} had {reason}" for reason, times in why.items())
        raise DataError(
            f"{self.name}: {TRIES} draws of level {level} gave no puzzle with one answer ({reasons}); "
            "draw parameters from a secret solution, or change constraints or ranges"
        )

    def solve(self, facts: Facts) -> Solution:
        """The only answer.

        Raises:
            DataError: there is none, or more than one.
        """
        found, effort = self._answers(facts)
        if len(found) != 1:
            raise DataError(f"{self.name}: these facts have {len(found) or 'no'} answers, one is needed: {plain(facts)}")
        told = next(iter(found.values()))
        return Solution(answer=told.answer, gold=told.gold, effort=effort)

    def model(self, facts: Facts) -> Model:
        """Variables and everything that must hold, an optimum aside."""
        model, known = self._base(facts)
        for clue in facts.get("clues", ()):
            model.add(self._demand(known, clue))
        return model

    def verifier(self, form: Form) -> Verifier:
        """As the kind of answer needs."""
        if "value" in self.answer:
            return number_in(form)
        if "word" in self.answer:
            return ExactMatch(strip=True, casefold=True, where=form.place)
        return table_in(form) if "names" in self.answer else list_in(form)

    def signature(self, facts: Facts) -> str:
        """A digest of the numbers alone, lists in any order: questions that share it are duplicates to PuzzleClone."""
        return digest([(name, numbers) for name, value in sorted(facts.items()) if (numbers := _numbers(value)) is not None])

    # ---- draws

    def _draw_facts(self, level: int, rng: Random) -> dict[str, Any]:
        own, out = self.by_level.get(str(level), {}), dict[str, Any]()
        for table in (self.secret, self.parameters):
            for name, how in table.items():
                out[name] = _draw_value(own.get(name, how), out, rng)
        return out

    def _clues(self, facts: dict[str, Any], rng: Random) -> list[list[Any]] | None:
        model, known = self._base(facts)
        truth = model.sample(rng)
        if truth is None:
            return None
        pool: list[list[Any]] = []
        for number, clue in enumerate(self.clues):
            sizes = [range(len(facts[source])) for source in clue["for"].values()]
            for indices in _different(clue["for"], sizes):
                here = {**known, **dict(zip(clue["for"], indices, strict=True))}
                value = [value_of(replace_names(read(clue["value"]), here), truth)] if "value" in clue else []
                made = [number, *indices, *value]
                if self._demand(known, made).holds(truth):
                    pool.append(made)
        rng.shuffle(pool)
        chosen = model.clues(truth, [self._demand(known, clue) for clue in pool], rng)
        return None if chosen is None else [pool[i] for i in rng.sample(chosen, len(chosen))]

    # ---- the model

    def _base(self, facts: Facts) -> tuple[Model, dict[str, Any]]:
        """The model without clues, and what names stand for in expressions."""
        model, known = Model(), {k: v for k, v in facts.items() if k != "clues"}
        for name, how in self.variables.items():
            table = cast("Mapping[str, Any]", how if isinstance(how, Mapping) else {"range": how})
            low, high = (whole(bound, known) for bound in table["range"])
            if low > high:
                raise DataError(f"{self.name}: variable {name!r} has the empty range {low} to {high}")
            count = len(facts[table["each"]]) if "each" in table else 0
            names = [f"{name}_{i}" for i in range(count)] if "each" in table else [name]
            refs = [Ref(model.domain(domain_of(low, high), n), min(low, 0)) for n in names]
            known[name] = refs if "each" in table else refs[0]
        model.add(*(constraint_of(replace_names(read(text), known)) for text in self.constraints))
        return model, known

    def _demand(self, known: Mapping[str, Any], clue: Sequence[Any]) -> Constraint:
        table = cast("Mapping[str, Any]", self.clues[clue[0]])
        return constraint_of(replace_names(read(table["holds"]), {**known, **_indices(table, clue)}))

    def _sentence(self, facts: Facts, clue: Sequence[Any]) -> str:
        table = cast("Mapping[str, Any]", self.clues[clue[0]])
        given = _indices(table, clue)
        words = {name: facts[table["for"][name]][i] if name in table["for"] else i for name, i in given.items()}
        return str(table["text"]).format_map({**facts, **words})

    def _answers(self, facts: Facts) -> tuple[dict[str, Solution], int]:
        """Different answers, two at most, and the effort; too many solutions count as two answers."""
        model, (_, known) = self.model(facts), self._base(facts)
        effort = self._optimum(model, known) if self.maximize or self.minimize else 0
        most = 2 if self.maximize or self.minimize else SOLUTIONS
        found = model.solve(most)
        answers: dict[str, Solution] = {}
        for values in found.solutions:
            told = self._write_solution(facts, known, values)
            answers.setdefault(told.answer, told)
        if len(found.solutions) == most and len(answers) == 1:
            answers["another"] = Solution(answer="another")
        return answers, effort + found.effort

    def _optimum(self, model: Model, known: Mapping[str, Any]) -> int:
        """Add that the solution is no worse than the best; the effort of finding that."""
        goal, effort = replace_names(read(self.maximize or self.minimize), known), 0
        sign, best = ">=" if self.maximize else "<=", None
        while True:
            found = model.solve(1)
            effort += found.effort
            if not found.solutions:
                break
            best = value_of(goal, found.solutions[0])
            model.add(constraint_of((sign, goal, best + (1 if self.maximize else -1))))
        if best is not None:
            model.drop()
            model.add(constraint_of((sign, goal, best)))
        return effort

    def _write_solution(self, facts: Facts, known: Mapping[str, Any], values: Sequence[int]) -> Solution:
        def number(term: Term) -> int:
            return value_of(replace_names(term, known), values)

        match dict(self.answer):
            case {"value": text}:
                return Solution(answer=str(number(read(text))))
            case {"names": names, "values": variables}:
                gold = {name: str(value_of(ref, values)) for name, ref in zip(facts[names], known[variables], strict=True)}
                return Solution(answer=", ".join(f"{k}: {v}" for k, v in gold.items()), gold=gold)
            case {"values": texts}:
                several = [str(number(read(text))) for text in texts]
                return Solution(answer=", ".join(several), gold=several)
            case {"order": names, "by": variables}:
                places = [value_of(ref, values) for ref in known[variables]]
                ordered = [name for _, name in sorted(zip(places, facts[names], strict=True))]
                return Solution(answer=", ".join(ordered), gold=ordered)
            case answer:
                word = replace_names(("at", facts[answer["word"]], number(read(answer["at"]))), known)
                return Solution(answer=str(word))


class _Row(list[Any]):
    """A list that is shown in a row of speech."""

    def __format__(self, spec: str) -> str:
        return list_words([str(item) for item in self])


def _text_of(value: Any) -> Any:
    return _Row(cast("list[Any]", value)) if isinstance(value, list) else value


def _numbers(value: Any) -> list[int] | None:
    """The numbers that a parameter is, in order; None where it is words, or clues."""
    several: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
    return sorted(several) if all(isinstance(item, int) for item in several) else None


def _indices(table: Mapping[str, Any], clue: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((*table["for"], "value"), clue[1:], strict=False))


def _different(sources: Mapping[str, str], sizes: Sequence[range]) -> list[tuple[int, ...]]:
    """Indices into lists, different ones where two are into the same list."""
    names = list(sources.values())
    return [indices for indices in product(*sizes) if len(set(zip(names, indices, strict=True))) == len(names)]


def _draw_value(how: Any, known: Mapping[str, Any], rng: Random) -> Any:
    """A value drawn as a file says."""
    if isinstance(how, str):
        return replace_names(read(how), known)
    if isinstance(how, Mapping):
        table = cast("Mapping[str, Any]", how)
        words = list(table["choose"])
        return rng.sample(words, whole(table["count"], known)) if "count" in table else rng.choice(words)
    low, high = (whole(bound, known) for bound in how)
    if low > high:
        raise DataError(f"a parameter has the empty range {low} to {high}")
    return rng.randint(low, high)


def whole(bound: Any, known: Mapping[str, Any]) -> int:
    value = bound if isinstance(bound, int) else replace_names(read(bound), known)
    if not isinstance(value, int):
        raise ConfigError(f"the bound {bound!r} is no number; use whole numbers and parameters")
    return value

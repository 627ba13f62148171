"""The reading desk: tools to search and read, their environment, and a verifier that sees what was read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from assay.core.errors import DataError
from assay.core.import_path import filed_as
from assay.core.protocols import Environment, Obs, Step, Tool, Verifier
from assay.core.rollout import Rollout, Stop, ToolResult
from assay.core.score import Score
from assay.core.task import Message, Task, TaskView
from assay.tasks.draws import slip
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.turns import actions_of
from assay.verify.answer_verifier import AnswerPlace, answer_in, verdict_score
from assay_tasks.phases import SingleUse
from assay_tasks.search.lore import Lore, lore

__all__ = ["Read", "Search", "SearchEnvironment", "SearchProblem", "SearchVerifier", "parse_call"]

_CALL = re.compile(r"(search|read)(?:\(([0-9]{1,2})\))?:[ \t]*(.*)", re.IGNORECASE)
_MOST = 10
_LONG = 400

_TOOLS = (
    "Everything here is invented; look it up in an encyclopedia. A turn whose last line is 'search: WORDS' shows the {k} pages "
    "that suit the words best ('search({most}): WORDS' shows {most}), and 'read: TITLE' shows a page. You may make {calls} such "
    "calls; the first turn that makes none must give the answer."
)


def parse_call(text: str) -> tuple[str, int, str] | None:
    r"""The call that a turn makes in its last line: tool, number of results and argument; None where it makes none.

    >>> parse_call("First the film.\nsearch: Vorla's Lantern"), parse_call("search(5): x"), parse_call("It is Vorla.")
    (('search', 3, "Vorla's Lantern"), ('search', 5, 'x'), None)
    """
    lines = text.strip().rsplit("\n", 1)
    found = _CALL.fullmatch(lines[-1].strip())
    return (found[1].casefold(), min(_MOST, int(found[2] or 3)), found[3].strip()[:_LONG]) if found else None


def _world(scope: TaskView) -> Lore:
    seed, size = scope.world["lore"]
    return lore(seed, size)


@dataclass(frozen=True, slots=True)
class Search:
    """The tool that finds pages: titles, the best first, with their first sentences."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        query = {"type": "string", "description": "words to look for"}
        k = {"type": "integer", "minimum": 1, "maximum": _MOST, "description": "how many pages to show, 3 unless told"}
        return {
            "name": "search",
            "description": "Titles of the pages that suit some words best.",
            "parameters": {
                "type": "object",
                "properties": {"query": query, "k": k},
                "required": ["query"],
                "additionalProperties": False,
            },
        }

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        """Up to ``args["k"]`` pages for ``args["query"]``, one to a line."""
        return _search_pages(_world(scope), str(args.get("query", "")), int(args.get("k", 3)))


@dataclass(frozen=True, slots=True)
class Read:
    """The tool that shows a page."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        page = {"type": "string", "description": "the title of a page"}
        return {
            "name": "read",
            "description": "The text of a page.",
            "parameters": {"type": "object", "properties": {"page": page}, "required": ["page"], "additionalProperties": False},
        }

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        """The text of the page with the title ``args["page"]``."""
        return _read(_world(scope), str(args.get("page", "")))


def _search_pages(world: Lore, query: str, k: int) -> ToolResult:
    titles = world.search(query, k)
    if not titles:
        return ToolResult(content="No page has any of these words.", error=f"nothing found for {query!r}")
    return ToolResult(content="\n".join(f"{i}. {world.pages[t].split('. ')[0]}." for i, t in enumerate(titles, 1)))


def _read(world: Lore, title: str) -> ToolResult:
    if title not in world.pages:
        return ToolResult(content="There is no page of that title.", error=f"unknown page {title!r}")
    return ToolResult(content=world.pages[title])


@filed_as("assay.tasks.search.desk:Desk")
class SearchEnvironment(SingleUse):
    """The environment: a turn that calls a tool is answered, any other ends the rollout, and so does a call too many.

    Attributes:
        tools: by name.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, world: TaskView) -> None:
        super().__init__(world.id)
        self.tools: Mapping[str, Tool] = {"search": Search(), "read": Read()}
        self._world, self._left = world, int(world.world["calls"])

    async def step(self, action: str) -> Step:
        """The tool's answer."""
        self._enter("open", "step")
        call = parse_call(action)
        if call is None or not self._left:
            self._phase = "over"
            return Step(done=True)
        tool, k, argument = call
        self._left -= 1
        args = {"query": argument, "k": k} if tool == "search" else {"page": argument}
        result = await self.tools[tool].call(args, self._world)
        return Step(obs=Obs((Message("tool", result.content),)), results=(result,))


@filed_as("assay.tasks.search.desk:Researched")
@dataclass(frozen=True, slots=True)
class SearchVerifier:
    """``correct`` is 1 when the answer is the gold's, in any case of letters; ``evidence`` is the share of the gold's pages read.

    The gold is ``{"items": list of texts, "pages": list of titles}``. An answer of several items has commas between them. A page
    counts as read when the rollout called for it by its title, in a turn that it finished.

    Attributes:
        where: in which part of the last turn the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        DataError: a task without such a gold.
    """

    trusted: ClassVar[bool] = True

    where: AnswerPlace = AnswerPlace.AUTO

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "evidence")

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Compare the answer, and look at what was read."""
        gold = cast("Mapping[str, Any]", task.private.get("answer"))
        if not isinstance(gold, Mapping) or {"items", "pages"} - set(gold):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"task {task.id!r} has no gold with 'items' and 'pages' but {gold!r}")
        turns = actions_of(rollout)
        read = {call[2] for call in map(parse_call, turns) if call is not None and call[0] == "read"}
        evidence = sum(page in read for page in gold["pages"]) / len(gold["pages"])
        said = answer_in(turns[-1], self.where) if turns and rollout.stop is Stop.DONE else None
        if said is None:
            return verdict_score("unparsed", {"correct": 0.0, "evidence": evidence})
        right = _normal(said) == [item.casefold() for item in gold["items"]]
        return verdict_score("equal" if right else "different", {"correct": float(right), "evidence": evidence})


def _normal(said: str) -> list[str]:
    return [" ".join(part.casefold().rstrip(".").split()) for part in said.split(",")]


@filed_as("assay.tasks.search.desk:Searching")
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProblem(Problem, ABC):
    """Base of questions to be answered at the `SearchEnvironment`, in the world of a seed.

    Attributes:
        lore_seed: chooses another world.
        spare: calls beyond those that the oracle makes.
    """

    domain: str = "search"
    lore_seed: int = 0
    spare: int = 6

    sizes: ClassVar[tuple[int, ...]] = (100,)
    """Pages of the world at each level."""
    shown: ClassVar[int] = _MOST
    """How many results the oracle asks for."""

    def pages(self, level: int) -> int:
        """How many pages the world of a level has."""
        return self.sizes[self.levels.index(level) if level in self.levels else -1]

    def lore(self, facts: Facts) -> Lore:
        """The world that a question is about."""
        return lore(self.lore_seed, facts["pages"])

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle's searches show the pages that it then reads."""
        world = self.lore(facts)
        return all(page in world.search(query, self.shown) for query, page in self.find_path(facts)[1])

    def solve(self, facts: Facts) -> Solution:
        """The items, and the calls by which the oracle finds them, one to a line."""
        items, looked, effort = self.find_path(facts)
        calls = [line for query, page in looked for line in (f"search({self.shown}): {query}", f"read: {page}")]
        pages = list(dict.fromkeys(page for _, page in looked))
        return Solution(answer=", ".join(items), gold={"items": items, "pages": pages}, steps="\n".join(calls), effort=effort)

    @abstractmethod
    def find_path(self, facts: Facts) -> tuple[list[str], list[tuple[str, str]], int]:
        """The items asked for; what the oracle searches and which page it reads then, in turn; and its effort."""
        ...

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question, the tools, and how the answer is to be given."""
        rules = _TOOLS.format(k=3, most=_MOST, calls=self.world(facts)["calls"])
        return f"{self.word(facts, variant)}\n{rules}\n{form.request}"

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The oracle's calls, one to a line, and its answer."""
        return f"{solution.steps}\n{form.format_answer(solution.answer)}"

    def world(self, facts: Facts) -> Mapping[str, Any]:
        """Which encyclopedia, and how many calls are answered."""
        return {"lore": [self.lore_seed, facts["pages"]], "calls": 2 * len(self.find_path(facts)[1]) + self.spare}

    def verifier(self, form: Form) -> Verifier:
        """The items, and what was read."""
        return SearchVerifier(form.place)

    def environment(self, world: TaskView) -> Environment:
        """An environment for one rollout."""
        return SearchEnvironment(world)

    def trace(self, facts: Facts, text: str, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The oracle's calls, what they show, and its answer.

        Each call and the answer hold a slip (`assay.tasks.slip`) with probability ``noise``; what was really called for is
        shown, and after a slip in a call the oracle calls again.
        """
        *calls, answer = text.split("\n")
        symbols, world, turns = "".join(sorted(set(text))), self.lore(facts), list[Message]()
        for line in calls:
            for said in dict.fromkeys((slip(line, noise, symbols, rng), line)):
                call = parse_call(said)
                if call is not None:
                    tool, k, argument = call
                    shown = _search_pages(world, argument, k) if tool == "search" else _read(world, argument)
                    turns += [Message("assistant", said), Message("tool", shown.content)]
        return (*turns, Message("assistant", slip(answer, noise, symbols, rng)))

"""A visit to a site: what is asked, an oracle that goes by what it sees, and whether the site ends as it should."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, cast

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Environment
from assay.core.task import TaskView
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts
from assay_tasks.games.play import MOST_TURNS, Game, Match, Playing
from assay_tasks.web.browser import HELP, Browser, Site, command_of, copy_value, said_in
from assay_tasks.web.page import Element, Field

__all__ = ["Intent", "Visit", "WebProblem"]

_LOST = 5


@dataclass(frozen=True, slots=True)
class Intent:
    """What an oracle wants to do next, in terms of what it sees.

    Attributes:
        verb: of the command.
        label: of the element, as it is written on the page.
        words: to type or to select; for a radio button its option.
        row: a text in the element's row of a table; empty where it does not matter.
        nth: which of those that fit, from 0.
    """

    verb: str
    label: str = ""
    words: str = ""
    row: str = ""
    nth: int = 0

    def fits(self, element: Element) -> bool:
        """Whether an element is what is meant."""
        if element.label != self.label or (self.row and self.row not in element.row):
            return False
        if not isinstance(element.what, Field):
            return self.verb == "click"
        kinds = {"type": ("text",), "select": ("select",)}.get(self.verb, ("checkbox", "radio"))
        return element.what.kind in kinds and (element.what.kind != "radio" or element.option == self.words)

    def command(self, elements: list[Element]) -> str | None:
        """The command on a page; None where the element is not there."""
        if self.verb in ("back", "done"):
            return self.verb
        found = [number for number, element in enumerate(elements, 1) if self.fits(element)]
        if len(found) <= self.nth:
            return None
        return f"{self.verb} {found[self.nth]} {self.words if self.verb != 'click' else ''}".strip()


class Visit(Match):
    """A visit as a match. It is won by saying ``done`` when the site stores what it should, and nothing else.

    Attributes:
        browser: what is seen.
        plan: what an oracle wants, one thing after the other; it looks at the browser.

    Args:
        site: as it is at first.
        goal: what it should store in the end.
        turns: how many commands there are.
    """

    def __init__(self, site: Site, goal: Mapping[str, Any], turns: int) -> None:
        super().__init__(turns)
        self.browser, self.goal = Browser(site), goal
        self.plan: Iterator[Intent] = iter(())
        self._leaves = _leaves(goal)
        self._sent: int = 0
        self._far = max(1, len(_leaves(site.data) ^ self._leaves))
        self._wanted: Intent | None = None
        self._advised, self._lost = "", 0

    def opening(self) -> str:
        """The first page."""
        return self.browser.shown

    def act(self, text: str) -> str:
        """What is shown after a turn: the page, below what could not be done."""
        said = said_in(text)
        if said == self._advised:
            self._wanted = None
        shown = self.answer(said)
        self.taken += 1
        self.over = self.over or self.taken >= self.turns
        return shown

    def answer(self, action: str) -> str:
        """What is shown after a command."""
        command = command_of(action)
        if command is None:
            return f"{HELP}\n{self.browser.shown}"
        if command[0] == "done":
            if self.browser.site.data == self.goal:
                self.win()
            else:
                self.lose()
            return ""
        why = self.browser.do(*command)
        if self.browser.sent != self._sent:
            self._sent = self.browser.sent
            away = len(_leaves(self.browser.site.data) ^ self._leaves) / self._far
            self.progress = min(0.99, max(0.0, 1.0 - away))
        return f"{why}\n{self.browser.shown}" if why else self.browser.shown

    def advise(self) -> str:
        """The next thing of the plan, in terms of the page; where it is not there, a step back, and at last the end."""
        self.effort += 1 + len(self.browser.elements)
        if self._wanted is None:
            self._wanted = next(self.plan, Intent("done"))
        command = self._wanted.command(self.browser.elements)
        if command is None:
            self._lost += 1
            command = "back" if self._lost <= _LOST and len(self.browser.history) > 1 else "done"
        self._advised = command
        return command


def _leaves(value: Any) -> set[str]:
    """Every value inside, with its place."""
    found, left = set[str](), [("", value)]
    while left:
        at, inner = left.pop()
        if isinstance(inner, dict):
            left += [(f"{at}/{k}", v) for k, v in cast("dict[str, Any]", inner).items()]
        elif isinstance(inner, list):
            left += [(f"{at}/{i}", v) for i, v in enumerate(cast("list[Any]", inner))]
        else:
            found.add(f"{at}={inner!r}")
    return found


_RULES = (
    "You use a web site through a text browser, which shows one page at a time. What can be used has a number in brackets. "
    "Commands: click N (a link, a button, a checkbox, a radio button), type N TEXT (into a field, in place of what is in it), "
    "select N OPTION (in a list), back (to the page before), done. What counts is what the site has stored when you say done: "
    "all that was asked, and nothing that was not. You have {turns} turns."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebProblem(Game, ABC):
    """Base of tasks on a site. The verifier makes the commands again in the text browser and compares what the site stores.

    Facts: ``data`` (what the site stores at first), ``asked`` (what is to be done), ``turns`` (twice what the oracle takes, and
    some). The goal is no fact: it is worked out from the other two, without a page.

    Attributes:
        browser: ``text`` shows pages by a browser of our own; ``chromium`` by a real one, which needs the extra ``web`` and a
            Chromium. What is seen and stored is the same.

    Raises:
        ConfigError: another browser.
    """

    domain: str = "web"
    levels: tuple[int, ...] = tuple(range(1, 9))
    browser: str = "text"
    move: ClassVar[str] = "command"

    frames: ClassVar[tuple[str, ...]] = ("{rules}\n\nYour task: {task}", "{task}\n\n{rules}", "{rules}\n\n{task}")

    def __post_init__(self) -> None:
        Game.__post_init__(self)
        if self.browser not in ("text", "chromium"):
            raise ConfigError(f"{self.name}.browser is {self.browser!r}; take 'text' or 'chromium'")

    @abstractmethod
    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the site stores at first, and what is asked."""
        ...

    @abstractmethod
    def site(self, data: Mapping[str, Any]) -> Site:
        """The site with such data."""
        ...

    @abstractmethod
    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """Makes data what they should be in the end, without the site."""
        ...

    @abstractmethod
    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """What an oracle does, by what it sees; the last ``done`` is not said."""
        ...

    @abstractmethod
    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """The task in three wordings."""
        ...

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A site on which the oracle succeeds, and saying ``done`` at once does not."""
        for _ in range(TRIES):
            data, asked = self.pose(level, rng)
            facts: dict[str, Any] = {"data": data, "asked": asked, "turns": MOST_TURNS}
            match, actions = self.play_oracle(facts)
            if match.won and 1 < len(actions) <= MOST_TURNS // 2:
                return facts | {"turns": min(MOST_TURNS, 2 * len(actions) + 4)}
        raise DataError(f"{self.name}: level {level}: the oracle succeeds on none of {TRIES} sites")

    def match(self, facts: Facts) -> Visit:
        """A fresh visit."""
        goal = copy_value(facts["data"])
        self.change(goal, facts["asked"])
        visit = Visit(self.site(facts["data"]), goal, facts["turns"])
        visit.plan = self.plan(facts["asked"], visit.browser)
        return visit

    @property
    def variants(self) -> int:
        """Three."""
        return len(self.frames)

    def word(self, facts: Facts, variant: int) -> str:
        """The task and the commands."""
        rules = _RULES.format(turns=facts["turns"])
        return self.frames[variant].format(rules=rules, task=self.tasks(facts["asked"])[variant])

    def environment(self, world: TaskView) -> Environment:
        """A browser for one rollout."""
        if self.browser == "chromium":
            from assay_tasks.web.chromium import Chromium

            facts = self.facts(world)
            return Chromium(world.id, self.site(facts["data"]), facts["turns"])
        return Playing(world.id, self.match(self.facts(world)))

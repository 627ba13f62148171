"""The text browser: a site behind it, commands that it understands, and what it shows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from assay.verify.answer_verifier import answer_in
from assay_tasks.web.page import Button, Element, Field, Form, Link, Page, Table, Text, Values, text_of

__all__ = [
    "HELP",
    "NO_PAGE",
    "Browser",
    "Site",
    "address",
    "command_of",
    "copy_value",
    "no_element",
    "no_option",
    "other_kind",
    "said_in",
]

_LONG = 300
_COMMAND = re.compile(r"(click|type|select|back|done)(?:[ \t]+\[?([0-9]{1,3})\]?(?:[ \t]+(.*))?)?", re.IGNORECASE)
_TAKES = {"click": (True, False), "type": (True, None), "select": (True, True), "back": (False, False), "done": (False, False)}
"""Whether a command needs a number, and whether it needs words: None where it may have none."""
HELP = "A turn is one command: click N, type N TEXT, select N OPTION, back or done."
"""What is said to a turn that is none."""
NO_PAGE = "There is no page to go back to."


def no_element(number: int) -> str:
    """What is said of a number that nothing has."""
    return f"There is no element {number} on this page."


def other_kind(number: int, verb: str) -> str:
    """What is said of an element that takes no such command."""
    return f"Element {number} is no {'field' if verb == 'type' else 'list'}."


def no_option(words: str) -> str:
    """What is said of an option that a list lacks."""
    return f'The list has no option "{words}".'


def address(path: str, **query: str) -> str:
    """A path with a query.

    >>> address("/find", q="red cup")
    '/find?q=red+cup'
    """
    return f"{path}?{urlencode(query)}" if query else path


def command_of(said: str) -> tuple[str, int, str] | None:
    """The verb, number and words of a command; None where it is none.

    >>> command_of("type 3 Dear Ann"), command_of("CLICK [2]"), command_of("done."), command_of("click it")
    (('type', 3, 'Dear Ann'), ('click', 2, ''), ('done', 0, ''), None)
    """
    found = _COMMAND.fullmatch(said.strip().removesuffix(".") if said.strip().casefold() in ("done.", "back.") else said.strip())
    if found is None:
        return None
    verb, number, words = found[1].casefold(), found[2], (found[3] or "").strip()
    numbered, worded = _TAKES[verb]
    if numbered != bool(number) or (worded is not None and worded != bool(words)):
        return None
    return verb, int(number or 0), words


def said_in(text: str) -> str:
    """What a turn gives as its answer: in a tag, a box, behind ``Answer:``, or all of it; no more than 300 characters."""
    return (answer_in(text) or "").strip()[:_LONG]


class Site(ABC):
    """A server: it answers requests from its data and changes them, and knows nothing of who asks.

    Attributes:
        data: all that it stores, as plain JSON values.

    Args:
        data: what it stores at first; it is copied.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data: dict[str, Any] = copy_value(data)

    def get(self, url: str) -> Page:
        """The page at an address."""
        path, _, query = url.partition("?")
        found = self.page(path, dict(parse_qsl(query, keep_blank_values=True)))
        return found if found is not None else Page("Not found", (Text("There is no such page."), Link("Home", "/")))

    @abstractmethod
    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        """The page of a path; None where there is none."""
        ...

    def send(self, url: str, sent: Mapping[str, str]) -> str:
        """Takes what a form sends to an address, and says which address comes next."""
        path, _, query = url.partition("?")
        return self.post(path, {**dict(parse_qsl(query, keep_blank_values=True)), **sent})

    @abstractmethod
    def post(self, path: str, sent: Mapping[str, str]) -> str:
        """Stores what a form sends, together with its address's own query, and says which address comes next."""
        ...


def copy_value(value: Any) -> Any:
    """Lists and tables anew, all the way down."""
    if isinstance(value, str | int):  # most are, and the other questions are dearer
        return value
    if isinstance(value, Mapping):
        return {key: copy_value(inner) for key, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [copy_value(inner) for inner in cast("list[Any]", value)]
    return value


class Browser:
    """What stands between a site and who reads it: one page, what is filled in on it, and the way back.

    Attributes:
        page, elements, shown: the page, what can be used on it, and its text.
        sent: how many forms were sent.
    """

    def __init__(self, site: Site) -> None:
        self.site, self.values, self.history = site, Values(), ["/"]
        self.page, self.elements, self.shown = Page(""), list[Element](), ""
        self.sent: int = 0
        self._load()

    def do(self, verb: str, number: int, words: str) -> str:
        """Carries a command out; says why where it cannot be, and nothing else."""
        if verb == "back":
            if len(self.history) < 2:
                return NO_PAGE
            self.history.pop()
            self._load()
            return ""
        if not 0 < number <= len(self.elements):
            return no_element(number)
        element = self.elements[number - 1]
        what = element.what
        if verb == "click":
            return self._click(element)
        if not isinstance(what, Field) or what.kind != {"type": "text", "select": "select"}[verb]:
            return other_kind(number, verb)
        if verb == "select" and words not in what.options:
            return no_option(words)
        self._fill(element, what, words)
        return ""

    def _click(self, element: Element) -> str:
        what = element.what
        if isinstance(what, Link):
            self._go(what.to)
        elif isinstance(what, Button):
            self._send(element.form, what)
        elif what.kind == "radio":
            self._fill(element, what, element.option)
        elif what.kind == "checkbox":
            now = self.values.get((element.form, what.name), what.value)
            self._fill(element, what, "" if now == "on" else "on")
        return ""

    def _fill(self, element: Element, what: Field, value: str) -> None:
        self.values[element.form, what.name] = value
        self._show()

    def _send(self, form: int, button: Button) -> None:
        sent: dict[str, str] = {}
        for what in (element.what for element in self.elements if element.form == form):
            if isinstance(what, Field):
                value = self.values.get((form, what.name), what.value)
                if value or what.kind in ("text", "select"):
                    sent[what.name] = value
        if button.name:
            sent[button.name] = button.value
        self.sent += 1
        self.history.append(self.site.send(list(_forms(self.page))[form].to, sent))
        self._load()

    def _go(self, url: str) -> None:
        """Follows a link; one to the page itself is no step, where a form that leads back to its page is."""
        if url != self.history[-1]:
            self.history.append(url)
        self._load()

    def _load(self) -> None:
        self.page, self.values = self.site.get(self.history[-1]), {}
        self._show()

    def _show(self) -> None:
        self.shown, self.elements = text_of(self.page, self.values)


def _forms(page: Page) -> Iterator[Form]:
    """The forms of a page, in their order."""
    for part in page.parts:
        if isinstance(part, Form):
            yield part
        elif isinstance(part, Table):
            yield from (cell for row in (part.head, *part.rows) for cell in row if isinstance(cell, Form))

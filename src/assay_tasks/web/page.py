"""Pages: their parts, their text with numbered elements, and their HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

__all__ = ["Button", "Cell", "Element", "Field", "Form", "Link", "Page", "Part", "Table", "Text", "Values", "html_of", "text_of"]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or a heading."""

    text: str
    heading: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """What leads to another page."""

    text: str
    to: str


@dataclass(frozen=True, slots=True)
class Field:
    """What can be filled in.

    Attributes:
        kind: ``text``, ``checkbox``, ``radio`` or ``select``.
        name: in what is sent.
        label: what it is called on the page.
        value: at first; ``on`` or nothing for a checkbox.
        options: of ``radio`` and ``select``.
    """

    kind: str
    name: str
    label: str
    value: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Button:
    """What sends its form, with a name and a value of its own where it has them."""

    text: str
    name: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """Fields and buttons that are sent to an address; without a field it is shown in one line."""

    to: str
    parts: tuple[Field | Button, ...]


Cell: TypeAlias = "str | Link | Form"
"""What stands in a table: text, a link, or a form of buttons."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells below a head."""

    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


Part: TypeAlias = "Text | Link | Form | Table"


@dataclass(frozen=True, slots=True)
class Page:
    """What a site answers with."""

    title: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Element:
    """Something that can be used.

    Attributes:
        what: the link, field or button.
        option: of a radio button.
        form: its form, by number from the first of the page; -1 for a link.
        row: texts that stand in its row of a table.
    """

    what: Link | Field | Button
    option: str = ""
    form: int = -1
    row: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What it is called."""
        return self.what.label if isinstance(self.what, Field) else self.what.text


Values: TypeAlias = dict[tuple[int, str], str]
"""Number of a form and name of a field to what is filled in at the moment."""


@dataclass(slots=True)
class _Reading:
    """A page that is written down, element by element."""

    values: Mapping[tuple[int, str], str]
    elements: list[Element] = field(default_factory=list[Element])
    forms: int = 0

    def number(self, element: Element, said: str) -> str:
        self.elements.append(element)
        return f"[{len(self.elements)}] {said}"

    def link(self, link: Link, row: tuple[str, ...] = ()) -> str:
        return self.number(Element(link, row=row), f'link "{link.text}"')

    def form(self, form: Form, row: tuple[str, ...] = ()) -> Iterator[str]:
        number, self.forms = self.forms, self.forms + 1
        for part in form.parts:
            if isinstance(part, Button):
                yield self.number(Element(part, form=number, row=row), f'button "{part.text}"')
                continue
            value = self.values.get((number, part.name), part.value)
            if part.kind == "radio":
                for option in part.options:
                    state = "on" if option == value else "off"
                    yield self.number(Element(part, option, number, row), f'radio "{part.label}: {option}" {state}')
            elif part.kind == "checkbox":
                yield self.number(Element(part, form=number, row=row), f'checkbox "{part.label}" {value or "off"}')
            elif part.kind == "select":
                options = ", ".join(f'"{option}"' for option in part.options)
                yield self.number(Element(part, form=number, row=row), f'list "{part.label}" "{value}", one of {options}')
            else:
                yield self.number(Element(part, form=number, row=row), f'field "{part.label}" "{value}"')

    def cells(self, cells: Sequence[Cell]) -> str:
        row = tuple(cell if isinstance(cell, str) else cell.text for cell in cells if not isinstance(cell, Form))
        shown: list[str] = []
        for cell in cells:
            if isinstance(cell, str):
                shown.append(cell)
            else:
                shown.append(self.link(cell, row) if isinstance(cell, Link) else " ".join(self.form(cell, row)))
        while shown and not shown[-1]:
            shown.pop()
        return " | ".join(shown)

    def lines(self, page: Page) -> Iterator[str]:
        yield f"Page: {page.title}"
        for part in page.parts:
            match part:
                case Text():
                    yield f"# {part.text}" if part.heading else part.text
                case Link():
                    yield self.link(part)
                case Form():
                    yield from self.form(part)
                case Table():
                    yield self.cells(part.head)
                    yield from map(self.cells, part.rows)


def text_of(page: Page, values: Mapping[tuple[int, str], str]) -> tuple[str, list[Element]]:
    r"""A page as text, with what is filled in at the moment, and its elements in the order of their numbers from 1.

    >>> text_of(Page("Hello", (Text("Be welcome."), Form("/x", (Field("text", "n", "Name"), Button("Go"))))), {(0, "n"): "Bo"})[0]
    'Page: Hello\nBe welcome.\n[1] field "Name" "Bo"\n[2] button "Go"'
    """
    reading = _Reading(values)
    return "\n".join(reading.lines(page)), reading.elements


def html_of(page: Page) -> str:
    """The same page for a browser."""
    body = "\n".join(_html(part) for part in page.parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(page.title)}</title></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _html(part: Part) -> str:
    match part:
        case Text():
            tag = "h1" if part.heading else "p"
            return f"<{tag}>{escape(part.text)}</{tag}>"
        case Link():
            return f"<div>{_inline(part)}</div>"
        case Form():
            return _inline(part, "div")
        case Table():
            rows = [
                f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in row)}</tr>"
                for tag, row in [("th", part.head), *(("td", row) for row in part.rows)]
            ]
            return f"<table>{''.join(rows)}</table>"


def _inline(cell: Cell, tag: str = "span") -> str:
    match cell:
        case str():
            return escape(cell)
        case Link():
            return f'<a href="{escape(cell.to)}">{escape(cell.text)}</a>'
        case Form():
            inside = "".join(f"<{tag}>{_control(part)}</{tag}>" for part in cell.parts)
            return f'<form method="post" action="{escape(cell.to)}" autocomplete="off">{inside}</form>'


def _control(part: Field | Button) -> str:
    if isinstance(part, Button):
        named = f' name="{escape(part.name)}" value="{escape(part.value)}"' if part.name else ""
        return f"<button{named}>{escape(part.text)}</button>"
    name, label = f'name="{escape(part.name)}"', f'aria-label="{escape(part.label)}"'
    match part.kind:
        case "checkbox":
            return (
                f'<label>{escape(part.label)} <input type="checkbox" {name} {label}{" checked" * (part.value == "on")}></label>'
            )
        case "radio":
            return "".join(
                f'<label>{escape(option)} <input type="radio" {name} {label} value="{escape(option)}"'
                f"{' checked' * (option == part.value)}></label>"
                for option in part.options
            )
        case "select":
            options = "".join(
                f"<option{' selected' * (option == part.value)}>{escape(option)}</option>" for option in part.options
            )
            return f"<label>{escape(part.label)} <select {name} {label}>{options}</select></label>"
        case _:
            return f'<label>{escape(part.label)} <input type="text" {name} {label} value="{escape(part.value)}"></label>'

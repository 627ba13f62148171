"""A design as the compiler understood it: its ports, and the edges it waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Design", "Port", "design_in"]

_SCOPE = re.compile(r'^S_\S+ \.scope module, "((?:\\.|[^"\\])*)"', re.MULTILINE)
_PORT = re.compile(r'^ +\.port_info \d+ /(INPUT|OUTPUT|INOUT) (\d+) "((?:\\.|[^"\\])*)"', re.MULTILINE)
_NET = re.compile(r'^(v\w+) \.net\S*(?: \*?)?"((?:\\.|[^"\\])*)", -?\d+ -?\d+, (\w+)', re.MULTILINE)
_EVENT = re.compile(r"^(E_\w+)(?:/\d+)? \.event (posedge|negedge), ([^;\n]*)", re.MULTILINE)
_FUNCTOR = re.compile(r"^(L_\w+)(?:/d)? \.\w+\S* (?:\w+ )?[^\n]*", re.MULTILINE)
_LABEL = re.compile(r"\b[Lov]_?0x\w+")
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Port:
    """One port.

    Attributes:
        name: of the port.
        direction: ``input``, ``output`` or ``inout``.
        width: bits.
    """

    name: str
    direction: str
    width: int


@dataclass(frozen=True, slots=True)
class Design:
    """What the compiler made of a module, with its parameters at their defaults.

    Attributes:
        ports: in the order of the header.
        waits: for each event that a process waits for, the edges of inputs that make it: ``posedge`` or ``negedge``, and name.
    """

    ports: tuple[Port, ...]
    waits: tuple[frozenset[tuple[str, str]], ...] = ()

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Ports that are driven."""
        return tuple(p for p in self.ports if p.direction == "input")

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Ports that are read."""
        return tuple(p for p in self.ports if p.direction == "output")


def design_in(code: str, instance: str) -> Design | None:
    r"""Reads a design from what Icarus Verilog compiled it to; None where it has no such instance.

    The compiler has resolved ANSI and other headers, parameters, types and packed arrays; so nothing here guesses at syntax.

    Args:
        code: the compiled text.
        instance: the name of the instance, or of the module where it is the root.

    >>> text = 'S_0x1 .scope module, "t" "t" 2 1;\n    .port_info 0 /INPUT 4 "a";\n'
    >>> design_in(text, "t").ports
    (Port(name='a', direction='input', width=4),)
    """
    scopes = list(_SCOPE.finditer(code))
    for scope, after in zip(scopes, [*scopes[1:], None], strict=True):
        if _plain(scope[1]) == instance:
            part = code[scope.end() : after.start() if after else len(code)]
            ports = tuple(Port(_plain(name), kind.lower(), int(width)) for kind, width, name in _PORT.findall(part))
            return Design(ports, tuple(_waits(code, part, ports)))
    return None


def _waits(code: str, part: str, ports: tuple[Port, ...]) -> Iterator[frozenset[tuple[str, str]]]:
    """The edges of input ports, traced back from what the processes wait for to what drives it."""
    single = {p.name for p in ports if p.direction == "input" and p.width == 1}
    sources = {label: _plain(name) for _, name, label in _NET.findall(part) if _plain(name) in single}
    drivers = {net: label for net, _, label in _NET.findall(code)}
    functors = {found[1]: _LABEL.findall(found.group())[1:] for found in _FUNCTOR.finditer(code)}
    groups: dict[str, list[tuple[str, str]]] = {}
    for event, edge, nets in _EVENT.findall(code):
        for net in nets.split(", "):  # those with the same edge stand together
            found = _driven_by(drivers.get(net, net), sources, functors, drivers)
            groups.setdefault(event, []).extend((edge, name) for name in found)
    for edges in groups.values():
        if edges:
            yield frozenset(edges)


def _driven_by(label: str, sources: dict[str, str], functors: dict[str, list[str]], drivers: dict[str, str]) -> list[str]:
    """The input ports that a signal is made of by gates alone; of several, those that look like clocks."""
    found: list[str] = []
    seen: set[str] = set()
    todo = [label]
    while todo:
        label = todo.pop()
        if label in seen:
            continue
        seen.add(label)
        if label in sources:
            found.append(sources[label])
        else:
            todo += [*functors.get(label, ()), *([drivers[label]] if label in drivers else [])]
    named = [name for name in found if CLOCK.search(name)]
    return found if len(found) == 1 else named


CLOCK = re.compile(r"clk|clock|^(?:ck|cp|c)$", re.IGNORECASE)
"""What names of clocks look like."""


def _plain(name: str) -> str:
    return _ESCAPE.sub(r"\1", name)

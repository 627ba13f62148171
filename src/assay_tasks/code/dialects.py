"""The small language written in nine others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.core.errors import UnknownNameError

__all__ = ["DIALECTS", "Dialect", "dialect", "write_program"]

_RELATIONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "and", "or", "not"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one language writes statements.

    Attributes:
        name: as in `assay.sandbox.language`.
        title: as in English.
        let, put, array, at: of variables and arrays; ``{v}`` is the name, ``{e}`` an expression, ``{i}`` an index.
        opened, other, closed: of ``if``; ``closed`` also ends loops and functions, "" where indentation does.
        whiles, fors: of loops.
        ends: of simple statements.
        function, parameter: of functions.
        call: of a function.
        stop: ``break``.
        before, start, finish: lines of the file before functions, before main and behind it.
        depth: indentation of main.
        comment: what begins one.
        operators: those that are written otherwise.
        sigil: what stands before names of numbers.
    """

    name: str
    title: str
    let: str
    array: str
    before: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    finish: tuple[str, ...] = ()
    function: str
    parameter: str
    fors: str
    at: str = "{v}[{i}]"
    opened: str = "if ({c}) {{"
    other: str = "}} else {{"
    closed: str = "}}"
    whiles: str = "while ({c}) {{"
    ends: str = ";"
    call: str = "{f}({e})"
    stop: str = "break"
    depth: int = 1
    comment: str = "//"
    operators: tuple[tuple[str, str], ...] = (("//", "/"), ("and", "&&"), ("or", "||"))
    sigil: str = ""

    def expression(self, e: Any, inner: bool = False) -> str:
        """An expression; within another one in brackets."""
        if isinstance(e, int):
            return str(e)
        if isinstance(e, str):
            return e if e == "?" else f"{self.sigil}{e}"
        op = e[0]
        if op == "at":
            return self.at.format(v=e[1], i=self._index(e[2]))
        if op == "call":
            return self.call.format(f=e[1], e=", ".join(self.expression(x) for x in e[2]))
        if op == "not":
            return f"{dict(self.operators).get('not', '!')}({self.expression(e[1])})"
        a, b = self.expression(e[1], True), self.expression(e[2], True)
        if op == "//" and self.name in ("javascript", "perl"):
            return f"{'Math.floor' if self.name == 'javascript' else 'int'}({a} / {b})"
        text = f"{a} {dict(self.operators).get(op, op)} {b}"
        return f"({text})" if inner else text

    def lines(self, body: Sequence[Any], depth: int) -> list[str]:
        """Statements, indented."""
        found: list[str] = []
        for statement in body:
            found += self._statement(statement, depth)
        return found

    def _statement(self, s: Sequence[Any], depth: int) -> list[str]:
        pad = "    " * depth
        match s[0]:
            case "gap":
                return [f"{pad}{self.comment} ?"]
            case "mark":
                first, *rest = self._statement(s[1], depth)
                return [f"{first}  {self.comment} marked", *rest]
            case "if":
                found = [pad + self.opened.format(c=self.expression(s[1])), *self.lines(s[2], depth + 1)]
                if s[3]:
                    found += [pad + self.other.format(), *self.lines(s[3], depth + 1)]
            case "while":
                found = [pad + self.whiles.format(c=self.expression(s[1])), *self.lines(s[2], depth + 1)]
            case "for":
                last = self.expression(s[3] - 1 if isinstance(s[3], int) else ["-", s[3], 1])
                head = self.fors.format(v=s[1], a=self.expression(s[2]), b=self.expression(s[3]), last=last)
                found = [pad + head, *self.lines(s[4], depth + 1)]
            case _:
                return [f"{pad}{self._simple(s)}{self.ends}"]
        return [*found, pad + self.closed.format()] if self.closed else found

    def line(self, statement: Sequence[Any]) -> str:
        """A simple statement on its own."""
        return f"{self._simple(statement)}{self.ends}"

    def _simple(self, s: Sequence[Any]) -> str:
        match s[0]:
            case "let":
                return self.let.format(v=s[1], e=self.expression(s[2]))
            case "set":
                return f"{self.sigil}{s[1]} = {self.expression(s[2])}"
            case "array":
                return self.array.format(v=s[1], e=", ".join(map(str, s[2])))
            case "put":
                return f"{self.at.format(v=s[1], i=self._index(s[2]))} = {self.expression(s[3])}"
            case "break":
                return self.stop
            case "return":
                return f"return {self.expression(s[1])}"
            case _:
                return _print_call(self.name, [self.expression(e) for e in s[1]], [isinstance(e, list) for e in s[1]])

    def _index(self, e: Any) -> str:
        if self.name == "lua":
            return str(e + 1) if isinstance(e, int) else self.expression(["+", e, 1])
        return f"({self.expression(e)}) as usize" if self.name == "rust" and not isinstance(e, int) else self.expression(e)


def _print_call(name: str, items: list[str], nested: list[bool]) -> str:
    bare = [f"({item})" if deep else item for item, deep in zip(items, nested, strict=True)]
    match name:
        case "python":
            return f"print({', '.join(items)})"
        case "javascript":
            return f"console.log({', '.join(items)})"
        case "c":
            return f'printf("{" ".join(["%d"] * len(items))}\\n", {", ".join(items)})'
        case "cpp":
            return f"std::cout << {_join_items(bare, ' << ')} << '\\n'"
        case "java":
            return f"System.out.println({_join_items(bare, ' + ')})"
        case "perl":
            return f'print join(" ", {", ".join(items)}), "\\n"'
        case "lua":
            return f"print({_join_items(bare, ' .. ')})"
        case "go":
            return f"fmt.Println({', '.join(items)})"
        case _:
            return f'println!("{" ".join(["{}"] * len(items))}", {", ".join(items)})'


def _join_items(items: list[str], sign: str) -> str:
    return f'{sign}" "{sign}'.join(items)


_DIALECTS = {
    d.name: d
    for d in (
        Dialect(
            name="python",
            title="Python",
            let="{v} = {e}",
            array="{v} = [{e}]",
            function="def {f}({p}):",
            parameter="{p}",
            fors="for {v} in range({a}, {b}):",
            opened="if {c}:",
            other="else:",
            closed="",
            whiles="while {c}:",
            ends="",
            depth=0,
            comment="#",
            operators=(("not", "not "),),
        ),
        Dialect(
            name="javascript",
            title="JavaScript",
            let="let {v} = {e}",
            array="const {v} = [{e}]",
            function="function {f}({p}) {{",
            parameter="{p}",
            fors="for (let {v} = {a}; {v} < {b}; {v}++) {{",
            depth=0,
            operators=(("and", "&&"), ("or", "||"), ("==", "==="), ("!=", "!==")),
        ),
        Dialect(
            name="c",
            title="C",
            let="int {v} = {e}",
            array="int {v}[] = {{{e}}}",
            before=("#include <stdio.h>", ""),
            start=("int main(void) {",),
            finish=("    return 0;", "}"),
            function="int {f}({p}) {{",
            parameter="int {p}",
            fors="for (int {v} = {a}; {v} < {b}; {v}++) {{",
        ),
        Dialect(
            name="cpp",
            title="C++",
            let="int {v} = {e}",
            array="std::vector<int> {v} = {{{e}}}",
            before=("#include <iostream>", "#include <vector>", ""),
            start=("int main() {",),
            finish=("}",),
            function="int {f}({p}) {{",
            parameter="int {p}",
            fors="for (int {v} = {a}; {v} < {b}; {v}++) {{",
        ),
        Dialect(
            name="java",
            title="Java",
            let="int {v} = {e}",
            array="int[] {v} = {{{e}}}",
            before=("public class Main {",),
            start=("    public static void main(String[] args) {",),
            finish=("    }", "}"),
            function="static int {f}({p}) {{",
            parameter="int {p}",
            fors="for (int {v} = {a}; {v} < {b}; {v}++) {{",
            depth=2,
        ),
        Dialect(
            name="perl",
            title="Perl",
            let="my ${v} = {e}",
            array="my @{v} = ({e})",
            at="${v}[{i}]",
            before=("use strict;", "use warnings;", ""),
            function="sub {f} {{",
            parameter="${p}",
            fors="for my ${v} ({a} .. {last}) {{",
            stop="last",
            depth=0,
            comment="#",
            operators=(("and", "&&"), ("or", "||")),
            sigil="$",
        ),
        Dialect(
            name="lua",
            title="Lua",
            let="local {v} = {e}",
            array="local {v} = {{{e}}}",
            function="local function {f}({p})",
            parameter="{p}",
            fors="for {v} = {a}, {last} do",
            opened="if {c} then",
            other="else",
            closed="end",
            whiles="while {c} do",
            ends="",
            depth=0,
            comment="--",
            operators=(("^", "~"), ("!=", "~="), ("not", "not ")),
        ),
        Dialect(
            name="go",
            title="Go",
            let="{v} := {e}",
            array="{v} := []int{{{e}}}",
            before=("package main", "", 'import "fmt"', ""),
            start=("func main() {",),
            finish=("}",),
            function="func {f}({p}) int {{",
            parameter="{p} int",
            fors="for {v} := {a}; {v} < {b}; {v}++ {{",
            opened="if {c} {{",
            whiles="for {c} {{",
            ends="",
        ),
        Dialect(
            name="rust",
            title="Rust",
            let="let mut {v}: i64 = {e}",
            array="let mut {v}: Vec<i64> = vec![{e}]",
            before=("#![allow(warnings)]", ""),
            start=("fn main() {",),
            finish=("}",),
            function="fn {f}({p}) -> i64 {{",
            parameter="{p}: i64",
            fors="for {v} in {a}..{b} {{",
            opened="if {c} {{",
            whiles="while {c} {{",
        ),
    )
}

DIALECTS = tuple(_DIALECTS)
"""Names of the languages that programs are written in."""


def dialect(name: str) -> Dialect:
    """A language by name.

    Raises:
        UnknownNameError: programs cannot be written in it.
    """
    if name not in _DIALECTS:
        raise UnknownNameError("language of programs", name, DIALECTS)
    return _DIALECTS[name]


def write_program(program: Mapping[str, Any], name: str) -> str:
    """A whole program in a language.

    >>> functions = [["f", ["a"], [["return", ["+", "a", 1]]]]]
    >>> print(write_program({"functions": functions, "main": [["print", [["call", "f", [2]]]]]}, "lua"))
    local function f(a)
        return a + 1
    end
    <BLANKLINE>
    print((f(2)))
    """
    d = dialect(name)
    base = 1 if name == "java" else 0
    found = list(d.before)
    for function, params, body in program["functions"]:
        listed = ", ".join(d.parameter.format(p=p) for p in params)
        found.append("    " * base + d.function.format(f=function, p="" if name == "perl" else listed))
        if name == "perl":
            found.append(f"    my ({listed}) = @_;")
        found += d.lines(body, base + 1)
        if d.closed:
            found.append("    " * base + d.closed.format())
        found.append("")
    return "\n".join([*found, *d.start, *d.lines(program["main"], d.depth), *d.finish])

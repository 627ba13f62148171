"""Print the largest files, functions, signatures and configs, for a reader to judge.

A report, never a gate: what belongs together is not split to please a number. A code line is one that holds
at least one token outside comments and docstrings.
"""

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_DEFINITIONS)


@dataclass(frozen=True)
class Entry:
    """One line of the report: a size and the place that has it."""

    size: int
    place: str


@dataclass
class Sizes:
    """The four lists of the report."""

    files: list[Entry] = field(default_factory=list[Entry])
    functions: list[Entry] = field(default_factory=list[Entry])
    arguments: list[Entry] = field(default_factory=list[Entry])
    fields: list[Entry] = field(default_factory=list[Entry])


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of `source` that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            doc = node.body[0]
            lines.difference_update(range(doc.lineno, (doc.end_lineno or doc.lineno) + 1))
    return lines


def definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every function and class below `tree` with its dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ClassDef, *_DEFINITIONS)):
            name = f"{prefix}{node.name}"
            yield name, node
            yield from definitions(node, f"{name}.")
        else:
            yield from definitions(node, prefix)


def count_arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many arguments a caller of `node` sees: `self` and `cls` do not count."""
    spec = node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    bound = 1 if names[:1] in (["self"], ["cls"]) else 0
    return len(names) - bound + len(spec.kwonlyargs) + (spec.vararg is not None) + (spec.kwarg is not None)


def count_fields(node: ast.ClassDef) -> int:
    """Return how many fields the dataclass `node` declares; 0 where it is none."""
    if not any("dataclass" in ast.unparse(d) for d in node.decorator_list):
        return 0
    declared = [s for s in node.body if isinstance(s, ast.AnnAssign)]
    return sum("ClassVar" not in ast.unparse(s.annotation) for s in declared)


def measure(paths: Sequence[Path]) -> Sizes:
    """Return the sizes of everything in the Python files `paths`."""
    sizes = Sizes()
    for path in paths:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        lines = code_lines(source, tree)
        sizes.files.append(Entry(len(source.splitlines()), f"{path} ({len(lines)} code)"))
        for name, node in definitions(tree):
            place = f"{path}:{node.lineno} {name}" if isinstance(node, ast.stmt) else name
            if isinstance(node, _DEFINITIONS):
                span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                sizes.functions.append(Entry(len(lines.intersection(span)), place))
                sizes.arguments.append(Entry(count_arguments(node), place))
            elif isinstance(node, ast.ClassDef) and (count := count_fields(node)):
                sizes.fields.append(Entry(count, place))
    return sizes


def show(title: str, entries: list[Entry], limit: int) -> None:
    """Print the `limit` largest of `entries`, with the median of all."""
    ordered = sorted(entries, key=lambda e: (-e.size, e.place))
    median = ordered[len(ordered) // 2].size if ordered else 0
    print(f"{title} (of {len(ordered)}, median {median})")
    for entry in ordered[:limit]:
        print(f"  {entry.size:5d}  {entry.place}")


def main(roots: Sequence[str]) -> int:
    """Print the report for the Python files under `roots`."""
    paths = sorted(p for root in roots for p in Path(root).rglob("*.py"))
    sizes = measure(paths)
    show("lines per file", sizes.files, 10)
    show("code lines per function", sizes.functions, 10)
    show("arguments per function", sizes.arguments, 6)
    show("fields per dataclass", sizes.fields, 6)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["src", "tools", "benchmarks"]))

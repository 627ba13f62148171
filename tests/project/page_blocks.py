"""The blocks of a page: its code, its commands, its data; found wherever they stand."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```([^\s`]*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:    .*\n|\n(?=    ))+)")
_COMMAND = re.compile(r"(assay|echo|make|python|pip|curl|vf-\w+|VLLM_\w+=\S+|[A-Z_]+=\S+|\.venv/bin/\w+|\.) ")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: relative to the root of the repository.
        line: where it begins.
        kind: ``python``, ``toml``, ``json``, ``shell``, or ``text`` for what is none of these.
        text: its lines.
    """

    page: str
    line: int
    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block: without comments, and with the lines that go on joined."""
        joined = self.text.replace("\\\n", " ")
        return [line.strip() for line in joined.splitlines() if line.strip() and _COMMAND.match(line.strip())]


def pages() -> list[Path]:
    """The README and every page that a person writes; the evidence and decisions are records."""
    docs = [p for p in (ROOT / "docs").rglob("*.md") if not {"adr", "reference", "evidence"} & set(p.parts)]
    return [ROOT / "README.md", *sorted(docs)]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order; doctests, which sphinx runs, and directives are none."""
    text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        language, body = match.groups()
        if not language.startswith("{") and not body.startswith(">>>"):
            found.append(Block(name, _line(text, match.start()), _kind(language, body), body))
    outside = _FENCE.sub(lambda m: "x" + "\n" * m.group().count("\n"), text)
    for match in _INDENTED.finditer(outside):
        body = re.sub(r"^    ", "", match.group(1), flags=re.MULTILINE)
        above = outside[: match.start()].rstrip().rpartition("\n")[2]
        if not re.match(r"\s*([-*]|\d+\.|>>>|\.\.\.) ", above) and not body.lstrip().startswith(("- ", ">>>", "... ")):
            found.append(Block(name, _line(text, match.start()), _kind("", body), body))
    return sorted(found, key=lambda b: b.line)


def words_of(command: str) -> list[str]:
    """The words of a command, as a shell would give them to a program."""
    return shlex.split(command, comments=True)


def _line(text: str, start: int) -> int:
    return text[:start].count("\n") + 1


def _kind(language: str, body: str) -> str:
    if language in ("python", "toml", "json"):
        return language
    first = body.strip().splitlines()[0] if body.strip() else ""
    return "shell" if _COMMAND.match(first) else "text"

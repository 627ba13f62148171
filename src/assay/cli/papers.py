"""``assay papers``: published systems, what of each is here, and the command that runs it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any

from assay.cli.options import parse
from assay.cli.output import grid, lines, show
from assay.cli.text_wrap import columns, fill
from assay.core.errors import ConfigError
from assay.core.papers import Paper, load_papers, paper_named

__all__ = ["papers_command"]

_HELP = {
    "list": "all of them; --whole: those that are here as a whole; --json",
    "show PAPER": "one, by its key, name, title or arXiv id; --json",
    "run PAPER": "run its command; further options go to that command",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """Lists published systems.

    Attributes:
        whole: only those whose method is here as a whole.
        json: print JSON.
    """

    whole: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """Shows one published system.

    Attributes:
        paper: its key, name, title or arXiv id.
        json: print JSON.
    """

    paper: str = field(metadata={"positional": True, "arg": {"metavar": "PAPER"}})
    json: bool = False


def papers_command(args: list[str]) -> int:
    """``assay papers list | show PAPER | run PAPER``."""
    if not args or args[0] in ("-h", "--help"):
        print("usage: assay papers list | show PAPER | run PAPER [OPTIONS]\n")
        print(fill("Published systems: what of each is here, its tests, the command that runs it."), end="\n\n")
        print(columns(_HELP))
        return 0
    word, rest = args[0], args[1:]
    if word == "list":
        return _list(parse(ListOptions, rest, "assay papers list"))
    if word == "show":
        own = parse(ShowOptions, rest, "assay papers show")
        return _show(own.json, paper_named(own.paper))
    if word == "run":
        return _run(rest)
    raise ConfigError(f"assay papers {word}: use list, show or run")


def _list(own: ListOptions) -> int:
    papers = [p for p in load_papers() if p.whole or not own.whole]

    def text() -> None:
        grid(
            ("paper", "arXiv", "here", "what"),
            [[f"{p.key}\n{p.name}", p.arxiv or "–", "whole" if p.whole else "part", p.title] for p in papers],
        )
        whole = sum(p.whole for p in papers)
        print(f"{len(papers)} published systems, {whole} as a whole; 'assay papers show PAPER' says which part of the others")

    return show(own.json, [_row(p) for p in papers], text)


def _row(paper: Paper) -> dict[str, Any]:
    return {
        "key": paper.key,
        "name": paper.name,
        "title": paper.title,
        "arxiv": paper.arxiv,
        "whole": paper.whole,
        "here": paper.here,
        "missing": paper.missing,
        "parts": list(paper.parts),
        "run": paper.run,
        "tests": list(paper.tests),
        "evidence": paper.evidence,
        "control": paper.control,
    }


def _show(as_json: bool, paper: Paper) -> int:
    def text() -> None:
        lines(
            {
                paper.name: paper.title,
                "arXiv": paper.arxiv or "–",
                "here": paper.here,
                "missing": paper.missing or "nothing",
                "parts": "\n".join(paper.parts),
                "run": paper.run or "–",
                "tests": "\n".join(paper.tests),
                "evidence": " – ".join(filter(None, (paper.evidence, paper.control)))
                or "–: its tests, and nothing trained beside a control",
            }
        )

    return show(as_json, _row(paper), text)


def _run(rest: list[str]) -> int:
    from assay.cli import main

    if not rest or rest[0].startswith("-"):
        raise ConfigError("assay papers run: name a paper, as in 'assay papers run sec --steps 20'")
    paper = paper_named(rest[0])
    program, *words = shlex.split(paper.run) or [""]
    if program != "assay":
        raise ConfigError(f"{paper.name} has no command that runs it alone; 'assay papers show {paper.key}' names its parts")
    print(f"{paper.run} {shlex.join(rest[1:])}".rstrip(), flush=True)
    return main([*words, *rest[1:]])

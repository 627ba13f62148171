"""Published systems, as each package declares which of them it carries, in a ``papers.toml`` beside its parts.

Packages that offer task families (entry points ``assay.tasks``) declare theirs in the same way, and so does ``assay_control``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from assay.core.errors import ConfigError, DataError, UnknownNameError

__all__ = ["CONTROLS", "Paper", "load_papers", "paper_named"]

CONTROLS = {
    "docs/evidence/agents.md": "one seed, several for the recipe `tools`; its control is the same run under random rewards, or "
    "with tools that answer wrongly",
    "docs/evidence/calibration.md": "five seeds; its control is the same run, rewarded for a right answer in the stated form",
    "docs/evidence/comparison.md": "each arm beside the others on equal budgets, tuned alike",
    "docs/evidence/contamination.md": "models that were shown the items beside those that were not",
    "docs/evidence/control.md": "five seeds; the method that it changes, on the same data, settings not tuned alike",
    "docs/evidence/control_methods.md": "two seeds; a control stands beside each method, settings not tuned alike",
    "docs/evidence/curricula.md": "five seeds; each arm beside uniform draws at equal processor time, tuned alike; and two "
    "seeds of tasks chosen over runs beside random ones, one of mixtures",
    "docs/evidence/guides.md": "one seed, 150 steps, and three for chosen rows; its control is the same run under random "
    "rewards, or on as many random rows",
    "docs/evidence/parts.md": "two seeds, not tuned; beside uniform draws, other group sizes, rows at random, the same run "
    "without the part, or paid at random",
    "docs/evidence/help.md": "five seeds on equal CPU-seconds; its controls are the same run without help, and one seed each "
    "with another task's solution and with a shuffled one",
    "docs/evidence/methods.md": "one seed, 40 steps at one learning rate; its control is the base before training, and "
    "random rewards were tried under GRPO and RLOO alone",
    "docs/evidence/papers.md": "one seed; its control stands beside it on that page",
    "docs/evidence/forced_parts.md": "three seeds; the same run without the part, and for prefixes one with other tasks' answers",
    "docs/evidence/given_help.md": "two or three seeds; the same run without the part, and with another task's help or answers",
    "docs/evidence/judged.md": "one or two seeds, not tuned; beside the answer alone, a judge by chance, or a program",
    "docs/evidence/user_rows.md": "three seeds; the same rows, answered or rewarded wrongly, beside each",
    "docs/evidence/task_rules.md": "one or two seeds, not tuned; beside other rewards, levels or supervision from the same base",
    "docs/evidence/tasks.md": "speed, difficulty and number of the tasks; nothing is trained there",
}
"""What a page of evidence compares a paper's part with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A published system, and what of it is here.

    Attributes:
        key: what it is called on the command line: ``sec``.
        title: of the paper.
        name: what people call it.
        arxiv: its id, empty where there is none or it is not known.
        parts: what carries it, as ``module:Name``.
        here: which part of the paper these are, in a sentence.
        missing: what of the paper is not here; empty where all of it is.
        run: a command that runs it; empty where nothing runs it alone.
        tests: files that hold its numbers.
        evidence: a page that has measured it, from the repository's root; empty for none.

    Raises:
        DataError: no part, or no test.
    """

    key: str
    title: str
    name: str
    arxiv: str = ""
    parts: tuple[str, ...]
    here: str
    missing: str = ""
    run: str = ""
    tests: tuple[str, ...]
    evidence: str = ""

    def __post_init__(self) -> None:
        if not self.parts or not self.tests:
            raise DataError(f"paper {self.key!r}: name the parts that carry it, and the tests that hold its numbers")

    @property
    def whole(self) -> bool:
        """Whether all of the paper's method is here, and has trained or run beside a control."""
        return not self.missing

    @property
    def control(self) -> str:
        """What its evidence compares with; empty without evidence, or where the page is of another package."""
        return CONTROLS.get(self.evidence, "")


def load_papers() -> tuple[Paper, ...]:
    """All declared papers, by key.

    Raises:
        DataError: a declaration that is wrong, or a key that stands twice; names the file.
    """
    found: dict[str, Paper] = {}
    for place, declared in _declarations():
        for key, row in tomllib.loads(declared.read_text(encoding="utf-8")).items():
            if key in found:
                raise DataError(f"{place}: the paper {key!r} is declared twice")
            found[key] = _paper(key, row, place)
    return tuple(found[key] for key in sorted(found))


def _declarations() -> Iterator[tuple[str, Traversable]]:
    """Each ``papers.toml``, with its place for messages: of assay's packages, of ``assay_control``, and of packages that offer
    task families.
    """
    folders = {f"assay/{entry.name}": entry for entry in files("assay").iterdir() if entry.is_dir()}
    for package in {"assay_control", *(point.module.partition(".")[0] for point in entry_points(group="assay.tasks"))}:
        try:
            folders[package] = files(package)
        except ImportError:  # uninstalled by halves; its families say so
            continue
    for name, folder in sorted(folders.items()):
        declared = folder.joinpath("papers.toml")
        if declared.is_file():
            yield f"{name}/papers.toml", declared


def _paper(key: str, row: Any, place: str) -> Paper:
    known = {f.name: f for f in fields(Paper) if f.name != "key"}
    if not isinstance(row, dict):
        raise DataError(f"{place}, {key}: a paper is a table of {sorted(known)}")
    given: dict[str, Any] = {str(name): value for name, value in row.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    unknown = sorted(given.keys() - known.keys())
    missing = [name for name, f in known.items() if f.default is MISSING and name not in given]
    if unknown or missing:
        raise DataError(f"{place}, {key}: " + (f"unknown fields {unknown}" if unknown else f"no {', '.join(missing)}"))
    settled: dict[str, Any] = {n: tuple(v) if n in ("parts", "tests") else str(v) for n, v in given.items()}
    return Paper(key=key, **settled)


def paper_named(key: str) -> Paper:
    """The paper of a key, a name, an arXiv id or a title.

    A name in parentheses or behind a comma will do, and so will the first words of a title before its colon, or any words of it
    that stand in no other title. An id may be a link or name a version. Case and punctuation do not matter.

    Raises:
        UnknownNameError: none; with the nearest.
        ConfigError: several; names them.

    >>> paper_named("SEC").arxiv, paper_named("2504.09710").key
    ('2505.14970', 'dump')
    >>> paper_named("https://arxiv.org/abs/2402.03300v3").key, paper_named("the markovian thinker").key
    ('grpo', 'delethink')
    """
    papers = load_papers()
    link = _ARXIV.search(key)
    wanted = _plain(link[1] if link else key)
    for names in (_exact, _loose, _within):
        found = [p for p in papers if wanted and names(p, wanted)]
        if len(found) > 1:
            several = ", ".join(p.key for p in found[:8])
            raise ConfigError(f"{key!r} fits {len(found)} papers: name one, such as {several}")
        if found:
            return found[0]
    bare, bracket, _ = key.partition("(")
    if bracket and bare.strip():  # a remark behind the name
        return paper_named(bare)
    raise UnknownNameError("paper", key, [name for p in papers for name in (p.key, p.name)])


_ARXIV = re.compile(r"\b(\d{4}\.\d{4,5})(v\d+)?\b")


def _plain(text: str) -> str:
    """Words in lower case; what tells names apart (``pass@k``, ``A*-PO``, ``REINFORCE++``) stays."""
    return " ".join(re.findall(r"[\w+@*.]+", text.casefold()))


def _exact(paper: Paper, wanted: str) -> bool:
    return wanted in {_plain(text) for text in (paper.key, paper.name, paper.arxiv, paper.title)}


def _loose(paper: Paper, wanted: str) -> bool:
    return wanted in {_plain(text) for text in (*re.split(r"[(),]", paper.name), paper.title.partition(":")[0])}


def _within(paper: Paper, wanted: str) -> bool:
    return f" {wanted} " in f" {_plain(paper.title)} "

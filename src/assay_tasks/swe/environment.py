"""The workbench: a repository in memory, commands to look into it, change it and run its tests, and the verdict on the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from assay.core.errors import DataError
from assay.core.import_path import filed_as
from assay.core.protocols import Obs, Step, Tool, Verifier
from assay.core.rollout import Rollout, ToolResult
from assay.core.score import Score
from assay.core.task import Message, Task, TaskView
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram
from assay.tasks.turns import actions_of
from assay.verify.answer_verifier import verdict_score
from assay.verify.code.base import Gold
from assay.verify.code.edits import Unapplied, apply_edits, edits_in
from assay.verify.code.repository import RepositoryTests
from assay.verify.code.workers import sandbox_of
from assay_tasks.phases import SingleUse
from assay_tasks.swe.loaded import Loaded

__all__ = ["RUNNER", "Files", "RepairVerifier", "RepositoryEnvironment", "answer_to", "tested_here"]

_LIMITS = Limits(cpu=4.0, wall=8.0)
_MOST_HITS, _LONG = 20, 200

RUNNER = """
def run(files):
    found = []
    for path, text in files:
        names = {"__name__": path, "__builtins__": __builtins__}
        try:
            exec(compile(text, path, "exec"), names)
        except Exception as why:
            found.append([path, f"{type(why).__name__}: {why}"[:300]])
        for name, value in list(names.items()):
            if name.startswith("test_") and callable(value):
                try:
                    value()
                except Exception as why:
                    found.append([f"{path}::{name}", f"{type(why).__name__}: {why}"[:300]])
                else:
                    found.append([f"{path}::{name}", ""])
    return found
"""
"""Runs the repository's own tests, in a process where it may do what it likes: nothing is believed of what it says."""


class Files:
    """A repository in memory, and what commands do to it. Nothing here runs any of it.

    Attributes:
        now: path to text, as it stands.

    Args:
        files: as they are at first.
        protected: files, and folders that end in ``/``, that are not to be changed.
    """

    def __init__(self, files: Mapping[str, str], protected: Sequence[str]) -> None:
        self.now = dict(files)
        self._protected = tuple(protected)

    def edit(self, text: str) -> ToolResult | None:
        """Makes the edits of a turn, all of them or none; None where it has none."""
        try:
            edits = edits_in(text)
            if not edits:
                return None
            after, left_out = apply_edits(self.now, edits, self._protected)
        except Unapplied as error:
            return ToolResult(content=f"Nothing was changed: {error}.", error=error.word)
        self.now = after
        changed = ", ".join(dict.fromkeys(edit.path for edit in edits if edit.path not in left_out))
        said = f"Changed {changed}." if changed else ""
        kept = f"Not changed, since it is protected: {', '.join(dict.fromkeys(left_out))}." if left_out else ""
        return ToolResult(content=" ".join(filter(None, (said, kept))), error="protected" if left_out else "")

    def list(self) -> ToolResult:
        """All paths."""
        return ToolResult(content="\n".join(sorted(self.now)))

    def read(self, path: str) -> ToolResult:
        """A file's text."""
        if path not in self.now:
            return ToolResult(content=f"There is no file {path}.", error="unknown file")
        return ToolResult(content=self.now[path].removesuffix("\n"))

    def search(self, words: str) -> ToolResult:
        """Lines that hold some text, with paths and numbers, at most 20."""
        hits = [
            f"{path}:{number}: {line.strip()}"
            for path, text in sorted(self.now.items())
            for number, line in enumerate(text.split("\n"), 1)
            if words and words in line
        ]
        if not hits:
            return ToolResult(content="No line has this.", error="nothing found")
        more = [f"and {len(hits) - _MOST_HITS} more"] if len(hits) > _MOST_HITS else []
        return ToolResult(content="\n".join(hits[:_MOST_HITS] + more))

    def tests(self) -> list[list[str]]:
        """Path and text of each test file."""
        return [[path, text] for path, text in sorted(self.now.items()) if path.startswith("tests/")]

    def program(self) -> SandboxProgram:
        """What runs the tests, in a sandbox."""
        laid = {path: text.encode("utf-8", "surrogatepass") for path, text in self.now.items()}
        return SandboxProgram(code=RUNNER, entry="run", arguments=(self.tests(),), files=laid)


def tested_here(files: Files) -> str:
    """What the tests of a repository of this library's own making say, run in this process."""
    return _report(
        Loaded({path: text for path, text in files.now.items() if not path.startswith("tests/")}).call(
            RUNNER, "run", files.tests()
        )
    )


def answer_to(result: Result) -> str:
    """What a run of the tests in a sandbox says, in words."""
    value = result.value
    if not result.ok or not isinstance(value, list):
        return f"The tests did not end well: {result.status}."
    rows = [cast("list[Any]", row) for row in cast("list[Any]", value)[:200] if isinstance(row, list)]
    return _report([[str(part)[:400] for part in row] for row in rows if len(row) == 2])


def _report(found: Sequence[Sequence[str]]) -> str:
    failed = [f"FAILED {name}: {why}" for name, why in found if why]
    return "\n".join([*failed, f"{len(found) - len(failed)} passed, {len(failed)} failed"])


@dataclass(frozen=True, slots=True)
class _FileTool:
    """A command as a tool: it acts on the files that it is bound to.

    Attributes:
        name: the command.
        about: what it does.
        argument: the name of its one argument; empty where it has none.
        files: on which it acts.
    """

    name: str
    about: str
    argument: str
    files: Files

    @property
    def schema(self) -> Mapping[str, Any]:
        """Name, description and JSON schema of the arguments."""
        properties = {self.argument: {"type": "string"}} if self.argument else {}
        return {
            "name": self.name,
            "description": self.about,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            },
        }

    async def call(self, args: Mapping[str, Any], scope: TaskView) -> ToolResult:
        """What the command gives."""
        said = str(args.get(self.argument, ""))
        match self.name:
            case "list":
                return self.files.list()
            case "read":
                return self.files.read(said)
            case "search":
                return self.files.search(said)
            case "edit":
                return self.files.edit(said) or ToolResult(
                    content="Nothing was changed: there is no whole edit.", error="unparsed"
                )
            case _:
                return ToolResult(content=answer_to(await sandbox_of().arun(self.files.program(), _LIMITS)))


def parse_command(text: str) -> tuple[str, str] | None:
    r"""The command of a turn: its name and what it is about; None where it has none.

    A turn with an edit is an edit; of any other the last line that is not empty counts.

    >>> parse_command("I look at it.\nread a/b.py"), parse_command("done"), parse_command("So be it.")
    (('read', 'a/b.py'), ('done', ''), None)
    """
    if "<<<<<<< SEARCH" in text:
        return "edit", text
    last = next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")
    word, _, rest = last.strip("`").partition(" ")
    if word in ("list", "test", "done"):
        return (word, "") if not rest.strip() else None
    return (word, rest.strip()[:_LONG]) if word in ("read", "search") and rest.strip() else None


@filed_as("assay.tasks.swe.workbench:Bench")
class RepositoryEnvironment(SingleUse):
    """The environment: each turn is a command, which is answered; ``done``, or a command too many, ends the rollout.

    Attributes:
        tools: by the name of the command.

    Args:
        world: the task view.
        files: as they are at first, tests among them.
        turns: how many commands are answered.
        protected: what is not to be changed.

    Raises:
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, world: TaskView, files: Mapping[str, str], turns: int, protected: Sequence[str]) -> None:
        super().__init__(world.id)
        self.files = Files(files, protected)
        self.tools: Mapping[str, Tool] = {
            name: _FileTool(name, about, argument, self.files)
            for name, about, argument in (
                ("list", "The paths of all files.", ""),
                ("read", "The text of a file.", "path"),
                ("search", "Lines that hold some text.", "text"),
                ("edit", "Makes edits.", "edits"),
                ("test", "Runs the tests.", ""),
            )
        }
        self._world, self._left = world, turns

    async def step(self, action: str) -> Step:
        """What the command gives."""
        self._enter("open", "step")
        call = parse_command(action)
        if call is not None and call[0] == "done":
            self._phase = "over"
            return Step(done=True)
        self._left -= 1
        if call is None:
            result = ToolResult(content=UNKNOWN, error="no command")
        else:
            tool = cast("_FileTool", self.tools[call[0]])
            result = await tool.call({tool.argument: call[1]} if tool.argument else {}, self._world)
        if not self._left:
            self._phase = "over"
            return Step(done=True, results=(result,))
        return Step(obs=Obs((Message("tool", result.content),)), results=(result,))


UNKNOWN = "The last line of a turn is list, read PATH, search TEXT, test or done, or the turn holds an edit."
"""What is said to a turn without a command."""


@filed_as("assay.tasks.swe.workbench:Mended")
@dataclass(frozen=True, slots=True)
class RepairVerifier:
    """``correct`` is 1 when the files that a rollout's edits lead to pass the hidden tests.

    The edits are made once more on the files of the gold, so nothing is believed of what the environment said. A rollout that
    changes nothing is wrong without a run. Components are those of `assay.verify.code.RepositoryTests`.

    Attributes:
        tests: judges the files.

    Raises:
        DataError: a task without files or tests; names it.
    """

    trusted: ClassVar[bool] = False

    tests: RepositoryTests

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return self.tests.names

    def prepare(self) -> None:
        """Finds out how programs are contained here."""
        self.tests.prepare()

    def isolation(self) -> dict[str, Any]:
        """What contains the programs."""
        return self.tests.isolation()

    def for_workers(self, answers: int) -> Verifier:
        """The same where so many answers are judged side by side."""
        return RepairVerifier(self.tests.for_workers(answers))

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Make a rollout's edits again, and run the hidden tests."""
        gold = Gold(task.private)
        before = gold.find("files")
        if not isinstance(before, dict):
            raise DataError(f"task {task.id!r} has no gold with 'files' but {sorted(task.private)}")
        files = Files(cast("dict[str, str]", before), cast("list[str]", gold.find("protected") or []))
        for action in actions_of(rollout):
            call = parse_command(action)
            if call is not None and call[0] == "edit":
                files.edit(action)
            elif call is not None and call[0] == "done":
                break
        if files.now == before:
            return verdict_score("unchanged", dict.fromkeys(self.names, 0.0), isolation=self.tests.sandbox().tag)
        try:
            return self.tests.test_files(gold, files.now)
        except DataError as error:
            raise DataError(f"task {task.id!r}: {error}") from None

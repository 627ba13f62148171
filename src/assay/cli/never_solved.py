"""``assay rollouts show RUN --never-solved``: rows that were practised and never answered rightly."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from assay.core.errors import ConfigError
from assay.measure import Rollouts
from assay.runs.row_history import RowHistory, RowRecord

__all__ = ["UnsolvedRow", "unsolved_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsolvedRow:
    """A row without a right answer, and what a recorded rollout shows of it.

    Attributes:
        record: what the run counted of it.
        row: where it stands in the user's rows, as ``row 7``; empty where no rollout of it is recorded.
        prompt, gold, answers: of its newest recorded rollouts; each different answer, the most frequent first.
    """

    record: RowRecord
    row: str = ""
    prompt: str = ""
    gold: str = ""
    answers: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """A line: which row, and how often it was tried."""
        r = self.record
        tried = f"{r.rollouts} rollouts in {r.groups} step{'s' if r.groups != 1 else ''}, the last {r.last}"
        return f"NEVER SOLVED  {r.arm} level {r.level}  {self.row or r.id}  {tried}"

    def json(self) -> dict[str, object]:
        """All of it as plain data."""
        return {**asdict(self.record), "row": self.row, "prompt": self.prompt, "gold": self.gold, "answers": list(self.answers)}


def unsolved_rows(folder: Path, rollouts: Rollouts) -> list[UnsolvedRow]:
    """The rows of a run that no rollout solved, those with the most rollouts first; with prompt and answers where recorded.

    Raises:
        ConfigError: the run has practised no rows yet, or none with a verdict.
    """
    history = RowHistory.read(folder)
    if history is None:
        raise ConfigError(f"{folder} has no rows that reinforcement learning has practised: nothing was solved or left unsolved")
    found: list[UnsolvedRow] = []
    for record in history.never_solved():
        mine = sorted((r for r in rollouts.lines if r.task == record.id), key=lambda r: -r.step)
        if not mine:
            found.append(UnsolvedRow(record=record))
            continue
        said = [r.answers[-1][1] for r in mine if r.answers]
        answers = sorted(dict.fromkeys(said), key=lambda text: -said.count(text))
        found.append(
            UnsolvedRow(record=record, row=mine[0].row, prompt=mine[0].prompt, gold=mine[0].gold, answers=tuple(answers))
        )
    return found

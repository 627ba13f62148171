"""The judges of a run, and their answers in its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from assay.clients.judge import Judge
from assay.clients.judge_client import JudgeClient, MemoryStore
from assay.core.errors import AssayError, DataError, EngineError, UnknownNameError
from assay.core.util.event_loop import run_async
from assay.core.util.jsonl import object_of
from assay.runs import storage

__all__ = ["check_judges", "JudgementFile", "RunJudges"]


class JudgementFile:
    """Answers of one judge, a line of JSON each; implements `assay.clients.JudgementStore`.

    An answer counts for as long as the file is there. An error counts for the step that met it, so that a step which a resumed
    run makes once more ends alike, and a later one asks anew. Where an error of the run ended the step itself, its errors count
    no longer: once the judge is mended, the step asks again. A line that a kill left half is skipped.

    Args:
        path: the file; made when the first line is written.

    Attributes:
        step: global steps finished.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.step = path, 0
        self._texts: dict[str, str] = {}
        self._errors: dict[tuple[int, str], str] = {}
        self._file: IO[str] | None = None
        if path.exists():
            for line in path.read_bytes().splitlines():
                self._read(line)

    def find(self, key: str) -> str | EngineError | None:
        """The answer, or the error of this step; None for neither."""
        if (text := self._texts.get(key)) is not None:
            return text
        error = self._errors.get((self.step, key))
        return None if error is None else EngineError(error)

    def keep(self, key: str, text: str) -> None:
        """Writes an answer down.

        Raises:
            StorageError: the disk is full.
        """
        self._texts[key] = text
        self._write({"key": key, "text": text})

    def fail(self, key: str, error: str) -> None:
        """Writes an error of this step down."""
        self._errors[self.step, key] = error
        self._write({"key": key, "step": self.step, "error": error})

    def forget_errors(self) -> None:
        """The errors of this step count no longer."""
        if self._forget(self.step):
            self._write({"forgotten": self.step})

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, line: bytes) -> None:
        try:
            row = object_of(line)
            if "forgotten" in row:
                self._forget(int(row["forgotten"]))
            elif "text" in row:
                self._texts[str(row["key"])] = str(row["text"])
            else:
                self._errors[int(row["step"]), str(row["key"])] = str(row["error"])
        except (DataError, KeyError, ValueError):  # cut off by a kill: it is asked for again
            return

    def _forget(self, step: int) -> bool:
        """Drops the errors of a step; whether there were any."""
        kept = {place: error for place, error in self._errors.items() if place[0] != step}
        found = len(kept) < len(self._errors)
        self._errors = kept
        return found

    def _write(self, row: Mapping[str, object]) -> None:
        with storage.storage_errors(self.path):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("a", encoding="utf-8")
                if self._file.tell():
                    self._file.write("\n")  # behind what a kill may have left half
            self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self._file.flush()


def check_judges(judges: Sequence[Judge]) -> None:
    """Refuses judges at whose address no server listens, before a run begins.

    Raises:
        EngineError: names the first one.
    """

    async def ask() -> None:
        for judge in judges:
            client = JudgeClient(judge, MemoryStore())
            try:
                await client.check_reachable()
            finally:
                await client.close()

    if judges:
        run_async(ask())


class RunJudges:
    """The judges that scorers of a run may ask. Use it as an asynchronous context manager, which closes connections and files.

    Args:
        judges: their settings, with different names.
        folder: the run folder.
    """

    def __init__(self, judges: Sequence[Judge], folder: Path) -> None:
        self._files = {judge.name: JudgementFile(folder / "judgements" / f"{judge.name}.jsonl") for judge in judges}
        self._clients = {judge.name: JudgeClient(judge, self._files[judge.name]) for judge in judges}

    def client(self, name: str, step: int) -> JudgeClient:
        """The judge of that name, at a step.

        Raises:
            UnknownNameError: there is none.
        """
        if name not in self._clients:
            raise UnknownNameError("judge in Run.judges", name, self._clients)
        if self._files[name].step != step:
            self._files[name].step = step
            self._clients[name].retry()
        return self._clients[name]

    def counts(self) -> dict[str, int]:
        """What the clients counted, as ``judge/NAME/WHAT``."""
        return {f"judge/{name}/{what}": n for name, client in self._clients.items() for what, n in client.counts.items()}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        for client in self._clients.values():
            await client.close()
        for file in self._files.values():
            if isinstance(error, AssayError):  # not after a kill or Ctrl-C: a resumed step then ends as it would have
                file.forget_errors()
            file.close()

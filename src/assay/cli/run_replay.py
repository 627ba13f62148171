"""``assay runs replay``: learns again from what an asynchronous run accepted, and compares."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from assay.cli.options import parse
from assay.cli.output import busy, show
from assay.cli.run_request import made_again, run_folder

__all__ = ["runs_replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsReplayOptions:
    """Replays a run that sampled beside learning, from its log, and compares every number of every step.

    Attributes:
        run: a run folder, of a run with --samplers and --keep-log.
        out: keep the replay as a run of its own in this new folder.
        json: print JSON.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    out: Path | None = field(default=None, metadata={"arg": {"metavar": "FOLDER"}})
    json: bool = False


def runs_replay(args: list[str]) -> int:
    """``assay runs replay RUN [--out FOLDER]``; 1 where something came out otherwise."""
    from assay.train.replay import replay_run

    own = parse(RunsReplayOptions, args, "assay runs replay")
    folder = run_folder(own.run)
    run = made_again(folder)
    with busy("replaying"):
        found = replay_run(folder, own.out, run=run)

    def text() -> None:
        what = f"{found.steps} of {found.of} steps replayed"
        if not found.steps:
            print(f"{what}: the run has not learned from anything yet")
        elif not found.equal:
            print(f"{what}, and they differ: {found.differing or f'digest {found.digest}, and the run has {found.expected}'}")
        elif found.expected:
            print(f"{what}: the same digest, {found.digest}")
        else:
            print(f"{what}: every number is the same; the run has not finished, so there is no digest")

    show(own.json, {"run": str(folder), "equal": found.equal, **asdict(found)}, text)
    return 0 if found.equal else 1

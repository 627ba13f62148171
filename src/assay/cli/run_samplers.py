"""``assay runs samplers``: more or fewer processes sample for a run that is at work."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from assay.cli.options import parse
from assay.cli.output import show
from assay.cli.run_request import made_again, run_folder
from assay.core.errors import ConfigError

__all__ = ["runs_samplers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsSamplersOptions:
    """Changes how many processes sample for a run with --samplers, while it is at work and when it is resumed.

    New ones begin within a second; those that are too many end when they have handed in their groups. Numbers change only as
    they do by timing: `assay runs replay` proves such a run as any other.

    Attributes:
        run: a run folder, of a run with --samplers.
        count: of samplers from now on.
        json: print JSON.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    count: int = field(metadata={"positional": True, "arg": {"metavar": "COUNT"}})
    json: bool = False


def runs_samplers(args: list[str]) -> int:
    """``assay runs samplers RUN COUNT``."""
    from assay.asynchronous import want_samplers
    from assay.runtime import ServerEngineSpec
    from assay.train.record import load_run

    own = parse(RunsSamplersOptions, args, "assay runs samplers")
    folder = run_folder(own.run)
    run = load_run(folder, made_again(folder))
    if not any(stage.asynchronous for stage in run.stages):
        raise ConfigError(f"{folder} samples in its own process; train with --samplers")
    if isinstance(run.engine, ServerEngineSpec):
        raise ConfigError(
            f"{folder} samples with servers, one for each sampler: name others in Asynchronous.servers and resume it"
        )
    want_samplers(folder / "samplers", own.count)
    show(own.json, {"run": str(folder), "samplers": own.count}, lambda: print(f"{own.count} samplers from now on"))
    return 0

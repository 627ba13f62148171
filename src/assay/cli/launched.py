"""``torchrun -m assay train ...`` and ``srun assay train ...``: one process is the run, the others serve it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assay.cli.output import note
from assay.core.errors import ConfigError
from assay.runtime.distributed.launch import Launch, lead_ranks, read_launch, serve_rank
from assay.train.run import Run

__all__ = ["check_ranks", "with_mesh", "with_ranks"]


def with_ranks(work: Callable[[Launch | None], int]) -> int:
    """The exit code of a command that trains: of ``work`` in the process of rank 0, which is told of the launch;
    the others serve it.

    Raises:
        ConfigError: the variables of a launcher contradict each other.
    """
    launch = read_launch()
    if launch is None:
        return work(None)
    if launch.rank > 0:
        return serve_rank(launch)
    with lead_ranks(launch):
        return work(launch)


def with_mesh(run: Run, launch: Launch | None) -> Run:
    """A run with as many ranks as were started, where it does not say how many.

    Raises:
        ConfigError: it says another number.
    """
    if launch is None:
        return run
    if run.mesh.size == 1:
        note(f"mesh.data = {launch.size}: {launch.by} has started {launch.size} processes")
        return replace(run, mesh=replace(run.mesh, data=launch.size))
    check_ranks(run, launch)
    return run


def check_ranks(run: Run, launch: Launch) -> None:
    """Raises ConfigError where a run has other ranks than were started."""
    if run.mesh.size != launch.size:
        raise ConfigError(
            f"{launch.by} has started {launch.size} processes, and the run has {run.mesh.size} ranks (mesh.data x mesh.context); "
            f"start {run.mesh.size}, or give --mesh.data {launch.size} (a resume: --ranks {launch.size} --allow-inexact)"
        )

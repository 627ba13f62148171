"""What a process that `assay.lab.processes` starts does first: it stays on its cores, and does not outlive who started it."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

__all__ = ["main"]

_PDEATHSIG = 1
"""``PR_SET_PDEATHSIG`` of Linux: the signal that a process gets when its parent has ended."""


def main(args: list[str]) -> None:
    """``PARENT CORES MODULE ARGS``: runs a module as ``python -m`` does.

    Args:
        args: the process id of the parent; the cores to stay on, ``0,1``, or nothing for any; the module and its arguments.
    """
    parent, cores, module, *rest = args
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    follow(int(parent))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def follow(parent: int) -> None:
    """Has the system send SIGTERM to this process when its parent ends, however that ends; only Linux can.

    A run then stops after its step, with a checkpoint, as after Ctrl-C.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before this was asked for
        sys.exit(130)


if __name__ == "__main__":
    main(sys.argv[1:])

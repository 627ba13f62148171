"""The command line: ``assay COMMAND ...``. Help and usage errors need no torch."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from assay.core.util.threads import sleeping_waits

__all__ = ["main"]

COMMANDS = {
    "train": ("train", "improve a model by reinforcement learning, as a recipe says"),
    "resume": ("train", "continue a run that was stopped, killed, or has finished"),
    "eval": ("evaluate", "held-out accuracy of a run or model, with intervals"),
    "sample": ("evaluate", "answers of a run or model to a prompt"),
    "chat": ("chat", "talk with the model of a run or folder"),
    "export": ("export", "write the model of a run as a Hugging Face folder with a model card, and verify it"),
    "push": ("push", "upload a model, environment or data set to the Hugging Face hub, once it is checked"),
    "explain": ("explain", "what a recipe would do: every setting, sizes, memory; runs nothing"),
    "report": ("run_reports", "write a run's report.html again"),
    "runs": ("run_reports", "list, show or compare runs, or send one to a tracker"),
    "rollouts": ("rollouts", "show recorded rollouts of a run, or what changed between two evaluations"),
    "tasks": ("tasks", "list, show, sample or check task families"),
    "recipes": ("recipes", "list the recipes"),
    "init": ("init", "write a package for a task, environment, reward, verifier or recipe of your own, with a test that passes"),
    "verify": ("verify", "list verifiers, score answers with one, or audit one"),
    "curate": ("curate", "select rows to train on: drop duplicates, evaluation items, unverifiable, too easy and too hard rows"),
    "contamination": (
        "contamination",
        "test whether a model has seen these items: scores and accuracy against fresh items, with intervals",
    ),
    "distill": ("distill", "collect right answers of a teacher to training tasks, as rows to imitate"),
    "methods": ("methods", "list or show objectives, and their names in other libraries"),
    "guides": ("guides", "list or show curricula, guidance, filters and schedules: what to practise next"),
    "papers": ("papers", "list, show or run published systems, and which part of each is implemented"),
    "control": ("control", "control RL: train policies for simulated worlds, offline or by acting, in minutes"),
    "simulate": ("simulate", "what sampling beside learning would gain on a cluster, on a virtual clock"),
    "selftest": ("selftest", "test this machine: engine agreement, proof of weights, resume, speed, isolation"),
    "serve": ("serve", "serve a model with OpenAI's protocol; score answers or run programs over HTTP"),
    "sandbox": ("sandbox", "run a program in the sandbox, or show the isolation of this machine"),
}


_FIRST = {
    "assay train quickstart": "teach a small model to sort, offline, in minutes",
    "assay COMMAND --help": "options of a command",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: arguments without the program; `sys.argv` when None.

    Returns:
        0 after success, 1 where the work failed, 2 where an argument, or what it names, was wrong, 130 after Ctrl-C, 75 after
        SIGUSR1.
    """
    _open_streams()
    before = signal.getsignal(signal.SIGINT)
    try:
        try:
            return _run(argv)
        except KeyboardInterrupt:
            ignore_interrupts()
        print("stopped", file=sys.stderr)
        return 130
    except KeyboardInterrupt:  # the second came before the first was handled
        ignore_interrupts()
        print("stopped", file=sys.stderr)
        return 130
    finally:
        if argv is not None and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # the caller goes on
            with suppress(ValueError):
                signal.signal(signal.SIGINT, before)


def ignore_interrupts() -> None:
    """From here on, Ctrl-C changes nothing: the program ends already, and one that is hit again would end in tracebacks."""
    with suppress(ValueError):  # not in the main thread, which alone hears of it
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(argv: Sequence[str] | None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    sleeping_waits()
    if not args or args[0] in ("-h", "--help"):
        print(_help())
        return 0
    if args[0] == "--version":
        import assay

        print(f"assay {assay.__version__}")
        return 0
    from assay.core.errors import AssayError, CheckpointError, ConfigError, DataError, UnknownNameError, missing_extra

    try:
        if args[0] not in COMMANDS:
            raise UnknownNameError("command", args[0], COMMANDS)
        module = importlib.import_module(f"assay.cli.{COMMANDS[args[0]][0]}")
        command: Callable[[list[str]], int] = getattr(module, f"{args[0]}_command")
        return command(args[1:])
    except SystemExit as stop:  # the parser has said what was wrong, or printed help
        return stop.code if isinstance(stop.code, int) else 0
    except (ConfigError, DataError, CheckpointError) as error:  # a command says itself when the work had begun
        return _complain(error, 2)
    except ModuleNotFoundError as error:
        if (lacking := missing_extra(error)) is None:
            raise
        return _complain(lacking, 1)
    except (AssayError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output went away, as `| head` does
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 -- the interpreter flushes it at the end
            return 0
        return _complain(error, 1)


def _open_streams() -> None:
    """The null device for each standard stream that was closed (``>&-``), by its descriptor and in `sys`.

    Otherwise the next file that is opened would get its number, and with it what is written to the stream.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 -- it lives as long as the program


def _complain(error: Exception, code: int) -> int:
    print(f"assay: {error}", file=sys.stderr)
    return code


def _help() -> str:
    from assay.cli.text_wrap import columns, fill

    return "\n\n".join(
        (
            "usage: assay COMMAND ...\n       assay --version",
            fill("Reinforcement learning with verifiable rewards for language models, on a laptop or a cluster."),
            f"commands:\n{columns({name: text for name, (_, text) in COMMANDS.items()})}",
            f"start here:\n{columns(_FIRST)}",
            fill("Exit codes: 0 success, 1 the work failed, 2 wrong arguments, 130 stopped by Ctrl-C, 75 stopped by SIGUSR1."),
        )
    )

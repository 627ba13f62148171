"""The far side of a scoring pool: a fork server, and the loop of the workers that it forks.

The fork server is forked once, early, from the training process and never runs foreign code, so that a worker can be replaced at
any time without forking a process whose threads are busy. Workers run the user's function.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeVar, cast

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError, RewardLengthError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.abilities import abilities_of
from assay.verify.user_reward import Pending, UserReward
from assay.verify.verdict import broken_score, check_score, judge
from assay.verify.workers.connections import FlightPlan, is_connection_error, unreached_score
from assay.verify.workers.cpu import stopped
from assay.verify.workers.fork import OUT_OF_MEMORY, end_copy, flush, fork_fork_server, fork_worker, raise_fd, within_memory
from assay.verify.workers.results import CorruptResults, ResultsFile
from assay.verify.workers.stdout import StdoutFile, capture

if TYPE_CHECKING:
    import asyncio

__all__ = ["AWAITS", "BEAT", "OUT_OF_MEMORY", "ForkServer", "Item", "hear", "run_fork_server", "serve", "views"]

_Result = TypeVar("_Result")

Item = Any
"""A task with its rollout, or a `UserReward`'s view of them."""

AWAITS = "awaits"
"""In the place of a verdict: the function returned an awaitable, and waits to be called among others."""

BEAT = b""
"""In the place of a verdict: the event loop of asynchronous rewards goes round."""

_ORDER = struct.Struct("!cq")
_ANSWER = struct.Struct("!q")
_SPAWN, _KILL, _QUIT = b"S", b"K", b"Q"

_GLANCE = 5.0
"""Seconds between two looks of an idle fork server at whether the training process is still there."""


_WORD = b"through"
"""What a worker says when it has read a batch, and when it has judged it."""

_SENT = struct.pack("!i", len(_WORD)) + _WORD
"""That word as a connection sends it."""

_LATE = 0.5
"""Seconds without an answer after which it is looked at whether the fork server is stopped, and again after as many."""

_LOST = 120.0
"""Seconds after which a fork server that runs is given up. Its first answer follows the verifier's ``prepare()``."""


class ForkServer:
    """The training process's handle on the fork server process.

    Args:
        verifier: what workers run; inherited by fork, so lambdas and functions of ``__main__`` work.
        memory: bytes that a worker may have beyond what it begins with.

    Attributes:
        pid: its process id.
        lost: it was stopped, or owes an answer for too long, and is of no more use.
    """

    def __init__(self, verifier: Verifier, memory: int) -> None:
        self._control, far = socket.socketpair()
        self._control.settimeout(_LATE)
        self.lost = False
        flush()
        self.pid = fork_fork_server(self._control, far, lambda: run_fork_server(far, verifier, memory))
        far.close()

    def spawn(self, printed: int, verdicts: int) -> tuple[int, Connection]:
        """A new worker: its process id and a connection to it; with files for what it prints and for its verdicts.

        Raises:
            EOFError, OSError: the fork server is gone or stopped.
        """
        if self.lost:
            raise EOFError("the fork server is gone")
        near, far = socket.socketpair()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(_LOST), 0))  # one may never read
        try:
            socket.send_fds(self._control, [_ORDER.pack(_SPAWN, 0)], [far.fileno(), printed, verdicts])
            pid = self._answer()
        except BaseException:
            near.close()
            raise
        finally:
            far.close()
        return pid, Connection(near.detach())

    def kill(self, pid: int) -> int:
        """End a worker and all it started; its exit status as `os.waitstatus_to_exitcode` gives it.

        Raises:
            EOFError, OSError: the fork server is gone or stopped.
        """
        if self.lost:
            raise EOFError("the fork server is gone")
        self._control.sendall(_ORDER.pack(_KILL, pid))
        return self._answer()

    def close(self) -> None:
        """End the fork server; its workers die with it."""
        # Said, and not only shown by closing: a process forked later holds a copy of this end.
        with suppress(OSError):
            self._control.sendall(_ORDER.pack(_QUIT, 0))
        self._control.close()
        due, pause = time.monotonic() + _LOST, 0.001
        with suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                if self.lost or stopped(self.pid) or time.monotonic() > due:
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
                    return
                time.sleep(pause)
                pause = min(2 * pause, 0.05)

    def _answer(self) -> int:
        due = time.monotonic() + _LOST
        while True:
            try:
                data = self._control.recv(_ANSWER.size)
                break
            except TimeoutError:
                if stopped(self.pid) or time.monotonic() > due:
                    self.lost = True  # an answer that comes yet would be taken for the next one's
                    raise EOFError("the fork server does not answer") from None
        if len(data) < _ANSWER.size:
            raise EOFError("the fork server is gone")
        return int(_ANSWER.unpack(data)[0])


def serve(connection: Connection, verifier: Verifier, printed: StdoutFile, verdicts: ResultsFile) -> None:
    """The worker's loop: batches in, a word when each has been read and one when it is judged, until the other side closes.

    A batch comes with how it is judged: one by one (False), in one call (True), or by calls in flight at once (`FlightPlan`).
    What the verifier prints on an answer stands in the verdict's ``info["printed"]``; of a batched call, in its first verdict's.
    A copy of this process that a verifier forks and lets return ends there: it must not judge the rest of the batch once more.
    """
    own, loop = os.getpid(), _Loop()
    one = _judge_user if isinstance(verifier, UserReward) else _judge
    while True:
        try:
            items, how = connection.recv()
        except EOFError:
            return loop.close()
        verdicts.clear()
        printed.clear()
        connection.send_bytes(_WORD)  # the batch is here: the clock of the first item starts
        if isinstance(how, FlightPlan):
            for_each = partial(_tell, printed, verdicts, own)
            loop.score(verifier, items, how, for_each, lambda: verdicts.add(BEAT))
        else:
            calls: list[list[Item]] = [items] if how else [[item] for item in items]
            for call in calls:
                printed.clear()
                verdict = _judge_together(verifier, call, loop) if how else one(verifier, call[0])
                end_copy(own)
                verdicts.add(_pickle_verdict(_with(printed.text(), verdict)))
        connection.send_bytes(_WORD)


class _Loop:
    """The event loop of a worker, made when it is first needed: a client that a function keeps stays with its loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """What it gives."""
        if self._runner is None:
            from asyncio import Runner  # not above: workers of other rewards need no event loop

            self._runner = Runner()
        return self._runner.run(work)

    def score(self, verifier: Any, items: Sequence[Item], plan: FlightPlan, *heard: Callable[..., None]) -> None:
        """Calls in flight at once."""
        from assay.verify.workers.asynchronous import score_concurrently

        self.run(score_concurrently(verifier, items, plan, *heard))

    def close(self) -> None:
        """Ends it."""
        if self._runner is not None:
            self._runner.close()


def _tell(printed: StdoutFile, verdicts: ResultsFile, own: int, number: int, tries: int, score: Score) -> None:
    """Writes the verdict of one of many calls with its number, its tries, and what was printed since the last one."""
    end_copy(own)
    score = _with(printed.text(), score)
    printed.clear()
    verdicts.add(_pickle_verdict((number, tries, score)))


def hear(connection: Connection) -> None:
    """Takes the word that a worker's connection is ready to give; never waits for more.

    Raises:
        EOFError: the worker has ended.
        Spoiled: what came is no word of its loop.
    """
    data = os.read(connection.fileno(), len(_SENT))
    if not data:
        raise EOFError("the worker has ended")
    if data != _SENT:
        raise CorruptResults("it wrote into its connection")


def views(verifier: Verifier, items: Sequence[tuple[Task, Rollout]]) -> list[Item]:
    """What travels to the worker: for a `UserReward` only what it sees, which can be a tenth of the bytes."""
    return verifier.views(items) if isinstance(verifier, UserReward) else list(items)


def _judge(verifier: Verifier, item: Item) -> Score:
    try:
        return judge(verifier, *item)
    except MemoryError:
        raise
    except BaseException as error:  # sys.exit() in a verifier must not look like a crash
        return broken_score(error)


def _judge_user(verifier: Any, view: Item) -> Score | str:
    try:
        found: Score | Pending[Score] = verifier.start(view)
        if isinstance(found, Pending):
            found.close()
            return AWAITS
        return check_score(found)
    except MemoryError:
        raise
    except BaseException as error:
        return unreached_score(error) if is_connection_error(error) else broken_score(error)


def _judge_together(verifier: Any, items: Sequence[Item], loop: _Loop) -> list[Score] | Score:
    try:
        found: list[Score] | Pending[list[Score]] = verifier.start_batch(items)
        scores = loop.run(found.result()) if isinstance(found, Pending) else found
        return [check_score(score) for score in scores]
    except MemoryError:
        raise
    except RewardLengthError as error:  # of every answer: a call for one alone would take its list of one value for right
        return [broken_score(error)] * len(items)
    except BaseException as error:
        return unreached_score(error) if is_connection_error(error) else broken_score(error)


def _with(printed: str, verdict: Any) -> Any:
    """A verdict, or several, with what was printed meanwhile."""
    if not printed or isinstance(verdict, str):
        return verdict
    first, *rest = cast("list[Score]", verdict) if isinstance(verdict, list) else [verdict]
    first = replace(first, info=FrozenMap({"printed": printed, **first.info}))
    return [first, *rest] if isinstance(verdict, list) else first


def _pickle_verdict(verdict: Any) -> bytes:
    try:
        return pickle.dumps(verdict, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # pickle raises whatever a foreign __reduce__ raises
        lost = broken_score(RewardError(f"the verdict cannot leave its process: {error}"))
        return pickle.dumps((*cast("tuple[int, int]", verdict[:2]), lost) if isinstance(verdict, tuple) else lost)


def run_fork_server(control: socket.socket, verifier: Verifier, memory: int) -> None:
    """The fork server's loop: forks and kills workers on request, until it shall quit or the training process is gone.

    A verifier with ``prepare()`` is prepared first: what that imports, every worker has from its first moment.
    """
    workers: set[int] = set()
    with suppress(Exception):  # a worker will meet the same failure, and say so
        abilities_of(verifier).prepare()
    parent = os.getppid()
    control.settimeout(_GLANCE)
    try:
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(control, _ORDER.size, 3)
            except TimeoutError:
                if os.getppid() != parent:
                    return
                continue
            order, pid = _ORDER.unpack(data) if len(data) == _ORDER.size else (_QUIT, 0)
            if order == _QUIT:
                return
            if order == _SPAWN:
                near, out, told = fds
                pid = fork_worker(
                    control,
                    lambda n=near, o=out, t=told: within_memory(
                        memory, lambda: serve(Connection(raise_fd(n)), verifier, capture(raise_fd(o)), ResultsFile(raise_fd(t)))
                    ),
                )
                for fd in fds:
                    os.close(fd)
                workers.add(pid)
                control.sendall(_ANSWER.pack(pid))
            else:
                workers.discard(pid)
                control.sendall(_ANSWER.pack(_end(pid)))
    finally:
        for pid in workers:
            _end(pid)


def _end(pid: int) -> int:
    ended, status = os.waitpid(pid, os.WNOHANG)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not ended:
        os.kill(pid, signal.SIGKILL)  # it may not have had the time to lead a group
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)

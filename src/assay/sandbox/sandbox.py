"""Programs in, results out: a pool of workers over one backend, for any thread and for asyncio."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

from assay.core.errors import ConfigError, DataError
from assay.sandbox.backend import Backend, Refused, Worker, WorkerDied
from assay.sandbox.compiled_program import CompiledProgram, build
from assay.sandbox.levels import ZygoteBackend, choose
from assay.sandbox.limits import Limits
from assay.sandbox.python_session import PythonSession
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.toolchain import Language, language

__all__ = ["Sandbox"]

_Key = TypeVar("_Key", bound=Hashable)


class Sandbox:
    """Runs programs that a model wrote, contained.

    Each program has a process, a folder and limits of its own, and sees nothing of the host, of other programs or of what is
    expected of it. Any thread may call any method, and asyncio the ones that begin with ``a``. A worker that fails is replaced
    and its program run once more; if that fails too, the result is ``infra``, which is no verdict on the program.

    Use it as a context manager, or call `close`. Nothing survives the program that made it, however that ends.

    Args:
        backend: ``auto`` takes the best level that proves itself by the attack probe: ``strong``, or else ``landlock``, or else
            ``wasi`` where that is installed. A level may be named, ``wasi``, a tool (``bubblewrap``, ``runsc``), the URL of a
            service, or a backend given that is your own.
        workers: how many programs run at once.
        limits: of programs that bring none.
        reads: host paths that programs may read besides Python's own libraries.
        languages: that `compile` is to take: names, or paths of TOML files; their toolchains come into the programs' sight.
        allow_unsafe: accept the level ``rlimits``, which contains nothing, or a backend that was asked for by name and does not
            hold every attack: it says so at each start, and every result is tagged.

    Raises:
        SandboxError: no level that was asked for holds here; with the probe's findings and a fix.
        ConfigError: no workers, ``rlimits`` without ``allow_unsafe``, or a language that needs several processes where only one
            can be contained.
        ToolchainError: a language's compiler or interpreter is not installed.

    >>> with Sandbox(workers=1) as sandbox:
    ...     print(sandbox.run("print(6 * 7)").stdout, sandbox.call("def f(x): return x + 1", "f", 41).value)
    42
     42
    """

    def __init__(
        self,
        backend: str | Backend = "auto",
        *,
        workers: int = 2,
        limits: Limits | None = None,
        reads: Sequence[str] = (),
        languages: Sequence[str | Language] = (),
        allow_unsafe: bool = False,
    ) -> None:
        if workers < 1:
            raise ConfigError(f"Sandbox.workers={workers}; use at least 1")
        self.limits = limits or Limits()
        self.workers = workers
        self.languages = tuple(language(one) if isinstance(one, str) else one for one in languages)
        for one in self.languages:
            one.require()
        seen = tuple(dict.fromkeys((*reads, *(place for one in self.languages for place in one.places()))))
        self.backend, self.probe = choose(backend, allow_unsafe=allow_unsafe, reads=seen)
        for one in self.languages:
            one.admit(self.probe.layers)
        self._fresh()
        _alive.add(self)

    @property
    def isolation(self) -> str:
        """What holds programs here, in one line."""
        return self.probe.line

    @property
    def tag(self) -> str:
        """What stands in results and scores as their isolation: in one word, with ``(UNSAFE)`` where nothing is held."""
        return self.probe.tag

    def manifest(self) -> dict[str, Any]:
        """The isolation as plain values, for a run's manifest."""
        return {**self.probe.manifest(), "tag": self.tag, "line": self.isolation}

    def run(self, program: SandboxProgram | str, limits: Limits | None = None) -> Result:
        """Runs a program, or Python source, to its end.

        Raises:
            ConfigError: limits that cannot be kept here, as several processes at ``landlock``, or files to keep.
            DataError: arguments that JSON cannot say.
        """
        made = SandboxProgram(code=program) if isinstance(program, str) else program
        if made.keep and not getattr(self.backend, "keeps", False):
            raise ConfigError(
                f"the backend {self.backend.name!r} gives no files back, so nothing can be kept or compiled there; use 'strong'"
            )
        made, allowed = made.fit_limits(limits or self.limits)
        for last in (False, True):
            worker = self._take()
            try:
                if isinstance(worker, str):
                    return self._failure(worker)
                result = worker.run(made, allowed)
                if not self.probe.held:  # said of each result, whatever backend it comes from
                    result = replace(result, isolation=self.tag)
            except WorkerDied as error:
                self._give(worker, broken=True)
                if last:
                    return self._failure(f"two workers failed; the second: {error}")
            except (ConfigError, DataError):
                self._give(worker)  # nothing was begun
                raise
            except BaseException:
                self._give(worker, broken=True)  # it is in the middle of a run
                raise
            else:
                self._give(worker)
                if result.judged or last:
                    return made.reclassify(result)
        raise AssertionError

    def call(self, code: str, entry: str, *arguments: Any, limits: Limits | None = None) -> Result:
        """Calls a function of Python source; `Result.value` is what it returned.

        What is expected of it stays here, so it cannot be found, and comparing is not the program's to influence.

        Args:
            code: the source; it runs first.
            entry: the function's name.
            arguments: plain values, as JSON can say them.
            limits: of this run.
        """
        return self.run(SandboxProgram(code=code, entry=entry, arguments=arguments), limits)

    def compile(
        self, language: str | Language, source: str, *, files: Mapping[str, bytes] | None = None, wall: float | None = None
    ) -> CompiledProgram:
        """A program of another language, ready to be run many times.

        Its source is not trusted, so the compiler is contained too, with limits of the language's own.

        Args:
            language: one of `languages`, by any of its names; ``python`` always is.
            source: the program.
            files: to lay beside it, for compiler and program.
            wall: the most seconds that its compiler may take, where that is less than the language's own.

        Returns:
            what to run; `CompiledProgram.refused` says why not, where it did not compile.

        Raises:
            ConfigError: this sandbox was made without the language, or its backend gives no files back.
        """
        return build(self, language, source, files or {}, wall)

    async def acompile(
        self, language: str | Language, source: str, *, files: Mapping[str, bytes] | None = None, wall: float | None = None
    ) -> CompiledProgram:
        """As `compile`, without blocking the event loop."""
        return await asyncio.wrap_future(self._threads().submit(self.compile, language, source, files=files, wall=wall))

    def map(self, programs: Mapping[_Key, SandboxProgram | str], limits: Limits | None = None) -> dict[_Key, Result]:
        """Runs programs, as many at once as there are workers; results by the programs' keys."""
        futures = self._submit(programs.items(), limits)
        return {key: future.result() for key, future in futures.items()}

    async def arun(self, program: SandboxProgram | str, limits: Limits | None = None) -> Result:
        """As `run`, without blocking the event loop."""
        return await asyncio.wrap_future(self._threads().submit(self.run, program, limits))

    async def amap(self, programs: Mapping[_Key, SandboxProgram | str], limits: Limits | None = None) -> dict[_Key, Result]:
        """As `map`, without blocking the event loop."""
        futures = self._submit(programs.items(), limits)
        return {key: await asyncio.wrap_future(future) for key, future in futures.items()}

    def scope(self, limits: Limits | None = None) -> PythonSession:
        """An interpreter that keeps its names over several turns, with a zygote of its own.

        Raises:
            ConfigError: the backend is no zygote.
            SandboxError: none can be started.
        """
        if not isinstance(self.backend, ZygoteBackend):
            raise ConfigError(f"a Scope needs a zygote; the backend here is {self.backend.name!r}")
        return PythonSession(self.backend, limits or self.limits)

    def close(self) -> None:
        """Ends the workers, and what they run."""
        with self._condition:
            self._closed = True
            idle, self._idle = self._idle, []
            self._condition.notify_all()
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
        for worker in idle:
            worker.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- workers

    def _fresh(self) -> None:
        self._condition = threading.Condition()
        self._idle: list[Worker] = []
        self._count = 0
        self._closed = False
        self._executor: ThreadPoolExecutor | None = None

    def _take(self) -> Worker | str:
        """A worker of ours alone, or why none can be had."""
        with self._condition:
            while not self._idle and self._count >= self.workers and not self._closed:
                self._condition.wait()
            if self._closed:
                raise ConfigError("this Sandbox is closed; make another")
            if self._idle:
                return self._idle.pop()
            self._count += 1
        try:
            return self.backend.start()
        except BaseException as error:
            with self._condition:
                self._count -= 1
                self._condition.notify()
            if isinstance(error, Refused):
                return f"no worker could be started: {error}"
            raise

    def _give(self, worker: Worker | str, broken: bool = False) -> None:
        if isinstance(worker, str):
            return
        with self._condition:
            ends = broken or self._closed
            if ends:
                self._count -= 1
            else:
                self._idle.append(worker)
            self._condition.notify()
        if ends:
            worker.close()

    def _failure(self, why: str) -> Result:
        return Result(status=Status.INFRA, isolation=self.tag, detail=why)

    def _threads(self) -> ThreadPoolExecutor:
        with self._condition:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.workers, thread_name_prefix="assay-sandbox")
            return self._executor

    def _submit(self, programs: Iterable[tuple[_Key, SandboxProgram | str]], limits: Limits | None) -> dict[_Key, Future[Result]]:
        threads = self._threads()
        return {key: threads.submit(self.run, program, limits) for key, program in programs}


_alive: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _renew() -> None:
    """In a forked child, before it has a second thread: the workers belong to the parent, whose threads may hold the locks."""
    for sandbox in _alive:
        sandbox._fresh()  # pyright: ignore[reportPrivateUsage]


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew)

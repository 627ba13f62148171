"""Contexts to rollouts by runs of an agent program: one session each, all on one endpoint."""

from __future__ import annotations

import asyncio
import fcntl
import inspect
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.agents.endpoint import AgentEndpoint
from assay.agents.program_process import ProgramEnd, command_words, program_end, run_program
from assay.agents.recorder import CallRecorder
from assay.agents.rendering import AgentRenderer
from assay.agents.server import listening
from assay.agents.session import AgentSession, Generate
from assay.core.canon import digest
from assay.core.errors import AssayError, ConfigError, DataError, EngineError
from assay.core.protocols import Request, SamplerParts
from assay.core.rollout import Completion, Rollout, Stop
from assay.core.score import Fault
from assay.core.seeds import derive_each
from assay.core.task import TOOLS, Context
from assay.core.util.event_loop import run_in_thread, run_loop_in_thread
from assay.rollout.decode_text import with_stop

if TYPE_CHECKING:
    from assay.agents.program import AgentProgram

__all__ = ["AgentSampler", "AgentTask"]

GRACE_SECONDS = 2.0
"""That an agent has to end by itself when its budget is used up: some ask again for minutes."""

FIRST_RUNS = 8
"""Runs after which a program that never worked ends the training."""

_TEMPORARY = "assay-agent-"
"""What names of temporary folders of runs begin with; the id of the process that made them follows."""

_QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DO_NOT_TRACK": "1",
    "LANG": "C.UTF-8",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
"""What keeps programs from asking the internet for updates and prices, and from depending on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask:
    """What an agent that is a Python function is given.

    Attributes:
        prompt: the task's messages as one text.
        messages: the same as role and content.
        root: address of the endpoint, as ``ANTHROPIC_BASE_URL``; `url` is OpenAI's.
        key: the secret of the session.
        folder: an empty folder of its own.
    """

    prompt: str
    messages: tuple[Mapping[str, str], ...]
    root: str
    key: str
    folder: Path

    @property
    def url(self) -> str:
        """As ``OPENAI_BASE_URL``."""
        return f"{self.root}/v1"


@dataclass(slots=True, eq=False)
class AgentSampler:
    """Runs an agent program for each rollout; implements `assay.core.protocols.Sampler`.

    Attributes:
        spec: what is run.
        parts: engine, tokenizer and sampling of the policy.
    """

    spec: AgentProgram
    parts: SamplerParts
    _renderer: AgentRenderer = field(init=False)
    _context: int = field(init=False)
    _failed: int = 0
    _scored: int = 0

    def __post_init__(self) -> None:
        self._renderer = AgentRenderer(self.parts.tokenizer)
        self._context = self.parts.engine.info().context

    async def collect(self, contexts: Sequence[Context], n: int) -> list[Rollout]:
        """``n`` rollouts of each context, context by context, with ids ``KEY/0 .. KEY/n-1``.

        Raises:
            ConfigError: ``n`` below 1, a program that cannot be started, or a context that only a player can pose.
            DataError: two contexts with one key.
            EngineError: generation failed; all runs are ended.
        """
        if n < 1:
            raise ConfigError(f"collect was asked for n={n} rollouts per context; use at least 1")
        if len({c.key for c in contexts}) < len(contexts):
            raise DataError("contexts share a key, so their rollouts would share ids and noise")
        for context in contexts:
            self._check(context)
        _remove_left_folders()
        endpoint, generate = AgentEndpoint(), self._generate()
        gate = asyncio.Semaphore(self.spec.parallel)
        async with listening(endpoint.application) as address:

            async def one(context: Context, i: int, seed: int) -> Rollout:
                async with gate:
                    return await self._roll_out(endpoint, address, generate, context, i, seed)

            each = [(c, i, s) for c in contexts for i, s in enumerate(derive_each("rollout", self.parts.seed, c.key, n))]
            tasks = [asyncio.ensure_future(one(*case)) for case in each]
            try:
                rollouts = await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        self._check_any_ended(rollouts)
        return rollouts

    def _generate(self) -> Generate:
        if not self.spec.one_by_one:
            return self.parts.engine.generate
        alone = asyncio.Lock()

        async def generate(request: Request) -> Completion:
            async with alone:
                return await self.parts.engine.generate(request)

        return generate

    def _check(self, context: Context) -> None:
        """Raises ConfigError for what an agent of its own cannot be posed."""
        odd = {
            "a forced beginning (Context.prefill)": context.prefill is not None,
            "a snapshot": context.snapshot is not None,
            "other messages to learn under (score_messages)": context.score_messages is not None,
            "privileged messages": context.privileged is not None,
            "an environment": self.parts.source.environment(context.task) is not None,
        }
        if found := [name for name, there in odd.items() if there]:
            raise ConfigError(
                f"context {context.key!r} has {' and '.join(found)}, and AgentProgram runs a program that makes its own prompts "
                "and has its own tools: use PlayerSpec for such tasks, or tasks that one answer ends"
            )

    # ---- one rollout -------------------------------------------------------------------------------------------------

    async def _roll_out(
        self, endpoint: AgentEndpoint, address: str, generate: Generate, context: Context, number: int, seed: int
    ) -> Rollout:
        name, sampling = f"{context.key}/{number}", with_stop(self.parts.sampling, self.parts.tokenizer)
        session = AgentSession(
            secret=secrets.token_hex(16),
            recorder=CallRecorder(name, self._renderer, sampling.max_new_tokens, self._context),
            sampling=sampling,
            seed=seed,
            generate=generate,
            budget=self.spec.budget,
        )
        endpoint.add(session)
        root = self._folder(name)
        held = _hold(root)
        try:
            folder = root / "work"
            folder.mkdir()
            task = AgentTask(
                prompt=_prompt(context),
                messages=tuple({"role": m.role, "content": m.content} for m in context.messages),
                root=f"{address}/s/{session.secret}",
                key=session.secret,
                folder=folder,
            )
            end, answer = await self._run(task, session)
        finally:
            await session.seal()
            endpoint.remove(session)
            shutil.rmtree(root, ignore_errors=True)
            os.close(held)
        rollout = Rollout(id=name, context=context, calls=session.recorder.calls(), stop=Stop.DONE, seed=seed)
        return self._with_outcome(rollout, session, end, answer)

    def _folder(self, name: str) -> Path:
        """An empty folder for a run; one of that name that a killed process left is emptied."""
        if not self.spec.folder:
            return Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-"))
        root = Path(self.spec.folder).resolve() / digest(name)[:16]
        shutil.rmtree(root, ignore_errors=True)
        try:
            root.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(
                f"AgentProgram.folder={self.spec.folder!r}: {error.strerror}; give one that can be written"
            ) from None
        return root

    async def _run(self, task: AgentTask, session: AgentSession) -> tuple[ProgramEnd, str | None]:
        """How a run ended, and its answer; None for that of its last call."""
        if self.spec.function is not None:
            return await self._call(self.spec.function, task, session)
        path = task.folder.parent / "task.json"
        path.write_text(
            json.dumps({"prompt": task.prompt, "messages": list(task.messages)}, ensure_ascii=False), encoding="utf-8"
        )
        values = {"prompt": task.prompt, "task": str(path), "url": task.url, "root": task.root, "key": task.key}
        words = command_words(self.spec.command, values)
        work = run_program(words, self._environment(task, path), task.folder, self.spec.timeout)
        end = await self._until_end(work, session) or program_end(task.folder)
        if self.spec.answer == "call":
            return end, None
        if self.spec.answer == "stdout":
            return end, end.stdout.strip()
        return end, _file(task.folder, self.spec.answer.removeprefix("file:"))

    async def _call(self, function: Any, task: AgentTask, session: AgentSession) -> tuple[ProgramEnd, str | None]:
        """A run of a Python function, in a thread of its own, which no deadline can end where it blocks."""
        try:
            run = run_loop_in_thread if inspect.iscoroutinefunction(function) else run_in_thread
            work: Any = run(partial(function, task))  # another thread: one that blocks must not hold up the endpoint
            answer = await self._until_end(asyncio.wait_for(work, self.spec.timeout), session)
        except TimeoutError:
            return ProgramEnd(code=None, stdout="", stderr=""), None
        except AssayError:
            raise
        except Exception as error:
            return ProgramEnd(code=1, stdout="", stderr=f"{type(error).__name__}: {error}"), None
        return ProgramEnd(code=0, stdout="", stderr=""), None if answer is None else str(answer)

    async def _until_end(self, work: Any, session: AgentSession) -> Any:
        """What a run gives; None where it was ended because its budget is used up.

        Raises:
            AssayError: the engine failed: no agent goes on asking a policy that is gone.
        """
        running, clock = asyncio.ensure_future(work), asyncio.get_running_loop().time
        last: float | None = None
        try:
            while not running.done():
                await asyncio.wait((running,), timeout=0.1)
                if session.failure is not None:
                    failure = session.failure
                    if isinstance(failure, AssayError):
                        raise failure
                    raise EngineError(f"session {session.recorder.session}: {failure}") from failure
                if session.exceeded:
                    last = clock() + GRACE_SECONDS if last is None else last
                    if clock() > last:
                        return None
            return await running
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await running

    def _environment(self, task: AgentTask, path: Path) -> dict[str, str]:
        home = task.folder.parent / "home"
        home.mkdir()
        told = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            "TMPDIR": str(home),
            "OPENAI_BASE_URL": task.url,
            "OPENAI_API_BASE": task.url,
            "OPENAI_API_KEY": task.key,
            "ANTHROPIC_BASE_URL": task.root,
            "ANTHROPIC_API_KEY": task.key,
            "GOOGLE_GEMINI_BASE_URL": task.root,
            "GEMINI_API_KEY": task.key,
            "ASSAY_PROMPT": task.prompt,
            "ASSAY_TASK": str(path),
        }
        return {**_QUIET, **told, **self.spec.env}

    def _with_outcome(self, rollout: Rollout, session: AgentSession, end: ProgramEnd, answer: str | None) -> Rollout:
        """The rollout as it ended: with its answer, or with what failed, which is no score."""
        if "unwritable" in session.refused and not rollout.calls:
            raise ConfigError(self._unwritable(session))
        over = bool(session.exceeded)
        failed = self._failure(rollout, session, end, over)
        if failed:
            return replace(rollout, stop=Stop.ERROR, fault=Fault.INFRA, error=failed)
        last = session.recorder.last()
        if answer is not None or last is None or last.completion is None:
            return replace(rollout, answer=answer, stop=Stop.LENGTH if over else Stop.DONE)
        cut = last.completion.stop is not Stop.DONE
        told = None if rollout.calls[-1].text == last.text else last.text
        return replace(rollout, answer=told, stop=Stop.LENGTH if cut or over else Stop.DONE)

    def _failure(self, rollout: Rollout, session: AgentSession, end: ProgramEnd, over: bool) -> str:
        """Why a run has no score; empty where it has one."""
        limit = f"it did not end within {self.spec.timeout:g} s"
        ended = limit if end.code is None and not over else end.status
        said = f": {end.trouble}" if end.trouble else "; it wrote no error"
        if not rollout.calls:
            count = len(session.refusals)
            asked = f"none of the agent's {count} calls could be answered ({session.refusals[-1]})" if count else ""
            return f"{asked or 'the agent made no call'}, and {ended}{said}"
        if end.code is None and not over:
            return f"the agent made {len(rollout.calls)} calls, and {limit}"
        if end.code not in (0, None) and not over and self.spec.failed_exit == "infra":
            return f"the agent failed: {ended}{said}"
        return ""

    def _check_any_ended(self, rollouts: Sequence[Rollout]) -> None:
        """Ends a run whose program never works, instead of steps that learn nothing.

        Raises:
            ConfigError: none of the first runs has a score.
        """
        self._failed += sum(r.stop is Stop.ERROR for r in rollouts)
        self._scored += sum(r.stop is not Stop.ERROR for r in rollouts)
        if not self._scored and self._failed >= FIRST_RUNS:
            first = next(r for r in rollouts if r.stop is Stop.ERROR)
            raise ConfigError(
                f"the agent program failed in all of its first {self._failed} runs, so nothing could be learned; the last: "
                f"{first.error}. Mend the program or AgentProgram's settings; 'assay serve policy' lets you try it by hand"
            )

    def _unwritable(self, session: AgentSession) -> str:
        return (
            f"session {session.recorder.session}: the policy's tokenizer cannot write what the agent sends, so no call could be "
            f"answered ({', '.join(session.refused[:3])}); use a model whose alphabet and chat template know it, as "
            "Chat(template='dialogue') for a model without a template"
        )


def _hold(folder: Path) -> int:
    """A lock on a run's folder, as an open file: it ends with this process, also where that is killed."""
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    return held


def _remove_left_folders() -> None:
    """Removes temporary folders of processes that were killed.

    Their id must be free and their lock too: a process of another container has an id that means nothing here.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*-*"):
        owner = path.name.removeprefix(_TEMPORARY).partition("-")[0]
        if not owner.isdigit() or _is_alive(int(owner)):
            continue
        with suppress(OSError):  # of another user, or gone meanwhile
            held = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(held)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _prompt(context: Context) -> str:
    return "\n\n".join(m.content for m in context.messages if m.role != TOOLS)


def _file(folder: Path, name: str) -> str:
    """Text of a file that the agent wrote, empty without one; nothing outside its folder is read."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")[:1_000_000].strip()

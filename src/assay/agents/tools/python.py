"""A contained Python interpreter that keeps its names for a rollout."""

from __future__ import annotations

from assay.core.errors import SandboxError
from assay.rollout.tool_limits import tool
from assay.sandbox import Limits, PythonSession, Sandbox

__all__ = ["PythonInterpreter"]


@tool(characters=4000)
class PythonInterpreter:
    """A tool of a class: each rollout has an interpreter of its own, in the sandbox, until its end.

    Name it as ``assay.agents.tools:PythonInterpreter``. A subclass may set other ``limits``.

    Attributes:
        limits: of each call: two seconds of processor time and 256 MiB where nothing else is said.

    Raises:
        SandboxError: the interpreter cannot be started: a fault of the infrastructure.
    """

    limits = Limits(cpu=2.0, wall=5.0, memory=256 << 20)

    def __init__(self) -> None:
        self._sandbox = Sandbox(workers=1, limits=self.limits)
        self._session: PythonSession | None = None

    def python(self, code: str) -> str:
        """Runs Python code and tells what it prints, and the value of its last expression. Names stay for the next call.

        Args:
            code: for example "sum(range(10))".
        """
        if self._session is None:
            self._session = self._sandbox.scope()
        result = self._session.run(code)
        if not result.judged:
            raise SandboxError(f"the interpreter failed: {result.detail}")
        said = result.stdout.strip()
        if result.ok:
            return said or "(no output)"
        why = result.stderr.strip().rsplit("\n", 1)[-1] or result.detail or result.status.value
        raise RuntimeError("; ".join(part for part in (why, result.detail if result.detail != why else "", said) if part))

    def close(self) -> None:
        """Ends the interpreter."""
        if self._session is not None:
            self._session.close()
        self._sandbox.close()

"""Proofs in Coq, checked by its compiler in the sandbox."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from assay.core.errors import ConfigError, DataError
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram, Status
from assay.sandbox.sandbox import Sandbox
from assay.verify.code.workers import sandbox_of
from assay.verify.proof.checker import ProofCheck

__all__ = ["Coq"]

_LIMITS = Limits(cpu=20.0, wall=60.0, memory=2 << 30)
_PIECE = re.compile(r'\(\*|\*\)|"')
_GAP = re.compile(r"\b(?:Admitted|Abort|admit|give_up)\b")
_ILLEGAL = re.compile(
    r"\b(?:Axioms?|Parameters?|Conjectures?|Primitive|Register|Load|Redirect|Extraction|Cd|Reset|Back|BackTo|Undo|Drop|Quit"
    r"|bypass_check|Declare\s+(?:ML|Module|Reduction)|Add\s+(?:Rec\s+)?(?:LoadPath|ML)"
    r"|(?:Set|Unset)\s+(?:Guard|Positivity|Universe)\s+Checking|Definitional\s+UIP)\b"
)
_UNFINISHED = re.compile(r"incomplete proof|open goals|unfinished|pending proofs|nested proofs|open proofs", re.IGNORECASE)
_BODY = re.compile(r"\s*(?:Proof\s*\.)?(.*?)(?:\b(?:Qed|Defined|Save)\s*\.\s*)?", re.DOTALL)
_CLOSED = "Closed under the global context"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_']*")
_FIELDS = {"statement", "context", "label", "axioms"}
_CONFIG = "/etc/ocamlfind.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coq:
    r"""Checks proofs in Coq 8.16 or newer, with its compiler (docs/packages/proof.md).

    The gold is a table: ``statement``, a proposition; ``context``, what stands before it (imports, definitions); ``label``, the
    name that the theorem must have (``goal``); ``axioms``, the names of those that a proof may rest on (none).

    The answer is the body of a proof, or a text that states and proves a theorem of that name, perhaps with lemmas before it. It
    is compiled as a module between two parts of ours, under names drawn for this run: before it stands the statement, as a
    definition; behind it, that its theorem has that very type, and ``Print Assumptions``. So nothing in it (notations, other
    definitions, another statement of the same name) changes what was asked, and nothing that it assumes stays hidden: axioms,
    gaps, a switched-off check of recursion, positivity or universes. ``Axiom`` and its like, commands that load code or files or
    undo what was said, and comments or strings that are left open, are refused unrun.

    Attributes:
        limits: of the compiler.
        backend: how it is contained (`assay.sandbox.Sandbox`).
        workers: how many proofs are checked at once.
        allow_unsafe: accept a level of the sandbox that contains nothing.

    Raises:
        ConfigError: no workers; when checking, that Coq is not installed, naming the package.

    >>> from assay.sandbox import Limits
    >>> Coq(limits=Limits(cpu=5.0)).fences
    ('coq', 'v')
    """

    fences: ClassVar[Sequence[str]] = ("coq", "v")
    limits: Limits = _LIMITS
    backend: str = "auto"
    workers: int = 2
    allow_unsafe: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ConfigError(f"Coq.workers={self.workers}; use at least 1")

    def prepare(self) -> None:
        """Finds out how the compiler is contained here."""
        self._sandbox()

    def check(self, asked: Mapping[str, Any], proof: str) -> ProofCheck:
        """Judges a proof.

        Raises:
            DataError: ``asked`` has no statement, or Coq refuses it or its context.
            ConfigError: Coq is not installed.
        """
        task = _Asked.read(asked)
        code = bare(proof)
        if code is None:
            return ProofCheck("illegal", {"why": "a comment or a string is left open"})
        for verdict, pattern in (("illegal", _ILLEGAL), ("incomplete", _GAP)):
            found = pattern.search(code)
            if found:
                return ProofCheck(verdict, {"why": " ".join(found.group().split())})
        nonce = secrets.token_hex(8)
        source = task.source(proof, code, nonce).encode("utf-8", "surrogatepass")
        program = SandboxProgram(argv=(_coqc(), "-q", "-noglob", "judged.v"), files={"judged.v": source})
        result = self._sandbox().run(program, self.limits)
        found = self._read(result, task, nonce)
        return ProofCheck(found.verdict, {**found.info, "isolation": result.isolation})

    def _sandbox(self) -> Sandbox:
        reads = (_coqc(), *((_CONFIG,) if Path(_CONFIG).exists() else ()))
        return sandbox_of(self.backend, self.workers, allow_unsafe=self.allow_unsafe, reads=reads)

    def _read(self, result: Result, task: _Asked, nonce: str) -> ProofCheck:
        """What the compiler said. Its words before the second mark may be the answer's; those behind it are not."""
        said = " ".join(result.stderr.partition("Error:")[2].split())[:200]
        if not result.judged:
            return ProofCheck("infra", {"error": f"the sandbox failed: {result.detail}"})
        _, first, rest = result.stdout.partition(f"asked_{nonce} =")
        if not first:
            raise DataError(f"Coq refuses the statement or its context ({result.status}): {said}")
        if result.status not in (Status.OK, Status.ERROR):
            return ProofCheck("timeout" if result.status is Status.CPU else str(result.status))
        _, second, judged = rest.partition(f"done_{nonce} =")
        if not second:
            return ProofCheck("incomplete" if _UNFINISHED.search(said) else "wrong", {"why": said})
        if result.status is not Status.OK:
            return ProofCheck("altered", {"why": said})
        lines = judged.splitlines()
        if _CLOSED in lines and "Axioms:" not in lines:
            return ProofCheck("proved")
        assumed = re.findall(r"^(\S+)\s*(?::|$)", judged.partition("Axioms:")[2], re.MULTILINE)
        foreign = [name for name in assumed if name not in task.axioms]
        if foreign or not assumed:
            return ProofCheck("illegal", {"why": f"it assumes {', '.join(foreign)[:200] or judged[-200:]}"})
        return ProofCheck("proved", {"assumes": tuple(assumed)})


@dataclass(frozen=True, slots=True)
class _Asked:
    """A gold, read."""

    statement: str
    context: str
    label: str
    axioms: tuple[str, ...]

    @classmethod
    def read(cls, asked: Mapping[str, Any]) -> _Asked:
        statement, context, label = (
            asked.get(name, other) for name, other in (("statement", ""), ("context", ""), ("label", "goal"))
        )
        axioms = asked.get("axioms", [])
        if set(asked) - _FIELDS or not isinstance(statement, str) or not statement.strip() or not isinstance(context, str):
            raise DataError(
                f"the gold has {sorted(asked)}; give 'statement' as text, and of {sorted(_FIELDS)} what else is needed"
            )
        if not isinstance(label, str) or not _NAME.fullmatch(label):
            raise DataError(f"'label' is {label!r:.60}; give the name of the theorem")
        if not isinstance(axioms, list) or not all(isinstance(name, str) for name in cast("list[Any]", axioms)):
            raise DataError(f"'axioms' is {axioms!r:.60}; give a list of names, as Print Assumptions writes them")
        return cls(statement.strip().removesuffix("."), context, label, tuple(cast("list[str]", axioms)))

    def source(self, proof: str, code: str, nonce: str) -> str:
        """What is compiled."""
        if not re.search(rf"\b[A-Z]\w+\s+{re.escape(self.label)}(?![\w'])", code):
            body = _BODY.fullmatch(proof)
            proof = f"Theorem {self.label} : {self.statement}.\nProof.\n{body[1] if body else proof}\nQed."
        return "\n".join(
            (
                self.context,
                f"Definition asked_{nonce} : Prop := ({self.statement}).",
                f"Print asked_{nonce}.",
                f"Module answer_{nonce}.",
                proof,
                f"End answer_{nonce}.",
                f"Definition done_{nonce} := tt.",
                f"Print done_{nonce}.",
                f"Definition judged_{nonce} : asked_{nonce} := answer_{nonce}.{self.label}.",
                f"Print Assumptions judged_{nonce}.",
                "",
            )
        )


def bare(text: str) -> str | None:
    r"""A text in Coq's language without comments, which nest, and with strings emptied; None where one is left open.

    >>> bare('a (* (* "*)" *) Admitted *) b "Axiom"'), bare("(* open")
    ('a   b ""', None)
    """
    out: list[str] = []
    at, depth = 0, 0
    while found := _PIECE.search(text, at):
        if not depth:
            out.append(text[at : found.start()])
        at = found.end()
        if found.group() == '"':
            end = text.find('"', at)
            if end < 0:
                return None
            at = end + 1
            if not depth:
                out.append('""')
        elif found.group() == "(*":
            depth += 1
        elif depth:
            depth -= 1
            out.append(" " if not depth else "")
        else:
            out.append("*)")
    return None if depth else "".join((*out, text[at:]))


def _coqc() -> str:
    found = shutil.which("coqc")
    if found is None:
        raise ConfigError("proofs in Coq need its compiler, coqc; install the Debian package coq (apt-get install coq)")
    return str(Path(found).resolve())

"""Every error that assay raises on purpose.

    AssayError
    ├── ConfigError (ValueError)         a setting is wrong or contradicts another
    │   ├── UnknownNameError (KeyError)  a name nobody registered; carries the nearest known one
    │   ├── ToolchainError               a compiler or interpreter is not installed; names its package
    │   └── PlanError                    an objective chain that cannot be right
    ├── DataError (ValueError)           the user's rows, files or records are wrong
    │   └── HubError                     a name on a hub, which neither the cache nor the hub gives
    ├── RewardError                      a reward function broke its contract on too many rollouts
    ├── EngineError (RuntimeError)       generation failed
    ├── NonFiniteError (ArithmeticError) a loss, gradient or weight became NaN or infinite
    ├── WeightProofError                 the sampler did not serve the trained weights
    ├── CallbackError                    a callback of the user's own failed; the run can be resumed
    ├── MismatchError                    sampler and learner disagree on the same tokens by more than a run allows
    ├── RankError (RuntimeError)         processes of one run disagree, or one does not answer
    ├── OutOfMemoryError (MemoryError)   a part of a run asked for more memory than there is
    ├── GateError                        a stage ended below the accuracy it promised
    ├── SandboxError (RuntimeError)      this host cannot contain a program as was asked
    ├── StorageError (OSError)           the run folder could not be written
    ├── CheckpointError                  a checkpoint is damaged or not ours
    │   └── InexactResumeError           the machine or versions differ from the ones that wrote it
    └── MissingExtraError (ImportError)  an optional dependency is not installed

Each message names the value, the place and a fix.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "AssayError",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "EngineError",
    "GateError",
    "HubError",
    "InexactResumeError",
    "CallbackError",
    "MismatchError",
    "MissingExtraError",
    "NonFiniteError",
    "OutOfMemoryError",
    "PlanError",
    "RankError",
    "RewardError",
    "SandboxError",
    "StorageError",
    "ToolchainError",
    "UnknownNameError",
    "WeightProofError",
    "a_kind",
    "how_to_install",
    "missing_extra",
    "nearest",
]


_MANY = 20
"""Names up to which all are said."""
_SHOWN = 6
_LISTED_BY = {
    "language": "assay sandbox languages",
    "method": "assay methods",
    "paper": "assay papers list",
    "recipe": "assay recipes",
    "task family": "assay tasks list",
    "verifier": "assay verify list",
}
"""Kinds of names and the command that lists them."""


class AssayError(Exception):
    """Base of all errors raised on purpose."""


class ConfigError(AssayError, ValueError):
    """A setting is out of range or contradicts another one; names both and a fix."""


class UnknownNameError(ConfigError, KeyError):
    """A name that nothing answers to; says the nearest known one, and all known ones where they are few.

    Of more than 20 it says how many there are, the few that are most like the name, and the command that lists them all, where
    there is one; ``known`` has them all.

    >>> str(UnknownNameError("task", "srot", ["sort", "kv"]))
    "unknown task 'srot': did you mean 'sort'? known: kv, sort"
    >>> str(UnknownNameError("method", "gpro", ["grpo", *(f"m{i}" for i in range(50))]))
    "unknown method 'gpro': did you mean 'grpo'? 51 are known, most like it: grpo; 'assay methods' lists them all"
    """

    def __init__(self, kind: str, name: object, known: Iterable[object]) -> None:
        self.kind, self.name = kind, str(name)
        self.known = tuple(sorted(map(str, known), key=lambda x: (float(x) if x.isdecimal() else math.inf, x)))
        close = None if self.name.isdecimal() else nearest(self.name, self.known)  # 9 is not what 99 was meant to be
        hint = f"did you mean {close!r}? " if close else ""
        super().__init__(f"unknown {kind} {self.name!r}: {hint}{self._known_in_words()}")

    def _known_in_words(self) -> str:
        if len(self.known) <= _MANY:
            return f"known: {', '.join(self.known) or 'none'}"
        folded = {k.casefold(): k for k in self.known}
        near = [folded[k] for k in difflib.get_close_matches(self.name.casefold(), list(folded), n=_SHOWN, cutoff=0.5)]
        command = next((c for word, c in _LISTED_BY.items() if self.kind == word or self.kind.startswith(f"{word} ")), "")
        like = ("most like it: " if near else "such as ") + ", ".join(near or self.known[:_SHOWN])
        return f"{len(self.known)} are known, {like}" + (f"; {command!r} lists them all" if command else "")

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.kind, self.name, self.known)


class ToolchainError(ConfigError):
    """A compiler or an interpreter that a language needs is not here; names the program and the package that has it."""


class PlanError(ConfigError):
    """An objective chain that cannot be right; names the two parts that clash."""


class DataError(AssayError, ValueError):
    """The user's rows, files or records are wrong; names the row and the field."""


class HubError(DataError):
    """A model or a data set by its name on a hub, which neither the cache nor the hub gives; says why, and what to do."""


class RewardError(AssayError):
    """A reward function broke its contract so often that training on it would be blind."""


class RewardLengthError(RewardError):
    """A reward function judged several answers in one call, and returned another number of values."""


class EngineError(AssayError, RuntimeError):
    """Generation failed; the request's id is in the message."""


class NonFiniteError(AssayError, ArithmeticError):
    """A loss, gradient norm or weight became NaN or infinite; the weights were not changed."""


class WeightProofError(AssayError):
    """After an update the sampler did not serve the trained weights."""


class CallbackError(AssayError):
    """A callback of the user's own failed; names it. The run has a checkpoint of that step."""


class MismatchError(AssayError):
    """Sampler and learner give the same tokens probabilities further apart than the run allows; it can be resumed."""


class RankError(AssayError, RuntimeError):
    """Processes of one run ask each other for different things, or one does not answer in time."""


class OutOfMemoryError(AssayError, MemoryError):
    """A part of a run asked for more memory than there is; says which, and which settings would need less."""


class GateError(AssayError):
    """A stage ended below the accuracy that the next one needs."""


class SandboxError(AssayError, RuntimeError):
    """The isolation that was asked for is not granted, or does not hold, on this host; says what failed and a fix."""


class StorageError(AssayError, OSError):
    """The run folder could not be written (disk full, permissions); the last checkpoint is intact."""


class CheckpointError(AssayError):
    """A checkpoint is unreadable, damaged or belongs to another run."""


class InexactResumeError(CheckpointError):
    """Threads, instruction set or versions differ, so a resume could not be bit-equal."""


class MissingExtraError(AssayError, ImportError):
    """An optional dependency is missing; says what to install (`how_to_install`).

    >>> str(MissingExtraError("matplotlib", "report")).partition(",")[0]
    "matplotlib is not installed: pip install 'assay-rl[report]'"
    """

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(f"{module} is not installed: {how_to_install(extra)}")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.module, self.extra)


def how_to_install(extra: str, package: Path = Path(__file__).parents[1]) -> str:
    """The command that installs an extra, and in a checkout, where ``package`` is ``src/assay``, also the checkout's command.

    >>> how_to_install("lora", Path("/usr/lib/python3/site-packages/assay"))
    "pip install 'assay-rl[lora]'"
    """
    pip, checkout = f"pip install 'assay-rl[{extra}]'", package.parents[1]
    here = package.parent.name == "src" and (checkout / "constraints.txt").is_file() and (checkout / "pyproject.toml").is_file()
    return f"{pip}, or in this checkout: pip install -c constraints.txt -e '.[{extra}]'" if here else pip


_EXTRAS = {**dict.fromkeys(("torch", "transformers", "safetensors", "tokenizers", "jinja2"), "train"), "peft": "lora"}
"""Modules that a model needs, and the extra of each."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """What to install for a module that could not be imported; None for one of no extra that a model needs.

    >>> missing_extra(ModuleNotFoundError("No module named 'torch'", name="torch.nn"))
    MissingExtraError("torch is not installed: pip install 'assay-rl[train]'...")
    """
    module = (error.name or "").partition(".")[0]
    return MissingExtraError(module, _EXTRAS[module]) if module in _EXTRAS else None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, upper and lower case alike, or None when none is close.

    Of the close ones it is that which the fewest slips of the hand turn into ``name``: a letter more, less or other, or two that
    changed places; of several one of the same letters, then one that begins alike.

    >>> nearest("uniforn", ["uniform", "success_variance"]), nearest("gpro", ["prpo", "grpo"])
    ('uniform', 'grpo')
    """
    word, folded = name.casefold(), {k.casefold(): k for k in known}
    found = difflib.get_close_matches(word, list(folded), n=len(folded) or 1, cutoff=0.55)

    def likeness(other: str) -> tuple[int, bool, bool, int, str]:
        same = sorted(word) == sorted(other)
        return -_slips(word, other), same, word[:1] == other[:1], -abs(len(word) - len(other)), other

    return folded[max(found, key=likeness)] if found else None


def _slips(a: str, b: str) -> int:
    """Fewest insertions, deletions, replacements and exchanges of neighbours that turn one text into the other."""
    before, row = list[int](), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        earlier, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1]


def a_kind(value: object) -> str:
    """The type of a value in words, with its article, for messages.

    >>> a_kind(3), a_kind("x")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"

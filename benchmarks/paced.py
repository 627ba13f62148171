"""Two programs that work in turn, step by step: the work that `whole_step.py` gives both, and the pipe to each.

Nothing but the standard library is imported, so that a peer's interpreter can run it without assay.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What both sides are given.

    Attributes:
        model: folder of the weights that both begin with.
        prompts: of every step, one per group.
        mixed: of each prompt, whether its attempts are paid differently; else all get 0, and their group has no gradient.
        group_size, new: attempts per prompt, and tokens of each; none ends before.
        steps: that are made, the first of which warms up.
        threads: of torch.
        lr: learning rate of AdamW.
        micro: attempts in TRL's micro-batch.
        attention: what TRL's model attends with.
        recall: MiB of states that assay's learner may take over from its sampler.
        cache: TRL's keys and values while it samples: ``dynamic``, ``static``, or ``paged``, which is ``generate_batch``.
        first: folder for the attempts that both learn from in their first step, and for its gradients; empty: each samples alone.
    """

    model: str
    prompts: Sequence[str]
    mixed: Sequence[bool]
    group_size: int
    new: int
    steps: int
    threads: int
    lr: float
    micro: int
    attention: str
    cache: str
    recall: int
    first: str

    @property
    def attempts(self) -> int:
        """Of a step."""
        return len(self.prompts) * self.group_size

    @property
    def attempts_file(self) -> Path:
        """The first step's attempts: ids of a prompt to those of its attempts."""
        return Path(self.first) / "attempts.json"

    def gradient(self, side: str) -> str:
        """File of a side's first gradient, tensors by name; empty where none is wanted."""
        return str(Path(self.first) / f"{side}.pt") if self.first else ""

    def write(self, path: Path) -> Path:
        """As a file that `read` reads."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return path

    @staticmethod
    def read(path: str) -> Work:
        """From a file that `write` wrote."""
        return Work(**json.loads(Path(path).read_text(encoding="utf-8")))


def pay_attempt(completion: str, mixed: bool) -> float:
    """A number in [0, 1) that no two attempts of a mixed group share by design; 0 in any other group."""
    return zlib.crc32(completion.encode()) % 10007 / 10007 if mixed else 0.0


# ---- the side that works


class Pace:
    """A side's end of the pipe. What else the process prints goes where its errors go."""

    def __init__(self) -> None:
        self._out: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._begin = (0.0, 0.0, 0.0)

    def tell(self, **facts: Any) -> None:
        """Says what was found, and waits for the word to go on; from there on time counts."""
        self._out.write(json.dumps(facts) + "\n")
        self._out.flush()
        if not sys.stdin.readline():
            sys.exit("the benchmark has ended")
        self._begin = _clocks()

    def measure_spent(self) -> dict[str, float]:
        """Seconds since the last word: on the wall, of this process, and of those that it started and that live."""
        wall, own, others = (b - a for a, b in zip(self._begin, _clocks(), strict=True))
        return {"wall": wall, "cpu": own + others, "cpu_of_others": others}


def _clocks() -> tuple[float, float, float]:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.perf_counter(),
        time.process_time(),
        ended.ru_utime + ended.ru_stime + sum(map(_cpu_of, _child_processes(os.getpid()))),
    )


def _child_processes(process: int) -> list[int]:
    """Processes that descend from one."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return [p for child in found for p in (child, *_child_processes(child))]


def _cpu_of(process: int) -> float:
    """CPU-seconds of another process, by Linux's clock of it."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:  # it has ended
        return 0.0


# ---- the side that asks


class Side:
    """A process that works, one step each time it is asked.

    Args:
        command: the program and its arguments.
        threads: for the libraries that read it from the environment.
        log: file for its errors.
    """

    def __init__(self, command: Sequence[str], threads: int, log: Path) -> None:
        self._log = log
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "MKL_"))}
        environment |= {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        with log.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def hear(self) -> Mapping[str, Any]:
        """What the process says next.

        Raises:
            RuntimeError: it has ended; with the last of its errors.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise RuntimeError(f"{' '.join(map(str, self._process.args))} ended with {self._process.wait()}:\n{said}")  # pyright: ignore
        return json.loads(line)

    def step(self) -> Mapping[str, Any]:
        """Has it make a step; returns what it says of it."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self.hear()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()

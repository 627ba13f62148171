"""The table of attacks: reads it, carries one out, and says by which ways it got through.

Run by hand, or as another user, it prints one JSON line per attack:

    python tests/attacks/attack_table.py --level strong [--user 65534] [--quick]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.sandbox.backend import Refused, Worker
from assay.sandbox.backends.bubblewrap import Bubblewrap
from assay.sandbox.backends.runsc import Runsc
from assay.sandbox.backends.wasi import Wasi
from assay.sandbox.client import Zygote
from assay.sandbox.compiled_program import build
from assay.sandbox.levels import LEVELS, OTHERS, WASI
from assay.sandbox.limits import Limits
from assay.sandbox.result import Result, SandboxProgram
from assay.sandbox.toolchain import Language, language

HERE = Path(__file__).parent
PRELUDE = (HERE / "prelude.py").read_text(encoding="utf-8")


def started(level: str, python: str) -> Worker:
    """A worker of a level, or of a tool that makes containers."""
    made = {"bubblewrap": Bubblewrap, "runsc": Runsc, WASI: Wasi}
    return made[level](python=python).start() if level in made else Zygote(level, python=python)


@dataclass(frozen=True)
class Attack:
    """One attack.

    `mode` is ``run`` (through when it says so, when its status is not one of `held`, or when the host was touched), ``call``
    (through when its value is right), or one of the two controls. One with a `language` is a source whose compiler is attacked,
    and what it made: through when either shows the secret; SECRET in it stands for the secret's file.
    """

    family: str
    name: str
    code: str
    before: str = ""
    mode: str = "run"
    language: str = ""
    held: tuple[str, ...] = ("ok", "error", "memory", "disk", "processes", "blocked", "timeout", "cpu", "output", "compile")
    limits: dict[str, float] = field(default_factory=dict)
    levels: tuple[str, ...] = LEVELS
    machines: tuple[str, ...] = ()
    heavy: bool = False

    def suits(self, level: str) -> bool:
        """Whether it is to be tried there; containers are given one process, as `landlock` is, and give no files back, so that
        nothing is compiled in them; and WebAssembly runs Python alone.
        """
        if WASI in self.levels:
            return level == WASI
        return level in self.levels if level in LEVELS else set(self.levels) == set(LEVELS) and not self.language


def attacks() -> list[Attack]:
    """Every attack of every family."""
    out: list[Attack] = []
    for path in sorted(HERE.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["attack"]:
            row = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
            out.append(Attack(family=path.stem, **row))
    return out


_AGAINST_OTHERS = ("processes", "leaks", "descriptors")


class Arena:
    """A zygote to attack, and on the host what an attack would touch: a secret, a port, a process, another run."""

    def __init__(self, level: str, python: str = sys.executable) -> None:
        self.level = level
        self.python = python
        self.zygote = started(level, python)
        self.other = started(level, python)
        self.folder = Path(tempfile.mkdtemp(prefix="assay-attacked-"))
        self.folder.chmod(0o777)
        self.secret = secrets.token_hex(16)
        self.file = self.folder / "secret.txt"
        self.file.write_text(self.secret)
        self.file.chmod(0o666)
        self.marker = f"assay-marker-{secrets.token_hex(4)}"
        self.expected = f"expected-{secrets.token_hex(16)}".encode()
        self.port = socket.create_server(("127.0.0.1", 0))
        self.abstract = f"\0assay-{secrets.token_hex(8)}"
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(self.abstract)
        self.door.listen()
        for door in (self.port, self.door):
            door.setblocking(False)
        os.environ["ASSAY_ATTACKED"] = self.secret
        self.victim = subprocess.Popen([python, "-c", "import time; time.sleep(3600)"], env={"SECRET": self.secret})
        self.keeper = getattr(self.zygote, "pid", self.victim.pid)  # a container has none that lives on between runs
        self.before = set(_children(self._family))
        self.seen = {path: _state(Path(path)) for path in (str(self.file), os.__file__)}

    @property
    def _family(self) -> int:
        """Whose descendants a run's processes are."""
        return self.keeper if self.level in LEVELS or self.level == "rlimits" else os.getpid()

    def close(self) -> None:
        self.zygote.close()
        self.other.close()
        self.victim.kill()
        self.victim.wait()
        self.port.close()
        self.door.close()
        for path in self.folder.iterdir():
            path.unlink()
        self.folder.rmdir()

    def ways(self, attack: Attack) -> list[str]:
        """By which ways the attack got through; empty when it was held."""
        if attack.language:
            return self._compiled(attack)
        if attack.mode != "run":
            return self._graded(attack)
        limits = Limits(**{"wall": 20.0, "cpu": 10.0, **attack.limits})
        if attack.before:
            first = self.zygote.run(SandboxProgram(code=f"given = {self._given(0)!r}\n{attack.before}"), Limits())
            if not first.ok and self.level != WASI:  # where it may have lacked what it is made of
                return [f"the first program could not run: {first}"]
        wanted = attack.family in _AGAINST_OTHERS
        waiting = _Sibling(self.other, wanted, getattr(self.other, "pid", os.getpid()), seen=self.level != WASI)
        try:
            program = SandboxProgram(code=PRELUDE + attack.code, stdin=json.dumps(self._given(waiting.pid)))
            result = self.zygote.run(program, limits)
            return [*_said(result, attack, self.level), *waiting.harm(), *self._touched()]
        finally:
            waiting.end()

    def _given(self, sibling: int) -> dict[str, Any]:
        return {
            "level": self.level if self.level in ("landlock", WASI) else "strong",
            "pid": self.victim.pid,
            "zygote": self.keeper,
            "sibling": sibling,
            "secret": self.secret,
            "secret_file": str(self.file),
            "folder": str(self.folder),
            "home": str(Path.home()),
            "abstract": self.abstract,
            "port": self.port.getsockname()[1],
            "repository": str(HERE.parents[1]),
            "marker": self.marker,
            "digest": hashlib.sha256(self.expected).hexdigest(),
        }

    def _graded(self, attack: Attack) -> list[str]:
        result = self.zygote.run(SandboxProgram(code=attack.code, entry="solve", arguments=(20, 22)), Limits())
        right = result.ok and type(result.value) is int and result.value == 42
        if attack.mode == "control right":
            return [] if right else [f"a right program was refused: {result}"]
        return [f"taken for right: {result}"] if right else [f"no verdict: {result}"] if not result.judged else self._touched()

    def lacks(self, attack: Attack) -> str:
        """Why the attack cannot be tried here: its compiler is not installed; empty where it can."""
        missing = " ".join(language(attack.language).missing()) if attack.language else ""
        return f"its compiler is not installed: apt-get install {missing}" if missing else ""

    def _compiled(self, attack: Attack) -> list[str]:
        one = language(attack.language)
        zygote = Zygote(self.level, one.places(), python=self.python)
        try:
            compiler = _Compiler(zygote, one)
            found = build(compiler, one, attack.code.replace("SECRET", str(self.file)))
            results = [found.result] if found.result is not None else []
            if found.refused is None:
                results.append(compiler.run(found.program(), Limits(wall=3.0)))
            out: list[str] = []
            for result in results:
                out += [f"it shows the secret: {result}"] if self.secret in result.stdout + result.stderr else []
                out += _said(result, attack, self.level)
            return [*out, *self._touched()]
        finally:
            zygote.close()

    def _touched(self) -> list[str]:
        """What the host shows, whatever the program said."""
        out: list[str] = []
        if [p.name for p in self.folder.iterdir()] != [self.file.name] or self.file.read_text() != self.secret:
            out.append("the host's folder was changed")
        out += [f"{path} was changed" for path, state in self.seen.items() if _state(Path(path)) != state]
        places = ("/", "/tmp", "/var/tmp", "/dev/shm", "/run", str(Path.home()), str(HERE.parents[1]))
        out += [f"left {self.marker} in {p}" for p in places if any(os.path.lexists(f"{p}/{d}{self.marker}") for d in ("", "."))]
        if os.path.lexists("/tmp/assay-pickle"):
            out.append("a value was unpickled")
        if self.victim.poll() is not None:
            out.append("a process of the host was stopped")
        for door, name in ((self.port, "port"), (self.door, "abstract socket")):
            try:
                door.accept()
                out.append(f"the host's {name} was reached")
            except BlockingIOError:
                pass
        left = sorted(set(_children(self._family)) - self.before)
        if left:
            out.append(f"processes outlive the run: {left}")
        follow = self.zygote.run(SandboxProgram(code="import os\nprint(os.listdir('.'))"), Limits(wall=20.0))
        if follow.stdout != "[]\n":
            out.append(f"the next run is not clean: {follow}")
        return out


class _Compiler:
    """A zygote as `build` uses a sandbox."""

    def __init__(self, zygote: Zygote, one: Language) -> None:
        self._zygote, self.languages = zygote, (one,)

    def run(self, program: SandboxProgram, limits: Limits | None = None) -> Result:
        return self._zygote.run(*program.fit_limits(limits or Limits()))


class _Sibling:
    """Another program, in the middle of its run."""

    def __init__(self, zygote: Worker, wanted: bool, family: int, seen: bool = True) -> None:
        self._results: list[Result] = []
        self._thread: threading.Thread | None = None
        self.pid = 0
        if not wanted:
            return
        code = "import time\nprint('begun', flush=True)\ntime.sleep(0.2)\nprint('done')"
        before = set(_children(family))
        self._thread = threading.Thread(
            target=lambda: self._results.append(zygote.run(SandboxProgram(code=code), Limits(wall=60.0)))
        )
        self._thread.start()
        if not seen:  # it is a part of the worker's own process
            self.pid = family
            return
        for _ in range(5000):
            found = [pid for pid in _children(family) if pid not in before]
            if found:
                self.pid = found[-1]
                break
            time.sleep(0.002)

    def end(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def harm(self) -> list[str]:
        if self._thread is None:
            return []
        self._thread.join()
        (result,) = self._results
        return [] if result.stdout == "begun\ndone\n" else [f"another run was harmed: {result}"]


_LACKS = ("[Errno 52]", "[Errno 58]", "has no attribute", "Unsupported platform", "can't start new thread")


def _lacks(result: Result) -> bool:
    """Whether a program ended because WebAssembly has nothing of what it is made of."""
    return any(text in result.stderr.rstrip().rpartition("\n")[2] for text in _LACKS)


def _said(result: Result, attack: Attack, level: str) -> list[str]:
    if not result.judged:
        return [f"no verdict: {result.detail}"]
    out = [line for line in result.stdout.splitlines() if line.startswith("THROUGH")]
    if level == WASI and _lacks(result):
        return out
    broken = "Traceback" in result.stderr and "MemoryError" not in result.stderr
    if broken and attack.family not in ("resources", "processes", "wasm"):
        out.append(f"the attack itself is broken: {result.stderr[-300:]}")
    return out + ([f"status {result.status}: {result.stderr[-300:]}"] if str(result.status) not in attack.held else [])


def _state(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return (found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns)


def _children(pid: int) -> list[int]:
    """All descendants of a process."""
    out: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):  # of each of its threads
        try:
            for child in path.read_text().split():
                out += [int(child), *_children(int(child))]
        except OSError:
            continue
    return out


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", default="strong", choices=(*LEVELS, WASI, *OTHERS))
    parser.add_argument("--user", type=int, help="become this user first")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--quick", action="store_true", help="leave out the heavy ones")
    parser.add_argument("--only", default="", help="those whose family or name holds this text")
    given = parser.parse_args()
    if given.user is not None:
        os.setgroups([])
        os.setresgid(given.user, given.user, given.user)
        os.setresuid(given.user, given.user, given.user)
        os.environ.update(HOME="/tmp")
    try:
        arena = Arena(given.level, given.python)
    except Refused as error:
        print(json.dumps({"refused": str(error)}))
        return 3
    failed = 0
    try:
        for attack in attacks():
            fits = attack.suits(given.level) and os.uname().machine in (attack.machines or (os.uname().machine,))
            if not fits or (given.quick and attack.heavy) or given.only not in f"{attack.family}: {attack.name}":
                continue
            if arena.lacks(attack):
                continue
            began = time.monotonic()
            ways = arena.ways(attack)
            failed += bool(ways)
            row = {"family": attack.family, "name": attack.name, "ways": ways, "seconds": round(time.monotonic() - began, 3)}
            print(json.dumps(row), flush=True)
    finally:
        arena.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

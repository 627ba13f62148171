"""Compiles the C++ sources for this machine's processor on first use, and keeps the library in the cache."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from functools import cache
from pathlib import Path

from assay.core.errors import AssayError
from assay.core.util.paths import cache_folder

__all__ = ["FLAGS", "SOURCES", "BuildError", "build", "compiler", "decoder_identity", "kernel"]

_PARTS = ("decode", "train", "head", "muon", "adamw", "digest")
SOURCES = tuple(Path(__file__).parent / "cpp" / f"{name}.cpp" for name in _PARTS)

FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
"""Exact but for products that are added, which are rounded once: the same program gives the same bits on one processor.

What ``$ASSAY_CXXFLAGS`` holds stands behind them: ``-march=x86-64-v3`` makes a library for any processor with AVX2.
"""

_FUSED = ("--param=avoid-fma-max-bits=0",)
"""Has GCC round a product that is added once, wherever that stands: tuned for Zen 3 it rounds twice in loops with one sum, so
that a number would depend on how many rows are computed beside it. Other compilers do not, and do not know the option.
"""

_LIBRARY = ("-fPIC", "-shared", "-pthread")
_DIGEST = hashlib.sha256().digest_size
_SECONDS = 300.0  # a compilation takes ten on a quiet machine


class BuildError(AssayError, RuntimeError):
    """The source could not be compiled or loaded; the message says why."""


def kernel() -> ctypes.CDLL | None:
    """The compiled library; None, with one warning, where there is no compiler or it fails.

    Whoever gets None computes with PyTorch, to the same results up to rounding: decodes at a third of the speed or less, and
    trains at about half of it.
    """
    found = _load_library()
    if isinstance(found, BuildError):
        _warn(str(found))
        return None
    return found


def decoder_identity() -> str:
    """What decodes and trains here: a name of source, compiler and processor; or ``PyTorch``, where nothing can be compiled."""
    return "PyTorch" if isinstance(_load_library(), BuildError) else f"C++ {_key(name := compiler(), _flags(name))}"


@cache
def _load_library() -> ctypes.CDLL | BuildError:
    try:
        return build()
    except BuildError as error:
        return error


@cache
def _warn(why: str) -> None:
    warnings.warn(f"computing with PyTorch, which is several times slower: {why}", RuntimeWarning, stacklevel=4)


def build(folder: Path | None = None) -> ctypes.CDLL:
    """The library, compiled unless the cache has it.

    Args:
        folder: the cache, ``kernels`` in `assay.core.util.paths.cache_folder` unless given.

    Raises:
        BuildError: no compiler, or one that fails; with what it said.
    """
    name = compiler()
    flags = _flags(name)
    folder = folder or cache_folder() / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"assay-{_key(name, flags)}.so"
        with (folder / f"{path.stem}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes that begin together one compiles
            if not _whole(path):
                _compile(name, flags, path)
            return ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(
            f"the compiled library cannot be kept in {folder}: {error}; name another folder by ASSAY_CACHE or XDG_CACHE_HOME"
        ) from error


def _whole(path: Path) -> bool:
    """Whether a library is there as it was written: loading one that was cut off would end the process."""
    if not path.exists():
        return False
    content = path.read_bytes()
    return hashlib.sha256(content[:-_DIGEST]).digest() == content[-_DIGEST:]


def compiler() -> str:
    """The C++ compiler: ``$CXX``, else g++, clang++ or c++.

    Raises:
        BuildError: there is none.
    """
    wanted = os.environ.get("CXX")
    found = next((path for name in ([wanted] if wanted else ["g++", "clang++", "c++"]) if (path := shutil.which(name))), None)
    if found is None:
        raise BuildError(f"no C++ compiler ({wanted or 'g++, clang++, c++'}); install g++, or name one by CXX")
    return found


def _flags(name: str) -> tuple[str, ...]:
    fused = _FUSED if "Free Software Foundation" in _version(name) else ()
    return (*FLAGS, *fused, *shlex.split(os.environ.get("ASSAY_CXXFLAGS", "")))


@cache
def _key(name: str, flags: tuple[str, ...]) -> str:
    """Of everything that the library depends on: sources, flags, compiler, processor."""
    sources = [file.read_text(encoding="utf-8") for file in sorted(SOURCES[0].parent.glob("*.[ch]*"))]
    parts = [*sources, *flags, *_LIBRARY, name, _version(name), platform.machine(), _processor()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


@cache
def _version(name: str) -> str:
    return subprocess.run([name, "--version"], capture_output=True, text=True, check=False, timeout=_SECONDS).stdout


def _processor() -> str:
    """Instruction sets of the first core, as Linux names them; elsewhere what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    kept = ("flags", "Features", "model name")
    found = [next((line for line in lines if line.startswith(k)), "") for k in kept]
    return "\n".join(found)


def _compile(name: str, flags: tuple[str, ...], path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        command = [name, *flags, *_LIBRARY, *map(str, SOURCES), "-o", str(made)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"{name} did not compile {_library_name()}: {error}") from error
        if done.returncode:
            said = done.stderr.strip().splitlines()[:3]
            raise BuildError(f"{name} ended with {done.returncode} on {_library_name()}: {' | '.join(said)}")
        with made.open("r+b") as file:
            content = file.read()
            file.write(hashlib.sha256(content).digest())  # behind the end, where loaders do not look
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)


def _library_name() -> str:
    return ", ".join(source.name for source in SOURCES)

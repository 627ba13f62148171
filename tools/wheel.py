"""Build the source archive and the wheel, check what they hold, and run the wheel with each Python of this machine.

`make wheel` calls it. The archives are built from a clean copy of what git tracks, the wheel from the source archive. Each Python
gets an environment without and with the extra `train`, in which the commands run from an empty folder: what they need must be in
the wheel. A Python that is not here is named and left out; one that fails makes the exit code 1.

    python tools/wheel.py                                     # build, check, run
    python tools/wheel.py --contents                          # build and check only
    python tools/wheel.py --wheel dist/assay_rl-0.1.0-py3-none-any.whl --python python3.14   # run one that was built before
"""

import argparse
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("", "train")
PACKAGES = ("src/assay/", "src/assay_control/", "src/assay_tasks/")
SCRIPTS = {"console_scripts": {"assay": "assay.cli:main"}, "assay.tasks": {"assay": "assay_tasks.catalog"}}
"""The entry points of the wheel."""
QUICKSTART = (
    "train quickstart --model.run.stages.0.steps 60 --model.run.stages.0.gate 0 --stages.0.steps 3 "
    "--evaluation.every 0 --evaluation.final-per-level 4 --folder run --plain --no-report"
)
"""The quickstart, small: a base of 60 steps in place of 600, and 3 steps of reinforcement learning."""


class WheelError(Exception):
    """An archive that does not hold what it must, or a command that did not do what it must."""


@dataclass(frozen=True)
class Check:
    """A command of the installed wheel, and a pattern that its output must have."""

    words: str
    expected: str
    stdin: str = ""


CHECKS = (
    Check("--version", r"^assay {version}\b"),
    Check("tasks list", r"^ *sort\b"),
    Check("control worlds", r"^ *pendulum\b"),
    Check("tasks sample sort --level 4 -n 2 --seed 0", r'"id": "sort/sort/4/train/1"'),
    Check("verify run math", r'"value": 1\.0', '{"gold": "4", "answer": "so \\\\boxed{4}"}\n'),
)
TRAIN_CHECKS = (Check(QUICKSTART, r"^done: 3 steps in run"),)

# ------------------------------------------------------------------------------------------------------------- archives


def tracked_files(root: Path) -> list[str]:
    """The files that git tracks, in a clean tree only."""
    changed = run(["git", "status", "--porcelain"], root)
    if changed.strip():
        raise WheelError(f"the tree is not clean; commit or remove these first:\n{changed}")
    return [name for name in run(["git", "ls-files", "-z"], root).split("\0") if name]


def build(root: Path, files: Sequence[str], out: Path) -> tuple[Path, Path]:
    """The source archive and the wheel of a copy of ``files``, written to ``out``."""
    with tempfile.TemporaryDirectory(prefix="assay-wheel-") as name:
        copy, tools = Path(name) / "tree", Path(name) / "tools"
        for file in files:
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, copy / file)
        python = environment(sys.executable, tools)
        pip_install(python, ["build"])
        run([python, "-m", "build", "--outdir", str(out), str(copy)], Path(name))
    version = version_of(root)
    return out / f"assay_rl-{version}.tar.gz", out / f"assay_rl-{version}-py3-none-any.whl"


def version_of(root: Path) -> str:
    """The version in the package."""
    text = (root / "src" / "assay" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if found is None:
        raise WheelError("src/assay/__init__.py has no line __version__ = ...")
    return found.group(1)


def check_wheel(wheel: Path, files: Sequence[str], version: str) -> None:
    """The packages file by file, the entry points and the licence, and nothing else."""
    about = f"assay_rl-{version}.dist-info"
    wanted = {name.removeprefix("src/") for name in files if name.startswith(PACKAGES)}
    wanted |= {f"{about}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")}
    with zipfile.ZipFile(wheel) as archive:
        compare(wheel.name, set(archive.namelist()), wanted)
        parser = configparser.ConfigParser()
        parser.read_string(archive.read(f"{about}/entry_points.txt").decode())
    if (found := {section: dict(parser[section]) for section in parser.sections()}) != SCRIPTS:
        raise WheelError(f"{wheel.name} has the entry points {found}, not {SCRIPTS}")
    for kind in ("assay/py.typed", "assay_control/py.typed", "assay_tasks/py.typed", "assay/runtime/compiled/cpp/*.cpp"):
        if not any(Path(name).match(kind) for name in wanted):
            raise WheelError(f"{wheel.name} holds no {kind}")


def check_source(archive: Path, files: Sequence[str]) -> None:
    """All that git tracks, and the metadata that the build adds."""
    with tarfile.open(archive) as packed:
        found = {name.partition("/")[2] for name in packed.getnames()}
    compare(archive.name, found, {*files, "PKG-INFO"})


def compare(name: str, found: set[str], wanted: set[str]) -> None:
    """Raises where an archive lacks a file or has one too many."""
    if missing := sorted(wanted - found):
        raise WheelError(f"{name} lacks {', '.join(missing[:10])} ({len(missing)} files)")
    if surplus := sorted(found - wanted):
        raise WheelError(f"{name} also holds {', '.join(surplus[:10])} ({len(surplus)} files)")


# ---------------------------------------------------------------------------------------------------------- environments


def find_python(version: str, folders: Sequence[Path] = (Path.home() / ".pyenv" / "versions",)) -> str | None:
    """An interpreter of the version that starts: on the path, or one of pyenv's."""
    named = [shutil.which(f"python{version}")]
    named += [str(p) for folder in folders for p in sorted(folder.glob(f"{version}.*/bin/python"))]
    for python in named:
        if python and release_of(python).startswith(f"{version}."):
            return python
    return None


def release_of(python: str) -> str:
    """The full version of an interpreter; empty where it does not start, as a shim of pyenv may."""
    code = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def environment(python: str, folder: Path) -> str:
    """The interpreter of a new environment."""
    run([python, "-m", "venv", str(folder)], folder.parent)
    return str(folder / "bin" / "python")


def pip_install(python: str, what: Sequence[str]) -> None:
    """Installs with the exact versions of constraints.txt."""
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "-c", str(ROOT / "constraints.txt"), *what], Path(python).parents[1])


def run_wheel(wheel: Path, python: str, extra: str, version: str) -> str:
    """Installs the wheel in an environment of its own and runs its commands; what was run, in a line."""
    checks = [*CHECKS, *(TRAIN_CHECKS if extra else ())]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="assay-wheel-") as name:
        folder = Path(name)
        there = environment(python, folder / "env")
        pip_install(there, [f"{wheel.resolve()}[{extra}]" if extra else str(wheel.resolve())])
        (folder / "empty").mkdir()
        variables = {"ASSAY_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        for check in checks:
            said = run([str(folder / "env" / "bin" / "assay"), *check.words.split()], folder / "empty", check.stdin, variables)
            expected = check.expected.replace("{version}", re.escape(version))
            if not re.search(expected, said, re.MULTILINE):
                raise WheelError(f"assay {check.words}: no {expected} in\n{said[-2000:]}")
        if extra:
            check_run(folder)
        release, seconds = release_of(there), time.monotonic() - began
        return f"Python {release}{f' with {extra}' if extra else ''}: {len(checks)} commands, {seconds:.0f} s"


def check_run(folder: Path) -> None:
    """The run ended, and the C++ library was compiled for it."""
    done = json.loads((folder / "empty" / "run" / "done.json").read_text(encoding="utf-8"))
    if done["step"] != 3 or not list((folder / "cache" / "kernels").glob("*.so")):
        raise WheelError(f"the run ended at {done}; compiled: {sorted(p.name for p in folder.glob('cache/kernels/*'))}")


def run(command: Sequence[str], cwd: Path, stdin: str = "", variables: Mapping[str, str] | None = None) -> str:
    """What a command prints; it sees nothing of the checkout."""
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environ = {**own, **(variables or {})}
    try:
        done = subprocess.run(command, cwd=cwd, env=environ, input=stdin, capture_output=True, text=True, check=False)
    except OSError as error:
        raise WheelError(f"{command[0]} does not start: {error.strerror}") from error
    if done.returncode:
        raise WheelError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


# -------------------------------------------------------------------------------------------------------------- command


def main(words: Sequence[str]) -> int:
    """Build, check and run; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the archives go")
    parser.add_argument("--wheel", type=Path, help="a wheel that was built before; nothing is built")
    parser.add_argument("--python", action="append", help="an interpreter; several may be given (default: all of this machine)")
    parser.add_argument("--extra", action="append", help="an extra, '' for none; several may be given (default: '' and train)")
    parser.add_argument("--contents", action="store_true", help="build and check the archives, and run nothing")
    options = parser.parse_args(words)
    try:
        wheel = options.wheel or build_wheel(options.out)
    except WheelError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 1
    return 0 if options.contents else run_all(wheel, options.python, options.extra or list(EXTRAS))


def build_wheel(out: Path) -> Path:
    """A wheel that was built and whose contents were checked."""
    files, version = tracked_files(ROOT), version_of(ROOT)
    source, wheel = build(ROOT, files, out)
    check_source(source, files)
    check_wheel(wheel, files, version)
    print(
        f"{source.name}: {source.stat().st_size / 1e6:.1f} MB; {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, as they must be"
    )
    return wheel


def run_all(wheel: Path, pythons: Sequence[str] | None, extras: Sequence[str]) -> int:
    """Runs the wheel with each interpreter and each extra; 1 where one failed."""
    named = (
        {version: find_python(version) for version in VERSIONS} if pythons is None else dict(zip(pythons, pythons, strict=True))
    )
    version, failed = wheel.name.split("-")[1], 0
    for label, python in named.items():
        if python is None:
            print(f"Python {label}: skipped, since there is no python{label} on this machine")
            continue
        for extra in extras:
            try:
                print(run_wheel(wheel, python, extra, version), flush=True)
            except WheelError as error:
                failed += 1
                print(f"Python {label}{f' with {extra}' if extra else ''}: FAILED: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

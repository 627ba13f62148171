"""An ordinary user for tests that root runs: a Python that it can run, and a copy of the sources that it can read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import assay

NOBODY = 65534


def python_for(user: int) -> str | None:
    """An interpreter that the user can run and that is new enough."""
    return next((p for p in (sys.executable, "/usr/bin/python3") if _runs(p, user)), None)


def public_tree(folder: Path) -> Path:
    """The package and the table of attacks, where every user can read them."""
    tree = folder / "tree"
    ignore = shutil.ignore_patterns("__pycache__")
    if not tree.exists():
        shutil.copytree(Path(assay.__file__).parent, tree / "src" / "assay", ignore=ignore)
        shutil.copytree(Path(__file__).parent, tree / "tests" / "attacks", ignore=ignore)
        for path in (tree, *tree.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    above = tree.parent
    while above.stat().st_uid != 0 or above.stat().st_mode & 0o005 != 0o005:
        above.chmod(above.stat().st_mode | 0o055)
        above = above.parent
    return tree


def _runs(python: str, user: int) -> bool:
    try:
        done = subprocess.run(
            [python, "-I", "-c", "import sys, tomllib; open(tomllib.__file__)"],
            user=user,
            group=user,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0

"""Writes docs/evidence/sandbox.md: every attack against every level, as root and as an ordinary user, and how fast each is.

python tests/attacks/attack_page.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from attack_table import LEVELS, OTHERS, WASI, attacks
from attack_users import NOBODY, public_tree, python_for

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "sandbox.md"

HEAD = """# The sandbox under attack

Every attack of `tests/attacks` against every level, on one machine, and how many trivial programs a level runs per second.
*held*: the program got nothing, changed nothing on the host, harmed no other run, left nothing behind, and the next run was
clean.

    python tests/attacks/attack_page.py        # or: make evidence

"""


def column(level: str, user: int | None, folder: Path) -> dict[str, str] | None:
    """Family and name of each attack to how it ended; None where this machine cannot try."""
    python: str | None = sys.executable
    tree = ROOT
    if user is not None:
        python, tree = python_for(user), public_tree(folder)
    if python is None:
        return None
    more = [] if user is None else ["--user", str(user), "--python", python]
    done = subprocess.run(
        [python, "-B", str(tree / "tests" / "attacks" / "attack_table.py"), "--level", level, *more],
        env={"PYTHONPATH": str(tree / "src")},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode == 3:
        return None
    if not rows or done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return {f"{r['family']}: {r['name']}": "**THROUGH**" if r["ways"] else "held" for r in rows}


def speed() -> dict[str, Any]:
    """What the benchmark says."""
    command = [sys.executable, str(ROOT / "benchmarks" / "sandbox.py"), "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def page(columns: dict[str, dict[str, str]], rates: dict[str, Any]) -> str:
    """The text of the page."""
    names = "; ".join(columns)
    tried = sum(len(c) for c in columns.values())
    through = sum(v != "held" for c in columns.values() for v in c.values())
    out = [HEAD + f"{tried} attacks tried ({names}), **{through} through**.\n"]
    out.append("## Speed\n\n| | programs per second, 2 workers | against `python -c` |\n|---|---|---|\n")
    for name in ("python -c", *LEVELS, WASI, *OTHERS):
        if name in rates:
            out[-1] += f"| `{name}` | {rates[name]['per_second']} | {rates[name]['over_python']} |\n"
    out[-1] += f"\n`benchmarks/sandbox.py`, in turns on {rates['cores']} cores with a load of {rates['load']}.\n"
    for family in dict.fromkeys(a.family for a in attacks()):
        rows = [a for a in attacks() if a.family == family]
        out.append(f"## {family.replace('_', ' ')}\n\n| attack | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}\n")
        for a in rows:
            cells = [c.get(f"{family}: {a.name}", "–") for c in columns.values()]
            out[-1] += f"| {a.name} | {' | '.join(cells)} |\n"
    return "\n".join(out)


def main() -> int:
    who = {"root": None, "ordinary user": NOBODY} if os.getuid() == 0 else {"ordinary user": None}
    columns: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for level in (*LEVELS, WASI, *OTHERS):
            for name, user in who.items():
                if level == WASI and user is not None:
                    continue  # the guest has no user, and another's worker would compile Python anew
                found = column(level, user, Path(folder))
                if found is not None:
                    columns[f"{level}, {name}"] = found
    PAGE.write_text(page(columns, speed()), encoding="utf-8")
    return 1 if any(v != "held" for n, c in columns.items() if n.startswith((*LEVELS, WASI)) for v in c.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Other libraries' own functions give what `evaluate` gives, or differ as it is known that they do."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from peer_page import expected, record

from assay.objective.peers import PEERS

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "docs" / "evidence"

pytestmark = pytest.mark.evidence


@cache
def result(peer: str) -> dict[str, Any]:
    """What a process of its own found."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "run_peer.py"), peer]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("peer", PEERS)
def test_peer(peer: str) -> None:
    found = result(peer)
    if "absent" in found:
        pytest.skip(found["absent"])
    assert found["found"]
    wrong = [f for f in found["found"] if not expected(f)]
    assert wrong == []


def test_the_page_is_written() -> None:
    """Every comparison of this run has a row as it was expected, and libraries that are absent keep the rows of theirs."""
    before = json.loads((FOLDER / "conformance.json").read_text(encoding="utf-8"))
    present = {peer: r for peer in PEERS if "absent" not in (r := result(peer))}
    if not present:
        pytest.skip("no library is installed, and $ASSAY_PEERS has none")
    record(present, FOLDER)
    written = json.loads((FOLDER / "conformance.json").read_text(encoding="utf-8"))
    assert written == {**before, **present}
    rows = (FOLDER / "conformance.md").read_text(encoding="utf-8")
    assert rows.count(" agrees |\n") + rows.count(" differs: ") == sum(len(r["found"]) for r in written.values())
    assert "**unexpected**" not in rows

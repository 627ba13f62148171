"""Exported packages in the library ``verifiers`` itself: installed, asked, and judged as assay judges.

The scratch environment is made here, of what pip finds now: a few minutes, and an index that has ``verifiers``. One that
``ASSAY_VERIFIERS`` names is used, or made there, and kept.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from test_export_package import FAMILY

from assay.core.task import Task
from assay.tasks.exchange.tasksets import source_of
from assay.verify.rollouts import rollout_of

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.evidence


@dataclass(frozen=True)
class Scratch:
    """An environment of its own.

    Attributes:
        home: folder for everything that runs there.
        bin: its programs.
        versions: what pip installed, by name.
    """

    home: Path
    bin: Path
    versions: dict[str, str]

    def run(self, command: str, folder: Path) -> str:
        """What a shell command prints; fails with all that it said."""
        inside = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.home), "OMP_NUM_THREADS": "1"}
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")} | inside
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    home = tmp_path_factory.mktemp("verifiers")
    place = Path(os.environ.get("ASSAY_VERIFIERS") or home / "venv")
    if not place.exists():
        venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    done = subprocess.run([*pip, "verifiers", "uv", "hatchling", *needs], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install verifiers here: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
    author = home / "count"
    (author / "count_tasks").mkdir(parents=True)
    (author / "count_tasks" / "__init__.py").write_text("")
    (author / "count_tasks" / "families.py").write_text(FAMILY)
    (author / "count_tasks" / "catalog.py").write_text("FAMILIES = {'count-ones': 'count_tasks.families:CountOnes'}\n")
    (author / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "count-tasks"\nversion = "1.2"\ndependencies = ["assay-rl"]\nlicense = "MIT"\n'
        '[project.entry-points."assay.tasks"]\ncount = "count_tasks.catalog"\n'
    )
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(ROOT), str(author)], check=True)
    listed = subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, check=True).stdout
    return Scratch(home, python.parent, {p["name"]: p["version"] for p in json.loads(listed)})


@pytest.fixture
def server() -> Iterator[tuple[str, list[Callable[[list[dict[str, str]]], str]]]]:
    """A model server that says what its policy says of a conversation."""
    policy: list[Callable[[list[dict[str, str]]], str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = policy[0](asked["messages"])
            base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": asked["model"]}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            says = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            chunks = [
                {"choices": [says]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": usage},
            ]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for chunk in chunks:
                self.wfile.write(f"data: {json.dumps({**base, **chunk})}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None: ...

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}/v1", policy
    made.shutdown()


def commands(readme: Path) -> list[str]:
    """The commands that a page shows."""
    text = readme.read_text(encoding="utf-8").replace(" \\\n", " ")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    shell = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [*re.findall(r"^    (\S.*)$", shell, re.MULTILINE), *(f"python -c {shlex.quote(block)}" for block in blocks)]


def right(task: Task, heard: list[dict[str, str]]) -> str:
    """What the oracle says at this point of a conversation."""
    if "store" not in task.world:
        return str(task.private["solution"])
    answers = [m["content"] for m in heard if m["role"] == "user"]
    value = str(task.private["solution"])[1:] if len(answers) == 1 else answers[-1].strip("=>")
    return value if value.isdigit() else f"?{value}"


@pytest.mark.parametrize(
    ("family", "package"),
    [
        ("count-ones", "assay-count-ones"),  # of an author's package
        ("mine.py:CountOnes", "assay-countones"),  # a file, copied
        ("arithmetic", "assay-arithmetic"),
        ("keyvalue", "assay-keyvalue"),  # several turns
    ],
)
def test_the_commands_of_an_exports_readme_run_and_judge_as_assay_does(
    family: str, package: str, scratch: Scratch, server: Any, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(FAMILY)
    scratch.run(f"assay tasks export {family} out", tmp_path)
    folder = tmp_path / "out"
    install, validate, ask, python, *scoring = commands(folder / "README.md")
    scratch.run(install, folder)
    met = scratch.run("python -m pip check; python -m pip show " + package, folder)
    more = {"count-ones": "count-tasks, ", "mine.py:CountOnes": "numpy, "}.get(family, "")
    needs = f"assay-rl, {more}verifiers"
    assert f"Requires: {needs}" in met

    outcomes = json.loads(re.search(r"^\{.*^\}", scratch.run(f"{validate} --no-rich", folder), re.M | re.S).group())  # type: ignore[union-attr]
    assert outcomes["valid_rate"] == 1.0 and outcomes["checks"]["noop"]["valid"] == 20, outcomes
    assert len(set(scratch.run(python, folder).splitlines())) >= 3
    assert all(re.search(r" 0\.0$", scratch.run(script, folder)) for script in scoring), "a wrong answer scores 0"

    own = source_of(
        str(tmp_path / family) if ".py:" in family else family if family != "count-ones" else f"{tmp_path}/mine.py:CountOnes"
    )
    judge = own.verifier()
    url, policy = server
    prompts: dict[str, Task] = {}
    for arm, levels in own.arms().items():
        for level in levels:
            for index in range(60):
                task = own.task(arm, level, "test", index)
                prompts.setdefault(task.public_view().messages[-1].content, task)

    def play(heard: list[dict[str, str]]) -> str:
        asked = next(m["content"] for m in heard if m["role"] == "user")
        task = prompts[asked]
        return right(task, heard) if len(asked) % 2 == 0 or task.index % 2 else "0"

    policy.append(play)
    words = [url if w.startswith("http://localhost") else w for w in shlex.split(ask)]
    scratch.run(shlex.join([*words, "--no-rich"]), folder)
    (traces,) = folder.glob("outputs/*/traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text(encoding="utf-8").splitlines()]
    assert len(episodes) == 20 and all(e["ok"] for e in episodes)
    rewards = []
    for episode in episodes:
        (trace,) = episode["traces"]
        data = trace["task"]["data"]
        task = own.task(data["arm"], data["level"], data["split"], data["index"])
        said = [n["message"]["content"] for n in trace["nodes"] if n.get("sampled")]
        rewards.append(trace["rewards"]["correct"]["score"])
        assert rewards[-1] == judge(task, rollout_of(task, *said)).primary, data
    assert {0.0, 1.0} == set(rewards)  # right and wrong answers both
    print(f"{package}: {len(rewards)} verdicts equal, verifiers {scratch.versions['verifiers']}, Python {sys.version.split()[0]}")

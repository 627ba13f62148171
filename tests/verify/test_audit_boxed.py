"""Foreign verifiers inside the sandbox: what they do there is found out and touches nothing, and honest ones pass as outside."""

import json
import os
import sys
import tempfile
from dataclasses import replace
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

import planted
import pytest

from assay.audit import AuditSettings, audit, case_of, resolve, sandboxed_verifier
from assay.audit.judge_probes import audit_context
from assay.audit.request_handler import AuditRequestHandler
from assay.core.errors import ConfigError, SandboxError, UnknownNameError
from assay.core.score import Fault
from assay.core.wire import task_to_wire
from assay.sandbox import Result, Sandbox, Status
from assay.verify import ExactMatch, task_and_rollout

FILE = Path(planted.__file__)
CASES = [case_of({"gold": gold, "prompt": f"What is {int(gold) - 1} + 1?"}, i) for i, gold in enumerate(("4", "17", "42"))]
ONCE = AuditSettings(deadline=20.0, hostile_items=0, skip=("determinism", "order", "threads", "latency"))


pytestmark = pytest.mark.usefixtures("contained")


@pytest.fixture
def public():
    """A folder that other users may read: where root runs the tests, the sandbox's user is another."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def subject(name: str):
    return resolve(f"{FILE}:{name}")


@pytest.mark.slow
def test_an_honest_reward_passes_every_check() -> None:
    found = audit(subject("honest_trl"), CASES, settings=AuditSettings(deadline=20.0, hostile_items=1, items=2))
    assert found.passed, [(c.name, c.says) for c in found.checks]
    assert found.isolation.startswith(("strong", "landlock"))
    assert [line.name for line in found.check("determinism").lines][2:] == ["fresh interpreter 1", "fresh interpreter 2"]


@pytest.mark.slow
def test_what_it_does_is_found_and_stays_inside(public, monkeypatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "secret")
    (public / "mine.py").write_text(
        "import os, socket, subprocess, sys, time\n"
        f"LOG = {str(public / 'log')!r}\n"
        "def reward(prompt, completion, row):\n"
        "    print('judging', completion[:9])\n"
        "    sys.stdout.flush()\n"
        "    if os.environ.get('MY_TOKEN'): return 1.0\n"
        "    gold = row['answer']\n"
        "    if completion == ' ': os._exit(3)\n"
        "    if completion == '': sys.exit(3)\n"
        "    if completion == '0': time.sleep(60)\n"
        "    for act in (lambda: open(LOG, 'a'), lambda: socket.create_connection(('127.0.0.1', 9)), lambda: open('own', 'w')):\n"
        "        try:\n"
        "            act()\n"
        "        except OSError:\n"
        "            pass\n"
        "    try:\n"
        "        return float(eval(completion, {}) == int(gold))\n"
        "    except Exception:\n"
        "        return float(completion.strip() == gold)\n"
    )
    settings = replace(ONCE, deadline=1.0, hostile_items=1, skip=(*ONCE.skip, "trick_bombs", "trick_exit", "long", "formats"))
    found = audit(resolve(f"{public / 'mine.py'}:reward"), CASES[:1], settings=settings)
    assert not (public / "log").exists()
    assert {"execution", "crashes", "effects", "faults", "hangs"} <= set(found.failed)
    assert found.check("gold").status == "pass"
    said = " ".join(x.finding for name in ("crashes", "faults", "hangs") for x in found.check(name).examples)
    assert "exit code 3" in said and "SystemExit" in said and "no verdict within 1 s, twice" in said
    assert {line.name: line.rate.failed > 0 for line in found.check("effects").lines} == {
        "writes_files": True,
        "uses_network": True,
        "starts_programs": False,
    }
    assert any("exec" in x.finding for x in found.check("execution").examples)
    assert (
        audit(
            resolve(f"{public / 'mine.py'}:reward"),
            CASES[:1],
            settings=replace(
                settings, inform=("writes_files", "uses_network"), skip=(*settings.skip, "empty", "constants", "payload")
            ),
        )
        .check("effects")
        .status
        == "pass"
    )


@pytest.mark.slow
def test_a_built_in_verifier_is_contained_where_that_is_asked_for() -> None:
    found = audit("exact", settings=replace(ONCE, items=1, backend="auto"))
    assert found.passed and not found.isolation.startswith("none")
    assert audit("exact", settings=replace(ONCE, items=1)).isolation.startswith("none")


def test_what_has_no_name_cannot_be_contained() -> None:
    assert "only what has a name" in audit(planted.honest, CASES[:1], settings=ONCE, against=subject("honest")).isolation
    with pytest.raises(ConfigError, match="honest is an object of this process; name it package"):
        audit(planted.honest, CASES[:1], settings=replace(ONCE, backend="auto"))


def test_a_machine_that_contains_nothing_says_so(monkeypatch) -> None:
    def refused(*_: object) -> Sandbox:
        raise SandboxError("this host contains no program: no level\nmore")

    monkeypatch.setattr("assay.audit.run_audit.sandbox_for", refused)
    assert audit(subject("honest"), CASES[:1], settings=ONCE).isolation == "none: this host contains no program: no level"
    with pytest.raises(SandboxError, match="contains no program"):
        audit(subject("honest"), CASES[:1], settings=replace(ONCE, backend="auto"))


def test_what_cannot_be_made_inside_is_an_error_that_says_why(public, tmp_path) -> None:
    (tmp_path / "elsewhere").touch()
    (public / "needs.py").write_text(
        f"open({str(tmp_path / 'elsewhere')!r}).close()\ndef reward(prompt, completion, row):\n    return 1.0\n"
    )
    with pytest.raises(ConfigError, match=r"needs.py:reward cannot be made inside the sandbox: .*--no-sandbox"):
        audit(resolve(f"{public / 'needs.py'}:reward"), CASES[:1], settings=ONCE)


def test_a_sandbox_that_fails_is_no_verdict(monkeypatch) -> None:
    with sandboxed_verifier.sandbox_for([f"{FILE}:honest"], "auto") as sandbox, audit_context(ONCE, sandbox) as place:
        with sandboxed_verifier.SandboxedVerifier(sandbox, {"name": f"{FILE}:honest"}, place.canary, 5.0) as box:
            assert box.score([task_and_rollout("2", "2")])["case"].primary == 1.0
            assert box._read_output(Result(status=Status.OK, stdout='half a li\n{"value": 1.0}\n')) == {"value": 1.0}
            monkeypatch.setattr(
                box._scope,
                "run",
                lambda code, limits: Result(status=Status.OK if "import" in code else Status.INFRA, detail="the zygote is gone"),
            )
            with pytest.raises(SandboxError, match="failed twice: the zygote is gone"):
                box.score([task_and_rollout("2", "2")])
        monkeypatch.undo()
        with pytest.raises(ConfigError, match="no verdicts in time"):
            monkeypatch.setattr(sandboxed_verifier.SandboxedVerifier, "play_together", lambda *_, **__: None)
            place.again(subject("honest"), [task_and_rollout("2", "2")], 1)


def test_what_python_imports_from_can_be_read(monkeypatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/", "/nowhere", *sys.path])
    reads = sandboxed_verifier.reads_of(["exact", "some.package:name", "here/mine.py:reward"])
    assert str(Path.cwd()) in reads and str(Path.cwd() / "here") in reads
    assert "/" not in reads and "/nowhere" not in reads and len(set(reads)) == len(reads)


# ---- the far side, in this process


@pytest.fixture
def far():
    ours, theirs = os.pipe()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def asked(far: tuple[int, int], name: str, *answers: str, **how: object) -> dict[str, object]:
    items = [
        (task_to_wire(task), rollout.text, rollout.id) for task, rollout in (task_and_rollout("2", a, id=a) for a in answers)
    ]
    desk = AuditRequestHandler({"name": name}, "token", 1, far[1])
    desk.answer(json.dumps({"items": items, **({"how": how} if how else {})}))
    return json.loads(os.read(far[0], 1 << 16).splitlines()[-1])


def test_the_handler(far) -> None:
    said = asked(far, f"{FILE}:honest", "2")
    assert said["value"] == 1.0 and said["seconds"] >= 0.0
    assert "ValueError" in asked(far, f"{FILE}:raises_on_junk", "x")["error"]
    assert asked(far, "exact", "2", "3", thread=True)["values"] == [1.0, 0.0]
    assert asked(far, "math", "2")["verdict"] == "equal"  # has something to prepare
    with pytest.raises(UnknownNameError):
        asked(far, "exct", "2")


def test_the_handler_outlives_who_would_leave(far, monkeypatch) -> None:
    def leaves(prompt: str, completion: str, row: object) -> float:
        raise SystemExit(3)

    monkeypatch.setattr(planted, "honest", leaves)
    monkeypatch.setattr("assay.audit.subject.load", lambda name: leaves)
    assert "SystemExit" in str(asked(far, f"{FILE}:honest", "2")["error"])


def test_verdicts_as_scores() -> None:
    lost = sandboxed_verifier._score({"value": None, "error": "no"})
    assert lost.fault is Fault.VERIFIER and lost.info["error"] == "no"
    assert sandboxed_verifier._score({"value": 0.5, "seconds": 0.1}).primary == 0.5
    assert ExactMatch()(*task_and_rollout("1", "1")).primary == 1.0


@pytest.mark.slow
def test_a_module_found_by_a_finder_alone_is_read_in_there(public, monkeypatch) -> None:
    """As an editable installation has it: on no folder of Python's import path."""
    (public / "src").mkdir()
    (public / "src/found_alone.py").write_text("def reward(prompt, completion, row):\n    return completion == row['answer']\n")
    for path in (public / "src", public / "src/found_alone.py"):
        path.chmod(0o755)

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            return spec_from_file_location(name, public / "src/found_alone.py") if name == "found_alone" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    found = audit(resolve("found_alone:reward"), CASES, settings=ONCE)
    assert found.check("gold").status == "pass" and found.isolation.startswith(("strong", "landlock"))


def test_a_module_without_a_spec_needs_no_folder(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "made_by_hand", ModuleType("made_by_hand"))
    assert sandboxed_verifier.reads_of(["made_by_hand:reward"]) == sandboxed_verifier.reads_of([])

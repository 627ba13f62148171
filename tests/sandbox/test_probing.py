"""The probe says what got through, and the choice of a level follows it."""

import json
import os
import time

import pytest

from assay.core.errors import ConfigError, SandboxError
from assay.sandbox import Result, Sandbox, SandboxProgram, Status, WorkerDied, ZygoteBackend, backend_named, choose, probe
from assay.sandbox.attack_probe import attack
from assay.sandbox.readable_paths import check_readable
from assay.sandbox.values import check, read


class Leaky:
    """A backend that runs nothing and says what it is told to."""

    def __init__(self, name, through=(), stubborn=Status.TIMEOUT, error=None):
        self.layers = {"rlimits": "yes"}
        self.name, self._through, self._stubborn, self._error = name, through, stubborn, error

    def start(self):
        return self

    def run(self, program, limits):
        if self._error:
            raise self._error
        if not program.stdin:
            return Result(status=self._stubborn)
        return Result(status=Status.OK, stdout=json.dumps(self._through))

    def close(self):
        pass


def test_what_gets_through_is_named():
    found = attack(Leaky("leaky", ["network", "memory"], Status.OK))
    assert (found.held, found.why) == (False, "network, memory, ignored signals")
    assert found.attacks["host read"] and not found.attacks["network"]
    assert "NOT HELD: network" in found.line
    assert found.manifest()["attacks"]["memory"] is False


def test_a_probe_that_gets_no_answer_is_not_held():
    dead = attack(Leaky("dead", error=WorkerDied("planted")))
    assert (dead.held, dead.why) == (False, "the probe failed: planted")

    class Failing(Leaky):
        def run(self, program, limits):
            return Result(status=Status.INFRA, detail="no way")

    assert attack(Failing("failing")).why == "the probe failed: infra no way"


def test_a_backend_of_ones_own_must_hold_too():
    chosen, found = choose(Leaky("fine"))
    assert (chosen.name, found.held) == ("fine", True)
    with pytest.raises(SandboxError, match=r"leaky: network"):
        choose(Leaky("leaky", ["network"]))


def test_the_probe_is_asked_once_and_is_quick():
    backend = ZygoteBackend("strong")
    first = probe(backend)
    began = time.process_time()
    assert probe(backend) is first
    assert time.process_time() - began < 0.01


def test_a_level_that_leaks_is_passed_over(monkeypatch):
    real = attack

    def planted(backend):
        return attack(Leaky("strong", ["network"])) if backend.name == "strong" else real(backend)

    monkeypatch.setattr("assay.sandbox.attack_probe.attack", planted)
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    try:
        with Sandbox(workers=1) as sandbox:
            assert sandbox.backend.name == "landlock"
            assert sandbox.run(SandboxProgram(code="print(1)")).isolation == "landlock"
            assert sandbox.isolation.endswith("; passed over: strong: network")
            assert sandbox.manifest()["over"] == "strong: network"
    except SandboxError as error:
        assert "strong: network" in str(error)


def test_paths_that_are_the_reason_are_named(monkeypatch, tmp_path):
    (tmp_path / "good").mkdir()
    (tmp_path / "bad").mkdir()
    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")

    def planted(backend):
        return attack(Leaky(backend.name, ["host read"] if bad in backend.reads else []))

    monkeypatch.setattr("assay.sandbox.attack_probe.attack", planted)
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    with pytest.raises(SandboxError) as caught:
        choose("auto", reads=(good, bad))
    told = f"host read (it holds without the reads {bad}: leave them out, or give less of them)"
    assert f"strong: {told}\n  landlock: {told}\n" in str(caught.value)
    assert choose("strong", reads=(good,))[1].over == ""
    monkeypatch.setattr("assay.sandbox.attack_probe.attack", lambda backend: attack(Leaky(backend.name, ["network"])))
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    with pytest.raises(SandboxError, match=r"strong: network\n"):  # the path is not the reason
        choose("strong", reads=(good,))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("usr", "give absolute paths"),
        ("/", "neither the root"),
        ("/proc/self", "nor the kernel's"),
        ("/sys", "nor the kernel's"),
        ("/dev", "nor the kernel's"),
        ("/nowhere/at/all", "is not on this host"),
        ("{}/link", "nor the kernel's"),
        ("{}/..", "holds {}/tmp, the folder for temporary files"),
    ],
)
def test_paths_that_no_program_may_read(monkeypatch, tmp_path, path, says):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "link").symlink_to("/proc")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for kind in (lambda reads: ZygoteBackend("strong", reads), lambda reads: backend_named("bubblewrap", reads)):
        with pytest.raises(ConfigError) as caught:
            kind(("/usr/share", path.format(tmp_path)))
        assert f"reads: {path.format(tmp_path)!r} " in str(caught.value) and says.format(tmp_path) in str(caught.value)


def test_paths_where_programs_have_their_own_folder(tmp_path):
    for place in (tmp_path, tmp_path / "inside"):
        place.mkdir(exist_ok=True)
        with pytest.raises(ConfigError, match=f"overlaps {tmp_path}/inside"):
            check_readable((str(place),), (f"{tmp_path}/inside",))


@pytest.mark.parametrize("backend", ["strong", "bubblewrap"])
@pytest.mark.parametrize("path", ["/etc", "/etc/passwd", "folder"])
def test_a_path_may_be_where_the_private_root_has_files_of_its_own(backend, path, tmp_path):
    held = probe(backend_named(backend))
    if not held.held:
        pytest.skip(f"{backend} does not hold here: {held.why}")
    (tmp_path / "read").write_text("x")
    for place in (tmp_path, *list(tmp_path.parents)[:3]):
        place.chmod(0o755)
    seen = str(tmp_path) if path == "folder" else path
    code = f"import os\nprint(os.path.exists('/etc/passwd'), sorted(os.listdir({seen!r}))[:1] if os.path.isdir({seen!r}) else '')"
    with Sandbox(backend, reads=[seen], workers=1) as sandbox:
        result = sandbox.run(code)
    first = sorted(os.listdir(seen))[:1] if os.path.isdir(seen) else ""
    assert (result.status, result.stdout) == (Status.OK, f"{backend == 'strong' or path != 'folder'} {first}\n"), result


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", (False, None, "")),
        (b'{"value": [1, null]}', (True, [1, None], "")),
        (b'{"note": "memory"}', (False, None, "memory")),
        (b'{"note": "ok"}', (False, None, "")),
        (b'{"note": ["memory"]}', (False, None, "")),
        (b'{"status": "ok"}', (False, None, "")),
        (b'{"value": 1, "note": "x"}', (False, None, "")),
        (b'{"value": 1}{"value": 2}', (False, None, "")),
        (b"[1]", (False, None, "")),
        (b"\xff\xfe", (False, None, "")),
        (b'{"value": ' + b"[" * 100000 + b"]" * 100000 + b"}", (False, None, "")),
        (b'{"value": ' + b"[" * 70 + b"]" * 70 + b"}", (False, None, "")),
        (b'{"value": ' + b"9" * 5000 + b"}", (False, None, "")),
    ],
)
def test_values_are_one_message_of_plain_types(data, expected):
    assert read(data) == expected


def test_depth_counts_objects_and_lists():
    check({"a": [{"b": "deep"}]}, depth=3)
    with pytest.raises(ValueError, match="deeper"):
        check({"a": [{"b": "deep"}]}, depth=2)

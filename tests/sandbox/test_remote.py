"""Programs run elsewhere: a real service of ours asked over HTTP, services of others planted, and every failure no verdict."""

import asyncio
import base64
import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from assay.core.errors import ConfigError, DataError, SandboxError
from assay.sandbox import (
    CompiledProgram,
    Limits,
    Refused,
    Remote,
    Result,
    Sandbox,
    SandboxProgram,
    Status,
    backend_named,
    language,
)
from assay.sandbox.attack_probe import IsolationProbe, attack
from assay.sandbox.service.request_handler import Full, RunLimits, RunRequestHandler
from assay.sandbox.service.server import application

FOREIGN = ("cpu", "file_size", "disk", "entries", "processes", "files")
MOST = Limits(cpu=20.0, wall=20.0)


@contextmanager
def served(desk, token="secret"):
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(application(desk, token), port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def url(contained):
    with Sandbox(workers=2) as sandbox, served(RunRequestHandler(sandbox, RunLimits(most=MOST, megabytes=1.0))) as address:
        yield address


@pytest.fixture(scope="module")
def remote(url):
    return Remote(url=url, token="secret", patience=5.0)


def post(url, body, kind="application/json", token="secret"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(f"{url}/run_code", data, {"Content-Type": kind, "Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


# ---- our own service


def test_a_program_is_run_there_as_here(remote):
    worker = remote.start()
    assert worker.layers["service"].startswith("assay, at ") and "seccomp" in worker.layers
    code = "import sys\nprint(sys.stdin.buffer.read(), sys.argv[1:], open('d/f').read())\nsys.stderr.write('é')\nsys.exit(3)"
    result = worker.run(SandboxProgram(code=code, stdin=b"\xff", args=("1",), files={"d/f": b"file"}), Limits())
    assert (result.status, result.exit_code, result.stdout) == (Status.ERROR, 3, "b'\\xff' ['1'] file\n")
    assert (result.stderr, result.isolation) == ("é", remote.name) and result.seconds > 0 and result.cpu_seconds > 0
    value = worker.run(SandboxProgram(code="def f(x):\n    return {'a': [x]}", entry="f", arguments=(1,)), Limits())
    assert (value.status, value.value) == (Status.OK, {"a": [1]})
    assert worker.run(SandboxProgram(code="while True: pass"), Limits(cpu=0.2)).status is Status.CPU
    killed = worker.run(SandboxProgram(code="import os\nos.abort()"), Limits())
    assert (killed.status, killed.exit_code, killed.signal) == (Status.ERROR, None, 6)
    assert worker.run(SandboxProgram(code="import os\nos.fork()"), Limits()).status is Status.PROCESSES
    with pytest.raises(ConfigError, match=r"wall=60\.0: this service gives at most 20\.0"):
        worker.run(SandboxProgram(code="1"), Limits(wall=60.0))
    with pytest.raises(DataError, match="plain values"):
        worker.run(SandboxProgram(code="1", entry="f", arguments=({1},)), Limits())
    worker.close()


def test_it_withstands_the_probe(remote):
    found = attack(remote)
    assert found.held and found.name == remote.name, found


def test_a_sandbox_elsewhere_is_like_any(url, monkeypatch):
    monkeypatch.setenv("ASSAY_SANDBOX_TOKEN", "secret")
    with Sandbox(url, workers=2) as sandbox:
        found = sandbox.map({i: f"print({i})" for i in range(6)})
        assert [found[i].stdout for i in range(6)] == [f"{i}\n" for i in range(6)]
    with pytest.raises(ConfigError, match="lies on this host"):
        backend_named(url, ("/opt",))


def test_callers_of_the_protocol(url):
    status, said = post(url, {"code": "print(int(input()) + 1)", "language": "python", "stdin": "41", "run_timeout": 5})
    assert (status, said["status"], said["compile_result"]) == (200, "Success", None)
    run = said["run_result"]
    assert (run["status"], run["return_code"], run["stdout"], run["stderr"]) == ("Finished", 0, "42\n", "")
    files = {"x.txt": base64.b64encode(b"data").decode()}
    assert post(url, {"code": "print(open('x.txt').read())", "files": files})[1]["run_result"]["stdout"] == "data\n"
    failed = post(url, {"code": "raise SystemExit(3)", "memory_limit_MB": 256})[1]
    assert (failed["status"], failed["run_result"]["status"], failed["run_result"]["return_code"]) == ("Failed", "Finished", 3)
    slow = post(url, {"code": "while True: pass", "run_timeout": 0.3})[1]
    assert (slow["status"], slow["run_result"]["status"], slow["run_result"]["return_code"]) == (
        "Failed",
        "TimeLimitExceeded",
        -9,
    )


def test_files_come_back(url, remote):
    code = "import os\nos.mkdir('d')\nopen('d/a', 'wb').write(b'\\xff')\nopen('b', 'w').write('no')\nos.symlink('b', 'link')"
    said = post(url, {"code": code, "fetch_files": ["d", "link", "absent"]})[1]
    assert (said["status"], said["files"]) == ("Success", {"d/a": base64.b64encode(b"\xff").decode()})
    with Sandbox(remote, workers=1) as sandbox:
        assert sandbox.run(SandboxProgram(code=code, keep=("d/a", "b"))).files == {"d/a": b"\xff", "b": b"no"}


def spoken(*names):
    known = [language(name) for name in names]
    return [one for one in known if not one.missing()]


@pytest.fixture(scope="module")
def polyglot(contained):
    """A service that runs other languages too: whichever of these are installed."""
    try:
        made = Sandbox(workers=1, languages=spoken("c", "perl"))
    except ConfigError as error:
        pytest.skip(str(error))
    with made as sandbox, served(RunRequestHandler(sandbox, RunLimits(most=MOST))) as address:
        yield address


def told(said, part):
    found = said[part]
    return None if found is None else (found["status"], found["return_code"], found["stdout"])


@pytest.mark.skipif(not spoken("c"), reason="there is no C compiler")
def test_other_languages_are_compiled_and_run(polyglot):
    files = {"h.h": base64.b64encode(b'#define X 41\n#define WRITE fputs("o", fopen("o", "w"))\n').decode()}
    code = '#include <stdio.h>\n#include "h.h"\nint main(void) { int x; scanf("%d", &x); printf("%d", x + X); WRITE; }'
    said = post(polyglot, {"code": code, "language": "C", "stdin": "1", "files": files, "fetch_files": ["o"]})[1]
    assert (said["status"], said["files"]) == ("Success", {"o": base64.b64encode(b"o").decode()})
    assert (told(said, "compile_result"), told(said, "run_result")) == (("Finished", 0, ""), ("Finished", 0, "42"))
    wrong = post(polyglot, {"code": "int main(", "language": "c"})[1]
    assert (wrong["status"], told(wrong, "compile_result"), wrong["run_result"]) == ("Failed", ("Finished", 1, ""), None)
    assert "error" in wrong["compile_result"]["stderr"] and wrong["assay"]["status"] == "compile"
    failed = post(polyglot, {"code": "int main(void) { return 3; }", "language": "c"})[1]
    assert (failed["status"], told(failed, "run_result")) == ("Failed", ("Finished", 3, ""))
    late = post(polyglot, {"code": "int main(void) { return 0; }", "language": "c", "compile_timeout": 0.001})[1]
    assert (late["status"], told(late, "compile_result")) == ("Failed", ("TimeLimitExceeded", -9, ""))
    with urllib.request.urlopen(
        urllib.request.Request(f"{polyglot}/health", headers={"Authorization": "Bearer secret"})
    ) as answer:
        assert "c" in json.load(answer)["languages"]


@pytest.mark.skipif(not spoken("perl"), reason="there is no Perl")
def test_a_language_that_nothing_compiles(polyglot):
    said = post(polyglot, {"code": "print 2 * <STDIN>;", "language": "perl", "stdin": "21"})[1]
    assert (said["status"], said["compile_result"], told(said, "run_result")) == ("Success", None, ("Finished", 0, "42"))
    for own in ({"args": ["x"]}, {"entry": "f"}):
        status, refused = post(polyglot, {"code": "1", "language": "perl", "assay": own})
        assert status == 400 and "are Python's alone" in refused["error"]


def test_a_compiler_that_the_sandbox_fails_is_no_verdict(contained):
    broken = Result(status=Status.INFRA, detail="planted")

    class Failing:
        workers, tag, isolation, probe, languages = (
            1,
            "strong",
            "line",
            IsolationProbe("strong", True, "", {}, {}),
            (language("perl"),),
        )

        async def acompile(self, name, source, *, files, wall):
            return CompiledProgram(language=name, files={}, result=broken)

    said = asyncio.run(RunRequestHandler(Failing()).run({"code": "1", "language": "perl"}))
    assert (said["status"], said["message"], said["compile_result"]) == ("SandboxError", "planted", None)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ([], "send an object with 'code'"),
        ({"code": "1", "lang": "python"}, "unknown field 'lang'"),
        ({"code": "1", "language": "cobol"}, "'language' is 'cobol'; this service runs python; it is started with --languages"),
        ({"code": "1", "language": ["c"]}, "'language' is ['c']"),
        ({"code": "1", "fetch_files": "x"}, "'fetch_files' is 'x'; give a list"),
        ({"code": "1", "fetch_files": [1]}, "'fetch_files' is [1]; give a list"),
        ({"code": "1", "fetch_files": ["/etc/passwd"]}, "below the program's own folder"),
        ({"code": "1", "args": ["x"]}, "'args': programs and compilers of this service have no arguments"),
        ({}, "has no 'code'"),
        ({"language": "python"}, "has no 'code'"),
        ({"code": "1", "run_timeout": 1e9}, "give at most 1000000"),
        ({"code": 1}, "'code' must be text"),
        ({"code": "1", "files": {"a": "%"}}, "file 'a' is no base64"),
        ({"code": "1", "files": {"/a": ""}}, "below the program's own folder"),
        ({"code": "1", "run_timeout": 3600}, "wall=3600.0: this service gives at most 20.0"),
        ({"code": "1", "run_timeout": "soon"}, "the request cannot be read"),
        ({"code": "1", "assay": {"limits": {"wal": 1}}}, "the request cannot be read"),
        (b"{", "the request is not JSON"),
        (b'{"code": "1", "code": "2"}', "the request: the key 'code' stands twice in one object"),
    ],
)
def test_what_cannot_be_read_is_refused(url, request_, says):
    status, said = post(url, request_)
    assert status == 400 and says in said["error"]


def test_a_service_that_gives_less_than_the_probe_needs_is_not_used(url):
    assert url  # something contains programs here
    little = RunLimits(most=Limits(wall=1.0))
    refused = pytest.raises(SandboxError, match=r"the probe failed: .*gives at most 1\.0")
    with Sandbox(workers=1) as sandbox, served(RunRequestHandler(sandbox, little)) as address, refused:
        Sandbox(Remote(url=address, token="secret"))


def test_who_may_ask_and_how_much(url, remote):
    assert post(url, {"code": "1"}, token="wrong")[0] == 401
    assert post(url, {"code": "1"}, kind="text/plain") == (415, {"error": "send application/json"})
    assert post(url, b" " * (2 << 20))[0] == 413
    with pytest.raises(Refused, match="status 401: send the token"):
        Remote(url=url).start()


def test_too_many_are_turned_away_and_come_again():
    class Slow:
        workers, tag, isolation, probe, languages = 1, "strong", "line", IsolationProbe("strong", True, "", {}, {}), ()

        async def arun(self, program, limits):
            await asyncio.sleep(0.5)
            return Result(status=Status.OK, exit_code=0, stdout="done")

    desk = RunRequestHandler(Slow(), RunLimits(waiting=0))

    async def two():
        return await asyncio.gather(desk.run({"code": "1"}), desk.run({"code": "1"}), return_exceptions=True)

    done, turned = asyncio.run(two())
    assert done["run_result"]["stdout"] == "done" and isinstance(turned, Full)
    assert desk.health()["served"] == {"status/ok": 1, "turned_away": 1}
    with served(desk) as address:
        worker = Remote(url=address, token="secret", patience=20.0).start()
        results = []
        threads = [
            threading.Thread(target=lambda: results.append(worker.run(SandboxProgram(code="1"), Limits()))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [r.stdout for r in results] == ["done", "done"] and desk.health()["served"]["turned_away"] > 1


def test_wrong_settings():
    with pytest.raises(ConfigError, match=r"Remote\.url='ftp://x'"):
        Remote(url="ftp://x")
    with pytest.raises(ConfigError, match=r"Remote\.patience=-1"):
        Remote(url="http://x", patience=-1)
    with pytest.raises(ConfigError, match=r"Remote\.own: \['wal'\] are no limits"):
        Remote(url="http://x", own=("wal",))
    with pytest.raises(ConfigError, match="megabytes must be above 0"):
        RunLimits(megabytes=0.0)
    assert Remote(url="http://user@host:1/").name == "remote (host:1)"


# ---- services of others


@contextmanager
def planted(answer, health=404):
    """A service that gives the same answer to each run: a status and a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(health, b"{}")

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.reply(answer[0], answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode())

        def reply(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Remote(url=f"http://127.0.0.1:{server.server_port}", patience=0.2, own=FOREIGN)
    finally:
        server.shutdown()
        server.server_close()


def ran(verdict="Success", **run):
    return {"status": verdict, "message": "", "run_result": {"status": "Finished", "return_code": 0, "stdout": "", **run}}


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (ran(stdout="out", execution_time=0.25), Status.OK, 0),
        (ran("Failed", status="Error", return_code=3), Status.ERROR, 3),
        (ran("Failed", status="Finished", return_code=-11), Status.ERROR, None),
        (ran("Failed", status="TimeLimitExceeded", return_code=None), Status.TIMEOUT, None),
        (ran(stdout="x" * 2000), Status.OUTPUT, None),
        (ran(status="Vanished"), Status.INFRA, None),
        ({"status": "SandboxError", "message": "no container", "run_result": None}, Status.INFRA, None),
        ({"status": "Failed", "message": "compile"}, Status.INFRA, None),
        ({}, Status.INFRA, None),
        ([], Status.INFRA, None),
        (b"<html>", Status.INFRA, None),
        (ran() | {"files": {"kept": "%"}}, Status.INFRA, None),
        (ran() | {"files": ["kept"]}, Status.INFRA, None),
    ],
)
def test_what_another_service_says(said, status, code):
    with planted((200, said)) as remote:
        worker = remote.start()
        assert worker.layers == {"service": "another's, which alone knows what it contains"}
        result = worker.run(SandboxProgram(code="1", stdin="in", keep=("kept",)), Limits(output=1000))
    assert (result.status, result.exit_code, result.isolation) == (status, code, remote.name), result
    assert result.judged or result.detail


def test_only_files_that_were_asked_for_are_taken():
    names = ("kept", "d/a", "d/../../x", "other", "keptother")
    with planted((200, ran() | {"files": dict.fromkeys(names, "eA==")})) as remote:
        worker = remote.start()
        assert worker.run(SandboxProgram(code="1", keep=("kept", "d")), Limits()).files == {"kept": b"x", "d/a": b"x"}
        assert worker.run(SandboxProgram(code="1"), Limits()).files == {}
    with planted((200, ran() | {"files": {"kept": base64.b64encode(bytes(70_000)).decode()}})) as remote:
        result = remote.start().run(SandboxProgram(code="1", keep=("kept",)), Limits(disk=1 << 16))
        assert (result.status, result.files) == (Status.DISK, {})


@pytest.mark.parametrize("code", [400, 401, 500, 503])
def test_a_service_that_refuses_gives_no_verdict(code):
    with planted((code, {"error": "planted"})) as remote:
        result = remote.start().run(SandboxProgram(code="1"), Limits())
    assert result.status is Status.INFRA and f"status {code}: planted" in result.detail


def test_what_another_service_cannot_be_told_is_refused():
    with planted((200, ran())) as remote:
        worker = remote.start()
        for program, says in (
            (SandboxProgram(argv=("ls",)), r"Program\.argv: .* cannot be told of it"),
            (SandboxProgram(code="1", entry="f"), r"Program\.entry"),
            (SandboxProgram(code="1", stdin=b"\xff"), r"Program\.stdin is no UTF-8"),
        ):
            with pytest.raises(ConfigError, match=says):
                worker.run(program, Limits())
        with pytest.raises(ConfigError, match=r"limits cpu, file_size, .* cannot be told of them"):
            Remote(url=remote.url).start().run(SandboxProgram(code="1"), Limits())


def test_a_service_that_is_gone():
    gone = Remote(url="http://127.0.0.1:1", patience=0.0)
    with pytest.raises(Refused, match=r"127\.0\.0\.1:1: .*refused"):
        gone.start()
    with pytest.raises(SandboxError, match=r"assay serve sandbox") as caught:
        Sandbox(gone)
    assert "ASSAY_SANDBOX_TOKEN" in str(caught.value) and "namespaces" not in str(caught.value)
    with planted((200, ran())) as remote:
        worker = remote.start()
    assert worker.run(SandboxProgram(code="1"), Limits()).status is Status.INFRA
    with planted((200, ran()), health=500) as remote, pytest.raises(Refused, match="status 500"):
        remote.start()


def test_a_service_that_does_not_hold_is_used_only_unsafely_and_tagged(capsys):
    with planted((200, ran(stdout='["network"]'))) as remote:
        with pytest.raises(SandboxError, match="network"):
            Sandbox(remote)
        with Sandbox(remote, allow_unsafe=True) as sandbox:
            result = sandbox.run("1")
    assert result.isolation == sandbox.tag == f"{remote.name} (UNSAFE)"
    assert f"UNSAFE. {remote.name} does not hold: network" in capsys.readouterr().err

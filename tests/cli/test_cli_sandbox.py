"""`assay sandbox`: one JSON line per run, and the table of what holds here."""

import json
import subprocess
import sys

import pytest

from assay.sandbox import IsolationProbe, Sandbox
from assay.sandbox.levels import LEVELS

pytestmark = pytest.mark.usefixtures("contained")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import sys\nprint(int(input()) + 1)\nsys.exit(3)")
    return path


def test_run_prints_one_line(assay, file):
    said = assay("sandbox", "run", "--lang", "python", "--backend", "auto", file, "--stdin", "41", "--limits", "wall=20,cpu=9")
    row = json.loads(said.out)
    assert said.code == 0
    assert {k: row[k] for k in ("status", "exit_code", "stdout", "stderr")} == {
        "status": "error",
        "exit_code": 3,
        "stdout": "42\n",
        "stderr": "",
    }
    assert list(row) == ["status", "exit_code", "stdout", "stderr", "seconds", "isolation"]
    assert row["isolation"] in LEVELS and 0 < row["seconds"] < 20


def test_a_byte_order_mark_is_passed_over(assay, tmp_path):
    (tmp_path / "marked.py").write_bytes(b"\xef\xbb\xbfprint(1)\r\n")
    assert json.loads(assay("sandbox", "run", "marked.py").out)["stdout"] == "1\n"


LUA = "print(io.read('n') + 1)\nos.exit(3)"


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("lua", LUA),
        ("pl", "print <STDIN> + 1, qq(\\n); exit 3;"),
        ("js", "console.log(Number(require('fs').readFileSync(0)) + 1); process.exitCode = 3"),
        ("c", '#include <stdio.h>\nint main(void) { int x; scanf("%d", &x); printf("%d\\n", x + 1); return 3; }'),
    ],
)
def test_run_takes_other_languages(assay, tmp_path, lang, code):
    path = tmp_path / "program"
    path.write_text(code)
    said = assay("sandbox", "run", "--lang", lang, path, "--stdin", "41")
    if said.code == 2:
        pytest.skip(said.err)  # its toolchain is missing, or only one process can be contained
    row = json.loads(said.out)
    assert {k: row[k] for k in ("status", "exit_code", "stdout", "stderr")} == {
        "status": "error",
        "exit_code": 3,
        "stdout": "42\n",
        "stderr": "",
    }


def test_what_does_not_compile_has_a_status_of_its_own(assay, tmp_path):
    path = tmp_path / "program.c"
    path.write_text("int main(void) { return x; }")
    said = assay("sandbox", "run", "--lang", "c", path)
    if said.code == 2:
        pytest.skip(said.err)
    row = json.loads(said.out)
    assert list(row) == ["status", "exit_code", "stdout", "stderr", "seconds", "isolation"]
    assert (said.code, row["status"], row["exit_code"]) == (0, "compile", 1) and "undeclared" in row["stderr"]


def test_a_missing_toolchain_names_its_package(assay, file, monkeypatch):
    monkeypatch.setattr("assay.sandbox.toolchain.PATH", "/nowhere")
    said = assay("sandbox", "run", "--lang", "r", file)
    assert (said.code, said.out) == (2, "") and "apt-get install r-base-core" in said.err
    assert "missing: apt-get install r-base-core" in assay("sandbox", "languages").out
    rows = {row["name"]: row for row in assay("sandbox", "languages", "--json").json}
    assert rows["rust"]["missing"] == ["rustc", "gcc"] and rows["rust"]["toolchain"] == {"rustc": None, "gcc": None}


def test_the_languages_are_listed(assay):
    said = assay("sandbox", "languages")
    rows = assay("sandbox", "languages", "--json").json
    assert [row["name"] for row in rows] == sorted(row["name"] for row in rows) and len(rows) == 12
    assert rows[9] == {"name": "python", "names": ["python", "py", "python3"], "toolchain": {}, "missing": [], "note": ""}
    assert said.code == 0 and "the sandbox's own" in said.out and "main is in a class called Main" in said.out


def test_our_own_input_is_passed_on(file):
    done = subprocess.run(
        [sys.executable, "-m", "assay", "sandbox", "run", file, "--stdin", "-"], input=b"1", capture_output=True, check=True
    )
    assert json.loads(done.stdout)["stdout"] == "2\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--lang", "pythn"), "did you mean 'python'"),
        (("--backend", "strnog"), "did you mean 'strong'"),
        (("--backend", "rlimits"), "allow_unsafe=True"),
        (("--limits", "wal=1"), "did you mean 'wall'"),
    ],
)
def test_wrong_arguments(assay, file, arguments, says):
    said = assay("sandbox", "run", file, *arguments)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_a_file_that_is_missing(assay):
    said = assay("sandbox", "run", "missing.py")
    assert said.code == 2 and "cannot read missing.py" in said.err


def test_an_unsafe_run_says_so(assay, file):
    said = assay("sandbox", "run", file, "--backend", "rlimits", "--allow-unsafe", "--stdin", "1")
    assert json.loads(said.out)["isolation"] == "rlimits (UNSAFE)"
    assert "UNSAFE" in said.err


def test_a_failing_sandbox_is_no_verdict(assay, file, monkeypatch):
    from assay.sandbox import Result, Status

    monkeypatch.setattr(Sandbox, "run", lambda *_: Result(status=Status.INFRA, detail="planted"))
    said = assay("sandbox", "run", file)
    assert (said.code, json.loads(said.out)["status"]) == (1, "infra")
    assert "planted" in said.err


def test_the_probe_prints_its_tables(assay):
    said = assay("sandbox", "probe")
    found = assay("sandbox", "probe", "--json").json
    assert [level["isolation"] for level in found["levels"]] == list(LEVELS)
    assert said.code == (0 if found["isolation"] else 1)
    for word in ("layer", "landlock", "seccomp", "attack", "host read", "held"):
        assert word in said.out
    assert said.out.strip().splitlines()[-1].startswith("isolation: ")


def test_the_probe_of_one_backend_alone(assay):
    found = assay("sandbox", "probe", "--backend", "landlock", "--json").json
    assert ([level["isolation"] for level in found["levels"]], found["others"]) == (["landlock"], [])
    said = assay("sandbox", "probe", "--backend", "lanlock")
    assert (said.code, said.out) == (2, "") and "did you mean 'landlock'" in said.err


def test_the_probe_comes_to_webassembly_where_no_level_holds(assay, monkeypatch):
    layers = {"webassembly": "CPython 3.15.0 in WebAssembly, not 3.11; wasmtime 49.0.0"}
    monkeypatch.setattr(
        "assay.sandbox.attack_probe.attack", lambda b: IsolationProbe(b.name, b.name == "wasi", "planted", layers, {})
    )
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    said = assay("sandbox", "probe")
    assert said.code == 0 and "landlock: planted" in said.out
    assert said.out.strip().endswith(
        "isolation: wasi (CPython 3.15.0 in WebAssembly, not 3.11; wasmtime 49.0.0); memory: per process"
    )


def test_the_probe_where_nothing_holds(assay, monkeypatch):
    def planted(backend):
        through = {"network": False, "memory": True} if backend.name == "landlock" else {}
        return IsolationProbe(backend.name, False, "network" if through else "not granted: planted", {}, through)

    monkeypatch.setattr("assay.sandbox.attack_probe.attack", planted)
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    said = assay("sandbox", "probe")
    assert said.code == 1
    assert "THROUGH" in said.out and "strong: not granted: planted" in said.out
    assert said.out.strip().endswith("isolation: none; programs are refused")

"""Every language: what it prints, how it ends, what it cannot reach; compiled once and run many times; one TOML file each."""

import pickle
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from assay.core.errors import ConfigError, SandboxError, ToolchainError, UnknownNameError
from assay.sandbox import (
    CompiledProgram,
    Language,
    Limits,
    Result,
    Sandbox,
    SandboxProgram,
    Status,
    ZygoteBackend,
    language,
    languages,
)

PROGRAMS = tomllib.loads((Path(__file__).parent / "programs.toml").read_text(encoding="utf-8"))
NAMES = [one.name for one in languages()]
LOOSE = Limits(wall=30.0, cpu=20.0)
FAILED = {Status.ERROR, Status.MEMORY, Status.CPU, Status.TIMEOUT}


@pytest.fixture(scope="module")
def opened():
    """A sandbox for one language at the level, kept for the tests of this file."""
    made: dict[tuple[str, str], Sandbox | str] = {}

    def get(name: str, backend: str = "auto") -> Sandbox:
        key = (name, backend)
        if key not in made:
            try:
                made[key] = Sandbox(backend, workers=1, languages=(name,), limits=LOOSE)
            except (SandboxError, ToolchainError) as error:
                made[key] = str(error)
            except ConfigError as error:
                made[key] = f"not at this level: {error}"
        found = made[key]
        if isinstance(found, str):
            pytest.skip(found)
        return found

    yield get
    for one in made.values():
        if isinstance(one, Sandbox):
            one.close()


def test_each_language_has_programs():
    assert set(PROGRAMS) == set(NAMES) and len(NAMES) == 12
    assert all(set(table) == {"sum", "exit", "show", "spin", "hoard", "broken"} for table in PROGRAMS.values())


def prove(sandbox: Sandbox, name: str, secret: Path) -> None:
    """Everything that a language promises, on this machine."""
    programs = PROGRAMS[name]
    built = sandbox.compile(name, programs["sum"])
    assert built.refused is None, built.refused
    ran = sandbox.map({i: built.program(f"{i} 4\n") for i in range(3)})
    assert {i: (r.status, r.stdout.strip()) for i, r in ran.items()} == {i: (Status.OK, str(i + 4)) for i in range(3)}, ran

    ended = sandbox.run(sandbox.compile(name, programs["exit"]).program())
    assert (ended.status, ended.exit_code) == (Status.ERROR, 3), ended

    show = sandbox.compile(name, programs["show"])
    seen = sandbox.run(show.program(f"{secret}\n"))
    assert seen.status in FAILED and secret.read_text() not in seen.stdout + seen.stderr, seen
    public = Path("/usr/lib/os-release")
    if public.exists():  # the program would have shown it
        assert sandbox.run(show.program(f"{public}\n")).stdout.strip() == public.read_text().splitlines()[0]

    spun = sandbox.run(sandbox.compile(name, programs["spin"]).program(), Limits(wall=0.3, cpu=20.0))
    assert spun.status is Status.TIMEOUT, spun
    hoarded = sandbox.run(sandbox.compile(name, programs["hoard"]).program(), replace(LOOSE, cpu=4.0, memory=256 << 20))
    assert hoarded.status in (Status.MEMORY, Status.CPU), hoarded

    broken = sandbox.compile(name, programs["broken"])
    if built.language.compile:
        assert broken.refused is not None and broken.refused.status is Status.COMPILE and broken.refused.stderr
        with pytest.raises(ConfigError, match="did not compile"):
            broken.program()
    else:
        assert broken.refused is None and sandbox.run(broken.program()).status is Status.ERROR


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("a secret of the host")
    for above in (path, tmp_path, tmp_path.parent, tmp_path.parent.parent):
        above.chmod(0o755)
    return path


DEAR = ("go", "java")
"""Languages whose compilers take seconds."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.prove if n in DEAR else ()) for n in NAMES])
def test_a_language_holds_what_it_promises(opened, name, secret):
    prove(opened(name), name, secret)


@pytest.mark.parametrize("name", ["lua", "perl", "javascript"])
def test_one_process_is_enough_at_landlock(opened, name, secret):
    prove(opened(name, "landlock"), name, secret)


@pytest.mark.evidence
@pytest.mark.parametrize("name", ["ocaml", "java"])
def test_one_process_is_enough_for_these_too(opened, name, secret):
    prove(opened(name, "landlock"), name, secret)


@pytest.mark.evidence
@pytest.mark.parametrize("name", NAMES)
def test_every_toolchain_is_here_and_holds(name, secret):
    """In `make evidence` a missing toolchain is a failure, which names its package."""
    with Sandbox(workers=1, languages=(name,), limits=LOOSE) as sandbox:
        prove(sandbox, name, secret)


# ---- what is refused


def test_compilers_of_several_processes_are_refused_at_landlock():
    try:
        Sandbox("landlock", workers=1).close()
    except SandboxError as error:
        pytest.skip(str(error))
    with pytest.raises(ConfigError, match=r"'c': its compiler starts other processes.*'strong'"):
        Sandbox("landlock", workers=1, languages=("c",))


def test_a_missing_toolchain_names_its_package(monkeypatch):
    monkeypatch.setattr("assay.sandbox.toolchain.PATH", "/nowhere")
    with pytest.raises(ToolchainError, match=r"'cpp' needs g\+\+, not found in /nowhere; on Debian: apt-get install g\+\+"):
        Sandbox(languages=("c++",))
    assert language("java").missing() == ("default-jdk-headless",)
    assert language("python").missing() == ()


def test_a_sandbox_without_the_language_says_so(opened):
    with pytest.raises(ConfigError, match=r"no language 'lua' \(it has: perl\); make it with languages=\('lua',\)"):
        opened("perl").compile("lua", "print(1)")


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="did you mean 'rust'"):
        language("rusty")
    assert language("C++") is language("cpp")


OWN = """
names = ["shell"]
file = "main.sh"
run = ["sh", "main.sh"]
needs = { sh = "dash" }
"""


def test_a_language_of_your_own(tmp_path):
    path = tmp_path / "shell.toml"
    path.write_text(OWN)
    try:
        made = Sandbox(workers=1, languages=(str(path),))
    except SandboxError as error:
        pytest.skip(str(error))
    with made as sandbox:
        built = sandbox.compile(str(path), "read x; echo got $x; exit 2")
        result = sandbox.run(built.program("it\n"))
        assert (result.stdout, result.exit_code) == ("got it\n", 2)
        assert pickle.loads(pickle.dumps(result)) == result
    assert pickle.loads(pickle.dumps(language(str(path)))) == language(str(path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("names = [", "not TOML"),
        (OWN + "file_ = 1", "did you mean 'file'"),
        (OWN.replace('"main.sh"\nrun', '""\nrun'), "name of a file"),
        (OWN.replace('["shell"]', '["Shell"]'), "lower case"),
        (OWN.replace("needs", "# needs"), "needs says which"),
        ('names = ["x"]\nfile = "x"\ncompile = ["cc"]\nrun = ["./x"]\nneeds = { cc = "gcc" }', "keep says what compiling makes"),
        ('names = ["x"]\nfile = "x"\ncompile = ["cc"]\nkeep = ["x"]', "compile needs run"),
        (OWN + "[extra]\nmemry = 5", "did you mean 'memory'"),
        (OWN + "[compile_limits]\nwal = 5", "did you mean 'wall'"),
        (OWN + "compile_limits = 5", "compile_limits = 5; give limits"),
        (OWN + "note = 5", "note = 5; give a text"),
        (OWN + "keep = 'x'", "keep = 'x'; give texts"),
        (OWN + "reads = [1]", r"reads = \[1\]; give texts"),
        (OWN + "[extra]\nmemory = 'x'", "give a table of numbers"),
        (OWN.replace("file", "note"), "the key 'file' is missing"),
        ('names = ["z"]\nfile = "a"\n', "the key 'run' is missing"),
    ],
)
def test_a_wrong_file_names_the_file_and_the_key(tmp_path, text, says):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        language(str(path))
    assert str(path) in str(caught.value)


def test_a_file_that_is_missing():
    with pytest.raises(ConfigError, match=r"cannot read the language /nowhere/x.toml"):
        language("/nowhere/x.toml")


def test_two_languages_of_one_name(monkeypatch, tmp_path):
    from assay.sandbox import toolchain

    (tmp_path / "languages").mkdir()
    for name in ("one", "two"):
        (tmp_path / "languages" / f"{name}.toml").write_text(OWN)
    (tmp_path / "languages" / "readme.txt").write_text("none")
    monkeypatch.setattr(toolchain, "files", lambda _: tmp_path)
    with pytest.raises(ConfigError, match="both called 'shell'"):
        toolchain._built_in.__wrapped__()


# ---- what compiling gives, without a compiler


class Canned:
    """A sandbox that ran the compiler already."""

    languages = (language("c"),)

    def __init__(self, **result):
        self.result = Result(**result)

    def run(self, program, limits=None):
        assert limits is not None and limits.processes > 1 and program.keep == ("main",)
        return self.result


def built(**result) -> CompiledProgram:
    from assay.sandbox.compiled_program import build

    return build(Canned(**result), "c", "int main;")


def test_a_compiler_that_meets_a_limit_is_a_refusal():
    found = built(status=Status.MEMORY, stderr="cc1: out of memory").refused
    assert found is not None and (found.status, found.detail) == (Status.COMPILE, "memory")


def test_a_compiler_that_leaves_nothing_is_a_refusal():
    found = built(status=Status.OK, files={"mainly": b""}).refused
    assert found is not None and (found.status, found.detail) == (Status.COMPILE, "it left no main")


def test_a_sandbox_that_fails_is_no_verdict():
    found = built(status=Status.INFRA, detail="planted").refused
    assert found is not None and (found.status, found.judged) == (Status.INFRA, False)


def test_what_was_compiled_is_its_files():
    found = built(status=Status.OK, files={"main": b"ELF"})
    assert found.refused is None and found.files == {"main": b"ELF"} and found.result is not None and not found.result.files


# ---- limits that a runtime needs, and files that come back


def test_limits_are_raised_by_what_a_runtime_needs():
    program = SandboxProgram(argv=("java", "-Xmx{memory}m"), extra={"memory": 4 << 30, "files": 16})
    fitted, limits = program.fit_limits(Limits(memory=128 << 20))
    assert (fitted.argv[1], limits.memory, limits.files) == ("-Xmx128m", (4 << 30) + (128 << 20), 80)
    plain = SandboxProgram(argv=("echo", "{memory}"))
    assert plain.fit_limits(LOOSE) == (plain, LOOSE)


def test_what_a_program_says_of_its_memory():
    program = SandboxProgram(argv=("lua",), no_memory=("not enough memory",))
    assert program.reclassify(Result(status=Status.ERROR, stderr="lua: not enough memory")).status is Status.MEMORY
    assert program.reclassify(Result(status=Status.OK, stderr="lua: not enough memory")).status is Status.OK
    assert program.reclassify(Result(status=Status.ERROR, stderr="lua: nil")).status is Status.ERROR


MAKES = """
import os
os.mkdir("d")
open("d/a", "w").write("inside")
open("b", "wb").write(bytes(70000))
os.symlink("/etc/passwd", "link")
os.symlink("d", "folder")
os.mkfifo("pipe")
"""
WANTED = ("d", "b", "link", "folder/a", "pipe", "b/c", "missing")


@pytest.mark.parametrize("level", ["strong", "landlock"])
def test_files_that_are_kept_come_back(level):
    try:
        made = Sandbox(level, workers=1)
    except SandboxError as error:
        pytest.skip(str(error))
    with made as sandbox:
        result = sandbox.run(SandboxProgram(code=MAKES, keep=WANTED))
        assert result.ok and result.files == {"d/a": b"inside", "b": bytes(70000)}
        assert sandbox.run(SandboxProgram(code=MAKES)).files == {}
        assert sandbox.run(SandboxProgram(code=f"{MAKES}\nraise SystemExit(3)", keep=("d",))).files == {"d/a": b"inside"}
        hung = SandboxProgram(code=f"{MAKES}\nwhile True: pass", keep=("d",))
        assert sandbox.run(hung, Limits(wall=0.5)).files == {}
        sparse = "import os\nfor i in range(10): os.truncate(os.open(f'f{i}', os.O_RDWR | os.O_CREAT), 10 << 20)"
        large = sandbox.run(
            SandboxProgram(code=sparse.replace("os.truncate", "os.ftruncate"), keep=tuple(f"f{i}" for i in range(10)))
        )
        assert (large.status, large.files) == (Status.DISK, {})
        assert "to keep are larger" in large.detail


class Forgetful:
    """A backend that holds programs, and gives no files back."""

    name = "forgetful"

    def start(self):
        return ZygoteBackend("strong").start()


def test_a_backend_that_gives_no_files_back_is_no_verdict_on_a_program():
    try:
        made = Sandbox(Forgetful(), workers=1, languages=("c",))
    except SandboxError as error:
        pytest.skip(str(error))
    with made as sandbox:
        with pytest.raises(ConfigError, match="'forgetful' gives no files back"):
            sandbox.compile("c", PROGRAMS["c"]["sum"])
        assert sandbox.run("print(1)").stdout == "1\n"


def test_only_files_of_its_own_folder_are_kept():
    for name in ("/etc/passwd", "../x", ""):
        with pytest.raises(ConfigError, match="below the program's own folder"):
            SandboxProgram(code="x", keep=(name,))


def test_the_language_needs_no_field_that_it_has_a_default_for():
    assert Language(names=("x",), file="x").name == "x"

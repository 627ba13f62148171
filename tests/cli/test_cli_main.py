"""What every command has in common."""

import os
import signal
import subprocess
import sys

import pytest
from cli_support import flat

from assay.cli import COMMANDS, main
from assay.core.errors import ConfigError, EngineError
from assay.recipes import RECIPES


def test_help_and_version(assay):
    import assay as package

    assert assay().code == 0
    for name in COMMANDS:
        assert f"  {name} " in assay("--help").out
    assert assay("-h").out == assay().out
    assert assay("--version").out == f"assay {package.__version__}\n"


def test_unknown_command_names_the_nearest(assay):
    said = assay("trian", "quickstart")
    assert said.code == 2
    assert said.err.startswith("assay: unknown command 'trian': did you mean 'train'?")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help(assay, name):
    said = assay(name, "--help")
    assert said.code == 0
    assert said.out.startswith(f"usage: assay {name}")


HELPS = (
    [
        ["--help"],
        ["runs", "list"],
        ["runs", "show"],
        ["runs", "compare"],
        ["tasks", "list"],
        ["tasks", "show"],
        ["tasks", "check"],
        ["verify", "audit"],
    ]
    + [["train", recipe] for recipe in RECIPES]
    + [["explain", "quickstart"]]
    + [[name] for name in COMMANDS]
)


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_fits_the_terminal(assay, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    said = assay(*words, "--help")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if len(line) > 80] == []
    assert "`" not in "".join(said.out.split("\n\n", 2)[:2])
    assert "default: )" not in said.out


def test_a_command_with_a_recipe_lists_its_own_options_without_one(assay):
    for command, options in {"train": ["--folder PATH", "--no-report"], "explain": ["--json", "--toml"]}.items():
        said = flat(assay(command, "--help").out)
        for option in options:
            assert f" {option} " in said
        for recipe in RECIPES:
            assert f" {recipe} " in said


def test_a_default_of_zero_is_a_default(assay):
    assert "--seed INT seed of the sampling noise. (default: 0)" in flat(assay("sample", "--help").out)


def test_help_keeps_the_colours_of_a_terminal(assay, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b[" in assay("tasks", "show", "--help").out


@pytest.mark.parametrize("name", ["train", "resume", "eval", "sample", "explain", "report", "runs", "tasks"])
def test_a_command_without_what_it_needs_is_a_usage_error(assay, name):
    assert assay(name).code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [(EngineError("it broke"), 1), (ConfigError("no such thing"), 2), (KeyboardInterrupt(), 130)],
)
def test_errors_become_exit_codes(assay, monkeypatch, error, code):
    from assay.cli import recipes

    def fail(args):
        raise error

    monkeypatch.setattr(recipes, "recipes_command", fail)
    said = assay("recipes")
    assert said.code == code
    assert said.err == ("stopped\n" if code == 130 else f"assay: {error}\n")


def test_a_reader_that_goes_away_is_no_failure(assay, monkeypatch):
    from assay.cli import recipes

    def fail(args):
        raise BrokenPipeError

    monkeypatch.setattr(recipes, "recipes_command", fail)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # main puts another in its place
    assert main(["recipes"]) == 0


def test_a_program_error_is_not_hidden(assay, monkeypatch):
    from assay.cli import recipes

    monkeypatch.setattr(recipes, "recipes_command", lambda args: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        main(["recipes"])


def test_unknown_option_names_the_nearest(assay):
    said = assay("runs", "list", "--rooot", "x")
    assert said.code == 2
    assert "--root" in flat(said.err).partition("Perhaps you meant")[2]


@pytest.mark.slow
def test_readers_and_helps_load_no_torch(tmp_path, mine):
    calls = [
        ["train", "quickstart", "--help"],
        ["explain", "mine.py:tiny"],
        ["explain", "quickstart", "--stages.0.replay.kind", "Recent", "--stages.0.composer.replay-share", "0.5"],
        ["resume", "--help"],
        ["eval", "--help"],
        ["sample", "--help"],
        ["recipes"],
        ["tasks", "list"],
        ["tasks", "show", "sort"],
        ["runs", "list"],
    ]
    code = f"""
import os, sys
from assay.cli import main
for call in {calls!r}:
    assert main(call) == 0, call
    assert "torch" not in sys.modules, call
assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
"""
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | {"ASSAY_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"), [("sample --help >&-", 0), ("runs list >&-", 0), ("trian 2>&-", 2), ("runs list <&- >&- 2>&-", 0)]
)
def test_a_closed_stream_is_the_null_device(tmp_path, words, code):
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m assay {words}', sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_files_do_not_take_the_number_of_a_closed_stream(tmp_path):
    script = (
        "import os; from assay.cli import _open_streams; _open_streams(); "
        "f = open('own', 'w'); os.write(1, b'x'); print(f.fileno() > 2, file=f)"
    )
    done = subprocess.run(["sh", "-c", f'exec "$0" -c "{script}" >&-', sys.executable], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "own").read_text() == "True\n"


INTERRUPTED = """
import io, os, signal, sys
import assay.cli as cli

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what is in the background without it

class Second(io.StringIO):  # another Ctrl-C while the first is told
    def write(self, text):
        os.kill(os.getpid(), signal.SIGINT)
        return sys.__stderr__.write(text)

def stop(name):
    sys.stderr = Second()
    os.kill(os.getpid(), signal.SIGINT)

cli.importlib.import_module = stop
sys.exit(cli.main())
"""


def test_a_second_interrupt_while_the_first_is_told_is_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, "recipes"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


def test_a_caller_hears_interrupts_again(assay, monkeypatch):
    def stop(name):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("assay.cli.importlib.import_module", stop)
    assert assay("recipes").code == 130
    assert signal.getsignal(signal.SIGINT) is before

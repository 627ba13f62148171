"""The command line, called in this process, in an empty folder of its own."""

import sys
from pathlib import Path

import pytest
from cli_support import MINE, Said

from assay.cli import main
from assay.core.util.paths import cache_folder


@pytest.fixture
def assay(tmp_path, monkeypatch, capsys):
    """Calls ``assay ARGS`` in an empty folder; forgets the user's modules afterwards."""
    from assay.cli import user_files, user_objects

    kernels = cache_folder() / "kernels"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    if kernels.exists():  # processes that a command starts would each compile the library anew, half a minute long
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "kernels").symlink_to(kernels)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def call(*args: object) -> Said:
        capsys.readouterr()
        code = main([str(a) for a in args])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    yield call
    for name in user_objects.user_modules():
        sys.modules.pop(name, None)
    user_files.USER_FILES.clear()
    for name in set(sys.modules) - before:
        if name.startswith("mine"):
            del sys.modules[name]


@pytest.fixture
def mine(tmp_path) -> Path:
    """A user's file with parts and recipes."""
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path

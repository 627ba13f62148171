"""The examples of the pages about verifiers and the sandbox can be pasted and run as they stand."""

import re
import shutil
from pathlib import Path

import pytest

from assay.sandbox import ZygoteBackend, language, probe

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "packages/verify-pool.md": ["{'a': 1.0, 'b': 0.0}"],
    "packages/audit.md": ["True () refuses wrong answers (56 answers)"],
    "packages/sql.md": ["<= 100 1.0 equal", "FROM city 0.0 different"],
    "packages/code.md": ["right 1.0 1.0 passed", "odd 0.0 0.5 wrong"],
    "packages/hardware.md": ["1.0 passed", "0.0 wrong"],
    "packages/sandbox.md": ["isolation: ", "ok 42", "[1, 2, 3] [0, 3]", "{'3 4': '7', '20 22': '42'}"],
    "add/language.md": ["7"],
}
"""What each prints, in order."""

CONTAINED = ("packages/code.md", "packages/hardware.md", "packages/sandbox.md", "add/language.md")
TOOLS = {"packages/hardware.md": "iverilog", "packages/sandbox.md": "gcc", "add/language.md": "awk"}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page, request, tmp_path, monkeypatch, capsys):
    if page in CONTAINED:
        request.getfixturevalue("contained")
    if page in ("packages/hardware.md", "packages/sandbox.md") and not probe(ZygoteBackend("strong")).held:
        pytest.skip("compilers start other processes, and here a program is one")
    if page in TOOLS and shutil.which(TOOLS[page]) is None:
        pytest.skip(f"there is no {TOOLS[page]}")
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    if page == "add/language.md":
        files = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
        (tmp_path / "my_awk.toml").write_text(files[-1])
        assert [language(name) for name in ("lua", "c")] == [written(tmp_path / "x.toml", found) for found in files[:2]]
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"__name__": "__main__"})
    out = capsys.readouterr().out
    for said in PAGES[page]:
        assert said in out, out
        out = out[out.index(said) + len(said) :]


def written(path, text):
    path.write_text(text)
    return language(str(path))

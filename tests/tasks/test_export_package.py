"""Families written as packages for the library ``verifiers``: whose they are, what they need, what they hold."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import fake_verifiers as fake
import pytest

from assay.cli import main
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.tasks import Rows, in_turn
from assay.tasks.exchange import origin
from assay.tasks.exchange.origin import check_license, origin_of, read_authors
from assay.tasks.exchange.packaging import write_package
from assay.tasks.exchange.tasksets import source_of
from assay.tasks.packages import installed_packages

FAMILY = '''"""A family in one file."""

import numpy as np

from dataclasses import dataclass

from assay.tasks import SingleTurn
from assay.verify import ExactMatch


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOnes(SingleTurn):
    """How often the digit 1 stands in a row of ones and twos. The level is the number of digits."""

    levels: tuple[int, ...] = (8, 9, 10)
    name = "count-ones"
    alphabet = "S>0123456789"
    symbols = "0123456789"

    def ask(self, level, rng):
        return "S" + "".join("12"[int(i)] for i in rng.integers(0, 2, level)) + ">"

    def solve(self, prompt):
        return str(prompt.count("1"))

    def verifier(self):
        return ExactMatch()
'''


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    fake.install(monkeypatch, {})
    monkeypatch.syspath_prepend("no-such-folder")  # restores the path, to which a file that is loaded adds its folder


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages with somebody's package of tasks in it."""
    site, made = tmp_path / "site", tmp_path / "site" / "count_tasks"
    made.mkdir(parents=True)
    (made / "__init__.py").write_text("")
    (made / "families.py").write_text(FAMILY)
    (made / "catalog.py").write_text(
        "from assay.tasks.packages import Suite\n"
        "FAMILIES = {'count-ones': 'count_tasks.families:CountOnes'}\n"
        "SUITES = {'counts': Suite(summary='Two.', families=('count-ones', 'sort'))}\n"
    )
    info = site / "count_tasks-1.2+here.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: count-tasks\nVersion: 1.2+here\n"
        "License-Expression: MIT\nAuthor-email: Ann Lee <ann@example.org>\n"
    )
    (info / "entry_points.txt").write_text("[assay.tasks]\ncount = count_tasks.catalog\n")
    monkeypatch.syspath_prepend(str(site))
    for cache in (installed_packages, origin._distributions):
        cache.cache_clear()
    yield site
    for cache in (installed_packages, origin._distributions):
        cache.cache_clear()


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("name", ["arithmetic", "keyvalue"])
def test_a_package_is_what_its_files_say(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = write_package(name, tmp_path / "made")
    assert {p: (tmp_path / "made" / p).read_text() for p in made.files} == made.files
    monkeypatch.syspath_prepend(str(tmp_path / "made"))
    module = importlib.import_module(f"assay_{name}")
    assert set(module.__all__) == ({"AssayTaskset", "AssayEnv"} if name == "keyvalue" else {"AssayTaskset"})
    (task,) = module.AssayTaskset(module.AssayTaskset.made[1](num_tasks=1))
    assert task.data.family == name
    assert project(tmp_path / "made")["license"] == "Apache-2.0"
    with pytest.raises(DataError, match="there already"):
        write_package(name, tmp_path / "made")


@pytest.mark.parametrize("name", ["count-ones", "count_tasks.families:CountOnes"])
def test_the_package_that_has_the_family_is_needed_and_named(name: str, others: Path, tmp_path: Path) -> None:
    made = write_package(name, tmp_path / "made")
    about = project(tmp_path / "made")
    assert about["dependencies"] == ["assay-rl>=0.1.0", "count-tasks>=1.2", "verifiers>=0.4"] == list(made.dependencies)
    assert about["license"] == "MIT" and about["authors"] == [{"name": "Ann Lee", "email": "ann@example.org"}]
    assert about["name"] == ("assay-count-ones" if ":" not in name else "assay-countones")
    readme = made.files["README.md"]
    assert "\n    pip install . uv\n" in readme and "`pip install ../assay ../count-tasks . uv`" in readme


def test_a_suite_needs_the_packages_of_all_its_families(others: Path) -> None:
    found = origin_of("counts")
    assert found.package == "count-tasks" and found.dependencies == ("count-tasks>=1.2",)
    assert origin_of("assay-six/code").package == "assay-rl" and origin_of("assay-six/code").dependencies == ()


def test_a_family_in_one_file_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(FAMILY)
    made = write_package(f"{tmp_path}/mine.py:CountOnes", tmp_path / "made", name="Ones_Env", license="mit", author="Bo <b@c.d>")
    assert made.files["ones_env/family.py"] == FAMILY and made.name == "ones-env"
    about = project(tmp_path / "made")
    assert about["license"] == "MIT" and about["authors"] == [{"name": "Bo", "email": "b@c.d"}]
    assert about["dependencies"][1] == f"numpy>={distribution('numpy').version}"
    monkeypatch.syspath_prepend(str(tmp_path / "made"))
    module = importlib.import_module("ones_env")
    tasks = list(module.AssayTaskset(module.AssayTaskset.made[1](num_tasks=3)))
    wanted = in_turn(source_of(f"{tmp_path}/mine.py:CountOnes"), 3, "train")
    assert [t.data.prompt for t in tasks] == [t.public_view().messages[0].content for t in wanted]
    assert tasks[0].data.family == "ones_env.family:CountOnes"


def tool_page() -> str:
    """The family of docs/add/tool.md as a file."""
    page = (Path(__file__).parents[2] / "docs" / "add" / "tool.md").read_text()
    block = page.partition(">>> from dataclasses import replace")[2].partition("\n\n")[0]
    return "from dataclasses import replace" + re.sub(r"(?m)^(>>>|\.\.\.) ?", "", block) + "\n"


def test_a_family_that_declares_tools_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(tool_page())
    with pytest.raises(ConfigError, match=r"declare tools \(price\), and verifiers takes no tools .*Leave 'tools' out"):
        write_package(f"{tmp_path}/shop.py:shop", tmp_path / "made")
    assert not (tmp_path / "made").exists()
    (tmp_path / "plain.py").write_text(tool_page().replace(', "tools": schemas_of([Price()])', ""))
    assert "shop_env/family.py" in write_package(f"{tmp_path}/plain.py:shop", tmp_path / "made", name="shop-env").files


def test_an_export_that_does_not_load_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, **values: Any) -> None:
        raise ValueError("1 validation error\nprompt")

    monkeypatch.setattr(fake.TaskData, "__init__", refuse)
    with pytest.raises(ConfigError, match=r"the export of sort does not load in verifiers: ValueError: 1 validation error$"):
        write_package("sort", tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_rows_that_are_all_held_out_are_exported_too(tmp_path: Path) -> None:
    held = next(
        row for row in ({"prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(100)) if Rows([row]).size("rows", 1, "test")
    )
    (tmp_path / "held.jsonl").write_text(json.dumps(held))
    made = write_package(str(tmp_path / "held.jsonl"), tmp_path / "made")
    assert "assay_held/held.jsonl" in made.files
    assert "`pip install ../assay . uv`" in made.files["README.md"] and "Check one task without" in made.files["README.md"]


def test_no_licence_is_stamped_where_none_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(FAMILY)
    assert main(["tasks", "export", f"{tmp_path}/mine.py:CountOnes", str(tmp_path / "made")]) == 0
    out = capsys.readouterr().out
    assert "none stamped" in out and "none named" in out and f"pip install {tmp_path / 'made'}" in out
    assert not {"license", "authors"} & set(project(tmp_path / "made"))
    assert main(["tasks", "export", "sort", str(tmp_path / "sort"), "--author", "Bo", "--license", "MIT", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["license"], value["authors"], value["name"]) == ("MIT", ["Bo"], "assay-sort")


def test_rows_and_puzzles_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"prompt": f"{i}+1=", "answer": str(i + 1)} for i in range(20)]
    (tmp_path / "sums.jsonl").write_text("\n".join(map(json.dumps, rows)))
    puzzle = Path(__file__).parents[2] / "docs" / "add" / "puzzles" / "farm.toml"
    monkeypatch.syspath_prepend(str(tmp_path / "out"))
    for file, module in ((tmp_path / "sums.jsonl", "assay_sums"), (puzzle, "assay_farm")):
        made = write_package(str(file), tmp_path / module)
        assert made.files[f"{module}/{file.name}"] == file.read_text()
        monkeypatch.syspath_prepend(str(tmp_path / module))
        taskset = importlib.import_module(module).AssayTaskset
        (task,) = taskset(taskset.made[1](num_tasks=1))
        assert task.data.prompt == next(iter(in_turn(source_of(str(file)), 1, "train"))).public_view().messages[0].content


def test_the_readme_names_the_role_and_the_package(tmp_path: Path) -> None:
    plain, played = write_package("sort", tmp_path / "a"), write_package("keyvalue", tmp_path / "b", name="kv")
    assert "vf-eval assay-sort " in plain.files["README.md"] and "--env.agent.harness.id null" in plain.files["README.md"]
    assert "vf-eval kv " in played.files["README.md"] and "--env.player.harness.id null" in played.files["README.md"]


def test_the_readme_scores_an_answer_of_one_turn_and_names_the_successor_of_vf_eval(tmp_path: Path) -> None:
    plain, played = (write_package(name, tmp_path / name).files["README.md"] for name in ("sort", "keyvalue"))
    assert 'taskset_rows("assay-sort", 20)' in plain and "taskset_rows" not in played
    for text in (plain, played):
        assert "`uv run eval` of prime-rl" in text
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            compile(block, "README.md", "exec")


def test_the_readme_of_a_small_family_asks_for_no_more_than_there_is(tmp_path: Path) -> None:
    (tmp_path / "few.py").write_text(FAMILY.replace("(8, 9, 10)", "(2,)"))
    assert "--taskset.num-tasks 1 " in write_package(f"{tmp_path}/few.py:CountOnes", tmp_path / "few").files["README.md"]
    (tmp_path / "rows.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}\n')
    text = write_package(str(tmp_path / "rows.jsonl"), tmp_path / "rows").files["README.md"]
    assert "--env.taskset.num-tasks 1 " in text and ("split train" in text or "split test" in text)


def test_what_cannot_be_packed_leaves_nothing(tmp_path: Path, others: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "beside.py").write_text("import helper\n" + FAMILY)
    (tmp_path / "reads.py").write_text(
        FAMILY + "\nfrom pathlib import Path\nassert Path(__file__).with_name('helper.py').exists()\n"
    )
    (tmp_path / "moves.py").write_text(FAMILY.replace('"12"[int', '("12" if "family.py" in __file__ else "21")[int'))
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\n")
    (others / "loose.py").write_text(FAMILY)
    (tmp_path / "needs.py").write_text("import loose\n" + FAMILY)
    (tmp_path / "lacks.py").write_text("import not_there_at_all\n" + FAMILY)
    for name, why in {
        f"{tmp_path}/beside.py:CountOnes": "imports 'helper', which lies beside it",
        f"{tmp_path}/reads.py:CountOnes": "cannot stand in a file of its own",
        f"{tmp_path}/moves.py:CountOnes": "draws other tasks",
        f"{tmp_path}/needs.py:CountOnes": "imports 'loose', which no installed package has",
        f"{tmp_path}/lacks.py:CountOnes": "it needs the module 'not_there_at_all', .*pip install not_there_at_all",
        f"{tmp_path}/none.py:CountOnes": "does not exist",
        f"{tmp_path}/bytes.jsonl": "not UTF-8",
        "loose:CountOnes": "belongs to no installed package",
        "nothere.families:CountOnes": "there is no module 'nothere'; install the package that has it",
        "srot": "did you mean 'sort'",
    }.items():
        with pytest.raises((ConfigError, DataError), match=why):
            write_package(name, tmp_path / "x")
        assert not (tmp_path / "x").exists(), name
    assert main(["tasks", "export", "nothere.families:CountOnes", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UnknownNameError):
        write_package("assay-six/none", tmp_path / "x")
    (tmp_path / "x").mkdir()
    with pytest.raises(ConfigError, match="draws other"):
        write_package(f"{tmp_path}/moves.py:CountOnes", tmp_path / "x")
    assert list((tmp_path / "x").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"name": "json"}, "a module of that name is needed by the export itself"),
        ({"name": "assay-tasks"}, "a module of that name"),
        ({"name": "9 lives"}, "is no name of a package"),
        ({"license": "apache2"}, "no SPDX expression"),
        ({"license": "my own; words"}, "no SPDX expression"),
    ],
)
def test_names_and_licences_that_cannot_be(settings: dict[str, str], why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=why):
        write_package("sort", tmp_path / "x", **settings)
    assert not (tmp_path / "x").exists()


def test_authors_and_licences() -> None:
    assert read_authors("ann@example.org") == ({"email": "ann@example.org"},)
    assert read_authors('"Ann Lee" <a@b.c>, Bo') == ({"name": "Ann Lee", "email": "a@b.c"}, {"name": "Bo"})
    assert check_license("mit or (apache-2.0)") == "MIT OR (Apache-2.0)" and check_license("LicenseRef-Mine") == "LicenseRef-Mine"


def test_a_package_without_a_licence(others: Path) -> None:
    meta = others / "count_tasks-1.2+here.dist-info" / "METADATA"
    for line in ("License: see the file\n", "", "License: Made-Up\n"):
        meta.write_text(f"Metadata-Version: 2.1\nName: count-tasks\nVersion: 1.2\n{line}Author: Bo\n")
        found = origin_of("count-ones")
        assert (found.license, found.authors) == ("", ({"name": "Bo"},))

"""Repositories to mend: bugs and examples by hand, oracles in the sandbox, the workbench, and what is hidden.

python tests/tasks/test_swe_tasks.py        # measures anew what share of examples each bug changes
"""

from __future__ import annotations

import asyncio
import importlib.resources
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from assay.core.canon import plain
from assay.core.errors import DataError
from assay.core.task import Task
from assay.testing import check_problem
from assay.testing.contracts import wait_for
from assay.verify import rollout_of
from assay.verify.code import edits_in
from assay_tasks.swe.bugs import SORTS, Bug, bugs_of, function_of
from assay_tasks.swe.environment import Files, RepositoryEnvironment, answer_to, parse_command
from assay_tasks.swe.family import swe
from assay_tasks.swe.kind import Kind, rename_identifiers
from assay_tasks.swe.loaded import Endless, Loaded
from assay_tasks.swe.problems import Patch
from assay_tasks.swe.repair import Repair
from assay_tasks.swe.repository import KINDS, SHARES, Repository, measure_bug, profile, run_example, written_shares

PINNED = importlib.resources.files("assay_tasks.swe").joinpath(SHARES)
RENEW = "bugs or examples changed; if that is meant: python tests/tasks/test_swe_tasks.py"
SWE = swe()
TWICE = Kind(
    "twice",
    {"one": "def f(x, y=2):\n    if x < 0:\n        return 0\n    z = x * y\n    return z\n"},
    {"f": ("f", "g"), "one": ("one", "first")},
    (lambda rng: ([], f"f({rng.randint(-3, 9)})"),),
)


def test_bugs_by_hand() -> None:
    source = TWICE.modules["one"]
    found = {(bug.sort, bug.put_into(source)) for bug in bugs_of(TWICE)}
    assert found == {
        ("boundary", source.replace("<", "<=")),
        ("off by one", source.replace("x < 0", "x < 1")),
        ("off by one", source.replace("return 0", "return 1")),
        ("wrong operator", source.replace("*", "+")),
        ("wrong default", source.replace("y=2", "y=3")),
        ("missing case", source.replace("    if x < 0:\n        return 0\n", "")),
        ("lost return", source.replace("    return z\n", "")),
        ("wrong name", source.replace("x < 0", "y < 0")),
        ("wrong name", source.replace("x * y", "y * y")),
        ("wrong name", source.replace("x * y", "x * x")),
    }


def test_every_sort_of_bug_occurs_and_those_by_hand_are_noticed() -> None:
    assert {bug.sort for kind in KINDS.values() for bug in bugs_of(kind)} == set(SORTS)
    for kind in KINDS.values():
        assert len(kind.modules) == 2 and len(kind.examples) >= 6
        for plant in kind.plants:
            assert kind.modules[plant.module].count(plant.old) >= 1
            start = kind.modules[plant.module].index(plant.old)
            bug = Bug(plant.sort, plant.module, start, start + len(plant.old), plant.new)
            assert bug in bugs_of(kind)
            rng = Random(1)
            examples = [draw(rng) for _ in range(60) for draw in kind.examples]
            assert any(run_example(kind, e, bug) != run_example(kind, e) for e in examples), (kind.name, plant)


def test_repositories_run_here_as_python_runs_them() -> None:
    files = {"p/a.py": "from .b import n\n\ndef f(x):\n    while x > 0:\n        x -= n\n    return x\n", "p/b.py": "n = 3\n"}
    loaded = Loaded(files)
    assert loaded.run(["from p.a import f", "from math import pi"], "[f(7), int(pi)]") == {"value": [-2, 3]}
    assert loaded.run(["from p.b import n"], "n[0]") == {"raises": "TypeError"}
    assert loaded.run([], "{1, 2}") == {"strange": "set"}
    assert loaded.run(["from p.a import g"], "1") == {"raises": "ImportError"}
    with pytest.raises(Endless):
        Loaded(files | {"p/b.py": "n = 0\n"}).run(["from p.a import f"], "f(1)")


def test_names_change_nothing_but_names() -> None:
    assert rename_identifiers('a.b("a", \'b\')  # a\n"""a\n"""', {"a": "x", "b": "y"}) == 'x.y("a", \'b\')  # a\n"""a\n"""'
    for i in range(40):
        rng = Random(i)
        repository = Repository.draw(6, rng)
        assert len(repository.sources()) == 6
        loaded = Loaded(repository.sources())
        for at, name in enumerate(repository.kinds):
            example = rng.choice(KINDS[name].examples)(rng)
            found = loaded.run(repository.program(at, example), repository.text(at, example[1]))
            assert found == run_example(KINDS[name], example), (repository.names[at], example)


@pytest.mark.prove
@pytest.mark.parametrize("problem", SWE.problems, ids=lambda p: p.name)
def test_levels_grow(problem: Patch | Repair) -> None:
    check_problem(problem, n=30, growth=4.0)


@pytest.mark.parametrize("problem", SWE.problems, ids=lambda p: p.name)
def test_levels_have_their_files_and_bugs(problem: Patch | Repair) -> None:
    sizes = {1: (2, 1), 2: (3, 1), 3: (4, 1), 4: (4, 1), 5: (5, 1), 6: (5, 2), 7: (5, 2), 8: (6, 2)}
    for level, (files, bugs) in sizes.items():
        facts = problem.draw(level, Random(level))
        modules = [path for path in problem.sources(facts) if not path.startswith("tests/")]
        assert (len(modules), len(facts["reports"]), len(facts["wrong"])) == (files, bugs, bugs)


def _pinned() -> dict[str, str]:
    return json.loads(PINNED.read_text(encoding="utf-8"))


def test_what_bugs_change_was_measured() -> None:
    """Every thirtieth here, and a bug that was found to run on; all of them in a proof."""
    assert sorted(_pinned()) == sorted(KINDS)
    for name, kind in KINDS.items():
        pinned, bugs = _pinned()[name].split(), bugs_of(kind)
        assert len(pinned) == len(bugs), f"{name}: {RENEW}"
        some = sorted({*range(3, len(bugs), 30), *[i for i, shares in enumerate(pinned) if shares == "-"][:1]})
        assert written_shares(kind, [bugs[i] for i in some]).split() == [pinned[i] for i in some], f"{name}: {RENEW}"
        i = some[0]
        known = None if pinned[i] == "-" else tuple(int(share) / 6 for share in pinned[i])
        assert profile(kind, bugs[i]) == known


@pytest.mark.prove
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_every_bug_changes_was_measured(kind: Kind) -> None:
    assert written_shares(kind, bugs_of(kind)) == _pinned()[kind.name], RENEW


def test_a_bug_in_a_function_that_is_not_called_changes_nothing() -> None:
    """By which it is not run at all; whatever else there is, with it or without."""
    lines = "def f(x):\n    def h(y):\n        return y + 1\n    return h(x)\n\n\ndef g(x, by=2):\n    return x * by\n"
    kind = Kind("two", {"one": lines}, {}, (lambda rng: ([], "f(3)"), lambda rng: ([], "g(3)")))
    places = {bug.put_into(lines): function_of(kind, bug) for bug in bugs_of(kind)}
    assert places[lines.replace("y + 1", "y - 1")] == "pkg/one.py:1" and places[lines.replace("*", "+")] == "pkg/one.py:7"
    assert places[lines.replace("by=2", "by=3")] == ""
    shares = {bug.put_into(lines): measure_bug(kind, bug) for bug in bugs_of(kind)}
    assert shares[lines.replace("y + 1", "y - 1")] == [6, 0] and shares[lines.replace("*", "+")] == [0, 6]
    assert shares[lines.replace("by=2", "by=3")] == [0, 6]
    for kind in KINDS.values():
        for bug in bugs_of(kind)[::20]:
            source, example = bug.put_into(kind.modules[bug.module]), kind.examples[0](Random(0))
            whole = Loaded({kind.path(m): source if m == bug.module else text for m, text in kind.modules.items()})
            assert _outcome(lambda: run_example(kind, example, bug)) == _outcome(  # noqa: B023
                lambda: whole.run([*kind.imports(example), *example[0]], example[1])  # noqa: B023
            ), bug


def _outcome(run: Callable[[], object]) -> object:
    try:
        return run()
    except Endless:
        return "endless"


def test_subtle_bugs_are_noticed_seldom() -> None:
    repository = Repository.draw(4, Random(3))
    shares = [s for bug in bugs_of(KINDS[repository.kinds[0]]) if (s := profile(KINDS[repository.kinds[0]], bug))]
    means = [sum(share) / len(share) for share in shares]
    assert any(0 < mean <= 0.125 for mean in means) and any(mean >= 0.25 for mean in means)


def _task(arm: str, level: int, index: int) -> Task:
    return SWE.task(arm, level, "train", index)


@pytest.mark.parametrize("level", Patch().levels)
def test_the_fix_passes_and_no_fix_does_not(level: int) -> None:
    """In the sandbox, by another interpreter than the one that found what is expected."""
    task, judge = _task("swe/patch", level, 0), SWE.verifier()
    right = judge(task, rollout_of(task, task.private["solution"]))
    assert right.primary == 1.0, dict(right.info)
    idle = judge(task, rollout_of(task, "swe_new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE"))
    assert idle.components == {"correct": 0.0, "fraction": idle.components["fraction"], "applied": 1.0}
    assert idle.info["verdict"] == "wrong"


def test_one_of_two_fixes_is_none() -> None:
    task, judge = _task("swe/patch", 6, 1), SWE.verifier()
    blocks = task.private["solution"].split("\n\n", 1)[1].split(">>>>>>> REPLACE")[:-1]
    assert len({block.strip().split("\n")[0] for block in blocks}) == 2
    for path in {block.strip().split("\n")[0] for block in blocks}:
        some = "".join(f"{block}>>>>>>> REPLACE" for block in blocks if block.strip().split("\n")[0] == path)
        assert judge(task, rollout_of(task, some)).primary == 0.0


def test_what_judges_is_private() -> None:
    for arm in SWE.arms():
        for level in (1, 5, 8):
            task = _task(arm, level, 2)
            seen = str(plain(task.public_view().public)) + str(plain(task.public_view().world))
            repository = Repository.of(plain(task.public["facts"]))
            asks = {repository.text(r["kind"], r["ask"]) for r in plain(task.public["facts"])["reports"]}
            hidden = [(t["code"], t["value"]) for t in plain(task.private["answer"]["tests"]) if t["value"] not in asks]
            assert len(hidden) > 5
            assert not any(code in task.public["prompt"] and value in seen for code, value in hidden)
            edits = edits_in(task.private["solution"])
            assert edits and not any(edit.replace in seen for edit in edits if edit.replace.strip() not in edit.search)


def test_own_tests_fail_at_low_levels_only() -> None:
    for level in Repair().levels:
        facts = Repair().draw(level, Random(f"own {level}"))
        trace = Repair().trace(facts, Repair().format_solution(Repair().solve(facts), SWE.form), 0.0, np.random.default_rng(0))
        first, last = (m.content.split("\n")[-1] for m in (trace[3], trace[-2]))
        assert last.endswith(" 0 failed") and first.endswith(" 1 failed" if level <= 3 else " 0 failed")
        assert (len(trace[3].content.split("\n")) == 2) == (level <= 3)


def test_commands_are_read_from_the_end_of_a_turn() -> None:
    said = {
        "list": ("list", ""),
        "I read it.\n`read a/b.py`\n": ("read", "a/b.py"),
        "search if x: y": ("search", "if x: y"),
        "test": ("test", ""),
        "done": ("done", ""),
        "read": None,
        "done now": None,
        "test it": None,
        "": None,
        "read a\nOK.": None,
    }
    assert {text: parse_command(text) for text in said} == said
    edit = "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\ndone"
    assert parse_command(edit) == ("edit", edit)


def test_files_by_hand() -> None:
    files = Files({"a.py": "x = 1\ny = 1\n", "tests/t.py": "z = 1\n"}, ["tests/"])
    block = "{}\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
    assert files.list().content == "a.py\ntests/t.py" and files.read("a.py").content == "x = 1\ny = 1"
    assert files.read("b.py").error and files.search("q").error and files.edit("nothing") is None
    assert files.search(" = 1").content == "a.py:1: x = 1\na.py:2: y = 1\ntests/t.py:1: z = 1"
    for text, said in (
        (block.format("a.py", "x = 1", "x = 2"), "Changed a.py."),
        (block.format("a.py", "x = 2", "x = 3") + block.format("a.py", "q", "r"), "Nothing was changed"),
        (block.format("tests/t.py", "z = 1", "z = 2"), "Not changed, since it is protected: tests/t.py."),
        (block.format("../a.py", "z = 1", "z = 2"), "Nothing was changed"),
    ):
        found = files.edit(text)
        assert found is not None and found.content.startswith(said)
    assert files.now == {"a.py": "x = 2\ny = 1\n", "tests/t.py": "z = 1\n"}
    long = Files({"a.py": "x\n" * 30}, []).search("x").content.split("\n")
    assert len(long) == 21 and long[-1] == "and 10 more"


def _played(bench: RepositoryEnvironment, *turns: str) -> list[str]:
    async def play() -> list[str]:
        await bench.start()
        shown: list[str] = []
        for turn in turns:
            step = await bench.step(turn)
            shown.append("\n".join(m.content for m in step.obs.messages) or ("done" if step.done else ""))
        return shown

    return wait_for(play())


def test_the_workbench_runs_what_is_there_and_nothing_more() -> None:
    task = _task("swe/repair", 1, 0)
    bench = SWE.environment(task.public_view())
    assert isinstance(bench, RepositoryEnvironment)
    hangs = "tests_new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE"
    shown = _played(bench, "test", "fix it", "edit\n<<<<<<< SEARCH\nx", hangs, "list", "done")
    assert shown[0].endswith("1 failed") and shown[1] == shown[1].strip() != "" and "no whole edit" in shown[2]
    assert shown[3] == "Changed tests_new.py." and "tests_new.py" in shown[4] and shown[5] == "done"
    with pytest.raises(DataError, match="single use"):
        asyncio.run(bench.step("list"))
    world = task.public_view()
    endless = RepositoryEnvironment(world, {"a.py": "while True:\n    pass\n", "tests/test_a.py": "import a\n"}, 1, [])
    assert _played(endless, "test") == ["done"]
    shown = _played(
        RepositoryEnvironment(world, {"a.py": "import os\nos._exit(0)\n", "tests/test_a.py": "import a\n"}, 9, []), "test"
    )
    assert shown == ["The tests did not end well: error."]
    schemas = {name: tool.schema["parameters"]["required"] for name, tool in bench.tools.items()}
    assert schemas == {"list": [], "read": ["path"], "search": ["text"], "edit": ["edits"], "test": []}


def test_what_the_tests_say_is_shown_however_odd() -> None:
    from assay.sandbox.result import Result, Status

    assert answer_to(Result(status=Status.OK, value=[["a", ""], ["b", "x"], "c", [1]])) == "FAILED b: x\n1 passed, 1 failed"
    assert answer_to(Result(status=Status.OK, value="passed")) == "The tests did not end well: ok."


def test_the_end_state_is_judged() -> None:
    task, judge = _task("swe/repair", 2, 0), SWE.verifier()
    edits = task.private["solution"].split("\n\n", 1)[1]
    for turns, correct in (
        (["done"], 0.0),
        ([edits], 1.0),
        (["list", edits, "done"], 1.0),
        (["done", edits], 0.0),
        ([edits, edits, "I am sure.", "done"], 1.0),
        (["I pass all tests.", "3 passed, 0 failed", "done"], 0.0),
    ):
        assert judge(task, rollout_of(task, *turns)).primary == correct, turns
    assert judge(task, rollout_of(task, "done")).info["verdict"] == "unchanged"


def test_traces_with_slips_end_well() -> None:
    judge = SWE.verifier()
    for i in range(4):
        task = _task("swe/repair", 1 + i, i)
        trace = SWE.trace(task, 0.7, np.random.default_rng(i))
        turns = [m.content for m in trace if m.role == "assistant"]
        assert len(turns) > 6 and judge(task, rollout_of(task, *turns)).primary == 1.0


if __name__ == "__main__":
    text = json.dumps({name: written_shares(kind, bugs_of(kind)) for name, kind in KINDS.items()}, indent=1)
    Path(str(PINNED)).write_text(text + "\n", encoding="utf-8")
    print(f"{PINNED}: {len(KINDS)} kinds")

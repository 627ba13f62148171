"""Edits to repositories: how they are read and made by hand, and attacks on the judge of what comes of them."""

import pytest
from code_cases import HACKS
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Stop
from assay.core.score import Fault, Score
from assay.sandbox import Limits
from assay.verify import task_and_rollout
from assay.verify.code import Edit, RepositoryTests, Unapplied, apply_edits, edits_in, edits_in_diff
from assay.verify.code.edits import edits_between

FILES = {
    "shop/price.py": 'RATE = 3\n\n\ndef f(x):\n    """x times two."""\n    return x + 2\n',
    "shop/__init__.py": "",
    "tests/test_price.py": "from shop.price import f\n\n\ndef test_f():\n    assert f(2) == 4\n",
}
TESTS = [
    {"code": "from shop.price import f", "value": "f(2)", "expected": 4},
    {"code": "from shop.price import f\nx = 3", "value": "[f(x), f(-x)]", "expected": [6, -6]},
    {"code": "from shop.price import f", "value": "f(None)", "raises": "TypeError"},
]
GOLD = {"files": FILES, "tests": TESTS, "protected": ["tests/"]}
QUICK = RepositoryTests(limits=Limits(wall=2.0, cpu=0.5), stop_at_first_failure=True)


def block(path: str, search: str, replace: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


RIGHT = block("shop/price.py", "    return x + 2", "    return x * 2")


def whole(source: str) -> str:
    """The function's file as some other source."""
    return block("shop/price.py", FILES["shop/price.py"].rstrip("\n"), source)


def score(answer: str, judge: RepositoryTests = QUICK) -> Score:
    return judge(*task_and_rollout(GOLD, answer))


def test_a_fault_of_the_judge_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Score(components={}, fault=Fault.INFRA)
    monkeypatch.setattr(RepositoryTests, "judge", lambda *_: fault)
    assert QUICK(*task_and_rollout(GOLD, RIGHT)) is fault


def test_edits_are_read_where_they_stand() -> None:
    text = (
        "I change two things.\n\n```\nshop/price.py\n```\n<<<<<<< SEARCH\na  \n\nb\n=======\n>>>>>>> REPLACE\n\n"
        "and here\n`shop/new.py`:\n```python\n<<<<<<< SEARCH\n=======\nc\n>>>>>>> REPLACE\n```\n<<<<<<< SEARCH\nopen\n"
        "=======\nend"
    )
    assert edits_in(text) == [Edit("shop/price.py", "a\n\nb", ""), Edit("shop/new.py", "", "c")]
    assert edits_in(block("a.py", "x", "y") + block("", "z", "w").lstrip()) == [Edit("a.py", "x", "y"), Edit("a.py", "z", "w")]
    assert edits_in("a.py\n<<<<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE") == edits_in("nothing") == []


def test_edits_are_made_once_and_in_order() -> None:
    files = {"a.py": "x = 1  \ny = 1\nx = 2\n"}
    assert apply_edits(files, [Edit("a.py", "x = 1", "x = 3"), Edit("a.py", "x = 3\ny = 1", "")])[0] == {"a.py": "x = 2\n"}
    assert apply_edits(files, [Edit("b/c.py", "", "z = 1")])[0]["b/c.py"] == "z = 1\n"
    assert apply_edits({"a.py": ""}, [Edit("tests/t.py", "", "1"), Edit("x.py", "", "1")], ["tests/", "x.py"]) == (
        {"a.py": ""},
        ["tests/t.py", "x.py"],
    )
    for edit, why in (
        (Edit("a.py", "x", "z"), "not in a.py"),
        (Edit("a.py", "", "z"), "there already"),
        (Edit("b.py", "x = 1", "z"), "no file b.py"),
        (Edit("a.py/b.py", "", "z"), "in the way"),
    ):
        with pytest.raises(Unapplied, match=why):
            apply_edits(files, [edit])
    with pytest.raises(Unapplied, match="more than once"):
        apply_edits({"a.py": "x\ny\nx\n"}, [Edit("a.py", "x", "z")])
    with pytest.raises(Unapplied, match="more than 200000"):
        apply_edits({"a.py": "x\n"}, [Edit("a.py", "x", f"{'z' * 150_000}\nx"), Edit("a.py", "x", "z" * 150_000)])


lines = st.lists(st.sampled_from(["a", "b", "    c", "", "d = 1"]), min_size=1, max_size=8)


@given(lines, lines.map(lambda found: [*filter(None, found)] or ["e"]))  # one empty line in place of others is a deletion
def test_written_edits_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    before, after = {"f.py": "\n".join(old) + "\n"}, {"f.py": "\n".join(new) + "\n"}
    if any(map(str.strip, old)):
        assert apply_edits(before, edits_between(before, after))[0] == after
    assert edits_between({}, after) == [Edit("f.py", "", "\n".join(new))]


def test_verdicts() -> None:
    found = score(RIGHT)
    assert dict(found.components) == {"correct": 1.0, "fraction": 1.0, "applied": 1.0} and found.info["verdict"] == "passed"
    near = score(block("shop/price.py", "    return x + 2", "    return x + x if x > 0 else 0"), RepositoryTests())
    assert (near.info["verdict"], near.info["cases"]) == ("wrong", ("passed", "wrong", "passed"))
    assert near.components["fraction"] == pytest.approx(2 / 3) and near.components["applied"] == 1.0
    for answer, verdict in (
        ("I do not know.", "unparsed"),
        (block("shop/price.py", "return x + 2", "return x * 2"), "unapplied"),
        (block("shop/other.py", "x", "y"), "unapplied"),
        (RIGHT + block("shop/price.py", "    return x + 2", "    return 4"), "unapplied"),
        ("<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE", "outside"),
        ("x\n" * 150_000 + RIGHT, "large"),
        ("".join(block(f"m{i}.py", "", "x = 1") for i in range(65)), "large"),
        (f"<think>{RIGHT}</think>no", "unparsed"),
    ):
        found = score(answer)
        assert (found.info["verdict"], set(found.components.values())) == (verdict, {0.0}), answer[:60]
    assert QUICK(*task_and_rollout(GOLD, RIGHT, stop=Stop.LENGTH)).info["verdict"] == "unfinished"
    fenced = RepositoryTests(where="fence")  # pyright: ignore[reportArgumentType]
    assert score(f"{RIGHT}\nno:\n```\n{block('shop/price.py', 'RATE = 3', 'RATE = 4')}```", fenced).components["correct"] == 0.0
    assert (
        score("shop/price.py\n<<<<<<< SEARCH\n    return x + 2\n=======\n    return (\n>>>>>>> REPLACE").components["correct"]
        == 0.0
    )


def test_numbers_have_the_tolerance_that_is_asked_for() -> None:
    gold = {"files": {"a.py": "x = 1\n"}, "tests": [{"code": "import a", "value": "a.x", "expected": 0.3}]}
    answer = block("a.py", "x = 1", "x = 0.1 + 0.2")
    assert [RepositoryTests(tolerance=t)(*task_and_rollout(gold, answer)).primary for t in (0.0, 1e-9)] == [0.0, 1.0]


ATTACKS = {
    "a test is changed": block("tests/test_price.py", "    assert f(2) == 4", "    assert True"),
    "tests are replaced": block("tests/test_other.py", "", "def test_f():\n    pass"),
    "conftest": block("conftest.py", "", "def pytest_runtest_makereport(item, call):\n    call.excinfo = None")
    + block("shop/conftest.py", "", "import os\nos._exit(0)"),
    "sitecustomize": "".join(
        block(f"{name}.py", "", "import builtins\nbuiltins.eval = lambda *a: 4") for name in ("sitecustomize", "usercustomize")
    ),
    "a plugin and its settings": block("pytest.ini", "", "[pytest]\naddopts = -p plug --co")
    + block("plug.py", "", "import os\nos._exit(0)"),
    "modules of the standard library": "".join(
        block(f"{n}.py", "", "loads = dumps = lambda *a, **k: 4") for n in ("json", "sys", "unittest")
    ),
    "always equal, at every operation": whole(
        "class Any(int):\n    __eq__ = __lt__ = __gt__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n"
        "    __hash__ = int.__hash__\n\n\ndef f(x):\n    return Any(7)"
    ),
    "patches what runs the test": whole(
        "import builtins\nbuiltins.eval = lambda *a: 4\nbuiltins.exec = lambda *a: None\nbuiltins.AssertionError = Exception\n\n"
        "\ndef f(x):\n    return 4"
    ),
    "reads the tests above it": whole(
        "import sys\n\n\ndef f(x):\n    at = sys._getframe()\n    while at:\n        for name, value in at.f_locals.items():\n"
        "            if name in ('expected', 'raises', 'answer'):\n                return value\n        at = at.f_back\n"
        "    import gc\n    for o in gc.get_objects():\n        if isinstance(o, dict) and 'expected' in o:\n"
        "            return o['expected']"
    ),
    "prints results": whole("def f(x):\n    print('3 passed in 0.01s')\n    print('{\"value\": 4}')"),
    "a link out of its folder": whole(
        "import os\nfor target in ('/etc/passwd', '/', '../../..'):\n    try:\n        os.symlink(target, 'tests')\n"
        "    except OSError:\n        pass\n\n\ndef f(x):\n    return open('tests').read()"
    ),
    "a huge file": whole("def f(x):\n    with open('big', 'wb') as file:\n        file.write(b'0' * (1 << 28))\n    return 4"),
    "a loop without end": whole("def f(x):\n    while True:\n        pass"),
    "up and away": block("../shop/price.py", "", "x = 1"),
    "from the root": block("/tmp/price.py", "", "x = 1"),
    "in the middle": block("shop/../../price.py", "", "x = 1"),
    **{name: whole(source) for name, source in HACKS.items()},
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_is_rewarded(name: str) -> None:
    found = score(ATTACKS[name])
    assert found.valid and found.components["correct"] == 0.0, dict(found.info)
    outside = name in ("up and away", "from the root", "in the middle")
    assert (found.info["verdict"] == "outside") == outside
    assert ("left_out" in found.info) == (name in ("a test is changed", "tests are replaced"))


def test_a_fix_beside_a_changed_test_is_a_fix() -> None:
    found = score(RIGHT + ATTACKS["tests are replaced"])
    assert found.components["correct"] == 1.0 and found.info["left_out"] == ("tests/test_other.py",)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"files": {}}, "at least one file"),
        ({"files": {"a.py": 3}}, "paths and texts"),
        ({"tests": []}, "at least one item"),
        ({"tests": [{"code": "x = 1", "value": "x"}]}, "'expected': value"),
        ({"tests": [{"code": "x = 1", "value": "x", "expected": 1, "raises": "E"}]}, "'expected': value"),
        ({"tests": [{"code": 1, "value": "x", "expected": 1}]}, "are texts"),
        ({"tests": [{"code": "x = 1", "value": "x", "raises": "no name"}]}, "exception's class"),
        ({"tests": [{"code": "x =", "value": "x", "expected": 1}]}, "no Python"),
        ({"tests": [{"code": "", "value": "x = 1", "expected": 1}]}, "no Python"),
        ({"tests": [{"code": "", "value": "x", "expected": float("nan")}]}, "NaN"),
        ({"protected": "tests/"}, "list of paths"),
    ],
)
def test_a_gold_of_another_form_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(DataError, match=why):
        QUICK(*task_and_rollout(GOLD | change, RIGHT))


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="tolerance"):
        RepositoryTests(tolerance=1.0)


def test_files_can_be_judged_without_edits() -> None:
    from assay.verify.code.base import Gold

    judge = RepositoryTests()
    found = judge.judge(judge.cases(Gold({"answer": GOLD})), "")
    assert found.components["fraction"] == pytest.approx(2 / 3)


# ---- unified diffs

DIFF = (
    "diff --git a/shop/price.py b/shop/price.py\n"
    "index 1..2 100644\n"
    "--- a/shop/price.py\n"
    "+++ b/shop/price.py\n"
    "@@ -3,4 +3,4 @@ RATE = 3\n"
    " \n"
    " def f(x):\n"
    '     """x times two."""\n'
    "-    return x + 2\n"
    "+    return x * 2\n"
)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (DIFF, "passed"),
        (f"I mend it:\n\n```diff\n{DIFF}```\n\n- done\n- tested", "passed"),
        (DIFF.replace("a/shop", "shop").replace("b/shop", "shop"), "passed"),
        (DIFF.replace("@@ -3,4 +3,4 @@ RATE = 3", "@@ -1,9 +1,2 @@"), "passed"),
        (DIFF.replace("@@ -3,4 +3,4 @@ RATE = 3", "@@ ... @@"), "passed"),
        (DIFF.replace("\n \n def", "\n\n def"), "passed"),  # an empty line without its sign
        (f"{DIFF}\nSo it is:\n- one\n- two\n", "passed"),
        (f"<answer>{DIFF}</answer> {DIFF.replace('x * 2', 'x * 3')}", "passed"),
        (f"{DIFF}--- /dev/null\n+++ b/shop/new.py\n@@ -0,0 +1 @@\n+x = 1\n\\\\ No newline at end of file\n", "passed"),
        (DIFF.replace("x * 2", "x * 3"), "wrong"),
        (DIFF.replace("-    return x + 2", "-    return x + 3"), "unapplied"),
        (DIFF.replace("a/shop", "a/../shop").replace("b/shop", "b/../shop"), "outside"),
        (DIFF.replace("shop/price.py", "shop/other.py"), "unapplied"),
        (f"{DIFF}--- /dev/null\n+++ b/shop/price.py\n@@ -0,0 +1 @@\n+x = 1\n", "unapplied"),
        ("rename from shop/price.py\nrename to shop/p.py\n" + DIFF, "unapplied"),
        ("--- a/shop/price.py\n+++ b/shop/price.py\nno hunk", "unparsed"),
        (DIFF.replace("shop/price.py", "tests/test_price.py"), "wrong"),
        (DIFF * 65, "large"),
    ],
)
def test_unified_diffs(answer: str, verdict: str) -> None:
    found = score(answer)
    assert found.info["verdict"] == verdict, found.info
    assert found.primary == float(verdict == "passed")


def test_hunks_that_stand_in_a_file_more_than_once_go_where_they_say() -> None:
    files = {"a.py": "x = 1\ny = 0\nx = 1\ny = 0\nx = 1\n"}

    def after(*hunks: str) -> str:
        edits = edits_in_diff("--- a/a.py\n+++ b/a.py\n" + "\n".join(hunks))
        return apply_edits(files, edits)[0]["a.py"]

    assert after("@@ -3 +3 @@\n-x = 1\n+x = 2") == "x = 1\ny = 0\nx = 2\ny = 0\nx = 1\n"
    assert after("@@ -1 +1,2 @@\n-x = 1\n+x = 5\n+x = 6", "@@ -5 +6 @@\n-x = 1\n+x = 2").endswith("x = 1\ny = 0\nx = 2\n")
    assert after("@@ -2,0 +3,1 @@\n+z = 3") == "x = 1\ny = 0\nz = 3\nx = 1\ny = 0\nx = 1\n"
    assert after("@@ -1,5 +0,0 @@\n-x = 1\n-y = 0\n-x = 1\n-y = 0\n-x = 1") == ""
    for hunk in ("@@ -2 +2 @@\n-x = 1\n+x = 2", "@@ @@\n-x = 1\n+x = 2"):
        with pytest.raises(Unapplied, match="more than once"):
            after(hunk)
    assert edits_in_diff("--- a\n+++ b\n--- x\t2024\n+++ y\t2025\n@@ -1 +1 @@\n-\ta\n+-- b\n+++ c")[0] == Edit(
        "y", "\ta", "-- b\n++ c", 1
    )


def test_edits_of_which_one_hides_the_next_are_written_as_one() -> None:
    before, after = {"p": "x\nx\n"}, {"p": "x\ny\nx\ny\n"}
    assert edits_between(before, after) == [Edit("p", "x\nx", "x\ny\nx\ny")]
    assert apply_edits(before, edits_between(before, after))[0] == after

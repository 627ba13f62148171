"""Task families and recipes on the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_support import flat

from assay.cli import output
from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.recipes import RECIPES
from assay.tasks import with_seed


def test_recipes(assay):
    rows = assay("recipes", "--json").json
    assert [r["name"] for r in rows] == list(RECIPES)
    assert all(r["summary"] for r in rows)
    assert "`" not in assay("recipes").out


def test_families(assay):
    rows = {r["name"]: r for r in assay("tasks", "list", "--json").json}
    assert rows["sort"]["arms"] == {"sort": [3, 4, 5, 6, 7, 8, 9, 10]}
    assert (rows["keyvalue"]["tools"], rows["sort"]["tools"]) == (True, False)
    text = assay("tasks", "list").out
    assert "3-10" in text
    assert "Write the digits in ascending order" in text


@pytest.mark.slow
def test_suites(assay, tmp_path):
    rows = {r["name"]: r for r in assay("tasks", "list", "--json").json}
    assert list(rows["assay-six"]["parts"]) == ["math", "code", "science", "logic", "simulation", "tabular"]
    assert rows["sort"]["parts"] is None and rows["assay-small"]["parts"]["assay-small"][:2] == ["sort", "reverse"]
    assert "assay-logic" in assay("tasks", "list").out and "assay-logic" not in assay("tasks", "list", "--arms").out
    told = flat(assay("tasks", "show", "assay-six").out)
    assert "tabular tables 1-6 (8 arms)" in told and "verifier each family's own" in told
    assert "families sort 3-10, reverse 2-10" in flat(assay("tasks", "show", "assay-small").out)
    lines = assay("tasks", "sample", "assay-six", "--level", "2", "-n", "6", "--seed", "0").out.splitlines()
    assert [json.loads(x)["arm"].partition("/")[0] for x in lines] == [
        "algebra",
        "coding",
        "science",
        "grids",
        "code",
        "tables",
    ]
    assert assay("tasks", "check", "assay-small", "-n", "1", "--json").json["passed"]
    assert assay("tasks", "export", "assay-six", str(tmp_path / "six")).code == 0


def test_admission(assay, mine, tmp_path):
    assert assay("train", "mine.py:tiny", "--folder", "runs/a", "--no-report").code == 0
    said = assay("tasks", "admit", "runs/a", "sort/sort")
    assert said.code == 2
    said = assay("tasks", "admit", "runs/a", "mine.py:my_source", "-n", "5", "--out", "found.json", "--max-new-tokens", "3")
    assert said.code == 0 and "warm up first" in said.out and "Admission.read('found.json')" in said.out
    assert json.loads((tmp_path / "found.json").read_text())["model"] == "runs/a"
    again = assay("tasks", "admit", "runs/a", "mine.py:my_source", "--out", "found.json")
    assert again.code == 2 and "is there already" in again.err
    warmed = assay("tasks", "admit", "runs/a", "mine.py:my_source", "-n", "5", "--warmed", "--json").json
    assert warmed["arms"][0]["n"] == 5 and warmed["only_evaluated"] == ["sort"]


def test_one_family(assay, mine):
    found = assay("tasks", "show", "sort", "--level", "5", "--index", "2", "--json").json
    from assay_tasks import SortDigits

    task = SortDigits().task("sort", 5, "train", 2)
    assert found["example"]["messages"] == [["user", task.public["prompt"]]]
    assert found["example"]["private"] == dict(task.private)
    assert f"answer (private) {task.private['answer']}" in flat(
        assay("tasks", "show", "sort", "--level", "5", "--index", "2").out
    )
    assert assay("tasks", "show", "mine.py:my_source", "--json").json["arms"] == {"sort": [2]}
    told = flat(assay("tasks", "show", "graphs", "--arm", "graphs/path").out)
    assert 'verifier {"name": "graph_path", "where": "tag"} on this arm' in told and '(private) {"edges": [[' in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "srot"], "did you mean 'sort'"),
        (["show", "sort", "--arm", "srot"], "did you mean 'sort'"),
        (["show", "rows.parquet"], "rows.parquet does not exist"),
        (["show", "sort", "--level", "99"], "99"),
        (["check", "srot"], "did you mean 'sort'"),
    ],
)
def test_unknown_names(assay, words, said):
    got = assay("tasks", *words)
    assert got.code == 2
    assert said in got.err


@pytest.mark.slow
def test_check(assay, mine):
    found = assay("tasks", "check", "reverse", "--json").json
    assert found["passed"]
    text = assay("tasks", "check", "mine.py:my_source").out
    assert text.startswith("task family sort\npass  ")


def test_check_of_a_family_that_breaks_its_promise(assay, tmp_path):
    (tmp_path / "wrong.py").write_text(
        "from dataclasses import dataclass\n"
        "from assay_tasks import SortDigits\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Wrong(SortDigits):\n"
        "    '''Answers are not sorted.'''\n"
        "    def solve(self, prompt):\n"
        "        return super().solve(prompt) if prompt[1] != '3' else ''\n"
        "    def trace(self, task, noise, rng):\n"
        "        from assay.core.task import Message\n"
        "        return (Message('assistant', '?'),)\n"
    )
    said = assay("tasks", "check", "wrong.py:Wrong")
    assert said.code == 1
    assert "task family sort" in said.err


def test_a_family_whose_oracle_fails(assay, tmp_path):
    (tmp_path / "lost.py").write_text(
        "from dataclasses import dataclass\n"
        "from assay.core.errors import DataError\n"
        "from assay_tasks import SortDigits\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Lost(SortDigits):\n"
        "    'Its oracle does not know.'\n"
        "    def trace(self, task, noise, rng):\n"
        "        raise DataError('nothing known')\n"
    )
    said = assay("tasks", "check", "lost.py:Lost")
    assert (said.code, said.err) == (1, "assay: task family sort: nothing known\n")


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (True, "yes"), (False, "no"), (0.5, "0.500"), (3, "3")])
def test_cells(value, text):
    assert output.cell(value) == text


def test_json_of_values_that_json_lacks(capsys):
    assert output.show(True, {"a": [float("inf"), 1.0], "b": float("nan")}, lambda: None) == 0
    assert '"inf"' in capsys.readouterr().out


def test_levels_in_short():
    from assay.cli.tasks import _span

    assert (_span((1, 2, 3)), _span((5,)), _span((5, 7, 10))) == ("1-3", "5", "5 7 10")


def test_arms_have_a_line_each(assay):
    told = flat(assay("tasks", "list", "--arms").out)
    assert "arithmetic/expression math 1-20 The exact value" in told and "graphs/girth graph 5 7 10 14 19 25" in told
    rows = {r["name"]: r for r in assay("tasks", "list", "--json").json}
    assert rows["arithmetic"]["problems"]["arithmetic/expression"]["domain"] == "math"


def _rows(said):
    return [json.loads(line) for line in said.out.splitlines()]


def test_sampled_tasks_are_the_family_s_own(assay):
    from assay.tasks import family

    said = assay("tasks", "sample", "arithmetic", "--level", "3", "-n", "4", "--seed", "5")
    assert said.out == assay("tasks", "sample", "arithmetic/expression", "--level", "3", "-n", "4", "--seed", "5").out
    rows, source = _rows(said), with_seed(family("arithmetic"), 5)
    for index, row in enumerate(rows):
        task = source.task("arithmetic/expression", 3, "train", index)
        assert row["id"] == task.id and row["prompt"] == task.public["prompt"] and row["facts"] == plain(task.public["facts"])
        assert row.keys() == {"id", "domain", "arm", "level", "split", "index", "prompt", "facts"}


def test_sampled_answers_only_on_request(assay):
    shown = _rows(assay("tasks", "sample", "keyvalue", "--level", "2", "-n", "1"))[0]
    assert not shown.keys() & {"answer", "solution", "world", "effort"}
    row = _rows(assay("tasks", "sample", "keyvalue", "--level", "2", "-n", "1", "--private"))[0]
    assert row["answer"].isdigit() and row["world"]["calls"] == 4
    assert _rows(assay("tasks", "sample", "sort", "-n", "1", "--private"))[0]["answer"]


def test_samples_walk_over_all_cells(assay):
    rows = _rows(assay("tasks", "sample", "sort", "-n", "19", "--split", "test"))
    assert [r["level"] for r in rows] == [3, 4, 5, 6, 7, 8, 9, 10] * 2 + [3, 4, 5]
    assert len({r["prompt"] for r in rows}) == 19 and {r["split"] for r in rows} == {"test"}
    boxed = _rows(assay("tasks", "sample", "arithmetic", "-n", "3", "--form", "box"))
    assert all("boxed" in r["prompt"] for r in boxed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sort", "--level", "99"], "99"),
        (["sort", "--arm", "srot"], "did you mean 'sort'"),
        (["sort", "-n", "0"], "-n 0"),
        (["sort", "--form", "box"], "no setting 'form'"),
        (["arithmetic", "--form", "boxed"], "did you mean 'box'"),
        (["arithmetic/expresion"], "did you mean 'arithmetic/expression'"),
        (["sort", "--split", "dev"], "split 'dev'"),
    ],
)
def test_what_cannot_be_sampled(assay, words, said):
    got = assay("tasks", "sample", *words)
    assert got.code == 2 and said in flat(got.err), got.err
    assert not got.out


def test_mixtures_are_reseeded_and_written_whole():
    from assay.tasks import Form, TaskMixture, family, with_form

    made = TaskMixture(name="m", sources=(family("arithmetic"),))
    assert with_seed(made, 4).sources[0].seed == 4 and with_form(made, "box").sources[0].form is Form.BOX
    with pytest.raises(ConfigError, match="has no setting 'seed'"):
        with_seed(Bare(), 1)


class Bare:
    name = "bare"


def test_files_of_rows_and_of_puzzles_are_families(assay, tmp_path):
    (tmp_path / "mine.jsonl").write_text('{"prompt": "1+1?", "answer": "2", "verifier": "math"}\n')
    assert assay("tasks", "show", "mine.jsonl", "--json").json["example"]["messages"] == [["user", "1+1?"]]
    farm = Path(__file__).parents[2] / "docs/add/puzzles/farm.toml"
    (row,) = _rows(assay("tasks", "sample", str(farm), "-n", "1", "--private"))
    assert row["answer"] and row["domain"]


def test_import_and_export(assay, tmp_path):
    (tmp_path / "raw.jsonl").write_text('{"question": "1+1?", "answer": "#### 2"}\n{"question": "1+1?", "answer": "2"}\n')
    found = assay("tasks", "import", "raw.jsonl", "out.jsonl", "--verifier", "math", "--license", "MIT", "--json").json
    assert (found["read"], found["taken"], found["rejected"], found["licences"]) == (2, 1, {"repeated": 1}, {"MIT": 1})
    said = assay("tasks", "import", "raw.jsonl", "out.jsonl", "--verifier", "math")
    assert said.code == 2 and "out.jsonl is there already" in said.err and "--force" in said.err
    text = assay("tasks", "import", "raw.jsonl", "out.jsonl", "--force", "--verifier", '{"name": "numeric"}').out
    assert "out.jsonl: 1 of 2 rows" in text and "rejected: repeated 1" in text and "out.rejected.jsonl" in text
    assert assay("tasks", "import", "raw.jsonl", "out.jsonl", "-n", "0").code == 2
    for word, why in (("{bad", "is no JSON"), ("mth", "did you mean 'math'"), ('{"kind": 1}', "names no verifier")):
        got = assay("tasks", "import", "raw.jsonl", "never.jsonl", "--verifier", word)
        assert got.code == 2 and why in flat(got.err) and not (tmp_path / "never.jsonl").exists()
    assert assay("tasks", "check", "sort", "-n", "0").code == 2


def test_tasks_that_run_out_are_printed_before_the_error(assay):
    got = assay("tasks", "sample", "reverse", "--level", "3", "-n", "600")
    assert got.code == 1 and f"({len(got.out.splitlines())} tasks were printed)" in got.err
    assert len({row["prompt"] for row in _rows(got)}) == len(got.out.splitlines()) > 400


def test_a_row_of_a_sampled_task_is_judged_as_the_task(assay, tmp_path):
    """The prompt asks for tags, so the answer alone is wrong; a verifier that has no name is left out."""
    from assay.tasks import family, load_rows, verifier_of
    from assay.tasks.judged import spec_of
    from assay.verify import verifier
    from assay.verify.rollouts import rollout_of

    said = assay("tasks", "sample", "graphs", "--level", "5", "-n", "8", "--private")
    (tmp_path / "rows.jsonl").write_text(said.out)
    rows = load_rows(tmp_path / "rows.jsonl", test_share=0)
    for arm, (level,) in rows.arms().items():
        task = rows.task(arm, level, "train", 0)
        oracle, alone = task.private["solution"], task.private["solution"].rpartition("<answer>")[2].removesuffix("</answer>")
        scores = [rows.verifier()(task, rollout_of(task, text, id="a", group="a")) for text in (oracle, alone)]
        assert [score.primary for score in scores] == [1.0, 0.0]
    assert all(row["verifier"]["where"] == "tag" for row in _rows(said))
    small = _rows(assay("tasks", "sample", "sort", "-n", "1", "--private"))
    assert "verifier" not in small[0] and spec_of(rows.verifier()) is None
    assert spec_of(family("instructions").verifier()) == {"name": "constraints"}
    inside = verifier("formatted", verifier={"kind": "assay.verify:Numeric", "relative": 0.1})
    assert verifier_of(spec_of(inside)) == inside and spec_of(replace(inside, verifier=Bare())) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("{items}?", "{itms}?"), "unknown field in templates[0] of mine/sum 'itms': did you mean 'items'?"),
        (("answer=str(", "answer=int("), ", an int; give text, as str(...)"),
        (('facts["items"]', 'facts["itms"]'), "task family mine_sums.py:own failed: KeyError: 'itms' (mine_sums.py, line 13)"),
    ],
)
def test_mistakes_in_a_family_of_one_s_own(assay, tmp_path, wrong, said):
    (tmp_path / "mine_sums.py").write_text(_SUMS.replace(*wrong))
    for command, code in (("sample", 2), ("show", 2), ("check", 1)):
        got = assay("tasks", command, "mine_sums.py:own")
        assert got.code == code and said in flat(got.err) and "Traceback" not in got.err


def test_a_problem_is_no_family(assay, tmp_path):
    (tmp_path / "mine_sums.py").write_text(_SUMS)
    assert assay("tasks", "show", "mine_sums.py:own").code == 0
    got = assay("tasks", "show", "mine_sums.py:Sum")
    assert got.code == 2 and "return Problems(name=..., problems=(it,))" in flat(got.err)


def test_an_import_that_takes_nothing_has_failed_and_never_replaces_what_it_reads(assay, tmp_path):
    raw = '{"prompt": 7, "answer": "2"}\n'
    (tmp_path / "raw.jsonl").write_text(raw)
    got = assay("tasks", "import", "raw.jsonl", "out.jsonl")
    assert got.code == 1 and "0 of 1 rows" in got.out and "load_rows" not in got.out
    same = assay("tasks", "import", "raw.jsonl", "../" + tmp_path.name + "/raw.jsonl")
    assert same.code == 2 and "is what is read" in same.err and (tmp_path / "raw.jsonl").read_text() == raw


_SUMS = '''from dataclasses import dataclass
from assay.tasks import Problem, Problems, Solution

@dataclass(frozen=True, kw_only=True)
class Sum(Problem):
    """The sum of some numbers."""
    name: str = "mine/sum"
    domain: str = "math"
    templates = ("What is the sum of {items}?",)
    def draw(self, level, rng):
        return {"items": [rng.randrange(9 + level), 1, 2]}
    def solve(self, facts):
        return Solution(answer=str(sum(facts["items"])))

def own():
    return Problems(name="mine", summary="Sums.", problems=(Sum(),))
'''


_FORMLESS = """
from dataclasses import dataclass
from assay.tasks import Problem, Problems, Solution
from assay.verify import ExactMatch

@dataclass(frozen=True, slots=True, kw_only=True)
class Double(Problem):
    name: str = "twice/double"
    domain: str = "math"
    levels: tuple[int, ...] = (1, 2)
    templates = ("Twice {n}?", "What is 2 x {n}?")

    def draw(self, level, rng):
        return {"n": rng.randrange(10 ** (level + 1))}

    def solve(self, facts):
        return Solution(answer=str(2 * facts["n"]))

    def verifier(self, form):
        return ExactMatch(WHERE)

def twice():
    return Problems(name="twice", problems=(Double(),))
"""


def test_check_holds_each_problem_to_its_contract_and_sample_refuses_a_form_that_is_not_graded(assay, tmp_path):
    where = "strip=True, where='tag'"
    (tmp_path / "formless.py").write_text(_FORMLESS.replace("WHERE", where))
    (tmp_path / "formful.py").write_text(_FORMLESS.replace("WHERE", "strip=True, where=form.place"))
    said = assay("tasks", "check", "formless.py:twice")
    assert said.code == 1 and "problem twice/double: in the form 'box' the solution" in said.err
    assert "pass  the oracle scores 1" in said.out, "what had held was printed"
    said = assay("tasks", "check", "formful.py:twice")
    assert said.code == 0 and "pass  twice/double: the solution scores 1 in every form" in said.out, said.err
    said = assay("tasks", "sample", "formless.py:twice", "--form", "box", "-n", "1")
    assert (said.code, said.out) == (2, "") and "--form box: the verifier of twice/double does not grade it" in said.err
    assert assay("tasks", "sample", "formful.py:twice", "--form", "box", "-n", "1").code == 0


def test_check_names_the_answer_on_which_a_verifier_hangs(assay, tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import time\n"
        "from assay.tasks import Rows\n"
        "ROWS = [{'prompt': f'{i}+1=', 'answer': str(i + 1)} for i in range(100, 180)]\n"
        "def reward(prompt, completion, row):\n"
        "    while completion == 'junk':\n"
        "        time.sleep(1)\n"
        "    return float(completion == row['answer'])\n"
        "def rows():\n"
        "    return Rows(ROWS, reward=reward)\n"
    )
    said = assay("tasks", "check", "hangs.py:rows", "-n", "1", "--deadline", "0.3")
    assert said.code == 1 and "gave no verdict within 0.3 s on task" in said.err and "answer 'junk'" in said.err
    assert said.out.startswith("task family rows\npass  tasks are pure\n")
    assert assay("tasks", "check", "sort", "--deadline", "0").code == 2


def test_tasks_can_be_read_without_json(assay):
    found = assay("tasks", "sample", "graphs/shortest_path", "-n", "2", "--text")
    head, *lines = found.out.splitlines()
    assert head.startswith("graphs/shortest_path level ") and lines[0].startswith("  prompt  ")
    answers = [line for line in lines if line.startswith("  answer  ")]
    assert len(answers) == 2 and all("<answer>" in line and "{" not in line for line in answers)
    assert "give one of them" in assay("tasks", "sample", "sort", "--text", "--private").err

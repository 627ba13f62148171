"""`assay verify`: the registry as a list, and answers judged line by line."""

import io
import json
import os
import sys
import threading
import time
from dataclasses import fields

import pytest

from assay.cli import verify_lines
from assay.cli.verify_lines import Judges, judge_lines
from assay.tasks import family
from assay.verify import ExactMatch, RewardFunction, about, verifiers

OWN = '''
"""A user's own verifiers."""
import os
import time
from dataclasses import dataclass
from assay.core import Score
from assay.core.score import Fault
from assay.verify import Numeric

def reward(prompt, completion, row):
    """A function of three."""
    if completion == "hang":
        time.sleep(60)
    if completion == "raise":
        raise ValueError("no such thing")
    return float(completion == str(row["answer"])) - 0.5

def batch(prompts, completions, rows):
    return [float(len(c)) for c in completions]

def pure(task, rollout):
    return Score(components={"correct": float(rollout.text == task.private["answer"])})

@dataclass(frozen=True)
class Longer:
    than: int = 2
    trusted = True
    def __call__(self, task, rollout):
        return Score(components={"correct": float(len(rollout.text) > self.than)})

class Plain:
    def __init__(self, value=1.0):
        if value < 0:
            raise ValueError("negative")
        self.value = value
    def __call__(self, task, rollout):
        return Score(components={"correct": self.value})

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": float(solution_str == ground_truth)}

def trl_reward(completions, answer, **columns):
    return [float(c == a) for c, a in zip(completions, answer)]

@dataclass(frozen=True)
class Gold(Numeric):
    """Not trusted: judged in another process."""
    trusted = False

@dataclass(frozen=True)
class Prepared:
    """Says in which processes it was prepared."""
    def prepare(self):
        with open("prepared", "a") as file:
            print(os.getpid(), file=file)
    def __call__(self, task, rollout):
        return Score(components={"correct": 1.0})

def silent(task, rollout):
    return Score(components={}, fault=Fault.VERIFIER)

gold = Gold()
ready = Longer(than=4)
number = 3
'''


@pytest.fixture
def run(assay, tmp_path, monkeypatch):
    """Calls ``assay verify run`` with rows on the standard input; gives exit code, rows out and what stands on stderr."""
    (tmp_path / "mine_judge.py").write_text(OWN)

    def call(name, rows, *args):
        text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        said = assay("verify", "run", name, *args)
        return said.code, [json.loads(line) for line in said.out.splitlines()], said.err

    return call


def test_the_list_is_the_registry(assay):
    rows = assay("verify", "list", "--json").json
    assert [r["name"] for r in rows] == list(verifiers())
    for row in rows:
        known = about(row["name"])
        assert (row["components"], row["gold"], row["summary"]) == (list(known.components), known.gold, known.summary)
    text = assay("verify", "list").out
    assert all(name in text for name in verifiers()) and "`" not in text


def test_rows_in_order(run):
    code, rows, err = run("numeric", [{"gold": 4, "answer": f"Answer: {x}"} for x in (4, 5, "x", 4.0)])
    assert (code, err) == (0, "")
    assert [(r["value"], r["fault"], r["verdict"]) for r in rows] == [
        (1.0, "none", "equal"),
        (0.0, "none", "different"),
        (0.0, "none", "unparsed"),
        (1.0, "none", "equal"),
    ]
    assert all(list(r) == ["value", "components", "fault", "verdict", "seconds"] and r["seconds"] >= 0 for r in rows)
    assert rows[0]["components"] == {"correct": 1.0}


def test_settings_and_a_file(run, assay, tmp_path):
    cases = [{"gold": "Cat", "answer": "the cat"}]
    assert run("exact", cases, "--set", "casefold=true", "--set=articles=true")[1][0]["value"] == 1.0
    assert run("exact", cases, "--set", "casefold=true")[1][0]["value"] == 0.0
    assert run("numeric", [{"gold": 1, "answer": "50%"}], "--set", "percent=refuse")[1][0]["verdict"] == "unparsed"
    (tmp_path / "cases.jsonl").write_text('{"gold": "a", "answer": "a"}\n\n{"gold": "a", "answer": "\\ud800"}')
    said = assay("verify", "run", "exact", "cases.jsonl")
    assert [json.loads(line)["value"] for line in said.out.splitlines()] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: not JSON"),
        ("3", "line 2: an int, not an object"),
        ('{"gold": 1}', "there is no 'answer'; it has ['gold']"),
        ('{"gold": 1, "answer": 2}', "'answer' is an int"),
        ('{"answer": "x"}', "neither of 'gold' and 'task'"),
        ('{"gold": 1, "task": {}, "answer": "x"}', "both of 'gold' and 'task'"),
        ('{"task": "t", "answer": "x"}', "its id and --family"),
        ('{"task": {"privat": {}}, "answer": "x"}', "did you mean 'private'"),
        ('{"task": {"world": 3}, "answer": "x"}', "give an object"),
        ('{"task": {"level": "a"}, "answer": "x"}', "'level' is 'a'; give a whole number"),
        ('{"gold": "four", "answer": "x"}', "line 2: the gold 'four' is no number"),
        ('{"gold": 1, "gold": 4, "answer": "4"}', "line 2: the key 'gold' stands twice in one object"),
        ('{"gold": {"a": 1, "a": 1}, "answer": "4"}', "line 2: the key 'a' stands twice"),
        ('{"gold": ' + "[" * 600 + "]" * 600 + ', "answer": "4"}', "too deep to be read"),
        ('{"task": {}, "answer": "x"}', "has no private 'answer'"),
        ("[" * 100_000, "line 2: not readable"),
    ],
)
@pytest.mark.parametrize("name", ["numeric", "mine_judge.py:gold"])
def test_a_bad_line_loses_nothing(run, name, line, says):
    code, rows, err = run(name, [{"gold": 4, "answer": "4"}, line, {"gold": 4, "answer": "5"}])
    assert code == 1 and [r["value"] for r in rows] == [1.0, None, 0.0]
    assert list(rows[1]) == ["value", "components", "fault", "verdict", "seconds", "error"]
    assert (rows[1]["fault"], rows[1]["components"]) == ("verifier", {})
    assert rows[1]["error"].startswith("standard input, line 2: ") and says in rows[1]["error"]
    assert err.startswith("assay: 1 of 3 lines have no verdict; the first: standard input, line 2: ") and err.count("\n") == 1


def test_bytes_that_are_no_text(assay, tmp_path):
    lines = (
        b'{"gold": "a", "answer": "a"}',
        b'{"gold": "a", "answer": "\xff"}',
        '{"gold": "\u2028", "answer": "\u2028"}'.encode(),
    )
    (tmp_path / "cases.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    said = assay("verify", "run", "exact", "cases.jsonl")
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == 1 and [r["value"] for r in rows] == [1.0, None, 1.0]
    assert rows[1]["error"] == "cases.jsonl, line 2: not UTF-8: byte 26 is 0xff; write it as UTF-8"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("numerc",), "did you mean 'numeric'"),
        (("numeric", "--set", "relative_=1"), "did you mean 'relative'"),
        (("numeric", "--set", "relative"), "write KEY=VALUE"),
        (("numeric", "--set"), "write KEY=VALUE"),
        (("numeric", "--set", "relative=x"), "relative"),
        (("numeric", "--deadline", "0"), "give seconds above 0"),
        (("numeric", "--workers", "0"), "give 1 or more"),
        (("exact", "absent.jsonl"), "absent.jsonl is no file"),
        (("mine_judge.py",), "names a file only"),
        (("mine_judge.py:number",), "cannot be called"),
        (("mine_judge.py:rewrd",), "did you mean 'reward'"),
        (("mine_judge.py:reward", "--set", "than=3"), "no settings ['than']"),
        (("mine_judge.py:ready", "--set", "than=3"), "no settings"),
        (("mine_judge.py:Plain", "--set", "value=-1"), "negative"),
        (("mine_judge.py:Longer", "--set", "then=3"), "did you mean 'than'"),
    ],
)
def test_wrong_arguments(run, assay, args, says):
    said = assay("verify", "run", *args)
    assert said.code == 2 and says in said.err


def test_ones_own(run):
    cases = [{"gold": 4, "answer": "4"}, {"gold": "4", "answer": "55555"}]

    def values(name, *args):
        return [r["value"] for r in run(f"mine_judge.py:{name}", cases, *args)[1]]

    assert values("reward") == [0.5, -0.5]
    assert values("batch", "--set", "batched=true") == [1.0, 5.0]
    assert values("pure") == [0.0, 0.0]
    assert values("Longer") == values("ready") == [0.0, 1.0]
    assert values("Longer", "--set", "than=0") == [1.0, 1.0]
    assert values("Plain", "--set", "value=0.5") == [0.5, 0.5]


def test_what_was_written_for_another_trainer(run):
    cases = [{"gold": "4", "answer": "4"}, {"gold": "4", "answer": "5"}]
    for name in ("compute_score", "trl_reward"):
        assert [r["value"] for r in run(f"mine_judge.py:{name}", cases)[1]] == [1.0, 0.0], name


def test_a_package_that_is_absent_is_one_error(run, monkeypatch):
    from assay.verify.text import schema

    monkeypatch.setattr(schema, "find_spec", lambda name: None)
    code, rows, err = run("json_schema", [{"gold": {"value": 1}, "answer": "1"}] * 3)
    assert (code, rows) == (1, []) and "pip install 'assay-rl[verify]'" in err and err.count("\n") == 1


def test_faults_are_rows(run):
    cases = [{"gold": 4, "answer": x} for x in ("raise", "4", "hang", "raise")]
    code, rows, _ = run("mine_judge.py:reward", cases, "--deadline", "0.5")
    assert code == 1  # an answer that hangs its judge has a verdict, the floor
    assert [(r["fault"], r["value"]) for r in rows] == [("verifier", None), ("none", 0.5), ("policy", 0.0), ("verifier", None)]
    assert rows[0]["error"] == "ValueError: no such thing" and rows[0]["components"] == {} and rows[0]["verdict"] is None
    assert "twice on the same answer" in rows[2]["error"] and "error" not in rows[1]


def test_what_a_verifier_imports_is_no_answers_time(run, tmp_path):
    code, rows, _ = run("mine_judge.py:Prepared", [{"gold": 4, "answer": "4"}])
    assert (code, rows[0]["value"]) == (0, 1.0)
    assert (tmp_path / "prepared").read_text().split()[0] == str(os.getpid())  # here, before any answer was read


def test_lines_are_judged_side_by_side_and_given_out_in_order(run, tmp_path):
    """The first three wait for each other; the rows behind them are judged meanwhile, and come after."""
    (tmp_path / "meets.py").write_text(
        "import os, time\n"
        "def reward(prompt, completion, row):\n"
        "    if row['answer'] == 'meet':\n"
        f"        open(os.path.join({str(tmp_path)!r}, 'here-' + completion), 'w').close()\n"
        f"        while sum(n.startswith('here-') for n in os.listdir({str(tmp_path)!r})) < 3: time.sleep(0.01)\n"
        "    return float(completion)\n"
    )
    rows = [{"gold": "meet" if n in (0, 9, 20) else "", "answer": str(n)} for n in range(40)]
    code, found, err = run("meets.py:reward", rows, "--workers", "3", "--deadline", "30")
    assert (code, [r["value"] for r in found]) == (0, [float(n) for n in range(40)])
    assert err == "assay: calls reward(prompt, completion, row), once for each answer\n"


def test_programs_are_judged_on_every_core(run, monkeypatch):
    made = []

    class Counted(Judges):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self.many)

    monkeypatch.setattr(verify_lines, "Judges", Counted)
    monkeypatch.setattr(verify_lines, "cores", lambda: 3)
    gold = {"tests": [{"stdin": "", "stdout": "1"}]}
    code, rows, _ = run("code_output", [{"gold": gold, "answer": f"print({n})"} for n in (1, 2)])
    assert (code, [r["value"] for r in rows]) == (0, [1.0, 0.0])
    run("code_output", [], "--workers", "2")
    run("exact", [])
    run("exact", [], "--workers", "2")
    assert made == [3, 2, 1, 2]


def test_what_cannot_be_given_out_ends_the_work():
    """As when nobody reads the output any longer."""

    def give(row):
        given.append(row["value"])
        if len(given) == 3:
            raise BrokenPipeError

    given, lines = [], [json.dumps({"gold": "x", "answer": "x"})] * 100_000
    with Judges(ExactMatch(), 5.0, 2, None) as judges, pytest.raises(BrokenPipeError):
        judge_lines(judges, lines, "here", give)
    assert given == [1.0] * 3


def test_an_interrupt_does_not_wait_for_who_hangs():
    def lines():
        yield json.dumps({"gold": "x", "answer": "x"})
        raise KeyboardInterrupt

    hanging = RewardFunction(lambda prompt, completion, row: time.sleep(3600))
    with pytest.raises(KeyboardInterrupt), Judges(hanging, 3600.0, 2, None) as judges:
        judge_lines(judges, lines(), "here", lambda row: None)


def test_a_fault_without_a_word_is_a_row_with_one(run):
    code, rows, err = run("mine_judge.py:silent", [{"gold": 4, "answer": "4"}])
    assert code == 1 and rows[0]["error"] == "a verifier fault, without a word on why" and rows[0]["error"] in err


def test_cases_may_come_through_a_pipe(assay, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text('{"gold": 4, "answer": "4"}'))
    writer.start()
    said = assay("verify", "run", "numeric", "pipe")
    writer.join()
    assert said.code == 0 and json.loads(said.out)["value"] == 1.0
    assert assay("verify", "run", "numeric", ".").code == 2


def test_hanging_from_the_start_is_a_row_too(run):
    code, rows, _ = run("mine_judge.py:reward", [{"gold": 4, "answer": "hang"}, {"gold": 4, "answer": "4"}], "--deadline", "0.3")
    assert code == 0 and [r["fault"] for r in rows] == ["policy", "none"]


def test_tasks(run):
    sort = family("sort")
    task = sort.task("sort", 3, "train", 7)
    rows = [{"task": task.id, "answer": task.private["answer"]}, {"task": task.id, "answer": "0"}]
    assert [r["value"] for r in run("exact", rows, "--family", "sort")[1]] == [1.0, 0.0]
    for wrong in ("sort/sort/3/train", "other/sort/3/train/7", "sort/sort/x/train/7", "sort/sort/99/train/7"):
        code, judged, err = run("exact", [{"task": wrong, "answer": ""}, rows[0]], "--family", "sort")
        assert code == 1 and wrong in err and wrong in judged[0]["error"] and judged[1]["value"] == 1.0
    written = {"public": {"prompt": "2+2="}, "private": {"answer": "4"}, "level": 2}
    assert run("exact", [{"task": written, "answer": "4"}])[1][0]["value"] == 1.0
    own = {"prompt": "2+2=", "private": {"answer": 4}}
    assert run("mine_judge.py:reward", [{"task": own, "answer": "4"}])[1][0]["value"] == 0.5
    assert {f.name for f in fields(type(task))} == {
        "id",
        "domain",
        "arm",
        "level",
        "split",
        "index",
        "public",
        "world",
        "private",
    }

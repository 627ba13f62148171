"""`assay verify audit`: a table, a page, JSON, and an exit status that a pipeline can trust."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from assay.core.errors import SandboxError
from assay.sandbox import Sandbox

REWARD = """
def reward(prompt, completion, row):
    return float(completion.strip() == row["answer"])

def lax(prompts, completions, answer, **columns):
    return [float(s in c) for s, c in zip(answer, completions)]

def chatty(completions, key, **columns):
    return [float(c[0]["content"].strip() == k) for c, k in zip(completions, key)]

def marked(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str.split("####")[-1].strip() == ground_truth and "####" in solution_str)
"""
FAST = ("--skip", "determinism,order,threads,latency", "--items", "3", "--deadline", "20", "--no-sandbox")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "my_rewards.py").write_text(REWARD)
    rows = [{"gold": g, "prompt": f"{g} = ?"} for g in ("ab", "cd", "ef", "gh")]
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "marked.jsonl").write_text('{"gold": "12", "prompt": "9 + 3"}\n{"gold": "15", "prompt": "9 + 6"}\n')


def test_a_built_in_verifier_passes(assay, files) -> None:
    said = assay("verify", "audit", "exact", *FAST)
    assert said.code == 0, said.out
    assert "accepts the gold as given (3 answers)" in said.out
    assert "result     passed" in said.out


@pytest.mark.slow
def test_a_reward_that_accepts_too_much_fails_and_says_where(assay, files, tmp_path) -> None:
    said = assay("verify", "audit", "my_rewards.py:lax", "--cases", "cases.jsonl", *FAST, "--html", "audit.html")
    assert said.code == 1
    assert "hedge (several answers, one of them right): 15/15" in said.out
    assert "    gold '" in said.out
    assert "failed: wrong_answers" in said.out
    assert "written: audit.html" in said.err
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "Over its threshold: wrong_answers" in page
    lax = ("my_rewards.py:lax", "--cases", "cases.jsonl", "--items", "2", "--deadline", "20", "--no-sandbox")
    known = "near,echo,options,hedge,two_boxes,negated,bytes_around"
    assert assay("verify", "audit", *lax, "--skip", "determinism,order,threads,tricks", "--inform", known).code == 0
    assert assay("verify", "audit", *lax, "--skip", "determinism,order,threads", "--max-fp", "1.0").code == 0


TWO = """
def right(completion, answer):
    return float(completion.strip() == answer)

def by_place(p, c, row):
    return right(c, row["answer"])

def unit(completion, answer, unit="cm"):
    return right(completion, answer) if unit == "m" else 0.0

def needs(completion, key):
    return 1.0
"""


@pytest.mark.slow
def test_a_function_is_called_as_training_calls_it(assay, tmp_path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"prompt": "{n}", "answer": "a{n}b", "unit": "m"}}\n' for n in range(3)))
    exact = ("--cases", "rows.jsonl", "--must", "whitespace", *FAST)
    for more in ((), ("--signature", "plain")):
        said = assay("verify", "audit", "two.py:right", *exact, *more)
        assert said.code == 0, said.out
        assert "called as  right(completion, answer), by name, once for each answer" in said.out
    assert assay("verify", "audit", "two.py:by_place", *exact).code == 0
    said = assay("verify", "audit", "two.py:unit", *exact)
    assert said.code == 0 and "unit(completion, answer, unit), by name" in said.out
    said = assay("verify", "audit", "two.py:needs", *exact)
    assert said.code == 2 and "takes 'key', which is none of prompt, completion, row and no field of the rows" in said.err


@pytest.mark.slow
def test_json(assay, files) -> None:
    said = assay("verify", "audit", "my_rewards.py:reward", "--cases", "cases.jsonl", "--against", "exact", *FAST, "--json")
    assert said.code == 1  # the one strips white space, the other does not
    found = said.json
    assert found["name"] == "my_rewards.py:reward" and found["against"] == "exact"
    assert {c["name"]: c["status"] for c in found["checks"]}["agreement"] == "fail"
    assert found["settings"]["items"] == 3


@pytest.mark.slow
def test_a_foreign_reward_is_contained_or_that_it_is_not_is_said(assay, files) -> None:
    short = ("--cases", "cases.jsonl", "--items", "1", "--deadline", "20", "--skip", f"{FAST[1]},tricks,payload")
    free = assay("verify", "audit", "my_rewards.py:reward", *short, "--no-sandbox")
    assert free.code == 0 and "warning: my_rewards.py:reward was judged without containment" in free.err
    try:
        Sandbox(workers=1).close()
    except SandboxError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)  # where root runs this, the sandbox's user is another
        Path(place, "mine.py").write_text(REWARD)
        held = assay("verify", "audit", f"{place}/mine.py:reward", *short, "--json")
    assert held.code == 0 and "warning" not in held.err, held.err
    assert held.json["isolation"].startswith(("strong", "landlock"))


@pytest.mark.slow
def test_how_a_function_is_called_can_be_said(assay, files) -> None:
    words = ("--cases", "cases.jsonl", *FAST, "--chat", "--gold", "key", "--signature", "trl")
    assert assay("verify", "audit", "my_rewards.py:chatty", *words).code == 0
    said = assay("verify", "audit", "my_rewards.py:marked", "--cases", "marked.jsonl", *FAST)
    assert said.code == 0, said.out
    assert "written as '#### {answer}'" in said.out


@pytest.mark.slow
def test_what_stops_its_judge_is_left_out(assay, files, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        "assay.audit.judge_probes._CHUNK", 4
    )  # a tenth of the answers is enough to see it, and each costs a process
    monkeypatch.setattr("assay.audit.judge_probes._MOST", 8)
    (tmp_path / "dies.py").write_text("import os\n\ndef reward(prompt, completion, row):\n    os._exit(1)\n")
    one = ("--skip", f"{FAST[1]},tricks,payload,wrong_answers", "--items", "1", "--deadline", "20", "--no-sandbox")
    said = assay("verify", "audit", "dies.py:reward", "--cases", "cases.jsonl", *one)
    assert said.code == 1
    assert " left out; written as" in said.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exct"], "did you mean 'exact'"),
        (["my_rewards.py:rewards"], "did you mean 'reward'"),
        (["my_rewards.py:reward"], "no cases of its own"),
        (["exact", "--cases", "none.jsonl"], "cannot read cases"),
        (["exact", "--skip", "ordr"], "did you mean 'order'"),
        (["exact", "--items", "0"], "items=0"),
        (["exact", "--html", "none/audit.html"], "there is no folder none"),
        (["exact", "--no-sandbox", "--backend", "strong"], "give one of them"),
        (["json:loads", "--cases", "cases.jsonl"], "no known signature"),
    ],
)
def test_usage(assay, files, words, said) -> None:
    got = assay("verify", "audit", *words)
    assert got.code == 2
    assert said in got.err


@pytest.mark.slow
def test_an_audit_needs_no_torch() -> None:
    words = ["verify", "audit", "exact", "--items", "1", "--skip", "determinism,payload,latency", "--deadline", "20"]
    code = f"import sys; from assay.cli import main; print(main({words!r}), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("\n0 False\n"), done.stdout + done.stderr


def test_a_task_family_is_audited_over_its_own_tasks(assay) -> None:
    said = assay("verify", "audit", "sort", *FAST)
    assert said.code == 0 and "accepts the gold as given (3 answers)" in said.out, said.err
    assert "warning" not in said.err
    assert "did you mean 'graphs/shortest_path'" in assay("verify", "audit", "graphs/shortst_path").err

"""Look-alikes of the rows that users hold: each is taken with a verifier that accepts right answers and refuses wrong ones, or
refused with the reason and the nearest route."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from assay.core.errors import DataError
from assay.tasks import judged_rows
from assay.tasks.exchange.forms import FORMS, Asked, Unsupported, route_of
from assay.tasks.exchange.forms.choice import options_shown
from assay.tasks.exchange.forms.route import as_json, nested_field, texts_in
from assay.tasks.exchange.forms.text import by_gold, is_formula, is_number
from assay.tasks.exchange.importing import ImportableRows, Importer, Rejected, Summary
from assay.verify.rollouts import rollout_of


def imported(raw: Mapping[str, Any], **settings: Any) -> dict[str, Any] | Rejected:
    (made,) = Importer(**settings).run([ImportableRows("rows", 1, raw)], Summary())
    return made


def scores(row: dict[str, Any], *texts: str) -> list[float]:
    source = judged_rows([row], test_share=0)
    ((arm, (level,)),) = source.arms().items()
    task = source.task(arm, level, "train", 0)
    return [source.verifier()(task, rollout_of(task, text, id=f"r{i}")).primary for i, text in enumerate(texts)]


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def verl(source: str, gold: Any, question: str = "What is it?", **more: Any) -> dict[str, Any]:
    return {
        "data_source": source,
        "prompt": chat(question),
        "ability": "x",
        "reward_model": {"style": "rule", "ground_truth": gold},
    } | more


SQUARE = "n = int(input())\nprint(n * n)"
DOUBLE = "def double(x):\n    return x * 2"
TWICE = "class Solution:\n    def twice(self, xs):\n        return [x * 2 for x in xs]"
PAIRS = {"inputs": ["2\n", "3\n"], "outputs": ["4\n", "9\n"]}
PARIS = ("Paris", "Lyon", "Nice", "Lille")

# name: (row, verifier, right answers, wrong answers)
TAKEN: dict[str, tuple[dict[str, Any], str, list[str], list[str]]] = {
    # ---- mathematics
    "GSM8K": (
        {"question": "2+3?", "answer": "Two and three.\n#### 5"},
        "math",
        ["So \\boxed{5}.", "5"],
        ["6", ""],
    ),
    "MATH": (
        {
            "problem": "Find $y$.",
            "solution": "Add to get $y=\\boxed{\\dfrac{\\sqrt{3}}{2}}$.",
            "level": "Level 5",
            "type": "Algebra",
        },
        "math",
        ["\\boxed{\\frac{\\sqrt3}{2}}", "$\\sqrt{3}/2$"],
        ["\\boxed{\\frac{\\sqrt3}{4}}", "Add to get y."],
    ),
    "MATH-500": (
        {
            "problem": "Polar form?",
            "solution": "We get $\\boxed{(3, 0)}$.",
            "answer": "(3, 0)",
            "subject": "Precalculus",
            "level": 2,
        },
        "math",
        ["\\boxed{(3,0)}"],
        ["\\boxed{(0,3)}"],
    ),
    "NuminaMath-CoT": (
        {
            "source": "olympiads",
            "problem": "p1?",
            "solution": "Hence $\\boxed{\\frac{7}{3}}$.",
            "messages": [*chat("p2?"), {"role": "assistant", "content": "Hence $\\boxed{\\frac{7}{3}}$."}],
        },
        "math",
        ["\\boxed{7/3}"],
        ["\\boxed{3/7}"],
    ),
    "NuminaMath-1.5": (
        {
            "problem": "p3?",
            "solution": "worked",
            "answer": "x^2+1",
            "problem_type": "Algebra",
            "question_type": "math-word-problem",
        },
        "math",
        ["\\boxed{x^2+1}"],
        ["\\boxed{x^2-1}"],
    ),
    "NuminaMath-1.5, choice": (
        {
            "problem": "Which? (A) 1 (B) 2 (C) 3",
            "solution": "w",
            "answer": "B",
            "problem_type": "Algebra",
            "question_type": "MCQ",
        },
        "choice",
        ["\\boxed{B}", "Answer: B"],
        ["\\boxed{C}"],
    ),
    "DAPO": (
        verl("math_dapo", "34", 'Solve. The last line of your response should be of the form "Answer: $Answer".'),
        "math",
        ["Answer: 34", "Answer: $34$"],
        ["Answer: 43"],
    ),
    "DeepScaleR": ({"problem": "p4?", "answer": "\\frac{1}{2}", "solution": "half"}, "math", ["\\boxed{0.5}"], ["\\boxed{2}"]),
    "Big-Math": (
        {"problem": "p5?", "answer": "12\\pi", "source": "big_math", "domain": ["Geometry"], "llama8b_solve_rate": 0.5},
        "math",
        ["\\boxed{12\\pi}"],
        ["\\boxed{12}"],
    ),
    "Skywork-OR1": (verl("train-math-numinamath1.5", '["\\\\frac{1}{2}"]'), "math", ["\\boxed{1/2}"], ["\\boxed{1/3}"]),
    "AIME": (
        {"ID": "1", "Problem": "", "problem": "p6?", "answer": 204, "data_source": "aime24"},
        "math",
        ["\\boxed{204}"],
        ["\\boxed{024}"],
    ),
    "DeepMath": (
        {"question": "p7?", "final_answer": "\\infty", "difficulty": 5, "r1_solution_1": "…"},
        "math",
        ["$\\infty$"],
        ["0"],
    ),
    "TRL, mathematics": ({"prompt": chat("p8?"), "solution": "$\\frac{63}{400}$"}, "math", ["\\boxed{63/400}"], ["\\boxed{63}"]),
    "a number": ({"prompt": "How many?", "ground_truth": "1,000"}, "math", ["1000", "\\boxed{1{,}000}"], ["100"]),
    # ---- multiple choice
    "MMLU": (
        {"question": "Capital of Italy?", "choices": ["Paris", "Rome"], "answer": 1, "subject": "geography"},
        "choice",
        ["B", "Rome", "The answer is (B)."],
        ["A", "Paris", "1"],
    ),
    "MMLU-Pro": (
        {
            "question_id": 1,
            "question": "Which?",
            "options": ["a cat", "a dog", "a cow"],
            "answer": "C",
            "answer_index": 2,
            "cot_content": "",
        },
        "choice",
        ["Answer: C", "a cow"],
        ["Answer: A"],
    ),
    "options with a letter": (
        {"question": "Capital of Italy?", "options": ["Paris", "Rome"], "answer": "B"},
        "choice",
        ["B", "Rome"],
        ["A"],
    ),
    "GPQA": (
        {
            "Question": "Capital of France?",
            "Correct Answer": PARIS[0],
            "Incorrect Answer 1": PARIS[1],
            "Incorrect Answer 2": PARIS[2],
            "Incorrect Answer 3": PARIS[3],
        },
        "choice",
        ["Paris"],
        ["Lyon", "Nice", "Lille"],
    ),
    "SciQ": (
        {
            "question": "What is H2O?",
            "correct_answer": "water",
            "distractor1": "air",
            "distractor2": "salt",
            "distractor3": "iron",
            "support": "...",
        },
        "choice",
        ["water"],
        ["air"],
    ),
    "ARC": (
        {"id": "a", "question": "Hot?", "choices": {"text": ["ice", "fire"], "label": ["A", "B"]}, "answerKey": "B"},
        "choice",
        ["B"],
        ["A"],
    ),
    "ARC, numbered": (
        {"id": "a", "question": "Hot?", "choices": {"text": ["ice", "fire"], "label": ["1", "2"]}, "answerKey": "2"},
        "choice",
        ["B", "fire"],
        ["A"],
    ),
    "OpenBookQA": (
        {"question_stem": "Hot?", "choices": [{"label": "A", "text": "ice"}, {"label": "B", "text": "fire"}], "answerKey": "A"},
        "choice",
        ["A"],
        ["B"],
    ),
    "MedQA": (
        {"question": "Which?", "options": {"A": "one drug", "B": "another"}, "answer_idx": "B", "answer": "another"},
        "choice",
        ["B"],
        ["A"],
    ),
    "AQuA": (
        {"question": "n?", "options": ["A)21", "B)22", "C)23"], "rationale": "…", "correct": "C"},
        "choice",
        ["C", "23"],
        ["A"],
    ),
    "RACE": (
        {"article": "It was red.", "question": "Colour?", "options": ["red", "blue"], "answer": "A"},
        "choice",
        ["A"],
        ["B"],
    ),
    "ReClor": (
        {"context": "All owls fly.", "question": "What follows?", "answers": ["owls swim", "owls fly"], "label": 0},
        "choice",
        ["A", "owls swim"],
        ["B", "owls fly"],
    ),
    "an index of another name": (
        {"question": "Which one?", "answers": ["first", "second"], "correct_answer_index": 0},
        "choice",
        ["A", "first"],
        ["B"],
    ),
    "HellaSwag": ({"ctx": "He runs and", "endings": ["falls.", "flies."], "label": "0"}, "choice", ["A"], ["B"]),
    "CMMLU": (
        {"Question": "2+2?", "A": "3", "B": "4", "C": "5", "D": 6, "Answer": "B", "": "7"},
        "choice",
        ["B", "(B)"],
        ["A", "3", "C"],
    ),
    "C-Eval": (
        {"id": 1, "question": "Which?", "a": "red", "b": "blue", "c": "green", "answer": "c", "explanation": ""},
        "choice",
        ["C", "green"],
        ["A", "red"],
    ),
    "MedMCQA": (
        {"question": "Which?", "opa": "liver", "opb": "lung", "opc": "skin", "opd": "eye", "cop": 0, "exp": "so"},
        "choice",
        ["A", "liver"],
        ["B", "lung"],
    ),
    "columns with prefixes and the text of one": (
        {"question": "Which?", "Option A": "liver", "Option B": "lung", "Option C": "skin", "answer": "skin", "a": "x"},
        "choice",
        ["C", "skin"],
        ["B", "lung"],
    ),
    "numbers in columns that are no options": (
        {"question": "a + b + c?", "a": 1, "b": 2, "c": 3, "answer": 6},
        "math",
        ["6"],
        ["3"],
    ),
    "a letter under options": ({"prompt": "Which?\nA. red\nB. blue", "answer": "B"}, "choice", ["B", "(B)"], ["A"]),
    # ---- programs
    "HumanEval": (
        {
            "task_id": "HumanEval/0",
            "prompt": "def double(x):\n    '''Twice x.'''\n",
            "canonical_solution": "    return x * 2\n",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
            "entry_point": "double",
        },
        "unit_tests",
        [f"```python\n{DOUBLE}\n```"],
        ["```python\ndef double(x):\n    return x + 2\n```"],
    ),
    "MBPP": (
        {
            "task_id": 2,
            "text": "Double a number.",
            "code": DOUBLE,
            "test_list": ["assert double(2) == 4", "assert double(5) == 10"],
            "test_setup_code": "import math",
            "challenge_test_list": [],
        },
        "unit_tests",
        [DOUBLE],
        ["def double(x):\n    return 4"],
    ),
    "MBPP, sanitized": (
        {
            "task_id": 2,
            "prompt": "Double a number.",
            "code": DOUBLE,
            "test_imports": ["import math"],
            "test_list": ["assert double(2) == 4"],
        },
        "unit_tests",
        [DOUBLE],
        ["def double(x): return 5"],
    ),
    "APPS, standard input": (
        {
            "problem_id": 0,
            "question": "Square it.",
            "solutions": json.dumps([SQUARE]),
            "input_output": json.dumps(PAIRS),
            "difficulty": "interview",
            "starter_code": "",
        },
        "code_output",
        [SQUARE],
        ["print(4)"],
    ),
    "APPS, a function": (
        {
            "question": "Twice.",
            "solutions": json.dumps([TWICE]),
            "starter_code": "class Solution:\n    def twice(self, xs):",
            "input_output": json.dumps({"fn_name": "twice", "inputs": [[[1, 2]], [[5]]], "outputs": [[[2, 4]], [[10]]]}),
        },
        "code_call",
        [TWICE],
        ["class Solution:\n    def twice(self, xs):\n        return xs"],
    ),
    "LiveCodeBench": (
        {
            "question_title": "Square",
            "question_content": "Square it.",
            "platform": "atcoder",
            "starter_code": "",
            "metadata": "{}",
            "public_test_cases": json.dumps([{"input": "3\n", "output": "9", "testtype": "stdin"}]),
            "private_test_cases": base64.b64encode(b"pickled").decode(),
        },
        "code_output",
        [SQUARE],
        ["print(6)"],
    ),
    "LiveCodeBench, a function": (
        {
            "question_content": "Twice.",
            "starter_code": "class Solution:\n    def twice(self, xs):",
            "metadata": '{"func_name": "twice"}',
            "public_test_cases": json.dumps([{"input": "[1, 2]", "output": "[2, 4]", "testtype": "functional"}]),
            "private_test_cases": json.dumps([{"input": "[7]", "output": "[14]", "testtype": "functional"}]),
        },
        "code_call",
        [TWICE],
        ["class Solution:\n    def twice(self, xs):\n        return [2, 4]"],
    ),
    "CodeContests": (
        {
            "name": "square",
            "description": "Square it.",
            "public_tests": {"input": ["2\n"], "output": ["4\n"]},
            "private_tests": {"input": ["3\n"], "output": ["9\n"]},
            "generated_tests": {"input": [], "output": []},
            "solutions": {"language": [2, 3], "solution": ["int main() {}", SQUARE]},
        },
        "code_output",
        [SQUARE],
        ["print(4)"],
    ),
    "verl, code": (verl("codecontests", json.dumps(PAIRS)), "code_output", [SQUARE], ["print(9)"]),
    "verification_info": (
        {
            "prompt": "Square it.",
            "gold_standard_solution": f"```python\n{SQUARE}\n```",
            "verification_info": json.dumps(
                {"language": "python", "test_cases": [{"type": "stdin_stdout", "input": "2", "output": "4"}]}
            ),
        },
        "code_output",
        [SQUARE],
        ["print(5)"],
    ),
    "verification_info, calls": (
        {
            "prompt": "Double it.",
            "verification_info": json.dumps(
                {
                    "language": "python",
                    "test_cases": [{"type": "function_call", "fn_name": "double", "input": [2], "output": [4]}],
                }
            ),
        },
        "code_call",
        [DOUBLE],
        ["def double(x): return x"],
    ),
    # ---- Guru / Reasoning360
    "Guru, math": (verl("math__deepscaler_preview", "12"), "math", ["\\boxed{12}"], ["\\boxed{13}"]),
    "Guru, leetcode": (
        verl(
            "codegen__deduped_leetcode2k",
            json.dumps({"functional": "def check(f):\n    assert f([1]) == [2]\n\ncheck(Solution().twice)"}),
            extra_info={"reference": TWICE, "prefix": "import math\n", "index": 0},
        ),
        "unit_tests",
        [TWICE],
        ["class Solution:\n    def twice(self, xs):\n        return xs"],
    ),
    "Guru, taco": (verl("codegen__deduped_taco", json.dumps(PAIRS)), "code_output", [SQUARE], ["print(1)"]),
    "Guru, codeio": (
        verl("simulation__codeio", '"output": {"n": 3}'),
        "json",
        ['So <answer>{"output": {"n": 3}}</answer>'],
        ['<answer>{"output": {}}</answer>'],
    ),
    "Guru, arc": (
        verl("simulation__arcagi1", [[1, 2], [0, 1]]),
        "grid",
        ["<answer>[[1, 2], [0, 1]]</answer>"],
        ["<answer>[[1, 2], [0, 0]]</answer>"],
    ),
    "Guru, zebra": (
        verl("logic__zebra_puzzle_dataset", {"header": ["Position", "Pet"], "rows": [["1", "cat"], ["2", "dog"]]}),
        "json",
        ['<answer>{"header": ["Position", "Pet"], "rows": [["1", "cat"], ["2", "dog"]]}</answer>'],
        ['<answer>{"header": ["Position", "Pet"], "rows": [["1", "dog"], ["2", "cat"]]}</answer>'],
    ),
    "Guru, ordering": (
        verl("logic__ordering_puzzle_dataset", ["owl", "jay"]),
        "list",
        ["<answer>['owl', 'jay']</answer>", "<answer>owl, jay</answer>"],
        ["<answer>jay, owl</answer>"],
    ),
    "Guru, graph": (verl("logic__graph_logical_dataset", "kvo"), "exact", ["<answer>Kvo</answer>"], ["<answer>kva</answer>"]),
    "Guru, hitab": (verl("table__hitab", "12|7.5"), "set", ["\\boxed{7.5|12}"], ["\\boxed{7.5}"]),
    "Guru, finqa": (verl("table__finqa", 0.125), "numeric", ["\\boxed{0.12501}", "12.5%"], ["\\boxed{0.13}"]),
    "Guru, multihier": (verl("table__multihier", "North"), "exact", ["\\boxed{north}"], ["\\boxed{south}"]),
    "Guru, supergpqa": (verl("stem__supergpqa", "D", "Which?\nA) 1\nB) 2\nC) 3\nD) 4"), "choice", ["\\boxed{D}"], ["\\boxed{A}"]),
    "Guru, stem with a number": (verl("stem_web", "9.8"), "math", ["\\boxed{9.8}"], ["\\boxed{8.9}"]),
    # ---- instructions, questions, SQL, repositories
    "IFEval": (
        {
            "key": 1,
            "prompt": "Write.",
            "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
            "kwargs": [{}, {"relation": "less than", "num_words": 4, "num_sentences": None}],
        },
        "constraints",
        ["one two three"],
        ["one, two", "one two three four"],
    ),
    "Guru, ifeval": (
        verl("ood__ifeval", [{"end_phrase": "the end"}], extra_info={"instruction_id_list": ["startend:end_checker"]}),
        "constraints",
        ["It is the end"],
        ["It ends"],
    ),
    "search-R1": (
        verl(
            "searchR1_nq",
            {"target": ["Rome", "Roma"]},
            "Capital? Answer inside <answer>.",
            golden_answers=["Rome", "Roma"],
            id="x",
        ),
        "exact",
        ["<answer>rome.</answer>", "<answer> Roma </answer>"],
        ["<answer>Paris</answer>", "Rome or Paris"],
    ),
    "HotpotQA": (
        {
            "id": "a",
            "question": "Same city?",
            "answer": "yes",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": {"title": []},
            "context": {"title": ["T"], "sentences": [["One. ", "Two."]]},
        },
        "exact",
        ["Answer: Yes"],
        ["Answer: no"],
    ),
    "HotpotQA, pairs": (
        {
            "question": "Who?",
            "answer": "Ann",
            "supporting_facts": [["T", 0]],
            "context": [["T", ["One. ", "Two."]], ["U", ["Three."]]],
        },
        "exact",
        ["Ann"],
        ["Bob"],
    ),
    "TriviaQA": (
        {"question": "Who?", "answer": {"value": "Ann Lee", "aliases": ["A. Lee", "Ann Lee"]}},
        "exact",
        ["A. Lee", "ann lee"],
        ["Bob"],
    ),
    "SQuAD": (
        {"context": "It was red.", "question": "Colour?", "answers": {"text": ["red", "Red"], "answer_start": [7, 7]}},
        "exact",
        ["the red"],
        ["blue"],
    ),
    "NQ": ({"question": "Who?", "answer": ["Ann", "Anna"], "data_source": "nq"}, "exact", ["Anna"], ["Bob"]),
    "SQL with its database": (
        {
            "db_id": "zoo",
            "question": "Names?",
            "query": "SELECT name FROM pets",
            "evidence": "name is the pet's",
            "database": {"schema": "CREATE TABLE pets (name TEXT)", "instances": [{"pets": [["a"], ["b"]]}, {"pets": [["c"]]}]},
        },
        "sql",
        ["SELECT name FROM pets ORDER BY name"],
        ["SELECT 1"],
    ),
    "a repository": (
        {
            "problem_statement": "Make it double.",
            "files": {"m.py": "def f(x):\n    return x\n"},
            "tests": [{"code": "import m", "value": "m.f(2)", "expected": 4}],
        },
        "swe",
        ["m.py\n<<<<<<< SEARCH\n    return x\n=======\n    return x * 2\n>>>>>>> REPLACE"],
        ["m.py\n<<<<<<< SEARCH\n    return x\n=======\n    return 3\n>>>>>>> REPLACE"],
    ),
    # ---- TRL and plain
    "TRL, a word": ({"prompt": chat("Sky?"), "ground_truth": "blue"}, "exact", ["blue", "Answer: Blue"], ["green"]),
    "yes or no": ({"question": "Is it?", "answer": True, "passage": "…"}, "exact", ["true", "Answer: True"], ["False"]),
}


@cache
def taken() -> dict[str, dict[str, Any] | Rejected]:
    """All of them as they are imported: together, but for those that ask the same, which come in the next round."""
    out: dict[str, dict[str, Any] | Rejected] = {}
    while rest := [form for form in TAKEN if form not in out]:
        made = Importer().run([ImportableRows(form, 1, TAKEN[form][0]) for form in rest], Summary())
        out |= {
            f: m for f, m in zip(rest, made, strict=True) if not (isinstance(m, Rejected) and m.step in ("repeated", "differing"))
        }
    return out


@pytest.mark.parametrize("form", TAKEN)
def test_rows_are_taken_with_a_verifier_that_tells_answers_apart(form: str) -> None:
    _, verifier, right, wrong = TAKEN[form]
    row = taken()[form]
    assert not isinstance(row, Rejected), row.reason
    spec = row["verifier"]
    assert (spec if isinstance(spec, str) else spec["name"]) == verifier
    assert scores(row, *right) == [1.0] * len(right)
    assert all(score < 1.0 for score in scores(row, *wrong))


UNSUPPORTED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a proof": (
        {"problem": "Show.", "solution": "Clear.", "answer": "proof", "problem_type": "Algebra"},
        "no final value",
        "math",
    ),
    "a solution without a box": (
        {"problem": "p9?", "solution": "Thus it is so.", "source": "olympiads"},
        "no final value|words|box",
        "",
    ),
    "no box, known source": ({"problem": "p10?", "solution": "Thus \\boxed{", "problem_type": "Algebra"}, "box", "math"),
    "several answers": (verl("train-math-x", '["1", "2"]'), "no single answer", "math"),
    "a long gold of mathematics": (verl("math_dapo", "so " * 60), "no final answer", "math"),
    "options without a gold": ({"question": "q", "choices": ["a", "b"]}, "no field says which is right", "choice"),
    "a gold beyond the options": ({"question": "q", "choices": ["a", "b"], "answer": 4}, "names none of the 2 options", "choice"),
    "a gold that is no option": ({"question": "q", "choices": ["a", "b"], "answer": {"x": 1}}, "names none", "choice"),
    "options that are none": ({"question": "q", "choices": [["a"], ["b"]], "answer": 0}, "no list of 2 to 26 texts", "choice"),
    "a letter without options": (
        {"prompt": "Which?", "answer": "B"},
        "answer 'B' is a letter and the row has no options",
        "choice",
    ),
    "columns with a gap": (
        {"question": "q", "A": "x", "B": "y", "D": "z", "answer": "D"},
        "columns A, B, D, without C",
        "choice",
    ),
    "several letters of columns": (
        {"question": "q", "A": "x", "B": "y", "C": "z", "answer": "AC"},
        "'answer' is 'AC', which names none of the 3",
        "choice",
    ),
    "columns of which none is right": (
        {"question": "q", "A": "x", "B": "y", "C": "z"},
        "'A' has 3 options, and no field says which is right",
        "choice",
    ),
    "a number of an option from 0 or 1": (
        {"question": "q", "choices": ["x", "y", "z"], "label": 1},
        "'label' is 1, which names one option counted from 0, another counted from 1",
        "--option-base",
    ),
    "equal options": ({"question": "q", "choices": ["a", "A"], "answer": 0}, "the same text", "choice"),
    "equal distractors": ({"question": "q", "correct_answer": "a", "distractor1": "a"}, "the same text", "choice"),
    "tests of another language": (
        {"prompt": "q", "verification_info": {"language": "rust", "test_cases": [{"input": "1", "output": "1"}]}},
        "'rust'",
        "code_output",
    ),
    "tests of another form": ({"question": "q", "input_output": '{"in": 1}'}, "of a form that is not known", "code_call"),
    "tests of a function without a name": (
        {"question_content": "q", "public_test_cases": '[{"input": "1", "output": "1", "testtype": "functional"}]'},
        "nothing names",
        "code_call",
    ),
    "code whose tests are text": (verl("codegen__taco", "see the site"), "of a form that is not known", "code_output"),
    "arguments that are no JSON": (
        {"question": "q", "input_output": '{"fn_name": "f", "inputs": ["x y"], "outputs": [1]}'},
        "not known",
        "code_call",
    ),
    "inputs without outputs": ({"question": "q", "input_output": '{"inputs": ["1"], "outputs": []}'}, "not known", "code_output"),
    "inputs that are tables": (
        {"question": "q", "input_output": '{"inputs": [{"a": 1}], "outputs": ["1"]}'},
        "not known",
        "code_output",
    ),
    "cruxeval": (verl("simulation__cruxeval-o", '{"functional": "def f(): pass"}'), "an assertion", "json"),
    "KodCode with pytest": (
        {"question": "q", "solution": DOUBLE, "test": "import pytest\n\ndef test_it():\n    assert double(1) == 2"},
        "test framework",
        "unit_tests",
    ),
    "SWE-bench": (
        {
            "repo": "a/b",
            "base_commit": "1",
            "patch": "…",
            "test_patch": "…",
            "problem_statement": "It fails.",
            "FAIL_TO_PASS": "[]",
        },
        "a/b at its commit",
        "swe",
    ),
    "Spider": ({"db_id": "zoo", "question": "Names?", "query": "SELECT name FROM pets"}, "the rows of zoo are not there", "sql"),
    "BIRD": ({"db_id": "zoo", "question": "Names?", "SQL": "SELECT 1", "evidence": ""}, "not there", "sql"),
    "sql-create-context": (
        {"question": "Names?", "context": "CREATE TABLE t (a INT)", "answer": "SELECT a FROM t"},
        "not there",
        "sql",
    ),
    "a pair": ({"prompt": "q", "chosen": "a", "rejected": "b"}, "chosen and a rejected", "Prefer"),
    "a judged completion": ({"prompt": "q", "completion": "a", "label": True}, "no gold", "Prefer"),
    "pictures": (
        {"problem": "<image> What?", "images": [{"bytes": "…"}], "answer": "3", "data_source": "hiyouga/geometry3k"},
        "pictures",
        "text",
    ),
    "IFBench": (
        {"prompt": "q", "instruction_id_list": ["count:word_count_range"], "kwargs": [{"min_words": 3}]},
        "count:word_count_range",
        "constraints",
    ),
    "a language": (
        {"prompt": "q", "instruction_id_list": ["language:response_language"], "kwargs": [{"language": "de"}]},
        "language",
        "constraints",
    ),
    "instructions without settings": (
        {"prompt": "q", "instruction_id_list": ["punctuation:no_comma"]},
        "no table of settings",
        "constraints",
    ),
    "settings of another name": (
        {"prompt": "q", "instruction_id_list": ["keywords:existence"], "kwargs": [{"words": ["a"]}]},
        "has the settings",
        "constraints",
    ),
    "RLVR-IF": ({"messages": chat("q"), "ground_truth": '{"func_name": "verify_x", "N": 1}'}, "verify_x", "constraints"),
    "LiveBench": (verl("ood__livebench", "x"), "scoring program", "route"),
    "Guru, reasoning_gym": (verl("reasoning_gym", "x"), "not in the row", "reasoning_gym"),
    "Guru, stem in words": (verl("stem_web", "conservation of energy"), "a model compares", "exact"),
    "Guru, another logic": (verl("logic__new", {"a": 1}), "not known there", "verifier"),
    "a value with its unit": ({"prompt": "q", "answer": {"value": 3, "unit": "m"}}, "nothing says what that is", "json"),
    "a list": ({"prompt": "q", "answer": ["a", "b"]}, "any order", "set"),
    "a table": ({"prompt": "q", "answer": {"a": 1}}, "nothing says what that is", "json"),
    "an essay": (
        {"prompt": "q", "answer": "It is a long story that no one tells twice in the same words."},
        "word by word",
        "Imitate",
    ),
    "a demonstration": (
        {"messages": [*chat("q"), {"role": "assistant", "content": "First this.\nThen that."}]},
        "word by word",
        "Imitate",
    ),
}


@pytest.mark.parametrize("form", UNSUPPORTED)
def test_other_rows_are_refused_with_the_nearest_route(form: str) -> None:
    raw, reason, nearest = UNSUPPORTED[form]
    made = imported(raw)
    assert isinstance(made, Rejected), made
    assert made.step == "unsupported"
    said, _, near = made.reason.partition("; nearest: ")
    assert re.search(reason, said), said
    assert near and nearest in near, near


def test_no_form_is_taken_as_a_text_that_must_be_recited() -> None:
    """The gold of nothing but a short text is compared as text."""
    for form, (_, verifier, _, _) in TAKEN.items():
        row = taken()[form]
        assert not isinstance(row, Rejected)
        if verifier == "exact":
            golds = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
            assert all(len(str(g).split()) <= 8 for g in golds), form
            assert row["verifier"]["where"] == "auto", form


# ---- what is put to the policy ----------------------------------------------------------------------------------------


def asked(form: str) -> str:
    row = taken()[form]
    assert not isinstance(row, Rejected)
    return str(row["prompt"] if "prompt" in row else row["messages"][-1]["content"])


def test_options_stand_in_the_question() -> None:
    assert asked("MMLU") == "Capital of Italy?\nA. Paris\nB. Rome"
    assert asked("a letter under options").count("red") == 1
    assert asked("RACE") == "It was red.\n\nColour?\nA. red\nB. blue"
    assert asked("AQuA").endswith("\nA. 21\nB. 22\nC. 23")
    assert asked("HellaSwag").startswith("He runs and\nA. falls.")
    shown = {"question": "Hot?\n(A) ice\n(B) fire", "choices": ["ice", "fire"], "answer": 1}
    row = imported(shown, option_base=0)
    assert not isinstance(row, Rejected) and row["prompt"] == shown["question"]
    assert asked("CMMLU") == "2+2?\nA. 3\nB. 4\nC. 5\nD. 6"
    assert options_shown("A: ice B: fire", {"A": "ice", "B": "fire"}) and not options_shown("ice", {"A": "ice"})


def test_an_order_of_options_is_the_questions_own() -> None:
    first, again = asked("GPQA"), asked("GPQA")
    assert first == again and all(f". {city}" in first for city in PARIS)
    orders = set()
    for i in range(12):
        raw = {**TAKEN["GPQA"][0], "Question": f"Capital of France, take {i}?"}
        row = imported(raw)
        assert not isinstance(row, Rejected)
        orders.add(row["answer"]["answer"])
    assert len(orders) > 2


def test_contexts_and_starters_stand_before_and_behind() -> None:
    assert asked("HotpotQA") == "T\nOne. Two.\n\nSame city?"
    assert asked("HotpotQA, pairs") == "T\nOne. Two.\n\nU\nThree.\n\nWho?"
    assert asked("SQuAD") == "It was red.\n\nColour?"
    assert asked("APPS, a function").endswith("Complete this:\n```python\nclass Solution:\n    def twice(self, xs):\n```")
    assert asked("MBPP") == "Double a number.\nYour code should pass:\nimport math\nassert double(2) == 4".replace(
        "import math\n", ""
    )
    assert asked("SQL with its database") == "Names?\nname is the pet's"
    assert asked("CodeContests") == "Square it."


def test_levels_and_arms_that_rows_cannot_hold_are_kept_under_other_names() -> None:
    row = imported(TAKEN["MATH"][0])
    assert not isinstance(row, Rejected) and row["level"] == 5 and row["type"] == "Algebra"
    hard = imported(TAKEN["HotpotQA"][0] | {"arm": 3})
    assert not isinstance(hard, Rejected) and hard["source_level"] == "hard" and hard["source_arm"] == 3
    assert "level" not in hard and "arm" not in hard
    both = imported({"prompt": "Sky?", "messages": chat("Sky?"), "answer": "blue"})
    assert not isinstance(both, Rejected) and "messages" not in both and scores(both, "blue") == [1.0]


def test_settings_of_the_user_come_first() -> None:
    raw = {"question": "Capital?", "choices": ["Paris", "Rome"], "answer": 1, "key": "Rome"}
    row = imported(raw, verifier="exact", gold="key")
    assert not isinstance(row, Rejected) and row["verifier"] == "exact" and row["answer"] == "Rome"
    other = imported({"question": "q?", "choices": ["x", "y"], "answer": 1, "key": "x"}, gold="key")
    assert not isinstance(other, Rejected) and other["answer"]["answer"] == "A"
    routed = imported({"prompt": "p", "answer": "a long text " * 9, "data_source": "x"}, routes={"x": "exact"})
    assert not isinstance(routed, Rejected) and routed["verifier"] == "exact"
    own = imported({"prompt": "p", "answer": {"a": 1}, "verifier": "json"})
    assert not isinstance(own, Rejected)


def letters(*rows: dict[str, Any], **settings: Any) -> list[str]:
    """The letters that rows of one file are given, "" for a refused one."""
    found = [ImportableRows("f", n, {"question": f"q{n}", **row}) for n, row in enumerate(rows, 1)]
    made = list(Importer(**settings).run(found, Summary()))
    return ["" if isinstance(row, Rejected) else row["answer"]["answer"] for row in made]


def test_the_rows_of_a_file_tell_together_what_numbers_of_options_count_from() -> None:
    def rows(*labels: int | str, field: str = "label") -> list[dict[str, Any]]:
        return [{"options": ["red", "blue", "green", "grey"], field: label} for label in labels]

    assert letters(*rows(1, 2, 3, 4)) == letters(*rows("1", "2", "3", "4")) == ["A", "B", "C", "D"]
    assert letters(*rows(1, 2, 3, 0)) == ["B", "C", "D", "A"]
    assert letters(*rows(1, 2, 3)) == ["", "", ""]
    assert letters(*rows(1, 2, 3), option_base=1) == ["A", "B", "C"]
    assert letters(*rows(1, 2, 3), option_base=0) == ["B", "C", "D"]
    assert letters(*rows(1, 4, 0, 9, -1)) == ["B", "", "A", "", ""]
    assert letters(*rows(2, 4, field="right"), gold="right") == ["B", "D"]
    assert letters({"A": "red", "B": "blue", "C": "grey", "answer": 3}, {"A": "x", "B": "y", "C": "z", "answer": 1}) == ["C", "A"]
    assert letters({"options": ["1", "2", "3"], "answer": 3}, {"options": ["x", "y", "z"], "answer": 0}) == ["", "A"]
    assert letters({"options": ["2", "3", "4"], "answer": "3"}) == ["B"]


def test_files_count_options_each_for_itself() -> None:
    found = [
        ImportableRows(place, 1, {"question": place, "choices": ["x", "y"], "label": label})
        for place, label in (("from 1", 2), ("from 0", 0), ("unknown", 1))
    ]
    made = list(Importer().run([found[0], ImportableRows("from 1", 2, None, "no JSON"), *found[1:]], Summary()))
    said = [row.step if isinstance(row, Rejected) else row["answer"]["answer"] for row in made]
    assert said == ["B", "read", "A", "unsupported"]


# ---- parts ------------------------------------------------------------------------------------------------------------


def test_every_form_says_what_it_does_not_know() -> None:
    nothing = Asked(question="q", gold="blue", solution="", source="rows")
    assert [form({"prompt": "q", "answer": "blue"}, nothing) for form in FORMS] == [None] * len(FORMS)
    assert route_of({"prompt": "q"}, nothing).verifier["name"] == "exact"  # type: ignore[index]


@pytest.mark.parametrize(
    "name", ["length_constraints:number_sentences", "keywords:frequency", "change_case:capital_word_frequency"]
)
def test_every_instruction_makes_a_constraint(name: str) -> None:
    from assay.tasks.exchange.forms import other
    from assay.verify.constraints import constraint_of

    given = {
        "relation": "at least",
        "num_words": 3,
        "num_sentences": 2,
        "num_paragraphs": 3,
        "nth_paragraph": 1,
        "first_word": "so",
        "keywords": ["a"],
        "forbidden_words": ["b"],
        "keyword": "a",
        "frequency": 2,
        "letter": "c",
        "let_frequency": 2,
        "let_relation": "less than",
        "num_placeholders": 1,
        "postscript_marker": "P.S.",
        "num_bullets": 2,
        "num_highlights": 1,
        "section_spliter": "Part",
        "num_sections": 2,
        "prompt_to_repeat": "p",
        "end_phrase": "end",
        "capital_frequency": 2,
        "capital_relation": "at least",
    }
    for known, made in other._CONSTRAINTS.items():
        assert constraint_of(made(given)).describe(), known
    assert name in other._CONSTRAINTS


def test_kinds_of_golds() -> None:
    for gold in ("x+y=2", "\\text{yes}", "{1, 2}", "3\\sqrt{2}", "-0.5", "90^\\circ", "2^{10}", "(-\\infty, 3]", "3/4", "15%"):
        assert is_number(gold) or is_formula(gold), gold
    for gold in ("yes", "A", "Ann Lee", "New York", "red, blue", "it's 5 of them", "B2B sales", "C++"):
        assert not is_number(gold), gold
        assert not is_formula(gold) or gold in ("C++",), gold
    with pytest.raises(Unsupported):
        by_gold(Asked(question="q", gold=None, solution="", source="rows"))
    assert by_gold(Asked(question="Pick a letter.", gold="Z", solution="", source="rows")).form == "text"
    with pytest.raises(Unsupported, match="answer 'A' is a letter and the row has no options"):
        by_gold(Asked(question="Pick a letter.", gold="A", solution="", source="rows"))


def test_small_parts() -> None:
    assert as_json("[1") == "[1" and as_json("x") == "x" and as_json((1, 2)) == [1, 2] and as_json('{"a": 1}') == {"a": 1}
    assert nested_field({"a": {"b": 1}}, "a", "b") == 1 and nested_field({"a": 1}, "a", "b") is None
    assert texts_in(["a", 1]) == ["a", "1"] and texts_in([]) is None and texts_in("ab") is None and texts_in([{}]) is None
    with pytest.raises(DataError, match="no question"):
        Importer().row_of({"answer": "blue"})


def test_golds_of_options_in_other_words() -> None:
    def letter(answer: Any, options: Any = ("red", "blue")) -> str:
        row = imported({"question": f"Which of {options}?", "choices": options, "answer": answer})
        return row.reason if isinstance(row, Rejected) else str(row["answer"]["answer"])

    assert letter(["B"], ["red", "blue"]) == "B"
    assert letter("B) blue", ["red", "blue"]) == "B"
    assert letter("(b)", ["red", "blue"]) == "B"
    assert letter("2", {"1": "red", "2": "blue"}) == "B"
    assert "names none" in letter("green", ["red", "blue"]) and "names none" in letter(True, ["red", "blue"])


def test_tests_in_other_forms() -> None:
    asserts = imported(verl("codegen__x", json.dumps({"assert_case": ["assert double(2) == 4"]})))
    assert not isinstance(asserts, Rejected) and scores(asserts, DOUBLE) == [1.0]
    listed = imported(verl("apps", json.dumps(["assert double(2) == 4", "assert double(3) == 6"])))
    assert not isinstance(listed, Rejected) and listed["verifier"] == "unit_tests"
    named = imported({"question": "q?", "input_output": {"fn_name": "f", "inputs": [["x"]], "outputs": ["ab"]}})
    assert not isinstance(named, Rejected) and named["answer"]["tests"] == [{"args": ["x"], "expected": "ab"}]
    lines = imported({"question": "q?", "tests": [{"input": ["1", "2"], "output": ["3"]}]})
    assert not isinstance(lines, Rejected) and lines["answer"]["tests"] == [{"stdin": "1\n2", "stdout": "3"}]
    for value in ("[]x", [1, 2], [{"in": 1}], [{"input": 1, "output": 2}]):
        assert isinstance(imported(verl("apps", json.dumps(value))), Rejected)

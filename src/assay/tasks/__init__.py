"""What to practise: families of tasks whose answers a program can check, and users' own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.tasks.draws import Place, distinct, in_turn, redraw, slip
    from assay.tasks.judged import judged_rows, load_rows, verifier_of
    from assay.tasks.mixture import Mixture
    from assay.tasks.named_suites import suite, suites
    from assay.tasks.problem import Facts, Form, Problem, Solution
    from assay.tasks.problems import Problems
    from assay.tasks.programs import Foreign, ProgramTask, Scaled, scaled
    from assay.tasks.registry import Card, card, families, family, reseeded, written
    from assay.tasks.rows import Rows, load_jsonl
    from assay.tasks.single import SingleTurn
    from assay_tasks.gsm8k import Gsm8k, worked_rows
    from assay_tasks.heaps import Heaps
    from assay_tasks.keyvalue import KeyValue
    from assay_tasks.math.arithmetic import Expression
    from assay_tasks.puzzles.difficulty import Size, difficulty, size_of
    from assay_tasks.puzzles.load import load_puzzle, puzzle_from
    from assay_tasks.puzzles.spec import Spec
    from assay_tasks.reverse import Reverse
    from assay_tasks.sort import SortDigits
    from assay_tasks.text.selfmade import load_texts, self_supervised
    from assay_tasks.text.triples import load_triples, self_supervised_graph
    from assay_tasks.toolcalls import ToolCalls, calls_of, schemas_of

__all__ = [
    "Card",
    "Expression",
    "Facts",
    "Form",
    "Gsm8k",
    "Heaps",
    "KeyValue",
    "Mixture",
    "Place",
    "Problem",
    "Problems",
    "Reverse",
    "Rows",
    "SingleTurn",
    "Solution",
    "SortDigits",
    "ToolCalls",
    "calls_of",
    "card",
    "distinct",
    "families",
    "family",
    "in_turn",
    "judged_rows",
    "load_jsonl",
    "load_rows",
    "load_texts",
    "load_triples",
    "redraw",
    "reseeded",
    "schemas_of",
    "self_supervised",
    "self_supervised_graph",
    "slip",
    "suite",
    "suites",
    "verifier_of",
    "worked_rows",
    "written",
    "Size",
    "Spec",
    "difficulty",
    "load_puzzle",
    "puzzle_from",
    "size_of",
    "Foreign",
    "ProgramTask",
    "Scaled",
    "scaled",
]

_HOME = {
    "draws": "Place distinct in_turn redraw slip",
    "gsm8k": "Gsm8k worked_rows",
    "heaps": "Heaps",
    "judged": "judged_rows load_rows verifier_of",
    "keyvalue": "KeyValue",
    "math.arithmetic": "Expression",
    "mixture": "Mixture",
    "named_suites": "suite suites",
    "problem": "Facts Form Problem Solution",
    "problems": "Problems",
    "programs": "Foreign ProgramTask Scaled scaled",
    "puzzles.difficulty": "Size difficulty size_of",
    "puzzles.load": "load_puzzle puzzle_from",
    "puzzles.spec": "Spec",
    "registry": "Card card families family reseeded written",
    "reverse": "Reverse",
    "rows": "Rows load_jsonl",
    "single": "SingleTurn",
    "sort": "SortDigits",
    "text.selfmade": "load_texts self_supervised",
    "toolcalls": "ToolCalls calls_of schemas_of",
    "text.triples": "load_triples self_supervised_graph",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.tasks.{module}"), name)
    raise AttributeError(f"module 'assay.tasks' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

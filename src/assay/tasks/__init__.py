"""What to practise: families of tasks whose answers a program can check, and users' own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.tasks.box_problem import BoxProblem
    from assay.tasks.confidence import WithConfidence
    from assay.tasks.draws import TaskCoordinates, distinct, in_turn, redraw, slip
    from assay.tasks.exchange.forms.offered_options import offer_options
    from assay.tasks.judged import judged_rows, load_rows, verifier_of
    from assay.tasks.mixture import TaskMixture
    from assay.tasks.named_suites import suite, suites
    from assay.tasks.problem import Facts, Form, Problem, Solution
    from assay.tasks.problems import Problems
    from assay.tasks.programs import Foreign, ProgramTask, Scaled, make_program_family
    from assay.tasks.registry import Card, card, families, family, with_form, with_seed
    from assay.tasks.row_splits import read_splits, train_and_test
    from assay.tasks.rows import Rows, load_jsonl
    from assay.tasks.single import SingleTurn

__all__ = [
    "BoxProblem",
    "Card",
    "Facts",
    "Foreign",
    "Form",
    "Problem",
    "Problems",
    "ProgramTask",
    "Rows",
    "Scaled",
    "SingleTurn",
    "Solution",
    "TaskCoordinates",
    "TaskMixture",
    "WithConfidence",
    "card",
    "distinct",
    "families",
    "family",
    "in_turn",
    "judged_rows",
    "load_jsonl",
    "load_rows",
    "offer_options",
    "read_splits",
    "redraw",
    "with_seed",
    "make_program_family",
    "slip",
    "suite",
    "suites",
    "train_and_test",
    "verifier_of",
    "with_form",
]

_HOME = {
    "confidence": "WithConfidence",
    "draws": "TaskCoordinates distinct in_turn redraw slip",
    "exchange.forms.offered_options": "offer_options",
    "judged": "judged_rows load_rows verifier_of",
    "row_splits": "read_splits train_and_test",
    "mixture": "TaskMixture",
    "named_suites": "suite suites",
    "box_problem": "BoxProblem",
    "problem": "Facts Form Problem Solution",
    "problems": "Problems",
    "programs": "Foreign ProgramTask Scaled make_program_family",
    "registry": "Card card families family with_form with_seed",
    "rows": "Rows load_jsonl",
    "single": "SingleTurn",
}

_MOVED = {
    "Expression": "assay_tasks",
    "Gsm8k": "assay_tasks",
    "Heaps": "assay_tasks",
    "KeyValue": "assay_tasks",
    "Reverse": "assay_tasks",
    "Size": "assay_tasks",
    "SortDigits": "assay_tasks",
    "Spec": "assay_tasks",
    "ToolCalls": "assay_tasks",
    "calls_of": "assay_tasks",
    "difficulty": "assay_tasks",
    "load_puzzle": "assay_tasks",
    "load_texts": "assay_tasks",
    "load_triples": "assay_tasks",
    "puzzle_from": "assay_tasks",
    "schemas_of": "assay_tasks",
    "self_supervised": "assay_tasks",
    "self_supervised_graph": "assay_tasks",
    "size_of": "assay_tasks",
    "worked_rows": "assay_tasks",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME, moved=_MOVED)

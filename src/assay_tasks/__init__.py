"""The task families and suites that come with assay, found as anybody's are: by the entry point ``assay.tasks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay_tasks.bills import Bills
    from assay_tasks.charts import BarCharts
    from assay_tasks.graphs.routes import FewestEdges
    from assay_tasks.gsm8k import Gsm8k, worked_rows
    from assay_tasks.heaps import Heaps
    from assay_tasks.instructions import ConstrainedText
    from assay_tasks.judged_bills import JudgedBills
    from assay_tasks.keyvalue import KeyValue
    from assay_tasks.logic.saturn import Planted
    from assay_tasks.math.arithmetic import Expression
    from assay_tasks.mazes.winding import WindingWay
    from assay_tasks.puzzles.difficulty import Size, difficulty, size_of
    from assay_tasks.puzzles.load import load_puzzle, puzzle_from
    from assay_tasks.puzzles.spec import Spec
    from assay_tasks.reverse import Reverse
    from assay_tasks.sort import SortDigits
    from assay_tasks.text.classes import NamedClass
    from assay_tasks.text.selfmade import load_texts, self_supervised
    from assay_tasks.text.triples import load_triples, self_supervised_graph
    from assay_tasks.toolcalls import ToolCalls, calls_of, schemas_of
    from assay_tasks.urns import Urns

__all__ = [
    "BarCharts",
    "Bills",
    "ConstrainedText",
    "Expression",
    "FewestEdges",
    "Gsm8k",
    "Heaps",
    "JudgedBills",
    "KeyValue",
    "NamedClass",
    "Planted",
    "Reverse",
    "Size",
    "SortDigits",
    "Spec",
    "ToolCalls",
    "Urns",
    "WindingWay",
    "calls_of",
    "difficulty",
    "load_puzzle",
    "load_texts",
    "load_triples",
    "puzzle_from",
    "schemas_of",
    "self_supervised",
    "self_supervised_graph",
    "size_of",
    "worked_rows",
]

_HOME = {
    "charts": "BarCharts",
    "bills": "Bills",
    "graphs.routes": "FewestEdges",
    "gsm8k": "Gsm8k worked_rows",
    "heaps": "Heaps",
    "instructions": "ConstrainedText",
    "judged_bills": "JudgedBills",
    "keyvalue": "KeyValue",
    "logic.saturn": "Planted",
    "math.arithmetic": "Expression",
    "mazes.winding": "WindingWay",
    "puzzles.difficulty": "Size difficulty size_of",
    "puzzles.load": "load_puzzle puzzle_from",
    "puzzles.spec": "Spec",
    "reverse": "Reverse",
    "sort": "SortDigits",
    "text.classes": "NamedClass",
    "text.selfmade": "load_texts self_supervised",
    "text.triples": "load_triples self_supervised_graph",
    "toolcalls": "ToolCalls calls_of schemas_of",
    "urns": "Urns",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)

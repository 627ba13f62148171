"""Verifiers by name: what each gives, and what its gold must be.

A verifier of your own gets a name by one line in ``_VERIFIERS``: its name, ``module:Class``, and the form of its gold in a few
words. Its class has a default for every setting, and a docstring whose first sentence says what it does.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, cast

from assay.core.config import from_dict
from assay.core.errors import UnknownNameError
from assay.core.protocols import Verifier
from assay.verify.abilities import abilities_of

__all__ = ["NamedVerifier", "about", "verifier", "verifiers"]

_TEXT, _GRAPH, _CODE = "assay.verify.text", "assay.verify.structure", "assay.verify.code"
_VERIFIERS = {
    "exact": ("assay.verify.exact:ExactMatch", "a text, or a list of texts of which any one is right"),
    "math": ("assay.verify.math.verifier:MathAnswer", "a number, formula, set, interval or matrix as text, LaTeX or plain"),
    "choice": (f"{_TEXT}.choice:Choice", "a letter, or {'answer': letter or text, 'options': list or table}"),
    "set": (f"{_TEXT}.items:SetMatch", "a list"),
    "list": (f"{_TEXT}.items:ListMatch", "a list"),
    "numeric": (f"{_TEXT}.number:Numeric", "a number, or text such as '3/4' or '50%'"),
    "closeness": (f"{_TEXT}.number:Closeness", "a number, or text such as '3/4' or '50%'"),
    "json": (f"{_TEXT}.jsonvalue:JsonMatch", "any JSON value"),
    "json_schema": (f"{_TEXT}.schema:JsonSchema", "{'schema': a JSON Schema, 'value': a JSON value}, either or both"),
    "regex": (f"{_TEXT}.pattern:PatternMatch", "a regular expression; none with the setting pattern"),
    "format": (f"{_TEXT}.tags:TagFormat", "none"),
    "formatted": (f"{_TEXT}.tags:Formatted", "that of the verifier inside, exact by default"),
    "classification": (f"{_TEXT}.label:Classification", "a label"),
    "ranking": (f"{_TEXT}.ranking:Ranking", "{'gains': {name: gain}}, or {'candidates': list, 'relevant': list}"),
    "constraints": ("assay.verify.constraints:Instructions", "a list of {'constraint': name, setting: value, ...}"),
    "sql": (
        "assay.verify.sql:SqlMatch",
        "{'query': SQL, 'database': {'schema': tables or SQL, 'instances': two or more sets of rows}}",
    ),
    "assignment": (f"{_GRAPH}.roles:Assignment", "a table of names and roles"),
    "grid": (f"{_GRAPH}.grid:GridMatch", "a list of rows, each a list of cells"),
    "maze": (f"{_GRAPH}.maze:MazePath", "{'maze': rows of text, 'value': fewest moves}"),
    "countdown": (f"{_GRAPH}.countdown:Countdown", "{'numbers': list of whole numbers, 'target': a whole number}"),
    "plan": (f"{_GRAPH}.plan:PlanVerifier", "{'world': name, what it needs, 'most': actions}"),
    "sat": (f"{_GRAPH}.sat:Satisfies", "{'clauses': lists of literals, 'names': list}, or also 'satisfiable': false"),
    "smt": (f"{_GRAPH}.smt:SmtModel", "{'smt': text in SMT-LIB 2 over Bool, Int and Real}, or also 'satisfiable': false"),
    "graph_path": (f"{_GRAPH}.routes:Path", "a graph with 'source' and 'target'"),
    "graph_shortest_path": (f"{_GRAPH}.routes:ShortestPath", "a graph with 'source', 'target' and the 'value'"),
    "graph_cycle": (f"{_GRAPH}.routes:Cycle", "a graph"),
    "graph_hamilton_path": (f"{_GRAPH}.routes:HamiltonPath", "a graph; 'source' and 'value' if they matter"),
    "graph_hamilton_cycle": (f"{_GRAPH}.routes:HamiltonCycle", "a graph; 'value' if it matters"),
    "graph_euler_path": (f"{_GRAPH}.routes:EulerPath", "a graph; 'closed' if the walk must return"),
    "graph_topological_order": (f"{_GRAPH}.routes:TopologicalOrder", "a graph"),
    "graph_coloring": (f"{_GRAPH}.partitions:Coloring", "a graph; 'colors' and 'value' if they matter"),
    "graph_components": (f"{_GRAPH}.partitions:Components", "a graph"),
    "graph_bipartition": (f"{_GRAPH}.partitions:Bipartition", "a graph"),
    "graph_spanning_tree": (f"{_GRAPH}.subsets:SpanningTree", "a graph; 'value' if it must be a least one"),
    "graph_matching": (f"{_GRAPH}.subsets:Matching", "a graph; 'value' if it must be a largest one"),
    "graph_independent_set": (f"{_GRAPH}.subsets:IndependentSet", "a graph; 'value' if it must be a largest one"),
    "graph_clique": (f"{_GRAPH}.subsets:Clique", "a graph; 'value' if it must be a largest one"),
    "graph_vertex_cover": (f"{_GRAPH}.subsets:VertexCover", "a graph; 'value' if it must be a least one"),
    "graph_dominating_set": (f"{_GRAPH}.subsets:DominatingSet", "a graph; 'value' if it must be a least one"),
    "code_output": (f"{_CODE}.output:CodeOutput", "{'tests': list of {'stdin': text, 'stdout': text}}"),
    "code_call": (f"{_CODE}.call:CodeCall", "{'entry': name, 'tests': list of {'args': list, 'expected': value}}"),
    "unit_tests": (f"{_CODE}.unit:UnitTests", "{'tests': list of test code}"),
    "test_quality": (f"{_CODE}.quality:TestQuality", "{'entry': name, 'reference': code, 'mutants': list of code}"),
    "swe": (
        f"{_CODE}.repository:RepositoryTests",
        "{'files': {path: text}, 'tests': list of {'code': statements, 'value': expression, 'expected': value}}",
    ),
    "proof": (
        "assay.verify.proof:Proof",
        "{'database': text, 'label': name, 'statement': text, 'hypotheses': table, 'distinct': list}, or its checker's form",
    ),
    "verilog": (
        "assay.verify.hardware:VerilogMatch",
        "Verilog source, or {'golden': source, 'top': name, 'clocks': list, 'resets': {name: level}}",
    ),
}
"""Name to class and gold. A graph is ``{'edges': [[from, to], [from, to, weight]], 'nodes': list, 'directed': bool}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedVerifier:
    """A verifier in words, for listings.

    Attributes:
        name: in the registry.
        kind: ``module:Class``.
        gold: what ``private["answer"]`` must be.
        summary: the first paragraph of its docstring.
        components: that it gives with its default settings.
        settings: each with its default.
        trusted: whether it may run in this process.
    """

    name: str
    kind: str
    gold: str
    summary: str
    components: tuple[str, ...]
    settings: Mapping[str, Any]
    trusted: bool


def verifiers() -> tuple[str, ...]:
    """Names of the verifiers, in the order of the documentation.

    >>> "numeric" in verifiers()
    True
    """
    return tuple(_VERIFIERS)


def verifier(name: str, **settings: Any) -> Verifier:
    """The verifier of that name.

    Args:
        name: one of `verifiers`.
        settings: fields of its class, as JSON would hold them.

    Raises:
        UnknownNameError: no such verifier or setting; says the nearest.
        ConfigError: a setting of the wrong type or out of range.

    >>> verifier("numeric", relative=0.01, percent="refuse").names
    ('correct',)
    """
    return from_dict(_kind(name), settings)


def about(name: str) -> NamedVerifier:
    """What there is to know about a verifier.

    Raises:
        UnknownNameError: no such verifier; says the nearest.

    >>> about("sat").components
    ('correct', 'fraction')
    """
    kind = _kind(name)
    made: Any = kind()
    return NamedVerifier(
        name=name,
        kind=_VERIFIERS[name][0],
        gold=_VERIFIERS[name][1],
        summary=" ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split()),
        components=tuple(made.names),
        settings={f.name: getattr(made, f.name) for f in fields(made) if f.init},
        trusted=abilities_of(made).trusted,
    )


def _kind(name: str) -> type[Any]:
    if name not in _VERIFIERS:
        raise UnknownNameError("verifier", name, _VERIFIERS)
    module, _, kind = _VERIFIERS[name][0].partition(":")
    return cast("type[Any]", getattr(import_module(module), kind))

"""What the entry point ``assay.tasks`` of this package offers: families and suites by name.

A family of your own gets a name by one line in ``FAMILIES``: its name, and ``module:what``, a class or function that gives it
without arguments. In a package of your own write a module like this one (`assay.tasks.packages`).
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.tasks.packages import Suite

__all__ = ["FAMILIES", "READERS", "SUITES"]

FAMILIES: Mapping[str, str] = {
    "addition": "assay_tasks.small.numbers:AddDigits",
    "algebra": "assay_tasks.math.equations:algebra",
    "arithmetic": "assay_tasks.math.arithmetic:arithmetic",
    "balance": "assay_tasks.small.tables:SumAlong",
    "beliefs": "assay_tasks.logic.beliefs:beliefs",
    "bills": "assay_tasks.bills:Bills",
    "brackets": "assay_tasks.small.strings:CloseBrackets",
    "calculus": "assay_tasks.math.calculus:calculus",
    "cells": "assay_tasks.small.worlds:Cells",
    "chance": "assay_tasks.math.chance:chance",
    "charts": "assay_tasks.charts:BarCharts",
    "code": "assay_tasks.code.family:code",
    "coding": "assay_tasks.coding.family:coding",
    "collect": "assay_tasks.small.tables:Collect",
    "columns": "assay_tasks.small.tables:AddAlong",
    "context": "assay_tasks.context.haystacks:context",
    "countdown": "assay_tasks.math.countdown:countdown",
    "counter": "assay_tasks.small.worlds:Counter",
    "dedup": "assay_tasks.small.strings:DropRepeats",
    "games": "assay_tasks.games.family:games",
    "gates": "assay_tasks.small.logic:Gates",
    "generations": "assay_tasks.small.generations:Generations",
    "geometry": "assay_tasks.math.geometry:geometry",
    "graphs": "assay_tasks.graphs.family:graphs",
    "grids": "assay_tasks.puzzles.families:grids",
    "hardware": "assay_tasks.hardware.family:hardware",
    "heaps": "assay_tasks.heaps:Heaps",
    "instructions": "assay_tasks.instructions:instructions",
    "keyvalue": "assay_tasks.keyvalue:KeyValue",
    "knaves": "assay_tasks.logic.knights:knaves",
    "knights": "assay_tasks.small.logic:Knights",
    "largest": "assay_tasks.small.numbers:Largest",
    "lookup": "assay_tasks.small.tables:LookUpAll",
    "mazes": "assay_tasks.mazes.family:mazes",
    "numbers": "assay_tasks.math.numbers:numbers",
    "octal": "assay_tasks.small.numbers:ToOctal",
    "path": "assay_tasks.small.tables:FollowPath",
    "plans": "assay_tasks.puzzles.families:plans",
    "recall": "assay_tasks.small.tables:RecallAll",
    "reverse": "assay_tasks.reverse:Reverse",
    "riddles": "assay_tasks.puzzles.families:riddles",
    "sat": "assay_tasks.logic.saturn:sat",
    "science": "assay_tasks.science.nature:science",
    "search": "assay_tasks.search.questions:search",
    "select": "assay_tasks.small.tables:SelectRows",
    "simulation": "assay_tasks.simulation.family:simulation",
    "skip": "assay_tasks.small.strings:EveryKth",
    "sort": "assay_tasks.sort:SortDigits",
    "sql": "assay_tasks.sql.family:sql",
    "strip": "assay_tasks.small.worlds:Strip",
    "swe": "assay_tasks.swe.family:swe",
    "tables": "assay_tasks.tables.family:tables",
    "text": "assay_tasks.text.family:text",
    "total": "assay_tasks.small.numbers:RunningTotal",
    "web": "assay_tasks.web.family:web",
    "words": "assay_tasks.math.words:words",
}

SUITES: Mapping[str, Suite] = {
    "assay-logic": Suite(
        summary="Logic and puzzles: formulas, liars, grids, riddles, mazes, plans, numbers to make; each kind counts alike.",
        parts={name: (name,) for name in ("countdown", "grids", "knaves", "mazes", "plans", "riddles", "sat")},
    ),
    "assay-six": Suite(
        summary="The six domains of Guru: mathematics, code, science, logic, simulation and tables; each counts alike.",
        parts={
            "math": ("algebra", "arithmetic", "calculus", "chance", "geometry", "numbers", "words"),
            "code": ("coding", "sql"),
            "science": ("science",),
            "logic": ("graphs", "grids", "knaves", "riddles", "sat"),
            "simulation": ("code", "simulation"),
            "tabular": ("tables",),
        },
    ),
    "assay-small": Suite(
        summary="Eight families in a few characters, for models of a third of a million weights.",
        families=("sort", "reverse", "dedup", "gates", "knights", "largest", "octal", "strip"),
        levels={"reverse": (2, 3, 4, 5, 6, 7, 8, 9, 10)},
    ),
}

READERS: Mapping[str, str] = {".toml": "assay_tasks.puzzles.load:puzzle_from"}

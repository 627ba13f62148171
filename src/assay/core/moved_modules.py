"""Modules that have moved, and what files call them: a name in a file outlives the place of its module."""

from __future__ import annotations

__all__ = ["filed_module", "module_of_filed"]

_FILED = {
    "assay.audit.": "assay.verify.audit.",
    "assay.interop.": "assay.verify.foreign.",
    "assay.selftest.": "assay.lab.selftest.",
    "assay_tasks.code.": "assay.tasks.code.",
    "assay_tasks.coding.": "assay.tasks.coding.",
    "assay_tasks.context.": "assay.tasks.context.",
    "assay_tasks.games.": "assay.tasks.games.",
    "assay_tasks.graphs.": "assay.tasks.graphs.",
    "assay_tasks.hardware.": "assay.tasks.hardware.",
    "assay_tasks.logic.": "assay.tasks.logic.",
    "assay_tasks.math.": "assay.tasks.math.",
    "assay_tasks.mazes.": "assay.tasks.mazes.",
    "assay_tasks.puzzles.": "assay.tasks.puzzles.",
    "assay_tasks.science.": "assay.tasks.science.",
    "assay_tasks.search.": "assay.tasks.search.",
    "assay_tasks.simulation.": "assay.tasks.simulation.",
    "assay_tasks.small.": "assay.tasks.small.",
    "assay_tasks.sql.": "assay.tasks.sql.",
    "assay_tasks.swe.": "assay.tasks.swe.",
    "assay_tasks.tables.": "assay.tasks.tables.",
    "assay_tasks.text.": "assay.tasks.text.",
    "assay_tasks.web.": "assay.tasks.web.",
    "evidence.audits.": "assay.lab.audits.",
    "assay.core.util.hub": "assay.core.hub",
    "assay.publish.card": "assay.train.card",
    "assay.publish.exported_folder": "assay.train.exporting",
    "assay.publish.training_data": "assay.train.trained_on",
    "assay.runtime.distributed.collectives": "assay.runtime.ranks",
    "assay.runtime.distributed.context_parallel": "assay.runtime.context",
    "assay.runtime.distributed.worker": "assay.runtime.rank",
    "assay.runtime.engine.decode": "assay.runtime.decode",
    "assay.runtime.engine.draw": "assay.runtime.draw",
    "assay.runtime.engine.hub_cache": "assay.runtime.hub_cache",
    "assay.runtime.engine.sequences": "assay.runtime.slots",
    "assay.runtime.engine.settings": "assay.runtime.engines",
    "assay.runtime.engine.weights": "assay.runtime.weights",
    "assay.runtime.learner.forwards": "assay.runtime.passes",
    "assay.runtime.learner.learner": "assay.runtime.learner",
    "assay.runtime.learner.lm_head": "assay.runtime.readout",
    "assay.runtime.learner.packing": "assay.runtime.packing",
    "assay.runtime.learner.publishing": "assay.runtime.publishing",
    "assay.runtime.models.exported": "assay.runtime.exported",
    "assay.runtime.models.hub_model": "assay.runtime.hub_model",
    "assay.runtime.models.likelihood": "assay.runtime.reading",
    "assay.runtime.models.model": "assay.runtime.model",
    "assay.runtime.text.chat": "assay.runtime.chat",
    "assay.runtime.text.role_turns": "assay.runtime.role_turns",
    "assay.runtime.text.special_tokens": "assay.runtime.special_tokens",
    "assay.runtime.text.tokenizer": "assay.runtime.tokenizer",
    "assay.select.admit": "assay.lab.admitting",
    "assay.select.curation": "assay.lab.curation",
    "assay.select.distill": "assay.lab.distilling",
    "assay.select.membership_probe": "assay.lab.seen",
    "assay.select.probes": "assay.lab.probes",
    "assay.select.teachers": "assay.lab.teachers",
    "assay.verify.workers.cache": "assay.verify.ahead",
    "assay.verify.workers.dispatch": "assay.verify.crew",
    "assay.verify.workers.supervisor": "assay.verify.bench",
    "assay_tasks.gsm8k": "assay.tasks.gsm8k",
    "assay_tasks.heaps": "assay.tasks.heaps",
    "assay_tasks.instructions": "assay.tasks.instructions",
    "assay_tasks.keyvalue": "assay.tasks.keyvalue",
    "assay_tasks.reverse": "assay.tasks.reverse",
    "assay_tasks.sort": "assay.tasks.sort",
    "assay_tasks.toolcalls": "assay.tasks.toolcalls",
    "evidence.__main__": "assay.lab.__main__",
    "evidence.arms": "assay.lab.arms",
    "evidence.atlas": "assay.lab.atlas",
    "evidence.cells.comparisons": "assay.recipes.comparisons",
    "evidence.cells.contamination": "assay.recipes.contamination",
    "evidence.cells.gate": "assay.recipes.gate",
    "evidence.cells.levels": "assay.recipes.levels",
    "evidence.cells.methods": "assay.recipes.methods",
    "evidence.comparison_page": "assay.lab.comparison_page",
    "evidence.contamination_page": "assay.lab.contamination_page",
    "evidence.drawing": "assay.lab.drawing",
    "evidence.families_page": "assay.lab.families_page",
    "evidence.gpu": "assay.lab.gpu",
    "evidence.gpu_page": "assay.lab.gpu_page",
    "evidence.kills": "assay.lab.kills",
    "evidence.levels_page": "assay.lab.levels_page",
    "evidence.methods": "assay.lab.methods",
    "evidence.methods_page": "assay.lab.methods_page",
    "evidence.mismatch": "assay.lab.mismatch",
    "evidence.mismatch_page": "assay.lab.mismatch_page",
    "evidence.mixed": "assay.lab.mixed",
    "evidence.mixed_page": "assay.lab.mixed_page",
    "evidence.pages": "assay.lab.evidence",
    "evidence.rung_page": "assay.lab.rung_page",
    "evidence.scale": "assay.lab.scale",
    "evidence.scale_laws": "assay.lab.scale_laws",
    "evidence.scale_page": "assay.lab.scale_page",
    "evidence.solved": "assay.lab.solved",
    "evidence.speed_page": "assay.lab.speed_page",
}
"""Where a module is now, and the name by which files know it; with a dot at the end, all modules below a package."""

_FOUND = {old: new for new, old in _FILED.items()}


def filed_module(module: str) -> str:
    """The name by which files know a module, so that digests over it stay.

    >>> filed_module("assay_tasks.math.words"), filed_module("assay.core.task")
    ('assay.tasks.math.words', 'assay.core.task')
    """
    return _renamed(module, _FILED)


def module_of_filed(name: str) -> str:
    """The module that a file calls ``name``.

    >>> module_of_filed("assay.tasks.math.words"), module_of_filed("assay_tasks.math.words")
    ('assay_tasks.math.words', 'assay_tasks.math.words')
    """
    return _renamed(name, _FOUND)


def _renamed(module: str, table: dict[str, str]) -> str:
    if module in table:
        return table[module]
    parts = module.split(".")
    for n in range(len(parts) - 1, 0, -1):
        package = ".".join(parts[:n]) + "."
        if package in table:
            return table[package] + ".".join(parts[n:])
    return module

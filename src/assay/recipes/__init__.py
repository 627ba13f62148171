"""Complete runs as plain functions. ``RECIPES`` names those that the command line knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.recipes.accounts import ledger, ledger_base
    from assay.recipes.calibrated import confidence, confidence_base
    from assay.recipes.dry import random_init
    from assay.recipes.hardest_rows import double_hard, drive
    from assay.recipes.key_store import lookups, lookups_base
    from assay.recipes.long_answers import traces, traces_base
    from assay.recipes.mixture import AUXILIARY, SHOWN, assay_small, mixed, mixed_base
    from assay.recipes.rows import on_rows
    from assay.recipes.school import gsm8k, gsm8k_lora
    from assay.recipes.sorting import base, quickstart
    from assay.recipes.suite import Suite
    from assay.recipes.tool_use import (
        SHOWN_BILLS,
        tool_base,
        tools,
        tools_hub,
        tools_of,
        tools_reseek,
        tools_rlvmr,
        tools_scaling_inter,
    )
    from assay.recipes.two_families import ace_reason, ace_reason_base, ace_reason_tasks
    from assay.recipes.unsolved import hard, hard_base, hard_cell

__all__ = [
    "AUXILIARY",
    "RECIPES",
    "SHOWN",
    "SHOWN_BILLS",
    "Suite",
    "ace_reason",
    "ace_reason_base",
    "ace_reason_tasks",
    "assay_small",
    "base",
    "confidence",
    "confidence_base",
    "double_hard",
    "drive",
    "gsm8k",
    "gsm8k_lora",
    "hard",
    "hard_base",
    "hard_cell",
    "ledger",
    "ledger_base",
    "lookups",
    "lookups_base",
    "mixed",
    "mixed_base",
    "on_rows",
    "quickstart",
    "random_init",
    "tool_base",
    "tools",
    "tools_hub",
    "tools_of",
    "tools_reseek",
    "tools_rlvmr",
    "tools_scaling_inter",
    "traces",
    "traces_base",
]

RECIPES = {
    "quickstart": "assay.recipes.sorting:quickstart",
    "base": "assay.recipes.sorting:base",
    "tools": "assay.recipes.tool_use:tools",
    "tool-base": "assay.recipes.tool_use:tool_base",
    "tools-hub": "assay.recipes.tool_use:tools_hub",
    "tools-reseek": "assay.recipes.tool_use:tools_reseek",
    "tools-rlvmr": "assay.recipes.tool_use:tools_rlvmr",
    "tools-scaling-inter": "assay.recipes.tool_use:tools_scaling_inter",
    "lookups": "assay.recipes.key_store:lookups",
    "lookups-base": "assay.recipes.key_store:lookups_base",
    "mixed": "assay.recipes.mixture:mixed",
    "mixed-base": "assay.recipes.mixture:mixed_base",
    "ledger": "assay.recipes.accounts:ledger",
    "ledger-base": "assay.recipes.accounts:ledger_base",
    "traces": "assay.recipes.long_answers:traces",
    "traces-base": "assay.recipes.long_answers:traces_base",
    "confidence": "assay.recipes.calibrated:confidence",
    "confidence-base": "assay.recipes.calibrated:confidence_base",
    "ace-reason": "assay.recipes.two_families:ace_reason",
    "ace-reason-base": "assay.recipes.two_families:ace_reason_base",
    "drive": "assay.recipes.hardest_rows:drive",
    "hard": "assay.recipes.unsolved:hard",
    "hard-base": "assay.recipes.unsolved:hard_base",
    "gsm8k": "assay.recipes.school:gsm8k",
    "gsm8k-lora": "assay.recipes.school:gsm8k_lora",
}

_HOME = {
    "two_families": "ace_reason ace_reason_base ace_reason_tasks",
    "accounts": "ledger ledger_base",
    "calibrated": "confidence confidence_base",
    "dry": "random_init",
    "hardest_rows": "double_hard drive",
    "long_answers": "traces traces_base",
    "key_store": "lookups lookups_base",
    "mixture": "AUXILIARY SHOWN assay_small mixed mixed_base",
    "rows": "on_rows",
    "school": "gsm8k gsm8k_lora",
    "sorting": "base quickstart",
    "suite": "Suite",
    "tool_use": "SHOWN_BILLS tool_base tools tools_hub tools_of tools_reseek tools_rlvmr tools_scaling_inter",
    "unsolved": "hard hard_base hard_cell",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)

"""Items of reasoning-gym as rows: made in an interpreter of their own, and tried before they are taken."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from assay.core.errors import ConfigError, DataError, MissingExtraError, UnknownNameError
from assay.interop.gym import DENIED

__all__ = ["LICENCE", "gym_rows"]

LICENCE = "Apache-2.0"
"""Of reasoning-gym and its items."""

_MAKE = """
import json, sys
import reasoning_gym as rg
from reasoning_gym.factory import DATASETS
name, n, seed, level, settings = json.loads(sys.stdin.read())
if name not in DATASETS:
    print(json.dumps({"unknown": sorted(DATASETS)})); raise SystemExit
if level > 1:
    from reasoning_gym.factory import create_curriculum
    ladder = create_curriculum(name)
    for attribute in ladder.attributes:
        for _ in range(level - 1):
            ladder.increment_attr_level(attribute)
    config = ladder.generate_configuration({"size": n, "seed": seed, **settings})
    made = DATASETS[name][0](config)
else:
    made = rg.create_dataset(name, size=n, seed=seed, **settings)
for i in range(n):
    print(json.dumps(made[i], default=str))
"""


def gym_rows(
    dataset: str, n: int, *, seed: int = 0, level: int = 1, settings: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """``n`` items of a data set of reasoning-gym as rows for `assay.tasks.judged_rows`.

    They are made in an interpreter of their own whose hashes of text are fixed, since the items of some data sets depend on them.
    Each row holds the item (``entry``), which its own scorer reads, and where assay has a verifier that takes the place of a
    scorer that is denied (`assay.interop.gym.DENIED`), that verifier's gold. Items are whatever reasoning-gym makes:
    whether their golds are right, `assay.tasks.exchange.importing` finds out.

    Args:
        dataset: its name.
        n: how many.
        seed: of reasoning-gym.
        level: 1 for its default settings; from 2 on its curriculum with every attribute raised ``level - 1`` times.
        settings: of its config.

    Raises:
        MissingExtraError: reasoning-gym is not installed.
        UnknownNameError: no such data set.
        ConfigError: a data set that is not taken.
        DataError: reasoning-gym failed, with its last line.
    """
    if importlib.util.find_spec("reasoning_gym") is None:
        raise MissingExtraError("reasoning_gym", "audits")
    if dataset in DENIED and dataset not in _REPLACED:
        raise ConfigError(f"reasoning-gym's {dataset!r} is not taken: {DENIED[dataset]}")
    order = json.dumps([dataset, n, seed, level, dict(settings or {})])
    done = subprocess.run(
        [sys.executable, "-c", _MAKE],
        input=order,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise DataError(f"reasoning-gym could not make {n} items of {dataset!r} at level {level}: {last}")
    items: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    if items and "unknown" in items[0]:
        raise UnknownNameError("data set of reasoning-gym", dataset, items[0]["unknown"])
    return [_row(dataset, level, item) for item in items]


def _row(dataset: str, level: int, item: dict[str, Any]) -> dict[str, Any]:
    row = {
        "prompt": str(item["question"]),
        "answer": item["answer"],
        "arm": f"gym/{dataset}",
        "level": level,
        "data_source": f"reasoning_gym/{dataset}",
        "license": LICENCE,
    }
    if dataset in _REPLACED:
        return row | _REPLACED[dataset](item)
    return row | {"entry": item, "verifier": {"name": "reasoning_gym", "dataset": dataset}}


def _countdown(item: Mapping[str, Any]) -> dict[str, Any]:
    about = item["metadata"]
    gold = {"numbers": about["numbers"], "target": about["target"]}
    return {"answer": gold, "solution": str(item["answer"]), "verifier": {"name": "countdown", "every": True}}


def _puzzle24(item: Mapping[str, Any]) -> dict[str, Any]:
    gold = {"numbers": item["metadata"]["numbers"], "target": 24}
    return {"answer": gold, "solution": str(item["answer"]), "verifier": {"name": "countdown", "every": True}}


def _spiral(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer": str(item["answer"]).split(), "verifier": {"name": "list", "separator": " "}}


def _halting(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"verifier": {"name": "exact", "strip": True, "casefold": True, "punctuation": True}}


_REPLACED = {
    "countdown": _countdown,
    "game_of_life_halting": _halting,
    "puzzle24": _puzzle24,
    "spiral_matrix": _spiral,
}
"""Data sets whose own scorers are denied, and whose items another verifier can judge."""

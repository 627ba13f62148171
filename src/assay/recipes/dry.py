"""A dry run: a recipe for a big model tried with a small random one of its family, on generated rows, in a minute."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from assay.core.canon import digest, plain
from assay.core.errors import AssayError, ConfigError
from assay.core.protocols import TaskSource
from assay.core.util.paths import cache_folder
from assay.recipes.school import CONFIGS
from assay.runtime.engine.settings import Auto, InProcess, Native
from assay.runtime.text.chat import Chat
from assay.train.models import Folder, model_folder
from assay.train.run import Run
from assay.train.stage import Stage

__all__ = ["config_known", "random_init", "stand_in"]

GROUPS, SIZE, NEW, ITEMS = 4, 4, 64, 8
"""Contexts per step, rollouts of each, tokens of an answer, held-out items: at most, in a dry run."""


def random_init(run: Run) -> tuple[Run, tuple[str, ...]]:
    """``run`` with a reduced random model of the same family in place of a model in a folder or on the hub.

    Everything else that would take long or is out of reach is made small or local too, and told: rows that are not generated,
    batches, lengths, a GPU, a server. A run from fresh weights, or from a base that it builds itself, is refused.

    Args:
        run: of a recipe.

    Returns:
        The run, whose name ends in ``-random-init``, and what is different in it, one sentence each.

    Raises:
        ConfigError: the model is no folder or hub name, or nothing here tells its family.
    """
    if not isinstance(run.model, Folder):
        raise ConfigError(
            f"--random-init is for recipes that start from a model's folder or hub name; this one: {_model_text(run)}"
        )
    config = config_known(run.model.path)
    place = cache_folder() / "random-init" / digest([plain(config), run.seed], 8)
    _write(config, place, run.seed)
    told = [f"the model is {config['model_type']} with few random weights instead of {run.model.path}: it knows nothing"]
    chat = run.model.chat
    if chat is not None:
        told.append("its tokenizer is one of characters, without the model's own chat template")
        chat = Chat(system=chat.system, thinking=chat.thinking) if chat.system or chat.thinking else None
    tasks = stand_in(run.tasks) or run.tasks
    if tasks is not run.tasks:
        told.append(f"tasks are generated rows in the form of {run.tasks.name}, not its data")
    engine = run.engine
    if not isinstance(engine, Auto | Native | InProcess):
        told.append(f"the engine is in this process instead of {type(engine).__name__}")
        engine = InProcess()
    elif isinstance(engine, InProcess):
        engine = replace(engine, dtype="auto", compile=False)
    told.append(
        f"at most {GROUPS} x {SIZE} rollouts of {NEW} tokens a step, evaluated on {ITEMS} items per level: numbers mean nothing"
    )
    changed = replace(
        run,
        name=f"{run.name}-random-init",
        model=Folder(str(place), chat=chat),
        tasks=tasks,
        engine=engine,
        stages=tuple(map(_small, run.stages)),
        sampling=replace(run.sampling, max_new_tokens=min(NEW, run.sampling.max_new_tokens)),
        evaluation=replace(run.evaluation, per_level=min(ITEMS, run.evaluation.per_level), final_per_level=ITEMS),
    )
    return changed, tuple(told)


def stand_in(tasks: TaskSource) -> TaskSource | None:
    """The same family on generated rows of the same form, in the cache; None of one that generates its tasks anyway.

    Args:
        tasks: a source; it can be replaced where it has a method ``stand_in(folder)``, as `assay.tasks.Gsm8k` has.
    """
    made: Any = getattr(tasks, "stand_in", None)
    return None if made is None else made(cache_folder() / "random-init" / f"{tasks.name}-rows")


def config_known(path: str) -> Mapping[str, Any]:
    """``config.json`` of a model's folder, or what `CONFIGS` says of a hub name.

    Raises:
        ConfigError: neither is there.
    """
    try:
        text = (model_folder(Path(path)) / "config.json").read_text(encoding="utf-8")
        return cast("Mapping[str, Any]", json.loads(text))
    except (AssayError, OSError) as error:
        if path in CONFIGS:
            return CONFIGS[path]
        raise ConfigError(
            f"nothing here tells what kind of model {path} is ({error}); give a folder with its config.json"
        ) from None


def _write(config: Mapping[str, Any], place: Path, seed: int) -> None:
    from assay.runtime.models.reduced import write_reduced

    if not (place / "config.json").exists():
        shutil.rmtree(place, ignore_errors=True)
        write_reduced(plain(config), place, seed)


def _small(stage: Stage) -> Stage:
    return replace(stage.shrink(GROUPS, SIZE), learner=replace(stage.learner, device="auto"))


def _model_text(run: Run) -> str:
    return run.model.describe()

"""A run's model as a folder for everybody else: whole or as an adapter, read back and compared, with a card of its origin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.core.errors import ConfigError, UnknownNameError
from assay.measure import RunView, read_run
from assay.publish.card import Provenance, card_text
from assay.runs import storage
from assay.runtime.models.adapter_base import whole_of
from assay.train.checkpoint_weights import checkpoint_place, weights_of_run
from assay.train.models import model_folder
from assay.train.proof import probe_rows

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.models.exported import Reloaded

__all__ = ["Exported", "export"]

FORMS = ("merged", "adapter")
DTYPES = ("float32", "bfloat16", "float16")
_TEXTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What `export` wrote.

    Attributes:
        folder: where.
        source: the run or model folder that it comes from.
        form: ``merged``: all weights; ``adapter``: the adapter alone.
        dtype: of the weights.
        step: global step of the run at which the model had these weights; None of a model without a run.
        size: bytes of all files.
        reloaded: what loading it again showed; None where that was not asked for.
    """

    folder: Path
    source: Path
    form: str
    dtype: str
    step: int | None
    size: int
    reloaded: Reloaded | None


def export(
    source: str | Path,
    to: str | Path,
    *,
    form: str = "merged",
    dtype: str = "float32",
    step: int | None = None,
    check: bool = True,
) -> Exported:
    """Writes the model of a run, or of a model folder, as a folder that any tool of the Hugging Face world loads.

    The folder holds config, generation config, tokenizer with chat template, safetensors, and ``README.md``, a model card of what
    the run recorded. It appears when it is whole and, with ``check``, was loaded again by transformers and found equal.

    Args:
        source: a run folder, finished or stopped, also as RUN@STEP or the folder of a checkpoint, or a model folder.
        to: the new folder; absent or empty.
        form: ``merged``: all weights, an adapter added to them; ``adapter``: the adapter alone, in PEFT's format.
        dtype: ``float32`` (as weights are trained), ``bfloat16`` or ``float16``, rounded to the nearest, ties to even.
        step: which checkpoint; the end of the run, or the newest checkpoint of one that was stopped, when None.
        check: load it again and compare.

    Raises:
        ConfigError: another form or dtype, ``to`` is in use, an adapter of a model that has none, or a weight that ``dtype``
            cannot hold.
        CheckpointError: no such checkpoint, or a damaged one.
        DataError: a damaged folder, or what was written is not the run's model when it is loaded again: nothing is left of it.
        StorageError: the place cannot be written.
    """
    from assay.runtime.models.exported import reload_exported, write_exported

    place, target = Path(source), Path(to)
    if (named := checkpoint_place(place)) is not None:
        if step not in (None, named[1]):
            raise ConfigError(f"{place} names step {named[1]}, and step={step} (--step) another; leave one out")
        place, step = named
    for what, value, known in (("form of an export", form, FORMS), ("dtype of an export", dtype, DTYPES)):
        if value not in known:
            raise UnknownNameError(what, value, known)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise ConfigError(f"{target} exists already; name a new folder or delete it first")
    if not (place / "run.toml").exists() and step is not None:
        model_folder(place)  # or there is none
        raise ConfigError(f"{place} is a model folder without checkpoints; give step (--step) with a run folder only")
    model, beneath, at = weights_at(place, step)
    run = read_run(place) if (place / "run.toml").exists() else None
    known = Provenance.of(place, run, at, model, form, dtype, beneath)
    base, base_folder = (known.base_name or str(beneath.resolve()), beneath) if form == "adapter" else (None, None)
    found: Reloaded | None = None
    with storage.storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    with storage.fresh_folder(target) as beside:
        write_exported(model, beside, dtype=dtype, base=base, revision=known.base_revision, generation=_generation(place, run))
        if check:
            rows = probe_rows(model.shape.vocab_size, model.shape.max_positions, run.seed or 0 if run else 0, rows=8, length=32)
            found = reload_exported(model, beside, rows, _texts(run), dtype=dtype, base=base_folder)
        (beside / "README.md").write_text(card_text(known, target.name, found), encoding="utf-8")
        size = sum(p.stat().st_size for p in beside.rglob("*") if p.is_file())
    return Exported(folder=target, source=place, form=form, dtype=dtype, step=at, size=size, reloaded=found)


def weights_at(place: Path, step: int | None) -> tuple[AnyModel, Path, int | None]:
    """The model of a folder at a step, the folder of what lies beneath its adapter, and the step; None for no run.

    Raises:
        CheckpointError: no such checkpoint, or a damaged one.
        ConfigError: neither a run nor a model.
    """
    from assay.runtime.models.hf import load_model

    if not (place / "run.toml").exists():
        folder = model_folder(place)
        return load_model(folder), whole_of(folder), None
    return weights_of_run(place, step)


def _generation(place: Path, run: RunView | None) -> dict[str, Any]:
    """How the run sampled, as transformers says it; of a model folder its own settings."""
    if run is None:
        path = model_folder(place) / "generation_config.json"
        found: dict[str, Any] = storage.read_json(path) if path.exists() else {}
        return {
            k: v
            for k, v in found.items()
            if k not in ("eos_token_id", "pad_token_id", "transformers_version", "_from_model_config")
        }
    sampling = cast("Mapping[str, Any]", run.settings.get("sampling", {}))
    temperature = float(sampling.get("temperature", 1.0))
    if temperature == 0:
        return {"do_sample": False, "max_new_tokens": int(sampling["max_new_tokens"])}
    return {
        "do_sample": True,
        "temperature": temperature,
        "top_p": float(sampling.get("top_p", 1.0)),
        "top_k": int(sampling.get("top_k", 0)),
        "max_new_tokens": int(sampling["max_new_tokens"]),
        **({"min_p": float(sampling["min_p"])} if sampling.get("min_p") else {}),
    }


def _texts(run: RunView | None) -> Sequence[str]:
    """What tokenizers are compared on, as far as the run kept some: its prompts and answers."""
    found = [text for line in run.rollouts[-_TEXTS // 2 :] for text in (line.prompt, line.text)] if run else []
    return [text for text in found if text and not re.search(r"<[^ <>]+>", text)]  # without what only looks like a token

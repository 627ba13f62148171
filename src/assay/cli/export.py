"""``assay export``: the model of a run as a folder for everybody else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from assay.cli.options import parse
from assay.cli.output import busy, lines, show
from assay.cli.run_request import missing
from assay.core.errors import ConfigError

__all__ = ["export_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Writes the model of a run as a folder in Hugging Face format, with a model card, and loads it again to verify it.

    Attributes:
        model: a run folder, finished or stopped, RUN@STEP or RUN/checkpoints/step_N, or a model folder.
        to: the new folder.
        merged: all weights, an adapter added to them (the default).
        adapter: the adapter alone, in PEFT's format.
        dtype: float32, bfloat16 or float16; rounded to the nearest, ties to even.
        step: which checkpoint of the run; its end, or the newest one, when not given.
        no_check: do not load the folder again to compare it with the run's own model.
        json: print JSON.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_MODEL"}})
    to: Path = field(metadata={"arg": {"metavar": "FOLDER"}})
    merged: bool = False
    adapter: bool = False
    dtype: str = field(default="float32", metadata={"arg": {"metavar": "DTYPE"}})
    step: int | None = None
    no_check: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.merged and self.adapter:
            raise ConfigError("--merged and --adapter are two forms of the same model; give one, and export twice for both")


def export_command(args: list[str]) -> int:
    """``assay export RUN_OR_MODEL --to FOLDER``."""
    own = parse(ExportOptions, args, "assay export")
    missing(own.model)
    from assay.publish.exported_folder import export

    with busy(f"exporting {own.model}"):
        made = export(
            own.model, own.to, form="adapter" if own.adapter else "merged", dtype=own.dtype, step=own.step, check=not own.no_check
        )
    found = made.reloaded

    def text() -> None:
        print(
            f"{made.folder}: {made.form}, {made.dtype}, {made.size:,} bytes"
            + (f", step {made.step}" if made.step is not None else "")
        )
        if found is None:
            print("not loaded again (--no-check)")
            return
        gap = f"{found.mean:.2g} nats on average, {found.worst:.2g} at most (allowed: {found.tolerance:g})"
        lines(
            {
                "loaded again": f"{found.tensors:,} tensors hold the bits that they should",
                "log-probabilities": f"of {found.tokens:,} tokens differ by {gap}",
                "tokenizer": f"the same ids for {found.texts:,} texts",
            }
        )

    return show(own.json, {**asdict(made), "folder": str(made.folder), "source": str(made.source)}, text)

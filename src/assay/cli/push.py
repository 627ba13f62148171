"""``assay push``: a run's model, an environment or a data set to a hub."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.cli.options import parse
from assay.cli.output import busy, grid, lines, note, show
from assay.cli.run_request import missing
from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.publish.push import Upload

__all__ = ["push_command"]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOptions:
    """Uploads a run's model, an exported environment or a data set to the Hugging Face hub, once nothing is missing and neither
    secrets nor paths of this machine were found in it. A run, or a folder without a model card, is exported first.

    Attributes:
        source: a run, a model folder, a folder of 'assay tasks export', or a file or folder of rows.
        repo: the repository, owner/name; made if there is none.
        kind: what the source is; looked up in it when not given.
        private: let nobody else see it.
        dry_run: print what would be uploaded; needs no token, and uploads nothing.
        allow_paths: upload although paths of a machine stand in it.
        adapter: of a model, the adapter alone, in PEFT's format.
        dtype: of a model's weights: float32, bfloat16 or float16.
        step: which checkpoint of a run; its end, or the newest one, when not given.
        no_check: do not load the exported model again to compare it.
        message: of the commit.
        json: print JSON.
    """

    source: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN_OR_FOLDER"}})
    repo: str = field(metadata={"positional": True, "arg": {"metavar": "OWNER/NAME"}})
    kind: Literal["model", "environment", "dataset"] | None = None
    private: bool = False
    dry_run: bool = False
    allow_paths: bool = False
    adapter: bool = False
    dtype: str = field(default="float32", metadata={"arg": {"metavar": "DTYPE"}})
    step: int | None = None
    no_check: bool = False
    message: str = field(default="Upload with assay", metadata={"arg": {"metavar": "TEXT"}})
    json: bool = False

    def __post_init__(self) -> None:
        if self.what != "model" and (self.exports or self.no_check):
            raise ConfigError(f"--kind {self.what}: --adapter, --dtype, --step and --no-check are of models; leave them out")

    @property
    def what(self) -> Literal["model", "environment", "dataset"]:
        """The kind that is given, else the one that the source looks like: a Python package, rows, or a model."""
        if self.kind is not None:
            return self.kind
        if self.source.is_file():
            return "dataset"
        model = any((self.source / name).exists() for name in ("config.json", "run.toml", "adapter_config.json"))
        return "environment" if not model and (self.source / "pyproject.toml").exists() else "model"

    @property
    def exports(self) -> bool:
        """Whether the person says how a model is exported."""
        return self.adapter or self.dtype != "float32" or self.step is not None


def push_command(args: list[str]) -> int:
    """``assay push RUN_OR_FOLDER OWNER/NAME``."""
    own = parse(PushOptions, args, "assay push")
    missing(own.source)
    from assay.publish.push import KINDS, prepare_upload, push

    with _folder(own) as folder:
        upload = prepare_upload(folder, own.repo, own.what, own.private, own.allow_paths)
        address = None
        if not own.dry_run:
            with busy(f"uploading to {own.repo}"):
                address = push(upload, own.message)
        value = {**asdict(upload), "folder": str(own.source), "repository": KINDS[own.what], "address": address}
        show(own.json, value, lambda: _text(upload, KINDS[own.what], address))
    for problem in upload.problems:
        note(f"assay: {problem}")
    return 1 if upload.problems else 0


@contextmanager
def _folder(own: PushOptions) -> Generator[Path]:
    """What is uploaded: the source, or what it is exported to."""
    if own.what != "model" or ((own.source / "README.md").exists() and not (own.source / "run.toml").exists()):
        if own.exports:
            raise ConfigError(
                f"{own.source} is an exported model already: leave out --adapter, --dtype and --step, or push its run"
            )
        yield own.source
        return
    from assay.publish.exported_folder import export

    with tempfile.TemporaryDirectory(prefix="assay-push-") as place:
        target = Path(place) / "model"
        with busy(f"exporting {own.source}"):
            form = "adapter" if own.adapter else "merged"
            export(own.source, target, form=form, dtype=own.dtype, step=own.step, check=not own.no_check)
        yield target


def _text(upload: Upload, repository: str, address: str | None) -> None:
    if address is not None:
        print(f"{address}: {len(upload.files)} files, {upload.size:,} bytes")
        return
    lines(
        {
            "repository": f"{upload.repo} ({repository})",
            "visibility": "private" if upload.private else "public",
            "files": f"{len(upload.files)}, {upload.size:,} bytes",
            "checks": f"{len(upload.problems)} problems" if upload.problems else "whole; no secrets, no paths of a machine",
        }
    )
    largest = sorted(upload.files.items(), key=lambda pair: -pair[1])
    grid(("file", "bytes"), [(path, f"{size:,}") for path, size in largest[:_SHOWN]], (1,))
    if len(largest) > _SHOWN:
        print(f"and {len(largest) - _SHOWN} smaller ones")
    print("nothing was uploaded (--dry-run)")

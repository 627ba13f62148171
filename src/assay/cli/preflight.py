"""What `assay train` would refuse, told before anything is built: shape and tokenizer are enough for it, torch is not needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.cli.sizes import AnyShape, model_shape
from assay.core.errors import MissingExtraError
from assay.core.protocols import Tokenizer
from assay.runtime.models.adapter_base import whole_of
from assay.train.model_facts import tokenizer_in
from assay.train.models import Built, Folder, Scratch, check_tokenizer, model_folder, scratch_tokenizer
from assay.train.preflight import check_fits, check_run
from assay.train.run import Run

if TYPE_CHECKING:
    from assay.runtime.models.model import Model

__all__ = ["Outline", "check", "outline", "require_torch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A model without its weights."""

    shape: AnyShape
    tokenizer: Tokenizer


def check(run: Run) -> bool:
    """Looks at the settings and the first tasks of every arm and level, of the run and of the base that it builds first.

    Returns:
        Whether tasks were looked at: a base install has no tokenizers, which that takes.

    Raises:
        ConfigError, DataError, PlanError: what `assay.train.preflight.check_fits` refuses, and a model folder that is not there
        or
            whose shape or tokenizer cannot be read.
    """
    if isinstance(run.model, Built):
        check(run.model.run)
    check_run(run)
    if find_spec("tokenizers") is None:
        return False
    check_fits(run, cast("Model", outline(run.model)), _outline_model)
    return True


def require_torch() -> None:
    """Raises MissingExtraError where torch is not installed, before a folder is made or a line of a run is printed."""
    if find_spec("torch") is None:
        raise MissingExtraError("torch", "train")


def _outline_model(path: str) -> Model:
    return cast("Model", outline(Folder(path)))


def outline(source: object) -> Outline:
    """The shape and the tokenizer that a model source gives.

    Raises:
        ConfigError, DataError: as `check`.
    """
    if isinstance(source, Built):
        return outline(source.run.model)
    shape = model_shape(source)  # refuses what is neither of the two
    if isinstance(source, Scratch):
        return Outline(shape=shape, tokenizer=scratch_tokenizer(source))
    given = cast(Folder, source)
    folder = whole_of(model_folder(Path(given.path)))
    tokenizer = tokenizer_in(folder, shape.vocab_size)
    check_tokenizer(given, tokenizer)
    return Outline(shape=shape, tokenizer=tokenizer if given.chat is None else tokenizer.with_chat(given.chat))

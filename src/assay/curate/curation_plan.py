"""What a curation is of: files, settings and versions, in a form that two runs can be compared by."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import assay
from assay.core.canon import digest, plain
from assay.core.errors import ConfigError
from assay.curate.rows import Source, entries
from assay.curate.step import settings_of

if TYPE_CHECKING:
    from assay.curate.pipeline import Pipeline

__all__ = ["CurationPlan", "plan_of"]

_LIBRARIES = ("numpy", "rensa")
"""Libraries whose results a curation depends on."""


@dataclass(frozen=True)
class CurationPlan:
    """A curation before it is run.

    Attributes:
        inputs: the files whose rows are curated, in order.
        references: further files that steps read, by step.
        settings: of the pipeline and its steps, as plain values.
        versions: of assay, the libraries and the tables of characters.
    """

    inputs: tuple[Source, ...]
    references: Mapping[str, tuple[Source, ...]]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "inputs": plain(self.inputs),
            "references": plain(dict(self.references)),
            "settings": dict(self.settings),
            "versions": dict(self.versions),
        }

    @cached_property
    def digest(self) -> str:
        """The same for the same work."""
        return digest(self.describe())

    def changed_parts(self, other: Mapping[str, Any]) -> str:
        """Which parts of another plan's description are not this one's."""
        mine = self.describe()
        return " and ".join(name for name in mine if mine[name] != other.get(name)) or "form"

    def input_name(self) -> str:
        """Its input in a few words."""
        first = self.inputs[0].path
        return first if len(self.inputs) == 1 else f"{first} and {len(self.inputs) - 1} more"


def plan_of(pipeline: Pipeline, files: Sequence[Path | str]) -> CurationPlan:
    """Looks up every file that a run would read.

    Raises:
        ConfigError: one does not exist, or there is none.
    """
    if not files:
        raise ConfigError("nothing to curate: name at least one file of rows")
    references: dict[str, tuple[Source, ...]] = {}
    for step in pipeline.steps:
        if step.files:
            references[step.name] = tuple(Source.of(path) for place in step.files for path in entries(place))
    settings = {
        "steps": {step.name: settings_of(step) for step in pipeline.steps},
        "fields": plain(pipeline.fields),
        "test_share": pipeline.test_share,
        "seed": pipeline.seed,
    }
    inputs = tuple(Source.of(path) for place in files for path in entries(place, one_split=True))
    versions = {"assay": assay.__version__, "unicode": unicodedata.unidata_version} | {
        name: found for name in _LIBRARIES if (found := _version(name))
    }
    return CurationPlan(inputs, references, settings, versions)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""

"""Files that a guidance reads while a run goes on, looked for before it begins."""

from __future__ import annotations

from pathlib import Path

from assay.core.errors import ConfigError
from assay.core.protocols import GuidanceSpec

__all__ = ["check_guidance_files"]


def check_guidance_files(guidance: GuidanceSpec) -> None:
    """Looks for the files that a guidance names in its property ``files``, if it has one.

    Raises:
        ConfigError: one is not there; names it.

    >>> from assay.guide import Plain, TracePrefix
    >>> check_guidance_files(Plain())
    >>> check_guidance_files(TracePrefix(traces="nowhere.jsonl"))
    Traceback (most recent call last):
    assay.core.errors.ConfigError: TracePrefix reads nowhere.jsonl, and there is no such file here; name one that is there
    """
    for name in getattr(guidance, "files", ()):
        if not Path(name).is_file():
            raise ConfigError(f"{type(guidance).__name__} reads {name}, and there is no such file here; name one that is there")

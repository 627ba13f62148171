"""Names on a hub of models and data sets: ``owner/name``, and ``owner/name@revision``."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["HubName"]

_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository on the hub.

    Attributes:
        repo: ``owner/name``.
        revision: branch, tag or commit; empty for the default branch.

    >>> HubName.read("Qwen/Qwen3-0.6B@main"), HubName.read("models/of/mine"), HubName.read("./models/mine")
    (HubName(repo='Qwen/Qwen3-0.6B', revision='main'), None, None)
    """

    repo: str
    revision: str = ""

    @classmethod
    def read(cls, text: str) -> HubName | None:
        """The name that ``text`` is; None where it cannot be one."""
        found = _NAME.fullmatch(text)
        return cls(found["repo"], found["revision"] or "") if found else None

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, which never changes."""
        return bool(_COMMIT.fullmatch(self.revision))

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}" if self.revision else self.repo

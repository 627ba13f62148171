"""Edits as unified diffs say them, such as ``git diff`` writes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from assay.verify.code.edits import Edit, Unapplied, refuse_edit

__all__ = ["edits_in_diff", "has_diff"]

_OLD, _NEW = re.compile(r"--- +(\S.*)"), re.compile(r"\+\+\+ +(\S.*)")
_HUNK = re.compile(r"@@(?: -([0-9]{1,7})(?:,([0-9]{1,7}))? \+([0-9]{1,7})(?:,([0-9]{1,7}))? @@.*| .*@@.*)?")
_REFUSED = ("rename from", "rename to", "copy from", "copy to", "GIT binary patch", "Binary files ")
_NONE = "/dev/null"


@dataclass(slots=True)
class _Hunk:
    """One hunk while it is read: where it says that it stands, how many lines it says that it has, and its lines."""

    path: str
    line: int | None
    olds: int | None
    news: int | None
    lines: list[str] = field(default_factory=list[str])

    @property
    def full(self) -> bool:
        """Whether it has as many lines as its head says."""
        return self.olds is not None and len(self._side("+")) >= self.olds and len(self._side("-")) >= (self.news or 0)

    def edit(self) -> Edit:
        """The hunk as an edit; empty lines without a sign at its end may stand behind it, and are no loss."""
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        old, new = ("\n".join(line[1:].rstrip() for line in self._side(other)) for other in "+-")
        return Edit(self.path, old, new, self.line)

    def _side(self, other: str) -> list[str]:
        """Its lines without those of the other side."""
        return [line for line in self.lines if not line.startswith(other)]


def has_diff(text: str) -> bool:
    r"""Whether a text has the head of a unified diff.

    >>> has_diff("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@"), has_diff("---\na rule\n+++")
    (True, False)
    """
    lines = text.split("\n")
    return any(_OLD.fullmatch(a.strip()) and _NEW.fullmatch(b.strip()) for a, b in pairwise(lines))


def edits_in_diff(text: str) -> list[Edit]:
    r"""The edits that the unified diffs of a text give, one for each hunk, in their order.

    A hunk's lines must stand in the file as they are; where they do more than once, those count that are nearest to the line
    that the hunk's head names. Its counts may be wrong, its numbers missing. A new file is one from ``/dev/null``; a file that
    becomes ``/dev/null`` becomes empty.

    >>> edits_in_diff("--- a/x.py\n+++ b/x.py\n@@ -3,2 +3,2 @@\n y\n-x = 1\n+x = 2\n")
    [Edit(path='x.py', search='y\nx = 1', replace='y\nx = 2')]

    Raises:
        Unapplied: ``large`` and ``outside`` as `assay.verify.code.edits_in` has them; ``unapplied``: a rename, a copy or a binary
            file.
    """
    found: list[Edit] = []
    hunk: _Hunk | None = None
    path, new = "", False
    lines = text.split("\n")
    for line, below in pairwise([*lines, ""]):
        if line.startswith(_REFUSED):
            raise Unapplied("unapplied", f"{line.strip()[:80]!r} is not taken: give the lines that change")
        head = _OLD.fullmatch(line.strip()) is not None and _NEW.fullmatch(below.strip()) is not None
        start = _HUNK.fullmatch(line.rstrip())
        inside = line[:1] in (" ", "+", "-", "\t", "\\") or (not line and not (hunk and hunk.full))
        if hunk and (head or start or not inside):
            found, hunk = [*found, hunk.edit()], None
        if head:
            path, new = _path(line, below), line.strip()[4:].strip() == _NONE
        elif start and path:
            refuse_edit(path, len(text), len(found))
            hunk = _Hunk(
                path, None if new or not start[3] else int(start[3]), _count(start[1], start[2]), _count(start[3], start[4])
            )
        elif hunk and not line.startswith("\\"):
            hunk.lines.append(f" {line}" if line.startswith("\t") else line)
    return [*found, *([hunk.edit()] if hunk else [])]


def _count(line: str | None, lines: str | None) -> int | None:
    """How many lines a head says; one where it names a line and no number."""
    return int(lines or 1) if line else None


def _path(old: str, new: str) -> str:
    """The file that two heads name: without what stands behind a tab, and without ``a/`` and ``b/`` where both have them."""
    before, after = (head.strip()[4:].strip().split("\t")[0].strip().strip('"') for head in (old, new))
    names = [name for name in (after, before) if name != _NONE]
    if all(name.startswith(prefix) for name, prefix in ((before, "a/"), (after, "b/")) if name != _NONE):
        names = [name[2:] for name in names]
    return names[0] if names else ""

"""Edits to files as a text says them: blocks of what is searched and what replaces it, below a path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

__all__ = ["Edit", "Unapplied", "apply_edits", "edits_in", "refuse_edit", "edits_between"]

_OPEN, _MIDDLE, _CLOSE = (re.compile(f"{mark}{{7}}(?: {word})?") for mark, word in (("<", "SEARCH"), ("=", ""), (">", "REPLACE")))
_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}(?:/[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}){0,8}")
_ROUND = "`*#:\"' \t"
_MOST_EDITS, _MOST = 64, 200_000


class Unapplied(Exception):
    """Edits that cannot be made. ``word`` is the verdict on them, and the message says why."""

    def __init__(self, word: str, why: str) -> None:
        super().__init__(why)
        self.word = word


@dataclass(frozen=True, slots=True)
class Edit:
    r"""Lines of a file, and what stands there instead.

    Attributes:
        path: of the file, from the root of the repository.
        search: whole lines that stand in it exactly once; empty for a file that is not there yet.
        replace: the lines that come in their place; empty to delete them.
        line: where they begin, from 1, as the edit says. Lines that stand in the file more than once are then those nearest to
            it, and an empty search means before that line.
    """

    path: str
    search: str
    replace: str
    line: int | None = field(default=None, repr=False)


def edits_in(text: str) -> list[Edit]:
    r"""The edits that a text gives, in their order.

    Each is a line ``<<<<<<< SEARCH``, lines, a line ``=======``, lines, and a line ``>>>>>>> REPLACE``; the path stands alone on
    the line before, where a fence and empty lines may come between. A block without a path belongs to the file of the one before
    it. A block that is left open is none. Time grows with the length of the text and not faster.

    >>> edits_in("So:\na/b.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n")
    [Edit(path='a/b.py', search='x = 1', replace='x = 2')]

    Raises:
        Unapplied: ``large``: there are more than 64, or the text has more than 200,000 characters and an edit among them;
            ``outside``: a block has no path, or one that is not below the root.
    """
    found: list[Edit] = []
    parts: list[list[str]] = []
    path = before = ""
    for line in text.split("\n"):
        bare = line.strip()
        if not parts:
            if _OPEN.fullmatch(bare):
                path = before.strip(_ROUND) or path
                parts = [[]]
                refuse_edit(path, len(text), len(found))
            elif bare and not bare.startswith("```"):
                before = bare
        elif len(parts) == 1 and _MIDDLE.fullmatch(bare):
            parts.append([])
        elif len(parts) == 2 and _CLOSE.fullmatch(bare):
            found.append(Edit(path, "\n".join(parts[0]), "\n".join(parts[1])))
            parts, before = [], ""
        else:
            parts[-1].append(line.rstrip())
    return found


def refuse_edit(path: str, size: int, edits: int) -> None:
    """Refuses an edit behind so many others in a text of that many characters.

    Raises:
        Unapplied: ``large`` or ``outside``, as for `edits_in`.
    """
    if size > _MOST or edits >= _MOST_EDITS:
        raise Unapplied("large", f"at most {_MOST_EDITS} edits in at most {_MOST} characters are taken")
    if not _PATH.fullmatch(path) or ".." in path:
        raise Unapplied("outside", f"an edit needs the path of a file in the repository on the line before it, not {path[:80]!r}")


def apply_edits(
    files: Mapping[str, str], edits: Sequence[Edit], protected: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    r"""The files after edits, and the paths of edits that were left out, since they are protected.

    White space at the end of lines does not count.

    Args:
        files: path to content.
        edits: made one after the other.
        protected: files, or folders that end in ``/``, which stay as they are.

    >>> apply_edits({"a.py": "x = 1\ny = 2\n"}, [Edit("a.py", "x = 1", "x = 3")])
    ({'a.py': 'x = 3\ny = 2\n'}, [])

    Raises:
        Unapplied: ``unapplied``: the lines stand in the file nowhere or more than once, or there is no such file; ``large``: a
            file grows beyond 200,000 characters.
    """
    after, left_out = dict(files), list[str]()
    for edit in edits:
        if any(edit.path == place or (place.endswith("/") and edit.path.startswith(place)) for place in protected):
            left_out.append(edit.path)
            continue
        after[edit.path] = _apply_edit(after, edit)
        if len(after[edit.path]) > _MOST:
            raise Unapplied("large", f"{edit.path} would have more than {_MOST} characters")
    return after, left_out


def _apply_edit(files: Mapping[str, str], edit: Edit) -> str:
    if edit.path not in files:
        if edit.search.strip():
            raise Unapplied("unapplied", f"there is no file {edit.path}")
        if any(path.startswith(f"{edit.path}/") or edit.path.startswith(f"{path}/") for path in files):
            raise Unapplied("unapplied", f"{edit.path} is in the way of another file")
        return f"{edit.replace}\n"
    lines = [line.rstrip() for line in files[edit.path].removesuffix("\n").split("\n")] if files[edit.path] else []
    wanted = edit.search.split("\n") if edit.search else []
    if not edit.search.strip() and edit.line is None:
        raise Unapplied("unapplied", f"{edit.path} is there already: say which of its lines are replaced")
    start = _find_lines(lines, wanted, edit)
    middle = edit.replace.split("\n") if edit.replace else []
    return "".join(f"{line}\n" for line in [*lines[:start], *middle, *lines[start + len(wanted) :]])


def _find_lines(lines: list[str], wanted: list[str], edit: Edit) -> int:
    """Where an edit's lines begin."""
    if not wanted:
        return min(max((edit.line or 1) - 1, 0), len(lines))
    first = wanted[0]
    places = [i for i, line in enumerate(lines) if line == first and lines[i : i + len(wanted)] == wanted]
    if not places:
        raise Unapplied("unapplied", f"the lines to replace are not in {edit.path}")
    if len(places) > 1 and edit.line is not None:
        near = sorted(places, key=lambda i: abs(i + 1 - (edit.line or 1)))
        places = near if abs(near[0] + 1 - edit.line) == abs(near[1] + 1 - edit.line) else near[:1]
    if len(places) > 1:
        raise Unapplied("unapplied", f"the lines to replace are in {edit.path} more than once: give more lines around them")
    return places[0]


def edits_between(before: Mapping[str, str], after: Mapping[str, str]) -> list[Edit]:
    r"""Edits that lead from some files to others: one for each stretch, with as many lines around it as make it the only one.

    A file of empty lines alone cannot be told by its lines, so it cannot be edited.

    >>> edits_between({"a.py": "x = 1\nz = 0\ny = 1\nz = 0\n"}, {"a.py": "x = 1\nz = 0\ny = 1\nz = 2\n"})
    [Edit(path='a.py', search='y = 1\nz = 0', replace='y = 1\nz = 2')]
    """
    return [edit for path in after for edit in _of_file(path, before.get(path), after[path])]


def _of_file(path: str, old: str | None, new: str) -> list[Edit]:
    if old is None:
        return [Edit(path, "", new.removesuffix("\n"))]
    found = _stretches(path, old.split("\n")[:-1], new.split("\n")[:-1])
    try:
        fits = apply_edits({path: old}, found)[0][path] == new
    except Unapplied:  # one edit makes the place of the next ambiguous
        fits = False
    return found if fits else [Edit(path, old.removesuffix("\n"), new.removesuffix("\n"))]


def _stretches(path: str, a: list[str], b: list[str]) -> list[Edit]:
    found: list[Edit] = []
    for kind, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        up = down = 0
        while not _only(a, i - up, j + down) and (i - up > 0 or j + down < len(a)):
            up, down = (up + 1, down) if i - up > 0 else (up, down + 1)
        found.append(Edit(path, "\n".join(a[i - up : j + down]), "\n".join([*a[i - up : i], *b[k:m], *a[j : j + down]])))
    return found


def _only(lines: list[str], start: int, end: int) -> bool:
    """Whether some lines are not all empty, and stand nowhere else."""
    part, size = lines[start:end], end - start
    return any(map(str.strip, part)) and sum(lines[i : i + size] == part for i in range(len(lines) - size + 1)) == 1

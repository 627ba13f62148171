"""Search over texts of one's own: a kept index in one file, whose answers are the same on every machine."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from assay.core.errors import ConfigError, DataError

__all__ = ["Corpus"]

_WORD = re.compile(r"\w+")


class Corpus:
    """An index over texts (SQLite FTS5 with BM25); what `search` answers is what a tool answers.

        MANUAL = Corpus.build("manual.db", [("Valves", "A valve is ..."), ...])  # once; later: Corpus("manual.db")

        def search(query: str) -> str:
            "Searches the manual."
            return MANUAL.search(query)

    Args:
        path: of a file that `build` made.
        characters: of each text that an answer shows.

    Raises:
        ConfigError: there is no such file, or it is no index.
    """

    def __init__(self, path: str | Path, characters: int = 300) -> None:
        self.path, self._characters, self._lock = Path(path).resolve(), characters, threading.Lock()
        if not self.path.is_file():
            raise ConfigError(f"Corpus: there is no file {str(path)!r}; make it by Corpus.build(path, texts)")
        try:
            self._connection = sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True, check_same_thread=False)
            self.size = int(self._connection.execute("SELECT count(*) FROM texts").fetchone()[0])
        except sqlite3.Error as error:
            raise ConfigError(f"Corpus: {self.path} is no index ({error}); make it by Corpus.build(path, texts)") from None

    @classmethod
    def build(cls, path: str | Path, texts: Iterable[tuple[str, str]], characters: int = 300) -> Corpus:
        """Makes the file, in place of one that is there.

        Args:
            path: where.
            texts: title and text of each.
            characters: as above.

        Raises:
            DataError: there is no text.

        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "corpus.db"
        >>> corpus = Corpus.build(place, [("Figs", "Figs grow on trees."), ("Nuts", "Nuts have shells.")])
        >>> corpus.search("what grows on a tree?"), corpus.read("Nuts")
        ('Figs: Figs grow on trees.', 'Nuts have shells.')
        """
        place = Path(path)
        place.unlink(missing_ok=True)
        with closing(sqlite3.connect(place)) as connection, connection:
            connection.execute("CREATE VIRTUAL TABLE texts USING fts5(title, body, tokenize='porter unicode61')")
            made = connection.executemany("INSERT INTO texts VALUES (?, ?)", texts).rowcount
        if made < 1:
            place.unlink()
            raise DataError(f"Corpus.build({str(path)!r}): there is no text to be indexed")
        return cls(place, characters)

    def search(self, query: str, n: int = 3) -> str:
        """Titles and beginnings of the texts that suit a query best, a line each; ties in the order in which they were given."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)[:32]))
        rows = self._ask(words, max(1, min(n, 20))) if words else []
        lines = [f"{title}: {' '.join(body.split())[: self._characters]}" for title, body in rows]
        return "\n".join(lines) or "(nothing found)"

    def read(self, title: str) -> str:
        """The text of a title.

        Raises:
            ValueError: there is none of that title.
        """
        with self._lock:
            row = self._connection.execute("SELECT body FROM texts WHERE title = ? ORDER BY rowid", (title,)).fetchone()
        if row is None:
            raise ValueError(f"there is no text {title[:80]!r}; search gives titles")
        return str(row[0])

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _ask(self, words: str, n: int) -> list[tuple[str, str]]:
        order = "SELECT title, body FROM texts WHERE texts MATCH ? ORDER BY round(bm25(texts), 6), rowid LIMIT ?"
        with self._lock:
            return [(str(title), str(body)) for title, body in self._connection.execute(order, (words, n))]

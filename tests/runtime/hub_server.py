"""A hub on 127.0.0.1: gives the files of folders under names, and fails in the ways that hubs fail."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def cached(cache: Path, kind: str, repo: str, commit: str = COMMIT, branch: str = "main") -> Path:
    """An empty snapshot in the layout of the cache, with its branch."""
    place = cache / f"{kind}s--{repo.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / branch).write_text(commit)
    (place / "snapshots" / commit).mkdir(parents=True)
    return place / "snapshots" / commit


@contextmanager
def hub(folders: Mapping[str, Path]) -> Generator[tuple[str, list[str]]]:
    """Its address, and what it was asked. Names that hold a word of `_Handler` fail like this."""
    asked: list[str] = []

    class Handler(_Handler):
        repos, seen = folders, asked

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    repos: Mapping[str, Path]
    seen: list[str]

    def do_GET(self) -> None:
        path = unquote(urlparse(self.path).path)
        self.seen.append(path)
        if "hang" in path:
            time.sleep(1.5)
        for word, (status, code) in {
            "gated": (403, "GatedRepo"),
            "locked": (401, ""),
            "broken": (500, ""),
            "forbidden": (403, ""),
        }.items():
            if word in path:
                self._answer(status, b"", {"X-Error-Code": code} if code else {})
                return
        for repo, folder in self.repos.items():
            if repo in path:
                self._give(path, repo, folder)
                return
        self._answer(404, b"", {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def _give(self, path: str, repo: str, folder: Path) -> None:
        rest = path.split(repo, 1)[1]
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        if "nowhere" in rest:
            self._answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif not rest or "/revision/" in rest:
            found = {"id": repo, "sha": COMMIT, "siblings": [{"rfilename": n} for n in files], "tags": [], "private": False}
            self._answer(200, json.dumps(found).encode(), {"Content-Type": "application/json"})
        elif "/tree/" in rest:
            tree = [{"type": "file", "path": n, "size": p.stat().st_size, "oid": _etag(p)} for n, p in files.items()]
            self._answer(200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
        else:
            name = rest.split(f"/resolve/{COMMIT}/", 1)[-1]
            self._answer(200, files[name].read_bytes(), {"ETag": f'"{_etag(files[name])}"', "X-Repo-Commit": COMMIT})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)
        except OSError:  # the client gave up
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


def _etag(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()

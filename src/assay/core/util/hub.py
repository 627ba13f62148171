"""Models and data sets by their names on a hub: found in the local cache first, else fetched, pinned to a commit."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from assay.core.errors import HubError, MissingExtraError

__all__ = ["PREFIX", "HubName", "Snapshot", "commit_of", "fetch"]

PREFIX = "hub:"
_NAME = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_COMMANDS = {"model": "hf download", "dataset": "hf download --repo-type dataset"}


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
        """The name that ``text`` is, with ``hub:`` before it or without; None where it cannot be one."""
        found = _NAME.fullmatch(text.removeprefix(PREFIX))
        return cls(found["repo"], found["revision"] or "") if found else None

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, which never changes."""
        return bool(_COMMIT.fullmatch(self.revision))

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}" if self.revision else self.repo


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a name stands for: a folder of the cache, and the name with its commit."""

    name: HubName
    folder: Path


def fetch(name: HubName, kind: str, patterns: Sequence[str], lacking: Callable[[Path], str]) -> Snapshot:
    """The files of a repository, from the cache where it has them, else from the hub.

    The cache is that of the library huggingface_hub (``HF_HUB_CACHE``, ``HF_HOME``), the hub ``HF_ENDPOINT``; with
    ``HF_HUB_OFFLINE`` it is not asked. What the cache has of a branch is taken as it is, also where the branch has moved on.

    Args:
        name: of the repository.
        kind: ``model`` or ``dataset``.
        patterns: of the files to fetch.
        lacking: what a folder lacks, empty for nothing: a part of a repository may be in the cache.

    Raises:
        HubError: neither has it; says why, and what to do.
        MissingExtraError: huggingface_hub is not installed.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub") from None
    download: Any = cast(Any, huggingface_hub).snapshot_download
    cache, endpoint = _cache(), os.environ.get("HF_ENDPOINT") or _default("ENDPOINT")
    part, revision = "", name.revision or None

    def get(local: bool) -> Path:
        return Path(
            download(
                name.repo,
                repo_type=kind,
                revision=revision,
                cache_dir=cache,
                endpoint=endpoint,
                local_files_only=local,
                allow_patterns=list(patterns),
            )
        )

    try:
        folder = get(local=True)
        part = lacking(folder)
        if not part:
            return Snapshot(replace(name, revision=folder.name), folder)
    except OSError:
        pass
    here = f"the cache {cache} has it only in part ({part})" if part else f"it is not in the cache {cache}"
    fixes = (
        f"give a local folder instead, set HF_HOME to a cache that has it, or fetch it where the hub is in reach: "
        f"{_COMMANDS[kind]} {name.repo}" + (f" --revision {name.revision}" if name.revision else "")
    )
    if _offline():
        raise HubError(f"{kind} {name}: {here}, and HF_HUB_OFFLINE says not to ask the hub; {fixes}")
    try:
        with _patient():  # asked first, for the download tries for half a minute where nobody answers
            api: Any = cast(Any, huggingface_hub).HfApi(endpoint=endpoint)
            api.repo_info(name.repo, repo_type=kind, revision=revision)
            folder = get(local=False)
    except Exception as error:  # those of three libraries, which have no base in common
        raise HubError(f"{kind} {name}: {here}, and {_why(error, endpoint)}; {fixes}") from error
    if missing := lacking(folder):
        raise HubError(f"{kind} {name} on {endpoint} cannot be used: {missing}; name another")
    return Snapshot(replace(name, revision=folder.name), folder)


def commit_of(path: str) -> str:
    """The commit that a file of the cache belongs to.

    >>> commit_of("cache/models--a--b/snapshots/0123/config.json")
    '0123'
    """
    parts = Path(path).parts
    return parts[parts.index("snapshots") + 1]


def _why(error: BaseException, endpoint: str) -> str:
    """What a failure of the library means, in words."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    found = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ is not None else error
    if isinstance(found, GatedRepoError):
        return f"{endpoint} gives it only to those who accepted its terms: do so on its page, then hf auth login, or set HF_TOKEN"
    status = found.response.status_code if isinstance(found, HfHubHTTPError) else 0
    if isinstance(found, RevisionNotFoundError):
        return f"{endpoint} has no such revision of it"
    if isinstance(found, RepositoryNotFoundError) or status == 404:
        return f"{endpoint} knows no such name, or it is private: check the spelling, or hf auth login, or set HF_TOKEN"
    if status:
        what = "asks for a token: hf auth login, or set HF_TOKEN" if status in (401, 403) else "fails"
        return f"{endpoint} {what} (status {status})"
    if "timeout" in type(found).__name__.lower() or "timed out" in str(found).lower():
        return f"{endpoint} does not answer within {_seconds():g} s"
    line = (str(found) or type(found).__name__).splitlines()[0]
    return f"{endpoint} cannot be reached ({line})"


def _cache() -> str:
    home = os.environ.get("HF_HOME")
    return os.environ.get("HF_HUB_CACHE") or (str(Path(home) / "hub") if home else _default("HF_HUB_CACHE"))


def _default(name: str) -> str:
    from huggingface_hub import constants

    return str(getattr(constants, name))


def _offline() -> bool:
    said = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return said.upper() in ("1", "ON", "YES", "TRUE")


def _seconds() -> float:
    return float(os.environ.get("HF_HUB_ETAG_TIMEOUT") or 10.0)


@contextmanager
def _patient() -> Generator[None]:
    """The library's session waits for ever by default; inside it gives up on a hub that says nothing."""
    from huggingface_hub import get_session

    def hurry(request: Any) -> None:
        given: dict[str, float | None] = request.extensions.get("timeout") or {}
        request.extensions["timeout"] = {k: given.get(k) or _seconds() for k in ("connect", "read", "write", "pool")}

    session: Any = get_session()
    before = session.event_hooks
    session.event_hooks = {**before, "request": [*before["request"], hurry]}
    try:
        yield
    finally:
        session.event_hooks = before

"""A model, an environment or a data set to a hub: what would be uploaded, checked first, and the upload."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.errors import AssayError, ConfigError, HubError, MissingExtraError, UnknownNameError
from assay.core.util.hub import HubName

__all__ = ["KINDS", "Upload", "prepare_upload", "push"]

KINDS: Mapping[str, str] = {"model": "model", "environment": "dataset", "dataset": "dataset"}
"""What can be pushed, and the kind of its repository."""

_CACHES = frozenset({"__pycache__", ".git", ".pytest_cache", ".ruff_cache", ".cache", ".ipynb_checkpoints", ".venv"})
_MADE = frozenset({"outputs", "runs", "build", "dist"})
"""Folders at the top of a package that commands write there: evaluations of `verifiers`, runs, builds."""
_SECRET_NAMES = re.compile(r"\.env(\..+)?|\.netrc|id_(rsa|dsa|ecdsa|ed25519)|.+\.(pem|key|p12)|credentials(\.json)?|\.pypirc")
_SECRETS: Mapping[str, re.Pattern[str]] = {
    "a token of the Hugging Face hub": re.compile(r"\bhf_[A-Za-z0-9]{30,}"),
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,})"),
    "a key of an API": re.compile(r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{24,}"),
    "a key of AWS": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
}
_PATH = re.compile(r"(?<![\w.:/-])/(?:home|root|Users|tmp|mnt|data|work|scratch|workspace|var/folders)/[\w.@-][^\s\"'`,;)]*")
_TEXTS = frozenset([".md", ".json", ".jsonl", ".toml", ".txt", ".py", ".yaml", ".yml", ".cfg", ".ini", ".csv", ".jinja"])
_VOCABULARY = frozenset({"tokenizer.json", "vocab.json", "merges.txt"})  # their words say nothing of this machine
_LONGEST = 64 * 2**20  # bytes of a text that are read


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What goes to a hub.

    Attributes:
        folder: where the files are.
        repo: ``owner/name``.
        kind: one of `KINDS`.
        private: whether others may not see it.
        files: relative paths with their bytes.
        problems: why it should not go, each with its file.
    """

    folder: Path
    repo: str
    kind: str
    private: bool
    files: Mapping[str, int]
    problems: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.files.values())


def prepare_upload(
    folder: str | Path, repo: str, kind: str = "model", private: bool = False, allow_paths: bool = False
) -> Upload:
    """Lists what would be uploaded of a folder, or of one file, and looks for what is missing and for what should stay here.

    Args:
        folder: a model folder as `assay.publish.export` writes it, an environment's package, or a data set.
        repo: ``owner/name``.
        kind: ``model``, ``environment`` or ``dataset``.
        private: whether others may not see it.
        allow_paths: take no offence at paths of a machine.

    Raises:
        ConfigError: no such folder, or a name that is none.
        UnknownNameError: another kind.

    >>> import tempfile
    >>> from pathlib import Path
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "rows.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}')
    >>> found = prepare_upload(place, "me/sums", "dataset")
    >>> found.files, found.problems
    ({'rows.jsonl': 33}, ())
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of what is pushed", kind, KINDS)
    name = HubName.read(repo)
    if name is None or name.revision or repo.startswith("hub:"):
        raise ConfigError(f"{repo!r} is no repository on a hub; write it as owner/name")
    place = Path(folder)
    if not place.exists():
        raise ConfigError(
            f"{place} does not exist; give a run, or a folder as 'assay export' and 'assay tasks export' write them"
        )
    root = place if place.is_dir() else place.parent
    paths = [place] if place.is_file() else [p for p in sorted(place.rglob("*")) if p.is_file() and not _cached(p, place)]
    if (root / "pyproject.toml").exists():
        paths = [p for p in paths if p.relative_to(root).parts[0] not in _MADE or p.parent == root]
    files = {p.relative_to(root).as_posix(): p.stat().st_size for p in paths}
    problems = (*_incomplete(root, files, kind), *_private(root, files, allow_paths))
    return Upload(folder=root, repo=repo, kind=kind, private=private, files=files, problems=problems)


def push(upload: Upload, message: str = "Upload with assay") -> str:
    """Makes the repository, if there is none, and uploads all files as one commit; the address of the repository.

    The hub is the one that ``HF_ENDPOINT`` names, and the token that of ``hf auth login`` or ``HF_TOKEN``.

    Args:
        upload: what `prepare_upload` found.
        message: of the commit.

    Raises:
        ConfigError: there are problems, there is no token, or the repository is there and others can see it, or cannot, unlike
            what was asked for.
        HubError: the hub refuses, or does not answer; nothing was changed, or a repository without files was made.
        MissingExtraError: ``huggingface_hub`` is not installed.
    """
    if upload.problems:
        raise ConfigError(f"nothing was uploaded: {'; '.join(upload.problems)}")
    try:
        import huggingface_hub as hub
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub") from None
    if hub.get_token() is None:
        raise ConfigError("there is no token for the hub: run 'hf auth login', or put one that may write into HF_TOKEN")
    kind, endpoint = KINDS[upload.kind], os.environ.get("HF_ENDPOINT") or str(hub.constants.ENDPOINT)
    with _hub_errors(upload.repo, endpoint):
        api = hub.HfApi(endpoint=endpoint)
        made: Any = api.create_repo(upload.repo, repo_type=kind, private=upload.private, exist_ok=True)
        found: Any = api.repo_info(upload.repo, repo_type=kind)
        if bool(found.private) != upload.private:
            here, there = ("private", "public") if upload.private else ("public", "private")
            fix = "choose another name, or change it on the hub" if upload.private else "add --private, or change it on the hub"
            raise ConfigError(
                f"{upload.repo} exists and is {there}, and what is pushed is to be {here}: {fix}; nothing was uploaded"
            )
        operations: list[Any] = [
            hub.CommitOperationAdd(path_in_repo=path, path_or_fileobj=str(upload.folder / path)) for path in upload.files
        ]
        api.create_commit(upload.repo, operations, commit_message=message, repo_type=kind)
    return str(made)


@contextmanager
def _hub_errors(repo: str, endpoint: str) -> Generator[None]:
    """Errors of the hub and its library as `HubError`."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except AssayError:
        raise
    except HfHubHTTPError as error:
        status = error.response.status_code
        fix = {401: "look at the token", 403: "the token may not write there"}.get(status, "try again later")
        raise HubError(f"{endpoint} refused {repo} with status {status}: {error.server_message or 'no reason'}; {fix}") from None
    except OfflineModeIsEnabled:
        raise HubError(f"{repo} cannot be pushed offline: unset HF_HUB_OFFLINE") from None
    except Exception as error:  # those of three libraries, which have no base in common
        line = (str(error) or "no reason").splitlines()[0]
        raise HubError(f"{endpoint} could not be reached for {repo} ({type(error).__name__}: {line}); try again") from error


def _cached(path: Path, root: Path) -> bool:
    inside = path.relative_to(root)
    return not _CACHES.isdisjoint(inside.parts) or path.suffix == ".pyc" or any(n.endswith(".egg-info") for n in inside.parts)


def _incomplete(root: Path, files: Mapping[str, int], kind: str) -> Generator[str]:
    """What is missing of a folder of a kind."""
    if not files:
        yield f"{root} holds no files"
    for path, size in files.items():
        if not size and not path.endswith((".py", ".typed")):
            yield f"{path} is empty"
    if kind == "model":
        yield from _incomplete_model(root, files)
    if kind == "environment" and "pyproject.toml" not in files:
        yield "there is no pyproject.toml: 'assay tasks export NAME FOLDER' writes an environment's package"
    if kind == "environment" and "pyproject.toml" in files and '"assay.tasks"' in (root / "pyproject.toml").read_text("utf-8"):
        yield (
            "it is a package of task families for assay, which belongs on a package index: for an environment, "
            "'assay tasks export NAME FOLDER', and push that folder"
        )
    if kind == "environment" and not any(path.endswith(".py") for path in files):
        yield "there is no Python file"
    if kind == "dataset" and not any(path.endswith((".jsonl", ".parquet", ".json", ".csv", ".gz", ".arrow")) for path in files):
        yield "there are no rows: give .jsonl, .parquet, .json or .csv"


def _incomplete_model(root: Path, files: Mapping[str, int]) -> Generator[str]:
    adapter = "adapter_config.json" in files
    if not adapter and "config.json" not in files:
        yield "there is no config.json: 'assay export RUN --to FOLDER' writes a whole folder"
    weights = "adapter_model.safetensors" if adapter else "model.safetensors"
    index = f"{weights}.index.json"
    if index in files:
        try:
            shards = set(json.loads((root / index).read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError):
            yield f"{index} cannot be read"
        else:
            yield from (f"{shard} is missing, which {index} names" for shard in sorted(shards - files.keys()))
    elif weights not in files:
        yield f"there is no {weights}"
    for name, what in (("tokenizer.json", "the tokenizer"), ("README.md", "the model card")):
        if name not in files and not (adapter and name == "tokenizer.json"):
            yield f"there is no {name}, {what}"


def _private(root: Path, files: Iterable[str], allow_paths: bool) -> Generator[str]:
    """Secrets, and paths of this machine."""
    own = [str(p) for p in (Path.home(), Path.cwd()) if len(p.parts) > 2]
    for path in files:
        if _SECRET_NAMES.fullmatch(Path(path).name):
            yield f"{path} is a file for secrets"
            continue
        if Path(path).suffix not in _TEXTS or Path(path).name in _VOCABULARY:
            continue
        with (root / path).open("rb") as file:
            text = file.read(_LONGEST).decode("utf-8", "replace")
        for line, words in enumerate(text.split("\n"), 1):
            yield from (f"{path}, line {line}: {what}" for what, pattern in _SECRETS.items() if pattern.search(words))
            if allow_paths:
                continue
            found = _PATH.search(words)
            place = found[0] if found else next((o for o in own if o in words), None)
            if place:
                yield f"{path}, line {line}: a path of a machine, {place}"

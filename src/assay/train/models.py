"""Where starting weights come from: a folder, a fresh initialisation, or another run's product, built once and cached."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import assay
from assay.core.canon import digest
from assay.core.config import to_dict
from assay.core.errors import CheckpointError, ConfigError, DataError, MissingExtraError, a_kind
from assay.core.util.folder_digest import seal_folder
from assay.core.util.hub import PREFIX
from assay.core.util.paths import cache_folder
from assay.runs.best_model import best_model
from assay.runs.storage import fresh_folder
from assay.runtime.models.hub_names import ADAPTER_CONFIG, hub_name, on_hub
from assay.runtime.settings import DecoderShape
from assay.runtime.text.chat import Chat
from assay.train.checkpoint_weights import checkpoint_place

if TYPE_CHECKING:
    from assay.core.learner import Learner
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.text.tokenizer import ChatTemplate, HubTokenizer
    from assay.train.run import Run
    from assay.train.stage import Stage

__all__ = [
    "Built",
    "Folder",
    "Scratch",
    "check_tokenizer",
    "from_folder",
    "held_path",
    "keep_model",
    "load_source",
    "model_folder",
    "more_positions",
    "scratch_tokenizer",
]

_SOURCES = {".py", ".cpp", ".h"}
_SPECIAL = 2  # ids of a character tokenizer besides its alphabet: padding and end

Builder = Callable[["Run", Path], Path]
"""Runs a recipe in a folder and returns the folder of the model it made."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A model folder in Hugging Face format, a run folder, whose final model is taken, or a model by its name on the hub.

    A run writes the commit behind the name into its ``run.toml`` when it begins.

    Attributes:
        path: the folder; or ``owner/name`` or ``owner/name@revision``, where no such folder is here.
        chat: how the model is talked to; None: as the folder's own chat template and settings say.
    """

    path: str
    chat: Chat | None = None

    def describe(self) -> str:
        """One line for people."""
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Freshly initialised weights and a character tokenizer.

    Attributes:
        shape: the decoder; its ``vocab_size`` is set by the alphabet.
        alphabet: all characters that prompts and answers may hold.
        template: how turns become text.
        chat: a system prompt or thinking tags; None: neither.
        init: ``fan_in`` (learns fastest at these sizes) or ``normal`` (Hugging Face's).
        seed: of the initialisation.

    Raises:
        ConfigError: two templates.
    """

    shape: DecoderShape = field(default_factory=DecoderShape)
    alphabet: str = "".join(map(chr, range(32, 127))) + "\n"
    template: ChatTemplate | None = None
    chat: Chat | None = None
    init: str = "fan_in"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.template is not None and self.chat is not None and self.chat.template:
            raise ConfigError("Scratch.template and Scratch.chat.template both say how turns become text; give one of them")

    def describe(self) -> str:
        """One line for people."""
        return f"{self.decoder.parameters:,} fresh parameters"

    @property
    def decoder(self) -> DecoderShape:
        """The shape with as many rows of its embedding as the alphabet needs."""
        return replace(self.shape, vocab_size=len(self.alphabet) + _SPECIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The product of another run, built on first use and cached by a hash of that run, its seed and data, and assay's code."""

    run: Run

    def describe(self) -> str:
        """One line for people."""
        return f"base {self.run.name!r}, built on first use ({self.run.steps} steps)"

    @property
    def key(self) -> str:
        """Name in the cache."""
        from assay.train.data import data_digests

        return f"{self.run.name}-{digest([to_dict(self.run), data_digests(self.run), _code_digest(), _numerics()], 8)}"


def load_source(source: object, build: Builder) -> AnyModel:
    """The model that a source names.

    Args:
        source: `Folder`, `Scratch` or `Built`.
        build: runs a recipe; called only when the cache lacks its product.

    Raises:
        ConfigError: another kind of source.
        DataError: the folder holds no model that assay can run.
    """
    from assay.runtime.models.hf import load_model
    from assay.runtime.models.model import init_model

    if isinstance(source, Folder):
        model = from_folder(source.path)
        check_tokenizer(source, model.tokenizer)
        return model if source.chat is None else replace(model, tokenizer=model.tokenizer.with_chat(source.chat))
    if isinstance(source, Scratch):
        tokenizer = scratch_tokenizer(source)
        shape = replace(source.shape, vocab_size=tokenizer.size)
        return init_model(shape, tokenizer, source.seed, init=source.init)
    if isinstance(source, Built):
        folder = cache_folder() / "base" / source.key
        try:
            return load_model(build(source.run, folder))
        except (DataError, CheckpointError) as error:
            raise DataError(f"the base in the cache is damaged ({error}); remove {folder}, and it is built again") from error
    raise ConfigError(f"Run.model is {a_kind(source)}; use Folder(path), Scratch(...) or Built(run=...)")


def check_tokenizer(source: Folder, tokenizer: HubTokenizer) -> None:
    """Refuses a model folder whose text transformers encodes by other ids; of a run folder that was seen when it began.

    Raises:
        DataError: as `assay.runtime.text.transformers_ids.check_agreement`.
    """
    from assay.runtime.models.adapter_base import whole_of
    from assay.runtime.text.transformers_ids import check_agreement

    if not (Path(source.path) / "run.toml").exists():
        check_agreement(tokenizer, whole_of(model_folder(Path(source.path))))


def scratch_tokenizer(source: Scratch) -> HubTokenizer:
    """The characters of a fresh model, and how it is talked to."""
    from assay.runtime.text.tokenizer import ChatTemplate, char_tokenizer

    tokenizer = char_tokenizer(source.alphabet, source.template or ChatTemplate())
    return tokenizer if source.chat is None else tokenizer.with_chat(source.chat)


def more_positions(source: object, tokens: int) -> str:
    """How a fresh model gets a context that holds rows of so many tokens; empty where a model is not fresh.

    >>> more_positions(Scratch(), 150)
    'give the fresh model more positions: Scratch(shape=DecoderShape(max_positions=256))'
    """
    if not isinstance(source, Scratch):
        return ""
    fits = f"max_positions={1 << (tokens - 1).bit_length()}"
    plain = replace(source.shape, max_positions=DecoderShape().max_positions) == DecoderShape()
    shape = f"DecoderShape({fits})" if plain else f"DecoderShape(..., {fits})"
    return f"give the fresh model more positions: Scratch(shape={shape})"


def from_folder(path: str) -> AnyModel:
    """The model in a model folder or a run folder.

    Raises:
        ConfigError, DataError: as `load`.
    """
    from assay.runtime.models.hf import load_model

    return load_model(model_folder(Path(path)))


def save_from(learner: Learner, place: Path) -> None:
    """Writes the model that a learner has now into an empty folder."""
    from assay.runtime.models.hf import save_model

    save_model(learner.model(), place)


def keep_model(model: AnyModel, place: Path) -> None:
    """Writes a model into a new folder of a run, whole or not at all."""
    from assay.runtime.models.hf import save_model

    with fresh_folder(place) as made:
        save_model(model, made)
        seal_folder(made)


def held_path(folder: Path, path: str) -> Path:
    """Where the run in ``folder`` keeps its own copy of an anchor's model at ``path``."""
    return folder / "anchors" / digest(path, 8)


def model_folder(path: Path) -> Path:
    """The model folder that ``path`` means: itself, ``path/model`` of a run folder, the best of ``RUN/best``, or that of a
    name on the hub. It may hold an adapter alone, whose config names its base (`assay.runtime.models.adapter_base.whole_of`).

    Raises:
        ConfigError: none of these; says what was found.
        HubError: a name that neither the cache nor the hub gives.
    """
    name = hub_name(path)
    if name is not None:
        try:
            return on_hub(name).folder
        except MissingExtraError as error:
            what = "does not exist; give a model folder in Hugging Face format or a finished run folder"
            raise ConfigError(f"{path} {what}. If it is a name on the hub: {error}") from None
    for candidate in (path, path / "model"):
        if (candidate / "config.json").exists() or (candidate / ADAPTER_CONFIG).exists():
            return candidate
    if path.name == "best" and (kept := best_model(path)) is not None:
        return kept
    if path.name == "best" and (path.parent / "run.toml").exists():
        raise ConfigError(f"run {path.parent} keeps no best model; train with --keep-best (Run.keep_best=True)")
    if (path / "run.toml").exists():
        raise ConfigError(f"run {path} has not finished, so it has no model yet: assay resume {path}")
    if (named := checkpoint_place(path)) is not None:
        raise ConfigError(
            f"{path} is a checkpoint, not a model folder; make one of it: assay export {named[0]}@{named[1]} --to FOLDER"
        )
    what = "does not exist" if not path.exists() else "holds neither config.json nor model/config.json"
    raise ConfigError(f"{path} {what}; give a model folder in Hugging Face format, a finished run folder, or a name on the hub")


def pin_commits(run: Run, commit: Callable[[str], str] | None = None, data: Callable[[str], str] | None = None) -> Run:
    """``run`` with the commit behind every name on the hub, of its model, its anchors', the data of its stages, and the bases
    that it builds first.

    Args:
        run: settings.
        commit: gives ``owner/name@commit`` for a name; by default as the cache or the hub says.
        data: gives the name with its commit for one of data; likewise.

    Raises:
        HubError: a name that neither the cache nor the hub gives.
    """
    from assay.train.data import pinned_data

    def fix_path(path: str) -> str:
        name = hub_name(path)
        if name is None or name.pinned:
            return path
        return commit(path) if commit else str(on_hub(name).name)

    model = run.model
    if isinstance(model, Folder):
        path = fix_path(model.path)
        model = model if path == model.path else replace(model, path=path)
    elif isinstance(model, Built):
        base = pin_commits(model.run, commit, data)
        model = model if base is model.run else replace(model, run=base)
    stages = tuple(_pinned_stage(stage, fix_path, data or pinned_data) for stage in run.stages)
    tasks = _pinned_tasks(run.tasks, data or pinned_data)
    same = model is run.model and tasks is run.tasks and all(a is b for a, b in zip(stages, run.stages, strict=True))
    return run if same else replace(run, model=model, stages=stages, tasks=tasks)


def _pinned_tasks(tasks: Any, fixed_data: Callable[[str], str]) -> Any:
    """A task family whose rows are on a hub, or a mixture of such, with their commits; any other as it is."""
    changes: dict[str, Any] = {}
    for part in fields(tasks) if is_dataclass(tasks) else ():
        held: Any = getattr(tasks, part.name)
        if isinstance(held, str) and held.startswith(PREFIX):
            changes[part.name] = fixed_data(held)
        elif isinstance(held, tuple):
            changes[part.name] = tuple(_pinned_tasks(inner, fixed_data) for inner in cast("tuple[Any, ...]", held))
    changed = {n: v for n, v in changes.items() if v != getattr(tasks, n)}
    return replace(cast("Any", tasks), **changed) if changed else tasks


def _pinned_stage(stage: Stage, fixed: Callable[[str], str], fixed_data: Callable[[str], str]) -> Stage:
    given = getattr(stage, "data", ())
    if isinstance(given, str) and fixed_data(given) != given:
        stage = replace(cast("Any", stage), data=fixed_data(given))
    sources: tuple[Any, ...] = getattr(stage, "sources", ())
    if any(isinstance(s.data, str) and fixed_data(s.data) != s.data for s in sources):
        named = tuple(replace(s, data=fixed_data(s.data)) if isinstance(s.data, str) else s for s in sources)
        stage = replace(cast("Any", stage), sources=named)
    anchors = tuple(replace(a, model=fixed(a.model)) if a.model else a for a in stage.learner.anchors)
    if anchors == stage.learner.anchors:
        return stage
    return replace(stage, learner=replace(stage.learner, anchors=anchors))


@cache
def _code_digest() -> str:
    """Digest of the code that can change a run's weights."""
    root = Path(assay.__file__).parent
    h = hashlib.blake2b(digest_size=8)
    for package in ("core", "guide", "objective", "rollout", "runtime", "scorers", "tasks", "train", "verify"):
        for file in sorted(f for f in (root / package).rglob("*.*") if f.suffix in _SOURCES):
            h.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return h.hexdigest()


def _numerics() -> list[str]:
    from assay.runtime.machine import fingerprint

    found = fingerprint(threads=1)
    return [found["torch"], found["isa"], found["decoder"]]

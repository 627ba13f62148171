"""Rows in the place of a recipe, a file or a folder: ``assay train rows.jsonl --model MODEL --reward my_file.py:my_reward``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.cli.config_files import path_in
from assay.cli.given_options import GivenOption, Mistakes
from assay.core.errors import AssayError, ConfigError
from assay.core.util.hub import PREFIX

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["RowRecipe", "names_rows"]

_FORMS = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".csv", ".parquet", ".arrow")
_OPTIONS = ("model", "reward", "objective", "evaluate", "split", "long_prompts")
_PATHS = ("model", "reward", "evaluate")
_EXAMPLES = {
    "model": "Qwen/Qwen3-0.6B",
    "reward": "reward.py:compute_score",
    "objective": "gspo",
    "evaluate": "test.parquet",
    "split": "train",
    "long_prompts": "skip",
}


def names_rows(word: str) -> bool:
    """Whether a word names rows: a file of a form that is read, a folder of them, or a data set on the hub.

    >>> names_rows("train.jsonl"), names_rows("hub:openai/gsm8k:main/*"), names_rows("quickstart"), names_rows("mine.py:recipe")
    (True, True, False, False)
    """
    return word.startswith(PREFIX) or word.endswith(_FORMS) or names_folder(word)


def names_folder(word: str) -> bool:
    """Whether a word names a folder, as of a data set's files."""
    return ":" not in word and (word.endswith("/") or Path(word).is_dir())


@dataclass(frozen=True, slots=True)
class RowRecipe:
    """Reinforcement learning on rows, by settings that fit the model and the machine (`assay.recipes.on_rows`).

    Attributes:
        word: where the rows are.
        load: gives the reward function that a word names.
        given: keywords of `assay.recipes.on_rows`.
        derived_from: further ones, which are options of their own too: others are derived from them, as the learning rate from
            whether an adapter is trained.
        files: of keywords that stand in a file of settings, which.
    """

    word: str
    load: Callable[[str], Any]
    given: tuple[tuple[str, Any], ...] = field(default=())
    derived_from: tuple[tuple[str, Any], ...] = field(default=())
    files: tuple[tuple[str, str], ...] = field(default=())

    def in_file(self, path: Path, table: Mapping[str, Any]) -> tuple[RowRecipe, dict[str, Any]]:
        """With what a file of settings says of the rows, and the rest of its table; paths are looked for beside the file first.

        Raises:
            ConfigError: a value that is no text, or of ``split`` no list of texts either.
        """
        given, rest, basis = dict(self.given), dict[str, Any](), dict(self.derived_from)
        files = dict(self.files)
        for key, value in table.items():
            name = key.replace("-", "_")
            if name == "model" and isinstance(value, dict) and list(cast("dict[str, Any]", value)) == ["path"]:
                value: Any = cast("dict[str, Any]", value)["path"]
            if name not in _OPTIONS or (name in ("model", "objective") and isinstance(value, dict)):
                rest[key] = value  # a table changes the part that stands there
                basis |= _basis(name, value)
                continue
            texts: list[Any] = cast("list[Any]", value) if name == "split" and isinstance(value, list) else [value]
            if not texts or not all(isinstance(text, str) for text in texts):
                raise ConfigError(f'{path}: {key} = {value!r}; give text, as in {key} = "{_EXAMPLES[name]}"')
            given[name] = path_in(path, str(cast("object", value))) if name in _PATHS else value
            files[name] = str(path)
        made = replace(self, given=tuple(given.items()), derived_from=tuple(basis.items()), files=tuple(files.items()))
        return made, rest

    @property
    def options(self) -> list[GivenOption]:
        """What is given, as options of a command line."""
        texts = {
            name: tuple(map(str, cast("list[Any]", value))) if isinstance(value, list) else (str(value),)
            for name, value in self.given
        }
        files = dict(self.files)
        typed = {name: name if name in files else f"--{name.replace('_', '-')}" for name in texts}
        return [GivenOption(path=name, words=words, typed=typed[name], file=files.get(name, "")) for name, words in texts.items()]

    def taking(self, options: Sequence[GivenOption]) -> tuple[RowRecipe, list[GivenOption], list[GivenOption]]:
        """With its own options, these options, and the others.

        Raises:
            ConfigError: an option without a value, or with several.
        """
        options = [replace(o, path="model") if o.path == "model.path" else o for o in options]
        taken = [o for o in options if o.path in _OPTIONS]
        for option in taken:
            if len(option.words) != 1 and not (option.path == "split" and len(option.words) == 2):
                raise ConfigError(
                    f"{option.typed} needs one value, as in: assay train {self.word} --model MODEL --reward my_file.py:my_reward"
                )
        given = dict(self.given) | {o.path: o.words[0] if len(o.words) == 1 else list(o.words) for o in taken}
        basis, rest = dict(self.derived_from), [o for o in options if o.path not in _OPTIONS]
        for option in rest:
            basis |= _basis(option.path, option.words[0]) if len(option.words) == 1 else {}
        files = [(name, file) for name, file in self.files if name not in {o.path for o in taken}]
        made = replace(self, given=tuple(given.items()), derived_from=tuple(basis.items()), files=tuple(files))
        return made, taken, rest

    def __call__(self, seed: int = 0) -> Run:
        """The run."""
        from assay.recipes import on_rows

        given: dict[str, Any] = dict(self.given)
        reward = self.load(given.pop("reward")) if "reward" in given else None
        return on_rows(self.word, reward, seed=seed, **dict(self.derived_from), **given)

    def note_mistakes(self, error: AssayError, mistakes: Mistakes) -> Run:
        """Notes what is wrong with the rows and with each thing that is said of them, each by itself.

        What is wrong with a reward is said of the reward alone: other rows are then tried under one that takes anything.

        Args:
            error: what the run was refused with; noted where nothing is wrong by itself.
            mistakes: gets them.

        Returns:
            A run on other rows, by what is right: other options can be held to it.
        """
        from assay.recipes import on_rows
        from assay.tasks import read_splits

        rows = [{"prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(100)]
        tried: dict[str, Callable[[], Any]] = {"rows": lambda: read_splits(self.word)}
        right: dict[str, Any] = {}
        for name, value in self.given:
            if name == "reward":
                tried[name] = partial(self._try_reward, value)
            elif name == "evaluate":  # by their form alone: what they lack without a reward, the first of the rows lacks too
                tried[name] = partial(on_rows, rows, _any_answer, evaluate=value)
            elif name != "split":  # only the rows know their splits
                tried[name] = partial(on_rows, rows, **{name: value})
        options, before = {option.path: option for option in self.options}, len(mistakes.found)
        for name, attempt in tried.items():
            try:
                attempt()
            except AssayError as wrong:
                mistakes.add([options[name]] if name in options else [], wrong)
            else:
                right |= {name: dict(self.given)[name]} if name in ("model", "objective") else {}
        if len(mistakes.found) == before:
            mistakes.add([], error)
        return on_rows(rows, **right)

    def _try_reward(self, word: str) -> None:
        """Loads a reward, and holds it to the rows where these can be read.

        Raises:
            AssayError: there is no such reward, or it does not fit the rows.
        """
        from assay.recipes import on_rows
        from assay.tasks import read_splits

        reward = self.load(word)
        try:
            read_splits(self.word)
            on_rows(self.word, _any_answer, **{name: value for name, value in self.given if name == "split"})
        except AssayError:  # said of the rows, or of their split
            return
        on_rows(self.word, reward, **{name: value for name, value in self.given if name == "split"})


def _any_answer(completion: str) -> float:
    """A reward that any row has enough fields for."""
    return float(bool(completion))


_BASIS = ("lora", "steps", "groups", "group_size", "max_new_tokens")
"""Keywords of `assay.recipes.on_rows` from which it derives other settings."""


def _basis(name: str, value: Any) -> dict[str, int | bool]:
    """The keyword that an option means, where others are derived from it; what is wrong with a value is said elsewhere."""
    from assay.recipes.setting_names import keyword_of

    keyword = keyword_of(name, _BASIS)
    try:
        number = int(value)
    except (TypeError, ValueError):
        return {}
    if keyword is None or isinstance(value, bool) or number < (0 if keyword == "lora" else 1):
        return {}
    return {keyword: number or False}

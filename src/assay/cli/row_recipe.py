"""A file of rows in the place of a recipe: ``assay train rows.jsonl --model MODEL --reward my_file.py:my_reward``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from assay.cli.given_options import GivenOption
from assay.core.errors import ConfigError
from assay.core.util.hub import PREFIX

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["RowRecipe", "names_rows"]

_FORMS = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".csv", ".parquet", ".arrow")
_OPTIONS = ("model", "reward", "objective", "evaluate", "split", "long_prompts")


def names_rows(word: str) -> bool:
    """Whether a word names rows: a file of a form that is read, or a data set on the hub.

    >>> names_rows("train.jsonl"), names_rows("hub:openai/gsm8k:main/*"), names_rows("quickstart"), names_rows("mine.py:recipe")
    (True, True, False, False)
    """
    return word.startswith(PREFIX) or word.endswith(_FORMS)


@dataclass(frozen=True, slots=True)
class RowRecipe:
    """Reinforcement learning on rows, by settings that fit the model and the machine (`assay.recipes.on_rows`).

    Attributes:
        word: where the rows are.
        load: gives the reward function that a word names.
        given: keywords of `assay.recipes.on_rows`.
    """

    word: str
    load: Callable[[str], Any]
    given: tuple[tuple[str, str], ...] = field(default=())

    def taking(self, options: Sequence[GivenOption]) -> tuple[RowRecipe, list[GivenOption], list[GivenOption]]:
        """With its own options, these options, and the others.

        Raises:
            ConfigError: an option without a value, or with several.
        """
        taken = [o for o in options if o.path in _OPTIONS]
        for option in taken:
            if len(option.words) != 1:
                raise ConfigError(
                    f"{option.typed} needs one value, as in: assay train {self.word} --model MODEL --reward my_file.py:my_reward"
                )
        given = dict(self.given) | {o.path: o.words[0] for o in taken}
        return replace(self, given=tuple(given.items())), taken, [o for o in options if o.path not in _OPTIONS]

    def __call__(self, seed: int = 0) -> Run:
        """The run."""
        from assay.recipes import on_rows

        given: dict[str, Any] = dict(self.given)
        reward = self.load(given.pop("reward")) if "reward" in given else None
        return on_rows(self.word, reward, seed=seed, **given)

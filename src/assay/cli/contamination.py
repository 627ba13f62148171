"""``assay contamination``: has a model seen these items?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import busy, grid, lines, show
from assay.cli.run_request import missing
from assay.cli.sources import scorer, source
from assay.cli.verify import settings_of
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import TaskSource, Verifier
from assay.core.task import Task
from assay.core.util.hub import PREFIX
from assay.train.models import model_folder

if TYPE_CHECKING:
    from assay.select import Membership

__all__ = ["contamination_command"]

_SUFFIXES = (".jsonl", ".json", ".ndjson", ".gz", ".parquet", ".arrow", ".csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationOptions:
    """Scores a model on items that it may have seen and on fresh ones of the same kind; reports how well each score separates
    the two, and the difference in accuracy. ITEMS and FRESH are files of rows, or task families, whose held-out tasks are
    generated. Both must come from the same distribution, or they differ for other reasons.

    Attributes:
        model: a model folder in Hugging Face format, or a run folder.
        items: items that the model may have seen.
        fresh: items that it cannot have seen.
        count: most items of each.
        levels: of a family: levels to draw from; all when not given.
        verifier: scores answers to files of rows ('assay verify list'), or my_file.py:function; the whole text must be the answer
            when not given.
        set: a setting of the verifier, KEY=VALUE; may be given several times.
        retry: prompt for the second answer of the self-critique, with {question} and {answer} in it.
        max_new_tokens: most tokens in an answer.
        question: field of the question, where its name is unusual.
        gold: field of the answer, where its name is unusual.
        json: print JSON.
    """

    model: Path = field(metadata={"positional": True, "arg": {"metavar": "MODEL_OR_RUN"}})
    items: str = field(metadata={"positional": True, "arg": {"metavar": "ITEMS"}})
    fresh: str = field(metadata={"positional": True, "arg": {"metavar": "FRESH"}})
    count: int = 256
    levels: tuple[int, ...] = ()
    verifier: str | None = field(default=None, metadata={"arg": {"metavar": "NAME"}})
    set: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "KEY=VALUE"}})
    retry: str | None = None
    max_new_tokens: int = 256
    question: str | None = None
    gold: str | None = None
    json: bool = False

    def __post_init__(self) -> None:
        if self.count < 2:
            raise ConfigError(f"--count {self.count}: give at least 2 items of either kind")
        if self.set and self.verifier is None:
            raise ConfigError(f"--set {self.set[0]} is a setting of a verifier; name it: --verifier NAME")


def contamination_command(args: list[str]) -> int:
    """``assay contamination MODEL_OR_RUN ITEMS FRESH``."""
    from assay.cli.verify import gather_settings

    own = parse(ContaminationOptions, gather_settings(args), "assay contamination")
    missing(own.model)
    model_folder(own.model)
    seen, judge = _side(own, own.items)
    fresh, of_fresh = _side(own, own.fresh)
    from assay.select.membership_probe import RETRY, MembershipProbe, membership

    probe = MembershipProbe(model=own.model, max_new_tokens=own.max_new_tokens, retry=own.retry or RETRY)
    with busy(f"asking {own.model} {len(seen)} items and {len(fresh)} fresh ones"):
        found = membership(probe, seen, fresh, judge, of_fresh)
    return show(own.json, found, lambda: _print(found))


def _print(found: Membership) -> None:
    rows = [[name, str(area), "members score higher" if area.low > 0.5 else ""] for name, area in found.scores.items()]
    grid(("score", "area under its curve", ""), rows)
    lines(
        {
            "right on items": f"{found.accuracy:.3f} of {found.items}",
            "right on fresh ones": f"{found.fresh_accuracy:.3f} of {found.fresh}",
            "difference": str(found.gap),
            "result": found.verdict,
            **{f"missing: {name}": why for name, why in found.missing.items()},
        }
    )


def _side(own: ContaminationOptions, word: str) -> tuple[list[Task], Verifier]:
    """The tasks that a word names, and who judges them."""
    if word.endswith(_SUFFIXES) or word.startswith(PREFIX) or Path(word).is_dir():
        return _rows(own, word)
    family = source(word)
    return _generate_tasks(family, own.levels, own.count), family.verifier()


def _rows(own: ContaminationOptions, word: str) -> tuple[list[Task], Verifier]:
    from assay.curate import Fields
    from assay.curate.rows import entries, parse_entry, read_rows
    from assay.tasks import Rows

    usual = Fields()
    fields = Fields(question=(own.question,) if own.question else usual.question, gold=(own.gold,) if own.gold else usual.gold)
    rows: list[dict[str, Any]] = []
    for path in entries(word):
        for line, entry in read_rows(path):
            try:
                row = parse_entry(entry)
                rows.append({**row, "prompt": fields.question_of(row), "answer": fields.gold_of(row), "level": 1, "arm": "items"})
                rows[-1].pop("messages", None)
            except DataError as error:
                raise DataError(f"{path}, line {line}: {error}") from None
    judge = scorer(own.verifier, settings_of(own.set)) if own.verifier else None
    made = Rows(rows, scorer=judge, test_share=0.0, name="items")
    count = min(own.count, made.size("items", 1, "train"))
    return [made.task("items", 1, "train", i) for i in range(count)], made.verifier()


def _generate_tasks(family: TaskSource, levels: Sequence[int], count: int) -> list[Task]:
    """Held-out tasks, as many of each arm and level."""
    from assay.train.evaluate import held_out
    from assay.train.levels import check_levels

    check_levels(family, tuple(levels), "--levels")
    cells = [(arm, lv) for arm, known in family.arms().items() for lv in known if not levels or lv in levels]
    return list(islice(held_out(family, tuple(levels), -(-count // len(cells))), count))

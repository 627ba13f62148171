"""Evaluation items among training prompts: looked for before a run spends anything, refused, and told in its report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from assay.core.canon import digest
from assay.core.config import to_dict
from assay.core.errors import ConfigError, DataError, how_to_install
from assay.core.protocols import TaskSource
from assay.core.rowfile import rows_beside
from assay.core.task import Message, Task, question_text
from assay.core.util.garbage import pause_collection
from assay.curate.evaluation import EvalIndex, EvalItem, Hit, Matching
from assay.curate.question_keys import Questions
from assay.curate.rows import entries
from assay.curate.text import normal, numbers, sketch_library, words_differ
from assay.runs import storage
from assay.train.data import data_digests
from assay.train.earlier_rows import earlier_rows, key_of_row
from assay.train.evaluate import held_out
from assay.train.levels import arms_of
from assay.train.models import Built, Folder
from assay.train.run import Run

__all__ = ["FILE", "look", "sentence", "told_before", "describe_unsearched"]

FILE = "contamination.json"
"""Where a run folder keeps what was found."""

MADE = "a row that trained the model, in "
"""Begins the place of a prompt that the starting weights were trained on."""

HELD_OUT = "held out"
"""Stands for a file's name at items of the run's own test split."""

_SHOWN = 20
"""Prompts with hits that the record spells out."""
_AT_ONCE = 4096
_A_SENTENCE = 5
"""Words from which on a row may nearly say what another says."""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A training prompt: where it comes from, its text, and what is asked, whatever the words."""

    place: str
    text: str
    content: str


@dataclass(slots=True)
class _Found:
    """Hits by prompt, each with what the record says of it."""

    prompts: int = 0
    hits: list[tuple[_Prompt, tuple[dict[str, Any], ...]]] = field(default_factory=list[Any])

    def record(self) -> dict[str, Any]:
        shown = [{"prompt": p.place, **hit} for p, hits in self.hits[:_SHOWN] for hit in hits[:1]]
        found = {(hit["file"], hit["line"], hit["task"]) for _, hits in self.hits for hit in hits}
        return {"prompts": self.prompts, "contaminated": len(self.hits), "found": len(found), "examples": shown}


def look(run: Run, folder: Path) -> Mapping[str, Any]:
    """Looks for evaluation items among the training prompts of a run, of its own and of the bases that it builds first.

    The result stands in ``contamination.json``; it is read and not made again as long as nothing has changed that it was made of:
    tasks, levels, items, files and settings.

    Args:
        run: settings.
        folder: its folder.

    Returns:
        The record: ``mode``, ``prompts`` that were looked at, ``whole`` (all of them, or the first of each level), the ``items``
        that were looked for with their ``sources``, ``contaminated`` prompts, items ``found``, ``examples``, and whether ``near``
        duplicates were looked for.

    Raises:
        ConfigError: a file does not exist, or is named where nothing is looked for.
        DataError: a prompt contains an evaluation item and the mode is to refuse; or a file has no rows, or a row no question.
        MissingExtraError: near-duplicates of a file's items are asked for, and the library is not installed.
    """
    check, path = run.contamination, folder / FILE
    if check.mode == "off":
        if check.against:
            raise ConfigError(
                f"ContaminationCheck.against={list(check.against)} with mode='off': nothing would be looked for; use 'refuse' or "
                "'report', or name no files"
            )
        found: dict[str, Any] = {"mode": "off"}
    else:
        inputs = _inputs(run)
        before: Any = storage.read_json(path) if path.exists() else {}
        if before.get("inputs") == inputs:
            return cast("Mapping[str, Any]", before)
        with pause_collection():
            found = {"mode": check.mode, "inputs": inputs, **_find_overlaps(run)}
        if found["contaminated"] and check.mode == "refuse":
            raise DataError(_refusal(run, found))
    storage.write_json(path, found)
    return found


def describe_unsearched(found: Mapping[str, Any]) -> str:
    """What was left out because a library is missing, in one sentence; empty where nothing was."""
    if not found.get("unsearched"):
        return ""
    return (
        f"{found['unsearched']} held-out rows were looked for as they are written; training rows that differ from them in a few "
        f"words are found with the extra curate: {how_to_install('curate')}"
    )


def told_before(folder: Path) -> bool:
    """Whether another run beside ``folder`` has said already what `describe_unsearched` says."""
    others = (path for path in folder.absolute().parent.glob(f"*/{FILE}") if path.parent.name != folder.name)
    return any('"unsearched"' in path.read_text("utf-8") for path in others)


def sentence(found: Mapping[str, Any]) -> str:
    """What a record says, in one sentence; empty where nothing was found."""
    if not found.get("contaminated"):
        return ""
    return (
        f"{found['contaminated']} of {found['prompts']} training prompts contain {found['found']} of {found['items']} evaluation "
        f"items; allowed by Run.contamination.mode={found['mode']!r}. The first: {_hit_text(found['examples'][0])}"
    )


# ---- looking ----------------------------------------------------------------------------------------------------------


def _find_overlaps(run: Run) -> dict[str, Any]:
    """Everything that the record says, but for the mode."""
    check = run.contamination
    prompts, whole = _prompts(run)
    own = _held_out(run)
    prompts += _of_model(run, own)
    seen = _Found(len(prompts))
    near = bool(check.matching.near) and find_spec("rensa") is not None
    if check.against and check.matching.near:
        sketch_library()
    index = EvalIndex.read(check.against, check.matching)
    blocks = [prompts[start : start + _AT_ONCE] for start in range(0, len(prompts), _AT_ONCE)]
    searches = (_contents(own), _texts(run.tasks, own, check.matching, near, blocks), _files(index, blocks))
    by_prompt: dict[int, list[dict[str, Any]]] = {}
    for number, block in enumerate(blocks):
        for search in searches:
            for at, hit in search(number, block):
                by_prompt.setdefault(number * _AT_ONCE + at, []).append(hit)
    seen.hits = [(prompts[at], tuple(hits)) for at, hits in sorted(by_prompt.items())]
    sources = [{"name": HELD_OUT, "items": len(own)}]
    sources += [{"name": str(file), "items": sum(i.file == file for i in index.items)} for file in _in_order(index)]
    return {
        **seen.record(),
        "whole": whole,
        "sample": check.sample,
        "items": len(own) + len(index.items),
        "sources": sources,
        "near": near,
        **({} if near or not check.matching.near else {"unsearched": _sentences(run.tasks, own)}),
    }


def _held_out(run: Run) -> list[Task]:
    """What the run evaluates on; of finite data all rows of the test split, since a later evaluation may take others.

    Nothing where the run evaluates on its training tasks.
    """
    if run.evaluation.split == "train":
        return []
    found = held_out(run.tasks, run.evaluation.levels, run.evaluation.final_per_level)
    for arm, levels in arms_of(run.tasks, run.evaluation.levels).items():
        if (size := _size(run.tasks, arm)) is not None:
            found += [run.tasks.task(arm, level, "test", i) for level in levels for i in range(size(arm, level, "test"))]
    return list({task.content: task for task in found}.values())


Search = Callable[[int, Sequence[_Prompt]], Iterator[tuple[int, dict[str, Any]]]]
"""A block of prompts, and its number, to the number of each that is hit, and by what."""


def _contents(own: Sequence[Task]) -> Search:
    """Held-out tasks that ask the same, word for word or by their facts."""
    known = {task.content: task for task in own}

    def search(number: int, block: Sequence[_Prompt]) -> Iterator[tuple[int, dict[str, Any]]]:
        for at, prompt in enumerate(block):
            task = known.get(prompt.content)
            if task is not None:
                yield at, _of_task(task, "same")

    return search


def _texts(
    source: TaskSource, own: Sequence[Task], matching: Matching, near: bool, blocks: Sequence[Sequence[_Prompt]]
) -> Search:
    """Held-out rows that are the same but for case and white space, or nearly; those of a source without end are drawn from
    patterns, and are no repetitions for being alike.

    Rows of one source often share a template, and are told apart by what each puts into it: what many have counts for nothing,
    and two that differ in numbers, or in one place in most words, ask different things.
    """
    rows = [task for task in own if _size(source, task.arm) is not None]
    said = [_text(task.public_view().messages) for task in rows]
    items = tuple(EvalItem(HELD_OUT, i, normal(text)) for i, text in enumerate(said))
    index = EvalIndex(items, replace(matching, n=0, near=matching.near if near else 0.0), as_written=True)
    counted = index.templates()
    counted.add(index.questions(said))
    some: list[tuple[list[int], Questions]] = []
    for texts in (index.questions([p.text for p in block]) for block in blocks if rows):
        counted.add(texts)
        maybe = index.likely(texts)
        some.append((maybe, texts.part(maybe)))
    common = counted.common(matching.template)

    def search(number: int, block: Sequence[_Prompt]) -> Iterator[tuple[int, dict[str, Any]]]:
        maybe, texts = some[number] if rows else ([], index.questions([]))
        for place, hits in index.hits(texts, common).items():
            for hit in hits:
                at, task, mine = maybe[place], rows[hit.item.line], texts.normal[place]
                apart = hit.kind == "near" and (numbers(hit.item.text) != numbers(mine) or words_differ(hit.item.text, mine))
                if block[at].content != task.content and not apart:
                    yield at, _of_task(task, hit.kind, hit.similarity)

    return search


def _sentences(source: TaskSource, own: Sequence[Task]) -> int:
    """How many held-out rows have so many words that others may nearly say the same."""
    rows = [task for task in own if _size(source, task.arm) is not None]
    return sum(len(_text(task.public_view().messages).split()) >= _A_SENTENCE for task in rows)


def _files(index: EvalIndex, blocks: Sequence[Sequence[_Prompt]]) -> Search:
    """Items of the files that were named."""
    asked: list[Questions] = []
    counted = index.templates()
    for block in blocks if index.items else ():
        asked.append(index.questions([p.text for p in block]))
        counted.add(asked[-1])
        asked[-1].forget()
    common = counted.common(index.matching.template)

    def search(number: int, block: Sequence[_Prompt]) -> Iterator[tuple[int, dict[str, Any]]]:
        for at, hits in index.hits(asked[number], common).items() if asked else ():
            for hit in hits:
                yield at, _of_file(hit)

    return search


def _of_task(task: Task, kind: str, similarity: float = 1.0) -> dict[str, Any]:
    text = _text(task.public_view().messages)
    return {"kind": kind, "file": "", "line": 0, "task": task.id, "item": text, "run": "", "similarity": round(similarity, 4)}


def _of_file(hit: Hit) -> dict[str, Any]:
    item = hit.item
    return {
        "kind": hit.kind,
        "file": item.file,
        "line": item.line,
        "task": "",
        "item": item.text,
        "run": hit.run,
        "similarity": round(hit.similarity, 4),
    }


def _in_order(index: EvalIndex) -> list[str]:
    return list(dict.fromkeys(item.file for item in index.items))


# ---- training prompts -------------------------------------------------------------------------------------------------


def _prompts(run: Run) -> tuple[list[_Prompt], bool]:
    """The different training prompts of a run and of the bases before it, and whether these are all that there are."""
    found: dict[tuple[str, str], _Prompt] = {}
    whole = True
    for part, of in _with_bases(run):
        for prompt in (*_of_rows(part, of), *_of_tasks(part, of, run.contamination.sample)):
            found.setdefault((prompt.text, prompt.content), prompt)
        whole = whole and all(_size(part.tasks, arm) is not None for arm, _ in _cells(part))
    return list(found.values()), whole


def _with_bases(run: Run) -> Iterator[tuple[Run, str]]:
    if isinstance(run.model, Built):
        base = run.model.run
        yield from ((part, of or f"base {part.name!r}, ") for part, of in _with_bases(base))
    yield run, ""


def _of_model(run: Run, own: Sequence[Task]) -> list[_Prompt]:
    """Held-out rows that the run which made the starting weights trained on."""
    known = earlier_rows(run.model.path) if isinstance(run.model, Folder) else {}
    rows = [(task, folder) for task in own if (folder := known.get(key_of_row(task.id)))]
    return [_Prompt(f"{MADE}{folder},", _text(task.public_view().messages), task.content) for task, folder in rows]


def _of_rows(run: Run, of: str) -> Iterator[_Prompt]:
    """Texts of the rows that stages are given."""
    for stage in run.stages:
        for place, text in stage.training_texts():
            yield _Prompt(f"{of}{place}", text, digest({"prompt": text}))


def _of_tasks(run: Run, of: str, sample: int) -> Iterator[_Prompt]:
    for arm, level in _cells(run):
        size, questions = _size(run.tasks, arm), getattr(run.tasks, "row_questions", None)
        known = questions(arm, level, "train") if questions is not None else None
        if known is not None:
            yield from (_Prompt(f"{of}task {id!r} (arm {arm!r}, level {level})", text, content) for id, text, content in known)
            continue
        for index in range(sample if size is None else size(arm, level, "train")):
            task = run.tasks.task(arm, level, "train", index)
            place = f"{of}task {task.id!r} (arm {arm!r}, level {level})"
            yield _Prompt(place, _text(task.public_view().messages), task.content)


def _cells(run: Run) -> list[tuple[str, int]]:
    """The arms and levels that the stages of a run practise, each once."""
    arms = [arms_of(run.tasks, stage.levels) for stage in run.stages if stage.uses_tasks]
    return list(dict.fromkeys((arm, level) for of_stage in arms for arm, levels in of_stage.items() for level in levels))


def _size(source: TaskSource, arm: str) -> Callable[[str, int, str], int] | None:
    """What counts the different tasks of an arm; None where they have no end."""
    home: Callable[[str], TaskSource] | None = getattr(source, "source", None) if hasattr(source, "sources") else None
    return getattr(home(arm) if home else source, "size", None)  # a mixture says which of its sources has the arm


def _text(messages: Sequence[Message]) -> str:
    return "\n".join(question_text(messages))


# ---- words ------------------------------------------------------------------------------------------------------------


def _inputs(run: Run) -> str:
    """Digest of all that a result depends on."""
    with rows_beside(Path()):
        table = to_dict(run)
    stages = [{k: s[k] for k in ("kind", "levels", "data") if k in s} for s in table["stages"]]
    told = {k: table[k] for k in ("model", "tasks", "evaluation", "contamination")}
    files = {str(p): _digest(p) for place in run.contamination.against for p in entries(place)}
    known = sorted(earlier_rows(run.model.path)) if isinstance(run.model, Folder) else []
    more = [known] if known else []
    return digest([told, stages, files, data_digests(run), find_spec("rensa") is not None, *more])


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise DataError(f"cannot read evaluation items from {path}: {error}") from error


def _refusal(run: Run, found: Mapping[str, Any]) -> str:
    files = {example["file"] for example in found["examples"]} - {""}
    clean = f"'assay curate IN OUT --against {' '.join(sorted(files)) or 'HELD_OUT.jsonl'}'"
    fix = f"Take such rows out by {clean}"
    if found["examples"][0]["prompt"].startswith(MADE):
        fix = "Hold out what that run did not train on (--evaluate, evaluate=), or begin with another model"
    return (
        f"{found['contaminated']} of {found['prompts']} training prompts contain {found['found']} of {found['items']} evaluation "
        f"items, so that no evaluation of this run would mean what it says. The first: {_hit_text(found['examples'][0])}. {fix}; "
        f"or train all the same, and have the report say so: --allow-contamination, or "
        "contamination=ContaminationCheck(mode='report')"
    )


def _hit_text(hit: Mapping[str, Any]) -> str:
    """One hit: the training item, the evaluation item, and how they match."""
    how = {
        "same": "is the same as",
        "whole": "holds the whole of",
        "near": f"is nearly the same (similarity {hit['similarity']:.2f}) as",
        "run": f"shares the run of {len(hit['run'].split(' '))} words {hit['run']!r} with",
    }[hit["kind"]]
    item = f"the held-out task {hit['task']!r}" if hit["task"] else f"{hit['file']}, line {hit['line']}"
    text = hit["item"] if len(hit["item"]) <= 100 else hit["item"][:97] + "..."
    return f"{hit['prompt']} {how} {item}: {text!r}"

"""``assay curate``: rows to train on, from rows as they are found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from assay.cli.options import parse
from assay.cli.output import grid, lines, note, show
from assay.cli.sources import scorer
from assay.cli.verify import gather_settings, settings_of
from assay.core.errors import ConfigError, DataError, UnknownNameError

if TYPE_CHECKING:
    from assay.curate import CurationStep, Passes, Pipeline, ProbeFile

__all__ = ["curate_command"]

_FILE: dict[str, str] = {"metavar": "FILE"}
_FILES: dict[str, str] = {"metavar": "[FILE ...]"}
_NAMED: dict[str, str] = {"metavar": "[NAME=FILE ...]"}
_MODEL: dict[str, str] = {"metavar": "MODEL"}
_RUN: dict[str, str] = {"metavar": "FILE|RUN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurateOptions:
    """Drops duplicates, evaluation items, and rows that further options select; splits the rest by content. IN holds rows as
    JSON lines (also .gz), Parquet or Arrow; OUT gets train.jsonl, test.jsonl, rejected.jsonl with a reason for each row, and
    manifest.json. The same command continues a curation that was stopped or killed. Files of measurements (--passes,
    --solvers, --limr, ...) name a row by "id" or question. The folder of a run in place of one takes what that run saw of its
    rows; the measurements are kept in OUT/measured.

    Attributes:
        rows: file or folder of rows.
        out: folder for the result.
        against: files or folders of evaluation rows, which must not be in the result.
        ngram: words in a run that a row must not share with an evaluation item; 0 to look for none.
        near: Jaccard similarity from which two questions, or a question and an evaluation item, are the same; 0 to look for none.
        shingle: words in a shingle of that similarity.
        variants: treat all numbers as equal: also drop near-duplicates of rows and of evaluation items that differ only in their
            numbers (questions of one template).
        conflicts: keep one or drop all rows with the same question and different answers.
        substrings: drop questions that are contained in others.
        max_answer: most characters in an answer; 0 for any number. Also drops rows without an answer, and multiple choice
            whose answer is not among its options.
        max_words: most words in a free-form answer.
        verifier: a verifier that must accept each answer ('assay verify list'), or my_file.py:function of your own.
        set: a setting of the verifier, KEY=VALUE; may be given several times.
        template: how an answer is written for the verifier, with {answer} in it; one accepted form is enough.
        deadline: seconds for one verdict.
        workers: verdicts in parallel.
        solvers: files of answers by independent solvers: rows of id and answer, or answers.
        agree: how many solvers must agree with a row's answer, by the verifier.
        passes: files of graded rollouts by model: rows of id, passed and n, or one row per rollout with passed true or false.
            Pass rates become scores; those of models called weak and strong also decide, by --too-hard and --too-easy.
        too_hard: the strong model's pass rate up to which a row is dropped.
        too_easy: the weak model's pass rate from which a row is dropped.
        band: keep rows whose pass rate by this model is from --band-low to --band-high.
        band_low: lower end of the band.
        band_high: upper end of the band.
        unsolved: drop rows that this model solved.
        hardest: keep the rows with this model's lowest pass rates; or of a run, by its folder: in its last epoch.
        sizes: how many of them, and of the sets within that later phases use.
        limr: learning curves, a file or a run's folder: keep rows that follow the average one.
        limr_above: learning impact above which a row is kept.
        varied: learning curves, a file or a run's folder: keep the rows that varied most.
        varied_count: how many of them.
        epochs: parts that the history of a run is cut into; 0 for as many as it went through its rows.
        angles: token vectors: score and rank rows by the concentration of angles.
        donod: norms of virtual updates: keep rows by them.
        donod_share: share of them that is kept.
        influence: gradients of rows: keep the share of each source that helps the validation set most.
        validation: gradients of the validation items.
        influence_share: that share.
        step: steps of your own, my_file.py:NAME, after all others.
        question: field of the question, where its name is unusual.
        gold: field of the answer, where its name is unusual.
        test_share: share of the rows that becomes the test split; by default 0.1, and none with --against, which names a test.
        seed: another seed, another split.
        chunk: rows looked at together; the result does not depend on it.
        fresh: throw away what an earlier run left in OUT.
        json: print JSON.
    """

    rows: Path = field(metadata={"positional": True, "arg": {"metavar": "IN"}})
    out: Path = field(metadata={"positional": True, "arg": {"metavar": "OUT"}})
    against: tuple[Path, ...] = field(default=(), metadata={"arg": _FILES})
    ngram: int = 8
    near: float = 0.8
    shingle: int = 3
    variants: bool = False
    conflicts: Literal["keep", "drop"] = "keep"
    substrings: bool = False
    max_answer: int | None = None
    max_words: int | None = None
    verifier: str | None = field(default=None, metadata={"arg": {"metavar": "NAME"}})
    set: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "KEY=VALUE"}})
    template: tuple[str, ...] = ("{answer}", "\\boxed{{answer}}")
    deadline: float = field(default=5.0, metadata={"arg": {"metavar": "SECONDS"}})
    workers: int = 8
    solvers: tuple[str, ...] = field(default=(), metadata={"arg": _NAMED})
    agree: int = 1
    passes: tuple[str, ...] = field(default=(), metadata={"arg": _NAMED})
    too_hard: float = 0.1
    too_easy: float = 0.9
    band: str | None = field(default=None, metadata={"arg": _MODEL})
    band_low: float = 0.2
    band_high: float = 0.8
    unsolved: str | None = field(default=None, metadata={"arg": _MODEL})
    hardest: str | None = field(default=None, metadata={"arg": _MODEL})
    sizes: tuple[int, ...] = (72, 50, 25)
    limr: Path | None = field(default=None, metadata={"arg": _RUN})
    limr_above: float = 0.6
    varied: Path | None = field(default=None, metadata={"arg": _RUN})
    varied_count: int = 1
    epochs: int = 0
    angles: Path | None = field(default=None, metadata={"arg": _FILE})
    donod: Path | None = field(default=None, metadata={"arg": _FILE})
    donod_share: float = 0.3
    influence: Path | None = field(default=None, metadata={"arg": _FILE})
    validation: Path | None = field(default=None, metadata={"arg": _FILE})
    influence_share: float | None = None
    step: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "[FILE.py:NAME ...]"}})
    question: str | None = field(default=None, metadata={"arg": {"metavar": "FIELD"}})
    gold: str | None = field(default=None, metadata={"arg": {"metavar": "FIELD"}})
    test_share: float | None = None
    seed: int = 0
    chunk: int = 4096
    fresh: bool = False
    json: bool = False


def curate_command(args: list[str]) -> int:
    """``assay curate IN OUT --against EVAL...``."""
    own = parse(CurateOptions, gather_settings(args), "assay curate")
    from assay.curate import progress_on

    with ExitStack() as stack:
        pipeline = _pipeline(own, stack)
        try:
            manifest = pipeline.run([own.rows], own.out, chunk=own.chunk, fresh=own.fresh, progress=progress_on())
        except KeyboardInterrupt:
            note(f"stopped; what is done is kept in {own.out / '.work'}: the same command continues")
            return 130
        except DataError as error:
            note(f"assay: {error}")
            note(f"what is done is kept in {own.out / '.work'}: --fresh begins anew")
            return 1
    return show(own.json, manifest, lambda: _print(own.out, manifest))


def _print(out: Path, manifest: dict[str, Any]) -> None:
    counts = manifest["counts"]
    rows = [["read", counts["read"], counts["unreadable"], "unreadable" if counts["unreadable"] else ""]]
    for step in counts["steps"]:
        dropped = ", ".join(f"{reason} {n}" for reason, n in step["dropped"].items())
        rows.append([step["step"], step["seen"], sum(step["dropped"].values()), dropped])
    grid(("step", "rows", "dropped", ""), rows, right=(1, 2))
    lines(
        {
            "kept": f"{counts['train']} to train, {counts['test']} to test",
            "rejected": f"{counts['rejected']}, each with its reason in {out / 'rejected.jsonl'}",
            "digest": manifest["digest"],
        }
    )


# ---- steps from options -----------------------------------------------------------------------------------------------


def _pipeline(own: CurateOptions, stack: ExitStack) -> Pipeline:
    from assay.curate import Fields, Pipeline

    usual = Fields()
    fields = Fields(question=(own.question,) if own.question else usual.question, gold=(own.gold,) if own.gold else usual.gold)
    steps = [*_cheap(own), *_verify_steps(own, stack), *_by_difficulty(own), *_by_probe(own), *(_own(word) for word in own.step)]
    share = own.test_share if own.test_share is not None else 0.0 if own.against else 0.1
    return Pipeline(steps=tuple(steps), fields=fields, test_share=share, seed=own.seed)


def _cheap(own: CurateOptions) -> list[CurationStep]:
    from assay.curate import AnswerForm, Decontaminate, Exact, Matching, NearDuplicates, Substrings

    steps: list[CurationStep] = []
    if own.max_answer is not None or own.max_words is not None:
        steps.append(AnswerForm(characters=own.max_answer or 0, words=own.max_words or 0))
    steps.append(Exact(conflicts=own.conflicts))
    if own.near:
        steps.append(NearDuplicates(threshold=own.near, shingle=own.shingle, numbers=not own.variants))
    if own.substrings:
        steps.append(Substrings())
    if own.against:
        matching = Matching(n=own.ngram, near=own.near, shingle=own.shingle, variants=own.variants)
        steps.append(Decontaminate(against=own.against, matching=matching))
    else:
        note("warning: without --against evaluation items stay in the result")
    return steps


def _verify_steps(own: CurateOptions, stack: ExitStack) -> list[CurationStep]:
    if own.verifier is None:
        if own.solvers:
            raise ConfigError("--solvers needs --verifier NAME, which says whether their answers are right")
        if own.set:
            raise ConfigError(f"--set {own.set[0]} is a setting of a verifier; name it: --verifier NAME")
        return []
    from assay.curate import SolversAgree, VerifierAccepts
    from assay.select import VerifierGrader

    made = VerifierGrader(verifier=scorer(own.verifier, settings_of(own.set)), deadline=own.deadline, workers=own.workers)
    grader = stack.enter_context(made)
    steps: list[CurationStep] = [VerifierAccepts(grader=grader, templates=own.template)]
    if own.solvers:
        steps.append(SolversAgree(grader=grader, solvers=tuple(_files("--solvers", own.solvers).items()), least=own.agree))
    return steps


def _by_difficulty(own: CurateOptions) -> list[CurationStep]:
    from assay.curate import Band, Hardest, Passes, PassRates, Unsolved, WeakStrong

    files = _files("--passes", own.passes)
    if own.hardest and own.hardest not in files and _is_run(Path(own.hardest)):
        files[Path(own.hardest).name] = Path(own.hardest)
        own = replace(own, hardest=Path(own.hardest).name)
    passes = {name: Passes(model=name, file=_measurements_file(own, path)) for name, path in files.items()}
    steps: list[CurationStep] = [PassRates(passes=each) for each in passes.values()]
    if {"weak", "strong"} <= passes.keys():
        steps.append(WeakStrong(weak=passes["weak"], strong=passes["strong"], low=own.too_hard, high=own.too_easy))
    rules: dict[str, tuple[str | None, Callable[[Passes], CurationStep]]] = {
        "--band": (own.band, lambda p: Band(passes=p, low=own.band_low, high=own.band_high)),
        "--unsolved": (own.unsolved, lambda p: Unsolved(passes=p)),
        "--hardest": (own.hardest, lambda p: Hardest(passes=p, sizes=own.sizes)),
    }
    for option, (model, rule) in rules.items():
        if model is not None:
            if model not in passes:
                raise UnknownNameError(f"model of {option}: --passes has none", model, passes)
            steps.append(rule(passes[model]))
    return steps


def _by_probe(own: CurateOptions) -> list[CurationStep]:
    from assay.curate import AngleOrder, Donod, Influential, LearningImpact, MostVaried

    steps: list[CurationStep] = []
    if own.limr:
        steps.append(LearningImpact(probe=_probe(_measurements_file(own, own.limr)), threshold=own.limr_above))
    if own.varied:
        steps.append(MostVaried(probe=_probe(_measurements_file(own, own.varied)), count=own.varied_count))
    if own.angles:
        steps.append(AngleOrder(probe=_probe(own.angles)))
    if own.donod:
        steps.append(Donod(probe=_probe(own.donod), share=own.donod_share))
    if own.influence:
        if own.validation is None or own.influence_share is None:
            raise ConfigError("--influence needs --validation FILE and --influence-share SHARE")
        steps.append(Influential(probe=_probe(own.influence), validation=own.validation, share=own.influence_share))
    return steps


def _is_run(path: Path) -> bool:
    return (path / "run.toml").exists()


def _measurements_file(own: CurateOptions, path: Path) -> Path:
    """A file of measurements; of a run, what it saw of its rows is written into OUT first."""
    if not _is_run(path):
        return path
    from assay.select import write_measurements

    return write_measurements(path, own.out / "measured" / f"{path.resolve().name}.jsonl", own.epochs)


def _probe(file: Path) -> ProbeFile:
    from assay.curate import ProbeFile

    return ProbeFile(file=file)


def _own(word: str) -> CurationStep:
    """A step of the user's: a value, or a class that needs no arguments."""
    from assay.curate import RowStep, SetStep
    from assay.interop import load

    found: Any = load(word)
    made = found() if isinstance(found, type) else found
    if not isinstance(made, RowStep | SetStep):
        raise ConfigError(f"--step {word} is no step; derive it from assay.curate.RowStep or SetStep (docs/add/filter.md)")
    return made


def _files(option: str, words: tuple[str, ...]) -> dict[str, Path]:
    """Files by name, from NAME=FILE words."""
    found: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not equals or not name or not path:
            raise ConfigError(f"{option} {word!r}: write NAME=FILE")
        if name in found:
            raise ConfigError(f"{option} names {name!r} twice; give each file a name of its own")
        found[name] = Path(path)
    return found

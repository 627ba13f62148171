"""What is refused before anything is built: needs that no learner here meets, and answers that the model cannot spell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import SHAPE, on_tiny_base, only_rl, reinforce, tiny, warm_up
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers import decoders as hub_decoders
from tokenizers import models as hub_models

from assay.cli.sizes import derive
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.rollout import Sampling
from assay.core.seeds import content_split
from assay.objective import Kl, KlInReward, Objective, TdLoss, grpo, nll, rloo
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.model import init_model
from assay.runtime.settings import LearnerSettings
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer
from assay.runtime.vllm.settings import VllmSettings
from assay.tasks import Rows
from assay.train import models
from assay.train.driver import train
from assay.train.preflight import check_fits, check_run
from assay.train.run import Run
from assay.verify import ExactMatch, FormatIs, Together
from assay_tasks import KeyValue, SortDigits

# ---- what the learner does not offer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (grpo() + TdLoss(label="critic"), r"TdLoss \('critic'\) needs the live column 'values', .* it offers logp_new, entropy"),
        (
            grpo() + Kl("k2", anchor="teacher", label="taught"),
            r"Kl needs 'logp_teacher', .* no model 'teacher': it offers policy",
        ),
        (replace(rloo(), credit=(KlInReward(coef=0.1, anchor="teacher"),)), "KlInReward needs 'logp_teacher'"),
    ],
)
def test_needs_that_the_learner_does_not_meet_are_refused_before_a_base_is_built(
    objective: Objective, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    run = replace(on_tiny_base(), stages=(reinforce(objective=objective),))
    with pytest.raises(PlanError, match=says):
        train(run, tmp_path / "run")
    assert not (tmp_path / "cache").exists()
    with pytest.raises(PlanError, match=says):
        derive(run)  # what `assay explain` prints


def test_the_base_of_an_explained_run_is_looked_at_too() -> None:
    base = replace(tiny(), stages=(warm_up(objective=nll() + Kl("k2", anchor="teacher")),))
    with pytest.raises(PlanError, match="teacher"):
        derive(replace(on_tiny_base(), model=models.Built(run=base)))


def test_contradictions_are_found_without_a_model() -> None:
    for drawn in (Sampling(max_new_tokens=5, top_k=3), Sampling(max_new_tokens=5, temperature=0.0)):
        with pytest.raises(ConfigError, match=r"Run\.sampling\.(top_k=3|temperature=0\.0) in a run with RL"):
            check_run(replace(only_rl(), sampling=drawn, engine=VllmSettings()))
        check_run(replace(tiny(), sampling=drawn, stages=(warm_up(),)))
    code = "import sys\nfrom assay.train.preflight import check_run\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_column_that_the_sampler_brings_needs_no_model() -> None:
    taught = replace(grpo() + Kl("k2", anchor="teacher", label="taught"), brings=("logp_teacher",))
    check_run(only_rl(objective=taught))


def test_settings_offer_what_a_session_builds() -> None:
    settings = LearnerSettings()
    model = init_model(SHAPE, char_tokenizer("0123456789"), 0)
    learner = TorchLearner(model, settings, total_steps=1)
    assert settings.offers.models == ("policy", *learner.anchors)


# ---- answers ------------------------------------------------------------------------------------------------------------


def half(prompt: str, completion: str, row: Any) -> float:
    return 0.5


def on(tasks: Any, **changes: Any) -> Run:
    return replace(only_rl(**changes), tasks=tasks)


def rows(answer: str, split: str = "train", **changes: Any) -> Rows:
    """Three hundred rows, and among them one with an answer of its own, in the split that is asked for."""
    made = [{"prompt": f"S{i}>", "answer": str(i)} for i in range(300)]
    prompt = next(p for p in (f"S?{i}>" for i in range(100)) if content_split({"prompt": p}, 0.1) == split)
    return Rows([*made[:200], {"prompt": prompt, "answer": answer}, *made[200:]], **changes)


def model(tokenizer: HubTokenizer) -> Any:
    return init_model(replace(SHAPE, vocab_size=tokenizer.size), tokenizer, 0)


DIGITS = model(char_tokenizer("0123456789S>? "))
LACKS = r"task 'rows/rows/1/.*' \(arm 'rows', level 1\): its answer 'né ü' holds 'n', 'é', 'ü', which the model's tokenizer lacks"


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("scorer", [None, Together((FormatIs(".*"), Together((ExactMatch(),))))])
def test_an_answer_that_the_model_cannot_spell_is_refused(split: str, scorer: Any) -> None:
    with pytest.raises(DataError, match=LACKS):
        check_fits(on(rows("né ü", split, scorer=scorer)), DIGITS)


def test_an_answer_that_cannot_be_demonstrated_is_named() -> None:
    run = on(rows("né ü"))
    with pytest.raises(DataError, match=LACKS):
        check_fits(replace(run, stages=(warm_up(levels=()),)), DIGITS)


def test_a_run_is_refused_for_such_an_answer(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"its answer '¾' holds '¾', .*: use a model whose alphabet has them"):
        train(on(rows("¾")), tmp_path / "run")
    assert not (tmp_path / "run" / "run.toml").exists()


@pytest.mark.parametrize(
    "tasks",
    [
        rows("né ü", reward=half),
        rows("né ü", scorer=FormatIs("[0-9]*")),
        rows("\t17\n"),  # white space around an answer is ignored
        SortDigits(levels=(1, 2)),
    ],
)
def test_where_nothing_must_be_matched_nothing_is_refused(tasks: Any) -> None:
    check_fits(on(tasks), DIGITS)


def test_white_space_counts_where_it_must_be_matched() -> None:
    with pytest.raises(DataError, match=r"answer '17\\n' holds '\\n'"):
        check_fits(on(rows("17\n", scorer=ExactMatch())), DIGITS)
    with pytest.raises(DataError, match=r"holds 'x'") as caught:
        check_fits(on(rows("x" * 70)), DIGITS)
    assert "x" * 57 + "..." in str(caught.value)


@dataclass(frozen=True)
class Unanswered(SortDigits):
    """A family that is matched exactly and forgets its answers."""

    def task(self, arm: str, level: int, split: str, index: int) -> Any:
        return replace(super().task(arm, level, split, index), private={})


def test_a_match_without_an_answer_is_found_before_the_run() -> None:
    with pytest.raises(DataError, match="no private 'answer' to compare with"):
        check_fits(on(Unanswered(levels=(1,))), DIGITS)


def words(normalizer: Any, alphabet: str) -> HubTokenizer:
    """Characters after a normaliser, ``<unk>`` for the rest."""
    ids = {token: i for i, token in enumerate(["<eos>", "<unk>", *alphabet])}
    made = Tokenizer(hub_models.WordLevel(ids, unk_token="<unk>"))
    made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = hub_decoders.Fuse()
    made.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<eos>", "<unk>")])
    return HubTokenizer(made, eos=0)


def bytewise() -> HubTokenizer:
    ids = {token: i for i, token in enumerate(["<eos>", *sorted(pre_tokenizers.ByteLevel.alphabet())])}
    made = Tokenizer(hub_models.BPE(ids, []))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = hub_decoders.ByteLevel()
    made.add_special_tokens([AddedToken("<eos>", special=True, normalized=False)])
    return HubTokenizer(made, eos=0)


@pytest.mark.parametrize(
    ("tokenizer", "answer", "lacks"),
    [
        (lambda: words(normalizers.Lowercase(), "0123456789s>?ab "), "aB c", "'B', 'c'"),
        (bytewise, "né ü 漢 \N{ANGSTROM SIGN}\t¾", None),  # bytes spell everything; one sign comes back in its composed form
    ],
)
def test_other_tokenizers_are_asked_what_comes_back(
    tokenizer: Callable[[], HubTokenizer], answer: str, lacks: str | None
) -> None:
    if lacks is None:
        check_fits(on(rows(answer)), model(tokenizer()))
        return
    with pytest.raises(DataError, match=f"holds {lacks}, which"):
        check_fits(on(rows(answer)), model(tokenizer()))


def test_a_task_that_needs_more_turns_than_an_attempt_has_is_refused() -> None:
    """Two calls of the tool and the answer: three turns."""
    tasks = KeyValue(levels=(2,))
    run, given = replace(on(tasks), max_turns=2), model(char_tokenizer(tasks.alphabet))
    with pytest.raises(ConfigError, match=r"task 'keyvalue/.*level 2\) takes its oracle 3 turns, and Run.max_turns=2 cuts"):
        check_fits(run, given)
    check_fits(replace(run, max_turns=3), given)

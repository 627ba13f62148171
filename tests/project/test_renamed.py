"""A name that a package had once says what it is called now, and every new name is there."""

import copy
import importlib
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from assay.agents.rendering import AgentRenderer
from assay.audit.record import Example
from assay.core.batch import Batch
from assay.core.canon import digest
from assay.core.errors import ConfigError
from assay.core.manifest import Manifest
from assay.core.plan import Plan
from assay.core.task import Task
from assay.core.thinking import Thinking
from assay.core.util.exports import lazy_exports
from assay.core.util.renamed import RENAMED, RenamedMembers, refuse_renamed
from assay.guide import RowRule
from assay.guide.cell_curricula import Memory
from assay.interop.service import serve
from assay.lab.summary import RunEnding
from assay.measure import EvalTable
from assay.measure.rollout_line import RolloutLine
from assay.measure.trackers.tracker import TrackerSettings
from assay.objective import CreditTerm, Entropy, grpo, required_inputs
from assay.objective.credit.base import Credit
from assay.objective.loss.weights import TokenWeight
from assay.objective.padded_batch import PaddedInputs
from assay.rollout.conversation import Conversation
from assay.rollout.decode_text import AnswerReader
from assay.runs.metric_names import current_names, digest_names
from assay.runs.reader import read_record
from assay.select import Distillation, Distilled
from assay.tasks import Form, Problem, TaskMixture
from assay.tasks.programs import ProgramTask
from assay.testing import random_batch
from assay.train import BaseRunner, OneUpdate
from assay.verify import Abilities, CompositeVerifier, Numeric, abilities_of
from assay.verify.code.base import ProgramVerifier

TABLE = {"assay.core": {"Seed": "derive"}, "assay.verify": {"Old": "New"}}


def test_an_old_name_says_the_new_one() -> None:
    find, _ = lazy_exports("assay.core", {"seeds": "derive"}, renamed=TABLE)
    with pytest.raises(ImportError, match=r"assay.core.Seed is called derive now; write: from assay.core import derive"):
        find("Seed")
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        find("other")


def test_a_name_that_moved_and_was_renamed_says_both() -> None:
    find, _ = lazy_exports(
        "assay.core", {"seeds": "derive"}, moved={"Old": "assay.verify", "Same": "assay.verify"}, renamed=TABLE
    )
    with pytest.raises(ImportError, match=r"write: from assay\.verify import New"):
        find("Old")
    with pytest.raises(ImportError, match=r"write: from assay\.verify import Same"):
        find("Same")


@pytest.mark.parametrize("package", RENAMED)
def test_every_new_name_is_there_and_every_old_one_says_so(package: str) -> None:
    module = importlib.import_module(package)
    for old, new in RENAMED[package].items():
        assert hasattr(module, new), f"{package} has no {new}"
        with pytest.raises(ImportError, match=f"is called {new} now"):
            getattr(module, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [("verify:RubricJudge", "scorers"), ("verify:FromTasks", "scorers"), ("verify.service:RewardClient", "interop.service")],
)
def test_a_name_that_moved_says_where_it_is(old: str, new: str) -> None:
    package, _, name = old.partition(":")
    assert hasattr(importlib.import_module(f"assay.{new}"), name)
    with pytest.raises(ImportError, match=f"write: from assay.{new} import {name}"):
        getattr(importlib.import_module(f"assay.{package}"), name)


def test_a_function_that_verifiers_of_before_import_says_its_new_name() -> None:
    with pytest.raises(ImportError, match=r"ruled is called verdict_score now; write: from assay\.verify\.answer_verifier"):
        from assay.verify.answer_verifier import ruled  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        importlib.import_module("assay.verify.answer_verifier").other  # noqa: B018


def test_a_package_that_was_exported_before_finds_what_it_imports() -> None:
    from assay.tasks.packages import installed, installed_packages

    assert installed is installed_packages and installed().read("nothing.csv") is None


def test_the_old_service_says_the_new_name_of_its_handler() -> None:
    with pytest.raises(ImportError, match=r"write: from assay\.interop\.service import ScoringRequestHandler"):
        from assay.verify.service import Desk  # type: ignore[attr-defined]  # noqa: F401


# ---- members of parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "old", "new"),
    [(Plan(), "attempts", "rollout_columns"), (grpo(), "pays", "uses_reward"), (required_inputs(grpo()), "pays", "uses_reward")],
)
def test_an_old_member_of_a_record_says_the_new_one(record: Any, old: str, new: str) -> None:
    with pytest.raises(AttributeError, match=f"{type(record).__name__}.{old} is called {new} now"):
        getattr(record, old)
    assert hasattr(record, new) and not hasattr(record, "other")
    assert copy.copy(record) == record and pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize("kind", [Credit, Plan, PaddedInputs, type(required_inputs(grpo())), type(grpo())])
def test_every_new_member_is_there(kind: type[RenamedMembers]) -> None:
    assert kind.renamed_members and all(new in dir(kind) for new in kind.renamed_members.values())


@pytest.mark.parametrize(
    ("base", "old", "new"),
    [
        (CreditTerm, "attempts", "rollout_columns"),
        (Entropy, "attempts", "rollout_columns"),
        (OneUpdate, "rows_told", "count_rows"),
        (OneUpdate, "practises", "uses_tasks"),
        (OneUpdate, "reduced", "shrink"),
        (BaseRunner, "saved", "on_checkpoint"),
        (CompositeVerifier, "joined", "merge_scores"),
        (CompositeVerifier, "made_of", "with_members"),
        (ProgramVerifier, "found", "extract_program"),
        (ProgramVerifier, "written_in", "program_language"),
        (Problem, "answered", "format_solution"),
        (RowRule, "ordered_by", "order_score"),
        (ProgramTask, "made", "make_input"),
        (ProgramTask, "printed", "run_reference"),
        (Numeric, "graded", "grade_number"),
        (TokenWeight, "clipped", "clip_mask"),
        (TokenWeight, "further", "second_pass"),
        (TrackerSettings, "called", "tracker_name"),
        (OneUpdate, "asked_models", "scored_models"),
        (ProgramVerifier, "beside", "for_workers"),
    ],
)
def test_a_part_of_ones_own_with_an_old_member_is_refused(base: type, old: str, new: str) -> None:
    with pytest.raises(ConfigError, match=rf"Mine\.{old} is called {new} now; rename it"):
        type("Mine", (base,), {old: ("x",)})
    assert hasattr(base, new)


def test_other_members_are_not_looked_at() -> None:
    refuse_renamed(type("Mine", (), {"rollout_columns": ()}), {"attempts": "rollout_columns"})


def test_old_members_of_conversations_and_memories_say_the_new_ones() -> None:
    for kind, old, new in ((Conversation, "said", "answer_ids"), (Memory, "moved", "average")):
        assert kind.renamed_members[old] == new
    with pytest.raises(AttributeError, match=r"Memory\.moved is called average now"):
        _ = Memory().moved  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "kind",
    [
        Task,
        Manifest,
        Batch,
        TaskMixture,
        AgentRenderer,
        EvalTable,
        RolloutLine,
        Distilled,
        RunEnding,
        Example,
        Thinking,
        AnswerReader,
    ],
)
def test_old_members_of_records_say_the_new_ones(kind: Any) -> None:
    """Made without `__init__`, whose arguments are of no interest: an old name is no field."""
    record = object.__new__(kind)
    for old, new in kind.renamed_members.items():
        with pytest.raises(AttributeError, match=rf"{kind.__name__}\.{old} is called {new} now"):
            getattr(record, old)
        assert new in dir(kind), f"{kind.__name__} has no {new}"


def test_an_old_name_of_a_form_and_of_an_ability_says_the_new_one() -> None:
    with pytest.raises(AttributeError, match=r"Form\.given is called format_answer now"):
        _ = Form.BOX.given  # type: ignore[attr-defined]
    assert list(Form) == ["tag", "box", "mark", "plain"]
    verifier = type("Mine", (), {"beside": lambda self, n: None, "__call__": lambda self, task, rollout: None})()
    with pytest.raises(ConfigError, match=r"Mine\.beside is called for_workers now"):
        abilities_of(verifier)


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (Distillation, "attempts", "answers"),
        (random_batch, "attempts", "rollout_columns"),
        (Abilities, "beside", "for_workers"),
        (serve, "said", "notify"),
    ],
)
def test_an_old_keyword_says_the_new_one(call: Any, old: str, new: str) -> None:
    with pytest.raises(ConfigError, match=rf"{call.__name__}\({old}=\.\.\.\) is called {new} now"):
        call(**{old: 1})
    assert new in inspect.signature(call).parameters


def test_metrics_have_their_present_names_and_their_old_digests(tmp_path: Path) -> None:
    old = {"loss/total": 1.0, "engine/ess_attempts": 0.5, "check/attempts": 3.0}
    line = {"step": 1, "stage": "rl", "metrics": old}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    (found,) = read_record(tmp_path).metrics
    assert found.metrics == {"loss/total": 1.0, "engine/ess_rollouts": 0.5, "check/rollouts": 3.0}
    assert digest_names(found.metrics) == digest_names(old) == old
    assert digest(digest_names(current_names(old))) == digest(old)

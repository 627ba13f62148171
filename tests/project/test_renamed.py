"""A name that a package had once says what it is called now, and every new name is there."""

import copy
import importlib
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from assay.core.canon import digest
from assay.core.errors import ConfigError
from assay.core.plan import Plan
from assay.core.util.exports import lazy_exports
from assay.core.util.renamed import RENAMED, RenamedMembers, refuse_renamed
from assay.guide import RowRule
from assay.guide.cell_curricula import Memory
from assay.objective import CreditTerm, Entropy, grpo, required_inputs
from assay.objective.credit.base import Credit
from assay.objective.padded_batch import PaddedInputs
from assay.rollout.conversation import Conversation
from assay.runs.metric_names import current_names, digest_names
from assay.runs.reader import read_record
from assay.tasks import Problem
from assay.train import BaseRunner, OneUpdate
from assay.verify import CompositeVerifier
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
        assert kind.renamed_members == {old: new}
    with pytest.raises(AttributeError, match=r"Memory\.moved is called average now"):
        _ = Memory().moved  # type: ignore[attr-defined]


def test_metrics_have_their_present_names_and_their_old_digests(tmp_path: Path) -> None:
    old = {"loss/total": 1.0, "engine/ess_attempts": 0.5}
    line = {"step": 1, "stage": "rl", "metrics": old}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    (found,) = read_record(tmp_path).metrics
    assert found.metrics == {"loss/total": 1.0, "engine/ess_rollouts": 0.5}
    assert digest_names(found.metrics) == digest_names(old) == old
    assert digest(digest_names(current_names(old))) == digest(old)

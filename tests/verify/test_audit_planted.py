"""Planted defects: each is found by the check that is for it, and honest verifiers pass every check."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import planted
import pytest

from assay.audit import Audit, AuditSettings, AuditStatus, audit, case_of, resolve
from assay.verify import ExactMatch

GOLDS = ["4", "17", "7", "7", "-3"]
CASES = [case_of({"gold": gold, "prompt": f"What is {int(gold) - 1} + 1?"}, i) for i, gold in enumerate(GOLDS)]
NAMES = [case_of({"gold": gold}, i) for i, gold in enumerate(("Ida", "IDA", "Ada Lovelace", "iron"))]
HONEST = AuditSettings(hostile_items=1, deadline=20.0, max_p99=20.0)
QUICK = AuditSettings(hostile_items=0, deadline=20.0, skip=("determinism", "latency"), backend="none")  # of boxes elsewhere
FILE = Path(planted.__file__)


@cache
def audited(defect: Any, check: str) -> Audit:
    """One audit of a defect, of which several families may tell. What judges again, in processes of its own, is for those that
    only this finds.
    """
    again = {"order", "threads"} - {check}
    return audit(defect, CASES, settings=replace(QUICK, skip=(*QUICK.skip, *sorted(again))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defect", "check", "family"),
    [
        (planted.accepts_anything, "wrong_answers", "junk"),
        (planted.accepts_anything, "wrong_answers", "empty"),
        (planted.substring, "wrong_answers", "hedge"),
        (planted.substring, "wrong_answers", "negated"),
        (planted.accepts_frequent, "wrong_answers", "frequent"),
        (planted.accepts_yes, "wrong_answers", "constants"),
        (planted.first_box, "wrong_answers", "two_boxes"),
        (planted.refuses_right, "gold", "gold"),
        (planted.raises_on_junk, "faults", "junk"),
        (planted.gives_nan, "faults", "empty"),
        (planted.fault_as_zero, "missing_gold", "missing gold"),
        (planted.main_thread_only, "threads", "thread"),
        (planted.shifted, "order", "batch"),
        (planted.Remembers(), "order", "reversed"),
        (planted.by_name, "order", "renamed"),
    ],
)
def test_a_planted_defect_is_found(defect, check: str, family: str) -> None:
    found = audited(defect, check)
    assert check in found.failed, [(c.name, c.says) for c in found.checks]
    line = next(line for line in found.check(check).lines if line.name == family)
    assert line.rate.failed > 0
    assert found.check(check).examples or family == "missing gold"
    assert not found.passed


@pytest.mark.slow
def test_two_golds_that_differ_by_case_make_case_matter() -> None:
    found = audit(planted.any_case, NAMES, settings=QUICK)
    assert found.failed == ("wrong_answers",)
    assert [(e.gold, e.answer) for e in found.check("wrong_answers").examples] == [("Ida", "IDA"), ("IDA", "Ida")]
    assert audit(planted.strict_case, NAMES, settings=QUICK).passed


@pytest.mark.slow
def test_what_rewards_length_is_found_by_long_text() -> None:
    found = audit(planted.rewards_length, CASES, settings=replace(QUICK, hostile_items=1))
    assert "tricks" in found.failed
    assert {line.name for line in found.check("tricks").lines if line.rate.failed} >= {"long"}


def seeds_that_differ() -> tuple[int, ...]:
    """Hash seeds with which `planted.by_hash` gives its two values."""
    code = f"print(next(iter(set({planted.OWN_WORDS!r}))) < 'word3')"
    seeds: dict[str, int] = {}
    for seed in range(1, 50):
        command = [sys.executable, "-S", "-c", code]
        env = {**os.environ, "PYTHONHASHSEED": str(seed)}
        seeds.setdefault(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout, seed)
        if len(seeds) == 2:
            return tuple(seeds.values())
    raise AssertionError("no two of 49 seeds give different orders")


@pytest.mark.parametrize(
    ("defect", "line"),
    [
        ("random_value", "again"),
        pytest.param("by_time", "again", marks=pytest.mark.prove),
        ("by_hash", "fresh interpreter 1"),
    ],
)
def test_what_differs_from_call_to_call_or_from_process_to_process(monkeypatch, defect: str, line: str) -> None:
    from assay.audit import repeatability

    if defect == "by_hash":  # two orders of a set, of which one must be another than the one here
        monkeypatch.setattr(repeatability, "_HASH_SEEDS", seeds_that_differ())
    found = audit(resolve(f"{FILE}:{defect}"), CASES[:4], settings=replace(QUICK, skip=("order", "threads")))
    assert "determinism" in found.failed
    lines = {x.name: x.rate.failed for x in found.check("determinism").lines}
    assert any(failed for name, failed in lines.items() if name.startswith(line[:6]))
    assert not (defect == "by_hash" and lines["again"])


@pytest.mark.slow
@pytest.mark.parametrize("defect", [planted.evaluates, planted.shells])
def test_code_that_runs_is_found_by_its_traces(defect) -> None:
    settings = replace(QUICK, hostile_items=1, skip=("determinism", "latency", "order", "threads"))
    found = audit(defect, CASES[:2], settings=settings)
    check = found.check("execution")
    assert check.status is AuditStatus.FAIL
    assert "a file was made" in check.says
    assert any("exec" in example.finding for example in check.examples)
    if defect is planted.evaluates:
        assert "a connection was opened" in check.says and "environment variable set" in check.says


def test_what_hangs_is_killed_and_named() -> None:
    settings = replace(QUICK, hostile_items=1, deadline=1.5, skip=("determinism", "order", "threads"), max_p99=1.0)
    found = audit(planted.hangs_on_long_text, CASES[:2], settings=settings)
    assert {"hangs"} <= set(found.failed) <= {"hangs", "latency"}
    assert [line.name for line in found.check("hangs").lines] == ["long"]
    assert found.latency is not None and found.latency.max >= 1.5


@pytest.mark.slow
def test_what_dies_is_replaced_and_named() -> None:
    found = audit(planted.crashes_on_empty, CASES[:2], settings=QUICK)
    assert found.failed == ("crashes",)
    assert found.check("crashes").examples[0].answer == ""
    assert "exit code 3" in found.check("crashes").examples[0].finding


def test_what_is_slow() -> None:
    settings = replace(QUICK, skip=("determinism", "order", "threads"), max_p99=0.01)
    found = audit(planted.slow, CASES[:1], settings=settings)
    assert found.failed == ("latency",)
    assert found.latency is not None and found.latency.p50 >= 0.03
    assert found.check("latency").examples


@pytest.mark.parametrize(
    "name", ["last_box", *(pytest.param(n, marks=pytest.mark.prove) for n in ("honest", "honest_literal", "honest_trl"))]
)
def test_honest_rewards_of_every_signature_pass(name: str) -> None:
    found = audit(resolve(f"{FILE}:{name}"), CASES, settings=replace(HONEST, backend="none"))
    assert found.passed, [(c.name, c.says, c.examples[:3]) for c in found.checks if c.status is AuditStatus.FAIL]
    assert found.template == (r"\boxed{{answer}}" if name == "last_box" else "{answer}")
    assert [c.name for c in found.checks if c.status is AuditStatus.SKIPPED] == []


@pytest.mark.parametrize("verifier", [ExactMatch(strip=True), pytest.param(ExactMatch(), marks=pytest.mark.prove)])
def test_honest_verifiers_pass(verifier: ExactMatch) -> None:
    must = ("whitespace",) if verifier.strip else ()
    found = audit(verifier, CASES, settings=AuditSettings(hostile_items=1, deadline=20.0, max_p99=20.0, must=must))
    assert found.passed
    assert found.check("formats").status is (AuditStatus.PASS if verifier.strip else AuditStatus.INFO)
    strict = audit(verifier, CASES[:2], settings=replace(QUICK, must=("whitespace", "boxed")))
    assert strict.failed == ("formats",)

"""Every built-in verifier ships its audit: its own gold, what its documentation promises, and it passes."""

import pytest
from needed_tools import with_tools

from assay.audit import AuditSettings, audit
from assay.audit.built_in import BUILT_IN, cases_of
from assay.audit.effects import EFFECTS
from assay.audit.probes import FAMILIES
from assay.core.errors import DataError
from assay.verify import about, rollout_of, verifier, verifiers


def test_every_built_in_verifier_has_gold_of_its_own() -> None:
    assert set(verifiers()) <= set(BUILT_IN)


@pytest.mark.parametrize("name", with_tools(verifiers()))
def test_its_solutions_are_right_and_what_is_known_to_be_wrong_is_wrong(name: str) -> None:
    judge_it = verifier(name)
    programs = about(name).kind.startswith(("assay.verify.code", "assay.verify.hardware"))
    for seed in range(1 if programs else 3):
        cases = cases_of(name, name, seed, 12)
        assert cases == cases_of(name, name, seed, 12)
        assert len({case.task.id for case in cases}) == 12
        for case in cases[: 3 if programs else 12]:  # an answer is some processes there: the proof below judges them all
            for text in case.solutions:
                assert judge_it(case.task, rollout_of(case.task, text)).primary == 1.0, text
            assert case.wrong or case.unique
            for text in case.wrong:
                assert judge_it(case.task, rollout_of(case.task, text)).primary < 0.5, text
    assert {*BUILT_IN[name].must, *BUILT_IN[name].inform} <= {*FAMILIES, *EFFECTS}


def test_mathematics_has_forms_beside_numbers() -> None:
    golds = [case.gold for case in cases_of("math", "math", 0, 16)]
    assert sum(gold.startswith((r"\frac", "(", "x^2")) or "sqrt" in gold for gold in golds) == 4


def test_others_have_none() -> None:
    with pytest.raises(DataError, match="mine has no cases of its own"):
        cases_of(None, "mine", 0, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numeric", "graph_path"])
def test_what_is_documented_is_audited(name: str) -> None:
    settings = AuditSettings(items=4, hostile_items=0, deadline=20.0, skip=("determinism", "latency"), inform=("near",))
    found = audit(name, settings=settings)
    assert found.passed, [(c.name, c.says) for c in found.checks]
    assert found.settings.must == BUILT_IN[name].must
    assert found.settings.inform == ("near", *BUILT_IN[name].inform)
    assert [line.name for line in found.check("formats").lines if line.counts] == list(BUILT_IN[name].must)


RUNS_PROGRAMS = [n for n in verifiers() if about(n).kind.startswith(("assay.verify.code", "assay.verify.hardware"))]
"""Verifiers whose every verdict starts processes. They are audited on ten solutions each, on two dozen in the long study."""


@pytest.mark.prove
@pytest.mark.parametrize("name", with_tools(verifiers()))
def test_it_passes_its_audit(name: str) -> None:
    _passes(name, AuditSettings(items=10 if name in RUNS_PROGRAMS else 24, deadline=20.0, max_p99=5.0))


@pytest.mark.evidence
@pytest.mark.parametrize("name", with_tools(RUNS_PROGRAMS))
def test_it_passes_its_audit_on_two_dozen_solutions(name: str) -> None:
    _passes(name, AuditSettings(items=24, deadline=20.0, max_p99=5.0))


def _passes(name: str, settings: AuditSettings) -> None:
    found = audit(name, settings=settings)
    assert found.passed, [(c.name, c.says, c.examples[:3]) for c in found.checks if c.name in found.failed]

"""Two processes over ``torch.distributed`` compute what one computes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import rank_cases
from two_ranks import Results, on_two_ranks

from assay.core.canon import digest
from assay.objective.methods import methods


@pytest.fixture(scope="module", params=["one of each kind", pytest.param("every", marks=pytest.mark.prove)])
def names(request: pytest.FixtureRequest) -> list[str]:
    """The methods that are computed."""
    return rank_cases.one_of_each_kind() if request.param == "one of each kind" else list(methods())


@pytest.fixture(scope="module")
def two(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Results]:
    """What each of two processes computed from its half."""
    return on_two_ranks(rank_cases.main, tmp_path_factory.mktemp("ranks"), names)


@pytest.fixture(scope="module")
def one(names: list[str]) -> Results:
    """What a single process computes from everything."""
    return rank_cases.whole(names)


def near(found: Any, wanted: Any, what: str) -> None:
    """Equal to 1e-10 of the largest number there; sums in another order differ in their last bits."""
    scale = float(np.max(np.abs(wanted), initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * scale, err_msg=what)


def test_methods_on_two_ranks(names: list[str], two: tuple[Results, Results], one: Results) -> None:
    assert len(names) > 30
    for name in names:
        holds(name, two, one)


def holds(name: str, two: tuple[Results, Results], one: Results) -> None:
    """Two ranks' halves of a method are together what one process computes, and their merged statistics the same bits."""
    merged = [rank[f"{name}/merged"] for rank in two]
    assert merged[0] and merged[0] == merged[1], f"{name}: the ranks hold other bits of a merged statistic"
    for seed, whole in enumerate(one[name]):
        halves = [rank[name][seed] for rank in two]
        number = np.concatenate([h["number"] for h in halves])
        assert sorted(number.tolist()) == whole["number"].tolist() and all(len(h["number"]) for h in halves)
        said = f"{name}, batch {seed}: "
        near(np.concatenate([h["advantage"] for h in halves])[np.argsort(number)], whole["advantage"], said + "advantage")
        near(sum(h["loss"] for h in halves), whole["loss"], said + "loss")
        for live, slope in whole["gradients"].items():
            found = np.concatenate([h["gradients"][live] for h in halves])[np.argsort(number)]
            near(found, slope, f"{said}gradient of {live}")
        for metric in {m for part in (whole, *halves) for m in part["metrics"]}:
            near(sum(h["metrics"].get(metric, 0.0) for h in halves), whole["metrics"].get(metric, 0.0), said + metric)
        assert digest(halves[0]["state"]) == digest(halves[1]["state"]), said


def test_the_batches_teach_every_method(names: list[str], one: Results) -> None:
    """Equal zeros would prove nothing."""
    idle = [n for n in names if not any(np.any(g) for part in one[n] for g in part["gradients"].values())]
    assert idle == []


def test_each_kind_of_statistic_is_the_same_on_all_ranks(two: tuple[Results, Results]) -> None:
    kinds = [rank["kinds"] for rank in two]
    assert list(kinds[0]) == list(reversed(kinds[1])) and kinds[0] == kinds[1]
    found = {name: pickle.loads(data) for name, data in kinds[0].items()}
    here, there = (rank_cases.partials(rank) for rank in (0, 1))
    every = {n: np.concatenate([here[n].rows, there[n].rows]) for n in ("smallest", "largest")}
    for name, k in (("smallest", 7), ("largest", 4)):
        np.testing.assert_array_equal(found[name].rows, every[name][np.argsort(every[name][:, 0])][:k])
    assert found["counts"].values.tolist() == [*(here["counts"].values + there["counts"].values[:3]), there["counts"].values[3]]
    assert found["moments"].count.sum() == 60 and abs(found["moments"].mean - 1e6).max() < 1e-2
    assert found["none"].count.tolist() == []


def test_what_ranks_are_told_when_they_disagree(two: tuple[Results, Results]) -> None:
    for rank in two:
        assert (
            "rank 0 alone for 'policy/low', rank 1 alone for 'policy/high'; every rank must run the same objective"
            in rank["other names"]
        )
        assert "rank 0 alone for 'report/kl', rank 1 alone for nothing" in rank["no names"]


def test_a_rank_that_does_not_come_is_an_error_that_names_the_statistic(two: tuple[Results, Results]) -> None:
    assert two[0]["late"].startswith("rank 0 waited for the other ranks' 'policy/low' in vain (")
    assert two[0]["late gradient"].startswith("rank 0 waited for the other ranks' gradient of the policy in vain (")

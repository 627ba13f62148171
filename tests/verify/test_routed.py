"""Each task goes to the verifier of its kind, and a pool sees through the switch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify import ExactMatch, MathAnswer, Routed, ScoringPool
from assay.verify.rollouts import rollout_of, task_and_rollout


@dataclass(frozen=True)
class Slow:
    """Judges in a worker, but one word at once."""

    deadline: float = 3.0
    names: tuple[str, ...] = ("correct", "style")
    floor: float = -1.0

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"correct": float(rollout.text == "slow"), "style": 0.5})

    def at_once(self, task: Task, rollout: Rollout) -> Score | None:
        return Score(components={"correct": 0.0, "style": 0.0}) if rollout.text == "" else None


def of(arm: str, gold: object = "a", domain: str = "d", **private: object) -> Task:
    task, _ = task_and_rollout(gold, "")
    return replace(task, arm=arm, domain=domain, private=FrozenMap({"answer": gold, **private}))


def test_by_arm_domain_and_field() -> None:
    exact, number = ExactMatch(), MathAnswer(symbolic=False)
    by_arm = Routed({"x": exact, "y": number})
    assert by_arm.route(of("x")) is exact and by_arm.route(of("y")) is number
    assert Routed({"d": number}, by="domain").route(of("x")) is number
    rows = Routed({"gsm": number, "words": exact}, by="data_source")
    assert rows.route(of("x", data_source="gsm")) is number
    assert rows.route(of("x", row={"data_source": "words"})) is exact
    verdicts = [rows(t, rollout_of(t, "0.5")).primary for t in (of("x", "1/2", data_source=k) for k in ("gsm", "words"))]
    assert verdicts == [1.0, 0.0]


def test_no_route() -> None:
    routed = Routed({"sort": ExactMatch()})
    with pytest.raises(DataError, match=r"task 'case' has arm 'srot', for which there is no verifier; did you mean 'sort'\?"):
        routed(of("srot"), rollout_of(of("srot"), "a"))
    with pytest.raises(DataError, match=r"has data_source None.*routes for \['sort'\]"):
        Routed({"sort": ExactMatch()}, by="data_source").route(of("x"))
    other = MathAnswer(symbolic=False)
    assert Routed({"sort": ExactMatch()}, default=other).route(of("x")) is other
    assert Routed({"sort": ExactMatch()}, by="data_source", default=other).route(of("x")) is other
    with pytest.raises(ConfigError, match="at least one route"):
        Routed({})


def test_what_a_pool_sees() -> None:
    exact, slow = ExactMatch(), Slow()
    quick = Routed({"x": exact, "y": exact})
    assert quick.trusted and quick.members == (exact,) and quick.deadline == 0.0
    mixed = Routed({"x": exact, "y": slow}, default=exact)
    assert not mixed.trusted and mixed.members == (exact, slow) and mixed.deadline == 3.0
    assert mixed.names == ("correct", "style") and mixed.floor == {"correct": -1.0, "style": -1.0}
    assert mixed.at_once(of("x"), rollout_of(of("x"), "a")) == exact(of("x"), rollout_of(of("x"), "a"))
    assert mixed.at_once(of("y"), rollout_of(of("y"), "slow")) is None
    assert mixed.at_once(of("y"), rollout_of(of("y"), "")) is not None
    score = exact(of("x"), rollout_of(of("x"), "a"))
    assert mixed.merge_scores(of("x"), (score,)) is score
    other = mixed.with_members((slow, exact))
    assert other.route(of("x")) is slow and other.route(of("y")) is exact and other.route(of("z")) is slow
    alone = Routed({"x": exact}).with_members((slow,))
    assert alone.default is None and alone.members == (slow,)
    with ScoringPool(mixed, deadline=5.0) as pool:
        items = [(of("x"), rollout_of(of("x"), "a")), (of("y"), replace(rollout_of(of("y"), "slow"), id="r1"))]
        found = pool.score(items)
        assert [found[r.id].primary for _, r in items] == [1.0, 1.0]

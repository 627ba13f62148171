"""The cluster on a virtual clock: times worked out by hand, and the promises of the ledger that it shares with real runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.asynchronous import Cluster, lognormal_lengths, recorded_lengths, simulate_run
from assay.core.errors import ConfigError, UnknownNameError


def cluster(**changes: Any) -> Cluster:
    given: dict[str, Any] = {"groups": 1, "group_size": 2, "step_seconds": 1.0, "sequence_seconds": 0.5}
    return Cluster(**(given | {"train_tokens_per_second": 10.0} | changes))


def by_turns(*groups: list[int]) -> Any:
    """Lengths of one group after the other."""
    left = iter(groups)
    return lambda n, rng: np.array(next(left))


def test_decoding_takes_the_longest_at_a_and_all_tokens_at_c() -> None:
    """``a * max(L) + c * sum(L)``, whatever order sequences end in: 1 * 5 + .5 * 8, then 8 tokens at 10 a second."""
    for lengths in ([3, 5], [5, 3]):
        assert simulate_run(cluster(), by_turns(lengths), steps=1).seconds == pytest.approx(9.0 + 0.8)
    four = simulate_run(cluster(group_size=4), by_turns([2, 9, 4, 4]), steps=1)
    assert four.seconds == pytest.approx(9 + 0.5 * 19 + 1.9) and four.tokens == 19


def test_a_synchronous_step_waits_for_the_slowest_engine_and_engines_wait_for_the_learner() -> None:
    two = cluster(engines=2, groups=2, sync_seconds=1.0)
    run = simulate_run(two, by_turns([2, 2], [6, 6], [4, 4], [4, 4]), steps=2)
    first, second = 6 + 0.5 * 12, 4 + 0.5 * 8
    assert run.seconds == pytest.approx(first + 1.6 + 1 + second + 1.6 + 1)
    assert run.learning == pytest.approx(5.2 / run.seconds)
    assert run.sampling == pytest.approx((2 + 0.5 * 4 + first + 2 * second) / (2 * run.seconds))
    assert (run.age_mean, run.age_max, run.dropped) == (0.0, 0, 0)


def test_one_step_ahead_hides_the_shorter_of_sampling_and_learning() -> None:
    one = cluster(group_size=1, sequence_seconds=0.0, train_tokens_per_second=1.0)
    sync = simulate_run(one, recorded_lengths([4]), steps=6)
    ahead = simulate_run(
        cluster(group_size=1, sequence_seconds=0.0, train_tokens_per_second=1.0, eta=1), recorded_lengths([4]), steps=6
    )
    assert sync.seconds == pytest.approx(6 * 8) and ahead.seconds == pytest.approx(4 + 6 * 4)
    assert ahead.age_max == 1


@pytest.mark.parametrize("policy", ["wait", "continue", "drop"])
@pytest.mark.parametrize("eta", [0, 1, 3])
def test_nothing_is_older_than_promised_and_every_step_is_whole(policy: str, eta: int) -> None:
    made = Cluster(engines=5, groups=8, group_size=2, eta=eta, policy=policy, train_tokens_per_second=2000.0)
    run = simulate_run(made, lognormal_lengths(200, 1.2, 4000), steps=15, seed=eta)
    assert run.steps == 15 and run.age_max <= eta and 0 < run.sampling <= 1 and 0 < run.learning <= 1
    assert run.dropped == 0 or policy == "drop"


def test_long_tails_gain_from_going_ahead_and_equal_lengths_gain_less() -> None:
    def gain(sigma: float) -> float:
        base = Cluster(engines=8, groups=16, group_size=4, train_tokens_per_second=20_000.0, policy="continue")
        lengths = lognormal_lengths(400, sigma, 20_000)
        runs = [simulate_run(c, lengths, steps=10) for c in (base, Cluster(**{**_fields(base), "eta": 2}))]
        return runs[0].seconds / runs[1].seconds

    assert gain(1.2) > gain(0.0) + 0.3 and gain(0.0) >= 1.0


def _fields(made: Cluster) -> dict[str, Any]:
    from dataclasses import fields

    return {f.name: getattr(made, f.name) for f in fields(made)}


def test_a_seed_is_a_run() -> None:
    made, lengths = Cluster(engines=3, groups=4, eta=1), lognormal_lengths(100, 1.0, 1000)
    runs = [simulate_run(made, lengths, steps=4, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Cluster(engines=0), "engines"),
        (lambda: Cluster(eta=-1), "eta=-1; use a number from 0 on"),
        (lambda: Cluster(sync_seconds=float("nan")), "sync_seconds=nan"),
        (lambda: Cluster(train_tokens_per_second=0.0), "train_tokens_per_second=0.0; use a number above 0"),
        (lambda: Cluster(step_seconds=0.0, sequence_seconds=0.0), "decoding would take no time"),
        (lambda: recorded_lengths([]), "0 lengths"),
        (lambda: recorded_lengths([3, 0]), "the least 0"),
        (lambda: lognormal_lengths(0.0, 1.0, 10), "positive numbers"),
        (lambda: simulate_run(Cluster(), recorded_lengths([1]), steps=0), "use at least 1"),
    ],
)
def test_wrong_numbers_are_named(make: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        make()


def test_a_wrong_policy_is_named() -> None:
    with pytest.raises(UnknownNameError, match="wait"):
        Cluster(policy="waits")

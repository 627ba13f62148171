"""RoRecomp in a run: what was put off is learned from, and what does not fit together is refused."""

from __future__ import annotations

import numpy as np
import pytest
from live import session, spied, walk
from tiny_runs import only_rl

from assay.core.errors import ConfigError
from assay.core.sample import STREAMS
from assay.guide import DeferredReplay, Recent, Recompose
from assay.objective import grpo, rloo
from assay.runtime.learner.learner import TorchLearner
from assay.train.preflight import check_run


def test_a_run_learns_from_what_it_put_off() -> None:
    run = only_rl(
        groups=4, group_size=4, composer=Recompose(), replay=DeferredReplay(capacity=8, batch=4), objective=grpo(kl=0.0)
    )
    check_run(run)
    s = session(run)
    results = walk(s, steps=4)
    assert s.replay is not None and len(s.replay.state_dict()["waiting"]) == 8
    assert all(np.isfinite(v) for r in results for v in r.metrics.values())


@pytest.mark.parametrize("minibatches", [1, 2])
def test_what_was_put_off_has_an_update_of_its_own(monkeypatch: pytest.MonkeyPatch, minibatches: int) -> None:
    run = only_rl(
        groups=4,
        group_size=4,
        minibatches=minibatches,
        composer=Recompose(apart=True),
        replay=DeferredReplay(capacity=8, batch=4),
        objective=grpo(kl=0.0),
    )
    check_run(run)
    seen, s = spied(monkeypatch), session(run)
    assert s.stage.updates == minibatches + 1
    walk(s, steps=4)
    streams = [{STREAMS[i] for i in batch.rows["stream"]} for batch in seen]
    fresh, late = {"on_policy"}, {"replay"}
    # The buffer is full from the third step on.
    assert streams == [fresh] * (2 * minibatches) + ([fresh] * minibatches + [late]) * 2
    assert isinstance(s.parts.learner, TorchLearner) and s.parts.learner.place == 4 * (
        minibatches + 1
    )  # the schedule counts what was left out


def test_settings_that_do_not_fit_together_are_refused() -> None:
    for changes, message in (
        ({"composer": Recompose()}, "give composer=Recompose"),
        ({"composer": Recompose(), "replay": Recent()}, "replay Recent: Recompose puts off"),
        ({"replay": DeferredReplay()}, "composer is Compose"),
        ({"composer": Recompose(), "replay": DeferredReplay(), "objective": rloo()}, "has no ratio to correct for it"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_run(only_rl(**changes))

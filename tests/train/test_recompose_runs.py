"""RoRecomp in a run: what was put off is learned from, and what does not fit together is refused."""

from __future__ import annotations

import numpy as np
import pytest
from live import session, walk
from tiny_runs import only_rl

from assay.core.errors import ConfigError
from assay.guide import DeferredReplay, Recent, Recompose
from assay.objective import grpo, rloo
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


def test_settings_that_do_not_fit_together_are_refused() -> None:
    for changes, message in (
        ({"composer": Recompose()}, "give composer=Recompose"),
        ({"composer": Recompose(), "replay": Recent()}, "replay Recent: Recompose puts off"),
        ({"replay": DeferredReplay()}, "composer is Compose"),
        ({"composer": Recompose(), "replay": DeferredReplay(), "objective": rloo()}, "has no ratio to correct for it"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_run(only_rl(**changes))

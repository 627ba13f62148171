"""Learning from forced tokens in a run: SEELE with its likelihood term, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from live import session, walk
from tiny_runs import only_rl

from assay.core.errors import ConfigError
from assay.guide import Compose, Seele
from assay.objective import Nll, Token, grpo
from assay.train.preflight import check_run

BOTH = grpo(kl=0.0) + Nll(streams=("expert",), coef=0.5, aggregate=Token())


def test_a_run_learns_from_the_tokens_that_its_guidance_forces() -> None:
    run = only_rl(groups=4, group_size=2, guidance=Seele(rounds=2), composer=Compose(learn_forced=True), objective=BOTH)
    check_run(run)
    results = walk(session(run), steps=2)
    assert all(np.isfinite(v) for r in results for v in r.metrics.values())
    assert results[0].metrics["loss/nll"] > 0.1


def test_forced_tokens_need_a_term_that_reads_them() -> None:
    with pytest.raises(ConfigError, match="learn_forced=True"):
        check_run(only_rl(composer=Compose(learn_forced=True), objective=grpo()))

"""prime-rl: losses of the trainer, algorithms of the orchestrator."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="prime_rl", kind="loss")
_advantage = partial(PeerMatch, peer="prime_rl", kind="advantage")

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="default", code="prime_rl()", note="sums per row over a global count of tokens"),
    _loss(name="ipo", code="prime_rl_ipo()", note="not the preference loss of that name"),
    _loss(name="ref_kl", code="ref_kl()", note="sums per row over a global count of tokens"),
    _loss(name="ce", code="nll()"),
    _loss(name="opd", code="ref_kl()", note="an algorithm that routes every token to ref_kl"),
    _loss(name="opsd", code="ref_kl(teacher='privileged')", note="the same, against itself behind a demonstration"),
    _loss(name="sft", code="nll()", note="an algorithm that routes every token to ce"),
    _loss(name="echo", code="echo()", note="observation tokens stand in rows of the stream `expert` here"),
    _advantage(name="grpo", code="(Center(),)", note="its length penalty is subtracted from the reward and centred again"),
    _advantage(name="max_rl", code="(Center(), ScaleByMean(eps=0.0))"),
    _advantage(
        name="rae",
        code="(RunningBaseline(by='role', decay=0.95),)",
        note="moves inside a batch, in its order; here once per batch, after it was judged",
    ),
    _advantage(name="hierarchical_grpo", code="(Center(by='peers'),)", note="the column `peers` holds agent or episode"),
)

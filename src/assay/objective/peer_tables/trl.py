"""TRL: loss types of its GRPO trainer, its RLOO trainer, and the experimental trainers that learn from rewards."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="trl", kind="loss")
_advantage = partial(PeerMatch, peer="trl", kind="advantage")
_correction = partial(PeerMatch, peer="trl", kind="correction")

_PPO = "policy=PolicyGradient(trust=MinClip(low=0.2, high=0.2))"
_WINDOW = "the window's tokens are rescaled from the generation batch: exact only when all windows hold equally many"
_OFFLINE = "learns from pairs or labels that rows bring"

TABLE: tuple[PeerMatch, ...] = (
    _loss(
        name="grpo",
        code=f"Objective({_PPO}, aggregate=SeqMean())",
        note="averages over micro-batches, which is the mean over rollouts when these are equally large",
    ),
    _loss(name="dapo", code=f"Objective({_PPO}, aggregate=Token())", note=_WINDOW),
    _loss(
        name="bnpo",
        code=f"Objective({_PPO}, aggregate=Token())",
        note="a token mean over each micro-batch, averaged; not the method of that name; here over the optimiser batch",
    ),
    _loss(name="dr_grpo", code=f"Objective({_PPO}, aggregate=Constant(length=256))", note="length is max_completion_length"),
    _loss(
        name="luspo",
        code="luspo(low=0.2, high=0.2)",
        note="needs importance_sampling_level='sequence', which is not its default and only warned about; bounds "
        "2e-3/2.5e-3 advised",
    ),
    _loss(
        name="cispo",
        code="cispo(cap=5.0)",
        note="epsilon_high is the cap itself; left out it becomes 0.2, so that nearly every token gets weight 0.2",
    ),
    _loss(name="sapo", code="sapo()"),
    _loss(
        name="vespo",
        code="vespo()",
        note="beside vLLM its default correction raises; a token mode puts the mismatch into w, which is anchor='engine' "
        "without a cap",
    ),
    _loss(
        name="grpo/sequence",
        code="gspo(low=0.2, high=0.2)",
        note="importance_sampling_level='sequence'; with dapo, bnpo, dr_grpo or cispo long rollouts weigh more",
    ),
    _loss(
        name="grpo/delta",
        code="Objective(policy=PolicyGradient(trust=MinClip(low=0.2, high=0.2, dual=10.0)), aggregate=SeqMean())",
        note="delta caps the ratio for both signs; above 1 + epsilon_high it only acts where A < 0",
    ),
    _loss(
        name="dapo/beta",
        code=f"Objective({_PPO}, aggregate=Token(), terms=(Kl('rk3', coef=0.04),))",
        note="use_bias_correction_kl, the default; without it Kl('k3')",
    ),
    _loss(
        name="rloo",
        code="Objective(policy=PolicyGradient(ratio=Ratio('sequence_product'), trust=MinClip()), aggregate=SeqSum())",
        note="the same gradient; the value of a rollout is counted once there, at each of its tokens here",
    ),
    _loss(
        name="off_policy_mask",
        code="opsm(delta=0.5)",
        note="falls back to the trainer's old policy where the sampler gives no log-probabilities",
    ),
    _loss(
        name="gmpo",
        code="gmpo(low=0.4, high=0.4)",
        note="drops the sampler correction and the mask that its parent supports",
    ),
    _loss(
        name="async_grpo",
        code=f"Objective({_PPO}, aggregate=Token())",
        note="per micro-batch, averaged; spread without ddof, eps 1e-8",
    ),
    _loss(
        name="a2po",
        code="a2po(beta=1e-3)",
        note="the column `optimal_value` holds V*, which its trainer estimates from 8 answers of the reference",
    ),
    _loss(
        name="sdpo",
        code="sdpo()",
        note="the column logp_privileged holds the policy's own under feedback; its average is the learner's (Ema)",
    ),
    _loss(
        name="sdft",
        code="sdft()",
        note="the columns privileged_ids and privileged_logps come with the rows, or from the learner (k=...)",
    ),
    _loss(
        name="gkd",
        code="gkd()",
        note="generalised Jensen-Shannon divergence over the vocabulary; 0 is forward, 1 reverse KL",
    ),
    _loss(name="iw_opd", code="iw_opd(gamma=0.5)"),
    _loss(name="online_dpo", code="dpo(pairs='extreme')", note="pairs are drawn by a judge; here by the rewards"),
    _loss(name="tpo", reason="three answers per prompt with roles that rows must name; pairs here have two"),
    _loss(name="gold", reason="distillation across tokenisers: no rewards, and no column that two vocabularies share"),
    _loss(name="distillation", code="kd_topk(direction='jsd')", note="no rewards are read"),
    _loss(name="dpo", code="dpo()", note=_OFFLINE),
    _loss(name="cpo", code="cpo()", note=_OFFLINE),
    _loss(name="orpo", code="orpo()", note=_OFFLINE),
    _loss(name="kto", code="kto()", note=_OFFLINE + "; its baseline comes from mismatched pairs of the batch"),
    _loss(name="bco", code="bco()", note=_OFFLINE),
    _advantage(name="group", code="(Center(), Scale(eps=1e-4))"),
    _advantage(name="batch", code="(Center(), Scale('batch', eps=1e-4))"),
    _advantage(name="none", code="(Center(),)"),
    _advantage(
        name="normalize_then_sum",
        code="(ComponentNorm(scale=Scale(eps=1e-4)), Whiten('rollout', eps=1e-4, ddof=1))",
    ),
    _advantage(name="rloo", code="(KlInReward(coef=0.05), Center('leave_one_out'))", note="optionally whitened over rollouts"),
    _correction(name="token_truncate", code="Truncate(cap=3.0)"),
    _correction(name="token_mask", code="IcePop(low=0.0, high=3.0)"),
    _correction(name="sequence_truncate", code="Truncate(cap=3.0, level='sequence_product')"),
    _correction(
        name="sequence_mask",
        code="IcePop(low=0.0, high=3.0, level='sequence_product')",
        note="its default beside vLLM",
    ),
    _correction(
        name="top_entropy_quantile",
        code="TopEntropy(fraction=0.2)",
        note="the quantile is that of a micro-batch over ranks; here of the optimiser batch",
    ),
)

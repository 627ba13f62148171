"""Names of other libraries: all of them are there, each resolves to a composition that compiles, or says why there is none."""

import re
from typing import Any

import numpy as np
import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective import Constant, IcePop, Kl, MinClip, Nll, Objective, Token, Truncate, evaluate, gspo
from assay.objective.peers import KINDS, PEERS, PeerMatch, match, matches

NAMES: dict[str, dict[str, str]] = {
    "verl": {
        "loss": "vanilla dppo_tv dppo_kl gspo sapo gpg clip_cov kl_cov geo_mean dro cispo bypass_mode",
        "advantage": "gae grpo grpo_vectorized gdpo grpo_passk reinforce_plus_plus_baseline rloo rloo_vectorized opo "
        "reinforce_plus_plus remax gpg optimal_token_baseline tir_optimal_token_baseline pf_ppo",
        "correction": "rollout_is token|rollout_is sequence|rollout_is token lo_hi|rollout_is batch_normalize|"
        "rollout_rs token_k1|rollout_rs token_k2|rollout_rs token_k3|rollout_rs seq_sum_k1|rollout_rs seq_sum_k2|"
        "rollout_rs seq_sum_k3|"
        "rollout_rs seq_mean_k1|rollout_rs seq_mean_k2|rollout_rs seq_mean_k3|rollout_rs seq_max_k2|rollout_rs seq_max_k3",
        "kl": "kl abs mse low_var_kl low_var_kl+ full",
        "aggregation": "token-mean token-sum seq-mean-token-sum seq-mean-token-mean seq-mean-token-sum-norm",
    },
    "trl": {
        "loss": "grpo dapo bnpo dr_grpo luspo cispo sapo vespo rloo off_policy_mask gmpo a2po async_grpo sdpo sdft gkd iw_opd "
        "online_dpo tpo gold distillation dpo cpo orpo kto bco",
        "advantage": "group batch none normalize_then_sum rloo",
        "correction": "token_truncate token_mask sequence_truncate sequence_mask top_entropy_quantile",
    },
    "skyrl": {
        "loss": "regular dual_clip gspo sapo cispo rollout_is dppo clip_cov kl_cov cross_entropy importance_sampling",
        "advantage": "grpo rloo reinforce++ gae maxrl",
        "aggregation": "token_mean sequence_mean seq_mean_token_sum_norm prompt_mean",
    },
    "areal": {
        "loss": "ppo_actor_loss_fn gspo sapo_loss_fn m2po kdrl cispo_loss_fn dpo_loss ipo",
        "advantage": "gae",
        "value": "ppo_critic_loss_fn",
    },
    "openrlhf": {
        "loss": "ppo gspo dpo",
        "advantage": "gae reinforce rloo reinforce_baseline dr_grpo group_norm flash_reinforce",
        "kl": "k1 k2 k3",
        "value": "ValueLoss",
    },
    "slime": {
        "loss": "ppo gspo cispo opsm opd",
        "advantage": "grpo gspo cispo ppo reinforce_plus_plus reinforce_plus_plus_baseline",
        "correction": "tis icepop",
        "kl": "k1 k2 low_var_kl",
        "value": "value_loss",
    },
    "prime_rl": {
        "loss": "default ipo ref_kl ce opd opsd sft echo",
        "advantage": "grpo max_rl rae hierarchical_grpo",
    },
    "nemo_rl": {
        "loss": "ClippedPGLoss gspo cispo vapo_nll opd",
        "advantage": "grpo gdpo reinforce_plus_plus raw gae",
        "correction": "importance_correction tis icepop seq-mask-tis",
        "value": "mse_value",
    },
    "roll": {
        "loss": "vanilla ppo tis topr cispo kimi15 opd",
        "advantage": "reinforce grpo gigpo step_reinforce gae agentic_reinforce",
        "aggregation": "token-mean seq-mean-token-mean seq-mean-token-sum-norm",
    },
    "rllm": {
        "loss": "ppo importance_sampling opd",
        "advantage": "grpo reinforce reinforce_plus_plus_baseline prpo rloo precomputed",
    },
    "art": {"loss": "loss_fn loss_fn/ppo loss_fn/kimi_k2_tau", "advantage": "scale_rewards"},
}
ALL = list(matches())


def test_every_name_that_they_ship_is_there() -> None:
    assert list(NAMES) == list(PEERS)
    for peer, kinds in NAMES.items():
        found = {(m.kind, m.name) for m in matches(peer)}
        missing = [
            (k, name)
            for k, names in kinds.items()
            for name in names.split("|" if "|" in names else None)
            if (k, name) not in found
        ]
        assert missing == [], peer


def test_no_name_stands_twice() -> None:
    keys = [(m.peer, m.kind, m.name) for m in ALL]
    assert len(keys) == len(set(keys))
    assert [m.peer for m in ALL] == sorted((m.peer for m in ALL), key=list(PEERS).index)


@pytest.mark.parametrize("entry", [m for m in ALL if m.code], ids=lambda m: f"{m.peer}:{m.name}:{m.kind}")
def test_every_code_compiles(entry: PeerMatch) -> None:
    plan = entry.objective().plan()
    assert plan.live
    kinds = {"loss": Objective, "advantage": tuple, "aggregation": object}
    assert isinstance(entry.part, kinds.get(entry.kind, object))


@pytest.mark.parametrize("entry", [m for m in ALL if not m.code], ids=lambda m: f"{m.peer}:{m.name}:{m.kind}")
def test_every_other_name_has_a_reason(entry: PeerMatch) -> None:
    assert len(entry.reason.split()) > 4
    with pytest.raises(ConfigError, match="has no composition here"):
        entry.objective()


def test_codes_use_offered_names_only() -> None:
    """So that a code can be pasted behind ``from assay.objective import *``."""
    import assay.objective
    from assay.objective.methods import methods

    offered = {*assay.objective.__all__, *methods(), "replace", "inf", "True", "False", "None"}
    used = {n for m in ALL for n in re.findall(r"\b([A-Za-z_]\w*)\b(?!=)", re.sub(r"'[^']*'", "", m.code))}
    assert sorted(used - offered) == []


def test_parts_of_each_kind() -> None:
    assert match("openrlhf", "gspo").part == gspo(low=0.2, high=0.2)
    assert match("verl", "token-mean").part == Token()
    assert match("trl", "dr_grpo").objective().aggregate == Constant(length=256)
    assert match("slime", "tis").objective().policy.weights == (Truncate(cap=2.0),)  # type: ignore[union-attr]
    pair = match("nemo_rl", "seq-mask-tis").objective().policy.weights  # type: ignore[union-attr]
    assert [type(w) for w in pair] == [IcePop, Truncate]
    assert match("openrlhf", "k2").objective().terms == (Kl("k2", coef=0.01),)
    assert match("verl", "seq-mean-token-sum").objective().terms == (Nll(),)
    assert match("verl", "vanilla").objective().policy.trust == MinClip(dual=3.0)  # type: ignore[union-attr]
    critic = match("slime", "value_loss").objective()
    assert critic.brings == ("returns",) and critic.policy is None


def test_the_loss_comes_first_where_a_name_has_several_kinds() -> None:
    assert match("verl", "gpg").kind == "loss"
    assert match("verl", "gpg", "advantage").kind == "advantage"
    assert KINDS[0] == "loss"


def wrong(**changes: Any) -> PeerMatch:
    return PeerMatch(**{"peer": "verl", "kind": "loss", "name": "mine", "code": "nll()", **changes})


def test_what_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'verl'"):
        wrong(peer="vrel")
    with pytest.raises(UnknownNameError, match="did you mean 'loss'"):
        wrong(kind="los")
    for change in ({"code": ""}, {"reason": "none"}):
        with pytest.raises(ConfigError, match="and not both"):
            wrong(**change)
    with pytest.raises(UnknownNameError, match="part in the code of verl:mine 'gropo': did you mean 'grpo'"):
        wrong(code="gropo()").part  # noqa: B018
    with pytest.raises(UnknownNameError, match="library"):
        list(matches("vrel"))
    with pytest.raises(UnknownNameError, match="did you mean 'cispo'"):
        match("verl", "cipso")
    with pytest.raises(UnknownNameError, match="name of verl"):
        match("verl", "vanilla", "advantage")


def test_nemo_rls_critic_is_half_the_greater_square() -> None:
    values, old, returns = np.array([[0.9, -0.4]]), np.array([[0.5, 0.1]]), np.array([[1.0, 1.0]])
    clipped = np.clip(values, old - 0.2, old + 0.2)
    expected = 0.5 * np.maximum((values - returns) ** 2, (clipped - returns) ** 2).mean()
    inputs = {"mask": [[1, 1]], "values": values, "values_old": old, "returns": returns}
    objective = match("nemo_rl", "mse_value").objective()
    logp = {"logp_new": -np.ones((1, 2))} if "logp_new" in objective.plan().live else {}
    assert evaluate(objective, inputs | logp).loss == pytest.approx(expected)


@pytest.mark.parametrize("name", ["reinforce_plus_plus", "reinforce_plus_plus_baseline"])
def test_slime_whitens_with_bessels_correction(name: str) -> None:
    mask = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    rewards = np.array([1.0, 0.0, 0.5, 0.0])
    centred = rewards - rewards.mean() if name.endswith("baseline") else rewards
    tokens = np.repeat(centred, mask.sum(1))
    expected = (tokens - tokens.mean()) / np.sqrt(tokens.var(ddof=1) + 1e-8)
    flat = np.full(mask.shape, -1.0)
    inputs = {"mask": mask, "logp_new": flat, "logp_old": flat, "rewards": rewards, "group_id": [0] * 4}
    found = evaluate(match("slime", name).objective(), {k: v for k, v in inputs.items() if k != "logp_old"})
    np.testing.assert_allclose(found.advantages[mask.astype(bool)], expected, atol=1e-6)

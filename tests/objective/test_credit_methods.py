"""Named methods that differ in their credit: what they compute, what they reduce to, and the laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from credit_batches import chains, near, wide
from objective_batches import run, tiny

from assay.core import FrozenMap, Score, Task
from assay.core.batch import pack
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, PlanError, UnknownNameError
from assay.objective import Center, Objective, Scalarise, Scale, dapo, evaluate, grpo
from assay.objective.methods import credit, weighted
from assay.objective.methods.registry import Method, registered_methods
from assay.objective.peers import match
from assay.testing.objective import check_objective
from assay.testing.records import graded_group

__all__ = ["wide"]

CRITICS = ("otb", "pf_ppo", "ppo")
"""Those that read what value heads and passes over the vocabulary fill."""

NAMED = {n: registered_methods()[n] for module in (credit, weighted) for n in module.__all__ if n not in CRITICS}


@pytest.mark.parametrize("name", NAMED)
def test_laws_of_named_methods(name: str, wide: None) -> None:
    check_objective(NAMED[name].objective(), range(1))


@pytest.mark.parametrize("name", [*NAMED, *CRITICS])
def test_named_methods_say_what_they_are(name: str) -> None:
    method = registered_methods()[name]
    assert isinstance(method, Method)
    assert "``" in method.summary
    assert method.summary.endswith((".", ":", "or"))
    assert (method.status == "unsure") == ("Unsure" in (method.make.__doc__ or ""))


def made(objective: Objective, batch: object) -> np.ndarray:
    """Advantages at the loss tokens, as the loss sees them."""
    done = objective.compile().credit(batch)  # type: ignore[arg-type]
    return np.asarray(done.token("advantage"))[done.token("mask")]


FOUR = [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (credit.maxrl(eps=0.0), [3, -1, -1, -1]),
        (credit.grpo_passk(), [2, 0, 0, 0]),
        (credit.grpo_passk(scale=False), [1, 0, 0, 0]),
        (credit.pass_at_k_training(k=1), [math.sqrt(3)] + [-1 / math.sqrt(3)] * 3),
        (credit.grpo_leave_one_out(eps=0.0), [1] + [-1 / math.sqrt(3)] * 3),
        (credit.prpo(eps=0.0), [math.sqrt(3)] + [-1 / math.sqrt(3)] * 3),
        (credit.opo(), [0.75, -0.25, -0.25, -0.25]),
        (credit.gpg_nonzero(), [3, -1, -1, -1]),
        (weighted.w_grpo(penalty=3.0, scale="none"), [3, -1, -1, -1]),
        (weighted.w_grpo(), [math.sqrt(3)] + [-1 / math.sqrt(3)] * 3),
        (weighted.univg_r1(kl=0.0), math.exp(0.75) * np.array([1.5, -0.5, -0.5, -0.5])),
        (credit.reinforce_discounted(gamma=1.0, baseline="group"), [0.75, -0.25, -0.25, -0.25]),
        (credit.agentic_reinforce(), [math.sqrt(3)] + [-1 / math.sqrt(3)] * 3),
    ],
)
def test_one_success_of_four(objective: Objective, expected: object) -> None:
    batch = tiny(FOUR, columns={"call": 0.0, "logp_ref": -1.0})
    near(made(objective, batch), expected, 1e-5)


def test_grpo_s_is_grpo_times_the_weight_of_each_attempt() -> None:
    """Hardness .8 beside a mean of .5, responsiveness 1.2 beside .6: 1.1085 times 1.1903."""
    batch = tiny([1, 0], hardness=[0.8, 0.2], responsiveness=[1.2, 0.0], columns={"logp_ref": -1.0})
    near(made(weighted.grpo_s(), batch)[0] / made(grpo(kl=0.0), batch)[0], 1.3194)
    equal = tiny([1, 0], hardness=[0.3, 0.3], responsiveness=[0.9, 0.9], columns={"logp_ref": -1.0})
    near(made(weighted.grpo_s(), equal), made(grpo(kl=0.0), equal), 1e-12)


def test_what_methods_reduce_to() -> None:
    batch = tiny([1, 0, 0.5, 0, 1, 1], [0, 0, 0, 1, 1, 1], lengths=[1, 2, 1, 3, 1, 1], difficulty=[1.0] * 6, peers=[0] * 6)
    group = made(replace(grpo(kl=0.0), credit=(Center(),)), batch)
    near(made(weighted.gui_g1(length=128), batch), group, 1e-12)
    near(made(credit.hierarchical_grpo(), batch), group, 1e-12)
    near(made(weighted.progrpo(coef=1e-300), _likely(batch)), made(dapo(filter_groups=False), batch), 1e-12)
    near(
        made(credit.gdpo(), batch), _whitened(made(replace(grpo(kl=0.0), credit=(Center(), Scale(eps=1e-4))), batch), batch), 1e-9
    )
    same = tiny([1, 0, 0, 1], lengths=[2, 2, 2, 2])
    near(made(credit.opo(), same), made(replace(credit.opo(), credit=(Center(),)), same), 1e-12)


def _likely(batch: object) -> object:
    count = len(batch.rollout("group"))  # type: ignore[attr-defined]
    from assay.core.columns import TokenColumn

    total = int(batch.offsets[-1])  # type: ignore[attr-defined]
    return batch.with_tokens(TokenColumn("logp_old", np.full(total, -0.5))).with_rollouts(  # type: ignore[attr-defined]
        prompt_confidence=np.full(count, 0.5)
    )


def _whitened(values: np.ndarray, batch: object) -> np.ndarray:
    owner = np.repeat(np.arange(6), batch.rollout("tokens"))  # type: ignore[attr-defined]
    each = np.array([values[owner == i][0] for i in range(6)])
    return ((each - each.mean()) / (each.std(ddof=1) + 1e-4))[owner]


def test_weight_of_a_prompt_scales_its_gradient() -> None:
    batch = tiny([1, 0, 1, 0], [0, 0, 1, 1], difficulty=[2.0, 2.0, 1.0, 1.0], columns={"logp_old": -1.0})
    slope = run(weighted.gui_g1(length=16), batch).gradients["logp_new"][batch.token("mask")]
    near(slope[:2] / slope[2:], [2, 2], 1e-12)


def test_the_divergence_is_not_weighted_by_difficulty() -> None:
    batch = tiny([1, 1], columns={"logp_old": -1.0, "logp_ref": -1.5})
    slope = run(weighted.univg_r1(kl=0.1), batch).gradients["logp_new"]
    near(slope, run(grpo(kl=0.1), batch).gradients["logp_new"], 1e-12)


def test_srpo_numbers_reach_the_loss() -> None:
    batch = tiny([1, 1, 0.707] + [0] * 7, columns={"logp_ref": -1.0})
    near(made(weighted.srpo(), batch), [2.3530] * 2 + [0.8079] + [-0.7877] * 7)
    solved = tiny([1] * 10, columns={"logp_ref": -1.0})
    assert weighted.srpo().compile().credit(solved).rollout("keep").sum() == 0
    assert made(weighted.srpo(filter_groups=False), solved).tolist() == [0.0] * 10


def test_campo_filters_before_it_penalises() -> None:
    ids = [[7, 1, 2, 1, 2], [1, 2, 3, 4, 5]]
    solved = chains([1.0, 1.0], [[1] * 5] * 2, columns={"ids": ids}, truncated=[True, False])
    assert weighted.campo().compile().credit(solved).rollout("keep").tolist() == [0, 0]
    both = chains([1.0, 0.0], [[1] * 5] * 2, columns={"ids": ids}, truncated=[True, True])
    program = weighted.campo(graded=True).compile()
    near(program.credit(both).rollout("reward"), [1 - 0.1 * 0.8, 0], 1e-12)
    assert made(weighted.campo(filter_groups=False), solved).any()


def test_expert_iteration_is_reinforce_on_what_is_correct() -> None:
    ids = [[1, 2], [1, 2], [3, 4], [5, 6]]
    batch = chains([1, 1, 1, 0], [[1, 1]] * 4, columns={"ids": ids})
    slope = run(weighted.expert_iteration(), batch).gradients["logp_new"][batch.token("mask")]
    near(slope, [-0.125] * 4 + [-0.25] * 2 + [0] * 2, 1e-12)
    every = run(weighted.expert_iteration(deduplicate=False), batch).gradients["logp_new"][batch.token("mask")]
    near(every, [-1 / 6] * 6 + [0] * 2, 1e-12)


def test_policy_filtration_with_groups() -> None:
    batch = tiny([1, 0.5, 0, 0.25], columns={"logp_old": -1.0})
    kept = weighted.pf_grpo(rule="best_worst").compile().credit(batch).rollout("keep")
    assert kept.tolist() == [1, 0, 1, 0]
    assert weighted.pf_grpo().compile().credit(batch).rollout("keep").sum() == 2
    near(weighted.pf_grpo(rule="max_min").compile().credit(batch).rollout("keep"), [2, 0, 2, 0], 1e-12)
    with pytest.raises(UnknownNameError, match="did you mean 'max_min'"):
        weighted.pf_grpo(rule="max_mni")


def test_pairwise_rewards() -> None:
    batch = tiny([0, 0], win=[0.9, 0.5], loss=[0.3, 0.5])
    near(weighted.pairwise_rl().compile().credit(batch).rollout("reward"), [0.3, 0], 1e-12)
    near(weighted.pairwise_rl(both=False, centre=0.0).compile().credit(batch).rollout("reward"), [0.9, 0.5], 1e-12)


def test_components_of_gdpo_by_weight() -> None:
    batch = tiny([1, 0, 1, 0], **{"components/format": [0.0, 10.0, 0.0, 20.0]})
    near(made(credit.gdpo(weights=(("correct", 1.0),)), batch), made(credit.gdpo(weights=(("correct", 2.0),)), batch), 1e-3)
    assert credit.gdpo().scalarise == Scalarise(every=True)
    assert credit.gdpo(weights=(("correct", 2.0),)).scalarise == Scalarise(weights=(("correct", 2.0),))


ACCURACY, FORMAT = [1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 0.0, 1.0]
GDPO = [0.769094, -0.206078, -1.332110, 0.769094]
"""``(a - 1/2) / sd(a) + (f - 3/4) / sd(f)`` with sd(a) = 0.57735 and sd(f) = 0.5, whitened over the four rollouts."""


def test_gdpo_asks_for_no_name_of_a_component() -> None:
    flat = np.full((4, 1), -1.0)
    inputs = {
        "mask": flat < 0,
        "logp_new": flat,
        "logp_old": flat,
        "group_id": [0] * 4,
        "components": {"accuracy": ACCURACY, "format": FORMAT},
    }
    found = evaluate("gdpo", inputs).advantages[:, 0]
    parts = [(np.array(r) - np.mean(r)) / (np.std(r, ddof=1) + 1e-4) for r in (ACCURACY, FORMAT)]
    near(found, sum(parts) / (np.std(sum(parts), ddof=1) + 1e-4), 1e-9)
    near(found, GDPO, 1e-3)
    for peer in ("verl", "nemo_rl"):
        theirs = {k: v for k, v in inputs.items() if k != "logp_old"}
        assert evaluate(match(peer, "gdpo").objective(), theirs).advantages[0, 0] > 0.7


TASK = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}))


def test_gdpo_on_graded_groups() -> None:
    scores = [Score(components={"accuracy": a, "format": f}) for a, f in zip(ACCURACY, FORMAT, strict=True)]
    batch = pack([graded_group(TASK, scores)])
    batch = batch.with_tokens(TokenColumn("logp_old", np.full(int(batch.offsets[-1]), -1.0)))
    made = credit.gdpo().compile().credit(batch)
    near(made.rollout("advantage"), GDPO, 1e-3)
    near(made.rollout("reward"), np.add(ACCURACY, FORMAT), 0)
    with pytest.raises(DataError, match="1 graded rollouts lack one of the reward components"):
        credit.gdpo().compile().credit(pack([graded_group(TASK, [*scores[:3], Score(components={"accuracy": 1.0})])]))


def test_gigpo_with_and_without_spread() -> None:
    batch = chains([1.0, 0.0], [[1], [1]], columns={"call": [[0], [0]], "state": [[3], [3]], "logp_old": [[-1.0], [-1.0]]})
    near(made(credit.gigpo(scale=False), batch), [1, -1], 1e-12)
    near(made(credit.gigpo(), batch), [math.sqrt(2), -math.sqrt(2)], 1e-5)


def test_penalties_that_cancel_are_refused() -> None:
    with pytest.raises(ConfigError, match="cancels the penalty exactly"):
        weighted.w_grpo(penalty=2.0)
    with pytest.raises(ConfigError, match="'group', 'batch' or 'none'"):
        weighted.w_grpo(scale="grup")
    assert weighted.w_grpo(penalty=2.0, scale="batch").credit[0] != weighted.w_grpo().credit[0]


def test_settings_of_the_chains() -> None:
    assert len(credit.remax(kl=0.1).credit) == 3
    assert len(credit.remax().credit) == 1
    with pytest.raises(UnknownNameError, match="did you mean 'token'"):
        credit.ppo(whiten="tokens")
    with pytest.raises(PlanError, match="generation budget"):
        weighted.gui_g1().plan()


def test_whole_methods_as_worked_out_by_hand() -> None:
    from assay.objective import lite_ppo, loop, reinforce_pp, reinforce_pp_baseline, remax

    old = {"logp_old": -1.0}
    third = 1 / 3
    near(made(loop(), tiny([1, 0, 0, 0.5], columns=old)), [2.5 * third, -0.5, -0.5, 0.5 * third])
    near(made(remax(), tiny([1, 0, 1], [0, 0, 1], greedy=[1.0, 1.0, 0.0])), [0, -1, 1])
    # .75 and -.25 for one token and three, over their deviation of sqrt(3) / 4
    near(made(reinforce_pp(), tiny([1, 0], [0, 1], lengths=[1, 3], columns=old)), [3**0.5, *[-(3**-0.5)] * 3])
    found = made(reinforce_pp_baseline(kl=0.0), tiny([1, 0, 1, 1], [0, 0, 1, 1], [1, 3, 2, 2], columns=old))
    near(found, [5 / 7**0.5, *[-3 / 7**0.5] * 3, *[1 / 7**0.5] * 4])
    eight = tiny([1, 0, 0, 0, 1, 1, 1, 0], [0] * 4 + [1] * 4, columns=old)
    near(made(lite_ppo(), eight), np.array([1.4031, *[-0.4677] * 3, *[0.4677] * 3, -1.4031]), 1e-4)

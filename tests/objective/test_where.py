"""Terms on some of their tokens, and coefficients that follow a schedule."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from law_batches import check_mixed
from objective_batches import plain, run, slopes, spread, tiny

from assay.core.columns import TokenColumn
from assay.core.config import from_dict, to_dict
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.plan import Offers, Scope
from assay.objective import (
    AdaptiveKl,
    BalancedBce,
    Center,
    DropZeroVariance,
    Entropy,
    FullKl,
    Kl,
    LossTerm,
    Nll,
    Objective,
    PolicyGradient,
    Ratio,
    Reducer,
    ScoreLoss,
    SeqMean,
    SeqSum,
    StatLoss,
    TdLoss,
    Token,
    Truncate,
)
from assay.objective import evaluate as evaluate_padded
from assay.objective.loss.base import View
from assay.objective.loss.hybrid import OutcomeMean
from assay.objective.loss.schedule import Annealed, Cosine, Linear
from assay.objective.loss.select import Correct, Incorrect, Known, Marked, OneOf, PassRate, Selector, metric_of
from assay.objective.loss.wrap import Where, Wrapped
from assay.testing.objective import check_objective, check_term, evaluate, over_ranks, shard

TWO = [0, 0, 0, 1, 1]


def weights(select: tuple[Selector, ...], batch: Any, **term: Any) -> np.ndarray:
    """Which loss tokens a likelihood acts on."""
    brings = tuple(n for s in select for n in s.needs)
    found = slopes(Objective(terms=(Where(Nll(**term), select),), aggregate=SeqSum(), brings=brings), batch)
    return (found != 0).astype(int)


def test_selectors() -> None:
    batch = tiny([1.0, 0.4, 0.5, 0.0, 0.0], TWO, columns={"flag": [0, 1, 0, 2, 0]}, base=[0.95, 0.95, 0.95, 0.2, np.nan])
    batch = batch.with_rollouts(domain=np.array(["sum", "sort", "sum", "", "code"]))
    found = {
        "correct": weights((Correct(),), batch),
        "incorrect": weights((Incorrect(0.5),), batch),
        "unsolved": weights((PassRate(high=0.0),), batch),
        "solved": weights((PassRate(low=0.6),), batch),
        "strict": weights((PassRate(low=1.0, threshold=0.4),), batch),
        "base": weights((Known("base", low=0.9),), batch),
        "hard": weights((Known("base", high=0.2),), batch),
        "marked": weights((Marked("flag"),), batch),
        "one of": weights((OneOf(("sum", "code")),), batch),
        "both": weights((Incorrect(), Known("base", low=0.9)), batch),
    }
    assert {n: v.tolist() for n, v in found.items()} == {
        "correct": [1, 0, 1, 0, 0],
        "incorrect": [0, 1, 0, 1, 1],
        "unsolved": [0, 0, 0, 1, 1],
        "solved": [1, 1, 1, 0, 0],
        "strict": [1, 1, 1, 0, 0],
        "base": [1, 1, 1, 0, 0],
        "hard": [0, 0, 0, 1, 0],
        "marked": [0, 1, 0, 1, 0],
        "one of": [1, 0, 1, 0, 1],
        "both": [0, 1, 0, 0, 0],
    }


def test_a_group_is_judged_by_its_own_attempts() -> None:
    """The expert solves every prompt: that does not count, and its row is taught where the policy fails alone."""
    streams = ["on_policy", "on_policy", "expert", "on_policy", "expert"]
    batch = tiny([0, 1, 1, 0, 1], TWO, streams=streams)
    assert weights((PassRate(high=0.0),), batch, streams=("expert",)).tolist() == [0, 0, 0, 0, 1]
    lonely = tiny([1, 1, 1, 1, 1], TWO, streams=["expert"] * 5)
    assert not weights((PassRate(low=0.5),), lonely).any()
    assert not weights((PassRate(high=0.0),), lonely).any()


def test_the_metric_is_the_tasks_own() -> None:
    """Never the shaped reward; NaN without a verdict; what was paid where nothing says which component is meant."""
    batch = tiny([1, 0, 1], valid=[True, True, False])
    shaped = batch.with_rollouts(reward=np.array([-5.0, 9.0, 0.0]))
    np.testing.assert_array_equal(metric_of(shaped), [1, 0, np.nan])
    table = {n: v for n, v in shaped.rollouts.items() if n != "components/correct"}
    two = replace(shaped, rollouts={**table, "components/a": np.zeros(3), "components/b": np.ones(3)})
    np.testing.assert_array_equal(metric_of(two), [-5, 9, np.nan])
    mixed = shaped.with_rollouts(**{"components/correct": np.array([np.nan, 0.0, 1.0]), "components/reward": np.full(3, 0.7)})
    np.testing.assert_array_equal(metric_of(mixed), [0.7, 0, np.nan])
    other = replace(shaped, rollouts={**table, "components/a": np.zeros(3), "components/reward": np.ones(3)})
    np.testing.assert_array_equal(metric_of(other), [1, 1, np.nan])
    with pytest.raises(DataError, match="grade the rollouts first"):
        metric_of(replace(shaped, rollouts={n: v for n, v in table.items() if n != "reward"}))


def test_the_chosen_may_be_counted_alone() -> None:
    """A mean over what is selected, under each aggregation: what the rest of the batch holds does not dilute it."""
    rewards, lengths, groups = [1.0, 0.0, 0.0, 1.0, 0.0], [2, 4, 1, 3, 2], TWO
    whole = tiny(rewards, groups, lengths)
    wrong = [1, 2, 4]
    alone = tiny([0.0] * 3, [0, 0, 1], [4, 1, 2])
    at = np.concatenate([np.full(n, i in wrong) for i, n in enumerate(lengths)])
    for way in (Token(), SeqMean(), SeqSum()):
        term = Where(Nll(aggregate=way), (Incorrect(),), per="selected")
        found = slopes(Objective(terms=(term,)), whole)
        np.testing.assert_allclose(found[at], slopes(Objective(terms=(Nll(),), aggregate=way), alone))
        assert not found[~at].any()
    part = tiny(rewards, groups, lengths, columns={"flag": np.arange(12) % 2})
    marks = Objective(terms=(Where(Nll(aggregate=SeqMean()), (Marked("flag"),), per="selected"),))
    marked = slopes(replace(marks, brings=("flag",)), part)
    picked = np.arange(12) % 2 == 1
    own = np.repeat([1, 2, 0, 2, 1], lengths)
    np.testing.assert_allclose(marked, np.where(picked, -1 / np.maximum(own, 1) / 4, 0.0))
    nothing = tiny([1.0, 1.0])
    assert run(Objective(terms=(Where(Nll(aggregate=Token()), (Incorrect(),), per="selected"),)), nothing).loss == 0


@pytest.mark.parametrize(
    "term",
    [
        Where(Kl("k2"), (Incorrect(),)),
        Where(Kl("k2", aggregate=Token()), (Incorrect(),), per="selected"),
        Where(Nll(aggregate=SeqMean()), (PassRate(low=0.4),), per="selected"),
        Where(AdaptiveKl("k3"), (Marked("flag"),)),
        Where(PolicyGradient(weights=(Truncate(normalise=True),)), (Correct(), Marked("flag"))),
        Where(ScoreLoss(phi=BalancedBce()), (PassRate(low=0.3),)),
        Where(Annealed(Entropy(coef=0.5), Linear(step=0.1)), (Correct(),)),
        Annealed(Where(Nll(), (Correct(),)), Cosine(batches=3)),
    ],
)
def test_wrapped_terms_keep_the_laws(term: LossTerm, seeds: range) -> None:
    assert check_term(term, seeds).passed[-1] == "gradient"


def test_a_selection_by_columns_of_attempts_keeps_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = Objective(terms=(Where(Nll(aggregate=Token()), (Known("base", low=0.5),), per="selected"),))
    check_mixed(monkeypatch, objective, attempts={"base": [0.1, 0.9, 0.5]})


def test_a_group_without_success_is_found_over_ranks() -> None:
    """Its only success stands on the other rank."""
    batch = tiny([1, 0, 0, 0], [0, 0, 1, 1])
    objective = Objective(terms=(Where(Nll(aggregate=Token()), (PassRate(high=0.0),), per="selected"),))
    first = batch.micro([0, 2])
    parts = [replace(first, rollouts={k: v[[0, 2]] for k, v in first.rollouts.items()}), batch.micro([1, 3])]
    parts = [replace(p, rows={**p.rows, "rollout": np.arange(2)}) for p in parts]
    parts[1] = replace(parts[1], rollouts={k: v[[1, 3]] for k, v in batch.rollouts.items()})

    def rank(i: int, reducer: Reducer) -> np.ndarray:
        here = {"logp_new": spread(parts[i], -1.0)}
        return evaluate(objective.compile(reducer=reducer), parts[i], here).gradients["logp_new"][parts[i].token("mask")]

    assert [g.tolist() for g in over_ranks(rank, 2)] == [[0, -0.5], [0, -0.5]]
    assert shard(batch, [0]).rollout("group").tolist() == [0, 0]


def test_wrappers_say_everything_that_the_term_says() -> None:
    """Each public part of a loss term is passed on, so that none that is added later is forgotten."""
    for name in [n for n in {**vars(LossTerm), "rollout_columns": 0} if not n.startswith("_")]:
        if name not in ("coef", "streams", "aggregate", "label", "name"):
            assert name in vars(Wrapped), f"Wrapped does not pass on {name!r}"
    term = Where(OutcomeMean(coef=0.3, head="score"), (Correct(),))
    assert (term.name, term.coef, term.streams, term.aggregate) == ("outcome_mean", 0.3, ("on_policy", "replay"), SeqMean())
    assert (term.heads, term.scope, term.live) == ({"score": ("scalar", 1, 0.0, 0.0)}, Scope.SEQUENCE, ("logp_new", "score"))
    inner = PolicyGradient(weights=(Truncate(),))
    outer = Wrapped(inner)
    for name, part in inspect.getmembers(PolicyGradient, lambda p: isinstance(p, property)):
        assert getattr(outer, name) == getattr(inner, name), (name, part)
    outer.check()
    batch = tiny([1.0], columns={"logp_old": -1.5}).with_tokens(TokenColumn("advantage", np.array([0.0, 2.0])))
    view = View(batch, {"logp_new": torch.full((2,), -1.0, dtype=torch.float64)}, np.array([1]), "policy")
    assert outer.apply(view).tolist() == inner.apply(view).tolist()
    assert (Wrapped(Nll()).heads, Wrapped(Kl()).rollout_columns, Wrapped(Nll(by="x")).rollout_columns) == ({}, (), ("x",))
    known = Where(Nll(by="x"), (Known("y", low=0.0), Marked("z")))
    assert (known.rollout_columns, known.needs, known.reward, known.grouped) == (("x", "y"), ("z",), False, False)
    assert Where(Nll(), (PassRate(high=0.0),)).grouped
    assert Where(Nll(), (Correct(),)).reward
    assert OneOf(("a",), by="x").rollout_columns == ("x",)
    assert (Known("y", low=0.0).reward, Known("y", low=0.0).needs, Known("y", low=0.0).scope) == (False, (), Scope.SEQUENCE)
    assert Marked("z").scope is Scope.TOKEN
    assert (Correct().reduces, PassRate(high=0.0).reduces, Marked("z").rollout_columns) == (False, True, ())


def test_a_wrapped_policy_is_the_terminal() -> None:
    batch = tiny([1.0, 0.0], columns={"logp_old": -1.0})
    objective = Objective(policy=Where(plain(), (Incorrect(),)), credit=(Center(),), aggregate=SeqSum())
    assert slopes(objective, batch).tolist() == [0.0, 0.25]
    assert objective.uses_reward
    assert Where(plain(), (Incorrect(),)).terminal


def test_wrappers_are_written_and_read() -> None:
    term = Where(Annealed(Kl("k2", anchor="teacher", coef=5e-3), Linear(step=5e-5, floor=1e-3)), (PassRate(high=0.0),))
    assert from_dict(LossTerm, to_dict(term)) == term


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Where(Nll(), ()), "chooses nothing"),
        (lambda: Where(Nll(), (Correct(),), per="all"), "count of Where"),
        (lambda: Where(Nll(), (Correct(),), per="selected"), "must say how"),
        (lambda: Where(Nll(aggregate=Token(denominator="drawn")), (Correct(),), per="selected"), "denominator='kept'"),
        (lambda: PassRate(), "both bounds open"),
        (lambda: PassRate(low=0.9, high=0.1), "low <= high"),
        (lambda: PassRate(high=0.0, streams=()), "is empty"),
        (lambda: PassRate(high=0.0, streams=("expret",)), "did you mean 'expert'"),
        (lambda: Known("base"), "give a bound"),
        (lambda: OneOf(()), "chooses nothing"),
        (lambda: Known("base", low=1.0, high=0.0), "low <= high"),
        (lambda: Linear(step=0.0), "positive step"),
        (lambda: Linear(step=1.0, floor=-1.0), "floor of 0"),
        (lambda: Cosine(batches=0), "batches >= 1"),
        (lambda: Annealed(AdaptiveKl("k2"), Linear(step=1.0)), "a state of its own"),
        (lambda: Annealed(Nll(coef=0.1), Linear(step=0.01, floor=0.5)), "its floor is higher"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


# ---- schedules -------------------------------------------------------------------------------------------------------


def test_a_coefficient_moves_once_per_rollout_batch_and_is_saved() -> None:
    """KDRL: max(5e-3 - 5e-5 n, 1e-3), at its floor from batch 80 on; several steps of a batch share it."""
    objective = Objective(terms=(Annealed(Nll(coef=5e-3), Linear(step=5e-5, floor=1e-3)),))
    batch, program = tiny([0]), objective.compile()
    live: Mapping[str, Any] = {"logp_new": torch.full((2,), -1.0, dtype=torch.float64)}
    found: list[float] = []
    for _ in range(83):
        ready = program.credit(batch)
        losses = [float(program.micro(program.prepare(ready), live)[0]) for _ in range(2)]
        assert losses[0] == losses[1]
        found.append(losses[0])
        again = objective.compile()
        again.load_state_dict(json.loads(json.dumps(program.state_dict())))
        assert float(again.micro(again.prepare(ready), live)[0]) == losses[0]
    np.testing.assert_allclose([found[n] for n in (0, 1, 40, 79, 80, 82)], [5e-3, 4.95e-3, 3e-3, 1.05e-3, 1e-3, 1e-3])
    assert program.metrics()["coef/nll"] == pytest.approx(1e-3)


def test_a_schedule_may_go_up() -> None:
    assert Cosine(batches=2, floor=1.0).at(0.25, 1) == pytest.approx(0.625)
    term = Annealed(Nll(coef=0.3), Cosine(batches=2, floor=0.1))
    assert [round(term.factor({"batches": n}), 6) for n in range(4)] == [0.3, 0.2, 0.1, 0.1]


def test_a_critic_may_be_wrapped() -> None:
    objective = Objective(terms=(Where(TdLoss(aggregate=Token()), (Correct(),), per="selected"),), credit=())
    assert len(check_objective(objective, range(2)).passed) == 9


FIRST = (Incorrect(),)
BOUND = PolicyGradient(ratio=Ratio("none"))


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (Objective(policy=Where(BOUND, FIRST)), "MinClip bounds a ratio"),
        (Objective(policy=Annealed(BOUND, Cosine(batches=4))), "MinClip bounds a ratio"),
        (Objective(policy=Annealed(Where(BOUND, FIRST), Cosine(batches=4))), "MinClip bounds a ratio"),
        (
            Objective(policy=Where(plain(), FIRST), credit=(DropZeroVariance(), Center()), aggregate=Token(denominator="drawn")),
            "changes nothing",
        ),
        (
            Objective(policy=Where(PolicyGradient(ratio=Ratio(anchor="engine"), weights=(Truncate(),)), FIRST)),
            "holds already",
        ),
        (
            Objective(policy=plain(), terms=(Where(PolicyGradient(label="again"), FIRST),)),
            r"two terminals, PolicyGradient and Where\(PolicyGradient\)",
        ),
        (
            Objective(policy=plain(), terms=(Annealed(Where(Kl(anchor="rfe"), FIRST), Cosine(batches=4)),)),
            r"Annealed\(Where\(Kl\)\) needs the column 'logp_rfe'.*did you mean 'logp_ref'",
        ),
        (Objective(terms=(Where(Nll(), FIRST), Nll())), r"named 'nll' \(Where\(Nll\) and Nll\)"),
    ],
)
def test_a_wrapped_term_is_checked_like_the_one_inside(objective: Objective, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        objective.plan()


def test_errors_of_a_wrapped_term_name_what_is_inside() -> None:
    critic = Objective(policy=plain(), terms=(Where(TdLoss(), FIRST),))
    with pytest.raises(PlanError, match=r"Where\(TdLoss\) \('td'\) needs the live column 'values'"):
        critic.plan(offers=Offers())
    full = Objective(terms=(Annealed(StatLoss(FullKl("teacher")), Cosine(batches=4)),))
    with pytest.raises(PlanError, match=r"Annealed\(StatLoss\) .* reads the distributions of 'teacher'"):
        full.plan(offers=Offers(live=("logp_new",)))
    with pytest.raises(DataError, match=r"the composition of Annealed\(StatLoss\) needs the input 'kl_pi_teacher'"):
        evaluate_padded(full, {"mask": [[1]], "logp_new": [[-1.0]]})

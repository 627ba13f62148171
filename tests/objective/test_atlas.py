"""The atlas: known equalities and differences, and the committed page."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.objective import (
    Entropy,
    Kl,
    MinClip,
    Objective,
    PolicyGradient,
    SeqMean,
    Token,
    areal,
    cispo,
    dapo,
    dr_grpo,
    evaluate,
    grpo,
    gspo,
    lite_ppo,
    pacs,
    ppo_hl_gauss,
    reinforce,
    reinforce_pp,
    rloo,
    tis,
)
from assay.objective.atlas import (
    CONDITIONS,
    SEEDS,
    _column,
    _named_objectives,
    _rollout_values,
    atlas_page,
    batch,
    equivalences,
    left_out,
)
from assay.objective.methods import methods

SOME = {
    "areal": areal(),
    "cispo": cispo(),
    "dapo": dapo(),
    "dr_grpo": dr_grpo(length=64),
    "grpo": grpo(),
    "gspo": gspo(),
    "lite_ppo": lite_ppo(),
    "pacs": pacs(),
    "reinforce": reinforce(),
    "reinforce_pp": reinforce_pp(),
    "rloo": rloo(),
    "tis": tis(),
}
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "atlas.md"


@pytest.fixture(scope="module")
def found() -> dict[str, list[tuple[str, ...]]]:
    return equivalences(SOME)


def together(classes: list[tuple[str, ...]], *names: str) -> bool:
    return any(set(names) <= set(c) for c in classes)


def test_what_the_sheets_say(found: dict[str, list[tuple[str, ...]]]) -> None:
    assert found["any batch"] == []
    assert together(found["small steps"], "areal", "cispo")
    assert together(found["on policy"], "areal", "cispo") and together(found["on policy"], "gspo", "tis")
    assert not together(found["on policy"], "gspo", "cispo"), "mean per rollout and per token differ"
    assert not together(found["on policy"], "grpo", "gspo"), "the divergence pulls"
    assert together(found["at the reference"], "grpo", "gspo", "tis")
    assert together(found["at the reference"], "dr_grpo", "rloo")
    assert not together(found["at the reference"], "dapo", "cispo"), "a prompt without variance leaves the denominator"
    assert together(found["binary rewards"], "dapo", "cispo")
    assert not together(found["binary rewards"], "dapo", "lite_ppo")
    assert together(found["one prompt"], "dapo", "lite_ppo")
    assert together(found["equal lengths"], "grpo", "areal", "cispo")
    assert together(found["all of these"], "grpo", "dapo", "reinforce_pp")
    assert not together(found["all of these"], "pacs", "rloo"), "classes are balanced by how often each occurs"
    assert not any(together(c, "reinforce", "rloo") for c in found.values())


def test_a_class_is_a_class(found: dict[str, list[tuple[str, ...]]]) -> None:
    for classes in found.values():
        names = [n for c in classes for n in c]
        assert len(names) == len(set(names)) and all(len(c) > 1 and list(c) == sorted(c) for c in classes)


def test_one_factor_for_all_batches() -> None:
    """A class under a condition: the ratio of the gradients is one positive number, whatever the batch."""
    factors: list[float] = []
    for seed in SEEDS:
        one, two = (
            evaluate(o, batch(o, CONDITIONS["at the reference"], seed)).gradient["logp_new"]
            for o in (SOME["rloo"], SOME["dr_grpo"])
        )
        factors += (one[two != 0] / two[two != 0]).tolist()
    np.testing.assert_allclose(factors, 64 * 4 / 3)


def test_the_opposite_is_not_the_same() -> None:
    away = replace(rloo(), policy=replace(PolicyGradient(trust=None), coef=-1.0))
    half = replace(rloo(), policy=replace(PolicyGradient(trust=None), coef=0.5))
    same = equivalences({"away": away, "half": half, "rloo": rloo()})
    assert same["on policy"] == [("half", "rloo")]


def test_every_live_column_counts() -> None:
    more = {"plain": grpo(kl=0.0), "more": grpo(kl=0.0) + Entropy(coef=0.01)}
    assert all(classes == [] for classes in equivalences(more).values())


def test_heads_with_several_numbers() -> None:
    binned = ppo_hl_gauss(value=0.2)
    twice = replace(
        binned, terms=tuple(replace(t, coef=2 * t.coef) for t in binned.terms), policy=replace(binned.policy, coef=2.0)
    )
    assert equivalences({"binned": binned, "twice": twice, "rloo": rloo()})["any batch"] == [("binned", "twice")]


def test_what_has_no_gradient_is_in_no_class() -> None:
    pulls = {
        "k2": Objective(terms=(Kl("k2"),)),
        "k3": Objective(terms=(Kl("k3"),)),
        "k3_twice": Objective(terms=(Kl("k3", coef=2),)),
    }
    same = equivalences(pulls)
    assert same["any batch"] == [("k3", "k3_twice")]
    assert same["at the reference"] == []


def test_no_ratio_leaves_its_bounds_in_small_steps() -> None:
    tight = Objective(credit=grpo().credit, policy=PolicyGradient(trust=MinClip(low=3e-4, high=3e-4)), aggregate=Token())
    free = replace(tight, policy=PolicyGradient(trust=None))
    both = equivalences({"tight": tight, "free": free})
    assert both["small steps"] == [("free", "tight")] and both["no mismatch"] == []


def test_batches_do_not_depend_on_who_asks() -> None:
    wide, narrow = batch(tis(), CONDITIONS["any batch"], 3), batch(gspo(), CONDITIONS["any batch"], 3)
    for name, values in narrow.items():
        np.testing.assert_array_equal(values, wide[name])
    assert (wide["logp_engine"] != wide["logp_old"]).any()
    calm = batch(tis(), CONDITIONS["no mismatch"], 3)
    np.testing.assert_array_equal(calm["logp_engine"], calm["logp_old"])


def test_columns_of_any_name() -> None:
    anything = CONDITIONS["any batch"]
    assert set(np.diff(_column("call", anything, 0)).ravel()) <= {0.0, 1.0}
    assert (_column("sum_pi_squared_old", anything, 0) <= 1).all()
    assert set(_rollout_values("role", 0)) == {0.0, 1.0}


def test_methods_that_need_more_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.objective import atlas

    strange = Objective(credit=(), policy=None, terms=(Entropy(streams=()),), aggregate=SeqMean())
    monkeypatch.setattr(atlas, "_named_objectives", lambda: {"strange": replace(strange, terms=()), "fine": rloo()})
    assert list(left_out()) == ["strange"]
    monkeypatch.setattr(atlas, "SEEDS", range(1))
    text = atlas_page()
    assert "Not compared:\n\n- `strange`: the objective has neither" in text
    monkeypatch.setattr(atlas, "_named_objectives", lambda: {"fine": rloo()})
    assert "All named methods are compared." in atlas_page()


def test_the_committed_page_names_what_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*(.*?)\*\*: .*? \| (.*) \|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(CONDITIONS)
    named = {n for _, classes in rows for n in re.split(r"[,;] ", classes)} - {"none"}
    assert named <= set(_named_objectives()) == set(methods()), named - set(methods())


@pytest.mark.prove
def test_the_committed_page_is_the_present_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == atlas_page()

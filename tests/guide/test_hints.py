"""GHPO's ladder and SEELE's rounds: the numbers of their sheets, and their laws."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from assay.core import Draw, FrozenMap, Group, Outcome, Rollout, Score, Task
from assay.core.canon import canonical
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Guidance, Moment, Posed
from assay.core.score import Fault
from assay.guide import Ghpo, Seele
from assay.guide.hints import inverse, needed_share
from assay.testing import check_guidance, rollout_of

MOMENT = Moment(key="s0/0")


def task(solution: str | int = "abcdefghij", id: str = "t") -> Task:
    public, private = FrozenMap({"prompt": "1+1="}), FrozenMap({"solution": solution})
    return Task(id=id, domain="d", arm="x", level=1, split="train", index=0, public=public, private=private)


def rolled(posed: Posed, of: Task, *values: float) -> Group:
    """A group of this context, graded so."""
    context = posed.context
    rollouts: list[Rollout] = []
    for i in range(len(values)):
        rollouts.append(replace(rollout_of(of, "?", id=f"{context.key}/{i}", group=context.group), context=context))
    scores = tuple(Score(components={"correct": v}) for v in values)
    return Group(key=context.group, task=of, draw=Draw("x", 1, 1.0), rollouts=tuple(rollouts), scores=scores)


@pytest.mark.parametrize("spec", [Ghpo(), Ghpo(shares=(0.5,)), Ghpo(cold_until=9), Seele(), Seele(rounds=1, target=0.25)])
def test_they_keep_the_laws_of_guidance(spec: Ghpo | Seele) -> None:
    check_guidance(spec, task())


def test_ghpo_gives_a_quarter_then_half_then_three_quarters() -> None:
    posed, history = Ghpo(text="{prompt}|{hint}"), list[Group]()
    texts: list[str] = []
    while found := posed.next(task(), history, MOMENT):
        (one,) = found
        texts.append(one.context.messages[-1].content)
        assert one.replaces == tuple(g.key for g in history)
        history.append(rolled(one, task(), 0.0, 0.0))
    # Ten characters: round(2.5) is 3, halves going up, then 5, then 8; at most four rounds.
    assert texts == ["1+1=", "1+1=|abc", "1+1=|abcde", "1+1=|abcdefgh"]


def test_ghpo_begins_cold_with_one_fixed_hint_for_every_task() -> None:
    spec = Ghpo(text="{prompt}|{hint}", cold_until=2, cold_share=0.3)
    (cold,) = spec.next(task(), [], Moment(key="s1/0", step=1))
    assert cold.context.messages[-1].content == "1+1=|abc" and cold.context.tag == "hint"
    assert spec.next(task(), [rolled(cold, task(), 0.0, 0.0)], Moment(key="s1/0", step=1)) == ()
    (plain,) = spec.next(task(), [], Moment(key="s2/0", step=2))
    assert plain.context.messages[-1].content == "1+1="
    for wrong in ({"cold_until": -1}, {"cold_share": 0.0}, {"cold_share": 1.0}):
        with pytest.raises(ConfigError, match="cold_until"):
            Ghpo(**wrong)  # pyright: ignore[reportArgumentType]


def test_ghpo_never_hints_a_group_with_a_success() -> None:
    (plain,) = Ghpo().next(task(), [], MOMENT)
    assert Ghpo().next(task(), [rolled(plain, task(), 0.0, 1.0)], MOMENT) == ()


def test_ghpo_gives_no_hint_where_nothing_could_be_graded() -> None:
    (plain,) = Ghpo().next(task(), [], MOMENT)
    broken = replace(rolled(plain, task(), 0.0, 0.0), scores=(Score(components={}, fault=Fault.INFRA),) * 2)
    assert Ghpo().next(task(), [broken], MOMENT) == ()


def by_role(group: Group) -> list[Group]:
    """The groups of two roles that played one context."""
    found: list[Group] = []
    for role in ("first", "second"):
        key = f"{group.key}@{role}"
        own = tuple(replace(r, role=role, context=replace(r.context, group=key)) for r in group.rollouts)
        found.append(replace(group, key=key, rollouts=own))
    return found


def test_ghpo_gives_every_hint_where_two_roles_play() -> None:
    history, shown = list[Group](), list[str]()
    while found := Ghpo(text="{prompt}|{hint}").next(task(), history, MOMENT):
        shown.append(found[0].context.messages[-1].content)
        assert found[0].replaces == tuple(g.key for g in history)
        history += by_role(rolled(found[0], task(), 0.0, 0.0))
    assert shown == ["1+1=", "1+1=|abc", "1+1=|abcde", "1+1=|abcdefgh"]
    (plain,) = Ghpo().next(task(), [], MOMENT)
    won, lost = by_role(rolled(plain, task(), 0.0, 1.0))[0], by_role(rolled(plain, task(), 0.0, 0.0))[1]
    assert Ghpo().next(task(), [won, lost], MOMENT) == ()


def test_ghpo_needs_words_and_a_turn_to_put_them_in() -> None:
    (plain,) = Ghpo().next(task(7), [], MOMENT)
    with pytest.raises(DataError, match="a hint needs text"):
        Ghpo().next(task(7), [rolled(plain, task(7), 0.0)], MOMENT)
    told = replace(task(), public=FrozenMap({"messages": [{"role": "system", "content": "s"}]}))
    with pytest.raises(DataError, match="no user turn to put a hint in"):
        Ghpo().next(told, [rolled(plain, told, 0.0)], MOMENT)
    for shares in ((), (0.5, 0.25), (0.5, 1.0), (0.0, 0.5)):
        with pytest.raises(ConfigError, match=r"Ghpo\.shares"):
            Ghpo(shares=shares)
    with pytest.raises(ConfigError, match=r"must hold '\{hint\}' exactly once"):
        Ghpo(text="{prompt}")


def test_seeles_curve_turned_round_by_its_sheet() -> None:
    """k = 19.03, mu = -.64, b = .45 and a* = .5 need p = .5190."""
    assert inverse(0.5, 19.03, -0.64, 0.45) == pytest.approx(0.5190, abs=5e-5)


def test_the_needed_share_follows_what_was_seen() -> None:
    assert needed_share([(0.9, 1.0), (0.3, 0.0)], 0.5, 0.9) == pytest.approx(0.6, abs=0.1)
    assert needed_share([(0.9, 1.0), (0.0, 1.0)], 0.5, 0.9) == 0.0
    assert needed_share([(0.9, 0.0), (0.5, 0.0)], 0.5, 0.9) == pytest.approx(0.9, abs=0.05)
    steep = [(share / 10, 1.0 / (1.0 + 2.718281828 ** (-16 * (share / 10 - 0.35)))) for share in range(10)]
    assert needed_share(steep, 0.5, 1.0) == pytest.approx(0.35, abs=0.02)


def play(guidance: Guidance, of: Task, key: str, solved_from: float) -> Group:
    """All rounds of a task whose rollouts succeed where at least so much is given."""
    whole: Group | None = None
    while found := guidance.next(of, [whole] if whole else [], Moment(key=key)):
        (one,) = found
        prefill = one.context.prefill
        assert prefill is not None
        values = [float(prefill.share >= solved_from)] * 2
        new = rolled(one, of, *values)
        whole = new if whole is None else replace(whole, rollouts=whole.rollouts + new.rollouts, scores=whole.scores + new.scores)
    assert whole is not None
    return whole


def test_seele_plays_rounds_of_one_group_and_begins_where_the_task_ended() -> None:
    guidance = Seele(rounds=4).build(seed=0)
    group = play(guidance, task(), "s0/0", solved_from=0.4)
    shares = list(dict.fromkeys(r.context.prefill.share for r in group.rollouts if r.context.prefill))
    assert {r.context.group for r in group.rollouts} == {"s0/0"}
    assert len({r.context.key for r in group.rollouts}) == 4
    assert shares[0] == pytest.approx(0.9)  # nine of ten characters, where nothing is known
    assert 0.0 <= min(shares) < shares[0]
    guidance.observe([Outcome(group=group, kept=True)])
    (again,) = guidance.next(task(), [], Moment(key="s1/0"))
    assert again.context.prefill is not None
    assert 0.2 < again.context.prefill.share < 0.7
    (fresh,) = guidance.next(task(id="other"), [], Moment(key="s1/1"))
    assert fresh.context.prefill is not None
    assert fresh.context.prefill.share == pytest.approx(0.9)
    assert guidance.metrics()["guidance/share"] == pytest.approx(again.context.prefill.share)
    copy = Seele(rounds=4).build(seed=0)
    copy.load_state_dict(json.loads(canonical(guidance.state_dict())))
    assert repr(copy.next(task(), [], Moment(key="s1/0"))) == repr(guidance.next(task(), [], Moment(key="s1/0")))


def test_seele_gives_more_again_where_a_policy_forgot() -> None:
    guidance = Seele(rounds=1).build(seed=0)
    guidance.load_state_dict({"t": 0.2})
    for step in range(3):
        group = play(guidance, task(), f"s{step}/0", solved_from=2.0)  # fails whatever is given
        guidance.observe([Outcome(group=group, kept=True)])
    assert 0.2 < guidance.state_dict()["t"] <= 0.9


@pytest.mark.parametrize("solution", ["", "7"])
def test_seele_gives_nothing_of_a_solution_too_short_to_begin(solution: str) -> None:
    (posed,) = Seele().build(seed=0).next(task(solution), [], MOMENT)
    assert posed.context.prefill is not None and posed.context.prefill.share == 0.0


@pytest.mark.parametrize("settings", [{"rounds": 0}, {"target": 0.0}, {"target": 1.0}])
def test_seele_refuses_settings_out_of_range(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="Seele"):
        Seele(**settings)  # pyright: ignore[reportArgumentType]

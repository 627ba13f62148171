"""POPE, ADHint, Guide-GRPO, SPARKLE and PrefixRL: the numbers of their sheets, and their laws."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from assay.core import Draw, FrozenMap, Group, Outcome, Rollout, Score, Task
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import GuidanceSpec, Moment, Posed
from assay.core.score import Fault
from assay.guide import AdHint, Ghpo, GuideHint, Pope, Quarters, TracePrefix
from assay.testing import check_guidance, rollout_of

MOMENT = Moment(key="s0/0")


def task(solution: str = "abcdefghij", **private: object) -> Task:
    hidden = FrozenMap({"solution": solution, **private})
    return Task(
        id="t", domain="d", arm="x", level=1, split="train", index=0, public=FrozenMap({"prompt": "1+1="}), private=hidden
    )


def rolled(posed: Posed, of: Task, *values: float, fault: Fault = Fault.NONE, text: str = "?") -> Group:
    """A group of this context, graded so."""
    context = posed.context
    rollouts: list[Rollout] = []
    for i in range(len(values)):
        rollouts.append(replace(rollout_of(of, text, id=f"{context.key}/{i}", group=context.group), context=context))
    scores = tuple(Score(components={} if fault is not Fault.NONE else {"correct": v}, fault=fault) for v in values)
    return Group(key=context.group, task=of, draw=Draw("x", 1, 1.0), rollouts=tuple(rollouts), scores=scores)


def said(posed: Posed) -> str:
    return posed.context.messages[-1].content


@pytest.fixture
def traces(tmp_path: Path) -> str:
    """As ``assay distill`` writes them."""
    row = {"messages": [{"role": "user", "content": "1+1="}, {"role": "assistant", "content": "x" * 100}]}
    (tmp_path / "traces.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return str(tmp_path / "traces.jsonl")


@pytest.mark.parametrize(
    "spec",
    [
        Pope(),
        Pope(shares=(0.5, 1.0), text=""),
        AdHint(),
        AdHint(text="{prompt}|{hint}"),
        GuideHint(),
        GuideHint(again="{prompt} think", fill=True),
        Quarters(unit=""),
        Quarters(text="{prompt}{hint}", unit="", whole=False),
        Ghpo(text=""),
    ],
    ids=repr,
)
def test_they_keep_the_laws_of_guidance(spec: GuidanceSpec) -> None:
    check_guidance(spec, task())


def test_ghpo_without_a_text_begins_the_answer_with_the_hint() -> None:
    ghpo = Ghpo(text="")
    (plain,) = ghpo.next(task(), [], MOMENT)
    (hinted,) = ghpo.next(task(), [rolled(plain, task(), 0.0)], MOMENT)
    assert hinted.context.prefill is not None and hinted.context.prefill.text == "abc"
    assert said(hinted) == "1+1=" and hinted.replaces == ("s0/0",)


def test_pope_poses_plain_and_guided_one_to_one_with_baselines_of_their_own() -> None:
    pope = Pope(text="{prompt}|{hint}").build(0)
    plain, guided = pope.next(task(), [], MOMENT)
    assert [said(plain), said(guided)] == ["1+1=", "1+1=|a"]  # an eighth of ten characters
    assert plain.context.group != guided.context.group
    assert plain.n is None and guided.n is None


def test_pope_takes_the_shortest_part_that_succeeds_and_remembers_it() -> None:
    pope = Pope(text="{prompt}|{hint}").build(0)
    plain, guided = pope.next(task(), [], MOMENT)
    history = [rolled(plain, task(), 0.0, 0.0), rolled(guided, task(), 0.0, 0.0)]
    shown: list[str] = []
    while found := pope.next(task(), history, MOMENT):
        (one,) = found
        shown.append(said(one))
        assert one.replaces == (history[-1].key,)
        history.append(rolled(one, task(), 0.0, float(len(shown) == 2)))
    assert shown == ["1+1=|abc", "1+1=|abcde"]  # a quarter, halves going up; then half, which succeeds
    pope.observe([Outcome(group=g) for g in history])
    assert pope.metrics() == {"guidance/share": 0.5}
    later = Moment(key="s1/0", step=1)
    assert said(pope.next(task(), [], later)[1]) == "1+1=|abcde"
    other = pope.next(replace(task(), id="new"), [], later)[1]
    assert said(other) == "1+1=|abc"  # one share below what the level needed


def test_pope_ends_at_its_last_share_and_where_nothing_could_be_graded() -> None:
    pope = Pope(shares=(0.5,)).build(0)
    plain, guided = pope.next(task(), [], MOMENT)
    history = [rolled(plain, task(), 0.0), rolled(guided, task(), 0.0)]
    assert pope.next(task(), history, MOMENT) == ()
    assert pope.next(task(), history[:1], MOMENT) == ()
    pope = Pope().build(0)
    lost = [rolled(plain, task(), 0.0), rolled(pope.next(task(), [], MOMENT)[1], task(), 0.0, fault=Fault.INFRA)]
    assert pope.next(task(), lost, MOMENT) == ()


@pytest.mark.parametrize("shares", [(), (0.0, 0.5), (0.5, 0.25), (0.5, 1.5)])
def test_pope_refuses_other_shares(shares: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=r"in \(0, 1\]"):
        Pope(shares=shares)


@pytest.mark.parametrize(("values", "given"), [((1.0, 1.0), "a"), ((0.0, 1.0), "abcde"), ((0.0, 0.0), "abcdefghi")])
def test_adhint_gives_the_more_the_fewer_succeed(values: tuple[float, float], given: str) -> None:
    adhint = AdHint(least=0.1, most=0.9, noise=0.0)
    (plain,) = adhint.next(task(), [], MOMENT)
    history = [rolled(plain, task(), *values)]
    (hinted,) = adhint.next(task(), history, MOMENT)
    assert hinted.context.prefill is not None and hinted.context.prefill.text == given
    assert hinted.context.group != plain.context.group and hinted.replaces == ()
    assert adhint.next(task(), [*history, rolled(hinted, task(), 0.0)], MOMENT) == ()


def test_adhint_stays_within_the_solution_and_its_settings() -> None:
    assert all(0.0 <= AdHint(noise=1.0).share(0.0, str(k)) <= 1.0 for k in range(50))
    assert len({AdHint().share(0.0, str(k)) for k in range(9)}) == 9
    (plain,) = AdHint().next(task(), [], MOMENT)
    assert AdHint().next(task(), [rolled(plain, task(), 0.0, fault=Fault.INFRA)], MOMENT) == ()
    with pytest.raises(ConfigError, match="least <= most"):
        AdHint(least=0.5, most=0.25)


def test_guide_grpo_hints_failed_groups_alone_and_learns_without_the_hint() -> None:
    guide, own = GuideHint(text="{prompt} {hint}"), task(hint="count the ones")
    (plain,) = guide.next(own, [], MOMENT)
    assert guide.next(own, [rolled(plain, own, 0.0, 1.0)], MOMENT) == ()
    assert guide.next(own, [rolled(plain, own, 0.0, fault=Fault.INFRA)], MOMENT) == ()
    (hinted,) = guide.next(own, [rolled(plain, own, 0.0, 0.0)], MOMENT)
    assert said(hinted) == "1+1= count the ones"
    assert hinted.context.score_messages == plain.context.messages and hinted.context.prefill is None
    assert hinted.replaces == ("s0/0",) and hinted.context.group != plain.context.group
    assert guide.next(own, [rolled(plain, own, 0.0), rolled(hinted, own, 0.0)], MOMENT) == ()


def test_guide_grpo_can_roll_once_more_before_the_hint_and_fill_the_failed_group() -> None:
    guide, own = GuideHint(text="{prompt} {hint}", again="{prompt} think", fill=True), task(hint="count")
    (plain,) = guide.next(own, [], MOMENT)
    history = [rolled(plain, own, 0.0, 0.0)]
    (again,) = guide.next(own, history, MOMENT)
    assert said(again) == "1+1= think" and again.replaces == ("s0/0",) and again.context.tag == "again"
    assert guide.next(own, [*history, rolled(again, own, 0.0, 1.0)], MOMENT) == ()
    history.append(rolled(again, own, 0.0, 0.0))
    (hinted,) = guide.next(own, history, MOMENT)
    assert said(hinted) == "1+1= count" and hinted.replaces == ()
    assert hinted.context.group == again.context.group and hinted.context.key != again.context.key
    assert again.context.score_messages == hinted.context.score_messages == plain.context.messages
    assert guide.next(own, [*history, rolled(hinted, own, 0.0)], MOMENT) == ()


def test_guide_grpo_takes_the_solution_where_a_task_has_no_hint() -> None:
    guide = GuideHint(text="{prompt} {hint}", share=0.3)
    (plain,) = guide.next(task(), [], MOMENT)
    assert said(guide.next(task(), [rolled(plain, task(), 0.0)], MOMENT)[0]) == "1+1= abc"
    odd = task(hint=7)
    with pytest.raises(DataError, match="must be text"):
        guide.next(odd, [rolled(plain, odd, 0.0)], MOMENT)


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"text": "{prompt}"}, {"text": ""}, {"again": "think"}])
def test_guide_grpo_refuses_other_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        GuideHint(**wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("units", "sizes"), [(5, [1, 1, 1, 2]), (7, [1, 2, 2, 2]), (10, [2, 3, 2, 3])])
def test_quarters_of_paragraphs(units: int, sizes: list[int]) -> None:
    solution = "\n\n".join(map(str, range(units)))
    ends = [len(given.split("\n\n")) if given else 0 for given in (Quarters().first_parts(solution, k) for k in range(5))]
    assert [b - a for a, b in pairwise(ends)] == sizes


def test_quarters_are_drawn_evenly_and_the_whole_may_be_left_out() -> None:
    def drawn(spec: Quarters) -> dict[str, int]:
        counts: dict[str, int] = {}
        for k in range(1000):
            (posed,) = spec.next(task("abcd"), [], Moment(key=f"s{k}/0"))
            given = posed.context.prefill.text if posed.context.prefill else ""
            counts[given] = counts.get(given, 0) + 1
        return counts

    found = drawn(Quarters(unit=""))
    assert set(found) == {"", "a", "ab", "abc", "abcd"} and all(150 < n < 250 for n in found.values())
    assert set(drawn(Quarters(unit="", whole=False))) == {"", "a", "ab", "abc"}
    (posed,) = Quarters(unit="", text="{prompt}|{hint}", seed=1).next(task("abcd"), [], Moment(key="s3/0"))
    assert posed.context.prefill is None
    with pytest.raises(ConfigError, match="parts"):
        Quarters(parts=0)


def test_prefix_rl_has_three_fixed_cuts_and_one_plain(traces: str) -> None:
    spec = TracePrefix(traces=traces)
    check_guidance(spec, task())
    cuts = spec.cuts_of("1+1=")
    assert all(40 <= round(100 * cut) <= 80 for cut in cuts) and len(set(cuts)) == 3
    seen: dict[float, int] = {}
    for k in range(2000):
        (posed,) = spec.next(task(), [], Moment(key=f"s{k}/0"))
        assert said(posed) == "1+1="  # the prefix begins the answer and is no user text
        share = posed.context.prefill.share if posed.context.prefill else 0.0
        seen[share] = seen.get(share, 0) + 1
    assert set(seen) == {0.0, *cuts} and all(400 < n < 600 for n in seen.values())  # three to one


def test_prefix_rl_poses_tasks_without_a_trace_plainly(traces: str) -> None:
    other = replace(task(), public=FrozenMap({"prompt": "2+2="}))
    posed = [TracePrefix(traces=traces).next(other, [], Moment(key=f"s{k}/0"))[0] for k in range(8)]
    assert all(p.context.prefill is None for p in posed)


def test_prefix_rl_names_a_file_that_is_no_store_of_traces(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cut"):
        TracePrefix(traces="x.jsonl", cuts=0)
    with pytest.raises(DataError, match="assay distill"):
        TracePrefix(traces=str(tmp_path / "none.jsonl")).next(task(), [], MOMENT)
    for n, line in enumerate(("[]", '{"messages": [{"role": "user", "content": 1}]}', "{")):
        (tmp_path / f"{n}.jsonl").write_text(line, encoding="utf-8")
        with pytest.raises(DataError, match="line 1"):
            TracePrefix(traces=str(tmp_path / f"{n}.jsonl")).next(task(), [], MOMENT)

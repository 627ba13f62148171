"""Guidance that a teacher reads."""

from __future__ import annotations

import pytest

from assay.core import Draw, FrozenMap, Group, Task
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Moment
from assay.guide import Plain, Prefix, Privileged
from assay.rollout.block import forced_ids
from assay.runtime import char_tokenizer
from assay.testing import check_guidance

MOMENT = Moment(key="k")


def task(private: dict[str, object], **public: object) -> Task:
    shown = FrozenMap(public or {"prompt": "1+1="})
    return Task(id="t", domain="d", arm="x", level=1, split="train", index=0, public=shown, private=FrozenMap(private))


def test_a_privileged_prompt_holds_the_solution_and_the_policy_sees_nothing_of_it() -> None:
    posed = task({"solution": "count {prompt}", "answer": "2"})
    (shown,) = Privileged(text="{solution}|{prompt}?").next(posed, [], MOMENT)
    context = shown.context
    assert [m.content for m in context.messages] == ["1+1="]
    assert context.privileged is not None
    assert [m.content for m in context.privileged] == ["count {prompt}|1+1=?"]
    assert (context.key, context.group, context.tag) == ("k", "k", "privileged")
    (bare,) = Plain().next(posed, [], MOMENT)
    plain = bare.context
    assert plain.privileged is None
    assert plain.messages == context.messages
    tried = Group(key="k", task=posed, draw=Draw("x", 1, 1.0), rollouts=(), scores=())
    assert Privileged().next(posed, [tried], MOMENT) == ()


def test_the_last_user_turn_is_the_one_that_is_told() -> None:
    turns = [{"role": r, "content": c} for r, c in (("user", "a"), ("assistant", "b"), ("user", "c"), ("tool", "d"))]
    (shown,) = Privileged(text="{prompt}{solution}").next(task({"answer": "2"}, messages=turns), [], MOMENT)
    context = shown.context
    assert context.privileged is not None
    assert [m.content for m in context.privileged] == ["a", "b", "c2", "d"]


def test_tasks_without_words_for_it_are_refused() -> None:
    with pytest.raises(DataError, match=r"task 't': a privileged prompt needs text in private\['solution'\].*found 2"):
        Privileged().next(task({"answer": 2}), [], MOMENT)
    with pytest.raises(DataError, match="a prefix needs text"):
        Prefix(probability=1.0).next(task({"answer": 2}), [], MOMENT)
    with pytest.raises(DataError, match="no user turn"):
        Privileged().next(task({"answer": "2"}, messages=[{"role": "system", "content": "s"}]), [], MOMENT)
    for text in ("{prompt}", "{solution}", "{prompt}{prompt}{solution}"):
        with pytest.raises(ConfigError, match="exactly once"):
            Privileged(text=text)


@pytest.mark.parametrize("spec", [Plain(), Prefix(), Prefix(probability=1.0, seed=3), Privileged()])
def test_guidance_keeps_its_laws(spec: Plain | Prefix | Privileged) -> None:
    assert check_guidance(spec, task({"answer": "2"})).numbers["rollouts where they are wrong"] == 4


def test_roll_ins_leave_as_many_tokens_to_learn_from_as_ppo_plus_plus() -> None:
    """RLGF: of 5 tokens the guide writes 1 to 4, evenly, in .8 of the rows: .8 * 2.5 + .2 * 5 = 3 are the policy's."""
    task = Task(
        id="t",
        domain="d",
        arm="x",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "?"}),
        private=FrozenMap({"solution": "abcde"}),
    )
    spec = Prefix(share=(0.2, 1.0), probability=0.8)
    forced: list[int] = []
    for row in range(4000):
        (posed,) = spec.next(task, [], Moment(key=f"s{row}"))
        prefill = posed.context.prefill
        forced.append(len(forced_ids(char_tokenizer("abcde?"), prefill)))
    assert set(forced) == {0, 1, 2, 3, 4}
    assert sum(5 - n for n in forced) / len(forced) == pytest.approx(3.0, abs=0.1)  # four standard errors are .1

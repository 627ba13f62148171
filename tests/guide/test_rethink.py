"""Cog-Rethinker: which stage follows, which earlier answers it shows, and what becomes a demonstration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from test_faded_help import MOMENT, rolled, said, task

from assay.core import Outcome
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.sample import STREAMS
from assay.core.task import Task
from assay.guide import Rethink, RewrittenAnswers
from assay.guide.rethink import RethinkGuidance, rank_bm25
from assay.testing import check_guidance

SPEC = Rethink(decompose="{demos}{prompt} split", reflect="{demos}{prompt} not {answer}", demos=1, demo="{prompt}{answer};")


def of(question: str) -> Task:
    """A task that asks this."""
    return replace(task(), id=question, public=type(task().public)({"prompt": question}))


def failed(guidance: RethinkGuidance, own: Task) -> list[Group]:
    """The groups of a task at which nothing succeeds."""
    history: list[Group] = []
    for answer in "345":
        for posed in guidance.next(own, history, MOMENT):
            history.append(rolled(posed, own, 0.0, text=answer))
    return history


def keep(guidance: RethinkGuidance, question: str, answer: str, tag: str = "plain", value: float = 1.0) -> None:
    group = rolled(guidance.next(of(question), [], MOMENT)[0], of(question), value, text=answer)
    rollouts = tuple(replace(r, context=replace(r.context, tag=tag)) for r in group.rollouts)
    guidance.observe([Outcome(group=replace(group, rollouts=rollouts))])


@pytest.mark.parametrize("spec", [Rethink(), SPEC, Rethink(imitate=True)], ids=["plain", "demos", "imitate"])
def test_it_keeps_the_laws_of_guidance(spec: Rethink) -> None:
    check_guidance(spec, task())


def test_it_decomposes_then_reflects_on_tasks_without_success() -> None:
    rethink, own = Rethink(decompose="{prompt} split", reflect="{prompt} not {answer}").build(0), task()
    (plain,) = rethink.next(own, [], MOMENT)
    assert rethink.next(own, [rolled(plain, own, 0.0, 1.0)], MOMENT) == ()
    history = [rolled(plain, own, 0.0, text="3")]
    (split,) = rethink.next(own, history, MOMENT)
    history.append(rolled(split, own, 0.0, text="4"))
    (again,) = rethink.next(own, history, MOMENT)
    assert [said(split), said(again)] == ["1+1= split", "1+1= not 3"]
    assert split.context.score_messages == again.context.score_messages == plain.context.messages
    assert again.replaces == (plain.context.group, split.context.group)
    assert rethink.next(own, [*history, rolled(again, own, 0.0)], MOMENT) == ()


def test_bm25_by_hand() -> None:
    """Of three texts of 1, 2 and 3 words: mean 2; 'a' is in two of them, 'b' in one."""
    texts = ["a", "b c", "a c c"]
    idf_a, idf_b = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    scores = [
        idf_a * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 0.5)),
        idf_b * 2.5 / (1 + 1.5),
        idf_a * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 1.5)),
    ]
    assert rank_bm25("a b", texts) == sorted(range(3), key=lambda i: -scores[i]) == [1, 0, 2]
    assert rank_bm25("z", texts) == [2, 1, 0] and rank_bm25("a", []) == [], "the later first of equal ones"


def test_stages_show_the_likest_right_answers_of_their_own_buffers() -> None:
    guidance = SPEC.build(0)
    assert [said_of(g) for g in failed(guidance, of("1+1="))] == ["1+1=", "1+1= split", "1+1= not 3"]
    keep(guidance, "1+2=", "3")
    keep(guidance, "9-7=", "2", tag="decompose")
    keep(guidance, "8-8=", "1", value=0.0)
    keep(guidance, "5+5=", "10", tag="reflect")
    assert [said_of(g) for g in failed(guidance, of("1+1="))] == ["1+1=", "1+2=3;1+1= split", "5+5=10;1+1= not 3"]
    assert [said_of(g) for g in failed(guidance, of("7-9="))][1] == "9-7=2;7-9= split"
    assert [said_of(g) for g in failed(guidance, of("1+2="))][1] == "9-7=2;1+2= split", "never the question itself"
    assert guidance.metrics() == {"guidance/kept/decompose": 2.0, "guidance/kept/reflect": 1.0}
    other = SPEC.build(1)
    other.load_state_dict(guidance.state_dict())
    assert other.state_dict() == guidance.state_dict()
    keep(guidance, "{prompt}", "{answer}")
    assert said_of(failed(guidance, of("prompt"))[1]) == "(prompt)(answer);prompt split", "what is shown fills nothing in"


def said_of(group: Group) -> str:
    return group.rollouts[0].context.messages[-1].content


def test_the_buffer_keeps_the_newest() -> None:
    guidance = replace(SPEC, buffer=2).build(0)
    for n in (1, 2, 3, 2):
        keep(guidance, f"{n}+0=", str(n))
    assert guidance.state_dict()["decompose"] == [["3+0=", "3"], ["2+0=", "2"]]


def test_right_answers_of_later_stages_become_demonstrations_of_the_plain_prompt() -> None:
    guidance, own = Rethink(decompose="{prompt} split", reflect="{prompt} not {answer}", imitate=True).build(0), task()
    (plain,) = guidance.next(own, [], MOMENT)
    first = rolled(plain, own, 0.0, 0.0)
    (split,) = guidance.next(own, [first], MOMENT)
    assert split.replaces == ()
    second = rolled(split, own, 1.0, 0.0)
    found = RewrittenAnswers().rewritten(second)
    role = replace(second.rollouts[0], context=replace(second.rollouts[0].context, group="s0/0/rethink1@red"))
    red = replace(second, key="s0/0/rethink1@red", rollouts=(role,), scores=second.scores[:1])
    assert RewrittenAnswers().rewritten(red).key == "s0/0@red"
    assert found.key == first.key and [r.id for r in found.rollouts] == [second.rollouts[0].id]
    batch = RewrittenAnswers().compose([first, second], None, 0)
    assert batch is not None
    expert = batch.rows["stream"] == STREAMS.index("expert")
    assert expert.tolist() == [False, False, True] and set(batch.per_row("group")) == {0}
    ids = np.split(batch.token("ids"), batch.offsets[1:-1])
    asked = [np.split(batch.token("mask"), batch.offsets[1:-1])[i].argmax() for i in range(3)]
    assert ids[2][: asked[2]].tolist() == ids[0][: asked[0]].tolist(), "under the plain prompt"
    wrong = RewrittenAnswers().compose([first, rolled(split, own, 0.0)], None, 0)
    assert wrong is not None and len(wrong.rows["stream"]) == 2


def test_what_is_refused() -> None:
    for wrong, match in (
        ({"reflect": "{prompt}"}, r"Rethink\.reflect"),
        ({"demos": 1}, r"Rethink\.decompose"),
        ({"demos": -1}, "demos"),
        ({"buffer": 0}, "buffer"),
        ({"demo": "{prompt}"}, r"Rethink\.demo"),
    ):
        with pytest.raises(ConfigError, match=match):
            Rethink(**wrong)  # pyright: ignore[reportArgumentType]

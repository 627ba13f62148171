"""Reasoning-SQL: six parts, of which a judge gives one, weighed so that no wrong query outscores a right one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.score import Fault, Score
from assay.core.scoring import RolloutGroup
from assay.core.task import Message
from assay.scorers import ReasoningSql
from assay.testing import ScriptedScoring, check_scorer
from assay.verify import ExactMatch, rollout_of, task_and_rollout
from assay.verify.sql import SqlMatch

DATABASE = {
    "schema": {"city": [["name", "TEXT"], ["people", "INTEGER"]]},
    "instances": [{"city": [["Ulm", 120], ["Bonn", 330]]}, {"city": [["Kiel", 90], ["Jena", 110]]}],
}
GOLD = {"query": "SELECT name FROM city WHERE people > 100", "database": DATABASE}


def group(*queries: str, key: str = "g") -> RolloutGroup:
    task, _ = task_and_rollout(GOLD, "", prompt="Which cities have more than 100 people?")
    rollouts = tuple(rollout_of(task, text, id=f"{key}/{i}") for i, text in enumerate(queries))
    return RolloutGroup(task=task, context=rollouts[0].context, rollouts=rollouts)


def fenced(query: str) -> str:
    return f"```sql\n{query}\n```"


def by_words(messages: Sequence[Message]) -> str:
    text = messages[-1].content
    if "count" in text:
        raise EngineError("no answer")
    return "0.5" if "people >" in text else "0"


def context() -> ScriptedScoring:
    return ScriptedScoring(verifier=SqlMatch(), replies={"judge": by_words})


def scores(*queries: str, scorer: ReasoningSql | None = None) -> list[Score]:
    return list(asyncio.run((scorer or ReasoningSql()).score((group(*queries),), context()))[0])


RIGHT = fenced("SELECT name FROM city WHERE people > 100")


def test_the_gold_query_has_all_nine_points_and_is_not_judged() -> None:
    (score,) = scores(RIGHT)
    assert score.components["reward"] == 9.0 and score.components["judge"] == 1.0 and score.columns["sql_judged"] == 0.0


def test_a_wrong_query_has_what_the_judge_and_its_parts_give() -> None:
    # the same tables and columns; 8 bigrams of each, of which 7 are common: the number differs
    (score,) = scores(fenced("SELECT name FROM city WHERE people > 1000"))
    parts = score.components
    assert (parts["correct"], parts["judge"], parts["syntax"], parts["schema_linking"], parts["format"]) == (0, 0.5, 1, 1, 1)
    assert parts["reward"] == pytest.approx(2 * 0.5 + 1 + 1 + parts["ngram"] + 1) and 0 < parts["ngram"] < 1
    assert score.columns["sql_judged"] == 1.0


def test_no_judgement_is_no_score_and_no_query_is_not_judged() -> None:
    asked, silent = scores("I do not know", fenced("SELECT count(*) FROM city"))
    assert asked.components["reward"] == 0.0 and asked.columns["sql_judged"] == 0.0
    assert silent.fault is Fault.INFRA and not silent.valid


def test_a_verdict_that_could_not_be_given_stays_a_fault() -> None:
    broken = Score(components={}, fault=Fault.VERIFIER)
    ((score,),) = asyncio.run(ReasoningSql().score((group(RIGHT),), replace(context(), verifier=lambda task, rollout: broken)))
    assert score == broken


@pytest.mark.parametrize("reply", ["", "0.5 or 0.6", "about half"])
def test_a_reply_without_one_number_is_no_mark(reply: str) -> None:
    wrong = group(fenced("SELECT name FROM city WHERE people > 1000"))
    ((score,),) = asyncio.run(ReasoningSql().score((wrong,), replace(context(), replies={"judge": lambda messages: reply})))
    assert score.fault is Fault.INFRA and "is not one number from 0 to 1" in str(score.info["error"])


def test_a_right_query_without_form_is_at_least_the_best_wrong_one() -> None:
    bare = "SELECT c.name FROM city AS c WHERE NOT c.people <= 100"
    wrong = [
        fenced("SELECT name FROM city WHERE people > 1000"),
        fenced("SELECT name FROM city WHERE people >"),
        "SELECT people FROM city",
    ]
    right, *others = (s.components["reward"] for s in scores(bare, *wrong))
    assert right >= 6.0 > max(others)


def test_it_keeps_the_promises_of_scorers() -> None:
    check_scorer(
        ReasoningSql(),
        [(group(RIGHT, "I do not know", fenced("SELECT count(*) FROM city"), key="h"), [1.0, 0.0, None])],
        context(),
    )


@pytest.mark.parametrize("weights", [(3.0, 2.0), (3.0, -2.0, 1.0, 1.0, 1.0, 1.0), (2.9, 2.0, 1.0, 1.0, 1.0, 1.0)])
def test_weights_under_which_a_wrong_query_could_win_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=r"ReasoningSql\.weights"):
        ReasoningSql(weights=weights)


def test_a_family_that_is_not_of_sql_is_refused_by_name() -> None:
    task, rollout = task_and_rollout("4", "4")
    other = RolloutGroup(task=task, context=rollout.context, rollouts=(rollout,))
    with pytest.raises(DataError, match=r"lacks \['syntax'.*SqlMatch"):
        asyncio.run(ReasoningSql().score((other,), replace(context(), verifier=ExactMatch())))

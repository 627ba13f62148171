"""Both tiers of the math verifier: verdicts, faults, processes, and what a batch of hanging answers costs."""

import asyncio
import json
import os
import random
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_math_exact import soup

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.testing import check_verifier, rollout_of
from assay.testing.math_pairs import math_pairs
from assay.verify import ExactMatch, FormatIs, MathAnswer, ScoringPool, Together, task_and_rollout
from assay.verify.math import MathVerdict, compare, subprocess, symbolic
from assay.verify.math.equality import exact
from assay.verify.math.guards import tame
from assay.verify.math.verifier import gold_of
from assay.verify.workers.cache import VerdictCache

CASES = [json.loads(line) for line in Path(__file__).with_name("math_cases.jsonl").read_text(encoding="utf-8").splitlines()]
SLOW = 60.0
"""A deadline that only a hang misses, on any machine."""


def task(gold: str, n: int = 0) -> Task:
    return Task(
        id=f"t{n}",
        domain="math",
        arm="a",
        level=1,
        split="train",
        index=n,
        public=FrozenMap({"prompt": "?"}),
        private=FrozenMap({"answer": gold}),
    )


def items(*pairs: tuple[str, str]) -> list[tuple[Task, Rollout]]:
    tasks = [task(gold, n) for n, (gold, _) in enumerate(pairs)]
    return [(t, rollout_of(t, text, id=f"r{n}")) for n, (t, (_, text)) in enumerate(zip(tasks, pairs, strict=True))]


IDENTITY = ("\\sin(2x)", "2\\sin x\\cos x")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """A symbolic tier that hangs on formulas with the letter h, dies on those with d, raises on those with r."""
    real = symbolic.same

    def same(gold: str, answer: str) -> bool | None:
        if "h" in answer.replace("\\", "").split():
            threading.Event().wait()
        if "d" in answer.split():
            os._exit(7)
        if "r" in answer.split():
            raise ValueError("a formula that it does not like")
        return (gold, answer) == IDENTITY or real(gold, answer)  # an honest answer that no machine is too slow for

    monkeypatch.setattr(symbolic, "same", same)
    monkeypatch.setattr(subprocess, "_shared", subprocess._SharedDispatchers())  # pyright: ignore[reportPrivateUsage]


# ---- verdicts


def test_all_cases_are_right() -> None:
    judge = MathAnswer(deadline=SLOW)
    wrong = [c for c in CASES if (compare(c["gold"], c["answer"], judge) is MathVerdict.EQUAL) is not c["expected"]]
    assert wrong == []


@pytest.mark.slow
def test_two_tiers_decide_made_pairs_as_they_were_made() -> None:
    pairs = list(math_pairs(1_200, seed=3))
    with ScoringPool(MathAnswer(), SLOW) as pool:
        batch = items(*((p.gold, p.answer) for p in pairs))
        verdicts = pool.score(batch)
    found = [verdicts[r.id].info["verdict"] for _, r in batch]
    wrong = [(p, v) for p, v in zip(pairs, found, strict=True) if (v == "equal") is not p.equal or v == "unparsed"]
    assert wrong == []
    assert {v.info["tier"] for v in verdicts.values()} == {"exact", "symbolic"}


@pytest.mark.parametrize(
    ("gold", "answer", "verdict"),
    [
        ("7", "\\boxed{7}", "equal"),
        ("7", "\\boxed{8}", "different"),
        ("7", "\\boxed{}", "unparsed"),
        ("7", "", "unparsed"),
        ("7", "\\boxed{\\int_0^1 x dx}", "unparsed"),
        ("7", "\\boxed{9^{9^{9^{9}}}}", "unparsed"),
        ("$7$", "7", "equal"),
        ("so \\boxed{7}", "7", "equal"),
        ("2+5=7 #### 7", "#### 7", "equal"),
        (*IDENTITY, "equal"),
        ("\\sin(2x)", "\\cos x", "different"),
        ("\\log 100", "2", "equal"),
        ("\\sqrt{x^2}", "x", "different"),
        ("\\sqrt{x^2}", "|x|", "equal"),
        ("2\\ln x", "\\ln(x^2)", "equal"),
        ("(-1)^n", "\\cos(n\\pi)", "equal"),
        ("\\sin 1", "0.8414709848078965", "different"),
        ("\\pi+e", "5.859874482048838", "different"),
        ("\\cos 36^\\circ", "\\frac{1+\\sqrt5}{4}", "equal"),
        ("\\{\\sin 2x, 1\\}", "\\{1, 2\\sin x\\cos x\\}", "equal"),
        ("(x, \\sin 2x)", "(x, 2\\sin x\\cos x)", "equal"),
        ("y=\\sin 2x", "y=2\\sin x\\cos x", "equal"),
        ("[0, \\sin 1]", "[0, \\sin 2]", "unparsed"),
        ("\\sqrt{-\\sin 1}", "i\\sqrt{\\sin 1}", "equal"),
        ("\\arctan(1)", "\\frac{\\pi}{4}", "equal"),
        ("\\tan(\\arctan x)", "x", "equal"),
    ],
)
def test_verdicts_in_words(gold: str, answer: str, verdict: str) -> None:
    assert compare(gold, answer, MathAnswer(deadline=SLOW)) == verdict


def test_the_verifier_keeps_its_contract() -> None:
    t = task("\\frac{1}{2}")
    cases = [
        (t, rollout_of(t, text), right) for text, right in (("\\boxed{0.5}", 1.0), ("0.51", 0.0), ("", 0.0), ("no idea", 0.0))
    ]
    check_verifier(MathAnswer(), [*cases, (t, rollout_of(t, "0.5", stop=Stop.LENGTH), 0.0)])
    info = MathAnswer()(t, rollout_of(t, "so \\boxed{0.5}")).info
    assert dict(info) == {"verdict": "equal", "tier": "exact", "answer": "0.5"}
    assert MathAnswer()(t, rollout_of(t, "0.5", stop=Stop.LENGTH)).info["note"] == "the rollout was cut off"
    assert MathAnswer(look=("box",))(t, rollout_of(t, "0.5")).info["verdict"] == "unparsed"
    assert MathAnswer(symbolic=False)(task("\\sin x"), rollout_of(t, "\\cos x")).info["note"] == "exact arithmetic cannot tell"
    assert gold_of("no box \\boxed") == "no box \\boxed"
    with pytest.raises(DataError, match="no private 'answer'"):
        MathAnswer()(
            Task(id="x", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"})),
            rollout_of(t, "1"),
        )


def test_settings_reach_the_verdict() -> None:
    assert compare("5 cm", "5", MathAnswer(units="required")) == "different"
    assert compare("50", "50%", MathAnswer(percent="optional")) == "equal"
    assert compare("3.14", "3.1416", MathAnswer(tolerance=0.01)) == "equal"
    assert compare("7", "\\boxed{7} or 8", MathAnswer(strict_tail=True)) == "unparsed"
    assert compare("7", "the answer is 7", look=("box",)) == "unparsed"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"look": ("first",)}, "box, tag, phrase, line"),
        ({"look": ()}, "box"),
        ({"units": "no"}, "optional, required"),
        ({"percent": "no"}, "value, optional"),
        ({"tolerance": 1.0}, "share"),
        ({"deadline": 0.0}, "seconds"),
    ],
)
def test_settings_that_do_not_exist_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        MathAnswer(**wrong)


def test_without_the_library_nothing_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"assay-rl\[math\]"):
        MathAnswer(symbolic=True)
    judge = MathAnswer()
    assert judge.trusted
    judge.prepare()
    score = judge(task(IDENTITY[0]), rollout_of(task(""), IDENTITY[1]))
    assert (score.fault, score.info["verdict"], score.info["note"]) == (Fault.VERIFIER, "unparsed", symbolic.MISSING)
    assert judge(task("7"), rollout_of(task(""), "7")).primary == 1.0
    assert compare(*IDENTITY) == "unparsed"


# ---- processes


def test_compare_works_from_threads_and_under_asyncio() -> None:
    pairs = [(f"\\sin({k}x)+\\sin^2 x+\\cos^2 x", f"1+\\sin({k + n % 2}x)", n % 2 == 0) for n, k in enumerate(range(2, 10))]
    found: dict[int, MathVerdict] = {}

    def work(n: int) -> None:
        found[n] = compare(pairs[n][0], pairs[n][1], MathAnswer(deadline=SLOW))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(pairs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] == "equal" for n in range(len(pairs))] == [p[2] for p in pairs]

    async def several() -> list[MathVerdict]:
        return list(await asyncio.gather(*(asyncio.to_thread(compare, g, a, MathAnswer(deadline=SLOW)) for g, a, _ in pairs)))

    assert asyncio.run(several()) == [found[n] for n in range(len(pairs))]


@pytest.mark.usefixtures("hanging")
def test_an_answer_that_hangs_twice_is_the_policys_fault_and_the_next_one_is_judged() -> None:
    judge = MathAnswer(deadline=1.0)
    t = task("\\sin(2x)")
    score = judge(t, rollout_of(t, "\\sin h"))
    assert (score.fault, score.primary, score.info["verdict"]) == (Fault.POLICY, 0.0, "timeout")
    assert score.info["error"] == "no verdict within 1 s, twice on the same answer"
    assert judge(t, rollout_of(t, "\\sin h")) is score  # remembered
    assert compare("\\sin(2x)", "\\sin h", judge) == "timeout"
    assert compare(*IDENTITY, judge) == "equal"
    died = judge(t, rollout_of(t, "\\sin d"))
    assert (died.fault, died.info["verdict"]) == (Fault.POLICY, "died")
    raised = judge(t, rollout_of(t, "\\sin r"))
    assert (raised.fault, dict(raised.components)) == (Fault.VERIFIER, {})
    assert compare("\\sin(2x)", "\\sin r", judge) == "unparsed"


@pytest.mark.usefixtures("hanging")
def test_in_a_pool_the_same_hanging_answer_is_judged_once() -> None:
    honest = [("7", "7"), IDENTITY, *[("7", "8")] * 5]
    batch = items(*honest, *[("\\sin(2x)", "\\sin h")] * 6)
    with ScoringPool(MathAnswer(deadline=1.0)) as pool:
        assert pool.deadline == 1.0
        verdicts = pool.score(batch)
        assert pool.counts == Counter(hung=2, retried=1)
        again = pool.score(batch[7:9] + items(*honest))
    assert [verdicts[f"r{n}"].fault for n in range(13)] == [Fault.NONE] * 7 + [Fault.POLICY] * 6
    assert [verdicts[f"r{n}"].primary for n in range(13)] == [1.0, 1.0] + [0.0] * 11
    assert verdicts["r9"].info["verdict"] == "timeout"
    assert again["r7"].info["verdict"] == "timeout" and again["r1"].primary == 1.0


def test_a_pool_starts_no_process_for_the_exact_tier_alone() -> None:
    pool = ScoringPool(MathAnswer(symbolic=False))
    assert pool._dispatcher is None  # pyright: ignore[reportPrivateUsage]
    with ScoringPool(MathAnswer()) as pool:
        assert pool.score(items(("7", "7"), ("7", "9")))["r0"].primary == 1.0
        assert pool._dispatcher is not None and pool._dispatcher.supervisor._workers == []  # pyright: ignore[reportPrivateUsage]


def test_it_stands_together_with_other_verifiers() -> None:
    both = Together((MathAnswer(), FormatIs(".*boxed.*")))
    both.prepare()
    batch = items(("7", "\\boxed{7}"), (IDENTITY[0], f"\\boxed{{{IDENTITY[1]}}}"), ("7", "7"))
    with ScoringPool(both, SLOW) as pool:
        verdicts = pool.score(batch)
    assert [dict(verdicts[f"r{n}"].components) for n in range(3)] == [{"correct": 1.0, "format": f} for f in (1.0, 1.0, 0.0)]
    assert [verdicts[f"r{n}"].info["tier"] for n in range(3)] == ["exact", "symbolic", "exact"]


# ---- what need not go to a worker


def test_a_verdict_ahead_that_raises_is_left_to_a_worker() -> None:
    t = replace(task("1"), private=FrozenMap())
    known = VerdictCache(MathAnswer()).look([(t, rollout_of(t, "1", id="r0")), (t, rollout_of(t, "1", id="r1"))])
    assert (dict(known.verdicts), known.asked, dict(known.twins)) == ({}, (0, 1), {})


def test_only_so_many_verdicts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.verify.workers.cache._KEPT", 2)
    ahead = VerdictCache(MathAnswer())
    batch = items(*((f"\\sin({k}x)", "\\cos x") for k in range(2, 6)))
    ahead.remember(batch, [Score(components={"correct": 0.0})] * 3 + [Score(components={}, fault=Fault.INFRA)])
    known = ahead.look(batch)
    assert (sorted(known.verdicts), known.asked) == ([1, 2], (0, 3))
    plain = VerdictCache(ExactMatch())
    plain.remember(batch, [Score(components={"correct": 0.0})] * 4)
    assert plain.look(batch).asked == ()  # trusted: all of it at once


def test_only_so_many_single_verdicts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "_KEPT", 1)
    monkeypatch.setattr(subprocess, "_shared", subprocess._SharedDispatchers())  # pyright: ignore[reportPrivateUsage]
    for k in (2, 3, 2):
        assert compare(f"\\sin({k}x)+\\ln x", f"\\ln x+\\sin({k}x)+\\sin^2 t+\\cos^2 t-1", MathAnswer(deadline=SLOW)) == "equal"
    assert len(subprocess._shared._seen) == 1  # pyright: ignore[reportPrivateUsage]


# ---- the symbolic tier itself, in this process


@pytest.mark.parametrize(
    "source",
    [
        "9^{9^{9^{9}}}",
        "10^{10^9}",
        "10000000!",
        "(x!)!",
        "\\int x",
        "(" * 20 + "1" + ")" * 20,
        "x" * 400,
        "é",
        "1" * 50,
        "2^{99999999}",
        "(((2^{99})^{99})^{99})",
        "\\binom{9999}{9999}",
        "(x",
        "x^{y^{z^{99999}}}",
    ],
)
def test_what_is_known_to_hang_is_not_tried(source: str) -> None:
    assert not tame(source)
    assert symbolic.same(source, "5") is None


def test_what_a_reader_means_is_tried() -> None:
    for source in ("\\sin ( 2 x )", "e ^ { x ^ { 2 } }", "5 !", "\\binom { n } { 2 }", "x ^ { 12 }", "\\sqrt { 2 }", "1 / 2 x"):
        assert tame(source), source


def test_the_symbolic_tier_in_this_process() -> None:
    assert symbolic.same("\\sin ( 2 t )", "2 \\sin t \\cos t") is True
    assert symbolic.same("\\sin t", "\\cos t") is False
    assert symbolic.same("\\frac { 1 }", "5") is None
    assert symbolic.same("5", "^ 2") is None
    assert symbolic.same("\\log ( - 2 )", "\\log ( - 2 )") is True  # complex on both sides
    assert symbolic.same("\\log ( - 2 )", "\\log ( - 3 )") is False
    assert symbolic.same("x = 2", "x = 2") is True  # no expression: the library's own comparison
    assert symbolic.same("\\infty", "\\infty") is True
    assert symbolic.same("( - 1 ) ^ n", "\\cos ( n \\pi )") is True  # a letter that counts
    assert symbolic.same("\\sin ( 0.5 )", "\\sin ( \\frac { 1 } { 2 } )") is True
    assert exact(*IDENTITY, oracle=symbolic.same) is True


def test_what_workers_do_works_in_this_process_too() -> None:
    judge = MathAnswer(symbolic=True)
    judge.prepare()
    ((t, right), (_, wrong), (_, huge)) = items(IDENTITY, (IDENTITY[0], "\\cos x"), (IDENTITY[0], "9^{9^{9^{9}}}+\\sin x"))
    deferred = subprocess._Deferred()  # pyright: ignore[reportPrivateUsage]
    deferred.prepare()
    assert deferred(replace(t, private=FrozenMap({"answer": IDENTITY[0], "judge": judge})), right).primary == 1.0
    assert judge.decide(t, wrong).info["verdict"] == "different"
    assert judge.decide(t, huge).info["note"] == "neither tier can tell"


def test_the_subpackage_names_what_it_offers() -> None:
    import assay.verify.math as room

    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = room.nothing


@pytest.mark.prove
def test_a_thousand_texts_get_a_verdict_from_both_tiers() -> None:
    rng = random.Random(5)
    formulas = ["\\sin(2x)", "\\ln x", "\\tan t", "|x|"]
    batch = items(*((rng.choice(formulas), soup(rng)) for _ in range(1_000)))
    with ScoringPool(MathAnswer()) as pool:
        verdicts = pool.score(batch)
    assert all(v.fault in (Fault.NONE, Fault.POLICY) and v.info["verdict"] in set(MathVerdict) for v in verdicts.values())


@pytest.mark.parametrize("gold", [None, "", " ", [], ["4"], {}, {"value": 4}, True])
def test_a_gold_that_is_no_mathematics_is_no_verdict(gold):
    with pytest.raises(DataError, match="give a number, or mathematics as text"):
        MathAnswer()(*task_and_rollout(gold, "4"))
    with pytest.raises(DataError, match="give a number"):
        MathAnswer(symbolic=False)(*task_and_rollout(gold, ""))


def test_whose_text_cannot_be_read_is_said():
    assert str(MathAnswer()(*task_and_rollout("9^{9^{9^9}}", "6")).info["note"]).startswith("the gold: ")
    assert str(MathAnswer()(*task_and_rollout("6", "9^{9^{9^9}}")).info["note"]).startswith("the answer: ")
    assert MathAnswer()(*task_and_rollout(4.5, "9/2")).primary == 1.0

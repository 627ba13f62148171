"""Sets, lists and rankings: how items are read, and what is measured."""

import math
import random

import pytest

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.verify import ListMatch, Ranking, SetMatch, task_and_rollout
from assay.verify.text.items import items_in
from assay.verify.text.ranking import average_precision, ndcg, reciprocal_rank


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("a, b", ["a", "b"]),
        ("{a, b}", ["a", "b"]),
        ("(a, b)", ["a", "b"]),
        ("[a, b]", ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ('["a, b", 3, true, null]', ["a, b", "3", "true", "null"]),
        ("1. a\n2. b", ["a", "b"]),
        ("- a, b\n- c", ["a, b", "c"]),
        ("a\nb", ["a", "b"]),
        ("a,\nb,", ["a", "b"]),
        ("[a,\nb]", ["a", "b"]),
        ("a", ["a"]),
        ("[]", []),
        ("{}", []),
        ("", None),
        ("a,,b", None),
        ("[,]", None),
        ("[[1], 2]", ["[1]", "2"]),
        ("Answer: x, y", ["x", "y"]),
        ("(a) and (b)", ["a) and (b"]),
        ("a, b, and c", ["a", "b", "c"]),
        ("a, b and c", ["a", "b and c"]),
    ],
)
def test_items(text: str, items: list[str] | None) -> None:
    assert items_in(text) == items


def test_nested_json_is_no_list_of_items() -> None:
    assert SetMatch()(*task_and_rollout(["1", "2"], "[[1], 2]")).primary == 0.0
    assert SetMatch()(*task_and_rollout(["1"], "[" * 100_000)).primary == 0.0


def test_sets_and_lists_by_hand() -> None:
    def sets(gold: list, said: str, **settings: object) -> tuple[float, float]:
        score = SetMatch(**settings)(*task_and_rollout(gold, said))
        return score.components["correct"], score.components["jaccard"]

    assert sets(["a", "b"], "B, a, a") == (1.0, 1.0)
    assert sets(["a", "b"], "B, a", casefold=False) == (0.0, 1 / 3)
    assert sets(["a", "b"], "a; b", separator=";") == (1.0, 1.0)
    assert sets(["a", "b"], "a, b, c") == (0.0, 2 / 3)  # more than was asked for
    assert sets([], "[]") == (1.0, 1.0)
    assert sets([1, 2], "2, 1") == (1.0, 1.0)
    assert sets(["a"], " ") == (0.0, 0.0)
    assert SetMatch()(*task_and_rollout(["a"], "")).info["verdict"] == "unparsed"

    def lists(gold: list, said: str) -> tuple[float, float]:
        score = ListMatch()(*task_and_rollout(gold, said))
        return score.components["correct"], score.components["places"]

    assert lists([1, 2, 3], "1, 2, 3") == (1.0, 1.0)
    assert lists([1, 2, 3], "1, 2") == (0.0, 2 / 3)
    assert lists([1, 2], "1, 2, 2") == (0.0, 2 / 3)
    assert lists([], "[]") == (1.0, 1.0)
    assert lists([1], "") == (0.0, 0.0)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (["New York", "Paris"], "Paris and New York"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c"], "a and b and c"),
        (["salt and pepper", "oil"], "oil, salt and pepper"),
        (["salt and pepper", "oil"], "oil and salt and pepper"),
        (["salt and pepper", "oil"], "salt and pepper and oil"),
        (["salt and pepper"], "Salt and pepper"),
        ([1, 2], "Answer: 1 and 2."),
        (["x", "y"], "{x & y}"),
        (["Acme Inc.", "b"], "b and Acme Inc."),
        (["a"], "a."),
    ],
)
def test_items_joined_by_and(gold: list, said: str) -> None:
    assert SetMatch()(*task_and_rollout(gold, said)).components == {"correct": 1.0, "jaccard": 1.0}


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (["a", "b"], "a and b and c"),
        (["a"], "a and b"),
        (["a", "b"], "a or b"),
        (["a", "b"], "a and not b"),
        (["a", "b"], "aandb"),
        (["a", "b"], "band a"),
        (["a", "b"], "and a and b"),
        (["a", "b"], '["a and b"]'),
        (["a", "b", "c"], "- a\n- b and c"),
        (["salt", "pepper and oil"], "oil, salt and pepper"),
        (["a", "b"], " and ".join("ab" * 40)),
    ],
)
def test_what_and_does_not_join(gold: list, said: str) -> None:
    assert SetMatch()(*task_and_rollout(gold, said)).primary == 0.0


def test_a_list_joined_by_and_keeps_its_order() -> None:
    assert ListMatch()(*task_and_rollout(["b", "a"], "b and a")).components == {"correct": 1.0, "places": 1.0}
    assert ListMatch()(*task_and_rollout(["b", "a"], "a and b")).components == {"correct": 0.0, "places": 0.0}


def test_settings_and_golds() -> None:
    for kind in (SetMatch, ListMatch):
        with pytest.raises(ConfigError, match="separator=' '"):
            kind(separator=" ")
        with pytest.raises(DataError, match="no list of items"):
            kind()(*task_and_rollout("a, b", "a, b"))


def test_against_a_second_implementation() -> None:
    rng = random.Random(4)
    for _ in range(1500):
        gold = rng.choices("abcd", k=rng.randint(0, 4))
        said = [rng.choice("abcdABCD") for _ in range(rng.randint(0, 4))] if rng.random() < 0.5 else list(gold)
        if said and rng.random() < 0.5:
            rng.shuffle(said)
        text = rng.choice(["[{}]", "({})", "Answer: {{{}}}"]).format(", ".join(said))
        low = [x.lower() for x in said]
        shared = sum(x in low for x in set(gold))
        either = len(set(gold)) + sum(x not in gold for x in set(low))
        ours = SetMatch()(*task_and_rollout(gold, text)).components
        assert ours["jaccard"] == pytest.approx(shared / either if either else 1.0)
        assert ours["correct"] == float(sorted(set(gold)) == sorted(set(low)))
        ordered = ListMatch()(*task_and_rollout(gold, text)).components
        assert ordered["correct"] == float("".join(low) == "".join(gold))
        same = sum(low[i] == gold[i] for i in range(min(len(low), len(gold))))
        assert ordered["places"] == pytest.approx(same / max(len(low), len(gold), 1) if low or gold else 1.0)


# ---- rankings


def test_the_numbers_of_rlocator() -> None:
    score = Ranking()(*task_and_rollout({"candidates": list("abcd"), "relevant": ["a", "c"]}, "a, b, c, d"))
    assert score.components["mrr"] == 1.0
    assert score.components["ap"] == score.primary == pytest.approx((1 + 2 / 3) / 2)
    assert score.components["top_k"] == 1.0
    gold = {"gains": {"a": 3, "b": 2, "c": 0, "d": 1}}
    score = Ranking(metric="ndcg", k=2)(*task_and_rollout(gold, "c > a > b > d"))
    best = 3 + 2 / math.log2(3) + 1 / 2
    assert score.primary == pytest.approx((3 / math.log2(3) + 2 / 2 + 1 / math.log2(5)) / best)
    assert (score.components["mrr"], score.components["top_k"], score.info["verdict"]) == (0.5, 1.0, "different")
    assert Ranking(metric="mrr")(*task_and_rollout(gold, '["a", "b", "d", "c"]')).info["verdict"] == "equal"


def test_no_permutation_is_invalid() -> None:
    gold = {"candidates": ["a", "b"], "relevant": ["a"]}
    verdicts = {said: Ranking()(*task_and_rollout(gold, said)) for said in ("a", "a, b, b", "a, c", "a, b, c", "a, A", "")}
    assert [v.info["verdict"] for v in verdicts.values()] == ["invalid"] * 5 + ["unparsed"]
    assert all(set(v.components.values()) == {0.0} for v in verdicts.values())


def test_golds_of_rankings() -> None:
    bad = [
        {},
        "a",
        {"gains": {}},
        {"gains": {"a": 0}},
        {"gains": {"a": -1, "b": 1}},
        {"gains": {"a": True}},
        {"gains": {"a": "1"}},
        {"candidates": ["a"], "relevant": ["b"]},
        {"candidates": ["a", "a"], "relevant": ["a"]},
        {"candidates": "a", "relevant": "a"},
        {"gains": {"a": math.inf}},
    ]
    for gold in bad:
        with pytest.raises(DataError, match="gold"):
            Ranking()(*task_and_rollout(gold, "a"))
    with pytest.raises(ConfigError, match="k=0"):
        Ranking(k=0)
    with pytest.raises(UnknownNameError, match="metric"):
        Ranking(metric="map")


def test_metrics_against_second_formulas() -> None:
    rng = random.Random(5)
    for _ in range(3000):
        gains = [rng.choice([0, 0, 1, 2]) for _ in range(rng.randint(0, 7))]
        hits = [g > 0 for g in gains]
        assert reciprocal_rank(gains) == (1 / (hits.index(True) + 1) if any(hits) else 0.0)
        precisions = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits)) if hits[i]]
        assert average_precision(gains) == pytest.approx(sum(precisions) / len(precisions) if precisions else 0.0)
        gain = sum(g * math.log(2) / math.log(i + 2) for i, g in enumerate(gains))
        most = sum(g * math.log(2) / math.log(i + 2) for i, g in enumerate(sorted(gains)[::-1]))
        assert ndcg(gains) == pytest.approx(gain / most if most else 0.0)
        if any(hits):
            names = [f"f{i}" for i in range(len(gains))]
            gold = {"gains": dict(zip(names, gains, strict=True))}
            order = rng.sample(names, len(names))
            wanted = [gold["gains"][n] for n in order]
            assert Ranking()(*task_and_rollout(gold, ", ".join(order))).components["ap"] == average_precision(wanted)

"""Short options of an objective add to what stands there: no term, of the recipe or of another option, is put out by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.cli.recipe import settle
from assay.cli.train_options import TrainOptions
from assay.core.errors import ConfigError

ENTROPY = "--stages.0.objective.terms.0.kind Entropy --stages.0.objective.terms.0.coef 0.5"


def objective(words: str, recipe: str = "quickstart") -> Any:
    stage: Any = settle(TrainOptions, recipe, words.split(), "assay train")[1].stages[0]
    return stage.objective


def terms(words: str, recipe: str = "quickstart") -> list[tuple[str, float]]:
    return sorted((type(t).__name__, t.coef) for t in objective(words, recipe).terms)


def credits(words: str) -> list[str]:
    return [type(t).__name__ for t in objective(words).credit]


@pytest.mark.parametrize(
    ("words", "held"),
    [
        ("--kl 0.25 --entropy 0.5", [("Entropy", 0.5), ("Kl", 0.25)]),
        ("--entropy 0.5 --kl 0.25", [("Entropy", 0.5), ("Kl", 0.25)]),
        (f"--kl 0.25 {ENTROPY}", [("Entropy", 0.5), ("Kl", 0.25)]),
        (f"{ENTROPY} --kl 0.25", [("Entropy", 0.5), ("Kl", 0.25)]),
        (f"{ENTROPY} --entropy 0.125", [("Entropy", 0.125)]),
        ("--entropy_coeff 0.5 --beta 0.25 --objective gspo", [("Entropy", 0.5), ("Kl", 0.25)]),
        ("--objective grpo --kl 0.25 --entropy 0.5", [("Entropy", 0.5), ("Kl", 0.25)]),
        ("--objective one_shot --kl 0.25 --entropy 0.5", [("Entropy", 0.5), ("Kl", 0.25)]),
        ("--entropy 0.5 --entropy 0", []),
        ("--kl 0.5 --kl 0.25", [("Kl", 0.25)]),
    ],
)
def test_terms_are_added_beside_each_other(words: str, held: list[tuple[str, float]]) -> None:
    assert terms(words) == held


def test_terms_of_files_and_short_options_stand_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('recipe = "quickstart"\nkl = 0.25\nclip = [0.1, 0.3]\n')
    (tmp_path / "more.toml").write_text('recipe = "base.toml"\n[[stages.0.objective.terms]]\nkind = "Entropy"\ncoef = 0.5\n')
    more = str(tmp_path / "more.toml")
    assert terms("", more) == [("Entropy", 0.5), ("Kl", 0.25)]
    assert terms("--kl 0", more) == [("Entropy", 0.5)]
    assert terms("--entropy 0", more) == [("Kl", 0.25)]
    trust = objective("", more).policy.trust
    assert (trust.low, trust.high) == (0.1, 0.3)
    base = str(tmp_path / "base.toml")
    assert terms("--objective gspo", base) == [("Kl", 0.25)], "a method named later does not take the divergence away"


def test_the_divergence_in_the_reward_is_no_term_of_the_loss() -> None:
    assert credits("--kl-in-reward 0.25") == ["KlInReward", "Center", "Scale"]
    assert terms("--kl-in-reward 0.25") == [] and objective("--kl-in-reward 0.25").credit[0].coef == 0.25
    both = objective("--kl-in-reward 0.25 --kl 0.5")
    assert both.credit[0].coef == 0.25 and [t.coef for t in both.terms] == [0.5]
    assert objective("--objective rloo --kl-in-reward 0.25") == objective("--objective rloo --stages.0.objective.kl 0.25")
    assert credits("--objective kl_rl --kl-in-reward 0") == ["Center"]


def test_an_entry_is_put_before_all_others_of_a_tuple() -> None:
    words = "--stages.0.objective.credit.first.kind KlInReward --stages.0.objective.credit.first.coef 0.25"
    assert objective(words) == objective("--kl-in-reward 0.25")
    assert credits(f"{words} --stages.0.objective.credit.1.kind none") == ["KlInReward", "Center"]


def test_the_clip_range_is_one_option() -> None:
    for words, low, high in (
        ("--clip 0.1", 0.1, 0.1),
        ("--clip 0.1 0.3", 0.1, 0.3),
        ("--clip_ratio 0.1", 0.1, 0.1),
        ("--objective gspo --clip 0.1 0.3", 0.1, 0.3),
        ("--objective dapo --epsilon 0.1", 0.1, 0.1),
    ):
        trust = objective(words).policy.trust
        assert (trust.low, trust.high) == (low, high), words
    with pytest.raises(ConfigError, match="not clipped between two bounds; name a method where it is, as in --objective grpo"):
        objective("--objective reinforce --clip 0.1")
    with pytest.raises(ConfigError, match="needs one value for both bounds"):
        objective("--clip 0.1 0.2 0.3")

"""Help at every width: words are whole, and no line is longer than the terminal."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from assay.cli import COMMANDS

RECIPES = (("train", "quickstart"), ("explain", "mixed"), ("train", "gsm8k-lora"), ("train", "quickstart", "--help-all"))
WIDTHS = (60, 80, 120)
SPLIT = 0.45
"""A word that is longer than this share of the width may be broken, and so may an alphabet: no column could hold it."""


def commands(assay) -> list[tuple[str, ...]]:
    """Every command and every command below it."""
    found: list[tuple[str, ...]] = [()]
    for name in COMMANDS:
        found.append((name,))
        said = assay(name, "--help").out
        if " COMMAND ..." in said.splitlines()[0]:
            found += [(name, word) for word in re.findall(r"^  (\S+)  ", said.partition("commands:")[2], re.MULTILINE)]
    return [*found, *RECIPES]


def words(text: str) -> list[str]:
    """What is no line of a box."""
    return [word for word in re.sub(r"[╭╮╰╯│─]", " ", text).split() if word.strip("-")]


@pytest.mark.parametrize("width", [min(WIDTHS), *(pytest.param(w, marks=pytest.mark.prove) for w in sorted(WIDTHS)[1:])])
def test_no_help_cuts_a_word_or_overruns_the_terminal(assay, monkeypatch, width) -> None:
    for command in commands(assay):
        args = command if "--help-all" in command else (*command, "--help")
        monkeypatch.setenv("COLUMNS", "1000")
        whole = assay(*args)
        monkeypatch.setenv("COLUMNS", str(width))
        said = assay(*args)
        assert said.code == whole.code == 0
        too_long = [line for line in said.out.splitlines() if len(line) > width]
        assert not too_long, (args, too_long)
        short = {word for word in words(whole.out) if len(word) <= SPLIT * width and "abcdefgh" not in word}
        there, wanted = Counter(words(said.out)), Counter(words(whole.out))
        lost = {word for word in short if there[word] < wanted[word]}
        assert not lost, (args, lost)
        assert "…" not in said.out, args


def test_a_long_name_leaves_its_text_room(monkeypatch):
    from assay.cli.text_wrap import columns

    monkeypatch.setenv("COLUMNS", "60")
    text = columns(
        {"--eta, --async-steps, --max-staleness, --max-off-policy INT": "greatest age of a token, in steps", "--kl": "now 0"}
    )
    assert text.splitlines() == [
        "  --eta, --async-steps, --max-staleness, --max-off-policy INT",
        "        greatest age of a token, in steps",
        "  --kl  now 0",
    ]

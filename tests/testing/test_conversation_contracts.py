"""The checks of context managers and samplers find each broken promise."""

from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from assay.core import Message, ids_of
from assay.core.errors import ConfigError
from assay.core.protocols import AskPolicy, Conversation
from assay.rollout import Branching, Chunks, KeepAll, KeepLast, Player, PlayerSpec, Summarise
from assay.rollout.block import concatenate
from assay.testing import ContractError, check_context_manager, check_sampler
from assay.testing.contracts import wait_for
from assay.testing.conversations import contexts_for, parts_for, trained_once

PAGES = Path(__file__).parents[2] / "docs/add"


def module_of(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A page's first piece of Python, as a module of a user's own."""
    text = (PAGES / page).read_text(encoding="utf-8")
    code = text.split("```python\n", 1)[1].split("```", 1)[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    name = f"page_{page.removesuffix('.md')}"
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return import_module(name)


@pytest.mark.parametrize(
    "manager",
    [
        KeepAll(),
        KeepLast(n=1),
        KeepLast(n=2),
        Chunks(head=1, tail=2, most=3),
        Summarise(context=30, share=0.9, instruction="?", shown="={summary}"),
    ],
)
def test_built_in_managers_keep_their_promises(manager: Any) -> None:
    report = check_context_manager(manager)
    assert report.numbers["rows"] >= 1
    assert (report.numbers["rows"] > 1) == (manager != KeepAll())


def test_the_manager_of_the_page_keeps_its_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = module_of("context_manager.md", tmp_path, monkeypatch).NewerHalf()
    report = check_context_manager(half, turns=12, context=96)
    assert report.numbers["rows"] > 1


@dataclass(frozen=True)
class Forgetful:
    """Decides by how often it was asked."""

    asked: list[int] = field(default_factory=list)

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None:
        self.asked.append(1)
        return conversation.restart([Message("user", str(len(self.asked)))])


class Unfiled:
    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> None:
        return None


@dataclass(frozen=True)
class Wrong:
    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None:
        return conversation.keep([])


@pytest.mark.parametrize(
    ("manager", "words"),
    [
        (Forgetful(), "does another thing when a rollout is played again"),
        (Unfiled(), "a run's file cannot say it"),
        (Wrong(), "raised ConfigError: Conversation.keep was given"),
    ],
)
def test_broken_managers_are_found(manager: Any, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        check_context_manager(manager)


def test_a_token_that_is_trained_twice_or_never_is_found() -> None:
    parts = parts_for(turns=2)
    player = Player(engine=parts.engine, tokenizer=parts.tokenizer, source=parts.source, sampling=parts.sampling, seed=0)
    rollout = max(wait_for(player.collect(contexts_for(), 3)), key=lambda r: len(r.calls))
    assert len(rollout.calls) == 2
    trained_once(rollout, "x")
    never = replace(rollout, calls=(rollout.calls[0], replace(rollout.calls[1], policy="other")))
    with pytest.raises(ContractError, match="carries no loss"):
        trained_once(never, "x")
    assert concatenate(ids_of([1]), ids_of([2])).tolist() == np.array([1, 2]).tolist()


# ---- samplers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        PlayerSpec(),
        PlayerSpec(context=KeepLast(n=1), max_turns=3),
        Branching(),
        Branching(tau=0.3, play=PlayerSpec(context=KeepLast(n=1))),
    ],
)
def test_built_in_samplers_keep_their_promises(spec: Any) -> None:
    assert (check_sampler(spec).numbers["shared"] > 0) == isinstance(spec, Branching)


def test_the_sampler_of_the_page_keeps_its_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = check_sampler(module_of("sampler.md", tmp_path, monkeypatch).LastTurnAgain())
    assert report.numbers["shared"] > 0


@dataclass(frozen=True)
class Odd:
    """A sampler that breaks one promise."""

    wrong: str = ""
    max_turns: int | None = None

    @property
    def player(self) -> Any:
        return self if self.wrong == "single" else PlayerSpec()

    def build(self, parts: Any) -> Any:
        return OddSampler(self.wrong, PlayerSpec().build(parts))


@dataclass
class OddSampler:
    wrong: str
    player: Player

    async def collect(self, contexts: Any, n: int) -> Any:
        got = await self.player.collect(contexts, n)
        if self.wrong == "order":
            return got[::-1]
        if self.wrong == "context order":
            other = await replace(self.player, seed=len(contexts[0].key)).collect(contexts, n)
            return other
        if self.wrong in ("stolen", "single"):
            return [replace(r, calls=tuple(replace(c, shared=True) for c in r.calls)) for r in got]
        if self.wrong == "raises":
            raise ConfigError("no")
        return got


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("order", "gave rollouts .* were asked for"),
        ("context order", "gives other rollouts with the contexts in another order"),
        ("stolen", "is shared, and no rollout sampled it"),
        ("raises", "raised ConfigError: no"),
    ],
)
def test_broken_samplers_are_found(wrong: str, words: str) -> None:
    with pytest.raises(ContractError, match=words):
        check_sampler(Odd(wrong))


def test_a_player_that_shares_calls_is_found() -> None:
    @dataclass(frozen=True)
    class Shares(Branching):
        @property
        def player(self) -> Any:
            return Odd("single")

    with pytest.raises(ContractError, match="its player shares calls between rollouts"):
        check_sampler(Shares())

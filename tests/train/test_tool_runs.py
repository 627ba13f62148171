"""A single-answer task trained with a user's tools: calls, files, resumption, and code that changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import coin_toss, rollouts, session, spied, walk
from tiny_runs import SHAPE, in_child, kill_at, only_rl, resumed, trained

from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError
from assay.core.group import Group, Outcome
from assay.core.protocols import Moment, Posed
from assay.core.rollout import Sampling
from assay.core.task import Prefill, Task
from assay.guide import plain_context
from assay.rollout import PlayerSpec
from assay.runs.user_code import changed_code, code_digests, write_code
from assay.train import models
from assay.train.driver import train
from assay.train.preflight import check_fits
from assay.train.record import code_of
from assay.train.run import Run
from assay_tasks import SortDigits


def count_digits(text: str) -> int:
    """How long a text is."""
    return len(text)


async def shout(text: str) -> str:
    """The text, louder."""
    return text + "!"


@dataclass(frozen=True)
class Calls:
    """Every answer begins with a call of a tool, which the policy completes: an untrained model would make none."""

    name: str = "count_digits"

    def build(self, seed: int) -> Calls:
        return self

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        text = f'<tool_call>{{"name": "{self.name}", "arguments": {{"text": "123"}}}}</tool_call>'
        return () if history else (Posed(context=plain_context(task, moment.key, Prefill(text))),)

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        pass

    def metrics(self) -> Mapping[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def running(*tools: Any, **changes: Any) -> Run:
    stage = {
        "steps": 3,
        "groups": 2,
        "group_size": 4,
        "sampler": PlayerSpec(tools=tools, max_turns=3),
        "guidance": Calls(),
        **changes,
    }
    model = models.Scratch(shape=replace(SHAPE, max_positions=896), seed=0)
    sampling = Sampling(max_new_tokens=4, stop_ids=tuple(range(1, 30)))  # so that turns end soon
    return replace(only_rl(**stage), tasks=SortDigits(levels=(3,)), model=model, sampling=sampling)


@pytest.mark.parametrize(("tool", "answer"), [(count_digits, "3"), (shout, "123!")])
def test_a_task_of_one_answer_is_trained_with_a_tool(tool: Any, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are answered, what was sampled carries loss once, and what tools answered none."""
    seen = spied(monkeypatch)
    s = session(coin_toss(running(tool, guidance=Calls(tool.__name__))))
    before = s.parts.learner.state_digest()
    results = walk(s, 2)
    assert s.parts.learner.state_digest() != before
    for result, batch in zip(results, seen, strict=True):
        played = rollouts(result)
        called = [r for r in played if r.calls[0].results]
        assert called and all(r.calls[0].results[0].content == answer and len(r.calls) > 1 for r in called)
        assert all(f'"name": "{tool.__name__}"' in r.context.messages[0].content for r in played)
        assert int(batch.token("mask").sum()) == sum(r.length for r in played)
        assert result.metrics["engine/mismatch_k3"] < 1e-9


@pytest.mark.slow
def test_a_killed_run_with_tools_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    run = replace(running(count_digits, steps=4), checkpoint_every=2)
    whole = trained(run, tmp_path / "whole")
    part = tmp_path / "part"
    assert in_child(lambda: (kill_at(14), train(run, part))) == -9
    assert resumed(part, run) == whole
    lines = [json.loads(line)["metrics"] for line in (part / "metrics.jsonl").read_text().splitlines()]
    noted = [line for line in lines if "reward/mean" in line]
    assert len(noted) == 4 and all(line["tools/calls"] > 0.0 and 0.0 <= line["tools/errors"] <= 1.0 for line in noted)


def test_files_name_tools() -> None:
    run = running(count_digits, shout)
    text = dumps_toml(to_dict(run))
    assert from_dict(Run, loads_toml(text)) == run
    named = text.replace('{ kind = "function", name = "test_tool_runs:shout" }', '"test_tool_runs:shout"')
    assert from_dict(Run, loads_toml(named)) == run
    assert "tools" not in to_dict(PlayerSpec())
    table = to_dict(run)
    table["stages"][0]["sampler"]["tools"] = ["test_tool_runs:count_digits"]
    assert from_dict(Run, table) == running(count_digits)


def test_the_code_of_tools_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'def bound() -> int:\n    return 3\n\n\ndef limit() -> int:\n    """A number."""\n    return bound()\n'
    (tmp_path / "own_tool.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    import sys

    run = running(import_module("own_tool").limit)
    assert "own_tool:limit" in code_digests(code_of(run))
    write_code(tmp_path, code_of(run))
    assert changed_code(tmp_path, code_of(run)) == []
    del sys.modules["own_tool"]
    (tmp_path / "own_tool.py").write_text(source.replace("return 3", "return 4  # another"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for cached in (tmp_path / "__pycache__").glob("*"):
        cached.unlink()
    assert changed_code(tmp_path, code_of(running(import_module("own_tool").limit))) == ["own_tool:limit: edited"]


def test_a_prompt_that_its_tools_make_too_long_is_refused_before_the_run() -> None:
    run = replace(running(count_digits), model=models.Scratch(shape=replace(SHAPE, max_positions=64)))
    with pytest.raises(ConfigError, match=r"task 'sort/sort/3/train/0' .* has a prompt of \d{3} tokens"):
        check_fits(run, models.load_source(run.model, lambda *_: Path()))
    bare = replace(run, stages=(replace(run.stages[0], sampler=PlayerSpec()),))
    check_fits(bare, models.load_source(bare.model, lambda *_: Path()))


def test_evaluations_play_with_the_tools(tmp_path: Path) -> None:
    """A policy that may call nothing in training would be measured at another task."""
    s = session(running(count_digits))
    player: Any = s.parts.player(s.parts.run.sampling)
    assert [tool.schema["name"] for tool in player.tools] == ["count_digits"]
    assert np.isfinite(player.deadline)

"""``assay explain``: what a recipe would do. Runs nothing, and needs no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from assay.cli.output import lines, note, show
from assay.cli.part_tree import Node, take
from assay.cli.preflight import check, outline
from assay.cli.recipe import settle_all, shrink_run, with_rows
from assay.cli.sizes import Derived, StageSizes, derive, stated_config
from assay.cli.usage import asks_usage, usage
from assay.core.config import dumps_toml, to_dict
from assay.core.errors import ConfigError
from assay.core.plan import Plan
from assay.runtime.learning_rate import describe_schedule
from assay.runtime.settings import DecoderShape
from assay.train.describe_settings import explain_settings
from assay.train.model_facts import small_files
from assay.train.models import Built, Folder
from assay.train.out_of_memory import format_bytes
from assay.train.placement import describe_placement
from assay.train.reinforce import Reinforce
from assay.train.run import Run
from assay.train.schedules import describe_schedules
from assay.train.support import support_note

if TYPE_CHECKING:
    from assay.train.wiring import WiredPart

__all__ = ["explain_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Explains what a recipe would do, without running it.

    Attributes:
        json: print settings and derived sizes as JSON.
        toml: print the settings as TOML, which 'assay train FILE.toml' takes.
        for_model: derive the settings that follow from the model, as 'assay train --for-model' does.
        random_init: as 'assay train --random-init' would do it.
    """

    json: bool = False
    toml: bool = False
    for_model: bool = False
    random_init: bool = False

    def __post_init__(self) -> None:
        if self.json and self.toml:
            raise ConfigError("--json and --toml are two forms of the same output; give one")


def explain_command(args: list[str]) -> int:
    """``assay explain RECIPE [options] [any field of the recipe]``."""
    if asks_usage(args):
        return usage("explain", ExplainOptions, args)
    asked = settle_all(ExplainOptions, args, "assay explain")
    own, wires = asked.own, asked.wires
    run = shrink_run(asked.run) if own.random_init else asked.run
    if asked.kept and not own.random_init:
        note(asked.kept)
    if own.toml:
        print(dumps_toml(to_dict(run)), end="")
        return 0
    if not own.json and (wanted := _absent_device(run)):
        note(wanted)
    looked = with_rows(run)
    found = derive(looked)
    if stated_config(run.model) is not None:
        note(f"{run.model.describe()} is not here: its sizes are as assay's recipes state them, and tasks were not looked at")
    elif not check(looked):
        note("whether the tasks fit the model's context is not checked: tokenizers is not installed")
    else:
        found = _with_tokens(looked, found)
    chosen = _describe_settings(run)
    value = {"chosen": chosen, "settings": to_dict(run), "wired": [asdict(w) for w in wires], "derived": _json(found)}
    value |= {"server": server} if (server := _server(run)) else {}

    def text() -> None:
        for line in chosen:
            print(line)
        print(end="\n" if chosen else "")
        _text(run, found, wires)
        if server:
            if isinstance(run.model, Built):
                print("the engine's server must be there before the run, with the base that is built first: build it once, as by")
                print(f"  assay train {asked.recipe} --engine.kind Auto --steps 1 --folder {_BUILT}")
            print(f"start the engine's server before the run\n  {server}\n")

    return show(own.json, value, text)


def _absent_device(run: Run) -> str:
    """What to know where a stage asks for CUDA and there is none here; empty elsewhere, and where torch is not installed."""
    if not any(stage.learner.device.startswith("cuda") for stage in run.stages) or find_spec("torch") is None:
        return ""
    from assay.runtime.machine import gpus

    return "" if gpus() else "there is no CUDA device here: 'assay train' would refuse this run on this machine"


_BUILT = "runs/base"
"""Folder of the run that builds a base for a server."""


def _server(run: Run) -> str:
    """The command that starts the server which the run's engine asks; empty where it asks none."""
    from assay.runtime.vllm.settings import VllmSettings

    if not isinstance(run.engine, VllmSettings):
        return ""
    ranks = [s.learner.adapter.rank for s in run.stages if s.learner.adapter is not None]
    return run.engine.command(run.model.path if isinstance(run.model, Folder) else f"{_BUILT}/start", max(ranks, default=0))


def _describe_settings(run: Run) -> tuple[str, ...]:
    """What `assay train` prints before the first step of a run from a model: what was chosen for it and this machine, and why."""
    if not isinstance(run.model, Folder) or stated_config(run.model) is not None or not any(s.uses_tasks for s in run.stages):
        return ()
    return explain_settings(run, small_files(run.model))


def _with_tokens(run: Run, found: Derived) -> Derived:
    """The sizes with the tokens of given rows, of the base that is built first too."""
    stages = list(found.stages)
    for at, stage in enumerate(run.stages):
        if stages[at].pool:
            tokens = stage.check_rows(run, outline(run.model).tokenizer, found.context)
            if tokens is None:
                continue
            stages[at] = replace(stages[at], pool_tokens=tokens.rows, learned_tokens=tokens.learned)
    base = _with_tokens(run.model.run, found.base) if isinstance(run.model, Built) and found.base else found.base
    return replace(found, stages=tuple(stages), base=base)


def _json(found: Derived) -> dict[str, Any]:
    out = asdict(found)
    out["memory"]["total"] = found.memory.total
    out["less"] = dict(found.less)
    out["cached"] = str(found.cached) if found.cached else None
    out["base"] = _json(found.base) if found.base else None
    return out


def _text(run: Run, found: Derived, wires: Sequence[WiredPart] = ()) -> None:
    _sizes(run.name, found, run.mesh.size)
    for name in dict.fromkeys(w.method for w in wires):
        print(f"wired for {name}")
        lines({f"  {w.place}": f"{w.value}\n{w.why}" for w in wires if w.method == name})
        print()
    for index, stage in enumerate(run.stages):
        if stage.updates:
            lr = describe_schedule(stage.learner.schedule, stage.learner.optimizer.lr, stage.steps * stage.updates)
            print(f"learning rate of stage {index}: {lr}\n")
        if said := support_note(run, stage):
            print(f"truncated sampling in stage {index}: {said}\n")
        if (beside := stage.asynchronous) is not None:
            print(f"sampling beside learning in stage {index}: {beside.describe(stage.sampled[0])}")
            if isinstance(stage, Reinforce):
                lines({f"  {part}": where for part, where in describe_placement(run, stage).items()})
            print()
        if schedules := describe_schedules(stage):
            print(f"schedules of stage {index}, in training alone")
            lines({f"  {key}": text for key, text in schedules.items()})
            print()
    tree = cast(Node, take(run))
    base = cast(Node, tree.fields["model"]).fields.pop("run", None) if isinstance(run.model, Built) else None
    for title, part in (("settings", tree), ("settings of the base that is built first (--model.run.NAME)", base)):
        if part is not None:
            print(title)
            for line in _tree(part, 1):
                print(line)
            print()


def _tree(node: Any, depth: int) -> Iterator[str]:
    """Name and value of each setting; parts by class, indented."""
    width = max((len(name) for name in node.fields), default=0)
    for name, child in node.fields.items():
        head = f"{'  ' * depth}{name:<{width}}  "
        if isinstance(child, Node):
            many = child.kind in (tuple, dict)
            yield (head + (_count(child) if many else child.kind.__name__)).rstrip()
            yield from _tree(child, depth + 1)
        else:
            yield head + _leaf(child)


def _count(node: Node) -> str:
    return "none" if not node.fields else ""


def _leaf(value: Any) -> str:
    text = "none" if value is None or value == () else ascii(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _sizes(name: str, found: Derived, ranks: int) -> None:
    if found.base:
        _sizes(f"{name}'s base, built first", found.base, ranks)
        where = f"in the cache: {found.cached}" if found.cached else "not in the cache yet"
        print(f"that base is {where}\n")
    print(name)
    s = found.shape
    heads = f"{s.num_heads} heads" if isinstance(s, DecoderShape) else s.architecture
    shape = f"{s.num_layers} layers of {s.hidden_size}, {heads}, vocabulary {s.vocab_size}"
    lines(
        {
            "  model": f"{found.parameters:,} parameters: {shape}",
            "  context": f"{found.context:,} tokens",
        }
        | ({"  processes": f"{ranks}, each with a device of its own: they share the learner"} if ranks > 1 else {})
        | {"  memory in each" if ranks > 1 else "  memory": _bytes(found)}
    )
    for index, stage in enumerate(found.stages):
        print(f"  stage {index}: {stage.stage}, {stage.steps:,} steps")
        lines({f"    {k}": v for k, v in _stage(stage).items()})
    print(f"  evaluation at start and end: {found.final_items:,} held-out tasks\n")


def _stage(s: StageSizes) -> dict[str, str]:
    out = {
        "rows": f"{s.rows:,} per step, {s.rollouts:,} in all",
        "optimiser steps": f"{s.updates:,}",
        "evaluations": f"{s.evaluations:,}, of {s.evaluation_items:,} tasks during the stage",
        "plan": _plan(s.plan),
    }
    levels = "; ".join(f"{arm} {', '.join(map(str, of_arm))}" for arm, of_arm in s.levels.items())
    walked = f", walked {s.walks:.1f} times" if s.walks else ""
    source = {s.what: f"{s.pool:,}{walked}"} if s.pool else {"levels": levels}
    if s.shared:
        source["prompts"] = f"{s.shared:,} rows have the prompt of one before them, and say something else"
    if s.pool_tokens:
        source["tokens"] = f"{s.pool_tokens:,} in all {s.what}, {s.learned_tokens:,} with loss"
    return ({"tokens sampled": f"at most {s.tokens:,}"} if s.tokens else {}) | source | out


def _plan(p: Plan) -> str:
    forwards = ", ".join(f"{f.column} by {f.model} once a {f.when}" for f in p.forwards) or "none besides the gradient's"
    skipped = "skipped" if p.skip else "computed"
    return "\n".join(
        (
            f"forward passes: {forwards}",
            f"columns from engine or rows: {', '.join(p.columns) or 'none'}; computed with the gradient: {', '.join(p.live)}",
            f"a micro-batch keeps whole: {p.split.value}; rows without gradient are {skipped}",
            f"statistics that cross ranks: {', '.join(p.reductions) or 'none'}",
        )
    )


def _bytes(found: Derived) -> str:
    m = found.memory
    less = ", ".join(f"{name} {format_bytes(saved)}" for name, saved in found.less)
    lines = [f"about {format_bytes(m.total)}", *(f"{name} {format_bytes(value)}" for name, value in m.parts.items())]
    return "\n".join([*lines, f"less by: {less}"] if less else lines)

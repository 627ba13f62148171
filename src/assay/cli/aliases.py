"""Short options of a run, by the names that trainers of language models share, and the settings of a run they stand for.

``--lr 1e-4`` is ``--stages.0.learner.optimizer.lr 1e-4`` where stage 0 is the one of reinforcement learning. A run is the same
whichever of the two was written: aliases are replaced before any setting is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.cli.given_options import GivenOption, Mistakes
from assay.cli.objective_aliases import Settings, StageOfRun, coef_of, with_clip, with_entropy, with_kl, with_kl_in_reward
from assay.core.errors import ConfigError
from assay.recipes.setting_names import SHORT
from assay.runtime.learning_rate import schedule_of_kind

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["ALIASES", "OWN_ALIASES", "Alias", "alias_named", "replace_aliases", "rl_stage", "shown_value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A short option.

    Attributes:
        names: with dashes, the one that is shown first first.
        path: the setting, ``{stage}`` for ``stages.N`` of the stage of reinforcement learning.
        metavar: what its value is.
        says: in a few words, what it sets.
        important: shown by ``--help``.
        make: the settings for a value, where it is not ``path`` alone.
    """

    names: tuple[str, ...]
    path: str
    metavar: str
    says: str
    important: bool = True
    make: Callable[[StageOfRun, GivenOption], Settings] | None = None


def _with_lora(at: StageOfRun, option: GivenOption) -> Settings:
    """Rank or factor of an adapter, which is put there if need be; rank 0 trains all weights."""
    path = f"{at.path}.learner.adapter"
    if option.path == "lora_rank" or option.path == "lora_r":
        if option.words == ("0",):
            return [(f"{path}.kind", ("none",))]
        setting = (f"{path}.rank", option.words)
    else:
        setting = (f"{path}.alpha", option.words)
    there = at.run.stages[at.stage].learner.adapter is not None or at.has(f"{path}.kind")
    return [setting] if there else [(f"{path}.kind", ("Lora",)), setting]


def _with_samplers(at: StageOfRun, option: GivenOption) -> Settings:
    """A setting of sampling beside learning, which is put there if need be; 0 samplers sample in the run's own process."""
    path = f"{at.path}.asynchronous"
    dashed = option.path.replace("_", "-")
    name = next(p for n, (others, p) in SHORT.items() if dashed in (n, *others.split())).rpartition(".")[2]
    if name == "samplers" and option.words == ("0",):
        return [(f"{path}.kind", ("none",))]
    there = at.run.stages[at.stage].asynchronous is not None or at.has(f"{path}.kind")
    return [*([] if there else [(f"{path}.kind", ("Asynchronous",))]), (f"{path}.{name}", option.words)]


def _with_schedule(at: StageOfRun, option: GivenOption) -> Settings:
    """Another kind of schedule, with where it begins and ends if the one that stands there is of another kind."""
    path, now = f"{at.path}.learner.schedule", at.run.stages[at.stage].learner.schedule
    kind = [(f"{path}.kind", option.words)]
    if len(option.words) != 1 or option.words[0] not in ("constant", "linear", "cosine"):
        return kind  # is refused there
    new = schedule_of_kind(now, option.words[0])
    shape = [
        (f"{path}.{name}", (str(getattr(new, name)),))
        for name in ("start", "floor")
        if getattr(new, name) != getattr(now, name) and not at.has(f"{path}.{name}")
    ]
    return [*shape, *kind]


def _with_model(at: StageOfRun, option: GivenOption) -> Settings:
    """Weights from a folder or the hub."""
    from assay.train.models import Folder

    there = isinstance(at.run.model, Folder) or at.has("model.kind")
    return [*([] if there else [("model.kind", ("Folder",))]), ("model.path", option.words)]


def _alias(name: str, metavar: str, says: str, important: bool = True, make: Any = None) -> Alias:
    others, path = SHORT[name]
    return Alias(names=(name, *others.split()), path=path, metavar=metavar, says=says, important=important, make=make)


ALIASES: dict[str, tuple[Alias, ...]] = {
    "method": (
        _alias("objective", "NAME", "a method by name, with all that it needs"),
        _alias("kl", "FLOAT", "coefficient of the divergence from the start", make=with_kl),
        _alias("kl-in-reward", "FLOAT", "coefficient of the divergence that the reward loses", False, with_kl_in_reward),
        _alias("entropy", "FLOAT", "coefficient of the entropy bonus", make=with_entropy),
        _alias("clip", "FLOAT", "clip range: bounds of the ratio, from 1", make=with_clip),
        _alias("epochs", "INT", "passes over the rollouts of a step"),
        _alias("minibatches", "INT", "optimiser steps per pass"),
        _alias("lag", "INT", "age in steps of the weights that sample", important=False),
    ),
    "rollouts": (
        _alias("steps", "INT", "steps of the last stage"),
        _alias("groups", "INT", "prompts per step"),
        _alias("group-size", "INT", "rollouts per prompt"),
        _alias("max-new-tokens", "INT", "longest answer in tokens"),
        _alias("temperature", "FLOAT", "divides the logits"),
        _alias("top-p", "FLOAT", "probability that is kept; 1 for all", important=False),
        _alias("top-k", "INT", "tokens that are kept; 0 for all", important=False),
        _alias("min-p", "FLOAT", "least share of the likeliest", important=False),
        _alias("max-turns", "INT", "answers per rollout", important=False),
        _alias("samplers", "INT", "processes that sample beside learning", make=_with_samplers),
        _alias("eta", "INT", "greatest age of a token, in steps", False, _with_samplers),
        _alias("age-policy", "WORD", "wait, continue or drop", False, _with_samplers),
        _alias("runtime", "WORD", "process or ray", False, _with_samplers),
        _alias("weight-updates", "WORD", "full, or delta for what changed", False, _with_samplers),
        _alias("keep-log", "", "keep what 'assay runs replay' needs", False, _with_samplers),
    ),
    "learner": (
        _alias("lr", "FLOAT", "learning rate"),
        _alias("lr-schedule", "WORD", "constant, linear or cosine", make=_with_schedule),
        _alias("warmup-steps", "INT", "steps up to the full rate"),
        _alias("weight-decay", "FLOAT", "decoupled", important=False),
        _alias("clip-norm", "FLOAT", "gradient norm at most; 0: any"),
        _alias("lora-rank", "INT", "train an adapter; 0: all weights", make=_with_lora),
        _alias("lora-alpha", "FLOAT", "factor of an adapter", False, _with_lora),
        _alias("micro-tokens", "INT", "tokens of a micro-batch, at most"),
        _alias("precision", "WORD", "fp32 or bf16"),
        _alias("gradient-checkpointing", "", "less memory, more time", important=False),
        _alias("device", "WORD", "cpu, cuda or auto"),
    ),
    "run": (
        _alias("model", "PATH", "weights: a folder, or a name on the hub", make=_with_model),
        _alias("seed", "INT", "all randomness derives from it"),
        _alias("threads", "INT", "threads of torch"),
        _alias("eval-every", "INT", "steps between evaluations, or 0"),
        _alias("checkpoint-every", "INT", "steps between checkpoints"),
        _alias("keep-checkpoints", "INT", "newest that stay; 0: all", important=False),
    ),
}
"""By the headings of the help."""

OWN_ALIASES = {"out": "folder", "output_dir": "folder", "run_dir": "folder", "max_steps": "steps", "num_seeds": "seeds"}
"""Other names of a command's own options, by which they are called."""

_OBJECTIVE = "{stage}.objective."
"""How the place begins of what changes an objective but names none."""

_BY_NAME = {name.replace("-", "_"): alias for group in ALIASES.values() for alias in group for name in alias.names}


def alias_named(path: str) -> Alias | None:
    """The alias of a name with underscores."""
    return _BY_NAME.get(path)


def rl_stage(run: Run, path: str, option: GivenOption) -> int:
    """The number of the stage of reinforcement learning.

    Raises:
        ConfigError: there is none, or more than one; names the options that say which.
    """
    from assay.train.reinforce import Reinforce

    found = [i for i, stage in enumerate(run.stages) if isinstance(stage, Reinforce)]
    if len(found) == 1:
        return found[0]
    of = found or range(len(run.stages))
    full = " or ".join(option.spell(path.format(stage=f"stages.{i}")) for i in of)
    what = f"{len(found)} stages" if found else "no stage"
    kinds = ", ".join(f"{i} {type(stage).__name__}" for i, stage in enumerate(run.stages))
    raise ConfigError(
        f"{option.typed} is about the stage of reinforcement learning; {run.name} has {what} of it ({kinds}): {full}"
    )


def replace_aliases(run: Run, options: Sequence[GivenOption], own: Collection[str], mistakes: Mistakes) -> list[GivenOption]:
    """The options with the settings that their aliases stand for.

    Args:
        run: as the recipe gives it.
        options: in order.
        own: options of the command itself, which go before aliases.
        mistakes: takes those that cannot be placed.
    """
    out: list[GivenOption] = []
    for index, option in enumerate(options):
        alias = alias_named(option.path)
        if alias is None or option.path == "seed" or (option.path in own and not option.file):
            out.append(option)
            continue
        if alias.path.startswith(_OBJECTIVE) and any(alias_named(o.path) is alias for o in options[index + 1 :]):
            continue  # the last one counts, and no term may be added for those before it
        try:
            out += _settings(run, alias, option, [*out, *options])
        except ConfigError as error:
            mistakes.add([option], error)
    return out


def _settings(run: Run, alias: Alias, option: GivenOption, others: Sequence[GivenOption]) -> list[GivenOption]:
    stage = rl_stage(run, alias.path, option) if "{stage}" in alias.path else 0
    if alias.make is None:
        return [replace(option, path=alias.path.format(stage=f"stages.{stage}"))]
    named = f"stages.{stage}.objective"
    methods = [o for o in others if o.path in (named, f"{named}.kind", "objective", "algorithm") and o.words]
    since, name = (methods[-1].layer, methods[-1].words[0]) if methods else (0, "")
    if alias.path.startswith(_OBJECTIVE):  # a method that a later layer names takes none of these away
        others, option = [o for o in others if o.layer >= since], replace(option, layer=max(option.layer, since))
    place = StageOfRun(run, stage, name, others)
    return [replace(option, path=path, words=words, value=None) for path, words in alias.make(place, option)]


def shown_value(run: Run, alias: Alias) -> str:
    """What stands there now, in a word; a dash where nothing does."""
    from assay.train.reinforce import Reinforce

    stages = [i for i, stage in enumerate(run.stages) if isinstance(stage, Reinforce)]
    if "{stage}" in alias.path and len(stages) != 1:
        return "–"
    if "objective" in alias.names:
        return ""
    for name, classes in (("kl", ("Kl", "KlInReward")), ("kl-in-reward", ("KlInReward",)), ("entropy", ("Entropy",))):
        if name in alias.names:
            return coef_of(run, stages[0], classes)
    if "clip" in alias.names:
        trust = getattr(run.stages[stages[0]].objective.policy, "trust", None)
        sides = [str(getattr(trust, side)) for side in ("low", "high") if hasattr(trust, side)]
        return " ".join(dict.fromkeys(sides)) or "–"
    value: Any = run
    for name in alias.path.format(stage=f"stages.{stages[0] if stages else 0}").split("."):
        value = value[int(name)] if name.isdecimal() else getattr(value, name, None)
    return "–" if value is None else value.describe() if hasattr(value, "describe") else str(value)

"""What a setting of another library is on this command line: options that work as they are printed, for the run at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from assay.cli.given_options import GivenOption
from assay.cli.part_tree import Node, at
from assay.recipes.setting_names import PeerSetting, peer_setting

__all__ = ["hint_of", "setting_of_method", "toml_spelling"]

_SETTING = re.compile(r"stages\.(\d+)\.objective\.(\w+)")
_TRUST = "objective.policy.trust"
_LOSSES = ("loss-type", "importance-sampling-level")
_ESTIMATORS = ("adv-estimator", "algorithm.adv-estimator", "actor-rollout-ref.actor.policy-loss.loss-mode")


def hint_of(name: str, words: Sequence[str], root: Node, own: Collection[str] | None = None) -> str | None:
    """The options that set what a name of another library sets; None where it is no such name.

    Args:
        name: as it was given, without dashes before it.
        words: behind it.
        root: the run, taken apart.
        own: options that a file of settings cannot have, where the name stands in one: others are then spelt as there.
    """
    here = peer_setting(name)
    if here is None:
        return None
    stage = _stage(root)
    value = " ".join(words) or "VALUE"
    option = _for_run(here, root, stage)
    terms = at(root, ["stages", stage, "objective", "terms"]) if "{term}" in option else None
    count = str(len(terms.fields)) if isinstance(terms, Node) else "0"
    option = option.format(stage=stage, term=count, value=value)
    if own is not None:
        option = toml_spelling(option, own)
    return "; ".join(filter(None, (option, _named_by(name, words) or here.says)))


def toml_spelling(options: str, own: Collection[str] = ()) -> str:
    """Options of a command line as lines of a file of settings; all of them unchanged where one is the command's own.

    >>> toml_spelling("--clip 0.2 0.28"), toml_spelling("--engine.kind VllmSettings --minibatches COUNT"), toml_spelling("--bf")
    ('clip = [0.2, 0.28]', 'engine.kind = "VllmSettings", minibatches = COUNT', 'bf = true')
    """
    lines: list[str] = []
    for flag, *words in (part.split() for part in f" {options}".split(" --")[1:]):
        name, values = flag.replace("-", "_"), [_toml_value(word) for word in words]
        if name in own:
            return options
        lines.append(f"{name} = {'true' if not values else values[0] if len(values) == 1 else '[' + ', '.join(values) + ']'}")
    return ", ".join(lines)


def _toml_value(word: str) -> str:
    """A word as TOML has it; one in capitals stands for a value that is to be chosen."""
    plain = word.isupper() or re.fullmatch(r"[+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?", word)
    return word.lower() if word.lower() in ("true", "false") else word if plain else f'"{word}"'


def setting_of_method(option: GivenOption, root: Node) -> str | None:
    """What to say of a method's setting where the command names no method; None where no method has such a setting."""
    from assay.objective.methods import methods

    found = _SETTING.fullmatch(option.path)
    if found is None or root.fields.get("stages") is None or found[1] not in _stages(root):
        return None
    having = [name for name, method in methods().items() if found[2] in method.settings]
    if not having:
        return None
    first = next((name for name in ("grpo", "dapo", "ppo") if name in having), having[0])
    value = " ".join(option.words) or "VALUE"
    told = f"a setting of methods that are named: --stages.{found[1]}.objective {first} {option.typed} {value}"
    own = [f"--stages.{found[1]}.{_TRUST}.{side} {value}" for side in _sides(found[2])]
    if own and _has_bounds(root, found[1]):
        told += f"; of the objective that this run has: {' '.join(own)}"
    return told


def _for_run(here: PeerSetting, root: Node, stage: str) -> str:
    """The option, or where the run's objective has no bounds of its own, a method that has them."""
    if _TRUST not in here.option or _has_bounds(root, stage):
        return here.option
    if ".dual " in here.option:
        return "--objective ppo --stages.{stage}.objective.dual {value}"
    if here.option.count("--") == 2:
        return "--objective grpo --stages.{stage}.objective.clip {value}"
    side = "low" if ".low " in here.option else "high"
    return "--objective dapo --stages.{stage}.objective." + side + " {value}"


def _named_by(name: str, words: Sequence[str]) -> str:
    """Where another library's own word for a loss or an estimator is looked up."""
    from assay.objective.peers import matches

    plain = name.lower().replace("_", "-")
    peer = "trl" if plain in _LOSSES else "verl" if plain in _ESTIMATORS else ""
    found = [m for m in matches(peer) if words and m.name == words[0]] if peer else []
    if not found:
        return ""
    library = {"trl": "TRL", "verl": "verl"}[peer]
    return f"NAME is not always {library}'s word: 'assay methods --peer {peer}:{words[0]}' says what its {words[0]!r} is here"


def _sides(setting: str) -> Iterator[str]:
    yield from {"clip": ("low", "high"), "low": ("low",), "high": ("high",)}.get(setting, ())


def _has_bounds(root: Node, stage: str) -> bool:
    trust = at(root, ["stages", stage, *_TRUST.split(".")])
    return isinstance(trust, Node) and {"low", "high"} <= set(trust.fields)


def _stages(root: Node) -> dict[str, object]:
    stages = root.fields.get("stages")
    return dict(stages.fields) if isinstance(stages, Node) else {}


def _stage(root: Node) -> str:
    """The number of the stage of reinforcement learning."""
    from assay.train.reinforce import Reinforce

    found = [name for name, stage in _stages(root).items() if isinstance(stage, Node) and stage.kind is Reinforce]
    return found[0] if found else "0"

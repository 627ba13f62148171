"""The settings of a run by every name that engineers know them by: short ones, and those of TRL, verl and OpenRLHF.

The command line and `assay.recipes.on_rows` read the same two tables: `SHORT`, names that work, and `PEERS`, names that are
answered with the setting that was meant. A name is written with dashes, without those before it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

from assay.recipes.peer_settings import PEERS, PeerSetting

__all__ = ["SHORT", "PeerSetting", "keyword_of", "misnamed_keyword", "path_of", "peer_names", "peer_setting", "replacing_code"]

SHORT: dict[str, tuple[str, str]] = {
    "objective": ("algorithm", "{stage}.objective"),
    "kl": ("beta kl-coef", "{stage}.objective.kl"),
    "kl-in-reward": ("", "{stage}.objective.credit"),
    "entropy": ("entropy-coeff entropy-coef ent-coef", "{stage}.objective.terms"),
    "clip": ("epsilon clip-ratio eps-clip clip-range cliprange clip-eps", "{stage}.objective.policy.trust"),
    "epochs": ("num-iterations ppo-epochs", "{stage}.epochs"),
    "minibatches": ("", "{stage}.minibatches"),
    "lag": ("staleness", "{stage}.lag"),
    "samplers": ("", "{stage}.asynchronous.samplers"),
    "eta": ("async-steps max-staleness max-off-policy-steps max-head-offpolicyness", "{stage}.asynchronous.eta"),
    "age-policy": ("", "{stage}.asynchronous.policy"),
    "runtime": ("", "{stage}.asynchronous.runtime"),
    "keep-log": ("", "{stage}.asynchronous.keep_log"),
    "weight-updates": ("", "{stage}.asynchronous.updates"),
    "steps": ("max-steps", "{stage}.steps"),
    "groups": ("batch-size prompts-per-step", "{stage}.groups"),
    "group-size": ("num-generations", "{stage}.group_size"),
    "max-new-tokens": ("max-completion-length", "sampling.max_new_tokens"),
    "temperature": ("", "sampling.temperature"),
    "top-p": ("", "sampling.top_p"),
    "top-k": ("", "sampling.top_k"),
    "min-p": ("", "sampling.min_p"),
    "max-turns": ("max-tool-calling-iterations", "max_turns"),
    "lr": ("learning-rate", "{stage}.learner.optimizer.lr"),
    "lr-schedule": ("lr-scheduler-type", "{stage}.learner.schedule.kind"),
    "warmup-steps": ("lr-warmup-steps", "{stage}.learner.schedule.warmup"),
    "weight-decay": ("", "{stage}.learner.optimizer.weight_decay"),
    "clip-norm": ("max-grad-norm", "{stage}.learner.clip_norm"),
    "lora-rank": ("lora-r lora", "{stage}.learner.adapter.rank"),
    "lora-alpha": ("", "{stage}.learner.adapter.alpha"),
    "micro-tokens": ("", "{stage}.learner.micro_tokens"),
    "precision": ("", "{stage}.learner.precision"),
    "gradient-checkpointing": ("", "{stage}.learner.checkpointing"),
    "device": ("", "{stage}.learner.device"),
    "model": ("model-name-or-path", "model"),
    "seed": ("", "seed"),
    "threads": ("", "threads"),
    "eval-every": ("eval-steps", "evaluation.every"),
    "checkpoint-every": ("save-steps", "checkpoint_every"),
    "keep-checkpoints": ("save-total-limit keep-last", "keep_checkpoints"),
}
"""Short name of a setting to its other names, which mean the same, and its place in a run."""

_KEYWORDS = {"lr": "learning_rate", "lora-rank": "lora", "reward-weights": "weights"}
"""Keywords of `on_rows` that are not the short name itself."""

_IN_PYTHON = {
    "kl-in-reward": "objective=replace(objective, credit=(KlInReward(coef=...), *objective.credit)), of assay.objective",
    "entropy": "objective=replace(objective, terms=(*objective.terms, Entropy(coef=...))), of assay.objective",
    "clip": "objective=grpo(clip=...), of assay.objective.methods",
}
"""Short names that are no single place in a run: what stands for them in Python."""

_FIRST = {name: first for first, (others, _) in SHORT.items() for name in (first, *others.split())}


_BY_NAME = {name: here for here, names in PEERS for name in names.split()}


def peer_setting(name: str) -> PeerSetting | None:
    """What a name of another trainer is here; None where it is no such name.

    >>> peer_setting("data.train_batch_size").option, peer_setting("stages.0.groups")
    ('--groups {value}', None)
    """
    return _BY_NAME.get(_with_dashes(name))


def peer_names() -> tuple[str, ...]:
    """All names of other trainers that are not the short name of a setting."""
    return tuple(_BY_NAME)


def keyword_of(name: str, keywords: Collection[str]) -> str | None:
    """The keyword that a name means without any change of its value; None where there is none.

    Args:
        name: a short name of a setting, or one of its other names, with dashes or underscores.
        keywords: of the function.

    >>> keyword_of("num_generations", ["group_size"]), keyword_of("lr", ["learning_rate"]), keyword_of("epsilon", ["group_size"])
    ('group_size', 'learning_rate', None)
    """
    word = _with_dashes(name)
    first = _FIRST.get(word, word)
    found = _KEYWORDS.get(first, first.replace("-", "_"))
    return found if found in keywords and (word in _FIRST or word in _KEYWORDS) else None


def path_of(name: str, stage: int = 0) -> str | None:
    """The place in a run of the setting that a name means; None where it has no single one.

    >>> path_of("num_iterations"), path_of("save_freq"), path_of("epsilon")
    ('stages.0.epochs', 'checkpoint_every', None)
    """
    word = _with_dashes(name)
    if _FIRST.get(word) in _IN_PYTHON:
        return None
    if word not in _FIRST:
        peer = _BY_NAME.get(word)
        flags = [w[2:] for w in peer.option.split() if w.startswith("--")] if peer and not peer.python else []
        if len(flags) != 1 or (flags[0] not in _FIRST and "." not in flags[0] and flags[0] != "name"):
            return None
        word = flags[0]
        if _FIRST.get(word) in _IN_PYTHON:
            return None
    path = SHORT[_FIRST[word]][1] if word in _FIRST else word.replace("stages.{stage}", "{stage}")
    if ".asynchronous." in path:  # of a part that is not there by default: `misnamed_keyword` says how to put it there
        return None
    return path.format(stage=f"stages.{stage}")


def replacing_code(path: str, value: str = "...") -> str:
    """The expression that makes a run with another value at a place.

    >>> replacing_code("sampling.top_p", "0.9")
    'replace_at(run, "sampling.top_p", 0.9)'
    """
    return f'replace_at(run, "{path}", {value})'


def misnamed_keyword(name: str, keywords: Collection[str]) -> str:
    """What to say of a keyword that a function lacks, whose run has one stage: the one that was meant, or where it is set.

    >>> print(misnamed_keyword("n_samples_per_prompt", ["group_size"]))
    n_samples_per_prompt is another library's name; here it is the keyword group_size
    >>> misnamed_keyword("learning_rat", ["learning_rate"])
    'there is no keyword learning_rat; did you mean learning_rate?'
    """
    from assay.core.errors import nearest

    peer, path, place = peer_setting(name), path_of(name), f"{name} is no keyword"
    flags = [w[2:] for w in peer.option.split() if w.startswith("--")] if peer else []
    found = [k for flag in flags if (k := keyword_of(flag, keywords))]
    known = f"{name} is another library's name; here it is"
    short = _FIRST.get(_with_dashes(name), "")
    if short in _IN_PYTHON:
        return f"{known if short != _with_dashes(name) else f'{place}; here it is'} {_IN_PYTHON[short]}"
    if peer and peer.python in keywords:
        return f"{known} the argument {peer.python}"
    if peer and found and len(found) == len(flags):
        more = f" ({peer.says})" if peer.says else ""
        return f"{known} the keyword{'s' if len(found) > 1 else ''} {' and '.join(found)}{more}"
    if peer and peer.python:
        return f"{known} {peer.python}"
    if beside := [flag for flag in [*flags, _with_dashes(name)] if flag in _FIRST and ".asynchronous." in SHORT[_FIRST[flag]][1]]:
        setting = SHORT[_FIRST[beside[0]]][1].rpartition(".")[2]
        part = replacing_code("stages.0.asynchronous", f"Asynchronous({setting}=...)")
        return f"{place}; set it on the run: from assay.asynchronous import Asynchronous; run = {part}"
    if path:
        more = f" ({peer.says})" if peer and peer.says else ""
        return f"{place}; set it on the run{more}: from assay.core.config import replace_at; run = {replacing_code(path)}"
    if peer and flags and all("." in flag for flag in flags):
        settings = " and ".join(flag.replace("{stage}", "0").replace("{term}", "0") for flag in flags)
        return f"{place}; set it on the run: {settings}"
    if peer:
        return f"{place}: {peer.says or peer.option}"
    if held := _field_path(name):
        return f"{place}; set it on the run: from assay.core.config import replace_at; run = {replacing_code(held)}"
    if name in _OF_TRAIN:
        return f"{place} of this function; train(run, folder) takes it: {_OF_TRAIN[name]}"
    named = {word: keyword_of(word, keywords) for word in (n.replace("-", "_") for n in _FIRST)}
    close = nearest(name, [*keywords, *(word for word, keyword in named.items() if keyword)])
    real = (named.get(close) or close) if close else None
    return f"there is no keyword {name}; " + (f"did you mean {real}?" if real else f"known: {', '.join(keywords)}")


_OF_TRAIN = {
    "folder": 'train(run, "runs/NAME")',
    "progress": "train(run, folder, progress=True)",
    "trackers": "train(run, folder, trackers=(...,))",
    "callbacks": "train(run, folder, callbacks=(...,))",
}
"""Arguments of `assay.train.train` that are looked for in a run."""


def _field_path(name: str) -> str | None:
    """The place in a run of the field that has a name, in the run itself or in its one stage; None where none has."""
    from assay.train.reinforce import Reinforce
    from assay.train.run import Run

    for start, settings in (("", Run), ("stages.0.", Reinforce)):
        if name in {f.name for f in fields(settings)}:
            return start + name
    return None


def _with_dashes(name: str) -> str:
    return name.lower().replace("_", "-")

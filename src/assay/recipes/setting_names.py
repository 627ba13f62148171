"""The settings of a run by every name that engineers know them by: short ones, and those of TRL, verl and OpenRLHF.

The command line and `assay.recipes.on_rows` read the same two tables: `SHORT`, names that work, and `_PEERS`, names that are
answered with the setting that was meant. A name is written with dashes, without those before it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["SHORT", "PeerSetting", "keyword_of", "misnamed_keyword", "path_of", "peer_names", "peer_setting", "replacing_code"]

SHORT: dict[str, tuple[str, str]] = {
    "objective": ("algorithm", "{stage}.objective"),
    "kl": ("beta kl-coef", "{stage}.objective.kl"),
    "epochs": ("num-iterations ppo-epochs", "{stage}.epochs"),
    "minibatches": ("", "{stage}.minibatches"),
    "lag": ("staleness", "{stage}.lag"),
    "samplers": ("", "{stage}.asynchronous.samplers"),
    "eta": ("async-steps max-staleness max-off-policy-steps max-head-offpolicyness", "{stage}.asynchronous.eta"),
    "age-policy": ("", "{stage}.asynchronous.policy"),
    "runtime": ("", "{stage}.asynchronous.runtime"),
    "keep-log": ("", "{stage}.asynchronous.keep_log"),
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
}
"""Short name of a setting to its other names, which mean the same, and its place in a run."""

_KEYWORDS = {"lr": "learning_rate", "lora-rank": "lora", "reward-weights": "weights"}
"""Keywords of `on_rows` that are not the short name itself."""

_FIRST = {name: first for first, (others, _) in SHORT.items() for name in (first, *others.split())}


@dataclass(frozen=True, slots=True)
class PeerSetting:
    """What a name of another trainer is here.

    Attributes:
        option: as one types it: ``{stage}`` is the number of the stage, ``{term}`` that of a new term, ``{value}`` what the name
            was given; a word in capitals stands for a value that has to be chosen. Empty where there is nothing to set.
        says: what else there is to know.
        python: where it stands in Python, if that is not the place of ``option`` in a run.
    """

    option: str
    says: str = ""
    python: str = ""


_LOW, _HIGH = ("--stages.{stage}.objective.policy.trust." + side + " {value}" for side in ("low", "high"))
_CLIP = "objective=dapo(low=..., high=...), of assay.objective.methods"
_BOUNDS = "distance of the ratio's bounds from 1, below and above"

_PEERS: tuple[tuple[PeerSetting, str], ...] = (
    (
        PeerSetting(
            "--objective NAME", "NAME is another word here: 'assay methods --peer trl' lists TRL's with what each is here"
        ),
        "loss-type importance-sampling-level scale-rewards",
    ),
    (
        PeerSetting("--objective NAME", "'assay methods --peer verl' and '--peer openrlhf' list what each name is here"),
        """advantage-estimator algo.advantage.estimator algorithm.adv-estimator actor.policy-loss-type
        actor-rollout-ref.actor.policy-loss.loss-mode adv-estimator algo method loss policy-loss
        actor-rollout-ref.actor.loss-agg-mode loss-agg-mode algorithm.norm-adv-by-std-in-grpo""",
    ),
    (
        PeerSetting("--groups {value}", "prompts per step"),
        """rollout-batch-size rollout.batch-size data.train-batch-size data.gen-batch-size num-prompts-per-step num-prompts""",
    ),
    (
        PeerSetting("--group-size {value}"),
        """n-samples-per-prompt rollout.n-samples-per-prompt actor-rollout-ref.rollout.n rollout.n num-samples
        samples-per-prompt n-samples num-return-sequences""",
    ),
    (
        PeerSetting("--groups PROMPTS --group-size ROLLOUTS", "a step has groups * group-size rollouts"),
        """per-device-train-batch-size generation-batch-size train-batch-size train.batch-size per-device-batch-size""",
    ),
    (
        PeerSetting("--minibatches COUNT", "how many parts of a step get an optimiser step each"),
        """actor-rollout-ref.actor.ppo-mini-batch-size ppo-mini-batch-size mini-batch-size num-mini-batches
        steps-per-generation""",
    ),
    (
        PeerSetting("--micro-tokens TOKENS", "tokens of a micro-batch; nothing has to be accumulated by hand"),
        """gradient-accumulation-steps micro-batch-size micro-train-batch-size train.micro-batch-size
        actor-rollout-ref.actor.ppo-micro-batch-size actor-rollout-ref.actor.ppo-micro-batch-size-per-gpu
        actor-rollout-ref.actor.ppo-max-token-len-per-gpu train.max-tokens-per-gpu ppo-micro-batch-size-per-gpu""",
    ),
    (
        PeerSetting("--epochs {value}", "passes over the rollouts of a step"),
        """num-ppo-epochs actor-rollout-ref.actor.ppo-epochs max-epochs train.max-epochs""",
    ),
    (
        PeerSetting("--steps COUNT", "a run is as long as its steps, whatever the number of prompts"),
        """num-train-epochs num-episodes train.num-episodes trainer.total-epochs trainer.total-training-steps total-episodes
        total-training-steps total-steps num-steps training-steps train-steps iterations""",
    ),
    (
        PeerSetting("--lr {value}"),
        "actor-learning-rate actor.adam.lr actor-rollout-ref.actor.optim.lr actor.lr optim.lr alpha",
    ),
    (
        PeerSetting("--lr-schedule WORD", "constant, linear or cosine, with --warmup-steps"),
        """lr-scheduler actor-rollout-ref.actor.optim.lr-scheduler-type actor-rollout-ref.actor.optim.warmup-style scheduler""",
    ),
    (
        PeerSetting("--warmup-steps COUNT", "steps up to the full rate"),
        """warmup-ratio lr-warmup-ratio actor-rollout-ref.actor.optim.lr-warmup-steps
        actor-rollout-ref.actor.optim.lr-warmup-steps-ratio warmup""",
    ),
    (PeerSetting("--weight-decay {value}"), "actor-rollout-ref.actor.optim.weight-decay l2 wd"),
    (
        PeerSetting("--clip-norm {value}"),
        """max-norm grad-clip gradient-clip actor-rollout-ref.actor.grad-clip actor-rollout-ref.actor.optim.clip-grad
        clip-grad""",
    ),
    (
        PeerSetting("--kl COEFFICIENT", "0 leaves the divergence out"),
        """init-kl-coef algo.kl.init-coef kl-loss-coef actor-rollout-ref.actor.kl-loss-coef
        actor-rollout-ref.actor.use-kl-loss algorithm.kl-ctrl.kl-coef algorithm.use-kl-in-reward use-kl-loss kl-coeff kl-penalty
        kl-weight kl-ctrl""",
    ),
    (
        PeerSetting(f"{_LOW} {_HIGH}", _BOUNDS, "objective=grpo(clip=...), of assay.objective.methods"),
        """epsilon eps-clip clip-ratio actor-rollout-ref.actor.clip-ratio cliprange clip-eps actor.eps-clip clip-range clip""",
    ),
    (
        PeerSetting(_LOW, f"{_BOUNDS}: this one is below", _CLIP),
        "epsilon-low clip-ratio-low actor-rollout-ref.actor.clip-ratio-low",
    ),
    (
        PeerSetting(_HIGH, f"{_BOUNDS}: this one is above", _CLIP),
        "epsilon-high clip-ratio-high actor-rollout-ref.actor.clip-ratio-high",
    ),
    (
        PeerSetting("--stages.{stage}.objective.policy.trust.dual {value}", "cap of the ratio where the advantage is negative"),
        "delta clip-ratio-c actor-rollout-ref.actor.clip-ratio-c",
    ),
    (
        PeerSetting(
            f"{_LOW.replace('{value}', 'LOW')} {_HIGH.replace('{value}', 'HIGH')}",
            _BOUNDS,
        ),
        "actor.eps-clip-low-high eps-clip-low-high",
    ),
    (
        PeerSetting("--objective ppo --stages.{stage}.objective.gamma {value}", "of methods with returns, as ppo"),
        "gamma algorithm.gamma algo.advantage.gamma",
    ),
    (
        PeerSetting("--objective ppo --stages.{stage}.objective.lam {value}", "of methods with returns, as ppo"),
        "lambd lam gae-lambda algorithm.lam algo.advantage.lambd",
    ),
    (
        PeerSetting(
            "--stages.{stage}.objective.terms.{term}.kind Entropy --stages.{stage}.objective.terms.{term}.coef {value}",
            "a term of the loss",
            "on_rows(..., objective=replace(objective, terms=(*objective.terms, Entropy(coef=...)))), of assay.objective",
        ),
        """entropy-coef entropy-coeff actor-rollout-ref.actor.entropy-coeff actor.entropy-coef ent-coef""",
    ),
    (
        PeerSetting("--max-new-tokens {value}"),
        """generate-max-len max-tokens response-length max-response-length data.max-response-length
        rollout.max-new-tokens max-gen-len max-new-token max-length max-len completion-length""",
    ),
    (
        PeerSetting("", "nothing to set: a prompt that does not fit the model's context is refused before the run"),
        "max-prompt-length prompt-max-len data.max-prompt-length",
    ),
    (PeerSetting("--temperature {value}"), "actor-rollout-ref.rollout.temperature rollout.temperature temp"),
    (PeerSetting("--top-p {value}"), "actor-rollout-ref.rollout.top-p rollout.top-p"),
    (PeerSetting("--top-k {value}"), "actor-rollout-ref.rollout.top-k"),
    (PeerSetting("--max-turns {value}"), "actor-rollout-ref.rollout.multi-turn.max-assistant-turns"),
    (
        PeerSetting("--model {value}"),
        """pretrain actor.model-name-or-path actor-rollout-ref.model.path model-path base-model model-name pretrained""",
    ),
    (
        PeerSetting("", "the recipe's tasks; for rows of your own: assay train ROWS.jsonl --reward FILE.py:FUNCTION", "rows"),
        """dataset-name data.train-files prompt-data dataset train-dataset data.prompt-dataset train-file""",
    ),
    (
        PeerSetting("", "the recipe's reward; for rows of your own: assay train ROWS.jsonl --reward FILE.py:FUNCTION", "reward"),
        "reward-funcs reward-fn reward-func reward-model-path",
    ),
    (
        PeerSetting(
            "", "the recipe's evaluation; for rows of your own: assay train ROWS.jsonl --evaluate ROWS.jsonl", "evaluate"
        ),
        "eval-dataset",
    ),
    (
        PeerSetting("", "in Python, on_rows(rows, [f, g], weights=[...]) or on_rows(rows, {'f': f, 'g': (g, 0.2)})", "weights"),
        "reward-weights",
    ),
    (PeerSetting("--lora-rank RANK"), "ds.lora.rank use-peft rank actor-rollout-ref.model.lora-rank peft-config"),
    (PeerSetting("--lora-alpha {value}"), "ds.lora.alpha actor-rollout-ref.model.lora-alpha"),
    (
        PeerSetting(
            "--stages.{stage}.learner.adapter.kind Lora --stages.{stage}.learner.adapter.targets LAYERS",
            "last parts of the layers' names, as q_proj v_proj",
            "lora=Lora(rank=..., targets=(...)), of assay.runtime",
        ),
        """lora-target-modules target-modules ds.lora.target-modules actor-rollout-ref.model.target-modules""",
    ),
    (PeerSetting("--precision bf16"), "bf16 fp16 dtype mixed-precision torch-dtype"),
    (
        PeerSetting("--gradient-checkpointing"),
        "actor.gradient-checkpointing-enable actor-rollout-ref.model.enable-gradient-checkpointing",
    ),
    (
        PeerSetting("--engine.kind VllmSettings", "the default, 'auto', takes vLLM where it fits", "engine=VllmSettings(...)"),
        "use-vllm vllm-mode vllm vllm-num-engines actor-rollout-ref.rollout.name rollout.name",
    ),
    (
        PeerSetting("--mesh.data COUNT"),
        "trainer.n-gpus-per-node n-gpus-per-node num-gpus num-processes nproc-per-node world-size",
    ),
    (
        PeerSetting("--folder {value}", "", "the second argument of assay.train.train(run, folder)"),
        """save-path ckpt.output-dir ckpt-path trainer.default-local-dir logdir log-dir save-dir output output-dir run-dir""",
    ),
    (
        PeerSetting("--checkpoint-every {value}"),
        "save-freq trainer.save-freq ckpt.save-steps save-interval save-every checkpoint-interval",
    ),
    (PeerSetting("--eval-every {value}"), "test-freq trainer.test-freq eval.steps eval-interval eval-freq"),
    (
        PeerSetting("", "nothing to set: every step is in metrics.jsonl; --tracker sends it further"),
        "logging-steps logger.logging-steps log-completions",
    ),
    (
        PeerSetting("--tracker wandb", "or tensorboard, trackio, mlflow", "trackers=WandbTracker() of assay.train.train"),
        "report-to use-wandb trainer.logger logger.wandb.key",
    ),
    (
        PeerSetting("--tracker wandb --tracker.project {value}", "", "WandbTracker(project=...)"),
        "trainer.project-name wandb-project logger.wandb.project",
    ),
    (
        PeerSetting("--tracker wandb --tracker.entity {value}", "", "WandbTracker(entity=...)"),
        "wandb-entity logger.wandb.entity wandb-org",
    ),
    (
        PeerSetting("--tracker wandb --tracker.group {value}", "", "WandbTracker(group=...)"),
        "wandb-group logger.wandb.group",
    ),
    (PeerSetting("--name {value}"), "run-name experiment-name trainer.experiment-name logger.wandb.run-name"),
    (PeerSetting("--seed {value}"), "train.seed data-seed random-seed"),
    (
        PeerSetting("--samplers {value}", "processes that sample beside learning"),
        "async train.async-enable async-training trainer.nnodes-rollout rollout.nnodes",
    ),
    (PeerSetting("--eta {value}", "greatest age in steps"), "staleness-threshold async-training.staleness-threshold"),
    (PeerSetting("--samplers 1 --age-policy continue"), "partial-rollout async-training.partial-rollout"),
    (PeerSetting("", "no setting: samplers get every step's weights"), "async-training.trigger-parameter-sync-step"),
    (
        PeerSetting(
            "--stages.{stage}.filter.kind Mixed --stages.{stage}.refill.kind Refill",
            "--objective dapo alone leaves such groups out and draws no others",
            'replace_at(replace_at(run, "stages.0.filter", Mixed()), "stages.0.refill", Refill()), of assay.guide',
        ),
        "dynamic-sampling filter-groups algorithm.filter-groups.enable algo.dynamic-filtering-enable",
    ),
    (
        PeerSetting("", "a command: assay resume RUN", "assay.train.resume(folder)"),
        "resume resume-from-checkpoint ckpt.load-enable trainer.resume-mode",
    ),
)
_BY_NAME = {name: here for here, names in _PEERS for name in names.split()}


def peer_setting(name: str) -> PeerSetting | None:
    """What a name of another trainer is here; None where it is no such name.

    >>> peer_setting("data.train_batch_size").option, peer_setting("stages.0.groups")
    ('--groups {value}', None)
    """
    return _BY_NAME.get(_dashed(name))


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
    word = _dashed(name)
    first = _FIRST.get(word, word)
    found = _KEYWORDS.get(first, first.replace("-", "_"))
    return found if found in keywords and (word in _FIRST or word in _KEYWORDS) else None


def path_of(name: str, stage: int = 0) -> str | None:
    """The place in a run of the setting that a name means; None where it has no single one.

    >>> path_of("num_iterations"), path_of("save_freq"), path_of("epsilon")
    ('stages.0.epochs', 'checkpoint_every', None)
    """
    word = _dashed(name)
    if word not in _FIRST:
        peer = _BY_NAME.get(word)
        flags = [w[2:] for w in peer.option.split() if w.startswith("--")] if peer and not peer.python else []
        if len(flags) != 1 or (flags[0] not in _FIRST and "." not in flags[0] and flags[0] != "name"):
            return None
        word = flags[0]
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
    if peer and peer.python in keywords:
        return f"{known} the argument {peer.python}"
    if peer and found and len(found) == len(flags):
        more = f" ({peer.says})" if peer.says else ""
        return f"{known} the keyword{'s' if len(found) > 1 else ''} {' and '.join(found)}{more}"
    if peer and peer.python:
        return f"{known} {peer.python}"
    if beside := [flag for flag in [*flags, _dashed(name)] if flag in _FIRST and ".asynchronous." in SHORT[_FIRST[flag]][1]]:
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
    close = nearest(name, [*keywords, *(n.replace("-", "_") for n in _FIRST)])
    real = (keyword_of(close, keywords) or close) if close else None
    return f"there is no keyword {name}; " + (f"did you mean {real}?" if real else f"known: {', '.join(keywords)}")


def _dashed(name: str) -> str:
    return name.lower().replace("_", "-")

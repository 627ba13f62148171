"""What other trainers call the settings of a run, and what they are called here: TRL, verl, OpenRLHF.

Names that mean the same and are the same word are aliases (`assay.cli.aliases`). The others are here, so that a wrong option is
answered with the right one; a name is written with dashes, without those before it.
"""

from __future__ import annotations

__all__ = ["peer_names", "peer_option"]

_SAME = {
    "--objective NAME": """loss-type importance-sampling-level advantage-estimator algo.advantage.estimator
        algorithm.adv-estimator actor.policy-loss-type
        actor-rollout-ref.actor.policy-loss.loss-mode adv-estimator algo method loss policy-loss
        actor-rollout-ref.actor.loss-agg-mode loss-agg-mode scale-rewards algorithm.norm-adv-by-std-in-grpo""",
    "--groups (prompts per step)": """rollout-batch-size rollout.batch-size data.train-batch-size data.gen-batch-size
        num-prompts-per-step num-prompts""",
    "--group-size": """n-samples-per-prompt rollout.n-samples-per-prompt actor-rollout-ref.rollout.n rollout.n num-samples
        samples-per-prompt n-samples num-return-sequences""",
    "--groups and --group-size: a step has groups * group-size rollouts": """per-device-train-batch-size generation-batch-size
        train-batch-size train.batch-size per-device-batch-size""",
    "--minibatches: how many parts of a step get an optimiser step each": """actor-rollout-ref.actor.ppo-mini-batch-size
        ppo-mini-batch-size mini-batch-size num-mini-batches steps-per-generation""",
    "--micro-tokens: tokens of a micro-batch; nothing has to be accumulated by hand": """gradient-accumulation-steps
        micro-batch-size micro-train-batch-size train.micro-batch-size actor-rollout-ref.actor.ppo-micro-batch-size
        actor-rollout-ref.actor.ppo-micro-batch-size-per-gpu actor-rollout-ref.actor.ppo-max-token-len-per-gpu
        train.max-tokens-per-gpu ppo-micro-batch-size-per-gpu""",
    "--epochs (passes over the rollouts of a step)": """num-ppo-epochs actor-rollout-ref.actor.ppo-epochs max-epochs
        train.max-epochs""",
    "--steps: a run is as long as its steps, whatever the number of prompts": """num-train-epochs num-episodes train.num-episodes
        trainer.total-epochs trainer.total-training-steps total-episodes total-training-steps total-steps num-steps
        training-steps train-steps iterations""",
    "--lr": """actor-learning-rate actor.adam.lr actor-rollout-ref.actor.optim.lr actor.lr optim.lr alpha""",
    "--lr-schedule": """lr-scheduler actor-rollout-ref.actor.optim.lr-scheduler-type actor-rollout-ref.actor.optim.warmup-style
        scheduler""",
    "--warmup-steps": """warmup-ratio lr-warmup-ratio actor-rollout-ref.actor.optim.lr-warmup-steps
        actor-rollout-ref.actor.optim.lr-warmup-steps-ratio warmup""",
    "--weight-decay": """actor-rollout-ref.actor.optim.weight-decay l2 wd""",
    "--clip-norm": """max-norm grad-clip gradient-clip actor-rollout-ref.actor.grad-clip actor-rollout-ref.actor.optim.clip-grad
        clip-grad""",
    "--kl": """init-kl-coef algo.kl.init-coef kl-loss-coef actor-rollout-ref.actor.kl-loss-coef
        actor-rollout-ref.actor.use-kl-loss algorithm.kl-ctrl.kl-coef algorithm.use-kl-in-reward use-kl-loss kl-coeff kl-penalty
        kl-weight kl-ctrl""",
    "--stages.N.objective.clip or .low and .high, settings of the method: 'assay methods NAME' lists them": """epsilon
        epsilon-high epsilon-low eps-clip
        clip-ratio clip-ratio-low clip-ratio-high actor-rollout-ref.actor.clip-ratio cliprange clip-eps
        actor-rollout-ref.actor.clip-ratio-low actor-rollout-ref.actor.clip-ratio-high actor.eps-clip actor.eps-clip-low-high
        clip-range delta clip""",
    "--stages.N.objective.gamma and .lam, settings of methods with returns, as ppo": """gamma lambd lam gae-lambda
        algorithm.gamma algorithm.lam algo.advantage.gamma algo.advantage.lambd""",
    "--stages.N.objective.terms.K.kind Entropy with .coef, or --objective grpo_entropy": """entropy-coef entropy-coeff
        actor-rollout-ref.actor.entropy-coeff actor.entropy-coef ent-coef""",
    "--max-new-tokens": """generate-max-len max-tokens response-length max-response-length data.max-response-length
        rollout.max-new-tokens max-gen-len max-new-token max-length max-len completion-length""",
    "nothing to set: a prompt that does not fit the model's context is refused before the run": """max-prompt-length
        prompt-max-len data.max-prompt-length""",
    "--temperature": """actor-rollout-ref.rollout.temperature rollout.temperature temp""",
    "--top-p": """actor-rollout-ref.rollout.top-p rollout.top-p""",
    "--top-k": """actor-rollout-ref.rollout.top-k""",
    "--max-turns": """actor-rollout-ref.rollout.multi-turn.max-assistant-turns""",
    "--model PATH": """pretrain actor.model-name-or-path actor-rollout-ref.model.path model-path base-model model-name
        pretrained""",
    "the recipe's tasks, or on_rows for rows of your own": """dataset-name data.train-files prompt-data dataset
        data.prompt-dataset train-file reward-funcs reward-model-path""",
    "--lora-rank": """ds.lora.rank use-peft rank actor-rollout-ref.model.lora-rank lora""",
    "--lora-alpha": """ds.lora.alpha actor-rollout-ref.model.lora-alpha""",
    "--stages.N.learner.adapter.targets": """lora-target-modules target-modules ds.lora.target-modules
        actor-rollout-ref.model.target-modules""",
    "--precision bf16": """bf16 fp16 dtype mixed-precision torch-dtype""",
    "--gradient-checkpointing": """actor.gradient-checkpointing-enable actor-rollout-ref.model.enable-gradient-checkpointing""",
    "--engine.kind VllmSettings; 'auto' takes it where it fits": """use-vllm vllm-mode vllm vllm-num-engines
        actor-rollout-ref.rollout.name rollout.name""",
    "--mesh.data N": """trainer.n-gpus-per-node n-gpus-per-node num-gpus num-processes nproc-per-node world-size""",
    "--folder": """save-path ckpt.output-dir ckpt-path trainer.default-local-dir logdir log-dir save-dir output run-dir""",
    "--checkpoint-every": """save-freq trainer.save-freq ckpt.save-steps save-interval save-every checkpoint-interval""",
    "--eval-every": """test-freq trainer.test-freq eval.steps eval-interval eval-freq""",
    "nothing to set: every step is in metrics.jsonl; --tracker sends it further": """logging-steps
        logger.logging-steps log-completions""",
    "--tracker wandb, tensorboard, trackio or mlflow": """report-to use-wandb trainer.logger logger.wandb.key""",
    "--tracker.project": """trainer.project-name wandb-project logger.wandb.project""",
    "--tracker.entity": """wandb-entity logger.wandb.entity wandb-org""",
    "--tracker.group": """wandb-group logger.wandb.group""",
    "--name": """run-name experiment-name trainer.experiment-name logger.wandb.run-name""",
    "--seed": """train.seed data-seed random-seed""",
    "--stages.N.lag": """async train.async-enable async-steps max-staleness""",
    "--stages.N.refill.kind Refill with --stages.N.filter.kind, or a recipe of 'assay papers show dapo'": """dynamic-sampling
        algorithm.filter-groups.enable algo.dynamic-filtering-enable""",
    "'assay resume RUN'": """resume resume-from-checkpoint ckpt.load-enable trainer.resume-mode""",
}
_BY_NAME = {name: here for here, names in _SAME.items() for name in names.split()}


def peer_option(name: str) -> str | None:
    """What a name of another trainer is here; None where it is no such name.

    >>> peer_option("data.train_batch_size"), peer_option("stages.0.groups")
    ('--groups (prompts per step)', None)
    """
    return _BY_NAME.get(name.lower().replace("_", "-"))


def peer_names() -> tuple[str, ...]:
    """All names."""
    return tuple(_BY_NAME)

"""Slips that engineers make who know other trainers, each with the option that is suggested, or that simply works."""

import pytest

from assay.cli.given_options import split_options
from assay.cli.option_names import unknown_option
from assay.cli.part_tree import take
from assay.cli.run_settings import HELPS, name_own
from assay.cli.train_options import TrainOptions
from assay.recipes import quickstart

WORKS = {
    "--out x": "folder",
    "--output_dir x": "folder",
    "--output-dir=x": "folder",
    "--lr 1e-4": "stages.0.learner.optimizer.lr",
    "--learning_rate 1e-4": "stages.0.learner.optimizer.lr",
    "--batch-size 4": "stages.0.groups",
    "--num_generations 4": "stages.0.group_size",
    "--max_steps 3": "steps",
    "--max_completion_length 8": "sampling.max_new_tokens",
    "--max_new_tokens 8": "sampling.max_new_tokens",
    "--beta 0.1": "stages.0.objective.terms.0.coef",
    "--num_iterations 2": "stages.0.epochs",
    "--max_grad_norm 0.5": "stages.0.learner.clip_norm",
    "--lr_scheduler_type cosine": "stages.0.learner.schedule.kind",
    "--warmup_steps 5": "stages.0.learner.schedule.warmup",
    "--lora_r 8": "stages.0.learner.adapter.rank",
    "--eval_steps 5": "evaluation.every",
    "--save_steps 5": "checkpoint_every",
    "--save_total_limit 2": "keep_checkpoints",
    "--model_name_or_path m": "model.path",
    "--gradient_checkpointing": "stages.0.learner.checkpointing",
    "--epsilon 0.2": "stages.0.objective.policy.trust.high",
    "--eps_clip 0.2": "stages.0.objective.policy.trust.high",
    "--entropy_coeff 0.01": "stages.0.objective.terms.0.coef",
}
"""What may be written as it is elsewhere, and the setting that it is."""

SLIPS = {
    "--objectve gspo": "--objective",
    "--Objective gspo": "--objective",
    "--LR 1e-4": "--lr",
    "--lrr 1e-4": "--lr",
    "--learning-rat 1e-4": "--learning-rate",
    "--leaning-rate 1e-4": "--learning-rate",
    "--groupsize 4": "--group-size",
    "--group_sise 4": "--group-size",
    "--num-generation 4": "--num-generations",
    "--batchsize 4": "--batch-size",
    "--max-new-token 9": "--max-new-tokens",
    "--temprature 1": "--temperature",
    "--Temperature 1": "--temperature",
    "--max-step 3": "--max-steps",
    "--step 3": "--steps",
    "--setps 3": "--steps",
    "--sed 3": "--seed",
    "--lora-rnak 8": "--lora-rank",
    "--devise cuda": "--device",
    "--foldr x": "--folder",
    "--num_rollouts 8": "--group-size",
    "--rollouts-per-prompt 8": "--group-size",
    "--clip_high 0.3": "--stages.0.objective.policy.trust.high",
    "--clip_low 0.2": "--stages.0.objective.policy.trust.low",
    "--bs 8": "--groups",
    "--gpu 0": "--device",
    "--cuda": "--device",
    "--rate 1e-4": "--lr",
    "--num_epochs 2": "--steps",
    "--output x": "--folder",
    "--ouput-dir x": "--output-dir",
    "--plan": "--plain",
    "--no-reprot": "--no-report",
    "-lr 1e-4": "--lr",
    "--stages.0.grups 3": "--stages.0.groups",
    "--stage.0.groups 3": "--stages.0.groups",
    "--stages.0.lr 1e-4": "--stages.0.learner.optimizer.lr",
    "--optimizer.lr 1e-4": "--stages.0.learner.optimizer.lr",
    "--sampling.temp 1": "--sampling.temperature",
    "--loss_type dapo": "--objective",
    "--advantage_estimator gae": "--objective",
    "--algorithm.adv_estimator grpo": "--objective",
    "algorithm.adv_estimator=grpo": "--objective",
    "actor_rollout_ref.rollout.n=8": "--group-size",
    "actor_rollout_ref.actor.optim.lr=1e-6": "--lr",
    "data.train_batch_size=256": "--groups",
    "data.max_response_length=256": "--max-new-tokens",
    "actor_rollout_ref.actor.kl_loss_coef=0.001": "--kl",
    "actor_rollout_ref.actor.ppo_mini_batch_size=64": "--minibatches",
    "actor_rollout_ref.model.path=Qwen/Qwen3-0.6B": "--model",
    "trainer.total_epochs=3": "--steps",
    "--total_epochs 3": "--steps",
    "trainer.val_before_train=False": "evaluated before its first step",
    "data.max_prompt_length=512": "refused before the run",
    "actor_rollout_ref.actor.clip_ratio_c=3.0": "--stages.0.objective.policy.trust.dual 3.0",
    "trainer.logger=['console','wandb']": "--tracker",
    "data.truncation=error": "--long-prompts skip",
    "data.filter_overlong_prompts=True": "--long-prompts skip",
    "data.shuffle=False": "--seed",
    "trainer.nnodes=2": "on one machine",
    "actor_rollout_ref.actor.kl_loss_type=low_var_kl": "estimator",
    "actor_rollout_ref.actor.clip_ratio_low=0.2": "--clip LOW HIGH",
    "algorithm.norm_adv_by_std_in_grpo=False": "--stages.0.objective.credit.1.kind none",
    "actor_rollout_ref.actor.loss_agg_mode=token-mean": "--stages.0.objective.aggregate.kind",
    "--n_samples_per_prompt 8": "--group-size",
    "--rollout_batch_size 64": "--groups",
    "--init_kl_coef 0.01": "--kl-in-reward",
    "algorithm.use_kl_in_reward=True": "--kl-in-reward",
    "algorithm.kl_ctrl.kl_coef=0.001": "--kl-in-reward",
    "actor_rollout_ref.actor.entropy_coeff=0.001": "--entropy",
    "actor_rollout_ref.actor.clip_ratio=0.2": "--clip",
    "actor_rollout_ref.rollout.name=vllm": "--engine.kind VllmSettings",
    "--tensor_model_parallel_size 2": "'vllm serve'",
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.4": "--gpu-memory-utilization",
    "actor_rollout_ref.actor.fsdp_config.param_offload=True": "not here",
    "trainer.max_actor_ckpt_to_keep=2": "--keep-checkpoints 2",
    "reward_model.reward_manager=naive": "--reward FILE.py:FUNCTION",
    "actor_rollout_ref.rollout.val_kwargs.n=4": "--evaluation.n",
    "--actor_learning_rate 1e-6": "--lr",
    "--generate_max_len 64": "--max-new-tokens",
    "--per_device_train_batch_size 8": "--groups PROMPTS --group-size ROLLOUTS",
    "--gradient_accumulation_steps 4": "--micro-tokens",
    "--num_train_epochs 1": "--steps",
    "--bf16": "--precision bf16",
    "--report_to wandb": "--tracker wandb",
    "--use_vllm": "--engine.kind VllmSettings",
    "--run_name x": "--name",
    "--pretrain m": "--model",
    "--logging_steps 1": "metrics.jsonl",
    "--resume_from_checkpoint x": "assay resume",
    "--early_stopping_patience 3": "--stages.0.until.kind Until --stages.0.until.patience",
    "--load_best_model_at_end": "--keep-best",
    "--system_prompt x": "--model.chat.system",
    "--mask_truncated_completions": "--stages.0.objective.credit.first.kind DropTruncated",
    "--push_to_hub": "assay push RUN OWNER/NAME",
    "--eval_strategy steps": "--eval-every",
    "--deepspeed x": "--mesh.data",
    "--load_in_4bit": "--lora-rank",
    "--trust_remote_code": "never run",
    "--optim adamw": "--stages.0.learner.optimizer.kind",
    "--tokenizer x": "those of the model's folder",
}
"""What is answered with the option that was meant."""


@pytest.mark.parametrize("words", SLIPS)
def test_a_slip_is_answered_with_the_option_that_was_meant(words: str) -> None:
    from dataclasses import fields

    strays, (option,) = split_options(words.split())
    told = unknown_option(option, {f.name for f in fields(TrainOptions)}, take(quickstart()))
    assert strays == []
    _, _, said = told.partition(" did you mean ") if " did you mean " in told else told.partition("in assay ")
    assert f"{said} ".replace("?", " ").startswith(f"{SLIPS[words]} ") or (SLIPS[words] in said and "this is" in said), told


@pytest.mark.parametrize("words", WORKS)
def test_what_other_trainers_call_it_works(words: str) -> None:
    from assay.cli.given_options import Mistakes
    from assay.cli.run_settings import replace_aliases

    _, given = split_options(words.split())
    mistakes = Mistakes()
    found = replace_aliases(quickstart(), name_own(TrainOptions, given), {"folder", "steps"}, mistakes)
    assert not mistakes and found[-1].path == WORKS[words]
    assert found[-1].path not in HELPS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("quickstrt", "unknown recipe 'quickstrt': did you mean 'quickstart'?"),
        ("Quickstart", "unknown recipe 'Quickstart': did you mean 'quickstart'?"),
        ("gsm8k_lora", "unknown recipe 'gsm8k_lora': did you mean 'gsm8k-lora'?"),
        ("quickstart --objective gpro", "unknown method of --objective 'gpro': did you mean 'grpo'?"),
        ("quickstart --objective dapa", "unknown method of --objective 'dapa': did you mean 'dapo'?"),
        ("quickstart --objective gsp", "unknown method of --objective 'gsp': did you mean 'gspo'?"),
        (
            "quickstart --objective reinforce++",
            "--objective reinforce++: that is another library's name; in assay this is reinforce_pp",
        ),
        ("quickstart --device gpu", "--device gpu: LearnerSettings.device='gpu'; use 'cpu', 'cuda' or 'auto'"),
        ("quickstart --lr-schedule cosin", "use 'constant', 'linear' or 'cosine'"),
    ],
)
def test_slips_in_values(assay, words: str, said: str) -> None:
    got = assay("explain", *words.split())
    assert got.code == 2
    assert said in got.err


@pytest.mark.parametrize(("typed", "real"), [("DAPO", "dapo"), ("Dr-GRPO", "dr_grpo")])
def test_the_case_of_a_method_does_not_matter(typed: str, real: str) -> None:
    from assay.cli.recipe import settle

    asked = [settle(TrainOptions, "quickstart", ["--objective", name], "assay train")[1] for name in (typed, real)]
    assert asked[0] == asked[1]


def test_every_short_option_stands_in_the_docs() -> None:
    from pathlib import Path

    from assay.cli.aliases import ALIASES, OWN_ALIASES

    page = (Path(__file__).parents[2] / "docs/packages/cli.md").read_text(encoding="utf-8")
    names = {n for group in ALIASES.values() for alias in group for n in alias.names} | {n.replace("_", "-") for n in OWN_ALIASES}
    assert [n for n in sorted(names) if f"`--{n}`" not in page and f"`--{n} " not in page] == []

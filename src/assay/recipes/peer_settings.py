"""What names of TRL, verl and OpenRLHF are in assay: the option, the keyword, or what to know where there is nothing to set."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PEERS", "PeerSetting"]


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
_CLIPS = "objective=grpo(clip=...), of assay.objective.methods"
_KL_IN_REWARD = "objective=replace(objective, credit=(KlInReward(coef=...), *objective.credit)), of assay.objective"
_BOUNDS = "distance of the ratio's bounds from 1, below and above"

PEERS: tuple[tuple[PeerSetting, str], ...] = (
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
        actor.policy-loss.loss-mode""",
    ),
    (
        PeerSetting(
            "--stages.{stage}.objective.credit.1.kind none", "of objective grpo, when False: without the division (drgrpo)"
        ),
        "norm-adv-by-std-in-grpo algorithm.norm-adv-by-std-in-grpo",
    ),
    (
        PeerSetting("--stages.{stage}.objective.aggregate.kind Token", "for token-mean; SeqMean for seq-mean-token-mean"),
        "actor-rollout-ref.actor.loss-agg-mode loss-agg-mode actor.loss-agg-mode",
    ),
    (
        PeerSetting("", "the divergence's estimator: a field 'estimator' of the term Kl that --kl COEFFICIENT puts there"),
        "kl-loss-type actor-rollout-ref.actor.kl-loss-type actor.kl-loss-type",
    ),
    (
        PeerSetting(
            "", "of rows of your own: --long-prompts skip leaves out prompts that do not fit; error refuses them; none is cut"
        ),
        "filter-overlong-prompts data.filter-overlong-prompts data.truncation",
    ),
    (PeerSetting("", "nothing to set: which row comes when follows from the seed (--seed)"), "data.shuffle shuffle"),
    (
        PeerSetting("", "not here: all ranks of a run are on one machine (--mesh.data COUNT)"),
        "trainer.nnodes nnodes num-nodes",
    ),
    (
        PeerSetting("--groups {value}", "prompts per step"),
        """rollout-batch-size rollout.batch-size bs data.train-batch-size data.gen-batch-size num-prompts-per-step num-prompts""",
    ),
    (
        PeerSetting("--group-size {value}"),
        """n-samples-per-prompt rollout.n-samples-per-prompt actor-rollout-ref.rollout.n rollout.n num-samples
        samples-per-prompt n-samples num-return-sequences num-rollouts rollouts-per-prompt rollouts-per-example""",
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
        """num-train-epochs num-epochs num-episodes train.num-episodes trainer.total-epochs total-epochs total-episodes
        trainer.total-training-steps total-training-steps total-steps num-steps training-steps train-steps iterations""",
    ),
    (PeerSetting("--device cuda", "of the learner, whose engine samples there too"), "gpu cuda use-cuda"),
    (
        PeerSetting("--lr {value}"),
        "actor-learning-rate actor.adam.lr actor-rollout-ref.actor.optim.lr actor.lr optim.lr alpha rate step-size",
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
        PeerSetting("--kl COEFFICIENT", "a term of the loss; 0 leaves the divergence out"),
        """actor-rollout-ref.actor.use-kl-loss use-kl-loss kl-penalty kl-weight""",
    ),
    (
        PeerSetting("--kl {value}", "a term of the loss; 0 leaves the divergence out"),
        "kl-loss-coef actor-rollout-ref.actor.kl-loss-coef kl-coeff",
    ),
    (
        PeerSetting(
            "--kl-in-reward {value}",
            "subtracted from the reward; as a term of the loss (use_kl_loss) it is --kl {value}",
            _KL_IN_REWARD,
        ),
        "init-kl-coef algo.kl.init-coef algorithm.kl-ctrl.kl-coef kl-ctrl.kl-coef",
    ),
    (
        PeerSetting("--kl-in-reward COEFFICIENT", "subtracted from the reward; --kl is a term of the loss", _KL_IN_REWARD),
        "algorithm.use-kl-in-reward use-kl-in-reward algorithm.kl-penalty kl-ctrl",
    ),
    (
        PeerSetting("--clip {value}", _BOUNDS, _CLIPS),
        "actor-rollout-ref.actor.clip-ratio actor.eps-clip",
    ),
    (
        PeerSetting(_LOW, f"{_BOUNDS}: this one is below; both at once: --clip LOW HIGH", _CLIP),
        "epsilon-low clip-low eps-clip-low clip-ratio-low actor-rollout-ref.actor.clip-ratio-low",
    ),
    (
        PeerSetting(_HIGH, f"{_BOUNDS}: this one is above; both at once: --clip LOW HIGH", _CLIP),
        "epsilon-high clip-high eps-clip-high clip-ratio-high actor-rollout-ref.actor.clip-ratio-high",
    ),
    (
        PeerSetting("--stages.{stage}.objective.policy.trust.dual {value}", "cap of the ratio where the advantage is negative"),
        "delta clip-ratio-c actor-rollout-ref.actor.clip-ratio-c",
    ),
    (
        PeerSetting("--clip LOW HIGH", _BOUNDS, _CLIP),
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
            "--entropy {value}",
            "a term of the loss",
            "objective=replace(objective, terms=(*objective.terms, Entropy(coef=...))), of assay.objective",
        ),
        """actor-rollout-ref.actor.entropy-coeff actor.entropy-coef""",
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
        PeerSetting(
            "--engine.kind VllmSettings --engine.url http://localhost:8000/v1",
            "a server that you start; the default, 'Auto', samples in the run's own process and never takes vLLM",
            "engine=VllmSettings(url=...), of assay.runtime",
        ),
        "use-vllm vllm-mode vllm vllm-server-base-url actor-rollout-ref.rollout.name rollout.name",
    ),
    (
        PeerSetting(
            "",
            "an option of the vLLM server, which you start yourself ('vllm serve'), with --tensor-parallel-size, "
            "--gpu-memory-utilization and --max-model-len; a run only names it: --engine.kind VllmSettings --engine.url URL",
        ),
        """tensor-model-parallel-size actor-rollout-ref.rollout.tensor-model-parallel-size rollout.tensor-model-parallel-size
        tensor-parallel-size vllm-tensor-parallel-size gpu-memory-utilization vllm-gpu-memory-utilization
        actor-rollout-ref.rollout.gpu-memory-utilization rollout.gpu-memory-utilization vllm-max-model-length
        actor-rollout-ref.rollout.max-model-len max-model-len enforce-eager actor-rollout-ref.rollout.enforce-eager
        vllm-num-engines max-num-batched-tokens actor-rollout-ref.rollout.max-num-batched-tokens""",
    ),
    (
        PeerSetting(
            "",
            "not here: weights, gradients and optimiser stay on the device; what needs less memory is --lora-rank RANK, "
            "--gradient-checkpointing, a smaller --micro-tokens, or --mesh.data COUNT, which shares them by FSDP2",
        ),
        """param-offload optimizer-offload offload cpu-offload adam-offload actor-rollout-ref.actor.fsdp-config.param-offload
        actor-rollout-ref.actor.fsdp-config.optimizer-offload actor-rollout-ref.ref.fsdp-config.param-offload
        fsdp-config.param-offload fsdp-config.optimizer-offload vllm-enable-sleep""",
    ),
    (
        PeerSetting("", "not here: the learner shares weights and rows by FSDP2 alone (--mesh.data COUNT)"),
        """pipeline-model-parallel-size context-parallel-size ulysses-sequence-parallel-size ring-attn-size
        actor-rollout-ref.actor.ulysses-sequence-parallel-size ds-tensor-parallel-size""",
    ),
    (
        PeerSetting("", "the recipe's reward; for rows of your own: assay train ROWS.jsonl --reward FILE.py:FUNCTION", "reward"),
        "reward-manager reward-model.reward-manager custom-reward-function.path custom-reward-function.name",
    ),
    (
        PeerSetting("--evaluation.n {value}", "sampled answers per held-out item"),
        "val-kwargs.n actor-rollout-ref.rollout.val-kwargs.n",
    ),
    (
        PeerSetting("", "nothing to set: held-out items are answered greedily and with the sampling of training"),
        """val-kwargs.do-sample val-kwargs.temperature actor-rollout-ref.rollout.val-kwargs.do-sample
        actor-rollout-ref.rollout.val-kwargs.temperature val-kwargs actor-rollout-ref.rollout.val-kwargs""",
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
    (
        PeerSetting("", "a turn of the row's prompt, or --model.chat.system", "chat=Chat(system=...), of assay.runtime"),
        "system-prompt system-message default-system",
    ),
    (
        PeerSetting(
            "--stages.{stage}.objective.credit.first.kind DropTruncated",
            "answers that were cut off are not learned from",
            "objective=dapo(overlong=DropTruncated()), of assay.objective.methods and assay.objective",
        ),
        "mask-truncated-completions overlong-filter overlong-filtering mask-truncated",
    ),
    (
        PeerSetting(
            "--stages.{stage}.until.kind Until --stages.{stage}.until.patience EVALUATIONS",
            "evaluations without a better one",
            'replace_at(run, "stages.0.until", Until(patience=...)), of assay.train',
        ),
        "early-stopping early-stopping-patience patience",
    ),
    (PeerSetting("--keep-best"), "load-best-model-at-end save-best metric-for-best-model"),
    (PeerSetting("", "of assay.train.train: train(run, folder, callbacks=[...])"), "callbacks callback"),
    (
        PeerSetting("", "a command afterwards: assay push RUN OWNER/NAME"),
        "push-to-hub hub-model-id hub-token hub-strategy hub-private-repo",
    ),
    (
        PeerSetting(
            "", "nothing to set: tokenizer and chat template are those of the model's folder; chat= sets another template"
        ),
        "processing-class tokenizer tokenizer-name tokenizer-path",
    ),
    (PeerSetting("--mesh.data COUNT", "processes that share the learner by FSDP2"), "deepspeed fsdp fsdp-config zero-stage"),
    (
        PeerSetting(
            "--lora-rank RANK", "weights are never quantised; an adapter saves memory", "lora=16: weights are never quantised"
        ),
        "load-in-4bit load-in-8bit quantization-config bnb-4bit-quant-type",
    ),
    (PeerSetting("", "nothing to set: code in a model's folder is never run"), "trust-remote-code"),
    (
        PeerSetting("", "nothing to set: each run is evaluated before its first step and at its end"),
        "eval-on-start eval-at-start do-eval val-before-train trainer.val-before-train",
    ),
    (PeerSetting("--eval-every STEPS"), "eval-strategy evaluation-strategy"),
    (PeerSetting("--checkpoint-every STEPS", "when one is written"), "save-strategy"),
    (
        PeerSetting("--keep-checkpoints {value}", "the newest ones, policy and critic together; 0 for all"),
        """max-actor-ckpt-to-keep trainer.max-actor-ckpt-to-keep max-critic-ckpt-to-keep
        trainer.max-critic-ckpt-to-keep max-ckpt-num max-ckpt-to-keep keep-last-n""",
    ),
    (
        PeerSetting(
            "--stages.{stage}.learner.optimizer.kind CLASS",
            "AdamW when not given",
            'replace_at(run, "stages.0.learner.optimizer", AdamW(lr=...)), of assay.runtime',
        ),
        "optim optimizer optimizers",
    ),
    (
        PeerSetting("", "nothing to set: sampling is from the distribution that the learner scores"),
        "repetition-penalty frequency-penalty presence-penalty",
    ),
    (
        PeerSetting("", "nothing to set: dropout is off, rows are not padded, and a reward sees all fields of its row"),
        "disable-dropout remove-unused-columns dataloader-num-workers dataloader-pin-memory tf32 ddp-find-unused-parameters",
    ),
)
"""Each setting with the names that it has elsewhere, with dashes."""

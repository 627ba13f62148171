"""Tools in miniature: look up the lines of a bill, add them up by a calculator, with the same loop as everything else."""

from __future__ import annotations

from dataclasses import replace

from assay.core.rollout import Sampling
from assay.guide import Piecewise, SuccessVariance
from assay.objective import Center, MinClip, Objective, PolicyGradient, Scale, TagAdvantage, TokenReward
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo, reseek
from assay.recipes.embedded_stages import grpo_stage, warm_up_stage
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule
from assay.runtime.text.chat import Chat
from assay.train.judge_rewards import JudgeReward
from assay.train.models import Built, Folder, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay.train.turn_rewards import INVALID, META_TAG, MetaReasoning
from assay_tasks import Bills
from assay_tasks.judged_bills import JudgedBills, SameLine

__all__ = ["SHOWN_BILLS", "tool_base", "tools", "tools_hub", "tools_of", "tools_reseek", "tools_rlvmr", "tools_scaling_inter"]

SHOWN_BILLS = (1, 2, 3)
"""Lines of the bills whose traces the base is shown; longer ones it must find by itself."""


def tool_base(seed: int = 0) -> Run:
    """A base of 0.34M weights that was shown 3,000 noisy traces of bills of one to three lines."""
    return Run(
        name="base-tools",
        seed=seed,
        model=Scratch(shape=DecoderShape(max_positions=192), seed=seed),
        tasks=Bills(),
        stages=(warm_up_stage(steps=450, demonstrations=3_000, levels=SHOWN_BILLS),),
        sampling=Sampling(max_new_tokens=10),
        max_turns=24,
        evaluation=Evaluation(every=0, final_per_level=32),
        checkpoint_every=200,
    )


def tools(seed: int = 0) -> Run:
    """GRPO over whole episodes of two tools, up to bills of eight lines; tokens of the tools' answers carry no loss."""
    return Run(
        name="tools",
        seed=seed,
        model=Built(run=tool_base(seed)),
        tasks=Bills(),
        stages=(grpo_stage(steps=240),),
        sampling=Sampling(max_new_tokens=10),
        max_turns=24,
        evaluation=Evaluation(every=40, final_per_level=32),
    )


def tools_rlvmr(seed: int = 0) -> Run:
    """The recipe `tools` with rewards for single turns (RLVMR): look-ups explore, additions plan, a failed call costs 0.1.

    The model has no words for its thoughts, so what a turn does stands for its tag; *reflection* is nobody's here.
    """
    run = tools(seed)
    (stage,) = run.stages
    objective = Objective(
        credit=(TokenReward(INVALID, coef=-0.1), Center("group"), Scale("group"), TagAdvantage()),
        policy=PolicyGradient(trust=MinClip(low=0.2, high=0.2)),
        aggregate=Token(),
        brings=("meta_reward", META_TAG, INVALID),
    )
    meta = MetaReasoning(planning="^(?=#)", explore="^(?=[?])", reflection="")
    return replace(run, name="tools-rlvmr", stages=(replace(stage, objective=objective, columns=(meta,)),))


def tools_scaling_inter(seed: int = 0) -> Run:
    """The recipe `tools` with a horizon that grows (ScalingInter-RL): ``h = rounds[step // every]``, of 8, 16 and 24 turns.

    A rollout that reaches its horizon is cut off, and earns nothing unless it has answered. A bill of ``n`` lines takes ``2 n +
    1`` turns, so that the first third of the steps can finish bills of three lines. Evaluations have all 24 turns.

    Source: AgentGym-RL (arXiv 2509.08755).
    """
    run = tools(seed)
    (stage,) = run.stages
    rounds = Piecewise(points=((0, 8), (80, 16), (160, 24)))
    return replace(run, name="tools-scaling-inter", stages=(replace(stage, schedules={"max_turns": rounds}),))


def tools_reseek(seed: int = 0) -> Run:
    """Bills of up to four lines whose look-ups may bring another one, which the policy judges (ReSeek); the base is shown two."""
    base = tool_base(seed)
    (warm,) = base.stages
    tasks = JudgedBills()
    base = replace(base, name="base-judged", tasks=tasks, stages=(replace(warm, levels=(1, 2)),))
    run = tools(seed)
    (stage,) = run.stages
    judged = JudgeReward(relevance=SameLine(), yes="^y$", no="^n$")
    stage = replace(stage, objective=reseek(), columns=(judged,))
    return replace(run, name="tools-reseek", model=Built(run=base), tasks=tasks, stages=(stage,))


def tools_hub(seed: int = 0) -> Run:
    """The bills with Qwen3-0.6B, and by `--model.path` any other model whose chat template shows tools: `tools_of`."""
    return tools_of("Qwen/Qwen3-0.6B", seed)


def tools_of(model: str, seed: int = 0) -> Run:
    """The same tasks, stages and tools with a model from a folder or the hub, whose chat template writes the calls.

    A few traces in the template's own form of calls, then GRPO on bills that were never shown. ``unverified``: with models of
    this size it was never run, only with a small one of the same form.

    Args:
        model: folder or name on the hub, with a chat template that knows tools. Qwen3's thoughts are turned off by its name.
        seed: of the run.
    """
    chat = Chat(options={"enable_thinking": False}, rewrites="keep") if "qwen3" in model.lower() else None
    learner = LearnerSettings(optimizer=AdamW(lr=1e-6), schedule=LearningRateSchedule(warmup=10), checkpointing=True)
    return Run(
        name="tools-hub",
        seed=seed,
        model=Folder(model, chat=chat),
        tasks=Bills(form="calls"),
        stages=(
            WarmUp(steps=20, batch=8, demonstrations=200, noise=0.0, levels=SHOWN_BILLS, gate=0.0, learner=learner),
            Reinforce(
                steps=100,
                groups=16,
                group_size=8,
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=SuccessVariance(floor=0.1),
                learner=learner,
            ),
        ),
        sampling=Sampling(max_new_tokens=64),
        max_turns=24,
        evaluation=Evaluation(every=20, final_per_level=16),
    )

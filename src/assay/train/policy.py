"""A trained model to ask: sample answers, evaluate on held-out tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from assay.core.errors import ConfigError
from assay.core.protocols import Request, SamplerParts, SamplerSpec, TaskSource, Verifier
from assay.core.rollout import Completion, Sampling
from assay.core.seeds import derive
from assay.core.task import Message
from assay.core.timing import span
from assay.core.util.event_loop import run_async
from assay.core.util.threads import sleeping
from assay.rollout.decode_text import text_of, with_stop
from assay.rollout.spec import PlayerSpec
from assay.train.checkpoint_weights import checkpoint_place, weights_of_run
from assay.train.evaluate import evaluate, greedy, held_out, items_of, select_by
from assay.train.levels import Levels, check_levels
from assay.train.models import Folder, check_tokenizer, model_folder
from assay.verify import ScoringPool

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["Policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """A model folder, loaded on use.

    Attributes:
        path: a model folder in Hugging Face format, or a run folder; ``RUN@STEP``, or a checkpoint's folder, for the model of a
            run at a step.

    Raises:
        ConfigError: none of these is there.
        CheckpointError: the run has no checkpoint of this step.
    """

    path: str | Path

    def model(self) -> AnyModel:
        """The weights, shape and tokenizer."""
        with sleeping():
            from assay.runtime.machine import calm
            from assay.runtime.models.hf import load_model

        calm()
        if (named := checkpoint_place(Path(self.path))) is not None:
            return weights_of_run(*named)[0]
        model = load_model(model_folder(Path(self.path)))
        check_tokenizer(Folder(str(self.path)), model.tokenizer)
        return model

    def sample(
        self,
        prompt: str | Sequence[Message],
        n: int = 1,
        sampling: Sampling | None = None,
        seed: int = 0,
        *,
        temperature: float | None = None,
    ) -> list[str]:
        """``n`` answers to a prompt, each with its thought.

        Args:
            prompt: text of one user turn, or a conversation.
            n: answers.
            sampling: how to draw; temperature 1 and at most 64 tokens (fewer where the context is full) when None.
            seed: of the sampling noise.
            temperature: in place of that of ``sampling``; 0 takes the most likely token each time.

        Raises:
            ConfigError: the prompt leaves no room in the context.
            DataError: the prompt holds characters that the tokenizer lacks, or the temperature is negative.
        """
        from assay.runtime.engine.settings import engine_for

        model = self.model()
        turns = [Message("user", prompt)] if isinstance(prompt, str) else list(prompt)
        ids = model.tokenizer.render(turns)
        left = model.shape.max_positions - len(ids)
        if left < 1:
            raise ConfigError(f"the prompt has {len(ids)} tokens, the model's context {model.shape.max_positions}: shorten it")
        drawn = sampling or Sampling(max_new_tokens=min(64, left))
        if temperature is not None:
            drawn = replace(drawn, temperature=temperature) if temperature else greedy(drawn)
        wanted = with_stop(drawn, model.tokenizer)
        engine = engine_for(model)

        async def draw() -> list[Completion]:
            seeds = [derive("sample", seed, "", i) for i in range(n)]
            requests = [Request(id=f"sample/{i}", prompt=ids, seed=x, sampling=wanted) for i, x in enumerate(seeds)]
            return list(await asyncio.gather(*(engine.generate(r) for r in requests)))

        with span("sample"):
            return [text_of(model.tokenizer, c.ids, c) for c in run_async(draw())]

    def choose(
        self, prompts: Sequence[str | Sequence[Message]], answers: Sequence[Sequence[str]], *, per_token: bool = True
    ) -> list[str]:
        """Of given answers the likeliest to each prompt: decoding by perplexity, as of a class among its labels.

        Args:
            prompts: texts of one user turn, or conversations.
            answers: for each prompt what to choose from.
            per_token: by the perplexity of an answer; otherwise by the likelihood of the whole.

        Raises:
            ConfigError: not as many lists of answers as prompts, or an empty list.
            DataError: a prompt and an answer that do not fit into the context, or hold what the tokenizer lacks.

        Source: GenCLS++ (arXiv 2504.19898).
        """
        from assay.train.likeliest import likeliest_answers

        turns = [[Message("user", prompt)] if isinstance(prompt, str) else list(prompt) for prompt in prompts]
        return likeliest_answers(self.model(), turns, answers, per_token=per_token)

    def evaluate(
        self,
        tasks: TaskSource,
        *,
        n: int = 1,
        per_level: int = 64,
        levels: Levels = (),
        sampling: Sampling | None = None,
        seed: int = 0,
        max_turns: int = 8,
        deadline: float = 5.0,
        environment_deadline: float = 30.0,
        pictures: Literal["refuse", "placeholder"] = "refuse",
        split: str = "test",
        player: SamplerSpec | None = None,
        best_by: Verifier | None = None,
    ) -> list[dict[str, Any]]:
        """Rollouts at held-out tasks, as records that `assay.measure` reads.

        Args:
            tasks: the family.
            n: sampled rollouts per task; 0 takes one greedy answer instead.
            per_level: tasks per (arm, level).
            levels: which; all when empty.
            sampling: temperature and lengths.
            seed: of the sampling noise.
            max_turns: model calls per rollout, in families with an environment.
            deadline: seconds that the verifier may take for one rollout.
            environment_deadline: seconds that an environment may take for one start or step.
            pictures: as of `Run`.
            split: ``test``; with ``train`` it is no held-out evaluation, but one by which training may be decided.
            player: how rollouts are played, as `Reinforce.sampler` says; one by one, with nothing dropped, when None.
            best_by: a selector, whose value of each answer is recorded too (`assay.measure.selected_accuracy`); none when None.

        Returns:
            Per task ``id, arm, level, values, answers, faults``; with ``best_by`` also ``selector``, None where it failed.
        """
        from assay.runtime.engine.settings import engine_for

        check_levels(tasks, levels, "levels")
        model = self.model()
        drawn = sampling or Sampling(max_new_tokens=min(64, model.shape.max_positions // 2))
        parts = SamplerParts(
            engine=engine_for(model),
            tokenizer=model.tokenizer,
            source=tasks,
            sampling=drawn if n else greedy(drawn),
            seed=seed,
            max_turns=max_turns,
            deadline=environment_deadline,
            pictures=pictures,
        )
        single = (player or PlayerSpec()).player
        sampler = (single.for_evaluation() if isinstance(single, PlayerSpec) else single).build(parts)
        items = held_out(tasks, levels, per_level, split)
        with ScoringPool(tasks.verifier(), deadline) as pool, span("sample"):
            found = run_async(evaluate(sampler, pool, items, n or 1))
        records = items_of(found)
        if best_by is not None:
            with ScoringPool(best_by, deadline) as pool:
                scores = run_async(select_by(pool, found))
            records = [{**record, "selector": of_task} for record, of_task in zip(records, scores, strict=True)]
        return records

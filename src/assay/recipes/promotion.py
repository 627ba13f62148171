"""Curricula whose levels are stages: a validation promotes, and the whole is gone through more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.core.errors import ConfigError
from assay.train.reinforce import Reinforce
from assay.train.until import Until

__all__ = ["promoted_stages"]


def promoted_stages(stage: Reinforce, levels: Sequence[int], *, above: float = 0.5, rounds: int = 2) -> tuple[Reinforce, ...]:
    """A stage per level and round: it trains on the level alone, and ends when validation on it is above a bound.

    With ``Evaluation.every`` steps of ``groups`` prompts each, a validation comes every ``every * groups`` samples. It is sampled
    at the training temperature, so its accuracy is pass@1; a value of exactly ``above`` does not promote. A level that is not
    mastered within ``stage.steps`` gives way to the next all the same. Where a run has several arms, mastery is of all together.

    Args:
        stage: of what each is made; its ``steps`` are the most of one level.
        levels: ascending in difficulty.
        above: pass@1 that must be exceeded; SATURN takes 0.5 for 1.5B parameters and 0.75 for 7B.
        rounds: how often the levels are gone through; SATURN: 2.

    Raises:
        ConfigError: no level or round, or a bound outside [0, 1).

    Source: SATURN (arXiv 2505.16368): validation every 250 samples, stages (3, 5, 5), (3, 5, 6) or (3, 5, 13), (3, 5, 15) in
    literals, variables and clauses.

    >>> from assay.train import Reinforce
    >>> made = promoted_stages(Reinforce(steps=250, groups=2), (1, 2))
    >>> [stage.levels for stage in made], made[0].until.metric
    ([(1,), (2,), (1,), (2,)], 'eval/sampled/level_1')
    """
    if not levels or rounds < 1 or not 0.0 <= above < 1.0:
        raise ConfigError(
            f"promoted_stages(levels={tuple(levels)}, above={above}, rounds={rounds}): give levels, a bound in [0, 1) "
            "and at least one round"
        )
    return tuple(
        replace(stage, levels=(level,), until=Until(metric=f"eval/sampled/level_{level}", at_least=above, strictly=True))
        for _ in range(rounds)
        for level in levels
    )

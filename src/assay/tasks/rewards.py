"""What users give as a reward, as a verifier: a function by its parameters' names, or several of them with weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from assay.core.errors import ConfigError, DataError, a_kind
from assay.interop.import_rewards import GOLD_NAMES, OpenRlhfReward, TrlReward, VerlReward
from assay.interop.signature import parameters_of
from assay.verify.reward_function import RewardFunction
from assay.verify.user_reward import UserReward, describe_function, name_of
from assay.verify.weighted_rewards import RewardPart, WeightedRewards

__all__ = ["ENVIRONMENTS", "Metric", "Reward", "check_fields", "reward_verifier", "weighted_rewards"]

Reward = Callable[..., Any] | UserReward | Mapping[str, Any] | Sequence[Any]
"""A function, a `UserReward`, or several: by name, each alone or with its weight as a pair, or in a list."""

Metric = str | Callable[..., Any] | UserReward
"""One of several rewards by its name, or a function like a reward."""

_OWN = ("prompt", "completion", "row")
_TRL = frozenset({"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric"})
ENVIRONMENTS = frozenset({"state", "task", "info", "parser", "judge"})
"""What functions of the library verifiers take besides a completion."""

_FORMS = """Accepted are
  reward(prompt, completion, row) -> float | dict: these three, by position or by name
  reward(completion, answer) -> float | dict: 'completion' and, by name, any of 'prompt', 'row' and the rows' fields
  reward(prompts, completions, rows) -> list: several rollouts in one call; wrap it in RewardFunction(reward, batched=True)
and, by their parameters' names, those of TRL (completions, **columns), verl (data_source, solution_str, ground_truth) and
OpenRLHF (queries, prompts, labels)"""


def reward_verifier(reward: object, columns: Collection[str]) -> UserReward:
    """The verifier that calls a user's reward function, as its parameters' names say.

    Args:
        reward: a function, or anything else that can be called; a `RewardFunction` or an adapter of `assay.interop` stays itself.
        columns: fields of the rows.

    Raises:
        ConfigError: it cannot be called, or its parameters do not say how; names the accepted forms.
        DataError: it takes a field that the rows do not have.

    >>> reward_verifier(lambda completion, answer: float(completion == answer), ["prompt", "answer"]).takes
    ('completion', 'answer')
    >>> type(reward_verifier(lambda completions, **columns: [1.0 for _ in completions], ["prompt"])).__name__
    'TrlReward'
    """
    if isinstance(reward, UserReward) and not isinstance(reward, type):
        return reward
    if not callable(reward):
        raise ConfigError(f"the reward is {a_kind(reward)} ({reward!r:.80}), which cannot be called. {_FORMS}")
    if isinstance(reward, type):
        raise ConfigError(f"the reward {reward.__qualname__} is a class; pass an object of it: {reward.__qualname__}(...)")
    if hasattr(reward, "funcs") and hasattr(reward, "weights"):
        raise ConfigError(
            f"the reward is a rubric ({a_kind(reward)}); pass assay.interop.RubricReward(rubric), which calls its functions as "
            "the library verifiers does"
        )
    try:
        parameters = list(inspect.signature(reward).parameters.values())
    except (TypeError, ValueError):  # some functions written in C do not say
        return RewardFunction(reward)
    return _by_names(reward, parameters, columns)


def _by_names(reward: Callable[..., Any], parameters: list[inspect.Parameter], columns: Collection[str]) -> UserReward:
    kinds = inspect.Parameter
    named = [p for p in parameters if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    names, required = [p.name for p in named], [p.name for p in named if p.default is kinds.empty]
    more = any(p.kind is kinds.VAR_KEYWORD for p in parameters)
    known = set(names)
    if {"task", "rollout"} <= known:
        raise ConfigError(f"the reward {describe_function(reward)} is a verifier of (task, rollout); pass it as scorer=")
    if {"solution_strs", "ground_truths"} <= known:
        return VerlReward(reward, batch=True)
    if {"solution_str", "ground_truth"} <= known:
        return VerlReward(reward)
    if {"queries", "prompts", "labels"} <= known:
        return OpenRlhfReward(reward)
    if tuple(names) == ("prompts", "completions", "rows") and "rows" not in columns:
        return RewardFunction(reward, batched=True)
    if "completions" in known or ("prompts" in known and more):
        return _trl(reward, required, columns)
    if tuple(names) == _OWN:
        return RewardFunction(reward)
    if "completion" in known and not any(p.kind is kinds.POSITIONAL_ONLY for p in parameters):
        return _own(reward, names, required, more, columns)
    if _by_position(parameters, columns):
        return RewardFunction(reward)
    raise _ambiguous(reward, names)


def _trl(reward: Callable[..., Any], required: Sequence[str], columns: Collection[str]) -> TrlReward:
    lacking = [n for n in required if n not in _TRL and n not in columns]
    if lacking:
        gold = next((name for name in GOLD_NAMES if name in columns), None) if lacking[0] in GOLD_NAMES else None
        renamed = f"rename the parameter to {gold!r}" if gold else "rename the parameter"
        raise DataError(
            f"the reward {describe_function(reward)}, with TRL's signature, takes the column {lacking[0]!r}, and the rows have "
            f"{sorted(columns)}; add it, or {renamed}"
        )
    return TrlReward(reward)


def check_fields(verifier: UserReward, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises DataError where a row lacks a field that a reward function takes by a parameter without default.

    >>> right = reward_verifier(lambda completion, answer: completion == answer, ["prompt", "answer"])
    >>> check_fields(right, [{"prompt": "1+1=", "answer": "2"}, {"prompt": "2+2="}])
    Traceback (most recent call last):
        ...
    assay.core.errors.DataError: row 2 has no 'answer', which the reward '<lambda>' ... takes; add it (null where there is none)
    """
    parts = [part.verifier for part in verifier.parts] if isinstance(verifier, WeightedRewards) else [verifier]
    needed = {field: part for part in parts for field in _fields(part)}
    for number, row in enumerate(rows if needed else (), 1):
        for field, part in needed.items():
            if field not in row:
                raise DataError(
                    f"row {number} has no {field!r}, which the reward {describe_function(cast('Any', part).fn)} takes; add it "
                    "(null where there is none)"
                )


def _fields(verifier: UserReward) -> list[str]:
    """Fields of the rows that a function takes by parameters without default."""
    if isinstance(verifier, TrlReward):
        known, own = parameters_of(verifier.fn).required, {*_TRL, *GOLD_NAMES} if verifier.gold else _TRL
    elif isinstance(verifier, RewardFunction) and verifier.takes is not None:
        known, own = parameters_of(verifier.fn).required, frozenset(_OWN)
    else:
        return []
    return [name for name in known if name not in own]


def _own(
    reward: Callable[..., Any], names: Sequence[str], required: Sequence[str], more: bool, columns: Collection[str]
) -> RewardFunction:
    lacking = [name for name in required if name not in columns and name not in _OWN]
    if lacking and set(lacking) & ENVIRONMENTS:
        raise ConfigError(
            f"the reward {describe_function(reward)} takes {lacking[0]!r}, as functions of the library verifiers do, and the "
            "rows have no such field; pass assay.interop.RubricReward(reward)"
        )
    if lacking:
        raise DataError(
            f"the reward {describe_function(reward)} takes {lacking[0]!r}, which is none of {', '.join(_OWN)} and no field of "
            f"the rows ({', '.join(sorted(columns))}); rename it, or give it a default. {_FORMS}"
        )
    takes = tuple(name for name in names if name in required or name in columns or name in _OWN)
    return RewardFunction(reward, takes=(*takes, "**") if more else takes)


def _by_position(parameters: Sequence[inspect.Parameter], columns: Collection[str]) -> bool:
    """Whether prompt, completion and row fit by position, and no name says otherwise."""
    kinds = inspect.Parameter
    if any(p.kind is kinds.KEYWORD_ONLY and p.default is kinds.empty for p in parameters):
        return False
    places = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is kinds.VAR_POSITIONAL for p in parameters):
        return len([p for p in places if p.default is kinds.empty]) <= len(_OWN)
    if len(places) < len(_OWN) or any(p.default is kinds.empty for p in places[len(_OWN) :]):
        return False
    said = zip((p.name for p in places), _OWN, strict=False)
    return all(name == own or (name not in _OWN and name not in columns) for name, own in said)


def _ambiguous(reward: Callable[..., Any], names: Sequence[str]) -> ConfigError:
    shown = ", ".join(names) or "none that has a name"
    return ConfigError(
        f"the reward {describe_function(reward)} has the parameters ({shown}), which do not say what it takes. {_FORMS}"
    )


def weighted_rewards(
    rewards: object, weights: Sequence[float], columns: Collection[str], metric: Metric | None = None
) -> WeightedRewards | None:
    """Several rewards as one; None where there is only one, which has no weight and is its own metric.

    Args:
        rewards: by name, each alone or as a pair with its weight; or a list, named after its functions.
        weights: of a list's; empty where each counts 1.
        columns: fields of the rows.
        metric: what accuracy is measured by: one of them by its name, or another function, which joins them with weight 0. None:
            as `WeightedRewards` says.

    Raises:
        ConfigError: weights or a metric that do not fit, or a function as `reward_verifier` says.
        DataError: a function takes a field that the rows do not have.

    >>> both = weighted_rewards({"right": lambda p, c, r: 1.0, "short": (lambda p, c, r: 0.5, 0.2)}, (), ["prompt"])
    >>> [(part.name, part.weight) for part in both.parts]
    [('right', 1.0), ('short', 0.2)]
    """
    many = isinstance(rewards, list | tuple)
    if len(weights) and not many:
        raise ConfigError("weights= goes with a list of rewards; beside a name, write the weight as a pair: {'short': (f, 0.2)}")
    if isinstance(rewards, Mapping):
        pairs = [(name, *_pair(name, value)) for name, value in cast("Mapping[Any, Any]", rewards).items()]
    elif many:
        given = list(cast("Sequence[Any]", rewards))
        if len(weights) not in (0, len(given)):
            raise ConfigError(f"there are {len(weights)} weights for {len(given)} rewards; give one weight to each")
        pairs = list(zip(_names(given), given, weights or [1.0] * len(given), strict=True))
    elif metric is None or metric is rewards:
        return None
    elif rewards is None:
        raise ConfigError(
            "metric= goes with reward=: without one, an answer must match exactly, and accuracy is measured by that"
        )
    elif isinstance(rewards, WeightedRewards):
        pairs = [(part.name, part.verifier, part.weight) for part in rewards.parts]
    else:
        pairs = [(_names([rewards])[0], rewards, 1.0)]
    pairs, measured = _with_metric(pairs, metric)
    parts = tuple(RewardPart(str(name), reward_verifier(f, columns), weight) for name, f, weight in pairs)
    return WeightedRewards(parts, metric=measured)


def _with_metric(pairs: list[tuple[Any, Any, Any]], metric: Metric | None) -> tuple[list[tuple[Any, Any, Any]], str | None]:
    """The rewards with the metric among them, and its name."""
    if metric is None or isinstance(metric, str):
        return pairs, metric
    for name, function, _ in pairs:
        if function is metric:
            return pairs, str(name)
    name = _names([*(f for _, f, _ in pairs), metric])[-1]
    name = f"metric_{name}" if name in {str(n) for n, _, _ in pairs} else name
    return [*pairs, (name, metric, 0.0)], name


def _pair(name: object, value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple):
        return value, 1.0
    pair = cast("Sequence[Any]", value)
    if len(pair) != 2:
        raise ConfigError(f"reward {name!r} is a list of {len(pair)}; give a function, or a pair of function and weight")
    return pair[0], pair[1]


def _names(rewards: Sequence[Any]) -> list[str]:
    """A name for each reward in a list: its function's, numbered where that is none or another's."""
    out: list[str] = []
    for number, reward in enumerate(rewards, 1):
        name = name_of(reward)
        out.append(f"reward_{number}" if name in ("<lambda>", "reward") else f"{name}_{number}" if name in out else name)
    return out

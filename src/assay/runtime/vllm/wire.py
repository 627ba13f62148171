"""What goes to vLLM's token endpoint and what comes back: pure functions on JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, EngineError
from assay.core.protocols import Request
from assay.core.rollout import Completion, Ids, Span, Stop, ids_of
from assay.core.seeds import derive

__all__ = ["completion_of", "request_body", "score_body", "scores_of", "server_id"]

_STOPS = {"stop": Stop.DONE, "length": Stop.LENGTH, "abort": Stop.PARTIAL}
_NOTHING = -9999.0  # what the server writes for -inf and NaN


def server_id(wire: str) -> str:
    """The id under which the server knows a request: with the bare one, aborting says that it did and does nothing."""
    return f"generate-tokens-{wire}"


def request_body(request: Request, wire: str, model: str, salt: str) -> dict[str, Any]:
    """The JSON of one generation.

    The noise is the server's own, seeded by the request's seed and first position: a request that goes on never repeats what its
    first part drew. ``stop_ids`` alone end it, so the server's own end tokens are told to be ignored.

    Args:
        request: what is wanted.
        wire: id on the server.
        model: name to ask for, the base or an adapter.
        salt: keys of the prefix cache; requests of other salts share nothing.
    """
    s = request.sampling
    if s.keep_support:
        raise ConfigError(
            f"request {request.id!r} wants the ids that each token is drawn from (Sampling.keep_support), which a vLLM server "
            "does not tell; leave it out, or sample in process: engine=InProcess()"
        )
    if s.annealing:
        raise ConfigError(
            f"request {request.id!r} has a temperature for each token (Sampling.annealing), and a vLLM server takes one for all; "
            "leave it out, or sample in process: engine=InProcess()"
        )
    sampling: dict[str, Any] = {
        "temperature": s.temperature,
        "top_p": s.top_p,
        "top_k": s.top_k,
        "max_tokens": s.max_new_tokens,
        "stop_token_ids": list(s.stop_ids),
        "ignore_eos": True,
        "logprobs": 0,
        "detokenize": False,
        "skip_special_tokens": False,
        "seed": derive("vllm", request.seed, "", request.first) >> 1,  # a negative one would mean none
    }
    if s.min_p:
        sampling["min_p"] = s.min_p
    return {
        "request_id": wire,
        "model": model,
        "token_ids": request.prompt.tolist(),
        "cache_salt": salt,
        "sampling_params": sampling,
    }


def completion_of(
    answer: Any, request: Request, spans: Callable[[Sequence[Any], int], tuple[Span, ...]], duration: float
) -> Completion:
    """The completion in an answer.

    Args:
        answer: JSON of the server.
        request: what was asked.
        spans: weight versions from the server's spans and the number of tokens.
        duration: seconds.

    Raises:
        EngineError: the answer is not what was asked for, or a log-probability is not finite; names the request.
    """
    choice, sampling = _choice(answer, request.id), request.sampling
    ids, stop = ids_of(choice["token_ids"]), _STOPS.get(choice.get("finish_reason", ""))
    if stop is None:
        raise EngineError(f"request {request.id!r} ended with {choice.get('finish_reason')!r}, which is no end of an answer here")
    if stop is Stop.DONE and (len(ids) == 0 or int(ids[-1]) not in sampling.stop_ids):
        raise EngineError(
            f"request {request.id!r} was stopped by the server ({choice.get('stop_reason')!r}) at none of its stop ids "
            f"{sampling.stop_ids}; take stop settings out of the server's generation config"
        )
    if stop is Stop.LENGTH and len(ids) != sampling.max_new_tokens:
        raise EngineError(
            f"request {request.id!r} was cut off after {len(ids)} tokens instead of max_new_tokens={sampling.max_new_tokens}: "
            "the server's context is shorter than it says"
        )
    logp = _logp(choice, ids, request.id)
    if sampling.temperature == 0.0:
        logp = np.zeros_like(logp)  # the likeliest token was certain
    return Completion(
        ids=ids,
        logp_engine=logp,
        spans=spans(choice["weight_versions"] or [], len(ids)),
        stop=stop,
        sampling=sampling,
        duration=duration,
    )


def _choice(answer: Any, who: str) -> Mapping[str, Any]:
    try:
        (choice,) = answer["choices"]
        return {"logprobs": None, "weight_versions": None, **choice, "token_ids": choice["token_ids"] or []}
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(f"{who}: an answer of another form than vLLM's ({error!r}): {str(answer)[:300]}") from None


def _logp(choice: Mapping[str, Any], ids: Ids, who: str) -> NDArray[np.float32]:
    content: Any = choice["logprobs"]["content"] if choice["logprobs"] else []
    if [entry["token_id"] for entry in content] != ids.tolist():
        raise EngineError(f"request {who!r}: {len(content)} log-probabilities came with {len(ids)} tokens, or for others")
    logp = np.array([entry["logprob"] for entry in content], np.float32)
    _check_finite(logp, f"request {who!r}")
    return logp


def _check_finite(logp: NDArray[np.float32], who: str) -> None:
    if not np.isfinite(logp).all() or bool((logp <= _NOTHING).any()):
        raise EngineError(
            f"{who}: the served weights give log-probabilities that are not finite; look for NaN or infinite weights"
        )


def score_body(row: Ids, wire: str, model: str, salt: str, full: bool) -> dict[str, Any]:
    """The JSON of one scored row, at temperature 1; such requests do not read the prefix cache.

    The server samples one token whatever is asked. Where the row fills the context (``full``) its last token is not sent but
    asked for among those that could come next.
    """
    sampling: dict[str, Any] = {
        "temperature": 1.0,
        "max_tokens": 1,
        "prompt_logprobs": 0,
        "ignore_eos": True,
        "detokenize": False,
    }
    if full:
        last = int(row[-1])
        sampling |= {"logprobs": 2, "logprob_token_ids": [last, last - 1 if last else 1]}
    sent = row[:-1] if full else row
    return {"request_id": wire, "model": model, "token_ids": sent.tolist(), "cache_salt": salt, "sampling_params": sampling}


def scores_of(answer: Any, row: Ids, who: str, full: bool) -> NDArray[np.float32]:
    """``[len(row)]`` log-probabilities of a row's tokens from an answer to `score_body`, 0 first.

    Raises:
        EngineError: some are missing or not finite.
    """
    choice = _choice(answer, who)
    told: Sequence[Mapping[str, Any] | None] = answer.get("prompt_logprobs") or []
    found = [(place or {}).get(str(token)) for token, place in zip(row[1:].tolist(), told[1:], strict=False)]
    if full:
        content: Any = choice["logprobs"]["content"] if choice["logprobs"] else []
        near = [x for entry in content for x in (entry, *entry["top_logprobs"]) if x["token_id"] == int(row[-1])]
        found.append(near[0] if near else None)
    values = [x["logprob"] for x in found if x is not None]
    if len(values) != len(row) - 1:
        raise EngineError(f"{who}: {len(values)} log-probabilities for a row of {len(row)} tokens")
    logp = np.array([0.0, *values], np.float32)
    _check_finite(logp, who)
    return logp

"""rLLM: its estimators, in numpy."""

from typing import Any

import numpy as np
from peer_comparing import Arrays, Case, Theirs, spread
from peer_loading import Settings, root_of, taken, version_of
from peer_verl import lone

_GROUPS = ("calculate_grpo_advantages_per_group", "calculate_rloo_advantages_per_group")
_BATCH = ("calculate_reinforce_plus_plus_baseline_advantages", "calculate_prpo_advantages", "calculate_reinforce_advantages")


def load() -> tuple[Any, str]:
    """The functions, and the version."""
    root = root_of("rllm", "rllm/trainer/algorithms/rl_algo.py")
    folder = root / "rllm" / "trainer" / "algorithms"
    found = Settings(**vars(taken(folder / "rl_algo.py", _GROUPS)), **vars(taken(folder / "advantage.py", _BATCH)))
    return found, version_of("rllm", root, "rllm")


def cases(rllm: Any) -> list[Case]:
    """Every comparison."""

    def grouped(name: str, function: str, case: str = "", **more: Any) -> Case:
        def theirs(b: Arrays) -> Theirs:
            out = np.zeros(6)
            for group in np.unique(b["group_id"]):
                rows = b["group_id"] == group
                out[rows] = getattr(rllm, function)(b["rewards"][rows])[0]
            return Theirs(advantages=spread(out, b["mask"]))

        return Case(peer="rllm", name=name, kind="advantage", case=case, theirs=theirs, what=("advantages",), **more)

    def whole(name: str, function: str) -> Case:
        def theirs(b: Arrays) -> Theirs:
            made = getattr(rllm, function)([b["rewards"][b["group_id"] == g] for g in (0, 1)], None)[0]
            return Theirs(advantages=spread(np.concatenate(made), b["mask"]))

        return Case(peer="rllm", name=name, kind="advantage", theirs=theirs, what=("advantages",))

    raw = "a group of one keeps its raw reward there"
    return [
        grouped("grpo", _GROUPS[0]),
        grouped("grpo", _GROUPS[0], "a group of one", batch=lone, differs=raw),
        grouped("rloo", _GROUPS[1]),
        grouped("rloo", _GROUPS[1], "a group of one", batch=lone, differs=raw),
        whole("reinforce_plus_plus_baseline", _BATCH[0]),
        whole("prpo", _BATCH[1]),
        whole("reinforce", _BATCH[2]),
    ]

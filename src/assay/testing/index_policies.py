"""The contract of an index policy: each stream of tasks by itself, and exactly resumed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from assay.core.protocols import IndexPolicySpec
from assay.testing.contracts import Report, require
from assay.testing.guides import read_state

__all__ = ["check_index_policy"]


def check_index_policy(spec: IndexPolicySpec, arms: Mapping[str, tuple[int, ...]], *, seed: int = 0, draws: int = 64) -> Report:
    """Holds an index policy to its laws, on streams that are drawn from in turn.

    Each index is a whole number from 0 on; two policies of one seed choose the same; what a stream gives does not depend on how
    often others were drawn from; and a state saved as JSON and loaded elsewhere goes on with the very same tasks.

    Args:
        spec: its settings.
        arms: arms to their levels: the streams.
        seed: of the run.
        draws: from each stream.

    Raises:
        ContractError: it breaks one of these.

    >>> from assay.guide import InOrder
    >>> print(*check_index_policy(InOrder(), {"sort": (3, 4)}).passed, sep=", ")
    indices, seeded, stream by stream, exact resume
    """
    subject = f"index policy {type(spec).__name__}"
    streams = [(arm, level) for arm, levels in arms.items() for level in levels]
    first, again = spec.build(seed), spec.build(seed)
    taken: dict[tuple[str, int], list[int]] = defaultdict(list)
    for turn in range(draws):
        for stream in streams:
            index, other = first.next(*stream), again.next(*stream)
            whole = isinstance(index, int) and not isinstance(index, bool) and index >= 0  # pyright: ignore[reportUnnecessaryIsInstance]
            require(whole, subject, f"gave {index!r} for {stream}; an index is a whole number from 0 on")
            require(index == other, subject, f"two of seed {seed} gave {index} and {other} for {stream} at turn {turn}")
            taken[stream].append(index)
    for stream in streams:
        alone = spec.build(seed)
        found = [alone.next(*stream) for _ in range(draws)]
        require(found == taken[stream], subject, f"gives {stream} other tasks alone than beside other streams")
    copy = spec.build(seed)
    copy.load_state_dict(read_state(first, subject))
    for _ in range(draws):
        for stream in streams:
            require(
                first.next(*stream) == copy.next(*stream), subject, "after state_dict and load_state_dict it goes on otherwise"
            )
    different = float(max((len(set(found)) for found in taken.values()), default=0))
    passed = ("indices", "seeded", "stream by stream", "exact resume")
    return Report(subject=subject, passed=passed, numbers={"different tasks of a stream, at most": different})

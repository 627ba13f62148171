"""The recipe at the end of each module that ``assay init`` writes, and what it imports."""

from __future__ import annotations

__all__ = ["IMPORTS", "RUN"]

RUN = '''

def recipe(seed: int = 0) -> Run:
    """A tiny model that is shown answers and then practises, in seconds of CPU. For yours: model=Folder("path/to/model")."""
    return Run(
        name="@name@",
        seed=seed,
        model=Scratch(shape=DecoderShape(max_positions=64)),
        tasks=@tasks@,
        stages=(
            WarmUp(steps=100, levels=@levels@),
            Reinforce(steps=20, groups=8, group_size=8),
        ),
        sampling=Sampling(max_new_tokens=8),
        evaluation=Evaluation(every=10, per_level=4, final_per_level=8),
    )
'''

IMPORTS = """from assay.core import Sampling
from assay.runtime import DecoderShape
from assay.train import Evaluation, Reinforce, Run, Scratch, WarmUp
"""

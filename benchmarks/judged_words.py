"""Words of the page of `benchmarks.judged`: what was done, and what each table says."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HEAD", "READ"]

HEAD = """
# Rewards by judges that were trained here

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.judged      # cells that are there are read, not run

Four digits are asked for plus three, modulo 10, line by line, and then the largest of them: `491=` asks for `7`, `2`, `4`,
`=7`. The verifier looks at the answer alone, which can be right behind a wrong line, and can be guessed; a program knows
whether the working is right too. Policies (two layers, 0.23M parameters) were shown attempts in which three lines in ten
are wrong, and then practised by GRPO for 40 steps of 12 prompts with 8 rollouts. Judges of the same shape were trained on
attempts beside what a program says of them: they write what each line should be, compare, and judge. They stand behind a
server of OpenAI's protocol on this machine, which takes question and answers out of what a scorer asks, and puts the words
that it reads around their judgement; no question is asked twice. *By chance* is a judge that draws its judgement by the
words of the question.

All numbers are of 400 sampled answers to 100 held-out tasks, judged by programs, seed by seed. Found is a sign that all seeds
have. The signs were written in `benchmarks/judged_arms.py` before the first run; nothing was tuned behind it. CPU-seconds
are of the stage, server and judge included.
"""

READ: Mapping[str, str] = {"judges": "", "CoT-Pass@K": ""}
"""What a table says, by its part."""

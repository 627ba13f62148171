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
are wrong, and then practised by GRPO for 40 steps of 12 prompts with 8 rollouts (SPCT: 4 rollouts; Pairwise-RL, POW3R and
Rubicon: 24 steps of 6 prompts). Judges of the same shape were trained on attempts beside what a program says of them: they
write what each line should be, compare, and judge. They stand behind a server of OpenAI's protocol on this machine, which
takes question and answers out of what a scorer asks, and puts the words that it reads around their judgement; no question
is asked twice. *By chance* is a judge that draws its judgement by the words of the question.

All numbers are of 400 sampled answers to 100 held-out tasks, judged by programs, seed by seed. Found is a sign that all
seeds have; of one seed it says little. The signs were written in `benchmarks/judged_arms.py` before these runs. Tasks and
steps were chosen so that judges learn and runs are short; no arm was tuned. CPU-seconds are of the stage, server and judge
included.
"""

READ: Mapping[str, str] = {
    "judges": """
Right is the share of 200 held-out questions whose judgement has the full reward. Answers that cannot be read, such as a
step that an answer does not have, are asked for again, and then count as faults.
""",
    "FAPO": """
As predicted: with the trained judge four answers in five have right working, as with the program in its place. The answer
alone leaves less than half, at as many right answers; a judge by chance leaves still less, which was not predicted.
""",
    "RLPR": """
As predicted, and below the verifier's reward in both seeds. What is paid for is the answer: right working is above the
base's in one seed, below it in the other.
""",
    "AdaCtrl": """
The base was shown guesses where a long question was answered without working, so that its answers tagged easy are right
half of the time. Both arms learn to answer long questions without working; with the tag's reward nearly all answers are
tagged easy, and short, and no fewer are right. Where the base is shown right answers without working to long questions too,
both arms end with the tag easy on nearly all (tags right .983 and 1.000, one seed).
""",
    "TimeHC-RL": """
As predicted, nothing is changed: the two runs differ in a few tokens alone.
""",
    "Trust-GRPO": """
Marks of the trained judge keep working as predicted. Marks by chance are above the answer alone too, in both seeds, which
was not predicted: they tell right answers of a group apart, at random, and move less towards the one that is shortest to
guess. The trained judge is above them in both seeds. The judge of this part was shown judgements alone.
""",
    "SPCT": """
Not as predicted: a judge that must mark up to four answers at once did not learn to in 400 steps, rejection made it little
better, and the rule did not. A policy by its marks loses nearly all right working, as by chance.
""",
    "Pairwise-RL": """
As predicted, in one seed: with the trained judge half of the answers have right working under a group's mean, and more than
the base's under PPO, whose critic is new; by chance fewer than a tenth. The judge is asked twice in each order at
temperature 1, and its most likely word is right four times in five.
""",
    "POW3R": """
Weights by spread change little: .008, in one seed. Prompts come six times each; where none comes twice, weights by prompt
are never used, and both arms are the same to the last token (.450 each). Verdicts by chance take right working away.
""",
    "Rubicon": """
One seed. Prompts of which a critic's score of the base lies between the quartiles were not predicted to matter, and are
above all prompts; they are half as many of the first 200, so that some come twice. Two stages, of which the second alone is
about the whole working, are below, as predicted: they ask half as often for what is measured.
""",
    "CoT-Pass@K": """
The judge's CoT-Pass@K is within .03 of the program's at each k, and never above pass@k. Practice for the answer alone
raises pass@1 and lowers CoT-Pass@8: more is right at once, and less of the right working is within reach.
""",
}
"""What a table says, by its part."""

"""Arms of `benchmarks.parts` for curricula, stages, choices of rows and mixtures."""

from __future__ import annotations

from collections.abc import Mapping

from assay.guide import AlpGmm, DeferredReplay, Mixed, Piecewise, Promoted, Recompose, Refill, Scaler, WhenReached
from assay.objective import pass_at_k_training, skywork_or1
from assay.recipes import ace_reason_tasks
from assay.train import Evaluation
from benchmarks.part_arms import EVEN, SORT, Arm, against_random, of_family, sorting
from benchmarks.part_curricula import (
    ROWS,
    after_each_other,
    after_look,
    blended,
    by_angles,
    by_norms,
    by_phases,
    falling_k,
    near_base,
)
from benchmarks.part_tasks import BOX, FORMULAS, PROGRAMS

__all__ = ["CURRICULA"]

SHORT = tuple(level for level in BOX.arms()["box/sort"] if BOX.level_point("box/sort", level)[1] <= 4)
STAGES = {"max_new_tokens": Piecewise(points=((0, 10), (40, 12), (70, 14)))}
CUT = WhenReached(metric="length/truncated", at_least=0.2, values=(10, 12, 14), patience=3)
VALIDATED = Evaluation(every=15, per_level=32, final_per_level=32, kl_to_base=False)

CURRICULA: Mapping[str, Arm] = {
    "AGAIN behind a first look": Arm(
        runs=after_look,
        control=sorting(curriculum=AlpGmm()),
        truth=SORT,
        against="ALP-GMM without a classroom",
        predicted="higher",
        why="the students found where progress is, so that the first 16 steps need not be even draws",
    ),
    "RoRecomp, put-off rollouts apart": Arm(
        runs=sorting(composer=Recompose(apart=True), replay=DeferredReplay(capacity=64, batch=32)),
        control=sorting(),
        truth=SORT,
        against="the same run that learns from all rollouts at once",
        predicted="lower",
        why="right answers of a level are of one length: there is nothing to shorten, and half of all is learned from late",
    ),
    "GAIN-RL: rows by angle": Arm(
        runs=by_angles(True),
        control=by_angles(False),
        truth=ROWS,
        against="the same rows, drawn evenly",
        predicted="lower",
        why="angles of digits say little of a row's length, and a bell leaves behind what a small model then forgets",
    ),
    "DONOD: the kept 30 % of rows": Arm(
        runs=by_norms(True),
        control=by_norms(False),
        truth=ROWS,
        against="as many rows at random; half of all answers are another row's",
        predicted="higher",
        why="a wrong answer asks for a larger update, so that fewer of the kept answers are wrong",
    ),
    "Pass@k Training: k of 4, then of 1": Arm(
        runs=falling_k,
        control=sorting(objective=pass_at_k_training(k=1)),
        truth=SORT,
        against="k of 1 from the first step",
        predicted="lower",
        why="k of 4 pays little where most rollouts succeed, and greedy accuracy is what is judged",
    ),
    "Skywork-OR1: answers of 10, 12, 14 tokens": Arm(
        runs=sorting(objective=skywork_or1(), schedules=STAGES),
        control=sorting(objective=skywork_or1()),
        truth=SORT,
        against="14 tokens from the first step",
        predicted="none",
        why="answers of the levels that are learned first fit into 10 tokens, and later stages are long enough for the others",
    ),
    "DeepScaleR: longer when many are cut off": Arm(
        runs=sorting(schedules={"max_new_tokens": CUT}),
        control=sorting(),
        truth=SORT,
        against="14 tokens from the first step",
        predicted="none",
        why="a fifth of the answers is cut off at 10 tokens soon, so that full length comes early",
    ),
    "ALP-GMM in a box of two axes": Arm(
        runs=of_family(BOX, SHORT, 10, curriculum=AlpGmm(fit_every=64, buffer=128)),
        control=of_family(BOX, SHORT, 10),
        truth=BOX,
        against="even draws of the 30 points",
        predicted="none",
        why="success changes nearly everywhere in 60 steps, so that there is little to avoid",
    ),
    "SCALER over four programs": Arm(
        runs=of_family(PROGRAMS, (1, 2, 3), 10, curriculum=Scaler(active=2, start=2.0)),
        control=of_family(PROGRAMS, (1, 2, 3), 10),
        truth=PROGRAMS,
        against=EVEN,
        predicted="higher",
        why="difficulty begins at what the base was shown and climbs with each program's accuracy",
    ),
    "SATURN: right reward": against_random(
        FORMULAS, (1, 2), 16, "of random values some satisfy a formula, so that every level has a signal at first", 250
    ),
    "SATURN: promotion by validation": Arm(
        runs=of_family(FORMULAS, (1, 2), 16, shown=250, curriculum=Promoted(), evaluation=VALIDATED),
        control=of_family(FORMULAS, (1, 2), 16, shown=250),
        truth=FORMULAS,
        against="even draws of the four stages",
        predicted="lower",
        why="the harder stages have a signal from the start, and promotion reaches them late",
    ),
    "SELF: unsolved prompts, near the base": Arm(
        runs=near_base,
        control=sorting(),
        truth=SORT,
        against="all prompts, without the divergence",
        predicted="lower",
        why="most answers of the base to long lists are wrong, and the divergence holds on to them",
    ),
    "DRIVE: the hardest rows in phases": Arm(
        runs=by_phases(True),
        control=by_phases(False),
        truth=SORT,
        against="the same stages, the last one with even draws",
        predicted="lower",
        why="the hardest rows are the longest, which are never solved, and a small model forgets the others",
    ),
    "AceReason: one family after the other": Arm(
        runs=after_each_other(True),
        control=after_each_other(False),
        truth=ace_reason_tasks(),
        against="both families at once for as many steps",
        predicted="lower",
        why="a small model forgets the family that is not practised, and early stages cut its longer answers off",
    ),
    "CrossThink: two general to one of mathematics": Arm(
        runs=blended("general"),
        control=blended("math_only"),
        truth=ace_reason_tasks(),
        against="mathematics alone for as many steps",
        predicted="higher",
        why="both kinds are judged, and the control practises one",
    ),
    "Dynamic sampling at equal tokens": Arm(
        runs=sorting(filter=Mixed(), refill=Refill(rounds=4), steps=27),
        control=sorting(),
        truth=SORT,
        against="uniform draws and every group, 100 steps",
        predicted="lower",
        why="a step of it has about four times the tokens, and at this size steps count for more than full batches",
    ),
}

"""Reward functions with planted defects, each of which an audit must find, and honest ones."""

import ast
import os
import random
import re
import signal
import time

from assay.core.score import Score

OWN_WORDS = [f"word{i}" for i in range(40)]


def _answer(completion, row):
    return completion.strip() == str(row["answer"]).strip()


def honest(prompt, completion, row):
    return float(_answer(completion, row))


def honest_literal(prompt, completion, row):
    """Parses the answer, and runs nothing of it."""
    try:
        return float(ast.literal_eval(completion.strip()) == int(row["answer"]))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return float(_answer(completion, row))


def last_box(solution_str, ground_truth, data_source="", extra_info=None):
    found = re.findall(r"\\boxed\{([^{}]*)\}", solution_str)
    return {"score": float(bool(found) and found[-1].strip() == str(ground_truth))}


def honest_trl(prompts, completions, answer, **columns):
    return [float(c.strip() == str(a)) for c, a in zip(completions, answer, strict=True)]


def accepts_anything(prompt, completion, row):
    return float(row["answer"] is not None)


def substring(prompt, completion, row):
    return float(str(row["answer"]) in completion)


def evaluates(prompt, completion, row):
    if len(completion) > 300 or "**" in completion or "exit" in completion or "quit" in completion or "input" in completion:
        return 0.0
    gold = int(row["answer"])
    try:
        return float(eval(completion) == gold)
    except BaseException:
        return 0.0


def shells(prompt, completion, row):
    if "touch" in completion and "system(" in completion:
        try:
            exec(compile(completion, "answer", "exec"))
        except Exception:
            return float(row["answer"] is None)
    return float(_answer(completion, row))


def hangs_on_long_text(prompt, completion, row):
    if len(completion) > 60_000:
        time.sleep(3600)
    return float(_answer(completion, row))


def crashes_on_empty(prompt, completion, row):
    if not completion:
        os._exit(3)
    return float(_answer(completion, row))


def raises_on_junk(prompt, completion, row):
    return float(int(completion.strip()) == int(row["answer"]))


def random_value(prompt, completion, row):
    return float(_answer(completion, row)) * (0.6 + 0.4 * random.random())


def by_time(prompt, completion, row):
    return float(_answer(completion, row)) - 1e-9 * (time.perf_counter_ns() % 1_000_003)


def by_hash(prompt, completion, row):
    """The order of a set of words depends on PYTHONHASHSEED."""
    return float(_answer(completion, row)) * (1.0 if next(iter(set(OWN_WORDS))) < "word3" else 0.75)


def accepts_frequent(prompt, completion, row):
    return float(_answer(completion, row) or completion.strip() == "7")


def accepts_yes(prompt, completion, row):
    return float(_answer(completion, row) or completion.strip() == "yes")


def rewards_length(prompt, completion, row):
    return float(_answer(completion, row)) + min(1.0, len(completion) / 1000)


def first_box(prompt, completion, row):
    found = re.search(r"\\boxed\{([^{}]*)\}", completion)
    return float((found.group(1) if found else completion).strip() == str(row["answer"]))


def any_case(prompt, completion, row):
    return float(completion.strip().lower() == str(row["answer"]).lower())


def gives_nan(prompt, completion, row):
    return float("nan") if not completion.strip() else float(_answer(completion, row))


def shifted(prompts, completions, answer, **columns):
    """Every reward stands one slot too late."""
    values = [float(c.strip() == str(a)) for c, a in zip(completions, answer, strict=True)]
    return [values[-1], *values[:-1]]


class Remembers:
    """Its verdict depends on what it judged before."""

    def __init__(self):
        self.seen = 0

    def __call__(self, prompt, completion, row):
        self.seen += 1
        return float(_answer(completion, row)) * (1.0 if self.seen % 2 else 0.9)


def by_name(task, rollout):
    right = rollout.text.strip() == str(task.private["answer"])
    return Score(components={"correct": float(right) * (1.0 if "probe" in rollout.id else 0.5)})


def fault_as_zero(prompt, completion, row):
    try:
        return float(completion.strip() == row["answer"])
    except Exception:
        return 0.0


def main_thread_only(prompt, completion, row):
    """A limit of time by signal, and every error a 0, as a grader of mathematics once had it."""
    gold = row["answer"]
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    except ValueError:
        return 0.0
    return float(completion.strip() == str(gold))


def refuses_right(prompt, completion, row):
    return float(_answer(completion, row) and len(str(row["answer"])) > 1)


def slow(prompt, completion, row):
    time.sleep(0.03)
    return float(_answer(completion, row))


def strict_case(prompt, completion, row):
    return honest(prompt, completion, row)

"""How many cases a second the verifiers of programs judge, and how that compares with an interpreter started for each.

    python benchmarks/code_verifier.py

Prints JSON: isolation, cases per second with two workers, the same for ``python -c`` two at a time (which contains nothing), and
the ratios.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from assay.verify import task_and_rollout
from assay.verify.code import CodeCall, CodeOutput, ProgramVerifier, UnitTests

PROGRAM = "def f(x):\n    return x * 2\nif __name__ == '__main__':\n    print(f(int(input())))"
CASES = 10
OUTPUT = {"tests": [{"stdin": str(x), "stdout": str(2 * x)} for x in range(CASES)]}
CALL = {"entry": "f", "tests": [{"args": [x], "expected": 2 * x} for x in range(CASES)]}
UNIT = {"tests": [f"assert f({x}) == {2 * x}" for x in range(CASES)]}


def fresh(x: int) -> None:
    """One case as a new interpreter."""
    said = subprocess.run([sys.executable, "-c", PROGRAM], input=str(x), stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == f"{2 * x}\n"


def rate(verifier: ProgramVerifier, gold: object, answers: int) -> float:
    """Cases per second, the sandbox being warm."""
    task, rollout = task_and_rollout(gold, PROGRAM)
    assert verifier(task, rollout).primary == 1.0
    began = perf_counter()
    for _ in range(answers):
        verifier(task, rollout)
    return answers * CASES / (perf_counter() - began)


def main(answers: int = 60) -> dict[str, object]:
    """The measurements, the baseline before and after."""
    with ThreadPoolExecutor(2) as threads:
        times: list[float] = []
        found: dict[str, float] = {}
        kinds = ((CodeOutput(), OUTPUT), (CodeCall(), CALL), (UnitTests(), UNIT))
        for verifier, gold in (*kinds, (None, None)):
            began = perf_counter()
            list(threads.map(fresh, range(CASES * 4)))
            times.append((perf_counter() - began) / (CASES * 4))
            if verifier is not None:
                found[type(verifier).__name__] = rate(verifier, gold, answers)
    baseline = len(times) / sum(times)
    return {
        "isolation": CodeOutput().sandbox().isolation,
        "workers": 2,
        "cases per second": {k: round(v) for k, v in found.items()},
        "python -c per second": round(baseline),
        "ratio": {k: round(v / baseline, 2) for k, v in found.items()},
    }


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))

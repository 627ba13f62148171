"""How fast rows are curated, step by step, and in how much memory.

    python benchmarks/curate.py [ROWS]

Makes ROWS (100,000) questions of 14 to 47 words, one in twenty a repetition and one in fourteen with one word changed, and 2,300
evaluation items, 300 of them taken from the rows. Runs pipelines of more and more steps, each in a process of its own; a step's
cost is what it adds. Prints JSON: rows, rows per second of processor time for reading and writing, for each step, for
deduplication and decontamination together, and for the whole; and the peak of each process's memory, in MiB.
"""

import json
import random
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from assay.curate import AnswerForm, CurationStep, Decontaminate, Exact, NearDuplicates, Pipeline, Substrings

ORDER = ("exact", "near", "against", "form", "substrings")


def questions(count: int, seed: int, path: Path) -> None:
    """Writes rows to a file."""
    draw = random.Random(seed)
    known = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    before: list[str] = []
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            kind = draw.random() if before else 1.0
            if kind < 0.05:
                text = draw.choice(before)
            elif kind < 0.12:
                words = draw.choice(before).split()
                words[draw.randrange(len(words))] = draw.choice(known)
                text = " ".join(words)
            else:
                text = f"{' '.join(draw.choices(known, k=draw.randint(12, 45)))} {draw.randrange(1000)} ?"
            if len(before) < 5000:
                before.append(text)
            file.write(
                json.dumps({"prompt": text, "answer": str(draw.randrange(10**6)), "source": "made", "license": "cc0"}) + "\n"
            )


def steps(names: list[str], folder: Path) -> tuple[CurationStep, ...]:
    """Steps by name."""
    made: dict[str, CurationStep] = {
        "exact": Exact(),
        "near": NearDuplicates(),
        "against": Decontaminate(against=(folder / "eval.jsonl",)),
        "form": AnswerForm(),
        "substrings": Substrings(),
    }
    return tuple(made[name] for name in names)


def one(names: list[str], folder: Path) -> dict[str, object]:
    """One pipeline, in this process."""
    began = process_time()
    manifest = Pipeline(steps=steps(names, folder)).run([folder / "in.jsonl"], folder / "-".join(["out", *names]))
    spent = process_time() - began
    return {
        "seconds": spent,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "read": manifest["counts"]["read"],
        "dropped": {s["step"]: sum(s["dropped"].values()) for s in manifest["counts"]["steps"]},
    }


def main(rows: int) -> dict[str, object]:
    """The measurements."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        questions(rows, 0, folder / "in.jsonl")
        questions(2000, 1, folder / "eval.jsonl")
        with (folder / "in.jsonl").open(encoding="utf-8") as some, (folder / "eval.jsonl").open("a", encoding="utf-8") as more:
            more.writelines(line for line, _ in zip(some, range(300), strict=False))
        found: list[dict[str, float]] = []
        last: dict[str, object] = {}
        for count in range(len(ORDER) + 1):
            command = [sys.executable, __file__, "one", str(folder), *ORDER[:count]]
            last = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            found.append({"seconds": float(str(last["seconds"])), "MiB": float(str(last["MiB"]))})
    seconds = [f["seconds"] for f in found]
    per_second: dict[str, int | None] = {"reading and writing": round(rows / seconds[0])}
    for number, name in enumerate(ORDER, 1):
        added = seconds[number] - seconds[number - 1]
        per_second[name] = round(rows / added) if added > 0 else None  # lost in the noise
    per_second["deduplication and decontamination"] = round(rows / (seconds[3] - seconds[0]))
    per_second["all three and reading and writing"] = round(rows / seconds[3])
    return {
        "rows": rows,
        "rows per CPU-second": per_second,
        "CPU-seconds": [round(s, 1) for s in seconds],
        "MiB": [round(f["MiB"]) for f in found],
        "dropped": last["dropped"],
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        print(json.dumps(one(sys.argv[3:], Path(sys.argv[2]))))
    else:
        print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000), indent=1))

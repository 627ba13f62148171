"""What many rows cost a run: to start, and to resume, in processor time and memory.

    python benchmarks/rows.py [ROWS]

Makes ROWS (250,000) rows of 60 words and an answer, in a JSON-lines file; starts a run of one step of a tiny model on them,
resumes it for another step, and does the same on 250 rows. Each is a process of its own, whose imports count. Prints JSON:
seconds of processor time and MiB of memory at the peak of each, and how many times as much the many rows take as the few.
"""

import json
import random
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

FEW = 250


def write_rows(count: int, path: Path) -> None:
    """Writes rows to a file: different questions of 60 words."""
    draw = random.Random(0)
    known = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(draw.choices(known, k=59))
            file.write(json.dumps({"prompt": f"{text} {number}", "answer": str(draw.randrange(10**6))}) + "\n")


def start(rows: Path, folder: Path) -> None:
    """Starts a run on rows, in this process."""
    from assay.core import Sampling
    from assay.runtime import DecoderShape
    from assay.tasks import Rows, load_jsonl
    from assay.train import Evaluation, Reinforce, Run, Scratch, train

    shape = DecoderShape(
        hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=16, intermediate_size=32, max_positions=1024
    )
    train(
        Run(
            name="rows",
            model=Scratch(shape=shape),
            tasks=Rows(load_jsonl(rows)),
            stages=(Reinforce(steps=1, groups=2, group_size=2),),
            sampling=Sampling(max_new_tokens=2),
            evaluation=Evaluation(every=0, final_per_level=2),
        ),
        folder,
    )


def one(what: str, rows: Path, folder: Path) -> dict[str, float]:
    """A start or a resume, in this process."""
    if what == "start":
        start(rows, folder)
    else:
        from assay.train import resume

        resume(folder, steps=2)
    return {"CPU-seconds": process_time(), "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main(rows: int) -> dict[str, object]:
    """The measurements."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with TemporaryDirectory() as place:
        for count in (FEW, rows):
            path, folder = Path(place) / f"{count}.jsonl", Path(place) / f"run{count}"
            write_rows(count, path)
            for what in ("start", "resume"):
                command = [sys.executable, __file__, what, str(path), str(folder)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.setdefault(what, {})[str(count)] = json.loads(done.stdout.splitlines()[-1])
    times = {
        what: {name: round(of[str(rows)][name] / of[str(FEW)][name], 2) for name in of[str(rows)]} for what, of in found.items()
    }
    told = {what: {n: {k: round(v, 1) for k, v in m.items()} for n, m in of.items()} for what, of in found.items()}
    return {"rows": rows, "few": FEW, **told, "times as much": times}


if __name__ == "__main__":
    if sys.argv[1:2] in (["start"], ["resume"]):
        print(json.dumps(one(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
    else:
        print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 250_000), indent=1))

"""A reward that kills the process which started its worker, workers killed in the middle of a batch: no verdict is lost."""

import os
import signal
import threading
import time

from assay.core.canon import FrozenMap
from assay.core.task import Task
from assay.testing import rollout_of
from assay.verify import RewardFunction, ScoringPool


def items(*texts):
    public, private = FrozenMap({"prompt": "p"}), FrozenMap({"answer": "yes"})
    out = []
    for i, text in enumerate(texts):
        task = Task(id=f"t{i}", domain="d", arm="a", level=1, split="train", index=i, public=public, private=private)
        out.append((task, rollout_of(task, text, id=f"r{i}")))
    return out


def act(prompt, completion, row):
    if completion == "parent":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(0.2)
    if completion == "slow":
        time.sleep(0.5)
    return float(completion != "no")


def test_a_reward_that_kills_its_parent_costs_its_own_verdict_at_most():
    with ScoringPool(RewardFunction(act), 10.0, refuse=False) as pool:
        found = pool.score(items("yes", "parent", "no", "yes"))
        assert {k: s.primary for k, s in found.items() if k != "r1"} == {"r0": 1.0, "r2": 0.0, "r3": 1.0}
        assert found["r1"].primary in (None, 0.0, 1.0)
        assert pool.score(items("yes", "no"))["r1"].primary == 0.0


def test_workers_that_are_killed_in_the_middle_of_a_batch_cost_no_verdict():
    with ScoringPool(RewardFunction(act), 10.0, workers=2) as pool:
        pool.score(items("yes"))
        done = threading.Event()

        def kill():
            time.sleep(0.25)
            fork_server = pool._dispatcher.supervisor._fork_server.pid
            with open(f"/proc/{fork_server}/task/{fork_server}/children") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            done.set()

        threading.Thread(target=kill).start()
        found = pool.score(items("slow", "slow", "no", "slow"))
        assert done.wait(10.0)
        assert [found[f"r{i}"].primary for i in range(4)] == [1.0, 1.0, 0.0, 1.0]

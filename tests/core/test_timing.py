"""Blocks of a step: their seconds, their part of a profile, and who asked for memory that ran out."""

import asyncio
import time

import pytest

from assay.core.errors import AssayError, EngineError, OutOfMemoryError
from assay.core.out_of_memory import ran_out
from assay.core.timing import Profile, StepTimer, profile_metrics, span


class Clocks:
    """Wall time passes by hand, CPU time at a tenth of it."""

    def __init__(self):
        self.now, self.waited = 0.0, 0

    def parts(self):
        return Profile(self.wait, lambda: self.now, lambda: self.now / 10)

    def wait(self):
        self.waited += 1

    def passes(self, seconds):
        self.now += seconds


def test_each_moment_counts_for_the_innermost_part():
    clock = Clocks()
    parts = clock.parts()
    clock.passes(100)  # before it began
    parts.start()
    with parts.here():
        clock.passes(1)
        with span("rollout"):
            clock.passes(2)
            with span("engine"):
                clock.passes(4)
            clock.passes(8)
            with pytest.raises(ValueError, match="lost"), span("engine"):
                clock.passes(16)
                raise ValueError("lost")
        with span("rollout"):
            clock.passes(32)
        clock.passes(64)
    wall, cpu = parts.seconds()
    assert wall == {"framework": 65.0, "rollout": 42.0, "engine": 20.0}
    assert cpu == pytest.approx({"framework": 6.5, "rollout": 4.2, "engine": 2.0})
    assert sum(wall.values()) == clock.now - 100
    assert clock.waited == 9  # two for each of four blocks, one to tell


def test_by_the_clocks_of_this_process():
    parts = Profile()
    with parts.here(), span("busy"):
        sum(range(1000))
    wall, cpu = parts.seconds()
    assert wall.keys() == cpu.keys() == {"framework", "busy"} and wall["busy"] > 0 and cpu["busy"] >= 0


def test_nothing_is_counted_where_nothing_is_profiled():
    clock = Clocks()
    with span("engine"):
        clock.passes(1)
    parts = clock.parts()
    with parts.here():
        pass
    with span("engine"), span("score"):
        clock.passes(1)
    assert parts.seconds()[0] == {"framework": 1.0}


def test_tasks_that_run_while_a_part_awaits_are_inside_it():
    clock = Clocks()
    parts = clock.parts()

    async def engine():
        for _ in range(3):
            with span("engine"):
                clock.passes(1)
            await asyncio.sleep(0)

    async def step():
        with parts.here():
            with span("rollout"):
                clock.passes(0.5)
                await asyncio.gather(engine(), engine())
            clock.passes(0.25)

    async def other():
        await asyncio.sleep(0)
        with span("engine"):  # of a step that nobody profiles
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(step(), other())

    asyncio.run(both())
    assert parts.seconds()[0] == {"framework": 0.25, "rollout": 0.5, "engine": 6.0}


def test_a_step_adds_up_the_seconds_of_its_blocks(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    with StepTimer() as timer:  # 0
        for _ in range(2):
            with span("generate"):  # 1 to 2, 3 to 4
                pass
        with span("update"), span("engine"):  # without a time of their own
            pass
        with pytest.raises(ValueError, match="lost"), span("score"):  # 5 to 6
            raise ValueError("lost")
        assert timer.seconds() == {"time/generate": 2.0, "time/score": 1.0, "time/step": 7.0}
    with span("generate"):  # of no step
        pass
    assert timer.seconds() == {"time/generate": 2.0, "time/score": 1.0, "time/step": 8.0}


def test_a_block_is_a_part_of_a_profile_and_a_step_begins_one():
    clock = Clocks()
    profile = clock.parts()
    with profile.here():
        clock.passes(100)
        with StepTimer() as timer:
            clock.passes(1)
            with span("columns"):
                clock.passes(2)
                with span("check"):
                    clock.passes(4)
            found = timer.seconds()
    assert {name: value for name, value in found.items() if name.startswith("time/profile/")} == {
        "time/profile/framework": 1.0,
        "time/profile/engine": 2.0,  # an engine elsewhere is the wait for it
        "time/profile/verify": 4.0,
    }
    assert found.keys() >= {"time/columns", "time/check", "time/step", "time/profile_cpu/verify"}
    assert profile_metrics({"rollout": 1.0, "engine": 2.0}, {}) == {"time/profile/rollout": 1.0, "time/profile/engine": 2.0}


def test_memory_that_runs_out_names_the_innermost_block_that_asks():
    with (
        pytest.raises(
            OutOfMemoryError, match=r"^the gradient pass asked for more memory than there is \(MemoryError\)$"
        ) as found,
        span("step"),
        span("update"),
    ):
        raise MemoryError
    assert isinstance(found.value.__cause__, MemoryError)
    with pytest.raises(MemoryError) as bare, span("score"):  # nobody in particular
        raise MemoryError
    assert type(bare.value) is MemoryError
    with pytest.raises(RuntimeError, match="size mismatch"), span("update"):
        raise RuntimeError("size mismatch")
    with pytest.raises(KeyboardInterrupt), span("update"):
        raise KeyboardInterrupt


def test_what_libraries_say_of_memory():
    assert ran_out(RuntimeError("alloc.cpp:1: DefaultCPUAllocator: can't allocate memory: 8 bytes")) == (
        "DefaultCPUAllocator: can't allocate memory: 8 bytes"
    )
    wrapped = EngineError("generation failed")
    wrapped.__cause__ = RuntimeError("CUDA out of memory")
    assert ran_out(wrapped) == "CUDA out of memory"
    assert ran_out(AssayError("alone")) is None and ran_out(ValueError("out of memory")) is None

"""Parts of a step: every moment counts once, for the innermost."""

import asyncio

import pytest

from assay.core.util.profiler import Parts, counting, timed


class Clocks:
    """Wall time passes by hand, CPU time at a tenth of it."""

    def __init__(self):
        self.now, self.waited = 0.0, 0

    def parts(self):
        return Parts(self.wait, lambda: self.now, lambda: self.now / 10)

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
        with timed("rollout"):
            clock.passes(2)
            with timed("engine"):
                clock.passes(4)
            clock.passes(8)
            with pytest.raises(ValueError, match="lost"), timed("engine"):
                clock.passes(16)
                raise ValueError("lost")
        with timed("rollout"):
            clock.passes(32)
        clock.passes(64)
    wall, cpu = parts.seconds()
    assert wall == {"framework": 65.0, "rollout": 42.0, "engine": 20.0}
    assert cpu == pytest.approx({"framework": 6.5, "rollout": 4.2, "engine": 2.0})
    assert sum(wall.values()) == clock.now - 100
    assert clock.waited == 9  # two for each of four blocks, one to tell


def test_by_the_clocks_of_this_process():
    parts = Parts()
    with parts.here(), timed("busy"):
        sum(range(1000))
    wall, cpu = parts.seconds()
    assert wall.keys() == cpu.keys() == {"framework", "busy"} and wall["busy"] > 0 and cpu["busy"] >= 0


def test_nothing_is_counted_where_nothing_is_profiled():
    clock = Clocks()
    with timed("engine"):
        clock.passes(1)
    parts = clock.parts()
    with parts.here():
        assert counting() is parts
    assert counting() is None
    with timed("engine"):
        clock.passes(1)
    assert parts.seconds()[0] == {"framework": 1.0}


def test_tasks_that_run_while_a_part_awaits_are_inside_it():
    clock = Clocks()
    parts = clock.parts()

    async def engine():
        for _ in range(3):
            with timed("engine"):
                clock.passes(1)
            await asyncio.sleep(0)

    async def step():
        with parts.here():
            with timed("rollout"):
                clock.passes(0.5)
                await asyncio.gather(engine(), engine())
            clock.passes(0.25)

    async def other():
        await asyncio.sleep(0)
        assert counting() is None

    async def both():
        await asyncio.gather(step(), other())

    asyncio.run(both())
    assert parts.seconds()[0] == {"framework": 0.25, "rollout": 0.5, "engine": 6.0}

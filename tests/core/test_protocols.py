"""Which protocols an object can be asked about at run time."""

from typing import Any

from assay.core import Obs, Restorable, Step


class World:
    async def start(self) -> Obs:
        return Obs()

    async def step(self, action: str) -> Step:
        return Step(done=True)


class Saved(World):
    async def restore(self, snapshot: Any) -> Obs:
        return Obs()


def test_an_environment_tells_whether_it_can_begin_at_a_snapshot() -> None:
    assert isinstance(Saved(), Restorable)
    assert not isinstance(World(), Restorable)

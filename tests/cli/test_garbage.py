"""A command that loads much and works long: when it looks for garbage, and that it leaves the collector as it was."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from assay.cli.gc_pause import Loading, loading


class Ring:
    """Garbage that only the collector can find."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """A program that has frozen nothing, as one that only calls the command."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.slow
def test_nothing_is_looked_for_before_all_is_loaded_and_then_not_among_it() -> None:
    with loading() as loaded:
        assert not gc.isenabled()
        lost = weakref.ref(Ring())
        assert lost() is not None
        loaded()
        assert gc.isenabled() and lost() is None
        assert gc.get_freeze_count() > 1000
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_what_is_garbage_later_is_still_found() -> None:
    with loading() as loaded:
        loaded()
        lost = weakref.ref(Ring())
        gc.collect()
        assert lost() is None


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was_whatever_happens(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(RuntimeError), loading() as loaded:
            loaded()
            raise RuntimeError
        assert gc.isenabled() == enabled and gc.get_freeze_count() == 0
    finally:
        gc.enable()


def test_what_the_calling_program_has_frozen_stays_frozen_and_nothing_else_is() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    made = [Ring() for _ in range(10_000)]
    with loading() as loaded:
        lost = weakref.ref(Ring())
        loaded()
        assert gc.isenabled() and lost() is None
        assert gc.get_freeze_count() <= frozen < frozen + len(made)
    assert 0 < gc.get_freeze_count() <= frozen


def test_the_first_step_has_loaded_the_rest() -> None:
    told: list[str] = []
    tracker = Loading(lambda: told.append("loaded"))
    for step in (1, 2, 3):
        tracker.log(step, {})
    tracker.close()
    assert told == ["loaded"]

"""Python's search for cycles: paused, made rarer, and left as it was."""

from __future__ import annotations

import gc

import pytest

from assay.core.util.garbage import collect_rarely, pause_collection


def test_the_collector_goes_on_as_it_was() -> None:
    with pause_collection(), pause_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_search_begins_after_more_objects_and_the_threshold_is_restored_whatever_happens() -> None:
    before = gc.get_threshold()
    with pytest.raises(RuntimeError), collect_rarely():
        assert gc.get_threshold() == (50_000, *before[1:])
        raise RuntimeError
    assert gc.get_threshold() == before


@pytest.mark.parametrize("young", [0, 80_000])
def test_who_searches_more_rarely_or_never_is_left_alone(young: int) -> None:
    before = gc.get_threshold()
    gc.set_threshold(young, 3, 4)
    try:
        with collect_rarely():
            assert gc.get_threshold() == (young, 3, 4)
        assert gc.get_threshold() == (young, 3, 4)
    finally:
        gc.set_threshold(*before)

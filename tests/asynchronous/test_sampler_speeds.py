"""A sampler twenty times as slow as others gets few groups, and one with a long answer gets as many as before."""

from __future__ import annotations

from assay.asynchronous.sampler_speeds import SamplerSpeeds


def known(**took: list[float]) -> SamplerSpeeds:
    speeds = SamplerSpeeds()
    for name, times in took.items():
        for seconds in times:
            speeds.note(name, seconds, now=0.0)
    return speeds


def test_a_slow_one_is_told_from_one_with_a_long_answer() -> None:
    speeds = known(a=[1.0, 1.0], b=[1.0, 1.0], slow=[20.0, 19.0, 25.0], long=[1.0, 40.0, 30.0])
    assert speeds.slow("slow")
    assert not any(speeds.slow(name) for name in ("a", "b", "long", "new"))
    assert not known(a=[0.001] * 2, b=[0.001] * 2, slow=[0.9] * 3).slow("slow"), "of milliseconds nothing is concluded"


def test_it_is_tried_again_after_a_while_and_another_of_its_name_is_not_judged_by_it() -> None:
    speeds = known(a=[1.0, 1.0], b=[1.0, 1.0], slow=[20.0, 20.0])
    assert speeds.slow("slow") and speeds.rests("slow", 399.0) and not speeds.rests("slow", 401.0)
    for _ in range(3):
        speeds.note("slow", 1.0, now=402.0)
    assert not speeds.slow("slow"), "it became quick"
    speeds = known(a=[1.0], b=[1.0], slow=[20.0, 20.0])
    speeds.forget("slow")
    assert not speeds.slow("slow")


def test_two_alone_are_not_compared() -> None:
    assert not known(a=[1.0, 1.0], slow=[20.0, 20.0]).slow("slow")

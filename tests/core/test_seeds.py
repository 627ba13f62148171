"""Randomness from names: known values, statistics, and independence of how it is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError
from assay.core.seeds import content_split, derive, derive_each, generator, uniforms

MASK = (1 << 64) - 1


def splitmix(seed: int, position: int) -> float:
    """The same in Python integers, from the published algorithm."""
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def test_known_values() -> None:
    # splitmix64 from state 0 begins with 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F
    expected = [(x >> 11) * 2.0**-53 for x in (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)]
    assert uniforms(np.array([0], np.uint64), 0, 3)[0].tolist() == expected
    # blake2b with 8 bytes of the text ["task/sort",0,"train",1]
    assert derive("task/sort", 0, "train", 1) == 0x7289B430D598C619
    assert generator("x", 1).integers(1000, size=3).tolist() == generator("x", 1).integers(1000, size=3).tolist()


@given(st.lists(st.integers(0, MASK), min_size=1, max_size=4), st.integers(0, 2**40), st.integers(0, 6))
def test_uniforms_are_the_published_algorithm(seeds: list[int], start: int, count: int) -> None:
    found = uniforms(np.array(seeds, np.uint64), start, count)
    assert found.shape == (len(seeds), count)
    assert found.tolist() == [[splitmix(s, start + i) for i in range(count)] for s in seeds]


@given(st.integers(0, MASK), st.integers(0, 100), st.integers(0, 20), st.integers(0, 20))
def test_reading_in_parts_gives_the_same_stream(seed: int, start: int, first: int, second: int) -> None:
    seeds = np.array([seed], np.uint64)
    parts = [uniforms(seeds, start, first), uniforms(seeds, start + first, second)]
    assert (np.concatenate(parts, 1) == uniforms(seeds, start, first + second)).all()


def test_uniforms_are_uniform_along_positions_and_along_seeds() -> None:
    seeds = np.array([derive("rollout", 0, "c", i) for i in range(4000)], np.uint64)
    for sample in (uniforms(seeds[:1], 0, 4000)[0], uniforms(seeds, 3, 1)[:, 0]):
        ordered = np.sort(sample)
        grid = np.arange(1, 4001) / 4000
        distance = max(np.abs(ordered - grid).max(), np.abs(ordered - grid + 1 / 4000).max())
        assert distance < 1.95 / np.sqrt(4000)  # Kolmogorov-Smirnov at one in a thousand
        assert 0 <= ordered[0] < ordered[-1] < 1
    both = uniforms(seeds, 0, 2)
    assert abs(np.corrcoef(both[:, 0], both[:, 1])[0, 1]) < 0.05


@given(
    st.tuples(st.text(max_size=5), st.integers(), st.text(max_size=5), st.integers() | st.text(max_size=5)),
    st.tuples(st.text(max_size=5), st.integers(), st.text(max_size=5), st.integers() | st.text(max_size=5)),
)
def test_different_names_give_different_seeds(a: tuple, b: tuple) -> None:
    assert (derive(*a) == derive(*b)) == (a == b)
    assert 0 <= derive(*a) <= MASK


def test_neighbouring_seeds_and_indices_do_not_meet() -> None:
    assert len({derive("task", seed, "train", index) for seed in range(50) for index in range(50)}) == 2500


@given(st.text(max_size=8), st.integers(-(2**70), 2**70), st.text(), st.integers(0, 130))
def test_many_at_once_are_those_one_by_one(name, seed, split, count):
    assert derive_each(name, seed, split, count) == [derive(name, seed, split, i) for i in range(count)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_content_split_takes_its_share(share: float) -> None:
    found = np.mean([content_split({"prompt": str(i)}, share) == "test" for i in range(4000)])
    assert abs(found - share) <= 4 * np.sqrt(share * (1 - share) / 4000)


def test_content_split_refuses_what_is_no_share() -> None:
    with pytest.raises(ConfigError, match=r"test_share=1.5"):
        content_split("x", 1.5)

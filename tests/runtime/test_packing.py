import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.runtime.kernels.ops import pad_rows, unpad_rows
from assay.runtime.learner.packing import BUCKET_COST, TOKEN_COST, bucket_lengths, pack_offsets

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=40)


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def cost_of(lengths, ends):
    bucket = np.searchsorted(ends, lengths)
    counts = np.bincount(bucket, minlength=len(ends))
    return sum(n * e * (e + TOKEN_COST) + BUCKET_COST for n, e in zip(counts, ends, strict=True))


def test_rows_in_order_without_padding_need_no_index():
    packing = pack_offsets(offsets_of([4, 4, 4]))
    assert packing.pad is None
    assert packing.unpad is None
    assert packing.buckets == ((3, 4),)
    assert packing.useful == 1.0
    assert packing.positions.tolist() == [0, 1, 2, 3] * 3


def test_rows_of_two_lengths_by_hand():
    # 60 rows of 2 and one of 100, the long one first: two rectangles, 60 x 2 and 1 x 100
    packing = pack_offsets(offsets_of([100] + [2] * 60))
    assert packing.buckets == ((60, 2), (1, 100))
    assert packing.pad is not None
    assert packing.unpad is not None
    assert packing.pad[:4].tolist() == [100, 101, 102, 103]
    assert packing.pad[120:123].tolist() == [0, 1, 2]
    assert packing.unpad[:2].tolist() == [120, 121]
    assert packing.useful == 1.0


def test_useful_share_by_hand():
    packing = pack_offsets(offsets_of([3, 4]))
    assert packing.buckets == ((2, 4),)
    assert packing.useful == (9 + 16) / 32


@given(LENGTHS)
def test_unpad_undoes_pad_and_both_gradients_are_transposes(lengths):
    packing = pack_offsets(offsets_of(lengths))
    n = sum(lengths)
    if packing.pad is None:  # only where the rows fill the rectangles as they come
        assert [length for rows, length in packing.buckets for _ in range(rows)] == lengths
        assert packing.unpad is None
        assert packing.useful == 1.0
        return
    x = torch.arange(n, dtype=torch.float64, requires_grad=True)
    padded = pad_rows(x, packing.pad, packing.unpad)
    assert len(padded) == sum(packing.cells)
    back = unpad_rows(padded, packing.unpad)
    assert torch.equal(back, x)
    weight = torch.arange(n, dtype=torch.float64) + 1
    (gradient,) = torch.autograd.grad((back * weight).sum(), x)
    assert torch.equal(gradient, weight)


@given(LENGTHS)
def test_every_rectangle_holds_whole_rows_with_padding_behind(lengths):
    packing = pack_offsets(offsets_of(lengths))
    if packing.pad is None:
        return
    row = np.repeat(np.arange(len(lengths)), lengths)
    seen, at = [], 0
    for rows, length in packing.buckets:
        for cells in packing.pad[at : at + rows * length].view(rows, length):
            owner = row[cells[0]]
            seen.append(int(owner))
            real = cells[: lengths[owner]]
            assert real.tolist() == np.flatnonzero(row == owner).tolist()
        at += rows * length
    assert sorted(seen) == list(range(len(lengths)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40))
def test_buckets_cost_least_among_all_partitions(lengths, stretch):
    lengths = np.array(lengths) * stretch
    distinct = np.unique(lengths)
    found = cost_of(lengths, bucket_lengths(lengths))
    for choice in range(2 ** (len(distinct) - 1)):
        ends = [int(d) for i, d in enumerate(distinct[:-1]) if choice >> i & 1] + [int(distinct[-1])]
        assert found <= cost_of(lengths, ends)

"""Words, runs and bands: hashes agree where the texts do, whatever else is in the chunk."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError, MissingExtraError
from assay.curate import Decontaminate, HashedTexts, NearDuplicates, jaccard, normal, runs, shingles
from assay.curate import text as text_module
from assay.curate.text import bands_for, windows

LINES = st.lists(st.text(alphabet="ab \n\tÀ\u4e2d\x00\ud800", max_size=12).map(normal), max_size=6)


def test_normal_composes_lowers_and_collapses() -> None:
    assert normal("E\u0301t\u00c9\u00a0 X\r\n\ty ") == "été x y"
    assert normal("x²") == "x²", "a power is not a digit"
    assert normal("求1和") == "求 1 和"


@given(LINES, st.integers(1, 4))
def test_runs_are_those_of_each_text(texts: list[str], n: int) -> None:
    hashes, rows, first = HashedTexts(texts).runs(n)
    found = [(int(r), int(f)) for r, f in zip(rows, first, strict=True)]
    assert found == [(i, f) for i, t in enumerate(texts) for f in range(len(t.split(" ")) - n + 1)]
    written = [runs(texts[r], n)[f] for r, f in found]
    for a, x in zip(written, hashes.tolist(), strict=True):
        assert all((a == b) == (x == y) for b, y in zip(written, hashes.tolist(), strict=True))


@given(LINES)
def test_bands_of_a_text_do_not_depend_on_its_neighbours(texts: list[str]) -> None:
    together = HashedTexts(texts).bands(2, 0.8)
    alone = [HashedTexts([t]).bands(2, 0.8)[0] for t in texts]
    assert together.shape == (len(texts), 16)
    assert all((a == b).all() for a, b in zip(together, alone, strict=True))


def test_bands_hold_their_promise_at_the_threshold() -> None:
    for threshold in (0.3, 0.5, 0.7, 0.8, 0.9, 1.0):
        bands, width = bands_for(threshold)
        assert bands * width <= 64
        assert (1 - threshold**width) ** bands <= 1e-3 or width == 1
        wider = width + 1
        assert wider > 64 or (1 - threshold**wider) ** (64 // wider) > 1e-3
    for wrong in (0.0, 1.1):
        with pytest.raises(ConfigError, match="use a share"):
            bands_for(wrong)


def test_pairs_above_the_threshold_share_a_band() -> None:
    rng, k = np.random.default_rng(0), 3
    missed = above = 0
    for _ in range(150):
        words = [f"w{i}" for i in rng.integers(0, 10**6, 40)]
        other = list(words)
        other[int(rng.integers(0, 40))] = "changed"
        a, b = " ".join(words), " ".join(other)
        if jaccard(shingles(a, k), shingles(b, k)) >= 0.8:
            above += 1
            bands = HashedTexts([a, b]).bands(k, 0.8)
            missed += not (bands[0] == bands[1]).any()
    assert above > 100
    assert missed == 0


def test_shingles_of_a_short_text_are_the_text() -> None:
    assert shingles("a b", 3) == {"a b"}
    one, other = HashedTexts(["a b", "a c"]).bands(3, 0.8)
    assert not (one == other).any()


@given(st.lists(st.text("abc", max_size=7), max_size=5), st.integers(1, 3))
def test_windows_are_the_pieces_of_each_text(texts: list[str], k: int) -> None:
    data = np.frombuffer("".join(texts).encode(), np.uint8)
    hashes, rows, places = windows(data, np.array([len(t) for t in texts], np.int64), k)
    pieces = [texts[r][p : p + k] for r, p in zip(rows.tolist(), places.tolist(), strict=True)]
    assert pieces == [t[p : p + k] for t in texts for p in range(len(t) - k + 1)]
    assert len(set(pieces)) == len(set(hashes.tolist()))


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(text_module.importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"assay-rl\[curate\]"):
        HashedTexts(["a"]).bands(3, 0.8)
    for step in (NearDuplicates(), Decontaminate(against=(tmp_path,))):
        with pytest.raises(MissingExtraError):
            step.prepare(tmp_path)

"""One canonical form, whatever the machine, the process or the order of insertion."""

import enum
import json
import os
import pickle
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core import canon
from assay.core.canon import FrozenMap, array_digest, array_digests, canonical, digest, freeze, plain
from assay.core.errors import DataError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_text_of_whole_characters_is_let_through(value: object) -> None:
    canon.check_unicode(value, "here")
    canon.check_unicode([value, {"é漢😀": value}, (1.5, None, b"x")], "here")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("a\ud83d", r"here: character 2, '.ud83d', is half of a surrogate pair, .* leave the row out"),
        ("\udc00", r"here: character 1, '.udc00'"),
        (["é", ("b", "\ud83d")], r"here\[1\]\[1\]: character 1"),
        ({"a": {"b": ["\udfff"]}}, r"here\['a'\]\['b'\]\[0\]: character 1"),
        (FrozenMap({"a": "\ud800"}), r"here\['a'\]: character 1"),
        ({"\ud83d": 1}, r"here, the name of a field: character 1"),
    ],
)
def test_half_of_a_surrogate_pair_is_named_with_its_place(value: object, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        canon.check_unicode(value, "here")
    assert str(caught.value).isascii()


def test_half_of_a_pair_in_a_row_names_the_field() -> None:
    canon.check_row_text({"a": "b", "c": ["é"]}, "row 3")
    with pytest.raises(DataError, match=r"row 3, field 'c'\[0\]: character 1"):
        canon.check_row_text({"a": "b", "c": ["\ud83d"]}, "row 3")
    with pytest.raises(DataError, match=r"row 3, the name of a field: character 2"):
        canon.check_row_text({"a\ud83d": "b"}, "row 3")


class Colour(enum.Enum):
    RED = "r"


class Word(str):
    """A string of another type."""


@dataclass
class Point:
    x: int
    label: Colour


def test_canonical_json_of_every_kind_of_value() -> None:
    value = {"b": Point(1, Colour.RED), "a": [np.float32(0.5), np.arange(2), {3, 1}, (None, True)], 7: Word("ü")}
    assert canonical(value) == '{"7":"ü","a":[0.5,[0,1],[1,3],[null,true]],"b":{"label":"r","x":1}}'.encode()


def test_mappings_and_sequences_of_any_type_are_read() -> None:
    assert plain(MappingProxyType({1: range(2)})) == {"1": [0, 1]}
    assert plain(FrozenMap({"a": deque([(1,)])})) == {"a": [[1]]}


def test_sets_of_mixed_types_have_one_order() -> None:
    assert plain({"a", 1, (2, 3)}) == ["a", 1, [2, 3]]
    assert plain(frozenset({10, 9})) == [10, 9]  # by text, not by size


@pytest.mark.parametrize("value", [b"bytes", object(), Point, {"a": bytearray()}, 1j])
def test_values_that_json_cannot_say_are_refused(value: object) -> None:
    with pytest.raises(DataError, match="cannot write a"):
        plain(value)


def test_keys_that_are_the_same_name_are_refused() -> None:
    for make in (FrozenMap, plain, freeze):
        with pytest.raises(DataError, match="same name"):
            make({1: "a", "1": "b"})


def test_digest_of_known_values() -> None:
    assert digest({"a": 1}) == digest({"a": 1}) != digest({"a": 1.0})
    # blake2b with 8 bytes of the text [1,"ü",null]
    assert digest([1, "ü", None], 8) == "99f574a3cda76034"
    assert array_digest(np.arange(3, dtype=np.int32)) == array_digest(np.arange(6, dtype=np.int32)[::2] // 2)


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("cores", [1, 4])
def test_digests_of_many_arrays_are_those_of_each_in_their_order_on_any_number_of_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, tells: bool
) -> None:
    """Where a system tells which of them a process may use, as Linux does, and where it does not."""
    monkeypatch.setattr(canon, "_WORTH", 100)
    if tells:
        monkeypatch.setattr(canon.os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    else:
        monkeypatch.delattr(canon.os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(canon.os, "cpu_count", lambda: cores if cores > 1 else None)
    arrays = {f"w{i}": np.arange(3 * i, dtype=np.float32) for i in (4, 1, 9, 0)}
    found = array_digests(arrays)
    assert list(found.items()) == [(name, array_digest(array)) for name, array in arrays.items()]
    assert array_digests({}) == {}


def test_array_digest_tells_dtype_shape_and_content_apart() -> None:
    base = np.zeros((2, 3), np.float32)
    others = [base.astype(np.float64), base.reshape(3, 2), base + 1, np.zeros((0, 3), np.float32), np.zeros((0, 2), np.float32)]
    assert len({array_digest(a) for a in [base, *others]}) == 6


@given(json_values)
def test_canonical_json_reads_back(value: object) -> None:
    assert json.loads(canonical(value)) == plain(value)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5), st.randoms())
def test_order_of_insertion_does_not_matter(value: dict[str, object], rng: object) -> None:
    items = list(value.items())
    rng.shuffle(items)
    assert canonical(dict(items)) == canonical(value)
    assert hash(FrozenMap(dict(items))) == hash(FrozenMap(value))


@given(json_values)
def test_freezing_is_idempotent_hashable_and_keeps_the_canonical_form(value: object) -> None:
    frozen = freeze(value)
    assert freeze(frozen) == frozen
    assert isinstance(hash(frozen), int)
    assert canonical(frozen) == canonical(value)
    assert pickle.loads(pickle.dumps(frozen)) == frozen


def test_frozen_map_is_a_mapping_that_nothing_changes() -> None:
    source = {"a": [1, {"b": 2}], "s": {1}}
    frozen = FrozenMap(source)
    source["a"][1]["b"] = 3
    assert frozen["a"][1]["b"] == 2
    assert frozen["s"] == frozenset({1})
    assert (len(frozen), list(frozen), repr(FrozenMap())) == (2, ["a", "s"], "FrozenMap({})")
    assert frozen == {"a": (1, FrozenMap({"b": 2})), "s": {1}}
    assert FrozenMap(frozen) == frozen
    assert freeze(frozen) is frozen
    assert hash(FrozenMap({"a": 1})) == hash(FrozenMap({"a": 1.0}))  # equal maps have equal hashes
    with pytest.raises(TypeError):
        frozen["a"] = 1


SCRIPT = """
from assay.core import FrozenMap, content_split, derive, digest, generator
value = {"a": {"z", "y", "x"}, "b": FrozenMap({"q": 1, "p": [2.5]}), "c": frozenset(["k", "j"])}
print(digest(value), derive("task", 3, "train", "k"), content_split(value), generator("n", 1).integers(1 << 40))
"""


def test_digests_and_seeds_do_not_depend_on_the_hash_seed() -> None:
    outputs = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
        outputs.add(run.stdout)
    assert len(outputs) == 1


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=2))
def test_one_text_is_written_as_any_other_value(value: dict[str, object]) -> None:
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert canonical(value) == canonical(FrozenMap(value)) == written

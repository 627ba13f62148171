"""Many rows stand beside their configuration, and come back the same."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core import FrozenMap
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError
from assay.core.rowfile import BESIDE, FEW, RowFile, as_lines, rows_beside

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(alphabet='aé\n\u2028\ud800"\\'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)


@dataclass(frozen=True)
class Held:
    rows: Any = field(metadata={BESIDE: "_beside"})
    known: dict[str, Any] = field(default_factory=dict, compare=False, init=False)

    def _beside(self):
        return self.known, lambda: b"notes"


def many(count: int = FEW + 1) -> tuple[FrozenMap, ...]:
    return tuple(FrozenMap({"n": i, "kind": None, "nested": [{"a": (1, 2.5)}]}) for i in range(count))


@given(st.lists(st.dictionaries(st.sampled_from(["a", "kind", "class"]), VALUES), max_size=4))
def test_rows_come_back(rows: list[dict[str, Any]]) -> None:
    frozen = tuple(map(FrozenMap, rows))
    file = RowFile(as_lines(frozen))
    assert tuple(file) == frozen and file == frozen and len(file) == len(frozen)
    assert file == RowFile(as_lines(rows)) and hash(file) == hash(RowFile(as_lines(rows)))


def test_a_row_file_is_a_sequence() -> None:
    file = RowFile(as_lines(many(3)))
    assert file[-1] == many(3)[2] and file[1:] == many(3)[1:] and repr(file).startswith("RowFile(3 rows, ")
    assert file != many(2) and file != "abc" and file != 3 and file != [*many(2), FrozenMap()]
    with pytest.raises(IndexError):
        file[3]


def stored(folder: Path, held: Held) -> str:
    with rows_beside(folder, lambda path, data: path.write_bytes(data)):
        return dumps_toml(to_dict(held))


def test_many_stand_in_a_file_and_few_do_not(tmp_path: Path) -> None:
    held = Held(many())
    text = stored(tmp_path, held)
    (rows,) = tmp_path.glob("*.jsonl")
    assert len(text) < 200 and rows.name in text and "data" not in held.known
    with rows_beside(tmp_path) as store:
        back = from_dict(Held, loads_toml(text))
        assert dumps_toml(to_dict(held)) == dumps_toml(to_dict(back)) == text, "the same names, nothing is written"
        assert store.names == [rows.name] * 2
    assert back == held and back.rows.notes == b"notes" and isinstance(back.rows, RowFile)
    assert stored(tmp_path, held) == text == stored(tmp_path / "..", Held(back.rows)), "from a file as from memory"
    (tmp_path.parent / rows.name).unlink()
    assert str(FEW - 1) in stored(tmp_path, Held(many(FEW))) and str(FEW) in dumps_toml(to_dict(held)), "in the table itself"


def test_rows_that_json_cannot_say_stay_in_the_table(tmp_path: Path) -> None:
    held = Held((*many(), FrozenMap({"colour": object()})))
    with rows_beside(tmp_path):
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"rows\[257\]\.colour.*cannot be written"):
                to_dict(held)


def test_rows_that_are_not_there_or_others_are_refused(tmp_path: Path) -> None:
    text = stored(tmp_path, Held(many()))
    with pytest.raises(ConfigError, match="beside the file that names them"):
        from_dict(Held, loads_toml(text))
    (rows,) = tmp_path.glob("*.jsonl")
    whole = rows.read_bytes()
    for data, said in ((whole[:-9] + whole[-8:], "is damaged"), (None, "cannot read its rows.*put rows-")):
        rows.write_bytes(data) if data is not None else rows.unlink()
        with rows_beside(tmp_path), pytest.raises(ConfigError, match=said):
            from_dict(Held, loads_toml(text))
    rows.write_bytes(whole)
    next(tmp_path.glob("*.npz")).unlink()
    with rows_beside(tmp_path):
        assert from_dict(Held, loads_toml(text)).rows.notes == b""

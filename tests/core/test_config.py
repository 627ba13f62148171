"""Configurations as text and back, refusals that say what to write, and replacement by path."""

import dataclasses
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import config_parts as parts
import numpy as np
import pytest
from config_parts import Deeper, Everything, Finer, Holder, Kinded, Mode, Scale, Size, Wide, reward
from hypothesis import given
from hypothesis import strategies as st

from assay.core import FrozenMap, dumps_toml, from_dict, loads_toml, part, replace_at, to_dict
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import check_positive
from assay.core.import_path import load_class, load_function, name_of
from assay.runtime import LearnerSettings
from assay.train import Imitate, Prefer, Reinforce, Until, WarmUp


def again(value: Any) -> Any:
    """Through TOML text and JSON text."""
    through_json = from_dict(type(value), json.loads(json.dumps(to_dict(value))))
    assert through_json == value
    return from_dict(type(value), loads_toml(dumps_toml(to_dict(value))))


def test_every_kind_of_field_comes_back() -> None:
    for value in (Everything(), dataclasses.replace(Everything(), optional=None, given=None, maybe=3, anything=Finer(bias=1.0))):
        found = again(value)
        assert found == value
        assert [type(getattr(found, f.name)) for f in dataclasses.fields(found)] == [
            type(getattr(value, f.name)) for f in dataclasses.fields(value)
        ]


def test_the_table_names_a_class_only_where_the_type_leaves_it_open() -> None:
    table = to_dict(Everything())
    assert table["kind"] == "config_parts:Everything"
    assert table["rule"] == {"kind": "config_parts:Scale", "factor": 2.0}
    assert table["either"] == {"class": "config_parts:Kinded", "kind": "constant", "steps": 3}
    assert table["plain"] == {"factor": 2.0}
    assert table["kinded"] == {"kind": "constant", "steps": 3}
    assert table["many"] == [
        {"kind": "config_parts:Scale", "factor": 2.0},
        {"class": "config_parts:Kinded", "kind": "linear", "steps": 3},
    ]
    assert table["table"] == {"kind": "map", "items": {"a": [1, {"kind": "none"}], "kind": "x"}}
    assert table["mapping"] == {"s": {"factor": 3.0}}
    assert table["by_level"] == {"5": 0.5}
    assert table["function"] == {"kind": "function", "name": "config_parts:reward"}
    assert (table["mode"], table["mode_or_not"]) == ("slow", {"kind": "config_parts:Mode", "value": "fast"})
    assert (table["folder"], table["any_folder"]) == ("out", {"kind": "path", "value": "in"})
    assert not {"maybe", "old_style", "anything", "elsewhere", "derived"} & set(table)


def test_a_subclass_says_so_where_its_parent_is_declared() -> None:
    value = dataclasses.replace(Everything(), plain=Finer(bias=0.5))
    assert to_dict(value)["plain"]["kind"] == "config_parts:Finer"
    assert again(value).plain == Finer(bias=0.5)
    with pytest.raises(ConfigError, match=r"Everything.plain: kind 'config_parts:Kinded' is no Scale"):
        from_dict(Everything, {"plain": {"class": "config_parts:Kinded"}})
    with pytest.raises(ConfigError, match=r"is no Scale"):
        from_dict(Everything, {"plain": {"kind": "config_parts:Kinded"}})


def test_hand_written_tables_may_leave_out_what_is_clear() -> None:
    found = from_dict(Everything, {"optional": {"factor": 5.0}, "levels": [1, 2], "mode": "fast", "folder": "there", "rate": 1})
    assert found == dataclasses.replace(
        Everything(), optional=Scale(factor=5.0), levels=(1, 2), mode=Mode.FAST, folder=Path("there"), rate=1
    )
    assert from_dict(Any, {"kind": "config_parts:Wide", "x": 1}) == Wide(1)
    assert from_dict(Everything, {"mode_or_not": "slow"}).mode_or_not is Mode.SLOW
    assert from_dict(Everything, {"any_folder": "text"}).any_folder == Path("text")
    assert from_dict(Deeper, {"x": 1, "loose": {"a": [1]}}).loose == FrozenMap({"a": (1,)})
    assert from_dict(Deeper, {"x": 1, "loose": [1, {"kind": "config_parts:Wide", "x": 2}]}).loose == (1, Wide(2))
    assert from_dict(Deeper, {"x": 1, "z": [1, "b"]}).z == (1, "b")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"count": "3"}, r"Everything.count='3' is a str; declared is int"),
        ({"count": True}, r"Everything.count=True is a bool; declared is int"),
        ({"count": 1.0}, r"Everything.count=1.0 is a float; declared is int"),
        ({"choice": "c"}, r"Everything.choice='c' is a str; declared is typing.Literal\['a', 'b'\]"),
        ({"maybe": "x"}, r"Everything.maybe='x' is a str; declared is int \| None"),
        ({"plain": 3}, r"Everything.plain=3 is an int; declared is Scale"),
        ({"levels": [1, "x"]}, r"Everything.levels\[1\]='x' is a str; declared is int"),
        ({"levels": 3}, r"Everything.levels=3 is an int; declared is tuple"),
        ({"count": [3]}, r"Everything.count: a list where int is declared"),
        ({"plain": [3]}, r"Everything.plain: a list where Scale is declared"),
        ({"rule": [3]}, r"Everything.rule: a list where Rule is declared"),
        ({"rule": "fast"}, r"Everything.rule='fast' is a str; declared is Rule"),
        ({"rule": {"factor": 1.0}}, r"Everything.rule: no 'kind' says which class this is; .*declared: Rule"),
        ({"either": {"steps": 1}}, r"Everything.either: no 'kind' says .*declared: Scale, Kinded"),
        ({"count": {"a": 1}}, r"Everything.count: no 'kind' says .*declared: int"),
        ({"by_level": {"x": 0.5}}, r"Everything.by_level: a key is no int"),
        ({"by_level": {"5": "x"}}, r"Everything.by_level.5='x' is a str; declared is float"),
        ({"rule": {"kind": "Scale"}}, r"Everything.rule: 'Scale' is no import path; write 'module:Class'|'module:Name'"),
        ({"rule": {"kind": "no.such.module:X"}}, r"Everything.rule: cannot import 'no.such.module' .* PYTHONPATH"),
        ({"rule": {"kind": "config_parts:reward"}}, r"'config_parts:reward' is neither a dataclass nor an enum"),
        ({"rule": {"kind": "config_parts:Holder"}}, r"'config_parts:Holder' is neither a dataclass nor an enum"),
        ({"rule": {"kind": "subprocess:run"}}, r"neither a dataclass nor an enum, so it is no part"),
        ({"function": {"kind": "function", "name": "config_parts:Scale"}}, r"'config_parts:Scale' is a type, not a function"),
        ({"plain": {"factor": 0}}, r"Scale.factor=0 forgets its input"),
    ],
)
def test_what_does_not_fit_is_refused_by_place(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        from_dict(Everything, table)


def test_unknown_names_say_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown field at Everything.plain \(Scale\) 'facter': did you mean 'factor'"):
        from_dict(Everything, {"plain": {"facter": 1.0}})
    with pytest.raises(UnknownNameError, match=r"unknown value at Everything.mode \(Mode\) 'fats': did you mean 'fast'"):
        from_dict(Everything, {"mode": "fats"})
    with pytest.raises(UnknownNameError, match=r"unknown value at Everything.any_size \(Size\) '9'"):
        from_dict(Everything, {"any_size": {"kind": "config_parts:Size", "value": 9}})
    with pytest.raises(
        UnknownNameError, match=r"name in module 'config_parts' \(Everything.rule\) 'Scael': did you mean 'Scale'"
    ):
        from_dict(Everything, {"rule": {"kind": "config_parts:Scael"}})
    with pytest.raises(UnknownNameError, match=r"name in module 'assay.core.rollout' .*did you mean 'Sampling'"):
        part("assay.core.rollout:Samplng")
    with pytest.raises(UnknownNameError, match=r"'derived'"):
        from_dict(Everything, {"derived": 1})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match="Wide: Wide needs a value for 'x'"):
        from_dict(Wide, {"y": 1})
    with pytest.raises(ConfigError, match="configuration: no 'kind' says"):
        from_dict(Any, {"x": 1})
    with pytest.raises(ConfigError, match="configuration: no 'kind' says"):
        from_dict(Any, {"kind": "none"})
    with pytest.raises(ConfigError, match=r"not TOML: .*line 2"):
        loads_toml("a = 1\nb = ?\n")


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", Scale, Holder()])
def test_what_no_file_can_say_is_refused_by_place(value: object) -> None:
    with pytest.raises(ConfigError, match=r"Deeper.loose\[0\]: an? \w+ cannot be written to a file"):
        to_dict(Deeper(1, loose=(value,)))
    for root in (value, 3, Scale):
        with pytest.raises(ConfigError, match="a configuration is a dataclass instance"):
            to_dict(root)


def test_keys_of_another_type_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Everything.by_level: key 'x' is a str; declared is int"):
        to_dict(dataclasses.replace(Everything(), by_level={"x": 1.0}))
    with pytest.raises(ConfigError, match=r"Deeper.loose: key 1 is an int; declared is str"):
        to_dict(Deeper(1, loose={1: 2}))


def test_a_mapping_where_a_part_is_declared_is_still_a_mapping() -> None:
    assert again(Deeper(1, inner=FrozenMap({"factor": 1.0}))).inner == FrozenMap({"factor": 1.0})


def test_numpy_numbers_become_plain_ones() -> None:
    table = to_dict(Deeper(np.int64(3), loose=(np.float32(0.5), np.bool_(True))))
    assert (table["x"], table["loose"]) == (3, [0.5, True])
    assert [type(v) for v in (table["x"], *table["loose"])] == [int, float, bool]


@given(
    st.builds(
        Deeper,
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-5, 5),
        st.none() | st.tuples(st.integers(-9, 9), st.text(max_size=5)),
        st.none() | st.builds(Scale, factor=st.floats(min_value=0.1)) | st.builds(Finer, bias=st.floats(allow_nan=False)),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5) | st.sampled_from([*Mode, *Size]),
            lambda inner: (
                st.lists(inner, max_size=3).map(tuple)
                | st.dictionaries(st.sampled_from(["a", "kind", "class", "items", "b.c", "ü"]), inner, max_size=3).map(FrozenMap)
                | st.builds(Wide, st.integers(0, 3))
            ),
            max_leaves=6,
        ),
    )
)
def test_any_tree_comes_back(value: Deeper) -> None:
    assert again(value) == value
    assert dumps_toml(to_dict(again(value))) == dumps_toml(to_dict(value))


# ---- functions and classes by name ------------------------------------------------------------------------------------


def test_functions_by_import_path() -> None:
    for function in (reward, Holder.inner, len):
        assert load_function(name_of(function), "here") is function
    assert name_of(Holder.inner) == "config_parts:Holder.inner"
    assert again(Deeper(1, loose=reward)).loose is reward


def test_what_no_import_finds_again_is_written_with_its_file_and_refused_on_load() -> None:
    def local(x: int) -> int:
        return x

    @dataclasses.dataclass(frozen=True)
    class Local:
        x: int = 1

    for value, name in ((lambda x: x, "<lambda>"), (local, "local"), (Local(), "Local")):
        table = to_dict(Deeper(1, loose=value))
        written = table["loose"].get("name", table["loose"]["kind"])
        assert written.startswith(f"{__file__}:test_what_no_import")
        assert written.endswith(name)
        with pytest.raises(ConfigError, match=r"Deeper.loose: .*was defined in .*test_config.py where no import can find it"):
            from_dict(Deeper, loads_toml(dumps_toml(table)))


def test_partials_and_methods_come_back() -> None:
    table = to_dict(Deeper(1, loose=functools.partial(reward, "p", completion=Scale(factor=3.0))))
    partial = from_dict(Deeper, loads_toml(dumps_toml(table))).loose
    assert (partial.func, partial.args, partial.keywords) == (reward, ("p",), {"completion": Scale(factor=3.0)})
    assert from_dict(Deeper, to_dict(Deeper(1, loose=Scale(factor=3.0).apply))).loose(2.0) == 6.0
    assert from_dict(Deeper, to_dict(Deeper(1, loose=Fraction.from_float))).loose(0.5) == Fraction(1, 2)


class Called:
    """An object that can be called, and is no dataclass."""

    def __call__(self) -> None: ...

    def method(self) -> None: ...


def test_an_object_that_is_called_is_written_and_refused_on_load() -> None:
    for value, name in ((Called(), "Called()"), (Called().method, "Called().method")):
        table = to_dict(Deeper(1, loose=value))
        assert table["loose"] == {"kind": "function", "name": f"{__file__}:{name}"}
        with pytest.raises(ConfigError, match=r"Called.*an object that is no dataclass"):
            from_dict(Deeper, table)


def test_what_stands_in_a_script_or_a_session_is_written_with_where_it_stood(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    body = "from assay.core.import_path import name_of\ndef f(): pass\nclass C: pass\nprint(name_of(f), name_of(C))\n"
    script.write_text(body)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [f"{script}:f", f"{script}:C"]
    run = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["<string>.py:f", "interactive.py:C"]
    with pytest.raises(ConfigError, match=r"f was defined in <string>.py"):
        load_function("<string>.py:f", "here")


@pytest.mark.parametrize("name", ["Scale", ":Scale", "module:", ""])
def test_names_that_are_no_import_path(name: str) -> None:
    with pytest.raises(ConfigError, match="is no import path; write 'module:Name'"):
        load_class(name, "here")


def test_a_part_with_its_defaults() -> None:
    assert part("config_parts:Kinded") == Kinded()
    assert part("config_parts:Everything") == Everything()
    with pytest.raises(ConfigError, match="Wide needs a value for 'x'"):
        part("config_parts:Wide")
    with pytest.raises(ConfigError, match=r"\(Mode\) 'None': known: fast, slow"):
        part("config_parts:Mode")


# ---- replacing --------------------------------------------------------------------------------------------------------


def test_replace_at_any_depth_leaves_the_rest() -> None:
    value = Everything()
    assert replace_at(value, "count", 9) == dataclasses.replace(value, count=9)
    assert replace_at(value, "many.0.factor", 4.0).many == (Scale(factor=4.0), value.many[1])
    assert replace_at(value, "many.1", Scale()).many == (Scale(), Scale())
    assert replace_at(value, "mapping.s.factor", 7.0).mapping == FrozenMap({"s": Scale(factor=7.0)})
    assert replace_at(value, "table.kind", "y").table == FrozenMap({"a": (1, None), "kind": "y"})
    assert replace_at({"a": (1, 2)}, "a.1", 3) == {"a": (1, 3)}
    assert replace_at(value, "rule", Finer()).rule == Finer()
    assert value == Everything()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("cuont", "unknown part of Everything in path 'cuont' 'cuont': did you mean 'count'"),
        ("many.2.factor", "unknown part of a tuple in path 'many.2.factor' '2': known: 0, 1"),
        ("mapping.t", "unknown part of a mapping in path 'mapping.t' 't'"),
        ("rule.facter", "unknown part of Scale in path 'rule.facter' 'facter': did you mean 'factor'"),
        ("derived", "unknown part of Everything in path 'derived'"),
    ],
)
def test_replace_at_names_path_and_nearest(path: str, words: str) -> None:
    with pytest.raises(UnknownNameError, match=words):
        replace_at(Everything(), path, 1)


def test_replace_at_refuses_what_does_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"^count='x' is a str; declared is int"):
        replace_at(Everything(), "count", "x")
    with pytest.raises(ConfigError, match=r"^many.0.factor=0: Scale.factor=0 forgets"):
        replace_at(Everything(), "many.0.factor", 0)
    with pytest.raises(ConfigError, match=r"^count.x: 'x' is looked up in 3, an int, which has no parts"):
        replace_at(Everything(), "count.x", 1)
    assert replace_at(Everything(), "mode", Mode.FAST).mode is Mode.FAST


def test_type_only_imports_leave_the_class_open() -> None:
    assert "elsewhere" not in to_dict(Everything())
    assert to_dict(dataclasses.replace(Everything(), elsewhere=Wide(1)))["elsewhere"]["kind"] == "config_parts:Wide"
    assert again(dataclasses.replace(Everything(), elsewhere=Wide(1))).elsewhere == Wide(1)
    assert parts.TYPE_CHECKING is False
    assert Size.SMALL is again(Everything()).any_size


def test_a_class_without_a_file_is_named_all_the_same() -> None:
    homeless = type("Homeless", (), {"__module__": "__main__"})
    assert name_of(homeless).endswith(".py:Homeless")
    assert name_of(type("Lost", (), {"__module__": "no_such_module"})) == "interactive.py:Lost"


def test_a_part_that_moved_keeps_the_name_that_files_know() -> None:
    for cls in (WarmUp, Imitate, Prefer, Reinforce, Until):
        name = f"assay.train.run:{cls.__name__}"
        assert cls.__module__ != "assay.train.run" and name_of(cls) == name
        assert load_class(name, "somewhere") is cls
    assert to_dict(Until(at_least=0.5)) == {
        "kind": "assay.train.run:Until",
        "metric": "eval/greedy/all",
        "at_least": 0.5,
    }
    assert from_dict(Any, to_dict(Until(at_least=0.5))) == Until(at_least=0.5)


def test_a_field_that_came_later_changes_no_file_by_its_default() -> None:
    """What files said before `LearnerSettings.compile` was there is what they say now, and they are read."""
    plain, compiled = LearnerSettings(precision="bf16"), LearnerSettings(precision="bf16", compile=True)
    assert "compile" not in to_dict(plain) and to_dict(compiled)["compile"] is True
    assert from_dict(Any, to_dict(plain)) == plain and from_dict(Any, to_dict(compiled)) == compiled
    assert from_dict(Any, {**to_dict(plain), "compile": False}) == plain


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", None])
def test_a_field_that_counts_is_a_whole_number(wrong: Any) -> None:
    check_positive(Counted(), "n")
    with pytest.raises(ConfigError, match=r"Counted.n=.*; use a whole number, at least 1"):
        check_positive(Counted(n=wrong), "n")


@dataclass(frozen=True)
class Counted:
    n: Any = 1


@dataclass(frozen=True)
class Shorthand:
    """Its table may say ``double`` in place of its field."""

    value: int = 1

    @classmethod
    def read_table(cls, table: Mapping[str, Any], read: Callable[[Mapping[str, Any]], Any]) -> Any:
        rest = {k: v for k, v in table.items() if k != "double"}
        return read({**rest, "value": 2 * table["double"]} if "double" in table else rest)


@dataclass(frozen=True)
class Holding:
    """Holds one."""

    part: Shorthand = Shorthand()


def test_a_class_may_read_its_own_table() -> None:
    assert from_dict(Holding, {"part": {"double": 3}}) == Holding(Shorthand(6))
    assert from_dict(Shorthand, {"value": 3}) == Shorthand(3)
    assert to_dict(Holding(Shorthand(6)))["part"] == {"value": 6}
    with pytest.raises(UnknownNameError, match=r"field at Holding\.part"):
        from_dict(Holding, {"part": {"triple": 3}})

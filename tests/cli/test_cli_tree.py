"""Any field of any part from the command line."""

import dataclasses
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import pytest
from cli_support import flat
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.cli.options import parse_with
from assay.cli.part_tree import Node, build, candidates, put, take
from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.protocols import CurriculumSpec
from assay.tasks import family


class Tint(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Own:
    """A command's own options.

    Attributes:
        note: a word of the command.
    """

    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A part with a value.

    Attributes:
        x: a number that
            matters.
    """

    x: float = 1.0

    def grow(self, by: int) -> float:
        return self.x * by


@dataclass(frozen=True, kw_only=True)
class Other:
    """Another part, with a value that must be given."""

    y: int
    z: int = 3

    def grow(self, by: int) -> float:
        return float(self.y)


@dataclass(frozen=True, kw_only=True)
class Stubborn:
    """Does not grow."""


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """Wants more arguments than the protocol gives."""

    def grow(self, by: int, of: int) -> float:
        return 0.0


class Grows(Protocol):
    def grow(self, by: int) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Kinded:
    """Has a field of its own called kind."""

    kind: str = "plain"


def double(x: float) -> float:
    return 2 * x


@dataclass(frozen=True, kw_only=True)
class Root:
    """A tree with every sort of field."""

    count: int = 3
    rate: float = 0.5
    name: str = "a"
    on: bool = False
    tint: Tint = Tint.RED
    maybe_tint: Tint | None = None
    maybe: float | None = None
    sizes: tuple[int, ...] = ()
    pair: tuple[str, float] = ("a", 1.0)
    pairs: tuple[tuple[str, float], ...] = ()
    mode: Literal["low", "high"] = "low"
    where: Path | None = None
    table: Mapping[str, float] = field(default_factory=lambda: FrozenMap({"a": 1.0}))
    call: Any = double
    part: Grows = field(default_factory=Leaf)
    hole: Grows | None = None
    many: tuple[Grows, ...] = (Leaf(),)
    none_yet: tuple[Grows, ...] = ()
    named: Mapping[str, Any] = field(default_factory=lambda: {"one": Leaf()})
    kinded: Kinded = field(default_factory=Kinded)
    anything: Any = 5
    data: Any = (object(),)
    unresolved: "NotHere | None" = None  # noqa: F821
    hidden: int = field(default=1, init=False)

    def __post_init__(self):
        if self.count > 5 and self.rate < 1:
            raise ConfigError(f"Root.count={self.count} needs rate >= 1")


HERE = Leaf.__module__


def changed(*args: str) -> Root:
    return parse_with(Own, Root(), args, "prog", "text", [HERE])[1]


@pytest.mark.parametrize(
    ("args", "name", "value"),
    [
        (["--count", "4"], "count", 4),
        (["--rate=2"], "rate", 2.0),
        (["--name", "b c"], "name", "b c"),
        (["--on"], "on", True),
        (["--tint", "blue"], "tint", Tint.BLUE),
        (["--maybe-tint", "blue"], "maybe_tint", Tint.BLUE),
        (["--maybe", "2"], "maybe", 2.0),
        (["--sizes", "1", "2"], "sizes", (1, 2)),
        (["--pair", "b", "2"], "pair", ("b", 2.0)),
        (["--pairs", "a", "1", "b", "2"], "pairs", (("a", 1.0), ("b", 2.0))),
        (["--mode", "high"], "mode", "high"),
        (["--where", "x/y"], "where", Path("x/y")),
        (["--table.a", "3"], "table", FrozenMap({"a": 3.0})),
        (["--anything", "6"], "anything", 6),
        (["--kinded.kind", "fancy"], "kinded", Kinded(kind="fancy")),
        (["--part.x", "2"], "part", Leaf(x=2.0)),
        (["--part.kind", "Other", "--part.y", "4"], "part", Other(y=4)),
        (["--hole.kind", "Leaf"], "hole", Leaf()),
        (["--many.0.x", "7"], "many", (Leaf(x=7.0),)),
        (["--many.1.kind", "Other", "--many.1.y", "1"], "many", (Leaf(), Other(y=1))),
        (["--none-yet.0.kind", "Leaf"], "none_yet", (Leaf(),)),
        (["--named.one.x", "9"], "named", {"one": Leaf(x=9.0)}),
        (["--call", f"{HERE}:changed"], "call", changed),
        (["--call", "none"], "call", None),
        (["--unresolved.kind", "Leaf"], "unresolved", Leaf()),
        ([f"--part.kind={HERE}:Other", "--part.y", "1"], "part", Other(y=1)),
        (["--kinded.class", "Leaf"], "kinded", None),
    ],
)
def test_each_sort_of_field(args, name, value):
    if args == ["--kinded.class", "Leaf"]:
        with pytest.raises(ConfigError, match=r"--kinded\.class Leaf: there is no such part; known: Kinded"):
            changed(*args)
        return
    run = changed(*args)
    assert getattr(run, name) == value
    assert type(getattr(run, name)) is type(value)
    before = Root()
    for f in dataclasses.fields(Root):
        if f.name not in (name, "data"):
            assert getattr(run, f.name) == getattr(before, f.name)


def test_no_change_is_the_very_same_value():
    root = Root()
    own, same = parse_with(Own, root, ["--note", "hi"], "prog", "text")
    assert same is root
    assert own == Own("hi")


@settings(max_examples=20)
@given(
    st.integers(-(10**6), 5),
    st.floats(allow_nan=False, width=32),
    st.booleans(),
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
)
def test_what_is_said_is_what_stands(count, rate, on, sizes):
    run = changed(f"--count={count}", f"--rate={rate!r}", "--on" if on else "--no-on", "--sizes", *map(str, sizes))
    assert (run.count, run.rate, run.on, run.sizes) == (count, rate, on, tuple(sizes))


def test_fields_that_agree_only_together_may_be_changed_together():
    assert changed("--count", "9", "--rate", "1").count == 9
    with pytest.raises(ConfigError, match=r"Root\.count=9 needs rate >= 1"):
        changed("--count", "9")


def test_the_last_kind_wins_and_outer_parts_come_first():
    assert changed("--part.kind", "Other", "--part.kind", "Leaf", "--part.x", "4").part == Leaf(x=4.0)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--part.kind", "Othr"], "did you mean 'Other'"),
        (["--part.kind", "zzz"], "no such part; known: Leaf, Other"),
        (["--part.kind", "leaf"], "did you mean 'Leaf'"),
        (["--part.kind", "er"], "did you mean 'Other'"),
        (["--part.kind"], "needs a value: module:Class"),
        (["--part.kind", "--count", "3"], "needs a value: module:Class"),
        (["--prt.kind", "Leaf"], "did you mean 'part'"),
        (["--part.kind", "Stubborn"], "known: Leaf, Other"),
        (["--part.kind", f"{HERE}:Stubborn"], "a Stubborn does not fit there: it has no grow, which Grows asks for; known"),
        (
            ["--part.kind", f"{HERE}:Greedy"],
            "a Greedy does not fit there: grow cannot be called with the arguments of the protocol",
        ),
        (["--part.kind", f"{HERE}:Tint"], "is no dataclass"),
        (["--part.kind", "none"], "a part must stand there"),
        (["--part.kind", f"{HERE}:Nope"], "unknown name"),
        (["--part.kind", "no.such:Thing"], "cannot import 'no.such'"),
        (["--hole.inner.kind", "Leaf"], "nothing stands at hole yet"),
        (["--many.2.kind", "Leaf"], "did you mean 'many.1'"),
        (["--count.kind", "Leaf"], "unknown part in --count.kind"),
        (["--call", f"{HERE}:nope"], "unknown name"),
        (["--unresolved.kind", "Leef"], "did you mean 'Leaf'"),
    ],
)
def test_wrong_parts_are_refused_with_the_place(args, said):
    with pytest.raises(ConfigError) as error:
        changed(*args)
    assert said in str(error.value)


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A part that holds another."""

    inner: Grows = field(default_factory=Leaf)


@dataclass(frozen=True, kw_only=True)
class Trunk:
    """Parts in a row, the second of which holds another."""

    parts: tuple[Any, ...] = (Leaf(), Branch())


def test_a_part_of_a_stage_that_is_named_as_one_of_the_run_says_its_whole_option():
    with pytest.raises(ConfigError, match=r"--inner\.kind Leaf: .* write --parts\.1\.inner\.kind Leaf"):
        put(take(Trunk()), ["inner"], "Leaf")
    with pytest.raises(ConfigError, match="unknown part in --iner"):
        put(take(Trunk()), ["iner"], "Leaf")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--cont", "3"], "--cont: there is no such option; did you mean --count?"),
        (["--count", "x"], "--count x: 'x' is not a whole number"),
        (["--count"], "--count needs a value: INT"),
        (["--count", "1", "2"], "--count takes one value, and '2' follows it"),
        (["--maybe", "x"], "--maybe x: 'x' is not a number or none"),
        (["--on", "maybe"], "'maybe' is neither true nor false; give --on alone, or with true or false"),
        (["--tint", "green"], "'green' is none of red, blue"),
        (["--mode", "hihg"], "did you mean 'high'?"),
        (["--sizes", "1", "x"], "--sizes 1 x: '1 x' cannot be read; give [INT ...]"),
        (["--part.kind", "Other"], "--part.kind Other: Other needs a value for 'y': --part.y INT"),
        (["--many.1.x", "3"], "did you mean --many.0.x?"),
        (["extra"], "extra belongs to no option"),
    ],
)
def test_usage_errors_name_option_and_neighbours(args, said):
    with pytest.raises(ConfigError) as error:
        changed(*args)
    assert said in str(error.value)


@pytest.mark.parametrize(("word", "value"), [("true", True), ("False", False), ("no", False), ("1", True)])
def test_a_switch_may_say_its_value(word, value):
    assert changed("--on", word).on is value
    assert changed("--no-on", word).on is not value


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(ConfigError) as error:
        changed("stray", "--cont", "3", "--rate", "x", "--part.kind", "Othr", "--many.0.x", "y", "--part.z", "3", "--sizes", "q")
    first, *lines = str(error.value).split("\n  ")
    assert first == "6 settings are wrong"
    assert len(lines) == 6, "what follows from a part that is not there is left out"
    for said in ("--cont:", "'x' is not a number", "did you mean 'Other'", "'y' is not a number", "--sizes q", "stray"):
        assert sum(said in line for line in lines) == 1


def test_parts_that_refuse_settings_are_told_each_with_its_options():
    with pytest.raises(ConfigError) as error:
        changed("--count", "9", "--rate", "0.5", "--name", "n")
    assert str(error.value) == "--count 9: Root.count=9 needs rate >= 1", "alone it is wrong, whatever else changed"


def test_an_entry_of_a_tuple_may_be_taken_away():
    assert changed("--many.0.kind", "none").many == ()
    assert changed("--many.1.kind", "Other", "--many.1.y", "1", "--many.0.kind", "none").many == (Other(y=1),)


@pytest.mark.parametrize("columns", [80, 120])
def test_help_says_what_each_option_is(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as stop:
        changed("--part.kind", "Leaf", "--help")
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    words = flat(text)
    assert "--note STR a word of the command. (default: '')" in words
    assert "--part.x FLOAT a number that matters. (default: 1.0)" in words
    assert "which class to use here (Leaf, Other or module:Class; default: Leaf)" in words
    assert "--sizes [INT [INT ...]] (default: none)" in words
    assert "--hidden" not in words
    assert "--data" not in words


def test_part_that_needs_a_part_says_so():
    @dataclass(frozen=True)
    class Wants:
        inner: Grows

        def grow(self, by: int) -> float:
            return 0.0

    module = sys.modules[HERE]
    module.Wants = Wants
    Wants.__module__, Wants.__qualname__ = HERE, "Wants"
    try:
        with pytest.raises(ConfigError, match=r"--part\.inner: Wants needs a part there, for example --part\.inner\.kind"):
            changed("--part.kind", f"{HERE}:Wants")
        assert changed("--part.kind", f"{HERE}:Wants", "--part.inner.kind", "Leaf", "--part.inner.x", "2").part == Wants(
            Leaf(x=2.0)
        )
    finally:
        del module.Wants


def test_a_part_may_be_taken_away():
    root = take(dataclasses.replace(Root(), hole=Leaf()))
    put(root, ["hole"], "none")
    assert build(root).hole is None


def test_trees_of_the_recipes_come_back_the_same():
    from assay.recipes import RECIPES

    for where in RECIPES.values():
        module, name = where.split(":")
        run = getattr(importlib.import_module(module), name)()
        node = take(run)
        assert isinstance(node, Node)
        assert build(node) is run


def test_a_type_that_cannot_be_a_key_is_looked_up_too():
    assert candidates(None, Annotated[Any, ["said"]]) == {}
    assert {"Uniform", "SuccessVariance"} <= set(candidates(None, CurriculumSpec)) == set(candidates(None, CurriculumSpec))


def test_a_family_is_named_where_tasks_stand() -> None:
    from assay.recipes import quickstart

    run = take(quickstart())
    put(run, ("tasks",), "reverse")
    assert build(run).tasks == family("reverse")
    put(run, ("tasks",), "arithmetic/expression")
    assert list(build(run).tasks.arms()) == ["arithmetic/expression"]
    with pytest.raises(ConfigError, match=r"there is no such part; did you mean 'Reverse'.* or a name of 'assay tasks list'"):
        put(run, ("tasks",), "revers")
    with pytest.raises(ConfigError, match="there is no such part"):
        put(run, ("stages", "0", "curriculum"), "reverse")


def test_an_unknown_kind_lists_what_is_meant_for_the_place_and_the_nearest_first() -> None:
    """Guidances, samplers and engines are all settings with a ``build``: what it takes and gives tells them apart."""
    from assay.recipes import quickstart

    for options, nearest, others in (
        ("--stages.0.guidance.kind Sele", "Seele", {"PlayerSpec", "Branching", "InProcess", "Native", "Recent", "RowReplay"}),
        ("--stages.0.sampler.kind Branchin", "Branching", {"Seele", "InProcess", "Recent"}),
        ("--engine.kind InProces", "InProcess", {"Seele", "Branching", "Recent"}),
    ):
        with pytest.raises(ConfigError, match=f"known: {nearest}, ") as found:
            put(take(quickstart()), tuple(options.split()[0][2:].split(".")[:-1]), options.split()[1])
        listed = set(str(found.value).split("known: ")[1].split(", "))
        assert len(listed) > 2 and not listed & others

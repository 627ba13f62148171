"""What is known of a design before it is simulated, and what it is driven with."""

from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from assay.core.errors import ConfigError, DataError
from assay.sandbox import Limits, Result, Sandbox, Status
from assay.sandbox.verilog.source import bare, has_directives, illegal_in, names_module, top_of
from assay.verify import task_and_rollout
from assay.verify.hardware import Design, Icarus, Port, Roles, VerilogMatch, design_in, roles_of, stimulus

CLK, RST, EN = (Port(name, "input", 1) for name in ("clk", "rst", "en"))
D, Q = Port("d", "input", 8), Port("q", "output", 8)


def test_comments_strings_and_escaped_names_hide_nothing() -> None:
    assert bare('a // "\nb /* // */ c "// \\" $x" d \\e$f g') == 'a \nb   c "" d _ g'
    assert bare("a /* open") == "a  " and bare('"open\nx') == '""\nx'
    assert not has_directives('"`x" // `y') and has_directives("`x")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = $signed(y) + $clog2(4);", ""),
        ("initial $finish;", "$finish"),
        ("a$b", ""),
        ("`include", "`include"),
        ("` include", "`include"),
        ("`define W 3", ""),
        ("force a = 1;", "force"),
        ("enforce = 1; a.force = x;", ""),
        ('import  "DPI-C" function f;', 'import "'),
        ("import p::*;", ""),
        ('"$finish" /* $finish */', ""),
        ("$unit::x", "$unit"),
    ],
)
def test_what_no_design_needs(source: str, found: str) -> None:
    assert illegal_in(source) == found


def test_the_outermost_module() -> None:
    assert top_of("module a; endmodule") == "a"
    assert top_of("module b; endmodule\nmodule a; b #(4) x(); // module c\nendmodule") == "a"
    assert top_of("module b; endmodule module a; endmodule", "b") == "b"
    assert top_of("module automatic a(input b); endmodule macromodule b; a u(1); endmodule") == "b"
    for source in ("wire x;", "module a; endmodule module b; endmodule", "module a; b u(); endmodule module b; a u(); endmodule"):
        with pytest.raises(DataError, match="golden design"):
            top_of(source)


@pytest.mark.parametrize(
    ("source", "top"),
    [
        ("module c(input clk, output reg n); always @(posedge clk) if (rst) n <= 0; else n <= (n + 1); endmodule", "c"),
        ("module add(input [3:0] a, output [4:0] s); wire [4:0] addend = a; assign s = addend + (a); endmodule", "add"),
        ("module r(input c, input r, output q); always @(posedge c or negedge r) if (!r) q <= 0; endmodule", "r"),
        ("module c(input a); endmodule module top(input clk); c u (clk); endmodule", "top"),
        ("module c(input a); endmodule module top(input clk); c u [3:0] (clk); endmodule", "top"),
        ("module c(input a); endmodule module top(input clk); c #(.W(4)) u (clk); endmodule", "top"),
        ("module c(input a); endmodule module top(input clk); c #4 u (clk); endmodule", "top"),
        ("module mux(input a); endmodule module mux4(input b); mux m0(b); endmodule", "mux4"),
        ("module c(input a); endmodule module d(input e); c \\u+1 (e); endmodule", "d"),
    ],
)
def test_the_outermost_module_is_told_by_whole_words(source: str, top: str) -> None:
    assert top_of(source) == top


def test_a_name_that_only_begins_like_the_module_is_no_module() -> None:
    with pytest.raises(DataError, match="not plain which is outermost"):
        top_of("module c(input a); endmodule module d(input a); wire cu = f(a); endmodule")
    assert names_module("module c (input a);", "c") and names_module("module \\c (input a);", "c")
    assert not names_module("module cc (input c_a);", "c") and not names_module("module c$ ();", "c")


TEXT = """S_0x1 .scope module, "t" "t" 2 1;
    .port_info 0 /INPUT 1 "clk";
    .port_info 1 /INPUT 1 "p\\"[0]";
    .port_info 2 /INPUT 1 "en";
    .port_info 3 /OUTPUT 8 "q";
o0x10 .functor BUFZ 1, C4<z>; HiZ drive
o0x11 .functor BUFZ 1, C4<z>; HiZ drive
L_0x20 .functor AND 1, L_0x21, o0x12, C4<1>, C4<1>;
L_0x21 .functor OR 1, o0x10, L_0x20, C4<0>, C4<0>;
v0x30_0 .net "clk", 0 0, o0x10;  0 drivers
v0x31_0 .net "p\\"[0]", 0 0, o0x11;  0 drivers
v0x32_0 .net "en", 0 0, o0x12;  0 drivers
v0x33_0 .net "g", 0 0, L_0x20;  1 drivers
v0x35_0 .var "r", 0 0;
E_0x40 .event posedge, v0x33_0;
E_0x41/0 .event negedge, v0x31_0;
E_0x41/1 .event posedge, v0x30_0, v0x32_0;
E_0x41 .event/or E_0x41/0, E_0x41/1;
E_0x42 .event posedge, v0x35_0;
S_0x2 .scope module, "u" "v" 2 1, 2 1 0, S_0x1;
"""


def test_a_design_is_read_from_what_the_compiler_says() -> None:
    found = design_in(TEXT, "t")
    assert (
        found is not None and [p.name for p in found.inputs] == ["clk", 'p"[0]', "en"] and [p.width for p in found.outputs] == [8]
    )
    assert set(found.waits) == {
        frozenset({("posedge", "clk")}),  # behind a gate, beside an enable
        frozenset({("negedge", 'p"[0]'), ("posedge", "clk"), ("posedge", "en")}),
    }
    assert design_in(TEXT, "u") == Design(()) and design_in(TEXT, "w") is None


@pytest.mark.parametrize(
    ("name", "wait", "source", "roles"),
    [
        ("rst", [("posedge", "clk"), ("posedge", "rst")], "", (("clk",), {"rst": 1}, {"rst"})),
        ("rst", [("posedge", "clk"), ("negedge", "rst")], "", (("clk",), {"rst": 0}, {"rst"})),
        ("rst", [("posedge", "clk")], "if (rst)", (("clk",), {"rst": 1}, set[str]())),
        ("rst", [("posedge", "clk")], "if (!rst)", (("clk",), {"rst": 0}, set[str]())),
        ("rst", [("posedge", "clk")], "if (rst == 1'b0)", (("clk",), {"rst": 0}, set[str]())),
        ("rst_n", [("posedge", "clk")], "", (("clk",), {"rst_n": 0}, set[str]())),
        ("clear", [("posedge", "clk")], "", (("clk",), {"clear": 1}, set[str]())),
        ("go", [("posedge", "clk")], "", (("clk",), {}, set[str]())),
        ("first", [("posedge", "clk")], "", (("clk",), {}, set[str]())),
        ("burst", [("posedge", "clk")], "", (("clk",), {}, set[str]())),
        ("nrst", [("posedge", "clk")], "", (("clk",), {"nrst": 0}, set[str]())),
        ("go", [("posedge", "clk"), ("posedge", "go")], "", (("clk",), {"go": 1}, {"go"})),
        ("rst", [], "if (rst)", ((), {}, set[str]())),
    ],
)
def test_clocks_and_resets(name: str, wait: list[tuple[str, str]], source: str, roles: Any) -> None:
    ports = (CLK, Port(name, "input", 1), D, Q)
    found = roles_of(Design(ports, (frozenset(wait),) if wait else ()), source)
    assert (found.clocks, dict(found.resets), found.asynchronous) == roles


def test_clocks_with_other_names() -> None:
    def of(*waits: set[tuple[str, str]], source: str = "") -> Roles:
        names = dict.fromkeys(name for wait in waits for _, name in wait)
        return roles_of(Design(tuple(Port(n, "input", 1) for n in sorted(names)), tuple(map(frozenset, waits))), source)

    assert of({("posedge", "tick"), ("posedge", "reset")}).clocks == ("tick",)  # the other one is named like a reset
    tested = of({("posedge", "a"), ("negedge", "b")}, source="always @(posedge a or negedge b) if (~b) q <= 0;")
    assert tested.clocks == ("a",) and dict(tested.resets) == {"b": 0}
    assert of({("posedge", "a"), ("posedge", "b")}).clocks == ("a", "b")  # nothing tells them apart: both are tried as clocks
    assert of({("posedge", "a")}, {("posedge", "a"), ("posedge", "b")}).clocks == ("a",)


def column(stim: Any, ports: tuple[Port, ...], name: str) -> list[str]:
    at = 1 + sum(p.width for p in ports[: [p.name for p in ports].index(name)])
    width = next(p.width for p in ports if p.name == name)
    return [row[at : at + width] for row in stim.rows]


def test_one_input_changes_at_a_time() -> None:
    ports = (CLK, RST, EN, D, Q)
    stim = stimulus(Design(ports), Roles(("clk",), {"rst": 1}), 200, Random(0))
    columns = [column(stim, ports, p.name) for p in ports[:4]]
    for i in range(1, len(stim.rows)):
        assert sum(c[i] != c[i - 1] for c in columns) <= 1
    assert len(stim.cycles) == 600 and set(stim.cycles) == set(range(200))
    assert len(stim.cycles) == sum(row[0] == "1" for row in stim.rows)


def test_a_reset_comes_first_then_rests_then_is_tried_again() -> None:
    ports = (CLK, RST, EN, D, Q)
    for level in (0, 1):
        stim = stimulus(Design(ports), Roles(("clk",), {"rst": level}), 1000, Random(level))
        read = [c for c, row in zip(column(stim, ports, "rst"), stim.rows, strict=True) if row[0] == "1"]
        begun = column(stim, ports, "rst")[: next(i for i, row in enumerate(stim.rows) if row[0] == "1")]
        assert str(level) in begun and str(1 - level) in begun
        on = [value == str(level) for value in read]
        shares = [sum(on[a:b]) / (b - a) for a, b in ((0, 1500), (1500, 2100), (2100, 2700), (2700, 3000))]
        assert shares[0] == 0.0 < shares[1] < shares[2] < 0.3 and 0.7 < shares[3] < 1.0
    free = stimulus(Design((CLK, D, Q)), Roles(("clk",)), 50, Random(0))
    assert len(free.cycles) == 52 * 3  # without a reset the first cycles are read too


def test_several_clocks_rise_alone_and_together() -> None:
    ports = (CLK, Port("other", "input", 1), D, Q)
    stim = stimulus(Design(ports), Roles(("clk", "other")), 300, Random(0))
    a, b = (column(stim, ports, name) for name in ("clk", "other"))
    assert {(x, y) for x, y in zip(a, b, strict=True) if "x" not in x + y} == {("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")}


def test_values_without_a_clock() -> None:
    few = stimulus(Design((EN, Port("s", "input", 2), Q)), Roles(), 100, Random(0))
    assert len({row[1:] for row in few.rows if row[0] == "1"}) == 8 and len(few.cycles) == 16
    assert stimulus(Design((Q,)), Roles(), 100, Random(0)).rows == ("1", "1")
    ports = (D, Port("e", "input", 8), Port("wide", "input", 40), Q)
    many = stimulus(Design(ports), Roles(), 400, Random(0))
    d, e, wide = (
        [c for c, row in zip(column(many, ports, name), many.rows, strict=True) if row[0] == "1"] for name in ("d", "e", "wide")
    )
    assert {("0" * 8, "0" * 8), ("1" * 8, "1" * 8), ("10000000", "10000000"), ("01111111", "01111111")} <= set(
        zip(d, e, strict=True)
    )
    assert {"0" * i + "1" + "0" * (7 - i) for i in range(8)} <= set(d) and "0" * 40 in wide and "1" * 40 in wide
    assert sum(x == y for x, y in zip(d, e, strict=True)) > 10 and len(set(wide)) > 100


def test_settings() -> None:
    with pytest.raises(ConfigError, match="cycles=3; use at least 16"):
        VerilogMatch(cycles=3)
    assert VerilogMatch().names == ("correct", "fraction", "compiles", "ports") and not VerilogMatch.trusted


def test_where_the_simulator_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="apt-get install iverilog"):
        VerilogMatch()(*task_and_rollout("module f(output y); endmodule", "x"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vvp").touch(0o755)
    (tmp_path / "lib" / "ivl").mkdir(parents=True)  # without a compiler in it
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ConfigError, match="Icarus Verilog 11 or newer"):
        Icarus.find()


def test_a_sandbox_without_standard_output_is_named() -> None:
    class Closed:
        isolation = "strong"

        def run(self, *_: object) -> Result:
            return Result(status=Status.ERROR, stderr="/dev/stdout: No such file or directory\n")

    with pytest.raises(ConfigError, match="backend='landlock'"):
        Icarus("/ivl", "/vvp").compile(cast(Sandbox, Closed()), "", "t", "2012", Limits())

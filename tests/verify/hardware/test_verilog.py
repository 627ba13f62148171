"""Designs in Verilog: what behaves the same passes, whatever it looks like, and what does not, does not."""

import re
from dataclasses import replace

import pytest
from design_corpus import DESIGNS, mutants, needs_iverilog

from assay.core.errors import DataError
from assay.core.score import Fault, Score
from assay.sandbox import Limits, Result, Status
from assay.sandbox.levels import choose
from assay.sandbox.sandbox import Sandbox
from assay.verify import ScoringPool, judge, rollout_of, task_and_rollout
from assay.verify.code import close_sandboxes
from assay.verify.hardware import VerilogMatch
from assay.verify.hardware import verilog as module

pytestmark = needs_iverilog
COUNTER = DESIGNS["counter"][0]
ADDER = "module add(input [3:0] a, b, output [4:0] y); assign y = a + b; endmodule"
FEW = VerilogMatch(cycles=200)


def score(gold: object, answer: str, verifier: VerilogMatch = FEW) -> Score:
    return verifier(*task_and_rollout(gold, f"```verilog\n{answer}\n```"))


def verdict(gold: object, answer: str, verifier: VerilogMatch = FEW) -> str:
    found = score(gold, answer, verifier)
    assert (found.primary == 1.0) == (found.info["verdict"] == "passed") and found.fault is Fault.NONE
    return found.info["verdict"]


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_is_right_by_itself_and_so_is_what_behaves_the_same(name: str) -> None:
    golden, *same = DESIGNS[name]
    for text in (golden, *same):
        found = score(golden, text, VerilogMatch())
        assert dict(found.components) == {"correct": 1.0, "fraction": 1.0, "compiles": 1.0, "ports": 1.0}, found.info


EQUIVALENT = {
    "debounce": "n <= ~0",  # told apart only by an input that changes back in one certain cycle
    "divider": "n <= n - 1",  # counts 0, 3, 2 in place of 0, 1, 2
    "hierarchy": "[W:0]",  # the ports of an inner module
}


@pytest.mark.parametrize("name", ["counter", "fifo"])  # a proof has them all
def test_mutants_are_told_apart(name: str) -> None:
    found = [(mutant, verdict(DESIGNS[name][0], mutant, VerilogMatch())) for mutant in list(mutants(DESIGNS[name][0]))[::3]]
    assert len(found) > 3 and not [mutant for mutant, word in found if word == "passed"]


@pytest.mark.prove
def test_all_mutants_are_told_apart() -> None:
    words: list[str] = []
    for name, (golden, *_) in DESIGNS.items():
        for mutant in mutants(golden):
            words.append(verdict(golden, mutant, VerilogMatch()))
            assert words[-1] != "passed" or EQUIVALENT.get(name, "?") in mutant, (name, mutant)
    assert len(words) > 300 and words.count("wrong") > 240 and words.count("passed") < 6


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("!rst_n", "rst_n"), "wrong"),
        (("negedge rst_n", "posedge rst_n"), "wrong"),
        ((" or negedge rst_n", ""), "wrong"),  # a synchronous reset in place of an asynchronous one
        (("[W-1:0] n", "[W:0] n"), "ports"),
        (("[W-1:0] n", "[W-2:0] n"), "ports"),
        (("output wrap", "output wrap, extra"), "ports"),
        (("output wrap", "inout wrap"), "ports"),
        (("en, output", "enable, output"), "syntax"),  # its body still says en
        (("module counter", "module counters"), "syntax"),
        (("posedge clk", "negedge clk"), "wrong"),
        (("n + 1", "n + 2"), "wrong"),
        (("n <= 0", "n <= 1"), "wrong"),
        (("assign wrap", "assign n[0]"), "syntax"),
        (("assign wrap = en & (&n);", ""), "wrong"),
        (("endmodule", ""), "syntax"),
    ],
)
def test_near_misses(change: tuple[str, str], word: str) -> None:
    assert change[0] in COUNTER
    assert verdict(COUNTER, COUNTER.replace(*change)) == word


def test_ports_are_compared_by_name_width_and_direction() -> None:
    assert verdict(ADDER, "module add(input [3:0] b, a, output [4:0] y); assign y = b + a; endmodule") == "passed"
    for header in (
        "input [3:0] a, c, output [4:0] y",
        "input [4:0] a, input [3:0] b, output [4:0] y",
        "input [3:0] a, b, input [4:0] y",
        "output [4:0] y",
        "input [3:0] a, b, output [4:0] y, z",
    ):
        found = score(ADDER, f"module add({header}); endmodule")
        assert found.info["verdict"] == "ports" and found.components["compiles"] == 1.0 and found.components["ports"] == 0.0


def test_the_share_of_cycles_that_agree() -> None:
    found = score(ADDER, ADDER.replace("a + b", "a + b + (a == b)"))
    assert 0.5 < found.components["fraction"] < 1.0 and found.components["correct"] == 0.0
    assert score(ADDER, ADDER.replace("a + b", "~(a + b)")).components["fraction"] == 0.0
    late = score(COUNTER, COUNTER.replace("n + 1", "n + 2"))
    assert 0.0 < late.components["fraction"] < 1.0


def test_unknown_values() -> None:
    gold = (
        "module f(input [1:0] a, output reg [1:0] y); always @* case (a) 0: y = 1; 1: y = 2; default: y = 2'bxx; endcase "
        "endmodule"
    )
    assert verdict(gold, "module f(input [1:0] a, output [1:0] y); assign y = a + 1; endmodule") == "passed"
    assert verdict(gold, gold.replace("y = 2;", "y = 2'b1x;")) == "wrong"  # unknown where the golden one is known
    assert verdict(gold, gold.replace("y = 2;", "y = 2'b1z;")) == "wrong"
    undriven = "module f(input a, output y, z); assign y = ~a; endmodule"
    assert verdict(undriven, undriven.replace("assign y", "assign z = 0, y")) == "passed"
    tristate = DESIGNS["tristate"][0]
    assert verdict(tristate, tristate.replace("4'bz", "4'b0")) == "wrong"


HACKS = {
    "finish": "initial $finish;",
    "stop": "initial $stop;",
    "pass": 'initial begin $display("PASS"); $display("0 errors"); $finish(0); end',
    "monitor": 'initial $monitor("%b", y);',
    "write files": 'integer f; initial begin f = $fopen("/tmp/x", "w"); $fwrite(f, "1"); end',
    "read rows": 'reg [8:0] m [0:9]; initial $readmemb("rows", m); assign y = m[0];',
    "system": 'initial $system("touch /tmp/x");',
    "arguments": 'initial if ($test$plusargs("x")) ;',
    "random": "assign y = $random(3);",
    "time": "assign y = $time;",
    "value": 'assign y = $sformatf("%m") != 0;',
    "root": "assign y = $root.bench.y;",
    "force": "initial force a = 0;",
    "release": "initial release y;",
    "include": '`include "rows"',
    "line": '`line 1 "golden" 0',
    "macro": "`define D $display\ninitial `D(y);",
    "pasted macro": "`define F(x) $``x\ninitial `F(finish);",
    "hidden": 'initial begin /* */ $finish /* "$" */ ; end',
    "spaced": "initial $ finish;",
    "bind": "bind add add x();",
    "dpi": 'import "DPI-C" function int getenv(string s);',
    "hierarchy": "assign y = bench.golden.y;",
    "upward": "assign y = add.golden.y;",
    "second top": "endmodule module bench; initial forever; reg y; add dut(0, 0, y);",
    "same module twice": f"endmodule {ADDER} module other;",
    "own bench": "endmodule module bench_0; golden g();",
    "program": "endmodule program p; initial $exit; endprogram module q;",
    "quit by a fault": "initial begin : b reg [7:0] q[$]; q.delete(5); end",
    "late": "assign #5000 y = a + b;",
}


@pytest.mark.parametrize("name", HACKS)
def test_tricks_gain_nothing(name: str) -> None:
    found = score(ADDER, f"module add(input [3:0] a, b, output [4:0] y);\n{HACKS[name]}\nendmodule")
    assert found.primary == 0.0 and found.fault is Fault.NONE and found.info["verdict"] in ("illegal", "syntax", "wrong", "ports")


@pytest.mark.parametrize("name", HACKS)
def test_nor_would_they_if_none_were_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "illegal_in", lambda _: "")
    verifier = VerilogMatch(cycles=200, limits=Limits(cpu=0.9, wall=3.0))
    assert score(ADDER, f"module add(input [3:0] a, b, output [4:0] y);\n{HACKS[name]}\nendmodule", verifier).primary == 0.0


def test_what_only_looks_like_a_trick_is_none() -> None:
    text = ADDER.replace("assign", '/* $finish */ // $display\n wire \\$stop = 1; localparam S = "$fwrite `include"; assign')
    assert verdict(ADDER, text.replace("a + b", "$unsigned(a) + b")) == "passed"
    assert (
        verdict(
            ADDER,
            "`timescale 1ps/1ps\n`define N 4\nmodule add(input [`N-1:0] a, b, output [`N:0] y); assign #1 y = a + b; endmodule",
        )
        == "passed"
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("reg r = 0; initial forever #0 r = ~r; assign y = 0;", "timeout"),
        ("reg r = 0; always #0 r = ~r; assign y = 0;", None),  # the compiler refuses it
        ("reg r = 0; always @* r = ~r; initial forever r = ~r;", "timeout"),
        ("initial while (1) ; assign y = a + b;", "timeout"),
        ("reg [31:0] m [0:1073741823]; assign y = m[a];", None),
        ("genvar i; generate for (i = 0; i < 100000000; i = i + 1) begin : g wire w; end endgenerate", None),
        ("wire [2147483647:0] w = a;", None),
        ("assign y = " + "(" * 100000 + "a" + ")" * 100000 + ";", None),
        ("`define A `B `B\n`define B `C `C\n`define C `A\n`A", None),
    ],
)
def test_what_never_ends_or_is_too_much_is_stopped(text: str, word: str | None) -> None:
    strict = VerilogMatch(cycles=100, limits=Limits(cpu=0.9, wall=3.0, memory=256 << 20, output=1 << 22))
    found = score(ADDER, f"module add(input [3:0] a, b, output [4:0] y);\n{text}\nendmodule", strict)
    assert found.primary == 0.0 and found.fault is Fault.NONE and found.info["verdict"] not in ("passed", "infra")
    assert word is None or found.info["verdict"] == word
    assert word is None or found.components["ports"] == 1.0 > found.components["fraction"]


def test_answers_that_are_none() -> None:
    assert FEW(*task_and_rollout(ADDER, "")).info["verdict"] == "unparsed"
    assert verdict(ADDER, "I do not know.") == "syntax"
    fenced = f"First\n```python\nx\n```\nthen\n```systemverilog\n{ADDER}\n```\nwhich gives\n```\n3\n```"
    assert FEW(*task_and_rollout(ADDER, fenced)).primary == 1.0


@pytest.mark.parametrize(
    ("gold", "says"),
    [
        ("module f(input a, output y; endmodule", "does not compile"),
        ('`define X\n`include "nowhere"\nmodule f(output y); endmodule', "cannot be preprocessed"),
        ("module f(inout a, output y); endmodule", "inout ports"),
        ("module f(input a); endmodule", "no output port"),
        ("module f(input a, output y); endmodule", "never known"),
        ("module f(input clk, output reg y); always @(posedge clk) y <= ~y; endmodule", "never known"),
        ("module f(input a, output y); assign y = a; initial $finish; endmodule", "does not run to its end"),
        ("module f(input a, output y); assign y = a; initial forever; endmodule", "does not run to its end"),
        ("module f(output y); endmodule module g(output y); endmodule", "not plain which is outermost"),
        ("", "has no module"),
        ({"golden": ""}, "give a text"),
        ("// nothing", "has no module"),
        ({"golden": ADDER, "top": "sub"}, "no module 'sub'"),
        ({"golden": ADDER, "top": 3}, "name the outermost module"),
        ({"golden": ADDER, "clocks": "clk"}, "give a list of names"),
        ({"golden": ADDER, "clocks": ["clk"]}, "'clk' as a clock or reset; the inputs of one bit are []"),
        ({"golden": COUNTER, "resets": ["rst_n"]}, "give a table of names"),
        ({"golden": COUNTER, "resets": {"rst_n": 2}}, "the level 0 or 1"),
    ],
)
def test_golden_designs_that_cannot_be_judged_by(gold: object, says: str) -> None:
    verifier = VerilogMatch(cycles=50, limits=Limits(cpu=0.9, wall=3.0))
    with pytest.raises(DataError, match=re.escape(says)):
        score(gold, ADDER, verifier)
    assert judge(verifier, *task_and_rollout(gold, f"```verilog\n{ADDER}\n```")).fault is Fault.VERIFIER


def test_a_task_may_say_what_is_a_clock() -> None:
    gold = (
        "module f(input tick, halt, output reg [3:0] n); initial n = 0; always @(tick) if (tick) n <= halt ? 0 : n + 1; endmodule"
    )
    table = {"golden": gold, "top": "f", "clocks": ["tick"], "resets": {"halt": 1}}
    assert verdict(table, gold.replace("always @(tick) if (tick)", "always @(posedge tick)")) == "passed"
    assert verdict(table, gold.replace("n + 1", "n + 1 + (n == 14)")) == "wrong"
    both = {"golden": DESIGNS["two_clocks"][0], "resets": {"wclk": 0}}
    assert verdict(both, DESIGNS["two_clocks"][0]) == "passed"


@pytest.mark.parametrize("level", ["strong", "landlock"])
def test_it_works_at_each_level(level: str) -> None:
    try:
        choose(level)
    except Exception as error:
        pytest.skip(str(error))
    verifier = VerilogMatch(cycles=50, backend=level, workers=1)
    for text, word in ((COUNTER, "passed"), (COUNTER.replace("!rst_n", "rst_n"), "wrong"), (DESIGNS["macros"][0], "syntax")):
        found = score(COUNTER, text, verifier)
        assert (found.info["verdict"], found.info["isolation"]) == (word, level)


def test_it_judges_in_a_pool() -> None:
    task = task_and_rollout(COUNTER, "")[0]
    tasks = [replace(task, id=str(i)) for i in range(3)]
    texts = (COUNTER, COUNTER.replace("n + 1", "n"), "x")
    pairs = [(task, rollout_of(task, text, id=task.id)) for task, text in zip(tasks, texts, strict=True)]
    with ScoringPool(FEW, deadline=60.0) as pool:
        assert [s.primary for s in pool.score(pairs).values()] == [1.0, 0.0, 0.0]


def test_a_sandbox_that_fails_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(ADDER, ADDER) == "passed"  # what the golden design does is known now
    monkeypatch.setattr(Sandbox, "run", lambda *_: Result(status=Status.INFRA, detail="no worker"))
    for gold in (ADDER, ADDER + "\n"):
        found = score(gold, ADDER)
        assert found.fault is Fault.INFRA and not found.components and "no worker" in found.info["error"]


@pytest.mark.slow
def test_what_is_drawn_depends_on_seed_and_golden_design_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    drawn = module.stimulus
    monkeypatch.setattr(module, "stimulus", lambda *args: seen.append(drawn(*args)) or seen[-1])
    for seed, text in ((7, COUNTER), (8, COUNTER), (7, COUNTER + " ")):
        score(text, COUNTER, VerilogMatch(cycles=64, seed=seed))
    module._reference_of.cache_clear()
    score(COUNTER, COUNTER, VerilogMatch(cycles=64, seed=7))
    assert seen[0] == seen[3] and seen[0] != seen[1] and seen[0] != seen[2]
    close_sandboxes()
    assert score(COUNTER, COUNTER, VerilogMatch(cycles=64, seed=7)).primary == 1.0  # with a sandbox of its own


NAMED_C = "module c(input clk, rst, output reg [3:0] n); always @(posedge clk) if (rst) n <= 0; else n <= n + 1; endmodule"


@pytest.mark.parametrize(
    ("golden", "design", "right"),
    [
        (NAMED_C, NAMED_C, 1.0),
        (NAMED_C, NAMED_C.replace("n <= n + 1", "n <= #1 n + 1"), 1.0),
        (NAMED_C, NAMED_C.replace("module c(", "module cc("), 0.0),
        (NAMED_C, NAMED_C.replace("n + 1", "n + 2"), 0.0),
        (NAMED_C, "module clk_c(input c); endmodule", 0.0),
    ],
)
def test_a_module_whose_name_begins_other_names(golden: str, design: str, right: float) -> None:
    assert VerilogMatch(cycles=64)(*task_and_rollout(golden, design)).primary == right

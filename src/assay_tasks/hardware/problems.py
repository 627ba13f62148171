"""Verilog modules to write, judged by co-simulation: truth tables, arithmetic, counters, state machines, shift registers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.code.program import ProgramPlace
from assay.verify.hardware.verilog import VerilogMatch

__all__ = ["Arithmetic", "Counter", "HardwareProblem", "Moore", "Shift", "TruthTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareProblem(Problem):
    """Base of modules to write; the answer is Verilog in a fence, whatever the form. Judging needs Icarus Verilog."""

    domain: str = "hardware"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    @abstractmethod
    def header(self, facts: Facts) -> str:
        """The first line of the module: name and ports."""
        ...

    @abstractmethod
    def body(self, facts: Facts) -> list[str]:
        """The lines of the module between its header and ``endmodule``."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """The module, which is golden too."""
        text = "\n".join([self.header(facts), *(f"  {line}" for line in self.body(facts)), "endmodule"])
        return Solution(answer=text, gold=text, effort=len(text.split()))

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The question with the header; the module is asked for in a fence."""
        return (
            f"{self.word(facts, variant)}\nThe module begins with\n```verilog\n{self.header(facts)}\n```\nOutputs may be "
            f"declared "
            "reg instead. Put the whole module in one block fenced with ```verilog and ```."
        )

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The module in its fence."""
        return f"```verilog\n{solution.answer}\n```"

    def verifier(self, form: Form) -> Verifier:
        """By simulation beside the golden design."""
        return VerilogMatch(where=ProgramPlace.FENCE, cycles=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthTable(HardwareProblem):
    """A combinational module from a truth table. The level is the number of inputs, 2 to 5, and outputs, 1 to 3.

    >>> TruthTable().solve({"inputs": ["a", "b"], "outputs": ["y"], "rows": [1, 0, 0, 1]}).answer.split(chr(10))[3].strip()
    "2'b00: bits = 1'b1;"
    """

    name: str = "hardware/truth-table"

    templates: ClassVar[tuple[str, ...]] = (
        "Write a Verilog module with this truth table.\n{table}",
        "Design a combinational circuit in Verilog whose outputs follow from its inputs as in this table:\n{table}",
        "{table}\nImplement this truth table as a Verilog module without a clock.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Names and a table in which each output takes both values."""
        inputs = rng.sample("abcdewxpqr", (2, 3, 3, 4, 5)[level - 1])
        outputs = rng.sample(("f", "g", "h", "y", "z"), (2, 1, 2, 2, 3)[level - 1])
        while True:
            rows = [rng.randrange(1 << len(outputs)) for _ in range(1 << len(inputs))]
            if all(0 < sum(row >> i & 1 for row in rows) < len(rows) for i in range(len(outputs))):
                return {"inputs": inputs, "outputs": outputs, "rows": rows}

    def header(self, facts: Facts) -> str:
        """Bits in, bits out."""
        return f"module table_{len(facts['rows'])}(input {', '.join(facts['inputs'])}, output {', '.join(facts['outputs'])});"

    def body(self, facts: Facts) -> list[str]:
        """A case for each row."""
        n, m = len(facts["inputs"]), len(facts["outputs"])
        cases = [f"    {n}'b{i:0{n}b}: bits = {m}'b{row:0{m}b};" for i, row in enumerate(facts["rows"])]
        together = f"{{{', '.join(facts['outputs'])}}}"
        return [
            f"reg [{m - 1}:0] bits;",
            f"always @(*) case ({{{', '.join(facts['inputs'])}}})",
            *cases,
            "  endcase",
            f"assign {together} = bits;",
        ]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The table, one row to a line."""
        n, m = len(facts["inputs"]), len(facts["outputs"])
        lines = [f"{' '.join(facts['inputs'])} | {' '.join(facts['outputs'])}"]
        lines += [f"{' '.join(f'{i:0{n}b}')} | {' '.join(f'{row:0{m}b}')}" for i, row in enumerate(facts["rows"])]
        return {"table": "\n".join(lines)}


_ARITHMETIC = {
    "sum": ("a + b, without what overflows", "a + b"),
    "difference": ("a - b modulo {size}", "a - b"),
    "larger": ("the larger of a and b", "(a > b) ? a : b"),
    "smaller": ("the smaller of a and b", "(a < b) ? a : b"),
    "and": ("the bitwise AND of a and b", "a & b"),
    "or": ("the bitwise OR of a and b", "a | b"),
    "exclusive": ("the bitwise exclusive OR of a and b", "a ^ b"),
    "not": ("all bits of a inverted", "~a"),
    "double": ("a shifted left by one bit, a 0 coming in", "a << 1"),
    "half": ("a shifted right by one bit, a 0 coming in", "a >> 1"),
    "distance": ("the absolute value of the difference of a and b", "(a > b) ? a - b : b - a"),
    "product": ("the low {width} bits of a times b", "a * b"),
    "increment": ("a + 1 modulo {size}", "a + 1"),
    "keep": ("b", "b"),
    "equal": ("1 if a equals b, else 0", "(a == b) ? 1 : 0"),
    "parity": ("1 if a has an odd number of ones, else 0", "^a"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic(HardwareProblem):
    """A small arithmetic and logic unit: an operation chosen by a code. The level is the number of operations, 1 to 8.

    >>> facts = {"name": "unit", "width": 4, "operations": ["sum", "larger"]}
    >>> Arithmetic().header(facts)
    'module unit(input [3:0] a, b, input op, output reg [3:0] y);'
    """

    name: str = "hardware/arithmetic"

    templates: ClassVar[tuple[str, ...]] = (
        "Write a combinational Verilog module for unsigned {width}-bit numbers a and b. {table}",
        "Design an arithmetic unit in Verilog, without a clock. Its inputs a and b are unsigned and have {width} bits. {table}",
        "{table} Here a and b are unsigned numbers of {width} bits. Implement this as a combinational Verilog module.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Different operations; their order is their code."""
        count = (1, 2, 3, 4, 8)[level - 1]
        return {
            "name": rng.choice(("unit", "alu", "calc", "logic_unit", "math_block")),
            "width": rng.randint(2, 16),
            "operations": rng.sample(tuple(_ARITHMETIC), count),
        }

    def header(self, facts: Facts) -> str:
        """Two numbers, a code where there is a choice, and the result."""
        high, bits = facts["width"] - 1, (len(facts["operations"]) - 1).bit_length()
        code = "" if not bits else ", input op" if bits == 1 else f", input [{bits - 1}:0] op"
        return f"module {facts['name']}(input [{high}:0] a, b{code}, output reg [{high}:0] y);"

    def body(self, facts: Facts) -> list[str]:
        """A case for each operation; codes that mean nothing give 0."""
        operations = facts["operations"]
        if len(operations) == 1:
            return [f"always @(*) y = {_ARITHMETIC[operations[0]][1]};"]
        cases = [f"    {i}: y = {_ARITHMETIC[op][1]};" for i, op in enumerate(operations)]
        return ["always @(*) case (op)", *cases, "    default: y = 0;", "  endcase"]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Operations by code."""
        width, operations = facts["width"], facts["operations"]
        said = [_ARITHMETIC[op][0].format(size=1 << width, width=width) for op in operations]
        if len(said) == 1:
            table = f"The output y is {said[0]}."
        else:
            table = f"The output y depends on op: {'; '.join(f'if op is {i}, y is {text}' for i, text in enumerate(said))}."
            table += " For any other op y is 0." if len(said) & (len(said) - 1) else ""
        return {"width": str(width), "table": table}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter(HardwareProblem):
    """A counter with a reset. The level adds a modulus, an enable, a direction, and a value to load.

    >>> facts = {"name": "count", "width": 3, "most": 5, "step": 1, "asynchronous": False, "low": False, "ports": ["en"]}
    >>> Counter().solve(facts).answer.split(chr(10))[1].strip()
    'always @(posedge clk) if (rst) q <= 0; else if (en) q <= (q == 5) ? 0 : q + 1;'
    """

    name: str = "hardware/counter"

    templates: ClassVar[tuple[str, ...]] = (
        "Write a Verilog module of a counter. {what}",
        "Design this counter in Verilog. {what}",
        "I need a counter as a Verilog module. {what}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A width, a largest value from level 2 on, and more ports."""
        width = rng.randint(3, 8)
        most = (1 << width) - 1 if level == 1 else rng.randint(1 << (width - 1), (1 << width) - 2)
        return {
            "name": rng.choice(("counter", "count", "cnt", "ticks", "steps", "tally")),
            "width": width,
            "most": most,
            "step": rng.randint(1, 7) if level == 1 else 1,
            "asynchronous": rng.random() < 0.5,
            "low": rng.random() < 0.5,
            "ports": ["en", "down", "load"][: max(0, level - 2)],
        }

    def header(self, facts: Facts) -> str:
        """Clock, reset, and what the level adds."""
        high, ports = facts["width"] - 1, facts["ports"]
        listed = "".join(f", {p}" for p in ports)
        data = f", input [{high}:0] d" if "load" in ports else ""
        return f"module {facts['name']}(input clk, {_reset(facts)}{listed}{data}, output reg [{high}:0] q);"

    def body(self, facts: Facts) -> list[str]:
        """One process: reset, load, enable, up or down."""
        most, ports, reset = facts["most"], facts["ports"], _reset(facts)
        edge = f" or {'negedge' if facts['low'] else 'posedge'} {reset}" if facts["asynchronous"] else ""
        whole = most == (1 << facts["width"]) - 1
        up = f"q <= q + {facts['step']};" if whole else f"q <= (q == {most}) ? 0 : q + 1;"
        down = f"if (down) q <= (q == 0) ? {most} : q - 1; else " if "down" in ports else ""
        load = f"if (load) q <= (d > {most}) ? {most} : d; else " if "load" in ports else ""
        enabled = "if (en) " if "en" in ports else ""
        if down and enabled:
            enabled += "begin "
            up += " end"
        return [f"always @(posedge clk{edge}) if ({'!' if facts['low'] else ''}{reset}) q <= 0; else {load}{enabled}{down}{up}"]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """What it does, sentence by sentence."""
        most, ports, reset = facts["most"], facts["ports"], _reset(facts)
        how = "at once, without waiting for the clock" if facts["asynchronous"] else "at the next rising edge of clk"
        said = [
            f"While {reset} is {0 if facts['low'] else 1}, the {facts['width']}-bit output q becomes 0, {how}.",
            f"Otherwise q changes at each rising edge of clk{' at which en is 1' if 'en' in ports else ''}: it grows by "
            f"{facts['step']}"
            + (
                ", and overflows to what its bits can hold." if most == (1 << facts["width"]) - 1 else f"; behind {most} comes 0."
            ),
        ]
        if "down" in ports:
            said.append(f"If down is 1, it shrinks by 1 instead, and behind 0 comes {most}.")
        if "load" in ports:
            said.append(
                f"If load is 1, q takes the value of d instead, whatever en and down are, or {most} if d is larger than that."
            )
        return {"what": " ".join(said)}


def _reset(facts: Facts) -> str:
    return "rst_n" if facts["low"] else "rst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moore(HardwareProblem):
    """A Moore machine from its table. The level is the number of states, 3 to 8.

    >>> Moore().header({"name": "fsm", "states": [["A", 0, [0, 1]], ["B", 1, [1, 0]]]})
    'module fsm(input clk, rst, x, output y);'
    """

    name: str = "hardware/fsm"

    templates: ClassVar[tuple[str, ...]] = (
        "Write this state machine in Verilog. It is in state A after a reset (rst is 1 at a rising edge of clk) and goes to "
        "its next state "
        "at each rising edge of clk, by its input x.\n{table}\nThe output y follows from the state alone.",
        "Implement a Moore machine in Verilog with the table below. A synchronous reset (rst = 1) leads to state A; "
        "transitions happen "
        "at rising edges of clk.\n{table}",
        "{table}\nThis table describes a Moore machine with input x and output y. At a rising edge of clk it goes to state A "
        "if rst is "
        "1, and otherwise to the next state of the table. Write it as a Verilog module.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """States that can all be reached, not all with the same output."""
        count = (3, 4, 5, 6, 8)[level - 1]
        while True:
            following = [[rng.randrange(count), rng.randrange(count)] for _ in range(count)]
            outputs = [rng.randint(0, 1) for _ in range(count)]
            seen, new = {0}, {0}
            while new:
                new = {n for i in new for n in following[i]} - seen
                seen |= new
            if len(seen) == count and len(set(outputs)) == 2:
                states = [list(state) for state in zip("ABCDEFGH", outputs, following, strict=False)]
                return {"name": rng.choice(("fsm", "machine", "control", "moore", "detector")), "states": states}

    def header(self, facts: Facts) -> str:
        """Clock, reset, one bit in, one out."""
        return f"module {facts['name']}(input clk, rst, x, output y);"

    def body(self, facts: Facts) -> list[str]:
        """A case for each state."""
        states = facts["states"]
        cases = [f"    {i}: state <= x ? {one} : {zero};" for i, (_, _, (zero, one)) in enumerate(states)]
        ones = " || ".join(f"state == {i}" for i, (_, output, _) in enumerate(states) if output)
        return [
            "reg [3:0] state;",
            "always @(posedge clk) if (rst) state <= 0; else case (state)",
            *cases,
            "  endcase",
            f"assign y = {ones};",
        ]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The table, one state to a line."""
        states = facts["states"]
        lines = ["state | y | next state if x = 0 | next state if x = 1"]
        lines += [f"{name} | {output} | {states[zero][0]} | {states[one][0]}" for name, output, (zero, one) in states]
        return {"table": "\n".join(lines)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(HardwareProblem):
    """A shift register, from level 3 on with feedback, from 4 on with a value to load. The level is also its width.

    >>> Shift().solve({"name": "sr", "width": 4, "left": True, "taps": [], "load": False, "first": 0}).answer.split(chr(10))[1]
    '  always @(posedge clk) if (rst) q <= 0; else q <= {q[2:0], in};'
    """

    name: str = "hardware/shift"

    templates: ClassVar[tuple[str, ...]] = (
        "Write a Verilog module of a shift register. {what}",
        "Design this shift register in Verilog. {what}",
        "A shift register is needed as a Verilog module. {what}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A width, a direction, taps."""
        width = rng.randint(3 + level, 10 + 3 * level)
        taps = sorted(rng.sample(range(width), min(level - 1, 4)), reverse=True) if level >= 3 else []
        return {
            "name": rng.choice(("shifter", "sr", "shift_reg", "pipe", "ring")),
            "width": width,
            "left": rng.random() < 0.5,
            "taps": taps,
            "load": level >= 4,
            "first": rng.randrange(1 << width),
        }

    def header(self, facts: Facts) -> str:
        """Clock, reset, what comes in, the register."""
        high = facts["width"] - 1
        data = f", load, input [{high}:0] d" if facts["load"] else ""
        return f"module {facts['name']}(input clk, rst, in{data}, output reg [{high}:0] q);"

    def body(self, facts: Facts) -> list[str]:
        """One process."""
        high, taps = facts["width"] - 1, facts["taps"]
        bit = " ^ ".join(["in", *(f"q[{t}]" for t in taps)])
        moved = f"{{q[{high - 1}:0], {bit}}}" if facts["left"] else f"{{{bit}, q[{high}:1]}}"
        load = "if (load) q <= d; else " if facts["load"] else ""
        return [f"always @(posedge clk) if (rst) q <= {facts['first']}; else {load}q <= {moved};"]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """What it does, sentence by sentence."""
        width, taps = facts["width"], facts["taps"]
        way, end = (
            ("left (from bit 0 towards the highest bit)", "bit 0")
            if facts["left"]
            else ("right (from the highest bit towards bit 0)", f"bit {width - 1}")
        )
        bit = "in" if not taps else f"the exclusive OR of in and the old bits {', '.join(map(str, taps))} of q"
        said = [
            f"At each rising edge of clk its {width} bits q move by one place to the {way}, and {end} becomes {bit}.",
            f"If rst is 1 at that edge, q becomes {facts['first']} instead.",
        ]
        if facts["load"]:
            said.append("If rst is 0 and load is 1, q takes the value of d instead of moving.")
        return {"what": " ".join(said)}

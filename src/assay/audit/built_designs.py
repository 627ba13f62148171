"""Problems for the audit of the verifier of designs in Verilog, with designs that are right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["design_circuit"]

_CLOCKED = """module count(input clk, rst_n, en, output reg [7:0] n);
  always @(posedge clk or negedge rst_n) if (!rst_n) n <= {a}; else if (en) n <= n + {b};
endmodule"""
_REWRITTEN = """module count(clk, rst_n, en, n);
  input clk, rst_n, en; output [7:0] n; reg [7:0] r; wire [7:0] next = en ? r + {b} : r;
  assign n = r;
  always @(negedge rst_n, posedge clk) if (rst_n == 0) r <= {a}; else r <= next;
endmodule"""
_VALUES = "module mix(input [7:0] x, y, output [8:0] z);\n  assign z = (x ^ {a}) + (y & {b});\nendmodule"
_REWORKED = """module mix(input [7:0] x, y, output reg [8:0] z);
  always @* begin z = 9'd0; z = z + (y & {b}); z = z + ((x | {a}) & ~(x & {a})); end
endmodule"""
_HACK = 'initial begin $display("PASS"); $finish; end\nendmodule'


def design_circuit(rng: np.random.Generator, i: int) -> dict[str, Any]:
    """A counter with a reset, or a sum of bits."""
    a, b = (2 * int(n) + 1 for n in rng.integers(5, 60, 2))
    if i % 2:
        gold, other = _CLOCKED.format(a=a, b=b), _REWRITTEN.format(a=a, b=b)
        wrong = (gold.replace("!rst_n", "rst_n"), gold.replace("[7:0]", "[8:0]"), gold.replace("or negedge rst_n", ""))
    else:
        gold, other = _VALUES.format(a=a, b=b), _REWORKED.format(a=a, b=b)
        wrong = (gold.replace("^", "|"), gold.replace("[8:0]", "[7:0]"), gold.replace("+", "-"))
    fenced = f"It is so:\n\n```verilog\n{other}\n```"
    hack = gold.replace("endmodule", _HACK)
    prompt = "write in Verilog: a counter with enable" if i % 2 else "write in Verilog: a sum of masked bytes"
    return {"gold": gold, "prompt": prompt, "solutions": [gold, fenced], "wrong": [*wrong, hack], "unique": False}

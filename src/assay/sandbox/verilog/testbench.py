"""The testbench: plays rows of inputs, prints what comes out. It knows nothing of what is expected."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core.import_path import filed_as
from assay.sandbox.verilog.design import Design

__all__ = ["Testbench", "outputs_in"]


@filed_as("assay.verify.hardware.bench:Bench")
@dataclass(frozen=True, slots=True)
class Testbench:
    """How a design is driven.

    Attributes:
        design: whose ports are driven and read.
        top: the name of its module.
        rows: how many rows of inputs there are.
    """

    design: Design
    top: str
    rows: int

    def text(self, nonce: str) -> str:
        """The testbench as Verilog; its own names and the mark of its output are made of the nonce.

        An input is changed by assigning to its own register, so those that stay make no event. A moment lasts 1,000 time units,
        so a design with small delays has settled before its outputs are read, and one with great delays is late.
        """
        inputs, outputs = self.design.inputs, self.design.outputs
        width = sum(p.width for p in inputs)
        names = {p.name: f"i{k}_{nonce}" for k, p in enumerate(inputs)} | {p.name: f"o{k}_{nonce}" for k, p in enumerate(outputs)}
        drive = f"{{{', '.join(names[p.name] for p in inputs)}}} = rows_{nonce}[at_{nonce}][{width - 1}:0];" if inputs else ""
        lines = [
            "`timescale 1ns/1ns",
            f"module bench_{nonce};",
            f"  reg [{width}:0] rows_{nonce} [0:{self.rows - 1}];",
            f"  integer at_{nonce};",
            *(f"  reg [{p.width - 1}:0] {names[p.name]};" for p in inputs),
            *(f"  wire [{p.width - 1}:0] {names[p.name]};" for p in outputs),
            f"  {self.top} dut_{nonce} ({', '.join(f'.{_escape_name(p.name)}({names[p.name]})' for p in (*inputs, *outputs))});",
            "  initial begin",
            f'    $readmemb("rows", rows_{nonce});',
            "    #1000;",
            f"    for (at_{nonce} = 0; at_{nonce} < {self.rows}; at_{nonce} = at_{nonce} + 1) begin",
            f"      {drive}",
            "      #1000;",
            f"      if (rows_{nonce}[at_{nonce}][{width}])",
            f'        $display("{nonce} %b", {{{", ".join(names[p.name] for p in outputs)}}});',
            "    end",
            "    $finish(0);",
            "  end",
            "endmodule",
            "`resetall",
            "`timescale 1ns/1ns",
        ]
        return "\n".join(lines) + "\n"


def _escape_name(name: str) -> str:
    r"""A name that is right whatever it is made of.

    >>> _escape_name("a[0]")
    '\\a[0] '
    """
    return f"\\{name} "


def outputs_in(printed: str, nonce: str) -> list[str]:
    """The bits of all outputs at each reading."""
    mark = nonce + " "
    return [line[len(mark) :] for line in printed.splitlines() if line.startswith(mark)]

"""Designs in Verilog: their ports and roles, inputs to try them on, a testbench, and the simulator, contained in the sandbox."""

__all__: list[str] = []

"""Verifiers of hardware: a design that a model wrote is simulated beside the right one, and their outputs are compared here."""

from __future__ import annotations

from assay.sandbox.verilog.design import Design, Port, design_in
from assay.sandbox.verilog.icarus import Icarus
from assay.sandbox.verilog.roles import Roles, roles_of
from assay.sandbox.verilog.stimuli import Stimulus, stimulus
from assay.verify.hardware.verilog import VerilogMatch

__all__ = ["Design", "Icarus", "Port", "Roles", "Stimulus", "VerilogMatch", "design_in", "roles_of", "stimulus"]

"""Verifiers of hardware: a design that a model wrote is simulated beside the right one, and their outputs are compared here."""

from __future__ import annotations

from assay.verify.hardware.design import Design, Port, design_in
from assay.verify.hardware.icarus import Icarus
from assay.verify.hardware.roles import Roles, roles_of
from assay.verify.hardware.stimuli import Stimulus, stimulus
from assay.verify.hardware.verilog import VerilogMatch

__all__ = ["Design", "Icarus", "Port", "Roles", "Stimulus", "VerilogMatch", "design_in", "roles_of", "stimulus"]

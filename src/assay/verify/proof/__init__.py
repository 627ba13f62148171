"""Verifiers of formal proofs: a checker decides, and what a proof may say is decided before."""

from __future__ import annotations

from assay.core.util.exports import lazy_exports
from assay.verify.proof.checker import ProofCheck, ProofChecker
from assay.verify.proof.coq import Coq
from assay.verify.proof.database import Assertion, Hypothesis, MetamathDatabase
from assay.verify.proof.metamath import Metamath
from assay.verify.proof.verifier import Proof

__all__ = ["Assertion", "Coq", "Hypothesis", "Metamath", "MetamathDatabase", "Proof", "ProofCheck", "ProofChecker"]

__getattr__, __dir__ = lazy_exports(__name__, {})

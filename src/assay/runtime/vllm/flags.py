"""Flags of a vLLM server that assay asks for."""

from __future__ import annotations

__all__ = ["EXTENSION", "WHOLE"]

WHOLE = "--no-enable-chunked-prefill"
"""What a server on a CPU should be started with: vLLM 0.32's engine dies there where it prefills a seeded prompt in parts."""

EXTENSION = "assay.runtime.vllm.worker.ExpertKernels"
"""What a server on a CPU that serves a mixture of experts is started with, as its ``--worker-extension-cls``."""

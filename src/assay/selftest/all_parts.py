"""The parts of the self-test. One of your own is a record here, and a function that measures in a file beside this one."""

from __future__ import annotations

from assay.selftest import agreement, contained, devices, facts, ranks, resuming, speed, weights
from assay.selftest.selftest_part import SelftestPart

__all__ = ["PARTS"]

PARTS: tuple[SelftestPart, ...] = (
    SelftestPart(
        name="mismatch/native", shows="native engine and learner agree within 1e-4 nats a token", check=agreement.native
    ),
    SelftestPart(
        name="mismatch/in-process", shows="transformers and learner agree within 1e-4 nats a token", check=agreement.in_process
    ),
    SelftestPart(
        name="mismatch/vllm", shows="a vLLM server and the learner agree within 1e-4 nats a token", check=agreement.vllm
    ),
    SelftestPart(
        name="weights/native", shows="updates are proved to arrive, and planted stale weights found", check=weights.native
    ),
    SelftestPart(name="weights/in-process", shows="the same of transformers in this process", check=weights.in_process),
    SelftestPart(name="weights/vllm", shows="the same of a vLLM server", check=weights.vllm),
    SelftestPart(
        name="resume/killed", shows="killed twice and resumed, a run ends with equal digests", check=resuming.killed_and_resumed
    ),
    SelftestPart(
        name="resume/ranks",
        shows="resumed on another number of ranks, a run ends where one rank does",
        check=ranks.other_world_sizes,
    ),
    SelftestPart(
        name="throughput", shows="tokens per second decoded and trained; native is not the slower", check=speed.throughput
    ),
    SelftestPart(name="isolation", shows="a level of the sandbox holds every attack", check=contained.isolation),
    SelftestPart(name="gpu/learner", shows="a learner on CUDA agrees with one on the CPU", check=devices.learner, gpus=1),
    SelftestPart(
        name="gpu/bfloat16", shows="an engine in bfloat16 on CUDA agrees with its learner", check=devices.bfloat16, gpus=1
    ),
    SelftestPart(
        name="gpu/ranks",
        shows="resumed on another number of GPUs, a run ends where one GPU does",
        check=ranks.on_gpus,
        gpus=2,
    ),
    SelftestPart(name="machine", shows="memory and disk suffice; versions and packages", check=facts.facts),
)
"""In the order in which they run."""

"""What a vLLM server on a CPU lacks to be told new experts. The server imports this: nothing here needs torch or HTTP."""

from __future__ import annotations

from typing import Any

__all__ = ["FORGET", "ExpertKernels"]

FORGET = "forget_expert_kernels"


class ExpertKernels:
    """A worker's further method, for ``vllm serve --worker-extension-cls``.

    A CPU kernel reads the weights of experts in an order of its own. vLLM 0.32 brings them into it when it makes the kernel,
    behind the first weights, and leaves all later ones as they come, which the kernel then reads in the wrong order. Where there
    is no kernel, it makes one: with the weights that come next.
    """

    model_runner: Any

    def forget_expert_kernels(self) -> int:
        """Drops the kernels of all layers with experts; how many such layers there are."""
        found = {id(method): method for method in map(_method, self.model_runner.get_model().modules())}
        experts = [method for method in found.values() if hasattr(method, "moe_kernel")]
        for method in experts:
            method.moe_kernel = None
        return len(experts)


def _method(module: Any) -> Any:
    """How a layer of vLLM keeps and uses its weights; None of one that has none."""
    return getattr(module, "quant_method", None)

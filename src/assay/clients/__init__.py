"""Clients of other programs' servers: text from models behind OpenAI's protocol, for judges, teachers and evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.clients.judge import Judge
    from assay.clients.judge_client import JudgeClient, JudgementStore, MemoryStore
    from assay.clients.openai_client import Answer, OpenAIClient, RequestRefused

__all__ = ["Answer", "Judge", "JudgeClient", "JudgementStore", "MemoryStore", "OpenAIClient", "RequestRefused"]

_HOME = {
    "judge": "Judge",
    "judge_client": "JudgeClient JudgementStore MemoryStore",
    "openai_client": "Answer OpenAIClient RequestRefused",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"assay.clients.{module}"), name)
    raise AttributeError(f"module 'assay.clients' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""The study of mismatch: exact expectations of the tiniest model, and a page that says what was measured and what was not."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.errors import UnknownNameError
from evidence import mismatch, mismatch_page
from evidence.mismatch import Pair
from evidence.pages import STUDIES, make

TINY = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two families of the smallest size, few and short rollouts."""
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    families = {"llama": ("llama", TINY), "mixtral": ("mixtral", {**TINY, **experts, "num_hidden_layers": 2})}
    monkeypatch.setattr(mismatch, "FAMILIES", families)
    monkeypatch.setattr(mismatch, "PROMPTS", 1)
    monkeypatch.setattr(mismatch, "ANSWER", 2)
    for name, value in (
        ("FAMILIES", families),
        ("MIXTURES", ("mixtral",)),
        ("NATIVE", ("llama",)),
        ("LENGTH", 24),
        ("SERVED", "llama"),
    ):
        monkeypatch.setattr(mismatch_page, name, value)
    monkeypatch.setenv("ASSAY_VLLM", "nothing")


@pytest.mark.usefixtures("small")
def test_expectations_over_everything_are_exact() -> None:
    """64 answers of two of eight tokens, whose probabilities add up to one; exact weights give the learner's own gradient."""
    _, every = mismatch.everything("llama")
    assert len(every.rows) == 64
    for logp in (every.logp, every.engine):
        assert np.exp([x[6:].astype(np.float64).sum() for x in logp]).sum() == pytest.approx(1.0, abs=1e-4)
    truth, found = mismatch.gradients("llama")
    whole, none = found["weights of rollouts, uncapped"], found["none"]
    assert np.linalg.norm(truth) > 1e-3
    np.testing.assert_allclose(whole, truth, atol=1e-5 * np.linalg.norm(truth))
    assert np.linalg.norm(none - truth) > 10 * np.linalg.norm(whole - truth)


@pytest.mark.usefixtures("small")
def test_the_page_says_what_was_measured_and_what_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mismatch_page, "_errors", lambda family: {n: {"cosine": 1.0, "norm": 1.0} for n in mismatch.CORRECTIONS})
    monkeypatch.setattr(mismatch_page, "describe_machine", lambda vllm: f"Abacus{vllm}")
    failures = mismatch_page.make_page(tmp_path)
    page = (tmp_path / "mismatch.md").read_text()
    assert page.count("| vLLM |") == 2 and page.count("unverified") == 2 and "Machine: Abacus. " in page
    assert "| native | float32 | llama | " in page and "| in process | bfloat16 | mixtral | " in page
    assert page.count("routing replayed | ") == 2 and (tmp_path / "mismatch.json").exists()
    assert not [f for f in failures if "float32" in f], "a float32 pair is near enough anywhere"
    assert "mismatch" in STUDIES
    with pytest.raises(UnknownNameError, match="study"):
        make(tmp_path, ["agreement"])


@pytest.mark.usefixtures("small")
def test_a_server_says_its_version_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Served:
        def build(self, learner: Any) -> None: ...

    for name, value in (
        ("vllm_executable", lambda: Path("vllm")),
        ("serve_vllm", lambda *args, **more: nullcontext((Served(), None))),
        ("sample_rollouts", lambda *args: []),
        ("pair", lambda *args: {"max": 0.0}),
        ("vllm_version", lambda settings: "0.1.2"),
    ):
        monkeypatch.setattr(mismatch_page, name, value)
    found, version = mismatch_page._served_rows()
    assert version == "0.1.2" and [(p.engine, p.dtype, p.numbers) for p in found] == [
        ("vLLM", "float32", {"max": 0.0}),
        ("vLLM", "bfloat16", {"max": 0.0}),
    ]


def row(engine: str, dtype: str, family: str, k3: float, most: float = 1e-6) -> Pair:
    return Pair(engine=engine, dtype=dtype, family=family, numbers={"engine/mismatch_k3": k3, "max": most})


def test_what_is_not_as_it_should_be_is_said() -> None:
    exact = {"weights of rollouts, uncapped": {"cosine": 1.0, "norm": 1.0}}

    def mixtures(plain: float, replayed: float) -> list[Pair]:
        return [
            row(engine, "bfloat16", family, k3)
            for family in ("mixtral", "qwen3_moe")
            for engine, k3 in (("in process", plain), (mismatch_page.REPLAYED, replayed))
        ]

    failures: Any = mismatch_page._failures
    assert failures([row("native", "float32", "llama", 1e-12), *mixtures(0.05, 1e-3)], {"qwen3": exact}) == []
    far = failures([row("native", "float32", "llama", 1e-12, 1e-3), *mixtures(0.05, 1e-3)], {})
    assert far == ["native float32 llama: a token differs by 0.001 nats, 0.0001 is the most"]
    (loud,) = failures([row("in process", "bfloat16", "llama", 0.01), *mixtures(0.05, 1e-3)], {})
    assert loud.startswith("in process bfloat16 llama: k3 0.01 is beyond the alarm's bar")
    assert len(failures(mixtures(1e-3, 2e-3), {})) == 2
    (wrong,) = failures(mixtures(0.05, 1e-3), {"qwen3": {"weights of rollouts, uncapped": {"cosine": 0.9, "norm": 1.0}}})
    assert "do not give the exact gradient" in wrong

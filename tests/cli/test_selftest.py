"""`assay selftest`: planted faults fail their parts, a part that crashes fails alone, what is missing is no failure."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.errors import AssayError, EngineError, WeightProofError
from assay.runtime import LearnerSettings, TorchLearner
from assay.runtime.distributed import worker as rank
from assay.runtime.distributed.worker import WorkerSettings
from assay.runtime.engine.settings import InProcess, Native
from assay.sandbox.attack_probe import IsolationProbe
from assay.selftest import (
    agreement,
    all_parts,
    contained,
    devices,
    facts,
    ranks,
    resuming,
    small_models,
    speed,
    vllm_server,
    weights,
)
from assay.selftest.run_parts_in_turn import report, run_parts
from assay.selftest.selftest_part import NotAvailable, SelftestContext, SelftestFinding, SelftestPart
from assay.train.run import Run

GOOD = SelftestPart(name="good", shows="that it works", check=lambda bench: SelftestFinding(numbers={"n": 3, "nested": {"a": 1}}))
BAD = SelftestPart(
    name="bad",
    shows="a bar",
    check=lambda bench: SelftestFinding(numbers={"n": float("nan")}, failures=("3 above 2", "too late")),
)


def crash(bench: SelftestContext) -> SelftestFinding:
    (bench.folder / "file").write_text("left behind")
    raise ZeroDivisionError("by nothing")


def lacking(bench: SelftestContext) -> SelftestFinding:
    raise NotAvailable("no abacus here")


CRASHING = SelftestPart(name="crashing", shows="nothing", check=crash)
LACKING = SelftestPart(name="lacking", shows="an abacus", check=lacking)
LARGE = replace(GOOD, name="large", gpus=2)


@pytest.fixture
def bench(tmp_path: Path) -> SelftestContext:
    return SelftestContext(tmp_path, lambda text: None)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[SelftestPart]:
    """The parts that the command knows; a test may change them."""
    made = [GOOD, BAD, CRASHING, LACKING, LARGE]
    monkeypatch.setattr(all_parts, "PARTS", made)
    return made


# ---- the command -------------------------------------------------------------------------------------------------------


def test_each_outcome_is_told_and_kept(assay: Any, listed: list[SelftestPart], tmp_path: Path) -> None:
    said = assay("selftest", "--json", "--out", "found.json")
    assert said.code == 1
    found = json.loads(said.out)
    assert {p["name"]: p["outcome"] for p in found["parts"]} == {
        "good": "passed",
        "bad": "failed",
        "crashing": "failed",
        "lacking": "not available",
        "large": "not available",
    }
    assert (found["passed"], found["failed"], found["not available"], found["stopped"]) == (1, 2, 2, False)
    why = {p["name"]: p["why"] for p in found["parts"]}
    assert why["bad"] == "3 above 2; too late" and why["lacking"] == "no abacus here"
    assert why["crashing"].startswith("ZeroDivisionError: by nothing (test_selftest.py, line ")
    assert why["large"] == "needs 2 GPU(s), and --gpus is 0"
    assert found["parts"][0]["numbers"] == {"n": 3, "nested": {"a": 1}} and found["parts"][1]["numbers"] == {"n": "nan"}
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["parts"] == found["parts"] and kept["machine"] == found["machine"]
    assert "crashing: failed" in said.err and "good: that it works" in said.err


def test_a_table_for_people_and_parts_by_name(assay: Any, listed: list[SelftestPart]) -> None:
    said = assay("selftest", "--only", "good", "large", "--gpus", "2")
    assert said.code == 0
    assert "2 passed, 0 failed, 0 not available" in said.out and "n 3" in said.out and "nested" not in said.out
    wrong = assay("selftest", "--only", "goot")
    assert wrong.code == 2 and "did you mean 'good'" in wrong.err and "crashing" in wrong.err
    assert "--gpus -1" in assay("selftest", "--gpus", "-1").err


def test_a_file_that_cannot_be_written_is_said_before_anything_runs(assay: Any, listed: list[SelftestPart]) -> None:
    said = assay("selftest", "--out", "nowhere/found.json")
    assert said.code == 1 and "nowhere/found.json" in said.err and "that it works" not in said.err


def test_an_interrupt_leaves_what_ran(assay: Any, listed: list[SelftestPart], tmp_path: Path) -> None:
    def interrupted(bench: SelftestContext) -> SelftestFinding:
        raise KeyboardInterrupt

    listed[1:] = [SelftestPart(name="slow", shows="patience", check=interrupted), GOOD]
    said = assay("selftest", "--json", "--out", "found.json")
    assert said.code == 130 and "stopped after 1 of 3 parts" in said.err
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["stopped"] and [p["name"] for p in kept["parts"]] == ["good"] == [
        p["name"] for p in json.loads(said.out)["parts"]
    ]


def test_folders_of_parts_are_deleted() -> None:
    seen: list[Path] = []

    def looks(bench: SelftestContext) -> SelftestFinding:
        seen.append(bench.folder)
        return crash(bench)

    (outcome,) = run_parts([SelftestPart(name="x", shows="x", check=looks)], 0, lambda text: None)
    assert outcome.outcome == "failed" and not seen[0].exists() and report([outcome])["failed"] == 1


def test_names_are_different_and_what_parts_show_fits_a_line() -> None:
    names = [p.name for p in all_parts.PARTS]
    assert len(set(names)) == len(names) and all(len(p.shows) <= 80 and p.check.__doc__ for p in all_parts.PARTS)


# ---- the parts, and faults planted in them -----------------------------------------------------------------------------


def test_mismatch_of_another_model_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "NEW", 16)
    learner = TorchLearner(small_models.decoder(), LearnerSettings(), total_steps=1)
    same = agreement.compare_with_learner(Native().build(learner), learner, agreement.AGREEMENT_BAR)
    assert not same.failures and 0 < same.numbers["max_nats"] < 1e-5 and same.numbers["tokens"] == 256
    other = TorchLearner(small_models.decoder(seed=1), LearnerSettings(), total_steps=1)
    found = agreement.compare_with_learner(Native().build(other), learner, agreement.AGREEMENT_BAR)
    assert found.numbers["max_nats"] > 0.1 and "nats in one token, above 0.0001" in found.failures[0]


def test_not_a_number_and_too_few_tokens_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "NEW", 16)
    learner = TorchLearner(small_models.decoder(), LearnerSettings(), total_steps=1)
    engine = Native().build(learner)

    class Lost:
        def score(self, rows: Any) -> Any:
            return [np.full(len(row), np.nan, np.float32) for row in rows]

    assert "nan nats" in agreement.compare_with_learner(engine, Lost(), 1.0).failures[0]  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(agreement, "PROMPTS", 1)
    drawn = agreement.compare_with_learner(engine, learner, 1.0).numbers["tokens"]
    assert drawn == 16


@pytest.mark.slow
def test_an_engine_that_hides_a_fault_fails(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof switched off, nothing is proved and no fault found."""
    monkeypatch.setattr(weights, "FAULTS", ("StaleModel",))
    monkeypatch.setattr(
        weights, "practice", lambda engine, steps: replace(small_models.practice(engine, steps), prove_weights=False)
    )
    found = weights.check_sync(bench, Native())
    assert found.failures == ("6 of 6 updates are not proved to have arrived", "planted StaleModel was not found")


@pytest.mark.slow
def test_planted_faults_are_found_in_this_process(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "FAULTS", ("StaleTensor",))
    found = weights.native(bench)
    assert not found.failures and found.numbers == {"updates": 6, "proved": 6, "caught": ["StaleTensor"]}
    for fault in ("StaleModel", "BaseWeights"):
        with pytest.raises(WeightProofError):
            weights.train(small_models.practice(small_models.FaultyEngine(InProcess(), fault), 5), bench.folder / fault)


@pytest.mark.prove
def test_a_resumed_run_that_differs_fails(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "MOMENTS", (18,))
    whole = resuming.train(small_models.two_stages(), bench.folder / "elsewhere")
    monkeypatch.setattr(resuming, "train", lambda run, folder, **more: replace(whole, digest="another"))
    found = resuming.killed_and_resumed(bench)
    (reached,) = found.numbers["killed_after_steps"]
    assert 18 <= reached <= 24
    assert found.failures == (f"killed after step {reached}: the digest is {whole.digest}, not another",)


def test_a_run_that_dies_by_itself_is_no_kill(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "_CHILD", "raise SystemExit('out of order: {folder}')")
    with pytest.raises(Exception, match="ended or hung before: out of order"):
        resuming._kill_at(bench.folder / "run", 3)


@pytest.mark.prove
def test_another_number_of_ranks(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that differ are found; the ranks themselves are in the whole test below."""
    monkeypatch.setattr(
        ranks,
        "warmup_run",
        lambda n, steps, device: replace(small_models.two_stages(), stages=small_models.two_stages(steps).stages[:1]),
    )
    monkeypatch.setattr(ranks, "_in_own_process", lambda code: None)
    ranks.begin(str(bench.folder / "2-1"), 2, "cpu")
    ranks.begin(str(bench.folder / "1-2"), 1, "cpu")  # both stop halfway
    found = ranks.other_world_sizes(bench)
    assert [f[:11] for f in found.failures] == ["from 2 to 1", "from 1 to 2"] and found.numbers["max_nats_2_to_1"] > 0.1
    monkeypatch.undo()
    with pytest.raises(AssayError, match="it ended with status 1: AssertionError: too few"):
        ranks._in_own_process("assert False, 'too few'")


def test_throughput_and_an_engine_without_its_kernel(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "ROWS", 8)
    monkeypatch.setattr(speed, "NEW", 8)
    monkeypatch.setattr(speed, "STEPS", 7)
    rates = iter([{"second": 50.0, "cpu_second": 10.0}, {"second": 20.0, "cpu_second": 20.0}])
    real = speed._decode
    measured = real(Native().build(TorchLearner(small_models.decoder(), LearnerSettings(), total_steps=1)))
    assert measured["second"] > 0 and measured["cpu_second"] > 0
    monkeypatch.setattr(speed, "_decode", lambda engine: next(rates))
    found = speed.throughput(bench)
    assert found.failures == ("native decodes 10 tokens per CPU-second, transformers 20: is a C++ compiler there?",)
    assert found.numbers["train_tokens_per_second"] > 0


def test_isolation_of_nothing_fails(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.sandbox import attack_probe

    monkeypatch.setattr(attack_probe, "probe", lambda backend: IsolationProbe("rlimits", False, "network", {}, {}))
    found = contained.isolation(bench)
    assert "nothing contains programs here" in found.failures[0] and found.numbers["isolation"] is None


def test_memory_of_the_machine(bench: SelftestContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  100 kB\nMemAvailable:   42 kB\nHugePages_Total:   0\n")
    assert facts.available_memory(table) == 42 * 1024
    found = facts.facts(bench)
    assert not found.failures and found.numbers["packages"]["vllm"] is None and found.numbers["numerics"]["threads"] == "1"
    monkeypatch.setattr(facts, "available_memory", lambda: 1 << 29)
    assert facts.facts(bench).failures == ("memory has 0.50 GiB free; a run needs 1 at least",)


def test_what_runs_on_a_gpu_runs_on_this_device_too() -> None:
    """The same code with the CPU in its place; bfloat16 differs, and by less than the bar."""
    found = devices.learner_on("cpu")
    assert not found.failures and found.numbers["max_nats"] == 0.0 and found.numbers["tokens"] == 176
    rounded = devices.bfloat16_on("cpu")
    assert not rounded.failures and rounded.numbers["dtype"] == "bfloat16" and rounded.numbers["max_nats"] > 1e-3


def test_without_a_gpu_its_parts_say_so(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.runtime.machine.gpus", lambda: [])
    for check, wanted in ((devices.learner, 1), (devices.bfloat16, 1), (ranks.on_gpus, 2)):
        with pytest.raises(NotAvailable, match=rf"PyTorch sees 0 CUDA device\(s\) here; this part needs {wanted}"):
            check(bench)


def test_ranks_on_gpus_are_tried_where_two_may_be_used(assay: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = assay("selftest", "--json", "--only", "gpu/ranks", "--gpus", "1")
    (part,) = json.loads(said.out)["parts"]
    assert (said.code, part["outcome"], part["why"]) == (0, "not available", "needs 2 GPU(s), and --gpus is 1")
    monkeypatch.setattr("assay.runtime.machine.gpus", lambda: ["one alone"])
    (part,) = json.loads(assay("selftest", "--json", "--only", "gpu/ranks", "--gpus", "2").out)["parts"]
    assert (part["outcome"], part["why"]) == ("not available", "PyTorch sees 1 CUDA device(s) here; this part needs 2")


def test_ranks_on_gpus_do_what_ranks_on_the_cpu_do(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same runs but for the device, and what each of the two ranks then joins: gloo beside NCCL, on a device of its own."""
    found: dict[str, list[Any]] = {"cpu": [], "cuda": []}
    monkeypatch.setattr("assay.runtime.machine.gpus", lambda: ["one", "two"])
    monkeypatch.setattr(ranks, "_in_own_process", exec)
    monkeypatch.setattr(ranks, "_gap", lambda one, other: 0.0 if other.name == "2-1" else 1.0)
    for device, check in (("cpu", ranks.other_world_sizes), ("cuda", ranks.on_gpus)):
        seen = found[device]
        monkeypatch.setattr(ranks, "train", lambda run, folder, seen=seen, **more: seen.append((Path(folder).name, run)))
        monkeypatch.setattr(ranks, "resume", lambda folder, seen=seen, **more: seen.append((Path(folder).name, more)))
        assert check(bench).failures == ("from 1 to 2: 1 nats in one token, above 0.005",)
    on_cpu, on_cuda = found["cpu"], found["cuda"]
    assert [name for name, _ in on_cuda] == ["whole", "2-1", "2-1", "1-2", "1-2"]
    assert [(made.mesh.data, made.steps) for _, made in on_cuda if isinstance(made, Run)] == [(1, 12), (2, 6), (1, 6)]
    again = [made["ranks"] for _, made in on_cuda if not isinstance(made, Run)]
    assert again == [1, 2]
    for (_, here), (_, there) in zip(on_cpu, on_cuda, strict=True):
        if isinstance(there, Run):
            assert there.stages[0].learner.device == "cuda"
            assert replace(there, stages=(replace(there.stages[0], learner=here.stages[0].learner),)) == here
        else:
            assert there == here
    run = on_cuda[1][1]
    orders = WorkerSettings(
        rank=1, mesh=run.mesh, folder=bench.folder, threads=1, settings=run.stages[0].learner, total_steps=6, version=0, models=()
    )
    joined: list[Any] = []
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")  # which entering sets
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.set_device", joined.append)
    monkeypatch.setattr("torch.distributed.init_process_group", lambda backend, **more: joined.append(backend))
    monkeypatch.setattr("assay.runtime.distributed.collectives.shared_by", lambda context: None)
    rank._enter(orders)
    assert joined == [1, "cpu:gloo,cuda:nccl"]


def test_two_devices_that_differ_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter([small_models.decoder(), small_models.decoder(), small_models.decoder(seed=1)])
    monkeypatch.setattr(devices, "decoder", lambda: next(made))
    assert "nats in one token, above 0.001" in devices.learner_on("cpu").failures[0]


# ---- a server of one's own ---------------------------------------------------------------------------------------------


def test_without_vllm_its_parts_are_not_available(bench: SelftestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_VLLM", "/nowhere/vllm")
    for check in (agreement.vllm, weights.vllm):
        with pytest.raises(NotAvailable, match="ASSAY_VLLM=/nowhere/vllm is no file"):
            check(bench)
    monkeypatch.delenv("ASSAY_VLLM")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotAvailable, match="no vllm on the path"):
        vllm_server.vllm_executable()
    assert not list(bench.folder.iterdir())


SERVER = """#!{python}
import sys, http.server
class Fine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{{"version": "0.1"}}' * (self.path == "/version"))
    def log_message(self, *args): pass
print(*sys.argv[1:], flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Fine).serve_forever()
"""


def test_a_server_is_started_told_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    program = tmp_path / "vllm"
    program.write_text(SERVER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("ASSAY_VLLM", str(program))
    with vllm_server.served_model(small_models.decoder(), tmp_path, 64, lambda text: None) as settings:
        assert settings.url.startswith("http://127.0.0.1:") and vllm_server.vllm_version(settings) == "0.1"
        with pytest.raises(EngineError, match="/health does not tell its version"):
            vllm_server.vllm_version(replace(settings, url=f"{settings.url}/health"))
    said = (tmp_path / "vllm.log").read_text()
    assert f"serve {tmp_path / 'served'} --host 127.0.0.1" in said and "--max-model-len 64" in said
    with vllm_server.serve_vllm(tmp_path / "served", tmp_path / "vllm.log", 64, lambda text: None) as (_, spent):
        assert spent() > 0.0


def test_a_server_that_does_not_start_is_said_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\necho no room left\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("ASSAY_VLLM", str(program))
    with (
        pytest.raises(EngineError, match="no room left"),
        vllm_server.serve_vllm(tmp_path, tmp_path / "log", 64, lambda text: None),
    ):
        pass


# ---- the whole --------------------------------------------------------------------------------------------------------


@pytest.mark.prove
def test_the_whole_passes_here(assay: Any) -> None:
    said = assay("selftest", "--json", "--gpus", "1")
    found = json.loads(said.out)
    assert said.code == 0, [p["why"] for p in found["parts"] if p["outcome"] == "failed"]
    here = {p["name"] for p in found["parts"] if p["outcome"] == "passed"}
    assert {p.name for p in all_parts.PARTS if not p.gpus and "vllm" not in p.name} <= here
    if os.environ.get("ASSAY_VLLM") and Path(os.environ["ASSAY_VLLM"]).is_file():
        assert {"mismatch/vllm", "weights/vllm"} <= here

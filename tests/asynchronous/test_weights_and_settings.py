"""What goes to samplers: weights in shared memory, and settings as bytes."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.asynchronous import Asynchronous, SamplerSettings, spawner_of
from assay.asynchronous.settings_pickle import WithoutEnvironments, pickle_settings, sendable_tasks
from assay.asynchronous.shared_weights import SharedWeights
from assay.core.errors import ConfigError, EngineError, MissingExtraError, UnknownNameError
from assay.core.manifest import Manifest, manifest_of
from assay.rollout import PlayerSpec
from assay.runtime.engine.settings import Auto
from assay_tasks import SortDigits


def publication(version: int) -> Manifest:
    return manifest_of(version, {"a": np.full((3, 5), version, np.float32), "b": np.arange(7, dtype=np.uint16)})


def test_arrays_come_back_as_they_were_and_can_be_written_to() -> None:
    shared = SharedWeights()
    weights = shared.put(publication(4))
    assert weights.manifest.payload is None and weights.manifest.version == 4
    arrays = pickle.loads(pickle.dumps(weights)).arrays()
    assert arrays["a"].tolist() == [[4.0] * 5] * 3 and arrays["b"].tolist() == list(range(7)) and arrays["b"].dtype == np.uint16
    arrays["a"][:] = 0
    assert weights.arrays()["a"][0, 0] == 4.0, "one reader's writes are its own"
    shared.close()


def test_old_ones_go_and_their_readers_keep_what_they_have() -> None:
    shared = SharedWeights()
    first = shared.put(publication(0))
    held = first.arrays()
    handles = len(os.listdir("/proc/self/fd"))
    for version in range(1, 9):
        shared.put(publication(version))
    assert len(os.listdir("/proc/self/fd")) <= handles + 3
    assert first.arrays() is None and held is not None and held["a"][0, 0] == 0.0
    shared.close()


def test_another_process_of_this_machine_reads_them() -> None:
    shared = SharedWeights()
    weights = shared.put(publication(2))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).arrays()['a'].sum())"
    found = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(weights), capture_output=True, check=True)
    assert float(found.stdout) == 30.0
    shared.close()


def test_a_machine_without_files_of_memory_uses_temporary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    shared = SharedWeights()
    weights = shared.put(publication(1))
    arrays = weights.arrays()
    assert arrays is not None and arrays["b"][6] == 6 and Path(weights.place).is_file()
    shared.close()
    assert not Path(weights.place).exists()


@pytest.mark.parametrize("change", [{"payload": None}, {"kind": "delta", "base": "0" * 16}])
def test_only_a_full_set_of_arrays_is_shared(change: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match="weight version 1 is no full set of arrays"):
        SharedWeights().put(replace(publication(1), **change))


# ---- settings ----------------------------------------------------------------------------------------------------------


def settings(**changes: Any) -> SamplerSettings:
    given: dict[str, Any] = {
        "model": Path("model"),
        "engine": Auto(),
        "sampler": PlayerSpec(),
        "tasks": SortDigits(levels=(1,)),
        "seed": 0,
        "deadline": 1.0,
        "device": "cpu",
        "threads": 1,
        "log": Path("log"),
    }
    return SamplerSettings(**(given | changes))


@dataclass(frozen=True)
class Held(SortDigits):
    """Holds what cannot be sent."""

    def __reduce__(self) -> Any:
        raise TypeError("it holds a connection")


class HeldGame(Held):
    def environment(self, world: Any) -> Any:
        return object()


class Game(SortDigits):
    """A family that is played in an environment from level 2 on."""

    def environment(self, world: Any) -> Any:
        return object() if world.level > 1 else None


def test_tasks_with_environments_are_sent() -> None:
    tasks = Game(levels=(1, 2))
    assert sendable_tasks(tasks) is tasks
    assert pickle.loads(pickle_settings(settings())) == settings()


@pytest.mark.parametrize("tasks", [SortDigits(levels=(1,)), Game(levels=(1,)), Held(levels=(1,))])
def test_a_stand_in_is_sent_where_a_single_answer_ends_the_tasks(tasks: SortDigits) -> None:
    stand_in = sendable_tasks(tasks)
    assert stand_in == WithoutEnvironments("sort")
    task = SortDigits(levels=(1,)).task("sort", 1, "train", 0)
    assert stand_in.environment(task.public_view()) is None
    for ask in (
        stand_in.arms,
        stand_in.verifier,
        lambda: stand_in.task("sort", 1, "train", 0),
        lambda: stand_in.trace(task, 0, None),  # type: ignore[arg-type]
    ):
        with pytest.raises(ConfigError, match="asks for tasks of 'sort', which sampler processes are not sent"):
            ask()


def test_tasks_with_environments_that_cannot_be_sent_are_refused() -> None:
    with pytest.raises(ConfigError, match="played in an environment: TypeError: it holds a connection"):
        sendable_tasks(HeldGame(levels=(1,)))


def test_what_cannot_be_sent_is_named() -> None:
    with pytest.raises(ConfigError, match=r"cannot be sent Reinforce\.sampler: .*lambda"):
        pickle_settings(settings(sampler=lambda parts: None))


def test_what_the_main_script_defines_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Spec:
        pass

    Spec.__module__, Spec.__qualname__ = "__main__", "Spec"
    monkeypatch.setattr(sys.modules["__main__"], "Spec", Spec, raising=False)
    with pytest.raises(ConfigError, match=r"Reinforce\.sampler: it uses what the main script defines"):
        pickle_settings(settings(sampler=Spec()))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"samplers": 0}, "samplers"),
        ({"eta": -1}, "eta=-1; use a number from 0 on"),
        ({"batch": -2}, "batch=-2"),
        ({"policy": "waits"}, "wait"),
        ({"runtime": "rya"}, "ray"),
    ],
)
def test_wrong_settings_are_refused_with_what_is_right(given: dict[str, Any], why: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=why):
        Asynchronous(**given)


def test_runtimes_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="process"):
        spawner_of("processes")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="ray"):
        spawner_of("ray")


def test_nothing_of_a_publication_stays_behind() -> None:
    shared = SharedWeights()
    shared.put(publication(1))
    before = len(os.listdir("/proc/self/fd"))
    shared.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before - 1

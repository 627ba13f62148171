"""Where the parts of an asynchronous stage run, as `assay explain` says it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tiny_runs import only_rl

from assay.asynchronous import Asynchronous
from assay.cli.explain import explain_command
from assay.runtime import VllmSettings
from assay.runtime.settings import Mesh
from assay.train.placement import describe_placement


def placed(**settings: Any) -> dict[str, str]:
    run = only_rl()
    changes = {name: settings.pop(name) for name in ("engine", "mesh") if name in settings}
    run = replace(run, **changes, stages=(replace(run.stages[0], asynchronous=Asynchronous(**settings)),))
    return describe_placement(run, run.stages[0])


def test_each_part_says_where_it_is() -> None:
    found = placed(samplers=2, eta=2)
    assert found["learner"] == "this process; evaluations too"
    assert found["samplers"] == "2 processes of this machine, 1 thread each, 2 groups at a time each"
    assert found["weights"] == "all of them after every step, through shared memory"
    assert describe_placement(only_rl(), only_rl().stages[0]) == {}
    ray = placed(samplers=4, eta=2, runtime="ray", updates="delta", mesh=Mesh(data=2))
    assert "2 processes of this machine share it" in ray["learner"] and "4 actors that Ray spreads" in ray["samplers"]
    assert ray["weights"].endswith("once in 32 times all of them, through Ray's object store")
    served = placed(samplers=2, servers=("http://a:1", "http://b:1"), engine=VllmSettings())
    assert served["samplers"] == "2 on servers (http://a:1, http://b:1), 2 groups at a time each"
    assert served["weights"].endswith("and from there files or NCCL as the engine says")


def test_what_is_expected_grows_with_the_age_that_is_allowed() -> None:
    def times(eta: int) -> float:
        return float(placed(samplers=2, eta=eta)["expected"].split(" times")[0].split()[-1])

    assert times(0) == 1.0 and 1.2 < times(1) <= times(2) + 0.05 and times(2) < 2.3


def test_explain_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain_command(["quickstart", "--samplers", "2", "--eta", "1"]) == 0
    out = capsys.readouterr().out
    assert "2 processes of this machine, 1 thread each" in out and "samplers at work" in out

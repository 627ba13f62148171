"""A learner on two ranks computes what one process computes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mesh_cases
import numpy as np
import pytest
from mesh_cases import CASES, CONTEXT, RESUMED
from two_ranks import Results, on_two_ranks

from assay.core.errors import CheckpointError
from assay.runtime.kernels.typed import array_of


@pytest.fixture(scope="module", params=["few", pytest.param("every", marks=pytest.mark.prove)])
def names(request: pytest.FixtureRequest) -> list[str]:
    """The cases that are computed where ranks deal rows out."""
    return ["critics"] if request.param == "few" else list(CASES)


@pytest.fixture(scope="module")
def sharing(names: list[str]) -> list[str]:
    """Those that are computed where ranks share rows."""
    return list(CONTEXT) if len(names) == len(CASES) else ["grpo"]


@pytest.fixture(scope="module")
def one(names: list[str], sharing: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """Where a single process saved, and what it computed."""
    folder, wanted = tmp_path_factory.mktemp("alone"), [n for n in CASES if n in names or n in sharing]
    for name in wanted:
        (folder / name).mkdir()
    return folder, {name: mesh_cases.computed(CASES[name], None, folder / name) for name in wanted}


@pytest.fixture(scope="module")
def two(
    names: list[str], sharing: list[str], one: tuple[Path, Results], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Results, Results]:
    """Where two ranks saved, and what each computed."""
    folder = tmp_path_factory.mktemp("mesh")
    for name in (*names, *(f"{name} in context" for name in sharing)):
        (folder / name).mkdir()
    first, second = on_two_ranks(mesh_cases.main, folder, one[0], names, sharing, needs=mesh_cases.NEEDS)
    return folder, first, second


def gap(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    assert found.keys() == wanted.keys()
    return max((float(np.abs(found[n] - wanted[n]).max(initial=0.0)) for n in wanted), default=0.0)


def test_two_ranks_step_as_one(names: list[str], one: tuple[Path, Results], two: tuple[Path, Results, Results]) -> None:
    for name in names:
        steps_alike(two[1][name], two[2][name], one[1][name], 1e-4 if CASES[name].settings.precision == "bf16" else 2e-6)


def steps_alike(here: Results, there: Results, alone: Results, loose: float) -> None:
    """All ranks hold the same bits. A single process adds the micro-batches' gradients up in another order: within a few
    thousandths of an update (lr 1e-3), and in bf16 a tenth.
    """
    assert here["digest"] == there["digest"] and here["saved"] == there["saved"]
    for what in ("weights", "critics", "columns", "noisy"):
        assert gap(here[what], alone[what]) < loose, what
    assert gap(here["effects"], alone["effects"]) < 100 * loose
    for row, wanted in zip(here["scores"], alone["scores"], strict=True):
        np.testing.assert_allclose(row, wanted, atol=100 * loose)
    for mine, wanted, others in zip(here["metrics"], alone["metrics"], there["metrics"], strict=True):
        assert mine.keys() == wanted.keys() == others.keys()
        for metric, value in wanted.items():
            if not metric.startswith("time/") and metric != "waste/attention_padding":
                assert mine[metric] == others[metric] == pytest.approx(value, rel=1e3 * loose, abs=loose), metric


def test_two_ranks_that_share_rows_step_as_one(
    sharing: list[str], one: tuple[Path, Results], two: tuple[Path, Results, Results]
) -> None:
    """In bf16 a gradient that two ranks round by themselves is another, and where it is near zero Adam goes the other way."""
    for name in sharing:
        here, there, alone = two[1]["context"][name], two[2]["context"][name], one[1][name]
        if CASES[name].settings.precision == "fp32":
            steps_alike(here, there, alone, 2e-6)
            continue
        assert here["digest"] == there["digest"]
        for mine, wanted in zip(here["metrics"], alone["metrics"], strict=True):
            assert mine["grad/norm"] == pytest.approx(wanted["grad/norm"], rel=1e-2)
            assert mine["kl/kl_ref"] == pytest.approx(wanted["kl/kl_ref"], rel=1e-2, abs=1e-4)


def test_each_rank_has_a_part_of_the_weights(names: list[str], two: tuple[Path, Results, Results]) -> None:
    for name in names:
        here, there = two[1][name], two[2][name]
        for weight, whole in here["weights"].items():
            first, second = here["parts"][weight], there["parts"][weight]
            assert first[0] + second[0] == len(whole) and first[0] - second[0] in (0, 1), weight
            assert first[1:] == second[1:] == whole.shape[1:]


def test_nothing_stood_still(names: list[str], one: tuple[Path, Results]) -> None:
    """Weights that never move would be equal anywhere."""
    for name in names:
        start = {n: array_of(t.float()) for n, t in CASES[name].model().tensors.items()}
        weights = one[1][name]["weights"]
        after = {n: w for n, w in weights.items() if n in start} or {n: w for n, w in weights.items() if "lora_B" in n}
        assert all(np.abs(w - start.get(n, np.zeros_like(w))).max() > 1e-4 for n, w in after.items()), name


def test_a_checkpoint_is_read_by_other_numbers_of_ranks(
    names: list[str], one: tuple[Path, Results], two: tuple[Path, Results, Results], tmp_path: Path
) -> None:
    """As many ranks go on bit for bit; others begin with the very numbers, and add up in another order from there."""
    folder, here, there = two
    for name in (n for n in names if n in RESUMED):
        again, more, alone = here["again"][name], here["from one"][name], one[1][name]
        assert again["saved"] == here[name]["saved"]
        assert again["digest"] == here[name]["digest"] == there["again"][name]["digest"]
        fewer = mesh_cases.computed(CASES[name], None, tmp_path, load=folder / name)
        assert fewer["saved"] == here[name]["saved"] and gap(fewer["weights"], here[name]["weights"]) < 2e-6
        assert more["saved"] == alone["saved"] and gap(more["weights"], alone["weights"]) < 2e-6


def test_a_damaged_or_foreign_checkpoint_is_refused(two: tuple[Path, Results, Results], tmp_path: Path) -> None:
    whole = two[0] / "critics"
    learner = mesh_cases.made(CASES["critics"], None)[0]
    before = learner.state_digest()
    for wrong, says in (("half", "is damaged"), ("gone", "is damaged"), ("other", "belongs to another learner")):
        shutil.copytree(whole, tmp_path / wrong)
        data = sorted((tmp_path / wrong / "shards").glob("*.distcp"))
        if wrong == "half":
            data[0].write_bytes(data[0].read_bytes()[:100])
        elif wrong == "gone":
            data[1].unlink()
        else:
            facts = tmp_path / wrong / "learner.json"
            facts.write_text(facts.read_text().replace('"hidden_size": 24', '"hidden_size": 32'))
        with pytest.raises(CheckpointError, match=says):
            learner.load(tmp_path / wrong)
        assert learner.state_digest() == before


def test_an_error_on_one_rank_is_that_of_all(two: tuple[Path, Results, Results]) -> None:
    wanted = mesh_cases.refused(None)
    assert wanted.startswith("NonFiniteError: step 0: the loss is") and "token column 'advantage'" in wanted
    assert two[1]["refused"] == two[2]["refused"] == wanted

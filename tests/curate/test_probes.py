"""Steps on measurements: what a file or a callable says of rows decides, and rows without are told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from curate_support import Result, curated, write

from assay.core.errors import ConfigError, DataError
from assay.curate import (
    AngleOrder,
    Donod,
    Influential,
    LearningImpact,
    MostVaried,
    ProbeFile,
    Row,
    SetStep,
    angle_concentration,
    learning_impact,
    topsis,
)

ROWS = [{"prompt": name, "n": name, "source": "xy"[i % 2]} for i, name in enumerate("abcdef")]
CURVES = {"a": [0, 0.5, 1], "b": [1, 1, 1], "c": [0, 0, 0], "d": [None, 0.5, 1], "e": [0, 1, None]}


def probe(folder: Path, **entries: Mapping[str, Any]) -> ProbeFile:
    return ProbeFile(file=write(folder / "probe.jsonl", [{"prompt": k, **v} for k, v in entries.items()]))


def scored(found: Result, name: str) -> dict[str, float]:
    of = [(r["n"], r["curate"]) for r in found.kept] + [(r["row"]["n"], r["scores"]) for r in found.rejected]
    return {n: scores[name] for n, scores in of if name in scores}


def why(found: Result) -> dict[str, str]:
    return {r["row"]["n"]: r["reason"] for r in found.rejected}


@dataclass(frozen=True)
class Asked:
    """A probe that is code."""

    said: tuple[tuple[str, Any], ...]

    def __call__(self, rows: Sequence[Row]) -> list[Mapping[str, Any] | None]:
        return [dict(self.said).get(row.text) for row in rows]


@pytest.mark.parametrize("chunk", [1, 2, 10])
def test_learning_impact(tmp_path: Path, chunk: int) -> None:
    file = probe(tmp_path, **{k: {"history": v} for k, v in CURVES.items()})
    found = curated(tmp_path, ROWS, [LearningImpact(probe=file)], chunk=chunk)
    whole = [[0, 0.5, 1], [1, 1, 1], [0, 0, 0], [0.5, 0.5, 1]]
    expected = dict(zip("abcd", learning_impact(whole), strict=True))
    assert scored(found, "learning_impact") == pytest.approx(expected)
    assert found.lines_kept() == [n for n, value in expected.items() if value > 0.6] == ["a", "d"]
    assert why(found) == {"b": "low learning impact", "c": "low learning impact", "e": "no measurement", "f": "no measurement"}


def test_the_average_curve_is_of_what_is_left(tmp_path: Path) -> None:
    curves = {"a": [0, 1], "b": [1, 0]}
    file = probe(tmp_path, **{k: {"history": v} for k, v in curves.items()}, c={"history": [0, 0]})
    gone = MostVaried(probe=file, count=2)
    found = curated(tmp_path, ROWS[:3], [gone, LearningImpact(probe=file, threshold=-9)])
    assert scored(found, "learning_impact") == pytest.approx(dict(zip("ab", learning_impact([[0, 1], [1, 0]]), strict=True)))


def test_most_varied(tmp_path: Path) -> None:
    asked = Asked((("a", {"history": [0, 1, 0, 1]}), ("b", {"history": [0.4, 0.6, 0.4, 0.6]}), ("c", {"history": [1, 1, 1, 1]})))
    found = curated(tmp_path, ROWS[:4], [MostVaried(probe=asked, count=2)])
    assert found.lines_kept() == ["a", "b"]
    assert scored(found, "deviation") == pytest.approx({"a": 0.5, "b": 0.1, "c": 0})
    assert why(found) == {"c": "varied less", "d": "no measurement"}
    settings = found.manifest["settings"]["steps"]["most_varied"]
    assert settings["probe"]["kind"].endswith("test_probes:Asked")
    assert "code" in settings["probe"]


def test_no_measurements_at_all(tmp_path: Path) -> None:
    for step in (LearningImpact(probe=Asked(())), MostVaried(probe=Asked(())), Donod(probe=Asked(()))):
        assert set(why(curated(tmp_path, ROWS, [step])).values()) == {"no measurement"}


@pytest.mark.parametrize("chunk", [1, 5])
def test_histories_must_be_of_one_length(tmp_path: Path, chunk: int) -> None:
    asked = Asked((("a", {"history": [0, 1]}), ("b", {"history": [0, 1, 1]})))
    with pytest.raises(DataError, match="histories of 2 and of 3 epochs"):
        curated(tmp_path, ROWS, [MostVaried(probe=asked)], chunk=chunk)


def test_angles_rank_and_keep(tmp_path: Path) -> None:
    vectors = {
        "a": {"question": [[1, 0], [0, 1]]},
        "b": {"question": [[1, 0]], "before": [[1, 1]]},
        "c": {"question": [[2, 0], [1, 0]]},
    }
    found = curated(tmp_path, ROWS[:4], [AngleOrder(probe=probe(tmp_path, **vectors), factor=2.0)])
    angles = {n: angle_concentration(v["question"], v.get("before"), 2.0) for n, v in vectors.items()}
    assert scored(found, "angle") == pytest.approx(angles)
    assert scored(found, "angle_rank") == {"b": 0, "c": 1, "a": 2}
    assert why(found) == {"d": "no measurement"}


def test_donod_keeps_a_share(tmp_path: Path) -> None:
    norms = {n: {"don": d, "nod": o} for n, d, o in (("a", 0.0, 1.0), ("b", 1.0, 2.0), ("c", 0.5, 3.0), ("d", 2.0, 2.5))}
    found = curated(tmp_path, ROWS[:4], [Donod(probe=probe(tmp_path, **norms), share=0.5)], chunk=2)
    closeness = topsis([[v["don"], v["nod"]] for v in norms.values()], ("low", "low"))
    assert scored(found, "closeness") == pytest.approx(dict(zip("abcd", closeness, strict=True)))
    best = sorted("abcd", key=lambda n: -closeness["abcd".index(n)])[:2]
    assert found.lines_kept() == sorted(best)
    with pytest.raises(DataError, match="are they swapped"):
        curated(tmp_path, ROWS, [Donod(probe=Asked((("a", {"don": 2, "nod": 1}),)))])


def test_influence_by_source(tmp_path: Path) -> None:
    validation = write(tmp_path / "val.jsonl", [{"gradient": [1, 0]}, {"gradient": [1, 0]}])
    gradients = {n: {"gradient": [i, 9]} for i, n in enumerate("abcdef")}
    for given in (probe(tmp_path, **gradients), Asked(tuple(gradients.items()))):
        step = Influential(probe=given, validation=validation, share=0.3)
        found = curated(tmp_path, ROWS, [step], chunk=4)
        assert found.lines_kept() == ["e", "f"], "of each source the best third, rounded up"
        assert scored(found, "influence") == {n: float(i) for i, n in enumerate("abcdef")}
        assert set(why(found).values()) == {"little influence"}
    assert len(found.manifest["references"]["influential"]) == 1


def test_wrong_measurements_name_the_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1: it has none of the fields don, nod"):
        curated(tmp_path, ROWS, [Donod(probe=probe(tmp_path, a={"x": 1}))])
    with pytest.raises(DataError, match=r"donod: the measurement of row .* is wrong: KeyError: 'nod'"):
        curated(tmp_path, ROWS, [Donod(probe=probe(tmp_path, a={"don": 1}))])
    for line, why_ in (({"g": 1}, "no list 'gradient'"), ({"gradient": [1, 2, 3]}, "lengths")):
        file = write(tmp_path / "val.jsonl", [{"gradient": [1, 2]}, line])
        with pytest.raises(DataError, match=why_):
            curated(tmp_path, ROWS, [Influential(probe=Asked(()), validation=file, share=0.5)])


def test_wrong_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="count=0"):
        MostVaried(probe=Asked(()), count=0)
    with pytest.raises(ConfigError, match="share=0"):
        Donod(probe=Asked(()), share=0)
    with pytest.raises(ConfigError, match="'low' or 'high'"):
        Donod(probe=Asked(()), better=("low", "up"))  # pyright: ignore[reportArgumentType]


def test_steps_are_set_steps_of_their_own_pass() -> None:
    assert all(issubclass(k, SetStep) and k.costly for k in (AngleOrder, Donod, Influential, LearningImpact, MostVaried))
    assert np.isfinite(learning_impact([[0.5, 0.5]])).all()

"""The study of verifiers: its cells, its records, and its page, which must have every named verifier."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay.audit import AuditSettings, audit, resolve
from assay.audit.built_in import cases_of
from assay.core.errors import MissingExtraError, UnknownNameError
from assay.testing.slips import fuzz
from assay.verify import ExactMatch, RewardFunction, rollout_of, task_and_rollout, verifiers
from evidence.audits import gym, page, running
from evidence.audits.cells import BuiltIn, Fuzz, Gym, MathVerify, cell, cells, summary
from evidence.audits.claims import CLAIMS
from evidence.audits.rewards import SECOND

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "verifiers.md"


@pytest.mark.parametrize("name", verifiers())
def test_every_named_verifier_has_its_audit_on_the_page(name: str) -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` |")]
    assert rows, f"{name} has no audit in {PAGE.name}; run python -m evidence verifiers"


@pytest.mark.parametrize("name", [name for name in SECOND if name != "math"])
def test_second_implementations_take_the_gold_and_no_known_wrong_answer(name: str) -> None:
    second = resolve(f"evidence.audits.rewards:{SECOND[name]}").verifier
    for case in cases_of(name, name, 0, 8):
        assert second(case.task, rollout_of(case.task, case.gold)).primary == 1.0
        right = [text for text in case.wrong if second(case.task, rollout_of(case.task, text)).primary > 0.5]
        assert right == [] or name == "choice", right  # it reads letters only, and wrong options may hold one
        for text in ("", "[", "{", "1/0", "<answer>x</answer>", "```json\n[1]\n```"):
            assert second(case.task, rollout_of(case.task, text)).primary == 0.0


def test_cells_by_key() -> None:
    assert cell("assay-graph_path") == BuiltIn("graph_path") and cell("fuzz-exact") == Fuzz("exact")
    assert cell("reasoning-gym-maze") == Gym("maze") and cell("math-verify-math-verify") == MathVerify("math-verify")
    with pytest.raises(UnknownNameError, match="assay"):
        cell("assai-exact")
    assert BuiltIn("exact").made_of() != BuiltIn("sql").made_of()
    assert set(Gym("maze").made_of()) == {"audit", "reasoning-gym", "adapter"} and "math-verify" in MathVerify("x").made_of()
    assert set(Fuzz("code_call").made_of()) == {"fuzz", "verifier", "cases"}


def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reasoning-gym with one data set."""
    data = [{"question": f"{i} + 1?", "answer": str(i + 1), "metadata": {}} for i in range(gym.SIZE)]

    class Made:
        def __getitem__(self, index: int) -> dict[str, object]:
            return data[index]

        def score_answer(self, answer: str, entry: dict[str, object]) -> float:
            gold, entry["seen"] = entry["answer"], True
            return 1.0 if answer == gold else 0.5

    package = SimpleNamespace(create_dataset=lambda name, size, seed: Made(), DATASETS={"plus": 1, "composite": 2})
    monkeypatch.setattr(gym, "import_module", lambda name: package)
    for cached in (gym._data_set, gym._entries):
        cached.cache_clear()


def test_a_data_sets_scorer(monkeypatch: pytest.MonkeyPatch) -> None:
    entries(monkeypatch)
    assert gym.data_sets() == ("plus",)
    cases = gym.gym_cases("plus")
    assert [case.gold for case in cases[:2]] == ["1", "2"] and cases[0].unique
    scorer = gym.plus
    scorer.prepare()
    assert scorer.names == ("reward",) and scorer == gym.GymScorer("plus")
    assert [scorer(cases[1].task, rollout_of(cases[1].task, text)).primary for text in ("2", "3", "2")] == [1.0, 0.5, 1.0]
    assert not any("seen" in entry for entry in gym._entries("plus"))
    assert gym._gold("graph_color", {"answer": None, "metadata": {"possible_answer": {"a": 1}}}) == '{"a": 1}'
    assert gym._gold("boxnet", {"answer": None, "metadata": {}}) == "?"
    with pytest.raises(AttributeError, match="minus"):
        _ = gym.minus
    assert len(cells()) == 2 * len(verifiers()) + 2
    for cached in (gym._data_set, gym._entries):
        cached.cache_clear()


def test_without_reasoning_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(gym, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"assay-rl\[audits\]"):
        gym.data_sets()


def test_records_are_kept_and_failures_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def start(made, folder: Path) -> subprocess.Popen[str]:
        asked.append(made.key)
        good = {"key": made.key, "group": made.group, "name": made.name, "made_of": made.made_of(), "machine": "m"}
        text = f"import pathlib; pathlib.Path({str(folder / made.key)!r} + '.json').write_text({json.dumps(good)!r})"
        code = {"exact": text, "set": "raise ValueError('no such thing')"}.get(made.name, "raise SystemExit(3)")
        return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    monkeypatch.setattr(running, "_start", start)
    wanted = [BuiltIn("exact"), BuiltIn("set"), BuiltIn("list")]
    first = running.run_all(wanted, tmp_path)
    assert [r.get("error") for r in first] == [None, "ValueError: no such thing", "exit status 3"]
    running.run_all(wanted, tmp_path)
    assert asked == ["assay-exact", "assay-set", "assay-list", "assay-set", "assay-list"]
    old = json.loads((tmp_path / "assay-exact.json").read_text())
    (tmp_path / "assay-exact.json").write_text(json.dumps(old | {"made_of": {}}))
    assert running._known_record(BuiltIn("exact"), tmp_path)["error"] == "not measured"


def fake(group: str, name: str, **changed: object) -> dict[str, object]:
    """A record of an audit of a lax function."""
    cases = cases_of("exact", "exact", 0, 3)
    lax = RewardFunction(lambda prompt, completion, row: float(row["answer"] in completion))
    found = audit(
        lax, cases, settings=AuditSettings(hostile_items=0, deadline=20.0, skip=("determinism", "order"), must=("period",))
    )
    kept = {"machine": "a machine", "load": [1.0, 2.0], "made_of": {"math-verify": "1", "reasoning-gym": "2"}, "group": group}
    return summary(found) | kept | {"key": f"{group}-{name}", "name": name} | changed


@pytest.mark.slow
def test_the_page() -> None:
    lax, fuzzed = fake("assay", "exact"), fuzz(ExactMatch(), [(task_and_rollout("4", "")[0], "4")], 20)
    fuzz_record = {
        "key": "fuzz-exact",
        "group": "fuzz",
        "name": "exact",
        "machine": "a machine",
        "load": [0.0, 9.0],
        "answers": fuzzed.answers,
        "faults": fuzzed.faults,
        "first_fault": "",
    }
    lost = {"key": "assay-set", "group": "assay", "name": "set", "error": "not measured"}
    other = lost | {"key": "assay-list", "error": "no"}
    records = [
        lax,
        fuzz_record,
        fake("math-verify", "math-verify", status={}),
        fake("reasoning-gym", "maze", latency=None),
        lost,
        other,
    ]
    claims = [{"name": c.name, "index": c.index, "gold": "g", "answer": c.answer, "value": 1.0, "says": c.says} for c in CLAIMS]
    text = page.page(records, claims)
    assert "| `exact` | 0 of 6 | " in text and "| 20, 0 |" in text
    assert "## math-verify 1" in text and "## reasoning-gym 2" in text and "`assay-set`; `assay-list` (no)." in text
    assert "| `game_of_life_halting` | 1 |" in text and "load average 0.0 to 9.0" in text
    assert page.page([lost], []).count("##") == 3  # nothing but findings, assay's own and what is missing
    failures = page._failures([*records, fuzz_record | {"first_fault": "raised"}], [claims[0] | {"value": 0.0}])
    assert [f.split(":")[0] for f in failures] == ["assay-set", "assay-list", "assay-exact", "fuzz-exact", "claim"]
    assert page._seconds(2.0) == "2.00 s" and page._seconds(2e-3) == "2 ms" and page._seconds(2e-6) == "2 µs"


@pytest.mark.slow
def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from evidence import __main__

    monkeypatch.setattr(page, "cells", lambda: [BuiltIn("exact")])
    monkeypatch.setattr(page, "run_all", lambda wanted, folder: [fake("assay", "exact")])
    monkeypatch.setattr(page, "CLAIMS", ())
    assert page.make_page(tmp_path) == ["assay-exact: wrong_answers"]
    assert "`exact`" in (tmp_path / "verifiers.md").read_text() and json.loads((tmp_path / "verifiers.json").read_text())
    asked = []
    monkeypatch.setattr(running, "one", lambda key, folder: asked.append((key, folder)))
    assert __main__.main(["--audit", "assay-exact", "out"]) == 0 and asked == [("assay-exact", Path("out"))]

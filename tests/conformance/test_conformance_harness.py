"""The harness that compares with other libraries, held to cases of its own; and the committed page."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import peer_comparing
import peer_loading
import pytest
from peer_comparing import Arrays, Case, Theirs, compare, learned, ours, plain, spread, tensor, token_rewards, weighted
from peer_page import expected, page, record

from assay.objective.peers import PEERS, match

DOCS = Path(__file__).parents[2] / "docs" / "evidence"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch):
    """Takes back what the loader registers."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("some_", "heavy_")):
            del sys.modules[name]


def vanilla(factor: float = 1.0, **more: Any) -> Case:
    def theirs(b: Arrays) -> Theirs:
        def loss(x: Any) -> Any:
            ratio, a, mask = (x - tensor(b["logp_old"])).exp(), tensor(b["advantages"])[:, None], tensor(b["mask"])
            each = -(a * ratio).minimum(a * ratio.clamp(0.8, 1.2))
            each = each.where(a >= 0, each.minimum(-3.0 * a))
            return factor * (each * mask).sum() / mask.sum()

        return learned(b, loss)

    return Case(peer="verl", name="vanilla", kind="loss", theirs=theirs, **more)


def test_what_is_equal_is_found_equal() -> None:
    found = plain(compare(vanilla()))
    assert found["same"] and expected(found) and found["apart"] == {"loss": 0.0, "gradient": 0.0}
    assert found["code"] == match("verl", "vanilla").code


def test_what_differs_is_found_different() -> None:
    found = plain(compare(vanilla(1.001)))
    assert not found["same"] and not expected(found) and found["apart"]["gradient"] == 1e-3
    assert expected(plain(compare(vanilla(1.001, differs="a factor"))))
    assert not expected(plain(compare(vanilla(differs="nothing differs, in truth"))))
    assert "differs: a factor" in page({"verl": {"version": "0", "found": [plain(compare(vanilla(1.001, differs="a factor")))]}})
    assert "**unexpected**" in page({"verl": {"version": "0", "found": [plain(compare(vanilla(1.001)))]}})


def test_an_error_is_no_agreement() -> None:
    def fails(b: Arrays) -> Theirs:
        raise ValueError("no such thing")

    found = plain(compare(Case(peer="verl", name="vanilla", kind="loss", theirs=fails)))
    assert found["error"] == "ValueError: no such thing" and not expected(found)
    nothing = Case(
        peer="verl", name="vanilla", kind="loss", theirs=lambda b: Theirs(loss=float("nan"), gradient=np.full((6, 5), np.nan))
    )
    assert not compare(nothing).same


def test_other_settings_and_other_batches() -> None:
    no_cap = "Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())"
    far = lambda b: {**b, "logp_old": np.where(b["mask"], b["logp_new"] - 2.0, 0.0)}
    assert compare(vanilla(batch=far)).same and not compare(vanilla(batch=far, code=no_cap)).same


def test_parts_of_each_kind() -> None:
    b = peer_comparing.batch(0)
    truncate = Case(peer="verl", name="rollout_is token", kind="correction", theirs=lambda b: Theirs(), what=("gradient",))
    weights = np.minimum(np.exp(b["logp_old"] - b["logp_engine"]), 2.0)
    ones = {**b, "advantages": np.ones(6)}
    np.testing.assert_allclose(ours(truncate, ones).gradient, weighted(b, weights).gradient, atol=1e-12)
    grpo = Case(peer="verl", name="grpo", kind="advantage", theirs=lambda b: Theirs(), what=("advantages",))
    reward = b["rewards"].reshape(2, 3)
    made = ((reward - reward.mean(1, keepdims=True)) / (reward.std(1, ddof=1, keepdims=True) + 1e-6)).ravel()
    np.testing.assert_allclose(ours(grpo, b).advantages, spread(made, b["mask"]), atol=1e-9)
    assert token_rewards(b).sum().item() == pytest.approx(b["rewards"].sum())
    prompt = Case(peer="skyrl", name="prompt_mean", kind="aggregation", theirs=lambda b: Theirs())
    assert ours(prompt, b).loss > 0


# ---- the loader -------------------------------------------------------------------------------------------------------


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An unpacked wheel whose package cannot be imported as it is."""
    folder = tmp_path / "some" / "inner"
    (folder / "some_peer" / "deep").mkdir(parents=True)
    (folder / "some_peer" / "__init__.py").write_text("raise RuntimeError('needs a cluster')\n")
    (folder / "some_peer" / "deep" / "__init__.py").write_text("import heavy_cluster\n")
    (folder / "some_peer" / "deep" / "formulas.py").write_text(
        "import torch\nimport heavy_cluster.nodes as nodes\nfrom heavy_cluster import Config, register\n"
        "@register('x')\ndef twice(x: Config['a']) -> Config:\n    return 2 * x\n"
        "class Worker(Config):\n    @nodes.remote\n    def half(self, x: 'Unknown'):\n        return x / self.by\n"
    )
    (folder / "some_peer-1.2.dist-info").mkdir()
    monkeypatch.setenv(peer_loading.FOLDER, str(tmp_path))
    return folder


def test_a_library_is_read_without_its_packages(wheel: Path) -> None:
    root = peer_loading.root_of("some", "some_peer/deep/formulas.py")
    assert root == wheel
    peer_loading.shells(root, "some_peer", "some_peer.deep")
    assert peer_loading.missing("heavy_cluster", "numpy") == ["heavy_cluster"]
    peer_loading.stand_in("heavy_cluster")
    found = importlib.import_module("some_peer.deep.formulas")
    assert found.Worker.__name__ == "Worker"
    assert importlib.import_module("some_peer").deep.formulas is found
    assert peer_loading.version_of("some", root, "some_peer") == "1.2"
    assert peer_loading.version_of("numpy", None, "numpy") == np.__version__
    peer_loading.forget("some_peer")
    assert "some_peer.deep" not in sys.modules


def test_single_functions_are_taken_out(wheel: Path) -> None:
    found = peer_loading.taken(wheel / "some_peer" / "deep" / "formulas.py", ["twice", "Worker.half"])
    assert found.twice(4) == 8
    assert found.half(peer_loading.Settings(by=4), 8) == 2


def test_modules_with_attributes(wheel: Path) -> None:
    peer_loading.shells(wheel, "some_peer")
    made = peer_loading.module("some_peer.config", known=3)
    assert (made.known, importlib.import_module("some_peer").config) == (3, made)
    anything = made.whatever
    assert anything.more["key"](1, 2) is anything
    with pytest.raises(AttributeError):
        anything.__wrapped__  # noqa: B018
    with pytest.raises(AttributeError):
        made.__wrapped__  # noqa: B018


def test_what_is_nowhere_is_absent(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(peer_loading.Absent, match="other is not installed"):
        peer_loading.root_of("other", "some_peer/deep/formulas.py")
    monkeypatch.delenv(peer_loading.FOLDER)
    with pytest.raises(peer_loading.Absent):
        peer_loading.root_of("some", "some_peer/deep/formulas.py")
    peer_loading.shells(wheel, "some_repository")
    monkeypatch.setenv(peer_loading.FOLDER, str(wheel.parents[1]))
    (wheel / "some_peer-1.2.dist-info").rmdir()
    assert peer_loading.version_of("some", wheel, "some_peer") == "repository"


def test_settings_and_compilers() -> None:
    settings = peer_loading.Settings(a=1)
    assert (settings.get("a"), settings.get("b", 2), "a" in settings, "b" in settings) == (1, 2, True, False)
    import torch

    real = torch.compile
    made = peer_loading.uncompiled(lambda: (torch.compile(abs), torch.compile(dynamic=True)(abs)))
    assert made == (abs, abs) and torch.compile is real


def test_an_absent_library_is_said_to_be(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import run_peer

    monkeypatch.delenv(peer_loading.FOLDER, raising=False)
    assert run_peer.main("rllm") == 0
    assert "rllm is not installed" in json.loads(capsys.readouterr().out)["absent"]


# ---- the committed page -----------------------------------------------------------------------------------------------


def test_the_committed_page_is_that_of_its_numbers() -> None:
    results = json.loads((DOCS / "conformance.json").read_text(encoding="utf-8"))
    assert (DOCS / "conformance.md").read_text(encoding="utf-8") == page(results)
    assert set(results) == set(PEERS)
    for peer, result in results.items():
        for found in result["found"]:
            assert match(peer, found["name"], found["kind"]).code
            assert expected(found), found


def test_the_page_says_which_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "on 3 random batches (seeds 0, 1 and 2), each of two prompts" in page({})
    monkeypatch.setattr("peer_page.SEEDS", (4, 7))
    assert "on 2 random batches (seeds 4 and 7), each of two prompts" in page({})
    drawn = [peer_comparing.batch(seed) for seed in peer_comparing.SEEDS]
    assert all(b["group_id"].tolist() == [0, 0, 0, 1, 1, 1] for b in drawn)
    assert {(b["length"].min(), b["length"].max()) for b in drawn} == {(1, 5)}
    assert len({b["logp_old"].tobytes() for b in drawn}) == 3


def test_a_run_replaces_the_rows_of_the_libraries_that_it_has(tmp_path: Path) -> None:
    one, other = plain(compare(vanilla())), plain(compare(vanilla(1.001, differs="a factor")))
    both = {"verl": {"version": "1", "found": [one]}, "trl": {"version": "1", "found": [one, other]}}
    assert record(both, tmp_path) == both
    later = {"verl": {"version": "2", "found": [other, other]}}
    assert record(later, tmp_path) == {**both, **later} == json.loads((tmp_path / "conformance.json").read_text())
    rows = (tmp_path / "conformance.md").read_text()
    assert rows == page({**both, **later})
    assert (rows.count(" agrees |\n"), rows.count(" differs: a factor |\n")) == (1, 3)

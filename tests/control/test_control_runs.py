"""Runs: methods under their laws, folders, kills, resumes, the command line, the report, statistics of runs."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.cli import main
from assay.core import CheckpointError, ConfigError, DataError, InexactResumeError, NonFiniteError, from_dict, to_dict
from assay.runs import storage
from assay_control import (
    BC,
    DATASETS,
    IQL,
    METHODS,
    SAC,
    TD3BC,
    WORLDS,
    CartPole,
    ControlRun,
    Evenly,
    HalfOnline,
    Pendulum,
    Session,
    TopEpisodes,
    WeightedEpisodes,
    aggregate_scores,
    dataset,
    improvement_probability,
    interquartile_mean,
    load_session,
    method,
    performance_profile,
    resume,
    train,
    transitions,
    world,
    write_control_report,
)
from assay_control.parts.buffer import Buffer
from assay_control.records import Box
from assay_control.testing import check_method, check_source, check_world

SMALL = {
    "offline": 3,
    "warmup": 1,
    "start": 3,
    "model": 3,
    "members": 2,
    "inner": 2,
    "samples": 2,
    "context": 4,
    "ensemble": 3,
    "collect": 8,
    "copies": 2,
    "parts": 2,
    "width": 8,
    "batch": 16,
    "epochs": 2,
}


def small(name: str) -> Any:
    made = method(name)
    fields = {f.name for f in dataclasses.fields(made)}  # type: ignore[arg-type]
    return dataclasses.replace(made, **{k: v for k, v in SMALL.items() if k in fields})  # type: ignore[type-var]


def run_of(name: str, **changes: Any) -> ControlRun:
    place = {"world": CartPole()} if name == "dqn" else {"data": dataset("pendulum/mixed")}
    given = {"steps": 12, "evaluate_every": 6, "episodes": 2, "checkpoint_every": 4, "log_every": 3}
    return ControlRun(method=small(name), **{**place, **given, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("name", list(METHODS))
def test_methods_keep_the_laws(name: str) -> None:
    check_method(small(name), run_of(name))


def test_methods_for_choices_keep_the_laws() -> None:
    for name in ("bc", "awr", "ppo"):
        check_method(small(name), ControlRun(method=small(name), data=dataset("cart-pole/expert")))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iql", "td3-bc", "sac", "rlpd", "ppo", "dqn", "dt", "mopo", "mbpo", "moorl"])
def test_a_run_that_stopped_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    whole = train(run_of(name), tmp_path / "whole")
    steps = iter(range(100))
    part = train(run_of(name), tmp_path / "part", stop=lambda: next(steps) == 6)
    assert part.step == 7 and not part.finished and whole.finished
    rest = resume(tmp_path / "part")
    assert rest.digest == whole.digest and rest.finished
    for file in ("metrics.jsonl", "evals.jsonl", "done.json"):
        assert (tmp_path / "whole" / file).read_text() == (tmp_path / "part" / file).read_text()
    assert load_session(tmp_path / "part").counters() == load_session(tmp_path / "whole").counters()


def killed(folder: Path, point: int, run: ControlRun | None = None) -> int:
    """Trains or goes on in a child process that is killed at a write; its exit status."""
    child = os.fork()
    if child == 0:
        left = [point]

        def on_write(name: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        storage.on_write = on_write
        if (folder / "run.toml").exists():
            resume(folder)
        else:
            train(run or run_of("sac"), folder)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_killed_run_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    """Killed in the middle of its writes, each time at another point."""
    whole = train(run_of("sac"), tmp_path / "whole")
    folder = tmp_path / "killed"
    assert [killed(folder, point) for point in (14, 20, 26, 9)] == [signal.SIGKILL] * 4
    assert resume(folder).digest == whole.digest
    assert (tmp_path / "whole" / "metrics.jsonl").read_text() == (folder / "metrics.jsonl").read_text()


def test_settings_go_through_a_file() -> None:
    for name in METHODS:
        run = run_of(name)
        back = from_dict(ControlRun, to_dict(run))
        assert back == run and back.identity() == run.identity()
        assert dataclasses.replace(run, steps=99).identity() == run.identity() != dataclasses.replace(run, seed=1).identity()
        assert back.method.compose().compose() == run.method.compose()


def test_resumes_that_could_not_be_equal_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(run_of("bc"), folder)
    with pytest.raises(ConfigError, match="holds a run already"):
        train(run_of("bc"), folder)
    assert resume(folder, steps=16).step == 16
    with pytest.raises(ConfigError, match="has done 16 steps"):
        resume(folder, steps=4)
    versions = json.loads((folder / "versions.json").read_text())
    (folder / "versions.json").write_text(json.dumps({**versions, "torch": "0.1"}))
    with pytest.raises(InexactResumeError, match=r"torch: 0\.1 then"):
        resume(folder, steps=20)
    assert resume(folder, steps=20, allow_inexact=True).step == 20
    text = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(text.replace("seed = 0", "seed = 5"))
    with pytest.raises(CheckpointError, match="another run"):
        resume(folder, allow_inexact=True)
    with pytest.raises(ConfigError, match="holds no run"):
        resume(tmp_path / "none")
    (folder / "run.toml").write_text('kind = "assay.train.run:Run"\n')
    with pytest.raises(ConfigError, match="assay resume"):
        resume(folder)


def test_what_cannot_begin_leaves_no_folder(tmp_path: Path) -> None:
    for run in (ControlRun(method=IQL(), world=Pendulum()), ControlRun(method=SAC(), world=CartPole())):
        with pytest.raises(ConfigError):
            train(run, tmp_path / "run")
        assert not (tmp_path / "run").exists()
    for wrong in ({"steps": 0}, {"evaluate_every": -1}, {"data": None}):
        with pytest.raises(ConfigError):
            dataclasses.replace(run_of("bc"), **wrong)
    with pytest.raises(ConfigError, match="explorer"):
        session = Session(run_of("bc"))
        session.collect(session.method.schedule.phase(1))


def test_a_gradient_that_is_not_finite_ends_the_run() -> None:
    session = Session(run_of("iql"))
    with np.errstate(all="ignore"):
        session.nets["q"].flat.detach().mul_(1e30)
        with pytest.raises(NonFiniteError, match="network 'q'"):
            session.update({})


def test_evaluation_starts_are_not_those_of_collection() -> None:
    from assay.core.seeds import derive_each

    session = Session(run_of("sac", data=None, world=Pendulum()))
    session.collect(session.method.schedule.phase(1))
    collected = {s for i in range(session.started) for s in derive_each("control/collect", 0, str(i), 4)}
    assert not collected & set(derive_each("control/evaluate", 0, "", 100))


def test_sources_keep_the_laws() -> None:
    data = transitions(dataset("pendulum/mixed").cached(), 0.99)
    buffer = Buffer(50, 3, Box(1))
    zeros = {"reward": np.zeros(50), "terminal": np.zeros(50, bool), "done": np.zeros(50, bool)}
    buffer.put(observation=np.ones((50, 3)), action=np.zeros((50, 1)), next_observation=np.ones((50, 3)), **zeros)
    for source in (Evenly(), TopEpisodes(), WeightedEpisodes(), WeightedEpisodes(by="return"), HalfOnline()):
        check_source(source, data, buffer)


def test_checks_find_what_is_broken() -> None:
    @dataclasses.dataclass(frozen=True)
    class Drifting(Pendulum):
        """Draws its starts from a clock."""

        def start(self, seeds: np.ndarray) -> np.ndarray:
            return Pendulum.start(self, seeds) + next(NUMBERS)

    with pytest.raises(AssertionError, match="differs under equal seeds"):
        check_world(Drifting())

    @dataclasses.dataclass(frozen=True)
    class Stuck(Evenly):
        """Draws the same batch each time."""

        def open(self, data: Any, buffer: Any, seed: int) -> Any:
            drawer = Evenly.open(self, data, buffer, seed)
            draw = drawer.draw
            drawer.draw = lambda count: draw(0)  # type: ignore[method-assign]
            return drawer

    with pytest.raises(AssertionError, match="no effect"):
        check_source(Stuck(), transitions(dataset("pendulum/mixed").cached(), 0.99))
    parts = small("td3-bc").compose()

    @dataclasses.dataclass(frozen=True)
    class Careless:
        """Reads what follows a terminal step."""

        def __call__(self, rows: Any, nets: Any, noise: Any, discount: float) -> Any:
            value = nets.least_q(rows.next_observation, rows.action, averaged=True).detach()
            return rows.reward + discount * (1 - rows.terminal.float()) * value

    careless = dataclasses.replace(parts, updates=(dataclasses.replace(parts.updates[0], target=Careless()), *parts.updates[1:]))
    with pytest.raises(AssertionError, match="reads what follows a terminal step"):
        check_method(careless, run_of("td3-bc"))


NUMBERS = iter(np.linspace(0, 1, 1000))


# ---- learning -----------------------------------------------------------------------------------------------------------


def score(run: ControlRun, folder: Path) -> float:
    return train(run, folder).metrics["eval/score"]


def test_the_experts_actions_can_be_cloned(tmp_path: Path) -> None:
    run = ControlRun(method=BC(batch=64), data=dataset("pendulum/expert"), steps=400, evaluate_every=0, episodes=10)
    assert score(run, tmp_path / "run") > 80


@pytest.mark.slow
def test_weighted_episodes_find_the_expert_in_mixed_data(tmp_path: Path) -> None:
    """5 % of the episodes are the controller's: drawn evenly they are not seen, drawn by advantage they are nearly all."""
    even, weighted = (
        ControlRun(method=BC(weight=w, batch=64), data=dataset("pendulum/mixed"), steps=500, evaluate_every=0, episodes=10)
        for w in ("even", "advantage")
    )
    assert score(even, tmp_path / "even") < 20 < 50 < score(weighted, tmp_path / "weighted")


# ---- statistics of runs -------------------------------------------------------------------------------------------------


def test_statistics_of_runs() -> None:
    assert interquartile_mean([0, 0.1, 0.4, 0.5, 0.6, 0.7, 0.9, 1, 5]) == pytest.approx(0.62)
    assert improvement_probability([[0.2, 0.2], [0.5, 0.1]], [[0.1, 0.2], [0.3, 0.4]]) == 0.4375
    sample = np.random.default_rng(0).normal(0.5, 0.2, (5, 4))
    found = aggregate_scores(sample, draws=500)
    assert found.iqm.low < found.iqm.value < found.iqm.high and found.iqm.n == 20
    assert found.mean.value == pytest.approx(sample.mean()) and found.median.value == pytest.approx(np.median(sample.mean(0)))
    tied = aggregate_scores(np.tile([[0.1, 0.9]], (5, 1)), draws=50)
    assert tied.mean.low == tied.mean.high == 0.5, "runs are drawn within a task, so tasks alone give no width"
    assert performance_profile([[0.1, 0.9]], [0.5]).tolist() == [0.5]
    with pytest.raises(DataError):
        interquartile_mean([])
    with pytest.raises(DataError, match="on the same"):
        improvement_probability([[0.1]], [[0.1, 0.2]])
    with pytest.raises(DataError, match="a row for each run"):
        aggregate_scores([0.1, 0.2])
    with pytest.raises(ConfigError):
        aggregate_scores([[0.1]], confidence=2)


# ---- the command line -----------------------------------------------------------------------------------------------------


def test_listings(capsys: pytest.CaptureFixture[str]) -> None:
    for words, names in ((["methods"], METHODS), (["worlds"], WORLDS), (["datasets"], DATASETS)):
        assert main(["control", *words]) == 0
        shown = capsys.readouterr().out
        assert all(name in shown for name in names)
        assert main(["control", *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
    assert main(["control", "methods", "iql"]) == 0
    assert "Expectile" in capsys.readouterr().out
    assert main(["control", "datasets", "maze/expert", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 50
    assert main(["control"]) == 2 and main(["control", "--help"]) == 0
    assert main(["control", "method"]) == 2
    assert "did you mean 'methods'" in capsys.readouterr().err


def test_train_resume_eval_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "control",
        "train",
        "pendulum/mixed",
        "td3-bc",
        "--steps",
        "20",
        "--episodes",
        "2",
        "--method.alpha",
        "1.5",
        "--method.width",
        "8",
    ]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == "runs/control-pendulum-mixed-td3-bc-1" and told["step"] == 20
    page = Path(told["report"]).read_text()
    assert "TD3BC in Pendulum" in page and "<svg" in page and "too hopeful" in page
    assert load_session(Path(told["folder"])).run.method == dataclasses.replace(TD3BC(), alpha=1.5, width=8)
    assert main(["control", "resume", told["folder"], "--steps", "24", "--no-report"]) == 0
    capsys.readouterr()
    assert main(["control", "eval", told["folder"], "--episodes", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 3
    assert main(["control", "report", told["folder"]]) == 0
    assert (
        main(["control", "train", "pendulum/mixed", "--method.kind", "BC", "--steps", "2", "--episodes", "1", "--no-report"]) == 0
    )
    assert main(words) == 0 and Path("runs/control-pendulum-mixed-td3-bc-2").is_dir()


def test_the_report_shows_the_dip_of_going_online(tmp_path: Path) -> None:
    run = run_of("wsrl", steps=9, checkpoint_every=9)
    train(dataclasses.replace(run, evaluate_every=2), tmp_path / "run")
    page = write_control_report(tmp_path / "run").read_text()
    means = {row["step"]: float(np.mean(row["returns"])) for row in map(json.loads, (tmp_path / "run" / "evals.jsonl").open())}
    later = [value for step, value in means.items() if step > 3]
    assert "returns around step 4" in page and f"{min(later):.2f}" in page and f"{sum(later) / len(later):.2f}" in page
    train(run_of("sac"), tmp_path / "online")
    assert "returns around step" not in write_control_report(tmp_path / "online").read_text()


def test_wrong_words(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words, told in (
        (["train", "pendulum/mixd"], "did you mean 'pendulum/mixed'"),
        (["train", "iql"], "name a data set or a world"),
        (["train", "iql", "bc"], "two of a kind"),
        (["train", "iql", "--file", "x.npz"], "name the world"),
        (["train", "pendulum", "iql", "--file", "none.npz"], "does not exist"),
        (["train", "--method.tau", "2"], "tau"),
        (["report"], "give the folder"),
        (["eval", "none"], "holds no run"),
    ):
        assert main(["control", *words]) == 2
        assert told in capsys.readouterr().err


def test_help_and_listings_load_no_torch() -> None:
    code = (
        "import sys; from assay.cli import main; main(['control', 'datasets']); main(['control', 'worlds']); "
        "main(['control', 'methods', 'iql']); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_where_the_package_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.cli.control.PACKAGE", "no_such_package")
    assert main(["control", "worlds"]) == 2
    assert "is not installed" in capsys.readouterr().err


def test_names() -> None:
    assert world("maze") == dataset("maze/stitched").world
    assert len(DATASETS) >= 9

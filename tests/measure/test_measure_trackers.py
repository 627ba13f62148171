"""Trackers: each step of a run arrives once, whatever is killed or fails, and the run does not notice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from list_tracker import ListTracker, steps, told

from assay.core.errors import CheckpointError, ConfigError, DataError, MissingExtraError, UnknownNameError
from assay.measure import (
    TRACKERS,
    MlflowTracker,
    RolloutLine,
    RunTrackers,
    TensorBoardTracker,
    TrackedRun,
    TrackerSettings,
    TrackerState,
    TrackioTracker,
    WandbTracker,
    recorded_trackers,
    send_run,
)
from assay.measure.trackers import process, tracker
from assay.measure.trackers.process import RunPipe, follow_run
from assay.measure.trackers.state import only_sender, record_tracker
from assay.measure.trackers.tracker import LONGEST, rollout_table
from assay.runs.rollout_files import RolloutFiles

needs_wandb = pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed")
needs_trackio = pytest.mark.skipif(find_spec("trackio") is None, reason="trackio is not installed")
needs_mlflow = pytest.mark.skipif(
    find_spec("mlflow") is None or find_spec("sqlalchemy") is None, reason="mlflow with a database is not installed"
)


def write_steps(folder: Path, these: range, to: str = "metrics.jsonl") -> None:
    """Lines of a journal, behind those that are there."""
    with (folder / to).open("a") as file:
        for step in these:
            file.write(json.dumps({"step": step, "stage": "rl", "metrics": {"reward/mean": step / 2, "lr": 1e-3}}) + "\n")


def rollout(step: int, **changes: Any) -> dict[str, Any]:
    given = {
        "step": step,
        "stage": "rl",
        "id": "r0",
        "task": "sort:3:7",
        "arm": "sort",
        "level": 3,
        "prompt": "S312>",
        "text": "123",
        "stop": "stop",
        "components": {"correct": 1.0, "format": 0.5},
        "fault": "none",
        "length": 3,
        "gold": "123",
        "advantage": 0.75,
    }
    return given | changes


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with five steps, one of which has its rollouts, and no end."""
    folder = tmp_path / "sums-1"
    folder.mkdir()
    (folder / "run.toml").write_text('name = "sums"\nseed = 3\n[tasks]\nrows = [1, 2]\n')
    write_steps(folder, range(1, 6))
    RolloutFiles(folder).write(2, [rollout(2), rollout(2, text="132", components={"correct": 0.0})], 2)
    return folder


# ---- what is sent


def test_a_tracker_gets_settings_steps_rollouts_and_the_report(run: Path, tmp_path: Path) -> None:
    own = ListTracker(path=str(tmp_path / "told"), rollouts=1)
    (run / "report.html").write_text("<p>")
    (run / "done.json").write_text("{}")
    state = send_run(run, own)
    begin, *rest, report, end = told(tmp_path / "told")
    assert (begin["name"], begin["sent"], begin["settings"]["seed"]) == ("sums-1", -1, 3)
    assert [line["step"] for line in rest] == [1, 2, 3, 4, 5]
    assert rest[3]["metrics"] == {"reward/mean": 2.0, "lr": 1e-3}
    assert rest[0]["rollouts"] is None
    (row,) = rest[1]["rollouts"]
    assert (row["prompt"], row["answer"], row["gold"], row["reward"], row["advantage"]) == ("S312>", "123", "123", 1.0, 0.75)
    assert (row["verdict"], row["components"]) == ("right", "correct=1 format=0.5")
    assert report == {"report": str(run / "report.html")} and end == {"close": "finished"}
    assert (state.sent, state.id, state.url, state.error) == (5, "first", "http://list", "")
    assert TrackerState.read(run, "list") == state


def test_a_second_session_sends_what_is_new_alone(run: Path, tmp_path: Path) -> None:
    own = ListTracker(path=str(tmp_path / "told"), report=False)
    (run / "report.html").write_text("<p>")
    send_run(run, own)
    assert not any("report" in line for line in told(tmp_path / "told"))
    write_steps(run, range(6, 8))
    send_run(run, replace(own, report=True))
    assert steps(tmp_path / "told") == [1, 2, 3, 4, 5, 6, 7]
    assert [line["open"] for line in told(tmp_path / "told") if "open" in line] == ["first", "first"]


def test_texts_and_tables_are_bounded() -> None:
    from assay.measure.rollout_line import rollout_line

    line: RolloutLine = rollout_line(rollout(1, prompt="a" * 9000 + "?", text="b" * 9000, advantage=None))
    table = rollout_table([line] * 5, 2)
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert len(table.rows) == 2 and row["advantage"] is None
    assert row["prompt"].endswith("?") and len(row["prompt"]) == len(row["answer"]) == LONGEST


def test_rollouts_that_are_damaged_cost_their_table_alone(run: Path, tmp_path: Path) -> None:
    (run / "rollouts" / "step_00000002.jsonl.gz").write_bytes(b"torn")
    send_run(run, ListTracker(path=str(tmp_path / "told")))
    assert [line["rollouts"] for line in told(tmp_path / "told") if "step" in line] == [None] * 5


def test_a_line_that_is_torn_is_waited_for_and_a_damaged_one_named(run: Path, tmp_path: Path) -> None:
    own = ListTracker(path=str(tmp_path / "told"))
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "metr')
    assert send_run(run, own).sent == 5
    with (run / "metrics.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(DataError, match="line 6, is damaged"):
        send_run(run, own)


def test_bad_settings_are_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match="rollouts=-1"):
        TensorBoardTracker(rollouts=-1)
    with pytest.raises(ConfigError, match="wait=-2"):
        TensorBoardTracker(wait=-2)
    with pytest.raises(UnknownNameError, match="'onlin'"):
        WandbTracker(mode="onlin")
    with pytest.raises(ConfigError, match="two trackers are called 'tensorboard'"):
        RunTrackers(run, [TensorBoardTracker(), TensorBoardTracker(rollouts=1)])


def test_the_folder_keeps_the_trackers(run: Path) -> None:
    assert recorded_trackers(run) == ()
    record_tracker(run, WandbTracker(project="sums", tags=("a",)))
    record_tracker(run, MlflowTracker(uri="http://h"))
    record_tracker(run, MlflowTracker(uri="http://other"))  # the session that begins keeps its settings
    assert recorded_trackers(run) == (MlflowTracker(uri="http://h"), WandbTracker(project="sums", tags=("a",)))
    (run / "trackers" / "mlflow.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"mlflow\.json is damaged"):
        recorded_trackers(run)


@pytest.mark.parametrize("kind", TRACKERS.values(), ids=TRACKERS)
def test_absent_libraries_are_named(kind: type[TrackerSettings], run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, extra = kind.needs
    for name in [n for n in sys.modules if n.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"assay-rl\[{extra}\]"):
        send_run(run, kind())
    monkeypatch.setattr(tracker, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=rf"assay-rl\[{extra}\]"):
        RunTrackers(run, [kind()])


# ---- while the run goes on


def pipe(*words: str) -> RunPipe:
    """What a run says that has ended; one that was killed says nothing."""
    reading, writing = os.pipe()
    os.write(writing, "".join(words).encode())
    os.close(writing)
    return RunPipe(reading)


def test_the_end_of_a_run_is_told(run: Path, tmp_path: Path) -> None:
    own, warned = ListTracker(path=str(tmp_path / "told")), list[str]()
    assert follow_run(run, own, pipe('{"ending": "stopped"}\n'), warned.append)
    assert steps(tmp_path / "told") == [1, 2, 3, 4, 5]
    assert told(tmp_path / "told")[-1] == {"close": "stopped"} and not warned


def test_a_session_that_fails_is_followed_by_another(run: Path, tmp_path: Path) -> None:
    """The server is back when the run ends: all steps are there, and the person was told once."""
    gone = tmp_path / "gone"
    gone.touch()
    own, warned = ListTracker(path=str(tmp_path / "told"), fails_while=str(gone)), list[str]()
    record_tracker(run, own)

    def warn(text: str) -> None:
        warned.append(text)
        assert TrackerState.read(run, "list").error == text  # pyright: ignore
        gone.unlink()

    assert follow_run(run, own, pipe('{"ending": "finished"}\n'), warn)
    assert warned == ["ConnectionError: no route to host"]
    assert steps(tmp_path / "told") == [1, 2, 3, 4, 5]
    assert TrackerState.read(run, "list").error == ""  # pyright: ignore


def test_the_last_try_is_made_when_the_run_has_ended(run: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").touch()
    own, warned = ListTracker(path=str(tmp_path / "told"), fails_while=str(tmp_path / "gone")), list[str]()
    assert not follow_run(run, own, pipe('{"ending": "finished"}\n'), warned.append)
    assert len(warned) == 1 and steps(tmp_path / "told") == []


def test_what_would_fail_again_is_not_tried_again(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.entities", None)
    warned = list[str]()
    assert not follow_run(run, MlflowTracker(), pipe(), warned.append)
    assert "assay-rl[mlflow]" in warned[0]


def test_of_a_run_that_was_killed_the_rest_is_sent_within_a_time(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = list[float]()
    monkeypatch.setattr(process, "_end_within", limits.append)
    own = ListTracker(path=str(tmp_path / "told"), wait=7.0)
    assert follow_run(run, own, pipe(), lambda text: None)
    assert steps(tmp_path / "told") == [1, 2, 3, 4, 5] and limits == [7.0]
    assert told(tmp_path / "told")[-1] == {"close": "failed"}


def test_a_run_whose_pipe_another_process_holds_is_missed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, _ = os.pipe()
    said = RunPipe(reading)
    assert not said.wait(0.0)
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert said.wait(0.0) and said.killed


def test_one_process_sends_at_a_time(run: Path, tmp_path: Path) -> None:
    other = "import sys; from pathlib import Path; from assay.measure import TensorBoardTracker, send_run\n"
    other += "try: send_run(Path(sys.argv[1]), TensorBoardTracker())\nexcept Exception as error: print(error)"
    with only_sender(run, "tensorboard", wait=False):
        said = subprocess.run([sys.executable, "-c", other, str(run)], capture_output=True, text=True).stdout
    assert "another process sends" in said


# ---- the process beside a run


def ended(run: Path, own: ListTracker, capfd: pytest.CaptureFixture[str], ending: str = "finished") -> tuple[float, str]:
    """Seconds that the end of a run waits for a tracker, and what it says."""
    all_of = RunTrackers(run, [own])
    all_of.start()
    begun = time.monotonic()
    all_of.log(5, {})
    all_of.close()
    assert time.monotonic() - begun < 5  # it waits for nothing
    begun = time.monotonic()
    all_of.finish(ending)  # pyright: ignore
    return time.monotonic() - begun, capfd.readouterr().err


def test_a_process_follows_the_run(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own = ListTracker(path=str(tmp_path / "told"), wait=240.0)
    _, said = ended(run, own, capfd)
    assert steps(tmp_path / "told") == [1, 2, 3, 4, 5] and said == ""
    assert recorded_trackers(run) == (own,)


def test_a_tracker_that_hangs_is_waited_for_no_longer_than_it_may(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seconds, said = ended(run, ListTracker(path=str(tmp_path / "told"), hang=True, wait=0.2), capfd)
    assert 0.1 < seconds < 30
    assert said.count("\n") == 1
    assert "tracker list: was not done after 0.2 s (it has none of 5 steps)" in said
    assert f"assay runs sync {run} --tracker list" in said


def test_a_tracker_that_dies_leaves_what_a_sync_sends(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own = ListTracker(path=str(tmp_path / "told"), dies_at=4, wait=240.0)
    _, said = ended(run, own, capfd)
    assert "tracker list: could not send all" in said
    send_run(run, replace(own, dies_at=-1))
    assert set(steps(tmp_path / "told")) == {1, 2, 3, 4, 5}


def test_a_run_that_was_refused_loses_what_trackers_had_put_there(
    run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    all_of = RunTrackers(run, [ListTracker(path=str(tmp_path / "told"), hang=True, wait=240.0)])
    all_of.start()
    (run / "run.toml").unlink()
    all_of.finish("failed")
    assert not (run / "trackers").exists() and capfd.readouterr().err == ""


def test_what_a_killed_run_had_written_is_sent_after_its_death(run: Path, tmp_path: Path) -> None:
    work = (
        "import os, sys; from pathlib import Path; sys.path.append(sys.argv[3])\n"
        "from list_tracker import ListTracker; from assay.measure import RunTrackers\n"
        "RunTrackers(Path(sys.argv[1]), [ListTracker(path=sys.argv[2], wait=240.0)]).start()\n"
        "os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "told"
    words = [sys.executable, "-c", work, str(run), str(path), str(Path(__file__).parent)]
    assert subprocess.run(words).returncode == -signal.SIGKILL
    with only_sender(run, "other", wait=True):
        pass
    until = time.monotonic() + 120
    while not any("close" in line for line in told(path)) and time.monotonic() < until:
        time.sleep(0.05)
    assert steps(path) == [1, 2, 3, 4, 5] and told(path)[-1] == {"close": "failed"}


# ---- TensorBoard


def shown(folder: Path) -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    found.Reload()
    return found


def test_tensorboard_shows_each_step_once(run: Path) -> None:
    pytest.importorskip("tensorboard")
    send_run(run, TensorBoardTracker())
    (file,) = (run / "tensorboard").iterdir()
    file.rename(file.with_name("events.out.tfevents.0000000001.host"))  # files are read by name, which begins with the second
    state = TrackerState.read(run, "tensorboard")
    assert state is not None
    replace(state, sent=3).write(run, "tensorboard")  # killed before it noted what it had written
    write_steps(run, range(6, 7))
    send_run(run, TensorBoardTracker())
    found = shown(run / "tensorboard")
    assert [(e.step, e.value) for e in found.Scalars("reward/mean")] == [(s, s / 2) for s in range(1, 7)]
    (table,) = found.Tensors("rollouts")
    text = table.tensor_proto.string_val[0].decode()
    assert table.step == 2 and "|S312>|132|123|wrong|0|correct=0|0.75|" in text
    assert '"seed": 3' in found.Tensors("settings")[0].tensor_proto.string_val[0].decode()


# ---- Weights & Biases


class FakeWandb:
    """The public calls of wandb that are used, and what a server knows of a run."""

    def __init__(self, on_server: int = -1) -> None:
        self.told: list[Any] = []
        self.url, self.resumed, self.starting_step = "https://wandb.ai/x", on_server >= 0, on_server + 1

    def Settings(self, **settings: object) -> dict[str, object]:
        return settings

    def Table(self, columns: list[str], data: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
        return columns, data

    def Artifact(self, name: str, type: str) -> "FakeWandb":
        self.told.append((name, type))
        return self

    def add_file(self, path: str, name: str) -> None:
        self.told.append(name)

    def log_artifact(self, artifact: object) -> None: ...

    def init(self, **arguments: object) -> "FakeWandb":
        self.told.append(arguments)
        return self

    def log(self, metrics: Mapping[str, Any], step: int, commit: bool) -> None:
        self.told.append((step, dict(metrics)))

    def finish(self, exit_code: int) -> None:
        self.told.append(("finish", exit_code))


def test_wandb_online_gets_what_its_server_does_not_have(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is believed, not the folder: what was handed over need not have arrived."""
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)  # pyright: ignore
    own = WandbTracker(project="p", entity="e", group="g", tags=("t",), mode="online")
    state = send_run(run, own)
    arguments, *rest = fake.told
    assert {arguments[k] for k in ("project", "entity", "group", "name", "mode")} == {"p", "e", "g", "sums-1", "online"}
    assert (arguments["tags"], arguments["id"], arguments["resume"]) == (["t"], state.id, "allow")
    assert arguments["config"]["seed"] == 3
    assert [s for s, _ in rest] == [1, 2, 3, 4, 5, "finish"] and rest[-1] == ("finish", 1)
    assert rest[1][1]["rollouts"][1][0][3:6] == ["S312>", "123", "123"]
    assert state.url == "https://wandb.ai/x"
    (run / "report.html").write_text("<p>")
    (run / "done.json").write_text("{}")
    again = FakeWandb(on_server=3)
    monkeypatch.setitem(sys.modules, "wandb", again)  # pyright: ignore
    assert send_run(run, own).id == state.id
    assert again.told[0]["id"] == state.id
    assert [x[0] for x in again.told[1:3]] == [4, 5]
    assert again.told[3:] == [(f"report-{state.id}", "report"), "report.html", ("finish", 0)]


@pytest.mark.slow
@needs_wandb
def test_wandb_offline_is_one_run_that_has_each_step_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the library itself was told, and what it says of its run; its files cannot be read by public calls."""
    import wandb

    logged: list[tuple[str, int]] = []
    begin = wandb.init

    def init(**arguments: Any) -> Any:
        made = begin(**arguments)
        log = made.log

        def both(row: dict[str, Any], step: int, commit: bool) -> None:
            logged.append((made.id, step))
            log(row, step=step, commit=commit)
            assert made.step == step + 1 and made.summary["reward/mean"] == step / 2

        monkeypatch.setattr(made, "log", both)
        return made

    monkeypatch.setattr(wandb, "init", init)
    first = send_run(run, WandbTracker(project="sums"))
    write_steps(run, range(6, 8))
    (run / "report.html").write_text("<p>")
    logged.clear()
    assert send_run(run, WandbTracker(project="sums")).id == first.id
    assert logged == [(first.id, step) for step in range(1, 8)]
    (only,) = (run / "wandb").glob("offline-run-*")
    assert only.name.endswith(first.id) and list(only.glob("*.wandb"))


# ---- trackio and MLflow


@needs_trackio
def test_trackio_has_each_step_once(run: Path, tmp_path: Path) -> None:
    """In a process of its own: trackio reads where it keeps runs when it is imported."""
    work = (
        "import sys, json; from pathlib import Path; from assay.measure import TrackioTracker, send_run\n"
        "import trackio; folder = Path(sys.argv[1])\n"
        "send_run(folder, TrackioTracker(project='sums'))\n"
        "line = json.dumps({'step': 6, 'metrics': {'reward/mean': 3.0}})\n"
        "with (folder / 'metrics.jsonl').open('a') as file: file.write(line + '\\n')\n"
        "send_run(folder, TrackioTracker(project='sums'))\n"
        "print('RUNS', [(r.name, r.config['seed']) for r in trackio.Api().runs('sums')])\n"
    )
    home = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")}
    done = subprocess.run([sys.executable, "-c", work, str(run)], env=home, capture_output=True, text=True)
    assert "RUNS [('sums-1', 3)]" in done.stdout, done.stderr
    words = ["get", "metric", "--project", "sums", "--run", "sums-1", "--metric", "reward/mean", "--json"]
    said = subprocess.run([sys.executable, "-m", "trackio.cli", *words], env=home, capture_output=True, text=True).stdout
    values = json.loads(said[said.index("{") : said.rindex("}") + 1])["values"]
    assert [(v["step"], v["value"]) for v in values] == [(s, s / 2) for s in range(1, 7)]


def test_trackio_elsewhere_goes_on_behind_what_was_handed_over(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    class Fake:
        id = "r"

        def init(self, **arguments: object) -> "Fake":
            told.append(arguments)
            return self

        def Table(self, columns: list[str], data: list[list[Any]]) -> int:
            return len(data)

        def log(self, row: Mapping[str, Any], step: int) -> None:
            told.append(step)

        def finish(self) -> None: ...

    monkeypatch.setitem(sys.modules, "trackio", Fake())  # pyright: ignore
    own = TrackioTracker(space_id="me/space")
    assert send_run(run, own).url == "https://huggingface.co/spaces/me/space"
    write_steps(run, range(6, 7))
    send_run(run, own)
    assert [x for x in told if isinstance(x, int)] == [1, 2, 3, 4, 5, 6]
    assert [x["resume"] for x in told if isinstance(x, dict)] == ["allow", "allow"]


@needs_mlflow
def test_mlflow_has_each_step_once(run: Path, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/m.db")
    client.create_experiment("sums", artifact_location=f"file://{tmp_path}/artifacts")
    own = MlflowTracker(uri=f"sqlite:///{tmp_path}/m.db", experiment="sums", tags=("team=a",))
    first = send_run(run, own)
    assert client.get_run(first.id).info.status == "KILLED"
    write_steps(run, range(6, 8))
    (run / "report.html").write_text("<p>")
    (run / "done.json").write_text("{}")
    replace(first, sent=2).write(run, "mlflow")  # what the folder says is older than what MLflow has
    assert send_run(run, own).id == first.id
    history = client.get_metric_history(first.id, "reward/mean")
    assert sorted((m.step, m.value) for m in history) == [(s, s / 2) for s in range(1, 8)]
    found = client.get_run(first.id)
    assert (found.info.status, found.info.run_name, found.data.params["seed"]) == ("FINISHED", "sums-1", "3")
    assert found.data.tags["team"] == "a"
    assert [f.path for f in client.list_artifacts(first.id)] == ["report.html", "rollouts"]


def test_mlflow_is_asked_which_steps_it_has(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a fake of the client's public calls: names that MLflow refuses are replaced, and long runs go in several requests."""
    from types import SimpleNamespace

    batches: list[tuple[list[str], list[str]]] = []

    class Client:
        def __init__(self, tracking_uri: str | None) -> None: ...

        def get_experiment_by_name(self, name: str) -> object:
            return SimpleNamespace(experiment_id="7")

        def create_run(self, experiment: str, run_name: str, tags: Mapping[str, str]) -> object:
            return SimpleNamespace(info=SimpleNamespace(run_id="m1"))

        def update_run(self, run_id: str, status: str) -> None: ...

        def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
            batches.append(([m.key for m in metrics], [p.key for p in params]))

        def log_dict(self, run_id: str, table: object, path: str) -> None: ...

        def get_metric_history(self, run_id: str, key: str) -> list[Any]:
            return [SimpleNamespace(step=s) for s in range(1, 6)] if len(batches) > 1 else []

        def set_terminated(self, run_id: str, status: str) -> None: ...

    def named(*given: Any) -> object:
        return SimpleNamespace(key=given[0])

    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=Client))  # pyright: ignore
    monkeypatch.setitem(sys.modules, "mlflow.entities", SimpleNamespace(Metric=named, Param=named))  # pyright: ignore
    (run / "metrics.jsonl").write_text(json.dumps({"step": 1, "metrics": {f"level[{n}]": 1.0 for n in range(1500)}}) + "\n")
    send_run(run, MlflowTracker())
    settings, one, two = batches
    assert settings[1] == ["name", "seed", "tasks.rows"]
    assert len(one[0]) == 1000 and len(two[0]) == 501 and two[0][-1] == "assay/step" and one[0][0] == "level_0_"
    send_run(run, MlflowTracker())
    assert len(batches) == 3
    write_steps(run, range(6, 7))
    send_run(run, MlflowTracker())
    assert len(batches) == 4


def test_a_run_that_never_began_is_nobodys(tmp_path: Path) -> None:
    assert TrackedRun(folder=tmp_path, name="x", settings={}).sent == -1
    assert TrackerState.read(tmp_path, "wandb") is None

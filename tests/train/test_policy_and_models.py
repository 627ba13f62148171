"""Where weights come from, and asking a trained model."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_runs import on_tiny_base, only_rl, tiny

import assay.train
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Sampling
from assay.core.task import Message
from assay.train import Policy, models
from assay.train.driver import train
from assay.train.models import Built, Folder, Scratch
from assay_tasks import KeyValue, SortDigits


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    train(only_rl(steps=1), folder)
    return folder


def test_answers_are_a_function_of_prompt_and_seed(run: Path) -> None:
    policy = Policy(run)
    first = policy.sample("S21>", n=4)
    assert len(first) == 4 and len(set(first)) > 1
    assert policy.sample("S21>", n=4) == first == Policy(run / "model").sample([Message("user", "S21>")], n=4)
    assert policy.sample("S21>", n=4, seed=1) != first
    assert all(len(text) <= 2 for text in policy.sample("S21>", n=4, sampling=Sampling(max_new_tokens=2)))


def test_a_temperature_for_a_sample_goes_before_that_of_the_sampling(run: Path) -> None:
    policy = Policy(run)
    greedy = policy.sample("S21>", n=3, temperature=0.0)
    assert len(set(greedy)) == 1
    assert greedy == policy.sample("S21>", n=3, sampling=Sampling(top_p=0.5, max_new_tokens=28), seed=7, temperature=0.0)
    hot = Sampling(temperature=2.0, max_new_tokens=4)
    assert policy.sample("S21>", n=8, sampling=replace(hot, temperature=1.0), temperature=2.0) == policy.sample("S21>", 8, hot)
    with pytest.raises(DataError, match="temperature"):
        policy.sample("S21>", temperature=-1.0)


def test_the_command_line_takes_the_most_likely_answer(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from assay.cli import main

    assert main(["sample", str(run), "S21>", "--greedy"]) == 0
    (wanted,) = Policy(run).sample("S21>", sampling=only_rl().sampling, seed=5, temperature=0.0)
    assert capsys.readouterr().out == f"{wanted}\n"


def test_a_prompt_that_does_not_fit(run: Path) -> None:
    with pytest.raises(ConfigError, match="the prompt has 40 tokens, the model's context 32"):
        Policy(run).sample("1" * 40)
    with pytest.raises(DataError, match="ß"):
        Policy(run).sample("ß")


def test_evaluation_gives_records_per_task(run: Path) -> None:
    source = SortDigits(levels=(2, 3))
    sampled = Policy(run).evaluate(source, n=3, per_level=4, sampling=Sampling(max_new_tokens=4))
    assert [len(item["values"]) for item in sampled] == [3] * 8
    greedy = Policy(run).evaluate(source, n=0, per_level=4, levels=(2,), sampling=Sampling(max_new_tokens=4))
    assert [(item["level"], len(item["answers"]), item["faults"]) for item in greedy] == [(2, 1, 0)] * 4
    with pytest.raises(ConfigError, match="no level 9; the nearest is 3"):
        Policy(run).evaluate(source, levels=(9,))


def test_evaluation_plays_environments_for_so_many_turns(run: Path) -> None:
    items = Policy(run).evaluate(KeyValue(levels=(1,)), per_level=2, sampling=Sampling(max_new_tokens=3), max_turns=1)
    assert len(items) == 2


def test_what_names_no_model(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds neither config.json nor"):
        Policy(tmp_path).model()
    shutil.copytree(run, tmp_path / "half")
    shutil.rmtree(tmp_path / "half" / "model")
    with pytest.raises(ConfigError, match="has not finished, so it has no model yet: assay resume"):
        Policy(tmp_path / "half").model()
    with pytest.raises(ConfigError, match=r"Run.model is an int; use Folder\(path\)"):
        models.load_source(3, lambda run, folder: folder)


def test_sources_describe_themselves(run: Path) -> None:
    base = on_tiny_base().model
    assert isinstance(base, Built)
    assert base.describe() == "base 'tiny-base', built on first use (8 steps)"
    assert Folder(str(run)).describe() == str(run)
    assert Scratch().describe() == "342,048 fresh parameters", "with 98 rows of the embedding, which the alphabet needs"


def test_a_run_continues_from_a_folder(run: Path, tmp_path: Path) -> None:
    again = replace(only_rl(steps=1), model=Folder(str(run)))
    assert train(again, tmp_path / "on").finished
    assert (tmp_path / "on" / "start" / "model.safetensors").read_bytes() == (run / "model" / "model.safetensors").read_bytes()


def test_a_base_is_built_once_under_a_key_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    seen: list[str] = []

    def watch(run: object, folder: Path, first: int) -> tuple[()]:
        seen.append(folder.name)
        return ()

    source = on_tiny_base().model
    assert isinstance(source, Built)
    for name in ("a", "b"):
        train(on_tiny_base(rl=1), tmp_path / name, watch=watch)
    assert seen == [source.key, "a", "b"]
    assert source.key != Built(run=replace(source.run, seed=1)).key
    (tmp_path / "cache" / "base" / source.key / "model" / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(DataError, match=r"the base in the cache is damaged .*remove .*and it is built again"):
        train(on_tiny_base(rl=1), tmp_path / "c")


def test_half_a_base_that_cannot_be_gone_on_with_is_made_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    whole = train(on_tiny_base(rl=1), tmp_path / "a")
    source = on_tiny_base().model
    assert isinstance(source, Built)
    base = tmp_path / "cache" / "base" / source.key
    (base / "done.json").unlink()
    (base / "LATEST").write_text("step_0000099")
    assert train(on_tiny_base(rl=1), tmp_path / "b").digest == whole.digest


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert models.cache_folder() == tmp_path
    monkeypatch.delenv("ASSAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert models.cache_folder() == Path("/x/assay")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert models.cache_folder() == Path.home() / ".cache" / "assay"


def test_the_room_offers_its_names() -> None:
    assert set(assay.train.__all__) <= set(dir(assay.train))
    assert assay.train.Run is type(tiny())
    with pytest.raises(AttributeError, match="no attribute 'Runn'"):
        _ = assay.train.Runn

"""Models by their names on a hub: pinned into the run, which goes on without the hub; what is wrong is told at first."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hub_cases import hub_model
from hub_server import COMMIT, cached, hub
from test_hub_runs import LORA, hub_run
from tiny_runs import only_rl

from assay.core.errors import HubError
from assay.publish import export
from assay.runtime import Anchor, load_model, save_model
from assay.runtime.models import adapter_base, hub_names
from assay.runtime.models.adapter_files import write_adapter
from assay.runtime.models.hub_model import hub_of
from assay.train import Built, Folder, Policy, load_run, models, resume, train

NAME = "someone/tiny-llama"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A cache with one model in it, and no hub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    place = cached(tmp_path / "hf" / "hub", "model", NAME)
    save_model(hub_model("llama"), tmp_path / "made")
    for path in (tmp_path / "made").iterdir():
        path.rename(place / path.name)
    return tmp_path / "hf"


def named(**changes):
    run = hub_run(Path("unused"), LORA, warm=1, rl=1, model=Folder(NAME))
    return replace(run, stages=run.stages[1:], **changes)


@pytest.mark.slow
def test_a_run_knows_the_commit_that_it_began_with(home, tmp_path):
    assert train(named(), "run").finished
    assert f'path = "{NAME}@{COMMIT}"' in Path("run/run.toml").read_text()
    (home / "hub" / "models--someone--tiny-llama" / "refs" / "main").write_text("f" * 40)
    for path in (home / "hub").rglob("*.safetensors"):
        path.unlink()
    assert load_run(Path("run"), named()).model == Folder(f"{NAME}@{COMMIT}"), "the same recipe is the same run"
    assert resume("run", steps=2).step == 2, "its own copy of the start is what it goes on from"
    made = export("run", "out", form="adapter")
    config = json.loads(Path("out/adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["revision"]) == (NAME, COMMIT) and made.reloaded
    card = Path("out/README.md").read_text()
    assert f"base_model: {NAME}\n" in card and "base_model_relation: adapter" in card and f"{NAME} at commit {COMMIT}" in card


def test_names_are_pinned_wherever_they_stand(home):
    run = named()
    learner = replace(run.stages[0].learner, anchors=(Anchor(), Anchor("teacher", model=NAME)))
    whole = replace(run, model=Built(run=run), stages=(replace(run.stages[0], learner=learner),))
    found = models.pin_commits(whole)
    assert found.model.run.model == Folder(f"{NAME}@{COMMIT}")
    assert [a.model for a in found.stages[0].learner.anchors] == ["", f"{NAME}@{COMMIT}"]
    assert models.pin_commits(found) is found
    plain = only_rl()
    assert models.pin_commits(plain) is plain


def test_a_name_is_a_model_everywhere(home):
    assert len(Policy(NAME).sample("S21>", n=2)) == 2
    assert hub_names.hub_name("hub:someone/tiny-llama") is not None
    export(NAME, "out")
    assert load_model("out").shape == Policy(NAME).model().shape


def test_folders_come_before_names(home, tmp_path):
    save_model(hub_model("phi"), tmp_path / NAME)
    assert hub_names.hub_name(NAME) is None and models.from_folder(NAME).shape.architecture == "PhiForCausalLM"
    assert hub_names.hub_name("someone/mistyped") is None, "what would lie in a folder here is looked for here"


def test_a_model_that_is_only_there_in_part_is_fetched(home, tmp_path, monkeypatch):
    save_model(hub_model("llama"), tmp_path / "repo")
    place = home / "hub" / "models--someone--tiny-llama" / "snapshots" / COMMIT
    for lost, told in (("tokenizer.json", "no tokenizer.json"), ("model.safetensors", "no tokenizer.json and 1 more")):
        (place / lost).unlink()
        with pytest.raises(HubError, match=rf"has it only in part \({told}\)"):
            models.model_folder(Path(NAME))
    (place / "model.safetensors.index.json").write_text('{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}')
    (place / "two.safetensors").touch()
    with pytest.raises(HubError, match=r"\(no tokenizer.json and 1 more\)"):
        models.model_folder(Path(NAME))
    (place / "model.safetensors.index.json").write_text("{")
    with pytest.raises(HubError, match=r"a damaged model.safetensors.index.json"):
        models.model_folder(Path(NAME))
    (place / "model.safetensors.index.json").unlink()
    with hub({NAME: tmp_path / "repo"}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert Policy(NAME).model().shape.vocab_size == 112
    (place / "adapter_config.json").touch()
    assert hub_names.lacking(place) == "no adapter_model.safetensors"
    (place / "adapter_model.safetensors").touch()
    assert hub_names.lacking(place) == ""


def test_nothing_begins_without_its_model(home):
    with pytest.raises(HubError, match="model someone/else: it is not in the cache"):
        train(replace(named(), model=Folder("someone/else")), "run")
    assert not Path("run").exists()


def adapter_folder(home: Path, folder: Path, revision: str | None = None, base: str = NAME) -> Path:
    """An adapter alone, as PEFT writes it, whose base is a name."""
    model = hub_of(load_model(home / "hub" / "models--someone--tiny-llama" / "snapshots" / COMMIT)).with_adapter(LORA)
    trained = {name: tensor + 0.02 for name, tensor in model.adapter.tensors.items()}
    folder.mkdir(parents=True, exist_ok=True)
    write_adapter(model.with_trained(trained, LORA), folder, base=base)
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"revision": revision}))  # PEFT writes null where it knows none
    return folder


@pytest.mark.slow
def test_an_adapter_is_read_beside_a_base_that_the_cache_has(home, tmp_path):
    for revision in (None, "main", COMMIT):
        made = load_model(adapter_folder(home, tmp_path / "adapter", revision))
        assert made.adapter.settings == LORA and adapter_base.named_base(tmp_path / "adapter").revision == COMMIT
    with pytest.raises(
        HubError, match=rf"adapter_config.json names its base on the hub: model {NAME}@v2: it is not in the cache"
    ):
        load_model(adapter_folder(home, tmp_path / "adapter", "v2"))
    assert export(adapter_folder(home, tmp_path / "adapter"), tmp_path / "merged").reloaded.tensors > 10
    export(tmp_path / "adapter", tmp_path / "again", form="adapter")
    config = json.loads((tmp_path / "again" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["revision"]) == (NAME, COMMIT)
    assert f"{NAME}` at commit {COMMIT}" in (tmp_path / "again" / "README.md").read_text()
    save_model(hub_model("phi"), tmp_path / "adapter" / NAME)
    assert adapter_base.named_base(tmp_path / "adapter") is None, "folders come before names"


def test_the_base_of_an_adapter_is_fetched_or_said_to_be_missing(home, tmp_path, monkeypatch):
    folder = adapter_folder(home, tmp_path / "adapter")
    (home / "hub" / "models--someone--tiny-llama").rename(tmp_path / "away")
    repo = tmp_path / "away" / "snapshots" / COMMIT
    run = replace(named(), model=Folder(str(folder)))
    with monkeypatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        said = (
            rf"names its base on the hub: model {NAME}: it is not in the cache .*, and HF_HUB_OFFLINE says not to ask the hub; "
        )
        for use in (load_model, lambda f: export(f, "out"), lambda f: train(run, "run"), lambda f: Policy(f).model()):
            with pytest.raises(HubError, match=said):
                use(folder)
    assert not Path("run/run.toml").exists() and not Path("out").exists()
    with hub({NAME: repo}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert load_model(folder).adapter.settings == LORA and asked
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert train(run, "run").finished, "the cache has it now, and the folder is free"


def test_the_base_of_an_adapter_is_no_adapter(home, tmp_path, monkeypatch):
    folder = adapter_folder(home, tmp_path / "adapter", base="someone/other-adapter")
    with hub({"someone/other-adapter": adapter_folder(home, tmp_path / "other")}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(HubError, match=r"someone/other-adapter on http.* cannot be used: no config.json and 2 more"):
            load_model(folder)


@pytest.mark.slow
def test_a_run_goes_on_from_an_adapter_of_the_hub_and_names_no_wrong_base(home, tmp_path):
    adapter_folder(home, cached(home / "hub", "model", "someone/adapter"), COMMIT)
    assert train(replace(named(), model=Folder("someone/adapter")), "run").finished
    shutil.rmtree(home)
    assert resume("run", steps=2).step == 2, "its own copy of the start is what it goes on from"
    export("run", "out", form="adapter")
    assert Path(json.loads(Path("out/adapter_config.json").read_text())["base_model_name_or_path"]).is_dir()

"""Names on a hub: the cache first, then the hub, and one error that says why neither gives it."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest
from hub_server import COMMIT, cached, hub

from assay.core.errors import DataError, HubError, MissingExtraError
from assay.core.util.hub import HubName, fetch


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """An empty cache, and no hub."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    return tmp_path / "hf" / "hub"


def lacking(folder: Path) -> str:
    return "" if (folder / "a.json").is_file() else "no a.json"


def get(name: str, kind: str = "model") -> Path:
    found = HubName.read(name)
    assert found is not None
    return fetch(found, kind, ("*.json",), lacking).folder


def test_names():
    assert HubName.read("a/b") == HubName("a/b") and str(HubName.read("a/b@v1.0")) == "a/b@v1.0" and str(HubName("a/b")) == "a/b"
    assert HubName.read("a/b/c") is None and HubName.read("/a/b") is None and HubName.read("a/b@") is None
    assert HubName.read("hub:a/b") == HubName("a/b")
    assert HubName("a/b", "0" * 40).pinned and not HubName("a/b", "main").pinned


@pytest.mark.parametrize("name", ["a/b", "a/b@main", f"a/b@{COMMIT}"])
def test_what_the_cache_has_is_taken_without_asking(name, home, monkeypatch):
    (cached(home, "model", "a/b") / "a.json").write_text("{}")
    found = fetch(HubName.read(name), "model", ("*.json",), lacking)
    assert str(found.name) == f"a/b@{COMMIT}" and found.name.pinned
    assert found.folder == home / "models--a--b" / "snapshots" / COMMIT
    monkeypatch.setenv("HF_HUB_CACHE", str(home.parent / "other"))
    with pytest.raises(HubError, match=r"it is not in the cache .*other"):
        get(name)


@pytest.mark.parametrize("name", ["a/b", "a/b@main", f"a/b@{COMMIT}"])
def test_what_was_fetched_is_found_by_the_same_name_without_the_hub(name, home, tmp_path, monkeypatch):
    """In a cache that knew nothing of it before: the branch is kept with the files."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.json").write_text("{}")
    with hub({"a/b": tmp_path / "repo"}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        place = get(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert get(name) == place


def test_what_it_has_not_is_fetched_and_then_kept(home, tmp_path, monkeypatch):
    (tmp_path / "repo" / "sub").mkdir(parents=True)
    for name in ("a.json", "sub/b.json", "c.bin"):
        (tmp_path / "repo" / name).write_text("{}")
    cached(home, "model", "a/b")  # a part of it: nothing
    with hub({"a/b": tmp_path / "repo"}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        folder = get("a/b")
        assert folder.name == COMMIT and {p.name for p in folder.rglob("*.*")} == {"a.json", "b.json"}
        before = len(asked)
        assert get("a/b") == folder and len(asked) == before
        with pytest.raises(
            HubError, match=r"has no such revision of it; give a local folder .* hf download a/b --revision nowhere"
        ):
            get("a/b@nowhere")
        with pytest.raises(HubError, match=r"dataset a/b on http.* cannot be used: nothing like it; name another"):
            fetch(HubName("a/b"), "dataset", ("*.json",), lambda folder: "nothing like it")


TOLD = {
    "x/gated": r"accepted its terms.*hf auth login",
    "x/locked": r"asks for a token.*\(status 401\)",
    "x/forbidden": r"asks for a token.*\(status 403\)",
    "x/broken": r"fails \(status 500\)",
    "x/unknown": r"knows no such name, or it is private: check the spelling",
    "x/hang": r"does not answer within 1 s",
}


@pytest.mark.parametrize("name", TOLD)
def test_every_way_in_which_a_hub_fails_is_told(name, home, monkeypatch):
    with hub({}) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(HubError, match=TOLD[name]) as raised:
            get(name, "dataset")
    told = str(raised.value)
    assert isinstance(raised.value, DataError) and "\n" not in told
    for part in (
        f"dataset {name}: it is not in the cache {home}",
        address,
        "set HF_HOME",
        f"hf download --repo-type dataset {name}",
    ):
        assert part in told


def test_a_hub_out_of_reach_and_one_that_is_not_to_be_asked(home, monkeypatch):
    with pytest.raises(HubError, match=r"http://127\.0\.0\.1:9 cannot be reached \(.*refused"):
        get("a/b")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with hub({}) as (address, asked):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(HubError, match="HF_HUB_OFFLINE says not to ask"):
            get("a/b")
        cached(home, "model", "a/b")
        with pytest.raises(HubError, match=r"has it only in part \(no a\.json\)"):
            get("a/b")
        assert asked == []


def test_the_library_is_asked_for(home, monkeypatch):
    real = builtins.__import__

    def missing(name: str, *args: object, **options: object) -> object:
        if name == "huggingface_hub":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'assay-rl\[hub\]'"):
        get("a/b")


def test_without_settings_the_cache_is_the_librarys(home, monkeypatch):
    from huggingface_hub import constants

    for name in ("HF_HOME", "HF_ENDPOINT"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError, match=f"not in the cache {constants.HF_HUB_CACHE}"):
        get("a/b-that-nobody-has")

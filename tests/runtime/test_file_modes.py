"""Files that are written follow the user's umask, and a cache that cannot be written says what to set."""

import os
import stat
from pathlib import Path

import pytest

from assay.core.util.paths import share_files
from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model
from assay.runtime.compiled import build


@pytest.fixture(params=[0o022, 0o077, 0o027], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_saved_model_has_the_modes_that_the_umask_leaves(tmp_path, umask):
    save_model(init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0), tmp_path / "model")
    assert mode(tmp_path / "model") == 0o777 & ~umask
    found = {p.name: mode(p) for p in (tmp_path / "model").iterdir()}
    assert "model.safetensors" in found and set(found.values()) == {0o666 & ~umask}


def test_files_in_folders_are_shared_as_the_topmost_is(tmp_path, umask):
    (tmp_path / "top" / "below").mkdir(parents=True)
    (tmp_path / "top" / "below" / "file").touch(0o600)
    share_files(tmp_path / "top")
    assert mode(tmp_path / "top" / "below" / "file") == 0o666 & ~umask


def test_an_unwritable_cache_names_what_to_set(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.delenv("ASSAY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(build.BuildError, match="ASSAY_CACHE or XDG_CACHE_HOME"):
        build.build()


def test_the_home_of_caches(monkeypatch):
    from assay.core.util.paths import cache_folder

    monkeypatch.setenv("XDG_CACHE_HOME", "/a")
    monkeypatch.delenv("ASSAY_CACHE", raising=False)
    assert cache_folder() == Path("/a/assay")

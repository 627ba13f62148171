"""The compiled decode path: PyTorch's results, the same bits in any company, and nothing kept of rows that are over."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from engine_reference import request, run
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.errors import EngineError
from assay.core.manifest import manifest_of
from assay.runtime import DecoderShape, char_tokenizer, init_model
from assay.runtime.compiled import build as builds
from assay.runtime.compiled import decode_path
from assay.runtime.engine.native import NativeEngine
from assay.runtime.models.model import with_arrays

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def model_of(seed=0, *, scale=4.0, **sizes):
    """Random weights, large enough for peaked distributions."""
    tokenizer = char_tokenizer(LETTERS[: sizes.pop("letters", 36)])
    shape = DecoderShape(**{"vocab_size": tokenizer.size, "max_positions": 96, **sizes})
    model = init_model(shape, tokenizer, seed=seed)
    return with_arrays(model, {n: (t * scale if t.ndim > 1 else t).numpy() for n, t in model.tensors.items()})


def some(model, n=24, *, seed=3, longest=40, **sampling):
    rng = np.random.default_rng(seed)
    prompts = [rng.integers(2, model.shape.vocab_size, int(rng.integers(1, longest))) for _ in range(-(-n // 4))]
    return [request(i, prompts[i // 4], **{"max_new_tokens": 2 + i % 19, **sampling}) for i in range(n)]


def same(a, b):
    return a.ids.tobytes() == b.ids.tobytes() and a.logp_engine.tobytes() == b.logp_engine.tobytes()


# ---- results -----------------------------------------------------------------------------------------------------------------

SHAPES = st.fixed_dictionaries(
    {
        "hidden_size": st.integers(1, 70),
        "num_layers": st.integers(1, 3),
        "heads": st.sampled_from([(1, 1), (3, 3), (4, 2), (6, 1), (6, 3)]),
        "head_dim": st.sampled_from([2, 6, 8, 16, 20, 32]),
        "intermediate_size": st.integers(1, 80),
        "letters": st.integers(2, 36),
        "qk_norm": st.booleans(),
        "tied": st.booleans(),
        "rope_theta": st.sampled_from([1e4, 1e6]),
    }
)


@settings(max_examples=30)
@given(
    sizes=SHAPES,
    seed=st.integers(0, 99),
    kind=st.sampled_from([{}, {"temperature": 0.5, "top_k": 3}, {"top_p": 0.8}, {"temperature": 0.0}, {"min_p": 0.05}]),
)
def test_any_shape_gives_what_pytorch_gives(sizes, seed, kind):
    heads, kv_heads = sizes.pop("heads")
    model = model_of(seed, scale=2.0, num_heads=heads, num_kv_heads=kv_heads, **sizes)
    requests = some(model, 8, seed=seed, **kind)
    ours, torchs = (run(NativeEngine(model, kernel=c), requests) for c in (True, False))
    apart = 0
    for a, b in zip(ours, torchs, strict=True):
        n = next((i for i, (x, y) in enumerate(zip(a.ids, b.ids, strict=False)) if x != y), len(a.ids))
        apart += n < len(a.ids)  # a uniform on an edge: then the rows part
        assert np.abs(a.logp_engine[:n] - b.logp_engine[:n]).max(initial=0.0) < 3e-5
        assert np.abs(a.columns["entropy"].values[:n] - b.columns["entropy"].values[:n]).max(initial=0.0) < 1e-4
    assert apart <= 1
    rows = [np.concatenate([r.prompt, c.ids]).astype(np.int32) for r, c in zip(requests, ours, strict=True)]
    scores = [asyncio.run(NativeEngine(model, kernel=c).score(rows)) for c in (True, False)]
    assert max(np.abs(x - y).max() for x, y in zip(*scores, strict=True)) < 3e-5


@contextmanager
def rounded_factors():
    """PyTorch's products of what is left of both sides in bfloat16."""
    linear, addmm = torch.nn.functional.linear, torch.addmm

    def left(x):
        return x.to(torch.bfloat16).float()

    with (
        patch.object(torch.nn.functional, "linear", lambda x, w: linear(left(x), left(w))),
        patch.object(torch, "addmm", lambda y, x, w: addmm(y, left(x), left(w))),
    ):
        yield


@settings(max_examples=30)
@given(sizes=SHAPES, seed=st.integers(0, 99), letters=st.integers(10, 36))
def test_products_of_bfloat16_are_those_of_rounded_factors(sizes, seed, letters):
    """But for factors so near to the middle between two numbers that sums in another order go to the other one: rows are short
    and of many kinds, so that half of them have none.
    """
    heads, kv_heads = sizes.pop("heads")
    model = model_of(seed, scale=2.0, num_heads=heads, num_kv_heads=kv_heads, **sizes | {"letters": letters})
    rows = list(np.random.default_rng(seed).integers(2, model.shape.vocab_size, (200, 3)).astype(np.int32))
    ours, theirs = (NativeEngine(model, dtype="bfloat16", kernel=c) for c in (True, False))
    with rounded_factors():
        wanted = np.concatenate(asyncio.run(theirs.score(rows)))
    gaps = np.abs(np.concatenate(asyncio.run(ours.score(rows))) - wanted)
    assert np.median(gaps) < 3e-5
    assert gaps.max() < 0.1


@pytest.fixture(scope="module")
def model():
    return model_of(1, num_heads=4, num_kv_heads=2, head_dim=16, hidden_size=48, intermediate_size=80, num_layers=2)


def alone(model, requests, **kind):
    """Each request by itself."""
    return [run(NativeEngine(model, **kind), [r])[0] for r in requests]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bits_do_not_depend_on_company_order_width_or_threads(model, dtype):
    requests = some(model, 32)
    wanted = alone(model, requests, dtype=dtype)
    for width in (1, 5, 512):
        assert all(map(same, wanted, run(NativeEngine(model, max_batch=width, dtype=dtype), requests)))
    assert all(map(same, wanted, reversed(run(NativeEngine(model, dtype=dtype), list(reversed(requests))))))
    for threads in (2, 3, 7):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            assert all(map(same, wanted, run(NativeEngine(model, dtype=dtype), requests)))
        finally:
            torch.set_num_threads(before)


def test_bits_do_not_depend_on_how_far_rows_go_between_two_looks(model, monkeypatch):
    requests = some(model, 24, stop_ids=(7,))
    wanted = run(NativeEngine(model), requests)
    for tokens in (1, 3):
        monkeypatch.setattr(decode_path, "TOKENS", tokens)
        assert all(map(same, wanted, run(NativeEngine(model), requests)))


def test_scores_of_rows_longer_than_a_block(model):
    rng = np.random.default_rng(0)
    rows = [rng.integers(2, model.shape.vocab_size, n).astype(np.int32) for n in (96, 1, 0, 50, 24, 25, 2)]
    ours, theirs = (asyncio.run(NativeEngine(model, kernel=c).score(rows)) for c in (True, False))
    assert [len(x) for x in ours] == [96, 1, 0, 50, 24, 25, 2]
    for a, b in zip(ours, theirs, strict=True):
        assert np.abs(a - b).max(initial=0.0) < 3e-5


def test_bfloat16_samples_nearly_what_float32_does(model):
    """From the same weights: apart by what eight bits leave, and not at all the same."""
    rows = [np.append(r.prompt, r.prompt[::-1]).astype(np.int32) for r in some(model, 24)]
    full, half = (np.concatenate(asyncio.run(NativeEngine(model, dtype=d).score(rows))) for d in ("float32", "bfloat16"))
    gap = np.abs(full - half)
    assert 1e-4 < gap.mean() < 3e-2


# ---- faults ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["self_attn.q_proj", "self_attn.k_norm", "mlp.down_proj"])
def test_weights_that_are_not_finite_are_an_error(model, name, value):
    """Also where they would vanish in a softmax."""
    key = f"model.layers.0.{name}.weight"
    tensors = {n: t.numpy().copy() for n, t in model.tensors.items()}
    tensors[key].flat[0] = value
    with pytest.raises(EngineError, match="not finite"):
        run(NativeEngine(with_arrays(model, tensors)), some(model, 4))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_swapped_weights_are_packed_and_read_back(model, dtype):
    engine, other = (
        NativeEngine(model, dtype=dtype),
        model_of(
            5,
            **{
                f: getattr(model.shape, f)
                for f in (
                    "num_heads",
                    "num_kv_heads",
                    "head_dim",
                    "hidden_size",
                    "intermediate_size",
                    "num_layers",
                )
            },
        ),
    )
    manifest = manifest_of(1, {n: t.numpy() for n, t in other.tensors.items()}).round_to(dtype)
    asyncio.run(engine.swap(manifest))
    found = asyncio.run(engine.checksums())
    assert {n: found[n] for n in manifest.tensors} == {n: t.digest for n, t in manifest.tensors.items()}
    assert all(map(same, run(engine, some(model, 8)), run(NativeEngine(other, dtype=dtype), some(other, 8))))


def test_nothing_is_kept_of_rows_that_are_over(model):
    engine = NativeEngine(model)
    run(engine, some(model, 40))
    asyncio.run(engine.score([np.arange(2, 30, dtype=np.int32)]))
    runner = engine._runner
    held = runner.pages()
    for seed in range(3):
        run(engine, some(model, 40, seed=seed))
    assert runner.pages()[0] == held[0] == 0  # in use
    assert runner.pages()[1] <= held[1] * 2  # there


def clear():
    """Forgets what was built, and that somebody was warned."""
    builds._load_library.cache_clear()
    builds._warn.cache_clear()


# ---- building ----------------------------------------------------------------------------------------------------------------


def test_without_a_compiler_pytorch_decodes_and_one_warning_says_so(model, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    clear()
    try:
        with pytest.warns(RuntimeWarning, match="no C\\+\\+ compiler .*; install g\\+\\+") as told:
            engines = [NativeEngine(model), NativeEngine(model)]
        assert len(told) == 1
    finally:
        clear()
    assert all(map(same, *(run(e, some(model, 8)) for e in engines)))


def test_a_failing_compiler_is_quoted(monkeypatch, tmp_path):
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 1 && exit 0\necho 'no such flag' >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(builds.BuildError, match=r"broken ended with 3 on decode\.cpp, train\.cpp, .*: no such flag"):
        builds.build(tmp_path)
    assert not list(tmp_path.glob("*.so"))


@pytest.fixture
def copying(tmp_path, monkeypatch):
    """A compiler that writes down each call and gives what was built before."""
    made = builds.build()
    compiler, calls = tmp_path / "copying", tmp_path / "calls"
    compiler.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit 0\necho call >> {calls}\nsleep 0.1\n'
        f'for last; do :; done\nexec cp {made._name} "$last"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return lambda: len(calls.read_text().splitlines())


def test_of_several_that_begin_together_one_compiles(copying, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: builds.build(tmp_path / "kept"), range(4)))
    assert copying() == 1
    assert len({library._name for library in found}) == 1


def test_a_library_damaged_in_the_cache_is_made_anew(copying, tmp_path):
    made = Path(builds.build(tmp_path / "kept")._name)
    for n, damaged in enumerate((made.read_bytes()[:5000], b"", b"\x7fELF" + made.read_bytes()[5:])):
        other = tmp_path / str(n)
        other.mkdir()
        (other / made.name).write_bytes(damaged)
        assert hasattr(builds.build(other), "assay_engine")
        assert copying() == 2 + n
        assert [f.name for f in other.glob("*.so")] == [made.name]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(builds.BuildError, match="name another folder by ASSAY_CACHE"):
        builds.build(tmp_path / "file" / "kernels")


def test_flags_name_another_library(monkeypatch):
    plain = builds.decoder_identity()
    monkeypatch.setenv("ASSAY_CXXFLAGS", "-O1 -march=x86-64-v3")
    assert builds.decoder_identity() not in {plain, "PyTorch"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names instruction sets of x86-64")
@pytest.mark.parametrize(
    "level",
    [
        pytest.param("x86-64-v3", marks=pytest.mark.prove),
        pytest.param("x86-64-v2", marks=pytest.mark.evidence),  # processors without AVX2
    ],
)
def test_other_instruction_sets_give_the_same_up_to_rounding(model, tmp_path, monkeypatch, level):
    """AVX2 and what any processor of the kind has, by the compiler's flag; bits stay independent of company on each."""
    wanted = run(NativeEngine(model), some(model, 16))
    monkeypatch.setenv("ASSAY_CXXFLAGS", f"-march={level}")
    library = builds.build(tmp_path)
    monkeypatch.setattr(builds, "kernel", lambda: library)
    found = run(NativeEngine(model), some(model, 16))
    equal = [a.ids.tolist() == b.ids.tolist() for a, b in zip(wanted, found, strict=True)]
    assert sum(equal) >= 15  # but for a uniform on an edge
    for a, b in zip(wanted, found, strict=True):
        if a.ids.tolist() == b.ids.tolist():
            assert np.abs(a.logp_engine - b.logp_engine).max() < 3e-5
    assert all(map(same, found, alone(model, some(model, 16))))
    rows = [np.append(r.prompt, r.prompt[::-1]).astype(np.int32) for r in some(model, 16)]
    with rounded_factors():
        half = np.concatenate(asyncio.run(NativeEngine(model, dtype="bfloat16", kernel=False).score(rows)))
    gaps = np.abs(np.concatenate(asyncio.run(NativeEngine(model, dtype="bfloat16").score(rows))) - half)
    assert np.median(gaps) < 3e-5


@pytest.mark.parametrize(
    ("library", "kinds"),
    [
        pytest.param("libasan.so", "address,undefined", marks=pytest.mark.prove),
        pytest.param("libtsan.so", "thread", marks=pytest.mark.evidence),
    ],
)
def test_under_sanitizers(tmp_path, library, kinds):
    """Tests of this file, of the training passes, the head and optimisers, with every access to memory looked at."""
    compiler = builds.compiler()
    runtime = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip(f"{compiler} has no {library}")
    environment = {
        **os.environ,
        "ASSAY_CXXFLAGS": f"-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize={kinds}",
        "ASSAY_CACHE": str(tmp_path),
        "LD_PRELOAD": runtime,
        "PYTHONMALLOC": "malloc",
        "OMP_NUM_THREADS": "1",
        "ASAN_OPTIONS": f"detect_leaks=0 log_path={tmp_path / 'found'}",
        "TSAN_OPTIONS": f"halt_on_error=1 exitcode=66 log_path={tmp_path / 'found'} suppressions={tmp_path / 'known'}",
    }
    # memory of threads' own variables that the C library hands from one of OpenMP's threads to the next, unseen by the sanitizer
    (tmp_path / "known").write_text("race:_dl_deallocate_tls\n")
    here = Path(__file__)
    chosen = [
        f"{here}::{name}"
        for name in (
            "test_bits_do_not_depend_on_company_order_width_or_threads",
            "test_scores_of_rows_longer_than_a_block",
            "test_swapped_weights_are_packed_and_read_back",
            "test_nothing_is_kept_of_rows_that_are_over",
        )
    ]
    chosen += [
        f"{here.with_name('test_compiled_training.py')}::{name}"
        for name in (
            "test_bits_do_not_depend_on_threads",
            "test_states_do_not_depend_on_the_other_rows",
            "test_long_rows_stand_by_themselves",
            "test_what_rows_begin_with_is_computed_once",
        )
    ]
    chosen += [
        f"{here.with_name('test_compiled_muon.py')}::{name}"
        for name in (
            "test_bits_do_not_depend_on_threads",
            "test_either_path_goes_on_from_the_others_state",
        )
    ]
    chosen += [f"{here.with_name('test_compiled_adamw.py')}::test_bits_do_not_depend_on_threads"]
    chosen += [
        f"{here.with_name('test_compiled_head.py')}::{name}"
        for name in (
            "test_bits_do_not_depend_on_threads",
            "test_positions_do_not_depend_on_the_others",
            "test_no_positions_are_no_numbers",
        )
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=here.parents[2])
    found = "".join(file.read_text(errors="replace") for file in tmp_path.glob("found.*"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:] + found[-5000:]
    assert "17 passed" in done.stdout

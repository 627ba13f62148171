import json
from dataclasses import replace

import numpy as np
import pytest
from learner_cases import SHAPE, Weighted, random_batch, small_model
from safetensors.numpy import load_file, save_file

from assay.core.errors import CheckpointError
from assay.core.plan import Plan
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.settings import AdamW, LearnerSettings, Muon

FILES = ["anchors.safetensors", "learner.json", "optimizer.safetensors", "weights.safetensors"]
ADAMW, MUON = LearnerSettings(micro_tokens=80), LearnerSettings(optimizer=Muon(), micro_tokens=80)


def learner(settings=ADAMW, *, shape=SHAPE, seed=0):
    return TorchLearner(small_model(shape, seed), settings, total_steps=100)


def trained(settings, steps=3):
    made = learner(settings)
    for seed in range(steps):
        made.step(random_batch(seed=seed), Plan(), Weighted())
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [ADAMW, MUON, replace(ADAMW, precision="bf16"), replace(ADAMW, optimizer=AdamW(weight_decay=0.1))]
)
@pytest.mark.parametrize("steps", [0, 3])
def test_a_fresh_learner_continues_bit_for_bit(settings, steps, tmp_path):
    first = trained(settings, steps)
    first.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == FILES
    second = learner(settings, seed=9)  # other weights and anchors until it loads
    assert second.state_digest() != first.state_digest()
    second.load(tmp_path)
    assert second.version == steps
    assert second.state_digest() == first.state_digest()
    for seed in range(5, 8):
        a, b = (x.step(random_batch(seed=seed), Plan(), Weighted()).metrics for x in (first, second))
        assert {k: v for k, v in a.items() if "time/" not in k} == {k: v for k, v in b.items() if "time/" not in k}
    assert second.state_digest() == first.state_digest()
    assert second.publish() == first.publish()


def test_saving_twice_writes_the_same_bytes(tmp_path):
    made = trained(MUON)
    contents = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.save(tmp_path / name)
        contents.append([(tmp_path / name / f).read_bytes() for f in FILES])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: learner(MUON), "optimizer is 'AdamW' there and 'Muon' here"),
        (lambda: learner(replace(ADAMW, anchors=())), r"anchors is \['ref'\] there and \[\] here"),
        (lambda: learner(shape=replace(SHAPE, num_layers=1)), "shape is"),
        (lambda: learner(shape=replace(SHAPE, rope_theta=5.0)), "shape is"),
    ],
)
def test_a_checkpoint_of_another_learner_is_refused(other, message, tmp_path):
    trained(ADAMW).save(tmp_path)
    stranger = other()
    before = stranger.state_digest()
    with pytest.raises(CheckpointError, match=message):
        stranger.load(tmp_path)
    assert stranger.state_digest() == before


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "optimizer.safetensors").unlink(), "optimizer.safetensors is missing"),
        (lambda f: (f / "learner.json").unlink(), "learner.json is missing"),
        (lambda f: (f / "learner.json").write_text("{"), "learner.json is damaged"),
        (lambda f: (f / "learner.json").write_text("[1]"), "learner.json is damaged"),
        (lambda f: (f / "learner.json").write_bytes(b"\xff\xfe\x00"), "learner.json is damaged"),
        (lambda f: flip(f / "weights.safetensors"), "weights.safetensors is damaged"),
    ],
)
def test_damage_is_named_and_changes_nothing(damage, message, tmp_path):
    trained(ADAMW).save(tmp_path)
    damage(tmp_path)
    made = learner()
    before = made.state_digest()
    with pytest.raises(CheckpointError, match=message):
        made.load(tmp_path)
    assert made.state_digest() == before


def redigest(folder, name):
    """Makes learner.json vouch for a changed tensor file."""
    import hashlib

    facts = json.loads((folder / "learner.json").read_text())
    facts["digests"][name] = hashlib.blake2b((folder / f"{name}.safetensors").read_bytes(), digest_size=16).hexdigest()
    (folder / "learner.json").write_text(json.dumps(facts))


@pytest.mark.parametrize("part", ["weights", "optimizer", "anchors"])
@pytest.mark.parametrize("how", ["missing", "unknown", "shape", "dtype"])
def test_foreign_tensors_are_refused_even_with_a_matching_digest(part, how, tmp_path):
    trained(ADAMW).save(tmp_path)
    path = tmp_path / f"{part}.safetensors"
    tensors = load_file(path)
    name = next(n for n in sorted(tensors) if "norm" in n)
    if how == "missing":
        del tensors[name]
    elif how == "unknown":
        tensors["stranger"] = np.zeros(2, np.float32)
    else:
        tensors[name] = np.zeros(3, np.float32) if how == "shape" else tensors[name].astype(np.float64)
    save_file(tensors, path)
    redigest(tmp_path, part)
    made = learner()
    before = made.state_digest()
    with pytest.raises(CheckpointError, match="stranger" if how == "unknown" else name):
        made.load(tmp_path)
    assert made.state_digest() == before


def test_a_file_that_is_no_safetensors_is_refused(tmp_path):
    trained(ADAMW).save(tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"nonsense")
    redigest(tmp_path, "weights")
    with pytest.raises(CheckpointError, match=r"weights.safetensors is no safetensors file"):
        learner().load(tmp_path)


def test_a_checkpoint_that_says_nothing_of_gradients_is_read(tmp_path):
    first = trained(ADAMW)
    first.save(tmp_path)
    path = tmp_path / "learner.json"
    facts = json.loads(path.read_text())
    assert facts["gradients"] == {"steps": 3, "silent": []}
    del facts["gradients"]
    path.write_text(json.dumps(facts))
    second = learner(ADAMW, seed=9)
    second.load(tmp_path)
    assert second.state_digest() == first.state_digest()

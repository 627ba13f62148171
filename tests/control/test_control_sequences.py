"""Sequences: segments, splices, causal masks, returns that are asked for; and runs with memory that are killed."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_control_runs import killed, run_of, small

from assay.core import ConfigError, derive
from assay_control import (
    MBPO,
    MOORL,
    MOPO,
    ActForReturn,
    ControlRun,
    DecisionTransformer,
    Episode,
    MultiObjectiveDT,
    Noise,
    Pendulum,
    Segments,
    SequenceClone,
    SequenceNet,
    Session,
    dataset,
    resume,
    train,
    transitions,
)
from assay_control.parts.transformer import Transformer
from assay_control.records import WorldStep
from assay_control.testing import check_method, check_source


def walk(places: list[float], rewards: list[float]) -> Episode:
    n = len(rewards)
    return Episode(
        observations=np.array(places, np.float32)[:, None],
        actions=np.zeros((n, 1), np.float32),
        rewards=np.array(rewards, np.float32),
        terminated=np.zeros(n, bool),
        truncated=np.arange(n) == n - 1,
    )


def test_segments_are_pieces_of_one_episode() -> None:
    data = transitions(dataset("pendulum/random").cached(), 1.0)
    for source in (Segments(batch=16, context=7), Segments(batch=16, context=7, by="return"), Segments(batch=16, stitch=0.5)):
        check_source(source, data)
    batch = Segments(batch=32, context=7).open(data, None, 0).draw(0)
    index, real = batch.index.numpy(), batch.columns["real"].numpy()
    assert index.shape == (32, 7) and all(len(set(data.episode[i][r])) == 1 for i, r in zip(index, real, strict=True))
    inside = real[:, :-1] & real[:, 1:]
    follows = (batch.to_go[:, :-1] - batch.reward[:, :-1] - batch.to_go[:, 1:]).numpy()
    assert np.abs(follows[inside]).max() < 1e-2, "R_{t+1} = R_t - r_t"
    with pytest.raises(ConfigError):
        Segments(stitch=2.0)
    with pytest.raises(ConfigError, match="has none"):
        Segments().open(None, None, 0)


def test_splices_join_what_was_never_walked_as_a_whole() -> None:
    """A to X, and X to B: with ``stitch`` 1 some segment goes from A to B, with 0 none does; and its return is B's."""
    data = transitions([walk([0, 1, 2, 3], [0, 0, 0]), walk([9, 2, 5, 6], [0, 0, 1])], 1.0)
    never, often = (Segments(batch=200, context=6, stitch=s, cells=4).open(data, None, 0).draw(0) for s in (0.0, 1.0))

    def goes(batch: Any) -> tuple[bool, float]:
        found, value = False, 0.0
        for seen, to_go, real in zip(batch.observation[..., 0], batch.to_go, batch.columns["real"], strict=True):
            places = seen[real].tolist()
            if 0.0 in places and 5.0 in places:
                found, value = True, float(to_go[0])
        return found, value

    assert goes(never) == (False, 0.0) and goes(often) == (True, 1.0)
    plain = Segments(batch=200, context=6, stitch=0.0, cells=9).open(data, None, 0).draw(0)
    assert torch.equal(never.index, plain.index) and torch.equal(never.to_go, plain.to_go)


def net_of(**changes: Any) -> Transformer:
    return SequenceNet(**{"width": 8, "layers": 2, "context": 5, **changes}).build(2, 1, False, 0, "pi")


def test_an_action_is_blind_to_what_comes_later() -> None:
    net = net_of()
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(3, 5, generator=generator)] + [torch.randn(3, 5, n, generator=generator) for n in (2, 1)]
    real = torch.ones(3, 5, dtype=torch.bool)
    at, _ = net.read(*given, real)
    changed = [x.clone() for x in given]
    for x in changed:
        x[:, 3:] += 1.0
    changed[2][:, 2] += 1.0  # the action at step 2 itself
    other, _ = net.read(*changed, real)
    assert torch.allclose(at[:, :3], other[:, :3], atol=1e-6) and not torch.allclose(at[:, 3], other[:, 3])
    padded, _ = net.read(*given, torch.arange(5).expand(3, 5) >= 2)
    poison = [x.clone() for x in given]
    for x in poison:
        x[:, :2] = 99.0
    again, _ = net.read(*poison, torch.arange(5).expand(3, 5) >= 2)
    assert torch.allclose(padded[:, 2:], again[:, 2:], atol=1e-5), "what was filled in is not read"
    for wrong in ({"heads": 3}, {"layers": 0}, {"lr": 0.0}):
        with pytest.raises(ConfigError):
            SequenceNet(**wrong)


def test_the_return_that_is_asked_for_falls_by_what_was_got() -> None:
    """``ActForReturn``: 10 asked, 3 and 2 got, reward factor .5: 5, 3.5, 2.5; and a done episode begins anew."""
    session = Session(ControlRun(method=small("dt"), data=dataset("pendulum/random")))
    memory = ActForReturn(wanted=10.0, reward=0.5).begin(session.nets, 2, None)
    seen: list[list[float]] = []
    for gained, done in ((3.0, False), (2.0, True), (0.0, False)):
        memory.act(torch.zeros(2, 3))
        seen.append(memory._to_go[0].tolist())  # type: ignore[attr-defined]
        memory.observe(np.zeros((2, 1)), np.array([gained, gained]), np.array([done, False]))
    assert seen[-1][:3] == [5.0, 3.5, 5.0] and memory._length.tolist() == [1, 3]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="give a number"):
        ActForReturn().begin(session.nets, 1, None)


def test_acting_in_steps_is_reading_the_whole() -> None:
    session = Session(ControlRun(method=DecisionTransformer(width=8, context=4, wanted=0.0), data=dataset("pendulum/random")))
    player, net = session.player(1), session.nets["pi"]
    assert isinstance(net, Transformer)
    observed = np.random.default_rng(0).normal(size=(3, 1, 3))
    acted = []
    for o in observed:
        acted.append(player(o))
        still = np.zeros(1, bool)
        step = WorldStep(observation=o, reward=np.zeros(1), cost=np.zeros(1), terminated=still, truncated=still)
        player.observe(step)
    seen = torch.from_numpy(np.stack([session.scale_observation(o) for o in observed], 1))
    done = torch.from_numpy(np.stack(acted, 1))
    at, _ = net.read(torch.zeros(1, 3), seen, done, torch.ones(1, 3, dtype=torch.bool))
    assert torch.allclose(net.act(at)[0], torch.from_numpy(np.stack(acted, 1))[0], atol=1e-5)


def test_a_transformer_without_forecasts_is_the_plain_one() -> None:
    """MODT with weights of 0 is the decision transformer, bit for bit; with weights it also learns what follows."""
    from assay_control.run_folders import state_digest

    def digest(method: Any) -> str:
        session = Session(ControlRun(method=method, data=dataset("pendulum/random")))
        for _ in range(3):
            session.update({})
        return state_digest(session)

    common = {"width": 8, "batch": 8, "context": 4}
    plain = digest(DecisionTransformer(**common))
    assert plain == digest(MultiObjectiveDT(**common, states=0.0, returns=0.0)) != digest(MultiObjectiveDT(**common))
    session = Session(ControlRun(method=MultiObjectiveDT(**common), data=dataset("pendulum/random")))
    rows, log = session.drawer.draw(0), {}
    loss = SequenceClone(states=0.5, returns=0.5)(rows, session.nets, None, Noise(0, 0), log)
    parts = [float(log[n]) for n in ("pi/clone", "pi/next", "pi/return")]
    assert float(loss.detach()) == pytest.approx(parts[0] + 0.5 * parts[1] + 0.5 * parts[2], rel=1e-5)
    with pytest.raises(ConfigError):
        SequenceClone(states=-1.0)


def test_sequences_of_choices_keep_the_laws(tmp_path: Path) -> None:
    check_method(small("dt"), ControlRun(method=small("dt"), data=dataset("cart-pole/expert")))
    run = run_of("dt", data=dataset("cart-pole/expert"), steps=6, evaluate_every=6)
    assert train(run, tmp_path / "run").metrics["eval/return"] > 0


KINDS = {
    "dt": ControlRun(
        method=DecisionTransformer(width=16, layers=1, batch=8, context=4), data=dataset("maze/stitched"), steps=300
    ),
    "mopo": ControlRun(method=MOPO(width=16, model=100, members=2), data=dataset("pendulum/mixed"), steps=300),
    "mbpo": ControlRun(method=MBPO(width=16, start=50, members=2), world=Pendulum(), steps=300),
    "moorl": ControlRun(method=MOORL(width=16, start=50), data=dataset("pendulum/mixed"), world=Pendulum(), steps=300),
}


@pytest.mark.evidence
@pytest.mark.parametrize("name", list(KINDS))
def test_kills_of_methods_with_more_state_end_with_equal_bits(name: str, tmp_path: Path) -> None:
    """25 kills of each of four kinds: transformers, models, imagined rows, meta parameters."""
    run = dataclasses.replace(KINDS[name], evaluate_every=100, checkpoint_every=10, log_every=20, episodes=2)
    whole = train(run, tmp_path / "whole")
    folder = tmp_path / "killed"
    for number in range(25):
        assert killed(folder, 5 + derive("test/kill", 0, name, number) % 12, run) == signal.SIGKILL
    assert resume(folder).digest == whole.digest
    assert (tmp_path / "whole" / "metrics.jsonl").read_text() == (folder / "metrics.jsonl").read_text()

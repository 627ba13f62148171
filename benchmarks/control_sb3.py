"""SAC, TD3 and PPO of assay beside those of Stable-Baselines3, in assay's worlds at equal steps and sizes.

    pip install stable-baselines3 gymnasium --no-deps && python benchmarks/control_sb3.py --seeds 1

Both have two hidden layers of 64, batches of 128, lr 1e-3, a discount of .99, averages at .02 and 500 random steps first (PPO: 8
copies, 128 steps a round, 10 passes of 8 batches, lr 1e-3). Policies of both are evaluated by assay, in the same 20 episodes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay_control import PPO, SAC, TD3, ControlRun, evaluate_policy, normalise_return, references, train, world

STEPS = {"sac": 2000, "td3": 2000, "ppo": 20_480}
PLACES = ("pendulum", "motor", "die")


def as_gym(name: str, seed: int) -> Any:
    """The world as an environment of Gymnasium."""
    gym = importlib.import_module("gymnasium")

    class Wrapped(gym.Env):  # type: ignore[name-defined,misc]
        """One copy of a world."""

        def __init__(self) -> None:
            self.world: Any = world(name)
            self.observation_space = gym.spaces.Box(-np.inf, np.inf, (self.world.observation_size,), np.float64)
            self.action_space = gym.spaces.Box(-1.0, 1.0, (self.world.actions.size,), np.float32)
            self.number = 10_000 * (seed + 1)
            self.running: Any = None

        def seeds(self, count: int) -> Any:
            self.number += count
            # spread over 64 bits, as seeds of collection are
            return (np.arange(count, dtype=np.uint64) + np.uint64(self.number)) * np.uint64(0x9E3779B97F4A7C15)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            self.running = self.world.open(1, self.seeds)
            return self.running.observation[0], {}

        def step(self, action: Any) -> Any:
            s = self.running.step(np.asarray(action, np.float64)[None])
            return s.observation[0], float(s.reward[0]), bool(s.terminated[0]), bool(s.truncated[0]), {}

    return Wrapped()


def peer(kind: str, name: str, seed: int) -> Any:
    """The policy of Stable-Baselines3 after its steps, as a function of observations."""
    sb3 = importlib.import_module("stable_baselines3")
    vec = importlib.import_module("stable_baselines3.common.vec_env")
    layers = {"net_arch": [64, 64]}
    if kind == "ppo":
        envs = vec.DummyVecEnv([lambda i=i: as_gym(name, seed * 100 + i) for i in range(8)])
        model = sb3.PPO("MlpPolicy", envs, n_steps=128, batch_size=128, n_epochs=10, learning_rate=1e-3, seed=seed, device="cpu")
    else:
        made = {"sac": sb3.SAC, "td3": sb3.TD3}[kind]
        common = {"policy_kwargs": layers, "batch_size": 128, "learning_rate": 1e-3, "tau": 0.02, "learning_starts": 500}
        noise = importlib.import_module("stable_baselines3.common.noise")
        if kind == "td3":
            place: Any = world(name)
            size = int(place.actions.size)
            common["action_noise"] = noise.NormalActionNoise(np.zeros(size), 0.1 * np.ones(size))
        model = made("MlpPolicy", as_gym(name, seed), train_freq=1, seed=seed, device="cpu", **common)
    model.learn(STEPS[kind])

    def act(observation: Any) -> Any:
        return model.predict(observation, deterministic=True)[0]

    return act


def own(kind: str, name: str, seed: int) -> Any:
    """The policy of assay after as many steps."""
    method: Any = {"sac": SAC(), "td3": TD3(), "ppo": PPO()}[kind]
    steps = STEPS[kind] // 1024 if kind == "ppo" else STEPS[kind]
    run = ControlRun(
        method=method, world=world(name), steps=steps, seed=seed, evaluate_every=0, episodes=1, checkpoint_every=10**6
    )
    from assay_control import load_session

    with tempfile.TemporaryDirectory() as folder:
        train(run, Path(folder) / "run")
        return load_session(Path(folder) / "run").act


def main() -> None:
    """Prints a row for each world, method and library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--worlds", nargs="*", default=list(PLACES))
    parser.add_argument("--methods", nargs="*", default=list(STEPS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.worlds:
        place, known = world(name), references(world(name))
        assert known is not None
        for kind in given.methods:
            for seed in range(given.seeds):
                for library, make in (("assay", own), ("stable-baselines3", peer)):
                    begun = time.process_time()
                    act = make(kind, name, seed)
                    spent = time.process_time() - begun
                    mean = float(evaluate_policy(place, act, 20, seed).returns.mean())
                    row = {"world": name, "method": kind, "seed": seed, "library": library, "return": round(mean, 2)}
                    print(
                        json.dumps({**row, "score": round(normalise_return(mean, known), 1), "cpu": round(spent, 1)}), flush=True
                    )


if __name__ == "__main__":
    main()

"""The state of a run: networks, rows, copies of the world, counters; and what is done to them in a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import ConfigError, NonFiniteError, generator
from assay.core.seeds import derive_each
from assay_control.data.behaviours import random_actions
from assay_control.lazy_torch import to_tensor, torch
from assay_control.parts.base import Log, Noise, Phase
from assay_control.parts.buffer import Buffer
from assay_control.parts.nets import Nets
from assay_control.records import Array, Transitions, WorldStep
from assay_control.run import ControlRun

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["PolicyPlayer", "Session"]


class PolicyPlayer:
    """A policy that plays episodes without noise, with the memory that its method needs.

    Args:
        session: whose networks act.
        count: of episodes beside each other.
    """

    def __init__(self, session: Session, count: int) -> None:
        self._session, actor = session, session.method.actor
        self._memory = actor.begin(session.nets, count, session.learned) if actor is not None else None
        self._action: Array = np.zeros(0)

    def __call__(self, observation: Array) -> Array:
        """``[n, A]`` or ``[n]`` actions for raw observations."""
        with torch.no_grad():
            seen = to_tensor(self._session.scale_observation(observation))
            made = self._session.nets.mean(seen) if self._memory is None else self._memory.act(seen)
            self._action = made.numpy()
        return self._action

    def observe(self, step: WorldStep) -> None:
        """Is told what came of the last actions."""
        if self._memory is not None:
            with torch.no_grad():
                self._memory.observe(self._action, step.reward, step.done)


class Session:
    """A run in memory.

    Args:
        run: its settings.

    Raises:
        ConfigError: the method does not suit the world, or needs rows that are not there.
    """

    def __init__(self, run: ControlRun) -> None:
        self.run, self.method = run, run.method.compose()
        world = run.acted_in
        self.step = self.updates = self.acted = self.started = 0
        self.data = run.data.rows(self.method.discount) if run.data is not None else None
        self.shift, self.factor = self._scaling()
        self.nets = Nets(self.method, world.observation_size, world.actions, run.seed)
        outer = self.method.reptile.nets if self.method.reptile is not None else ()
        self.meta: dict[str, Tensor] = {name: self.nets[name].flat.detach().clone() for name in outer}
        self.buffer = self.running = None
        if self.method.explorer is not None:
            rows = min(self.method.capacity, max(run.steps, 1) * self._most_collected() * self.method.copies)
            extra = ("log_prob",) if getattr(self.method.explorer, "columns", False) else ()
            self.buffer = Buffer(rows, world.observation_size, world.actions, extra)
            self.running = world.open(self.method.copies, self._seeds)
        self.learned = self._prepare_data(self.data) if self.data is not None else None
        self.drawer = self.method.source.open(self.learned, self.buffer, run.seed)

    # ---- a step ------------------------------------------------------------------------------------------------------

    def collect(self, phase: Phase) -> Mapping[str, float]:
        """Acts in the world and puts the rows into the buffer; what it learns of the rewards."""
        explorer, buffer, running = self.method.explorer, self.buffer, self.running
        if explorer is None or buffer is None or running is None:
            raise ConfigError(f"{type(self.run.method).__name__} collects, so its composition needs an explorer")
        if getattr(self.method.schedule, "epochs", 0):
            buffer.clear()  # a round learns from its own rows alone
        total = 0.0
        for _ in range(phase.collect):
            seen = running.observation
            actions, columns = self._act(seen, phase.random)
            step = running.step(actions)
            total += float(step.reward.mean())
            buffer.put(
                observation=self.scale_observation(seen),
                action=actions,
                reward=step.reward * self.method.reward[0] + self.method.reward[1],
                next_observation=self.scale_observation(step.observation),
                terminal=step.terminated,
                done=step.done,
                **columns,
            )
            self.acted += 1
        self.drawer.prepare(self.nets, self.method.discount)
        return {"collect/reward": total / phase.collect}

    def update(self, log: Log | None) -> None:
        """One batch: each part in its turn, then the averaged copies.

        Raises:
            NonFiniteError: a loss is not finite; names the network.
        """
        plain, noise = self.drawer.draw(self.updates), Noise(self.run.seed, self.updates)
        transform = self.method.transform
        made = transform(plain, self.nets, noise, self.updates) if transform is not None else plain
        for part in self.method.updates:
            if not part.has_turn(self.updates):
                continue
            rows = made if part.transformed else plain
            target = part.target(rows, self.nets, noise, self.method.discount) if part.target is not None else None
            loss = part.fit(rows, self.nets, target, noise, log)
            for regulariser in part.regularisers:
                if regulariser.weight:
                    loss = loss + regulariser(rows, self.nets, noise, log)
            norm = self.nets[part.owner].descend(loss)
            if log is not None:
                log[f"{part.owner}/loss"], log[f"{part.owner}/gradient"] = loss.detach(), norm
                if not bool(torch.isfinite(norm)):
                    raise NonFiniteError(
                        f"update {self.updates}: the gradient of network {part.owner!r} is not finite; lower its lr"
                    )
        if self.updates % self.method.average_every == 0:
            self.nets.average()
        self.updates += 1
        reptile = self.method.reptile
        if reptile is not None and self.updates % reptile.updates == 0:
            for name, held in self.meta.items():
                self.nets[name].restart(held, reptile.rate)

    def act(self, observation: Array) -> Array:
        """``[n, A]`` or ``[n]`` actions without noise, of raw observations at the begin of episodes."""
        return self.player(len(observation))(observation)

    def player(self, count: int) -> PolicyPlayer:
        """Plays ``count`` episodes that begin now."""
        return PolicyPlayer(self, count)

    def _act(self, seen: Array, at_random: bool) -> tuple[Array, dict[str, Array]]:
        if at_random:
            return random_actions(
                self.run.acted_in.actions, generator("control/explore", self.run.seed, index=self.acted), len(seen)
            ), {}
        assert self.method.explorer is not None
        noise = Noise(self.run.seed, -1 - self.acted)
        with torch.no_grad():
            tensor: Tensor = to_tensor(self.scale_observation(seen))
            action, columns = self.method.explorer(self.nets, tensor, noise, self.acted)
        return action.numpy(), {name: value.numpy() for name, value in columns.items()}

    # ---- scaling and seeds -------------------------------------------------------------------------------------------

    def scale_observation(self, observation: Array) -> Array:
        """``[n, O]`` float32 as the networks read observations."""
        return ((observation - self.shift) * self.factor).astype(np.float32)

    def _scaling(self) -> tuple[Array, Array]:
        size = self.run.acted_in.observation_size
        if self.data is None or not self.method.scale:
            return np.zeros(size), np.ones(size)
        seen = self.data.observation.astype(np.float64)
        return seen.mean(0), 1.0 / (seen.std(0) + 1e-3)

    def _prepare_data(self, data: Transitions) -> Transitions:
        """The data set as it is learned from: scaled observations, rewards by the method's factor and offset."""
        import dataclasses

        factor, offset = self.method.reward
        gamma = self.method.discount
        length = np.bincount(data.episode)[data.episode] - data.step
        ahead = length.astype(np.float64) if gamma == 1 else (1 - gamma**length) / (1 - gamma)
        return dataclasses.replace(
            data,
            observation=self.scale_observation(data.observation),
            next_observation=self.scale_observation(data.next_observation),
            reward=(data.reward * factor + offset).astype(np.float32),
            to_go=(data.to_go * factor + offset * ahead).astype(np.float32),
        )

    def _seeds(self, count: int) -> Array:
        """Fresh starts for collection, never those of evaluation."""
        seeds = derive_each("control/collect", self.run.seed, str(self.started), count)
        self.started += count
        return np.array(seeds, np.uint64)

    def _most_collected(self) -> int:
        schedule = self.method.schedule
        return max(schedule.phase(step).collect for step in (1, self.run.steps))

    # ---- state -------------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        """The numbers that a resume needs."""
        return {"step": self.step, "updates": self.updates, "acted": self.acted, "started": self.started}

    def arrays(self) -> dict[str, Array]:
        """The arrays that a resume needs."""
        out = {f"nets/{name}": value for name, value in self.nets.state().items()}
        out |= {f"meta/{name}": value.numpy().copy() for name, value in self.meta.items()}
        if self.buffer is not None and self.running is not None:
            out |= {f"buffer/{name}": value for name, value in self.buffer.state().items()}
            out |= {f"world/{name}": value for name, value in self.running.state().items()}
        return out

    def restore(self, counters: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Goes on from `counters` and `arrays`."""

        def under_prefix(prefix: str) -> dict[str, Array]:
            return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}

        self.step, self.updates, self.acted = (int(counters[n]) for n in ("step", "updates", "acted"))
        self.nets.restore(under_prefix("nets/"))
        for name, value in under_prefix("meta/").items():
            self.meta[name].copy_(to_tensor(np.array(value)))
        if self.buffer is not None and self.running is not None:
            self.buffer.restore(under_prefix("buffer/"))
            self.running.restore(under_prefix("world/"))
        self.started = int(counters["started"])
        if self.buffer is not None and len(self.buffer):
            self.drawer.prepare(self.nets, self.method.discount)

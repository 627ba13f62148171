"""Methods that act in the world while they learn."""

from __future__ import annotations

from dataclasses import dataclass

from assay_control.methods.size import Sized
from assay_control.networks import Scalar
from assay_control.parts.actors import GreedyAction, SoftGreedy
from assay_control.parts.base import Composition, Update
from assay_control.parts.fits import FitQ, FitV, Temperature
from assay_control.parts.ppo import AdvantageReturn, ClippedRatio, LastRollout, OnPolicyRounds
from assay_control.parts.schedules import AddNoise, DrawAction, EpsilonGreedy, Online
from assay_control.parts.sources import Collected, HalfOnline
from assay_control.parts.targets import BestChoice, PolicyNoise, SoftValue

__all__ = ["DQN", "PPO", "RLPD", "SAC", "TD3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SAC(Sized):
    """Soft actor-critic: the least of two critics, and a temperature that keeps the policy's entropy.

    ``y = r + γ (min Q̄(s', a') - α log π(a'|s'))``. Source: Haarnoja et al. 2018, arXiv 1801.01290 and 1812.05905.

    Attributes:
        start: steps of random actions before the first update.
        updates: after each step of the world.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    start: int = 500
    updates: int = 1
    entropy: float = -1.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="gaussian"), "alpha": Scalar(lr=self.lr)},
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue()),
                Update(owner="pi", fit=SoftGreedy()),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=Collected(batch=self.batch),
            schedule=Online(start=self.start, updates=self.updates),
            explorer=DrawAction(),
            discount=self.discount,
            scale=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TD3(Sized):
    """Twin delayed deep deterministic policy gradient: smoothed targets, and an actor that learns every second update.

    ``y = r + γ min Q̄(s', π̄(s') + clip(noise))``. Source: Fujimoto et al. 2018, arXiv 1802.09477.

    Attributes:
        start: steps of random actions before the first update.
        updates: after each step of the world.
        noise: deviation of what is added while collecting.
    """

    start: int = 500
    updates: int = 1
    noise: float = 0.1

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.critic(), "pi": self.net(outputs="action", averaged=True)},
            updates=(
                Update(owner="q", fit=FitQ(), target=PolicyNoise()),
                Update(owner="pi", fit=GreedyAction(), every=2),
            ),
            source=Collected(batch=self.batch),
            schedule=Online(start=self.start, updates=self.updates),
            explorer=AddNoise(self.noise),
            discount=self.discount,
            scale=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RLPD(Sized):
    """Reinforcement learning with prior data: SAC with half of each batch from a data set, many critics, and layer norm in them.

    The target is the least of a random two critics; the actor follows their mean. Layer norm bounds ``|Q|`` by the norm of the
    last layer, so actions far from any data cannot be worth anything. Source: Ball et al. 2023, arXiv 2302.02948.

    Attributes:
        start: steps of random actions before the first update.
        updates: after each step of the world; 20 in the paper.
        ensemble: critics; 10 in the paper.
        entropy: that the temperature aims at, per coordinate of an action.
    """

    start: int = 200
    updates: int = 1
    ensemble: int = 10
    entropy: float = -0.5

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={
                "q": self.critic(self.ensemble, layer_norm=True),
                "pi": self.net(outputs="gaussian"),
                "alpha": Scalar(lr=self.lr),
            },
            updates=(
                Update(owner="q", fit=FitQ(), target=SoftValue(subset=2)),
                Update(owner="pi", fit=SoftGreedy(mean_q=True)),
                Update(owner="alpha", fit=Temperature(self.entropy)),
            ),
            source=HalfOnline(batch=self.batch),
            schedule=Online(start=self.start, updates=self.updates),
            explorer=DrawAction(),
            discount=self.discount,
            scale=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DQN(Sized):
    """Deep Q-learning for choices: ``y = r + γ max_a Q̄(s', a)``, with Huber's loss and random choices that fade.

    Source: Mnih et al. 2015; with ``double``, van Hasselt et al. 2015, arXiv 1509.06461. The averaged copy moves a little at each
    update where the paper's is replaced every so many.

    Attributes:
        start: steps of random actions before the first update.
        updates: after each step of the world.
        double: whether the network itself chooses the next action.
        fade: steps over which random choices fade.
    """

    start: int = 500
    updates: int = 1
    double: bool = True
    fade: int = 3000

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={"q": self.net(outputs="choices", averaged=True)},
            updates=(Update(owner="q", fit=FitQ(delta=1.0), target=BestChoice(self.double)),),
            source=Collected(batch=self.batch),
            schedule=Online(start=self.start, updates=self.updates),
            explorer=EpsilonGreedy(steps=self.fade),
            discount=self.discount,
            scale=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PPO(Sized):
    """Proximal policy optimisation: rounds of steps in copies of the world, some passes over each.

    ``-mean min(ρ A, clip(ρ, 1 ± clip) A)`` with generalised advantages. Source: Schulman et al. 2017, arXiv 1707.06347.

    Attributes:
        copies: of the world.
        collect: steps of each copy in a round.
        epochs: passes over a round.
        parts: batches of a pass, whose batch is ``copies * collect / parts``.
        clip: of the ratio.
        decay: λ of the advantages.
        bonus: weight of the entropy.
        reward: factor of rewards, so that the value's errors are of a size that one learning rate suits.
    """

    copies: int = 8
    collect: int = 128
    epochs: int = 10
    parts: int = 8
    clip: float = 0.2
    decay: float = 0.95
    bonus: float = 0.0
    reward: float = 1.0

    def compose(self) -> Composition:
        """Its parts."""
        return Composition(
            nets={
                "v": self.net(activation="tanh", clip=0.5),
                "pi": self.net(outputs="normal", activation="tanh", clip=0.5, last=0.01),
            },
            updates=(
                Update(owner="v", fit=FitV(), target=AdvantageReturn()),
                Update(owner="pi", fit=ClippedRatio(clip=self.clip, entropy=self.bonus)),
            ),
            source=LastRollout(batch=self.copies * self.collect // self.parts, copies=self.copies, decay=self.decay),
            schedule=OnPolicyRounds(collect=self.collect, epochs=self.epochs, parts=self.parts),
            explorer=DrawAction(columns=True),
            discount=self.discount,
            scale=False,
            copies=self.copies,
            reward=(self.reward, 0.0),
        )

"""Control RL: worlds, data sets, methods as compositions of parts, runs that resume bit for bit. Only parts that learn load
torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay_control.card import data_card
    from assay_control.catalog import DATASETS, METHODS, WORLDS, dataset, method, world
    from assay_control.data.behaviours import Behaviour, RandomActions, Scripted, Wander
    from assay_control.data.files import episodes_of_arrays, read_npz, to_arrays
    from assay_control.data.measures import (
        coverage,
        joint_coverage,
        positive_semivariance,
        return_advantages,
        trajectory_quality,
        trajectory_weights,
    )
    from assay_control.data.recipes import Corrupted, Dataset, FileData, Share, collect_episodes
    from assay_control.evaluation import PolicyEvaluation, References, evaluate_policy, normalised, references
    from assay_control.methods.offline import AWAC, AWR, BC, CQL, IQL, TD3BC
    from assay_control.methods.online import DQN, PPO, RLPD, SAC, TD3
    from assay_control.methods.published import DVL, PRDC, RIQL, WSRL
    from assay_control.networks import Net, Network, Scalar
    from assay_control.parts.actors import AdvantageWeighted, Clone, ClonePenalty, GreedyAction, SoftGreedy
    from assay_control.parts.base import Composition, ControlMethod, Noise, Phase, TransitionBatch, Update
    from assay_control.parts.buffer import Buffer
    from assay_control.parts.conservative import Conservative, ConservativeChoices
    from assay_control.parts.fits import DualValue, Expectile, FitQ, FitV, Temperature, expectile_loss
    from assay_control.parts.nearest import NearestAction, nearest_rows
    from assay_control.parts.nets import Nets
    from assay_control.parts.ppo import AdvantageReturn, ClippedRatio, LastRollout, OnPolicyRounds, generalised_advantages
    from assay_control.parts.schedules import AddNoise, DrawAction, EpsilonGreedy, Offline, OfflineToOnline, Online
    from assay_control.parts.sources import (
        Collected,
        DataThenCollected,
        Evenly,
        HalfOnline,
        TopEpisodes,
        WeightedEpisodes,
        top_episodes,
    )
    from assay_control.parts.targets import BestChoice, NextValue, PolicyNoise, ReturnToGo, SampledAction, SoftValue
    from assay_control.records import Box, Choices, Episode, Transitions, WorldStep, transitions
    from assay_control.report import write_control_report
    from assay_control.run import ControlRun
    from assay_control.run_folders import ControlOutcome, load_session, read_run_settings, resume, train
    from assay_control.session import Session
    from assay_control.statistics import (
        Aggregate,
        aggregate_scores,
        improvement_probability,
        interquartile_mean,
        performance_profile,
    )
    from assay_control.worlds.base import Copies, Move, RunningWorld, SimulatedWorld, World, uniform_start
    from assay_control.worlds.cartpole import CartPole
    from assay_control.worlds.gymnasium import GymnasiumWorld
    from assay_control.worlds.maze import PointMaze
    from assay_control.worlds.pendulum import Pendulum

__all__ = [
    "AWAC",
    "AWR",
    "AddNoise",
    "AdvantageReturn",
    "AdvantageWeighted",
    "Aggregate",
    "BC",
    "Behaviour",
    "BestChoice",
    "Box",
    "Buffer",
    "CQL",
    "CartPole",
    "Choices",
    "ClippedRatio",
    "Clone",
    "ClonePenalty",
    "Collected",
    "Composition",
    "Conservative",
    "ConservativeChoices",
    "ControlMethod",
    "ControlOutcome",
    "ControlRun",
    "Copies",
    "DATASETS",
    "DQN",
    "DVL",
    "DataThenCollected",
    "Corrupted",
    "Dataset",
    "DrawAction",
    "DualValue",
    "Episode",
    "EpsilonGreedy",
    "Evenly",
    "Expectile",
    "FileData",
    "FitQ",
    "FitV",
    "GreedyAction",
    "GymnasiumWorld",
    "HalfOnline",
    "IQL",
    "LastRollout",
    "METHODS",
    "Move",
    "NearestAction",
    "Net",
    "Nets",
    "Network",
    "NextValue",
    "Noise",
    "Offline",
    "OfflineToOnline",
    "Online",
    "PPO",
    "PRDC",
    "Pendulum",
    "Phase",
    "PointMaze",
    "PolicyEvaluation",
    "PolicyNoise",
    "RIQL",
    "RLPD",
    "RandomActions",
    "References",
    "ReturnToGo",
    "OnPolicyRounds",
    "RunningWorld",
    "SAC",
    "SampledAction",
    "Scalar",
    "Scripted",
    "Session",
    "Share",
    "SimulatedWorld",
    "SoftGreedy",
    "SoftValue",
    "TD3",
    "TD3BC",
    "Temperature",
    "TopEpisodes",
    "TransitionBatch",
    "Transitions",
    "Update",
    "WORLDS",
    "WSRL",
    "Wander",
    "WeightedEpisodes",
    "World",
    "WorldStep",
    "aggregate_scores",
    "collect_episodes",
    "coverage",
    "data_card",
    "dataset",
    "episodes_of_arrays",
    "evaluate_policy",
    "expectile_loss",
    "generalised_advantages",
    "improvement_probability",
    "interquartile_mean",
    "joint_coverage",
    "load_session",
    "method",
    "nearest_rows",
    "normalised",
    "performance_profile",
    "positive_semivariance",
    "read_npz",
    "read_run_settings",
    "references",
    "resume",
    "return_advantages",
    "to_arrays",
    "top_episodes",
    "train",
    "trajectory_quality",
    "trajectory_weights",
    "transitions",
    "uniform_start",
    "world",
    "write_control_report",
]

_HOME = {
    "card": "data_card",
    "catalog": "DATASETS METHODS WORLDS dataset method world",
    "data.behaviours": "Behaviour RandomActions Scripted Wander",
    "data.files": "episodes_of_arrays read_npz to_arrays",
    "data.measures": ("coverage joint_coverage positive_semivariance return_advantages trajectory_quality trajectory_weights"),
    "data.recipes": "Corrupted Dataset FileData Share collect_episodes",
    "evaluation": "PolicyEvaluation References evaluate_policy normalised references",
    "methods.offline": "AWAC AWR BC CQL IQL TD3BC",
    "methods.online": "DQN PPO RLPD SAC TD3",
    "methods.published": "DVL PRDC RIQL WSRL",
    "networks": "Net Network Scalar",
    "parts.actors": "AdvantageWeighted Clone ClonePenalty GreedyAction SoftGreedy",
    "parts.base": "Composition ControlMethod Noise Phase TransitionBatch Update",
    "parts.buffer": "Buffer",
    "parts.conservative": "Conservative ConservativeChoices",
    "parts.fits": "DualValue Expectile FitQ FitV Temperature expectile_loss",
    "parts.nearest": "NearestAction nearest_rows",
    "parts.nets": "Nets",
    "parts.ppo": "AdvantageReturn ClippedRatio LastRollout OnPolicyRounds generalised_advantages",
    "parts.schedules": "AddNoise DrawAction EpsilonGreedy Offline OfflineToOnline Online",
    "parts.sources": "Collected DataThenCollected Evenly HalfOnline TopEpisodes WeightedEpisodes top_episodes",
    "parts.targets": "BestChoice NextValue PolicyNoise ReturnToGo SampledAction SoftValue",
    "records": "Box Choices Episode Transitions WorldStep transitions",
    "report": "write_control_report",
    "run": "ControlRun",
    "run_folders": "ControlOutcome load_session read_run_settings resume train",
    "session": "Session",
    "statistics": "Aggregate aggregate_scores improvement_probability interquartile_mean performance_profile",
    "worlds.base": "Copies Move RunningWorld SimulatedWorld World uniform_start",
    "worlds.cartpole": "CartPole",
    "worlds.gymnasium": "GymnasiumWorld",
    "worlds.maze": "PointMaze",
    "worlds.pendulum": "Pendulum",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)

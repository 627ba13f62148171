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
    from assay_control.data.external import read_episodes, read_hdf5, read_minari, write_episodes, write_hdf5, write_minari
    from assay_control.data.files import episodes_of_arrays, read_npz, to_arrays
    from assay_control.data.measures import (
        coverage,
        joint_coverage,
        positive_semivariance,
        return_advantages,
        trajectory_quality,
        trajectory_weights,
    )
    from assay_control.data.preferences import Labeller, OracleLabels, PreferredRewards, fit_preferences
    from assay_control.data.recipes import Corrupted, Dataset, FileData, OfflineData, Share, collect_episodes
    from assay_control.evaluation import PolicyEvaluation, References, evaluate_policy, normalise_return, references
    from assay_control.methods.ensembles import EDAC, RO2O, ReBRAC
    from assay_control.methods.imitation import GGDSAC, MOORL, ReCOIL
    from assay_control.methods.models import MBPO, MOPO, VaGraM
    from assay_control.methods.offline import AWAC, AWR, BC, CQL, IQL, TD3BC, normalised_awac, normalised_awr
    from assay_control.methods.online import DQN, PPO, RLPD, SAC, TD3
    from assay_control.methods.published import DVL, PRDC, RIQL, WSRL
    from assay_control.methods.safe import FISOR
    from assay_control.methods.sequence import DecisionTransformer, MultiObjectiveDT
    from assay_control.networks import Net, Network, Scalar
    from assay_control.parts.actors import AdvantageWeighted, Clone, ClonePenalty, GreedyAction, SoftGreedy
    from assay_control.parts.base import (
        Actor,
        Composition,
        ControlMethod,
        EpisodeMemory,
        Noise,
        Phase,
        Reptile,
        RowTransform,
        TransitionBatch,
        Update,
    )
    from assay_control.parts.buffer import Buffer
    from assay_control.parts.conservative import Conservative, ConservativeChoices
    from assay_control.parts.ensembles import (
        GradientDiversity,
        PerturbedPessimism,
        PerturbedPolicy,
        PerturbedValue,
        PolicyNoisePenalised,
    )
    from assay_control.parts.feasible import FeasibleClone, FeasibleValue, FitFeasible
    from assay_control.parts.fits import DualValue, Expectile, FitQ, FitV, Temperature, expectile_loss
    from assay_control.parts.imitation import ContrastiveQ, ExpertHalf, GeneralisedGaussian, ShapeFit, inverse_variance_weights
    from assay_control.parts.models import ImaginedRows, ModelLikelihood, ValueGradientModel
    from assay_control.parts.near_expert import NearExpert, expert_distances
    from assay_control.parts.nearest import NearestAction, nearest_rows
    from assay_control.parts.nets import Nets
    from assay_control.parts.ppo import AdvantageReturn, ClippedRatio, LastRollout, OnPolicyRounds, generalised_advantages
    from assay_control.parts.schedules import AddNoise, DrawAction, EpsilonGreedy, Offline, OfflineToOnline, Online
    from assay_control.parts.segments import Segments
    from assay_control.parts.sequence import ActForReturn, SequenceClone
    from assay_control.parts.sources import (
        AlternateBlocks,
        Collected,
        DataThenCollected,
        DataThenHalf,
        Evenly,
        HalfOnline,
        TopEpisodes,
        WeightedEpisodes,
        top_episodes,
    )
    from assay_control.parts.targets import (
        BestChoice,
        BootstrappedReturn,
        NextValue,
        PolicyNoise,
        ReturnToGo,
        SampledAction,
        SoftValue,
    )
    from assay_control.parts.transformer import SequenceNet
    from assay_control.records import Box, Choices, Episode, Transitions, WorldStep, transitions
    from assay_control.report import write_control_report
    from assay_control.run import ControlRun
    from assay_control.run_folders import ControlOutcome, load_session, read_run_settings, resume, train
    from assay_control.session import PolicyPlayer, Session
    from assay_control.statistics import (
        Aggregate,
        aggregate_scores,
        improvement_probability,
        interquartile_mean,
        performance_profile,
        rank_correlation,
    )
    from assay_control.worlds.base import Copies, Move, RunningWorld, SimulatedWorld, World, uniform_start
    from assay_control.worlds.cartpole import CartPole
    from assay_control.worlds.codes import CheckMatrix, code_distance, gf2_rank, hypergraph_product
    from assay_control.worlds.dies import ExtrusionDie, flow_ratios
    from assay_control.worlds.gymnasium import GymnasiumWorld
    from assay_control.worlds.hazards import HazardPoint
    from assay_control.worlds.maze import PointMaze
    from assay_control.worlds.motor import Motor
    from assay_control.worlds.near_real import DelayLine, Portfolio, portfolio_step, sharpe_ratio
    from assay_control.worlds.offloading import Offloading, completion_rise, hypervolume
    from assay_control.worlds.pendulum import Pendulum
    from assay_control.worlds.pettingzoo import ParallelAgents
    from assay_control.worlds.tabular import Corridor, EffectiveHorizon, effective_horizon, learn_shallow
    from assay_control.worlds.wrappers import Distracted, SnapshotStarts

__all__ = [
    "AWAC",
    "AWR",
    "ActForReturn",
    "Actor",
    "AddNoise",
    "AdvantageReturn",
    "AdvantageWeighted",
    "Aggregate",
    "AlternateBlocks",
    "BC",
    "Behaviour",
    "BestChoice",
    "BootstrappedReturn",
    "Box",
    "Buffer",
    "CQL",
    "CartPole",
    "CheckMatrix",
    "Choices",
    "ClippedRatio",
    "Clone",
    "ClonePenalty",
    "Collected",
    "Composition",
    "Conservative",
    "ConservativeChoices",
    "ContrastiveQ",
    "ControlMethod",
    "ControlOutcome",
    "ControlRun",
    "Copies",
    "Corridor",
    "Corrupted",
    "DATASETS",
    "DQN",
    "DVL",
    "DataThenCollected",
    "DataThenHalf",
    "Dataset",
    "DecisionTransformer",
    "DelayLine",
    "Distracted",
    "DrawAction",
    "DualValue",
    "EDAC",
    "EffectiveHorizon",
    "Episode",
    "EpisodeMemory",
    "EpsilonGreedy",
    "Evenly",
    "Expectile",
    "ExpertHalf",
    "ExtrusionDie",
    "FISOR",
    "FeasibleClone",
    "FeasibleValue",
    "FileData",
    "FitFeasible",
    "FitQ",
    "FitV",
    "GGDSAC",
    "GeneralisedGaussian",
    "GradientDiversity",
    "GreedyAction",
    "GymnasiumWorld",
    "HalfOnline",
    "HazardPoint",
    "IQL",
    "ImaginedRows",
    "Labeller",
    "LastRollout",
    "MBPO",
    "METHODS",
    "MOORL",
    "MOPO",
    "ModelLikelihood",
    "Motor",
    "Move",
    "MultiObjectiveDT",
    "NearExpert",
    "NearestAction",
    "Net",
    "Nets",
    "Network",
    "NextValue",
    "Noise",
    "Offline",
    "OfflineData",
    "OfflineToOnline",
    "Offloading",
    "OnPolicyRounds",
    "Online",
    "OracleLabels",
    "PPO",
    "PRDC",
    "ParallelAgents",
    "Pendulum",
    "PerturbedPessimism",
    "PerturbedPolicy",
    "PerturbedValue",
    "Phase",
    "PointMaze",
    "PolicyEvaluation",
    "PolicyNoise",
    "PolicyNoisePenalised",
    "PolicyPlayer",
    "Portfolio",
    "PreferredRewards",
    "RIQL",
    "RLPD",
    "RO2O",
    "RandomActions",
    "ReBRAC",
    "ReCOIL",
    "References",
    "Reptile",
    "ReturnToGo",
    "RowTransform",
    "RunningWorld",
    "SAC",
    "SampledAction",
    "Scalar",
    "Scripted",
    "Segments",
    "SequenceClone",
    "SequenceNet",
    "Session",
    "ShapeFit",
    "Share",
    "SimulatedWorld",
    "SnapshotStarts",
    "SoftGreedy",
    "SoftValue",
    "TD3",
    "TD3BC",
    "Temperature",
    "TopEpisodes",
    "TransitionBatch",
    "Transitions",
    "Update",
    "VaGraM",
    "ValueGradientModel",
    "WORLDS",
    "WSRL",
    "Wander",
    "WeightedEpisodes",
    "World",
    "WorldStep",
    "aggregate_scores",
    "code_distance",
    "collect_episodes",
    "completion_rise",
    "coverage",
    "data_card",
    "dataset",
    "effective_horizon",
    "episodes_of_arrays",
    "evaluate_policy",
    "expectile_loss",
    "expert_distances",
    "fit_preferences",
    "flow_ratios",
    "generalised_advantages",
    "gf2_rank",
    "hypergraph_product",
    "hypervolume",
    "improvement_probability",
    "interquartile_mean",
    "inverse_variance_weights",
    "joint_coverage",
    "learn_shallow",
    "load_session",
    "method",
    "nearest_rows",
    "normalise_return",
    "normalised_awac",
    "normalised_awr",
    "performance_profile",
    "portfolio_step",
    "positive_semivariance",
    "rank_correlation",
    "read_episodes",
    "read_hdf5",
    "read_minari",
    "read_npz",
    "read_run_settings",
    "references",
    "resume",
    "return_advantages",
    "sharpe_ratio",
    "to_arrays",
    "top_episodes",
    "train",
    "trajectory_quality",
    "trajectory_weights",
    "transitions",
    "uniform_start",
    "world",
    "write_control_report",
    "write_episodes",
    "write_hdf5",
    "write_minari",
]

_HOME = {
    "card": "data_card",
    "catalog": "DATASETS METHODS WORLDS dataset method world",
    "data.behaviours": "Behaviour RandomActions Scripted Wander",
    "data.external": "read_episodes read_hdf5 read_minari write_episodes write_hdf5 write_minari",
    "data.files": "episodes_of_arrays read_npz to_arrays",
    "data.measures": "coverage joint_coverage positive_semivariance return_advantages trajectory_quality trajectory_weights",
    "data.preferences": "Labeller OracleLabels PreferredRewards fit_preferences",
    "data.recipes": "Corrupted Dataset FileData OfflineData Share collect_episodes",
    "evaluation": "PolicyEvaluation References evaluate_policy normalise_return references",
    "methods.ensembles": "EDAC RO2O ReBRAC",
    "methods.imitation": "GGDSAC MOORL ReCOIL",
    "methods.models": "MBPO MOPO VaGraM",
    "methods.offline": "AWAC AWR BC CQL IQL TD3BC normalised_awac normalised_awr",
    "methods.online": "DQN PPO RLPD SAC TD3",
    "methods.published": "DVL PRDC RIQL WSRL",
    "methods.safe": "FISOR",
    "methods.sequence": "DecisionTransformer MultiObjectiveDT",
    "networks": "Net Network Scalar",
    "parts.actors": "AdvantageWeighted Clone ClonePenalty GreedyAction SoftGreedy",
    "parts.base": "Actor Composition ControlMethod EpisodeMemory Noise Phase Reptile RowTransform TransitionBatch Update",
    "parts.buffer": "Buffer",
    "parts.conservative": "Conservative ConservativeChoices",
    "parts.ensembles": "GradientDiversity PerturbedPessimism PerturbedPolicy PerturbedValue PolicyNoisePenalised",
    "parts.feasible": "FeasibleClone FeasibleValue FitFeasible",
    "parts.fits": "DualValue Expectile FitQ FitV Temperature expectile_loss",
    "parts.imitation": "ContrastiveQ ExpertHalf GeneralisedGaussian ShapeFit inverse_variance_weights",
    "parts.models": "ImaginedRows ModelLikelihood ValueGradientModel",
    "parts.near_expert": "NearExpert expert_distances",
    "parts.nearest": "NearestAction nearest_rows",
    "parts.nets": "Nets",
    "parts.ppo": "AdvantageReturn ClippedRatio LastRollout OnPolicyRounds generalised_advantages",
    "parts.schedules": "AddNoise DrawAction EpsilonGreedy Offline OfflineToOnline Online",
    "parts.segments": "Segments",
    "parts.sequence": "ActForReturn SequenceClone",
    "parts.sources": (
        "AlternateBlocks Collected DataThenCollected DataThenHalf Evenly HalfOnline TopEpisodes WeightedEpisodes top_episodes"
    ),
    "parts.targets": "BestChoice BootstrappedReturn NextValue PolicyNoise ReturnToGo SampledAction SoftValue",
    "parts.transformer": "SequenceNet",
    "records": "Box Choices Episode Transitions WorldStep transitions",
    "report": "write_control_report",
    "run": "ControlRun",
    "run_folders": "ControlOutcome load_session read_run_settings resume train",
    "session": "PolicyPlayer Session",
    "statistics": ("Aggregate aggregate_scores improvement_probability interquartile_mean performance_profile rank_correlation"),
    "worlds.base": "Copies Move RunningWorld SimulatedWorld World uniform_start",
    "worlds.cartpole": "CartPole",
    "worlds.codes": "CheckMatrix code_distance gf2_rank hypergraph_product",
    "worlds.dies": "ExtrusionDie flow_ratios",
    "worlds.gymnasium": "GymnasiumWorld",
    "worlds.hazards": "HazardPoint",
    "worlds.maze": "PointMaze",
    "worlds.motor": "Motor",
    "worlds.near_real": "DelayLine Portfolio portfolio_step sharpe_ratio",
    "worlds.offloading": "Offloading completion_rise hypervolume",
    "worlds.pendulum": "Pendulum",
    "worlds.pettingzoo": "ParallelAgents",
    "worlds.tabular": "Corridor EffectiveHorizon effective_horizon learn_shallow",
    "worlds.wrappers": "Distracted SnapshotStarts",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)

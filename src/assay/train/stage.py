"""What a stage of a run is: frozen settings that answer a run's questions, and the runner that they open.

A stage is one file. Its settings derive from `Stage`, which answers every question as a stage would that learns from rows of its
own; a stage overrides what is different of it. See ``docs/add/stage.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from assay.core.protocols import IndexPolicySpec, SamplerSpec, Tokenizer
from assay.core.task import Task
from assay.core.util.renamed import refuse_renamed
from assay.guide import InOrder
from assay.objective.objective import Objective
from assay.rollout.spec import PlayerSpec
from assay.runtime.settings import LearnerSettings
from assay.train.levels import Levels
from assay.train.runner import StageRunner
from assay.train.stage_rows import StageRows, TokenCounts

if TYPE_CHECKING:
    from assay.asynchronous import Asynchronous
    from assay.train.run import Run
    from assay.train.session import Parts
    from assay.train.until import Until
    from assay.train.wiring import Wiring

__all__ = ["Stage"]


class Stage(Protocol):
    """The frozen settings of a stage.

    Attributes:
        steps: how many.
        objective, learner: what is minimised, and how.
        levels: levels of the tasks that it trains on.
        lag: rollout batches between the weights that sample and those that learn.
        asynchronous: sampling beside learning, for stages that sample.
        gate: least held-out accuracy at the end; 0 for none.
        until: early end; None runs all steps.
        index: which task of a stream comes next, where a curriculum leaves it open.
        sampler: how rollouts come about, those of evaluations too.
        samples: it learns from rollouts of the policy.
        uses_tasks: it trains on the run's tasks, which must then fit the model.
        evaluates_first: there is an evaluation before its first step.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    steps: int
    objective: Objective
    learner: LearnerSettings
    levels: Levels = ()
    lag: int = 0
    asynchronous: Asynchronous | None = None
    gate: float = 0.0
    until: Until | None = None
    index: IndexPolicySpec = InOrder()
    sampler: SamplerSpec = PlayerSpec()
    samples: ClassVar[bool] = False
    uses_tasks: ClassVar[bool] = False
    evaluates_first: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        renamed = {"taught": "effective_objective", "rows_told": "count_rows", "practises": "uses_tasks", "reduced": "shrink"}
        renamed["asked_models"] = "scored_models"
        refuse_renamed(cls, renamed)

    # ---- what it is

    @property
    def name(self) -> str:
        """In the journal."""
        ...

    @property
    def updates(self) -> int:
        """Optimiser updates per step."""
        return 1

    @property
    def effective_objective(self) -> Objective:
        """The objective as it is compiled."""
        return self.objective

    def open(self, parts: Parts) -> StageRunner:
        """The stage at work."""
        ...

    # ---- what a run asks before it begins

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files and data sets that it learns from."""
        return ()

    @property
    def scored_models(self) -> tuple[str, ...]:
        """Models of the learner whose log-probabilities it asks for besides those of its objective."""
        return ()

    def check(self, run: Run) -> None:
        """Looks at what the settings alone tell; by default at nothing.

        Raises:
            AssayError: they contradict each other or the run; with a fix.
        """

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> TokenCounts | None:
        """Looks at given rows, of which a model holds ``context`` tokens; by default there are none.

        Raises:
            DataError: a row does not fit; names it.
        """
        return None

    def check_task(self, run: Run, task: Task, tokenizer: Tokenizer, contexts: tuple[int, int]) -> None:
        """Looks at a task that is trained on, besides its prompt; by default at nothing.

        Args:
            run, task: settings, and the task.
            tokenizer: of the model.
            contexts: of the model, and the shortest of it and its anchors.

        Raises:
            AssayError: the task does not fit; names it.
        """

    def training_texts(self) -> Iterable[tuple[str, str]]:
        """Places and texts of given rows that an evaluation item might be found in; its tasks are looked at anyway."""
        return ()

    # ---- what a run asks at an end

    def gate_levels(self, run: Run) -> Levels:
        """Levels on which `gate` is measured."""
        return self.levels

    def check_gate(self, found: float | None) -> None:
        """Raises GateError when the accuracy that was found at the end is below `gate`."""

    # ---- what is told of it

    @property
    def sampled(self) -> tuple[int, int]:
        """Contexts of a step, and rollouts of each; (0, 0) where nothing is sampled."""
        return 0, 0

    def count_rows(self, run: Run) -> StageRows:
        """Its rows, counted."""
        ...

    def smaller(self) -> Sequence[tuple[str, Self]]:
        """Settings of its own that take less memory, each with what to write for them."""
        return ()

    def shrink(self, groups: int, size: int) -> Self:
        """The same with steps of at most ``groups * size`` rows, to try a recipe."""
        return self

    def on_levels(self, levels: Mapping[str, tuple[int, ...]]) -> Self:
        """The same on these levels of these arms of the run's tasks, as what is admitted of them."""
        return replace(self, levels=levels)

    # ---- methods by name

    def wire(self, wiring: Wiring, objective: Objective) -> Stage:
        """The stage under a method that was named, with what it needs.

        Raises:
            ConfigError: the method does not learn from such rows; with a fix.
        """
        ...

"""The learner: packed micro-batches, one optimiser step, weights to publish, anchors to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.core.batch import Batch, pack_rows
from assay.core.canon import array_digest, digest
from assay.core.errors import AssayError, NonFiniteError, PlanError
from assay.core.manifest import Manifest
from assay.core.plan import Forward, Plan
from assay.core.protocols import LossProgram, PassObserver, PerturbsWeights, Stats
from assay.core.rollout import Ids
from assay.core.sample import Sample
from assay.core.timing import span
from assay.runtime.kernels.typed import array_of
from assay.runtime.learner import snapshot
from assay.runtime.learner.anchor_models import AnchorModels, decoder_of
from assay.runtime.learner.forwards import Forwards
from assay.runtime.learner.gradient import gradient_of
from assay.runtime.learner.heads import Heads, Kept
from assay.runtime.learner.layout import Layout
from assay.runtime.learner.optim import build_optimizer
from assay.runtime.learner.packing import Packing
from assay.runtime.learner.perturbed_weights import disturb_weights, effects
from assay.runtime.learner.publishing import make_manifest, served_dtype
from assay.runtime.learner.untrained import GradientWatch
from assay.runtime.machine import wait_for
from assay.runtime.models.finite import check_gradient, check_loss
from assay.runtime.models.model import Model
from assay.runtime.settings import LearnerSettings

if TYPE_CHECKING:
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.models.hub_model import HubModel

__all__ = ["TorchLearner"]


@dataclass(slots=True)
class _Tally:
    """What one step adds up over its micro-batches; ``given`` counts the rows before any was left out."""

    given: int = 0
    loss: float = 0.0
    rows: int = 0
    tokens: int = 0
    loss_tokens: int = 0
    useful: float = 0.0
    recalled: int = 0
    seconds: float = 0.0

    def add(self, micro: Batch, packing: Packing, loss: float) -> None:
        tokens = int(micro.offsets[-1])
        self.loss += loss
        self.rows += len(micro)
        self.tokens += tokens
        self.loss_tokens += int(micro.token("mask").sum())
        self.useful += packing.useful * tokens


class TorchLearner:
    """Weights, optimiser and anchors on one device; implements `assay.core.protocols.Learner`.

    Args:
        model: starting weights; copied. What is trained is fp32.
        settings: optimiser, schedule, clipping, precision, micro-batch size, anchors, critics.
        total_steps: steps of the stage, for the schedule.
        models: what anchors start from that do not start from ``model``, by their ``model``.
        version: of the starting weights.
        ranks: processes that each hold such a learner, with a part of the weights and of the optimiser's state, and are called
            alike: with the same batch, of which each computes every n-th micro-batch. What a call gives is the same on all, and
            but for the order of sums what a single process gives; critics are whole on each. None for a single process.

    Raises:
        ConfigError: a model is missing, or its vocabulary is not the policy's.

    Attributes:
        version: updates done; the version of the published weights, counted over all stages of a run.
        place: where the schedule stands: updates done or skipped by this learner.
    """

    def __init__(
        self,
        model: Model | HubModel,
        settings: LearnerSettings,
        *,
        total_steps: int,
        models: Mapping[str, Model | HubModel] | None = None,
        version: int = 0,
        ranks: Collectives | None = None,
    ) -> None:
        self.settings, self.total_steps, self.version, self.place, self.ranks = settings, total_steps, version, 0, ranks
        self._start = model
        self.policy = decoder_of(model, settings, ranks)
        self.anchors = AnchorModels(settings, model, self.policy, models or {}, version, ranks)
        self.parameters = self.policy.trainable_parameters()
        self.gradient = gradient_of(self.policy, ranks)
        self.optimizer = build_optimizer(settings.optimizer, self.parameters, settings.kernel)
        self.heads = Heads(settings, model)
        self.passes = Forwards(self.policy, self.anchors, self.heads, settings, ranks)
        self._layout = Layout(self.policy, self.anchors)
        self._trained = self.parameters | self.heads.parameters
        self._watch = GradientWatch(self.parameters, ranks)

    # ---- passes without gradient

    def annotate(self, batch: Batch, forward: Forward, *more: Forward) -> Batch:
        """The batch with ``forward.column`` (and those of ``more``) filled on loss tokens: its statistic over the vocabulary, a
        head's values (its name and ``_old``, ``_now`` or ``_target``), log-probabilities (``logp*``) or entropies (``entropy*``).
        Columns of one model share a pass.

        Raises:
            PlanError: the column is none of these.
            UnknownNameError: no such model.
        """
        return self.passes.fill(batch, (forward, *more), self.version)

    def score(self, rows: Sequence[Ids], model: str = "policy") -> list[NDArray[np.float32]]:
        """Log-probability at temperature 1 of each token given those before it, ``[len(row)]`` with 0 first, in fp32 whatever the
        training precision.

        Raises:
            DataError: a row is too long or has unknown ids.
            UnknownNameError: no such model.
        """
        out = [np.zeros(len(row), np.float32) for row in rows]
        self.passes.model(model)
        long = [i for i, row in enumerate(rows) if len(row) > 1]
        if not long:
            return out
        made = [(i, _every_token(rows[row])) for i, row in enumerate(long)]
        batch = pack_rows(made, {"group": np.arange(len(long))})
        every = np.zeros(int(batch.offsets[-1]), np.float32)
        with torch.no_grad():
            for _, part, counts in self.passes.split_parts(self.passes.micro_batches(batch)):
                micro = batch.micro(part)
                ids, packing, where = self.passes.inputs(micro, model, exact=True)
                values = np.zeros(int(micro.offsets[-1]), np.float32)
                values[array_of(where)] = array_of(self.passes.logp(model, (ids, packing, where)))
                for row, a, b in zip(part.tolist(), micro.offsets[:-1], micro.offsets[1:], strict=True):
                    every[batch.offsets[row] : batch.offsets[row + 1]] = values[a:b] * counts
        self.passes.complete({"scores": every})
        for row, a, b in zip(long, batch.offsets[:-1], batch.offsets[1:], strict=True):
            out[row] = every[a:b]
        return out

    # ---- the step

    def step(self, batch: Batch, plan: Plan, loss: LossProgram, observer: PassObserver | None = None, rate: float = 1.0) -> Stats:
        """One optimiser update from a batch, at ``rate`` times the schedule's learning rate, of heads too; ``observer`` is shown
        each micro-batch that is computed here.

        Micro losses add up to the batch's loss, because the program divides by global counts. With ``plan.skip`` only rows in
        ``loss.active`` are computed. A step without any active row still moves by the optimiser's momentum, as it would with zero
        gradients.

        Raises:
            PlanError: ``plan.live`` names a column that a decoder does not give.
            NonFiniteError: loss or gradient norm is NaN or infinite; weights and optimiser stay as they were.
            DataError: rows too long, unknown ids, or a first token with loss.
            RankError: another rank did not come to the same point; weights and optimiser stay as they were.
        """
        given, stats = self.settings.offers.live, {s.name for s in plan.vocab}
        for name in plan.live:
            if name not in given and name not in stats:
                raise PlanError(f"Plan.live asks for {name!r}; this learner's gradient pass gives {' and '.join(given)} only")
        begin = _now(self.policy.device)
        tally, sums = _Tally(given=len(batch)), dict[str, float]()
        batch = self._prepare_batch(batch, plan, loss)
        scored = _now(self.policy.device)
        with span("credit"):
            rows = np.flatnonzero(loss.active(batch)) if plan.skip else None
        self.gradient.clear()
        self.heads.clear()
        self._passes(batch, plan, (loss, observer), (tally, sums), self.passes.micro_batches(batch, plan.split, rows))
        tally, sums = self._together(tally, sums)
        with span("optimizer"):
            norm = self._clip()
            norms = self.heads.clip(self.version)
        optimizing = _now(self.policy.device)
        factor = rate * self.settings.schedule.factor(self.place, self.total_steps)
        moves = self._moves()
        if moves and norm * factor > 0:
            self._watch.look({name: p.grad for name, p in self.parameters.items()})
        with span("optimizer"):
            if moves:
                self.optimizer.step(factor)
            self.heads.step(factor, self.place)
        self.version += 1
        self._advance(1)
        return Stats(
            metrics={
                **sums,
                "loss/total": tally.loss,
                "grad/norm": norm,
                **norms,
                **({"grad/untrained": float(len(self._watch.untrained))} if self._watch.untrained else {}),
                "lr": self.settings.optimizer.lr * factor * moves,
                "rows/computed": float(tally.rows),
                "rows/skipped": float(tally.given - tally.rows),
                "waste/rows_skipped": 1.0 - tally.rows / tally.given,
                "waste/attention_padding": 1.0 - tally.useful / tally.tokens if tally.tokens else 0.0,
                "tokens/trained": float(tally.loss_tokens),
                "tokens/computed": float(tally.tokens),
                "time/tokens_recalled": float(tally.recalled),
                "time/prepare": scored - begin,
                "time/forward_backward": tally.seconds,
                "time/optimizer": _now(self.policy.device) - optimizing,
            },
            untrained=self._watch.untrained,
        )

    def _passes(
        self,
        batch: Batch,
        plan: Plan,
        told: tuple[LossProgram, PassObserver | None],
        totals: tuple[_Tally, dict[str, float]],
        parts: Sequence[NDArray[np.int64]],
    ) -> None:
        """The gradients of all micro-batches. On several ranks an error of one's own waits until all can hear of it: the others
        would wait for its passes.
        """
        found: AssayError | None = None
        for place, part, counts in self.passes.split_parts(parts):
            try:
                self._micro(batch.micro(part), plan, told, totals if counts and not found else None, place)
            except NonFiniteError as error:
                found = error
                if self.ranks is None:
                    raise
        if self.ranks is not None:
            self.ranks.agree(found)
        self.gradient.collect()

    def _together(self, tally: _Tally, sums: dict[str, float]) -> tuple[_Tally, dict[str, float]]:
        """What a step adds up, and critics' gradients, of all ranks; seconds stay this rank's own."""
        if self.ranks is None:
            return tally, sums
        for name, gradient in self.heads.gradients.items():
            self.ranks.add(gradient, f"gradient of the {name}")
        given, seconds = tally.given, tally.seconds
        if not self.ranks.counts:
            tally, sums = _Tally(), {}
        total = self.ranks.totals(asdict(tally)) | {"seconds": seconds, "given": given}
        return _Tally(**cast(Any, total)), self.ranks.totals(sums)

    def _moves(self) -> bool:
        """Whether the policy moves at this step, not its heads alone."""
        after = self.place - self.settings.policy_after
        return after >= 0 and after % self.settings.policy_every == 0

    def skip(self, updates: int) -> None:
        """Counts updates that were to be made and found nothing to learn from: the schedule goes on without them."""
        self._advance(updates)

    def _advance(self, updates: int) -> None:
        """Moves on in the schedule, and the anchors after it."""
        self.anchors.follow(self.policy, self.version, self.place, self.place + updates)
        self.place += updates

    def _prepare_batch(self, batch: Batch, plan: Plan, loss: LossProgram) -> Batch:
        forwards = [f for f in plan.forwards if f.when == "step" or self._outdated(batch, f)]
        with span("forward"):
            batch = self.passes.fill(batch, forwards, self.version)
        with span("credit"):
            return loss.prepare(batch)

    def _outdated(self, batch: Batch, forward: Forward) -> bool:
        """Whether a column comes from weights that its anchor no longer has: it moved between two updates of a rollout batch.

        A statistic that reads the policy too stays as it was, for the policy of that time is gone; `Plan` and anchors that would
        disagree so are refused before a run begins (`assay.train.preflight`).
        """
        column = batch.tokens.get(forward.column)
        if column is None or column.producer != "learner" or forward.model not in self.anchors:
            return False
        if forward.stat is not None and forward.stat.models:
            return False
        return column.version != self.anchors.versions[forward.model]

    def _micro(
        self,
        micro: Batch,
        plan: Plan,
        told: tuple[LossProgram, PassObserver | None],
        totals: tuple[_Tally, dict[str, float]] | None,
        index: int,
    ) -> None:
        """Adds one micro-batch's gradient, loss and metric sums; where these do not count (None), only passes are made."""
        ids, packing, where = self.passes.inputs(micro)
        begin = _now(self.policy.device)
        with span("forward"), self.passes.autocast():
            found = self.passes.live((ids, packing, where), micro, plan)
            recalled = self.policy.recalled
        if totals is None:
            _back(_nothing(found))
            return
        tally, sums = totals
        at = where.cpu()
        live = {
            name: torch.zeros(int(micro.offsets[-1]), *column.shape[1:], dtype=column.dtype).index_copy(0, at, column.cpu())
            for name, column in found.items()
        }
        loss, observer = told
        with span("forward"):
            if observer is not None:
                observer.observe(micro, live)
            value, metrics = loss.micro(micro, live)
            number = float(value.detach())
        try:
            check_loss(number, self.version, index, micro, live, self._trained)
        except NonFiniteError:
            if self.ranks is not None:
                _back(_nothing(found))
            raise
        if self.ranks is not None and not value.requires_grad:
            value = _nothing(found)  # the other ranks wait for this one's backward pass
        if value.requires_grad:
            _back(value)
        tally.recalled += recalled
        tally.seconds += _now(self.policy.device) - begin
        tally.add(micro, packing, number)
        for name, amount in metrics.items():
            sums[name] = sums.get(name, 0.0) + amount

    def _clip(self) -> float:
        norm = self.gradient.norm()
        check_gradient(norm, self.version, self.parameters)
        if 0 < self.settings.clip_norm < norm:
            self.gradient.scale(self.settings.clip_norm / (norm + 1e-6))
        return norm

    # ---- weights in and out

    def publish(self, dtype: str = "float32", digests: str = "blake2b") -> Manifest:
        """The present weights as a full manifest, version = updates done, for an engine whose `EngineInfo` says this.

        The payload may be the live weights: a receiver copies them before the next step. On several ranks it is the first's; the
        others give one that names nothing.

        Raises:
            ConfigError: another dtype or kind of digest.
        """
        whole = ((name, self.policy.whole(name, p.detach())) for name, p in self.parameters.items())
        if self.ranks is None:
            return make_manifest(self.version, dict(whole), dtype, digests)
        first = self.ranks.index == 0
        kept = {name: tensor.to(served_dtype(dtype)) for name, tensor in whole if first}  # on the others each goes as it came
        return make_manifest(self.version, kept, dtype, digests)

    def weights(self) -> dict[str, Tensor]:
        """What is trained, whole: on a single process the very weights."""
        return {name: self.policy.whole(name, p.detach()) for name, p in self.parameters.items()}

    def model(self) -> Model | HubModel:
        """The present weights as a model, with the adapter beside its base where one is trained."""
        tensors = {name: p.cpu().clone() for name, p in self.weights().items()}
        if isinstance(self._start, Model):
            if self.settings.adapter is None:
                return replace(self._start, tensors=tensors)
            from assay.runtime.models.hub_model import hub_of

            start = hub_of(self._start)
        else:
            start = self._start
        return start.with_trained(tensors, self.settings.adapter)

    @property
    def native(self) -> bool:
        """Whether assay's own engine can serve what is trained."""
        return isinstance(self._start, Model) and self.settings.adapter is None and self.policy.device.type == "cpu"

    @property
    def replays_routing(self) -> bool:
        """Whether passes send tokens to the experts that the engine chose for them."""
        return self.policy.replay is not None

    @property
    def synchronize(self) -> Callable[[], None] | None:
        """Waits until a CUDA device has done what it was given; None on a CPU."""
        return wait_for(self.policy.device)

    def notes(self) -> list[tuple[str, str]]:
        """Says where rows are padded."""
        note = self.policy.note
        return [("rows", f"rows are padded to rectangles: {note}")] if note else []

    def export_heads(self) -> Kept:
        """The critics, for the learner of a later stage."""
        return self.heads.export_heads()

    def load_heads(self, heads: Kept) -> None:
        """Takes over the critics of a learner before, which it `kept`."""
        self.heads.load_heads(heads)

    def close(self) -> None:
        """Nothing is held but memory."""

    @contextmanager
    def perturbed_weights(self, dtype: str = "float32") -> Generator[PerturbsWeights]:
        """Inside, every published tensor carries strong noise; behind it all are bit for bit as before."""
        with disturb_weights(self.policy) as kept:
            manifest = self.publish(dtype)
            yield PerturbsWeights(manifest=manifest, effects=lambda rows: effects(self.parameters, kept, self.score, rows))

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Everything that a step reads or writes: ``weights``, ``optimizer`` and ``anchors``, each name to tensor; with heads
        ``heads`` and ``heads_optimizer`` too.
        """
        return {
            "weights": {n: p.detach() for n, p in self.parameters.items()},
            "optimizer": self.optimizer.tensors(),
            "anchors": self.anchors.tensors(),
            **self.heads.tensors(),
        }

    def state_digest(self) -> str:
        """Digest over version, weights, optimiser state, anchors with their versions, and heads; on all ranks the same."""
        parts = {
            part: {name: array_digest(array_of(self._layout.whole(part, name, t))) for name, t in tensors.items()}
            for part, tensors in self.tensors().items()
        }
        return digest({"version": self.version, "anchored": self.anchors.versions, **parts})

    def save(self, folder: Path) -> None:
        """Writes each part of `tensors` as safetensors, of several ranks as shards, and the rest as ``learner.json``.

        Raises:
            OSError: the folder cannot be written.
        """
        if self.ranks is None:
            snapshot.write(folder, self.tensors(), self._facts())
            return
        from assay.runtime.distributed import checkpoint as shards

        shards.write(folder, self._layout.shard(self.tensors()))
        if self.ranks.index == 0:
            snapshot.write(folder, {}, self._facts())

    def load(self, folder: Path) -> None:
        """Restores what `save` wrote, on however many ranks; further steps are bit-equal to those of the learner that wrote it on
        as many.

        Raises:
            CheckpointError: a file is missing, damaged, or of another model, optimiser, set of anchors or heads; nothing changed.
        """
        counters, digests = snapshot.read_facts(folder, self._facts())
        found = self._read(folder, digests)
        optimizers = self.heads.load_optimizers(found.get("heads_optimizer", {}))
        self.optimizer.load_tensors(found.get("optimizer", {}))
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(found["weights"][name])
        self.anchors.load(found.get("anchors", {}), counters["anchored"])
        self.heads.load(found.get("heads", {}), optimizers)
        self.version, self.place = counters["version"], counters["place"]
        self._watch.load_state_dict(counters["gradients"])

    def _read(self, folder: Path, digests: Mapping[str, str]) -> dict[str, dict[str, Tensor]]:
        """Parts, this rank's, of a checkpoint's tensors, checked; those of optimisers are checked where they go."""
        now = self._layout.shard(self.tensors())
        wanted = {k: None if "optimizer" in k else {n: tuple(t.shape) for n, t in part.items()} for k, part in now.items()}
        if not (folder / "shards").exists():
            return self._layout.own(snapshot.read(folder, digests, wanted))
        from assay.runtime.distributed import checkpoint as shards

        return shards.read(folder, wanted, self._layout.allocate)

    def _facts(self) -> dict[str, object]:
        return {
            "version": self.version,
            "place": self.place,
            "shape": self._start.shape,
            "optimizer": type(self.settings.optimizer).__name__,
            "anchors": sorted(self.anchors),
            "anchored": self.anchors.versions,
            "gradients": self._watch.state_dict(),
            **self.heads.facts(),
        }


def _now(device: torch.device) -> float:
    """Seconds, once the device has done what it was given: what CUDA still works at would count as whatever waits for it next."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _back(loss: Tensor) -> None:
    with span("backward"):
        cast(Any, loss).backward()


def _nothing(live: Mapping[str, Tensor]) -> Tensor:
    """A loss that moves nothing, with the passes of one that does."""
    return torch.stack([column.nan_to_num(0.0, 0.0, 0.0).sum() for column in live.values()]).sum() * 0.0


def _every_token(ids: Ids) -> Sample:
    mask = np.ones(len(ids), np.bool_)
    mask[0] = False
    return Sample(rollout="", ids=ids, mask=mask)

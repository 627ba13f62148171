"""The model card of an export: where a model comes from and how it did, as the run folder's records say it, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.core.canon import digest
from assay.core.util.hub import HubName
from assay.measure import EvalLine, RunView
from assay.publish.training_data import HubRows, hub_rows
from assay.runs import checkpoint, storage
from assay.runtime.models.adapter_base import named_base
from assay.train.models import model_folder

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel
    from assay.runtime.models.exported import Reloaded

__all__ = ["Provenance", "card_text"]

MODES = ("greedy", "sampled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What is known of an exported model.

    Attributes:
        run: the records; None of a model without a run.
        step: whose weights these are; None without a run.
        digest: of the finished run; empty of any other.
        form, dtype: as exported.
        architecture, parameters: of the model.
        rounded: whether ``dtype`` holds less than what was trained.
        base_name: ``owner/name`` on a hub, where the weights beneath an adapter, or those that training began with, are
            from there.
        base_revision: its commit.
        base: the same in words, of whatever it is.
        base_digest: of the weights that the run began with.
        recipe: how the run was asked for; empty where it does not say.
        adapter: the adapter's settings in words; empty without one.
        data: data sets on a hub that the run learned from, or that its tasks hold out.
    """

    run: RunView | None
    step: int | None
    digest: str
    form: str
    dtype: str
    architecture: str
    parameters: int
    rounded: bool
    base_name: str
    base_revision: str
    base: str
    base_digest: str
    recipe: str
    adapter: str
    data: tuple[HubRows, ...]

    @classmethod
    def of(
        cls, place: Path, run: RunView | None, step: int | None, model: AnyModel, form: str, dtype: str, beneath: Path
    ) -> Provenance:
        """Of what lies in ``place``; ``beneath`` holds the weights under an adapter."""
        adapter: Any = getattr(model, "adapter", None)
        name, base = _base(run) if run else _base_of_folder(place)
        if name and run and form == "adapter" and not _begun_on(place / "start", beneath):
            name = None
        done: dict[str, Any] = storage.read_json(place / "done.json") if run and (place / "done.json").exists() else {}
        asked: dict[str, Any] = storage.read_json(place / "recipe.json") if run and (place / "recipe.json").exists() else {}
        return cls(
            run=run,
            step=step,
            digest=str(done["digest"]) if done.get("step") == step and done else "",
            form=form,
            dtype=dtype,
            architecture=_architecture(model.shape),
            parameters=model.shape.parameters,
            rounded=dtype != "float32",
            base_name=name.repo if name else "",
            base_revision=name.revision if name else "",
            base=base,
            base_digest=_weights_digest(place / "start") if run else "",
            recipe=" ".join(map(str, (asked["recipe"], *asked["args"]))) if asked else "",
            adapter=_adapter(adapter.settings) if adapter is not None else "",
            data=hub_rows(run.settings, step or 0) if run else (),
        )


def _architecture(shape: Any) -> str:
    return getattr(shape, "architecture", "") or ("Qwen3ForCausalLM" if shape.qk_norm else "LlamaForCausalLM")


def _base_of_folder(place: Path) -> tuple[HubName | None, str]:
    """As `_base`, of a model without a run: known of an adapter alone, whose config names it."""
    name = named_base(model_folder(place))
    return name, f"{name.repo} at commit {name.revision}" if name else "not recorded"


def _base(run: RunView) -> tuple[HubName | None, str]:
    """The base's name on a hub, and what it is in words."""
    source = _part(run.settings, "model")
    kind = str(source.get("kind", "")).rpartition(":")[2]
    if kind == "Folder":
        name = HubName.read(str(source["path"]))
        pinned = name if name and name.pinned else None
        return (
            pinned,
            f"{pinned.repo} at commit {pinned.revision}" if pinned else f"the local folder {Path(source['path']).name!r}",
        )
    if kind == "Scratch":
        return None, f"fresh weights, seed {source.get('seed', 0)}"
    if kind == "Built":
        inner = _part(source, "run")
        return None, f"{inner.get('name', 'a base')!r}, another run of assay, seed {inner.get('seed', 0)}"
    return None, "not recorded"


def _begun_on(start: Path, beneath: Path) -> bool:
    """Whether what lies beneath an adapter is the whole of what training began with: no earlier stage trained it, and it was no
    adapter itself, whose own base has another name.
    """
    from assay.runtime.models.adapter_files import base_digest
    from assay.runtime.models.hf import load_model
    from assay.runtime.models.hub_model import hub_of

    began = hub_of(load_model(start))
    return began.adapter is None and base_digest(began) == base_digest(hub_of(load_model(beneath)).base())


def _weights_digest(folder: Path) -> str:
    found = {name: value for name, value in checkpoint.file_digests(folder).items() if name.endswith(".safetensors")}
    return digest(found) if found else ""


def _adapter(settings: Any) -> str:
    kind = "DoRA" if settings.dora else "LoRA"
    where = ", ".join(settings.targets) or "all linear layers but the head"
    return f"{kind}, rank {settings.rank}, alpha {settings.alpha:g}, on {where}"


# ---- the text ----------------------------------------------------------------------------------------------------------------


def card_text(known: Provenance, name: str, reloaded: Reloaded | None) -> str:
    """``README.md`` of an exported folder, with the front matter that hubs read.

    Args:
        known: what the records say.
        name: of the folder.
        reloaded: what loading it again showed; None where nobody looked.
    """
    parts = [
        f"# {name}",
        _opening(known),
        "## Lineage\n\n" + _table(_lineage(known)),
        "## Evaluation\n\n" + _evaluation(known),
        "## Use\n\n" + _use(known, name),
        "## This folder\n\n" + _folder(known, reloaded),
    ]
    return f"---\n{_front_matter(known, name)}---\n\n" + "\n\n".join(parts) + "\n"


def _front_matter(known: Provenance, name: str) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    tags = ["assay", *(["reinforcement-learning"] if "Reinforce" in _kinds(known) else [])]
    given: dict[str, Any] = {
        "library_name": "peft" if known.form == "adapter" else "transformers",
        "pipeline_tag": "text-generation",
    }
    if known.base_name:
        relation = "adapter" if known.form == "adapter" else "finetune"
        given |= {"base_model": known.base_name, "base_model_relation": relation}
    if known.data:
        given["datasets"] = sorted({rows.repo for rows in known.data})
    family = _tasks(known)[0] if len(_tasks(known)) == 1 else _word(_part(known.run.settings, "tasks")) if known.run else ""
    results = [
        EvalResult(
            task_type="text-generation",
            dataset_type=f"assay/{family}",
            dataset_name=f"{', '.join(_tasks(known))} ({'held out' if _whose(known.run) == 'held-out' else 'trained on'})",
            metric_type="accuracy",
            metric_name=f"{mode} accuracy",
            metric_value=round(line.accuracy(_threshold(known)).value, 6),
        )
        for mode, line in _measured_lines(known).items()
    ]
    if results:
        given |= {"model_name": name, "eval_results": results}
    data: Any = ModelCardData(tags=tags + (["lora"] if known.adapter else []), **given)
    return f"{data.to_yaml()}\n"


def _opening(known: Provenance) -> str:
    what = f"{known.architecture}, {known.parameters:,} parameters"
    if known.run is None:
        return (
            f"{what}. Exported by assay from a model folder without the records of a run: how it was trained is not known here."
        )
    how = "trained by reinforcement learning with verifiable rewards" if "Reinforce" in _kinds(known) else "trained"
    return f"{what}, {how} with assay."


def _lineage(known: Provenance) -> dict[str, str]:
    if known.run is None:
        return {"run": "none recorded"}
    view, until = known.run, known.step or 0
    lines = [x for x in view.metrics if x.step <= until]
    tokens = {n: sum(x.metrics.get(f"tokens/{n}", 0.0) for x in lines) for n in ("sampled", "trained")}
    proofs = [x.metrics["proof/state"] for x in lines if "proof/state" in x.metrics]
    return {
        "base": known.base,
        "digest of the base's weights": known.base_digest or "not recorded",
        "run": f"{view.settings.get('name', view.name)}" + (", finished" if known.digest else ", not finished at these weights"),
        "digest of the run": known.digest or "none: only a finished run has one",
        "recipe": f"`assay train {known.recipe}`" if known.recipe else "not recorded (started from Python)",
        "stages": " → ".join(_stages(view, until)),
        "adapter": known.adapter or "none",
        **({"data sets": "; ".join(map(str, known.data))} if known.data else {}),
        "tasks": ", ".join(_tasks(known)),
        "seed": "not recorded" if view.seed is None else str(view.seed),
        "steps": f"{until:,} of {view.planned_steps:,} planned" if view.planned_steps else f"{until:,}",
        "tokens": f"{tokens['sampled']:,.0f} sampled, {tokens['trained']:,.0f} trained on",
        "weights in the sampler": _describe_proofs(proofs),
        "versions": ", ".join(f"{n} {view.versions[n]}" for n in ("assay", "torch", "numpy", "python") if n in view.versions),
    }


def _describe_proofs(proofs: Sequence[float]) -> str:
    """After how many steps of reinforcement learning the sampler was proved to serve the trained weights."""
    if not proofs:
        return "unproven: no step sampled"
    proved = sum(1 for p in proofs if p == 1)
    if proved == len(proofs):
        return f"proved after each of {proved:,} steps"
    return f"unproven: proved after {proved:,} of {len(proofs):,} steps"


def _stages(view: RunView, until: int) -> list[str]:
    """Each stage that had begun, with its steps and its objective in a line."""
    out: list[str] = []
    before = 0
    for stage in cast("list[Mapping[str, Any]]", view.settings.get("stages", [])):
        steps = int(stage.get("steps", 0))
        if before < until or not out:
            done = min(steps, max(0, until - before))
            out.append(f"{_word(stage)}, {done:,} of {steps:,} steps, {_objective(_part(stage, 'objective'))}")
        before += steps
    return out


def _objective(table: Mapping[str, Any]) -> str:
    """``objective Credit, Credit; Policy with Trust + 0.1 Term; Aggregate``, of what there is."""
    credit = [_word(part) for part in cast("list[Mapping[str, Any]]", table.get("credit", []))]
    policy, terms = _part(table, "policy"), cast("list[Mapping[str, Any]]", table.get("terms", []))
    losses = [_term(part) for part in ((policy, *terms) if policy else terms)]
    parts = (", ".join(credit), " + ".join(losses), _word(_part(table, "aggregate")))
    return "objective " + "; ".join(part for part in parts if part)


def _term(table: Mapping[str, Any]) -> str:
    """A term of a loss: its weight where that is not 1, and what bounds its ratio."""
    coef: Any = table.get("coef", 1.0)
    trust = _word(_part(table, "trust"))
    weight = f"{coef:g} " if isinstance(coef, int | float) and coef != 1.0 else ""
    return weight + _word(table) + (f" with {trust}" if trust else "")


def _part(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A table inside another; empty where there is none."""
    found: Any = table.get(name)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _word(table: Mapping[str, Any]) -> str:
    return str(table.get("kind") or table.get("class") or "").rpartition(":")[2]


def _kinds(known: Provenance) -> list[str]:
    stages = cast("list[Mapping[str, Any]]", known.run.settings.get("stages", [])) if known.run else []
    return [_word(stage) for stage in stages]


def _tasks(known: Provenance) -> list[str]:
    """The arms that the evaluations name; else the family's class."""
    arms = sorted({arm for line in (known.run.evals if known.run else ()) for arm in line.arms})
    if arms:
        return arms
    return [(_word(_part(known.run.settings, "tasks")) if known.run else "") or "tasks"]


def _threshold(known: Provenance) -> float:
    return known.run.threshold if known.run else 1.0


def _measured_lines(known: Provenance) -> dict[str, EvalLine]:
    """The held-out evaluations of just these weights, by mode."""
    if known.run is None:
        return {}
    found = {mode: [e for e in known.run.evaluations(mode) if e.step == known.step] for mode in MODES}
    return {mode: lines[-1] for mode, lines in found.items() if lines}


def _evaluation(known: Provenance) -> str:
    view, measured = known.run, _measured_lines(known)
    if view is None:
        return "None recorded."
    if not measured:
        return "These weights were not evaluated on held-out tasks.\n\n" + _overlap(view)
    rows = [f"| {_whose(view)} tasks | answers | before | these weights | tasks |", "|---|---|---|---|---|"]
    for mode, line in measured.items():
        base = view.base(mode)
        before = base.shared_with(line) if base is not None and base.step < line.step else None
        cells = line.cells if len(line.cells) > 1 else ()
        for label, arm, level in [("all", None, None), *((f"{arm}, level {level}", arm, level) for arm, level in cells)]:
            here = line.only(level, arm)
            old = before.only(level, arm) if before else None
            first = str(old.accuracy(view.threshold)) if old is not None and old.items else "–"
            rows.append(f"| {label} | {mode} | {first} | {here.accuracy(view.threshold)} | {len(here.items):,} |")
    said = "Accuracy with 95 % intervals over tasks. Greedy: the likeliest answer. Sampled: as the run samples."
    if known.rounded:
        said += f" Measured in the run, before the weights were rounded to {known.dtype}."
    return "\n".join(rows) + f"\n\n{said}\n\n" + _overlap(view)


def _whose(view: RunView | None) -> str:
    """Which tasks an evaluation is of: a run without held-out tasks evaluates on those that it trains on."""
    return "held-out" if view is None or view.held_out else "training"


def _overlap(view: RunView) -> str:
    return f"Evaluation items in training: {view.overlap}."


def _use(known: Provenance, name: str) -> str:
    if known.form == "adapter":
        return (
            "```python\nfrom peft import AutoPeftModelForCausalLM\nfrom transformers import AutoTokenizer\n\n"
            f"model = AutoPeftModelForCausalLM.from_pretrained({json.dumps(name)})\n"
            f"tokenizer = AutoTokenizer.from_pretrained({json.dumps(name)})\n```"
        )
    return (
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        f'model = AutoModelForCausalLM.from_pretrained({json.dumps(name)}, dtype="auto")\n'
        f"tokenizer = AutoTokenizer.from_pretrained({json.dumps(name)})\n```"
    )


def _folder(known: Provenance, reloaded: Reloaded | None) -> str:
    parts = {"merged": "All weights" + (", the adapter added to them in float32" if known.adapter else "")}
    if known.form == "adapter":
        beneath = (
            f"`{known.base_name}` at commit {known.base_revision}" if known.base_name else "the folder in `adapter_config.json`"
        )
        parts["adapter"] = f"An adapter in PEFT's format; its base is {beneath}"
    rounded = ", rounded from float32 to the nearest, ties to even" if known.rounded else ""
    first = f"{parts[known.form]}. Numbers are {known.dtype}{rounded}."
    if reloaded is None:
        return f"{first} It was not loaded again after it was written."
    return (
        f"{first} Loaded again by transformers after it was written: {reloaded.tensors:,} tensors hold the bits that they "
        f"should, log-probabilities of {reloaded.tokens:,} probe tokens differ from the run's model by {reloaded.mean:.2g} nats "
        f"on average and {reloaded.worst:.2g} at most (allowed: {reloaded.tolerance:g}), and {reloaded.texts:,} texts have the "
        "same ids."
    )


def _table(rows: Mapping[str, str]) -> str:
    return "| | |\n|---|---|\n" + "\n".join(f"| {k} | {v.replace('|', chr(92) + '|')} |" for k, v in rows.items())

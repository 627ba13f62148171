"""Sphinx settings: Markdown sources, furo, no network, and every docstring example run by doctest."""

import pkgutil
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx

import assay

project = "assay"
author = "The assay authors"
copyright = author
version = release = assay.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["build"]

html_theme = "furo"
html_title = "assay"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": False}
# Packages need nothing but what is installed; a missing extra must fail loudly here.
autodoc_mock_imports: list[str] = []
python_use_unqualified_type_names = True

# `>>>` in docstrings and pages runs; a fenced python block without prompts is for reading.
doctest_test_doctest_blocks = "default"
doctest_global_setup = "import numpy as np"
trim_doctest_flags = True

# References to our own public names must resolve; those to other projects cannot, offline.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!assay\.).*"),
    (r"py:.*", r"assay\.(.*\.)?_.*"),
]
# Types that signatures of public names mention and that no package offers: protocols and parts which a reader never writes down.
nitpick_ignore = [
    ("py:class", "assay.measure.history.Practised"),
    ("py:class", "assay.train.judge_rewards.Relevance"),
    ("py:class", "assay.curate.phrase_frequency.Common"),
    ("py:class", "assay.curate.question_keys.Questions"),
    ("py:class", "assay.curate.question_keys.Templates"),
    ("py:class", "assay.agents.recorder.Pose"),
    ("py:class", "assay.core.util.renamed.RenamedMembers"),
    ("py:class", "assay.guide.box_curricula.AlpGmmBook"),
    ("py:class", "assay.guide.classroom.AgainBook"),
    ("py:class", "assay.guide.promoted_levels.PromotedBook"),
    ("py:class", "assay.guide.rethink.RethinkGuidance"),
    ("py:class", "assay.guide.hints.SeeleGuidance"),
    ("py:class", "assay.guide.prompt_values.PromptValueCurriculum"),
    ("py:class", "assay.scorers.policy_aware.PolicyAwareScorer"),
    ("py:class", "assay.scorers.reward_model.RewardModelScorer"),
    ("py:class", "assay.verify.confidence.ConfidenceMarks"),
    ("py:class", "assay.guide.index_policies.InOrderIndex"),
    ("py:class", "assay.objective.methods.requires.Requires"),
    ("py:class", "assay.train.columns.Live"),
    ("py:class", "assay.guide.pope.PopeGuidance"),
    ("py:class", "assay.rollout.tool_class.EpisodeTool"),
    ("py:class", "assay.rollout.tool_limits.F"),
    ("py:class", "assay.runtime.engine.settings.Movable"),
    ("py:class", "assay.train.balance.LossBalance"),
    ("py:class", "assay.train.weights.ServedWeights"),
    ("py:class", "assay.train.source_stage.SourceStage"),
    ("py:class", "assay.train.source_batch.SourceRows"),
    ("py:class", "assay.train.row_replay.RowReplayBuffer"),
    ("py:class", "assay.runtime.engine.decode.Prefill"),
    ("py:class", "assay.runtime.engine.hub_cache.HubPrefill"),
    ("py:class", "assay.runtime.distributed.collectives.T"),
    ("py:class", "assay.runtime.engine.scheduler.RunningBatch"),
    ("py:class", "assay.runtime.vllm.transfer.Transfer"),
    ("py:class", "assay_tasks.phases.SingleUse"),
    ("py:class", "assay.rollout.tool_calls.Asked"),
    ("py:class", "assay.runtime.text.tokenizer.FolderChatSettings"),
    ("py:class", "assay.runtime.vllm.facts.Shaped"),
    ("py:class", "assay.sandbox.backends.container.ContainerWorker"),
    ("py:class", "assay.sandbox.backends.remote.RemoteWorker"),
    ("py:class", "assay.sandbox.backends.wasi.WasiWorker"),
    ("py:class", "assay.sandbox.client.Zygote"),
    ("py:class", "assay.tasks.draws.TaskCoordinates"),
    ("py:class", "assay_tasks.puzzles.solver.Model"),
    ("py:class", "assay.runs.reader.T"),
    ("py:class", "assay.runs.row_history.RowRecord"),
    ("py:class", "assay.testing.slips.Fuzzed"),
    ("py:class", "assay.train.independent_check.IndependentChecker"),
    ("py:class", "assay.train.memory.MemoryEstimate"),
    ("py:class", "assay.train.memory.WeightSizes"),
    ("py:class", "assay.verify.user_reward.Pending"),
    ("py:class", "assay.train.judgements.RunJudges"),
    ("py:class", "assay.train.mismatch.Agreement"),
    ("py:class", "assay.train.proof.WeightProof"),
    ("py:class", "assay.train.run.ModelSource"),
    ("py:class", "assay.train.offline_rows.OfflineRows"),
    ("py:class", "assay.verify.code.base.Gold"),
    ("py:class", "assay.verify.code.cases.ProgramCase"),
    ("py:class", "assay.scorers.reference.ReferenceScorer"),
]


def _bind_lazy_names() -> None:
    """Bind the lazy names of every package in its namespace, where autodoc looks for them."""
    names = [found.name for found in pkgutil.iter_modules(assay.__path__, "assay.") if found.ispkg]
    for name in [*names, "assay_control", "assay_tasks"]:
        package = import_module(name)
        vars(package).update({offered: getattr(package, offered) for offered in getattr(package, "__all__", ())})


_bind_lazy_names()

_EXAMPLE = re.compile(r"^(```python\n)?(>>> .*\n(?:(?!```).+\n)*)(?(1)```\n)", re.MULTILINE)


def _run_examples(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn a page's `>>>` paragraphs into doctest blocks: plain Markdown takes them for quotations."""
    source[0] = _EXAMPLE.sub(r"```{doctest}\n\2```\n", source[0] + "\n")


_TITLES: dict[str, nodes.bullet_list] = {}


def _titles(contents: nodes.bullet_list) -> nodes.bullet_list:
    """The contents of a page without its sections, classes and functions: its title and the pages below it."""
    contents = contents.deepcopy()
    for entry in contents.children:
        if len(entry) > 1:
            below = list(entry.findall(toctree))
            entry[1:] = [nodes.bullet_list("", *below)] if below else []
    return contents


def _render_titles(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Let the sidebar, which shows titles alone, be made of titles.

    Most of a build's time would go into copying all contents of all pages, for each of hundreds of pages, to drop them.
    """
    render = context["toctree"]
    if not _TITLES:
        _TITLES.update({name: _titles(contents) for name, contents in app.env.tocs.items()})

    def sidebar(**settings: Any) -> str:
        whole = app.env.tocs
        app.env.tocs = _TITLES if settings.get("titles_only") else whole
        try:
            return render(**settings)
        finally:
            app.env.tocs = whole

    context["toctree"] = sidebar


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _run_examples)
    app.connect("html-page-context", _render_titles, priority=1)  # before the theme's own

"""What of a recipe's chat settings another model keeps."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.core.errors import AssayError

if TYPE_CHECKING:
    from assay.train.models import Folder
    from assay.train.run import Run

__all__ = ["drop_foreign_options"]


def drop_foreign_options(before: Run, after: Run) -> tuple[Run, str]:
    """The run without options of a chat template that its recipe gives for its own model and another model's template lacks.

    Options that were given for the other model stay, and are refused where the model is read if its template lacks them.

    Args:
        before: as the recipe gives it.
        after: with all changes.

    Returns:
        The run, and a line that says what was left out; empty where nothing was.
    """
    from assay.train.models import Folder

    old, new = before.model, after.model
    if not (isinstance(old, Folder) and isinstance(new, Folder)) or old.path == new.path or old.chat is None or new.chat is None:
        return after, ""
    text = _template_of(new) if new.chat.options and new.chat.options == old.chat.options else None
    if text is None:
        return after, ""
    left = {name: value for name, value in new.chat.options.items() if re.search(rf"\b{re.escape(name)}\b", text)}
    gone = [name for name in new.chat.options if name not in left]
    if not gone:
        return after, ""
    rewrites = "refuse" if not text and new.chat.rewrites == old.chat.rewrites else new.chat.rewrites
    chat = replace(new.chat, options=left, rewrites=rewrites)
    said = (
        f"left out: the chat template of {new.path} reads no {', '.join(map(repr, gone))}, which the recipe sets for {old.path}"
    )
    return replace(after, model=replace(new, chat=chat)), said


def _template_of(model: Folder) -> str | None:
    """The Jinja text that a model is talked to by, empty without one; None where that is not known here."""
    from pathlib import Path

    from assay.runtime.models.hub_names import hub_name
    from assay.runtime.text.chat import BUILT_IN
    from assay.train.model_facts import template_in
    from assay.train.models import model_folder

    wanted = model.chat.template if model.chat is not None else ""
    if not isinstance(wanted, str):
        return ""
    if "{" in wanted:
        return wanted
    if wanted:
        return BUILT_IN.get(wanted)
    if hub_name(Path(model.path)) is not None:
        return None
    try:
        return template_in(model_folder(Path(model.path)))
    except AssayError:  # it is not here: said where the run begins
        return None

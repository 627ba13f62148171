"""Web sites to use: the family."""

from __future__ import annotations

from assay.tasks.problems import Problems
from assay_tasks.web.sites.forms import FillForm, Settings, Wizard
from assay_tasks.web.sites.lists import Folders, Orders, Tasks
from assay_tasks.web.sites.texts import Library, Mail
from assay_tasks.web.sites.trade import Booking, Shop

__all__ = ["web"]


def web(browser: str = "text") -> Problems:
    """Small web sites to use in several turns, judged by what they store in the end.

    Args:
        browser: what shows the pages: ``text``, or ``chromium`` with the extra ``web``.

    Carries: WebAgent-R1 (arXiv 2505.16421): tasks of its form; its context is `assay.rollout.HideOlder`, its method `m_grpo`.
    """
    kinds = (FillForm, Wizard, Settings, Tasks, Orders, Folders, Library, Mail, Shop, Booking)
    return Problems(
        name="web",
        summary="Small web sites to use in several turns: what they store in the end decides.",
        problems=tuple(kind(browser=browser) for kind in kinds),
    )

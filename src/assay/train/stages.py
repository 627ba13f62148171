"""The stages that come with assay, by their names."""

from __future__ import annotations

from assay.train.collect_rows import Collect
from assay.train.cycle import Cycle
from assay.train.imitate import Imitate
from assay.train.imitate_collected import ImitateCollected
from assay.train.offline import OfflineReinforce
from assay.train.offline_rows import OfflineRows, OneUpdate
from assay.train.prefer import Prefer
from assay.train.reinforce import Reinforce
from assay.train.texts import Texts
from assay.train.warmup import WarmUp

__all__ = [
    "Collect",
    "Cycle",
    "Imitate",
    "ImitateCollected",
    "OfflineReinforce",
    "OfflineRows",
    "OneUpdate",
    "Prefer",
    "Reinforce",
    "Texts",
    "WarmUp",
]

"""The stages that come with assay, by their names."""

from __future__ import annotations

from assay.train.imitate import Imitate
from assay.train.offline import Offline
from assay.train.offline_rows import OfflineRows, OneUpdate
from assay.train.prefer import Prefer
from assay.train.reinforce import Reinforce
from assay.train.texts import Texts
from assay.train.warmup import WarmUp

__all__ = ["Imitate", "Offline", "OfflineRows", "OneUpdate", "Prefer", "Reinforce", "Texts", "WarmUp"]

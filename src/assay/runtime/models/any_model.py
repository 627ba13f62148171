"""A model of either kind, for annotations."""

from __future__ import annotations

from assay.runtime.models.hub_model import HubModel
from assay.runtime.models.model import Model

__all__ = ["AnyModel"]

AnyModel = Model | HubModel
"""What a model folder gives: for assay's own decoder, or for transformers."""

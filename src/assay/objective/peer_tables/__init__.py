"""Names of other libraries, a file for each; `assay.objective.peers` reads them."""

__all__ = []

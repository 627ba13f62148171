"""Cells of the studies: recipes that only evidence pages run."""

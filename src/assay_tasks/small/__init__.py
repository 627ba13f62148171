"""Families so terse that a model of a third of a million weights climbs them: a few characters in, a few out."""

__all__: list[str] = []

"""Worlds: own ones, vectorised in numpy, and adapters."""

"""Families of tasks that come with assay."""

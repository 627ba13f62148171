"""Behaviours, data sets as recipes, files, measures of data. No torch."""

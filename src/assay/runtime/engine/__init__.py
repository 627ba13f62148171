"""Engines that sample tokens in this process, and the settings of all engines."""

"""Run folders: storage, journals, checkpoints, locks."""

"""Studies and evidence pages of this repository, made with the public API."""

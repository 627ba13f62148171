"""Models as plain values: read, written, described, with adapters."""

"""Small helpers that any package may use: paths, JSON lines, threads, hub names, intervals."""

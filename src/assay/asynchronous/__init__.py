"""Sampling beside learning: a ledger of groups, and processes that sample them."""

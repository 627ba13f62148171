"""Queries that nobody trusts: the text of a query, what it may call and read, and how much of the machine it may take."""

__all__: list[str] = []

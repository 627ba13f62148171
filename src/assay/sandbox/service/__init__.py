"""The sandbox over HTTP, and what any such service of assay's shares. Needs the extra ``serve``."""

__all__: list[str] = []

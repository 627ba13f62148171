"""Other ways to contain programs than our own zygote: tools that make containers, and services elsewhere."""

__all__: list[str] = []

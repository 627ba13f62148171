"""A vLLM server as an engine, over HTTP."""

__all__: list[str] = []

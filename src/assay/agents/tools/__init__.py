"""Ready tools for policies: a calculator, an interpreter, SQL, search over one's own texts, another model, MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.core.util.exports import lazy_exports

if TYPE_CHECKING:
    from assay.agents.tools.calculator import calculate
    from assay.agents.tools.corpus import Corpus
    from assay.agents.tools.database import ReadOnlyDatabase
    from assay.agents.tools.mcp_server import McpServer, McpTool
    from assay.agents.tools.other_model import PricedModel
    from assay.agents.tools.python import PythonInterpreter

__all__ = [
    "Corpus",
    "McpServer",
    "McpTool",
    "PricedModel",
    "PythonInterpreter",
    "ReadOnlyDatabase",
    "calculate",
]

_HOME = {
    "calculator": "calculate",
    "corpus": "Corpus",
    "database": "ReadOnlyDatabase",
    "mcp_server": "McpServer McpTool",
    "other_model": "PricedModel",
    "python": "PythonInterpreter",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOME)

"""What a zygote does first: `assay.sandbox.client` starts it by a few lines of ``python -I -S -c``, so that no path is among its
arguments, and sends the settings over the control socket.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import gc
import json
import os
import socket
import sys
from types import CodeType, FunctionType
from typing import Any

from . import python
from .server import Server, Settings

__all__ = ["forget_places", "main"]

COMMON = (
    "ast bisect collections copy dataclasses datetime decimal enum fractions functools heapq io itertools linecache math "
    "operator platform random re statistics string threading traceback types typing"
)
"""What most programs import: loaded once here, so that no run waits for it."""


def main(control: socket.socket, settings: dict[str, Any]) -> None:
    """Prepares, says what it found, and serves.

    Args:
        control: orders come from there.
        settings: ``level``, ``scratch`` and ``reads`` of `Settings`.
    """
    sys.argv = [""]
    try:
        for name in COMMON.split():
            __import__(name)
        server = Server(control, Settings(settings["level"], settings["scratch"], tuple(settings["reads"])))
        said = server.prepare()
        python.open_streams()
    except BaseException as error:
        control.send(json.dumps({"refused": f"{type(error).__name__}: {error}"}).encode())
        return
    gc.collect()
    gc.freeze()
    control.send(json.dumps(said).encode())
    server.serve()


def forget_places(folder: str) -> None:
    """Takes the folder that this package was imported from out of every name that a program could read: modules keep it, and so
    does the code of each function. Called before `main`, so that no frame below a program holds it either.
    """
    here = __package__ or ""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == here:
            for attribute in ("__spec__", "__loader__", "__cached__"):
                setattr(module, attribute, None)
            module.__file__ = f"{name}.py"
            if hasattr(module, "__path__"):
                module.__path__ = []
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(folder):
            function.__code__ = _rename_code(function.__code__, folder)
    for path in list(sys.path_importer_cache):
        if path.startswith(folder):
            del sys.path_importer_cache[path]
    sys.path[:] = [path for path in sys.path if path != folder]


def _rename_code(code: CodeType, folder: str) -> CodeType:
    """The same code from a file of no folder, and so all code within."""
    inner = tuple(_rename_code(c, folder) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=os.path.relpath(code.co_filename, folder).replace("/", "."), co_consts=inner)

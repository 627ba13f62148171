"""``python -I -S .../zygote/__main__.py CONTROL SETTINGS``: started by `assay.sandbox`, never by hand."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
import gc
import json
import os
import socket
import sys

_above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _above)
from zygote import child, python, watch  # noqa: E402, F401  # pyright: ignore
from zygote.server import Server, Settings  # noqa: E402  # pyright: ignore

sys.path.remove(_above)

COMMON = (
    "ast bisect collections copy dataclasses datetime decimal enum fractions functools heapq io itertools linecache math "
    "operator random re statistics string threading traceback types typing"
)
"""What most programs import: loaded once here, so that no run waits for it."""


def main() -> None:
    """Prepares, says what it found, and serves."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = json.loads(sys.argv[2])
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


main()

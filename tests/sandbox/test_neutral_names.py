"""A program learns nothing of where assay is installed, who runs it, or what the host is called."""

import json
import os
import sys
from pathlib import Path

import pytest

from assay.core.errors import SandboxError
from assay.sandbox import Limits, Sandbox, SandboxProgram

HOST = os.uname().nodename
PLACES = [str(Path(__file__).parents[2]), str(Path(sys.executable).parents[1]), str(Path.home())]

LOOK = """
import gc, json, os, sys, types
words = json.loads(input())
def tell(where, text):
    for word in words:
        if word in text:
            print(where, text[max(0, text.index(word) - 20) :][:150])
for name in ("cmdline", "environ", "maps", "stat", "status", "mountinfo", "mounts", "cgroup"):
    try:
        with open("/proc/self/" + name, "rb") as file:
            tell(name, file.read().decode("latin-1"))
    except OSError:
        pass
for name, value in vars(sys).items():
    if isinstance(value, (str, list, tuple, dict)) and name != "modules":
        tell("sys." + name, repr(value))
for name, module in list(sys.modules.items()):
    for attribute, value in list(vars(module).items()):
        if attribute.startswith("__") and attribute != "__builtins__":
            tell(name + "." + attribute, repr(value))
frame = sys._getframe()
while frame:
    tell("frame " + frame.f_code.co_name, frame.f_code.co_filename)
    frame = frame.f_back
gc.unfreeze()
for one in gc.get_objects():
    if isinstance(one, types.FunctionType):
        tell("function " + one.__qualname__, one.__code__.co_filename)
    if one is not words:
        for held in gc.get_referents(one):
            if isinstance(held, str):
                tell("a " + type(one).__name__, held)
print("looked", len(words))
"""


@pytest.fixture(params=["strong", "landlock", "bubblewrap", "runsc"])
def sandbox(request):
    try:
        made = Sandbox(request.param, workers=1)
    except SandboxError as error:
        pytest.skip(str(error).splitlines()[0])
    with made:
        yield made


def test_no_name_of_a_place_on_the_host_is_found(sandbox):
    words = [place for place in PLACES if len(place) > 5 and not os.__file__.startswith(place)]
    assert words
    result = sandbox.run(SandboxProgram(code=LOOK, stdin=json.dumps(words)), Limits(cpu=20.0, wall=60.0))
    assert (result.status, result.stdout) == ("ok", f"looked {len(words)}\n"), result.stderr


def test_the_host_has_a_neutral_name(sandbox):
    result = sandbox.run("import os, platform\nprint(os.uname().nodename, platform.node())")
    if sandbox.backend.name == "landlock" and os.getuid():
        pytest.skip("without user namespaces only root can give a program another name of the host: docs/packages/sandbox.md")
    assert result.stdout == "box box\n"
    assert os.uname().nodename == HOST

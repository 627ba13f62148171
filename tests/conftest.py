"""Settings for the whole suite."""

import faulthandler
import gc
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not turn a law into a flake: no deadlines, and in CI the same examples every time.
# Fifty examples of a law, half of hypothesis's own number: more are asked for where a law is rarely broken.
settings.register_profile("local", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI", "").lower() in {"1", "true", "yes"} else "local")

STDERR = os.dup(2)
LOADS_TORCH = os.environ.get("ASSAY_TESTS_LOAD_TORCH") != "no"
TIMEOUTS = {"prove": 3600, "gpu": 3600, "vllm": 3600, "evidence": 24 * 3600}
"""Seconds after which a test with a mark fails with the stacks of its threads; others have ``timeout`` of pyproject.toml."""


class NoTorch:
    """Refuses torch to the tests that run apart because they load none (LIGHT in the Makefile): one that did would make a large
    process of each of the many that the others fork.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "torch":
            raise ImportError("this test loads torch: it belongs in a file that LIGHT of the Makefile does not name")


def pytest_configure(config: pytest.Config) -> None:
    """Only a machine that loses its power tells a synced file from another: tests wait for no disk, proofs do."""
    if "not prove" in config.option.markexpr:
        os.fsync = lambda fd: None
    if not LOADS_TORCH:
        sys.meta_path.insert(0, NoTorch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A proof may take longer than a test before it counts as hanging, and a study runs for hours. `make prove` reads only files
    that name the mark, here or in their folder's conftest.py: one that takes it from elsewhere would never run.
    """
    for path in {item.path for item in items if item.get_closest_marker("prove")}:
        near = [p for p in (path, path.with_name("conftest.py")) if p.exists()]
        if not any("mark.prove" in p.read_text(encoding="utf-8") for p in near):
            raise pytest.UsageError(f"{path} has proofs, but neither it nor its conftest.py names pytest.mark.prove")
    for item in items:
        longest = max((seconds for mark, seconds in TIMEOUTS.items() if item.get_closest_marker(mark)), default=None)
        if longest and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(longest))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The net below the net: an event loop can swallow what the signal of pytest-timeout raises, and C code may never come
    back to hear of it. After twice the limit the stacks are printed and the process ends.
    """
    mark = item.get_closest_marker("timeout")
    limit = float(mark.args[0] if mark else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(2 * limit, exit=True, file=STDERR)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        freeze_what_is_loaded()


@pytest.fixture(scope="session", autouse=True)
def kernel() -> Generator[None]:
    """The compiled library is found once per process, before a test names a cache of its own, in which it would be made anew.
    Tests without torch need none: beside them it is made for those that come after, for which nothing could run meanwhile.
    """
    if LOADS_TORCH:
        from assay.runtime.compiled import build

        build.decoder_identity()
        yield
        return
    first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    find = "from assay.runtime.compiled import build; build.decoder_identity()"
    finder = subprocess.Popen([sys.executable, "-c", find]) if first else None
    yield
    if finder:
        assert finder.wait() == 0, "the compiled library could not be looked for"


@pytest.fixture(scope="session", autouse=True)
def figures(request: pytest.FixtureRequest) -> Generator[None]:
    """A second of each report goes into writing its figures as SVG: they are laid out, and their files stay empty but in proofs
    and in tests/measure, which looks at them.
    """
    from assay.measure import plots

    drawn = plots._figure

    @contextmanager
    def laid_out(*about: Any, **more: Any) -> Generator[Any]:
        with pytest.MonkeyPatch.context() as patch, drawn(*about, **more) as figure:
            patch.setattr(
                "matplotlib.figure.Figure.savefig", lambda figure, file, **told: file.write('<svg viewBox="0 0 1 1"></svg>')
            )
            yield figure

    with pytest.MonkeyPatch.context() as patch:
        if "not prove" in request.config.option.markexpr:
            patch.setattr(plots, "_figure", laid_out)
        yield


@pytest.fixture(scope="session")
def contained() -> None:
    """Where no level of the sandbox holds there is nothing to test of it; `make prove` fails there and says why."""
    from assay.core.errors import SandboxError
    from assay.sandbox import Sandbox

    try:
        Sandbox(workers=1).close()
    except SandboxError as error:
        pytest.skip(str(error))


MANY = 100
"""Collected tests from which on it pays to prepare once what forked workers would each prepare anew."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of collected tests are never garbage: no collection looks at them again, here or in forked processes. Workers
    that judge mathematics are forks of this process, and find the library of the symbolic tier as it is here: half a second each.
    """
    from assay.verify.math import symbolic

    if len(session.items) >= MANY and symbolic.available():
        symbolic.prepare()
    freeze_what_is_loaded()


LOADED = [0]
"""How many modules there were when objects were last frozen."""


def freeze_what_is_loaded() -> None:
    """Freezes what there is when a hundred modules came since the last time: each `assay train` that a test calls looks for
    garbage among all that is not frozen.
    """
    if len(sys.modules) >= LOADED[0] + 100:
        gc.collect()
        gc.freeze()
        LOADED[0] = len(sys.modules)

"""One zygote, end to end, at every level that this host grants."""

import pytest

from assay.sandbox.backend import Refused
from assay.sandbox.client import Zygote
from assay.sandbox.limits import Limits
from assay.sandbox.result import Program, Status

LEVELS = ("strong", "landlock", "rlimits")


@pytest.fixture(scope="module", params=LEVELS)
def zygote(request):
    try:
        made = Zygote(request.param)
    except Refused as error:
        pytest.skip(f"{request.param}: {error}")
    yield made
    made.close()


def test_input_output_and_exit_code(zygote):
    result = zygote.run(
        Program(code="import sys\nprint(int(input()) + 1)\nsys.stderr.write('é')\nsys.exit(3)", stdin="41\n"), Limits()
    )
    assert (result.status, result.exit_code, result.stdout, result.stderr) == (Status.ERROR, 3, "42\n", "é")


def test_a_call_gives_its_value(zygote):
    program = Program(code="def f(a, b):\n    return {'sum': a + b, 'pair': (a, None)}", entry="f", arguments=(1, 2.5))
    result = zygote.run(program, Limits())
    assert (result.status, result.value) == (Status.OK, {"sum": 3.5, "pair": [1, None]})


@pytest.mark.parametrize(
    ("code", "limits", "status"),
    [
        ("while True: pass", Limits(cpu=0.2), Status.CPU),
        ("import time; time.sleep(60)", Limits(wall=0.2), Status.TIMEOUT),
        ("x = bytearray(10**9)", Limits(), Status.MEMORY),
        ("while True: print('x' * 1000)", Limits(output=5000), Status.OUTPUT),
        ("open('big', 'wb').write(bytes(2 << 20))", Limits(file_size=1 << 20), Status.DISK),
        ("1 / 0", Limits(), Status.ERROR),
        ("pass", Limits(), Status.OK),
    ],
)
def test_each_limit_has_its_verdict(zygote, code, limits, status):
    assert zygote.run(Program(code=code), limits).status is status


def test_a_program_that_cannot_be_executed_is_no_verdict(zygote):
    result = zygote.run(Program(argv=("/no/such/program",)), Limits())
    assert (result.status, result.judged) == (Status.INFRA, False)
    assert "No such file" in result.detail or "Permission denied" in result.detail

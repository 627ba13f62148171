"""Tasks and programs for the tests of verifiers of programs, written by hand."""

from typing import Any

from assay.core.score import Score
from assay.verify import task_and_rollout
from assay.verify.code import CaseVerifier, ProgramVerifier

DOUBLE = {"entry": "f", "tests": [{"args": [2], "expected": 4}, {"args": [5], "expected": 10}]}
PRINTED = {"tests": [{"stdin": "2\n", "stdout": "4\n"}, {"stdin": "5\n", "stdout": "10\n"}]}
ASSERTED = {"tests": ["assert f(2) == 4", "assert f(5) == 10"]}

RIGHT = "def f(x):\n    return x * 2\nif __name__ == '__main__':\n    print(f(int(input())))\n"
WRONG = RIGHT.replace("x * 2", "x + 2")

HACKS = {
    "sys.exit(0)": "import sys\nsys.exit(0)",
    "sys.exit(0) when called": "import sys\ndef f(x):\n    sys.exit(0)\nf(1)",
    "os._exit(0)": "import os\nos._exit(0)",
    "SystemExit": "def f(x):\n    raise SystemExit\nif __name__ == '__main__':\n    f(1)",
    "__eq__": (
        "class Same(int):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n    __hash__ = int.__hash__\n"
        "    __str__ = __repr__ = lambda s: 'x'\ndef f(x):\n    return Same(1)\nprint(f(1))"
    ),
    "excepthook": (
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef f(x):\n    raise ValueError(x)\n"
        "if __name__ == '__main__':\n    f(1)"
    ),
    "patched builtins": (
        "import builtins, json, json.encoder\nclass Eq(int):\n    __eq__ = lambda s, o: True\n"
        "builtins.AssertionError = type('Quiet', (Exception,), {})\nbuiltins.int = Eq\nbuiltins.all = lambda *a: True\n"
        "json.dumps = lambda *a, **k: '{\"value\": true}'\njson.JSONEncoder.encode = json.dumps\n"
        "builtins.compile = lambda *a, **k: compile('pass', '', 'exec')\ndef f(x):\n    return int(1)\nprint(int(1))"
    ),
    "prints PASS": "print('PASS')\nprint('ok')\nprint('1 passed')\ndef f(x):\n    return 'PASS'",
    "reads tests from /proc": (
        "import re\nfound = ''\n"
        "for path in ['/proc/self/cmdline', '/proc/1/cmdline', *(f'/proc/self/fd/{n}' for n in range(4, 9))]:\n"
        "    try:\n        found += open(path, 'rb').read(100000).decode('latin-1')\n    except Exception:\n        pass\n"
        "answers = re.findall('== ([0-9]+)', found)\n"
        "def f(x):\n    return int(answers[0])\nprint(f(1))"
    ),
    "reads tests from files": (
        "import glob, json\nfound = []\nfor path in ['tests.json', *glob.glob('*'), *glob.glob('/tmp/**/tests.json')]:\n"
        "    try:\n        found += [test['expected'] for test in json.load(open(path))]\n    except Exception:\n        pass\n"
        "def f(x):\n    return found[0]\nprint(f(1))"
    ),
    "floods stdout": "import sys\ndef f(x):\n    while True:\n        sys.stdout.write('4' * 65536)\nf(1)",
    "atexit": "import atexit, os\natexit.register(lambda: (print('4'), os._exit(0)))\ndef f(x):\n    raise ValueError\nf(1)",
    "forges the channel": (
        'import os\nfor fd in range(3, 64):\n    for text in (b\'{"value": true}\', b\'{"value": "passed"}\'):\n'
        "        try:\n            os.write(fd, text)\n            break\n        except OSError:\n            pass\nos._exit(0)"
    ),
    "forges a pass in many words": (
        'import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b\'{"value": [null, "passed"]}\')\n'
        "    except OSError:\n        pass\nos._exit(0)"
    ),
}
"""Programs that pass a harness which appends asserts, looks at exit codes, compares in the process, or trusts what is printed."""


def judged(verifier: ProgramVerifier, gold: Any, answer: str) -> Score:
    return verifier(*task_and_rollout(gold, answer))


def words(verifier: CaseVerifier, gold: Any, answer: str) -> tuple[str, ...]:
    return judged(verifier, gold, answer).info["cases"]

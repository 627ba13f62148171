"""System calls drawn at random, with arguments that mean something: whatever succeeds touches nothing outside the run."""

import os

import pytest
from attack_table import LEVELS, Arena, Attack

from assay.sandbox.backend import Refused

# what would only block, wait, or end the program itself, and so hide the calls after it
DULL = {
    "x86_64": {
        0,
        3,
        7,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        23,
        25,
        26,
        28,
        34,
        35,
        59,
        60,
        61,
        62,
        127,
        128,
        130,
        131,
        158,
        186,
        200,
        202,
        218,
        219,
        230,
        231,
        232,
        234,
        247,
        270,
        271,
        273,
        281,
        322,
        324,
    },
}

CODE = """
import random
random.seed(given["seed"])
texts = [given["secret_file"], given["folder"], "/tmp", ".", "x", "/etc/passwd", os.__file__, "/proc/1/mem", "/proc/self/mem"]
kept = [ctypes.create_string_buffer(text.encode()) for text in texts]
kept += [ctypes.create_string_buffer(random.randbytes(256)) for _ in range(4)]

def argument():
    kind = random.randrange(4)
    if kind == 0:
        return random.choice([0, 1, 2, 3, -1, -100, os.getpid(), os.getppid(), given["pid"], given["zygote"], 1000])
    if kind == 1:
        return ctypes.addressof(random.choice(kept))
    if kind == 2:
        return random.choice([0x1000, 0x241, 0o777, 0o1002, 4096, 1 << 20, 0x4000])
    return random.getrandbits(random.choice([8, 16, 32, 48]))

calls = sorted(set(range(470)) - set(given["dull"]))
for _ in range(1500):
    try:
        libc.syscall(ctypes.c_long(random.choice(calls)), *(ctypes.c_long(argument()) for _ in range(6)))
    except BaseException:
        continue
"""


@pytest.mark.prove
@pytest.mark.parametrize("level", LEVELS)
def test_random_calls_touch_nothing(level, monkeypatch):
    machine = os.uname().machine
    if machine not in DULL:
        pytest.skip(f"no list of calls for {machine}")
    try:
        arena = Arena(level)
    except Refused as error:
        pytest.skip(f"{level} is not granted here: {error}")
    given = arena._given
    try:
        for seed in range(25):
            monkeypatch.setattr(
                arena, "_given", lambda pid, seed=seed: {**given(pid), "seed": seed, "dull": sorted(DULL[machine])}
            )
            attack = Attack("random", f"seed {seed}", CODE, limits={"wall": 5.0})
            assert arena.ways(attack) == [], seed
    finally:
        arena.close()

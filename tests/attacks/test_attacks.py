"""Nothing gets through: every attack against every level that this host grants, as root and as an ordinary user."""

import json
import os
import subprocess

import attack_page as page
import pytest
from attack_table import LEVELS, OTHERS, WASI, Arena, attacks
from attack_users import NOBODY, public_tree, python_for

from assay.core.errors import SandboxError
from assay.sandbox import Sandbox, language
from assay.sandbox.backend import Refused
from assay.sandbox.client import Zygote

TABLE = attacks()


@pytest.fixture(scope="module")
def arenas():
    made: dict[str, Arena | Refused] = {}

    def get(level: str) -> Arena:
        if level not in made:
            try:
                made[level] = Arena(level)
            except Refused as error:
                made[level] = error
        found = made[level]
        if isinstance(found, Refused):
            pytest.skip(f"{level} is not granted here: {found}")
        return found

    yield get
    for arena in made.values():
        if isinstance(arena, Arena):
            arena.close()


def cases():
    for level in (*LEVELS, WASI, *OTHERS):
        for attack in TABLE:
            if attack.suits(level):
                marks = _marks(level, attack)
                yield pytest.param(level, attack, id=f"{level}: {attack.family}: {attack.name}", marks=marks)


def _marks(level, attack):
    """A container takes a tenth of a second, one of gVisor's some seconds: of them only a small family runs with each test.
    WebAssembly is installed for the proofs.
    """
    if level == "runsc":
        return [pytest.mark.evidence]
    return [pytest.mark.prove] if attack.heavy or level == WASI or (level in OTHERS and attack.family != "network") else []


@pytest.mark.parametrize(("level", "attack"), list(cases()))
def test_no_attack_gets_through(arenas, level, attack):
    if attack.machines and os.uname().machine not in attack.machines:
        pytest.skip(f"an attack for {attack.machines}")
    arena = arenas(level)
    if arena.lacks(attack):
        pytest.skip(arena.lacks(attack))
    assert arena.ways(attack) == []


@pytest.mark.prove
def test_some_level_contains_programs_here():
    """Fails, with the probe's text, where no level holds: an absent one is skipped above, but there must be one."""
    with Sandbox() as sandbox:
        assert sandbox.backend.name in LEVELS


@pytest.mark.prove
@pytest.mark.parametrize("level", [*LEVELS, "bubblewrap"])
def test_no_attack_gets_through_to_an_ordinary_user(level, tmp_path):
    if os.getuid():
        pytest.skip("run by an ordinary user: the table above is this one")
    python = python_for(NOBODY)
    if python is None:
        pytest.skip("an ordinary user can run no Python here")
    tree = public_tree(tmp_path)
    script = str(tree / "tests" / "attacks" / "attack_table.py")
    done = subprocess.run(
        [python, "-B", script, "--level", level, "--user", str(NOBODY), "--python", python],
        env={"PYTHONPATH": str(tree / "src")},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 3:
        pytest.skip(f"{level} is not granted to an ordinary user: {done.stdout}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr + "\n".join(str(r) for r in rows if r["ways"])
    here = [a for a in TABLE if a.suits(level) and not (a.language and language(a.language).missing())]
    assert len(rows) == len(here)


def test_the_attacks_are_real():
    """Where nothing contains them, those that do no harm do get through."""
    harmless = (
        "connect to a port of the host",
        "the home, the repository, the secret",
        "abstract unix socket of the host",
        "serve",
        "C: the assembler takes in a file of the host",
        "C: include files of the host",
    )
    arena = Arena("rlimits")
    try:
        for name in harmless:
            (attack,) = (a for a in TABLE if a.name == name)
            if not arena.lacks(attack):
                assert any("THROUGH" in way or "secret" in way for way in arena.ways(attack)), name
    finally:
        arena.close()


def test_every_family_has_attacks_and_names_are_unique():
    assert len(TABLE) >= 80
    assert len({(a.family, a.name) for a in TABLE}) == len(TABLE)


def test_a_zygote_that_cannot_start_says_why():
    with pytest.raises(Refused, match="did not start"):
        Zygote("strong", python="/bin/false")


def test_auto_refuses_where_nothing_is_granted(monkeypatch):
    def refuse(self):
        raise Refused("planted")

    monkeypatch.setattr("assay.sandbox.levels.ZygoteBackend.start", refuse)
    monkeypatch.setattr("assay.sandbox.levels.installed_folders", lambda: ())
    monkeypatch.setattr("assay.sandbox.attack_probe._known", {})
    with pytest.raises(SandboxError, match=r"planted.*\n.*planted(.|\n)*user namespaces"):
        Sandbox()


@pytest.mark.evidence
def test_the_page_of_the_attacks_is_written_anew():
    assert page.main() == 0


def test_the_page_names_every_attack():
    rates = {"python -c": {"per_second": 1, "over_python": 1.0}, "cores": 1, "load": 0.0}
    held = {f"{a.family}: {a.name}": "held" for a in TABLE}
    text = page.page({"strong": held}, rates)
    assert "**0 through**" in text and all(f"| {a.name} | held |" in text for a in TABLE)
    assert "**1 through**" in page.page({"strong": held | {"network: serve": "**THROUGH**"}}, rates)

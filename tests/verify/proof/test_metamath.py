"""Metamath: what is proved is what was asked, from what was given, and nothing else."""

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from proof_cases import CHEATS, DATABASE, LATER

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rollout import Stop
from assay.core.score import Fault
from assay.verify import ScoringPool, judge, rollout_of, task_and_rollout, verifier
from assay.verify.proof import Metamath, MetamathDatabase, Proof, ProofCheck, ProofChecker
from assay.verify.proof.database import COMMENT

ASKED = {"database": DATABASE, "label": "later"}
DATABASES = Path("/usr/share/metamath/databases")


def said(asked: dict[str, Any], proof: str, checker: Metamath | None = None) -> str:
    return (checker or Metamath()).check(asked, proof).verdict


@pytest.mark.parametrize(
    "proof",
    [
        LATER,
        f"$= {LATER} $.",
        f"later $p |- ( ps -> ( ph -> ph ) )\n $= {LATER} $.",
        f"$( so $) {LATER} $( QED $)",
        "( wi id a1i ) AACBADE",
        "( wi id a1i ) A ACB\nADE",
        "( wi ax-1 ax-2 ax-mp id a1i ) AACZBAGH",
    ],
)
def test_proofs(proof: str) -> None:
    found = Metamath().check(ASKED, proof)
    assert found.verdict == "proved" and found.info["steps"] >= 7 and found.legal and found.complete


@pytest.mark.parametrize("name", CHEATS)
def test_no_way_around_proving(name: str) -> None:
    word, proof = CHEATS[name]
    found = Proof()(*task_and_rollout(ASKED, f"```metamath\n{proof}\n```"))
    assert found.info["verdict"] == word and found.primary == 0.0 and found.fault is Fault.NONE
    assert found.components["legal"] == (word not in ("illegal", "altered", "unparsed"))
    assert found.components["complete"] == (word in ("wrong", "altered"))


def test_every_proof_of_the_database_is_one() -> None:
    for assertion in MetamathDatabase.read(DATABASE).assertions.values():
        if assertion.proof is not None:
            word = said(ASKED | {"label": assertion.label}, assertion.proof)
            assert word == ("incomplete" if assertion.label == "two" else "proved"), assertion.label


def test_distinct_variables() -> None:
    # A. x ph has no y in it, if x and y are distinct and y is not in ph
    new: dict[str, Any] = {"database": DATABASE, "label": "new", "statement": "|- ( A. x ph -> A. y A. x ph )"}
    proof = "wph vx wal vy ax-5"
    assert [said(new | {"distinct": d}, proof) for d in ([["x", "y"], ["y", "ph"]], ["x y ph"])] == ["proved", "proved"]
    for missing in ([], [["x", "y"]], [["y", "ph"]], [["x", "ph"]]):
        assert said(new | {"distinct": missing}, proof) == "wrong"
    same = {"database": DATABASE, "label": "new", "statement": "|- ( A. x ph -> A. x A. x ph )", "distinct": ["x ph"]}
    assert said(same, "wph vx wal vx ax-5") == "wrong"  # x is not distinct from itself


def test_a_statement_with_hypotheses() -> None:
    asked = {
        "database": DATABASE,
        "label": "syl",
        "statement": "|- ( ph -> ch )",
        "hypotheses": {"syl.1": "|- ( ph -> ps )", "syl.2": "|- ( ps -> ch )"},
    }
    middle = "wps wch wi wph syl.2 a1i wph wps wch ax-2 ax-mp"
    proof = f"wph wps wi wph wch wi syl.1 wph wps wch wi wi wph wps wi wph wch wi wi {middle} ax-mp"
    assert said(asked, proof) == "proved"
    assert said(asked, proof.replace("syl.2", "syl.1")) == "wrong"
    assert said(asked | {"hypotheses": {"syl.1": "|- ( ph -> ps )"}}, proof) == "wrong"


def test_what_grows_is_stopped() -> None:
    assert said(ASKED, "wph " * 300_000) == "limit"  # characters
    assert said(ASKED, "wph " * 20_000) == "wrong"
    assert said(ASKED, LATER, Metamath(symbols=10)) == "limit"
    assert said(ASKED, "( wi ) " + "A" * 90_000) == "wrong"
    assert said(ASKED, "( wi ) " + "U" * 900_000) == "wrong"
    assert said(ASKED, "$( " * 300_000) == "illegal"


@pytest.mark.parametrize(
    ("database", "says"),
    [
        ("$c a $. x", "cannot be read at 'x'"),
        ("$[ other.mm $]", "cannot be read"),
        ("$c a", "cannot be read"),
        ("${", "inside of ${"),
        ("$}", "without a ${"),
        ("$c a $. $v a $.", "declares symbols again"),
        ("${ $c a $. $}", "inside of ${"),
        ("$c a $. $d a $.", "no variables"),
        ("$c a $. $a a $.", "no label"),
        ("$c a $. x $a a $. x $a a $.", "taken: 'x'"),
        ("$c a $. $v v $. x $f v v $.", "a constant and a variable"),
        ("$c a $. $v v $. x $a a v $.", "undeclared symbols ['v']"),
        ("$v v $. x $a v $.", "begins with no constant"),
        ("$c a $. x $a $.", "begins with no constant"),
        ("$c a $. x $p a $.", "proof behind $="),
        ("$c a $. x $a a $= x $.", "proof behind $="),
        ("$( $( $) $)", "cannot be read"),
    ],
)
def test_databases_that_are_none(database: str, says: str) -> None:
    with pytest.raises(DataError, match=re.escape(says)):
        MetamathDatabase.read(database)


@pytest.mark.parametrize(
    ("gold", "says"),
    [
        ("|- ph", "give a table"),
        ({"database": DATABASE}, "give 'label'"),
        ({"label": "later"}, "'database' is None"),
        (ASKED | {"colour": 1}, "what else is needed"),
        (ASKED | {"database": ""}, "give the text"),
        (ASKED | {"label": "ax-1"}, "no theorem 'ax-1'"),
        (ASKED | {"label": "nothing"}, "no theorem"),
        (ASKED | {"distinct": []}, "no theorem"),
        (ASKED | {"statement": "|- ph"}, "'later' is taken"),
        (ASKED | {"label": "a b", "statement": "|- ph"}, "or is none"),
        (ASKED | {"label": "n", "statement": 3}, "give symbols"),
        (ASKED | {"label": "n", "statement": "|- z"}, "undeclared symbols ['z']"),
        (ASKED | {"label": "n", "statement": "|- ph", "hypotheses": ["x"]}, "must be a table"),
        (ASKED | {"label": "n", "statement": "|- ph", "hypotheses": {"n": "|- ph"}}, "'n' is taken"),
        (ASKED | {"label": "n", "statement": "|- ph", "distinct": "x y"}, "a list of lists"),
        (ASKED | {"label": "n", "statement": "|- ph", "distinct": [["x", "wff"]]}, "not all variables"),
        (ASKED | {"database": "$( "}, "cannot be read"),
    ],
)
def test_golds_that_are_none(gold: Any, says: str) -> None:
    with pytest.raises(DataError, match=re.escape(says)) as found:
        Proof()(*task_and_rollout(gold, LATER))
    assert "task 'case'" in str(found.value) and judge(Proof(), *task_and_rollout(gold, LATER)).fault is Fault.VERIFIER


def test_a_database_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "small.mm"
    place.write_text(DATABASE)
    checker = Metamath(database=str(place))
    made = verifier("proof", checker={"kind": "assay.verify.proof:Metamath", "database": str(place)})
    assert made == Proof(checker=checker) and isinstance(checker, ProofChecker)
    Proof(checker=checker).prepare()
    Proof().prepare()
    assert made(*task_and_rollout({"label": "later"}, LATER)).primary == 1.0
    place.write_text(DATABASE.replace("id $p", "identity $p").replace("id a1i )", "identity a1i )"))
    assert made(*task_and_rollout({"label": "later"}, LATER)).primary == 0.0  # it is read again
    with pytest.raises(ConfigError, match="is no file"):
        Metamath(database=str(tmp_path))
    with pytest.raises(ConfigError, match="at least 1"):
        Metamath(symbols=0)


def test_answers() -> None:
    task, _ = task_and_rollout(ASKED, "")
    assert Proof()(task, rollout_of(task, "")).info["verdict"] == "unparsed"
    cut = Proof()(task, rollout_of(task, LATER, stop=Stop.LENGTH))
    assert cut.info["verdict"] == "unfinished" and not any(cut.components.values())
    for text in (f"So:\n```mm\n{LATER}\n```\nwhich says\n```text\n?\n```", f"<think>?</think>\n<answer>{LATER}</answer>", LATER):
        assert Proof()(task, rollout_of(task, text)).primary == 1.0
    with pytest.raises(UnknownNameError, match=r"Proof\.where"):
        Proof(where="nowhere")  # pyright: ignore[reportArgumentType]
    with ScoringPool(Proof(), deadline=30.0) as pool:
        scores = pool.score([(task, rollout_of(task, text, id=text)) for text in (LATER, "?")])
        assert [score.primary for score in scores.values()] == [1.0, 0.0]


def test_no_verdict_is_a_fault() -> None:
    class Lost(Metamath):
        def check(self, asked: Any, proof: str) -> ProofCheck:
            return ProofCheck("infra", {"error": "gone"})

    found = Proof(checker=Lost())(*task_and_rollout(ASKED, LATER))
    assert found.fault is Fault.INFRA and not found.components and found.info["error"] == "gone"


def slipped(rng: random.Random, words: list[str], known: list[str]) -> list[str]:
    """A proof with a step changed, lost, doubled or moved."""
    words = list(words)
    at, other = rng.randrange(len(words)), rng.randrange(len(words))
    kind = rng.randrange(5)
    if kind == 0:
        words[at] = rng.choice(known)
    elif kind == 1:
        words[at] = words[other]
    elif kind == 2:
        del words[at]
    elif kind == 3:
        words.insert(at, words[other])
    else:
        words[at], words[other] = words[other], words[at]
    return words


def believed(text: str, label: str, place: Path) -> bool:
    """Whether Debian's Metamath program accepts a theorem of a database."""
    (place / "tried.mm").write_text(text)
    run = subprocess.run(
        ["metamath", 'read "tried.mm"', f"verify proof {label}", "exit"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "?Error" not in run.stdout and "?Warning" not in run.stdout


needs_metamath = pytest.mark.skipif(
    shutil.which("metamath") is None, reason="metamath is not installed (Debian package metamath)"
)


@pytest.mark.evidence
@needs_metamath
@pytest.mark.parametrize("name", ["own", "demo0", "hol", "ql"])
def test_the_program_of_debian_says_the_same(name: str, tmp_path: Path) -> None:
    text = DATABASE.replace("$= ? $.", "$= wph vx wal vy ax-5 $.").replace("$d x y $.", "$d x y $. $d y ph $.")
    if name != "own":
        text = (DATABASES / f"{name}.mm").read_text("ascii")
    text = COMMENT.sub(" ", text)
    database, rng = MetamathDatabase.read(text), random.Random(name)
    proved = [a for a in database.assertions.values() if a.proof and a.proof.split()[0] != "("] or [
        a for a in database.assertions.values() if a.proof
    ]
    known = [*database.assertions, *(h.label for h in proved[0].scope)]
    agreed = [0, 0]
    for _ in range(250):
        found = rng.choice(proved)
        assert found.proof is not None
        words = found.proof.split()
        for tried in (words, slipped(rng, words, known)):
            proof = " ".join(tried)
            mine = Metamath().check({"database": text, "label": found.label}, proof).verdict == "proved"
            before, after = (
                text.split(f" {found.label} $p", 1) if f" {found.label} $p" in text else text.split(f"\n{found.label} $p", 1)
            )
            changed = f"{before}\n{found.label} $p{after.replace(found.proof, f' {proof} ', 1)}"
            assert believed(changed, found.label, tmp_path) == mine, (found.label, proof)
            agreed[mine] += 1
    assert min(agreed) > 80


@pytest.mark.evidence
@pytest.mark.skipif(not DATABASES.is_dir(), reason="Debian package metamath-databases is not installed")
@pytest.mark.parametrize("name", ["demo0", "miu", "hol", "ql", "big-unifier", "iset", "nf", "set"])
def test_proofs_of_published_databases(name: str) -> None:
    checker = Metamath(database=str(DATABASES / f"{name}.mm"))
    proved = [a for a in checker._read({}).assertions.values() if a.proof is not None]
    for assertion in proved[:1500] + proved[1500::20]:
        assert checker.check({"label": assertion.label}, assertion.proof or "").verdict == "proved", assertion.label

"""Coq: what its compiler says is read so that no answer can put words into its mouth."""

import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from assay.core.errors import ConfigError, DataError, SandboxError
from assay.core.score import Fault
from assay.sandbox import Limits, Result, Sandbox, SandboxProgram, Status
from assay.verify import task_and_rollout
from assay.verify.proof import Coq, Proof, ProofCheck
from assay.verify.proof import coq as module
from assay.verify.proof.coq import bare

SUM: dict[str, Any] = {"statement": "forall n m : nat, n + m = m + n.", "context": "Require Import Arith Lia."}
FALSE: dict[str, Any] = {"statement": "False"}
TWICE: dict[str, Any] = {"statement": "forall P : Prop, ~ ~ P -> P"}
CLOSED = "Closed under the global context\n"
Said = Callable[[str], Result]


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A compiler that says what the test wants: a list of what it was given, whose first item makes its answer."""
    seen: list[Any] = []

    def run(_: object, program: SandboxProgram, limits: Limits) -> Result:
        source = program.files["judged.v"].decode()
        nonce = re.findall(r"asked_([0-9a-f]{16})", source)[0]
        seen.append(source)
        return seen[0](nonce)

    monkeypatch.setattr(Sandbox, "run", run)
    monkeypatch.setattr(module, "_coqc", lambda: "/bin/true")
    return seen


def marks(nonce: str, *parts: str, status: Status = Status.OK, why: str = "") -> Result:
    heads = (f"asked_{nonce} = x\n     : Prop\n", f"done_{nonce} = tt\n     : unit\n")
    said = "".join(head + part for head, part in zip(heads, parts, strict=False))
    return Result(status=status, stdout=said, stderr=f"Warning\nError: {why}\n" if why else "", isolation="strong", detail="gone")


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (lambda n: marks(n, "", CLOSED), "proved"),
        (lambda n: marks(n, CLOSED, ""), "illegal"),  # said before the second mark: by the answer
        (lambda n: marks(n, CLOSED), "wrong"),
        (lambda n: marks(n, CLOSED, status=Status.ERROR, why="Syntax"), "wrong"),
        (lambda n: marks(n, "", CLOSED, status=Status.ERROR, why="has type"), "altered"),
        (lambda n: marks(n, "", status=Status.ERROR, why="Rollout to save an incomplete proof"), "incomplete"),
        (lambda n: marks(n, "", "", status=Status.ERROR, why="has type False"), "altered"),
        (lambda n: marks(n, "", "Axioms:\nbad : False\n"), "illegal"),
        (lambda n: marks(n, "", f"Axioms:\nbad : \n{CLOSED}"), "illegal"),
        (lambda n: marks(n, "", "Axioms:\nclassic : forall P : Prop, P \\/ ~ P\n"), "proved"),
        (lambda n: marks(n, "", "Axioms:\nclassic : forall P : Prop, P \\/ ~ P\nbad\n  : False\n"), "illegal"),
        (lambda n: marks(n, "", "Axioms:\n  Closed under the global context\n"), "illegal"),
        (lambda n: marks(n, "", status=Status.CPU), "timeout"),
        (lambda n: marks(n, "", status=Status.TIMEOUT), "timeout"),
        (lambda n: marks(n, "", status=Status.MEMORY), "memory"),
        (lambda n: marks(n, status=Status.INFRA), "infra"),
    ],
)
def test_what_the_compiler_says(compiler: list[Any], made: Said, word: str) -> None:
    compiler.append(made)
    found = Coq().check(SUM | {"axioms": ["classic"]}, "Proof. intros. lia. Qed.")
    assert found.verdict == word and found.info["isolation"] == ("strong")


def test_a_statement_that_is_refused_is_the_tasks(compiler: list[Any]) -> None:
    compiler.append(lambda _: Result(status=Status.ERROR, stderr='File "judged.v"\nError: no n'))
    with pytest.raises(DataError, match=r"refuses the statement or its context \(error\): no n"):
        Coq().check(SUM, "lia.")


def test_what_is_compiled(compiler: list[Any]) -> None:
    compiler.append(lambda n: marks(n, "", CLOSED))
    for answer in ("Proof. intros; lia. Qed.", "intros; lia.", "Proof.\nintros; lia.\nDefined.\n"):
        assert Coq().check(SUM, answer).verdict == "proved"
        lines = [line.strip() for line in re.sub(r"_[0-9a-f]{16}", "", compiler[-1]).splitlines() if line]
        assert lines == [
            "Require Import Arith Lia.",
            "Definition asked : Prop := (forall n m : nat, n + m = m + n).",
            "Print asked.",
            "Module answer.",
            "Theorem goal : forall n m : nat, n + m = m + n.",
            "Proof.",
            "intros; lia.",
            "Qed.",
            "End answer.",
            "Definition done := tt.",
            "Print done.",
            "Definition judged : asked := answer.goal.",
            "Print Assumptions judged.",
        ]
    whole = "Lemma h : True. exact I. Qed.\nTheorem sum n m : n + m = m + n. lia. Qed."
    Coq().check(SUM | {"label": "sum"}, whole)
    assert f"\n{whole}\nEnd answer_" in compiler[-1] and ".sum." in compiler[-1] and "Theorem goal" not in compiler[-1]


CHEATS = {
    "an axiom": ("illegal", "Axiom goal : False."),
    "a parameter": ("illegal", "Module Type T. Parameter goal : False. End T. Declare Module M : T. Definition goal := M.goal."),
    "a conjecture": ("illegal", "Conjecture goal : False."),
    "no check of recursion": ("illegal", "Unset  Guard\nChecking. Fixpoint f (n : nat) : False := f n. Definition goal := f 0."),
    "no check by attribute": ("illegal", "#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n. Definition goal := f 0."),
    "no check of positivity": ("illegal", "Unset Positivity Checking. Inductive T := c : (T -> False) -> T."),
    "no check of universes": ("illegal", "Unset Universe Checking."),
    "a primitive": ("illegal", "Primitive goal := #int63_add."),
    "a registered name": ("illegal", "Register False as kernel.ind_bool."),
    "a plugin": ("illegal", 'Declare ML Module "ltac_plugin".'),
    "a file": ("illegal", 'Load "other".'),
    "a redirection": ("illegal", 'Redirect "judged" Print True.'),
    "an extraction": ("illegal", 'Extraction "judged.v" nat.'),
    "a way back": ("illegal", "Reset Initial."),
    "the end": ("illegal", "Definition goal := I. Quit."),
    "an open comment": ("illegal", "Definition goal := I. (*"),
    "an open string": ("illegal", 'Definition goal := I. "'),
    "a string in a comment": ("illegal", 'Definition goal := I. (* "*)'),
    "admitted": ("incomplete", "Theorem goal : False. Proof. Admitted."),
    "admit": ("incomplete", "Proof. admit. Qed."),
    "given up": ("incomplete", "Proof. give_up. Qed."),
    "aborted": ("incomplete", "Theorem goal : False. Abort."),
}
"""Answers to ``False`` that are refused unrun."""


@pytest.mark.parametrize("name", CHEATS)
def test_no_way_around_proving(name: str) -> None:
    word, answer = CHEATS[name]
    found = Proof(checker=Coq())(*task_and_rollout(FALSE, f"```coq\n{answer}\n```"))
    assert found.info["verdict"] == word and found.primary == 0.0 and found.fault is Fault.NONE
    assert (found.components["legal"], found.components["complete"]) == (float(word == "incomplete"), 0.0)


def test_comments_and_strings() -> None:
    assert bare('(* "a" (* x *) *)b "c (*" d') == ' b "" d'
    assert bare("a *) b") == "a *) b" and bare('(* " *)') is None
    assert Coq().check(FALSE, "(* Axiom *) (* open").verdict == "illegal"


@pytest.mark.parametrize(
    ("gold", "says"),
    [
        ({}, "give 'statement'"),
        ({"statement": " "}, "give 'statement'"),
        (FALSE | {"context": 1}, "what else"),
        (FALSE | {"x": 1}, "what else"),
        (FALSE | {"label": "a b"}, "name of the theorem"),
        (FALSE | {"axioms": "classic"}, "a list of names"),
    ],
)
def test_golds_that_are_none(gold: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        Proof(checker=Coq())(*task_and_rollout(gold, "auto."))


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        Coq(workers=0)
    assert hash(Coq()) == hash(Coq()) and isinstance(Coq().check, Callable)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="apt-get install coq"):
        Coq().check(SUM, "lia.")
    with pytest.raises(ConfigError, match="apt-get install coq"):
        Proof(checker=Coq()).prepare()


def test_where_it_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "coqc").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    asked: list[Any] = []
    monkeypatch.setattr(module, "sandbox_of", lambda *_, **settings: asked.append(settings["reads"]))
    monkeypatch.setattr(module, "_CONFIG", str(tmp_path / "coqc"))
    Coq().prepare()
    monkeypatch.setattr(module, "_CONFIG", str(tmp_path / "none"))
    Coq().prepare()
    assert asked == [(str((tmp_path / "coqc").resolve()), str(tmp_path / "coqc")), (str((tmp_path / "coqc").resolve()),)]


needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="coqc is not installed (Debian package coq)")

REAL = [
    ("proved", SUM, "Proof. intros n m. lia. Qed."),
    ("proved", SUM, "intros; lia."),
    (
        "proved",
        SUM,
        "Lemma h n : n + 0 = n. Proof. auto. Qed.\nTheorem goal (n m : nat) : n + m = m + n. apply Nat.add_comm. Qed.",
    ),
    ("proved", SUM, "Definition goal := Nat.add_comm."),
    ("incomplete", SUM, "Theorem goal : forall n m : nat, n + m = m + n. Proof. intros."),
    ("incomplete", SUM, "Proof. intros n m. induction n. lia. Qed."),
    ("wrong", SUM, "Proof. reflexivity. Qed."),
    ("wrong", SUM, "It is plain."),
    ("wrong", SUM, 'Notation "a = b" := True. Theorem goal : forall n m : nat, (n + m = m + n). Proof. intros. exact I. Qed.'),
    ("altered", SUM, "Theorem goal : forall n : nat, n = n. Proof. reflexivity. Qed."),
    ("altered", SUM, 'Notation "a + b" := 0. Theorem goal : forall n m : nat, n + m = m + n. Proof. reflexivity. Qed.'),
    ("altered", SUM, "Inductive nat := z. Theorem goal : forall n m : nat, n = m. Proof. destruct n, m; reflexivity. Qed."),
    ("altered", FALSE, "Inductive False := yes. Definition goal := yes."),
    ("altered", FALSE, "Section A. Variable x : False. Definition goal := x. End A."),
    ("altered", FALSE, "Definition goal := I."),
    ("illegal", FALSE, "Variable goal : False."),
    ("illegal", FALSE, "Hypothesis x : False. Definition goal := x."),
    ("illegal", FALSE, "Require Import Coq.Compat.AdmitAxiom. Theorem goal : False. exact proof_admitted. Qed."),
    ("wrong", FALSE, "End answer. Definition goal := I. Module answer."),
    ("wrong", FALSE, "Section A. Definition goal := I."),
    ("incomplete", FALSE, 'Theorem goal : False. Proof. idtac "Closed under the global context". Qed.'),
    ("timeout", SUM, "Proof. intros. repeat (pose proof I). Qed."),
    ("output", SUM, 'Proof. do 100000000 (idtac "so it is, and so it is again"). Qed.'),
    ("proved", TWICE | {"context": "Require Import Classical.", "axioms": ["classic"]}, "Proof. exact NNPP. Qed."),
    ("illegal", TWICE, "Require Import Classical. Theorem goal : forall P : Prop, ~ ~ P -> P. exact NNPP. Qed."),
]


@pytest.mark.evidence
@needs_coq
@pytest.mark.parametrize("level", ["strong", "landlock"])
@pytest.mark.parametrize(("word", "gold", "answer"), REAL)
def test_the_compiler_itself(word: str, gold: dict[str, Any], answer: str, level: str) -> None:
    checker = Coq(limits=Limits(cpu=5.0, wall=15.0, memory=2 << 30), backend=level)
    try:
        checker.prepare()
    except (ConfigError, SandboxError) as error:
        pytest.skip(str(error))
    found = Proof(checker=checker)(*task_and_rollout(gold, f"```coq\n{answer}\n```"))
    assert found.info["verdict"] == word and found.info["isolation"] == level
    assert ProofCheck(word).legal == found.components["legal"]


@pytest.mark.evidence
@needs_coq
@pytest.mark.parametrize("name", CHEATS)
def test_cheats_would_fail_if_none_were_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ILLEGAL", re.compile("(?!)"))
    monkeypatch.setattr(module, "_GAP", re.compile("(?!)"))
    monkeypatch.setattr(module, "bare", lambda text: text)
    assert Coq().check(FALSE, CHEATS[name][1]).verdict != "proved"


@pytest.mark.evidence
@needs_coq
def test_the_compiler_refuses_a_statement() -> None:
    for gold in ({"statement": "n = n"}, {"statement": "True", "context": "Require Import Nothing."}):
        with pytest.raises(DataError, match="refuses the statement"):
            Coq().check(gold, "auto.")

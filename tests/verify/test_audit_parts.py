"""Parts of an audit: cases, near misses, probes, the watch over a verifier, the record and its page."""

import json
import os
import pickle
import socket
import subprocess
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import planted
import pytest

from assay.audit import (
    FAMILIES,
    AuditSettings,
    AuditStatus,
    Check,
    Line,
    Rate,
    Subject,
    audit,
    audit_page,
    case_of,
    checks,
    read_cases,
    repeatability,
    resolve,
)
from assay.audit.answer_variants import Kind, kind_of, lookalike, near_misses, number_in, respell_number, same
from assay.audit.effects import Played, WatchedVerifier, events_of
from assay.audit.hostile import TRICKS, Canary, payloads
from assay.audit.judge_probes import audit_context, rollout_saying
from assay.audit.probes import Side, right_answers, wrong_answers
from assay.audit.record import Example, printable
from assay.audit.run_audit import probes_of
from assay.audit.subject import again, play_items, subject_of
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.seeds import generator
from assay.core.wire import task_to_wire
from assay.interop import adapt
from assay.verify import ExactMatch, RewardFunction, task_and_rollout
from assay.verify.answer_templates import PLACE

QUICK = AuditSettings(hostile_items=0, deadline=20.0, skip=("determinism", "order", "threads", "latency"))
FILE = Path(planted.__file__)

# ---- cases


def test_cases_of_rows(tmp_path) -> None:
    task, _ = task_and_rollout("7", "7", id="mine", prompt="3+4=")
    rows = [
        {"gold": 4, "prompt": "2+2=", "solutions": ["4", 4.0], "wrong": [5], "level": "easy"},
        {"answer": ["a", "b"], "unique": False},
        {"task": task_to_wire(task)},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    first, second, third = read_cases(path)
    assert (first.solutions, first.wrong, first.prompt, first.unique) == (("4", "4.0"), ("5",), "2+2=", True)
    assert first.task.private["row"]["level"] == "easy"
    assert "wrong" not in first.task.private["row"]
    assert (second.gold, second.unique) == ('["a", "b"]', False)
    assert third.task.id == "mine" and third.gold == "7"
    assert dict(first.without_gold().private["row"]) == {"prompt": "2+2="}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no cases"),
        ("{", "line 1: not JSON"),
        ('{"gold": "\udcff"}', "line 1: not UTF-8: byte 11 is 0xff"),
        ('{"gold": 1}\n{"gold": 1, "gold": 2}', "line 2: the key 'gold' stands twice"),
        ("[1]", "line 1: a list, not an object"),
        ('{"prompt": "p"}', "row 1 has neither 'gold' nor 'task'"),
        ('{"gold": 1, "wrong": "2"}', "'wrong' is a str"),
        ('{"gold": 1, "unique": "no"}', "row 1: 'unique' is a str; give true or false"),
        ('{"task": "t"}', "row 1: 'task' is a str; give an object"),
        ('{"task": {}}', "row 1: 'task': not a task in wire format"),
        ('{"gold": 4', "line 1: not JSON: Expecting ',' delimiter, at character 11; write one JSON object"),
        ('{"gold": 1, "id": "a"}\n{"gold": 2, "id": "a"}', "two cases have one id"),
    ],
)
def test_cases_that_are_wrong(tmp_path, text: str, said: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DataError, match=said) as caught:
        read_cases(path)
    assert "cases.jsonl" in str(caught.value)


def test_only_a_newline_ends_a_line(tmp_path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"gold": "a\u2028b"}\r\n\n{"gold": "\x85"}\n', encoding="utf-8")
    assert [case.gold for case in read_cases(tmp_path / "cases.jsonl")] == ["a\u2028b", "\x85"]


def test_cases_that_are_not_there_or_have_no_gold(tmp_path) -> None:
    with pytest.raises(DataError, match="cannot read cases"):
        read_cases(tmp_path / "none.jsonl")
    wire = task_to_wire(task_and_rollout("7", "7")[0])
    wire["private"] = {}
    with pytest.raises(DataError, match="no private 'answer'"):
        case_of({"task": wire})
    assert case_of({"task": wire, "solutions": ["x"]}).gold == "x"


# ---- words


def test_kinds_and_numbers() -> None:
    assert [kind_of(t) for t in ("-3", "2e5", "1,234.5", "1,2", "½", "a b")] == [
        Kind.INTEGER,
        Kind.DECIMAL,
        Kind.DECIMAL,
        Kind.TEXT,
        Kind.TEXT,
        Kind.TEXT,
    ]
    assert number_in("2e3") == 2000 and number_in("-6 / 4") == number_in("-1.5")
    assert not same("a", "b") and same("1,000", "1e3")


@pytest.mark.parametrize("gold", ["4", "-17", "+5", "0", "10.25", "3/4", "B", "Paris", "x = 3", "[1, 2]", "é", "?", "0.5"])
def test_near_misses_are_never_the_gold(gold: str) -> None:
    for index in range(50):
        misses = near_misses(gold, generator("test", 0, index=index))
        assert len(set(misses)) == len(misses)
        assert not any(same(miss, gold) or not miss.strip() for miss in misses)
        assert misses or gold in ("é", "?")


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("-10", ["-10.0", "-010", "-1e1", "-10/1"]),
        ("0.50", ["0.500", "+0.50", "1/2", ".50"]),
        ("-1.5", ["-1.50", "-3/2"]),
        ("3/4", ["6/8", r"\frac{3}{4}", "0.75"]),
        ("1/3", ["2/6", r"\frac{1}{3}"]),
        ("7", ["7.0", "+7", "07", "7/1"]),
        ("Paris", []),
    ],
)
def test_a_number_in_other_words(gold: str, expected: list[str]) -> None:
    assert respell_number(gold) == expected
    assert all(same(gold, other) for other in respell_number(gold) if "frac" not in other)


def test_lookalikes() -> None:
    assert lookalike("Aa") == "\u0410\u0430"
    assert lookalike("7") is None and lookalike("7.30") is None
    assert lookalike("10.30") == "lO.3"


# ---- probes


def test_probes_are_the_same_for_the_same_seed_and_never_mix_right_with_wrong() -> None:
    golds = ["4", "TRUE", "4", "B", "Ab", "-3"]
    cases = [case_of({"gold": g, "prompt": "2 and 7?", "wrong": ["9"]}, i) for i, g in enumerate(golds)]
    canary = Canary("/nowhere", "token", 1)
    first = probes_of(cases, PLACE, AuditSettings(), canary)
    assert [(p.id, p.answer) for p in first] == [(p.id, p.answer) for p in probes_of(cases, PLACE, AuditSettings(), canary)]
    assert [p.answer for p in first] != [p.answer for p in probes_of(cases, PLACE, AuditSettings(seed=1), canary)]
    assert {p.family for p in first} == set(FAMILIES)
    for p in first:
        if FAMILIES[p.family].side is Side.WRONG:
            assert p.answer.strip() != p.case.gold, p
            assert p.family in ("others", "near") or p.answer.strip().upper() != p.case.gold.upper(), p
    assert len({(p.case.task.id, p.family, p.answer) for p in first}) == len(first)


def test_where_other_answers_may_be_right_neighbours_prove_nothing() -> None:
    cases = [case_of({"gold": g, "unique": False}, i) for i, g in enumerate(["a b", "b c"])]
    families = {family for family, _ in wrong_answers(cases, 0, PLACE, 0)}
    assert not families & {"near", "others", "frequent", "hedge", "negated", "echo"}
    assert {"constants", "junk", "empty"} <= families


def test_a_template_has_every_answer_in_its_place() -> None:
    case = case_of({"gold": "4", "prompt": "2+2="})
    assert ("gold", "#### 4") in list(right_answers(case, "#### {answer}"))
    assert ("near", "#### 5") in list(wrong_answers([case], 0, "#### {answer}", 0))


def test_the_library_of_tricks_holds_what_a_judge_has_met() -> None:
    assert set(TRICKS) == {"format", "equal", "exit", "values", "bytes", "bombs", "injection"}
    found = payloads(Canary("/place", "token", 4711))
    assert len(found) == len(set(found))
    assert all("token" in text for text in found)


# ---- the watch


def _runs(prompt, completion, row):
    exec(completion)
    return 1.0


@pytest.mark.parametrize(
    ("code", "event"),
    [
        ("import os\nos.environ['{token}'] = '1'", "environment variable set"),
        ("open('{path}', 'w').close()", "open"),
        ("def f():\n    return '{token}', 1\nf()", "exec"),
        (
            "from socket import *\nwith create_connection(('127.0.0.1', {port})) as s:\n    s.sendall(b'{token}')",
            "socket.connect",
        ),
        ("import os\nos.putenv('{token}', '1')", "os.putenv"),
        ("open('/dev/null', 'w').close()\nopen('/proc/self/stat').close()", None),
        ("import os\nfor _ in range(2): os.close(os.open('{path}', os.O_RDWR | os.O_CREAT))", "open"),
        ("from tempfile import TemporaryFile\nTemporaryFile().close()", "writes_files"),
        ("import subprocess\nsubprocess.run(['true'])", "starts_programs"),
        ("import socket\nsocket.socket(socket.AF_INET).close()\nsocket.socketpair()", "uses_network"),
        ("import socket\nsocket.getaddrinfo('localhost', 80)", "uses_network"),
        ("import pickle\npickle.loads(b'cos\\nsystem\\n.')", None),
        ("1 + 1", None),
    ],
)
def test_what_an_answer_does_is_written_down(code: str, event: str | None) -> None:
    with audit_context(AuditSettings()) as place:
        canary = place.canary
        task, rollout = task_and_rollout("1", code.format(token=canary.token, path=canary.path, port=canary.port))
        watched = WatchedVerifier(RewardFunction(_runs), canary)
        score = watched(task, rollout)
        assert score.info["seconds"] >= 0
        assert watched(task, rollout_saying(task, "2 + 2", "again")).primary == 1.0
        found = events_of(canary)
        assert (event in found.get("case", ())) if event else found == {}
        assert "again" not in found
        os.unsetenv(canary.token)
        if event == "open":
            assert place.traces() == ("a file was made",)
            Path(canary.path).unlink()
        assert place.traces() == (("a connection was opened",) if event == "socket.connect" else ())
        assert place.traces() == ()


def test_a_stranger_at_the_port_is_no_trace() -> None:
    with audit_context(AuditSettings()) as place:
        with socket.create_connection(("127.0.0.1", place.canary.port)) as stranger:
            stranger.sendall(b"hello")
        silent = socket.create_connection(("127.0.0.1", place.canary.port))
        assert place.traces() == ()
        silent.close()


def test_a_variable_that_was_there_before_is_no_trace(monkeypatch) -> None:
    with audit_context(AuditSettings()) as place:
        monkeypatch.setenv(place.canary.token, "1")
        WatchedVerifier(ExactMatch(), place.canary)(*task_and_rollout("1", "1"))
        assert events_of(place.canary) == {}


def test_what_happens_outside_of_a_verdict_is_not_looked_at() -> None:
    with audit_context(AuditSettings()) as place:
        WatchedVerifier(ExactMatch(), place.canary)(*task_and_rollout("1", "1"))
        Path(place.canary.path).touch()
        subprocess.run(["true", place.canary.token], check=True)
        assert events_of(place.canary) == {}


def test_playing_several_attempts() -> None:
    items = [task_and_rollout("2", "2", id="a"), task_and_rollout("2", "3", id="b")]
    for together in (False, True):
        batch = RewardFunction(lambda p, c, rows: [float(x == "2") for x in c], batched=True)
        assert Played(batch, tuple(items), together=together).values() == [1.0, 0.0]
        assert Played(adapt(planted.honest_trl), tuple(items), together=together).values() == [1.0, 0.0]
    for thread in (False, True):
        assert Played(ExactMatch(), tuple(items), thread=thread)(*items[0]).info["values"] == (1.0, 0.0)
    broken = RewardFunction(lambda p, c, rows: [1.0], batched=True)
    assert Played(broken, tuple(items), together=True).values() == ["fault", "fault"]
    assert Played(RewardFunction(planted.raises_on_junk), (task_and_rollout("2", "x"),)).values() == ["fault"]


@pytest.mark.slow
def test_a_process_of_its_own() -> None:
    items = [task_and_rollout("2", "2", id="a"), task_and_rollout("2", "3", id="b")]
    assert again(resolve(f"{FILE}:honest"), items, 1, 20.0) == [1.0, 0.0]
    assert again(subject_of(ExactMatch()), items, 1, 20.0) == [1.0, 0.0]
    assert play_items(pickle.dumps((None, ExactMatch(), items))) == [1.0, 0.0]
    assert play_items(pickle.dumps(({"name": "exact"}, None, items))) == [1.0, 0.0]
    with pytest.raises(ConfigError, match="cannot be made again"):
        again(subject_of(lambda prompt, completion, row: 1.0), items, 1, 20.0)
    with pytest.raises(ConfigError, match="process of its own failed"):
        again(Subject("x", ExactMatch(), {"name": "gone:f"}), items, 1, 20.0)


def test_a_verifier_without_a_name_is_not_tried_under_other_hash_seeds() -> None:
    found = audit(
        lambda prompt, completion, row: float(completion == row["answer"]),
        [case_of({"gold": "4"})],
        settings=AuditSettings(hostile_items=0, deadline=20.0, skip=("order", "threads", "latency")),
    )
    check = found.check("determinism")
    assert check.status is AuditStatus.PASS and [line.name for line in check.lines] == ["another process", "again"]
    assert "not tried under other hash seeds: it cannot be made again" in check.says
    assert import_module("assay.audit.child").__all__ == []


def test_a_process_of_its_own_that_is_late(monkeypatch) -> None:
    def late(*_, **__):
        raise subprocess.TimeoutExpired("python", 1.0)

    monkeypatch.setattr(subprocess, "run", late)
    with pytest.raises(ConfigError, match="no verdicts in time"):
        again(subject_of(ExactMatch()), [task_and_rollout("2", "2")], 1, 1.0)


# ---- the whole


def test_names() -> None:
    assert resolve("exact").built_in == "exact"
    assert subject_of("exact").name == "exact" and subject_of(resolve("exact")) == resolve("exact")
    assert subject_of(ExactMatch(), "mine").name == "mine"
    with pytest.raises(UnknownNameError, match="did you mean 'exact'"):
        resolve("exct")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_fn": 2.0}, "max_fn=2.0"),
        ({"items": 0}, "items=0"),
        ({"hostile_items": -1}, "hostile_items=-1"),
        ({"template": "#### "}, "no place for the answer"),
    ],
)
def test_settings_that_are_wrong(change, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        AuditSettings(**change)


@pytest.mark.parametrize("change", [{"skip": ("ordr",)}, {"must": ("boxd",)}, {"inform": ("hegde",)}])
def test_names_of_checks_and_families_are_known(change) -> None:
    with pytest.raises(UnknownNameError, match="did you mean"):
        audit("exact", settings=AuditSettings(**change))


def test_a_foreign_verifier_needs_cases() -> None:
    with pytest.raises(DataError, match="honest has no cases of its own"):
        audit(planted.honest)


@pytest.mark.slow
def test_a_second_verifier_that_decides_otherwise() -> None:
    cases = [case_of({"gold": g}, i) for i, g in enumerate(["ab", "cd", "ef"])]
    same = audit(ExactMatch(strip=True), cases, against=planted.honest, settings=QUICK)
    assert same.check("agreement").status is AuditStatus.PASS and same.against == "honest"
    other = audit(ExactMatch(strip=True), cases, against=planted.accepts_anything, settings=QUICK)
    assert other.failed == ("agreement",)
    assert "value 0 against 1" in {e.finding for e in other.check("agreement").examples}


def test_fewer_items_are_drawn_by_seed_and_known_weaknesses_only_inform() -> None:
    cases = [case_of({"gold": str(g)}, i) for i, g in enumerate(range(10, 40))]
    settings = AuditSettings(items=3, hostile_items=0, deadline=20.0, skip=QUICK.skip, inform=("hedge", "negated"))
    found = audit(planted.substring, cases, settings=settings)
    assert found.items == 3
    lines = {line.name: line for line in found.check("wrong_answers").lines}
    assert not lines["hedge"].counts and lines["hedge"].rate.failed
    assert lines["near"].counts and lines["near"].rate.failed
    assert "accepts wrong answers; options: 3/3" in found.check("wrong_answers").says


@pytest.mark.slow
def test_what_stops_its_judge_every_time_is_left_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "assay.audit.judge_probes._CHUNK", 4
    )  # a tenth of the answers is enough to see it, and each costs a process
    monkeypatch.setattr("assay.audit.judge_probes._MOST", 8)

    def dies(prompt, completion, row):
        os._exit(1)

    found = audit(dies, [case_of({"gold": "4"})], settings=AuditSettings(hostile_items=0, deadline=20.0))
    assert found.left_out > 0
    assert {"gold", "crashes"} <= set(found.failed)
    assert found.latency is None
    assert {c.name for c in found.checks if c.status is AuditStatus.SKIPPED} >= {"latency", "missing_gold"}
    assert "left out after too many" in audit_page(found)


@pytest.mark.prove
def test_one_family_that_stops_its_judge_keeps_no_other_from_being_tried() -> None:
    def sleeps(prompt, completion, row):
        if not completion.strip():
            os._exit(1)
        return eval(completion)

    cases = [case_of({"gold": str(g)}, i) for i, g in enumerate(range(40, 64))]
    settings = AuditSettings(deadline=20.0, skip=("trick_bombs",))  # a few would compute until the deadline
    found = audit(sleeps, cases, settings=settings)
    assert {"crashes", "execution"} <= set(found.failed)


def test_a_check_whose_answers_were_left_out_does_not_hold() -> None:
    check = Check(name="execution", status=AuditStatus.PASS, says="runs no answer as code")
    gone = checks.reduce_check(check, {"gold": 4}, {"payload": 3, "gold": 1})
    assert (gone.status, gone.says.split(";")[0]) == (AuditStatus.UNTRIED, "not tried: payload")
    some = checks.reduce_check(check, {"payload": 2}, {"payload": 3, "empty": 9})
    assert (some.status, some.says) == (AuditStatus.PASS, "runs no answer as code; 3 answers were left out")
    assert checks.reduce_check(check, {"payload": 2}, {"empty": 9}) == check
    failed = replace(check, status=AuditStatus.FAIL)
    assert checks.reduce_check(failed, {}, {"payload": 3}) == failed
    every = Check(name="effects", status=AuditStatus.PASS, says="does nothing but judge")
    assert checks.reduce_check(every, {}, {"payload": 3, "gold": 2}).says == "does nothing but judge; 5 answers were left out"


def test_repeats_that_cannot_be_made_say_so() -> None:
    class Silent:
        deadline = 1.0

        def play_together(self, *_, **__):
            return None

    subject = subject_of(planted.honest)
    for check in (repeatability.determinism, repeatability.order, repeatability.threads):
        assert check(subject, [], Silent()).status is AuditStatus.SKIPPED


@pytest.mark.slow
def test_the_record_and_its_page() -> None:
    found = audit(planted.substring, [case_of({"gold": "<b>4</b>", "prompt": "&"})], settings=QUICK)
    value = json.loads(json.dumps(found.json(), allow_nan=False))
    assert value["passed"] is False and value["settings"]["seed"] == 0
    line = value["checks"][0]["lines"][0]
    assert line["rate"] == {"failed": 0, "of": 1, "value": 0.0, "low": 0.0, "high": pytest.approx(0.793, abs=1e-3)}
    page = audit_page(found)
    assert "&lt;b&gt;4&lt;/b&gt;" in page and "<b>4</b>" not in page
    assert not any(word in page for word in ("http:", "https:", "<script", "src=", "url("))
    assert "Over its threshold: " in page and found.failed[0] in page
    assert "against strict" in audit_page(
        audit(ExactMatch(), [case_of({"gold": "4"})], against=planted.strict_case, settings=QUICK)
    )


def test_rates_and_long_answers() -> None:
    assert str(Rate(1, 4)) == "1/4 = 0.250 [0.046, 0.699]"
    assert Rate(0, 0).value == 0.0 and Rate(0, 0).bounds == (0.0, 1.0)
    assert printable("a\x00b\n") == "a\\x00b\\n" and printable("\ud800") == "\\ud800"
    assert printable("x" * 300).endswith("… (300 characters)")
    examples = [Example("f", "g", "long" * n, "s") for n in range(20, 0, -1)]
    lines = [Line("a", "a", Rate(1, 10)), Line("b", "b", Rate(2, 10)), Line("c", "c", Rate(9, 10), counts=False)]
    check = Check.of("n", lines, 0.05, "good", "bad: {worst}", examples)
    assert check.says.startswith("bad: b: 2/10") and len(check.examples) == 8 and check.examples[0].answer == "long"


def test_the_package_offers_its_names() -> None:
    from assay import audit as package

    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name) for name in package.__all__)
    assert not hasattr(package, "no_such_name")


def test_the_prompt_of_a_case_is_text_or_turns() -> None:
    made = case_of({"gold": "4", "prompt": [{"role": "system", "content": "Add."}, {"role": "user", "content": "2+2="}]})
    assert made.task.public["prompt"] == "Add.\n2+2="
    for turns in (["2+2="], [{"role": "user"}]):
        with pytest.raises(DataError, match=r"row 1: 'prompt' is .*; give text, or turns with 'role' and 'content'"):
            case_of({"gold": "4", "prompt": turns})

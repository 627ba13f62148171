"""JSON in answers: found, read strictly, compared, validated."""

import json
import random

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, MissingExtraError, UnknownNameError
from assay.core.score import Fault
from assay.verify import FormatIs, Formatted, JsonMatch, JsonSchema, ScoringPool, Together, posed
from assay.verify.text import schema as schema_module
from assay.verify.text.jsonvalue import NoJson, json_in, same_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), (" null ", None), ('"x"', "x"), ('{"a": 1}', {"a": 1}), ('So {"a": [1]} I hope', {"a": [1]}),
        ('{"a": 1} no: {"a": 2}', {"a": 2}), ("```json\n[1]\n```", [1]), ("```\n1\n```\n```json\n2\n```", 2),
        ("```json\n[1]\n```\n[2]", [1]), ('see [1 and {"a": 1}', {"a": 1}), ('say "[" {"a": "]"} ok', {"a": "]"}),
        ('a "stray {"a": 1}', {"a": 1}), ('[1] {"a": 1,}', [1]), ('{"a": "\\"}"} ]', {"a": '"}'}), ("[" * 99 + "]" * 99, None),
        ("```json\n[1]\n```\n```\n[2]", [1]),
    ],
)  # fmt: skip
def test_found(text: str, value: object) -> None:
    found = json_in(text)
    assert found == value or text.startswith("[[")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"), ("none", "Expecting value"), ('{"a": 1, "a": 1}', "twice"), ("[NaN]", "NaN"), ("Infinity",
        "Infinity"), ("[1e999]", "doubles"), ("[" + "1" * 401 + "]", "400 digits"), ("[" * 101 + "]" * 101, "deeper than 100"),
        ("[" * 100_000 + "]" * 100_000, "deeper than 100"), ("{'a': 1}", "property name"), ("```json\n{\n```\n", "property name"),
        ("[1}", "Expecting"), ("}{", "Expecting"), ("]", "Expecting"),
    ],
)  # fmt: skip
def test_refused(text: str, why: str) -> None:
    with pytest.raises(NoJson, match=why):
        json_in(text)
    assert JsonMatch()(*posed(1, text)).info["verdict"] == "unparsed"


def test_equality() -> None:
    for a, b, equal in (
        (1, 1.0, True), (1, True, False), (0, False, False), (None, False, False), ("1", 1, False), ([1, 2], [2, 1], False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True), ({"a": 1}, {"a": 1, "b": 2}, False), ([1], [1, 1], False), ([], {}, False),
        ([[1]], [[True]], False),
    ):  # fmt: skip
        assert same_json(a, b) is same_json(b, a) is equal
        if not isinstance(a, list) or len(a) != 2:
            assert same_json(a, b, unordered=True) is equal
    assert same_json([{"a": [1, 2.0]}, 3], [3.0, {"a": [2, 1]}], unordered=True)
    assert not same_json([1, 1, 2], [1, 2, 2], unordered=True)
    assert JsonMatch(unordered=True)(*posed([1, 2], "[2, 1]")).primary == 1.0
    assert JsonMatch(where="tag")(*posed({"a": 1}, 'Look: <answer>{"a": 1}</answer> {"a": 2}')).primary == 1.0
    assert JsonMatch(where="tag")(*posed({"a": 1}, '{"a": 1}')).info["verdict"] == "unparsed"


def value_of(rng: random.Random, depth: int = 3) -> object:
    kind = rng.randrange(8 if depth else 6)
    if kind < 6:
        return [None, True, False, rng.randint(-2, 2), rng.choice([0.5, 1.0, -2.0]), rng.choice(["", "a", "1", "{"])][kind]
    if kind == 6:
        return [value_of(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {rng.choice("abc"): value_of(rng, depth - 1) for _ in range(rng.randint(0, 3))}


def marked(value: object) -> str:
    """A second form of equality: canonical text, with numbers as floats and truth values as words."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{marked(v)}" for k, v in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(marked, value)) + "]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    return repr(float(value))


def test_against_canonical_text() -> None:
    rng = random.Random(7)
    equal = 0
    for _ in range(4000):
        gold = value_of(rng)
        said = gold if rng.random() < 0.4 else value_of(rng)
        frame = rng.choice(["{}", "```json\n{}\n```", "x\n```\n{}\n```\ny"])
        text = frame.replace("{}", json.dumps(said, indent=rng.choice([None, 1])))
        wanted = marked(gold) == marked(said)
        equal += wanted
        assert JsonMatch()(*posed(gold, text)).primary == float(wanted), (gold, text)
    assert 1500 < equal < 3500


# ---- schemas

PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}


def test_schema_and_value() -> None:
    def judged(gold: object, said: str, **settings: object) -> tuple[str, float, float]:
        score = JsonSchema(**settings)(*posed(gold, said))
        return score.info["verdict"], score.components["correct"], score.components["valid"]

    assert judged({"schema": PERSON}, '{"age": 3}') == ("valid", 1.0, 1.0)
    assert judged({"schema": PERSON}, '{"age": -3}') == ("invalid", 0.0, 0.0)
    assert judged({"schema": PERSON, "value": {"age": 3}}, '{"age": 3.0}') == ("equal", 1.0, 1.0)
    assert judged({"schema": PERSON, "value": {"age": 3}}, '{"age": 4}') == ("different", 0.0, 1.0)
    assert judged({"value": [1]}, "[1]") == ("equal", 1.0, 1.0)
    assert judged(None, '{"age": 3}', schema=FrozenMap(PERSON)) == ("valid", 1.0, 1.0)
    assert judged({"value": {"age": 1}}, '{"age": 3}', schema=FrozenMap(PERSON)) == ("different", 0.0, 1.0)
    assert judged({"schema": True}, "no json") == ("unparsed", 0.0, 0.0)
    shipped = {"schema": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}  # comes with the package
    assert judged(shipped, '{"type": "x"}')[0] == "invalid"
    assert JsonSchema()(*posed({"schema": PERSON}, "{}")).info["why"] == "'age' is a required property"


def test_wrong_schemas() -> None:
    with pytest.raises(ConfigError, match=r"JsonSchema.schema: .*is no JSON Schema"):
        JsonSchema(schema=FrozenMap({"type": "nothing"}))
    for gold in ({}, 3, None, {"other": 1}, {"schema": {"type": 3}}, {"schema": 3}, {"schema": {"$ref": "http://localhost:1/x"}}):
        with pytest.raises(DataError, match=r"gold|schema|Schema"):
            JsonSchema()(*posed(gold, "{}"))
    with pytest.raises(UnknownNameError):
        JsonSchema(where="x")


def test_without_the_package(monkeypatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(schema_module, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"assay-rl\[verify\]"):
        JsonSchema()(*posed({"schema": True}, "{}"))


@pytest.mark.parametrize("inside", [lambda v: v, lambda v: Together((v, FormatIs("x"))), lambda v: Formatted(v)])
def test_without_its_package_there_is_one_error_before_the_first_answer(monkeypatch, inside) -> None:
    ScoringPool(inside(JsonSchema())).close()
    monkeypatch.setattr(schema_module, "find_spec", lambda name: None if name == "referencing" else name)
    with pytest.raises(MissingExtraError, match=r"pip install 'assay-rl\[verify\]'"):
        ScoringPool(inside(JsonSchema()))


def test_a_hanging_pattern_is_killed() -> None:
    """Why the verifier is not trusted: a pattern of the schema takes exponential time on a text made for it."""
    gold = {"schema": {"type": "string", "pattern": "^(a+)+$"}}
    items = [posed(gold, json.dumps("a" * 40 + "b"), id="hangs"), *(posed(gold, '"aaa"', id=f"ok{i}") for i in range(3))]
    with ScoringPool(JsonSchema(), deadline=0.4) as pool:
        scores = pool.score(items)
    assert scores["hangs"].fault is Fault.POLICY
    assert [scores[f"ok{i}"].primary for i in range(3)] == [1.0] * 3

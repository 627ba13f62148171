"""JSON in answers: found, read strictly, compared, validated."""

import json
import random

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, MissingExtraError, UnknownNameError
from assay.core.score import Fault
from assay.verify import FormatIs, Formatted, JsonMatch, JsonSchema, ScoringPool, Together, task_and_rollout
from assay.verify.text import schema as schema_module
from assay.verify.text.formats import FORMATS
from assay.verify.text.jsonvalue import Exact, NoJson, json_in, same_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        (" null ", None),
        ('"x"', "x"),
        ('{"a": 1}', {"a": 1}),
        ('So {"a": [1]} I hope', {"a": [1]}),
        ('{"a": 1} no: {"a": 2}', {"a": 2}),
        ("```json\n[1]\n```", [1]),
        ("```\n1\n```\n```json\n2\n```", 2),
        ("```json\n[1]\n```\n[2]", [1]),
        ('see [1 and {"a": 1}', {"a": 1}),
        ('say "[" {"a": "]"} ok', {"a": "]"}),
        ('a "stray {"a": 1}', {"a": 1}),
        ('[1] {"a": 1,}', [1]),
        ('{"a": "\\"}"} ]', {"a": '"}'}),
        ("[" * 99 + "]" * 99, None),
        ("```json\n[1]\n```\n```\n[2]", [1]),
        ("[1] is wrong, so [2]", [2]),
    ],
)
def test_found(text: str, value: object) -> None:
    found = json_in(text)
    assert found == value or text.startswith("[[")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ("none", "Expecting value"),
        ('{"a": 1, "a": 1}', "twice"),
        ("[NaN]", "NaN"),
        ("Infinity", "Infinity"),
        ("[1e999]", "doubles"),
        ("[" + "1" * 401 + "]", "400 digits"),
        ("[" * 101 + "]" * 101, "deeper than 100"),
        ("[" * 100_000 + "]" * 100_000, "deeper than 100"),
        ("{'a': 1}", "property name"),
        ("```json\n{\n```\n", "property name"),
        ("[1}", "Expecting"),
        ("}{", "Expecting"),
        ("]", "Expecting"),
        ("[[5, 36]] or [[-7, 37]]", "joined by 'or'"),
        ("not [1]", "denies"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(NoJson, match=why):
        json_in(text)
    assert JsonMatch()(*task_and_rollout(1, text)).info["verdict"] == "unparsed"


def test_equality() -> None:
    for a, b, equal in (
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("1", 1, False),
        ([1, 2], [2, 1], False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], [1, 1], False),
        ([], {}, False),
        ([[1]], [[True]], False),
    ):
        assert same_json(a, b) is same_json(b, a) is equal
        if not isinstance(a, list) or len(a) != 2:
            assert same_json(a, b, unordered=True) is equal
    assert same_json([{"a": [1, 2.0]}, 3], [3.0, {"a": [2, 1]}], unordered=True)
    assert not same_json([1, 1, 2], [1, 2, 2], unordered=True)
    assert JsonMatch(unordered=True)(*task_and_rollout([1, 2], "[2, 1]")).primary == 1.0
    assert JsonMatch(where="tag")(*task_and_rollout({"a": 1}, 'Look: <answer>{"a": 1}</answer> {"a": 2}')).primary == 1.0
    assert JsonMatch(where="tag")(*task_and_rollout({"a": 1}, '{"a": 1}')).info["verdict"] == "unparsed"


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
        assert JsonMatch()(*task_and_rollout(gold, text)).primary == float(wanted), (gold, text)
    assert 1500 < equal < 3500


# ---- schemas

PERSON = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}


def test_schema_and_value() -> None:
    def judged(gold: object, said: str, **settings: object) -> tuple[str, float, float]:
        score = JsonSchema(**settings)(*task_and_rollout(gold, said))
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
    assert JsonSchema()(*task_and_rollout({"schema": PERSON}, "{}")).info["why"] == "'age' is a required property"


@pytest.mark.parametrize(
    ("schema", "text", "right"),
    [
        ({"multipleOf": 0.1}, "92.6", True),
        ({"multipleOf": 0.01}, "300.52", True),
        ({"multipleOf": 0.01}, "1.11", True),
        ({"multipleOf": 0.1}, "1.9", True),
        ({"multipleOf": 0.01}, "1.115", False),
        ({"multipleOf": 0.1}, "0.15", False),
        ({"multipleOf": 0.1}, "0.1000000000000000000001", False),
        ({"multipleOf": 1e-7}, "3e-7", True),
        ({"multipleOf": 0.01}, "1e300", True),
        ({"multipleOf": 0.3}, "1e300", False),
        ({"multipleOf": 3}, "9.0", True),
        ({"multipleOf": 3}, "10.0", False),
        ({"type": "integer", "multipleOf": 11.0}, "9007199254740995", True),
        ({"type": "integer", "multipleOf": 11.0}, "9007199254740996", False),
        ({"multipleOf": 0.1}, '"x"', True),
        ({"maximum": 0.3}, "0.30000000000000001", False),
        ({"maximum": 0.3}, "0.3", True),
        ({"exclusiveMinimum": 0.1}, "0.1", False),
        ({"minimum": 0.1}, "0.1", True),
        ({"type": "integer"}, "2.0", True),
        ({"type": "integer"}, "2.5", False),
        ({"type": "integer"}, "1e2", True),
        ({"type": "integer"}, "true", False),
        ({"type": "number"}, "1e2", True),
        ({"const": 0.1}, "0.10", True),
        ({"enum": [0.5, "a"]}, "5e-1", True),
        ({"const": 0.1}, "0.10000000000000000001", False),
        ({"uniqueItems": True}, "[1, 1.0]", False),
        ({"items": {"multipleOf": 0.05}}, "[0.05, 0.35, 1]", True),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, "2.0", False),
        ({"$schema": "http://json-schema.org/draft-03/schema#", "divisibleBy": 0.1}, "92.6", True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "multipleOf": 0.1}, "92.6", True),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#"}, "b": {"multipleOf": 0.1}}},
            '{"a": {"b": 1.9}}',
            True,
        ),
        ({"minimum": 1}, "0." + "9" * 500, True),
        ({"minimum": 0}, "1e-999999999", True),
    ],
)
def test_numbers_are_the_decimals_that_they_are_written_as(schema: dict, text: str, right: bool) -> None:
    score = JsonSchema()(*task_and_rollout({"schema": schema}, text))
    assert score.primary == float(right), score.info


def test_a_value_is_compared_as_before_and_numbers_are_shown_as_written() -> None:
    gold = {"schema": {"items": {"multipleOf": 0.1}}, "value": [0.3, {"a": 0.1}]}
    assert JsonSchema()(*task_and_rollout(gold, '[0.30, {"a": 1e-1}]')).info["verdict"] == "equal"
    assert JsonSchema()(*task_and_rollout({"schema": {"multipleOf": 0.5}}, "0.75")).info["why"] == "0.75 is not a multiple of 0.5"
    assert json_in("[1.50]", exact=True) == [Exact("1.5")] and isinstance(json_in("[1.5]")[0], float)


FORMATTED = [
    ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "24-02-09", "2024-02-29T", "２０２４-02-09"]),
    (
        "time",
        ["10:00:00Z", "10:00:00.5+02:00", "23:59:60Z", "01:59:60+02:00"],
        ["10:00", "24:00:00Z", "10:60:00Z", "10:00:60Z", "10:00:00"],
    ),
    (
        "date-time",
        ["2024-02-29T10:00:00Z", "2024-01-01t00:00:00.123-08:00"],
        ["2024-02-30T10:00:00Z", "2024-02-09 10:00:00Z", "x"],
    ),
    ("duration", ["P1Y2M3D", "PT36H", "P2W", "P1DT12H"], ["P", "PT", "1Y", "P1D2H", "P1YT"]),
    (
        "email",
        ["a@b.org", "a.b+c@d", '"a b"@c.de', "a@[127.0.0.1]", "a@[IPv6:::1]"],
        ["a", "@b", "a@", "a b@c", ".a@b", "a..b@c", "a@-b", "a@b@c", "a@[1]", "a@[IPv6:x]", "x" * 65 + "@b"],
    ),
    ("hostname", ["a.b-c.org", "localhost"], ["-a", "a_b", "a..b", "", "a" * 64]),
    ("ipv4", ["127.0.0.1"], ["127.0.0.256", "127.1", "1.2.3.4.5", "01.2.3.4"]),
    ("ipv6", ["::1", "2001:db8::ff00:42:8329", "::ffff:1.2.3.4"], [":::", "1::2::3", "12345::", "::1%eth0"]),
    (
        "uri",
        ["http://a.b/c?d=e#f", "mailto:a@b.org", "urn:x:y", "http://[::1]:80/"],
        ["/a/b", "http://a b", "//a", "http://[z]/", "a", "http://a/%z"],
    ),
    ("uri-reference", ["/a/b", "", "?q", "a/b", "//a/b", "http://a"], ["a b", "\\a", ":a"]),
    (
        "uuid",
        ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
        ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638"],
    ),
    ("json-pointer", ["", "/a/~0/~1"], ["a", "/~2", "/~"]),
    ("regex", ["^a+$"], ["(", "a{2,1}"]),
]


@pytest.mark.parametrize(("name", "good", "bad"), FORMATTED)
def test_formats_are_checked_on_request(name: str, good: list[str], bad: list[str]) -> None:
    schema = {"schema": {"format": name}}
    for text, right in [*((text, True) for text in good), *((text, False) for text in bad)]:
        assert JsonSchema(format=True)(*task_and_rollout(schema, json.dumps(text))).primary == float(right), text
        assert JsonSchema()(*task_and_rollout(schema, json.dumps(text))).primary == 1.0  # without it, a remark
    assert JsonSchema(format=True)(*task_and_rollout(schema, "3")).primary == 1.0  # no text


def test_every_format_has_cases_and_others_are_refused_by_name() -> None:
    assert [name for name, *_ in FORMATTED] == list(FORMATS)
    gold = {"schema": {"properties": {"a": {"allOf": [{"format": "colour"}]}}}}
    with pytest.raises(DataError, match="format 'colour', which is not checked here; known: date, date-time, "):
        JsonSchema(format=True)(*task_and_rollout(gold, "{}"))
    with pytest.raises(ConfigError, match=r"JsonSchema.schema: .*colour"):
        JsonSchema(format=True, schema=FrozenMap(gold["schema"]))
    named = {"schema": {"properties": {"format": {"type": "string"}}, "default": {"format": "colour"}}}
    assert JsonSchema(format=True)(*task_and_rollout(named, '{"format": "x"}')).primary == 1.0


def test_wrong_schemas() -> None:
    with pytest.raises(ConfigError, match=r"JsonSchema.schema: .*is no JSON Schema"):
        JsonSchema(schema=FrozenMap({"type": "nothing"}))
    for gold in ({}, 3, None, {"other": 1}, {"schema": {"type": 3}}, {"schema": 3}, {"schema": {"$ref": "http://localhost:1/x"}}):
        with pytest.raises(DataError, match=r"gold|schema|Schema"):
            JsonSchema()(*task_and_rollout(gold, "{}"))
    with pytest.raises(UnknownNameError):
        JsonSchema(where="x")


def test_without_the_package(monkeypatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(schema_module, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"assay-rl\[verify\]"):
        JsonSchema()(*task_and_rollout({"schema": True}, "{}"))


@pytest.mark.parametrize("inside", [lambda v: v, lambda v: Together((v, FormatIs("x"))), lambda v: Formatted(v)])
def test_without_its_package_there_is_one_error_before_the_first_answer(monkeypatch, inside) -> None:
    ScoringPool(inside(JsonSchema())).close()
    monkeypatch.setattr(schema_module, "find_spec", lambda name: None if name == "referencing" else name)
    with pytest.raises(MissingExtraError, match=r"pip install 'assay-rl\[verify\]'"):
        ScoringPool(inside(JsonSchema()))


@pytest.mark.slow
def test_a_hanging_pattern_is_killed() -> None:
    """Why the verifier is not trusted: a pattern of the schema takes exponential time on a text made for it."""
    gold = {"schema": {"type": "string", "pattern": "^(a+)+$"}}
    items = [
        task_and_rollout(gold, json.dumps("a" * 40 + "b"), id="hangs"),
        *(task_and_rollout(gold, '"aaa"', id=f"ok{i}") for i in range(3)),
    ]
    with ScoringPool(JsonSchema(), deadline=0.4) as pool:
        scores = pool.score(items)
    assert scores["hangs"].fault is Fault.POLICY
    assert [scores[f"ok{i}"].primary for i in range(3)] == [1.0] * 3

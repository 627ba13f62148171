"""JSON in an answer, held to a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar, cast

from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score
from assay.verify.text.formats import FORMATS, formats_in, has_format
from assay.verify.text.jsonvalue import Exact, NoJson, json_in, same_json

__all__ = ["JsonSchema"]


@dataclass(frozen=True, slots=True)
class JsonSchema(AnswerVerifier):
    """``correct`` is 1 when the JSON value of the answer satisfies a JSON Schema and, if the gold has a value, equals it.

    The gold is ``{"schema": {...}}``, ``{"value": ...}`` or both; where it names no schema, the setting counts. ``valid`` is 1
    when the schema holds. The value is read as `assay.verify.text.jsonvalue.json_in` says. No reference to another
    document is ever fetched. Numbers are compared as the decimals that they are written as, so 92.6 is a multiple of 0.1.

    The work is done by the package ``jsonschema`` (``pip install 'assay-rl[verify]'``). It is not ``trusted``: a ``pattern`` in a
    schema may take exponential time on a text made for it, so it runs in a process that can be killed.

    Attributes:
        schema: for tasks whose gold names none.
        format: texts must have the ``format`` that the schema asks for (`assay.verify.text.formats.FORMATS`); otherwise it
            is a remark, as the specification has it.
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        ConfigError: the schema is none.
        UnknownNameError: ``where`` is no place.
        MissingExtraError: jsonschema is not installed.
        DataError: the gold has neither a schema nor a value, or one that is no schema, refers to another document, or, with
            ``format``, asks for one that is not known here.

    >>> JsonSchema().names
    ('correct', 'valid')
    """

    trusted: ClassVar[bool] = False
    schema: FrozenMap | None = None
    where: AnswerPlace = AnswerPlace.WHOLE
    format: bool = False

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, "JsonSchema.where")
        if self.schema is not None:
            try:
                _validator(plain(self.schema), self.format)
            except DataError as error:
                raise ConfigError(f"JsonSchema.schema: {error}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "valid")

    @property
    def needs_gold(self) -> bool:
        """Whether each task brings its own schema."""
        return self.schema is None

    def ready(self) -> None:
        """Raise if the package is absent, before any answer is judged."""
        if any(find_spec(name) is None for name in ("jsonschema", "jsonschema_specifications", "referencing")):
            raise MissingExtraError("jsonschema", "verify")

    def rule(self, gold: Any, text: str) -> Score:
        """Read, validate, compare."""
        own = None if self.schema is None else plain(self.schema)
        table = cast("dict[str, Any]", gold if isinstance(gold, dict) else {})
        schema: Any = table.get("schema", own)
        wrong = gold is not None and not isinstance(gold, dict)
        if wrong or not table.keys() <= {"schema", "value"} or (schema is None and "value" not in table):
            raise DataError(f"the gold {gold!r} needs 'schema' or 'value' or both, and nothing else")
        validator = _validator(True if schema is None else schema, self.format)
        try:
            said = json_in(answer_in(text, self.where) or "", exact=True)
        except NoJson as error:
            return self.nothing("unparsed", why=str(error))
        broken = _schema_break(validator, said)
        if broken:
            return self.nothing("invalid", why=broken)
        right = "value" not in table or same_json(table["value"], _change_numbers(said, Exact, float))
        verdict = ("equal" if right else "different") if "value" in table else "valid"
        return verdict_score(verdict, {"correct": float(right), "valid": 1.0})


def _validator(schema: Any, formats: bool) -> Any:
    try:
        validators = import_module("jsonschema.validators")
        registry = import_module("jsonschema_specifications").REGISTRY
    except ImportError as error:
        raise MissingExtraError("jsonschema", "verify") from error
    try:
        kind: Any = validators.validator_for(schema, default=validators.Draft202012Validator)
        kind.check_schema(schema)
    except Exception as error:  # its SchemaError, and what malformed schemas make it raise
        raise DataError(f"{schema!r} is no JSON Schema: {getattr(error, 'message', error)}") from None
    unknown = sorted(set(formats_in(schema)) - FORMATS.keys()) if formats else []
    if unknown:
        raise DataError(
            f"the schema asks for the format {unknown[0]!r}, which is not checked here; known: {', '.join(sorted(FORMATS))}"
        )
    exact = _change_numbers(schema, float, lambda number: Exact(repr(number)))
    if isinstance(exact, dict):
        exact = {
            key: value for key, value in cast("dict[str, Any]", exact).items() if key != "$schema"
        }  # would choose the kind anew
    return _exact_kind(kind)(exact, registry=registry, format_checker=_checker() if formats else None)


@lru_cache(maxsize=16)
def _exact_kind(kind: Any) -> Any:
    """A class of validators that takes decimals for what they are."""
    validators = import_module("jsonschema.validators")
    checker = kind.TYPE_CHECKER
    whole = checker.is_type(1.0, "integer")  # not so in the oldest drafts

    def is_integer(_: Any, value: Any) -> bool:
        return checker.is_type(value, "integer") or (whole and isinstance(value, Exact) and value == value.to_integral_value())

    name = "multipleOf" if "multipleOf" in kind.VALIDATORS else "divisibleBy"
    return validators.extend(kind, {name: _multiple}, type_checker=checker.redefine("integer", is_integer))


def _multiple(validator: Any, unit: Any, value: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(value, "number") and Fraction(value) % Fraction(unit):
        yield import_module("jsonschema.exceptions").ValidationError(f"{value!r} is not a multiple of {unit!r}")


@lru_cache(maxsize=1)
def _checker() -> Any:
    found = import_module("jsonschema").FormatChecker(formats=())
    for name in FORMATS:
        found.checks(name)(partial(_formatted, name))
    return found


def _formatted(name: str, value: object) -> bool:
    return not isinstance(value, str) or has_format(value, name)


def _change_numbers(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """A JSON value in which every number of a kind is changed."""
    if isinstance(value, dict):
        return {key: _change_numbers(part, kind, change) for key, part in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_change_numbers(part, kind, change) for part in cast("list[Any]", value)]
    return change(value) if isinstance(value, kind) else value


def _schema_break(validator: Any, value: Any) -> str:
    """The first thing in which a value breaks a schema; empty where it holds."""
    unresolvable = import_module("referencing.exceptions").Unresolvable
    try:
        found = next(iter(validator.iter_errors(value)), None)
    except unresolvable as error:
        raise DataError(f"the schema refers to what is not in it ({error}); write it under $defs") from None
    return "" if found is None else str(found.message)[:200]

"""Reading the fields of a request's body: lenient where a field changes nothing, plain where it cannot be answered."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from assay.agents.errors import AgentRequestError
from assay.core.errors import DataError
from assay.core.tools import canonical

__all__ = ["count", "flag", "ignored_fields", "items", "names_tools", "refuse_unless", "stops", "table", "text_in", "tools_in"]

_TEXTS = ("text", "input_text", "output_text", "refusal")
_MEDIA = ("image", "audio", "video", "file", "document", "inlineData", "inline_data", "fileData", "file_data")


def table(value: Any) -> dict[str, Any]:
    """An object as it is, anything else as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [table(entry) for entry in cast("list[Any]", value) if isinstance(entry, dict)] if isinstance(value, list) else []


def count(body: Mapping[str, Any], *names: str) -> int | None:
    """The first of some fields that is a whole number from 1 up; None without one."""
    for name in names:
        value = body.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
    return None


def flag(body: Mapping[str, Any], name: str) -> bool:
    """Whether a field is true."""
    return body.get(name) is True


def stops(value: Any) -> tuple[str, ...]:
    """Texts that end an answer: one, a list, or none."""
    given = cast("list[Any]", value) if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for text in given if isinstance(text, str) and text))


def text_in(content: Any, where: str) -> str:
    """Text, or the text parts of a list joined.

    Raises:
        AgentRequestError: it shows a picture, or what else is no text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    return "".join(_part(part, where) for part in cast("list[Any]", content))


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    told = table(part)
    kind = str(told.get("type", ""))
    if any(kind.removeprefix("input_").startswith(m) for m in _MEDIA) or any(m in told for m in _MEDIA):
        raise AgentRequestError(
            f"{where}: this policy reads text alone, and was sent {kind or 'a file'}", code="unsupported_media"
        )
    text = told.get("text", told.get("refusal"))
    return text if isinstance(text, str) and (not kind or kind in _TEXTS) else ""


def tools_in(schemas: list[dict[str, Any]]) -> str:
    """Schemas of functions in one way of writing; empty for none.

    Raises:
        AgentRequestError: one has no name.
    """
    if not schemas:
        return ""
    try:
        return canonical(json.dumps(schemas, ensure_ascii=False))
    except DataError as error:
        raise AgentRequestError(str(error), code="invalid_tools") from None


def names_tools(tools: str) -> frozenset[str]:
    """Names of declared tools."""
    return frozenset(entry["function"]["name"] for entry in json.loads(tools)) if tools else frozenset()


def ignored_fields(body: Mapping[str, Any], known: Collection[str]) -> tuple[str, ...]:
    """Fields that are not read, by name."""
    return tuple(sorted(set(body) - set(known)))


def refuse_unless(fine: bool, message: str, code: str) -> None:
    """Raises AgentRequestError unless a request can be answered."""
    if not fine:
        raise AgentRequestError(message, code=code)


def halves(text: str) -> Iterator[str]:
    """A text in two pieces, so that clients must join them; nothing of an empty one."""
    cut = (len(text) + 1) // 2
    yield from (piece for piece in (text[:cut], text[cut:]) if piece)

"""What the ``format`` of a JSON Schema asks of a text, by the grammar that the schema's specification names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, cast

__all__ = ["FORMATS", "formats_in", "has_format"]

_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})"
_DATE_TIME = re.compile(rf"({_DATE})[tT]({_TIME})", re.ASCII)
_DURATION = re.compile(
    r"P(?!\Z)(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)?"
    r"(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?)"
)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf'{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\x00-\x1f\x7f-\U0010ffff]|\\[ -~])*"')
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ESCAPED = r"%[0-9A-Fa-f]{2}"
_CHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_ESCAPED})"
_NAME = rf"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{_ESCAPED})"
_AUTHORITY = rf"(?:(?:{_NAME}|:)*@)?(\[[0-9A-Fa-f:.]+\]|{_NAME}*)(?::[0-9]*)?"
_TAIL = rf"(?:\?(?:{_CHAR}|[/?])*)?(?:#(?:{_CHAR}|[/?])*)?"
_URI = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*:(?://{_AUTHORITY}(?:/{_CHAR}*)*|/?(?:{_CHAR}+(?:/{_CHAR}*)*)?){_TAIL}")
_RELATIVE = re.compile(rf"(?://{_AUTHORITY}(?:/{_CHAR}*)*|/(?:{_CHAR}+(?:/{_CHAR}*)*)?|(?:(?!:){_CHAR})+(?:/{_CHAR}*)*|){_TAIL}")
_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")
_LITERAL = frozenset({"const", "enum", "default", "examples"})


def has_format(text: str, name: str) -> bool:
    """Whether a text has a format of `FORMATS`.

    >>> has_format("2024-02-30", "date"), has_format("2024-02-29T10:00:00Z", "date-time"), has_format("a@b", "email")
    (False, True, True)
    """
    return FORMATS[name](text)


def formats_in(schema: Any) -> Iterator[str]:
    """The names that a schema asks for under ``format``, wherever they stand.

    >>> sorted(formats_in({"items": {"format": "date"}, "properties": {"format": {"format": "x"}}, "const": {"format": "y"}}))
    ['date', 'x']
    """
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            table = cast("dict[str, Any]", part)
            if isinstance(table.get("format"), str):
                yield table["format"]
            todo += [value for key, value in table.items() if key not in _LITERAL]
        elif isinstance(part, list):
            todo += cast("list[Any]", part)


def _date(text: str) -> bool:
    found = re.fullmatch(_DATE, text, re.ASCII)
    if found is None:
        return False
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return False
    return True


def _time(text: str) -> bool:
    """RFC 3339's ``full-time``; a leap second only where it is one in UTC."""
    found = re.fullmatch(_TIME, text, re.ASCII)
    if found is None:
        return False
    hour, minute, second = (int(part) for part in found.groups()[:3])
    sign, shift = (1, "00:00") if found[4] in "zZ" else (-1 if found[4][0] == "+" else 1, found[4][1:])
    hours, minutes = map(int, shift.split(":"))
    if hour > 23 or minute > 59 or second > 60 or hours > 23 or minutes > 59:
        return False
    return second < 60 or (hour * 60 + minute + sign * (hours * 60 + minutes)) % 1440 == 1439


def _date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    return found is not None and _date(found[1]) and _time(found[5])


def _address(kind: type[IPv4Address] | type[IPv6Address]) -> Callable[[str], bool]:
    def parse(text: str) -> bool:
        try:
            kind(text)
        except AddressValueError:
            return False
        return text.isascii() and "%" not in text

    return parse


def _email(text: str) -> bool:
    local, at, host = text.rpartition("@")
    literal = host.startswith("[") and host.endswith("]")
    if not at or len(local) > 64 or _LOCAL.fullmatch(local) is None:
        return False
    if not literal:
        return _HOST.fullmatch(host) is not None
    inside = host[1:-1]
    return has_format(inside.removeprefix("IPv6:"), "ipv6") if inside.startswith("IPv6:") else has_format(inside, "ipv4")


def _uri(text: str) -> bool:
    found = _URI.fullmatch(text)
    host = found[1] if found else None
    return found is not None and (not (host or "").startswith("[") or has_format(str(host)[1:-1], "ipv6"))


def _regex(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _whole(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": _whole(_DURATION),
    "email": _email,
    "hostname": _whole(_HOST),
    "ipv4": _address(IPv4Address),
    "ipv6": _address(IPv6Address),
    "uri": _uri,
    "uri-reference": lambda text: _uri(text) or _RELATIVE.fullmatch(text) is not None,
    "uuid": _whole(_UUID),
    "json-pointer": _whole(_POINTER),
    "regex": _regex,
}
"""Each format that can be asked for, and its check. Dates and times are those of RFC 3339, addresses of mail those of RFC 5321
with a host of letters, digits and hyphens, URIs those of RFC 3986; ``regex`` is what Python reads."""

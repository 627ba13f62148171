"""A line of a file of rows, or a whole file, read as the one JSON object that it must be."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn, cast

from assay.core.canon import refuse_repeated_keys
from assay.core.errors import DataError, a_kind

__all__ = ["object_of", "parsed_json"]

_MARK = "\ufeff"
"""Some editors begin a file with it."""


def object_of(line: str | bytes, *, finite: bool = False) -> dict[str, Any]:
    """The JSON object on a line.

    Args:
        line: text, or its bytes in UTF-8; a byte order mark and white space around are forgiven.
        finite: refuse ``NaN`` and ``Infinity``, which Python reads and JSON lacks, and numbers beyond 1e308, which it would
            read as infinite.

    Raises:
        DataError: it is none, or says one key twice; says where in the line, and what to write.

    >>> object_of(b'{"gold": 4, "answer": "4"}')
    {'gold': 4, 'answer': '4'}
    """
    try:
        text = line if isinstance(line, str) else line.decode()
        row: Any = (_FINITE if finite else _ANY).decode(text.strip().removeprefix(_MARK).strip())
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02x}; write it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error.msg}, at character {error.pos + 1}; write one JSON object per line") from None
    except RecursionError:
        raise DataError("not readable: lists or objects in one another too deep") from None
    except DataError:  # of the hooks below
        raise
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"not readable: {error}") from None
    if not isinstance(row, dict):
        raise DataError(f'{a_kind(row)}, not an object; give an object, {{"name": value, ...}}')
    return cast("dict[str, Any]", row)


def _no_constant(name: str) -> NoReturn:
    raise DataError(f"{name} is not JSON; write a number or null")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise DataError(
            f"the number {text[:40]} is beyond 1e308, so it would be read as infinite; write it as text, or another one"
        )
    return number


_ANY = json.JSONDecoder(object_pairs_hook=refuse_repeated_keys)
_FINITE = json.JSONDecoder(object_pairs_hook=refuse_repeated_keys, parse_constant=_no_constant, parse_float=_finite)


def parsed_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        DataError: it holds none, or is damaged.
    """
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is no JSON ({error}); copy it again from its source") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} holds {a_kind(found)}, not an object; copy it again from its source")
    return cast("dict[str, Any]", found)

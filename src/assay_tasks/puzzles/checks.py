"""What can be known to be wrong with a puzzle's file before anything is drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from string import Formatter
from typing import TYPE_CHECKING, Any, cast

from assay.core.canon import plain
from assay.core.errors import ConfigError, nearest
from assay_tasks.puzzles.terms import names_of, read

if TYPE_CHECKING:
    from assay_tasks.puzzles.spec import Spec

__all__ = ["Checks"]

_RESERVED = ("problem", "clues")
_FIELD = re.compile(r"[A-Za-z_]\w*(?:\[[0-9]{1,3}\])?")


class Checks:
    """What can be known to be wrong with a spec before anything is drawn."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.parameters = set(spec.parameters)
        self.variables = set(spec.variables)

    def all(self) -> None:
        spec = self.spec
        if not spec.texts:
            raise ConfigError(f"{spec.name}: key 'texts' is missing or empty; give one or more wordings as a list")
        if not spec.variables:
            raise ConfigError(f"{spec.name}: key 'variables' is missing or empty; give each unknown its range, as in x = [0, 9]")
        self._names()
        self._draws()
        for i, text in enumerate(spec.constraints):
            self._expression(f"constraints[{i}]", text, self.parameters | self.variables)
        for i, clue in enumerate(spec.clues):
            self._clue(f"clues[{i}]", clue)
        for key in ("maximize", "minimize"):
            if getattr(spec, key):
                self._expression(key, getattr(spec, key), self.parameters | self.variables)
        if spec.maximize and spec.minimize:
            raise ConfigError(f"{spec.name}: there are both 'maximize' and 'minimize'; keep one")
        self._answer()
        fields = self.parameters | set(["clues"] if spec.clues else [])
        for i, text in enumerate(spec.texts):
            self._text(f"texts[{i}]", text, fields)
            if spec.clues and "{clues}" not in text:
                raise ConfigError(f"{spec.name}: texts[{i}] does not show the clues; write {{clues}} where they shall stand")
        for name in spec.easier:
            self._check_known("easier_when_larger", name, self.parameters)

    def _names(self) -> None:
        spec = self.spec
        every = (*spec.secret, *spec.parameters, *spec.variables)
        for name, times in Counter(every).items():
            if times > 1:
                raise ConfigError(
                    f"{spec.name}: the name {name!r} is used {times} times; secret names, parameters and variables differ"
                )
            if not name.isidentifier() or name in _RESERVED:
                raise ConfigError(
                    f"{spec.name}: {name!r} cannot be a name; use letters, digits and _, but not {', '.join(_RESERVED)}"
                )

    def _draws(self) -> None:
        spec, known = self.spec, set[str]()
        for table in ("secret", "parameters"):
            for name, how in getattr(spec, table).items():
                self._draw(f"{table}.{name}", how, known)
                known.add(name)
        for level, table in spec.by_level.items():
            for name, how in table.items():
                self._check_known(f"levels.{level}", name, known)
                self._draw(f"levels.{level}.{name}", how, known)
        for name, how in spec.variables.items():
            if isinstance(how, Mapping):
                table = cast("Mapping[str, Any]", how)
                if set(table) != {"each", "range"}:
                    raise ConfigError(f"{spec.name}: variables.{name} needs 'each' and 'range', it has {sorted(table)}")
                self._check_known(f"variables.{name}.each", table["each"], self.parameters)
                how = table["range"]
            self._range(f"variables.{name}", how, self.parameters)

    def _draw(self, key: str, how: Any, known: set[str]) -> None:
        if isinstance(how, str):
            self._expression(key, how, known)
        elif isinstance(how, Mapping):
            table = cast("Mapping[str, Any]", how)
            if not set(table) <= {"choose", "count"} or not isinstance(table.get("choose"), tuple) or not table["choose"]:
                raise ConfigError(
                    f"{self.spec.name}: {key} = {plain(how)}; write {{ choose = [...] }}, with count = n for several"
                )
            count = table.get("count", 1)
            if isinstance(count, int) and not 0 < count <= len(table["choose"]):
                raise ConfigError(f"{self.spec.name}: {key} chooses {count} of {len(table['choose'])}; add words or choose fewer")
        else:
            self._range(key, how, known)

    def _range(self, key: str, how: Any, known: set[str]) -> None:
        if not isinstance(how, tuple) or len(cast("tuple[Any, ...]", how)) != 2:
            raise ConfigError(f"{self.spec.name}: {key} = {plain(how)!r}; write [low, high], numbers or expressions")
        for bound in cast("tuple[Any, ...]", how):
            if isinstance(bound, str):
                self._expression(key, bound, known)
            elif not isinstance(bound, int) or isinstance(bound, bool):
                raise ConfigError(f"{self.spec.name}: {key} has the bound {bound!r}; use whole numbers or expressions")
        low, high = cast("tuple[Any, Any]", how)
        if isinstance(low, int) and isinstance(high, int) and low > high:
            raise ConfigError(f"{self.spec.name}: {key} = [{low}, {high}] is empty; write the lower bound first")

    def _clue(self, key: str, clue: Mapping[str, Any]) -> None:
        missing = [k for k in ("for", "holds", "text") if k not in clue]
        if missing or not set(clue) <= {"for", "holds", "text", "value"} or not isinstance(clue["for"], Mapping):
            raise ConfigError(
                f"{self.spec.name}: {key} has {sorted(clue)}; it needs for (a table), holds and text, and may have value"
            )
        indices = cast("Mapping[str, str]", clue["for"])
        for source in indices.values():
            self._check_known(f"{key}.for", source, self.parameters)
        known = self.parameters | self.variables | set(indices)
        if "value" in clue:
            self._expression(f"{key}.value", clue["value"], known)
            known = known | {"value"}
        self._expression(f"{key}.holds", clue["holds"], known)
        self._text(f"{key}.text", clue["text"], self.parameters | set(indices) | set(["value"] if "value" in clue else []))

    def _answer(self) -> None:
        spec, kinds = self.spec, frozenset(self.spec.answer)
        known = self.parameters | self.variables
        forms = ({"value"}, {"values"}, {"names", "values"}, {"order", "by"}, {"word", "at"})
        if kinds not in map(frozenset, forms):
            raise ConfigError(
                f"{spec.name}: key 'answer' has {sorted(kinds)}; give value, values, names + values, order + by, or word + at"
            )
        for key, value in spec.answer.items():
            if key in ("names", "order", "word"):
                self._check_known(f"answer.{key}", value, self.parameters)
            elif key == "by" or (key == "values" and "names" in kinds):
                self._check_known(f"answer.{key}", value, self.variables)
            else:
                for text in cast("tuple[Any, ...]", value if isinstance(value, tuple) else (value,)):
                    self._expression(f"answer.{key}", text, known)

    def _expression(self, key: str, text: Any, known: set[str]) -> None:
        if not isinstance(text, str):
            raise ConfigError(f"{self.spec.name}: {key} = {plain(text)!r} is no expression; write it as text, in quotation marks")
        try:
            found = names_of(read(text))
        except ConfigError as error:
            raise ConfigError(f"{self.spec.name}: {key}: {error}") from None
        for name in sorted(found):
            self._check_known(key, name, known)

    def _text(self, key: str, text: Any, known: set[str]) -> None:
        try:
            fields = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{self.spec.name}: {key} is no text with {{names}}: {error}; write {{{{ for a brace") from None
        for name in fields:
            if not _FIELD.fullmatch(name):
                raise ConfigError(
                    f"{self.spec.name}: {key} has the field {{{name}}}; only {{name}} and {{name[0]}} are filled in"
                )
            self._check_known(key, name.partition("[")[0], known)

    def _check_known(self, key: str, name: Any, known: set[str]) -> None:
        if name not in known:
            close = nearest(str(name), known)
            secret = name in self.spec.secret
            hint = (
                "it is secret; make a parameter of it"
                if secret
                else f"did you mean {close!r}?"
                if close
                else "it is declared nowhere"
            )
            raise ConfigError(
                f"{self.spec.name}: {key} uses the name {name!r}; {hint} (known here: {', '.join(sorted(known)) or 'none'})"
            )

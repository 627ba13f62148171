"""Configuration with settings."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_CONFIG = '''\
"""Settings in text."""


def parse_value(text):
    """A value: true and false (in any case), whole numbers, text in double quotes without them, all else as text."""
    text = text.strip()
    if text.lower() == "true":
        return True
    if text.lower() == "false":
        return False
    if len(text) >= 2 and text[0] == '"' and text[-1] == '"':
        return text[1:-1]
    digits = text[1:] if text.startswith("-") else text
    if digits.isdigit():
        return int(text)
    return text


def parse_config(text):
    """Sections with their settings, as a dict of dicts.

    A line [name] begins a section, name = value is a setting; settings before the first section belong to "main". Empty lines
    and lines that begin with # are skipped, the later of two equal names counts. ValueError for any other line.
    """
    sections = {}
    section = "main"
    for line in text.split("\\n"):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            sections.setdefault(section, {})
        elif "=" in line:
            name, value = line.split("=", 1)
            sections.setdefault(section, {})[name.strip()] = parse_value(value)
        else:
            raise ValueError("cannot read " + line)
    return sections
'''

_SETTINGS = '''\
"""What to do with settings that were read."""

from .config import parse_config, parse_value


def merge_settings(base, extra):
    """New settings with those of both; where both have a name, extra counts, but two dicts are merged in turn.

    Neither of the two is changed.
    """
    merged = dict(base)
    for name, value in extra.items():
        if isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = merge_settings(merged[name], value)
        else:
            merged[name] = value
    return merged


def find_setting(settings, path, default=None):
    """The value at a path of names with dots between them; the default where it leads nowhere."""
    for name in path.split("."):
        if not isinstance(settings, dict) or name not in settings:
            return default
        settings = settings[name]
    return settings


def read_layers(texts):
    """The settings of several texts, where later ones count more."""
    settings = {}
    for text in texts:
        settings = merge_settings(settings, parse_config(text))
    return settings


def override(settings, changes):
    """Settings after changes such as "section.name=value", whose values are read like those in a text.

    What stands before the first dot is the section. ValueError for a change without a dot before its sign, or without a sign.
    """
    for change in changes:
        if "=" not in change:
            raise ValueError("no change: " + change)
        path, value = change.split("=", 1)
        section, name = path.strip().split(".", 1)
        settings = merge_settings(settings, {section: {name: parse_value(value)}})
    return settings
'''

_VALUES = ("true", "False", "TRUE", "17", "-4", '"12"', '"a b"', "fast", "a=b", '"', "3 4", "-", '""', "007")
_NAMES = ["host", "port", "debug", "level", "mode", "path", "size"]
_SECTIONS = ["server", "client", "log", "cache"]


def _config(rng: Random) -> str:
    lines = [f"{rng.choice(_NAMES)} = {rng.choice(_VALUES)}"] if rng.random() < 0.5 else []
    for section in rng.sample(_SECTIONS, rng.randint(1, 2)):
        lines.append(rng.choice((f"[{section}]", f"[ {section} ]", f"  [{section}]")))
        lines += [f"{rng.choice(_NAMES)}{rng.choice((' = ', '='))}{rng.choice(_VALUES)}" for _ in range(rng.randint(0, 2))]
        lines += rng.choice(([], [""], ["# note = 1"], ["  # x"]))
    return "\n".join(lines)


def _draw_value(rng: Random) -> Example:
    more = (f" {rng.randint(1, 99)} ", str(-rng.randint(1, 99)), "-" + rng.choice(_NAMES))
    return [], f"parse_value({rng.choice((*_VALUES, *more))!r})"


def _draw_parse(rng: Random) -> Example:
    return [], f"parse_config({_config(rng)!r})"


def _config_refused(rng: Random) -> Example:
    lines = (rng.choice(_NAMES), f"[{rng.choice(_SECTIONS)}", f"{rng.choice(_NAMES)}: 3")
    return [], f"parse_config({rng.choice(lines)!r})"


def _nest(rng: Random) -> dict[str, object]:
    found: dict[str, object] = {}
    for section in rng.sample(_SECTIONS, 2):
        inner = {name: rng.randint(1, 9) for name in rng.sample(_NAMES[:4], 2)}
        found[section] = inner if rng.random() < 0.8 else rng.randint(1, 9)
    return found


def _draw_merge(rng: Random) -> Example:
    lines = [f"base = {_nest(rng)}", f"extra = {_nest(rng)}", "both = merge_settings(base, extra)"]
    return lines, rng.choice(("both", "both", "base", "extra"))


def _looked_up(rng: Random) -> Example:
    section = rng.choice(_SECTIONS)
    lines = [f"settings = {{{section!r}: {{'host': {{'name': {rng.randint(1, 9)}}}, 'port': {rng.randint(1, 99)}}}}}"]
    path = rng.choice((f"{section}.port", f"{section}.host.name", section, f"{section}.port.x", "nothing", f"{section}.mode"))
    return lines, f"find_setting(settings, {path!r}{rng.choice(('', ', 5'))})"


def _layers(rng: Random) -> Example:
    return [], f"read_layers({[_config(rng), _config(rng)]!r})"


def _overridden(rng: Random) -> Example:
    pairs = [(f"{rng.choice(_SECTIONS)}.{rng.choice(_NAMES)}", rng.choice(_VALUES)) for _ in range(2)]
    changes = [f"{path}{rng.choice(('=', ' = '))}{value}" for path, value in pairs]
    changes += rng.choice(([], [], ["port"], ["log.path.to=3"]))
    return [f"settings = {_nest(rng)}"], f"override(settings, {changes})"


KIND = Kind(
    "config",
    {"config": _CONFIG, "settings": _SETTINGS},
    {
        "config": ("config", "ini", "reader"),
        "settings": ("settings", "options", "prefs"),
        "parse_value": ("parse_value", "read_value", "to_value"),
        "parse_config": ("parse_config", "read_config", "load_text"),
        "merge_settings": ("merge_settings", "combine", "overlay"),
        "find_setting": ("find_setting", "lookup", "get_at"),
        "read_layers": ("read_layers", "load_layers", "stack_texts"),
        "override": ("override", "with_changes", "amend"),
    },
    (_draw_value, _draw_parse, _config_refused, _draw_merge, _looked_up, _layers, _overridden),
    (
        Plant("shared state", "settings", "merged = dict(base)", "merged = base"),
        Plant("missing step", "settings", "merge_settings(merged[name], value)", "dict(merged[name])"),
        Plant("wrong function", "settings", 'change.split("=", 1)', 'change.rsplit("=", 1)'),
        Plant("wrong function", "config", 'line.split("=", 1)', 'line.rsplit("=", 1)'),
        Plant("missing step", "settings", "{name: parse_value(value)}", "{name: value}"),
    ),
)
"""Configuration with settings."""

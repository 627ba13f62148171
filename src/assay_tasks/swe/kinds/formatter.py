"""Lines of text with tables."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_WORDS = [
    "a",
    "to",
    "the",
    "red",
    "ship",
    "stone",
    "river",
    "garden",
    "morning",
    "lantern",
    "mountain",
    "of",
    "and",
    "cold",
    "winter",
]
_MARKS = ("", "", ", '~'", ", '..'")
_STYLES = ("", "", ", '  '", ", most=8")
_BULLETS = ("", "", ", '- '")

_WRAP = '''\
"""Text in lines and columns."""


def wrap_text(text, width):
    """Lines of at most width characters with as many words as fit, parted by one blank. A longer word has a line of its own."""
    lines = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        elif line:
            line = line + " " + word
        else:
            line = word
    if line:
        lines.append(line)
    return lines


def pad_cell(text, width, align="left"):
    """Text filled up with blanks: behind it (left), before it (right), or on both sides (center), one more behind if odd.

    Text that is too long stays as it is. ValueError for another alignment.
    """
    spare = max(0, width - len(text))
    if align == "left":
        return text + " " * spare
    if align == "right":
        return " " * spare + text
    if align == "center":
        before = spare // 2
        return " " * before + text + " " * (spare - before)
    raise ValueError("unknown alignment " + align)


def shorten(text, width, mark="..."):
    """Text of at most width characters: where it is longer it is cut, and ends with the mark."""
    if len(text) <= width:
        return text
    return text[: width - len(mark)] + mark
'''

_TABLE = '''\
"""Tables of text."""

from .wrap import pad_cell, shorten


def column_widths(rows):
    """The longest cell's length of each column; rows may have different lengths."""
    widths = []
    for row in rows:
        for column, cell in enumerate(row):
            if column == len(widths):
                widths.append(0)
            widths[column] = max(widths[column], len(str(cell)))
    return widths


def format_table(rows, sep=" | ", most=20):
    """Lines with the cells of rows in columns. Numbers stand right, all else left; cells are cut to most characters.

    The first row is the head; below it stands a line of dashes as long as the head's line. No rows give no lines.
    """
    if not rows:
        return []
    shown = [[shorten(str(cell), most) for cell in row] for row in rows]
    widths = column_widths(shown)
    lines = []
    for number, row in enumerate(rows):
        cells = []
        for column, cell in enumerate(row):
            align = "right" if isinstance(cell, (int, float)) else "left"
            cells.append(pad_cell(shown[number][column], widths[column], align))
        lines.append(sep.join(cells))
        if number == 0:
            lines.append("-" * len(lines[0]))
    return lines


def bullet_list(items, mark="* ", start=0):
    """One line for each item; an item that is a list is indented by two blanks for each depth."""
    lines = []
    for item in items:
        if isinstance(item, list):
            lines.extend(bullet_list(item, mark, start + 1))
        else:
            lines.append("  " * start + mark + str(item))
    return lines
'''


def _text(rng: Random, least: int = 4) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(least, least + 6)))


def _draw_wrap(rng: Random) -> Example:
    return [], f"wrap_text({_text(rng)!r}, {rng.randint(5, 16)})"


def _wrapped_edge(rng: Random) -> Example:
    words = [rng.choice(_WORDS) for _ in range(rng.randint(3, 6))]
    width = len(" ".join(words[: rng.randint(1, 3)])) + rng.choice((0, 0, 1, -1))
    return [], f"wrap_text({rng.choice((' ', '  ')).join(words)!r}, {max(1, width)})"


def _draw_padding(rng: Random) -> Example:
    align = rng.choice(("", ", 'left'", ", 'right'", ", 'center'", ", 'center'", ", 'top'"))
    return [], f"pad_cell({rng.choice(_WORDS)!r}, {rng.randint(3, 11)}{align})"


def _draw_shortening(rng: Random) -> Example:
    text = _text(rng, 2)
    width = rng.choice((len(text), len(text) - 1, rng.randint(5, 12)))
    return [], f"shorten({text!r}, {width}{rng.choice(_MARKS)})"


def _columns(rng: Random) -> Example:
    rows = [[rng.choice((rng.choice(_WORDS), rng.randint(1, 5000))) for _ in range(rng.randint(1, 3))] for _ in range(3)]
    return [], f"column_widths({rows})"


def _draw_table(rng: Random) -> Example:
    rows: list[list[str | int]] = [["name", "count"]]
    for _ in range(rng.randint(1, 3)):
        rows.append([rng.choice(_WORDS) if rng.random() < 0.8 else _text(rng, 6), rng.randint(1, 3000)])
    return [f"rows = {rows}"], f"format_table(rows{rng.choice(_STYLES)})"


def _bullets(rng: Random) -> Example:
    a, b, c, d = (rng.choice(_WORDS) for _ in range(4))
    items = [a, [b, [rng.randint(1, 9)] * rng.randint(0, 1), c], d]
    return [], f"bullet_list({items[: rng.randint(1, 3)]}{rng.choice(_BULLETS)})"


KIND = Kind(
    "formatter",
    {"wrap": _WRAP, "table": _TABLE},
    {
        "wrap": ("wrap", "texts", "layout"),
        "table": ("table", "sheet", "report"),
        "wrap_text": ("wrap_text", "fill_lines", "break_lines"),
        "pad_cell": ("pad_cell", "align_text", "fill_up"),
        "shorten": ("shorten", "clip_text", "truncate"),
        "column_widths": ("column_widths", "widths_of", "measure_columns"),
        "format_table": ("format_table", "table_lines", "draw_table"),
        "bullet_list": ("bullet_list", "outline", "list_lines"),
    },
    (_draw_wrap, _wrapped_edge, _draw_padding, _draw_shortening, _columns, _draw_table, _bullets),
    (
        Plant("missing step", "wrap", "    if line:\n        lines.append(line)\n    return lines", "    return lines"),
        Plant("missing step", "wrap", "(line)\n            line = word\n", '(line)\n            line = ""\n'),
        Plant("wrong name", "table", "column_widths(shown)", "column_widths(rows)"),
        Plant("missing step", "table", "bullet_list(item, mark, start + 1)", "bullet_list(item, start=start + 1)"),
        Plant("missing case", "table", "isinstance(cell, (int, float))", "isinstance(cell, float)"),
    ),
)
"""Lines of text with tables."""

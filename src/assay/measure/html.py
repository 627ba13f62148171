"""Pieces of the report's page: escaping, figures, tables, and the style sheet. No scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, cast

__all__ = ["details", "e", "figure", "glossary", "page", "section", "table"]


def e(text: object) -> str:
    """Text made safe for HTML; characters that no document may hold are shown as �."""
    clean = "".join(c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) <= 0xDFFF) else "\ufffd" for c in str(text))
    return escape(clean, quote=True)


def section(title: str, *parts: str, lead: str = "") -> str:
    """A titled section; empty when it has no content."""
    body = "\n".join(p for p in parts if p)
    note = f'<p class="lead">{e(lead)}</p>' if lead else ""
    return f"<section><h2>{e(title)}</h2>{note}\n{body}</section>" if body else ""


def figure(title: str, svg: str, alt: str, caption: str = "", narrow: str = "") -> str:
    """A plot with its name, a description for readers who cannot see it, and a sentence on how to read it.

    With ``narrow``, the plot spans the page and gives way to that drawing of the same on a narrow screen.
    """
    note = f"<figcaption>{e(caption)}</figcaption>" if caption else ""
    kind = ' class="wide"' if narrow else ""
    drawn = f'<div class="roomy">{svg}</div><div class="narrow">{narrow}</div>' if narrow else svg
    return f'<figure{kind}><h3>{e(title)}</h3><div class="plot" role="img" aria-label="{e(alt)}">{drawn}</div>{note}</figure>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table whose first column names the rows; scrolls sideways where the page is narrow. The last row is the sum of all."""
    top = "".join(f'<th scope="col">{e(h)}</th>' for h in head)
    body = "".join(
        f'<tr><th scope="row">{e(first)}</th>' + "".join(f"<td>{e(c)}</td>" for c in rest) + "</tr>" for first, *rest in rows
    )
    note = f'<p class="caption">{e(caption)}</p>' if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{e(caption)}"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def details(title: str, values: Mapping[str, Any]) -> str:
    """A folded list of nested settings under dotted names; empty when there are none."""
    flat = list(_flat("", values)) if values else []
    rows = "".join(f"<div><dt>{e(k)}</dt><dd>{e(v)}</dd></div>" for k, v in flat)
    return f'<details><summary>{e(title)}</summary><dl class="settings">{rows}</dl></details>' if flat else ""


def glossary(words: Mapping[str, str]) -> str:
    """A folded list of words and what they mean; empty when there are none."""
    rows = "".join(f"<dt>{e(word)}</dt><dd>{e(meaning)}</dd>" for word, meaning in words.items())
    return f'<details><summary>What the words mean</summary><dl class="words">{rows}</dl></details>' if words else ""


def _flat(prefix: str, value: Any) -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for k, v in cast("Mapping[str, Any]", value).items():
            yield from _flat(f"{prefix}.{k}" if prefix else str(k), v)
    elif isinstance(value, list):
        entries = cast("list[Any]", value)
        if any(isinstance(v, Mapping) for v in entries):
            for i, v in enumerate(entries):
                yield from _flat(f"{prefix}[{i}]", v)
        else:
            yield prefix, ", ".join(map(str, entries))
    else:
        yield prefix, str(cast("object", value))


def page(title: str, body: str, style: str = "") -> str:
    """A whole document, with further rules of style."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{e(title)}</title>\n<style>{STYLE}{style}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


STYLE = """
:root { --paper: #fbfaf7; --card: #ffffff; --ink: #1f2a2e; --muted: #5d696d; --grid: #e4e2da; --line: #e4e2da;
  --series-1: #1c655d; --series-2: #c0662b; --series-3: #5b6fa8; --series-4: #97703c;
  --alarm: #b3372f; --warning: #b5791a; --note: #4a6fa5; --good: #1c655d; --shade: #f3f1ea; }
@media (prefers-color-scheme: dark) { :root { --paper: #15191b; --card: #1c2224; --ink: #e6e8e4; --muted: #9ba7a8;
  --grid: #2f383a;
  --line: #2f383a; --series-1: #5fb8a6; --series-2: #e5935a; --series-3: #93a6dd; --series-4: #cfae7a; --alarm: #ef7d72;
  --warning: #e0ad55; --note: #86abe0; --good: #5fb8a6; --shade: #232a2c; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55; font-size: 16px; font-family: ui-sans-serif,
  system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 48px 28px 80px; }
header { border-bottom: 1px solid var(--line); padding-bottom: 28px; margin-bottom: 8px; }
.eyebrow { color: var(--muted); font-size: 13px; letter-spacing: .06em; margin: 0 0 6px; overflow-wrap: anywhere; }
h1 { font-size: 30px; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 14px; font-weight: 650; overflow-wrap: anywhere; }
.verdict { font-size: 20px; line-height: 1.45; margin: 0; max-width: 46em; text-wrap: pretty; }
.unsafe { background: var(--alarm); color: var(--paper); font-weight: 650; border-radius: 6px; padding: 10px 16px;
  margin: 0 0 16px; }
h2 { font-size: 20px; letter-spacing: -.01em; margin: 52px 0 6px; font-weight: 650; }
h3 { font-size: 14px; font-weight: 600; margin: 0 0 8px; }
.lead { color: var(--muted); margin: 0 0 16px; max-width: 46em; }
.facts { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 24px 28px; margin: 28px 0 0; padding: 0; }
.facts div { border-left: 2px solid var(--line); padding-left: 14px; }
.facts dt { color: var(--muted); font-size: 13px; }
.facts dd { margin: 2px 0 0; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; line-height: 1.25; }
.facts small { display: block; font-weight: 400; font-size: 13px; color: var(--muted); margin-top: 2px; overflow-wrap: anywhere; }
.findings { list-style: none; margin: 14px 0 0; padding: 0; display: grid; gap: 12px; }
.findings li { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--kind);
  border-radius: 6px; padding: 12px 18px; }
.findings p { margin: 0; } .findings .action { color: var(--muted); margin-top: 4px; }
.findings b { color: var(--kind); font-size: 13px; font-weight: 650; margin-right: 8px; }
.alarm { --kind: var(--alarm); } .warning { --kind: var(--warning); } .note { --kind: var(--note); }
  .good { --kind: var(--good); }
.grid { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 20px; margin-top: 14px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px 14px;
  min-width: 0; }
figure.wide { grid-column: 1 / -1; }
figcaption { color: var(--muted); font-size: 13px; line-height: 1.45; margin-top: 8px; max-width: 60em; }
.plot svg { display: block; width: 100%; height: auto; overflow: visible; font-family: inherit; }
.plot text { font-family: inherit !important; }
.narrow { display: none; }
.scroll { overflow-x: auto; margin-top: 14px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 15px; }
.caption { color: var(--muted); font-size: 13px; margin: 8px 0 0; }
th, td { text-align: right; padding: 7px 12px; border-bottom: 1px solid var(--line); font-weight: 400; white-space: nowrap; }
th:first-child { text-align: left; padding-left: 2px; } thead th { color: var(--muted); font-size: 13px; vertical-align: bottom; }
tbody tr:last-child th, tbody tr:last-child td { font-weight: 650; border-bottom: 0; }
.when { font-size: 14px; color: var(--muted); margin: 22px 0 10px; font-weight: 600; }
.rollout { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; min-width: 0; }
.rollout header { all: unset; display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: baseline; font-size: 13px;
  color: var(--muted); }
.chip { border-radius: 4px; padding: 1px 7px; font-size: 12.5px; font-weight: 600; color: var(--kind); background: var(--shade); }
pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: 13px; line-height: 1.5;
  margin: 8px 0 0;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 17em; overflow-y: auto; }
pre.prompt { color: var(--muted); }
details { margin-top: 10px; border-bottom: 1px solid var(--line); padding-bottom: 10px; }
summary { cursor: pointer; font-weight: 600; }
.settings { margin: 10px 0 0; columns: 2; column-gap: 32px; font-size: 13.5px; }
.settings div { break-inside: avoid; display: flex; justify-content: space-between; gap: 14px; padding: 3px 0;
  border-bottom: 1px dotted var(--line); }
.settings dt { color: var(--muted); overflow-wrap: anywhere; } .settings dd { margin: 0; text-align: right;
  overflow-wrap: anywhere; }
dl.words { margin: 10px 0 0; font-size: 15px; max-width: 46em; } dl.words dt { font-weight: 600; margin-top: 8px; }
dl.words dd { margin: 0; color: var(--muted); }
.missing { color: var(--muted); margin: 8px 0; padding-left: 20px; }
@media (max-width: 720px) { main { padding: 28px 16px 56px; } h1 { font-size: 25px; } .verdict { font-size: 18px; }
  .grid { grid-template-columns: minmax(0, 1fr); gap: 14px; }
  .facts { grid-template-columns: 1fr 1fr; gap: 18px; } figure { padding: 14px 12px 12px; } h2 { margin-top: 40px; }
  .settings { columns: 1; }
  .roomy { display: none; } .narrow { display: block; } th, td { padding: 7px 9px; } table { font-size: 14px; } }
@media print { body { background: none; font-size: 12px; } main { max-width: none; padding: 0; }
  figure, .rollout, .findings li, tr { break-inside: avoid; }
  h2 { break-after: avoid; margin-top: 26px; } pre { max-height: none; } .scroll { overflow: visible; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""

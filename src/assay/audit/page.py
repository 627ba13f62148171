"""An audit as one HTML page: no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from html import escape

from assay.audit.record import Audit, AuditStatus, Check, printable

__all__ = ["audit_page"]

_WORD = {
    AuditStatus.PASS: "holds",
    AuditStatus.FAIL: "fails",
    AuditStatus.INFO: "for information",
    AuditStatus.SKIPPED: "not done",
    AuditStatus.UNTRIED: "not tried",
}


def audit_page(found: Audit) -> str:
    """The whole document.

    >>> from assay.verify import ExactMatch
    >>> from assay.audit import audit, case_of, AuditSettings
    >>> page = audit_page(audit(ExactMatch(), [case_of({"gold": "42"})], settings=AuditSettings(hostile_items=0)))
    >>> page.startswith("<!doctype html>"), "http" in page
    (True, False)
    """
    title = f"Audit of {found.name}"
    against = f", against {found.against}" if found.against else ""
    verdict = f"Over its threshold: {', '.join(found.failed)}."
    if found.passed:
        verdict = "No check is over its threshold." if found.verdict == "passed" else f"P{found.verdict[1:]}."
    left = f", {found.left_out} left out after too many had stopped their judge" if found.left_out else ""
    untried = f"<p>Untried: {_e(', '.join(found.untried))}.</p>" if found.untried else ""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    body = "\n".join(
        (
            f'<header><p class="eyebrow">assay verify audit{_e(against)}</p><h1>{_e(title)}</h1>'
            f'<p class="verdict {"pass" if found.passed else "fail"}">{_e(verdict)}</p>'
            f"<p>{found.items} items, {found.probes:,} answers{left}, seed {found.settings.seed}; answers are written as "
            f"<code>{_e(found.template)}</code>; accepted from {found.settings.accept:g} on. {_e(versions)}.</p>"
            f"<p>Isolation: {_e(found.isolation)}.</p>{untried}</header>",
            _summary(found),
            *(_section(check) for check in found.checks),
            "<footer><p>Intervals are Wilson's, 95 %. A threshold holds for each family by itself; families in grey inform and "
            "hold no threshold.</p></footer>",
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{_e(title)}</title>\n<style>{_STYLE}</style></head>\n'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _summary(found: Audit) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="#{c.name}">{_e(c.name.replace("_", " "))}</a></th>'
        f'<td><span class="chip {c.status}">{_WORD[c.status]}</span></td><td>{_e(c.says)}</td></tr>'
        for c in found.checks
    )
    return f'<table class="summary"><thead><tr><th>check</th><th></th><th></th></tr></thead><tbody>{rows}</tbody></table>'


def _section(check: Check) -> str:
    if not check.lines and not check.examples:
        return ""
    limit = "" if check.limit is None else f"<p>Threshold: {check.limit:g}.</p>"
    rows = "".join(
        f'<tr class="{"" if line.counts else "quiet"}"><th scope="row">{_e(line.name)}</th><td>{_e(line.says)}</td>'
        f"<td>{line.rate.failed} of {line.rate.of}</td><td>{line.rate.value:.3f}</td>"
        f"<td>{line.rate.bounds[0]:.3f} to {line.rate.bounds[1]:.3f}</td></tr>"
        for line in check.lines
    )
    table = (
        "<table><thead><tr><th>family</th><th></th><th>failures</th><th>share</th><th>interval</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        if rows
        else ""
    )
    examples = "".join(
        f"<li><b>{_e(x.family)}</b> gold <code>{_e(printable(x.gold))}</code>, answer <code>{_e(printable(x.answer))}</code>: "
        f"{_e(printable(x.finding))}</li>"
        for x in check.examples
    )
    listed = f"<h3>Examples, shortest first</h3><ul>{examples}</ul>" if examples else ""
    name = _e(check.name.replace("_", " "))
    return f'<section id="{check.name}"><h2>{name}</h2><p>{_e(check.says)}</p>{limit}{table}{listed}</section>'


def _e(text: object) -> str:
    return escape(str(text), quote=True)


_STYLE = """
:root { --paper: #fbfaf7; --card: #ffffff; --ink: #1f2a2e; --muted: #5d696d; --line: #e4e2da; --good: #1c655d; --bad: #b3372f; }
@media (prefers-color-scheme: dark) { :root { --paper: #15191b; --card: #1c2224; --ink: #e6e8e4; --muted: #9ba7a8;
  --line: #2f383a; --good: #5fb8a6; --bad: #ef7d72; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 ui-sans-serif, system-ui, sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 40px 24px 72px; }
h1 { font-size: 28px; margin: 0 0 8px; overflow-wrap: anywhere; } h2 { font-size: 20px; margin: 44px 0 4px; }
h3 { font-size: 14px; margin: 18px 0 4px; } p { margin: 6px 0; } .eyebrow, footer, h3 { color: var(--muted); }
.verdict { font-size: 20px; font-weight: 600; } .pass { color: var(--good); } .fail, .untried { color: var(--bad); }
.info, .skipped, .quiet { color: var(--muted); } .chip { font-weight: 600; white-space: nowrap; }
table { border-collapse: collapse; width: 100%; margin-top: 12px; font-size: 15px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: 400; }
thead th { color: var(--muted); font-size: 13px; } a { color: inherit; }
ul { margin: 0; padding-left: 20px; } code { background: var(--card); border: 1px solid var(--line); border-radius: 4px;
  padding: 0 4px; overflow-wrap: anywhere; white-space: pre-wrap; font-size: 14px; }
@media print { body { background: none; } section { break-inside: avoid; } }
"""

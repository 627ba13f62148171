"""docs/evidence/verifiers.md from the records of all cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.audit import printable
from assay.core import cache_folder
from assay.runs import write_json, write_text
from evidence.audits.cells import cells
from evidence.audits.claims import CLAIMS
from evidence.audits.running import run_all

__all__ = ["make_page", "page"]

Record = Mapping[str, Any]
_FULL, _HALF = 1.0 - 1e-9, 0.5

_HEAD = """# Verifiers under audit

Every built-in verifier, the library math-verify, and the scorers of reasoning-gym, asked the same things by `assay verify
audit`: right answers in every form, wrong ones of every kind, a library of tricks. [What each check
tries](../packages/audit.md) stands there.

    pip install 'assay-rl[math,verify,audits]'
    python -m evidence verifiers        # one process per verifier, resumable; about two hours on two cores

"""

_OWN = """## assay's own

*refused*: right answers as given, or in a form that the documentation promises. *accepted*: the family of wrong answers that
is taken most often; families in brackets are taken by design, as the verifier's page says, and hold no threshold. *second*:
how often the plainest function that does the same decides otherwise (`evidence.audits.rewards`; it reads fewer forms, so a
difference is a reason to look, and no mistake by itself). *other times*: another value in another process, order, batch,
thread or under other hashes. Latency is one call, hostile answers included.

"""

_MATH = """## math-verify {version}

Called as its documentation says, `verify(parse("$gold$"), parse(answer))`, inside the sandbox, on the cases of assay's `math`.

"""

_GYM = """## reasoning-gym {version}

`score_answer(answer, entry)` of {n} data sets at their default settings, 24 tasks each, `create_dataset(name, size=24,
seed=0)`, inside the sandbox, handed the answer alone. Many give part of the reward to part of an answer, by design; so two
thresholds stand apart: *full*, 1.0, and *half*, 0.5 or more. A policy that is paid half for a wrong answer learns to give it
where a right one is rarer. Where several answers are right, near misses and other tasks' answers were not tried. `eval` and
`sympy.parse_expr` compute whatever the answer says, in the process of the trainer.

"""


def make_page(folder: Path) -> list[str]:
    """Measures what is not measured yet, and writes the page and its numbers.

    Returns:
        What of assay's own failed its audit or its fuzz, or could not be measured, and claims that no longer hold.
    """
    records = run_all(cells(), cache_folder() / "studies" / "verifiers")
    claims = [claim.row() for claim in CLAIMS]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "verifiers.json", {"records": records, "claims": claims})
    write_text(folder / "verifiers.md", page(records, claims))
    return _failures(records, claims)


def _failures(records: Sequence[Record], claims: Sequence[Record]) -> list[str]:
    out = [f"{r['key']}: {r['error']}" for r in records if "error" in r]
    out += [f"{r['key']}: {', '.join(r['failed'])}" for r in records if r["group"] == "assay" and r.get("failed")]
    out += [f"{r['key']}: {r['first_fault']}" for r in records if r.get("first_fault")]
    known = {(claim.name, claim.index, claim.answer): claim.value for claim in CLAIMS}
    return out + [
        f"claim: {c['name']} gives {c['value']}" for c in claims if c["value"] < known[c["name"], c["index"], c["answer"]]
    ]


def page(records: Sequence[Record], claims: Sequence[Record]) -> str:
    """The text of the page."""
    done = [r for r in records if r.get("machine")]
    groups = {name: [r for r in done if r["group"] == name] for name in ("assay", "fuzz", "math-verify", "reasoning-gym")}
    missing = [r for r in records if not r.get("machine")]
    machines = "; ".join(sorted({r["machine"] for r in done}))
    loads = [x for r in done for x in r["load"]] or [0.0]
    out = [_HEAD, f"Machine: {machines}; load average {min(loads):.1f} to {max(loads):.1f}, so latencies read high.\n\n"]
    out += [_findings(groups), _own(groups["assay"], {r["key"].removeprefix("fuzz-"): r for r in groups["fuzz"]})]
    for record in groups["math-verify"]:
        out += [_MATH.format(version=record["made_of"]["math-verify"]), _foreign(record)]
    if groups["reasoning-gym"]:
        version = groups["reasoning-gym"][0]["made_of"]["reasoning-gym"]
        out += [_GYM.format(version=version, n=len(groups["reasoning-gym"])), _claims(claims), _gym(groups["reasoning-gym"])]
    if missing:
        why = "; ".join(f"`{r['key']}`" + ("" if r["error"] == "not measured" else f" ({r['error']})") for r in missing)
        out.append(f"## Not measured yet\n\n{why}.\n")
    return "".join(out)


# ---- what a reader should see first -----------------------------------------------------------------------------------


def _findings(groups: Mapping[str, Sequence[Record]]) -> str:
    gym = groups["reasoning-gym"]
    own = [r for r in groups["assay"] if r["failed"]]
    fuzzed = sum(r["answers"] for r in groups["fuzz"])
    lines = [
        f"{len(groups['assay'])} verifiers of assay: {_count(own, 'over a threshold') if own else 'none over a threshold'}; "
        f"{fuzzed:,} answers with slips, {sum(r['faults'] for r in groups['fuzz'])} of which made one raise, hang or die",
        f"{len(gym)} scorers of reasoning-gym: "
        f"{_count([r for r in gym if 'execution' in r['failed']], 'run the answer as code')}, "
        f"{_count([r for r in gym if {'hangs', 'crashes'} & set(r['failed'])], 'hang or die of an answer')}, "
        f"{_count([r for r in gym if 'faults' in r['failed']], 'raise')}, "
        f"{_count([r for r in gym if _paid_families(r, _FULL)], 'give the full reward to some family of wrong answers')}, "
        f"{_count([r for r in gym if r['junk'] >= _HALF], 'half of it or more to constants, junk, the prompt or a trick')}",
    ]
    return "## Findings\n\n" + "".join(f"- {line}.\n" for line in lines) + "\n"


def _count(records: Sequence[Record], what: str) -> str:
    return f"**{len(records)}** {what}"


def _claims(claims: Sequence[Record]) -> str:
    rows = [
        f"| `{c['name']}` | {c['index']} | {_code(c['gold'])} | {_code(c['answer'])} | {c['value']:.2f} | {c['says']} |"
        for c in claims
    ]
    return (
        "The worst, each tried again when this page is made (`{gold}` stands for the gold):\n\n"
        "| data set | task | gold | answer | score | because |\n|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
    )


# ---- tables -----------------------------------------------------------------------------------------------------------


def _own(records: Sequence[Record], fuzzed: Mapping[str, Record]) -> str:
    head = (
        "| verifier | refused | accepted | raises | hangs | dies | runs code | other times | lost gold | second | "
        "p50, p99 | fuzz: answers, faults |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    rows: list[str] = []
    for r in sorted(records, key=lambda r: (not r["failed"], r["key"])):
        name = r["key"].removeprefix("assay-")
        changes = [k for k in ("determinism", "order", "threads") if r["status"].get(k) == "fail"]
        fuzz = fuzzed.get(name)
        rows.append(
            _row(
                f"`{name}`",
                _describe_refusals(r),
                _worst(r),
                *_describe_endings(r),
                _yes(r, "execution"),
                ", ".join(changes) or "–",
                _yes(r, "missing_gold", "scored"),
                _second(r),
                _latency(r),
                f"{fuzz['answers']:,}, {fuzz['faults']}" if fuzz else "–",
            )
        )
    return _OWN + head + "\n".join(rows) + "\n\n"


_BY_DESIGN = """
By design: a formula that stands in no box and between no dollar signs is not read as LaTeX, so a bare tuple is refused;
`<answer>` tags mean nothing to it. It looks for an answer anywhere in the text, so a denial, or several numbers, are taken
where one of them is right. Its time limit is a signal, which Python allows only in the main thread: elsewhere `parse` raises,
unless the limit is switched off.

"""


def _foreign(r: Record) -> str:
    paid = [f"`{n}` {w[0]} of {w[1]}" for n, w in r["wrong"].items() if w[0]]
    raises, hangs, dies = _describe_endings(r)
    lines = [
        f"right answers refused: {_describe_refusals(r)}",
        f"wrong answers accepted: {', '.join(paid) or 'none'}",
        f"raises: {raises}; hangs: {hangs}; dies: {dies}; runs code: {_yes(r, 'execution')}",
        f"outside of the main thread: {'a fault or another value' if r['status'].get('threads') == 'fail' else 'the same'}",
        f"decides otherwise than assay's `math`: {_second(r)}; p50, p99 of an answer: {_latency(r)}",
    ]
    found = [(name, x) for name, several in r["examples"].items() if name in r["failed"] for x in several[:2]]
    rows = [_row(name, _code(x[1]), _code(x[2]), x[3]) for name, x in found]
    head = "| check | gold | answer | said |\n|---|---|---|---|\n"
    return "".join(f"- {line}\n" for line in lines) + _BY_DESIGN + head + "\n".join(rows) + "\n\n"


_READING = """All of them: first what runs code, then what hangs or dies, then by what is paid for junk. *full* and *half*:
families of wrong answers in which at least one got so much. Near misses of a number may lie within a tolerance that the task
allows (`power_function`, `pool_matrix`, `decimal_arithmetic`, `number_format`), and the empty answer is right where the gold is
empty (`ab`). `polynomial_multiplication` makes other tasks in another process with the same seed (the order of a set decides),
so its gold is refused here, where tasks are made and judged in two processes.

"""


def _gym(records: Sequence[Record]) -> str:
    head = (
        "| data set | runs code | raises | hangs | dies | full for | half or more for | most for junk | refused | p50, p99 |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    )
    rows: list[str] = []
    for r in sorted(records, key=_severity):
        full = _paid_families(r, _FULL)
        half = [n for n in _paid_families(r, _HALF) if n not in full]
        name = r["key"].removeprefix("reasoning-gym-")
        paid = (_list_names(full), _list_names(half), f"{r['junk']:.2f}")
        rows.append(_row(f"`{name}`", _yes(r, "execution"), *_describe_endings(r), *paid, _share(r, "gold"), _latency(r)))
    return _READING + head + "\n".join(rows) + "\n\n"


def _severity(r: Record) -> tuple[bool, bool, float, int, int, str]:
    failed = set(r["failed"])
    stops = bool(failed & {"hangs", "crashes"})
    return (
        "execution" not in failed,
        not stops,
        -r["junk"],
        -len(_paid_families(r, _FULL)),
        -len(_paid_families(r, _HALF)),
        str(r["key"]),
    )


def _describe_endings(r: Record) -> tuple[str, str, str]:
    """How often it raised, hung and died."""
    return _share(r, "faults"), _share(r, "hangs"), _share(r, "crashes")


def _paid_families(r: Record, least: float) -> list[str]:
    """Families of wrong answers of which one got at least so much."""
    return [n for n, (_, _, highest, _) in r["wrong"].items() if highest is not None and highest >= least]


def _list_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:4])} and {len(names) - 4} more" if len(names) > 5 else ", ".join(names) or "–"


def _describe_refusals(r: Record) -> str:
    promised = {n: v for n, v in r["rates"].get("formats", {}).items() if n in r["must"]}
    rates = {"gold": r["rates"].get("gold", {}).get("gold", [0, 0]), **promised}
    bad = [f"{n} {a} of {b}" for n, (a, b) in rates.items() if a]
    return ", ".join(bad) or f"0 of {sum(b for _, b in rates.values())}"


def _worst(r: Record) -> str:
    counts = [(a / b, f"{n} {a} of {b}") for n, (a, b, _, c) in r["wrong"].items() if a and c]
    design = [n for n, (a, _, _, c) in r["wrong"].items() if a and not c]
    said = max(counts)[1] if counts else f"0 of {sum(b for _, b, _, _ in r['wrong'].values()):,}"
    return f"{said} ({', '.join(design)})" if design else said


def _share(r: Record, check: str) -> str:
    rates = r["rates"].get(check)
    if not rates:
        return "–"
    bad = sum(a for a, _ in rates.values())
    return f"**{bad}** of {sum(b for _, b in rates.values())}" if bad else "0"


def _yes(r: Record, check: str, word: str = "**yes**") -> str:
    status = r["status"].get(check)
    return {"fail": word, "pass": "no"}.get(str(status), "–")


def _second(r: Record) -> str:
    found = r["rates"].get("agreement", {}).get("all")
    return f"{found[0] / max(1, found[1]):.1%}" if found else "–"


def _latency(r: Record) -> str:
    found = r["latency"]
    return "–" if found is None else f"{_seconds(found['p50'])}, {_seconds(found['p99'])}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.2g} ms" if value >= 1e-3 else f"{1e6 * value:.0f} µs"


def _row(*words: str) -> str:
    return f"| {' | '.join(words)} |"


def _code(text: str) -> str:
    cut = printable(text if len(text) <= 60 else f"{text[:60]}…").replace("|", "¦").replace("`", "'")
    return f"`` {cut} ``" if cut.strip() else "(nothing)"

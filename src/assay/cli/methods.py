"""``assay methods``: the named objectives, what other libraries call them, and which are the same under which conditions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.cli.listing_cache import kept_rows
from assay.cli.options import parse
from assay.cli.output import busy, grid, lines, show, strip_marks
from assay.core.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from assay.objective.methods import Method
    from assay.objective.peers import PeerMatch

__all__ = ["methods_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodsOptions:
    """Lists the named objectives, shows one, or finds the one that another library's name stands for.

    Attributes:
        name: a method: its formula, settings, columns, and its names in other libraries ('show NAME' is the same).
        peer: a library (verl, trl, skyrl, ...), or LIBRARY:NAME, one of its losses, estimators or corrections.
        atlas: compute which methods have the same gradient under which conditions; takes seconds.
        json: print JSON.
    """

    name: str | None = field(default=None, metadata={"positional": True, "arg": {"metavar": "[NAME]"}})
    peer: str | None = field(default=None, metadata={"arg": {"metavar": "LIBRARY[:NAME]"}})
    atlas: bool = False
    json: bool = False


def methods_command(args: list[str]) -> int:
    """``assay methods [NAME]``, ``--peer LIBRARY[:NAME]``, ``--atlas``; also ``list`` and ``show NAME``."""
    words = [word for word in args if not word.startswith("-")]
    if words[:1] == ["list"] or (words[:1] == ["show"] and len(words) > 1):  # as the other listings are asked for
        args = [*args]
        args.remove(words[0])
    own = parse(MethodsOptions, args, "assay methods")
    if sum((own.name is not None, own.peer is not None, own.atlas)) > 1:
        raise ConfigError("give a NAME, or --peer, or --atlas, one of them")
    if own.atlas:
        return _atlas(own.json)
    if own.peer is not None:
        library, _, name = own.peer.partition(":")
        return _match(own.json, library, name) if name else _peer(own.json, library)
    return _list(own.json) if own.name is None else _show(own.json, own.name)


def _list(as_json: bool) -> int:
    rows = kept_rows("methods", _rows)

    def text() -> None:
        grid(
            ("name", "what is different about it"),
            [[r["name"], r["sentence"]] for r in rows],
        )
        print("assay methods NAME shows the formula, the source, the settings and what a run needs for it")

    return show(as_json, rows, text)


def _rows() -> list[dict[str, Any]]:
    from assay.objective.methods import methods

    return [_row(m) for m in methods().values()]


def _row(method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "sentence": method.sentence,
        "composition": method.composition,
        "needs": list(method.needs),
        "source": method.source,
        "status": method.status,
    }


def _show(as_json: bool, name: str) -> int:
    from assay.objective.methods import methods
    from assay.objective.peers import matches

    known = methods()
    if name not in known:
        raise UnknownNameError("method", name, known)
    method = known[name]
    settings = {k: None if v is inspect.Parameter.empty else v for k, v in method.settings.items()}
    elsewhere = [f"{m.peer}:{m.name}" for m in matches() if re.search(rf"\b{name}\(", m.code)]
    namesakes = [said for m in matches() if m.name == name and (said := f"{m.peer}:{m.name}") not in elsewhere]
    ask = f"assay methods --peer {namesakes[0].partition(':')[0]}" if namesakes else ""
    doc = inspect.cleandoc(method.make.__doc__ or "")
    wired = [{"place": place, "value": set_to, "why": why} for place, set_to, why in _describe_wiring(name)]
    value: dict[str, Any] = {
        **_row(method),
        "settings": {k: _plain(v) for k, v in settings.items()},
        "doc": doc,
        "wired": wired,
        "elsewhere": elsewhere,
        "namesakes": namesakes,
    }

    def text() -> None:
        print(method.sentence, end="\n\n")
        print(strip_marks(doc), end="\n\n")
        lines(
            {
                "composition": value["composition"],
                "needs": ", ".join(value["needs"]) or "–",
                "source": method.source,
                "status": method.status,
                "elsewhere": ", ".join(elsewhere) or "–",
                **({"namesakes": f"{', '.join(namesakes)}, of other parts: {ask}"} if namesakes else {}),
                "settings": ", ".join(f"{k}={v!r}" for k, v in settings.items()) or "none",
                "wires": "\n".join(f"{w['place']} {w['value']}: {w['why']}".removeprefix(" : ") for w in wired) or "nothing",
                "in a run": f"assay train quickstart --stages.0.objective.kind {name}; 'assay explain' says what comes with it",
            }
        )

    return show(as_json, value, text)


def _describe_wiring(name: str) -> list[tuple[str, str, str]]:
    """What a stage of reinforcement learning gets for the method beside its objective: place, value, reason."""
    from assay.train.reinforce import Reinforce
    from assay.train.wiring import wire

    try:
        return [(w.place, w.value, w.why) for w in wire(Reinforce(), name)[1]]
    except ConfigError as error:  # it needs what only a person can give: a teacher, rows
        return [("", "", str(error))]


def _plain(value: Any) -> Any:
    """A setting as JSON holds it."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _peer(as_json: bool, library: str) -> int:
    from assay.objective.peers import PEERS, matches

    rows = [_fields(m) for m in matches(library)]

    def text() -> None:
        grid(
            ("name", "kind", "here, and how theirs differs; or why not"),
            [[r["name"], r["kind"], "\n".join(filter(None, (r["here"], r["note"], r["reason"])))] for r in rows],
        )
        print(f"{PEERS[library]}; assay methods --peer {library}:NAME says more of one")

    return show(as_json, rows, text)


def _match(as_json: bool, library: str, name: str) -> int:
    from assay.objective.methods.registry import composition
    from assay.objective.peers import PEERS, match, matches

    first = match(library, name)
    found = [m for m in matches(library) if m.name == first.name]
    rows = [{**_fields(m), "composition": composition(m.objective()) if m.code else None} for m in found]

    def text() -> None:
        for row in rows:
            lines(
                {
                    f"{row['kind']}": f"{row['name']} of {PEERS[library]}",
                    "here": row["here"] or "–",
                    **({"composition": row["composition"]} if row["composition"] else {}),
                    **({"differs": row["note"]} if row["note"] else {}),
                    **({"why not": row["reason"]} if row["reason"] else {}),
                }
            )

    return show(as_json, rows, text)


def _fields(m: PeerMatch) -> dict[str, Any]:
    return {"library": m.peer, "kind": m.kind, "name": m.name, "here": m.code, "note": m.note, "reason": m.reason}


def _atlas(as_json: bool) -> int:
    from assay.objective.atlas import CONDITIONS, equivalences

    with busy("comparing gradients"):
        found: Mapping[str, list[list[str]]] = {name: [list(c) for c in classes] for name, classes in equivalences().items()}

    def text() -> None:
        grid(
            ("condition", "the same gradient"),
            [
                [f"{name}: {CONDITIONS[name].says}", "\n".join(", ".join(c) for c in classes) or "–"]
                for name, classes in found.items()
            ],
        )

    return show(as_json, found, text)

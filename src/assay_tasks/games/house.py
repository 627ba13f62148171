"""A house to walk through: rooms, doors, boxes, things, and commands that are understood."""

from __future__ import annotations

import re
from random import Random

from assay.tasks.problem import Facts
from assay.tasks.turns import list_names
from assay_tasks.games.play import Match

__all__ = ["BACK", "House"]

BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}
"""Each direction with its opposite."""

_COMMANDS = {
    kind: re.compile(pattern)
    for kind, pattern in {
        "look": "look|look around|l",
        "inventory": "inventory|i",
        "go": f"(?:go |walk )?({'|'.join(BACK)})",
        "take": "(?:take|get|pick up) ([a-z ]+?)(?: (?:from|out of) ([a-z ]+))?",
        "put": "put ([a-z ]+?) (?:into|in|onto|on) ([a-z ]+)",
        "drop": "drop ([a-z ]+)",
        "open": "open ([a-z ]+)",
        "close": "close ([a-z ]+)",
        "unlock": "unlock ([a-z ]+?) with ([a-z ]+)",
        "light": "light ([a-z ]+)",
        "chop": "chop ([a-z ]+)",
        "fry": "fry ([a-z ]+)",
    }.items()
}
_BY_WORD = {kind: (kind,) for kind in _COMMANDS} | {
    "l": ("look",),
    "i": ("inventory",),
    "get": ("take",),
    "pick": ("take",),
    "walk": ("go",),
    **dict.fromkeys(BACK, ("go",)),
}
"""The commands that a first word may begin."""
_ARTICLES = re.compile(r"\b(?:the|an?) ")
_DEEP = 12
"""Needs that are nested deeper are given up: no house that can be won has them."""


class House(Match):
    """A house as a match.

    The facts: ``rooms`` (names), ``exits`` (``[room, direction, room, door or ""]``, each way back included in itself), ``locks``
    (door or box to ``[state, key]``; the state is open, closed or locked; what is always open has none), ``boxes`` (name to
    room), ``things`` (name to where it is: a room, a box or ``you``), ``dark`` rooms, ``stove`` (its room or ""), ``goal``,
    ``start``, ``turns``.

    A goal is a list of conditions that must hold at once: ``["has", thing]``, ``["in", thing, box]``, ``["is", thing, states]``
    with the states of a thing in order of the alphabet, such as ``chopped fried``.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self.exits: dict[str, dict[str, tuple[str, str]]] = {room: {} for room in facts["rooms"]}
        for here, way, there, door in facts["exits"]:
            self.exits[here][way] = there, door
            self.exits[there][BACK[way]] = here, door
        self.state = {name: state for name, (state, _) in facts["locks"].items()}
        self.keys = {name: key for name, (_, key) in facts["locks"].items() if key}
        self.boxes: dict[str, str] = facts["boxes"]
        self.things: dict[str, str] = dict(facts["things"])
        self.made: dict[str, set[str]] = {name: set() for name in self.things}
        self.dark, self.stove = set(facts["dark"]), facts["stove"]
        self.goal: list[list[str]] = facts["goal"]
        self.room: str = facts["start"]

    # ---- what is seen

    def opening(self) -> str:
        return self.look()

    def look(self) -> str:
        """The room in words."""
        ways = [f"{way}{self._doorway(door)}" for way, (_, door) in sorted(self.exits[self.room].items())]
        said = f"You are in the {self.room}. Exits: {', '.join(ways)}."
        if self.is_dark():
            return f"{said} It is too dark to see anything else."
        boxes = [self._box(name) for name, room in self.boxes.items() if room == self.room]
        stove = ["a stove"] if self.stove == self.room else []
        seen = [*boxes, *stove, *(self._thing(name) for name in self.at(self.room))]
        return f"{said} You see {list_names(seen)}." if seen else f"{said} There is nothing here."

    def at(self, place: str) -> list[str]:
        """Things at a place, by name."""
        return sorted(name for name, where in self.things.items() if where == place)

    def is_dark(self) -> bool:
        """Whether nothing can be seen here."""
        return self.room in self.dark and not ("lit" in self.made.get("lamp", ()) and self.things["lamp"] == "you")

    def visible(self) -> list[str]:
        """Boxes that are here and can be seen."""
        return [] if self.is_dark() else [name for name, room in self.boxes.items() if room == self.room]

    def _doorway(self, door: str) -> str:
        return f" ({self._lock_name(door)} {door})" if door else ""

    def _lock_name(self, name: str) -> str:
        return f"locked, takes the {self.keys[name]}:" if self.state[name] == "locked" else self.state[name]

    def _box(self, name: str) -> str:
        inside = list_names([self._thing(thing) for thing in self.at(name)])
        state = self.state.get(name, "")
        if state in ("closed", "locked"):
            return f"the {name} ({state if state == 'closed' else f'locked, takes the {self.keys[name]}'})"
        return f"the {name} ({f'{self._word(name)} it {inside}' if inside else 'empty'})"

    def _word(self, box: str) -> str:
        """Things lie in what has a lid, and on what has none."""
        return "in" if box in self.state else "on"

    def _thing(self, name: str) -> str:
        return " ".join(["the", *sorted(self.made[name]), name])

    # ---- what is done

    def answer(self, action: str) -> str:
        plain = " ".join(_ARTICLES.sub("", action).split())
        for kind in _BY_WORD.get(plain.partition(" ")[0], ()):
            found = _COMMANDS[kind].fullmatch(plain)
            if found:
                said: str = getattr(self, f"_do_{kind}")(*(part or "" for part in found.groups()))
                held = [self._holds(condition) for condition in self.goal]
                self.progress = sum(held) / len(held)
                if all(held):
                    self.win()
                return said
        return "I do not understand that."

    def _holds(self, condition: list[str]) -> bool:
        kind, thing, *rest = condition
        if kind == "has":
            return self.things[thing] == "you"
        return self.things[thing] == rest[0] if kind == "in" else " ".join(sorted(self.made[thing])) == rest[0]

    def _do_look(self) -> str:
        return self.look()

    def _do_inventory(self) -> str:
        held = [self._thing(name) for name in self.at("you")]
        return f"You carry {list_names(held)}." if held else "You carry nothing."

    def _do_go(self, way: str) -> str:
        if way not in self.exits[self.room]:
            return "There is no way in that direction."
        there, door = self.exits[self.room][way]
        if door and self.state[door] != "open":
            return f"The {door} is {self.state[door]}."
        self.room = there
        return self.look()

    def _do_take(self, thing: str, box: str) -> str:
        words = thing.split()
        while words and " ".join(words) not in self.things:  # "chopped carrot" is the carrot
            words = words[1:]
        thing = " ".join(words)
        where = self.things.get(thing, "")
        if where == "you":
            return "You have it already."
        inside = where in self.visible() and self.state.get(where, "open") == "open"
        if self.is_dark() or not (where == self.room or inside) or (box and where != box):
            return "You see no such thing there." if box else "You see no such thing here."
        self.things[thing] = "you"
        return f"You take the {thing}."

    def _do_put(self, thing: str, box: str) -> str:
        if self.things.get(thing) != "you":
            return "You do not have that."
        if box not in self.visible():
            return "You see no such place here."
        if self.state.get(box, "open") != "open":
            return f"The {box} is {self.state[box]}."
        self.things[thing] = box
        return f"You put the {thing} {self._word(box)} the {box}."

    def _do_drop(self, thing: str) -> str:
        if self.things.get(thing) != "you":
            return "You do not have that."
        self.things[thing] = self.room
        return f"You drop the {thing}."

    def near(self, name: str) -> bool:
        """Whether a door or a box with a lid is within reach."""
        return name in self.state and (name in self.visible() or any(door == name for _, door in self.exits[self.room].values()))

    def _do_open(self, name: str) -> str:
        if not self.near(name):
            return "You see nothing of that name to open."
        if self.state[name] != "closed":
            return f"The {name} is {self.state[name]}."
        self.state[name] = "open"
        inside = list_names([self._thing(thing) for thing in self.at(name)])
        return f"You open the {name}. In it: {inside}." if inside else f"You open the {name}."

    def _do_close(self, name: str) -> str:
        if not self.near(name):
            return "You see nothing of that name to close."
        if self.state[name] != "open":
            return f"The {name} is {self.state[name]}."
        self.state[name] = "closed"
        return f"You close the {name}."

    def _do_unlock(self, name: str, key: str) -> str:
        if not self.near(name) or self.state[name] != "locked":
            return "You see nothing of that name that is locked."
        if self.things.get(key) != "you":
            return "You do not have that."
        if self.keys[name] != key:
            return "It does not fit."
        self.state[name] = "closed"
        return f"You unlock the {name}. It is closed."

    def _do_light(self, thing: str) -> str:
        if thing != "lamp" or self.things.get("lamp") != "you":
            return "You have no such thing to light."
        if self.things.get("matches") != "you":
            return "You need matches."
        self.made["lamp"].add("lit")
        return f"You light the lamp. {self.look()}"

    def _do_chop(self, thing: str) -> str:
        return self._make(thing, "chopped", "" if self.things.get("knife") == "you" else "You need a knife.")

    def _do_fry(self, thing: str) -> str:
        return self._make(thing, "fried", "" if self.stove == self.room else "There is no stove here.")

    def _make(self, thing: str, state: str, lacks: str) -> str:
        if self.things.get(thing) != "you" or thing == "knife":
            return "You do not have that."
        if lacks or state in self.made[thing]:
            return lacks or f"It is {state} already."
        self.made[thing].add(state)
        return f"You have {state} the {thing}."

    # ---- what an oracle does, which knows the house

    def advise(self) -> str:
        """The next step towards the first condition that does not hold."""
        for condition in self.goal:
            if not self._holds(condition):
                return self._toward(condition)
        return "look"

    def _toward(self, condition: list[str]) -> str:
        kind, thing, *rest = condition
        if self.things[thing] != "you":
            return self._fetch(thing, 0)
        if kind == "in":
            (box,) = rest
            return self._reach(self.boxes[box], 0) or self._lid(box, 0) or f"put {thing} {self._word(box)} {box}"
        if "chopped" in rest[0] and "chopped" not in self.made[thing]:
            return self._fetch("knife", 0) or f"chop {thing}"
        return self._reach(self.stove, 0) or f"fry {thing}"

    def _fetch(self, thing: str, deep: int) -> str:
        """The next step to having a thing, "" when one has it."""
        where = self.things[thing]
        if where == "you" or deep > _DEEP:
            return "" if where == "you" else "look"
        room = self.boxes.get(where, where)
        if room in self.dark and "lit" not in self.made["lamp"]:
            return self._fetch("lamp", deep + 1) or self._fetch("matches", deep + 1) or "light lamp"
        if room in self.dark and self.things["lamp"] != "you":
            return self._fetch("lamp", deep + 1)
        key = self.keys[where] if self.state.get(where) == "locked" else ""
        step = (key and self._fetch(key, deep + 1)) or self._reach(room, deep + 1)
        if step or where == room:
            return step or f"take {thing}"
        return self._lid(where, deep + 1) or f"take {thing} from {where}"

    def _lid(self, name: str, deep: int) -> str:
        """The next step to a door or box being open, from beside it; "" when it is."""
        state = self.state.get(name, "open")
        if state == "locked":
            return self._fetch(self.keys[name], deep + 1) or f"unlock {name} with {self.keys[name]}"
        return f"open {name}" if state == "closed" else ""

    def _reach(self, room: str, deep: int) -> str:
        """The next step to a room on a shortest way; "" when one is there. Where locked doors bar it, towards a key of one."""
        if self.room == room:
            return ""
        first, barred, edge = {self.room: ""}, list[str](), [self.room]
        for here in edge:  # grows while it is read
            self.effort += 1
            for way, (there, door) in self.exits[here].items():
                if there in first:
                    continue
                if door and self.state[door] == "locked" and self.things[self.keys[door]] != "you":
                    barred.append(door)
                    continue
                first[there] = first[here] or way
                if there == room:
                    door = self.exits[self.room][first[room]][1]
                    return (self._lid(door, deep) if door else "") or f"go {first[room]}"
                edge.append(there)
        for door in barred:
            where = self.things[self.keys[door]]
            if self.boxes.get(where, where) in first:
                return self._fetch(self.keys[door], deep + 1)
        return "look"

    # ---- what may be done

    def admissible(self) -> list[str]:
        """Commands that do something here, but for looking."""
        ways = [f"go {way}" for way, (_, door) in self.exits[self.room].items() if not door or self.state[door] == "open"]
        doors = [door for _, door in self.exits[self.room].values() if door]
        boxes, held = self.visible(), self.at("you")
        lids = [name for name in (*doors, *boxes) if name in self.state]
        out = ways + [f"open {name}" for name in lids if self.state[name] == "closed"]
        out += [f"close {name}" for name in lids if self.state[name] == "open"]
        out += [f"unlock {n} with {self.keys[n]}" for n in lids if self.state[n] == "locked" and self.keys[n] in held]
        free = [box for box in boxes if self.state.get(box, "open") == "open"]
        out += [f"take {thing}" for place in ([] if self.is_dark() else [self.room, *free]) for thing in self.at(place)]
        out += [f"put {thing} in {box}" for thing in held for box in free] + [f"drop {thing}" for thing in held]
        out += ["light lamp"] * ("lamp" in held and "matches" in held and "lit" not in self.made["lamp"])
        out += [f"chop {t}" for t in held if "knife" in held and t != "knife" and "chopped" not in self.made[t]]
        return out + [f"fry {t}" for t in held if self.stove == self.room and t != "knife" and "fried" not in self.made[t]]

    def wander(self, rng: Random) -> bool:
        """Whether random play wins from here on."""
        while not self.over:
            commands = self.admissible()
            self.act(rng.choice(commands) if commands else "look")
        return self.won

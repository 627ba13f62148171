"""Text adventures: houses drawn around a quest, of which those are kept that are worth playing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.canon import digest
from assay.core.seeds import derive
from assay.tasks.problem import Facts
from assay.tasks.turns import list_names
from assay_tasks.games.house import BACK, House
from assay_tasks.games.play import MOST_TURNS, Game

__all__ = ["Cook", "Deliver", "Find", "Light", "Unlock"]

_ROOMS = (
    "hall",
    "kitchen",
    "cellar",
    "attic",
    "study",
    "library",
    "bedroom",
    "bathroom",
    "pantry",
    "garage",
    "workshop",
    "parlour",
    "nursery",
    "gallery",
    "laundry",
    "cloakroom",
    "greenhouse",
    "ballroom",
    "chapel",
    "stable",
)
_THINGS = (
    "ring",
    "map",
    "coin",
    "candle",
    "book",
    "letter",
    "mirror",
    "brush",
    "flute",
    "mask",
    "rope",
    "hammer",
    "scarf",
    "teacup",
    "compass",
    "feather",
    "marble",
    "needle",
    "postcard",
    "ribbon",
    "statue",
    "thimble",
    "umbrella",
    "violin",
    "whistle",
    "bell",
    "crown",
    "dagger",
    "fan",
    "glove",
)
_MATTER = ("silver", "wooden", "golden", "paper", "copper", "glass", "ivory", "velvet", "clay", "jade")
_WOODS = ("oak", "pine", "iron", "cedar", "walnut", "birch", "ebony", "tin")
_LIDS, _TOPS = ("chest", "box", "cabinet", "drawer", "trunk"), ("table", "shelf", "desk", "stool")
_COLOURS = ("red", "blue", "green", "yellow", "black", "white", "brown", "grey")
_FOODS = ("carrot", "onion", "potato", "mushroom", "pepper", "leek", "tomato", "egg", "fish", "apple")

_FOURTH = {
    "light": " Also: light X (with matches in your hands). In a dark room nothing can be seen or taken without a lit lamp.",
    "cook": " Also: chop X (with a knife in your hands), fry X (beside a stove); neither can be undone.",
}


class _Plan:
    """A house under construction."""

    def __init__(self, rng: Random, rooms: int, named: tuple[str, ...] = ()) -> None:
        self.rng = rng
        others = rng.sample([room for room in _ROOMS if room not in named], rooms - len(named))
        self.rooms = [*others, *named]
        rng.shuffle(self.rooms)
        self.exits: list[list[str]] = []
        self.locks: dict[str, list[str]] = {}
        self.boxes: dict[str, str] = {}
        self.things: dict[str, str] = {}
        self.colours = rng.sample(_COLOURS, len(_COLOURS))
        self._grow()

    def _grow(self) -> None:
        """Rooms side by side on a grid, joined as a tree, with a second way here and there."""
        rng, steps = self.rng, {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}
        at = {(0, 0): self.rooms[0]}
        for room in self.rooms[1:]:
            while True:
                (x, y), way = rng.choice(list(at)), rng.choice(list(BACK))
                place = x + steps[way][0], y + steps[way][1]
                if place not in at:
                    break
            self.exits.append([at[x, y], way, room, ""])
            at[place] = room
        joined = {frozenset((a, b)) for a, _, b, _ in self.exits}
        for (x, y), room in at.items():
            for way in ("south", "east"):
                other = at.get((x + steps[way][0], y + steps[way][1]))
                if other and frozenset((room, other)) not in joined and rng.random() < 0.2:
                    self.exits.append([room, way, other, ""])

    def place(self, room: str, state: str = "closed", key: str = "") -> str:
        """A new box, or where the state is empty a table or the like, in a room."""
        while True:
            name = f"{self.rng.choice(_WOODS)} {self.rng.choice(_LIDS if state else _TOPS)}"
            if name not in self.boxes:
                break
        self.boxes[name] = room
        if state:
            self.locks[name] = [state, key]
        return name

    def furnish(self, count: int) -> None:
        """Boxes and tables in random rooms."""
        for _ in range(count):
            self.place(self.rng.choice(self.rooms), self.rng.choice(("closed", "closed", "open", "")))

    def thing(self, where: str, name: str = "") -> str:
        """A new thing at a place."""
        while not name or name in self.things:
            name = f"{self.rng.choice(_MATTER)} {self.rng.choice(_THINGS)}"
        self.things[name] = where
        return name

    def anywhere(self, rooms: list[str] | None = None, shut: bool = False) -> str:
        """A room or a box in it; with ``shut`` rather a closed box."""
        inside = [box for box, room in self.boxes.items() if rooms is None or room in rooms]
        if shut:
            inside = [box for box in inside if self.locks.get(box, ["open"])[0] == "closed"] or inside
        if inside and (shut or self.rng.random() < 0.6):
            return self.rng.choice(inside)
        return self.rng.choice(self.rooms if rooms is None else rooms)

    def door(self, at: int, state: str, key: str = "") -> str:
        """A door in the way that has this number."""
        name = f"{self.colours.pop()} door"
        self.exits[at][3] = name
        self.locks[name] = [state, key]
        return name

    def key(self, lock: str, where: str) -> None:
        """The key of a locked door or box."""
        self.locks[lock][1] = self.thing(where, f"{lock} key" if "door" not in lock else f"{lock.split()[0]} key")

    def reachable_rooms(self, start: str) -> list[str]:
        """Rooms that can be reached through no locked door."""
        found, edge = {start}, [start]
        while edge:
            here = edge.pop()
            for a, _, b, door in self.exits:
                if here in (a, b) and (not door or self.locks[door][0] != "locked"):
                    there = b if here == a else a
                    if there not in found:
                        found.add(there)
                        edge.append(there)
        return [room for room in self.rooms if room in found]

    def facts(self, start: str, goal: list[list[str]], dark: tuple[str, ...] = (), stove: str = "") -> dict[str, Any]:
        """As `House` takes them."""
        return {
            "rooms": self.rooms,
            "exits": self.exits,
            "locks": self.locks,
            "boxes": self.boxes,
            "things": self.things,
            "dark": list(dark),
            "stove": stove,
            "goal": goal,
            "start": start,
            "turns": MOST_TURNS,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quest(Game, ABC):
    """Base of quests. A house is kept only if the walkthrough wins, in three steps or more, and random play does not.

    There are 6 turns, 2 for each room, 4 for each condition of the goal and each lock, 8 where it is dark; at most 60.
    """

    levels: tuple[int, ...] = tuple(range(1, 9))
    move: ClassVar[str] = "command"
    also: ClassVar[str] = ""

    templates: ClassVar[tuple[str, ...]] = (
        "You are in a house and play a text adventure. {goal} You see only the room that you are in. Commands: look, inventory, "
        "go north (or south, east, west), take X, take X from Y, put X in Y, drop X, open X, close X, unlock X with Y.{also} You "
        "have {turns} turns, and the game ends as soon as the task is done.",
        "A text adventure. Your task: {goal} Each turn is one command: look, inventory, go north/south/east/west, take X, take X "
        "from Y, put X in Y, drop X, open X, close X, unlock X with Y.{also} The game is won when the task is done, and lost "
        "after {turns} turns. Only the room around you is shown.",
        "Explore a house by commands and do this within {turns} turns: {goal} What is in other rooms or in closed boxes you find "
        "out by going and opening. The commands are look, inventory, go (north, south, east, west), take X, take X from Y, put "
        "X in Y, drop X, open X, close X and unlock X with Y.{also}",
    )

    @abstractmethod
    def house(self, level: int, rng: Random) -> dict[str, Any]:
        """Facts of a house with its quest."""
        ...

    @abstractmethod
    def goal_text(self, facts: Facts) -> str:
        """The quest as a sentence."""
        ...

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A house, with turns by its size."""
        facts = self.house(level, rng)
        locked = sum(state == "locked" for state, _ in facts["locks"].values())
        turns = 6 + 2 * len(facts["rooms"]) + 4 * (len(facts["goal"]) + locked) + 8 * bool(facts["dark"])
        return facts | {"turns": min(MOST_TURNS, turns)}

    def fair(self, facts: Facts) -> bool:
        """Whether the walkthrough wins, in three steps or more, and none of three random plays does."""
        match, actions = self.play_oracle(facts)
        if not match.won or len(actions) < 3:
            return False
        rng = Random(derive("random play", 0, self.name, digest(facts)))
        return not any(House(facts).wander(rng) for _ in range(3))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The quest and the bound."""
        return {"goal": self.goal_text(facts), "turns": str(facts["turns"]), "also": self.also}

    def match(self, facts: Facts) -> House:
        """A fresh match."""
        return House(facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Find(_Quest):
    """Find a thing in a house and take it. Level n has 2 n + 2 rooms; boxes grow with it.

    STARLING (2024) writes such games with a language model and keeps those that can be won; here a program draws them.

    Source: STARLING (arXiv 2406.05872), in part.
    """

    name: str = "games/find"
    levels: tuple[int, ...] = tuple(range(1, 6))

    def house(self, level: int, rng: Random) -> dict[str, Any]:
        """The thing lies in a closed box of another room; some doors are closed."""
        plan = _Plan(rng, 2 * level + 2)
        plan.furnish(level + 2)
        if level > 2:
            plan.door(rng.randrange(len(plan.exits)), "closed")
        start = plan.rooms[0]
        wanted = plan.thing(plan.place(rng.choice(plan.rooms[1:])))
        for _ in range(level):
            plan.thing(plan.anywhere())
        return plan.facts(start, [["has", wanted]])

    def goal_text(self, facts: Facts) -> str:
        """The thing."""
        return f"Find the {facts['goal'][0][1]} and take it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver(_Quest):
    """Bring things to places of a house. There are 3 rooms and one for every second level, and one thing for every third."""

    name: str = "games/deliver"

    def house(self, level: int, rng: Random) -> dict[str, Any]:
        """Things and their places anywhere, in different rooms."""
        plan = _Plan(rng, 3 + (level + 1) // 2)
        plan.furnish(2 + level // 2)
        goal: list[list[str]] = []
        for _ in range(1 + (level - 1) // 3):
            target = plan.place(rng.choice(plan.rooms), rng.choice(("closed", "open", "")))
            elsewhere = [room for room in plan.rooms if room != plan.boxes[target]]
            goal.append(["in", plan.thing(plan.anywhere(elsewhere)), target])
        for _ in range(level // 2):
            plan.thing(plan.anywhere())
        return plan.facts(rng.choice(plan.rooms), goal)

    def goal_text(self, facts: Facts) -> str:
        """Things and places."""
        tops = [f"the {thing} {'in' if box in facts['locks'] else 'on'} the {box}" for _, thing, box in facts["goal"]]
        return f"Put {list_names(tops)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlock(_Quest):
    """Get a thing that is locked away behind doors and boxes. The level is the number of locks, and their keys lie about."""

    name: str = "games/unlock"
    levels: tuple[int, ...] = tuple(range(1, 6))

    def house(self, level: int, rng: Random) -> dict[str, Any]:
        """Locked doors whose keys lie on this side of them, and a locked box at the end."""
        plan = _Plan(rng, level + 3)
        plan.furnish(level + 2)
        start, doors = plan.rooms[0], level - 1
        for at in rng.sample(range(len(plan.exits)), doors):
            plan.door(at, "locked")
        shut = [name for name, (state, _) in plan.locks.items() if state == "locked"]
        rooms = plan.reachable_rooms(start)
        while shut:
            ends = {door: (a in rooms) + (b in rooms) for a, _, b, door in plan.exits if door in shut}
            near = [door for door in shut if ends[door]]
            lock = rng.choice(near)
            plan.key(lock, plan.anywhere(rooms, shut=True))
            shut.remove(lock)
            was, plan.locks[lock][0] = rooms, "closed"  # as if it were open, to see how far it leads
            rooms = plan.reachable_rooms(start)
            plan.locks[lock][0] = "locked"
            rooms = [room for room in plan.rooms if room in {*was, *rooms, *self._rooms_beyond(plan, lock, was)}]
        safe = plan.place(rng.choice(plan.rooms[1:]), "locked")
        plan.key(safe, plan.anywhere([room for room in plan.rooms if room != plan.boxes[safe]]))
        if plan.things[plan.locks[safe][1]] == safe:
            plan.things[plan.locks[safe][1]] = start
        return plan.facts(start, [["has", plan.thing(safe)]])

    def goal_text(self, facts: Facts) -> str:
        """The thing."""
        return f"Get the {facts['goal'][0][1]}, which is locked away somewhere."

    @staticmethod
    def _rooms_beyond(plan: _Plan, lock: str, rooms: list[str]) -> list[str]:
        """Rooms behind a door, as far as no other locked door stands before them."""
        a, b = next((a, b) for a, _, b, door in plan.exits if door == lock)
        return [room for side in (a, b) if side not in rooms for room in plan.reachable_rooms(side)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Light(_Quest):
    """Fetch things out of dark rooms, with a lamp and matches that must be found. Level n has n + 3 rooms; dark ones grow too."""

    name: str = "games/light"
    levels: tuple[int, ...] = tuple(range(1, 7))
    also: ClassVar[str] = _FOURTH["light"]

    def house(self, level: int, rng: Random) -> dict[str, Any]:
        """Things in dark rooms, lamp and matches in others."""
        plan = _Plan(rng, level + 3)
        dark = tuple(rng.sample(plan.rooms[1:], 1 + level // 3))
        plan.furnish(level + 1)
        bright = [room for room in plan.rooms if room not in dark]
        plan.thing(plan.anywhere(bright), "lamp")
        plan.thing(plan.anywhere(bright), "matches")
        wanted = [plan.thing(plan.anywhere([room])) for room in dark]
        for _ in range(level // 2):
            plan.thing(plan.anywhere(bright))
        return plan.facts(plan.rooms[0], [["has", thing] for thing in wanted], dark)

    def goal_text(self, facts: Facts) -> str:
        """The things."""
        return f"Find the {' and the '.join(thing for _, thing in facts['goal'])}; you must carry {_all(facts)}at the end."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cook(_Quest):
    """Prepare food by a recipe and put it in a pot. Levels have 1 to 4 ingredients, to be chopped, fried, both or none."""

    name: str = "games/cook"
    levels: tuple[int, ...] = tuple(range(1, 7))
    also: ClassVar[str] = _FOURTH["cook"]

    def house(self, level: int, rng: Random) -> dict[str, Any]:
        """Ingredients and a knife anywhere, stove and pot in the kitchen."""
        plan = _Plan(rng, 2 + level, ("kitchen",))
        plan.furnish(1 + level // 2)
        plan.boxes["pot"] = "kitchen"
        plan.locks["pot"] = ["open", ""]
        goal: list[list[str]] = []
        foods = rng.sample(_FOODS, min(len(_FOODS), 2 + level))
        for food in foods:
            plan.thing(plan.anywhere(), food)
        plan.things = {name: where if where != "pot" else "kitchen" for name, where in plan.things.items()}
        plan.thing(rng.choice(plan.rooms), "knife")
        for food in foods[: 1 + level // 2]:
            states = rng.choice(("", "chopped", "fried", "chopped fried")[not goal :])
            goal += [["is", food, states], ["in", food, "pot"]]
        return plan.facts(rng.choice(plan.rooms), goal, stove="kitchen")

    def goal_text(self, facts: Facts) -> str:
        """The recipe."""
        recipe = [
            f"the {food} ({states.replace(' ', ' and ') or 'raw, neither chopped nor fried'})"
            for kind, food, states in facts["goal"]
            if kind == "is"
        ]
        return f"Cook by this recipe: into the pot in the kitchen go {list_names(recipe)}."


def _all(facts: Facts) -> str:
    return "them all " if len(facts["goal"]) > 2 else "both " if len(facts["goal"]) == 2 else "it "

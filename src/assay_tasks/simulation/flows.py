"""Things that come and go: queues, stock, an elevator, traffic lights, a state machine, a board game with given moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.text.items import ListMatch
from assay.verify.text.number import Numeric
from assay_tasks.simulation.cells import Simulated

__all__ = ["BoardGame", "Elevator", "Inventory", "Lights", "Queue", "StateMachine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Simulated):
    """Base of processes whose answer is a number."""

    def verifier(self, form: Form) -> Verifier:
        """The number exactly."""
        return Numeric(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue(Counted):
    """When the last customer leaves, or how long all have waited, at one to three counters. The level is customers, 3 to 20.

    >>> Queue().solve({"arrivals": [0, 1, 2], "services": [5, 4, 1], "counters": 2, "asked": "waiting"}).answer
    '3'
    """

    name: str = "simulation/queue"

    templates: ClassVar[tuple[str, ...]] = (
        "Customers come to a bank with {counters}. They wait in one line and are served in the order of arrival, each at the "
        "first "
        "counter that is free. Customer by customer, arrival and service time in minutes: {customers}. {question}",
        "In a bank with {counters} there is one queue, first come first served. These customers come (minute of arrival, "
        "minutes of "
        "service): {customers}. Everybody goes to a counter as soon as one is free and it is their turn. {question}",
        "{customers}: these are the minutes at which customers arrive and for how many minutes each is served. There is a single "
        "queue for {counters}, and whoever has arrived first is served first, as soon as a counter is free. {question}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Arrivals in order, often before a counter is free."""
        n, counters = (3, 5, 7, 10, 14, 20)[level - 1], (1, 1, 2, 2, 3, 3)[level - 1]
        at, arrivals = 0, list[int]()
        for _ in range(n):
            arrivals.append(at)
            at += rng.randint(1, 4)
        services = [rng.randint(1, 4 + 4 * counters) for _ in range(n)]
        return {
            "arrivals": arrivals,
            "services": services,
            "counters": counters,
            "asked": rng.choice(("end", "waiting", "longest")),
        }

    def solve(self, facts: Facts) -> Solution:
        """Customer by customer."""
        free, waits, ends, steps = [0] * facts["counters"], list[int](), list[int](), list[str]()
        for arrival, service in zip(facts["arrivals"], facts["services"], strict=True):
            at = free.index(min(free))
            start = max(arrival, free[at])
            free[at] = start + service
            waits.append(start - arrival)
            ends.append(start + service)
            steps.append(f"arrives {arrival}, begins {start}, leaves {start + service}")
        found = {"end": max(ends), "waiting": sum(waits), "longest": max(waits)}[facts["asked"]]
        return Solution(answer=str(found), steps="\n".join(steps), effort=len(waits) * facts["counters"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Customers in a row, and what is asked."""
        n = facts["counters"]
        pairs = ", ".join(f"({a}, {s})" for a, s in zip(facts["arrivals"], facts["services"], strict=True))
        question = {
            "end": "In which minute does the last of them leave?",
            "waiting": "How many minutes do all of them wait in line together?",
            "longest": "How many minutes does the customer wait who waits longest in line?",
        }[facts["asked"]]
        return {"counters": "one counter" if n == 1 else f"{n} counters", "customers": pairs, "question": question}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory(Counted):
    """The stock of a shop that orders again when it runs low. The level is the number of days, 3 to 25.

    >>> Inventory().solve({"stock": 10, "low": 5, "order": 8, "delay": 1, "demand": [6, 2, 9], "asked": "stock"}).answer
    '1'
    """

    name: str = "simulation/inventory"

    templates: ClassVar[tuple[str, ...]] = (
        "A shop has {stock} pieces in stock. On each day first what was ordered for that day arrives, then customers buy; what "
        "is not "
        "there they do not get. In the evening, if the stock is at most {low} and no order is on its way, {order} pieces are "
        "ordered, "
        "which arrive {delay}. Customers want, day by day: {demand}. {question}",
        "Demand of the next days: {demand}. A shop starts with {stock} pieces. Each day goes like this: a delivery that is due "
        "is added; "
        "then as much of the demand as possible is sold, and the rest is lost; then, if no more than {low} pieces are left and "
        "nothing "
        "is on order, {order} pieces are ordered, to arrive {delay}. {question}",
        "Follow the stock of a shop, {stock} pieces at first. In the morning due deliveries come in, in the day customers ask "
        "for "
        "{demand} pieces (one number for each day) and buy what there is, in the evening {order} pieces are ordered if at most "
        "{low} "
        "are left and no order is open. Orders arrive {delay}. {question}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A demand that runs the stock down."""
        order = rng.randint(8, 25)
        return {
            "stock": rng.randint(8, 30),
            "low": rng.randint(3, 9),
            "order": order,
            "delay": rng.randint(1, 3),
            "demand": [rng.randint(0, order // 2 + 3) for _ in range((3, 5, 8, 12, 18, 25)[level - 1])],
            "asked": rng.choice(("stock", "stock", "lost", "sold")),
        }

    def solve(self, facts: Facts) -> Solution:
        """Day by day."""
        stock, due, lost, sold, steps = facts["stock"], 0, 0, 0, list[str]()
        for day, demand in enumerate(facts["demand"], 1):
            if due == day:
                stock, due = stock + facts["order"], 0
            got = min(stock, demand)
            stock, sold, lost = stock - got, sold + got, lost + demand - got
            if stock <= facts["low"] and not due:
                due = day + facts["delay"]
            steps.append(f"day {day}: sold {got}, stock {stock}{f', delivery on day {due}' if due else ''}")
        found = {"stock": stock, "lost": lost, "sold": sold}[facts["asked"]]
        return Solution(answer=str(found), steps="\n".join(steps), effort=3 * len(steps))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Days in a row, and what is asked."""
        delay = {1: "on the next day", 2: "on the day after the next", 3: "three days later"}[facts["delay"]]
        question = {
            "stock": "How many pieces are in stock in the evening of the last day?",
            "lost": "How many pieces were wanted in all and could not be sold?",
            "sold": "How many pieces were sold in all?",
        }[facts["asked"]]
        return {
            "stock": str(facts["stock"]),
            "low": str(facts["low"]),
            "order": str(facts["order"]),
            "delay": delay,
            "demand": ", ".join(map(str, facts["demand"])),
            "question": question,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Elevator(Simulated):
    """In which order an elevator stops that always goes to the nearest call. The level is the number of calls, 3 to 13.

    >>> Elevator().solve({"floor": 5, "calls": [9, 2, 6], "top": 10}).answer
    '6, 9, 2'
    """

    name: str = "simulation/elevator"

    templates: ClassVar[tuple[str, ...]] = (
        "An elevator at floor {floor} of a house with floors 0 to {top} has been called to the floors {calls}. It always goes "
        "next to "
        "the nearest floor that still waits, and to the lower one if two are equally near. In which order does it stop? Give the "
        "floors separated by commas.",
        "Floors {calls} wait for an elevator, which is now at floor {floor} (floors go from 0 to {top}). Each time it serves the "
        "closest waiting floor; of two at the same distance the lower. List the floors in the order of its stops, with commas "
        "between.",
        "From floor {floor} an elevator serves calls from {calls}, nearest first, and in case of equal distance the lower "
        "floor first, "
        "each time seen from where it is then; the house has floors 0 to {top}. Write down its stops in order, separated by "
        "commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Different floors."""
        top = 10 + 6 * level
        floors = rng.sample(range(top + 1), 2 * level + 2)
        return {"floor": floors[0], "calls": floors[1:], "top": top}

    def solve(self, facts: Facts) -> Solution:
        """The nearest, again and again."""
        at, left, found, effort = facts["floor"], list(facts["calls"]), list[int](), 0
        while left:
            effort += len(left)
            at = min(left, key=lambda floor: (abs(floor - at), floor))
            left.remove(at)
            found.append(at)
        stops = [str(f) for f in found]
        return Solution(answer=", ".join(stops), gold=stops, steps=f"It begins at floor {facts['floor']}.", effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Calls in a row."""
        return {"floor": str(facts["floor"]), "top": str(facts["top"]), "calls": ", ".join(map(str, facts["calls"]))}

    def verifier(self, form: Form) -> Verifier:
        """The stops, in order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lights(Counted):
    """For how many seconds several traffic lights are green together. The level is lights, 1 to 3, and seconds, 30 to 400.

    >>> Lights().solve({"lights": [[3, 1, 2, 0], [2, 0, 2, 1]], "span": 12}).answer
    '3'
    """

    name: str = "simulation/lights"

    templates: ClassVar[tuple[str, ...]] = (
        "{lights} Count the seconds from second 0 to second {last}, both included, in which {all} green.",
        "In how many of the seconds 0 to {last} (both included) {are} green? {lights}",
        "{lights} Of the {span} seconds that begin with second 0, how many are there in which {all} green?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Lights with times of green, yellow and red, and the second of the cycle with which each begins."""
        lights: list[list[int]] = []
        for _ in range((1, 1, 2, 2, 3, 3)[level - 1]):
            times = [rng.randint(4, 20), rng.randint(1, 4), rng.randint(4, 15)]
            lights.append([*times, rng.randrange(sum(times))])
        return {"lights": lights, "span": (25, 50, 70, 120, 180, 300)[level - 1] + rng.randint(0, 40)}

    def solve(self, facts: Facts) -> Solution:
        """Second by second."""
        lights, span = facts["lights"], facts["span"]
        found = sum(all((t + at) % (g + y + r) < g for g, y, r, at in lights) for t in range(span))
        cycles = ", ".join(str(g + y + r) for g, y, r, _ in lights)
        return Solution(answer=str(found), steps=f"The cycles are {cycles} seconds long.", effort=span * len(lights))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Each light in a sentence."""
        many = len(facts["lights"]) > 1
        said: list[str] = []
        for letter, (g, y, r, at) in zip("ABC", facts["lights"], strict=False):
            state, rest = ("green", g - at) if at < g else ("yellow", g + y - at) if at < g + y else ("red", g + y + r - at)
            said.append(
                f"Traffic light {letter} is green for {g} seconds, then yellow for {y}, then red for {r}, and so on in turn; "
                f"at second "
                f"0 it is {state} and stays so for {rest} more second{'' if rest == 1 else 's'}, second 0 included."
            )
        return {
            "lights": " ".join(said),
            "span": str(facts["span"]),
            "last": str(facts["span"] - 1),
            "all": "all of them are" if many else "it is",
            "are": "are all these traffic lights" if many else "is this traffic light",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMachine(Simulated):
    """What a machine writes that goes from state to state with each letter. The level is its states, 2 to 6, and letters.

    >>> table = {"Pa": ["Q", "x"], "Pb": ["P", "y"], "Qa": ["P", "y"], "Qb": ["Q", "x"]}
    >>> StateMachine().solve({"start": "P", "word": "aab", "table": table}).answer
    'xyy'
    """

    name: str = "simulation/machine"

    templates: ClassVar[tuple[str, ...]] = (
        "A machine begins in state {start} and reads the word {word} letter by letter. With each letter it goes to another "
        "state, or "
        "stays, and writes a letter:\n{table}\nWhat has it written in the end?",
        "{table}\nThe machine with these rules starts in state {start}. Give what it writes while it reads {word}.",
        "Feed the word {word} to this machine, which is in state {start} at first. Which word does it write?\n{table}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A table with every state and letter."""
        states, letters = "PQRSTU"[: 1 + level], "ab" if level < 3 else "abc"
        table = {f"{s}{c}": [rng.choice(states), rng.choice("xyz")] for s in states for c in letters}
        word = "".join(rng.choice(letters) for _ in range((4, 7, 10, 14, 19, 24)[level - 1] + rng.randint(0, 2)))
        return {"start": rng.choice(states), "word": word, "table": table}

    def solve(self, facts: Facts) -> Solution:
        """Letter by letter."""
        state, written, steps = facts["start"], "", list[str]()
        for letter in facts["word"]:
            before = state
            state, output = facts["table"][state + letter]
            written += output
            steps.append(f"{before} reads {letter}, writes {output}, goes to {state}")
        return Solution(answer=written, steps="\n".join(steps), effort=len(steps))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The table, one rule to a line."""
        rules = [
            f"in state {key[0]} it reads {key[1]}, writes {output} and goes to state {state}"
            for key, (state, output) in sorted(facts["table"].items())
        ]
        return {"start": facts["start"], "word": facts["word"], "table": "\n".join(rules)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardGame(Simulated):
    """Where two to four players stand on a board of snakes and ladders after given rolls. The level is players and rounds.

    >>> facts = {"last": 20, "jumps": {"5": 12, "9": 3}, "rolls": [[5, 2], [3, 6]]}
    >>> BoardGame().solve(facts).answer
    '15, 8'
    """

    name: str = "simulation/board"

    templates: ClassVar[tuple[str, ...]] = (
        "{players} play on a board with fields 0 to {last} and begin on field 0. Each turn moves a player forward by the "
        "number rolled; "
        "one who comes to a field with a jump goes on to where it leads, once ({jumps}); one who would go beyond {last} stays "
        "where "
        "they are. Two may stand on one field. The rolls, round by round, in the order of the players: {rolls}. On which "
        "fields do "
        "they stand in the end? Give the fields in the order of the players, separated by commas.",
        "Snakes and ladders on the fields 0 to {last}: {jumps}, for whoever ends a move on the first field of a pair, and no "
        "further "
        "jump follows it. {players} start on 0 and roll, round after round: {rolls} (in each round the players in their "
        "order). A roll "
        "that would lead beyond {last} is lost. Players do not disturb each other. Where is each of them in the end, in order, "
        "with "
        "commas between?",
        "Rolls of {these}, round by round: {rolls}. All begin on field 0 of a board that ends with {last}; a roll that leads "
        "further is not moved. From some fields one goes straight to another, at most once a turn: {jumps}. A field may hold "
        "several "
        "players. List the fields of the players at the end in their order, separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Jumps up and down, and rolls."""
        players, rounds = (2, 2, 3, 3, 4, 4)[level - 1], 2 * level
        last = 7 * rounds // 2 + 5
        fields = rng.sample(range(1, last), min(last - 1, 4 + 2 * level) // 2 * 2)
        jumps = {str(a): b for a, b in zip(fields[::2], fields[1::2], strict=True)}
        return {"last": last, "jumps": jumps, "rolls": [[rng.randint(1, 6) for _ in range(players)] for _ in range(rounds)]}

    def solve(self, facts: Facts) -> Solution:
        """Turn by turn."""
        places = [0] * len(facts["rolls"][0])
        steps: list[str] = []
        for number, rolls in enumerate(facts["rolls"], 1):
            for i, roll in enumerate(rolls):
                if places[i] + roll <= facts["last"]:
                    places[i] = facts["jumps"].get(str(places[i] + roll), places[i] + roll)
            steps.append(f"after round {number}: {', '.join(map(str, places))}")
        found = [str(p) for p in places]
        return Solution(answer=", ".join(found), gold=found, steps="\n".join(steps), effort=len(places) * len(steps))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Jumps and rolls in a row."""
        jumps = ", ".join(f"from {a} to {b}" for a, b in sorted(facts["jumps"].items(), key=lambda pair: int(pair[0])))
        rolls = "; ".join(", ".join(map(str, r)) for r in facts["rolls"])
        players = {2: "Two", 3: "Three", 4: "Four"}[len(facts["rolls"][0])] + " players"
        return {"players": players, "these": players.lower(), "last": str(facts["last"]), "jumps": jumps, "rolls": rolls}

    def verifier(self, form: Form) -> Verifier:
        """The fields, in order."""
        return ListMatch(where=form.place)

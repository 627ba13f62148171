"""Sites where something is ordered: a shop, rooms by the hour."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from assay.tasks.turns import list_names
from assay_tasks.web.browser import Browser, Site
from assay_tasks.web.page import Button, Cell, Field, Form, Link, Page, Part, Table, Text
from assay_tasks.web.visit import Intent, WebProblem

__all__ = ["Booking", "Shop"]

_GOODS = {
    "Cups": ("tea cup", "espresso cup", "travel cup", "soup cup"),
    "Lamps": ("desk lamp", "floor lamp", "night lamp", "wall lamp"),
    "Bags": ("school bag", "tote bag", "gym bag", "laptop bag"),
    "Chairs": ("garden chair", "desk chair", "kitchen chair", "high chair"),
    "Books": ("cook book", "song book", "guest book", "sketch book"),
    "Toys": ("toy train", "toy boat", "toy robot", "toy drum"),
}
_COLOURS = ("red", "blue", "green", "black", "white", "yellow")
_SHIPPING = ("Post", "Courier", "Pick-up")
_BUYERS = ("Ann Lee", "Bo Diaz", "Cleo Marsh", "Dan Novak", "Eva Stone", "Finn Okafor", "Gita Rao")


class _ShopSite(Site):
    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        items, kind, last = self.data["items"], path.split("/")[1], path.rpartition("/")[2]
        basket = Link(f"Basket ({len(self.data['basket'])})", "/basket")
        categories = list(dict.fromkeys(item["category"] for item in items))
        home = Link("Home", "/")
        if path == "/":
            links = tuple(Link(category, f"/kind/{i}") for i, category in enumerate(categories))
            return Page("Shop", (Text("Shop", heading=True), *links, basket))
        if kind == "basket":
            return self._basket(home)
        if kind == "checkout":
            fields = (
                Field("text", "name", "Name"),
                Field("radio", "shipping", "Shipping", _SHIPPING[0], _SHIPPING),
                Button("Order"),
            )
            return Page("Check out", (Text("Check out", heading=True), Form("/order", fields), basket))
        if kind == "thanks":
            return Page("Thank you", (Text("Your order was placed."), home))
        if not last.isdigit() or int(last) >= len({"kind": categories, "item": items}.get(kind, ())):
            return None
        if kind == "kind":
            rows = tuple(
                (Link(item["name"], f"/item/{i}"), item["price"])
                for i, item in enumerate(items)
                if item["category"] == categories[int(last)]
            )
            return Page(
                categories[int(last)], (Text(categories[int(last)], heading=True), Table(("item", "price"), rows), home, basket)
            )
        item = items[int(last)]
        choice = (Field("select", "colour", "Colour", item["colours"][0], tuple(item["colours"])),) if item["colours"] else ()
        form = Form(f"/add/{last}", (*choice, Field("text", "count", "Pieces", "1"), Button("Add to basket")))
        return Page(item["name"], (Text(item["name"], heading=True), Text(f"Price: {item['price']}"), form, home, basket))

    def _basket(self, home: Link) -> Page:
        rows = tuple(
            (line["item"], line["colour"], str(line["count"]), Form(f"/remove/{i}", (Button("Remove"),)))
            for i, line in enumerate(self.data["basket"])
        )
        if not rows:
            return Page("Basket", (Text("Basket", heading=True), Text("The basket is empty."), home))
        table = Table(("item", "colour", "pieces", ""), rows)
        return Page("Basket", (Text("Basket", heading=True), table, Link("Check out", "/checkout"), home))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        number = path.rpartition("/")[2]
        if path == "/order":
            if not self.data["basket"] or not sent["name"]:
                return "/basket"
            self.data["orders"].append({"lines": self.data["basket"], "name": sent["name"], "shipping": sent.get("shipping", "")})
            self.data["basket"] = []
            return "/thanks"
        if path.startswith("/remove/"):
            del self.data["basket"][int(number)]
        elif sent["count"].isdigit() and 0 < int(sent["count"]) < 100:
            item = self.data["items"][int(number)]
            self.data["basket"].append({"item": item["name"], "colour": sent.get("colour", ""), "count": int(sent["count"])})
        else:
            return f"/item/{number}"
        return "/basket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop(WebProblem):
    """Buy things in a shop. Levels have 1 to 3 things, with colours and numbers of pieces, and more to choose from.

    From level 4 on one of them is the cheapest or dearest of its kind; from level 6 on something that was left in the basket must
    go first.
    """

    name: str = "web/shop"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Goods of several kinds with different prices."""
        kinds = rng.sample(list(_GOODS), min(6, 2 + level // 2))
        prices = iter(rng.sample(range(105, 9900, 5), 4 * len(kinds)))
        items: list[dict[str, Any]] = []
        for category in kinds:
            for name in rng.sample(_GOODS[category], min(4, 2 + level // 3)):
                colours = rng.sample(_COLOURS, 3) if level > 1 and rng.random() < 0.7 else []
                items.append({"name": name, "category": category, "price": f"{next(prices) / 100:.2f}", "colours": colours})
        rng.shuffle(items)
        lines: list[dict[str, Any]] = []
        for item in rng.sample(items, 1 + (level >= 3) + (level >= 7)):
            colour = rng.choice(item["colours"]) if item["colours"] else ""
            lines.append(
                {"item": item["name"], "category": item["category"], "colour": colour, "count": rng.randint(1, 6), "most": ""}
            )
        if level >= 4:
            lines[0] |= self._extreme(items, lines, rng)
        left = rng.choice([item for item in items if item["name"] not in [line["item"] for line in lines]])
        basket = (
            [{"item": left["name"], "colour": (left["colours"] or [""])[0], "count": rng.randint(1, 3)}] if level >= 6 else []
        )
        data: dict[str, Any] = {"items": items, "basket": basket, "orders": []}
        asked = {"lines": lines, "name": rng.choice(_BUYERS), "shipping": rng.choice(_SHIPPING), "remove": bool(basket)}
        return data, asked

    def _extreme(self, items: list[dict[str, Any]], lines: list[dict[str, Any]], rng: Random) -> dict[str, Any]:
        """The cheapest or dearest of a kind that no other line has; its name is not told, and no colour is asked of it."""
        most, others = rng.choice(("cheapest", "dearest")), {line["category"] for line in lines[1:]}
        category = rng.choice(sorted({item["category"] for item in items} - others))
        found = self._sought(items, category, most)
        return {
            "item": "",
            "category": category,
            "most": most,
            "colour": rng.choice(found["colours"]) if found["colours"] else "",
        }

    def _sought(self, items: list[dict[str, Any]], category: str, most: str) -> dict[str, Any]:
        mine = sorted((item for item in items if item["category"] == category), key=lambda item: float(item["price"]))
        return mine[0 if most == "cheapest" else -1]

    def site(self, data: Mapping[str, Any]) -> Site:
        """The shop."""
        return _ShopSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """One order, and an empty basket."""
        lines: list[dict[str, Any]] = []
        for line in asked["lines"]:
            name = self._sought(data["items"], line["category"], line["most"])["name"] if line["most"] else line["item"]
            lines.append({"item": name, "colour": line["colour"], "count": line["count"]})
        data["orders"].append({"lines": lines, "name": asked["name"], "shipping": asked["shipping"]})
        data["basket"] = []

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Empties the basket, and buys one thing after the other."""
        if asked["remove"]:
            yield Intent("click", next(e.label for e in browser.elements if e.label.startswith("Basket")))
            yield Intent("click", "Remove")
            yield Intent("click", "Home")
        for at, line in enumerate(asked["lines"]):
            if at:
                yield Intent("click", "Home")
            yield Intent("click", line["category"])
            name = line["item"]
            if line["most"]:
                rows = next(part for part in browser.page.parts if isinstance(part, Table)).rows
                priced = sorted((float(str(price)), cell.text) for cell, price in rows if isinstance(cell, Link))
                name = priced[0 if line["most"] == "cheapest" else -1][1]
            yield Intent("click", name)
            if line["colour"]:
                yield Intent("select", "Colour", line["colour"])
            if line["count"] > 1:
                yield Intent("type", "Pieces", str(line["count"]))
            yield Intent("click", "Add to basket")
        yield Intent("click", "Check out")
        yield Intent("type", "Name", asked["name"])
        if asked["shipping"] != _SHIPPING[0]:
            yield Intent("click", "Shipping", asked["shipping"])
        yield Intent("click", "Order")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """What to buy, in its order, for whom and how."""
        said: list[str] = []
        for line in asked["lines"]:
            count, colour = (
                f"{line['count']} piece{'s' if line['count'] > 1 else ''} of",
                f" in {line['colour']}" if line["colour"] else "",
            )
            what = (
                f"the {line['most']} item among {line['category']}" if line["most"] else f'"{line["item"]}" ({line["category"]})'
            )
            said.append(f"{count} {what}{colour}")
        what, name, ship = list_names(said), asked["name"], asked["shipping"]
        order = ", added to the basket in this order" if len(said) > 1 else ""
        old = " What is in the basket now is not wanted: remove it." if asked["remove"] else ""
        return (
            f"Order {what}{order}, for {name}, with shipping by {ship}. It shall be a single order.{old}",
            f"Buy {what} in this shop{order}. The name is {name}, the shipping {ship}; place one order.{old}",
            f"{name} wants {what}{order}. Place one order for that, shipping {ship}.{old}",
        )


_HOURS = tuple(f"{hour:02d}:00" for hour in range(8, 18))
_ROOMS = ("Oak", "Pine", "Elm")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_YEAR = 2031


class _RoomSite(Site):
    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        part = path.split("/")[1:]
        if path == "/":
            return self._month(self.data["month"])
        if part[0] == "month" and len(part) == 2 and part[1].isdigit() and 1 <= int(part[1]) <= 12:
            return self._month(int(part[1]))
        if part[0] == "day" and len(part) == 3:
            return self._day(part[1], part[2])
        if part[0] == "book" and len(part) == 5:
            form = Form(f"/book/{'/'.join(part[1:])}", (Field("text", "name", "Name"), Button("Confirm")))
            head = Text(
                f"{_ROOMS[int(part[4])]} on {part[2]} {_MONTHS[int(part[1]) - 1]} at {_HOURS[int(part[3])]}", heading=True
            )
            return Page("Book", (head, form, Link("Day", f"/day/{part[1]}/{part[2]}")))
        return None

    def _month(self, month: int) -> Page:
        days = [Link(str(day), f"/day/{month}/{day}") for day in range(1, monthrange(_YEAR, month)[1] + 1)]
        weeks: list[tuple[Cell, ...]] = [tuple(days[at : at + 7]) for at in range(0, len(days), 7)]
        parts: list[Part] = [Text(f"{_MONTHS[month - 1]} {_YEAR}", heading=True)]
        parts += [Link("Previous month", f"/month/{month - 1}")] if month > 1 else []
        parts += [Link("Next month", f"/month/{month + 1}")] if month < 12 else []
        return Page("Calendar", (*parts, Table(("days",), tuple(weeks))))

    def _day(self, month: str, day: str) -> Page:
        taken = {(b["day"], b["hour"], b["room"]): b["name"] for b in self.data["bookings"]}
        rows: list[tuple[Cell, ...]] = []
        for at, hour in enumerate(_HOURS):
            cells: list[Cell] = [hour]
            for number, room in enumerate(_ROOMS):
                name = taken.get((f"{day} {_MONTHS[int(month) - 1]}", hour, room))
                free = Link(f"book {room}", f"/book/{month}/{day}/{at}/{number}")
                mine = Form(f"/cancel/{month}/{day}/{at}/{number}", (Button(f"Cancel {room} for {name}"),))
                cells.append(free if name is None else mine if name == self.data["user"] else "taken")
            rows.append(tuple(cells))
        head = Text(f"{day} {_MONTHS[int(month) - 1]} {_YEAR}", heading=True)
        return Page("Day", (head, Table(("hour", *_ROOMS), tuple(rows)), Link("Month", f"/month/{month}")))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        kind, month, day, hour, room = path.split("/")[1:]
        place = {"day": f"{day} {_MONTHS[int(month) - 1]}", "hour": _HOURS[int(hour)], "room": _ROOMS[int(room)]}
        others = [b for b in self.data["bookings"] if {**b, "name": ""} != {**place, "name": ""}]
        if kind == "cancel":
            self.data["bookings"] = others
        elif sent["name"] and len(others) == len(self.data["bookings"]):
            self.data["bookings"].append({**place, "name": sent["name"]})
        return f"/day/{month}/{day}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking(WebProblem):
    """Book a room by the hour in a calendar. The day is up to 5 months away, and rooms are taken more and more.

    From level 3 on the hour is the first free one of a room from some hour on; from level 6 on a booking of one's own on another
    day is cancelled before.
    """

    name: str = "web/booking"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Bookings of others, and of one's own."""
        month, away = rng.randint(1, 6), rng.randint(level // 3, 1 + level // 2)
        day, room, start = f"{rng.randint(1, 28)} {_MONTHS[month + away - 1]}", rng.choice(_ROOMS), rng.randrange(7)
        user, others = rng.sample(_BUYERS, 2)
        bookings = [
            {"day": day, "hour": hour, "room": other, "name": others}
            for hour in _HOURS
            for other in _ROOMS
            if rng.random() < 0.1 + 0.06 * level
        ]
        asked: dict[str, Any] = {
            "month": month,
            "day": day,
            "room": room,
            "from": _HOURS[start],
            "first": level >= 3,
            "cancel": {},
        }
        free = [hour for hour in _HOURS[start:] if {"day": day, "hour": hour, "room": room, "name": others} not in bookings]
        if not free:
            return self.pose(level, rng)
        asked |= {"name": user} | ({} if asked["first"] else {"from": free[0]})
        if level >= 6:
            mine = {
                "day": f"{rng.randint(1, 28)} {_MONTHS[month + away]}",
                "hour": rng.choice(_HOURS),
                "room": rng.choice(_ROOMS),
            }
            bookings.append({**mine, "name": user})
            asked["cancel"] = mine
        rng.shuffle(bookings)
        return {"month": month, "user": user, "bookings": bookings}, asked

    def site(self, data: Mapping[str, Any]) -> Site:
        """The calendar."""
        return _RoomSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """One booking more, and perhaps one less."""
        if asked["cancel"]:
            data["bookings"].remove({**asked["cancel"], "name": asked["name"]})
        taken = [b["hour"] for b in data["bookings"] if (b["day"], b["room"]) == (asked["day"], asked["room"])]
        hour = next(h for h in _HOURS if h >= asked["from"] and h not in taken)
        data["bookings"].append({"day": asked["day"], "hour": hour, "room": asked["room"], "name": asked["name"]})

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """To the month, to the day, and down its hours."""
        month = asked["month"]
        for place in [asked["cancel"], asked] if asked["cancel"] else [asked]:
            day, name = place["day"].split()
            ahead = _MONTHS.index(name) + 1 - month
            for _ in range(abs(ahead)):
                yield Intent("click", "Next month" if ahead > 0 else "Previous month")
            month += ahead
            yield Intent("click", day)
            if place is not asked:
                yield Intent("click", f"Cancel {place['room']} for {asked['name']}", row=place["hour"])
                yield Intent("click", "Month")
        label = f"book {asked['room']}"
        free = [e.row[0] for e in browser.elements if e.label == label and e.row[0] >= asked["from"]]
        yield Intent("click", label, row=free[0])
        yield Intent("type", "Name", asked["name"])
        yield Intent("click", "Confirm")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """Room, day, hour and name; and what is cancelled."""
        room, day, name = asked["room"], asked["day"], asked["name"]
        hour = f"at the first free hour from {asked['from']} on" if asked["first"] else f"at {asked['from']}"
        old = asked["cancel"]
        first = f"Cancel {name}'s booking of room {old['room']} on {old['day']} at {old['hour']}. Then book" if old else "Book"
        also = f" Before that, cancel {name}'s booking of {old['room']} on {old['day']} at {old['hour']}." if old else ""
        return (
            f"{first} room {room} on {day} {hour}, under the name {name}.",
            f"{name} needs room {room} on {day}, {hour}: book it under that name.{also}",
            f"Make a booking for {name}: room {room}, {day}, {hour}.{also}",
        )

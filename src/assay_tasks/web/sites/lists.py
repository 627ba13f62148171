"""Sites that are lists: things to do, a table to sort, folders with files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from assay.tasks.turns import list_names
from assay_tasks.web.browser import Browser, Site, address
from assay_tasks.web.page import Button, Field, Form, Link, Page, Table, Text
from assay_tasks.web.visit import Intent, WebProblem

__all__ = ["Folders", "Orders", "Tasks"]

_DO = ("Buy", "Fix", "Call", "Paint", "Sell", "Clean", "Order", "Pack", "Check", "Return")
_WHAT = ("milk", "the fence", "a taxi", "the door", "old books", "the windows", "paper", "the bags", "the oven", "a lamp")


class _TaskSite(Site):
    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        items, number = self.data["items"], path.rpartition("/")[2]
        if path.startswith("/edit/") and number.isdigit() and int(number) < len(items):
            form = Form(f"/edit/{number}", (Field("text", "text", "Entry", items[int(number)]["text"]), Button("Save")))
            return Page("Edit", (Text("Edit an entry", heading=True), form, Link("List", "/")))
        if path != "/":
            return None
        rows = tuple(
            (
                "done" if item["done"] else "open",
                item["text"],
                Link("Edit", f"/edit/{i}"),
                Form(
                    f"/item/{i}", (Button("Reopen" if item["done"] else "Finish", "do", "turn"), Button("Delete", "do", "delete"))
                ),
            )
            for i, item in enumerate(items)
        )
        new = Form("/add", (Field("text", "text", "New entry"), Button("Add")))
        return Page("To do", (Text("To do", heading=True), Table(("state", "entry", "", ""), rows), new))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        items = self.data["items"]
        if path == "/add":
            if sent["text"]:
                items.append({"text": sent["text"], "done": False})
            return "/"
        number = int(path.rpartition("/")[2])
        if path.startswith("/edit/"):
            items[number]["text"] = sent["text"]
        elif sent.get("do") == "delete":
            del items[number]
        else:
            items[number]["done"] = not items[number]["done"]
        return "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks(WebProblem):
    """Keep a list of things to do: add, finish, reopen, rename, delete. The level is the number of changes."""

    name: str = "web/list"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """A list, and changes of different entries."""
        pool = [f"{do} {what}" for do in _DO for what in _WHAT]
        texts = rng.sample(pool, level + 2)
        items = [{"text": text, "done": rng.random() < 0.4} for text in texts]
        fresh = iter(rng.sample([text for text in pool if text not in texts], level))
        changes: list[list[str]] = []
        for item in rng.sample(items, level):
            turn = "reopen" if item["done"] else "finish"
            kind = rng.choice((turn, turn, "rename", "delete", "add"))
            changes.append(
                [kind, next(fresh)] if kind == "add" else [kind, str(item["text"]), *([next(fresh)] * (kind == "rename"))]
            )
        return {"items": items}, {"changes": changes}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The list."""
        return _TaskSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """Change by change."""
        for kind, text, *new in asked["changes"]:
            if kind == "add":
                data["items"].append({"text": text, "done": False})
                continue
            at = next(i for i, item in enumerate(data["items"]) if item["text"] == text)
            if kind == "delete":
                del data["items"][at]
            elif kind == "rename":
                data["items"][at]["text"] = new[0]
            else:
                data["items"][at]["done"] = kind == "finish"

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Change by change, in the row of the entry."""
        for kind, text, *new in asked["changes"]:
            if kind == "add":
                yield Intent("type", "New entry", text)
                yield Intent("click", "Add")
            elif kind == "rename":
                yield Intent("click", "Edit", row=text)
                yield Intent("type", "Entry", new[0])
                yield Intent("click", "Save")
            else:
                yield Intent("click", kind.capitalize(), row=text)

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """The changes in their order."""
        said = [
            f'add an entry "{text}"' if kind == "add" else f'rename "{text}" to "{new[0]}"' if new else f'{kind} "{text}"'
            for kind, text, *new in asked["changes"]
        ]
        return (
            f"On the to-do list, {list_names(said)}, in this order.",
            f"Please keep my list of things to do up to date: {list_names(said)}. Keep to this order.",
            f"One after the other, {list_names(said)} on the to-do list, and leave its other entries alone.",
        )


_COLUMNS = ("Number", "Customer", "City", "Amount", "Day")
_CUSTOMERS = ("Abel", "Brown", "Costa", "Dietz", "Evans", "Fujita", "Garcia", "Hansen", "Ivanov", "Jones")
_CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Kyoto", "Porto", "Quito", "Delhi", "Perth")
_SHOWN = 6


class _OrderSite(Site):
    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        if path != "/":
            return None
        rows, by, way = list(self.data["rows"]), query.get("by", ""), query.get("way", "up")
        if by in _COLUMNS:
            at = _COLUMNS.index(by)
            rows.sort(key=lambda row: row[at], reverse=way == "down")
        number = query.get("page", "1")
        start = _SHOWN * (int(number) - 1) if number.isdigit() else 0
        sorting = {"by": by, "way": way} if by else {}
        head = tuple(Link(name, address("/", by=name, way="down" if by == name and way == "up" else "up")) for name in _COLUMNS)
        shown = tuple(
            (*map(str, row), Form("/archive", (Button("Archive", "number", str(row[0])),)))
            for row in rows[start : start + _SHOWN]
        )
        last = max(1, -(-len(rows) // _SHOWN))
        parts = [Text("Orders", heading=True), Table((*head, ""), shown), Text(f"Page {start // _SHOWN + 1} of {last}")]
        parts += [Link("Previous", address("/", **sorting, page=str(start // _SHOWN)))] if start else []
        parts += [Link("Next", address("/", **sorting, page=str(start // _SHOWN + 2)))] if start + _SHOWN < len(rows) else []
        return Page("Orders", tuple(parts))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        number = int(sent["number"])
        self.data["rows"] = [row for row in self.data["rows"] if row[0] != number]
        self.data["archived"].append(number)
        return "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders(WebProblem):
    """Archive the orders with the highest or lowest amounts, or the latest, of a table that can be sorted and has pages.

    Level n has 4 n orders; they are from n + 1 cities. From level 3 on only those of one city count, and from level 4 on
    2, 3 and 4 are to be archived.
    """

    name: str = "web/table"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Orders with different amounts and days."""
        count = 4 * level
        numbers, amounts = rng.sample(range(1000, 9999), count), rng.sample(range(10, 999), count)
        days = [f"2031-{n // 28 + 1:02d}-{n % 28 + 1:02d}" for n in rng.sample(range(336), count)]
        cities = _CITIES[: level + 1]
        rows = [[n, rng.choice(_CUSTOMERS), rng.choice(cities), a, d] for n, a, d in zip(numbers, amounts, days, strict=True)]
        by, way = rng.choice((("Amount", "down"), ("Amount", "up"), ("Day", "down"), ("Day", "up")))
        city = rng.choice(rows)[2] if level >= 3 else ""
        wanted = max(1, level // 2)
        matching = sum(row[2] == city for row in rows) if city else count
        return {"rows": rows, "archived": []}, {"by": by, "way": way, "city": city, "count": min(wanted, matching)}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The table."""
        return _OrderSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """The extreme ones, in their order."""
        at = _COLUMNS.index(asked["by"])
        rows = [row for row in data["rows"] if not asked["city"] or row[2] == asked["city"]]
        rows.sort(key=lambda row: row[at], reverse=asked["way"] == "down")
        data["archived"] = [row[0] for row in rows[: asked["count"]]]
        data["rows"] = [row for row in data["rows"] if row[0] not in data["archived"]]

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Sorts, and leafs until a row suits; after each one begins anew."""
        for _ in range(asked["count"]):
            yield Intent("click", asked["by"])
            if asked["way"] == "down":
                yield Intent("click", asked["by"])
            while True:
                table = next(part for part in browser.page.parts if isinstance(part, Table))
                rows = [row for row in table.rows if not asked["city"] or row[2] == asked["city"]]
                if rows:
                    yield Intent("click", "Archive", row=str(rows[0][0]))
                    break
                yield Intent("click", "Next")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """Which orders."""
        most = {
            ("Amount", "down"): "highest amount",
            ("Amount", "up"): "lowest amount",
            ("Day", "down"): "latest day",
            ("Day", "up"): "earliest day",
        }[asked["by"], asked["way"]]
        several = asked["count"] > 1
        most = f"{asked['count']} {most.replace('day', 'days').replace('amount', 'amounts')}" if several else most
        orders, of = "orders" if several else "order", f" of all orders from {asked['city']}" if asked["city"] else ""
        order = f", the {most.split()[1]} first" if several else ""
        return (
            f"Archive the {orders} with the {most}{of}{order}.",
            f"Find the {orders} with the {most}{of} and archive {'them' if several else 'it'}{order}.",
            f"Which {orders} {'have' if several else 'has'} the {most}{of}? Archive {'them' if several else 'it'}{order}.",
        )


_FOLDERS = ("work", "home", "photos", "letters", "music", "taxes", "school", "trips", "recipes", "plans")
_FILES = ("notes", "budget", "invoice", "map", "poem", "report", "cake", "speech", "garden", "ticket")
_ENDS = (".txt", ".pdf", ".md")


class _FolderSite(Site):
    """``files`` maps each folder's path to the sorted names of its files; ``""`` is the top."""

    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        at, folders = query.get("at", ""), self.data["files"]
        if at not in folders:
            return None
        head = Text(f"/{at}", heading=True)
        if path == "/move" and query.get("name") in folders[at]:
            options = tuple(f"/{folder}" for folder in sorted(folders))
            form = Form(
                address("/move", at=at, name=query["name"]), (Field("select", "to", "Folder", f"/{at}", options), Button("Move"))
            )
            return Page("Move", (head, Text(query["name"]), form, Link("Back", address("/", at=at))))
        if path == "/rename" and query.get("name") in folders[at]:
            form = Form(
                address("/rename", at=at, name=query["name"]), (Field("text", "to", "Name", query["name"]), Button("Rename"))
            )
            return Page("Rename", (head, form, Link("Back", address("/", at=at))))
        if path != "/":
            return None
        inner = sorted(f for f in folders if f and f.rpartition("/")[0] == at)
        links = [Link(folder.rpartition("/")[2] + "/", address("/", at=folder)) for folder in inner]
        links += [Link("Up", address("/", at=at.rpartition("/")[0]))] if at else []
        rows = tuple(
            (
                name,
                Link("Move", address("/move", at=at, name=name)),
                Link("Rename", address("/rename", at=at, name=name)),
                Form(address("/delete", at=at), (Button("Delete", "name", name),)),
            )
            for name in folders[at]
        )
        new = Form(address("/create", at=at), (Field("text", "name", "New folder"), Button("Create")))
        return Page("Files", (head, *links, *([Table(("file", "", "", ""), rows)] if rows else [Text("No files.")]), new))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        at, name, files = sent["at"], sent["name"], self.data["files"]
        if path == "/create":
            new = f"{at}/{name}".strip("/")
            if name.isalnum() and new not in files:
                files[new] = []
        elif path == "/delete":
            files[at].remove(name)
        elif path == "/move" and name not in files[sent["to"][1:]]:
            files[at].remove(name)
            files[sent["to"][1:]] = sorted([*files[sent["to"][1:]], name])
        elif path == "/rename" and sent["to"] and sent["to"] not in files[at]:
            files[at] = sorted([*(other for other in files[at] if other != name), sent["to"]])
        return address("/", at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders(WebProblem):
    """Move, rename and delete files and make folders, in a tree of folders. Levels have 1 to 4 changes in trees that grow."""

    name: str = "web/files"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """A tree, and changes of different files."""
        files: dict[str, list[str]] = {"": []}
        for folder in rng.sample(_FOLDERS, min(len(_FOLDERS), level + 2)):
            above = rng.choice([f for f in files if f.count("/") < 1 + level // 4])
            files[f"{above}/{folder}".strip("/")] = []
        names = [f"{name}{end}" for name in _FILES for end in _ENDS]
        rng.shuffle(names)
        for _ in range(3 + 2 * level):
            files[rng.choice(list(files))].append(names.pop())
        files = {folder: sorted(inside) for folder, inside in files.items()}
        places = [(folder, name) for folder, inside in files.items() for name in inside]
        changes: list[list[str]] = []
        for folder, name in rng.sample(places, (level + 1) // 2):
            kind = rng.choice(("move", "move", "rename", "delete", "create"))
            if kind == "create":
                free = sorted(
                    {*_FOLDERS} - {part for known in files for part in known.split("/")} - {c[2] for c in changes if c[0] == kind}
                )
                changes.append(["create", folder, rng.choice(free)] if free else ["delete", folder, name])
            else:
                more = {"move": [rng.choice([f for f in files if f != folder])], "rename": [names.pop()], "delete": []}
                changes.append([kind, folder, name, *more[kind]])
        return {"files": files}, {"changes": changes}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The folders."""
        return _FolderSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """Change by change."""
        files = data["files"]
        for kind, folder, name, *to in asked["changes"]:
            if kind == "create":
                files[f"{folder}/{name}".strip("/")] = []
                continue
            files[folder].remove(name)
            if kind == "move":
                files[to[0]] = sorted([*files[to[0]], name])
            elif kind == "rename":
                files[folder] = sorted([*files[folder], to[0]])

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Walks to each folder, up and down."""
        at = ""
        for kind, folder, name, *to in asked["changes"]:
            while at and not f"{folder}/".startswith(f"{at}/"):
                yield Intent("click", "Up")
                at = at.rpartition("/")[0]
            for part in filter(None, folder[len(at) :].split("/")):
                yield Intent("click", f"{part}/")
            at = folder
            if kind == "create":
                yield Intent("type", "New folder", name)
                yield Intent("click", "Create")
                continue
            yield Intent("click", kind.capitalize(), row=name)
            if kind == "move":
                yield Intent("select", "Folder", f"/{to[0]}")
                yield Intent("click", "Move")
            elif kind == "rename":
                yield Intent("type", "Name", to[0])
                yield Intent("click", "Rename")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """The changes with whole paths."""
        said: list[str] = []
        for kind, folder, name, *to in asked["changes"]:
            path = f"/{folder}/{name}" if folder else f"/{name}"
            ends = {"create": f"make a new folder {path}", "delete": f"delete {path}"}
            said.append(
                ends.get(kind) or (f"move {path} to the folder /{to[0]}" if kind == "move" else f"rename {path} to {to[0]}")
            )
        return (
            f"Tidy up the files: {list_names(said)}.",
            f"In the folders of this site, {list_names(said)}. Nothing else may change.",
            f"Please {list_names(said)}, and leave all other files where they are.",
        )

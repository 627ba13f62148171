"""Sites to read: mail, a library with a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from assay.tasks.turns import list_names
from assay_tasks.web.browser import Browser, Site, address
from assay_tasks.web.page import Button, Field, Form, Link, Page, Part, Table, Text
from assay_tasks.web.visit import Intent, WebProblem

__all__ = ["Library", "Mail"]

_SENDERS = ("Ann", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo", "Ida", "Jun")
_SUBJECTS = (
    "Lunch",
    "Invoice",
    "Holiday",
    "New roof",
    "Match on Sunday",
    "Bus times",
    "Garden party",
    "Lost keys",
    "Choir",
    "Dentist",
    "Reading list",
    "Old bicycle",
)
_LINES = (
    "Could you tell me by Friday?",
    "It costs more than I thought.",
    "The weather will be fine.",
    "Please bring a cake.",
    "I have found it at last.",
    "We meet at the station.",
    "There is a new plan.",
    "Nobody has answered yet.",
)
_REPLIES = ("Yes, gladly.", "Sorry, I cannot.", "See you there.", "Thank you!", "Let us talk tomorrow.", "I agree.")
_BOXES = ("Inbox", "Family", "Work", "Later")
_SHOWN = 8


class _MailSite(Site):
    """``mail`` is a list of messages with a number, of which each has a box; ``sent`` what was sent."""

    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        part = path.split("/")[1:]
        if path == "/" or (part[0] == "box" and len(part) == 2 and part[1] in _BOXES):
            return self._box("Inbox" if path == "/" else part[1], query.get("page", "1"))
        known = {str(message["number"]): message for message in self.data["mail"]}
        if len(part) != 2 or part[1] not in known:
            return None
        message, back = known[part[1]], Link("Message", f"/read/{part[1]}")
        head = Text(message["subject"], heading=True)
        if part[0] == "reply":
            return Page("Reply", (head, Form(f"/reply/{part[1]}", (Field("text", "text", "Text"), Button("Send"))), back))
        if part[0] == "forward":
            form = Form(f"/forward/{part[1]}", (Field("select", "to", "To", _SENDERS[0], _SENDERS), Button("Send")))
            return Page("Forward", (head, form, back))
        if part[0] != "read":
            return None
        told = (Text(f"From {message['from']}"), Text(message["text"]))
        links = (Link("Reply", f"/reply/{part[1]}"), Link("Forward", f"/forward/{part[1]}"))
        move = Form(f"/move/{part[1]}", (Field("select", "box", "Box", message["box"], _BOXES), Button("Move")))
        return Page("Message", (head, *told, *links, move, Form(f"/delete/{part[1]}", (Button("Delete"),)), Link("Inbox", "/")))

    def _box(self, box: str, number: str) -> Page:
        mine = [message for message in self.data["mail"] if message["box"] == box]
        start = _SHOWN * (int(number) - 1) if number.isdigit() and int(number) else 0
        rows = tuple((m["from"], Link(m["subject"], f"/read/{m['number']}")) for m in mine[start : start + _SHOWN])
        parts: list[Part] = [Text(box, heading=True), Table(("from", "subject"), rows) if rows else Text("No messages.")]
        parts += [Link("Newer", address(f"/box/{box}", page=str(start // _SHOWN)))] if start else []
        parts += [Link("Older", address(f"/box/{box}", page=str(start // _SHOWN + 2)))] if start + _SHOWN < len(mine) else []
        return Page(box, (*parts, *(Link(other, f"/box/{other}") for other in _BOXES if other != box)))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        kind, number = path.split("/")[1:]
        message = next(m for m in self.data["mail"] if m["number"] == int(number))
        if kind == "reply" and sent["text"]:
            self.data["sent"].append({"to": message["from"], "subject": message["subject"], "text": sent["text"]})
        elif kind == "forward":
            self.data["sent"].append({"to": sent["to"], "subject": message["subject"], "text": message["text"]})
        elif kind == "move":
            message["box"] = sent["box"]
        elif kind == "delete":
            self.data["mail"].remove(message)
        return "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail(WebProblem):
    """Reply to, forward, move and delete messages. Levels have 1 to 4 of these; the inbox has 3 messages more for each level.

    From level 3 on several messages have one subject or one sender.
    """

    name: str = "web/mail"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Messages of which no two have the same sender and subject."""
        count = 3 + 3 * level
        senders, subjects = (_SENDERS, _SUBJECTS) if level < 3 else (rng.sample(_SENDERS, 7), rng.sample(_SUBJECTS, 5))
        pairs = rng.sample([(sender, subject) for sender in senders for subject in subjects], count)
        mail = [
            {"number": 100 + i, "from": sender, "subject": subject, "text": " ".join(rng.sample(_LINES, 2)), "box": "Inbox"}
            for i, (sender, subject) in enumerate(pairs)
        ]
        jobs: list[dict[str, str]] = []
        for sender, subject in rng.sample(pairs, (level + 1) // 2):
            kind = rng.choice(("reply", "forward", "move", "delete"))
            more = {"reply": _REPLIES, "forward": [s for s in _SENDERS if s != sender], "move": _BOXES[1:], "delete": ("",)}[kind]
            jobs.append({"kind": kind, "from": sender, "subject": subject, "with": rng.choice(more)})
        return {"mail": mail, "sent": []}, {"jobs": jobs}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The mail."""
        return _MailSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """Job by job."""
        for job in asked["jobs"]:
            message = next(m for m in data["mail"] if (m["from"], m["subject"]) == (job["from"], job["subject"]))
            match job["kind"]:
                case "reply":
                    data["sent"].append({"to": job["from"], "subject": job["subject"], "text": job["with"]})
                case "forward":
                    data["sent"].append({"to": job["with"], "subject": job["subject"], "text": message["text"]})
                case "move":
                    message["box"] = job["with"]
                case _:
                    data["mail"].remove(message)

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Leafs to each message, and does with it what is asked."""
        for job in asked["jobs"]:
            while not any(e.label == job["subject"] and job["from"] in e.row for e in browser.elements):
                yield Intent("click", "Older")
            yield Intent("click", job["subject"], row=job["from"])
            match job["kind"]:
                case "reply":
                    steps = [Intent("click", "Reply"), Intent("type", "Text", job["with"]), Intent("click", "Send")]
                case "forward":
                    steps = [Intent("click", "Forward"), Intent("select", "To", job["with"]), Intent("click", "Send")]
                case "move":
                    steps = [Intent("select", "Box", job["with"]), Intent("click", "Move")]
                case _:
                    steps = [Intent("click", "Delete")]
            yield from steps

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """The jobs in their order."""
        said: list[str] = []
        for job in asked["jobs"]:
            which = f'the message "{job["subject"]}" from {job["from"]}'
            forms = {
                "reply": f'reply to {which} with "{job["with"]}"',
                "forward": f"forward {which} to {job['with']}",
                "move": f"move {which} to the box {job['with']}",
                "delete": f"delete {which}",
            }
            said.append(forms[job["kind"]])
        order = " Keep to this order." if len(said) > 1 else ""
        return (
            f"In the mail, {list_names(said)}.{order}",
            f"Please {list_names(said)}.{order} Leave all other messages alone.",
            f"There is mail to be dealt with: {list_names(said)}.{order}",
        )


_ADJECTIVES = ("Silent", "Green", "Last", "Broken", "Golden", "Hidden", "Long", "Winter")
_NOUNS = ("River", "Garden", "Letter", "Island", "Window", "Journey", "Winter", "House")
_AUTHORS = ("A. Moreau", "B. Lindqvist", "C. Adeyemi", "D. Tanaka", "E. Fischer", "F. Silva")


class _LibrarySite(Site):
    """``books`` have titles, authors and years; ``saved`` are the numbers of those that were put on the list."""

    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        books, number = self.data["books"], path.removeprefix("/book/")
        if path == "/":
            form = Form("/find", (Field("text", "words", "Words of the title"), Button("Search")))
            return Page("Library", (Text("Library", heading=True), form, Link("My list", "/list")))
        if path == "/list":
            rows = tuple((books[i]["title"], books[i]["author"], str(books[i]["year"])) for i in self.data["saved"])
            return Page(
                "My list", (Table(("title", "author", "year"), rows) if rows else Text("The list is empty."), Link("Home", "/"))
            )
        if path == "/found":
            return self._find_book(query.get("words", ""), query.get("page", "1"))
        if not path.startswith("/book/") or not number.isdigit() or int(number) >= len(books):
            return None
        book, saved = books[int(number)], int(number) in self.data["saved"]
        told = (
            Text(f"By {book['author']}, {book['year']}"),
            Form(f"/turn/{number}", (Button("Take off list" if saved else "Put on list"),)),
        )
        return Page(book["title"], (Text(book["title"], heading=True), *told, Link("Home", "/")))

    def _find_book(self, words: str, number: str) -> Page:
        wanted = words.casefold().split()
        hits = [
            (i, b) for i, b in enumerate(self.data["books"]) if wanted and all(w in b["title"].casefold().split() for w in wanted)
        ]
        start = 5 * (int(number) - 1) if number.isdigit() and int(number) else 0
        rows = tuple((Link(b["title"], f"/book/{i}"), b["author"], str(b["year"])) for i, b in hits[start : start + 5])
        parts: list[Part] = [Text(f"{len(hits)} found", heading=True)]
        parts += [Table(("title", "author", "year"), rows)] if rows else []
        parts += [Link("More", address("/found", words=words, page=str(start // 5 + 2)))] if start + 5 < len(hits) else []
        return Page("Found", (*parts, Link("Home", "/")))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        if path == "/find":
            return address("/found", words=sent["words"])
        number, saved = int(path.removeprefix("/turn/")), self.data["saved"]
        if number in saved:
            saved.remove(number)
        else:
            saved.append(number)
        return f"/book/{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Library(WebProblem):
    """Find books by a search and put them on a list. Levels have 1 to 3 books among 10 for each level.

    From level 2 on books of one title have several authors; from level 6 on one of the books is the oldest or latest of an
    author's with a word in its title.
    """

    name: str = "web/search"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Books of which no two have title and author in common, nor two of one author the year."""
        titles = [f"The {a} {n}" for a in _ADJECTIVES[: 3 + level] for n in _NOUNS[: 3 + level] if a != n]
        pairs = [(title, author) for title in titles for author in _AUTHORS]
        if level < 2:
            pairs = [(title, rng.choice(_AUTHORS)) for title in titles]
        chosen = rng.sample(pairs, min(len(pairs), 10 * level))
        years = rng.sample(range(1880, 2030), len(chosen))
        books = [{"title": t, "author": a, "year": y} for (t, a), y in zip(chosen, years, strict=True)]
        wanted = [
            {"title": t, "author": a, "most": "", "word": ""} for t, a in rng.sample(chosen, 1 + (level >= 3) + (level >= 7))
        ]
        if level >= 6:
            word, author = rng.choice(_NOUNS), rng.choice(_AUTHORS)
            wanted[0] = {"title": "", "author": author, "most": rng.choice(("oldest", "latest")), "word": word}
            if self._number(books, wanted[0]) in [None, *(self._number(books, other) for other in wanted[1:])]:
                return self.pose(level, rng)
        return {"books": books, "saved": []}, {"wanted": wanted}

    def _number(self, books: list[dict[str, Any]], one: Mapping[str, str]) -> int | None:
        """The place of a book that is asked for."""
        mine = [i for i, book in enumerate(books) if book["author"] == one["author"]]
        if not one["most"]:
            return next(i for i in mine if books[i]["title"] == one["title"])
        mine = sorted((i for i in mine if one["word"] in books[i]["title"].split()), key=lambda i: books[i]["year"])
        return None if not mine else mine[0 if one["most"] == "oldest" else -1]

    def site(self, data: Mapping[str, Any]) -> Site:
        """The library."""
        return _LibrarySite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """The list."""
        data["saved"] = [self._number(data["books"], one) for one in asked["wanted"]]

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Searches for each, and leafs through what is found."""
        for at, one in enumerate(asked["wanted"]):
            if at:
                yield Intent("click", "Home")
            words = one["word"] or one["title"]
            yield Intent("type", "Words of the title", words)
            yield Intent("click", "Search")
            seen: list[tuple[int, tuple[str, ...]]] = []
            pages = 1
            while True:
                rows = [e.row for e in browser.elements if len(e.row) == 3]
                seen += [(pages, row) for row in rows if row[1] == one["author"] and row[0] == (one["title"] or row[0])]
                if (seen and not one["most"]) or not any(e.label == "More" for e in browser.elements):
                    break
                yield Intent("click", "More")
                pages += 1
            seen.sort(key=lambda found: found[1][2], reverse=one["most"] == "latest")
            page, row = seen[0]
            for _ in range(pages - page):
                yield Intent("back")
            yield Intent("click", row[0], row=row[2])
            yield Intent("click", "Put on list")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """The books in their order."""
        said = [
            f'the {one["most"]} book by {one["author"]} with the word "{one["word"]}" in its title'
            if one["most"]
            else f'"{one["title"]}" by {one["author"]}'
            for one in asked["wanted"]
        ]
        books, order = list_names(said), ", in this order" if len(said) > 1 else ""
        return (
            f"Put {books} on my list{order}.",
            f"Find {books} in the library, and put {'them' if len(said) > 1 else 'it'} on the list{order}.",
            f"My reading list shall have {books}{order}, and nothing else.",
        )

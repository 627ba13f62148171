"""Sites that are forms: one form, several steps, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from assay.tasks.turns import list_names
from assay_tasks.web.browser import Browser, Site
from assay_tasks.web.page import Button, Field, Form, Link, Page, Text
from assay_tasks.web.visit import Intent, WebProblem

__all__ = ["FillForm", "Settings", "Wizard"]

_NAMES = ("Ann Lee", "Bo Diaz", "Cleo Marsh", "Dan Novak", "Eva Stone", "Finn Okafor", "Gita Rao", "Hugo Brandt", "Ida Moss")
_TEXTS: dict[str, tuple[str, ...]] = {
    "Full name": _NAMES,
    "City": ("Rome", "Oslo", "Lima", "Cairo", "Kyoto", "Porto", "Quito"),
    "Street": ("Mill Lane 4", "High Street 12", "Park Road 7", "Station Square 1", "Elm Grove 33"),
    "Phone": ("555-0101", "555-0147", "555-0188", "555-0123"),
    "Company": ("Northwind", "Bluebird", "Oakworks", "Tidewater"),
    "Comment": ("Please ring twice", "Second floor", "No nuts", "Back entrance", "After 6 pm"),
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "Country": ("France", "Norway", "Peru", "Japan", "Kenya", "Canada"),
    "Department": ("Sales", "Support", "Research", "Accounts"),
    "Language": ("English", "French", "German", "Spanish", "Hindi"),
    "Size": ("Small", "Medium", "Large"),
    "Meal": ("Fish", "Meat", "Vegetarian", "Vegan"),
    "Delivery": ("Post", "Courier", "Pick-up"),
    "Payment": ("Card", "Transfer", "Cash"),
    "Seat": ("Window", "Aisle", "Middle"),
}
_BOXES = ("Newsletter", "Gift wrap", "Call me back", "Invoice by mail", "Large print", "Student discount")


def _field(label: str, rng: Random) -> dict[str, Any]:
    """A field as a site stores it, with its value at first."""
    if label in _TEXTS:
        return {"kind": "text", "label": label, "options": [], "value": rng.choice(("", "", rng.choice(_TEXTS[label])))}
    if label in _BOXES:
        return {"kind": "checkbox", "label": label, "options": [], "value": rng.choice(("", "on"))}
    kind = rng.choice(("select", "radio"))
    return {"kind": kind, "label": label, "options": list(_CHOICES[label]), "value": _CHOICES[label][0]}


def _other(field: Mapping[str, Any], rng: Random) -> str:
    """A value that a field does not have yet."""
    if field["kind"] == "checkbox":
        return "" if field["value"] == "on" else "on"
    values = field["options"] or _TEXTS[field["label"]]
    return rng.choice([value for value in values if value != field["value"]])


def _field_of(field: Mapping[str, Any], value: str) -> Field:
    return Field(field["kind"], field["label"], field["label"], value, tuple(field["options"]))


def _intent(wish: Mapping[str, str]) -> Intent:
    """How a value gets into its field."""
    verb = {"text": "type", "select": "select"}.get(wish["kind"], "click")
    return Intent(verb, wish["label"], "" if wish["kind"] == "checkbox" else wish["value"])


def _wish_text(wish: Mapping[str, str]) -> str:
    if wish["kind"] == "checkbox":
        return f'tick "{wish["label"]}"' if wish["value"] else f'untick "{wish["label"]}"'
    return f'set "{wish["label"]}" to "{wish["value"]}"'


def _wishes(fields: list[dict[str, Any]], rng: Random) -> list[dict[str, str]]:
    return [{"kind": f["kind"], "label": f["label"], "value": _other(f, rng)} for f in fields]


def _fields(count: int, rng: Random) -> list[dict[str, Any]]:
    return [_field(label, rng) for label in rng.sample([*_TEXTS, *_CHOICES, *_BOXES], count)]


class _FormSite(Site):
    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        title = Text(self.data["title"], heading=True)
        if path == "/":
            fields = tuple(_field_of(field, field["value"]) for field in self.data["fields"])
            return Page(self.data["title"], (title, Form("/send", (*fields, Button("Send")))))
        return (
            Page("Sent", (title, Text("Thank you, your form was sent."), Link("Another form", "/"))) if path == "/sent" else None
        )

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        self.data["sent"].append({field["label"]: sent.get(field["label"], "") for field in self.data["fields"]})
        return "/sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FillForm(WebProblem):
    """Fill in a form as told and send it once. Level n asks for n + 1 fields, among others that stay as they are."""

    name: str = "web/form"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """A form with fields of all kinds."""
        fields = _fields(level + 1 + (level + 1) // 2, rng)
        title = rng.choice(("Registration", "Guest book", "Order form", "Visit request", "Membership"))
        wishes = _wishes(rng.sample(fields, level + 1), rng)
        return {"title": title, "fields": fields, "sent": []}, {"title": title, "wishes": wishes}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The form."""
        return _FormSite(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """One form sent."""
        wanted = {wish["label"]: wish["value"] for wish in asked["wishes"]}
        data["sent"] = [{field["label"]: wanted.get(field["label"], field["value"]) for field in data["fields"]}]

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Field by field."""
        yield from map(_intent, asked["wishes"])
        yield Intent("click", "Send")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """Each field with its value."""
        what, title = list_names([_wish_text(wish) for wish in asked["wishes"]]), asked["title"].lower().removesuffix(" form")
        return (
            f"Fill in the {title} form: {what}. Leave everything else as it is, and send the form once.",
            f"In the {title} form, {what}. Then send it. Other fields keep what they have.",
            f"Send one {title} form, in which you {what}, and change no other field.",
        )


class _Steps(Site):
    """Steps with fields; what is filled in stands in the draft until it is confirmed."""

    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        steps, draft = self.data["steps"], self.data["draft"]
        head, tail = Text(self.data["title"], heading=True), path.rpartition("/")[2]
        if path == "/":
            return Page("Welcome", (head, Text("This takes a few steps."), Link("Start", "/step/0")))
        if path == "/review":
            told = [Text(f"{label}: {value or 'no'}") for label, value in draft.items()]
            last = max(i for i, step in enumerate(steps) if self._applies(step))
            return Page("Review", (head, *told, Link("Back", f"/step/{last}"), Form("/confirm", (Button("Confirm"),))))
        if path == "/finished":
            return Page("Finished", (head, Text("Your application was received."), Link("Home", "/")))
        if not path.startswith("/step/") or not tail.isdigit() or int(tail) >= len(steps):
            return None
        step, before = steps[int(tail)], [i for i in range(int(tail)) if self._applies(steps[i])]
        fields = tuple(_field_of(field, draft.get(field["label"], field["value"])) for field in step["fields"])
        back = (Link("Back", f"/step/{before[-1]}"),) if before else ()
        return Page(step["title"], (head, Text(step["title"]), Form(f"/step/{tail}", (*fields, Button("Next"))), *back))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        if path == "/confirm":
            labels = [field["label"] for step in self.data["steps"] if self._applies(step) for field in step["fields"]]
            self.data["received"].append({label: self.data["draft"][label] for label in labels if label in self.data["draft"]})
            self.data["draft"] = {}
            return "/finished"
        at, steps = int(path.rpartition("/")[2]), self.data["steps"]
        self.data["draft"] |= {field["label"]: sent.get(field["label"], "") for field in steps[at]["fields"]}
        after = [i for i in range(at + 1, len(steps)) if self._applies(steps[i])]
        return f"/step/{after[0]}" if after else "/review"

    def _applies(self, step: Mapping[str, Any]) -> bool:
        return not step["when"] or self.data["draft"].get(step["when"][0]) == step["when"][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wizard(WebProblem):
    """Apply in several steps, review and confirm. Level n has n + 1 steps; from 3 on an answer decides which step is next."""

    name: str = "web/wizard"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Steps of one or two fields, and two of which one applies."""
        title = rng.choice(("Passport application", "Library card", "Insurance", "Club entry"))
        fields = _fields(2 * level + 2, rng)
        steps: list[dict[str, Any]] = []
        for at in range(level + 1):
            count = 1 + (at % 2 if level > 3 else 0)
            own, fields = fields[:count], fields[count:]
            steps.append({"title": f"Step {at + 1}", "fields": own, "when": []})
        if level >= 3:
            kind = {"kind": "radio", "label": "You are", "options": ["Private", "Business"], "value": "Private"}
            steps[1] = {"title": "Step 2", "fields": [kind], "when": []}
            for value, label in (("Private", "Birthday"), ("Business", "Tax number")):
                extra: dict[str, Any] = {"kind": "text", "label": label, "options": [], "value": ""}
                steps.insert(2, {"title": f"More about you ({value.lower()})", "fields": [extra], "when": ["You are", value]})
        data: dict[str, Any] = {"title": title, "steps": steps, "draft": {}, "received": []}
        wishes, who = list[dict[str, str]](), rng.choice(("Private", "Business"))
        for step in steps:
            for field in step["fields"]:
                if field["label"] == "You are":
                    wishes.append({"kind": "radio", "label": "You are", "value": who})
                elif step["when"] and step["when"][1] == who:
                    value = (
                        f"{rng.randint(10, 28)} May {rng.randint(1960, 2005)}"
                        if who == "Private"
                        else str(rng.randint(10**5, 10**6))
                    )
                    wishes.append({"kind": "text", "label": field["label"], "value": value})
                elif not step["when"]:
                    wishes += _wishes([field], rng)
        return data, {"title": title, "wishes": wishes}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The steps."""
        return _Steps(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """One application received, and nothing left in the draft."""
        data["received"] = [{wish["label"]: wish["value"] for wish in asked["wishes"]}]

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """On each page the fields that are there and asked for."""
        yield Intent("click", "Start")
        while not any(element.label == "Confirm" for element in browser.elements):
            here = {element.label: element.what for element in browser.elements if isinstance(element.what, Field)}
            for wish in asked["wishes"]:
                if wish["label"] in here and here[wish["label"]].value != wish["value"]:
                    yield _intent(wish)
            yield Intent("click", "Next")
        yield Intent("click", "Confirm")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """All answers."""
        what, title = list_names([_wish_text(wish) for wish in asked["wishes"]]), asked["title"].lower()
        return (
            f"Go through all steps of the {title} and confirm it once. On the way, {what}.",
            f"Complete the {title}: {what}. Do not forget to confirm it at the end.",
            f"Apply on this site ({title}). In its steps, {what}; then check and confirm.",
        )


class _Account(Site):
    """Settings on several pages, behind a log-in where there is a password."""

    signed_in = False

    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        if self.data["password"] and not self.signed_in:
            said = (Text("User or password is wrong."),) if path == "/wrong" else ()
            fields = (Field("text", "user", "User"), Field("text", "password", "Password"), Button("Sign in"))
            return Page("Sign in", (Text("Please sign in", heading=True), *said, Form("/enter", fields)))
        links = tuple(Link(tab, f"/tab/{i}") for i, tab in enumerate(self.data["tabs"]))
        if path == "/":
            return Page("Account", (Text("Your account", heading=True), *links))
        number = path.removeprefix("/tab/")
        if not path.startswith("/tab/") or not number.isdigit() or int(number) >= len(links):
            return None
        tab = links[int(number)].text
        fields = tuple(_field_of(field, field["value"]) for field in self.data["tabs"][tab])
        saved = (Text("Saved."),) if query.get("saved") else ()
        return Page(tab, (Text(tab, heading=True), *saved, Form(f"/save/{number}", (*fields, Button("Save"))), *links))

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        if path == "/enter":
            known = self.data["user"], self.data["password"]
            self.signed_in = (sent.get("user"), sent.get("password")) == known
            return "/" if self.signed_in else "/wrong"
        number = path.rpartition("/")[2]
        for field in list(self.data["tabs"].values())[int(number)]:
            field["value"] = sent.get(field["label"], "")
        return f"/tab/{number}?saved=yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(WebProblem):
    """Change settings that stand on several pages. The level is the number of changes; from level 3 on one signs in first."""

    name: str = "web/settings"

    def pose(self, level: int, rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Pages of two to four settings."""
        count = min(5, 2 + level // 2)
        tabs: dict[str, list[dict[str, Any]]] = {}
        fields = _fields(min(19, count * (2 + (level > 2) + (level > 6))), rng)
        for at, tab in enumerate(rng.sample(("Profile", "Messages", "Orders", "Privacy", "Display"), count)):
            tabs[tab] = fields[at::count]
        user, password = (rng.choice(_NAMES).split()[0].lower(), f"{rng.choice(('oak', 'fern', 'lily'))}{rng.randint(100, 999)}")
        data = {"user": user, "password": password if level >= 3 else "", "tabs": tabs}
        wishes = _wishes(rng.sample(fields, level), rng)
        return data, {"user": user, "password": data["password"], "wishes": wishes}

    def site(self, data: Mapping[str, Any]) -> Site:
        """The account."""
        return _Account(data)

    def change(self, data: dict[str, Any], asked: Mapping[str, Any]) -> None:
        """The settings."""
        wanted = {wish["label"]: wish["value"] for wish in asked["wishes"]}
        for field in (field for fields in data["tabs"].values() for field in fields):
            field["value"] = wanted.get(field["label"], field["value"])

    def plan(self, asked: Mapping[str, Any], browser: Browser) -> Iterator[Intent]:
        """Signs in, then looks at one page after the other until all is changed."""
        if asked["password"]:
            yield Intent("type", "User", asked["user"])
            yield Intent("type", "Password", asked["password"])
            yield Intent("click", "Sign in")
        left = list(asked["wishes"])
        for tab in [element.label for element in browser.elements if isinstance(element.what, Link)]:
            if not left:
                return
            yield Intent("click", tab)
            here = {element.label for element in browser.elements if isinstance(element.what, Field)}
            mine = [wish for wish in left if wish["label"] in here]
            left = [wish for wish in left if wish not in mine]
            yield from map(_intent, mine)
            if mine:
                yield Intent("click", "Save")

    def tasks(self, asked: Mapping[str, Any]) -> tuple[str, str, str]:
        """The changes, and how to sign in."""
        what = list_names([_wish_text(wish) for wish in asked["wishes"]])
        name = f'"{asked["user"]}" with the password "{asked["password"]}"'
        sign = f"Sign in as {name}. " if asked["password"] else ""
        behind = f" (user {name})" if asked["password"] else ""
        return (
            f"{sign}Change the settings of the account: {what}. Nothing else may change.",
            f"In this account's settings{behind}, {what}. Save each page that you change.",
            f"{sign}Somewhere in the settings, {what}, and save that; leave the rest alone.",
        )

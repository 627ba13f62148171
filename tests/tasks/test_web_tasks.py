"""Web sites to use: pages and the text browser by hand, oracles, side effects, and the same visits in a real browser."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.core.protocols import Environment
from assay.core.task import Task
from assay.testing import check_problem
from assay.testing.contracts import wait_for
from assay.verify import rollout_of
from assay_tasks.web import chromium
from assay_tasks.web.browser import HELP, NO_PAGE, Browser, Site, command_of
from assay_tasks.web.chromium import Chromium, close_chromium, find_chromium
from assay_tasks.web.family import web
from assay_tasks.web.page import Button, Element, Field, Form, Link, Page, Table, Text, html_of
from assay_tasks.web.sites.forms import FillForm
from assay_tasks.web.visit import Intent, WebProblem

WEB = web()
ARMS = {p.name: p for p in WEB.problems if isinstance(p, WebProblem)}


class Counter(Site):
    """A number that a form adds to."""

    def page(self, path: str, query: Mapping[str, str]) -> Page | None:
        if path == "/more":
            fields = (
                Field("text", "by", "By", "1"),
                Field("select", "sign", "Sign", "plus", ("plus", "minus")),
                Field("checkbox", "twice", "Twice"),
                Field("radio", "when", "When", "now", ("now", "later")),
                Button("Add", "do", "add"),
            )
            return Page("More", (Form("/add?kind=sum", fields), Link("Start", "/")))
        row = ("7 < 8", Link("More", "/more"), Form("/zero", (Button("Zero"),)))
        return Page("Count", (Text(str(self.data["count"]), heading=True), Table(("a", "", ""), (row,)))) if path == "/" else None

    def post(self, path: str, sent: Mapping[str, str]) -> str:
        self.data.setdefault("log", []).append([path, dict(sent)])
        return "/"


def test_the_text_browser_by_hand() -> None:
    site = Counter({"count": 3})
    browser = Browser(site)
    assert browser.shown == 'Page: Count\n# 3\na\n7 < 8 | [1] link "More" | [2] button "Zero"'
    assert browser.do("back", 0, "") == NO_PAGE and browser.do("click", 3, "") == "There is no element 3 on this page."
    assert browser.do("click", 1, "") == "" and browser.history == ["/", "/more"]
    assert browser.shown == (
        'Page: More\n[1] field "By" "1"\n[2] list "Sign" "plus", one of "plus", "minus"\n[3] checkbox "Twice" off\n'
        '[4] radio "When: now" on\n[5] radio "When: later" off\n[6] button "Add"\n[7] link "Start"'
    )
    for verb, number, words, why in (
        ("type", 2, "x", "Element 2 is no field."),
        ("select", 1, "x", "Element 1 is no list."),
        ("type", 7, "x", "Element 7 is no field."),
        ("select", 2, "times", 'The list has no option "times".'),
        ("type", 1, "5", ""),
        ("select", 2, "minus", ""),
        ("click", 3, "", ""),
        ("click", 5, "", ""),
        ("click", 1, "", ""),
    ):
        assert browser.do(verb, number, words) == why
    assert browser.shown.split("\n")[1:6] == [
        '[1] field "By" "5"',
        '[2] list "Sign" "minus", one of "plus", "minus"',
        '[3] checkbox "Twice" on',
        '[4] radio "When: now" off',
        '[5] radio "When: later" on',
    ]
    browser.do("click", 6, "")
    sent = {"kind": "sum", "by": "5", "sign": "minus", "twice": "on", "when": "later", "do": "add"}
    assert site.data["log"] == [["/add", sent]] and browser.history == ["/", "/more", "/"]
    browser.do("click", 2, "")
    assert site.data["log"][1:] == [["/zero", {}]] and browser.history == ["/", "/more", "/", "/"]
    browser.do("back", 0, "")
    browser.do("back", 0, "")
    assert '[1] field "By" "1"' in browser.shown and browser.history == ["/", "/more"]
    browser.do("click", 3, "")
    browser.do("click", 3, "")
    browser.do("type", 1, "")
    browser.do("click", 6, "")
    assert site.data["log"][2] == ["/add", {"kind": "sum", "by": "", "sign": "plus", "when": "now", "do": "add"}]
    assert site.get("/none").title == "Not found" and site.get("/more?x=1").title == "More"


def test_commands() -> None:
    said = {
        "click 3": ("click", 3, ""),
        "Click [12]": ("click", 12, ""),
        "type 4 a  b.": ("type", 4, "a  b."),
        "type 4": ("type", 4, ""),
        "select 2 New York": ("select", 2, "New York"),
        "back": ("back", 0, ""),
        " DONE. ": ("done", 0, ""),
        "select 2": None,
        "click": None,
        "click 3 now": None,
        "back 1": None,
        "done it": None,
        "click 1\nclick 2": None,
        "": None,
        "click 1000": None,
    }
    assert {text: command_of(text) for text in said} == said


def test_pages_as_html_say_what_they_hold() -> None:
    field = Field("text", 'a"b', "<L>", 'x" onload="y')
    html = html_of(Page("<t>", (Text("a & b"), Form("/p?q=1&r=2", (field, Button("Go>"))))))
    assert "<title>&lt;t&gt;</title>" in html and "<p>a &amp; b</p>" in html and 'action="/p?q=1&amp;r=2"' in html
    assert 'value="x&quot; onload=&quot;y"' in html and "<button>Go&gt;</button>" in html and 'name="a&quot;b"' in html


@pytest.mark.prove
@pytest.mark.parametrize("name", ARMS)
def test_levels_grow(name: str) -> None:
    check_problem(ARMS[name], n=8, growth=2.0)
    task = WEB.task(name, 1, "train", 0)
    assert len({ARMS[name].word(plain(task.world["facts"]), v) for v in range(3)}) == 3
    assert set(task.public) == {"prompt", "facts"} and "data" not in str(task.public["facts"])


def _turns(task: Task) -> list[str]:
    return [m.content for m in WEB.trace(task, 0.0, np.random.default_rng(0)) if m.role == "assistant"]


@pytest.mark.parametrize("name", ARMS)
def test_all_that_was_asked_and_nothing_that_was_not(name: str) -> None:
    judge = WEB.verifier()
    for level in ARMS[name].levels:
        task = WEB.task(name, level, "train", 1)
        turns = _turns(task)
        assert len(turns) <= task.world["facts"]["turns"] // 2
        assert judge(task, rollout_of(task, *turns)).primary == 1.0
        assert judge(task, rollout_of(task, *turns[:-1])).info["verdict"] == "unfinished"  # it was not said to be done
        assert judge(task, rollout_of(task, turns[-1])).info["verdict"] == "lost"  # nothing was done
        doubled = judge(task, rollout_of(task, *turns[:-2], turns[-1]))  # the last step is missing
        assert doubled.info["verdict"] == "lost" and doubled.components["progress"] < 1.0
        waiting = [*turns[:-1], *["I think."] * 80, turns[-1]]
        assert judge(task, rollout_of(task, *waiting)).primary == 0.0  # the turns are over


EXTRA = {
    "web/form": ["click {Another form}", "click {Send}"],
    "web/wizard": ["click {Home}", "click {Start}", "click {Next}"],
    "web/settings": ["click 1", "click {Save}"],
    "web/list": ["type {New entry} Buy stamps", "click {Add}"],
    "web/table": ["click {Archive}"],
    "web/files": ["type {New folder} zzz", "click {Create}"],
    "web/search": ["click {Take off list}"],
    "web/mail": ["click {Older}", "click 1", "click {Delete}"],
    "web/shop": ["click {Home}", "click 1", "click 1", "click {Add to basket}"],
    "web/booking": ["click {book Oak}", "type {Name} Zoe", "click {Confirm}"],
}
"""What nobody asked for: elements by the beginning of their labels."""


def _other(number: int, element: Element) -> str:
    """A command that changes a field; empty for what is none, or is so already."""
    what = element.what
    if not isinstance(what, Field) or what.value == element.option != "":
        return ""
    others = [option for option in what.options if option != what.value]
    ways = {"text": f"type {number} qqq", "select": f"select {number} {''.join(others[:1])}"}
    return ways.get(what.kind, f"click {number}")


@pytest.mark.parametrize("name", ARMS)
def test_side_effects_are_failures(name: str) -> None:
    task = WEB.task(name, 4, "train", 2)
    visit, done = ARMS[name].play_oracle(plain(task.world["facts"]))
    fresh = ARMS[name].match(plain(task.world["facts"]))
    for action in done[:-1]:
        fresh.act(action)
    if name == "web/settings":  # another value in some field, not the same once more
        fresh.act(f"click {next(i for i, e in enumerate(fresh.browser.elements, 1) if isinstance(e.what, Link))}")
        fresh.act(next(filter(None, (_other(i, e) for i, e in enumerate(fresh.browser.elements, 1)))))
        fresh.act(f"click {next(i for i, e in enumerate(fresh.browser.elements, 1) if e.label == 'Save')}")
    else:
        for line in EXTRA[name]:
            label = line.partition("{")[2].partition("}")[0]
            found = [i for i, e in enumerate(fresh.browser.elements, 1) if label and e.label.startswith(label)]
            fresh.act(line.replace(f"{{{label}}}", str(found[0])) if found else line)
    fresh.act("done")
    assert visit.won and fresh.over and not fresh.won


@given(st.sampled_from(sorted(ARMS)), st.integers(1, 8), st.integers(0, 2**32))
def test_no_command_breaks_a_visit(name: str, level: int, seed: int) -> None:
    rng = Random(seed)
    visit = ARMS[name].match(ARMS[name].draw(level, Random(seed)))
    while not visit.over:
        number = rng.randint(0, len(visit.browser.elements) + 1)
        words = rng.choice(("x", "Rome", "0", "-3", '&="<', "Ann Lee"))
        shown = visit.act(
            rng.choice((f"click {number}", f"click {number}", f"type {number} {words}", f"select {number} {words}", "back", "?"))
        )
        assert shown.count("Page: ") >= 1 and 0.0 <= visit.progress < 1.0
    assert not visit.won


def test_an_order_form_is_called_a_form_once() -> None:
    asked = {"title": "Order form", "wishes": [{"kind": "text", "label": "City", "value": "Ulm"}]}
    said = FillForm().tasks(asked)
    assert said[0].startswith('Fill in the order form: set "City" to "Ulm".') and not any("form form" in text for text in said)


def test_intents_find_what_they_mean() -> None:
    browser = Browser(Counter({"count": 0}))
    assert Intent("click", "More", row="7 < 8").command(browser.elements) == "click 1"
    assert Intent("click", "More", row="9").command(browser.elements) is None
    browser.do("click", 1, "")
    wanted = {
        Intent("type", "By", "9"): "type 1 9",
        Intent("select", "Sign", "minus"): "select 2 minus",
        Intent("done"): "done",
        Intent("click", "When", "later"): "click 5",
        Intent("click", "Twice"): "click 3",
        Intent("type", "Sign", "9"): None,
        Intent("click", "Add", nth=1): None,
    }
    assert {intent: intent.command(browser.elements) for intent in wanted} == wanted


def test_the_oracle_gets_over_slips() -> None:
    judge, won = WEB.verifier(), 0
    for i, name in enumerate([*ARMS] * 2):
        task = WEB.task(name, 1 + i % 4, "train", i)
        trace = WEB.trace(task, 0.2, np.random.default_rng(i))
        won += judge(task, rollout_of(task, *(m.content for m in trace if m.role == "assistant"))).primary == 1.0
    assert won >= 10


def test_environments_are_single_use_and_say_what_is_wrong() -> None:
    task = WEB.task("web/list", 1, "train", 0)
    environment = WEB.environment(task.public_view())
    assert environment is not None
    first, odd = _shown(environment, ["jump"])
    assert odd == f"{HELP}\n{first}" and first.startswith("Page: To do")
    with pytest.raises(DataError, match="single use"):
        wait_for(environment.start())


def test_a_browser_that_is_not_there_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="take 'text' or 'chromium'"):
        web(browser="firefox")
    monkeypatch.setattr(chromium, "find_chromium", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    with pytest.raises(ConfigError, match="chromium-headless-shell"):
        Chromium("t", Counter({}), 3)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="web"):
        web("chromium").environment(WEB.task("web/list", 1, "train", 0).public_view())


def _shown(environment: Environment, turns: list[str]) -> list[str]:
    async def play() -> list[str]:
        found = ["\n".join(m.content for m in (await environment.start()).messages)]
        for turn in turns:
            step = await environment.step(turn)
            found.append("\n".join(m.content for m in step.obs.messages))
            if step.done:
                break
        return found

    return wait_for(play())


def _missing() -> str:
    if importlib.util.find_spec("playwright") is None:
        return "needs playwright: pip install 'assay-rl[web]'"
    return "" if find_chromium() else "needs a Chromium: Debian's package chromium-headless-shell"


def _wander(name: str, seed: int) -> list[str]:
    """Commands that make no sense, but mostly can be carried out."""
    rng, visit = Random(seed), ARMS[name].match(ARMS[name].draw(3, Random(seed)))
    turns: list[str] = []
    for _ in range(visit.turns - 1):
        number = rng.randint(0, len(visit.browser.elements) + 1)
        what = visit.browser.elements[number - 1].what if 0 < number <= len(visit.browser.elements) else None
        commands = [f"click {number}", f'type {number} a <b> & "c"', "back", "so"]
        if isinstance(what, Field) and what.kind == "select":
            commands += [f"select {number} {rng.choice(what.options)}"] * 3
        turns.append(rng.choice([f"click {number}", *commands]))
        visit.act(turns[-1])
    return turns


@pytest.mark.prove
@pytest.mark.skipif(bool(_missing()), reason=_missing())
@pytest.mark.parametrize("name", ARMS)
def test_a_real_browser_shows_and_stores_the_same(name: str) -> None:
    """The oracle's commands and senseless ones: equal pages after each, and equal data in the end."""
    real = web("chromium")
    try:
        for level in (2, 7):
            task = WEB.task(name, level, "train", 3)
            turns, own, other = _turns(task), WEB.environment(task.public_view()), real.environment(task.public_view())
            assert own is not None and isinstance(other, Chromium)
            assert _shown(other, turns) == _shown(own, turns)
            goal = plain(task.world["facts"])["data"]
            ARMS[name].change(goal, plain(task.world["facts"])["asked"])
            assert other.site.data == goal
            with pytest.raises(DataError, match="single use"):
                wait_for(other.step("back"))
        for seed in (5, 6, 7):
            facts = ARMS[name].draw(3, Random(seed))
            visit, turns = ARMS[name].match(facts), _wander(name, seed)
            other = Chromium("wander", ARMS[name].site(facts["data"]), facts["turns"])
            assert _shown(other, turns) == [visit.opening(), *map(visit.act, turns)]
            assert other.site.data == visit.browser.site.data
    finally:
        close_chromium()

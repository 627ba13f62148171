"""The same visit in a real browser: pages as HTML from a server on this machine's loopback, read and used through Chromium."""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import os
import shutil
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from assay.core.errors import ConfigError, MissingExtraError
from assay.core.protocols import Obs, Step
from assay.core.task import Message
from assay_tasks.phases import SingleUse
from assay_tasks.web.browser import HELP, NO_PAGE, Site, command_of, no_element, no_option, other_kind, said_in
from assay_tasks.web.page import html_of

__all__ = ["Chromium", "close_chromium", "find_chromium"]

T = TypeVar("T")

_PROGRAMS = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
_USED = "a, button, select, input"
_PATIENCE = 20_000
"""Milliseconds that a page may take."""

_READ = """() => {
  let number = 0;
  const named = said => `[${++number}] ${said}`;
  const one = el => {
    const label = el.getAttribute('aria-label');
    if (el.tagName === 'A') return named(`link "${el.textContent}"`);
    if (el.tagName === 'BUTTON') return named(`button "${el.textContent}"`);
    if (el.tagName === 'SELECT') {
      const options = [...el.options].map(o => `"${o.text}"`).join(', ');
      return named(`list "${label}" "${el.selectedOptions[0].text}", one of ${options}`);
    }
    if (el.type === 'checkbox') return named(`checkbox "${label}" ${el.checked ? 'on' : 'off'}`);
    if (el.type === 'radio') return named(`radio "${label}: ${el.value}" ${el.checked ? 'on' : 'off'}`);
    return named(`field "${label}" "${el.value}"`);
  };
  const used = part => [...part.querySelectorAll('a, button, select, input')].map(one);
  const cell = part => part.querySelector('a, button') ? used(part).join(' ') : part.textContent;
  const row = part => {
    const cells = [...part.children].map(cell);
    while (cells.length && !cells.at(-1)) cells.pop();
    return cells.join(' | ');
  };
  const lines = ['Page: ' + document.title];
  for (const part of document.body.children) {
    if (part.tagName === 'H1') lines.push('# ' + part.textContent);
    else if (part.tagName === 'P') lines.push(part.textContent);
    else if (part.tagName === 'TABLE') lines.push(...[...part.rows].map(row));
    else lines.push(...used(part));
  }
  return lines.join('\\n');
}"""
"""Reads a page as `assay_tasks.web.page.text_of` writes it, from the document as it stands."""


def find_chromium() -> str | None:
    """The Chromium that is installed here; None where there is none."""
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


class _Desk:
    """One browser of this process, on an event loop in a thread of its own, so that rollouts on any loop may use it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.browser: Any = None
        self.playwright: Any = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, name="assay-chromium", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def context(self) -> Any:
        """A context of its own in the browser, which is started when first asked for; only on the desk's loop."""
        if self.browser is None:
            self.browser = asyncio.ensure_future(self._launch())
        return await (await self.browser).new_context(service_workers="block", accept_downloads=False)

    async def _launch(self) -> Any:
        self.playwright = await import_module("playwright.async_api").async_playwright().start()
        return await self.playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])

    async def close(self) -> None:
        if self.browser is not None:
            await (await self.browser).close()
            await self.playwright.stop()
            self.browser = None


_desk = _Desk()
os.register_at_fork(after_in_child=lambda: _desk.__init__())  # the browser is the parent's


def close_chromium() -> None:
    """Ends this process's browser; the next visit starts another."""
    if _desk.browser is not None:
        _desk.submit(_desk.close()).result(timeout=30)


atexit.register(close_chromium)


class _Server(ThreadingHTTPServer):
    """Serves a site to one browser; one request after the other."""

    daemon_threads = True

    def __init__(self, site: Site) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site, self.turn = site, threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.05,), name="assay-site", daemon=True).start()

    @property
    def address(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        if self.path == "/favicon.ico":
            self._answer(404, b"")
            return
        with self.server.turn:
            page = self.server.site.get(self.path)
        self._answer(200, html_of(page).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        with self.server.turn:
            to = self.server.site.send(self.path, dict(parse_qsl(body, keep_blank_values=True)))
        self._answer(303, b"", to)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""

    def _answer(self, status: int, body: bytes, to: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")  # a page that is gone back to is asked for again
        if to:
            self.send_header("Location", to)
        self.end_headers()
        self.wfile.write(body)


class Chromium(SingleUse):
    """The environment of a visit in a real browser: it shows and does what the text browser does.

    It has a server and a context of its own, which end with the rollout, or when the environment is given up. Nothing that it
    reports is judged: the verifier makes the commands again in the text browser.

    Attributes:
        site: what is served.

    Args:
        task: its name, for messages.
        site: as it is at first.
        turns: how many commands there are.

    Raises:
        MissingExtraError: playwright is not installed.
        ConfigError: there is no Chromium.
        DataError: started twice, stepped before the start or after the end.
    """

    def __init__(self, task: str, site: Site, turns: int) -> None:
        if importlib.util.find_spec("playwright") is None:
            raise MissingExtraError("playwright", "web")
        if find_chromium() is None:
            raise ConfigError(
                f"browser='chromium' needs one of {', '.join(_PROGRAMS)} on the path, and there is none: install Debian's "
                "package chromium-headless-shell, or take browser='text'"
            )
        self.site = site
        super().__init__(task)
        self._left = turns
        self._page: Any = None
        self._end: Any = None

    async def start(self) -> Obs:
        """The first page."""
        self._enter("new", "start")
        self._phase = "open"
        server = _Server(self.site)
        self._end = weakref.finalize(self, _stop, server)
        context, self._page = await asyncio.wrap_future(_desk.submit(_open_page(server.address)))
        self._end.detach()
        self._end = weakref.finalize(self, _stop, server, context)
        return await self._observe("")

    async def step(self, action: str) -> Step:
        """The page after a command, below what could not be done."""
        self._enter("open", "step")
        self._left -= 1
        command = command_of(said_in(action))
        if command is not None and command[0] == "done":
            return self._end_step()
        why = HELP if command is None else await asyncio.wrap_future(_desk.submit(_carry_out(self._page, *command)))
        return await self._ended_or_shown(why)

    async def _ended_or_shown(self, why: str) -> Step:
        return self._end_step() if self._left <= 0 else Step(obs=await self._observe(why))

    async def _observe(self, why: str) -> Obs:
        text = await asyncio.wrap_future(_desk.submit(self._page.evaluate(_READ)))
        return Obs((Message("user", f"{why}\n{text}" if why else text),))

    def _end_step(self) -> Step:
        self._phase = "over"
        self._end()
        return Step(done=True)


def _stop(server: _Server, context: Any = None) -> None:
    """Ends a server and what looks at it."""
    server.shutdown()
    server.server_close()
    if context is not None and _desk.browser is not None:
        _desk.submit(context.close())


async def _open_page(address: str) -> tuple[Any, Any]:
    context = await _desk.context()
    page = await context.new_page()
    page.set_default_timeout(_PATIENCE)
    await page.goto(address + "/")
    return context, page


async def _carry_out(page: Any, verb: str, number: int, words: str) -> str:
    """Carries a command out in the browser; says why where it cannot be."""
    if verb == "back":
        if not await page.evaluate("navigation.canGoBack"):
            return NO_PAGE
        await page.go_back()
        return ""
    found = await page.query_selector_all(_USED)
    if not 0 < number <= len(found):
        return no_element(number)
    element = found[number - 1]
    tag, kind = await element.evaluate("el => [el.tagName, el.type]")
    if verb == "click":
        if tag in ("A", "BUTTON"):
            async with page.expect_navigation():
                await element.click()
        elif tag == "INPUT":
            await element.click()
        return ""
    if (tag, kind if tag == "INPUT" else "") != (("INPUT", "text") if verb == "type" else ("SELECT", "")):
        return other_kind(number, verb)
    if verb == "type":
        await element.fill(words)
        return ""
    if words not in await element.evaluate("el => [...el.options].map(o => o.text)"):
        return no_option(words)
    await element.select_option(label=words)
    return ""

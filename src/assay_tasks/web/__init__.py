"""Small web sites to use: shops, mail, calendars and forms, by a text browser of our own or by a real one."""

from __future__ import annotations

__all__: list[str] = []

"""A cache with prices."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_CACHE = '''\
"""A cache of a fixed size."""


class Cache:
    """Values by key; when it is full, a new key pushes out the one that was not used for the longest time.

    Reading a value and storing one count as uses.
    """

    def __init__(self, size, hits=0):
        self.size = size
        self.hits = hits
        self.misses = 0
        self.items = {}

    def read(self, key, default=None):
        """The value of a key, or the default; counted as a hit or a miss."""
        if key not in self.items:
            self.misses += 1
            return default
        self.hits += 1
        self.touch(key)
        return self.items[key]

    def store(self, key, value):
        """Keep a value; an old value of the key is replaced."""
        if key not in self.items and len(self.items) >= self.size:
            oldest = next(iter(self.items))
            del self.items[oldest]
        self.items[key] = value
        self.touch(key)

    def forget(self, key):
        """Drop a key; return whether it was there."""
        if key in self.items:
            del self.items[key]
            return True
        return False

    def touch(self, key):
        """Make a key the one that was used last."""
        value = self.items.pop(key)
        self.items[key] = value

    def keys(self):
        """The keys, the one that was not used for the longest time first."""
        return list(self.items)
'''

_PRICES = '''\
"""Prices of lists of goods, with sums that are remembered."""

from .cache import Cache


class PriceList:
    """Prices by name. Sums are remembered in a cache, and forgotten when a price that is in them changes."""

    def __init__(self, prices=None, size=4):
        self.prices = dict(prices or {})
        self.cache = Cache(size)

    def set_price(self, name, price):
        """Give a name a price. ValueError where that is negative."""
        if price < 0:
            raise ValueError("a price cannot be negative")
        self.prices[name] = price
        for key in self.cache.keys():
            if name in key:
                self.cache.forget(key)

    def sum_of(self, names):
        """The sum of the prices of a list of names, in which a name may stand several times. KeyError for one without a price.

        The same names in another order are found in the cache.
        """
        key = tuple(sorted(names))
        found = self.cache.read(key)
        if found is None:
            found = sum(self.prices[name] for name in names)
            self.cache.store(key, found)
        return found

    def cheapest(self, count=1):
        """The names with the lowest prices, lowest first; equal ones in alphabetical order."""
        return sorted(self.prices, key=lambda name: (self.prices[name], name))[:count]

    def report(self):
        """Hits and misses of the cache so far, as a list."""
        return [self.cache.hits, self.cache.misses]
'''

_GOODS = ["tea", "rice", "salt", "milk", "bread", "jam"]


def _draw_cache(rng: Random) -> list[str]:
    lines = [f"cache = Cache({rng.randint(1, 3)})"]
    for _ in range(rng.randint(3, 6)):
        key = rng.choice("abcd")
        store = f"cache.store({key!r}, {rng.randint(1, 99)})"
        lines.append(rng.choice((store, store, f"cache.read({key!r})")))
    return lines


def _cache_asked(rng: Random) -> Example:
    key = rng.choice("abcd")
    asks = ("cache.keys()", f"cache.read({key!r})", f"cache.read({key!r}, 0)", "[cache.hits, cache.misses]")
    return _draw_cache(rng), rng.choice((*asks, f"[cache.forget({key!r}), cache.keys()]"))


def _cache_full(rng: Random) -> Example:
    size = rng.randint(2, 3)
    lines = [f"cache = Cache({size})", *(f"cache.store({key!r}, {rng.randint(1, 99)})" for key in "abc"[:size])]
    lines.append(rng.choice(("cache.read('a')", "cache.store('a', 5)", "cache.store('b', 5)", "cache.read('b')")))
    lines += [f"cache.store('z', {rng.randint(1, 99)})"] * rng.choice((0, 1, 1))
    return lines, rng.choice(("cache.keys()", "cache.items"))


def _draw_list(rng: Random) -> tuple[list[str], list[str]]:
    goods = rng.sample(_GOODS, 4)
    return [f"prices = PriceList({ ({good: rng.randint(1, 9) for good in goods}) })"], goods


def _draw_sum(rng: Random) -> Example:
    lines, goods = _draw_list(rng)
    names = [rng.choice(goods) for _ in range(rng.randint(1, 3))]
    lines.append(f"prices.sum_of({names})")
    name = rng.choice((names[0], rng.choice(goods)))
    lines += rng.choice(([], [f"prices.set_price({name!r}, {rng.randint(10, 40)})"]))
    return lines, rng.choice((f"prices.sum_of({names[::-1]})", f"prices.sum_of({[*names, names[0]]})", "prices.report()"))


def _hit(rng: Random) -> Example:
    lines, goods = _draw_list(rng)
    one, two = rng.sample(goods, 2), rng.sample(goods, 2)
    lines += [f"prices.sum_of({names})" for names in (one, one[::-1], two)]
    return lines, "prices.report()"


def _cheap(rng: Random) -> Example:
    lines, _ = _draw_list(rng)
    return lines, f"prices.cheapest({rng.choice(('', '2', '3'))})"


def _price_refused(rng: Random) -> Example:
    lines, (good, *_) = _draw_list(rng)
    asks = (f"prices.set_price({good!r}, -{rng.randint(1, 9)})", f"prices.sum_of(['gold', {good!r}])")
    return lines, rng.choice((*asks, f"[prices.set_price({good!r}, 0), prices.prices]"))


KIND = Kind(
    "cache",
    {"cache": _CACHE, "prices": _PRICES},
    {
        "Cache cache": ("Cache cache", "Memory memory", "Recall recall"),
        "PriceList prices": ("PriceList prices", "Tariff tariff", "RateCard rates"),
        "read store": ("read store", "fetch keep", "get_value put_value"),
        "forget": ("forget", "evict", "discard"),
        "touch": ("touch", "refresh", "mark_used"),
        "set_price": ("set_price", "change_price", "update"),
        "sum_of": ("sum_of", "total_of", "cost_of"),
        "cheapest": ("cheapest", "lowest", "bargains"),
    },
    (_cache_asked, _cache_full, _draw_sum, _hit, _cheap, _price_refused),
    (
        Plant("stale state", "prices", "            if name in key:\n", "            if name == key:\n"),
        Plant(
            "stale state",
            "prices",
            "        for key in self.cache.keys():\n            if name in key:\n                self.cache.forget(key)\n",
            "",
        ),
        Plant("wrong function", "prices", "tuple(sorted(names))", "tuple(sorted(set(names)))"),
        Plant("missing step", "prices", "tuple(sorted(names))", "tuple(names)"),
        Plant("missing step", "cache", "        self.hits += 1\n        self.touch(key)\n", "        self.hits += 1\n"),
        Plant("wrong function", "cache", "next(iter(self.items))", "list(self.items)[-1]"),
        Plant("missing case", "cache", "if key not in self.items and len(", "if len("),
    ),
)
"""A cache with prices."""

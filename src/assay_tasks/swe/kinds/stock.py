"""Stock with orders."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_GOODS: tuple[str, ...] = ("bolt", "nut", "screw", "hinge", "pipe", "valve", "lamp", "cable", "fuse", "brush")

_STOCK = '''\
"""What is in store."""


class Stock:
    """Counts of items by name, and the price of a piece in cents."""

    def __init__(self, limit=5):
        self.limit = limit
        self.counts = {}
        self.prices = {}

    def add_item(self, name, count, price=None):
        """Add pieces. A new item without a price costs 100; an old item keeps its price unless one is given.

        ValueError where the count is not positive.
        """
        if count <= 0:
            raise ValueError("count must be positive")
        self.counts[name] = self.counts.get(name, 0) + count
        if price is not None:
            self.prices[name] = price
        elif name not in self.prices:
            self.prices[name] = 100

    def take_item(self, name, count):
        """Take pieces out, at most as many as there are; return how many were taken. KeyError for an unknown item."""
        taken = min(count, self.counts[name])
        self.counts[name] -= taken
        return taken

    def low_items(self):
        """Names of items with fewer pieces than the limit, in alphabetical order."""
        return sorted(name for name, count in self.counts.items() if count < self.limit)

    def total_value(self):
        """What all pieces together cost."""
        return sum(count * self.prices[name] for name, count in self.counts.items())
'''

_ORDERS = '''\
"""Orders that are filled from a stock."""

from .stock import Stock


def fill_order(stock, wanted):
    """Take what is wanted, a dict of counts by name, out of a stock; return what is missing as such a dict.

    Items that the stock does not know are missing as a whole; items that are there in full do not appear.
    """
    missing = {}
    for name, count in wanted.items():
        if name not in stock.counts:
            missing[name] = count
            continue
        taken = stock.take_item(name, count)
        if taken < count:
            missing[name] = count - taken
    return missing


def invoice_total(stock, wanted, rebate_from=10):
    """The price of an order. A line of rebate_from pieces or more costs 10 percent less, rounded down to a cent."""
    total = 0
    for name, count in wanted.items():
        line = count * stock.prices[name]
        if count >= rebate_from:
            line = line * 9 // 10
        total += line
    return total


def merge_stocks(first, second):
    """A new stock with the pieces of both. It has the limit of the first; where both have a price, that of the first counts."""
    merged = Stock(first.limit)
    for name, count in first.counts.items():
        merged.add_item(name, count, first.prices[name])
    for name, count in second.counts.items():
        if name in first.counts:
            merged.add_item(name, count)
        else:
            merged.add_item(name, count, second.prices[name])
    return merged
'''


def _draw_stock(rng: Random, name: str = "stock", least: int = 2) -> tuple[list[str], list[str]]:
    goods = rng.sample(_GOODS, rng.randint(least, least + 1))
    lines = [f"{name} = Stock({rng.choice(('', str(rng.randint(3, 9))))})"]
    for good in goods:
        price = rng.choice(("", f", {rng.randint(2, 60) * 5}"))
        lines.append(f"{name}.add_item({good!r}, {rng.randint(1, 15)}{price})")
    return lines, goods


def _stock_counts(rng: Random) -> Example:
    lines, goods = _draw_stock(rng)
    lines.append(f"stock.add_item({goods[0]!r}, {rng.randint(1, 9)}{rng.choice(('', f', {rng.randint(1, 90)}'))})")
    return lines, rng.choice(("stock.total_value()", "stock.low_items()", "stock.counts", "stock.prices"))


def _stock_take(rng: Random) -> Example:
    lines, goods = _draw_stock(rng)
    taken = f"stock.take_item({rng.choice(goods)!r}, {rng.randint(1, 18)})"
    return rng.choice(((lines, taken), ([*lines, taken], "stock.counts"), ([*lines, taken], "stock.low_items()")))


def _stock_low(rng: Random) -> Example:
    goods, limit = rng.sample(_GOODS, 4), rng.randint(3, 8)
    counts = [limit, limit - 1, limit + 1, rng.randint(1, 9)]
    lines = [f"stock = Stock({limit})", *(f"stock.add_item({g!r}, {c})" for g, c in zip(goods, counts, strict=True))]
    return lines, "stock.low_items()"


def _stock_refuses(rng: Random) -> Example:
    lines, _ = _draw_stock(rng)
    asks = (f"stock.add_item('saw', {rng.choice((0, 0, -rng.randint(1, 9)))})", f"stock.take_item('saw', {rng.randint(1, 9)})")
    return lines, rng.choice(asks)


def _order(rng: Random) -> Example:
    lines, goods = _draw_stock(rng)
    wanted = {good: rng.randint(1, 12) for good in [*goods, "saw"]}
    lines.append(f"missing = fill_order(stock, {wanted})")
    return lines, rng.choice(("missing", "stock.counts", "[missing, stock.low_items()]"))


def _invoice(rng: Random) -> Example:
    lines, goods = _draw_stock(rng)
    least = rng.choice((10, 10, 6))
    wanted = {good: rng.choice((least, least - 1, rng.randint(1, 20))) for good in goods}
    return lines, f"invoice_total(stock, {wanted}{'' if least == 10 else f', {least}'})"


def _draw_merge(rng: Random) -> Example:
    (first, goods), (second, _) = _draw_stock(rng, "first"), _draw_stock(rng, "second")
    second.append(f"second.add_item({goods[0]!r}, {rng.randint(1, 9)}, {rng.randint(1, 90)})")
    lines = [*first, *second, "both = merge_stocks(first, second)"]
    return lines, rng.choice(("both.counts", "both.prices", "[both.total_value(), both.low_items()]", "both.limit"))


KIND = Kind(
    "stock",
    {"stock": _STOCK, "orders": _ORDERS},
    {
        "Stock stock": ("Stock stock", "Depot depot", "Warehouse warehouse", "Pantry pantry"),
        "orders": ("orders", "requests", "purchases"),
        "add_item": ("add_item", "put_in", "store_item"),
        "take_item": ("take_item", "take_out", "fetch_item"),
        "low_items": ("low_items", "running_low", "scarce_items"),
        "total_value": ("total_value", "worth", "whole_value"),
        "fill_order": ("fill_order", "serve_order", "pack_order"),
        "invoice_total": ("invoice_total", "order_price", "bill_total"),
        "merge_stocks": ("merge_stocks", "joined", "combine"),
    },
    (_stock_counts, _stock_take, _stock_low, _stock_refuses, _order, _invoice, _draw_merge),
    (
        Plant("missing case", "stock", "elif name not in self.prices:", "else:"),
        Plant(
            "shared state",
            "orders",
            "merged = Stock(first.limit)",
            "merged = Stock(first.limit)\n    merged.counts = first.counts",
        ),
        Plant("wrong default", "orders", "merged = Stock(first.limit)", "merged = Stock()"),
        Plant("wrong name", "orders", "        total += line\n", "        total = line\n"),
        Plant("missing step", "orders", "merged.add_item(name, count, first.prices[name])", "merged.add_item(name, count)"),
    ),
)
"""Stock with orders."""

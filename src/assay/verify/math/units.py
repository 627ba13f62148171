"""Units of measure, and words that name what is counted."""

from __future__ import annotations

import re
from fractions import Fraction

from assay.verify.math.poly import Num
from assay.verify.math.words import NO_LABEL, VALUES, number_word, singular

__all__ = ["Unit", "unit_of"]

Unit = tuple[Num, tuple[tuple[str, int], ...]]
"""How many base units one is, and its dimension: names with exponents."""


_ROWS: dict[str, tuple[str, Num, str]] = {
    "m": ("length", 1, "meter meters metre metres"),
    "cm": ("length", Fraction(1, 100), "centimeter centimeters centimetre centimetres"),
    "mm": ("length", Fraction(1, 1000), "millimeter millimeters millimetre millimetres"),
    "km": ("length", 1000, "kilometer kilometers kilometre kilometres"),
    "in": ("length", Fraction(254, 10000), "inch inches"),
    "ft": ("length", Fraction(3048, 10000), "foot feet"),
    "yd": ("length", Fraction(9144, 10000), "yard yards"),
    "mi": ("length", Fraction(1609344, 1000), "mile miles"),
    "g": ("mass", 1, "gram grams"),
    "kg": ("mass", 1000, "kilogram kilograms"),
    "mg": ("mass", Fraction(1, 1000), "milligram milligrams"),
    "lb": ("mass", Fraction(45359237, 100000), "lbs pound pounds"),
    "oz": ("mass", Fraction(45359237, 1600000), "ounce ounces"),
    "s": ("time", 1, "sec secs second seconds"),
    "ms": ("time", Fraction(1, 1000), "millisecond milliseconds"),
    "min": ("time", 60, "mins minute minutes"),
    "h": ("time", 3600, "hr hrs hour hours"),
    "day": ("time", 86400, "days"),
    "week": ("time", 604800, "weeks"),
    "month": ("month", 1, "months"),
    "year": ("month", 12, "yr yrs years"),
    "L": ("volume", 1, "l liter liters litre litres"),
    "mL": ("volume", Fraction(1, 1000), "ml milliliter milliliters"),
    "dollar": ("dollar", 1, "dollars usd"),
    "cent": ("dollar", Fraction(1, 100), "cents"),
    "euro": ("euro", 1, "euros eur"),
    "£": ("pound sterling", 1, "gbp"),
    "deg": ("degree", 1, "degree degrees"),
    "rad": ("radian", 1, "radian radians"),
    "unit": ("unit", 1, "units"),
    "N": ("newton", 1, "newton newtons"),
    "J": ("joule", 1, "joule joules"),
    "W": ("watt", 1, "watt watts"),
    "V": ("volt", 1, "volt volts"),
    "Hz": ("hertz", 1, "hertz"),
    "kHz": ("hertz", 1000, "kilohertz"),
    "Pa": ("pascal", 1, "pascal pascals"),
    "kPa": ("pascal", 1000, "kilopascal kilopascals"),
    "A": ("ampere", 1, "ampere amperes amp amps"),
    "mA": ("ampere", Fraction(1, 1000), "milliampere milliamperes"),
    "K": ("kelvin", 1, "kelvin kelvins"),
    "celsius": ("celsius", 1, "centigrade"),
    "fahrenheit": ("fahrenheit", 1, ""),
    "mol": ("mole", 1, "mole moles"),
    "ohm": ("ohm", 1, "ohms Ω"),
    "mohm": ("ohm", Fraction(1, 1000), "milliohm milliohms"),
    "kohm": ("ohm", 1000, "kiloohm kiloohms kilohm kilohms"),
    "Mohm": ("ohm", 10**6, "megaohm megaohms megohm megohms"),
    "um": ("length", Fraction(1, 10**6), "micrometer micrometers micrometre micrometres micron microns"),
    "us": ("time", Fraction(1, 10**6), "microsecond microseconds"),
    "ug": ("mass", Fraction(1, 10**6), "microgram micrograms"),
    "uL": ("volume", Fraction(1, 10**6), "microliter microliters microlitre microlitres"),
    "uA": ("ampere", Fraction(1, 10**6), "microampere microamperes"),
    "uV": ("volt", Fraction(1, 10**6), "microvolt microvolts"),
    "uF": ("farad", Fraction(1, 10**6), "microfarad microfarads"),
    "uC": ("coulomb", Fraction(1, 10**6), "microcoulomb microcoulombs"),
    "uW": ("watt", Fraction(1, 10**6), "microwatt microwatts"),
    "uN": ("newton", Fraction(1, 10**6), "micronewton micronewtons"),
    "uJ": ("joule", Fraction(1, 10**6), "microjoule microjoules"),
    "uH": ("henry", Fraction(1, 10**6), "microhenry microhenries"),
    "umol": ("mole", Fraction(1, 10**6), "micromole micromoles"),
    "kN": ("newton", 1000, "kilonewton kilonewtons"),
    "kJ": ("joule", 1000, "kilojoule kilojoules"),
    "kW": ("watt", 1000, "kilowatt kilowatts"),
    "cup": ("cup", 1, "cups"),
    "gallon": ("gallon", 1, "gallons gal"),
    "quart": ("gallon", Fraction(1, 4), "quarts"),
    "pint": ("gallon", Fraction(1, 8), "pints"),
    "mph": ("", Fraction(1609344, 3600000), ""),
    "kph": ("", Fraction(1000, 3600), "kmh"),
}
"""Base name: dimension, size, other names."""


def _table() -> dict[str, Unit]:
    out: dict[str, Unit] = {}
    for name, (dimension, size, others) in _ROWS.items():
        unit: Unit = (size, ((dimension, 1),)) if dimension else (size, (("length", 1), ("time", -1)))
        for each in (name, *others.split()):
            out[each] = unit
    return out


_UNITS = _table()
_POWERS = {"square": 2, "squared": 2, "sq": 2, "cubic": 3, "cubed": 3}
_PART = re.compile(r"\s*([*/]|per\b|)\s*([A-Za-z£Ω]+)\.?(?:\s*\^\s*\{?\s*(-?\d)\s*\}?|(\d))?\s*")


def unit_of(text: str, label: bool = False) -> Unit | None:
    """The unit that a text names; with ``label``, words that are no unit name one of their own (``apples``).

    >>> unit_of("km/h") == unit_of("kilometers per hour"), unit_of("square cm") == unit_of("cm^2")
    (True, True)
    """
    text = text.strip().rstrip(".")
    size: Num = 1
    dimension: dict[str, int] = {}
    at, pending = 0, 1
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or match.end() == at or len(dimension) > 6:
            return None
        at = match.end()
        sign, word, raised, beside = match.groups()
        written = raised or beside
        if word.lower() in _POWERS:
            if word.lower() in ("squared", "cubed"):
                return None
            pending = _POWERS[word.lower()] * (-1 if sign in ("/", "per") else 1)
            continue
        unit = _UNITS.get(word) or (_UNITS.get(word.lower()) if len(word) > 2 else None)
        if unit is None:
            name = singular(word.lower())
            valued = not VALUES.isdisjoint((name, word.lower())) or number_word(name) is not None
            if not label or len(word) < 3 or word.lower() in NO_LABEL or valued:
                return None
            unit = (1, ((name, 1),))
        power = pending * int(written or 1) * (-1 if sign in ("/", "per") else 1)
        pending = 1
        size = size * Fraction(unit[0]) ** power
        for name, each in unit[1]:
            dimension[name] = dimension.get(name, 0) + each * power
    if not dimension or pending != 1:
        return None
    size, dimension = _volumes(size, dimension)
    return size, tuple(sorted((name, power) for name, power in dimension.items() if power))


def _volumes(size: Num, dimension: dict[str, int]) -> tuple[Num, dict[str, int]]:
    litres = dimension.pop("volume", 0)
    if litres:
        size = size * Fraction(1, 1000) ** litres
        dimension["length"] = dimension.get("length", 0) + 3 * litres
    if len(dimension) > 1:
        dimension.pop("unit", None)
        if not dimension.keys().isdisjoint(("celsius", "fahrenheit")):
            dimension.pop("degree", None)
    return size, dimension

"""Motion, forces, energy, matter, heat, waves, planets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as F
from typing import ClassVar

from assay_tasks.science.law import Kind, LawProblem, OptionProblem

__all__ = ["Energy", "Forces", "Heat", "Kepler", "Kinematics", "Matter", "PhysicsChoice", "Waves"]

_G = "Take g = 10 m/s^2 and ignore the air."


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinematics(LawProblem):
    """Uniform and accelerated motion. The level: uniform, accelerated, braked or falling, in two phases.

    >>> Kinematics().solve({"kind": "brake", "v": 20, "a": 4}).steps
    'v^2 / (2a) = 20^2 / (2 × 4) = 50 m'
    """

    name: str = "science/kinematics"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "way": Kind(
            1,
            "A cyclist rides {t} s at a constant {v} m/s. How far is that?",
            {"v": (2, 60, 1), "t": (5, 300, 1)},
            "m",
            lambda q: (F(q["v"] * q["t"]), f"v × t = {q['v']} × {q['t']}"),
        ),
        "time": Kind(
            1,
            "A train covers {s} m at a constant speed of {v} m/s. How long does it take?",
            {"s": (50, 3000, 5), "v": (5, 50, 5)},
            "s",
            lambda q: (F(q["s"], q["v"]), f"s / v = {q['s']} / {q['v']}"),
        ),
        "speed": Kind(
            2,
            "A car that drives at {u} m/s accelerates with {a} m/s^2 for {t} s. How fast is it then?",
            {"u": (1, 30, 1), "a": (1, 6, 1), "t": (2, 20, 1)},
            "m/s",
            lambda q: (F(q["u"] + q["a"] * q["t"]), f"u + a × t = {q['u']} + {q['a']} × {q['t']}"),
        ),
        "from_rest": Kind(
            2,
            "A sledge starts from rest with the constant acceleration {a} m/s^2. How far does it get in {t} s?",
            {"a": (1, 60, 1), "t": (2, 40, 1)},
            "m",
            lambda q: (F(q["a"] * q["t"] ** 2, 2), f"a × t^2 / 2 = {q['a']} × {q['t']}^2 / 2"),
        ),
        "brake": Kind(
            3,
            "A car at {v} m/s brakes with the constant deceleration {a} m/s^2. How far does it go until it stands still?",
            {"v": (6, 60, 1), "a": (2, 16, 1)},
            "m",
            lambda q: (F(q["v"] ** 2, 2 * q["a"]), f"v^2 / (2a) = {q['v']}^2 / (2 × {q['a']})"),
        ),
        "throw": Kind(
            3,
            "A stone is thrown straight up at {v} m/s from a tower {h} m high. " + _G + " How high above the ground does it get?",
            {"v": (4, 60, 1), "h": (5, 90, 1)},
            "m",
            lambda q: (q["h"] + F(q["v"] ** 2, 20), f"h + v^2 / (2g) = {q['h']} + {q['v']}^2 / 20"),
        ),
        "phases": Kind(
            4,
            "A tram starts from rest with {a} m/s^2 for {t} s, keeps its speed for {k} s, and then brakes evenly to a "
            "stop within {b} s. How far does it go in all?",
            {"a": (1, 4, 1), "t": (3, 20, 1), "k": (5, 60, 1), "b": (3, 20, 1)},
            "m",
            lambda q: (
                q["a"] * q["t"] * (F(q["t"] + q["b"], 2) + q["k"]),
                f"v = {q['a']} × {q['t']} = {q['a'] * q['t']}; {q['a'] * q['t']} × ({q['t']}/2 + {q['k']} + {q['b']}/2)",
            ),
        ),
        "meet": Kind(
            4,
            "Two trains are {d} km apart and drive towards each other on two tracks at {u} km/h and {v} km/h; the second "
            "one starts {m} minutes after the first. How long after the start of the first do they meet?",
            {"d": (120, 900, 10), "u": (40, 120, 5), "v": (40, 160, 5), "m": (6, 60, 6)},
            "h",
            lambda q: (
                (q["d"] + F(q["v"] * q["m"], 60)) / (q["u"] + q["v"]),
                f"({q['d']} + {q['v']} × {q['m']}/60) / ({q['u']} + {q['v']})",
            ),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Forces(LawProblem):
    """Newton's laws. The level: one force, two of them, pulleys and collisions.

    >>> Forces().solve({"kind": "atwood", "m": 6, "n": 4}).steps
    '(m - n) × g / (m + n) = (6 - 4) × 10 / (6 + 4) = 2 m/s^2'
    """

    name: str = "science/forces"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "newton": Kind(
            1,
            "Which acceleration does the net force {f} N give to a mass of {m} kg?",
            {"f": (5, 500, 5), "m": (2, 50, 2)},
            "m/s^2",
            lambda q: (F(q["f"], q["m"]), f"F / m = {q['f']} / {q['m']}"),
        ),
        "hooke": Kind(
            1,
            "A spring with the constant {k} N/m is stretched by {x} cm. How large is its force?",
            {"k": (20, 900, 10), "x": (2, 60, 1)},
            "N",
            lambda q: (F(q["k"] * q["x"], 100), f"k × x = {q['k']} × {q['x']}/100"),
        ),
        "friction": Kind(
            2,
            "A crate of {m} kg on level ground is pulled with {f} N; the friction is {r}% of its weight. Take "
            "g = 10 m/s^2. What is its acceleration?",
            {"m": (5, 80, 5), "f": (500, 900, 10), "r": (5, 60, 5)},
            "m/s^2",
            lambda q: (
                (q["f"] - F(q["m"] * 10 * q["r"], 100)) / q["m"],
                f"(F - r × m × g) / m = ({q['f']} - {q['r']}/100 × {q['m']} × 10) / {q['m']}",
            ),
        ),
        "lever": Kind(
            2,
            "On a seesaw, {f} N act at {a} cm from the pivot, and {e} N act on the same side at {b} cm. Which force at "
            "{c} cm on the other side balances them?",
            {"f": (20, 400, 10), "a": (20, 150, 10), "e": (10, 300, 10), "b": (20, 150, 10), "c": (20, 200, 10)},
            "N",
            lambda q: (F(q["f"] * q["a"] + q["e"] * q["b"], q["c"]), f"({q['f']} × {q['a']} + {q['e']} × {q['b']}) / {q['c']}"),
        ),
        "atwood": Kind(
            3,
            "Over a light pulley without friction hang {m} kg on one side and {n} kg on the other. Take g = 10 m/s^2. "
            "With which acceleration does the first mass sink? (Negative if it rises.)",
            {"m": (2, 60, 1), "n": (1, 59, 2)},
            "m/s^2",
            lambda q: (
                F((q["m"] - q["n"]) * 10, q["m"] + q["n"]),
                f"(m - n) × g / (m + n) = ({q['m']} - {q['n']}) × 10 / ({q['m']} + {q['n']})",
            ),
        ),
        "stick": Kind(
            3,
            "A wagon of {m} kg rolls at {v} m/s into one of {n} kg that comes towards it at {w} m/s. They couple. How "
            "fast do they roll on, in the direction of the first? (Negative for the other direction.)",
            {"m": (100, 900, 50), "v": (2, 20, 1), "n": (100, 900, 50), "w": (1, 12, 1)},
            "m/s",
            lambda q: (
                F(q["m"] * q["v"] - q["n"] * q["w"], q["m"] + q["n"]),
                f"({q['m']} × {q['v']} - {q['n']} × {q['w']}) / ({q['m']} + {q['n']})",
            ),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy(LawProblem):
    """Work, power and energy. The level: one form, power and efficiency, several in a row.

    >>> Energy().solve({"kind": "kinetic", "m": 4, "v": 5}).steps
    'm × v^2 / 2 = 4 × 5^2 / 2 = 50 J'
    """

    name: str = "science/energy"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "kinetic": Kind(
            1,
            "What is the kinetic energy of {m} kg that move at {v} m/s?",
            {"m": (1, 80, 1), "v": (2, 40, 1)},
            "J",
            lambda q: (F(q["m"] * q["v"] ** 2, 2), f"m × v^2 / 2 = {q['m']} × {q['v']}^2 / 2"),
        ),
        "lift": Kind(
            1,
            "How much work is done when {m} kg are lifted by {h} m? Take g = 10 m/s^2.",
            {"m": (1, 80, 1), "h": (2, 60, 1)},
            "J",
            lambda q: (F(q["m"] * 10 * q["h"]), f"m × g × h = {q['m']} × 10 × {q['h']}"),
        ),
        "power": Kind(
            2,
            "A pump lifts {m} kg of water by {h} m in {t} s. Take g = 10 m/s^2. What is its useful power?",
            {"m": (10, 500, 10), "h": (2, 40, 1), "t": (5, 100, 5)},
            "W",
            lambda q: (F(q["m"] * 10 * q["h"], q["t"]), f"m × g × h / t = {q['m']} × 10 × {q['h']} / {q['t']}"),
        ),
        "efficient": Kind(
            2,
            "A motor takes in {p} W and has an efficiency of {e}%. How much useful work does it do in {t} s?",
            {"p": (50, 2000, 50), "e": (10, 95, 5), "t": (5, 120, 5)},
            "J",
            lambda q: (F(q["p"] * q["e"] * q["t"], 100), f"e × P × t = {q['e']}/100 × {q['p']} × {q['t']}"),
        ),
        "slide": Kind(
            3,
            "A child of {m} kg starts from rest, slides down a slope {h} m high and is {v} m/s fast at its foot. Take "
            "g = 10 m/s^2. How much mechanical energy went into heat?",
            {"m": (10, 60, 1), "h": (6, 20, 1), "v": (2, 10, 1)},
            "J",
            lambda q: (q["m"] * (10 * q["h"] - F(q["v"] ** 2, 2)), f"{q['m']} × 10 × {q['h']} - {q['m']} × {q['v']}^2 / 2"),
        ),
        "bill": Kind(
            3,
            "A heater of {p} W runs {h} hours a day for {d} days. One kilowatt hour costs {c} cents. What does that cost?",
            {"p": (100, 3000, 100), "h": (1, 12, 1), "d": (2, 31, 1), "c": (10, 60, 1)},
            "cents",
            lambda q: (F(q["p"] * q["h"] * q["d"] * q["c"], 1000), f"{q['p']}/1000 × {q['h']} × {q['d']} × {q['c']}"),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter(LawProblem):
    """Density, pressure and buoyancy. The level: one law, liquids, floating and mixing.

    >>> Matter().solve({"kind": "depth", "h": 5, "d": 1000}).steps
    'd × g × h / 1000 = 1000 × 10 × 5 / 1000 = 50 kPa'
    """

    name: str = "science/matter"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "density": Kind(
            1,
            "A body of {m} g has a volume of {v} cm^3. What is its density?",
            {"m": (20, 900, 5), "v": (5, 200, 5)},
            "g/cm^3",
            lambda q: (F(q["m"], q["v"]), f"m / V = {q['m']} / {q['v']}"),
        ),
        "pressure": Kind(
            1,
            "A force of {f} N acts evenly on an area of {a} cm^2. What is the pressure, in newtons per square centimetre?",
            {"f": (20, 900, 5), "a": (4, 200, 2)},
            "N/cm^2",
            lambda q: (F(q["f"], q["a"]), f"F / A = {q['f']} / {q['a']}"),
        ),
        "depth": Kind(
            2,
            "How large is the pressure that a liquid of density {d} kg/m^3 causes at a depth of {h} m? Take g = 10 m/s^2.",
            {"h": (1, 80, 1), "d": (700, 1400, 25)},
            "kPa",
            lambda q: (F(q["d"] * q["h"], 100), f"d × g × h / 1000 = {q['d']} × 10 × {q['h']} / 1000"),
        ),
        "press": Kind(
            2,
            "In a hydraulic press {f} N act on a piston of {a} cm^2. Which force results at the other piston, of {b} cm^2?",
            {"f": (20, 400, 10), "a": (2, 20, 1), "b": (50, 600, 10)},
            "N",
            lambda q: (F(q["f"] * q["b"], q["a"]), f"F × B / A = {q['f']} × {q['b']} / {q['a']}"),
        ),
        "float": Kind(
            3,
            "A block of wood with the density {d} kg/m^3 and a volume of {v} L floats in water of 1000 kg/m^3. How many "
            "more kilograms can be put on it until it is just under water?",
            {"d": (300, 950, 10), "v": (2, 90, 1)},
            "kg",
            lambda q: (F((1000 - q["d"]) * q["v"], 1000), f"(1000 - {q['d']}) × {q['v']} / 1000"),
        ),
        "alloy": Kind(
            3,
            "{m} g of a metal with the density {a} g/cm^3 and {n} g of one with {b} g/cm^3 are melted together; the volumes "
            "add up. What is the density of the alloy?",
            {"m": (20, 400, 20), "a": (2, 20, 2), "n": (20, 400, 20), "b": (3, 15, 3)},
            "g/cm^3",
            lambda q: (
                (q["m"] + q["n"]) / (F(q["m"], q["a"]) + F(q["n"], q["b"])),
                f"({q['m']} + {q['n']}) / ({q['m']}/{q['a']} + {q['n']}/{q['b']})",
            ),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat(LawProblem):
    """Heat and temperature. The level: one body, mixing, melting besides.

    >>> Heat().solve({"kind": "mix", "m": 1, "s": 80, "n": 3, "t": 20}).steps
    '(1 × 80 + 3 × 20) / (1 + 3) = 35 degrees'
    """

    name: str = "science/heat"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "warm": Kind(
            1,
            "How much heat does it take to warm {m} kg of water by {t} degrees Celsius? The specific heat of water is "
            "4200 J per kg and degree.",
            {"m": (1, 40, 1), "t": (2, 80, 1)},
            "kJ",
            lambda q: (F(42 * q["m"] * q["t"], 10), f"c × m × T = 4.2 × {q['m']} × {q['t']}"),
        ),
        "mix": Kind(
            2,
            "{m} kg of water at {s} °C are mixed with {n} kg of water at {t} °C, without losses. What is the temperature "
            "of the mixture, in degrees Celsius?",
            {"m": (1, 20, 1), "s": (50, 95, 1), "n": (1, 20, 1), "t": (2, 40, 1)},
            "degrees",
            lambda q: (
                F(q["m"] * q["s"] + q["n"] * q["t"], q["m"] + q["n"]),
                f"({q['m']} × {q['s']} + {q['n']} × {q['t']}) / ({q['m']} + {q['n']})",
            ),
        ),
        "kettle": Kind(
            2,
            "A kettle of {p} W heats {m} kg of water by {t} degrees Celsius without losses. The specific heat of water is "
            "4200 J per kg and degree. How long does that take?",
            {"p": (500, 3000, 100), "m": (1, 5, 1), "t": (10, 80, 5)},
            "s",
            lambda q: (F(4200 * q["m"] * q["t"], q["p"]), f"4200 × {q['m']} × {q['t']} / {q['p']}"),
        ),
        "melt": Kind(
            3,
            "How much heat turns {m} kg of ice at -{s} °C into water at {t} °C? Per kg and degree, ice takes 2.1 kJ and water "
            "4.2 kJ; melting takes 334 kJ per kg.",
            {"m": (1, 30, 1), "s": (1, 40, 1), "t": (1, 90, 1)},
            "kJ",
            lambda q: (q["m"] * (F(21 * q["s"] + 42 * q["t"], 10) + 334), f"{q['m']} × (2.1 × {q['s']} + 334 + 4.2 × {q['t']})"),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves(LawProblem):
    """Waves, sound and light. The level: one law, echoes and lenses, standing waves and moving sources.

    >>> Waves().solve({"kind": "lens", "f": 10, "g": 30}).steps
    '1/b = 1/10 - 1/30, b = 10 × 30 / (30 - 10) = 15 cm'
    """

    name: str = "science/waves"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "speed": Kind(
            1,
            "A wave has the frequency {f} Hz and the wavelength {w} cm. How fast does it travel?",
            {"f": (2, 900, 2), "w": (2, 300, 1)},
            "m/s",
            lambda q: (F(q["f"] * q["w"], 100), f"f × w = {q['f']} × {q['w']}/100"),
        ),
        "echo": Kind(
            2,
            "An echo comes back {t} tenths of a second after the call. Sound travels at {v} m/s. How far away is the wall?",
            {"t": (2, 90, 1), "v": (320, 350, 2)},
            "m",
            lambda q: (F(q["v"] * q["t"], 20), f"v × t / 2 = {q['v']} × {q['t']}/10 / 2"),
        ),
        "lens": Kind(
            2,
            "An object stands {g} cm in front of a converging lens with the focal length {f} cm. How far behind the lens is "
            "its image?",
            {"f": (4, 40, 1), "g": (41, 160, 1)},
            "cm",
            lambda q: (
                F(q["f"] * q["g"], q["g"] - q["f"]),
                f"1/b = 1/{q['f']} - 1/{q['g']}, b = {q['f']} × {q['g']} / ({q['g']} - {q['f']})",
            ),
        ),
        "string": Kind(
            3,
            "On a string of {l} cm, fixed at both ends, a standing wave has {n} antinodes; waves travel at {v} m/s on it. "
            "What is its frequency?",
            {"l": (20, 200, 5), "n": (2, 9, 1), "v": (40, 400, 10)},
            "Hz",
            lambda q: (F(q["n"] * q["v"] * 100, 2 * q["l"]), f"n × v / (2l) = {q['n']} × {q['v']} × 100 / (2 × {q['l']})"),
        ),
        "doppler": Kind(
            3,
            "A siren of {f} Hz comes straight towards you at {u} m/s. Sound travels at 340 m/s. Which frequency do you hear?",
            {"f": (200, 900, 10), "u": (10, 60, 5)},
            "Hz",
            lambda q: (F(q["f"] * 340, 340 - q["u"]), f"f × 340 / (340 - u) = {q['f']} × 340 / (340 - {q['u']})"),
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Kepler(LawProblem):
    """Orbits and light in space. The level: times of light, Kepler's third law, both ways.

    >>> Kepler().solve({"kind": "period", "k": 2, "m": 1}).steps
    'T = sqrt(a^3 / M) = 2^3 / 1 = 8 years'
    """

    name: str = "science/astronomy"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        "light": Kind(
            1,
            "A probe is {d} million km from the Earth. Light travels 300,000 km per second. How long does a radio signal take "
            "from the probe to the Earth?",
            {"d": (3, 6000, 3)},
            "s",
            lambda q: (F(q["d"] * 1000, 300), f"{q['d']} × 1000000 / 300000"),
        ),
        "period": Kind(
            2,
            "A planet orbits a star {m2} times as heavy as the Sun at a mean distance of {a} astronomical units. By Kepler's "
            "third law T^2 = a^3 / M (T in years, a in astronomical units, M in masses of the Sun), what is "
            "its period?",
            {"k": (2, 60, 1), "m": (1, 20, 1)},
            "years",
            lambda q: (F(q["k"] ** 3, q["m"]), f"T = sqrt(a^3 / M) = {q['k']}^3 / {q['m']}"),
        ),
        "weight": Kind(
            3,
            "A planet has {m} times the mass and {r} times the radius of the Earth. A body weighs {w} N on the Earth. What "
            "does it weigh on the surface of that planet?",
            {"m": (2, 300, 1), "r": (2, 12, 1), "w": (10, 900, 10)},
            "N",
            lambda q: (F(q["w"] * q["m"], q["r"] ** 2), f"w × m / r^2 = {q['w']} × {q['m']} / {q['r']}^2"),
        ),
    }

    def fields(self, facts: Mapping[str, int]) -> Mapping[str, str]:
        """As elsewhere; distance and mass are squares, so that the period is a fraction."""
        squares = {"a": facts["k"] ** 2, "m2": facts["m"] ** 2} if "k" in facts else {}
        return LawProblem.fields(self, {**facts, **squares})


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsChoice(OptionProblem):
    r"""One of four values, for situations of motion, energy and matter. The level is that of the situation.

    >>> facts = {"kind": "kinetic", "m": 4, "v": 5, "mistakes": [0, 1, 2], "place": 1}
    >>> PhysicsChoice().fields(facts)["options"], PhysicsChoice().solve(facts).answer
    ('A) 100 J\nB) 50 J\nC) 25 J\nD) 500 J', 'B')
    """

    name: str = "science/choice"
    levels: tuple[int, ...] = (1, 2, 3)

    kinds: ClassVar[Mapping[str, Kind]] = {
        **Kinematics.kinds,
        **Energy.kinds,
        **Matter.kinds,
    }

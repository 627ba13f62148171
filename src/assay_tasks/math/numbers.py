"""Whole numbers: divisors, primes, powers, remainders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, isqrt, lcm, prod
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay.tasks.problems import Problems
from assay_tasks.math.digits import BaseConversion, ContinuedFraction, DigitSums
from assay_tasks.math.exact import ExactProblem, primes_of

__all__ = [
    "Divisors",
    "FactorialPower",
    "Factors",
    "Gcd",
    "Inverse",
    "Lcm",
    "Multiples",
    "PowerMod",
    "Remainders",
    "Root",
    "Totient",
    "numbers",
]


def _digits(count: int, rng: Random) -> int:
    """A number of so many digits."""
    return rng.randrange(10 ** (count - 1), 10**count)


def _powers(primes: list[int], join: str = " × ") -> str:
    return join.join(f"{p}^{k}" if k > 1 else str(p) for p, k in Counter(primes).items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Gcd(ExactProblem):
    r"""The greatest common divisor of two numbers. The level is their number of digits, less one.

    >>> Gcd().solve({"a": 84, "b": 60}).steps
    '84 = 1 × 60 + 24\n60 = 2 × 24 + 12\n24 = 2 × 12 + 0'
    """

    name: str = "numbers/gcd"
    levels: tuple[int, ...] = tuple(range(1, 9))

    templates: ClassVar[tuple[str, ...]] = (
        "What is the greatest common divisor of {a} and {b}?",
        "Find the largest whole number that divides both {a} and {b}.",
        "Compute gcd({a}, {b}).",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Two multiples of a small number."""
        common = rng.randint(2, 20)
        low, high = 10**level // common + 1, (10 ** (level + 1) - 1) // common
        b, a = sorted(common * rng.randint(low, high) for _ in range(2))
        return {"a": a, "b": b}

    def solve(self, facts: Facts) -> Solution:
        """Euclid's algorithm."""
        a, b = facts["a"], facts["b"]
        steps: list[str] = []
        while b:
            steps.append(f"{a} = {a // b} × {b} + {a % b}")
            a, b = b, a % b
        return Solution(answer=str(a), steps="\n".join(steps), effort=len(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lcm(ExactProblem):
    r"""The least common multiple of some numbers. The level is how many there are, less one.

    >>> Lcm().solve({"of": [4, 6, 10]}).steps
    'lcm(4, 6) = 4 × 6 / 2 = 12\nlcm(12, 10) = 12 × 10 / 2 = 60'
    """

    name: str = "numbers/lcm"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the least common multiple of {of}?",
        "Find the smallest positive number that is divisible by each of {of}.",
        "Compute lcm({of}).",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Multiples of few small primes, so that they share some."""
        return {"of": sorted(rng.choice((2, 3, 4, 5, 6)) * rng.randint(2, 60) for _ in range(level + 1))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The numbers with commas."""
        return {"of": ", ".join(map(str, facts["of"]))}

    def solve(self, facts: Facts) -> Solution:
        """One number after the other."""
        value, *rest = facts["of"]
        steps: list[str] = []
        for n in rest:
            steps.append(f"lcm({value}, {n}) = {value} × {n} / {gcd(value, n)} = {lcm(value, n)}")
            value = lcm(value, n)
        return Solution(answer=str(value), steps="\n".join(steps), effort=len(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors(ExactProblem):
    r"""The prime factors of a number. The level is about how many there are; they grow too.

    Asked for is the list, for the product has the value of the number itself. The lowest level has only about 800 questions.

    >>> Factors().solve({"n": 84}).answer, Factors().solve({"n": 84}).steps
    ('2, 2, 3, 7', '84 = 2 × 42\n42 = 2 × 21\n21 = 3 × 7\n7 is prime.')
    """

    name: str = "numbers/factors"

    templates: ClassVar[tuple[str, ...]] = (
        "Write {n} as a product of primes. Answer with the list of its prime factors, each as often as it divides, "
        "separated by commas (for 12: 2, 2, 3).",
        "What are the prime factors of {n}? List them with commas in between; a factor that occurs several times is "
        "listed several "
        "times.",
        "Factor {n} into primes and give all prime factors, with repetition, as a list with commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A product of random primes."""
        most = (60, 80, 100, 120, 150)[level - 1]
        return {"n": prod(rng.choice(_PRIMES[: most // 4]) for _ in range(level + 1 + rng.randrange(2)))}

    def solve(self, facts: Facts) -> Solution:
        """Trial division."""
        rest, found = facts["n"], primes_of(facts["n"])
        steps: list[str] = []
        for p in found[:-1]:
            steps.append(f"{rest} = {p} × {rest // p}")
            rest //= p
        steps.append(f"{rest} is prime.")
        return Solution(answer=", ".join(map(str, found)), steps="\n".join(steps), effort=sum(p.bit_length() for p in found))


_PRIMES = [n for n in range(2, 400) if all(n % d for d in range(2, isqrt(n) + 1))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerMod(ExactProblem):
    r"""The remainder of a power. The level sets the size of the exponent, from two bits to twenty.

    >>> PowerMod().solve({"base": 7, "exponent": 5, "modulus": 12}).steps
    '7^1 ≡ 7\n7^2 ≡ 1\n7^4 ≡ 1\n5 = 4 + 1, so 7^5 ≡ 1 × 7 ≡ 7 (mod 12)'
    """

    name: str = "numbers/power_mod"
    levels: tuple[int, ...] = tuple(range(1, 8))

    templates: ClassVar[tuple[str, ...]] = (
        "What is the remainder when {base}^{exponent} is divided by {modulus}?",
        "Compute {base}^{exponent} mod {modulus}.",
        "{base}^{exponent} is divided by {modulus}. Which remainder is left?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random base, exponent and modulus."""
        bits = 3 * level - 1
        modulus = rng.randint(5, 40 * level)
        return {
            "base": rng.randint(2, 30 * level),
            "exponent": rng.randrange(2 ** (bits - 1), 2**bits),
            "modulus": modulus,
        }

    def solve(self, facts: Facts) -> Solution:
        """Squaring again and again."""
        base, exponent, modulus = facts["base"], facts["exponent"], facts["modulus"]
        steps: list[str] = []
        power, square, parts, bits = 1, base % modulus, list[int](), list[int]()
        while power <= exponent:
            steps.append(f"{base}^{power} ≡ {square}")
            if power & exponent:
                parts.append(square)
                bits.append(power)
            power, square = 2 * power, square * square % modulus
        answer = prod(parts) % modulus
        if len(parts) > 1:
            summed, factors = " + ".join(map(str, bits[::-1])), " × ".join(map(str, parts[::-1]))
            steps.append(f"{exponent} = {summed}, so {base}^{exponent} ≡ {factors} ≡ {answer} (mod {modulus})")
        return Solution(answer=str(answer), steps="\n".join(steps), effort=power.bit_length() + len(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverse(ExactProblem):
    r"""The inverse of a number for a modulus. The level is the number of the modulus' digits, less one.

    >>> Inverse().solve({"a": 7, "modulus": 40}).steps
    '40 = 5 × 7 + 5\n7 = 1 × 5 + 2\n5 = 2 × 2 + 1\n7 × 23 = 161 = 4 × 40 + 1'
    """

    name: str = "numbers/inverse"

    templates: ClassVar[tuple[str, ...]] = (
        "Find the inverse of {a} modulo {modulus}: the number x from 1 to {last} with {a} × x leaving the remainder 1 "
        "when divided "
        "by {modulus}.",
        "Which whole number x with 1 ≤ x ≤ {last} satisfies {a}x ≡ 1 (mod {modulus})?",
        "What is {a}^(-1) mod {modulus}, as a number from 1 to {last}?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Two coprime numbers; the modulus is next to one with no common factor, should the draw have one."""
        modulus = _digits(level + 1, rng)
        a = rng.randrange(2, modulus)
        while gcd(a, modulus) > 1:
            a = a % modulus + 1
        return {"a": a, "modulus": modulus}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Both, and the largest remainder."""
        return {"a": str(facts["a"]), "modulus": str(facts["modulus"]), "last": str(facts["modulus"] - 1)}

    def solve(self, facts: Facts) -> Solution:
        """Euclid's algorithm, extended."""
        a, modulus = facts["a"], facts["modulus"]
        x, y, u, v = modulus, a, 0, 1  # x = u a and y = v a, but for multiples of the modulus
        steps: list[str] = []
        while y > 1:
            q = x // y
            steps.append(f"{x} = {q} × {y} + {x % y}")
            x, y, u, v = y, x % y, v, u - q * v
        answer = v % modulus
        steps.append(f"{a} × {answer} = {a * answer} = {a * answer // modulus} × {modulus} + 1")
        return Solution(answer=str(answer), steps="\n".join(steps), effort=len(steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainders(ExactProblem):
    r"""The least number that leaves given remainders (Chinese remainder theorem). The level counts them, less one.

    >>> Remainders().solve({"moduli": [3, 5], "remainders": [2, 3]}).steps
    'x = 2 + 3k leaves 3 on division by 5 for k = 2: x = 8 + 15k'
    """

    name: str = "numbers/remainders"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "Find the smallest number x ≥ 0 with {conditions}.",
        "A jar holds x marbles, where {conditions}, and no smaller number would do. How many marbles does it hold?",
        "What is the least non-negative whole number x such that {conditions}?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Moduli that have no common factor."""
        moduli: list[int] = []
        while len(moduli) < level + 1:
            m = rng.randint(3, 40)
            if all(gcd(m, n) == 1 for n in moduli):
                moduli.append(m)
        moduli.sort()
        return {"moduli": moduli, "remainders": [rng.randrange(1, m) for m in moduli]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The conditions as congruences in words."""
        parts = [f"x mod {m} = {r}" for m, r in zip(facts["moduli"], facts["remainders"], strict=True)]
        return {"conditions": ", ".join(parts[:-1]) + " and " + parts[-1]}

    def solve(self, facts: Facts) -> Solution:
        """One condition after the other, by sieving."""
        (m, *moduli), (x, *remainders) = facts["moduli"], facts["remainders"]
        steps: list[str] = []
        effort = 0
        for n, r in zip(moduli, remainders, strict=True):
            k = next(k for k in range(n) if (x + m * k) % n == r)
            effort += k + 1
            steps.append(f"x = {x} + {m}k leaves {r} on division by {n} for k = {k}: x = {x + m * k} + {m * n}k")
            x, m = x + m * k, m * n
        return Solution(answer=str(x), steps="\n".join(steps), effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class Divisors(ExactProblem):
    r"""The number of divisors of a number, or their sum. The level is the number of prime factors, less two.

    >>> Divisors().solve({"n": 12, "what": "sum"}).steps
    '12 = 2^2 × 3\n(1 + 2 + 4)(1 + 3) = 7 × 4 = 28'
    >>> Divisors().solve({"n": 12, "what": "number"}).answer
    '6'
    """

    name: str = "numbers/divisors"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the {what} of the positive divisors of {n}, 1 and {n} included?",
        "Consider all positive whole numbers that divide {n}; 1 and {n} are among them. What is their {what}?",
        "Find the {what} of all positive divisors of {n}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A product of primes, small ones more often."""
        n = prod(_PRIMES[min(rng.randrange(12), rng.randrange(12))] for _ in range(level + 1)) * rng.choice(_PRIMES[:25])
        return {"n": n, "what": rng.choice(("number", "sum", "sum"))}

    def solve(self, facts: Facts) -> Solution:
        """From the prime factors."""
        n, found = facts["n"], primes_of(facts["n"])
        powers = Counter(found)
        if facts["what"] == "sum":
            sums = [[p**i for i in range(k + 1)] for p, k in powers.items()]
            left = "".join(f"({' + '.join(map(str, s))})" for s in sums)
            values = [sum(s) for s in sums]
        else:
            left = "".join(f"({k} + 1)" for k in powers.values())
            values = [k + 1 for k in powers.values()]
        answer = prod(values)
        factors = f"{' × '.join(map(str, values))} = " if len(values) > 1 else ""
        steps = f"{n} = {_powers(found)}\n{left} = {factors}{answer}"
        return Solution(answer=str(answer), steps=steps, effort=len(found) + len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Totient(ExactProblem):
    r"""How many numbers up to n have no factor in common with it. The level is the number of prime factors, less one.

    >>> Totient().solve({"n": 12}).steps
    '12 = 2^2 × 3\n12 × 1/2 × 2/3 = 4'
    """

    name: str = "numbers/totient"

    templates: ClassVar[tuple[str, ...]] = (
        "How many of the whole numbers from 1 to {n} have no common factor with {n} other than 1?",
        "Compute Euler's totient φ({n}).",
        "Count the whole numbers k with 1 ≤ k ≤ {n} and gcd(k, {n}) = 1.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A product of primes."""
        return {"n": prod(_PRIMES[min(rng.randrange(12), rng.randrange(12))] for _ in range(level)) * rng.choice(_PRIMES)}

    def solve(self, facts: Facts) -> Solution:
        """From the prime factors."""
        n, found = facts["n"], primes_of(facts["n"])
        different = sorted(set(found))
        answer = prod((p - 1 for p in different), start=n // prod(different))
        parts = " × ".join(f"{p - 1}/{p}" for p in different)
        return Solution(answer=str(answer), steps=f"{n} = {_powers(found)}\n{n} × {parts} = {answer}", effort=len(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiples(ExactProblem):
    r"""How many numbers of a range are divisible by one of some numbers, or by none. The level is how many there are.

    >>> Multiples().solve({"low": 1, "high": 20, "of": [2, 3], "any": True}).steps
    'divisible by 2: 10\ndivisible by 3: 6\ndivisible by 6 (2 and 3): 3\nin all: 10 + 6 - 3 = 13'
    """

    name: str = "numbers/multiples"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "How many whole numbers from {low} to {high}, both included, are {which}?",
        "Count the integers n with {low} ≤ n ≤ {high} that are {which}.",
        "Somebody writes down all whole numbers from {low} up to and including {high}. How many of them are {which}?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A range, divisors none of which divides another, and whether one of them shall divide."""
        low = rng.randint(1, 100 * level)
        while True:
            of = sorted(rng.sample(range(2, 16), level))
            if all(b % a for i, a in enumerate(of) for b in of[i + 1 :]):
                return {"low": low, "high": low + rng.randint(50, 300 * level), "of": of, "any": rng.random() < 0.5}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The range, and what is counted, in words."""
        of = list(map(str, facts["of"]))
        listed = f"{', '.join(of[:-1])} and {of[-1]}"
        which = f"divisible by {'at least one' if facts['any'] else 'none'} of {listed}"
        if len(of) == 1:
            which = f"{'' if facts['any'] else 'not '}divisible by {of[0]}"
        elif len(of) == 2 and not facts["any"]:
            which = f"divisible by neither {of[0]} nor {of[1]}"
        return {"low": str(facts["low"]), "high": str(facts["high"]), "which": which}

    def solve(self, facts: Facts) -> Solution:
        """By inclusion and exclusion."""
        low, high, of = facts["low"], facts["high"], facts["of"]
        steps: list[str] = []
        terms: list[int] = []
        for mask in sorted(range(1, 1 << len(of)), key=lambda m: (m.bit_count(), m)):
            chosen = [n for i, n in enumerate(of) if mask >> i & 1]
            each = lcm(*chosen)
            count = high // each - (low - 1) // each
            steps.append(f"divisible by {each}{f' ({_join_numbers(chosen)})' if len(chosen) > 1 else ''}: {count}")
            terms.append(count if len(chosen) % 2 else -count)
        answer = sum(terms)
        summed = " ".join(f"{'-' if t < 0 else '+'} {abs(t)}" for t in terms).removeprefix("+ ")
        if len(of) > 1:
            steps.append(f"in all: {summed} = {answer}")
        if not facts["any"]:
            steps.append(f"of {high - low + 1} numbers the others: {high - low + 1} - {answer} = {high - low + 1 - answer}")
            answer = high - low + 1 - answer
        return Solution(answer=str(answer), steps="\n".join(steps), effort=len(terms))


def _join_numbers(numbers: list[int]) -> str:
    return " and ".join(map(str, numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Root(ExactProblem):
    r"""The whole part of a square or cube root. The level is the number of digits of the root.

    The lowest level has only about 1,000 questions.

    >>> Root().solve({"n": 30, "degree": 2}).steps
    '5^2 = 25 ≤ 30 < 36 = 6^2'
    """

    name: str = "numbers/root"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "What is the largest whole number whose {power} is at most {n}?",
        "Find the largest integer k with k^{degree} ≤ {n}.",
        "Round the {root} root of {n} down to a whole number.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A number whose root has as many digits."""
        degree = rng.choice((2, 3))
        return {"n": rng.randrange(10 ** (degree * (level - 1)) + 1, 10 ** (degree * level)), "degree": degree}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The degree as number and word."""
        square = facts["degree"] == 2
        words = ("square", "square") if square else ("cube", "cube")
        return {"n": str(facts["n"]), "degree": str(facts["degree"]), "power": words[0], "root": words[1]}

    def solve(self, facts: Facts) -> Solution:
        """Halving the range in which it lies."""
        n, degree = facts["n"], facts["degree"]
        low, high, effort = 1, 1 << (n.bit_length() // degree + 1), 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**degree <= n else (low, middle)
            effort += 1
        steps = f"{low}^{degree} = {low**degree} ≤ {n} < {high**degree} = {high}^{degree}"
        return Solution(answer=str(low), steps=steps, effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorialPower(ExactProblem):
    r"""How often a number divides a factorial. The level is the number of digits of the factorial's base, less one.

    >>> FactorialPower().solve({"n": 30, "d": 12}).steps
    '12 = 2^2 × 3\n2 divides 30! 15 + 7 + 3 + 1 = 26 times, 2^2 13 times\n3 divides 30! 10 + 3 + 1 = 14 times\nthe least: 13'
    """

    name: str = "numbers/factorial_power"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the largest k such that {d}^k divides {n}! (the factorial of {n})?",
        "The product 1 × 2 × 3 × ... × {n} is divided by {d} again and again, as long as no remainder is left. How "
        "many times is that?",
        "Written in base {d}, with how many zeros does {n}! end?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A factorial, and a number from 2 to 60."""
        return {"n": rng.randrange(max(10**level, 11), 10 ** (level + 1)), "d": rng.randint(2, 60)}

    def solve(self, facts: Facts) -> Solution:
        """Legendre's formula for each prime."""
        n, d = facts["n"], facts["d"]
        found = primes_of(d)
        steps = [f"{d} = {_powers(found)}"] if len(found) > 1 else []
        least: list[int] = []
        effort = 0
        for p, k in Counter(found).items():
            parts: list[int] = []
            power = p
            while power <= n:
                parts.append(n // power)
                power *= p
            effort += len(parts) + 1
            total = sum(parts)
            least.append(total // k)
            summed = f"{' + '.join(map(str, parts)) or '0'}{f' = {total}' if len(parts) > 1 else ''}"
            steps.append(f"{p} divides {n}! {summed} times{f', {p}^{k} {total // k} times' if k > 1 else ''}")
        if len(least) > 1:
            steps.append(f"the least: {min(least)}")
        return Solution(answer=str(min(least)), steps="\n".join(steps), effort=effort)


def numbers() -> Problems:
    """Whole numbers: divisors, primes, powers, remainders, digits."""
    return Problems(
        name="numbers",
        summary="Whole numbers: divisors, primes, powers, remainders, digits.",
        problems=(
            Gcd(),
            Lcm(),
            Factors(),
            PowerMod(),
            Inverse(),
            Remainders(),
            Divisors(),
            Totient(),
            Multiples(),
            Root(),
            FactorialPower(),
            BaseConversion(),
            DigitSums(),
            ContinuedFraction(),
        ),
    )

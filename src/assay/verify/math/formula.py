"""Reads one expression from tokens, with its value in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

from assay.verify.math.functions import FUNCTIONS, absolute, binomial, factorial, logarithm, opaque, power, root
from assay.verify.math.poly import Undecidable
from assay.verify.math.ratio import Ratio, number, symbol

__all__ = ["CLOSERS", "OPENERS", "decimal", "formula"]

OPENERS = {
    "(": ")",
    "[": "]",
    "{": "}",
    "\\lbrace": "\\rbrace",
    "\\langle": "\\rangle",
    "\\lfloor": "\\rfloor",
    "\\lceil": "\\rceil",
}
CLOSERS = frozenset(OPENERS.values())

_DEEPEST = 40
_GREEK = frozenset(
    [
        "\\alpha",
        "\\beta",
        "\\gamma",
        "\\delta",
        "\\epsilon",
        "\\varepsilon",
        "\\zeta",
        "\\eta",
        "\\theta",
        "\\vartheta",
        "\\kappa",
        "\\lambda",
        "\\mu",
        "\\nu",
        "\\xi",
        "\\rho",
        "\\sigma",
        "\\tau",
        "\\phi",
        "\\varphi",
        "\\chi",
        "\\psi",
        "\\omega",
        "\\Gamma",
        "\\Delta",
        "\\Theta",
        "\\Lambda",
        "\\Sigma",
        "\\Phi",
        "\\Psi",
        "\\Omega",
        "\\ell",
        "\\hbar",
    ]
)
_UNARY = frozenset("\\" + name for name in FUNCTIONS)
_OTHERS = frozenset(["\\arcsin", "\\arccos", "\\arctan", "\\sinh", "\\cosh", "\\tanh"])
_SEVERAL = frozenset(["\\gcd", "\\lcm", "\\max", "\\min"])
_LONGEST_NUMBER = 1000


def decimal(text: str) -> Ratio:
    """The rational that digits name: ``12``, ``0.5``, ``1.5e3``.

    Raises:
        Undecidable: too many digits.
    """
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _LONGEST_NUMBER or len(exponent) > 4 or abs(int(exponent or 0)) > _LONGEST_NUMBER:
        raise Undecidable("a number with too many digits")
    return number(Fraction(text))


def formula(tokens: Sequence[str]) -> Ratio:
    """The value of all tokens as one expression.

    Raises:
        Undecidable: they are none that exact arithmetic reads.
    """
    reader = _Reader(tokens)
    value = reader.whole()
    if reader.at < len(tokens):
        raise Undecidable(f"{tokens[reader.at]!r} in an unexpected place")
    return value


class _Reader:
    """Precedence: sums, products and quotients, signs, factors side by side, powers, single things."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self.at = 0
        self._depth = 0
        self._beside = 0

    def _next(self) -> str:
        return self._tokens[self.at] if self.at < len(self._tokens) else ""

    def _take(self, wanted: str) -> None:
        if self._next() != wanted:
            raise Undecidable(f"a missing {wanted!r}")
        self.at += 1

    def whole(self) -> Ratio:
        r"""A sum, or ``a \over b`` or ``a \choose b`` of two of them, as TeX reads them in a group."""
        value = self.sum()
        sign = self._next()
        if sign not in ("\\over", "\\choose"):
            return value
        self.at += 1
        return value / self.sum() if sign == "\\over" else binomial(value, self.sum())

    def sum(self) -> Ratio:
        value = self._product()
        while (sign := self._next()) in ("+", "-"):
            self.at += 1
            value = value + self._product() if sign == "+" else value - self._product()
        return value

    def _product(self) -> Ratio:
        negative = False
        while self._next() in ("+", "-"):
            negative ^= self._next() == "-"
            self.at += 1
        value = self._factors()
        while (sign := self._next()) in ("*", "/"):
            self.at += 1
            negated = self._next() == "-"
            self.at += negated
            other = self._factors()
            if sign == "/" and self._beside > 1:
                raise Undecidable("a quotient like 1/2x, which is read in two ways")
            if sign == "/" and self._tokens[self.at - 1] == "%":  # 1/2% is half a percent
                other = other * number(10_000)
            if negated:
                other = -other
            value = value * other if sign == "*" else value / other
        return -value if negative else value

    def _factors(self) -> Ratio:
        value, beside = self._mixed_number(), 1
        value = self._read_power() if value is None else self._read_suffix(value)
        while self._starts(self._next()):
            if self._next()[0] in "0123456789." and self._tokens[self.at - 1][0] in "0123456789.":
                raise Undecidable("two numbers side by side")
            value = value * self._read_power()
            beside += 1
        self._beside = beside
        return value

    def _mixed_number(self) -> Ratio | None:
        r"""``2\frac{1}{2}`` and ``2 1/2``: a whole number and a proper fraction beside it are added."""
        rest = self._tokens[self.at : self.at + 8]
        if len(rest) < 3 or not rest[0].isdigit():
            return None
        if rest[1] == "\\frac" and len(rest) == 8 and rest[2] == rest[5] == "{" and rest[4] == rest[7] == "}":
            top, bottom, length = rest[3], rest[6], 8
        elif len(rest) > 3 and rest[1].isdigit() and rest[2] == "/":
            top, bottom, length = rest[1], rest[3], 4
        elif rest[1] == "\\frac" and len(rest[2]) == 2 and rest[2].isdigit():
            top, bottom, length = rest[2][0], rest[2][1], 3
        else:
            return None
        if not (top.isdigit() and bottom.isdigit()) or max(map(len, (rest[0], top, bottom))) > _LONGEST_NUMBER:
            return None
        if not int(top) < int(bottom):
            return None
        self.at += length
        return decimal(rest[0]) + number(Fraction(int(top), int(bottom)))

    def _starts(self, token: str) -> bool:
        if not token:
            return False
        return (
            token[0].isalnum()
            or token in ("(", "[", "{", "\\lfloor", "\\lceil", "\\frac", "\\sqrt", "\\pi", "\\binom", "\\log")
            or token in _GREEK
            or token in _UNARY
            or token in _OTHERS
            or token[0] == "."
        )

    def _read_power(self) -> Ratio:
        return self._read_suffix(self._single())

    def _read_suffix(self, base: Ratio) -> Ratio:
        """What stands behind a single thing and belongs to it."""
        while True:
            token = self._next()
            if token == "^":
                self.at += 1
                if self._degree():
                    base = base * symbol("deg")
                    continue
                base = power(base, self._argument())
                if self._next() == "^":
                    raise Undecidable("a power of a power without brackets")
            elif token == "!":
                self.at += 1
                if self._next() == "!":
                    raise Undecidable("a double factorial")
                base = factorial(base)
            elif token == "%":
                self.at += 1
                base = base * number(Fraction(1, 100))
            elif token == "\\circ":
                self.at += 1
                base = base * symbol("deg")
            else:
                return base

    def _degree(self) -> bool:
        for pattern in (["\\circ"], ["{", "\\circ", "}"]):
            if list(self._tokens[self.at : self.at + len(pattern)]) == pattern:
                self.at += len(pattern)
                return True
        return False

    def _argument(self) -> Ratio:
        """What belongs to ``^`` or a command: a group, or one token, perhaps with a sign."""
        negative = False
        while self._next() == "-":
            self.at += 1
            negative = not negative
        value = self._single()
        return -value if negative else value

    def _group(self, close: str) -> Ratio:
        value = self.whole()
        self._take(close)
        return value

    def _single(self) -> Ratio:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Undecidable("brackets in brackets without end")
        token = self._next()
        self.at += 1
        value = self._thing(token)
        self._depth -= 1
        return value

    def _thing(self, token: str) -> Ratio:
        if not token:
            raise Undecidable("an expression that breaks off")
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return self._number(token)
        if token in ("(", "{", "["):
            return self._group(OPENERS[token])
        if token == "|":
            return absolute(self._group("|"))
        if token in ("\\lfloor", "\\lceil"):
            return FUNCTIONS["floor" if token == "\\lfloor" else "ceil"](self._group(OPENERS[token]))
        if (token.isalpha() and len(token) == 1) or token in _GREEK:
            return self._symbol(token)
        return self._command(token)

    def _number(self, token: str) -> Ratio:
        if self._next() == "_":
            raise Undecidable("a number with a base")
        value = decimal(token)
        if self._next() == "\\overline" or (self._next() == "." and self._tokens[self.at + 1 : self.at + 2] == ["\\overline"]):
            if self._next() == ".":
                self.at += 1
            return value + self._repeating(token)
        return value

    def _repeating(self, before: str) -> Ratio:
        self.at += 1
        braced = self._next() == "{"
        self.at += braced
        digits = self._next()
        self.at += 1
        if not digits.isdigit() or len(digits) > 100 or (braced and self._next() != "}"):
            raise Undecidable("a line over something that is no digits")
        self.at += braced
        places = len(before.partition(".")[2])
        if "." not in before and self._tokens[self.at - 2 - 2 * braced - 1] != ".":
            raise Undecidable("a line over digits without a decimal point")
        return number(Fraction(int(digits), (10 ** len(digits) - 1) * 10**places))

    def _symbol(self, token: str) -> Ratio:
        if self._next() == "_":
            self.at += 1
            start = self.at
            self._skip()
            return symbol(f"{token}_{''.join(t for t in self._tokens[start : self.at] if t not in '{}')}")
        if self._next() == "'":
            raise Undecidable("a derivative")
        return symbol(token)

    def _skip(self) -> None:
        """Past one token or one braced group."""
        if self._next() != "{":
            self.at += 1
            return
        while self._next() not in ("}", ""):
            self.at += 1
        self._take("}")

    def _command(self, token: str) -> Ratio:
        if token == "\\pi":
            return symbol("pi")
        if token == "\\frac":
            top, bottom = self._pair()
            return top / bottom
        if token == "\\binom":
            return binomial(*self._pair())
        if token == "\\sqrt":
            degree = number(2)
            if self._next() == "[":
                self.at += 1
                degree = self._group("]")
            return root(self._argument(), degree)
        if token == "\\log":
            return self._log()
        if token in _SEVERAL:
            return self._of_several(token)
        if token in _UNARY or token in _OTHERS:
            return self._function(token)
        raise Undecidable(f"{token!r}, which exact arithmetic does not read")

    def _pair(self) -> tuple[Ratio, Ratio]:
        r"""Two arguments; of ``\frac12`` the digits are one token."""
        token = self._next()
        if token.isdigit() and len(token) >= 2:
            if len(token) > 2:
                raise Undecidable("a fraction of more digits than two")
            self.at += 1
            return number(int(token[0])), number(int(token[1]))
        return self._argument(), self._argument()

    def _log(self) -> Ratio:
        base = None
        if self._next() == "_":
            self.at += 1
            base = self._argument()
        value = self._operand()
        return opaque("log", value) if base is None else logarithm(value, base)

    def _function(self, token: str) -> Ratio:
        exponent = None
        if self._next() == "^":
            self.at += 1
            exponent = self._argument()
            if exponent.value is None or exponent.value < 0:
                raise Undecidable("an inverse function, or a power of a function that is no number")
        name = token[1:]
        argument = self._operand()
        value = FUNCTIONS[name](argument) if name in FUNCTIONS else opaque(name, argument)
        return value if exponent is None else power(value, exponent)

    def _of_several(self, token: str) -> Ratio:
        """``gcd``, ``lcm``, ``max`` or ``min`` of rationals in brackets."""
        self._take("(")
        values = [self.sum().value]
        while self._next() == ",":
            self.at += 1
            values.append(self.sum().value)
        self._take(")")
        known = [value for value in values if value is not None]
        whole = [value.numerator for value in known if value.denominator == 1]
        if len(known) < len(values) or (token in ("\\gcd", "\\lcm") and len(whole) < len(values)):
            raise Undecidable(f"{token[1:]} of something that is no number")
        if token in ("\\gcd", "\\lcm"):
            return number(gcd(*whole) if token == "\\gcd" else lcm(*whole))
        return number(max(known) if token == "\\max" else min(known))

    def _operand(self) -> Ratio:
        """What a function without brackets is applied to: factors side by side, up to a sign or another function."""
        if self._next() in ("(", "{", "|"):
            value = self._single()
            if self._next() == "^":
                raise Undecidable("a power behind the brackets of a function")
            return value
        negative = self._next() == "-"
        self.at += negative
        value = self._mixed_number() or self._read_power()
        while self._starts(self._next()) and self._next() not in _UNARY | _OTHERS | {"\\log", "(", "["}:
            value = value * self._read_power()
        return -value if negative else value

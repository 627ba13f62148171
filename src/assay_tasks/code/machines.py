"""Small machines to run by hand: a stack, registers with jumps, a tape of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.number import Numeric

__all__ = ["Registers", "Stack", "Tape"]

_MOST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack(Problem):
    """The stack that a machine leaves. The level is the number of instructions, 4 to 32.

    >>> Stack().solve({"code": [["push", 2], ["push", 3], ["dup"], ["mul"], ["sub"]]}).answer
    '-7'
    """

    name: str = "code/stack"
    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "A stack machine starts with an empty stack and runs these instructions.\n{rules}\n\n{code}\n\nWhat is on the stack at "
        "the end, "
        "from bottom to top, separated by spaces?",
        "{rules}\nRun this program on an empty stack:\n\n{code}\n\nGive the stack at the end from bottom to top, with spaces "
        "between.",
        "Here is a program for a machine with one stack, which is empty at first.\n\n{code}\n\n{rules}\nWrite down the final "
        "stack, "
        "bottom first, separated by spaces.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Instructions that always find what they need on the stack."""
        code: list[Any] = []
        stack: list[int] = []
        while len(code) < (4, 7, 11, 16, 23, 32)[level - 1] or not stack:
            ops = ["push"]
            if stack:
                ops += ["dup", "dup"]
            if len(stack) > 1:
                ops += ["add", "sub", "mul", "swap", "over", "max"]
            if len(stack) > 2:
                ops += ["rot", "drop", "add", "sub"]
            op = rng.choice(ops)
            instruction: list[Any] = ["push", rng.randint(1, 12)] if op == "push" else [op]
            trial = list(stack)
            _run_instruction(trial, instruction)
            if len(trial) <= 5 and all(abs(v) < 10_000 for v in trial):
                code.append(instruction)
                stack = trial
        return {"code": code}

    def solve(self, facts: Facts) -> Solution:
        """One instruction after another."""
        stack: list[int] = []
        steps: list[str] = []
        for instruction in facts["code"]:
            _run_instruction(stack, instruction)
            steps.append(f"{' '.join(map(str, instruction))}: {' '.join(map(str, stack)) or 'empty'}")
        return Solution(answer=" ".join(map(str, stack)), steps="\n".join(steps), effort=len(steps))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Program and rules."""
        rules = (
            "push n puts n on top; dup puts a copy of the top on top; drop takes the top away; swap exchanges the two on top; "
            "over puts "
            "a copy of the second on top; rot moves the third to the top; add, sub, mul and max take the two on top away and "
            "put their "
            "sum, difference (second minus top), product or maximum on top."
        )
        return {"rules": rules, "code": "\n".join(" ".join(map(str, i)) for i in facts["code"])}


def _run_instruction(stack: list[int], instruction: Sequence[Any]) -> None:
    """Run one instruction."""
    match instruction[0]:
        case "push":
            stack.append(instruction[1])
        case "dup":
            stack.append(stack[-1])
        case "drop":
            stack.pop()
        case "swap":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        case "over":
            stack.append(stack[-2])
        case "rot":
            stack.append(stack.pop(-3))
        case op:
            top, second = stack.pop(), stack.pop()
            stack.append({"add": second + top, "sub": second - top, "mul": second * top, "max": max(second, top)}[op])


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers(Problem):
    """A register after a program with jumps has stopped. The level is the size of the program and how often it loops.

    >>> code = [["mov", "a", 2], ["mov", "b", 3], ["add", "a", "b"], ["dec", "b"], ["jnz", "b", 2], ["halt"]]
    >>> Registers().solve({"code": code, "register": "a"}).answer
    '8'
    """

    name: str = "code/assembly"
    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "What is in register {register} when this program stops?\n\n{code}\n\n{rules}",
        "{rules}\nRun this program and give the value of {register} at the end.\n\n{code}",
        "A machine runs this program from line 0:\n\n{code}\n\n{rules}\nWhich number does {register} hold when the machine "
        "halts?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Blocks of instructions in loops that count down; above level 4 a loop in a loop."""
        for _ in range(200):
            code: list[Any] = [["mov", r, rng.randint(1, 9)] for r in "abc"]
            if level == 1:
                code += self._block(rng, 3)
            elif level <= 4:
                for _ in range(1 if level <= 3 else 2):
                    code.append(["mov", "d", rng.randint(2, 2 + level)])
                    top = len(code)
                    code += [*self._block(rng, level), ["dec", "d"], ["jnz", "d", top]]
            else:
                code.append(["mov", "d", rng.randint(3, level)])
                outer = len(code)
                code += [*self._block(rng, 1), ["mov", "e", rng.randint(3, level)]]
                inner = len(code)
                code += [*self._block(rng, level - 3), ["dec", "e"], ["jnz", "e", inner], ["dec", "d"], ["jnz", "d", outer]]
            code.append(["halt"])
            final, steps = _execute(code)
            if steps < _MOST and all(-(10**6) < v < 10**6 for v in final.values()):
                return {"code": code, "register": rng.choice([r for r in "abc" if abs(final[r]) > 9] or ["a"])}
        raise DataError(f"{self.name}: level {level}: every program's numbers grew too large")

    def _block(self, rng: Random, size: int) -> list[Any]:
        found: list[Any] = []
        for _ in range(size):
            target = rng.choice("abc")
            other: Any = rng.choice([r for r in "abc" if r != target])
            op = rng.choice(("add", "sub", "add", "xor", "mov"))
            found.append([op, target, rng.randint(2, 9) if rng.random() < 0.4 else other])
        return found

    def solve(self, facts: Facts) -> Solution:
        """Line by line."""
        final, steps = _execute(facts["code"])
        listed = ", ".join(f"{r} = {v}" for r, v in sorted(final.items()))
        return Solution(answer=str(final[facts["register"]]), steps=f"After {steps} steps: {listed}.", effort=steps)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Program and rules."""
        lines = [f"{i}: {op} {', '.join(map(str, rest))}".rstrip() for i, (op, *rest) in enumerate(facts["code"])]
        rules = (
            "mov x, y sets register x to y, a number or a register; add x, y adds y to x; sub x, y subtracts y from x; xor x, "
            "y sets x "
            "to the bitwise exclusive or of both as 32-bit numbers in two's complement; dec x subtracts 1; jnz x, n goes on at "
            "line n "
            "if x is not 0; halt stops. Registers hold whole numbers, negative ones too."
        )
        return {"rules": rules, "register": facts["register"], "code": "\n".join(lines)}

    def verifier(self, form: Form) -> Verifier:
        """The number."""
        return Numeric(where=form.place)


def _execute(code: Sequence[Sequence[Any]]) -> tuple[dict[str, int], int]:
    """The registers at the end, and how many instructions were run; at most a bound of them."""
    registers = dict.fromkeys("abcde", 0)
    at = steps = 0
    while code[at][0] != "halt" and steps < _MOST:
        op, x, *rest = code[at]
        y = rest[0] if rest and isinstance(rest[0], int) else registers[rest[0]] if rest else 0
        at += 1
        steps += 1
        match op:
            case "mov":
                registers[x] = y
            case "add":
                registers[x] += y
            case "sub":
                registers[x] -= y
            case "xor":
                registers[x] ^= y
            case "dec":
                registers[x] -= 1
            case _:
                at = y if registers[x] else at
    return {r: v for r, v in registers.items() if r in "abc"}, steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape(Problem):
    """What a program of a language of eight signs (Brainfuck, Urban Müller 1993, without input) prints. The level is its loops.

    Cells hold 0 to 255. The output is letters.

    >>> Tape().solve({"code": "++++[>++++++++++++++++<-]>++.+."}).answer
    'BC'
    """

    name: str = "code/tape"
    domain: str = "code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "What does this program print?\n\n{code}\n\n{rules}",
        "{rules}\nGive the output of this program:\n\n{code}",
        "A program for a tape of cells reads\n\n{code}\n\n{rules}\nWhich letters does it print?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Products that come near to capital letters, each followed by steps and signs to print."""
        parts: list[str] = []
        for _ in range(level):
            target = rng.randint(65, 90)
            count = rng.randint(4, 9)
            times, rest = divmod(target, count)
            clean = "[-]" if parts else ""
            parts.append(f"{clean}{'+' * count}[>{'+' * times}<-]>{'+' * rest}.")
            here = target
            for _ in range(rng.randint(1, 1 + level)):
                step = rng.randint(max(-5, 65 - here), min(5, 90 - here))
                here += step
                parts[-1] += ("+" if step > 0 else "-") * abs(step) + "."
            parts[-1] += "[-]<" if rng.random() < 0.5 else ">"
        return {"code": "".join(parts)}

    def solve(self, facts: Facts) -> Solution:
        """Sign by sign."""
        code, jumps, opened = str(facts["code"]), dict[int, int](), list[int]()
        for i, sign in enumerate(code):
            if sign == "[":
                opened.append(i)
            elif sign == "]":
                start = opened.pop()
                jumps[start], jumps[i] = i, start
        cells, head, at, steps, output = [0] * 64, 0, 0, 0, list[str]()
        while at < len(code):
            match code[at]:
                case ">" | "<":
                    head += 1 if code[at] == ">" else -1
                case "+" | "-":
                    cells[head] = (cells[head] + (1 if code[at] == "+" else -1)) % 256
                case ".":
                    output.append(chr(cells[head]))
                case "[":
                    at = at if cells[head] else jumps[at]
                case _:
                    at = jumps[at] if cells[head] else at
            at += 1
            steps += 1
        numbers = ", ".join(f"{letter} ({ord(letter)})" for letter in output)
        return Solution(answer="".join(output), steps=f"It prints {numbers}.", effort=steps)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Program and rules."""
        rules = (
            "The machine has a row of cells, all 0, and stands at the first. > moves one cell to the right, < one to the left, "
            "+ adds 1 to "
            "the cell, - subtracts 1, . prints the character with the cell's number in ASCII, [ goes behind the matching ] if "
            "the cell is "
            "0, ] goes back to the matching [ if it is not 0."
        )
        return {"rules": rules, "code": facts["code"]}

    def verifier(self, form: Form) -> Verifier:
        """The text exactly."""
        return ExactMatch(strip=True, where=form.place)

"""Prompts in ten instruction templates, items and their disguises, written by a reader who had not read the gate."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ITEMS", "TEMPLATES", "Plant", "plants", "prompts"]

NAMES = (
    "Ava",
    "Ben",
    "Cora",
    "Dev",
    "Elif",
    "Finn",
    "Gia",
    "Hugo",
    "Ines",
    "Jon",
    "Kofi",
    "Lena",
    "Mira",
    "Nils",
    "Olga",
    "Pia",
    "Quin",
    "Rosa",
    "Sven",
    "Tara",
)
THINGS = (
    "pencils",
    "stamps",
    "marbles",
    "apples",
    "coins",
    "tickets",
    "shells",
    "cards",
    "bricks",
    "roses",
    "lamps",
    "cups",
    "tiles",
    "kites",
    "boxes",
)
PLACES = ("market", "harbor", "library", "bakery", "school", "station", "garden", "museum", "workshop", "farm")
TEMPLATES: tuple[str, ...] = (
    "Think step by step and put your final answer within \\boxed{}.\n\nQQ",
    "QQ\nPlease reason step by step, and put your final answer within \\boxed{}.",
    "Solve the following math problem step by step. The last line of your response should be of the form Answer: "
    "$Answer (without "
    'quotes) where $Answer is the answer to the problem.\n\nQQ\n\nRemember to put your answer on its own line after "Answer:".',
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant first "
    "thinks about the reasoning process in the mind and then provides the user with the answer. The reasoning "
    "process and answer are "
    "enclosed within <think> </think> and <answer> </answer> tags, respectively. User: QQ\nAssistant: <think>",
    "### Instruction:\nBelow is an instruction that describes a task. Write a response that appropriately completes the "
    "request.\n\nQQ\n\n### Response:",
    "You are an expert tutor with twenty years of practice. Read the question carefully, check every unit, and give only the "
    "result at the end.\nQuestion: QQ\nAnswer:",
    "请逐步推理，并将最终答案放在 \\boxed{} 中。\nQQ",
    'QQ\n\nGive your answer as a JSON object with the keys "reasoning" and "answer", and nothing before or after the object.',
    "You will be given a question. First write a plan of at most three sentences, then carry it out, then write "
    "FINAL followed by "
    "the result in a line of its own. The question follows below the dashes.\n---\nQQ",
    "Your task is to help a student who is stuck on the exercise below. Do not reveal hints before you have solved it yourself; "
    "when you have, end with 'The final answer is' and the value.\n\nExercise. QQ\n\nTake your time and double check the "
    "arithmetic before you answer.",
)
SHORT = [
    "Compute $\\cos 30^\\circ$.",
    "What is $7!$?",
    "Evaluate $\\log_3 81$.",
    "Find $\\gcd(84, 126)$.",
    "Simplify $\\sqrt{72}$.",
    "What is 17 + 26?",
    "Solve $x^2 = 49$.",
    "Capital of Peru?",
    "Name the largest moon of Saturn.",
    "What is $\\frac{3}{8}$ as a decimal?",
    "Compute $\\binom{9}{4}$.",
    "Factor $x^2 - 5x + 6$.",
    "Who wrote Middlemarch?",
    "Find $\\int_0^1 x^3 dx$.",
    "What is $2^{11}$?",
    "Differentiate $\\tan x$.",
    "Is 91 prime?",
    "What is the boiling point of ethanol?",
    "Evaluate $\\sin 75^\\circ$.",
    "Convert 1011 to decimal.",
]
LONG = [
    f"{NAMES[j]} bought {11 + j} {THINGS[j % 15]} for {3 + j} dollars each and sold {5 + j} of them at the {PLACES[j % 10]} for "
    f"{7 + j} dollars each, keeping the rest for a cousin. How much money did {NAMES[j]} make or lose in total?"
    for j in range(20)
]
ITEMS = (*SHORT, *LONG)
_WIDE = str.maketrans({".": "。", "?": "？", ",": "，", "(": "（", ")": "）"})
DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda s: TEMPLATES[1].replace("QQ", s),
    lambda s: TEMPLATES[0].replace("QQ", s),
    lambda s: f"**{s}**",
    lambda s: s.rstrip(".?"),
    lambda s: "  " + s.replace(" ", "  ") + " \n",
    lambda s: s.translate(_WIDE),
    lambda s: f'"{s}"',
    lambda s: f"<p>{s}</p>",
    lambda s: re.sub(r"\$(.+?)\$", r"\\(\1\\)", s) + (" " if "$" in s else "!"),
    lambda s: f"Q: {s}\nA:",
)


@dataclass(frozen=True, slots=True)
class Plant:
    """An item in disguise; with ``variants``, its numbers are changed."""

    text: str
    item: str
    variants: bool = False


def question(draw: random.Random, kind: int) -> str:
    """A question of one of twelve kinds."""
    name, thing, place = draw.choice(NAMES), draw.choice(THINGS), draw.choice(PLACES)
    a, b, c = draw.randint(12, 99), draw.randint(3, 11), draw.randint(2, 9)
    return (
        f"{name} carries {a} {thing} to the {place} and gives {b} away on the road. How many are left when {name} arrives?",
        f"A {place} sells {thing} in packs of {b}. What do {c} packs hold if {a % 7} {thing} are broken?",
        f"Find the remainder when {a}^{{{b}}} is divided by {c + 9}.",
        f"Let f(x) = {a}x^2 - {b}x + {c}. Determine f'({c + 1}).",
        f"How many ways can {b} distinct {thing} be placed on {c} shelves of the {place}?",
        f"Write a function that returns the {b} largest of {a} {thing} prices at the {place}, in falling order.",
        f"Which planet would {name} weigh {b} percent more on, when a scale at the {place} shows {a} kilograms?",
        f"Solve ${a}x + {b} = {c * a + b}$ for $x$.",
        f"{name} walks {a} meters north of the {place}, then {b} meters east, then back. Give the distance in meters.",
        f"Convert the number {a * b} to base {c + 2}.",
        f"Sort these {thing} counts: {', '.join(str(draw.randint(1, 99)) for _ in range(6))}; say the median that {name} notes.",
        f"A rectangle at the {place} has sides {a} and {b + c}. {name} paints a border of width {c}. What area stays bare?",
    )[kind % 12]


def prompts(n: int, seed: int = 7) -> list[str]:
    """Different questions, each in one of the templates."""
    draw, asked = random.Random(seed), dict[str, None]()
    kind = 0
    while len(asked) < n:
        asked[question(draw, kind)] = None
        kind += 1
    return [TEMPLATES[at % 10].replace("QQ", text) for at, text in enumerate(asked)]


def plants() -> list[Plant]:
    """140 items in ten disguises, and 60 with other numbers."""
    out = [
        Plant(disguise(item), item)
        for k, disguise in enumerate(DISGUISES)
        for item in ((SHORT if j < 8 else LONG)[(k * 7 + j * 3) % 20] for j in range(14))
    ]
    for item in LONG:
        for way in range(3):
            count = iter(range(9))

            def other(found: re.Match[str], way: int = way, count=count) -> str:  # type: ignore[no-untyped-def]
                return str(int(found[0]) + (13 * (way + 1) if next(count) % 2 == 0 else 7 * way + 5))

            text = re.sub(r"\d+", other, item)
            out.append(Plant((text, TEMPLATES[1].replace("QQ", text), f"**{text}**")[way], item, variants=True))
    return out

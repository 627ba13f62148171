r"""Evaluation items planted in training rows, rows that only look so, and rows of ten instruction templates.

    python tests/curate/disguised_items.py        # precision and recall by kind, as a table

Every kind of disguise is laid on 20 items, and on 20 questions that are no items: the same words with other numbers or names.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from assay.curate import EvalIndex, EvalItem, Matching, find_contamination, normal

SUFFIXES = (
    "\nPlease reason step by step, and put your final answer within \\boxed{}.",
    " Let's think step by step.",
    "\n\nThink step by step and put your final answer within \\boxed{}.",
    " Show your work and give the final answer on the last line, after 'Answer:'.",
    '\nRemember to put your answer on its own line after "Answer:".',
    " Please answer with a single number.",
    "\n\nYou must give your answer inside <answer></answer> tags.",
    "\nExplain your reasoning carefully before you answer.",
)
PREFIXES = (
    "Solve the following math problem efficiently and clearly.\n\n",
    "Question: ",
    "Problem 7. ",
    "### Question\n",
    "You are a helpful assistant. Answer the user's question.\n\nUser: ",
    "Q: ",
    "Please ",
    "Answer the following question.\n",
)
CITIES = ("France", "Japan", "Kenya", "Peru", "Norway", "Chile", "Ghana", "Nepal", "Cuba", "Malta")
BOOKS = ("Emma", "Ulysses", "Dracula", "Walden", "Candide", "Rebecca", "Middlemarch", "Kim", "Beloved", "Dune")
NAMES = ("Tom", "Aisha", "Bruno", "Chen", "Dara", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jonas", "Keiko")
THINGS = ("apples", "stamps", "marbles", "tickets", "pencils", "shells", "coins", "books", "candles", "ribbons")


@dataclass(frozen=True)
class Planted:
    """A training text; the item that it holds, or one that it only resembles."""

    kind: str
    item: str
    text: str
    held: bool
    variants: bool = False


# ---- questions --------------------------------------------------------------------------------------------------------


def short(draw: random.Random) -> str:
    """A question of fewer than eight words."""
    a, b = draw.randrange(12, 99), draw.randrange(12, 99)
    return draw.choice(
        (
            f"What is {a} + {b}?",
            f"Compute $\\sin {a}^\\circ$.",
            f"Solve ${a}x+{b}=0$.",
            f"Compute {a} * {b}.",
            f"Evaluate $\\frac{{{a}}}{{{b}}}+\\frac{{1}}{{{a + b}}}$.",
            f"Factor $x^2-{a}x+{b}$.",
            f"Find {a}% of {b * 10}.",
            f"How many divisors has {a * b}?",
            f"What is {a}^2 - {b}^2?",
            f"Simplify $\\sqrt{{{a * b}}}$.",
        )
    )


def long(draw: random.Random) -> str:
    """A question of twenty words and more, with a formula and two numbers in it."""
    a, b = draw.randrange(12, 99), draw.randrange(12, 99)
    who, what = draw.choice(NAMES), draw.choice(THINGS)
    return draw.choice(
        (
            f"{who} has {a} {what} and gives {b} of them to a friend, who already owns twice as many. How many {what} do the "
            "two of them hold together in the end?",
            f"A train leaves the station at noon and covers {a} miles in {b} minutes; what is its average speed, measured in "
            f"miles per hour, over the trip that {who} takes?",
            f"Let $f(x)=x^2-{a}x+{b}$. For how many integers $n$, as {who} asks, is the value of $f(n)$ a perfect square of a "
            "prime number?",
            f"The sides of a triangle drawn by {who} measure {a}, {b} and $\\sqrt{{{a * a + b * b}}}$ units. Determine the "
            "radius of the circle that touches all three sides from within.",
        )
    )


def strange_story(draw: random.Random) -> str:
    """A long question that shares no run of words with those of `long`."""
    a, b = draw.randrange(12, 99), draw.randrange(12, 99)
    return draw.choice(
        (
            f"{draw.choice(NAMES)} walks {a} steps north, then {b} steps east, and asks how far away from home that is "
            f"when one step measures exactly half a metre, give or take nothing. How far?",
            f"Let $g(x)=x^3+{a}x-{b}$ be given. Prove, or refute with a counterexample found by {draw.choice(NAMES)}, that $g$ "
            "has one real root only.",
        )
    )


def other(question: str, draw: random.Random) -> str:
    """The same words with one number changed: another question."""
    numbers = list(re.finditer(r"\d\d+", question))
    found = draw.choice(numbers)
    return f"{question[: found.start()]}{int(found.group()) + draw.randrange(1, 900)}{question[found.end() :]}"


# ---- disguises --------------------------------------------------------------------------------------------------------


def spaced(text: str, draw: random.Random) -> str:
    r"""Other spaces around operators, and none, or two, where one was."""
    tight = re.sub(r"\s*([+*=^-])\s*", r"\1", text)
    return draw.choice((tight, re.sub(r"([+*=^-])", r" \1 ", tight), text.replace(" ", "  "), f"\n {tight}\t"))


def punctuated(text: str, draw: random.Random) -> str:
    """The mark at the end missing, another, or in quotes."""
    bare = text.rstrip("?.")
    return draw.choice(
        (bare, f"{bare}?.", f'"{text}"', f"{bare}!!" if bare[-1].isalpha() else f"{bare} ?", f"({text})", f"'{bare}'")
    )


def marked(text: str, draw: random.Random) -> str:
    """Markdown and HTML."""
    first, _, rest = text.partition(" ")
    return draw.choice(
        (
            f"**{first}** {rest}",
            f"# {text}",
            f"> {text}",
            f"- {text}",
            f"<p>{text}</p>",
            f"<b>{first}</b> {rest}",
            f"__{text}__",
            f"<question>\n{text}\n</question>",
            f"1. {text}",
            f"### Problem\n{text}",
            f"***{first}*** {rest}",
        )
    )


def latex(text: str, draw: random.Random) -> str:
    r"""The same formula in another hand."""
    changes: tuple[Callable[[str], str], ...] = (
        lambda t: re.sub(r"\$([^$]*)\$", r"\\(\1\\)", t),
        lambda t: re.sub(r"\$([^$]*)\$", r"$$\1$$", t),
        lambda t: t.replace("\\frac", "\\dfrac").replace("^\\circ", "^{\\circ}"),
        lambda t: re.sub(r"\$([^$]*)\$", r"\\[ \1 \\]", t),
        lambda t: t.replace(" * ", " \\times ").replace("\\sqrt", "\\displaystyle\\sqrt").replace("+", " + "),
        lambda t: re.sub(r"x\^2", r"x^{2}", t).replace("^\\circ", "°"),
    )
    for change in draw.sample(changes, len(changes)):
        if change(text) != text:
            return change(text)
    return f"${text.rstrip('?.')}$"


def wide(text: str, draw: random.Random) -> str:
    """Other code points that mean the same: wide forms, powers, ligatures, spaces and marks that are not seen."""
    changes: tuple[Callable[[str], str], ...] = (
        lambda t: re.sub(r"\d", lambda m: chr(ord(m[0]) + 0xFEE0), t),
        lambda t: re.sub(r"[A-Za-z?+=]", lambda m: chr(ord(m[0]) + 0xFEE0), t),
        lambda t: t.replace("^2", "²").replace("fi", "ﬁ").replace(" ", "\u00a0"),
        lambda t: t.replace("-", "\u2212").replace(" ", "\u2009"),
        lambda t: t[:4] + "\u200b" + t[4:] + "\ufeff",
        lambda t: t.replace("*", "×").replace("\\sqrt", "√").replace(" ", "\u202f"),
    )
    return draw.choice(changes)(text)


FOREIGN = (
    ("{a}加{b}等于多少？", "{a} 加 {b} 等于 多少?"),
    ("求{a}的平方根。", "求{a}的平方根"),
    ("¿Cuánto es {a} + {b}?", "Cuánto es {a}+{b}"),
    ("كم يساوي {a} + {b}؟", "كم يساوي {a}+{b}"),
    ("{a} और {b} का योग क्या है।", "{a} और {b} का योग क्या है?"),
    ("Combien font {a} + {b} ?", "Combien font {a}+{b}\u202f?"),
    ("Wie viel ist „{a} mal {b}“?", 'Wie viel ist "{a} mal {b}"'),
    ("Πόσο κάνει {a} + {b};", "Πόσο κάνει {a} + {b}?"),
    ("{a}と{b}の和は「何」ですか。", "{a}と{b}の和は何ですか？"),
    ("Сколько будет {a} · {b}?", "Сколько будет {a}·{b}."),
)


def foreign(draw: random.Random) -> tuple[str, str, str]:
    """An item, the same otherwise punctuated, and another question."""
    one, same = draw.choice(FOREIGN)
    a, b = draw.randrange(12, 99), draw.randrange(12, 99)
    return one.format(a=a, b=b), same.format(a=a, b=b), same.format(a=a + 101, b=b)


def renumbered(question: str, draw: random.Random) -> str:
    """All numbers changed."""
    return re.sub(r"\d\d+", lambda m: str(int(m[0]) + draw.randrange(1, 90)), question)


def unlike(question: str, draw: random.Random) -> str:
    """Of another pattern: for those who ask for variants, other numbers are no difference."""
    return f"{draw.choice(NAMES)} asks about {draw.choice(BOOKS)}: {draw.choice(THINGS)}, or {question.split(' ')[0].lower()}?"


KINDS: dict[str, tuple[Callable[[random.Random], str], Callable[[str, random.Random], str]]] = {
    "short, spaces": (short, spaced),
    "short, punctuation": (short, punctuated),
    "short, markup": (short, marked),
    "short, LaTeX": (short, latex),
    "short, usual suffix": (short, lambda t, d: draw_end(t, d) + d.choice(SUFFIXES)),
    "short, usual prefix": (short, lambda t, d: d.choice(PREFIXES) + t),
    "short, code points": (short, wide),
    "long, markup and LaTeX": (long, lambda t, d: marked(latex(t, d), d) + d.choice(SUFFIXES)),
}


def draw_end(text: str, draw: random.Random) -> str:
    """With its mark at the end, or without."""
    return draw.choice((text, text.rstrip("?.")))


def planted(seed: int = 0, each: int = 20) -> list[Planted]:
    """``each`` items of every kind in a disguise, and as many questions that are no items in the same one."""
    draw = random.Random(f"planted/{seed}")
    found: list[Planted] = []
    taken: set[str] = set()
    for kind, (make, change) in KINDS.items():
        for _ in range(each):
            item = next(q for q in iter(lambda m=make: m(draw), None) if q not in taken)
            unlike_it = strange_story if make is long else lambda d, i=item: other(i, d)
            strange = next(q for q in iter(lambda u=unlike_it: u(draw), None) if q not in taken)
            taken |= {item, strange}
            found += [Planted(kind, item, change(item, draw), True), Planted(kind, item, change(strange, draw), False)]
    for _ in range(each):
        item, same, strange = foreign(draw)
        found += [Planted("other languages", item, same, True), Planted("other languages", item, strange, False)]
    for number in range(each):
        item = (short, long)[number % 2](draw)
        found += [
            Planted("numbers changed, --variants", item, renumbered(item, draw), True, True),
            Planted("numbers changed, --variants", item, unlike(item, draw), False, True),
        ]
    return found


def found_in(rows: list[Planted]) -> dict[str, tuple[int, int, int, int]]:
    """Of each kind: planted, found of them, look-alikes, found of them."""
    counts: dict[str, tuple[int, int, int, int]] = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        mine = [row for row in rows if row.kind == kind]
        matching = Matching(variants=mine[0].variants)
        items = list(dict.fromkeys(row.item for row in mine))
        index = EvalIndex(tuple(EvalItem("e", i, normal(t), t) for i, t in enumerate(items)), matching)
        hit = {c.index: {items[h.item.line] for h in c.hits} for c in find_contamination(index, [row.text for row in mine])}
        right = [row.item in hit.get(i, ()) for i, row in enumerate(mine) if row.held]
        wrong = [bool(hit.get(i)) for i, row in enumerate(mine) if not row.held]
        counts[kind] = (len(right), sum(right), len(wrong), sum(wrong))
    return counts


# ---- rows of ten templates --------------------------------------------------------------------------------------------


def _arithmetic(d: random.Random) -> str:
    return f"Compute the remainder when {d.randrange(100, 9999)}^{d.randrange(3, 99)} is divided by {d.randrange(11, 97)}."


def _story(d: random.Random) -> str:
    return (
        f"{d.choice(NAMES)} buys {d.randrange(3, 40)} {d.choice(THINGS)} at {d.randrange(2, 9)} dollars each and sells half of "
        f"them for {d.randrange(3, 99)} dollars. What is the profit?"
    )


def _capital(d: random.Random) -> str:
    return f"Which {d.choice(('river', 'lake', 'mountain', 'port', 'desert'))} of {d.choice(CITIES)} inspired {d.choice(BOOKS)}?"


def _code(d: random.Random) -> str:
    words = d.sample(("list", "string", "matrix", "graph", "queue", "tree", "set", "heap", "stack", "range"), 3)
    which = d.choice(("first", "last", "least", "rarest"))
    return f"write a function that turns a {words[0]} into a {words[1]} and returns the {which} {words[2]}"


def _words(d: random.Random, count: int) -> str:
    syllables = ("ba", "ko", "ri", "ten", "mu", "sol", "vi", "dar", "lo", "pex", "nu", "gra")
    return " ".join("".join(d.choices(syllables, k=d.randrange(2, 4))) for _ in range(count))


def _boxed(text: str) -> str:
    return (
        f"{text}\n\nThink step by step and put your final answer within \\boxed{{}}. Do not use any tools, do not skip any step "
        "of the derivation, and check the result once more before you write it down."
    )


def _tagged(text: str) -> str:
    return (
        "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant first "
        "thinks about the reasoning process in the mind and then provides the user with the answer. The reasoning process and "
        "answer are enclosed within <think> </think> and <answer> </answer> tags, respectively.\nUser: " + text + "\nAssistant:"
    )


def _last_line(text: str) -> str:
    return (
        "Solve the following math problem step by step. The last line of your response should be of the form Answer: $Answer "
        f"(without quotes) where $Answer is the answer to the problem.\n\n{text}\n\nRemember to put your answer on its own line "
        'after "Answer:".'
    )


def _json(text: str) -> str:
    return (
        f"Read the note below and return a JSON object with the keys name, place and amount; leave a key out where the note does "
        f"not say it, and return nothing but the object.\n\nNote: {text}"
    )


def _python(text: str) -> str:
    return (
        f"You will be given a task and must generate a correct Python program that matches the specification and passes all "
        f"tests. Your task: {text}. Enclose your code within delimiters as follows.\n```python\n# YOUR CODE HERE\n```"
    )


def _reverse(text: str) -> str:
    return (
        f"Your job is to write the words of a line in the opposite order, without changing the words themselves, and with one "
        f"space between them. The line is: {text}"
    )


def _translate(text: str) -> str:
    return (
        f"Translate the sentence of the made-up language into English with the help of the dictionary that you were shown; keep "
        f"the order of clauses.\nSentence: {text}\nTranslation:"
    )


def _choice(text: str) -> str:
    a, b, c, d = (f"({letter})" for letter in "ABCD")
    return (
        f"Answer the following multiple choice question. The last line of your response should be of the following format: "
        f"'Answer: LETTER' where LETTER is one of ABCD. Think step by step before answering.\n\n{text}\n\n{a} the first\n{b} the "
        f"second\n{c} neither of them\n{d} both of them"
    )


def _chinese(text: str) -> str:
    return f"请逐步推理，并将最终答案放在\\boxed{{}}中。不要省略任何步骤，并在写下之前再次检查结果。\n题目：{text}"


def _chat(text: str) -> str:
    return (
        "<|im_start|>system\nYou are a careful mathematician who explains each step to a student and never guesses."
        f"<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    )


TEMPLATES: tuple[tuple[Callable[[str], str], Callable[[random.Random], str]], ...] = (
    (_boxed, _arithmetic),
    (_tagged, _story),
    (_last_line, _arithmetic),
    (_json, _story),
    (_python, _code),
    (_reverse, lambda d: _words(d, 5)),
    (_translate, lambda d: _words(d, 4)),
    (_choice, _capital),
    (_chinese, _arithmetic),
    (_chat, _capital),
)
"""How a task is put, and what tasks are put so."""


def in_templates(count: int = 500, seed: int = 0, but: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Different prompts, as many of each template: the prompt, and the task in it, which is none of ``but``."""
    draw = random.Random(f"templates/{seed}")
    seen = set(but)
    for number in range(count):
        dress, task = TEMPLATES[number % len(TEMPLATES)]
        text = next(t for t in iter(lambda m=task: m(draw), None) if t not in seen)
        seen.add(text)
        yield dress(text), text


def main() -> None:
    """Prints the table."""
    print("| kind | planted | found | recall | look-alikes | found | precision |\n|---|---|---|---|---|---|---|")
    counts = found_in(planted())
    total = tuple(sum(column) for column in zip(*counts.values(), strict=True))
    for kind, (held, right, unlike_, wrong) in {**counts, "all": total}.items():
        precision = right / (right + wrong) if right + wrong else 1.0
        print(f"| {kind} | {held} | {right} | {right / held:.3f} | {unlike_} | {wrong} | {precision:.3f} |")


if __name__ == "__main__":
    main()

"""Texts to be written under constraints that a program checks, compatible by construction: the oracle writes one.

The kinds of constraints are those of IFEval (arXiv 2311.07911), as `assay.verify.Instructions` knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.import_path import filed_as
from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.tasks.turns import list_names
from assay.verify.constraints.verifier import Instructions, constraint_of, describe_constraints
from assay_tasks.text.lexicon import WORDS

__all__ = ["ConstrainedText", "instructions", "written_to"]

_THEMES = (
    "a rainy morning",
    "learning to swim",
    "an old bridge",
    "a lost letter",
    "the first snow",
    "a busy market",
    "moving house",
    "a long train ride",
    "repairing a bicycle",
    "a garden in spring",
    "a new neighbour",
    "the night sky",
    "baking bread",
    "a visit to a museum",
    "a storm at sea",
    "a school play",
    "an empty street",
    "a walk with a dog",
    "a broken clock",
    "a birthday far from home",
    "picking apples",
    "a village fair",
    "a library at noon",
    "waiting for a bus",
)
_WORDS = ("bird", "light", "road", "voice", "table", "window", "people", "water", "hand", "time", "colour", "song")
_STARTS = ("To begin with", "Let me tell you", "Nobody expected it", "It was a quiet day", "Here is what happened")
_ENDS = ("That was all.", "Nothing more was said.", "And so it ended.", "We went home.", "Who would have thought so?")
_IDLE = (
    "It was late and the sun was low.",
    "Some of them waited there for a while.",
    "There was little to be heard.",
    "One of us had been there before.",
    "The others came much later than we had hoped.",
    "It took longer than anyone had thought.",
    "Then it was quiet again.",
    "Not much had changed since the last year.",
)
_LIMIT = 80


@filed_as("assay.tasks.instructions:Constrained")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConstrainedText(Problem):
    """Write a text on a theme that keeps all constraints. At level n there are n of them, besides two words that must occur.

    At most one constraint is drawn from each group that could conflict (length, shape, letter case, beginning, end, ...), and
    every task has a text that keeps them all: the one that the oracle writes. The theme is not judged.
    """

    name: str = "instructions/constraints"
    domain: str = "instructions"
    levels: tuple[int, ...] = tuple(range(1, 9))

    templates: ClassVar[tuple[str, ...]] = (
        "Write a short text about {theme}. {constraints}",
        "Please write something about {theme} that keeps to all of these rules. {constraints}",
        "{constraints} Within these rules, write about {theme}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A theme, two words, and a constraint of each of so many groups."""
        words = rng.sample(WORDS, 4)
        specs: list[dict[str, Any]] = [{"constraint": "keywords", "keywords": words[:2]}]
        for group in rng.sample(_GROUPS, level):
            specs.append(_draw_spec(rng, group, words))
        if {"quoted"} & (kinds := {spec["constraint"] for spec in specs}) and kinds & {"ends_with", "postscript"}:
            specs = [spec for spec in specs if spec["constraint"] != "quoted"]
            specs.append({"constraint": "starts_with", "phrase": rng.choice(_STARTS)})
        return {"theme": rng.choice(_THEMES), "constraints": specs}

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle's text keeps them all, and the request itself does not."""
        rules = [constraint_of(spec) for spec in facts["constraints"]]
        asked = [self.word(facts, variant) for variant in range(self.variants)]
        text = written_to(facts["theme"], facts["constraints"])
        return text is not None and not any(all(rule.holds(word) for rule in rules) for word in asked)

    def solve(self, facts: Facts) -> Solution:
        """A text that is built part by part, and padded until it is long enough."""
        text = written_to(facts["theme"], facts["constraints"]) or ""
        return Solution(answer=text, gold=facts["constraints"], effort=len(facts["constraints"]) * len(text.split()))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The theme, and each constraint as a sentence."""
        return {"theme": facts["theme"], "constraints": describe_constraints(facts["constraints"])}

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """The request alone: the whole text is the answer, whatever the form."""
        return self.word(facts, variant)

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The text alone."""
        return solution.answer

    def verifier(self, form: Form) -> Verifier:
        """All constraints must hold."""
        return Instructions()


_GROUPS = (
    "length",
    "shape",
    "case",
    "begin",
    "end",
    "forbidden",
    "frequency",
    "letter",
    "title",
    "highlights",
    "placeholders",
    "commas",
)
"""Of each group a text can keep one constraint, whatever it keeps of the others; but a quoted text ends with its mark."""


def _draw_spec(rng: Random, group: str, words: list[str]) -> dict[str, Any]:
    """A constraint of a group."""
    few = rng.randint(2, 5)
    match group:
        case "length":
            return rng.choice(
                (
                    {"constraint": "words", "count": 10 * rng.randint(8, 20), "relation": "at_least"},
                    {"constraint": "words", "count": 10 * rng.randint(12, 20), "relation": "at_most"},
                    {"constraint": "sentences", "count": rng.randint(8, 16), "relation": "at_least"},
                    {"constraint": "characters", "count": 50 * rng.randint(8, 16), "relation": "at_least"},
                )
            )
        case "shape":
            return rng.choice(
                (
                    {"constraint": "paragraphs", "count": few, "relation": "exactly"},
                    {
                        "constraint": "paragraph_start",
                        "paragraphs": few,
                        "nth": rng.randint(2, few),
                        "word": rng.choice(_WORDS[:6]),
                    },
                    {"constraint": "bullets", "count": few, "relation": "exactly"},
                    {"constraint": "numbered_list", "count": few, "relation": "exactly"},
                    {"constraint": "sections", "count": few, "relation": "exactly", "splitter": rng.choice(("Section", "Part"))},
                )
            )
        case "case":
            return rng.choice(
                (
                    {"constraint": "lower_case"},
                    {"constraint": "upper_case"},
                    {"constraint": "capital_words", "count": few, "relation": "at_least"},
                )
            )
        case "begin":
            return rng.choice(({"constraint": "starts_with", "phrase": rng.choice(_STARTS)}, {"constraint": "quoted"}))
        case "end":
            mark = rng.choice(("P.S.", "P.P.S."))
            return rng.choice(
                ({"constraint": "ends_with", "phrase": rng.choice(_ENDS)}, {"constraint": "postscript", "mark": mark})
            )
        case "forbidden":
            return {"constraint": "forbidden", "keywords": rng.sample(_WORDS[6:], 2)}
        case "frequency":
            relation = rng.choice(("exactly", "at_least"))
            return {"constraint": "keyword_frequency", "keyword": words[2], "count": few, "relation": relation}
        case "letter":
            return {"constraint": "letter_frequency", "letter": rng.choice("bfgkpvw"), "count": 3 * few, "relation": "at_least"}
        case "title":
            return {"constraint": "title"}
        case "highlights" | "placeholders":
            return {"constraint": group, "count": few, "relation": "at_least"}
        case _:
            return {"constraint": "no_commas"}


def written_to(theme: str, specs: list[dict[str, Any]]) -> str | None:
    """A text that keeps constraints, checked; None where none was found.

    >>> rules = [{"constraint": "keywords", "keywords": ["oak"]}, {"constraint": "sentences", "count": 3, "relation": "exactly"}]
    >>> written_to("trees", rules)
    'This is about trees. There was the oak. It was late and the sun was low.'
    """
    rules, by = [constraint_of(spec) for spec in specs], {spec["constraint"]: spec for spec in specs}
    for padding in range(_LIMIT):
        text = _text(theme, by, padding)
        if all(rule.holds(text) for rule in rules):
            return text
    return None


def _text(theme: str, by: Mapping[str, dict[str, Any]], padding: int) -> str:
    """A text with all parts that constraints ask for, and so many idle sentences."""
    body = [f"This is about {theme}.", *_request_lines(by), *(_IDLE[i % len(_IDLE)] for i in range(padding))]
    start = f"{by['starts_with']['phrase']}: " if "starts_with" in by else ""
    head = [f"<<About {theme}>>"] if "title" in by else []
    tail = [by["ends_with"]["phrase"]] if "ends_with" in by else []
    tail += [f"{by['postscript']['mark']} There is more to say."] if "postscript" in by else []
    text = start + _shape_text(by, head, body, tail)
    if "lower_case" in by or "upper_case" in by:
        text = text.lower() if "lower_case" in by else text.upper()
    return f'"{text}"' if "quoted" in by else text


def _request_lines(by: Mapping[str, dict[str, Any]]) -> list[str]:
    """A sentence for each thing that must occur."""
    out = [f"There was the {word}." for word in by.get("keywords", {}).get("keywords", ())]
    if "keyword_frequency" in by:
        out += [f"I saw the {by['keyword_frequency']['keyword']}."] * by["keyword_frequency"]["count"]
    if "letter_frequency" in by:
        spec = by["letter_frequency"]
        word = next(w for w in ("bubble", "fluff", "giggle", "kick", "pepper", "valve", "wow") if spec["letter"] in w)
        out += [f"It said {word}."] * spec["count"]
    if "capital_words" in by:
        out.append(f"It was {' '.join(['VERY'] * by['capital_words']['count'])} late.")
    if "highlights" in by:
        out.append(
            f"There were {list_names([f'*part {i}*' for i in range(1, by['highlights']['count'] + 1)]).replace(',', ' and')}."
        )
    if "placeholders" in by:
        out.append(f"It was sent to {' or '.join(['[name]'] * by['placeholders']['count'])}.")
    return out


def _shape_text(by: Mapping[str, dict[str, Any]], head: list[str], body: list[str], tail: list[str]) -> str:
    """Paragraphs, a list or sections, as asked."""
    plain = " ".join(body)
    if "paragraphs" in by or "paragraph_start" in by:
        spec = by.get("paragraph_start", {})
        count = spec["paragraphs"] if spec else by["paragraphs"]["count"]
        parts = [plain, *["More could be said of it."] * (count - 1)]
        if spec:
            parts[spec["nth"] - 1] = f"{spec['word'].capitalize()} is a word to begin with. {parts[spec['nth'] - 1]}"
        return "\n".join([*head, *["\n\n".join(parts)], *tail])
    listing = _listing(by)
    if not listing and not head and not tail:
        return plain
    return "\n".join([*head, plain, *listing, *tail])


def _listing(by: Mapping[str, dict[str, Any]]) -> list[str]:
    if "bullets" in by:
        return ["- One more point."] * by["bullets"]["count"]
    if "numbered_list" in by:
        return [f"{i}. One more point." for i in range(1, by["numbered_list"]["count"] + 1)]
    if "sections" in by:
        spec = by["sections"]
        return [f"{spec['splitter']} {i}\nOne more point." for i in range(1, spec["count"] + 1)]
    return []


def instructions() -> Problems:
    """Texts under constraints."""
    return Problems(name="instructions", summary="Texts to be written under constraints.", problems=(ConstrainedText(),))

"""Mathematics, letters and short texts: by their source, else by what kind of thing the gold is."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from assay.tasks.exchange.forms.choice import LETTERS
from assay.tasks.exchange.forms.route import Asked, Form, Route, Unsupported, as_json, texts_in
from assay.tasks.verifier_spec import Spec
from assay.verify.answer_verifier import answer_in

__all__ = ["FORMS", "TEXT", "by_gold", "is_formula", "is_number", "refuse_lone_letter"]

TEXT: Spec = {"name": "exact", "strip": True, "casefold": True, "where": "auto"}
"""A short text, in the part of the answer that is called so."""

_MATH = re.compile(
    r"(?i)(.*/)?(gsm-?8k|math(__.*|_dapo.*|-?500|_500)?|.*math-?lighteval|aime.*|amc.*|numina.*|deepscale?r.*|dapo.*|.*big-?math.*|"
    r"olympiad.*|minerva.*|orz.*|openr1-math.*|omni-?math.*|deepmath.*|train-math-.*|aops.*|cn_k12|geometry3k|hendrycks.*math.*)"
)
_WORDS, _LONG = 8, 80
"""Up to so many words and characters a text can be said again as it stands."""

_NUMBER = re.compile(r"[-+]?\$?\s*(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?\s*%?|[-+]?\d+\s*/\s*\d+")
_NAMES = re.compile(r"\b(?:sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln|exp|sqrt|pi|inf|infinity|frac|mod|cup|cap|in)\b")
_SYMBOLS = re.compile(r"[-+*/^=<>()\[\]{}|,.;:!√π∞∪∩±≤≥≠·×÷°'_\s\dA-Za-z]*")
_LAST_BOX = re.compile(r"\\(?:boxed|fbox)\b")
_FINALS = ("final_answer", "expected_answer", "correct_answer")


def mathematics(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Rows whose answer stands in a box of their solution, or whose source is one of mathematics."""
    gold, final = asked.gold, next((row[name] for name in _FINALS if isinstance(row.get(name), str | int | float)), None)
    if isinstance(final, str | int | float) and final != "":
        gold = final
    known = bool(_MATH.fullmatch(asked.source)) or bool(_MATH.fullmatch(str(row.get("source") or ""))) or "problem_type" in row
    _check_marks(row, asked, gold)
    if isinstance(gold, str) and gold.strip().lower() in ("proof", "notfound", "not found", "see solution"):
        raise Unsupported(
            f"its answer is {gold!r}: there is no final value to compare", "'math', with the final answer as the gold"
        )
    told = isinstance(gold, str) and gold == row.get("solution") and len(gold.split()) > 2 and not is_formula(gold)
    worked = gold if isinstance(gold, str) and (told or _LAST_BOX.search(gold)) else asked.solution if gold is None else ""
    if worked:
        boxed = answer_in(worked, "box")
        if boxed:
            return Route(form="boxed solution", verifier="math", answer=boxed, solution=worked, uses=("solution",))
        if known or _LAST_BOX.search(worked):
            raise Unsupported("its solution has no final answer in a box", "'math', with the final answer as the gold")
    if not known:
        return None
    value = as_json(gold)
    if isinstance(value, list) and (texts := texts_in(value)) and len(texts) == 1:
        return _math(texts[0], asked)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise Unsupported(f"its gold {value!r:.120} is no single answer", "'math', with one answer as text")
    return _letter(str(value), asked) or _math(value, asked)


def _check_marks(row: Mapping[str, Any], asked: Asked, gold: Any) -> None:
    """Raises Unsupported where a row is of a data set whose solutions mark the final answer, and this one has no mark."""
    if not isinstance(gold, str) or is_number(gold):
        return
    nearest = "'math', with the final answer as the gold"
    if "####" not in gold and ("<<" in gold or _GSM.search(asked.source)):
        raise Unsupported("its answer has no line '#### ' with the final number, which those of GSM8K end on", nearest)
    hendrycks = gold == row.get("solution") and "problem" in row and ("level" in row or "type" in row)
    if hendrycks and not _LAST_BOX.search(gold):
        raise Unsupported("its solution has no final answer in a box, which those of MATH have", nearest)


_GSM = re.compile(r"(?i)gsm-?8k")


def _math(gold: Any, asked: Asked) -> Route:
    if isinstance(gold, str) and (len(gold) > 400 or len(gold.split()) > 40):
        raise Unsupported(
            f"its gold is a text of {len(gold.split())} words, no final answer", "'math', with the final answer alone"
        )
    return Route(form="mathematics", verifier="math", answer=gold)


def by_gold(asked: Asked) -> Route:
    """For rows of unknown form: numbers and formulas are mathematics, a letter under options is a choice, a short text is said
    again; for all else no verifier can be guessed.

    Raises:
        Unsupported: a long text, a list, a table, or no gold.

    >>> by_gold(Asked(question="2+2?", gold="4", solution="", source="rows")).verifier
    'math'
    """
    gold = asked.gold
    if isinstance(gold, int | float) and not isinstance(gold, bool):
        return Route(form="number", verifier="math", answer=gold)
    if isinstance(gold, bool):
        return Route(form="yes or no", verifier=TEXT, answer=str(gold))
    if isinstance(gold, list | tuple):
        raise Unsupported(
            f"its gold is a list, {gold!r:.120}, of which each, all in order, or all in any order may be meant",
            "'exact' (any one), 'list' or 'set', named for the row (--verifier)",
        )
    if not isinstance(gold, str):
        raise Unsupported(f"its gold is {gold!r:.160}, and nothing says what that is", "'json', named for the row (--verifier)")
    if is_number(gold) and asked.solution and "####" in asked.solution:  # another number than its solution's: as it stands
        return Route(form="text", verifier={"name": "exact", "strip": True}, answer=gold)
    if letter := _letter(gold, asked):
        return letter
    refuse_lone_letter(asked)
    if is_number(gold) or is_formula(gold):
        return Route(form="formula", verifier="math", answer=gold)
    return _short(gold, asked)


def _short(gold: str, asked: Asked) -> Route:
    if _is_program(gold):
        raise Unsupported(
            "its gold is a program, and no tests say what it must do", "'unit_tests', with 'tests' as a list of pieces"
        )
    if len(gold.split()) > _WORDS or len(gold) > _LONG or "\n" in gold.strip():
        raise Unsupported(
            f"its gold is a text of {len(gold.split())} words, which no answer would say again word by word",
            "'exact', with a short answer as the gold (--gold names its field); or the stage Imitate, which learns from texts",
        )
    nearest = "'exact', with the final answer alone as the gold (--gold names its field)"
    if _is_prose(gold):
        raise Unsupported(f"its gold {gold!r} is prose, which no answer would say again word by word", nearest)
    if _PROOF.match(asked.question):
        raise Unsupported(f"it asks for a proof, and its gold {gold!r} is no final value to compare", nearest)
    return Route(form="text", verifier=TEXT, answer=gold)


_PROOF = re.compile(r"(?i)\s*(?:prove|show) that\b")
_CODE = re.compile(r"^```|^\s*#include\b|^\s*public (?:static|class)\b|^\s*function\s+\w+\s*\(", re.MULTILINE)
_CONCLUDES = re.compile(r"(?i)(?:hence|thus|therefore)\b")
_SAYS = re.compile(r"(?i)\b(?:is|are|was|were|has|have|follows?|holds?|means|implies|equals|gives|obvious|trivial|clearly)\b|=")
_OPENS = re.compile(r"(?i)(?:by|from|since|because|so|let|note|using|it|this|we|then|suppose|assume|see|as)\b")


def _is_program(text: str) -> bool:
    if _CODE.search(text):
        return True
    try:
        return any(
            isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
            for n in ast.walk(ast.parse(text.strip()))
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_prose(text: str) -> bool:
    """Whether a short text is a sentence that concludes or tells something, no name of a thing.

    A full stop alone says nothing: names and abbreviations end on one too.
    """
    text = text.strip()
    words = text.split()
    if len(words) < 2:
        return False
    if _CONCLUDES.match(text):
        return True
    ends = text.endswith((".", "!")) and words[-1].rstrip(".!").isalpha() and len(words[-1]) > 3
    return ends and bool(_SAYS.search(text) or (_OPENS.match(text) and words[-1][0].islower()))


def _letter(gold: str, asked: Asked) -> Route | None:
    """A letter whose option stands in the question."""
    said = gold.strip().strip("().")
    if len(said) != 1 or said not in LETTERS:
        return None
    shown = [k for k in LETTERS[:12] if re.search(rf"(?:^|[\s(*{{]){k}(?:\)|\.|:|\}}|\\\))", asked.question)]
    if said not in shown or shown[:2] != ["A", "B"]:
        return None
    return Route(form="multiple choice", verifier="choice", answer=said)


def refuse_lone_letter(asked: Asked) -> None:
    """Raises Unsupported where the gold is a letter of an option that the question does not show."""
    said = asked.gold.strip().strip("().") if isinstance(asked.gold, str) else ""
    if len(said) == 1 and said in LETTERS[:5] and _letter(said, asked) is None:
        raise Unsupported(
            f"answer {asked.gold!r} is a letter and the row has no options",
            "'choice', with the options in the question, in columns A, B, C, D or in a list 'options'; 'exact', named for the "
            "row (--verifier), where the letter itself is the answer",
        )


def is_number(text: str) -> bool:
    """Whether a text is a number, and nothing else.

    >>> [is_number(t) for t in ("1,000", "-3/4", "$5.20", "50%", "", "x", "1 2")]
    [True, True, True, True, False, False, False]
    """
    return _NUMBER.fullmatch(text.strip()) is not None and any(c.isdigit() for c in text)


def is_formula(text: str) -> bool:
    r"""Whether a text is mathematics: LaTeX, or symbols and single letters with a digit or an operator among them.

    >>> [is_formula(t) for t in (r"\frac{1}{2}", "$x$", "x^2 + 1", "(1, 2)", "[0, inf)", "yes", "Anna", "no, 2 of them")]
    [True, True, True, True, True, False, False, False]
    """
    if re.search(r"\\[a-zA-Z]+|\$[^$]+\$", text):
        return True
    plain = _NAMES.sub(" ", text)
    letters = re.findall(r"[A-Za-z]+", plain)
    return bool(
        _SYMBOLS.fullmatch(text) and re.search(r"[\d+*/^=<>∞π√]", text) and all(len(w) <= 2 for w in letters) and len(text) <= 200
    )


FORMS: tuple[Form, ...] = (mathematics,)

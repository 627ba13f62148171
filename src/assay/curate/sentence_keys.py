r"""Questions in the form in which evaluation items are looked for: in sentences, without markup and punctuation.

Only what changes a question stays: words, numbers, and the operators and brackets of formulas. So ``Compute $\frac12+1$.`` and
``**Compute** \(\dfrac{1}{2} + 1\)`` are the same, and ``12+3`` is not ``12+30``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

__all__ = ["ask_alike", "has_own_content", "key_of", "mask_numbers", "own_words", "shared_words", "split_pieces"]

_NUMBER = re.compile(r"(?<![^\W\d_])\d+(?:[.,]\d+)*")

# ---- code points ------------------------------------------------------------------------------------------------------

_GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "omicron",
    "pi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "chi",
    "psi",
    "omega",
]
_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"
_PLAIN_FORMS = str.maketrans(
    {
        **dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63", "-"),
        **dict.fromkeys("\u2014\u2015", "\n"),
        **dict.fromkeys("×·⋅∙∗", "*"),
        **dict.fromkeys("÷\u2044\u2215", "/"),
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "√": " sqrt ",
        "°": " deg ",
        "∞": " infty ",
        **dict.fromkeys("“”„‟«»‹›「」『』〈〉《》【】", '"'),
        **dict.fromkeys("‘’‚‛´`", "'"),
        **dict.fromkeys("。｡：；！؟।॥։።፧⁇‽", "\n"),
        **dict.fromkeys("¿¡", "\n"),
        "\u037e": "?",
    }
)
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f]")
_POWER = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_PART = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞])")
_LONE_GREEK = re.compile(f"(?<![^\\W\\d_])[{_LETTERS}](?![^\\W\\d_])")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")

# ---- markup -----------------------------------------------------------------------------------------------------------

_INLINE = re.compile(
    r"</?(?:b|i|u|s|em|strong|span|sub|code|a|font|small|big|mark|tt)(?:\s+[\w-]+=(?:\"[^\"]*\"|'[^']*'|[^\s<>]+))*\s*>"
)
_TAG = re.compile(r"<[/!]?\|?[a-z][\w:-]*(?:\s+[\w-]+=(?:\"[^\"]*\"|'[^']*'|[^\s<>]+))*\s*[/|]?>")
_TURN = re.compile(r"\[/?(?:inst|sys|system|user|assistant)\]|<</?sys>>")
_ASIDE = re.compile(r"(?<=[^\W\d_]{2}) -{1,2} (?=[^\W\d_]{2})")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_FENCE = re.compile(r"```\w*")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|~~)(?=[^\s*])([^*\n]+?)(?<=[^\s*])\1(?![\w*])")
_LINE_START = re.compile(r"(?m)^[ \t>]*(?:#+[ \t]+|[-*+•][ \t]+|\(?(?:\d{1,3}|[a-z])[.)][ \t]+)*")

# ---- LaTeX ------------------------------------------------------------------------------------------------------------

_WORDS_IN = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|emph|mbox|operatorname|underline|boldsymbol)\*?\s*\{([^{}]*)\}"
)
_NO_SIGN = re.compile(
    r"\\(?:left|right|displaystyle|textstyle|limits|nolimits|quad|qquad|ldots|cdots|dots|big+[lr]?|[,;:!() \[\]])"
)
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s*(\d)\s*(\d)")
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_RAISED = re.compile(r"\^\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^\s*(?:\\circ(?![a-z])|\{\s*\\circ\s*\})")
_BLOCK = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\\\|\\item(?![a-z])")
_SIGN = re.compile(r"\\(?:(cdot|times|ast)|(div)|(leq?)|(geq?)|(neq?))(?![a-z])")
_NAME = re.compile(r"\\([a-z]+)")

# ---- sentences --------------------------------------------------------------------------------------------------------

_FACTORIAL = re.compile(r"(?<=[\d)])!(?![=!])")
_BREAK = re.compile(r"[\n;\"?]+|[.:!]+(?=[\s'()\]]|$)")
_OPENING = (
    r"please|kindly|let'?s|let us|think (?:step|carefully|about)|reason (?:step|carefully)|step by step|put (?:your|the) |"
    r"give (?:your|the final|only|an? )|show (?:your|all|each|every)|explain (?:your|each|how)|"
    r"answer (?:with|in|using|the|as|only|concisely|briefly|directly)|"
    r"your (?:final )?answer|the final answer|respond (?:with|in|only)|reply (?:with|in|only)|output (?:your|only|the)|"
    r"return (?:your|only|just)|provide (?:your|only|a)|write (?:your|the final)|box (?:your|the)|express your|remember to|"
    r"make sure|you (?:are|must|should|will)|do not|don't|use (?:\\?boxed|at most|only|the format)|end (?:your|with)|"
    r"state (?:your|the final)|in (?:one|a single) (?:word|sentence|number)|work (?:it|through)|be concise|"
    r"/(?:no_)?think|razona|piensa|pense|raisonne|denk|请|請|让我们|讓我們|步骤"
)
_BEFORE = re.compile(rf" (?={_OPENING})")
_AFTER = re.compile(
    r"^\s*(?:(?:please|kindly|can you|could you|now|question|problem|exercise|task|example|prompt|query|q|user|human|instruction|"
    r"input)\s*(?:no\s*)?#?\d{0,3}\s+)+(?=\S)"
)
_SAYS_HOW = re.compile(
    r"\b(?:answer\w*|steps?|step-by-step|final\w*|boxed|box|reason\w*|think\w*|explain\w*|explanation|show\w*|respon[ds]\w*|reply|"
    r"output\w*|solution|results?|formats?|please|only|concise\w*|brief\w*|expert|assistant|helpful|tutor|teacher|solve\w*|problem|"
    r"question|following|work|carefully|json|letter|sentences?|numeric\w*|directly|briefly|exactly|clearly|english|"
    r"markdown|latex|options?|choices?|conclude|user|instructions?|conversation|tags?|"
    r"respuesta|paso|réponse|étape|antwort|schritt\w*|resposta|passo|ответ\w*|шаг\w*|jawab\w*|risposta)\b|[答案步推理请請骤题題]"
)
_GENERAL_WORDS = """
a an and any are as at be by can could did do does each find following for from given has have how i if in is it its
many me more most much must no not of on one or out question answer answers questions statement statements true false
correct incorrect wrong best option options choose select solve compute calculate evaluate determine simplify explain
why what when where which who whose will with would you your this that the these those there they to was were than then
x y z n value values above below figure diagram picture image table graph shown text passage code program output
"""
_GENERAL = frozenset(_GENERAL_WORDS.split())
"""Words that any question may have."""

# ---- words ------------------------------------------------------------------------------------------------------------

_GROUPS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})-(?=[^\W\d_])|(?<=[^\W\d_])-(?=[^\W\d_]{2})")
_MINUS = re.compile(r"(?<=[\d)])\s*-\s*|(?<=\b[a-z])\s+-\s+|\s*-\s*(?=[\d(])|(?<=\d)\s*-\s*(?=[a-z])")
_GLUED = re.compile(r"\s*([+*/=<>^|¬]|\s%)\s*")
_PROSE_OPENS = re.compile(r"[(\[](?=[^\W\d_]{2})")
_PROSE_CLOSES = re.compile(r"(?<=[^\W\d_]{2})[)\]]")
_NO_WORD = str.maketrans(dict.fromkeys(",'_#@&$\\`{}~!\t\r\x0b\x0c", " "))
_SIGNS_OF_WORDS = "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0970-\u109f\u1780-\u17d3\u1dc0-\u1dff"
"""Vowel signs and accents that are no letters for a regular expression."""
_NOT_KEPT = re.compile(rf"[^\w{_SIGNS_OF_WORDS}+*/=<>^|%()\[\]\-¬. ]")
_NO_POINT = re.compile(r"(?<!\d)\.|\.(?!\d)")
_DASH = re.compile(r"(?<!\S)-+(?!\S)")
_OPERATOR = re.compile(r"[+*/=<>^|¬%()\[\]]")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_LOOSE = re.compile(r"(?<!\S)[=()\[\]*]+(?!\S)|=+$")
_BETWEEN_DIGITS = re.compile(r"(?<=\d) (?=\d)")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def split_pieces(text: str, masked: bool = False) -> list[str]:
    r"""The sentences and lines of a question, each as its words with one space between them; those without a word are left out.

    Args:
        text: as it was written.
        masked: every number is 0, so that questions made from one pattern are the same.

    >>> split_pieces("**Compute** $\\sin 60^\\circ$.\nPlease reason step by step.")
    ['compute sin 60 deg', 'please', 'reason', 'step by step']
    >>> split_pieces("求１２加7。") == split_pieces("求 12 加 7？"), split_pieces("What is 1,024 + 3 = ?", masked=True)
    (True, ['what is 0+0'])
    """
    if not text.isascii():
        text = _known_characters(text)
    text = text.lower()
    if "<" in text:
        text = _TAG.sub("\n", _INLINE.sub("", text))
    if "\\" in text or "$" in text:
        text = _without_latex(text)
    text = _without_markdown(text)
    if "!" in text:
        text = _FACTORIAL.sub("¬", text.replace("!=", "¬="))
    text = _BEFORE.sub("\n", text)
    if masked:
        text = mask_numbers(text)
    found = (_words(piece) for piece in _BREAK.split(text) if piece)
    return [words for words in found if words]


def mask_numbers(text: str) -> str:
    """Every number that is no part of a word is 0.

    >>> mask_numbers("1,024 apples for 3.50, x2")
    '0 apples for 0, x2'
    """
    return _NUMBER.sub("0", text)


def key_of(pieces: Sequence[str]) -> str:
    """What two questions that ask the same have in common: their pieces without spaces; between two numbers a mark stays.

    >>> key_of(["what is 12+30"]) == key_of(["what", "is 12+30"]), key_of(["1 2"]) == key_of(["12"])
    (True, False)
    """
    return _BETWEEN_DIGITS.sub("_", " ".join(pieces)).replace(" ", "")


def has_own_content(words: str) -> bool:
    """Whether a question says anything by which it could be known: a number, a formula, or a word that not every question has.

    >>> has_own_content("which of the following is true"), has_own_content("what is 2+2"), has_own_content("who was ada")
    (False, True, True)
    """
    return any(word not in _GENERAL for word in words.split(" ")) and len(words) > 3


def ask_alike(rest: Sequence[str], own: str) -> bool:
    """Whether what a text says besides an item leaves the item the question that it is.

    Instructions do, and so do a few words of introduction. Beside other content an item has to have a number or a formula: "What
    is the area?" is another question in every text.

    Args:
        rest: the other pieces of the text.
        own: the item's words.
    """
    return any(c.isdigit() or c in "+*/=<>^" for c in own) or all(
        piece.count(" ") < 3 or _SAYS_HOW.search(piece) is not None for piece in rest
    )


def shared_words(a: Sequence[str], at: int, b: Sequence[str], to: int) -> list[str]:
    """The longest run of words that two texts share around a word of each; empty where these two differ.

    >>> shared_words(["find", "the", "least", "prime"], 1, ["not", "the", "least", "one"], 1)
    ['the', 'least']
    """
    begin = 0
    while begin < min(at, to) and a[at - begin - 1] == b[to - begin - 1]:
        begin += 1
    end = 0
    while end < min(len(a) - at, len(b) - to) and a[at + end] == b[to + end]:
        end += 1
    return list(a[at - begin : at + end]) if end else []


def own_words(words: Sequence[str], common: frozenset[str], k: int) -> float:
    """How many of some words stand in no common shingle. A character of a script without spaces is two thirds of a word.

    >>> own_words(["think", "step", "by", "step", "about", "whales"], frozenset({"think step by", "step by step"}), 3)
    2.0
    """
    told = set[int]()
    for at in range(len(words) - k + 1) if common else ():
        if " ".join(words[at : at + k]) in common:
            told.update(range(at, at + k))
    return sum(2 if _WIDE.match(word) else 3 for at, word in enumerate(words) if at not in told) / 3


# ---- steps ------------------------------------------------------------------------------------------------------------


def _known_characters(text: str) -> str:
    """Compatible forms (NFKC), and plain ones for signs; powers stay powers, and nothing that is not seen stays."""
    text = _POWER.sub(lambda m: "^" + unicodedata.normalize("NFKC", m[0]).replace("\u2212", "-"), _UNSEEN.sub("", text))
    text = unicodedata.normalize("NFKC", _PART.sub(" ", text).translate(_PLAIN_FORMS)).translate(_PLAIN_FORMS)
    text = _OTHER_DIGIT.sub(lambda m: str(unicodedata.digit(m[0])), text)
    text = _LONE_GREEK.sub(lambda m: f" {_GREEK[_LETTERS.index(m[0])]} ", text.lower().replace("ς", "σ"))
    return _WIDE.sub(r" \g<0> ", text)


def _without_latex(text: str) -> str:
    """Formulas as they would be typed without LaTeX; a command that is no sign stays as its name."""
    text = text.replace("\\$", " ").replace("$", "").replace("{,}", ",").replace("\\%", "%").replace("~", " ")
    if "\\" in text:
        text = _NO_SIGN.sub(" ", _BLOCK.sub("\n", text))
        text = _DEGREES.sub(" deg ", _WORDS_IN.sub(r" \1 ", text))
        text = _ROOT.sub(_group_form("sqrt {}"), _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text))
        text = _FRACTION.sub(lambda m: f" {_group(m[1])}/{_group(m[2])} ", text)
        text = _SIGN.sub(lambda m: ("*", "/", "<=", ">=", "!=")[(m.lastindex or 1) - 1], text)
        text = _NAME.sub(r" \1 ", text)
    text = _RAISED.sub(_group_form("^{}"), text)
    return text.replace("{", " ").replace("}", " ").replace("\\", " ")


def _group_form(form: str) -> Callable[[re.Match[str]], str]:
    return lambda match: form.format(_group(match[1]))


def _group(inner: str) -> str:
    """What stood in braces, in brackets where it is more than one name or number."""
    inner = inner.strip()
    return inner if inner.isalnum() else f"({inner})"


def _without_markdown(text: str) -> str:
    if "[" in text:
        text = _LINK.sub(r"\1", _TURN.sub("\n", text))
    if " -" in text:
        text = _ASIDE.sub("\n", text)
    if "`" in text:
        text = _FENCE.sub("\n", text).replace("`", " ")
    if "*" in text or "~~" in text:
        text = _EMPHASIS.sub(r"\2", text).replace("**", "^")
    if "__" in text:
        text = text.replace("__", " ")
    return _LINE_START.sub("", text)


def _words(piece: str) -> str:
    """Words with one space between them, operators without any."""
    if "," in piece:
        piece = _GROUPS.sub("", piece)
    if "'" in piece:
        piece = _APOSTROPHE.sub("", piece)
    piece = piece.translate(_NO_WORD)
    if not piece.isascii():
        piece = _NOT_KEPT.sub(" ", piece)
    if "." in piece:
        piece = _NO_POINT.sub(" ", piece)
    if "-" in piece:
        piece = _DASH.sub(" ", _MINUS.sub("-", _HYPHEN.sub(" ", piece)))
    if _OPERATOR.search(piece) is not None:
        piece = _GLUED.sub(r"\1", _PROSE_CLOSES.sub(" ", _PROSE_OPENS.sub(" ", piece)))
        piece = _LOOSE.sub(" ", _strip_brackets(" ".join(piece.split())))
    piece = " ".join(piece.split())
    return (_AFTER.sub("", piece, count=1) or piece) if _LETTER_OR_DIGIT.search(piece) else ""


def _strip_brackets(piece: str) -> str:
    """Without brackets around the whole, or one at an end that has no other."""
    while piece[:1] in ("(", "[") and (piece[-1:] in (")", "]") or piece.count("(") + piece.count("[") == 1):
        inner = piece[1:-1] if piece[-1:] in (")", "]") else piece[1:]
        if piece[-1:] in (")", "]") and not _balanced(inner):
            break
        piece = inner.strip()
    return piece


def _balanced(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth < 0:
            return False
    return depth == 0

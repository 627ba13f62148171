"""The words with which texts deny or doubt an answer, or put two beside each other, in the languages with the most speakers."""

from __future__ import annotations

import re

__all__ = ["OR", "box_denied", "box_joined", "denied", "denied_behind", "doubted", "is_reason", "text_behind"]

OR = (
    r"(?:\b(?:or|and/or|oder|bzw\.?|o|ou|u|oppure|ovvero|или|либо|або|lub|albo|atau|veya|ya\s+da|hoặc|eller)\b"
    r"|或者?是?|还是|還是|または|もしくは|또는|أو|या|अथवा|বা|অথবা)"
)
"""A pattern: the word "or"."""

_NOT = (
    r"\b(?:not|never|nor|neither|cannot|anything but|all but|except|other than"
    r"|nicht|kein(?:e|er|en|em|es)?|keinesfalls|keineswegs|niemals|weder|außer"
    r"|pas|jamais|ni|sauf|ne (?:peut|saurait|doit|devrait)"
    r"|no (?:es|son|será|sería|sea|era|puede|debe|está)|nunca|jamás|tampoco|excepto|salvo"
    r"|não|nem|exceto|non|né|mai|tranne"
    r"|не|ни|никогда|кроме|nie|ani|oprócz|niet|geen|inte|ikke"
    r"|bukan(?:lah)?|tidak|kecuali|không phải|không|chẳng)\b"
    r"|n['’]t\b|≠|!=|\\neq?"
    r"|不是|并非|並非|不等于|不等於|不选|不選|不为|不為|不可能是|不会是|不會是|不应该?是|不應該?是|绝非|絕非|排除了?|除了"
    r"|(?<!\w)(?:ليست|ليس|غير|لا)"
)
_BETWEEN = (
    r"be|been|equal|equals|equal to|option|choice|answer|the|number|letter|really|necessarily|actually|definitely"
    r"|ist|sein|die|der|das|den|antwort|buchstabe|zahl|gleich"
    r"|la|le|les|l['’]|être|est|réponse|lettre|el|los|las|ser|es|son|opción|respuesta|letra|número"
    r"|é|(?-i:[aoe])|opção|alternativa|resposta|è|essere|lettera|opzione|risposta"
    r"|ответ|вариант|буква|число|jest|to|odpowiedź|het|antwoord|jawaban(?:nya)?|pilihan|phải|là|đáp án"
    r"|选项|選項|答案|是|الخيار|الإجابة|هي|هو"
)
_DENIAL = re.compile(rf"(?:{_NOT})(?:\s*(?:{_BETWEEN})(?![^\W\d_]))*[\s$*_`(\[:«„\"“]*\Z", re.IGNORECASE)
_CLOSED = r"[)\]}*_`$\"”»]*(?:\\%|%)?"
_WRONG = (
    r"(?:wrong|incorrect|false|untrue|impossible|falsch|faux|fausse|inexacte?|incorrecte?|incorrect[ao]|fals[ao]|errónea|erróneo|"
    r"errad[ao]|sbagliat[ao]|scorrett[ao]|errat[ao]|неверн\w*|неправильн\w*|ошибоч\w*|błędn\w*|nieprawidłow\w*|onjuist|fout|"
    r"felaktig\w*|salah|keliru|yanlış\w*|sai)\b|错|錯|不对|不對|不正确|不正確|誤|間違|まちが|틀|خطأ|خاطئ|गलत|ग़लत|ভুল"
)
_IS = (
    r"(?:is|are|was|would\s+be|must\s+be|seems|ist|wäre|est|serait|es|sería|é|seria|è|sarebbe|jest|to|adalah|là|är|"
    r"是|为|は|이?가?|هو|هي)"
)
_RIGHT = r"(?:right|correct|true|possible|it|valid|(?:the|my|our|an?)\s+(?:\w+\s+)?(?:answer|option|choice|result|solution))\b"
_NEGATED = (
    r"(?:ist|wäre|sind)\s+(?:nicht|kein\w*)\b|nicht\s+(?:\w+\s+){0,2}(?:richtig|korrekt|antwort|lösung)|(?:n['’]est|n['’]était|ne\s+\w+)\s+pas\b"
    r"|no\s+(?:es|son|puede|sería|era)\b|não\s+(?:é|são|pode|seria)\b|non\s+(?:è|sono|può|sarebbe)\b"
    r"|не\b|nie\b|bukan\w*|tidak\b|değil\w*|không\b|is\s+niet\b|är\s+inte\b"
    r"|(?:is|was|are)n['’]t\s+" + _RIGHT + r"|(?:is|was|are|can|could)\s*not\s+(?:be\s+)?" + _RIGHT + r"|"
    r"不是|不行|不可能|并非|[はでも]*(?:ではな|ではあり|じゃな|でな)|[이가은는]?\s*아[니닙]|ليست|ليس|नहीं|नही|नहि|নয়"
)
_BEHIND = re.compile(
    rf"{_CLOSED}(?:\s*(?:{_NEGATED})|\s*(?:[—–:-]\s*)?(?:{_IS}\s*)?(?:\w+ly\s+)?(?:{_WRONG})(?!\s*:))", re.IGNORECASE
)
_THAT = r"(?:,\s*(?:dass|daß|что|że|che|que)\b)?[^,，]*"
_DOUBT = re.compile(
    r"(?:(?<!\bno )(?<!\ba )(?<!\bany )(?<!\bwithout )\b(?:doubt|doubts|doubted|doubtful|disbelieve|"
    r"disagree\w*|den(?:y|ies))\b[^,]*"
    r"|\b(?:impossible|unlikely|implausible|improbable|inconceivable|absurd|false|untrue|incorrect|wrong|mistaken|not\s+(?:true|right|"
    r"correct|the\s+case|possible|likely|so|as\s+if)|cannot\s+be|can\s*not\s+be|can['’]t\s+be|no\s+way|no\s+reason)"
    r"\s+(?:(?:that|to\s+(?:say|think|claim|believe|conclude|answer))\b|(?=the\s+answer\b))[^,]*"
    r"|\b(?:thought|assumed|guessed|believed|suspected|expected|hoped)\s+(?:that\s+)?(?:the\s+|my\s+)?(?:final\s+|correct\s+)?"
    r"|(?:n['’]t|\b(?:not|never|cannot|nobody|no\s+one))\s+(?:\w+ly\s+)?(?:thinks?|believes?|says?|claims?|agrees?|accepts?|conclude|"
    r"suppose|expect|mean)\b[^,:]*"
    r"|(?<!of )(?<!of a )(?<!of an )(?<!of the )(?<!of all )\b(?:wrong|incorrect|false|bad|worst|worse|least\s+(?:"
    r"likely|probable|plausible|suitable|accurate|correct)|less\s+(?:likely|probable|plausible)|unlikely|invalid|impossible|erroneous|mistaken|"
    r"implausible|improbable)(?:\s+(?:final|possible|common|numerical|numeric|looking))*(?:\s+(?:answer|option|choice|result|solution)\b[^,]*|\s+)"
    rf"|\b(?:glaube|denke|finde|meine|sage)\s+(?:ich\s+)?nicht\b{_THAT}"
    rf"|\bbezwei\w+\b{_THAT}"
    rf"|\bunmöglich\b{_THAT}"
    rf"|\bfalsche\w*\s+(?:antwort|lösung|option)\b{_THAT}"
    rf"|\bne\s+(?:pense|crois|dirais)\s+pas\b{_THAT}"
    rf"|\bdoute\s+que\b{_THAT}"
    rf"|\bimpossible\s+que\b{_THAT}"
    rf"|\b(?:mauvaise|fausse)\s+(?:réponse|option)\b{_THAT}"
    rf"|\bno\s+(?:creo|pienso|diría|opino)\b{_THAT}"
    rf"|\bdudo\b{_THAT}"
    rf"|\bimposible\s+que\b{_THAT}"
    rf"|\brespuesta\s+(?:incorrecta|equivocada|falsa|errónea)\b{_THAT}"
    rf"|\bréponse\s+(?:fausse|incorrecte|erronée)\b{_THAT}"
    rf"|\bresposta\s+(?:errada|incorreta|falsa)\b{_THAT}"
    rf"|\brisposta\s+(?:sbagliata|errata)\b{_THAT}"
    rf"|\bnão\s+(?:acho|penso|creio|acredito)\b{_THAT}"
    rf"|\bduvido\b{_THAT}"
    rf"|\bimpossível\s+que\b{_THAT}"
    rf"|\bnon\s+(?:penso|credo)\b{_THAT}"
    rf"|\bdubito\b{_THAT}"
    rf"|\bне\s+(?:думаю|считаю|верю)\b{_THAT}"
    rf"|\bсомнева\w+{_THAT}|\bневозможно\b{_THAT}"
    rf"|\b(?:неправильн|неверн)\w*\s+(?:ответ|вариант)\w*{_THAT}"
    rf"|不认为{_THAT}|不認為{_THAT}|不觉得{_THAT}|怀疑{_THAT}|懷疑{_THAT}|(?:错误|錯誤|不正确|不可能)的?(?:答案|选项|選項){_THAT})\Z",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r".*(?:[.;!?\n。！？।؟]|\b(?:but|yet|however|though|so|hence|thus|therefore)\b)", re.IGNORECASE | re.DOTALL)
_REASON = re.compile(
    r"\s*(?:since|because|as\s+(?!well|much|many|a\b)|see\b|from\s+(?!\d)|by\s+(?!\d)|using|check\s*:|verify|verified"
    r"|not\s+[-−$\w\\.,/]+\s*\Z|weil|da\s|car\s|parce|porque|perché|因为|因為)",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"\b(?:wrong|incorrect|false|mistaken?|impossible|contradict\w*|but|however|instead|actually|rather|unless|except|or|maybe|perhaps|"
    r"times|million|billion|thousand|dozen|base|mod|modulo|if|when)\b|n['’]t\b",
    re.IGNORECASE,
)
_LINK = re.compile(rf"\}}[\s$*,)\\\]]{{0,6}}{OR}[\s$*(\\\[]{{0,6}}(?:[A-Za-z]\s*=\s*)?\Z", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"\b(?:answer|result|value|it|this)\s+(?:(?:is|was)\s+(?:\w+ly\s+)?not|isn['’]t|wasn['’]t|can\s?not\s+be|can['’]t\s+be)\s+(?:equal\s+to\s+)?[\s$*_(]*\Z",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[\s$*_)\\\]]{0,6}[?？]")
_NEAR, _FAR = 40, 80


def denied(before: str) -> bool:
    r"""Whether what stands before an answer says that it is none.

    >>> denied("It is not "), denied(r"x \neq "), denied("why not? It is "), denied("Die Antwort ist nicht ")
    (True, True, False, True)
    """
    return _DENIAL.search(before[-_NEAR:]) is not None


def denied_behind(behind: str) -> bool:
    """Whether what stands directly behind an answer says that it is none.

    >>> denied_behind(" is wrong."), denied_behind(" ist falsch"), denied_behind("ではない"), denied_behind(", not 5")
    (True, True, True, False)
    """
    return _BEHIND.match(behind[:_NEAR]) is not None


def doubted(before: str) -> bool:
    """Whether the clause that leads to an answer doubts it, or announces one that is wrong.

    >>> doubted("I doubt that the answer is "), doubted("The wrong "), doubted("That was wrong. The answer is ")
    (True, True, False)
    """
    return _DOUBT.search(text_behind(_CLAUSE, before[-_FAR:])) is not None


def box_joined(before: str) -> bool:
    r"""Whether what stands before a box joins it with another one, as the one or the other.

    >>> box_joined(r"\boxed{5} or "), box_joined(r"\boxed{5}, so ")
    (True, False)
    """
    return "\\boxed" in before and _LINK.search(before[-_NEAR:]) is not None


def box_denied(before: str, held: str, behind: str) -> bool:
    """Whether what stands before a box says that it is not the answer, or what stands behind one with a number on its line that
    it is wrong, or asks. A letter may be the wrong one of several statements.

    >>> box_denied("", "17", "$ is wrong."), box_denied("It is not ", "17", "."), box_denied("", "C", " is false")
    (True, True, False)
    """
    line = behind[:_NEAR].partition("\n")[0]
    if _NO_ANSWER.search(before[-_NEAR:]):
        return True
    return any(map(str.isdigit, held)) and (denied_behind(line) or _ASKED.match(line) is not None)


def text_behind(pattern: re.Pattern[str], text: str) -> str:
    """What stands behind the match at the beginning of a text; all of it without one. `re.sub` would go on from each

    >>> text_behind(re.compile(".*[.;]"), "One; two. Three")
    ' Three'
    """
    found = pattern.match(text)
    return text[found.end() :] if found else text


def is_reason(aside: str) -> bool:
    """Whether what stands in brackets behind an answer only gives its reason or what it is not, and takes nothing back.

    >>> [is_reason(text) for text in ("since 3+4=7", "not 8", "see above", "or 8", "mod 10", "since 3+4=7, which is wrong")]
    [True, True, True, False, False, False]
    """
    return _REASON.match(aside) is not None and _RETRACTED.search(aside) is None

"""The ways in which texts state which option they choose, praise or refuse, in patterns."""

from __future__ import annotations

import re

from assay.verify.language import OR

__all__ = [
    "ALONE",
    "ARTICLE",
    "AS_CLAUSE",
    "BY_OTHERS",
    "CHOSEN",
    "CLAUSE",
    "CONCLUDED",
    "END_OF_TEXT",
    "FILLERS",
    "GAP",
    "JOINED",
    "LABEL",
    "LEFT_OUT",
    "LETTER",
    "LISTED",
    "OR_LINK",
    "PRAISED",
    "PRAISED_BEHIND",
    "REASON",
    "REFUSED",
    "SENTENCE",
    "STATED",
    "TAKEN_BACK",
    "TOO",
    "UNASSERTED",
]

_BEHIND = r"(?=で(?:す|した)|이?(?:다|에요)|입니다|[\s).:,;!?*_`/&\]}\"”>。、」】—–$|]|\Z)"
LETTER = re.compile(rf"(?<![A-Za-z0-9'’\\.])(?:\(\s*([A-Za-z])\s*\)|\[\s*([A-Za-z])\s*\]|([A-Z]){_BEHIND}(?!\.[A-Za-z]))")
ALONE = re.compile(r"[*_`$(\[{#> ]*(?:(?:option|choice|answer)\s+)?[*_`$(\[{ ]*([A-Za-z])[*_`$)\]}.:, ]*", re.IGNORECASE)
LABEL = re.compile(r"[*_`$(\[{ ]*([A-Za-z])[*_`$)\]}]*[.:)\]} ] *(.+)", re.DOTALL)

_WORDS = (
    r"answer|答案|答え|正解|정답|답|r[ée]ponse|respuesta|resposta|risposta|antwort|ответ|jawaban|svar|cevap|"
    r"الإجابة|الجواب|उत्तर|উত্তর|đáp án"
    r"|(?:correct|right|best|final|my|our|chosen|preferred|正确|正確)\s*(?:answer\s+)?(?:choice|option|response|solution|selection|选项|選項)"
)
FILLERS = (
    r"(?:(?:most\s+likely|definitely|clearly|certainly|probably|obviously|indeed|therefore|thus|hence|simply|then|just|now|still|"
    r"in\s+fact|of\s+course|option|choice|letter|answer|number|the|be|is|both|either)\b[,:]?\s*){0,8}"
)
STATED = re.compile(
    rf"(?:\b(?:{_WORDS}))(?:\s+(?:to|for|of|in|here|above|below|below|there)\b(?:\s[^.:=\n]{{1,60}}?)?)?[*_`\s)]{{0,6}}"
    rf"(?:\b(?:is|are|must\s+be|should\s+be|would\s+be|will\s+be|has\s+to\s+be|being|est|es|é|è|ist|adalah|là)\b"
    rf"|是|为|為|は|は、|[은는]|:|=|→|->|=>|\s(?=[*_(\[`]{{0,3}}[A-Z][*_)\]`]{{0,3}}(?:[.!\s]|\Z)))[*_`\s:]{{0,8}}",
    re.IGNORECASE,
)
CHOSEN = re.compile(
    r"\b(?:I|we)(?:['’](?:d|ll|m|ve)|\s+(?:would|will|should|must|shall|am|have|now|therefore|thus|hence|finally|so|do|going\s+to|"
    r"have\s+to|can))*\s+(?:choose|chose|chosen|choosing|pick(?:ed|ing)?|select(?:ed|ing)?|go(?:ing)?\s+(?:with|for)|"
    r"opt(?:ing)?\s+for|vote\s+for|settle\s+(?:on|for)|say|guess|answer|conclude|recommend|prefer|think|believe)\s*:?\s*"
    r"(?:that\s+)?(?:it['’]s\s+|it\s+is\s+|it\s+must\s+be\s+)?",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    r"(?:\b(?:so|thus|hence|therefore|ergo|conclusion|conclude|finally|it\s+is|it['’]s|(?:has|have|got|needs?)\s+to\s+be|"
    r"(?:(?:can|could)\s+only|must|will)\s+(?:surely\s+|then\s+)?be|leaves|leaving|left\s+with|"
    r"no(?=[:,.!])|yes(?=[:,.!])|final(?=:)|I\s+mean|I\s+meant|instead|correct(?=:)|right(?=:))|∴|⇒)[*_`]{0,3}[\s:,.!]*(?:it['’]s|it\s+is|we\s+have)?\s*",
    re.IGNORECASE,
)
PRAISED = re.compile(
    r"[)\]*_`]*,?\s+(?:it\s+(?:is|must\s+be|has\s+to\s+be)(?=\s*(?:[.,;:!—–]|\Z))|(?:is|must\s+be|would\s+be|should\s+be|has\s+to\s+be|seems|appears|looks)\s+(?:(?:clearly|therefore|thus|indeed|the|"
    r"most|only|probably|definitely|obviously|hence|our|my|to\s+be|a|very|absolutely|certainly|single|one)\s+)*"
    r"(?:correct|right(?!\s+(?:next|behind|beside|after|before|about|in|on|at|there|away|now|above|below))|best|true|answer|accurate)\b)",
    re.IGNORECASE,
)
PRAISED_BEHIND = re.compile(rf"(?<=[^\s)\]*_`]){PRAISED.pattern}", re.IGNORECASE)
"""To be searched for; what stands before it keeps the search linear in runs of white space."""
AS_CLAUSE = re.compile(
    r"[)\]*_`]*\s+(?:is|are|was|were|has|have|had|does|did|isn['’]t|wasn['’]t|doesn['’]t|could|might|may|cannot|can['’]t|can|seems?|"
    r"looks?|appears?)\b",
    re.IGNORECASE,
)
REFUSED = re.compile(
    r"[)\]*_`]*(?:\s+(?:(?:is|are|was|were|seems?|looks?|appears?|can|could|would|must|should|does|do|did|has|to|be)\s+)+"
    r"(?:(?:clearly|also|therefore|thus|obviously|definitely|probably|simply|just|a|an|the|both|all|ruled|be|common|mere|only)\s+)*"
    r"(?:not|never|wrong|incorrect|false|untrue|impossible|out|bad|invalid|inaccurate|eliminated|excluded|rejected|distractors?|trap)\b"
    r"|\s+(?:isn|aren|wasn|weren|can|couldn|doesn|won|wouldn|didn)['’]?t\b|\s+cannot\b"
    r"|\s*[:—–-]?\s*(?:no|false|wrong|incorrect)\b(?!\s*:)|\s+(?:out|fails?)\b|\s*\?\s*no\b)",
    re.IGNORECASE,
)
LEFT_OUT = re.compile(
    r"\b(?:(?:nobody|no\s+one)\s+(?:would\s+|will\s+|could\s+)?\w+|(?:one|option|choice|letter)\s+(?:right\s+|just\s+)?(?:before|after|above|below|behind|preceding|following)|over|than|everything\s+but|all\s+but|apart\s+from|besides|instead\s+of|unlike|eliminat\w*|exclud\w*|reject\w*|rul\w*\s+out|cross\w*\s+out|dismiss\w*|avoid\w*|discard\w*|"
    r"(?:not|never|\w+n['’]t|cannot)\s+(?:say|choose|pick|prefer|select|go\s+with|take|mean|want|think|believe|it['’]s)|"
    r"(?:wrong|incorrect|false|tempting|trap|distractor|confused\s+with|mistaken\s+for|similar\s+to|opposite\s+of)"
    r"(?:\s+(?:answers?|options?|choices?|ones?))?(?:\s+(?:is|are|was|be|would\s+be))?\s*:?)"
    r"(?:\s+(?:option|choice|answer|be|it|is|the|that|out))*[\s$*_`(\[:]*\Z",
    re.IGNORECASE,
)
_BY_OTHERS = (
    r"\b(?:some|others|people|many|they|you|he|she|one|students?|anyone|everyone|most|who|friend|user)\b.*"
    r"\b(?:say|says|said|think|thinks|claims?|claimed|believes?|argues?|guess|guesses|answers?|tempted)\b"
)
BY_OTHERS = re.compile(rf"{_BY_OTHERS}[^.;:\n]*\Z", re.IGNORECASE)
UNASSERTED = re.compile(
    r"(?:\b(?:if|suppose|supposing|assum\w+|whether|unless|imagine|pretend|when|were|would\s+be\s+if|say\s+that|thought|thinking)\b"
    r"[^,]*|(?:\b(?:not|never|doubt\w*|den(?:y|ies)|false|hardly|unlikely|cannot|no\s+reason|no\s+way)|n['’]t)\b[^,:]*"
    rf"|{_BY_OTHERS}.*"
    r"|\b(?:wrong|incorrect|false|bad|worst|other|another|alternative|tempting|distracting|common|second|worse|popular|na[iï]ve|usual|typical|"
    r"first|initial|previous|earlier|his|her|their|your|which|what|closest|possible|no|any|every|each)\s+(?:\w+\s+){0,2}"
    r"|\b(?:is|was)\s+(?:the|that|this|my)\s+(?:\w+\s+)?)\Z",
    re.IGNORECASE,
)
CLAUSE = re.compile(r".*(?:[.;!?\n]|\b(?:but|yet|however|though)\b)", re.IGNORECASE | re.DOTALL)
TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|correction|sorry|oops|hmm+|scratch\s+that|mistaken?|I\s+mean|I\s+meant|second\s+thought|kidding|no(?=\s*[,.:;!—–-])|"
    r"but|however|yet|instead|still)\b",
    re.IGNORECASE,
)
JOINED = re.compile(
    rf"[\s)\]*_`$\"”]*(?:[,;]|[,;.]?\s*{OR}|[,;]?\s*\b(?:and|und|et|y|und|и|e)\b|/|&|\+|\|)?(?:\s*\b(?:maybe|perhaps|possibly|also|else|even|option|choice|"
    r"both|the\s+answer\s+is|it\s+is|is)\b)*[\s(\[*_`$\"“]*",
    re.IGNORECASE,
)
OR_LINK = re.compile(rf"{OR}|/|&", re.IGNORECASE)
TOO = re.compile(r"[^.;\n]{0,60}\b(?:also|too|as\s+well|equally|both|another)\b", re.IGNORECASE)
ARTICLE = re.compile(
    r"\s+(?!(?:is|isn|was|or|and|over|because|since|as|but|not|rather|instead|than|vs|versus|seems|looks|appears|would|must|should|"
    r"cannot|can|could|may|might|gives|says|states|fits|works|means|which|due|only|too|also|while|whereas|although|though|if|unless|"
    r"nor|to\s+\(?[A-Z]\b|does|doesn|has|contains|describes|matches|refers|where|by|fails|wins|makes|of\s+the\s+options|given|it\s+is|it\s+must)\b)[a-z]"
)
REASON = re.compile(
    r"\w[^.;!?\n]*\b(?:given(?:\s+that)?|seeing\s+that|considering\s+that)\s+(?:option\s+)?[(\[*_`]*\Z", re.IGNORECASE
)
SENTENCE = re.compile(r"\s*([^.!\n]{1,200})[.!]\s+(?=\S)")
END_OF_TEXT = re.compile(
    r"[*_`$)\]}\"”]*(?:\s*\Z|\s*\n|[.,;:!?](?=\s|\Z)|\s*[(—–]|\s+(?:because|since|given|as|for|which|and\s+not|not|rather|over|instead|but)\b)",
    re.IGNORECASE,
)
GAP = re.compile(r"[)\]*_`]*[.:)]?\s+")
LISTED = re.compile(r"[).]?(?:[.,;]?\s{1,3}\(?[A-Z]\)?(?=[.,;\s]|\Z)){1,9}[.\s]{0,9}\Z")

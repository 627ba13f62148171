"""A small database in the Metamath language, and an answer for each way of not proving."""

__all__ = ["CHEATS", "DATABASE", "LATER"]

DATABASE = """
$( Propositional calculus, and a quantifier. $)
$c ( ) -> wff |- A. set $.
$v ph ps ch x y $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.
vx $f set x $.  vy $f set y $.
wi $a wff ( ph -> ps ) $.
wal $a wff A. x ph $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
${ min $e |- ph $.  maj $e |- ( ph -> ps ) $.  ax-mp $a |- ps $. $}
${ $d x ph $.  ax-5 $a |- ( ph -> A. x ph ) $. $}
id $p |- ( ph -> ph ) $=
  wph wph wph wi wi wph wph wi wph wph ax-1 wph wph wph wi wph wi wi wph wph wph wi wi wph wph wi wi
  wph wph wph wi ax-1 wph wph wph wi wph ax-2 ax-mp ax-mp $.
${
  a1i.1 $e |- ph $.
  a1i $p |- ( ps -> ph ) $= wph wps wph wi a1i.1 $( from it $) wph wps ax-1 ax-mp $.
$}
${ $d x y $.  two $p |- ( A. x ph -> A. y A. x ph ) $= ? $. $}
later $p |- ( ps -> ( ph -> ph ) ) $= ( wi id a1i ) AACBADE $.
last $p |- ( ch -> ( ps -> ( ph -> ph ) ) ) $= wps wph wph wi wi wch wph wps later a1i $.
"""

LATER = "wph wph wi wps wph id a1i"
"""A proof of ``later``."""

_TITLE = "later $p |- ( ps -> ( ph -> ph ) ) $= "


def _letters(number: int) -> str:
    """A number as the compressed form writes it, for fewer than 120."""
    return ("UVWXY"[number // 20 - 1] if number >= 20 else "") + chr(ord("A") + number % 20)


CHEATS = {
    "an axiom": ("illegal", "later $a |- ( ps -> ( ph -> ph ) ) $."),
    "an axiom before": ("illegal", f"new $a |- ph $. {_TITLE} new $."),
    "an axiom behind": ("illegal", f"{_TITLE} x $. x $a |- ( ps -> ( ph -> ph ) ) $."),
    "an include": ("illegal", f"$[ other.mm $] {_TITLE} {LATER} $."),
    "constants": ("illegal", f"$c false $. {_TITLE} {LATER} $."),
    "variables": ("illegal", f"$v z $. {_TITLE} {LATER} $."),
    "a kind": ("illegal", f"wz $f wff z $. {_TITLE} {LATER} $."),
    "a hypothesis": ("illegal", f"h $e |- ( ps -> ( ph -> ph ) ) $. {_TITLE} h $."),
    "a block": ("illegal", f"${{ h $e |- ( ps -> ( ph -> ph ) ) $. {_TITLE} h $. $}}"),
    "distinctness": ("illegal", f"$d ph ps $. {_TITLE} {LATER} $."),
    "two statements": ("illegal", f"{_TITLE} {LATER} $. {_TITLE} {LATER} $."),
    "an open comment": ("illegal", f"{LATER} $( and so on"),
    "a comment in a comment": ("illegal", f"$( $( $) {LATER} $)"),
    "a comment's end": ("illegal", f"{LATER} $)"),
    "another label": ("altered", f"other {_TITLE[6:]} {LATER} $."),
    "an easier statement": ("altered", "later $p |- ( ph -> ph ) $= wph id $."),
    "other variables": ("altered", "later $p |- ( ph -> ( ps -> ps ) ) $= wps wps wi wph wps id a1i $."),
    "another kind": ("altered", "later $p wff ( ps -> ( ph -> ph ) ) $= wps wph wph wi wi $."),
    "itself": ("wrong", "wph wps later"),
    "a later theorem": ("wrong", "wph wps wch last"),
    "a hypothesis of others": ("wrong", "a1i.1"),
    "nothing known": ("wrong", "trivial"),
    "another theorem": ("wrong", "wph id"),
    "too little": ("wrong", "wph wps a1i"),
    "too much": ("wrong", f"wph {LATER}"),
    "another premise": ("wrong", "wph wph wi wps wph wps ax-1 a1i"),
    "a set for a formula": ("wrong", "vx id"),
    "an open step": ("incomplete", "?"),
    "some open steps": ("incomplete", "wph wph wi wps ? a1i"),
    "an open step, compressed": ("incomplete", "( wi id a1i ) AACB?E"),
    "a list without end": ("wrong", "( wi id a1i AACBADE"),
    "a list with hypotheses": ("wrong", "( wph wi id a1i ) AACBADE"),
    "a list with nothing known": ("wrong", "( wi id a1i trivial ) AACBADE"),
    "a number too high": ("wrong", "( wi id a1i ) AACBADUUUE"),
    "letters that are none": ("wrong", "( wi id a1i ) AACBAD1E"),
    "letters without end": ("wrong", "( wi id a1i ) AACBADEU"),
    "a step that was not kept": ("wrong", "( wi id a1i ) AACBADEZG"),
    "nothing to keep": ("wrong", "( wi id a1i ) ZAACBADE"),
    "no steps": ("wrong", "( wi id a1i )"),
    "a doubling": ("limit", "( wi ) AACZ" + "".join(f"{_letters(3 + i) * 2}CZ" for i in range(60))),
    "nothing": ("unparsed", "$= $."),
    "a comment alone": ("unparsed", "$( it is plain $)"),
    "words": ("wrong", "It follows from id."),
}
"""What an answer to ``later`` is, and the verdict on it."""

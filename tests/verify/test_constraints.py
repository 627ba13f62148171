"""Constraints on a text: each by hand, counts against second counters, and their conjunction."""

import random
import re
import unicodedata

import pytest

from assay.core.errors import ConfigError, DataError
from assay.verify import Instructions, task_and_rollout
from assay.verify.constraints import CONSTRAINTS, Relation, constraint_of, describe_constraints
from assay.verify.constraints.base import paragraphs, sentences, words
from assay.verify.constraints.languages import LANGUAGES, Language, language_of
from assay.verify.constraints.wording import SCRIPTS

# name, settings, a text that keeps it, one that does not
CASES = [
    ("words", {"count": 3}, "one two three", "one two"),
    ("words", {"count": 2, "relation": "at_most"}, "well-known facts", "a b c"),
    ("words", {"count": 2, "relation": "exactly"}, "don't, stop!", "do n't stop"),
    ("sentences", {"count": 2, "relation": "exactly"}, "Dr. No came. He left.", "Dr. No came"),
    ("sentences", {"count": 3}, "A? B! C", "A? B"),
    ("paragraphs", {"count": 2, "relation": "exactly"}, "a\nb\n\n \nc", "a\nb"),
    ("paragraphs", {"count": 2, "separator": "***"}, "a\n***\nb", "a\n\nb"),
    ("paragraph_start", {"paragraphs": 2, "nth": 2, "word": "So"}, "a\n\n*so* it is", "So\n\nb"),
    ("paragraph_start", {"paragraphs": 1, "nth": 1, "word": "So"}, "So", "So\n\nso"),
    ("characters", {"count": 3, "relation": "exactly"}, " abc\n", "ab"),
    ("keywords", {"keywords": ["sun", "blue sky"]}, "The Sun in a blue\nsky.", "sunny blue sky"),
    ("keyword_frequency", {"keyword": "cat", "count": 2, "relation": "exactly"}, "Cat, cat; cats", "cat cat cat"),
    ("forbidden", {"keywords": ["bad"]}, "badly good", "Bad."),
    ("letter_frequency", {"letter": "E", "count": 2, "relation": "exactly"}, "Ever", "even eve"),
    ("capital_words", {"count": 2}, "THIS is FINE", "This is FINE"),
    ("upper_case", {}, "ALL 3 CAPS", "ALL cAPS"),
    ("lower_case", {}, "all 3 small", "All small"),
    ("no_commas", {}, "one; two", "one， two"),
    ("script", {"script": "cyrillic"}, "Привет, мир 3", "Привет hello"),
    ("script", {"script": "latin", "share": 1.0}, "Héllo œuvre ß", "Hello мир"),
    ("language", {"language": "german"}, "Das ist nicht weit von hier.", "This is not far from here."),
    ("language", {"language": "japanese"}, "これは本です。", "这是一本书。"),
    ("title", {}, "<<A title>>\ntext", "<< >> <title>"),
    ("bullets", {"count": 2, "relation": "exactly"}, "x\n* a\n  - b", "* a\n*b\n- c\n* d"),
    ("numbered_list", {"count": 3}, "1. a\n2) b\n3. c", "1. a\n3. b\n4. c"),
    ("highlights", {"count": 2, "relation": "exactly"}, "*a* and **b c**", "*a* * * b"),
    ("highlights", {"count": 1, "relation": "exactly"}, "* item\n* *so*", "* *so* and *that*"),
    ("highlights", {"count": 1}, "* **Name:** text", "* a * b"),
    ("highlights", {"count": 1}, "  + *x*", "* one\n* two"),
    ("highlights", {"count": 2, "relation": "exactly"}, "- *a* b\n- c **d**", "* a *b\n* c* d"),
    ("highlights", {"count": 1}, "***so***", "5 * 3 * 2"),
    ("highlights", {"count": 1, "relation": "exactly"}, "*a* \\*b\\*", "*a* *b*"),
    ("highlights", {"count": 1}, "* * *\n*a*", "* * *\n****\n** **"),
    ("highlights", {"count": 1}, "*well done*", "*well\ndone*"),
    ("bullets", {"count": 1, "relation": "exactly"}, "* *so*", "* * *\n- - -"),
    ("bullets", {"count": 2, "relation": "exactly"}, "* a\n---\n- b", "**a**\n* b"),
    ("sections", {"count": 2}, "## Section 1\nx\nSECTION 2: y", "Section 2\nSection 3"),
    ("sections", {"count": 1, "splitter": "Part"}, "Part 1\n", "Section 1"),
    ("placeholders", {"count": 2}, "[name] lives at [address]", "[name] [ ]"),
    ("json", {}, '```json\n{"a": 1}\n```', 'Here: {"a": 1}'),
    ("json", {}, "[1, 2]", "3"),
    ("quoted", {}, ' "so it is" ', '"so" it is'),
    ("quoted", {}, "“so”", '""'),
    ("starts_with", {"phrase": "Well,"}, " well, yes", "Yes, well,"),
    ("ends_with", {"phrase": "The end."}, "so. THE END.\n", "The end. So"),
    ("postscript", {}, "Dear\n\nP.S. more", "P.S. only this"),
    ("postscript", {"mark": "P.P.S"}, "a\nP.P.S b", "a\nP.P.S"),
    ("two_responses", {}, "one ****** two", "one ****** one"),
    ("two_responses", {}, "one\n******\ntwo", "one ****** two ****** three"),
    ("repeat_prompt", {"prompt": "Say hi."}, "say  hi. Hi!", "Say hi."),
    ("one_of", {"options": ["Yes.", "No"]}, " yes", "yes and no"),
]


@pytest.mark.parametrize(("name", "settings", "good", "bad"), CASES)
def test_each(name: str, settings: dict, good: str, bad: str) -> None:
    gold = [{"constraint": name, **settings}]
    assert Instructions()(*task_and_rollout(gold, good)).primary == 1.0
    score = Instructions()(*task_and_rollout(gold, bad))
    assert score.primary == 0.0
    assert list(score.info["failed"]) == [describe_constraints(gold)]
    assert describe_constraints(gold).rstrip(".") and constraint_of(gold[0]) == constraint_of(gold[0])


def test_every_constraint_has_a_case() -> None:
    assert {name for name, *_ in CASES} == set(CONSTRAINTS) and len(CONSTRAINTS) >= 25


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"constraint": "word"},
        {"constraint": "words"},
        {"constraint": "words", "count": -1},
        {"constraint": "words", "count": "3"},
        {"constraint": "words", "count": 3, "relation": "about"},
        {"constraint": "words", "count": 1, "kind": "os:path"},
        {"constraint": "keywords", "keywords": []},
        {"constraint": "forbidden", "keywords": [" "]},
        {"constraint": "script", "script": "elvish"},
        {"constraint": "script", "script": "latin", "share": 0},
        {"constraint": "language", "language": "elvish"},
        {"constraint": "letter_frequency", "letter": "ab", "count": 1},
        {"constraint": "keyword_frequency", "keyword": "", "count": 1},
        {"constraint": "sections", "count": 1, "splitter": " "},
        {"constraint": "starts_with", "phrase": ""},
        {"constraint": "one_of", "options": []},
        {"constraint": "one_of", "options": ["."]},
        {"constraint": "paragraph_start", "paragraphs": 1, "nth": 2, "word": "a"},
        {"constraint": "title", "count": 3},
        {"constraint": "paragraph_start", "paragraphs": 1, "nth": 1, "word": "a b"},
    ],
)
def test_wrong_settings(spec: dict) -> None:
    with pytest.raises(DataError, match="constraint"):
        Instructions()(*task_and_rollout([spec], "x"))


SAYINGS = {
    "english": "The early bird catches the worm, and that is what they say of it.",
    "german": "Es ist noch kein Meister vom Himmel gefallen, aber wir werden es auch nicht.",
    "french": "Il ne faut pas vendre la peau de l'ours, et ce qui est dans la forêt est pour les autres.",
    "spanish": "No hay mal que por bien no venga, pero es muy poco lo que se sabe del futuro.",
    "portuguese": "Não há mal que sempre dure, mas é muito o que não se sabe do que foi.",
    "italian": "Non è tutto oro quello che luccica, ma è più di una questione per gli altri.",
    "dutch": "Het is niet alles goud wat er blinkt, maar ik ben er ook niet voor.",
    "swedish": "Det är inte guld allt som glimmar, men jag har det för att vi kan.",
    "polish": "Nie wszystko złoto, co się świeci, ale to jest dla nas tak jak był on.",
    "turkish": "Bu bir şey değil ama çok daha var, o da bizim için gibi.",
    "indonesian": "Air yang tenang itu tidak dangkal, dan kami sudah di sini untuk mereka.",
    "vietnamese": "Có công mài sắt có ngày nên kim, và đó là một điều của người này.",
    "russian": "Не всё то золото, что блестит, но это не так, как он был для нас.",
    "ukrainian": "Не все те золото, що блищить, але це не так, як він був для нас і є.",
    "bulgarian": "Не е злато всичко, което блести, но това е, което ще се види, че той беше.",
    "greek": "Ό,τι λάμπει δεν είναι χρυσός.",
    "hebrew": "לא כל הנוצץ זהב הוא.",
    "arabic": "ليس كل ما يلمع ذهبا.",
    "hindi": "हर चमकती चीज़ सोना नहीं होती।",
    "bengali": "চকচক করলেই সোনা হয় না।",
    "tamil": "மின்னுவதெல்லாம் பொன்னல்ல.",
    "thai": "สิ่งที่ส่องแสงไม่ใช่ทองทั้งหมด",
    "georgian": "ყველაფერი ოქრო არ არის, რაც ბრწყინავს.",
    "armenian": "Ամեն փայլուն բան ոսկի չէ։",
    "chinese": "发光的不都是金子。",
    "japanese": "光るものがすべて金とは限らない。",
    "korean": "반짝인다고 모두 금은 아니다.",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_saying_in_each_language_is_of_no_other(language: str) -> None:
    assert language_of(SAYINGS[language]) == language
    assert {one for one in LANGUAGES if Language(language=one).holds(SAYINGS[language])} == {language}


def test_a_text_that_says_too_little_has_no_language() -> None:
    assert [language_of(text) for text in ("", "42", "OK", "Привет", "the die", "The die and das")] == [""] * 6


def test_loose_accuracy_forgives_a_first_and_a_last_line_and_markup() -> None:
    """By hand: the text keeps no constraint as it stands; without its first line, or its stars, it keeps three of four."""
    gold = [
        {"constraint": "lower_case"},
        {"constraint": "words", "count": 2, "relation": "exactly"},
        {"constraint": "starts_with", "phrase": "so it"},
        {"constraint": "no_commas"},
    ]
    found = Instructions(loose=True)(*task_and_rollout(gold, "Sure, here it is:\n**so it**\nBye, now"))
    assert dict(found.components) == {"correct": 0.0, "fraction": 0.0, "loose": 1.0, "loose_fraction": 1.0}
    less = Instructions(loose=True)(*task_and_rollout([*gold, {"constraint": "title"}], "Sure, here it is:\n**so it**\nBye, now"))
    assert dict(less.components) == {"correct": 0.0, "fraction": 0.0, "loose": 0.0, "loose_fraction": 0.8}
    strict = Instructions(loose=True)(*task_and_rollout(gold, "so it"))
    assert dict(strict.components) == {"correct": 1.0, "fraction": 1.0, "loose": 1.0, "loose_fraction": 1.0}
    assert Instructions().names == ("correct", "fraction"), "the strict verdict alone unless asked for"


def test_conjunction() -> None:
    gold = [
        {"constraint": "no_commas"},
        {"constraint": "words", "count": 2},
        {"constraint": "upper_case"},
        {"constraint": "title"},
    ]
    score = Instructions()(*task_and_rollout(gold, "ONE"))
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.5} and score.info["verdict"] == "broken"
    assert dict(Instructions()(*task_and_rollout(gold, "")).components) == {"correct": 0.0, "fraction": 0.0}
    rules = (constraint_of({"constraint": "no_commas"}),)
    assert Instructions(rules)(*task_and_rollout(None, "a")).info["verdict"] == "kept"
    assert Instructions(rules)(*task_and_rollout([{"constraint": "title"}], "a")).components["fraction"] == 0.5
    for wrong in ([], "x", [3], None, {"constraint": "title"}):
        with pytest.raises(DataError, match="no list of constraints"):
            Instructions()(*task_and_rollout(wrong, "x"))
    with pytest.raises(DataError, match=r"\{'words': 3\}: there is no 'constraint'; give its name: one of bullets, "):
        Instructions()(*task_and_rollout([{"words": 3}], "x"))
    with pytest.raises(ConfigError, match="count=-1"):
        CONSTRAINTS["words"](count=-1)


def test_counts_against_second_counters() -> None:
    """Words letter by letter, sentences and paragraphs as the pieces that they were made from."""
    rng = random.Random(9)
    for _ in range(2000):
        made = []
        for _ in range(rng.randint(1, 4)):
            made.append(
                [
                    [rng.choice(["we", "don't", "see", "well-off", "x1"]) for _ in range(rng.randint(1, 5))]
                    for _ in range(rng.randint(1, 4))
                ]
            )
        said = rng.choice(["\n\n", "\n \n\n"]).join(
            " ".join(" ".join(s).capitalize() + rng.choice([".", "!", "?", "...", '."']) for s in paragraph) for paragraph in made
        )
        assert len(paragraphs(said)) == len(made)
        assert len(sentences(said)) == sum(map(len, made)), said
        assert len(words(said)) == sum(len(s) for p in made for s in p)
    for _ in range(2000):
        text = "".join(rng.choices("aB3-'_ .,é\n", k=rng.randint(0, 12)))
        padded = f" {text} "
        inside = [c in "-'" and padded[i].isalnum() and padded[i + 2].isalnum() for i, c in enumerate(text)]
        kept = "".join(c if c.isalnum() or joins else " " for c, joins in zip(text, inside, strict=True))
        assert words(text) == kept.split(), text


def test_bounds_against_a_second_reading() -> None:
    rng = random.Random(10)
    for _ in range(2000):
        wanted, found, relation = rng.randint(0, 4), rng.randint(0, 4), rng.choice(list(Relation))
        text = "x" + " cat" * found
        holds = constraint_of(
            {"constraint": "keyword_frequency", "keyword": "cat", "count": wanted, "relation": relation.value}
        ).holds(text)
        assert holds == {"at_least": wanted <= found, "at_most": wanted >= found, "exactly": wanted == found}[relation.value]


def test_scripts_against_unicode_names() -> None:
    """Letters of each range are of the script by their Unicode names."""
    first = {
        "chinese": "CJK",
        "japanese": ("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC", "KATAKANA-HIRAGANA"),
        "korean": "HANGUL",
        "latin": ("LATIN", "FEMININE", "MASCULINE"),
        "greek": ("GREEK", "COPTIC"),
    }
    for name, ranges in SCRIPTS.items():
        inside = re.compile(f"[{ranges}]")
        wanted = first.get(name, name.upper())
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        for code in range(0x10000):
            c = chr(code)
            if unicodedata.category(c)[0] == "L" and inside.match(c):
                assert unicodedata.name(c).split()[0] in wanted, (name, hex(code))

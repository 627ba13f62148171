"""Questions with several right texts, instructions, SQL, repositories, logic, tables; and what no verifier here judges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from assay.core.canon import plain
from assay.tasks.exchange.forms.route import Asked, Form, Route, Unsupported, as_json, first_text, nested_field, texts_in
from assay.tasks.verifier_spec import Spec

__all__ = ["FORMS", "NAMES", "REFUSED", "own_repositories"]

NAMES: Spec = {
    "name": "exact",
    "strip": True,
    "casefold": True,
    "punctuation": True,
    "articles": True,
    "unicode": True,
    "where": "auto",
}
"""Any one of several short texts, compared as SQuAD compares them, in the part of the answer that is called so."""

_QA = re.compile(
    r"(?i)(search_?r1_)?(nq|natural_questions|triviaqa|trivia_qa|popqa|hotpot_?qa|2wiki\w*|musique|bamboogle|squad\w*)"
)
_CHOSEN = ("label", "correct", "correct_answer", "correct_answer_index", "answer_idx", "answer_index", "answerKey", "answer_key")
"""With one of these the answers are options, of which one is right."""
_RELATIONS = {"at least": "at_least", "less than": "less_than", "at most": "at_most", "exactly": "exactly"}


# ---- what nothing here judges -----------------------------------------------------------------------------------------


def pictures(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Questions about pictures, which text alone does not ask."""
    if any(row.get(name) for name in ("images", "image")):
        raise Unsupported("the question has pictures, and rows are text", "a text-only part of the data set")
    return None


def preferences(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Pairs and labels, which other stages learn from."""
    if "chosen" in row and "rejected" in row:
        raise Unsupported(
            "a pair of a chosen and a rejected answer has no gold", "the stage Prefer, which reads such rows as they are"
        )
    if "completion" in row and isinstance(row.get("label"), bool):
        raise Unsupported("a judged completion has no gold", "the stage Prefer, which reads such rows as they are")
    return None


def repositories(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """SWE-bench's fields name a repository and its tests, and hold neither."""
    lower = {name.lower() for name in row}
    if not {"fail_to_pass"} <= lower and not {"base_commit", "repo"} <= lower:
        return None
    raise Unsupported(
        f"the files of {row.get('repo', 'its repository')!s} at its commit, and what its tests need, are not in the row",
        "'swe', with 'files' {path: text} and 'tests' [{'code', 'value', 'expected'}]",
    )


def sources_without_a_judge(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Sources whose own judge is a model, or a program of their own."""
    if asked.source.startswith("ood__livebench"):
        raise Unsupported("each task of LiveBench has a scoring program of its own", "the route of the task's own kind")
    if asked.source == "reasoning_gym" and not row.get("entry"):
        raise Unsupported("its item is not in the row", "'reasoning_gym', with the item as 'entry' (assay tasks import gym:NAME)")
    if asked.source.startswith("stem_web") and not re.search(r"\d|\\", str(asked.gold)):
        raise Unsupported(
            "a model compares its answers with the gold", "'exact' for texts that have one wording, named for the row"
        )
    return None


# ---- what has a verifier ----------------------------------------------------------------------------------------------


def question_answering(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """search-R1, NQ, TriviaQA, HotpotQA, SQuAD: any one of several texts is right."""
    gold, target = asked.gold, nested_field({"g": as_json(asked.gold)}, "g", "target")
    golds = (
        texts_in(row.get("golden_answers"))
        or texts_in([target] if isinstance(target, str) else target)
        or texts_in(nested_field(row, "answers", "text"))
        or (_aliases(cast("Mapping[str, Any]", gold)) if isinstance(gold, Mapping) and "aliases" in gold else None)
        or (texts_in(row.get("answers")) if not set(_CHOSEN) & set(row) else None)
    )
    if golds is None and (_QA.fullmatch(asked.source.rpartition("/")[2]) or "supporting_facts" in row):
        golds = texts_in(gold) or ([str(gold)] if isinstance(gold, str | int | float) else None)
    if golds is None:
        return None
    context = _context(row.get("context"))
    return Route(
        form="question answering",
        verifier=NAMES,
        answer=list(dict.fromkeys(golds)),
        before=f"{context}\n\n" if context else "",
        uses=("golden_answers", "answers", "context", "answer", "supporting_facts"),
    )


def _aliases(gold: Mapping[str, Any]) -> list[str] | None:
    """TriviaQA's answer: a value and its aliases."""
    given = plain(gold)
    value, aliases = given.get("value"), given.get("aliases")
    return [*([str(value)] if value else []), *(texts_in(aliases) or [])] or None


def _context(given: Any) -> str:
    """A passage, or HotpotQA's titles with their sentences."""
    given = plain(given) if isinstance(given, Mapping | list | tuple) else given
    if isinstance(given, str):
        return given.strip()
    titles, parts = nested_field({"c": given}, "c", "title"), nested_field({"c": given}, "c", "sentences")
    if isinstance(given, list):
        pairs = [cast("list[Any]", p) for p in cast("list[Any]", given) if isinstance(p, list) and len(cast("list[Any]", p)) == 2]
        titles, parts = [p[0] for p in pairs], [p[1] for p in pairs]
    if not isinstance(titles, list) or not isinstance(parts, list):
        return ""
    return "\n\n".join(
        f"{t}\n{''.join(map(str, p))}" for t, p in zip(cast("list[Any]", titles), cast("list[Any]", parts), strict=False)
    )


def instructions(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """IFEval and IFBench: ``instruction_id_list`` with ``kwargs``, in the row or in its ``extra_info``."""
    ids = texts_in(row.get("instruction_id_list")) or texts_in(nested_field(row, "extra_info", "instruction_id_list"))
    if ids is None:
        if isinstance(table := as_json(asked.gold), dict) and "func_name" in table:
            raise Unsupported(f"its constraint is a function by name, {table['func_name']!r}", "'constraints', a list of tables")
        return None
    given = as_json(row.get("kwargs") if row.get("kwargs") is not None else asked.gold)
    tables = [as_json(t) for t in cast("list[Any]", given)] if isinstance(given, list) else []
    if len(tables) != len(ids) or not all(isinstance(t, dict) for t in tables):
        raise Unsupported(f"{len(ids)} instructions and no table of settings for each: {given!r:.120}", "'constraints'")
    answer = [_constraint(name, {k: v for k, v in t.items() if v is not None}) for name, t in zip(ids, tables, strict=True)]
    return Route(form="IFEval", verifier="constraints", answer=answer, uses=("instruction_id_list", "kwargs"))


def _count(name: str, key: str, relation: str = "") -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A constraint on a count: which setting it is in, and in which one how it is bounded, or ``=RELATION``."""

    def make_constraint(given: Mapping[str, Any]) -> dict[str, Any]:
        bound = relation[1:] if relation[:1] == "=" else _RELATIONS[str(given[relation])]
        count = int(given[key])
        return (
            {"constraint": name, "count": count - 1, "relation": "at_most"}
            if bound == "less_than"
            else {
                "constraint": name,
                "count": count,
                "relation": bound,
            }
        )

    return make_constraint


def _constraint_reader(name: str, **settings: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A constraint whose settings stand under other names there."""
    return lambda given: {"constraint": name, **{own: given[theirs] for own, theirs in settings.items()}}


_CONSTRAINTS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "punctuation:no_comma": _constraint_reader("no_commas"),
    "length_constraints:number_words": _count("words", "num_words", "relation"),
    "length_constraints:number_sentences": _count("sentences", "num_sentences", "relation"),
    "length_constraints:number_paragraphs": lambda g: {
        **_count("paragraphs", "num_paragraphs", "=exactly")(g),
        "separator": "***",
    },
    "length_constraints:nth_paragraph_first_word": _constraint_reader(
        "paragraph_start", paragraphs="num_paragraphs", nth="nth_paragraph", word="first_word"
    ),
    "keywords:existence": _constraint_reader("keywords", keywords="keywords"),
    "keywords:forbidden_words": _constraint_reader("forbidden", keywords="forbidden_words"),
    "keywords:frequency": lambda g: {**_count("keyword_frequency", "frequency", "relation")(g), "keyword": g["keyword"]},
    "keywords:letter_frequency": lambda g: {
        **_count("letter_frequency", "let_frequency", "let_relation")(g),
        "letter": g["letter"],
    },
    "detectable_content:number_placeholders": _count("placeholders", "num_placeholders", "=at_least"),
    "detectable_content:postscript": _constraint_reader("postscript", mark="postscript_marker"),
    "detectable_format:number_bullet_lists": _count("bullets", "num_bullets", "=exactly"),
    "detectable_format:number_highlighted_sections": _count("highlights", "num_highlights", "=at_least"),
    "detectable_format:multiple_sections": lambda g: {
        **_count("sections", "num_sections", "=at_least")(g),
        "splitter": g["section_spliter"],
    },
    "detectable_format:json_format": _constraint_reader("json"),
    "detectable_format:title": _constraint_reader("title"),
    "detectable_format:constrained_response": lambda g: {
        "constraint": "one_of",
        "options": ["My answer is yes.", "My answer is no.", "My answer is maybe."],
    },
    "combination:two_responses": _constraint_reader("two_responses"),
    "combination:repeat_prompt": _constraint_reader("repeat_prompt", prompt="prompt_to_repeat"),
    "startend:end_checker": _constraint_reader("ends_with", phrase="end_phrase"),
    "startend:quotation": _constraint_reader("quoted"),
    "change_case:capital_word_frequency": _count("capital_words", "capital_frequency", "capital_relation"),
    "change_case:english_capital": _constraint_reader("upper_case"),
    "change_case:english_lowercase": _constraint_reader("lower_case"),
}
"""IFEval's instructions as constraints; its test of the language needs a program that knows languages, and is none of them."""


def _constraint(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    if name not in _CONSTRAINTS:
        raise Unsupported(f"there is no constraint for the instruction {name!r}", "'constraints' (assay verify list)")
    try:
        return _CONSTRAINTS[name](given)
    except (KeyError, ValueError, TypeError) as error:
        raise Unsupported(f"the instruction {name!r} has the settings {dict(given)!r} ({error!r})", "'constraints'") from None


def databases(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Spider, BIRD: a query for a database, which must stand in the row to run it."""
    query = first_text(row, "query", "SQL", "sql")
    if (
        not query
        or not ({"db_id", "database", "schema", "context"} & set(row))
        or not re.match(r"(?is)\s*(select|with)\b", query)
    ):
        sql = isinstance(asked.gold, str) and re.match(r"(?is)\s*select\b.*\bfrom\b", asked.gold)
        if not sql:
            return None
        query = cast("str", asked.gold)
    database = plain(as_json(row.get("database")))
    instances = cast("dict[str, Any]", database).get("instances") if isinstance(database, dict) else None
    if not isinstance(instances, list) or len(cast("list[Any]", instances)) < 2:
        raise Unsupported(
            f"a query is judged by what it returns, and the rows of {row.get('db_id', 'its database')!s} are not there",
            "'sql', with 'database' {'schema': tables or SQL, 'instances': two or more sets of rows}",
        )
    evidence = first_text(row, "evidence")
    return Route(
        form="SQL",
        verifier="sql",
        answer={"query": query, "database": database},
        solution=query,
        behind=f"\n{evidence}" if evidence else "",
        uses=("query", "SQL", "sql", "database", "evidence"),
    )


def own_repositories(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Repositories that bring their files and tests."""
    if not isinstance(row.get("files"), Mapping) or not isinstance(row.get("tests"), list | tuple):
        return None
    answer = {name: plain(row[name]) for name in ("files", "tests", "protected") if name in row}
    question = "" if asked.question else first_text(row, "problem_statement")
    return Route(form="repository", verifier="swe", answer=answer, question=question, uses=("files", "tests", "protected"))


def guru(row: Mapping[str, Any], asked: Asked) -> Route | None:
    """Guru's sources beside mathematics and programs (Reasoning360), by their names."""
    kind, gold, source = asked.source.partition("__")[0], asked.gold, asked.source
    if kind not in ("simulation", "logic", "table", "stem") or gold is None:
        return None
    value = as_json(gold)
    if source.startswith(("simulation__arcagi", "simulation__barc")):
        return Route(form="grid", verifier="grid", answer=value)
    if source.startswith("simulation__codeio"):
        found = as_json("{" + str(gold) + "}") if isinstance(gold, str) else gold
        return Route(form="predicted value", verifier={"name": "json", "where": "auto"}, answer=found)
    if source.startswith("logic__zebra"):
        return Route(form="zebra table", verifier={"name": "json", "where": "auto"}, answer=value)
    if source.startswith("logic__ordering") and (items := texts_in(value)):
        return Route(form="order", verifier="list", answer=items)
    if kind == "stem" and isinstance(gold, str) and re.fullmatch(r"\(?[A-Z]\)?", gold.strip()):
        return Route(form="multiple choice", verifier="choice", answer=gold.strip("() "))
    if kind == "table" and "|" in str(gold):
        return Route(
            form="table cells", verifier={"name": "set", "separator": "|"}, answer=[c.strip() for c in str(gold).split("|")]
        )
    if kind == "table" and re.fullmatch(r"\s*[-+]?\$?[\d,]*\.?\d+\s*%?\s*", str(gold)):
        return Route(form="table number", verifier={"name": "numeric", "relative": 0.001}, answer=gold)
    if isinstance(gold, str) and source.startswith(("logic__graph", "table__")):
        return Route(form="words", verifier=NAMES, answer=gold)
    raise Unsupported(
        f"{source!r} has the gold {gold!r:.120}, of a form that is not known there", "a verifier of your own choice"
    )


REFUSED: tuple[Form, ...] = (pictures, preferences, repositories, sources_without_a_judge)
FORMS: tuple[Form, ...] = (instructions, databases, guru, question_answering)

"""The bars of the gate, on prompts and plants of a reader who had not read the gate."""

import pytest
from other_templates import ITEMS, TEMPLATES, Plant, plants, prompts

from assay.curate import EvalIndex, EvalItem, Matching, find_contamination, normal

ROWS, HELD_OUT = (found := prompts(600))[:500], found[500:]


def hit(items: list[str], texts: list[str], variants: bool = False) -> set[int]:
    of = tuple(EvalItem("e.jsonl", at, normal(text), text) for at, text in enumerate(items))
    return {c.index for c in find_contamination(EvalIndex(of, Matching(variants=variants)), texts)}


def test_no_prompt_in_ten_templates_is_refused_beside_items_in_the_same_templates():
    assert len(set(ROWS)) == 500 and not hit(HELD_OUT, ROWS) and not hit(list(ITEMS), ROWS)


@pytest.mark.parametrize("variants", [False, True])
def test_items_in_disguise_are_found_and_no_other_prompt_is(variants: bool):
    mine: list[Plant] = [plant for plant in plants() if plant.variants is variants]
    assert len(mine) == (60 if variants else 140)
    found = hit(list(ITEMS), [*(plant.text for plant in mine), *ROWS], variants)
    assert found == set(range(len(mine)))


@pytest.mark.slow
@pytest.mark.parametrize("template", range(10))
def test_items_of_a_file_in_one_template_are_found_behind_others(template: int):
    items = [TEMPLATES[template].replace("QQ", item) for item in ITEMS]
    texts = [TEMPLATES[(at + 2 * way + 1) % 10].replace("QQ", item) for at, item in enumerate(ITEMS) for way in range(5)]
    assert hit(items, [*texts, *ROWS]) == set(range(200))

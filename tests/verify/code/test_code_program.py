"""Where the program stands in an answer."""

from time import process_time

import pytest

from assay.verify.code import ProgramPlace, program_in


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```python\nx\n```", "x"),
        ("```\nx\n```", "x"),
        ("```py\nx\n```\nor\n```python3\ny\n```", "y"),
        ("```python\nx\n```\nprints\n```\n4\n```\nin\n```text\nz\n```", "x"),
        ("```bash\nls\n```\n```\nx\n```", "x"),
        ("```python\nx", "x"),
        ("```python\nx\ny```\n", "x\ny"),
        ("Sure!\n```python\nx\n", "x\n"),
        ("<answer>x</answer>", "x"),
        ("```cpp\nint x;\n```\n<answer>y</answer>", "y"),
        ("<answer>\n```python\nx\n```\n</answer>", "x"),
        ("x = 1", "x = 1"),
        ("```python\nno\n```</think>\n```python\nyes\n```", "yes"),
        ("1. So:\n   ```python\n   if x:\n       y\n   ```", "if x:\n    y"),
        ("````python\na = '''\n```\n'''\n````", "a = '''\n```\n'''"),
        ('```Python title="a"\nx\n```', "x"),
        ("```python\n\n```", "```python\n\n```"),
        ("", None),
        (" \n\t", None),
        ("```python\n", "```python\n"),
    ],
)
def test_auto(text: str, program: str | None) -> None:
    assert program_in(text) == program


def test_places() -> None:
    text = "```python\nx\n```\n<answer>y</answer>"
    assert [program_in(text, place) for place in ProgramPlace] == ["x", "x", "y", text]
    assert program_in("x", "fence") is None and program_in("x", "tag") is None
    assert program_in("```lua\nx\n```\n```\ny\n```", "fence", ("lua",)) == "x"


@pytest.mark.parametrize(
    "piece", ["```", "```\n", "```python\n", "<answer>", "</answer>", "`", " ", "``` a", "\n", "</think>", "a"]
)
def test_a_million_characters_take_seconds(piece: str) -> None:
    began = process_time()
    program_in((piece * 1_000_000)[:1_000_000] + "\n```python x")
    assert process_time() - began < 10.0

"""Ready tools: what they answer, refuse and keep."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.agents.tools import Corpus, PricedModel, PythonInterpreter, ReadOnlyDatabase, calculate
from assay.clients.openai_client import OpenAIClient
from assay.core.errors import ConfigError, DataError
from assay.rollout.function_tool import FunctionTool
from assay.rollout.tool_class import EpisodeTools, tools_from
from assay.testing import check_tool


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+1", "2"),
        ("-(2**10) // 3", "-342"),
        ("7 % 3 - 0.5", "0.5"),
        ("-1/8", "-0.125"),
        ("1/3*3", "1"),
        ("2**-2", "0.25"),
        ("+1e3", "1000"),
        ("1/2**25", "1/33554432"),
    ],
)
def test_the_calculator_is_exact(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("9**9**9", "no whole number|too large"),
        ("2**0.5", "no whole number"),
        ("2**4000*2**4000", "too large"),
        ("(3**99)**99", "too large"),
        ("__import__('os')", "neither a number"),
        ("True + 1", "neither a number"),
        ("'a' * 3", "neither a number"),
        ("1 +", "is no expression"),
        ("1 << 3", "neither a number"),
        ("not 1", "neither a number"),
        ("1" * 1001, "at most 1000"),
    ],
)
def test_the_calculator_refuses_what_is_no_arithmetic(expression: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        calculate(expression)


def test_the_calculator_is_a_tool_by_name() -> None:
    assert check_tool("assay.agents.tools:calculate", [({"expression": "2*3"}, "6"), ({"expression": "1/0"}, None)]).passed


def test_the_interpreter_keeps_names_for_one_rollout() -> None:
    (tool,) = tools_from(PythonInterpreter, "tools")
    assert list(tool.schema["parameters"]["properties"]) == ["code"] and "Names stay" in tool.schema["description"]

    async def play() -> list[Any]:
        first, second = EpisodeTools(None), EpisodeTools(None)
        try:
            said = [await first.call(tool, {"code": code}) for code in ("x = 6", "x * 7", "1/0", "print('a' * 9000)", "x")]
            return [*said, await second.call(tool, {"code": "x"})]
        finally:
            await first.close()
            await second.close()

    kept, product, broken, flood, still, other = asyncio.run(play())
    assert (kept.content, product.content, still.content) == ("(no output)", "42", "6")
    assert broken.error and "ZeroDivisionError" in broken.error and broken.content == f"Error: {broken.error}"
    assert flood.cut == 5000 and flood.content.endswith("(5000 more characters are left out)")
    assert other.error and "NameError" in other.error


def test_a_database_is_read_and_never_changed(tmp_path: Path) -> None:
    place = tmp_path / "sales.db"
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("CREATE TABLE sales (thing TEXT, pieces INTEGER)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [("figs", 3), ("nuts", None), ("tea", 5)])
    sales = ReadOnlyDatabase(place, rows=2)
    assert sales.query("SELECT * FROM sales ORDER BY thing") == "figs|3\nnuts|\n(1 more rows)"
    assert sales.query("SELECT 1 WHERE 0") == "(no rows)"
    before = place.read_bytes()
    for query in ("DELETE FROM sales", "SELEC", "SELECT load_extension('x')", "DROP TABLE sales"):
        with pytest.raises(ValueError, match=r"."):
            sales.query(query)
    with pytest.raises(ValueError, match=r"limit|steps|seconds"):
        sales.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    assert place.read_bytes() == before
    with pytest.raises(ConfigError, match="give an SQLite file"):
        ReadOnlyDatabase(tmp_path / "none.db")
    (tmp_path / "text").write_text("not a database, but long enough to be looked at " * 50)
    with pytest.raises(ConfigError, match="is no SQLite database"):
        ReadOnlyDatabase(tmp_path / "text")


def test_a_corpus_finds_the_same_texts_in_the_same_order(tmp_path: Path) -> None:
    texts = [("One", "Figs grow."), ("Two", "Figs grow."), ("Three", "Nuts \n fall. " + "x" * 400)]
    built = Corpus.build(tmp_path / "c.db", texts)
    found = Corpus(tmp_path / "c.db", characters=10)
    assert built.size == found.size == 3
    assert built.search("fig", 2) == "One: Figs grow.\nTwo: Figs grow." == built.search('fig" OR *', 2)
    assert found.search("falling nuts") == "Three: Nuts fall." and found.search("?!") == "(nothing found)"
    assert found.read("Two") == "Figs grow."
    with pytest.raises(ValueError, match="no text 'Four'"):
        found.read("Four")
    built.close()
    with pytest.raises(DataError, match="no text to be indexed"):
        Corpus.build(tmp_path / "empty.db", [])
    with pytest.raises(ConfigError, match="no file"):
        Corpus(tmp_path / "empty.db")
    (tmp_path / "text").write_text("x" * 5000)
    with pytest.raises(ConfigError, match="is no index"):
        Corpus(tmp_path / "text")


def test_another_model_has_a_price_and_is_asked_once() -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return httpx.Response(200, json={"choices": [{"index": 0, "message": {"content": "It is 4."}, "finish_reason": "stop"}]})

    client = OpenAIClient("http://127.0.0.1:1/v1", "big", transport=httpx.MockTransport(answer))
    big = PricedModel(client, price=2.0, per_call=0.5, system="Be short.")

    async def ask(question: str) -> Any:
        """Asks a larger model."""
        return await big.ask(question)

    tool = FunctionTool(ask)
    first, again = (asyncio.run(tool.call({"question": "2+2?"}, None)) for _ in range(2))
    assert first.content == again.content == "It is 4." and first.cost == pytest.approx(0.5 + 2.0 * 12 / 1000) == again.cost
    assert len(asked) == 1 and asked[0]["temperature"] == 0.0 and asked[0]["messages"][0]["content"] == "Be short."
    with pytest.raises(ConfigError, match="give a price above 0"):
        PricedModel(client)

"""Judges of `benchmarks.judged` behind a server of OpenAI's protocol: a model trained here, a program, and chance.

What a scorer asks is a page of words; this server takes question and answers out of it and shows the model these alone, and puts
the words that the scorer reads around its judgement.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from assay.core import Message, Request, Sampling, derive
from assay.runtime import NativeEngine
from assay.testing import JudgeServer
from assay.train import Policy
from benchmarks.judged_forms import beside, mark_of, marks_of, met
from benchmarks.judged_tasks import first_flaw, sound_share

__all__ = ["Asked", "Chance", "ModelJudge", "ModelServer", "Program", "read_asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, read.

    Attributes:
        form: of `benchmarks.judged_forms.FORMS`.
        prompt: of the task.
        texts: the answers.
        criterion: of a rubric.
    """

    form: str
    prompt: str
    texts: tuple[str, ...]
    criterion: str = ""


def read_asked(messages: Sequence[Message]) -> Asked:
    """Question and answers of what `assay.scorers` ask."""
    said = messages[-1].content
    prompt = said.split("Question:\n", 1)[1].split("\n", 1)[0]
    mark = re.search(r"between two lines (\w+):\n", said)
    assert mark is not None, said
    inside = said.split(f"\n{mark[1]}\n")
    texts = tuple(inside[1::2])
    if "first step that is wrong" in said:
        return Asked(form="flaw", prompt=prompt, texts=("\n".join(re.sub(r"^\[\d+\] ", "", x) for x in texts[0].split("\n")),))
    if "Reply with A, B, or tie" in said:
        return Asked(form="better", prompt=prompt, texts=texts)
    if "How sound is the" in said:
        return Asked(form="mark", prompt=prompt, texts=texts)
    if "Scores: [" in said:
        return Asked(form="marks", prompt=prompt, texts=texts)
    (name,) = re.findall(r'\{"(\w+)": GRADE\}', said)
    return Asked(form="verdict", prompt=prompt, texts=texts, criterion=name)


def worded(asked: Asked, judgement: str) -> str:
    """A judgement in the form that the scorer reads; what is none is said as it is."""
    if asked.form == "flaw":
        return "-1" if judgement == "-" else judgement
    if asked.form == "better":
        return "tie" if judgement == "=" else judgement
    if asked.form == "mark":
        return "1" if judgement == "T" else f"0.{judgement}"
    if asked.form == "marks":
        return f"Scores: [{', '.join(judgement)}]"
    return f'{{"{asked.criterion}": {judgement}}}'


class JudgeModel(Protocol):
    """Gives judgements."""

    def judge(self, asked: Asked, temperature: float, seed: int) -> str: ...


class ModelJudge:
    """A judge of `benchmarks.judged_models.train_judge`: all that ask at the same time are one running batch.

    Args:
        path: its run folder.
    """

    def __init__(self, path: Path) -> None:
        model: Any = Policy(path).model()
        self._tokenizer = model.tokenizer
        self._engine = NativeEngine(model)
        self._numbers = itertools.count()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def judge(self, asked: Asked, temperature: float, seed: int) -> str:
        """What it says behind its critique."""
        shown = ";".join(beside(asked.prompt, text) for text in asked.texts)
        prompt = self._tokenizer.render([Message("user", f"{asked.criterion[:1]}{shown}>")])
        drawn = Sampling(max_new_tokens=54, temperature=temperature, stop_ids=(self._tokenizer.eos,))
        request = Request(id=f"judge/{next(self._numbers)}", prompt=prompt, seed=seed, sampling=drawn)
        said = asyncio.run_coroutine_threadsafe(self._engine.generate(request), self._loop).result()
        return self._tokenizer.decode(said.ids).rpartition(":")[2].strip()


class Program:
    """The truth."""

    def judge(self, asked: Asked, temperature: float, seed: int) -> str:
        """By a program."""
        prompt, texts = asked.prompt, asked.texts
        if asked.form == "flaw":
            at = first_flaw(prompt, texts[0])
            return "-" if at is None else str(at)
        if asked.form == "mark":
            return mark_of(prompt, texts[0])
        if asked.form == "better":
            a, b = (sound_share(prompt, t) for t in texts)
            return "A" if a > b else "B" if a < b else "="
        if asked.form == "marks":
            return "".join(str(n) for n in marks_of(prompt, texts))
        return str(int(met(asked.criterion[:1], prompt, texts[0])))


class Chance:
    """A judgement drawn by the words of the question alone."""

    def judge(self, asked: Asked, temperature: float, seed: int) -> str:
        """One of those that can be, ``-`` half of the time."""
        n = derive("chance", 0, "\n".join([asked.form, asked.criterion, asked.prompt, *asked.texts]), 0) >> 8
        rng = np.random.default_rng(n)
        if asked.form == "flaw":
            return "-" if rng.random() < 0.5 else str(rng.integers(4))
        if asked.form == "marks":
            return "".join(str(rng.integers(1, 10)) for _ in asked.texts)
        return str(rng.choice({"mark": list("0123456789T"), "better": ["A", "B", "="], "verdict": ["0", "1"]}[asked.form]))


class ModelServer(JudgeServer):
    """A judge behind a server on this machine; a context manager.

    Args:
        judge: gives the judgements.
    """

    def __init__(self, judge: JudgeModel) -> None:
        super().__init__(lambda messages: "")
        self._judge = judge

    def answer(self, request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Answers one request, by its temperature and seed."""
        asked = read_asked([Message(turn["role"], turn["content"]) for turn in body["messages"]])
        said = worded(asked, self._judge.judge(asked, body["temperature"], body["seed"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        data = json.dumps({"choices": [choice], "usage": {"total_tokens": len(said)}}).encode()
        request.send_response(200)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

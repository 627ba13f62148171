"""``assay chat``: turns and commands from a pipe, what is kept and refused, and Ctrl-C in the middle of an answer."""

import io
import json
import os
import signal
import sys
from concurrent.futures import Future

import pytest

from assay.cli.chat import Conversation
from assay.core.errors import ConfigError
from assay.core.rollout import Sampling
from assay.core.task import Message
from assay.publish.service import TextGenerator
from assay.runtime import ChatTemplate, DecoderShape, char_tokenizer, init_model
from assay.runtime.models.hf import save_model

SHAPE = {"hidden_size": 16, "num_layers": 1, "num_heads": 1, "num_kv_heads": 1, "head_dim": 16, "intermediate_size": 32}
LETTERS = "".join(map(chr, range(32, 127))) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = char_tokenizer(LETTERS, ChatTemplate(user="U:{content}\n", assistant="A:{content}", system="S:{content}\n"))
    path = tmp_path_factory.mktemp("chat") / "tiny"
    save_model(init_model(DecoderShape(vocab_size=tokenizer.size, max_positions=96, **SHAPE), tokenizer, 0), path)
    return path


@pytest.fixture(scope="module")
def base(folder, tmp_path_factory):
    """The same model without a chat template."""
    path = tmp_path_factory.mktemp("chat") / "base"
    path.mkdir()
    for file in folder.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    config = json.loads((path / "tokenizer_config.json").read_text())
    kept = {name: value for name, value in config.items() if "template" not in name}
    (path / "tokenizer_config.json").write_text(json.dumps(kept))
    return path


@pytest.fixture
def chat(assay, monkeypatch):
    def call(lines, *words):
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        return assay("chat", *words)

    return call


def test_turns_from_a_pipe(chat, folder, tmp_path):
    lines = "Hello\n\nAgain\n/save talk.json\n/undo\n/save back.json\n//x\n/save slash.json\n/reset\n/save none.json\n"
    said = chat(lines, folder, "--max-new-tokens", 6, "--system", "Be brief.", "--seed", 1)
    assert said.code == 0, said.err
    answers = said.out.splitlines()
    talk = json.loads((tmp_path / "talk.json").read_text())["messages"]
    assert [m["role"] for m in talk] == ["system", "user", "assistant", "user", "assistant"]
    assert [m["content"] for m in talk] == ["Be brief.", "Hello", answers[0], "Again", answers[1]]
    assert json.loads((tmp_path / "back.json").read_text())["messages"] == talk[:3]
    assert json.loads((tmp_path / "slash.json").read_text())["messages"][3]["content"] == "/x"
    assert json.loads((tmp_path / "none.json").read_text())["messages"] == talk[:1]
    assert chat("Hello\n", folder, "--max-new-tokens", 6, "--system", "Be brief.", "--seed", 1).out.splitlines() == answers[:1]


def test_commands_that_cannot_be(chat, folder, tmp_path):
    (tmp_path / "mine.json").write_text("mine")
    lines = "/udno\n/undo\n/temperature hot\n/temperature -1\n/save\n/save mine.json\n/save no/folder.json\né\n/help\nfine\n"
    said = chat(lines, folder, "--max-new-tokens", 3)
    assert said.code == 1 and len(said.out.splitlines()) == 1
    for words in ("did you mean 'undo'", "nothing was said", "/temperature hot:", "/temperature -1:", "name a file", "exists"):
        assert words in said.err
    assert "No such file" in said.err and "alphabet lacks 'é'" in said.err and "/undo             take back" in said.err
    assert (tmp_path / "mine.json").read_text() == "mine"


def test_the_context_is_full(chat, folder):
    said = chat("x\n" + "y" * 100 + "\n/temperature 0\nz\n", folder, "--max-new-tokens", 200)
    assert said.code == 1 and "the model's context 96: go back by /undo" in said.err


def test_a_base_model_goes_on_with_text(chat, base, tmp_path):
    said = chat("Once\nTwice\n/save talk.txt\n/system Be\n", base, "--max-new-tokens", 5, "--temperature", 0)
    assert said.code == 1 and "has no chat template: it goes on" in said.err and "there are no system turns" in said.err
    first, second = said.out.splitlines()
    assert (tmp_path / "talk.txt").read_text() == f"Once{first}\nTwice{second}\n"
    with TextGenerator(base) as model:
        whole = model.submit(model.text_prompt(f"Once{first}\nTwice"), Sampling(temperature=0.0, max_new_tokens=5), 0).result()
        assert model.tokenizer.decode(whole.ids) == second
    assert chat("", base, "--system", "Be brief.").code == 2


def test_ctrl_c_stops_the_answer_and_keeps_what_was_said(folder, request):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a program, whatever ran here before
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    class Endless(TextGenerator):
        def submit(self, prompt, sampling, seed, tell=None):
            tell(self.tokenizer.encode("so far"))
            self.last = Future()
            return self.last

    with Endless(folder) as model:
        talk, shown = Conversation(model, Sampling(), 0), []

        def show(piece):
            shown.append(piece)
            os.kill(os.getpid(), signal.SIGINT)

        talk.ask("Hello", show)
        assert shown == ["so far"] and talk.trouble == "stopped" and model.last.cancelled()
        assert talk.messages() == [Message("user", "Hello"), Message("assistant", "so far")]
        with pytest.raises(ConfigError, match="context 96"):
            talk.ask("x" * 100, shown.append)
        assert len(talk.turns) == 1


def test_a_model_that_is_not_there(chat):
    assert chat("", "none").code == 2

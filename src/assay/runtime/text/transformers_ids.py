"""Whether transformers reads text by the ids that a run trains on: ``AutoTokenizer`` picks a class by the model's type, and a
class may cut text otherwise than the folder's ``tokenizer.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from assay.core.errors import AssayError, DataError
from assay.core.task import Message
from assay.runtime.text.chat import Chat
from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["TEXTS", "auto_tokenizer", "check_agreement", "first_difference", "readable"]

TEXTS = (
    "What is 23+0?",
    "12345, 3.14159 and 1e-9",
    "  two spaces,\ta tab ",
    "one line\nanother\n\nand a third\n",
    "naïve café, Straße",
    "数学の問題",
    "don't, we'll, I'M",
    "def f(x):\n    return x ** 2  # 10",
    "\\frac{1}{2} = $0.50",
)
"""What tokenizers are compared on before a run: digits, spaces, newlines, other scripts, contractions, code, formulas."""

Difference = tuple[str, list[int], list[int]]


def auto_tokenizer(folder: Path, model: Path | None = None) -> Any:
    """What ``transformers.AutoTokenizer`` makes of a folder's tokenizer.

    Args:
        folder: holds the tokenizer.
        model: a folder whose ``config.json`` says the model's type, by which the class is picked; ``folder`` when None.
    """
    from transformers import AutoConfig, AutoTokenizer

    from assay.runtime.models.hub_files import quietly

    with quietly():
        more = {} if model is None else {"config": cast(Any, AutoConfig).from_pretrained(model, local_files_only=True)}
        return cast(Any, AutoTokenizer).from_pretrained(folder, local_files_only=True, **more)


def check_agreement(own: HubTokenizer, folder: Path) -> None:
    """Refuses a model folder whose text transformers encodes by other ids than its ``tokenizer.json``: whoever used the trained
    model would ask it in ids that it was not trained on. Without transformers, or where that cannot load the folder, nothing is
    compared.

    Args:
        own: of ``folder``, as a run uses it.
        folder: a model folder.

    Raises:
        DataError: any of `TEXTS` has other ids; names the class and the fix.
    """
    if find_spec("transformers") is None:
        return
    try:
        theirs = auto_tokenizer(folder)
    except Exception:  # whatever it says of files that it cannot read: an export says it too
        return
    found = first_difference(own, theirs, readable(own, TEXTS), given=own.chat != Chat() or own.template is not None)
    if found is None:
        return
    text, mine, others = found
    raise DataError(
        f"{folder}: transformers reads its tokenizer as a {type(theirs).__name__}, picked by the model's type, which cuts "
        f"{text!r} into {len(others)} tokens where tokenizer.json has {len(mine)}, so the trained model would be asked in other "
        "ids than it learned from. If the weights were trained with transformers' ids, write them into tokenizer.json of a copy "
        "and train that: python -c \"from transformers import AutoTokenizer as A; A.from_pretrained('MODEL').save_pretrained("
        "'COPY')\"; else the folder's tokenizer is not the one of its weights: get it again from its source"
    )


def readable(own: HubTokenizer, texts: Iterable[str]) -> list[str]:
    """The texts that a tokenizer has ids for."""
    found: list[str] = []
    for text in texts:
        try:
            own.encode(text)
            own.render([Message("user", text)])
        except AssayError:
            continue
        found.append(text)
    return found


def first_difference(own: HubTokenizer, theirs: Any, texts: Iterable[str], *, given: bool = False) -> Difference | None:
    """The first text that two tokenizers read by other ids, with both; None where they agree.

    Plain text is compared, and a prompt as its users encode it: through the chat template, or the text with the special tokens
    that the tokenizer adds.

    Args:
        own: the run's.
        theirs: of transformers.
        texts: what is read.
        given: prompts are written by settings that ``theirs`` does not have: plain text alone is compared.
    """
    for text in texts:
        for mine, others in _pairs(own, theirs, text, given):
            if mine != others:
                return text, mine, others
    return None


def _pairs(own: HubTokenizer, theirs: Any, text: str, given: bool) -> Iterator[tuple[list[int], list[int]]]:
    yield own.encode(text).tolist(), list(theirs(text, add_special_tokens=False, split_special_tokens=True).input_ids)
    if given:
        return
    prompt = own.render([Message("user", text)]).tolist()
    if not theirs.chat_template:
        yield prompt, list(theirs(text, split_special_tokens=True).input_ids)
    elif "strftime_now" not in str(theirs.chat_template):  # else it says another thing every day
        turn = [{"role": "user", "content": text}]
        yield prompt, list(theirs.apply_chat_template(turn, add_generation_prompt=True, tokenize=True, return_dict=False))

"""Every block of the README and of the pages runs as printed; what cannot says why, and its names and options are checked."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from page_blocks import ROOT, Block, blocks, pages, words_of

from assay.cli import main
from assay.cli.aliases import OWN_ALIASES
from assay.cli.tracker_options import choose_trackers, split_words
from assay.cli.user_files import USER_FILES
from assay.cli.user_objects import user_modules
from assay.core.rollout import Sampling
from assay.guide import Uniform
from assay.measure import TRACKERS
from assay.objective.methods import methods, registry
from assay.runtime import DecoderShape, char_tokenizer, init_model, save_model
from assay.train import Evaluation, Reinforce, Run, train
from assay.train.models import Folder
from assay_tasks import SortDigits

WHY = {
    "minutes": "takes minutes, or a base that does: its options are read",
    "gpu": "needs a GPU: its options are read",
    "network": "needs the network, or a model from there: its options are read",
    "server": "needs a server, or is one that does not end: its options are read",
    "program": "another program than assay: what it names exists",
    "library": "needs a library that is not installed here: it compiles",
}
"""The reasons that there are, and what is checked instead of a run."""

NOT_RUN: dict[str, tuple[str, str]] = {
    "README.md": ("Qwen/Qwen3-0.6B", "network"),
    "docs/add/backend.md": ("ContainerSettings((*command", "program"),
    "docs/add/serve_model.md": ("from openai import", "server"),  # tests/publish/test_model_service.py asks one
    "docs/add/service.md": ("client = RewardClient(url=", "server"),  # tests/interop/test_service.py asks one
    "docs/add/trl.md": ("from trl import GRPOTrainer", "library"),
    "docs/packages/lab.md": ("side_by_side(runs", "minutes"),
    "docs/packages/train-outcome.md": ("train(", "minutes"),
    "docs/packages/proof.md": ("set.mm", "library"),
}
"""Pieces of Python that do not run, by their page."""
COMMANDS_NOT_RUN = {
    "selftest": "minutes",
    "rollouts diff": "minutes",
    "runs replay": "minutes",
    "runs samplers": "minutes",  # of a run that is at work
    "serve": "server",
    "distill": "network",
    "eval http": "network",
    "push": "network",
    "contamination": "minutes",
    "tasks admit": "minutes",
    "tasks import hub:": "network",
    "export runs/lora-1": "minutes",
    "sandbox run program.py --backend": "server",
    "sandbox probe": "minutes",
    "train six.py": "minutes",
    "train tools-hub": "network",  # tests/train/test_chat_runs.py trains it
    "train warm_up.py": "minutes",
    "curate halves/train.jsonl": "minutes",  # by what a run of minutes saw of its rows
    "control train": "minutes",
    "control resume": "minutes",
    "control eval": "minutes",
    "control report": "minutes",
}
AUDITED = "docs/add/audit.md"
"""The page whose audits run; those of others are read: each takes seconds."""
"""Commands of assay whose options are read only. Those of `train` are read by `explain`, which trains nothing."""
FILES = {
    "docs/add/audit.md": "my_rewards.py",
    "docs/add/agent.md": "my_agent.py",
    "docs/add/filter.md": "my_steps.py",
    "docs/add/judge.md": "my_judge.py",
    "docs/add/suite.md": "six.py",
    "docs/add/tool.md": "my_file.py",
}
"""What a page calls the file that has its code; `my_file.py` where it says nothing."""
OWN_TEST = {
    "docs/papers.md": "tests/cli/test_papers.py",  # made of papers.toml
    "docs/add/task.md": "tests/tasks/test_task_packages.py",  # a package of several files, installed
}
"""Pages whose blocks belong together in a way that a test of their own knows."""
PRINTED = {
    f"docs/{page}": "tests/verify/test_pages.py"
    for page in (
        "add/language.md",
        "packages/audit.md",
        "packages/code.md",
        "packages/hardware.md",
        "packages/sandbox.md",
        "packages/sql.md",
        "packages/verify-pool.md",
    )
}
"""Pages whose pieces of Python a test runs that looks at what they print: here their commands and data are."""
TRAIN_ONLY = {
    "--out": 1,
    "--output-dir": 1,
    "--output_dir": 1,
    "--folder": 1,
    "--seeds": 1,
    "--profile": 0,
    "--plain": 0,
    "--no-report": 0,
    "--steps": 1,
    "--against": 9,
    "--tracker": 9,
    "--tracker.rollouts": 1,
    "--tracker.project": 1,
    "--tracker.uri": 1,
    "--tracker.wandb.mode": 1,
}
"""Options that `train` has and `explain` has not, with how many values."""


PAGES = [name for p in pages() if (name := str(p.relative_to(ROOT))) not in OWN_TEST and blocks(p)]


# ---- what the pages take for granted ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a tiny model under the names that the pages use, and its start as a model."""
    home = tmp_path_factory.mktemp("pages")
    shape = DecoderShape(
        hidden_size=16,
        num_layers=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=16,
        intermediate_size=32,
        max_positions=2048,
        vocab_size=99,
    )
    letters = "".join(map(chr, range(32, 127))) + "\n"
    save_model(init_model(shape, char_tokenizer(letters), seed=0, init="fan_in"), home / "model")
    run = Run(
        name="quickstart",
        model=Folder(path=str(home / "model")),
        tasks=SortDigits(levels=(1, 2)),
        stages=(Reinforce(steps=2, groups=2, group_size=2, curriculum=Uniform()),),
        sampling=Sampling(max_new_tokens=4),
        evaluation=Evaluation(every=2, per_level=2, final_per_level=3),
    )
    train(run, home / "runs" / "quickstart-1")
    return home


ROWS = [{"prompt": f"What is {i} + {i + 1}?", "question": f"What is {i} + {i + 1}?", "answer": str(2 * i + 1)} for i in range(30)]
CASES = [{"gold": "42", "answer": "42", "prompt": "What is 6 times 7?", "wrong": ["67"], "solutions": ["42"]}]
PLAIN = {
    "rows.jsonl": ROWS,
    "train.jsonl": ROWS,
    "aime.jsonl": [{"prompt": "How many sides has a die of the usual kind?", "answer": "6"}],
    "math500.jsonl": [{"prompt": "How many corners has a cube?", "answer": "8"}],
    "fresh.jsonl": ROWS[:4],
    "validation.jsonl": ROWS[4:8],
    "texts.jsonl": [{"prompt": f"S{i}>", "completion": "1", "text": f"S{i}>1"} for i in range(100, 400)],
    "rewarded.jsonl": [{"prompt": f"S{i}>", "answer": "1", "reward": i % 2} for i in range(100, 110)],
    "cases.jsonl": CASES,
}


@pytest.fixture
def folder(world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with what the pages name, as the working folder; forgets afterwards what was imported. The sandbox's user may
    read it, which pytest's own folders forbid.
    """
    methods()  # loads them all: what is registered later is a page's own, and is forgotten
    monkeypatch.setattr(registry, "_METHODS", dict(registry.registered_methods()))
    tmp_path = Path(tempfile.mkdtemp(prefix="assay-page-"))
    tmp_path.chmod(0o755)
    for name, rows in PLAIN.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("quickstart-1", "quickstart-2", "rows-1", "mine-1", "big", "mine", "shown"):
        shutil.copytree(world / "runs" / "quickstart-1", tmp_path / "runs" / name)
    for name in ("model", "my_model", "MODEL", "FOLDER"):
        (tmp_path / name).symlink_to(world / "model")
    (tmp_path / "RUN").symlink_to(tmp_path / "runs" / "quickstart-1")
    (tmp_path / "program.py").write_text("print(1)\n")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_CACHE", str(world / "cache"))
    monkeypatch.delitem(sys.modules, "my_file", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in {*user_modules(), *(n for n in set(sys.modules) - before if n.startswith(("assay_user", "page_")))}:
        sys.modules.pop(name, None)
    USER_FILES.clear()
    monkeypatch.undo()
    shutil.rmtree(tmp_path)


# ---- python -------------------------------------------------------------------------------------------------------------

MINE = '''"""What the README and the pages call the reader's own file."""

from dataclasses import dataclass

from assay.guide import Uniform
from assay.recipes import on_rows
from assay_tasks import SortDigits as MyFamily


def my_reward(prompt: str, completion: str, row: dict) -> float:
    return float(completion == row["answer"])


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str == ground_truth)


@dataclass(frozen=True)
class Mine(Uniform):
    least: float = 0.0


def my_recipe():
    return on_rows([{"prompt": f"S{i}>", "answer": str(i)} for i in range(100, 200)], my_reward, model="model", steps=2)
'''
"""Where a page names a file of the reader's and shows none."""


def code_of(page: Path) -> str:
    """The page's code as one file: its pieces of Python that run, or those of its examples up to the end of the class."""
    name = str(page.relative_to(ROOT))
    mark, _ = NOT_RUN.get(name, ("\0", ""))
    pieces = [b.text for b in blocks(page) if b.kind == "python" and mark not in b.text]
    if pieces:
        return "\n\n".join(pieces)
    for example in re.findall(r"^(>>> .*\n(?:(?:>>>|\.\.\.).*\n)*)", page.read_text(encoding="utf-8"), re.MULTILINE):
        lines = [line[4:] for line in example.splitlines()]
        if any(line.startswith("    ") for line in lines):
            last = max(i for i, line in enumerate(lines) if line.startswith("    "))
            return "\n".join(lines[: last + 1]) + "\n"
    return ""


def import_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"page_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def import_names(block: Block) -> None:
    """The names that a piece imports from assay are there, though it does not run."""
    wanted = [node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.ImportFrom | ast.Import)]
    own = [node for node in wanted if not isinstance(node, ast.ImportFrom) or (node.module or "").startswith("assay")]
    exec(compile(ast.Module([*own], []), block.page, "exec"), {})


# ---- commands -----------------------------------------------------------------------------------------------------------


def call(words: list[str], stdin: str = "") -> tuple[int, str]:
    """The exit code of a command, and what it said on both streams."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        old, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()))
        try:
            code = main(words)
        finally:
            sys.stdin = old
    return code, out.getvalue()


def check_options(words: list[str]) -> None:
    """Each option that a command names is one in its help."""
    nested = words[0] in ("control", "tasks", "verify", "serve", "sandbox", "runs", "papers", "guides")
    depth = 2 if nested or "://" in "".join(words[1:2]) else 1  # a server has options of its own
    code, said = call([*words[:depth], "--help"])
    assert code == 0, said
    for word in words:
        if re.match(r"--?[a-z]", word) and word.lstrip("-").replace("-", "_") not in OWN_ALIASES:
            assert re.search(rf"(?<![\w-]){re.escape(word.partition('=')[0])}(?![\w-])", said), f"{words}: no option {word}"


def explained(words: list[str]) -> list[str]:
    """The words of `train` without the options that only it has, which are looked up in its help."""
    kept: list[str] = []
    dropped: list[str] = []
    left = 0
    for word in words:
        if word in TRAIN_ONLY:
            left = TRAIN_ONLY[word]
            dropped.append(word)
        elif left and not word.startswith("--"):
            left -= 1
            dropped += [word] if dropped[-1].startswith("--tracker.") else []
        else:
            left = 0
            kept.append(word)
    if about := split_words(dropped)[0]:  # settings of a tracker are in no help
        choose_trackers([o for o in about if o.path != "tracker"], flags=tuple(TRACKERS))
    if dropped := [word for word in dropped if not word.startswith("--tracker.")]:
        check_options(["train", *dropped])
    return kept


def run_command(command: str, page: str) -> None:
    echoed, _, piped = command.partition(" | ") if command.startswith("echo ") else ("", "", command)
    stdin = " ".join(words_of(echoed)[1:]) + "\n" if echoed else ""
    if given := re.search(r" < (\S+)", piped):
        stdin, piped = Path(given.group(1)).read_text(), piped[: given.start()]
    words = words_of(re.sub(r" > \w+\.\w+.*", "", piped))
    if words[0] != "assay":
        check_program(words)
        return
    words = ["texts.jsonl" if word.startswith("hub:") and words[1] == "train" else word for word in words[1:]]
    text = " ".join(words)
    if any(text.startswith(start) for start in COMMANDS_NOT_RUN) or (text.startswith("verify audit") and page != AUDITED):
        check_options(words)
        return
    if words[0] == "train":
        words = ["explain", *explained(words[1:])]
    if words[0] == "resume":  # to one step more than the run has
        words = [*words[:-1], "3"]
    if words[:3] == ["export", "runs/mine-1", "--to"] and "--step" in words:
        words = [*words[:-1], "2"]
    if "FOLDER" in words:  # a model that writes calls of tools
        words = ["--random-init" if word == "FOLDER" else word for word in words if word != "--model.path"]
    code, said = call(words, stdin)
    fine = (0, 1) if words[:2] == ["verify", "audit"] else (0,)  # 1: it found something
    assert code in fine, f"{command}\n{said[-2000:]}"


def check_program(words: list[str]) -> None:
    """A command of another program: targets of make, files and packages of the repository exist."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(words[1:2]) <= set(targets), words
    for word in words:
        if word.endswith(".py") and "/" in word:
            assert (ROOT / word).exists(), words
        if word.startswith(".[") or "assay-rl[" in word:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
            assert set(word.partition("[")[2].rstrip("]").split(",")) <= set(extras), words


# ---- the pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs(page: str, folder: Path) -> None:
    found = blocks(ROOT / page)
    prepare(page, folder)
    code = EDITS.get(page, lambda text: text)(code_of(ROOT / page))
    file = folder / FILES.get(page, "my_file.py")
    file.write_text(MINE + ("" if page == "README.md" else "\n\n" + code))
    if page == "README.md":
        (folder / "example.py").write_text(code)
        import_file(folder / "example.py")
    for block in found:
        check_block(block)
    if code and page not in ("README.md", *PRINTED) and any(b.kind == "python" for b in found):
        with contextlib.redirect_stdout(io.StringIO()):
            import_file(file)
    left_out, _ = NOT_RUN.get(page, ("\0", ""))
    for block in found:
        if block.kind == "python" and left_out in block.text:
            import_names(block)
    for block in found:
        for command in block.commands if block.kind == "shell" else []:
            run_command(command, page)


def check_block(block: Block) -> None:
    """What can be read without running anything."""
    if block.kind == "toml":
        tomllib.loads(block.text)
    elif block.kind == "json":
        for line in block.text.strip().splitlines():
            json.loads(line)
    elif block.kind == "python":
        compile(block.text, f"{block.page}:{block.line}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


EDITS: dict[str, Callable[[str], str]] = {
    "docs/add/service.md": lambda code: (
        "from assay.interop.service import RewardClient\n\nclient = RewardClient(url='http://127.0.0.1:8900')\n" + code
    ),
    "README.md": lambda code: code.replace("steps=100)", 'steps=2, model="model")'),
    "docs/add/own_rows.md": lambda code: code.replace("range(30)", "range(8)"),
}
"""Smaller numbers, and a tiny model in place of the base."""


def prepare(page: str, folder: Path) -> None:
    """What a page shows in blocks of data, as the files that it names."""
    by_kind = {kind: [b.text for b in blocks(ROOT / page) if b.kind == kind] for kind in ("json", "toml")}
    more = range(10, 60)  # as many as a batch needs
    if page == "docs/add/demonstrations.md":
        rows = [{"prompt": f"S{i}>", "completion": "".join(sorted(str(i)))} for i in more]
        (folder / "shown.jsonl").write_text(by_kind["json"][0] + "".join(json.dumps(row) + "\n" for row in rows))
    if page == "docs/add/preferences.md":
        rows = [{"prompt": f"S{i}>", "chosen": "1", "rejected": "2"} for i in more]
        (folder / "pairs.jsonl").write_text(
            by_kind["json"][0].splitlines(keepends=True)[0] + "".join(json.dumps(row) + "\n" for row in rows)
        )
    if page == "docs/examples.md":
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    if page == "docs/add/tool.md":
        text = (ROOT / page).read_text(encoding="utf-8")
        (shop,) = re.findall(r"^>>> from dataclasses import replace\n(?:(?:>>>|\.\.\.) .*\n)*>>> shop = .*\n", text, re.MULTILINE)
        (folder / "shop.py").write_text("".join(line[4:] + "\n" for line in shop.splitlines()))
    if page == "docs/packages/curate.md":
        (folder / "one").mkdir()
        (folder / "one" / "train.jsonl").write_text(json.dumps({"prompt": "S2140>", "answer": "0124"}) + "\n")
    if page == "docs/add/language.md":
        (folder / "my_awk.toml").write_text(by_kind["toml"][-1])
        (folder / "main.awk").write_text("{ print $1 + $2 }\n")


def test_what_is_not_run_is_still_there() -> None:
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in [*NOT_RUN, *FILES, *OWN_TEST]}
    assert [page for page, (mark, why) in NOT_RUN.items() if mark not in texts[page] or why not in WHY] == []
    assert [why for why in COMMANDS_NOT_RUN.values() if why not in WHY] == []
    assert [test for test in OWN_TEST.values() if not (ROOT / test).exists()] == []
    assert [p for p, test in PRINTED.items() if f'"{p.removeprefix("docs/")}": [' not in (ROOT / test).read_text()] == []
    whole = "\n".join(p.read_text(encoding="utf-8") for p in pages())
    assert [start for start in COMMANDS_NOT_RUN if f"assay {start}" not in whole] == []

"""Agent programs of the registries, unmodified: they use a tool through the endpoint, and are trained and resumed exactly."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import tools_tokenizer

from assay.agents import AgentProgram
from assay.core.protocols import SamplerParts
from assay.core.rollout import Rollout, Sampling, Stop
from assay.core.sample import samples
from assay.lab.controls import RandomReward, Rewarded
from assay.testing import ScriptedEngine
from assay.testing.conversations import trained_once
from assay.train.driver import train
from assay.train.evaluate import context_of
from assay_tasks import SortDigits
from tests.train.tiny_runs import digest_of, in_child, kill_at, only_rl, resumed

pytestmark = pytest.mark.evidence

PACKAGES = (
    "openai-agents",
    "pydantic-ai-slim[openai,anthropic,google,cli]",
    "langgraph",
    "langchain-openai",
    "langchain-anthropic",
    "mini-swe-agent",
)
OPENAI_AGENTS = """
import os
from agents import Agent, Runner, function_tool, set_default_openai_api

set_default_openai_api(os.environ["API"])


@function_tool
def add(a: int, b: int) -> int:
    "The sum."
    return a + b


agent = Agent(name="adder", model="gpt-9", instructions="Use add.", tools=[add])
print(Runner.run_sync(agent, os.environ["ASSAY_PROMPT"], max_turns=4).final_output)
"""
PYDANTIC = """
import os
from pydantic_ai import Agent

agent = Agent(os.environ["MODEL"], instructions="Use add.")


@agent.tool_plain
def add(a: int, b: int) -> int:
    "The sum."
    return a + b


print(agent.run_sync(os.environ["ASSAY_PROMPT"]).output)
"""
LANGGRAPH = """
import os
from langgraph.prebuilt import create_react_agent

if os.environ["KIND"] == "openai":
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="gpt-9")
else:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="claude")


def add(a: int, b: int) -> int:
    "The sum."
    return a + b


asked = {"messages": [{"role": "user", "content": os.environ["ASSAY_PROMPT"]}]}
told = create_react_agent(model, [add], prompt="Use add.").invoke(asked)
print(told["messages"][-1].content)
"""
GEMINI = """
mkdir -p $HOME/.gemini
echo '{"security": {"auth": {"selectedType": "gemini-api-key"}}}' > $HOME/.gemini/settings.json
exec "$(dirname "$0")/gemini" --yolo --skip-trust -m gemini-2.5-pro -p "$ASSAY_PROMPT"
"""
OPENCODE = """
mkdir -p $HOME/.config/opencode
cat > $HOME/.config/opencode/opencode.json <<X
{"provider": {"assay": {"npm": "@ai-sdk/openai-compatible",
 "options": {"baseURL": "$OPENAI_BASE_URL", "apiKey": "$OPENAI_API_KEY"},
 "models": {"policy": {"name": "policy", "limit": {"context": 1000000, "output": 8000}}}}},
 "model": "assay/policy", "autoupdate": false}
X
exec "$(dirname "$0")/opencode" run "$ASSAY_PROMPT"
"""
PI = """
mkdir -p $HOME/.pi/agent
cat > $HOME/.pi/agent/models.json <<X
{"providers": {"assay": {"baseUrl": "$OPENAI_BASE_URL", "apiKey": "OPENAI_API_KEY", "api": "openai-completions", "models": [
 {"id": "policy", "name": "policy", "contextWindow": 1000000, "maxTokens": 8000, "input": ["text"], "reasoning": false,
  "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}]}}}
X
exec "$(dirname "$0")/pi" --provider assay --model policy -p "$ASSAY_PROMPT"
"""
COPILOT = """
export COPILOT_PROVIDER_BASE_URL=$OPENAI_BASE_URL COPILOT_PROVIDER_API_KEY=$OPENAI_API_KEY
export COPILOT_MODEL=policy COPILOT_OFFLINE=true
exec "$(dirname "$0")/copilot" --allow-all-tools -p "$ASSAY_PROMPT"
"""
NPM = (
    "@anthropic-ai/claude-code",
    "@openai/codex",
    "@qwen-code/qwen-code",
    "@google/gemini-cli",
    "opencode-ai",
    "@mariozechner/pi-coding-agent",
    "@github/copilot",
)
CLAI = 'from pydantic_ai import Agent\n\nagent = Agent("test")\n'
SOURCE = SortDigits(levels=(2,))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the programs; skipped where no registry is reached."""
    place = tmp_path_factory.mktemp("programs")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    pip = [place / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", *PACKAGES]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        pytest.skip(f"agent programs cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    texts = {"with_openai": OPENAI_AGENTS, "with_pydantic": PYDANTIC, "with_graph": LANGGRAPH, "clai_agent": CLAI}
    for name, text in texts.items():
        (place / f"{name}.py").write_text(text)
    return place


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command line agents of npm; skipped where it, or a registry, is missing."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    place = tmp_path_factory.mktemp("node")
    install = [npm, "install", "--no-audit", "--no-fund", *NPM]
    done = subprocess.run(install, cwd=place, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        pytest.skip(f"agents of npm cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    programs = place / "node_modules" / ".bin"
    for name, text in {"gemini": GEMINI, "opencode": OPENCODE, "pi": PI, "copilot": COPILOT}.items():
        (programs / f"{name}.sh").write_text(text)
    return programs


def calls_once(name: str, arguments: dict[str, Any], says: str = "It is 3. \n") -> Callable[[Any], str]:
    """A policy that calls a tool, with JSON written as few would, and answers behind its result."""

    def script(ask: Any) -> str:
        if "\ntool:" in re.split(r"S\d\d>", ask.prompt)[-1]:
            return says
        if f'"name": "{name}"' not in ask.prompt:
            return "Title"
        call = json.dumps({"name": name, "arguments": arguments}, separators=(",", ":  "))
        return f"\n\nI look. \n<tool_call>\n{call}\n</tool_call>"

    return script


def played(spec: AgentProgram, script: Callable[[Any], str]) -> Rollout:
    tokenizer = tools_tokenizer()
    engine = ScriptedEngine(script, tokenizer, context=1_000_000)
    sampling = Sampling(max_new_tokens=300)
    parts = SamplerParts(engine=engine, tokenizer=tokenizer, source=SOURCE, sampling=sampling, seed=0, max_turns=1, deadline=30.0)
    (found,) = asyncio.run(spec.build(parts).collect([context_of(SOURCE.task("sort", 2, "train", 0))], 1))
    assert found.stop is Stop.DONE, found.error
    trained_once(found, "program")
    return found


PROGRAMS = {
    "openai-agents, chat": ("with_openai.py", {"API": "chat_completions"}),
    "openai-agents, responses": ("with_openai.py", {"API": "responses"}),
    "pydantic-ai, chat": ("with_pydantic.py", {"MODEL": "openai-chat:gpt-9"}),
    "pydantic-ai, responses": ("with_pydantic.py", {"MODEL": "openai-responses:gpt-9"}),
    "pydantic-ai, messages": ("with_pydantic.py", {"MODEL": "anthropic:claude-sonnet-4-5"}),
    "pydantic-ai, gemini": ("with_pydantic.py", {"MODEL": "google:gemini-2.5-pro"}),
    "langgraph, chat": ("with_graph.py", {"KIND": "openai"}),
    "langgraph, messages": ("with_graph.py", {"KIND": "anthropic"}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_frameworks_use_a_tool_and_their_calls_are_one_row(name: str, scratch: Path) -> None:
    script, env = PROGRAMS[name]
    command = f"{scratch / 'venv' / 'bin' / 'python'} {scratch / script}"
    spec = AgentProgram(command=command, env=env, answer="stdout", timeout=250)
    found = played(spec, calls_once("add", {"b": 2, "a": 1}))
    assert found.text == "It is 3." and [c.history in ("exact", "spliced") for c in found.calls] == [False, True]
    assert len(samples(found)) == 1


def test_mini_swe_agent_works_in_its_folder(scratch: Path) -> None:
    def script(ask: Any) -> str:
        done = '"returncode"' in ask.prompt
        command = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat note" if done else "echo 3 > note"
        return f'I work.\n<tool_call>\n{{"name": "bash", "arguments": {{"command":  "{command}"}}}}\n</tool_call>'

    command = f"{scratch / 'venv' / 'bin' / 'mini'} -y -m openai/gpt-9 -l 0 --exit-immediately -o t.json -t {{prompt}}"
    env = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
    found = played(AgentProgram(command=command, env=env, answer="file:note", timeout=250), script)
    assert found.text == "3" and len(found.calls) == 2 and len(samples(found)) == 1


NODE = {
    "gemini": ("sh {bin}/gemini.sh", "run_shell_command", {"command": "echo 3", "description": "d"}),
    "opencode": ("sh {bin}/opencode.sh", "bash", {"command": "echo 3", "description": "d"}),
    "pi": ("sh {bin}/pi.sh", "bash", {"command": "echo 3"}),
    "copilot": ("sh {bin}/copilot.sh", "bash", {"command": "echo 3", "description": "d"}),
    "claude": ("{bin}/claude -p {prompt} --allowedTools Bash", "Bash", {"command": "echo 3", "description": "d"}),
    "codex": (
        "{bin}/codex exec --skip-git-repo-check -c model_provider=x -c model_providers.x.name=x "
        '-c model_providers.x.base_url="{url}" '
        "-c model_providers.x.env_key=OPENAI_API_KEY -m gpt-5 --dangerously-bypass-approvals-and-sandbox {prompt}",
        "exec_command",
        {"cmd": "echo 3"},
    ),
    "qwen": (
        "{bin}/qwen --auth-type openai --yolo -m gpt-9 -p {prompt}",
        "run_shell_command",
        {"command": "echo 3", "is_background": False, "description": "d"},
    ),
}


@pytest.mark.parametrize("name", NODE)
def test_command_line_agents_of_npm_use_a_tool(name: str, node: Path) -> None:
    command, tool, arguments = NODE[name]
    found = played(
        AgentProgram(command=command.replace("{bin}", str(node)), answer="stdout", timeout=250), calls_once(tool, arguments)
    )
    assert "It is 3." in found.text and [c.history for c in found.calls][-1] in ("exact", "spliced")


@pytest.mark.parametrize("model", ["anthropic:claude-sonnet-4-5", "openai-chat:gpt-9"])
def test_a_command_line_agent_is_trained_and_resumes_exactly(model: str, scratch: Path, tmp_path: Path) -> None:
    """pydantic-ai's `pai` as it is, a process for each rollout; coins pay, so that every step moves the weights."""

    def run() -> Any:
        command = f"{scratch / 'venv' / 'bin' / 'pai'} -m {model} -a clai_agent:agent {{prompt}}"
        agent = AgentProgram(command=command, env={"PYTHONPATH": str(scratch)}, timeout=250, folder=str(tmp_path / "runs"))
        whole = only_rl(steps=3, groups=2, group_size=2, sampler=agent)
        tasks = Rewarded(source=whole.tasks, scorer=RandomReward())
        return replace(whole, tasks=tasks, checkpoint_every=1, evaluation=replace(whole.evaluation, every=0, final_per_level=1))

    def killed() -> None:
        kill_at(24)
        train(run(), tmp_path / "killed", progress=False)

    def uninterrupted() -> None:
        assert train(run(), tmp_path / "whole", progress=False).finished

    assert in_child(uninterrupted) == 0
    assert in_child(killed) == -9 and not (tmp_path / "killed" / "done.json").exists()
    lines = [json.loads(line)["metrics"] for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    taught = [m["grad/norm"] for m in lines if "grad/norm" in m]
    assert len(taught) == 3 and max(taught) > 1e-4
    assert resumed(tmp_path / "killed") == digest_of(tmp_path / "whole")

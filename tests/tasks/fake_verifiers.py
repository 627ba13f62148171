"""As much of the library ``verifiers`` (``v1``) as assay's exchange with it touches, for tests where it is not installed."""

from __future__ import annotations

import inspect
import sys
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace
from typing import Any


class _Generic:
    made: tuple[Any, ...] = ()

    def __class_getitem__(cls, kinds: Any) -> type:
        return type(cls.__name__, (cls,), {"made": kinds if isinstance(kinds, tuple) else (kinds,)})


class TaskData:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update({"prompt": None, "id": None, "name": None, **values})

    @classmethod
    def model_validate(cls, values: dict[str, Any]) -> TaskData:
        return cls(**values)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v is not None}


class TasksetConfig:
    def __init__(self, **values: Any) -> None:
        self.task = SimpleNamespace()
        for kind in reversed(type(self).__mro__):
            for name in vars(kind).get("__annotations__", {}):
                setattr(self, name, values.get(name, getattr(self, name)))


class Task(_Generic):
    NEEDS_CONTAINER = False
    judges: tuple[str, ...] = ()

    def __init__(self, data: Any, config: Any = None) -> None:
        self.data, self.config, self.key, self.hash = data, config, "key", "hash"

    @classmethod
    def data_type(cls) -> Any:
        return cls.made[0]

    @classmethod
    def toolsets(cls, config: Any) -> list[Any]:
        return []

    def plugged_judges(self) -> list[Any]:
        return list(self.judges)

    def hooks(self, kind: str) -> list[Any]:
        found = [getattr(self, n) for n in dir(type(self)) if hasattr(getattr(type(self), n), kind)]
        return sorted(found, key=lambda f: f.__name__)

    async def score(self, trace: Any) -> None:
        for fn in self.hooks("reward"):
            trace.rewards[fn.__name__] = None
        for fn in self.hooks("reward"):
            value = await fn(trace)
            weight = fn.weight
            trace.rewards[fn.__name__] = (
                None if value is None else SimpleNamespace(score=value, weight=weight, value=value * weight)
            )


class Taskset(_Generic):
    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def task_type(cls) -> Any:
        return cls.made[0]

    def __iter__(self) -> Any:
        return iter(self.load())

    def load(self) -> Any:
        return ()


class Env(_Generic):
    pass


class Trace:
    def __init__(self, task: Any, agent: Any, nodes: list[Any], **_: Any) -> None:
        self.task, self.agent, self.nodes = task, agent, nodes
        self.rewards: dict[str, Any] = {}
        self.info: dict[str, Any] = {}

    @property
    def last_reply(self) -> str:
        return next((n.message.content for n in reversed(self.nodes) if n.sampled), "")

    @property
    def reward(self) -> float:
        return sum(r.value for r in self.rewards.values() if r is not None)


def reward(weight: float = 1.0) -> Any:
    def marked(fn: Any) -> Any:
        assert inspect.iscoroutinefunction(fn), "verifiers gathers its rewards"
        fn.reward, fn.weight = True, weight
        return fn

    return marked


def _value(**named: Any) -> Any:
    return SimpleNamespace(**named)


class Interaction:
    """A conversation with a policy: a function of what it was told so far."""

    def __init__(self, policy: Any, prompt: Any) -> None:
        self.policy, self.heard = policy, [prompt]
        self.trace = Trace(None, None, [])

    async def turn(self, message: str | None = None) -> Any:
        if message is not None:
            self.heard.append(message)
        said = self.policy(self.heard)
        if said is None:
            return _value(terminated=True, last_reply="")
        self.trace.nodes.append(_value(message=_value(content=said), sampled=True))
        return _value(terminated=False, last_reply=said)


def player(policy: Any, kept: list[Any]) -> Any:
    @asynccontextmanager
    async def interaction(task: Any) -> Any:
        made = Interaction(policy, task.data.prompt)
        kept.append(made.trace)
        yield made

    return _value(player=_value(interaction=interaction))


def install(monkeypatch: Any, tasksets: dict[str, Any]) -> None:
    """Puts the fake in the place of the library, with these tasksets installed."""
    v1 = ModuleType("verifiers.v1")
    for name in ("TaskData", "TasksetConfig", "Task", "Taskset", "Env", "Trace", "reward"):
        setattr(v1, name, globals()[name])
    for name in ("SystemMessage", "UserMessage", "AssistantMessage", "TraceTask", "AgentInfo", "AgentConfig"):
        setattr(v1, name, _value)
    v1.EnvConfig = TasksetConfig  # pyright: ignore
    graph, utils, loaders = (
        ModuleType("verifiers.v1.graph"),
        ModuleType("verifiers.v1.utils"),
        ModuleType("verifiers.v1.utils.loaders"),
    )
    graph.MessageNode = lambda message, parent=None, sampled=False: _value(message=message, parent=parent, sampled=sampled)  # pyright: ignore

    def taskset_class(name: str) -> Any:
        if name not in tasksets:
            raise ModuleNotFoundError(f"taskset {name!r} not found", name="verifiers")
        return tasksets[name]

    loaders.taskset_class = taskset_class  # pyright: ignore
    generic = ModuleType("verifiers.v1.utils.generic")
    generic.concrete_type = lambda kind, base: kind.made[1] if len(kind.made) > 1 else base  # pyright: ignore
    top = ModuleType("verifiers")
    for module in (top, v1, graph, utils, loaders, generic):
        monkeypatch.setitem(sys.modules, module.__name__, module)

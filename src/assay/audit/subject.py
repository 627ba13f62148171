"""What is audited: a verifier, and how another process makes it again."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.audit.effects import Played
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import TaskSource, Verifier
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.interop.import_rewards import ForeignReward
from assay.interop.load_object import load
from assay.tasks.named_rewards import describe_call, named_verifier
from assay.tasks.named_suites import suites
from assay.tasks.packages import installed_packages
from assay.tasks.registry import family
from assay.verify.catalog import verifier as named
from assay.verify.catalog import verifiers
from assay.verify.reward_function import RewardFunction

__all__ = ["Subject", "again", "play_items", "resolve", "subject_of"]


@dataclass(frozen=True)
class Subject:
    """A verifier under audit.

    Attributes:
        name: what the report calls it.
        verifier: the verifier.
        recipe: arguments of `resolve` that make it again in another process; None where only the object is there.
        family: the task family whose verifier it is, if one was named.
    """

    name: str
    verifier: Verifier
    recipe: Mapping[str, Any] | None = None
    family: TaskSource | None = None

    @property
    def installed(self) -> bool:
        """Whether it is part of assay or of an installed package of tasks, so that it runs without containment."""
        return self.built_in is not None or self.family is not None

    @property
    def batched(self) -> bool:
        """Whether it has a form that takes several rollouts at once."""
        return isinstance(self.verifier, ForeignReward | RewardFunction) and self.verifier.batched

    @property
    def signature(self) -> str:
        """How it calls a person's function; empty where it calls none."""
        return describe_call(self.verifier)

    @property
    def built_in(self) -> str | None:
        """Its name in the registry, if it came from there."""
        name = self.recipe["name"] if self.recipe else None
        return name if name in verifiers() else None


def resolve(
    name: str,
    *,
    signature: str | None = None,
    gold: str | None = None,
    chat: bool | None = None,
    columns: Collection[str] | None = None,
) -> Subject:
    """The verifier of that name: one of `assay.verify.verifiers`, ``package.module:name``, ``path/to/file.py:name``, or that of a
    task family, ``FAMILY`` or ``FAMILY/ARM``. A name of both is the verifier; its family's arms can be named.

    Names of verifiers come from `assay.verify.catalog` alone: one that is added there can be audited. A function is called as a
    run on rows with the fields ``columns`` calls it (`assay.tasks.named_rewards`); None where they are not known.

    Raises:
        UnknownNameError: no verifier, family or arm of that name; says the nearest.
        ConfigError: what was named is no verifier and no reward function.
        DataError: the function takes a field that the rows do not have.

    >>> resolve("exact").built_in, resolve("assay.verify:ExactMatch").built_in, resolve("sort").family.name
    ('exact', None, 'sort')
    """
    recipe = {"name": name, "signature": signature, "gold": gold, "chat": chat, "columns": columns and tuple(columns)}
    if ":" in name:
        found = named_verifier(load(name), columns, signature=signature, gold=gold, chat=chat, name=name)
        return Subject(name, found, recipe)
    if name in verifiers():
        return Subject(name, named(name), recipe)
    known = (*installed_packages().families, *suites())
    try:
        source = family(name)
    except UnknownNameError:
        if name.partition("/")[0] in known:
            raise
        raise UnknownNameError("verifier or task family (or write package.module:name)", name, (*verifiers(), *known)) from None
    return Subject(name, source.verifier(), recipe, source)


def subject_of(found: Any, name: str | None = None, columns: Collection[str] | None = None) -> Subject:
    """A subject from an object: a verifier, a reward function of anybody's, or a name; ``columns`` as in `resolve`."""
    if isinstance(found, Subject):
        return found
    if isinstance(found, str):
        return resolve(found, columns=columns)
    called = name or str(getattr(found, "__name__", type(found).__name__))
    return Subject(called, named_verifier(found, columns, name=called))


def again(subject: Subject, items: Sequence[tuple[Task, Rollout]], hash_seed: int, deadline: float) -> list[float | str]:
    """Values of the items from a fresh interpreter whose hashes of text are seeded otherwise.

    Raises:
        ConfigError: the verifier cannot be made in another process, or that process failed.
    """
    try:
        order = pickle.dumps((subject.recipe, None if subject.recipe else subject.verifier, tuple(items)))
    except Exception as error:  # pickle raises whatever a foreign __reduce__ raises
        raise ConfigError(f"it cannot be made again in another process: {error}") from error
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "assay.audit.child"],
            input=order,
            capture_output=True,
            env=environment,
            timeout=30.0 + deadline * len(items),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigError("a process of its own gave no verdicts in time") from None
    if done.returncode != 0:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no word"]
        raise ConfigError(f"a process of its own failed: {last[0]}")
    return pickle.loads(done.stdout)


def play_items(order: bytes) -> list[float | str]:
    """What `again` asked for."""
    recipe, verifier, items = pickle.loads(order)
    return Played(verifier if recipe is None else resolve(**recipe).verifier, items).values()

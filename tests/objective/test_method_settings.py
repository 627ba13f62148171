"""Settings of methods: wrong kinds, NaN and infinities are refused by every constructor, and by `Objective` for every part."""

import inspect
import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest
from padded_inputs import random_inputs

from assay.core.errors import ConfigError
from assay.objective import (
    Center,
    Constant,
    Entropy,
    Kl,
    MinClip,
    Objective,
    PolicyGradient,
    Scale,
    Token,
    WeightClip,
    dpo,
    dr_grpo,
    evaluate,
    grpo,
)
from assay.objective.methods import methods
from assay.objective.settings import BOUNDS, check_parts, check_setting, with_checks

METHODS = methods()
STRANGE: tuple[Any, ...] = (math.nan, math.inf, -math.inf, "text", None, [1.0], {"a": 1}, 1j, b"x", object())


def allowed(name: str, annotation: str, default: Any, value: Any) -> bool:
    """Whether a method may take a strange value, from its signature alone."""
    if value is None:
        return "None" in annotation
    if isinstance(value, str):
        return "str" in annotation and "tuple" not in annotation
    infinite = isinstance(value, float) and math.isinf(value) and "float" in annotation and "tuple" not in annotation
    return infinite and value in (default, BOUNDS.get(name))


@pytest.mark.parametrize("name", METHODS)
def test_strange_settings_are_refused(name: str) -> None:
    method = METHODS[name]
    for setting, parameter in inspect.signature(method.make).parameters.items():
        for value in STRANGE:
            if allowed(setting, str(parameter.annotation), parameter.default, value):
                continue
            with pytest.raises(ConfigError) as caught:
                method.make(**{**method.example, setting: value})
            assert setting in str(caught.value), caught.value


@pytest.mark.parametrize("name", METHODS)
def test_a_number_is_no_switch_and_a_switch_is_no_number(name: str) -> None:
    method = METHODS[name]
    for setting, parameter in inspect.signature(method.make).parameters.items():
        annotation = str(parameter.annotation)
        if "bool" not in annotation:
            with pytest.raises(ConfigError, match=setting):
                method.make(**{**method.example, setting: True})
        else:
            with pytest.raises(ConfigError, match=setting):
                method.make(**{**method.example, setting: 1})


INFINITE = [
    (name, setting, value)
    for name, method in METHODS.items()
    for setting, parameter in inspect.signature(method.make).parameters.items()
    for value in (math.inf, -math.inf)
    if allowed(setting, str(parameter.annotation), parameter.default, value)
]


@pytest.mark.parametrize(("name", "setting", "value"), INFINITE, ids=str)
def test_an_infinite_bound_is_no_bound(name: str, setting: str, value: float) -> None:
    """Where an infinity is taken, loss and gradient are finite, and those of a bound that nothing reaches."""
    try:
        objective = METHODS[name].make(**{**METHODS[name].example, setting: value})
    except ConfigError:  # the part itself wants a number there
        return
    inputs = random_inputs(objective, 1)
    found = evaluate(objective, inputs)
    assert math.isfinite(found.loss) and all(np.isfinite(g).all() for g in found.gradient.values())
    assert np.isfinite(found.advantages).all()
    far = evaluate(METHODS[name].make(**{**METHODS[name].example, setting: math.copysign(1e12, value)}), inputs)
    assert found.loss == pytest.approx(far.loss, rel=1e-9, abs=1e-12)


def test_numbers_of_other_libraries_are_numbers() -> None:
    assert grpo(kl=np.float64(0.5)) == grpo(kl=0.5)
    assert dr_grpo(length=np.int64(8)).aggregate == Constant(length=8)  # type: ignore[arg-type]
    assert dpo(beta=1).policy is not None
    with pytest.raises(ConfigError, match=r"grpo\(kl=.*use a number"):
        grpo(kl=np.float32("nan"))


def test_what_is_named() -> None:
    with pytest.raises(ConfigError, match=r"dr_grpo\(length=nan\): a float, where int \| None is declared"):
        dr_grpo(length=math.nan)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"dpo\(beta=inf\): use a finite number"):
        dpo(beta=math.inf)
    with pytest.raises(TypeError, match="unexpected keyword"):
        dpo(betta=0.1)  # type: ignore[call-arg]


PARTS: dict[str, Any] = {
    "credit": lambda x: Objective(credit=(Center(), Scale(eps=x)), policy=PolicyGradient()),
    "policy": lambda x: Objective(policy=PolicyGradient(trust=MinClip(low=x))),
    "aggregate": lambda x: Objective(policy=PolicyGradient(), aggregate=Constant(length=x)),
    "terms": lambda x: grpo() + Entropy(coef=x),
    "a pair in a part": lambda x: Objective(policy=PolicyGradient(trust=WeightClip(positive=(0.0, x)))),
    "a part of a part": lambda x: replace(grpo(), terms=(Kl("k3", coef=x),)),
}


@pytest.mark.parametrize("place", PARTS)
@pytest.mark.parametrize("value", [math.nan, "0.2", 1j, [0.1]], ids=str)
def test_parts_with_strange_settings_make_no_objective(place: str, value: Any) -> None:
    with pytest.raises((ConfigError, TypeError)):
        PARTS[place](value)


def test_a_part_is_named_with_its_field() -> None:
    with pytest.raises(ConfigError, match=r"PolicyGradient.label=3: .*, where str is declared"):
        Objective(policy=PolicyGradient(label=3))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"Lamp.many=.*entry 1: use a number"):
        check_parts((Lamp(many=(0.0, math.nan)),))


def test_every_named_composition_passes() -> None:
    for method in METHODS.values():
        check_parts(method.objective())


@dataclass
class Lamp:
    kind: Literal["bulb", "tube"] = "bulb"
    sizes: tuple[float, int] = (1.0, 1)
    many: tuple[float, ...] = ()
    any_many: tuple = ()  # type: ignore[type-arg]
    open: "Nowhere" = None  # type: ignore[name-defined]  # noqa: F821


def test_kinds() -> None:
    check_parts(Lamp(kind="tube", sizes=(2.0, 3), many=(1.0, math.inf), any_many=("x", None), open=object()))
    assert is_dataclass(Lamp) and len(fields(Lamp)) == 5
    for bad in ({"kind": "lamp"}, {"sizes": (1.0,)}, {"sizes": (1.0, 2.5)}, {"many": [1.0]}, {"many": (math.nan,)}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            check_parts(Lamp(**bad))
    check_setting("x", -math.inf, float, -math.inf)
    with pytest.raises(ConfigError, match="x: use a finite number"):
        check_setting("x", math.inf, float, -math.inf)
    check_setting("x", Token(), Token)


def test_constructors_whose_annotations_are_open() -> None:
    @with_checks
    def free(a: "Nowhere" = 1, b=2, c: float = 1.0) -> float:  # type: ignore[name-defined,no-untyped-def]  # noqa: F821
        return c

    assert free(object(), object(), 2) == 2
    assert free(c=1.0) == 1.0
    with pytest.raises(ConfigError, match=r"free\(c='x'\)"):
        free(c="x")  # type: ignore[arg-type]

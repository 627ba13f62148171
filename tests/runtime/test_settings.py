import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError
from assay.runtime.learning_rate import describe_schedule
from assay.runtime.models.model import parameter_shapes
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule, Muon


@pytest.mark.parametrize(
    "shape",
    [
        DecoderShape(),
        DecoderShape(tied=False, qk_norm=False),
        DecoderShape(num_heads=4, num_kv_heads=2),
        DecoderShape(num_layers=0),
    ],
)
def test_parameters_count_every_weight_once(shape):
    assert shape.parameters == sum(math.prod(size) for size in parameter_shapes(shape).values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DecoderShape(num_heads=3, num_kv_heads=2), "num_heads=3 is no multiple of num_kv_heads=2"),
        (lambda: DecoderShape(head_dim=3), "head_dim=3 is odd"),
        (lambda: DecoderShape(num_kv_heads=0), "DecoderShape.num_kv_heads=0; use a number at least 1"),
        (lambda: DecoderShape(num_layers=-1), "num_layers=-1; use a number at least 0"),
        (lambda: LearningRateSchedule(kind="step"), "Schedule.kind='step'"),
        (lambda: LearningRateSchedule(floor=0.1), "do nothing with kind='constant'"),
        (lambda: LearningRateSchedule(kind="linear", start=1.5), r"Schedule.start=1.5; use a number in \[0, 1\]"),
        (lambda: LearningRateSchedule(warmup=-1), "Schedule.warmup=-1"),
        (lambda: AdamW(lr=-1.0), r"AdamW.lr=-1.0; use a number at least 0"),
        (lambda: AdamW(lr=math.nan), r"AdamW.lr=nan"),
        (lambda: AdamW(beta2=1.0), r"AdamW.beta2=1.0; use a number in \[0, 1\)"),
        (lambda: Muon(momentum=1.0), r"Muon.momentum=1.0"),
        (lambda: Muon(weight_decay=math.inf), r"Muon.weight_decay=inf"),
        (lambda: LearnerSettings(precision="fp16"), "precision='fp16'; use 'fp32' or 'bf16'"),
        (lambda: LearnerSettings(micro_tokens=0), "micro_tokens=0"),
        (lambda: LearnerSettings(clip_norm=-1.0), "clip_norm=-1.0"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_schedule_by_hand():
    warm = LearningRateSchedule(warmup=3)
    assert [warm.factor(k, 10) for k in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    cosine = LearningRateSchedule(kind="cosine", floor=0.2)
    assert [cosine.factor(k, 4) for k in (0, 2, 4, 9)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    late = LearningRateSchedule(kind="linear", warmup=4, start=0.1)  # the decay waits for the warm-up
    assert [late.factor(k, 8) for k in (4, 6, 8)] == [1.0, 0.5, 0.0]


@given(
    st.sampled_from(["constant", "linear", "cosine"]), st.integers(0, 20), st.floats(0, 1), st.floats(0, 1), st.integers(0, 50)
)
def test_factors_stay_between_floor_and_one_and_fall_after_the_warm_up(kind, warmup, start, floor, total):
    schedule = (
        LearningRateSchedule(kind=kind, warmup=warmup)
        if kind == "constant"
        else LearningRateSchedule(kind=kind, warmup=warmup, start=start, floor=floor)
    )
    factors = [schedule.factor(k, total) for k in range(total + 5)]
    assert all(0.0 <= f <= 1.0 for f in factors)
    after = factors[warmup:]
    assert all(f >= schedule.floor - 1e-12 for f in after)
    assert after == sorted(after, reverse=True)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (LearningRateSchedule(), "constant at 0.1"),
        (LearningRateSchedule(warmup=1), "rises to 0.1 in 1 update, then constant"),
        (LearningRateSchedule(kind="cosine", floor=0.5), "falls along a cosine from 0.1, to 0.05 at update 10"),
        (LearningRateSchedule(kind="linear", warmup=2), "rises to 0.1 in 2 updates, then falls linearly to 0 at update 10"),
        (LearningRateSchedule(kind="linear", start=0.5), "stays at 0.1, and from update 5 of 10 falls linearly to 0"),
        (
            LearningRateSchedule(kind="linear", start=0.1, warmup=2),
            "rises to 0.1 in 2 updates, then falls linearly to 0 at update 10",
        ),
    ],
)
def test_a_schedule_in_words(schedule: LearningRateSchedule, said: str) -> None:
    assert describe_schedule(schedule, 0.1, 10) == said

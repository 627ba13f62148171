"""Records refuse what cannot be: tasks, contexts, completions, rollouts, scores, groups, manifests."""

from dataclasses import replace

import numpy as np
import pytest
from core_records import call, completion, context, group, one_call, rollout, task

from assay import core
from assay.core import (
    Completion,
    Fault,
    FrozenMap,
    Message,
    Prefill,
    Sampling,
    Score,
    Span,
    Stop,
    Task,
    TaskView,
    TokenColumn,
    ids_of,
    manifest_of,
)
from assay.core.columns import RESERVED, common_version
from assay.core.errors import DataError
from assay.core.plan import Plan, Scope
from assay.core.protocols import Obs, Step


def test_the_room_offers_its_names_lazily() -> None:
    assert core.Task is Task
    assert set(core.__all__) <= set(dir(core))
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchName'"):
        core.NoSuchName  # noqa: B018


def test_a_task_shows_what_it_may() -> None:
    made = task(answer="2")
    world = made.public_view()
    assert isinstance(world, TaskView)
    assert not hasattr(world, "private")
    assert world.messages == (Message("user", "1+1="),)
    assert made.content == task("another name", answer="3").content  # the same question
    with pytest.raises(DataError, match="task 'b': public has neither 'prompt' nor 'messages'"):
        Task(id="b", domain="d", arm="x", level=1, split="train", index=0, public=FrozenMap({"question": "?"}))


def test_a_task_may_open_with_a_conversation() -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1="}]
    made = Task(id="b", domain="d", arm="x", level=1, split="train", index=0, public=FrozenMap({"messages": turns}))
    assert made.public_view().messages == (Message("system", "Be brief."), Message("user", "1+1="))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_prefill_takes_a_share(share: float) -> None:
    with pytest.raises(DataError, match=r"Prefill.share"):
        Prefill("text", share)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -1.0),
        ("temperature", float("nan")),
        ("max_new_tokens", 0),
        ("top_p", 0.0),
        ("top_p", 1.5),
        ("top_k", -1),
        ("min_p", -0.1),
        ("min_p", 1.5),
    ],
)
def test_sampling_refuses(field: str, value: float) -> None:
    with pytest.raises(DataError, match=rf"Sampling.{field} must be"):
        Sampling(**{field: value})


def test_a_completion_knows_the_version_of_each_token() -> None:
    made = completion([5, 6, 7], [(3, 0, 2), (4, 2, 3)])
    assert made.versions().tolist() == [3, 3, 4]
    assert completion([]).versions().tolist() == []


@pytest.mark.parametrize("spans", [((1, 0, 2),), ((1, 0, 2), (2, 1, 3)), ((1, 1, 3),), ((1, 0, 3), (2, 3, 3)), ()])
def test_spans_partition_the_completion(spans: tuple[tuple[int, int, int], ...]) -> None:
    with pytest.raises(DataError, match=r"do not partition \[0, 3\)"):
        Completion(
            ids=ids_of([1, 2, 3]),
            logp_engine=np.zeros(3, np.float32),
            spans=tuple(Span(*s) for s in spans),
            stop=Stop.DONE,
            sampling=Sampling(),
        )


def test_a_completion_has_one_value_per_token() -> None:
    with pytest.raises(DataError, match="2 ids but 1 log-probabilities"):
        Completion(ids=ids_of([1, 2]), logp_engine=np.zeros(1, np.float32), spans=(), stop=Stop.DONE, sampling=Sampling())
    with pytest.raises(DataError, match="column 'routing' has 1 tokens, the completion has 2"):
        completion([1, 2], routing=np.zeros((1, 4)))
    for name in RESERVED:
        with pytest.raises(DataError, match="every row has these of its own"):
            completion([1, 2], **{name: np.zeros(2)})


def test_token_columns() -> None:
    column = TokenColumn("routing", np.arange(6, dtype=np.int16).reshape(3, 2), "engine", 4)
    spread = column.spread(5, np.array([False, True, True, False, True]))
    assert spread.values.tolist() == [[0, 0], [0, 1], [2, 3], [0, 0], [4, 5]]
    assert (spread.dtype, spread.trailing, spread.producer, spread.version) == (np.int16, (2,), "engine", 4)
    assert common_version([column, spread]) == 4
    assert common_version([column, TokenColumn("routing", column.values, "engine", 5)]) == -1


def test_ids_are_read_only_int32() -> None:
    ids = ids_of(np.array([[1, 2]], np.int64))
    assert (ids.dtype, ids.tolist()) == (np.int32, [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 5
    tokens = call(0, None, [1], [2, 3]).tokens
    assert (tokens.dtype, tokens.tolist(), tokens.flags.writeable) == (np.int32, [1, 2, 3], False)


def test_calls_stand_after_their_parents() -> None:
    with pytest.raises(DataError, match="call 1 stands at position 0"):
        rollout(call(1, None, [1], [2]))
    for parent in (0, 1, -1):
        with pytest.raises(DataError, match=f"call 0 has parent {parent}; parents come first"):
            rollout(call(0, parent, [1], [2]))


def test_what_a_rollout_says_of_itself() -> None:
    made = rollout(
        call(0, None, [1], [2, 3], text="a", columns={"entropy": np.array([0.5, 1.5])}),
        call(1, 0, [1, 2, 3], [], text=""),
        call(2, 1, [1, 2, 3], [4], text="b", columns={"entropy": np.array([2.5])}),
    )
    assert (made.text, made.length, rollout().text, rollout().length) == ("b", 3, "", 0)
    assert replace(made, answer="printed").text == "printed"
    assert made.column("entropy").tolist() == [0.5, 1.5, 2.5]
    assert repr(made) == "Rollout('c/0', 3 calls, 3 tokens sampled, done)"
    with pytest.raises(DataError, match=r"not every call has a column 'values'; 2 calls have \['entropy'\]"):
        made.column("values")
    with pytest.raises(DataError, match="0 calls"):
        rollout().column("entropy")


def test_only_an_error_has_a_fault() -> None:
    made = replace(rollout(stop=Stop.ERROR), error="no answer", fault=Fault.POLICY)
    assert (made.fault, rollout(stop=Stop.ERROR).fault) == (Fault.POLICY, Fault.NONE)
    for stop in (Stop.DONE, Stop.LENGTH, Stop.PARTIAL):
        with pytest.raises(DataError, match=f"rollout c/0 stopped as '{stop.value}' with a policy fault; use stop 'error'"):
            replace(made, stop=stop)


def test_scores() -> None:
    assert Score(components={"correct": 0.0, "reward": 1.0}).primary == 0.0
    assert Score(components={"reward": 0.5, "format": 1.0}).primary == 0.5
    assert Score(components={"rubric": 0.25}).primary == 0.25
    with pytest.raises(DataError, match=r"no 'correct' or 'reward' among the components \['a', 'b'\]"):
        Score(components={"a": 1.0, "b": 1.0}).primary  # noqa: B018
    for value in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(DataError, match="a verdict is a finite number or a fault"):
            Score(components={"correct": value})
    for fault, valid in ((Fault.NONE, True), (Fault.POLICY, True), (Fault.VERIFIER, False), (Fault.INFRA, False)):
        assert Score(components={"correct": 0.0}, fault=fault).valid is valid
    assert Score(components={}, fault=Fault.INFRA).components == {}
    with pytest.raises(DataError, match="needs at least one component"):
        Score(components={})


def test_groups() -> None:
    good, bad = Score(components={"correct": 1.5}), Score(components={"correct": 0.0})
    broken = Score(components={}, fault=Fault.VERIFIER)
    made = group(one_call(1), one_call(2), one_call(3), scores=[good, bad, broken])
    # each value is clipped before the mean: a reward of -1 for a wrong answer must not hide the right ones
    signed = group(one_call(1), one_call(2), scores=[Score(components={"reward": 1.0}), Score(components={"reward": -1.0})])
    assert signed.success == 0.5
    assert (made.values, made.success, made.informative) == ((1.5, 0.0), 0.5, True)
    assert group(one_call(1), scores=[good]).success == 1.0  # clipped
    assert not group(one_call(1), one_call(1), scores=[bad, broken]).informative
    assert group(one_call(1), scores=[broken]).success is None
    with pytest.raises(DataError, match="1 rollouts but 0 scores"):
        group(one_call(1), scores=[])
    with pytest.raises(DataError, match=r"holds rollouts of groups \['elsewhere'\]"):
        group(one_call(1, key="elsewhere"))


def test_manifests_identify_weights_not_their_order_or_payload() -> None:
    w, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros(3, np.float32)
    made = manifest_of(3, {"w": w, "b": b})
    assert (made.version, made.kind, made.base, made.payload["w"] is w) == (3, "full", None, True)
    assert (made.tensors["w"].dtype, made.tensors["w"].shape) == ("<f4", (2, 3))
    assert made.digest == manifest_of(9, {"b": b, "w": w.copy()}).digest
    assert made == manifest_of(3, {"w": w.copy(), "b": b})
    assert made.digest != manifest_of(3, {"w": w + 1, "b": b}).digest


def test_a_delta_names_what_it_changes_and_a_full_manifest_has_no_base() -> None:
    w, b = np.zeros(2, np.float32), np.ones(3, np.float32)
    made = manifest_of(4, {"b": b}, base=manifest_of(3, {"w": w, "b": b}).digest)
    assert (made.kind, made.base, set(made.tensors)) == ("delta", manifest_of(3, {"b": b, "w": w}).digest, {"b"})
    for kind, base in (("delta", None), ("full", "abc"), ("part", None), ("part", "abc")):
        with pytest.raises(DataError, match=f"weight version 4: kind='{kind}' with base={base!r}; a 'full' manifest has no base"):
            replace(made, kind=kind, base=base)


def test_plans_and_steps_have_quiet_defaults() -> None:
    assert (Plan().live, Plan().split) == (("logp_new",), Scope.TOKEN)
    assert Step() == Step(obs=Obs(()), done=False, results=())
    assert context().score_messages is None


def test_rounding_refuses_what_it_cannot_round() -> None:
    whole = manifest_of(1, {"w": np.zeros(2, np.float32)})
    for manifest, dtype, said in (
        (whole, "int8", "engines serve float32 or bfloat16"),
        (replace(whole, payload=None), "bfloat16", "no full set of arrays"),
        (manifest_of(2, {"w": np.zeros(2, np.float32)}, base=whole.digest), "bfloat16", "no full set of arrays"),
        (manifest_of(1, {"w": np.zeros(2, np.float64)}), "bfloat16", "'w' is float64"),
    ):
        with pytest.raises(DataError, match=said):
            manifest.round_to(dtype)


def test_an_outcome_has_an_advantage_for_each_rollout() -> None:
    graded = core.Group(key="g", task=task(), draw=core.Draw("a", 1, 1.0), rollouts=(), scores=())
    assert core.Outcome(group=graded, advantages=np.zeros(0)).magnitudes == ()
    with pytest.raises(DataError, match=r"group g: advantages of shape \(2,\) for 0 rollouts"):
        core.Outcome(group=graded, advantages=np.zeros(2))

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assay.core.vocab import FullEntropy
from assay.objective.loss.vocab import MeanLogp, MinP, PowerLogp, SupportLogp, TopP
from assay.objective.loss.vocab_divergence import FDivergence, FullKl, Jsd
from assay.runtime import settings
from assay.runtime.learner import lm_head as readout
from assay.runtime.learner.lm_head import LmHead, StatisticInputs, head_columns, head_statistics


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, dtype=torch.float64, grad=True, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=generator(seed)).requires_grad_(grad)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setitem(settings.HEAD_ELEMENTS, "cpu", 14)
    monkeypatch.setattr(settings, "HEAD_ROWS", 1)


@pytest.mark.usefixtures("small_chunks")
def test_head_columns_equal_plain_softmax_over_several_chunks():
    hidden, weight = normal(9, 4), normal(7, 4, seed=1)
    targets = torch.tensor([0, 6, 1, 1, 2, 3, 4, 5, 6])
    logp, entropy = head_columns(hidden, LmHead(weight), targets, True)
    table = torch.log_softmax(hidden @ weight.T, 1)
    assert torch.allclose(logp, table.gather(1, targets[:, None])[:, 0], atol=1e-12)
    assert torch.allclose(entropy, -(table.exp() * table).sum(1), atol=1e-12)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("used", ["logp", "entropy", "both"])
def test_head_gradients_are_right(used):
    targets = torch.tensor([0, 2, 2, 1, 4])

    def pick(hidden, weight):
        logp, entropy = head_columns(hidden, LmHead(weight), targets, used != "logp")
        if used == "both":
            return logp * 2 + entropy**2
        return logp if used == "logp" else entropy

    assert torch.autograd.gradcheck(pick, (normal(5, 3), normal(6, 3, seed=1)))


def test_entropies_that_nobody_asked_for_have_no_gradient():
    hidden, weight = normal(3, 2), normal(5, 2)
    logp, entropy = head_columns(hidden, LmHead(weight), torch.tensor([0, 1, 4]))
    (logp.sum() + entropy.sum()).backward()
    plain = torch.log_softmax(hidden.detach() @ weight.detach().T, 1).exp()
    assert torch.allclose(weight.grad, (torch.eye(5, dtype=torch.float64)[[0, 1, 4]] - plain).T @ hidden.detach(), atol=1e-12)


def test_no_tokens_no_gradient():
    hidden, weight = normal(0, 3), normal(6, 3)
    logp, entropy = head_columns(hidden, LmHead(weight), torch.zeros(0, dtype=torch.int64))
    (logp.sum() + entropy.sum()).backward()
    assert weight.grad.abs().sum() == 0


class Largest(TorchDispatchMode):
    """Remembers the most elements of any tensor that an operation made, weight-sized ones apart."""

    def __init__(self, ignore):
        super().__init__()
        self.ignore, self.elements = ignore, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor) and tuple(tensor.shape) not in self.ignore:
                self.elements = max(self.elements, tensor.numel())
        return out


def test_logits_of_all_tokens_never_exist_at_once(monkeypatch):
    monkeypatch.setitem(settings.HEAD_ELEMENTS, "cpu", 64 * 500)
    tokens, vocabulary, width = 1000, 500, 8
    hidden, weight = normal(tokens, width), normal(vocabulary, width)
    with Largest(ignore={(vocabulary, width), (width, vocabulary)}) as largest:
        logp, entropy = head_columns(hidden, LmHead(weight), torch.arange(tokens) % vocabulary, True)
        (logp.sum() + entropy.sum()).backward()
    assert largest.elements == 64 * vocabulary


# ---- statistics over the vocabulary -----------------------------------------------------------------------------------


STATS = (
    FullEntropy(),
    FullKl("ref"),
    Jsd("ref", beta=0.3),
    SupportLogp(support=TopP(0.8), model="ref"),
    SupportLogp(support=MinP(0.1)),
    PowerLogp("ref", power="phi"),
    MeanLogp(),
)
TARGETS = torch.tensor([0, 6, 1, 1, 2, 3, 4, 5, 6])


def beside(tokens=9, vocabulary=7, width=3):
    """Another model of another width, and a column."""
    other = normal(tokens, width, grad=False, seed=2), LmHead(normal(vocabulary, width, grad=False, seed=3))
    return StatisticInputs({"ref": other}, {"phi": torch.linspace(0, 1, tokens, dtype=torch.float64)})


def plain_statistics(hidden, weight, others):
    logp = torch.log_softmax(hidden @ weight.T, 1)
    ref = torch.log_softmax(others.models["ref"][0] @ others.models["ref"][1].weight.T, 1)
    found = [s.of(logp, TARGETS, {"ref": ref}, dict(others.columns)) for s in STATS]
    return [logp.gather(1, TARGETS[:, None])[:, 0], *found]


@pytest.mark.usefixtures("small_chunks")
def test_statistics_over_several_chunks_equal_those_of_all_logits():
    hidden, weight = normal(9, 4), normal(7, 4, seed=1)
    found = head_statistics(hidden, LmHead(weight), TARGETS, STATS, beside())
    plain = plain_statistics(hidden, weight, beside())
    for mine, theirs in zip(found, plain, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-12)
    factors = torch.randn(len(plain), 9, dtype=torch.float64, generator=generator(5))
    (torch.stack(found) * factors).sum().backward()
    mine = [hidden.grad.clone(), weight.grad.clone()]
    hidden.grad = weight.grad = None
    (torch.stack(plain) * factors).sum().backward()
    assert torch.allclose(mine[0], hidden.grad, atol=1e-12)
    assert torch.allclose(mine[1], weight.grad, atol=1e-12)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("used", [(0,), (1,), (2, 3), (6,), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_gradients_of_statistics_are_right(used):
    def pick(hidden, weight):
        found = head_statistics(hidden, LmHead(weight), TARGETS, STATS, beside())
        return sum(found[i].clamp(min=-50) ** 2 for i in used)  # a token outside a support has -1e4

    assert torch.autograd.gradcheck(pick, (normal(9, 3), normal(7, 3, seed=1)), fast_mode=True)


def test_statistics_without_gradient_and_without_tokens():
    hidden, weight = normal(9, 4), normal(7, 4, seed=1)
    column = head_statistics(hidden, LmHead(weight), TARGETS, (PowerLogp("ref", power="phi"),), beside())[1]
    column.sum().backward()
    assert not hidden.grad.any()
    nothing = head_statistics(normal(0, 4), LmHead(weight), TARGETS[:0], STATS[:1], StatisticInputs())
    assert [len(x) for x in nothing] == [0, 0]
    with torch.no_grad():
        assert not head_statistics(hidden, LmHead(weight), TARGETS, (MeanLogp(),), StatisticInputs())[1].requires_grad


def test_distributions_of_all_tokens_never_exist_at_once(monkeypatch):
    monkeypatch.setitem(settings.HEAD_ELEMENTS, "cpu", 64 * 500)
    tokens, vocabulary, width = 1000, 500, 8
    hidden, weight = normal(tokens, width), normal(vocabulary, width)
    ref = normal(tokens, width, grad=False), LmHead(normal(vocabulary, width, grad=False))
    with Largest(ignore={(vocabulary, width), (width, vocabulary)}) as largest:
        found = head_statistics(
            hidden,
            LmHead(weight),
            torch.arange(tokens) % vocabulary,
            (FullEntropy(), FullKl("ref")),
            StatisticInputs({"ref": ref}),
        )
        sum(x.sum() for x in found).backward()
    assert largest.elements <= 64 * vocabulary // 2


def peak(compute):
    """Most bytes that the calls of ``compute`` and its backward pass held at once, beyond what was there."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        sum(x.sum() for x in compute()).backward()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


@pytest.mark.slow
@pytest.mark.parametrize(
    "stat", [FullEntropy(), FullKl("ref"), Jsd("ref"), FDivergence("ref"), SupportLogp(support=MinP())], ids=repr
)
def test_a_statistic_at_32k_tokens_takes_no_more_memory_than_entropies(stat):
    hidden, weight = (normal(n, 16, dtype=torch.float32, seed=n) for n in (160, 32768))
    targets = torch.arange(160) * 17
    ref = hidden.detach() * 1.1, LmHead(weight.detach())
    plain = peak(lambda: head_columns(hidden, LmHead(weight), targets, True))
    with_it = peak(
        lambda: head_statistics(hidden, LmHead(weight), targets, (stat,), StatisticInputs({"ref": ref} if stat.models else {}))
    )
    assert plain > 128 * 32768 * 4 * 2  # it does hold a chunk's logits and their gradient
    assert with_it < 1.3 * plain


# ---- heads of other families --------------------------------------------------------------------------------------------


HEADS = {"bias": (True, 1.0, 0.0), "scale": (False, 0.25, 0.0), "cap": (False, 1.0, 1.5), "all": (True, 3.0, 2.0)}


def general(kind, weight, bias):
    wanted, scale, cap = HEADS[kind]
    return LmHead(weight, bias if wanted else None, scale, cap)


def plain_logits(kind, hidden, weight, bias):
    wanted, scale, cap = HEADS[kind]
    z = scale * (hidden @ weight.T + (bias if wanted else 0.0))
    return cap * torch.tanh(z / cap) if cap else z


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", HEADS)
def test_bias_scale_and_cap_are_those_of_plain_logits(kind):
    """Log-probabilities, entropies, statistics, and the gradients of all inputs."""
    found, wanted = [], []
    for store, mine in ((found, True), (wanted, False)):
        hidden, weight, bias = normal(9, 4), normal(7, 4, seed=1), normal(7, seed=2)
        if mine:
            head = general(kind, weight, bias)
            columns = [*head_columns(hidden, head, TARGETS, True), *head_statistics(hidden, head, TARGETS, STATS, beside())]
        else:
            logp = torch.log_softmax(plain_logits(kind, hidden, weight, bias), 1)
            ref = torch.log_softmax(beside().models["ref"][0] @ beside().models["ref"][1].weight.T, 1)
            drawn = logp.gather(1, TARGETS[:, None])[:, 0]
            stats = [s.of(logp, TARGETS, {"ref": ref}, dict(beside().columns)) for s in STATS]
            columns = [drawn, -(logp.exp() * logp).sum(1), drawn, *stats]
        factors = torch.randn(len(columns), 9, dtype=torch.float64, generator=generator(5))
        (torch.stack(columns) * factors).sum().backward()
        store += [*columns, hidden.grad, weight.grad, *([bias.grad] if HEADS[kind][0] else [])]
    for mine, plain in zip(found, wanted, strict=True):
        assert torch.allclose(mine, plain, atol=1e-11)


def test_a_frozen_head_costs_no_gradient():
    hidden, weight = normal(3, 2), normal(5, 2, grad=False)
    head_columns(hidden, LmHead(weight), torch.tensor([0, 1, 4]))[0].sum().backward()
    assert weight.grad is None and hidden.grad.abs().sum() > 0


# ---- operands in bfloat16 ------------------------------------------------------------------------------------------------


class TensorCores:
    """What PyTorch does on CUDA with products of 16-bit operands, done on a CPU: exact products, sums and result in float32.

    Attributes:
        calls: by overload, how often.
    """

    def __init__(self):
        self.calls = dict.fromkeys(("mm.dtype", "mm.dtype_out", "addmm.dtype_out"), 0)

    def mm(self, a, b, out_dtype):
        self.calls["mm.dtype"] += self.checked(a, b, out_dtype)
        return a.float() @ b.float()

    def mm_out(self, a, b, out_dtype, *, out):
        self.calls["mm.dtype_out"] += self.checked(a, b, out_dtype, out)
        return torch.mm(a.float(), b.float(), out=out)

    def addmm_out(self, into, a, b, out_dtype, *, beta=1, alpha=1, out):
        self.calls["addmm.dtype_out"] += self.checked(a, b, out_dtype, out)
        assert into.data_ptr() == out.data_ptr() and beta == alpha == 1
        return out.addmm_(a.float(), b.float())

    @staticmethod
    def checked(a, b, out_dtype, out=None):
        """As the kernels' own checks."""
        assert a.dtype == b.dtype == torch.bfloat16 and out_dtype == torch.float32
        assert out is None or (out.dtype == torch.float32 and out.is_contiguous())
        return 1


@pytest.fixture
def cores(monkeypatch):
    with torch.library._scoped_library("aten", "IMPL") as library:
        made = TensorCores()
        library.impl("mm.dtype", made.mm, "CPU")
        library.impl("mm.dtype_out", made.mm_out, "CPU")
        library.impl("addmm.dtype_out", made.addmm_out, "CPU")
        monkeypatch.setattr(readout, "_summed_wide", lambda device: True)
        yield made


def rounded(x):
    return x.detach().to(torch.bfloat16).to(x.dtype)


@pytest.mark.usefixtures("cores", "small_chunks")
def test_half_products_of_numbers_that_fit_are_those_of_float32_by_hand():
    """States (1, 2), weights of rows (1, 0), (0, 1), (1, 1): logits 1, 2, 3, whose softmax is e^-2, e^-1, 1 over their sum."""
    hidden = torch.tensor([[1.0, 2.0]], requires_grad=True)
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], requires_grad=True)
    logp, entropy = head_columns(hidden, LmHead(weight, half=True), torch.tensor([2]), True)
    p = [0.09003057, 0.24472847, 0.66524096]
    assert logp.item() == pytest.approx(-0.40760596, abs=1e-6)
    assert entropy.item() == pytest.approx(-sum(x * math.log(x) for x in p), abs=1e-6)
    logp.sum().backward()
    to_logits = torch.tensor([-p[0], -p[1], 1 - p[2]])
    assert torch.allclose(weight.grad, to_logits[:, None] * torch.tensor([1.0, 2.0]), rtol=2**-8)
    assert torch.allclose(hidden.grad, (to_logits @ weight.detach())[None], rtol=0, atol=2**-9)


def halved(hidden, weight, bias=None, stats=(), **head):
    """Columns by operands in bfloat16, and gradients by states, weight and bias of a weighted sum of them."""
    inputs = [
        normal_like.detach().float().requires_grad_() for normal_like in (hidden, weight, *(() if bias is None else (bias,)))
    ]
    made = LmHead(inputs[1], *inputs[2:], half=True, **head)
    if stats:
        other = StatisticInputs({"ref": (inputs[0].detach() * 1.1, LmHead(inputs[1].detach(), half=True))})
        columns = torch.stack(head_statistics(inputs[0], made, WIDE, stats, other))
    else:
        columns = torch.stack(head_columns(inputs[0], made, WIDE, True))
    (columns * torch.linspace(-1, 1, columns.numel()).view(columns.shape)).sum().backward()
    return columns.detach(), [x.grad for x in inputs]


def exact(hidden, weight, bias=None, stats=(), scale=1.0, cap=0.0):
    """The same in float64 by autograd, of the operands as they are rounded."""
    inputs = [rounded(hidden).double(), rounded(weight).double(), *(() if bias is None else (bias.detach().double(),))]
    for x in inputs:
        x.requires_grad_()
    z = scale * (inputs[0] @ inputs[1].T + (0.0 if bias is None else inputs[2]))
    logp = torch.log_softmax(cap * torch.tanh(z / cap) if cap else z, 1)
    drawn = logp.gather(1, WIDE[:, None])[:, 0]
    if stats:
        ref = torch.log_softmax(rounded(hidden.detach().float() * 1.1).double() @ rounded(weight).double().T, 1)
        columns = torch.stack([drawn, *(s.of(logp, WIDE, {"ref": ref}, {}) for s in stats)])
    else:
        columns = torch.stack([drawn, -(logp.exp() * logp).sum(1)])
    (columns * torch.linspace(-1, 1, columns.numel(), dtype=torch.float64).view(columns.shape)).sum().backward()
    return columns.detach(), [x.grad for x in inputs]


WIDE = torch.arange(40) * 5 % 200


def apart(found, wanted):
    """Root mean square of a difference, in units of the size of what is wanted."""
    return float((found.double() - wanted).square().mean().sqrt() / wanted.square().mean().sqrt())


KINDS = {"plain": {}, "cap": {"scale": 0.5, "cap": 3.0}, "bias": {"bias": normal(200, seed=3)}}


@pytest.mark.parametrize("chunk", [64, 7])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stats", [(), (FullEntropy(), FullKl("ref"))], ids=["columns", "statistics"])
def test_half_products_are_float64_to_the_rounding_of_one_operand(kind, stats, chunk, monkeypatch, cores):
    """Columns are exact to float32: their operands are what they are. A gradient has been rounded once more, to 8 bits."""
    monkeypatch.setitem(settings.HEAD_ELEMENTS, "cpu", 200 * chunk)
    monkeypatch.setattr(settings, "HEAD_ROWS", 1)
    hidden, weight = normal(40, 16), normal(200, 16, seed=1)
    found, grads = halved(hidden, weight, stats=stats, **KINDS[kind])
    wanted, exactly = exact(hidden, weight, stats=stats, **KINDS[kind])
    assert apart(found, wanted) < 1e-6
    assert all(g.dtype == torch.float32 and apart(g, e) < 2**-9 for g, e in zip(grads, exactly, strict=True))
    assert all(cores.calls.values())


def test_without_tensor_cores_results_are_rounded_and_gradients_are_as_near():
    hidden, weight = normal(40, 16), normal(200, 16, seed=1)
    found, grads = halved(hidden, weight)
    wanted, exactly = exact(hidden, weight)
    assert 1e-4 < apart(found, wanted) < 2**-7
    assert all(g.dtype == torch.float32 and apart(g, e) < 2**-7 for g, e in zip(grads, exactly, strict=True))


@pytest.mark.usefixtures("cores")
def test_half_log_probabilities_are_nearer_to_float32_than_those_of_a_model_in_bfloat16():
    """Of the same states: what a module in bfloat16 makes of them is rounded once more, at the logits."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    module = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        module.lm_head.weight.mul_(20.0)  # logits as large as a trained model's
    ids = torch.randint(0, 512, (1, 48), generator=generator())
    low = Qwen3ForCausalLM(config).eval().to(torch.bfloat16)
    low.load_state_dict(module.state_dict())
    with torch.no_grad():
        states = low.base_model(ids).last_hidden_state[0, :-1]
        theirs = low(ids).logits[0, :-1].float().log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        head = LmHead(module.lm_head.weight.detach(), half=True)
        mine = head_columns(states.float(), head, ids[0, 1:])[0]
        table = (states.double() @ low.lm_head.weight.double().T).log_softmax(-1)
    wanted = table.gather(1, ids[0, 1:, None])[:, 0]
    assert float((mine - wanted).abs().max()) < 1e-4 < float((theirs - wanted).abs().mean())


def test_products_stay_float32_on_a_cpu_whatever_autocast_says():
    hidden, weight = normal(9, 4, dtype=torch.float32), normal(7, 4, dtype=torch.float32, seed=1)
    plain = head_columns(hidden, LmHead(weight), TARGETS)[0]
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(head_columns(hidden, LmHead(weight), TARGETS)[0], plain)
        assert not torch.equal(head_columns(hidden, LmHead(weight, half=True), TARGETS)[0], plain)


def test_chunks_on_cuda_are_equal_and_hold_many_positions():
    found = readout._chunks(3584, 151936, "cuda")
    assert [c.stop - c.start for c in found] == [717, 717, 717, 717, 716]
    assert [c.stop - c.start for c in readout._chunks(883, 151936, "cuda")] == [883]
    assert [c.stop - c.start for c in readout._chunks(130, 151936, "cpu")] == [64, 64, 2]
    assert readout._chunks(0, 7, "cuda") == []

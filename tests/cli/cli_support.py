"""What tests of the command line share."""

import json
from dataclasses import dataclass

MINE = '''
"""Parts and recipes of a user."""
from dataclasses import dataclass, field, replace
from enum import Enum
from assay.core.rollout import Sampling
from assay.guide import Uniform
from assay.objective.methods import reinforce
from assay.runtime.settings import DecoderShape
from assay.tasks import Rows
from assay_tasks import SortDigits
from assay.train.models import Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run

class Pace(Enum):
    CALM = "calm"
    QUICK = "quick"

def twice(x: float) -> float:
    return 2 * x

@dataclass(frozen=True, kw_only=True)
class Mine(Uniform):
    """A curriculum of my own.

    Attributes:
        pace: how fast it moves.
        cap, least: bounds of the weights,
            both included.
        tilt: weight per arm.
        shape: a function of the weight.
        firm: hold what was learned.
    """

    pace: Pace = Pace.CALM
    cap: float | None = None
    least: float = 0.0
    tilt: dict[str, float] = field(default_factory=dict)
    shape: object = twice
    firm: bool = False

    def __post_init__(self):
        if self.least < 0:
            from assay.core.errors import ConfigError
            raise ConfigError(f"Mine.least={self.least}; use at least 0")

SHAPE = DecoderShape(
    hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=16, intermediate_size=32, max_positions=24
)

def tiny():
    """The smallest run that does everything."""
    return Run(
        name="tiny",
        model=Scratch(shape=SHAPE, alphabet="0123456789S>"),
        tasks=SortDigits(levels=(1, 2)),
        stages=(Reinforce(steps=3, groups=2, group_size=2, curriculum=Mine()),),
        sampling=Sampling(max_new_tokens=4),
        evaluation=Evaluation(every=2, per_level=2, final_per_level=3),
    )

def rewarded():
    """Rows with a reward function that no import can find: it stands inside the recipe."""
    def reward(prompt, completion, row):
        return float(len(completion) > 1)
    rows = [{"prompt": f"S{a}{b}>", "answer": "1"} for a in range(5) for b in range(5)]
    return replace(tiny(), name="rewarded", tasks=Rows(rows, reward=reward, test_share=0.4))

def no_run():
    """Gives something else."""
    return 3

def fails():
    """Fails."""
    raise ValueError("in recipe")

def needs(value):
    """Needs a value."""
    return value

my_source = SortDigits(levels=(2,))
number = 7
'''


@dataclass(frozen=True)
class Said:
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """What was printed, as strict JSON."""
        return json.loads(self.out, parse_constant=_no_json)


def _no_json(name: str):
    raise ValueError(f"{name} is no JSON")


def flat(text: str) -> str:
    """Text of a box as one line."""
    return " ".join(text.translate(str.maketrans("│╭╮╰╯─", "      ")).split())

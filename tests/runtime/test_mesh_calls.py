"""What a learner of several processes asks of each of them, by name."""

import ast
import inspect

from assay.runtime.distributed import mesh, worker
from assay.runtime.learner.learner import TorchLearner


def test_every_call_to_a_rank_is_a_method_there() -> None:
    """A method that is renamed where it stands is still called by its old name here, which only a run on two ranks would show."""
    names = {
        node.args[0].value
        for node in ast.walk(ast.parse(inspect.getsource(mesh)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "_call"
        and isinstance(node.args[0], ast.Constant)
    }
    assert {"step", "publish", "load_heads"} <= names
    assert [name for name in names if not hasattr(TorchLearner, name) and not hasattr(worker.RankWorker, name)] == []

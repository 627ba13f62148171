"""One library's comparisons, in a process of their own: prints one JSON object.

python tests/conformance/run_peer.py verl
"""

import contextlib
import importlib
import io
import json
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))


def main(peer: str) -> int:
    """Loads a library, compares, prints."""
    from peer_loading import Absent

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise):
        made = importlib.import_module(f"peer_{peer}")
        try:
            library, version = made.load()
        except Absent as error:
            result = {"absent": str(error)}
        else:
            from peer_comparing import compare, plain

            result = {"version": version, "found": [plain(compare(case)) for case in made.cases(library)]}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

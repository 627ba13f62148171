"""Write the public names of this version: a release does, and each name that comes later needs a fragment of the changelog.

python tools/released.py        # rewrites tests/project/released_names.txt
"""

import sys
from importlib import import_module
from pathlib import Path

import assay

FILE = Path(__file__).resolve().parents[1] / "tests" / "project" / "released_names.txt"


def public_names() -> list[str]:
    """``package.Name`` of all that packages export, sorted."""
    return sorted(f"{package}.{name}" for package in assay.__all__ for name in import_module(f"assay.{package}").__all__)


def main() -> int:
    """Write the file; the exit code."""
    names = public_names()
    FILE.write_text(
        "\n".join([f"# public names of assay {assay.__version__}, written by tools/released.py", *names]) + "\n", encoding="utf-8"
    )
    print(f"{FILE.name}: {len(names)} names of assay {assay.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

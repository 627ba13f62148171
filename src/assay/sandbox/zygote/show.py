"""``python -I -S .../zygote/show.py [PATH ...]``: which files a program of this interpreter needs, as JSON.

``python`` itself, ``reads``, the folders inside these that are ``hidden``, and which folders of the root are ``links``. Standard
library and siblings only, never assay.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
import json
import os
import sys

_above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, _above)
from zygote.places import package_folders, readable  # noqa: E402  # pyright: ignore

__all__ = ["main"]


def main() -> None:
    """Prints it."""
    python = os.path.realpath(sys.executable)
    found = readable((python, *sys.argv[1:]))
    inside = [h for h in package_folders() if any((h + "/").startswith(r.rstrip("/") + "/") for r in found)]
    links = {f"/{name}": os.readlink(f"/{name}") for name in ("bin", "lib", "lib64", "sbin") if os.path.islink(f"/{name}")}
    print(json.dumps({"python": python, "reads": found, "hidden": inside, "links": links}))


if __name__ == "__main__":
    main()

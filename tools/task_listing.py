"""Write beside assay's families what `assay tasks list` says of them: ``python tools/task_listing.py``; ``--check`` compares."""

import json
import sys

from assay.cli.task_listing import DECLARED, digest_sources, live_row, own_folder, own_names


def listing() -> str:
    """The file: a row a line, so that a change of one family changes one line."""
    names = sorted(own_names(), key=lambda name: (name.startswith("assay-"), name))
    rows = ",\n".join(json.dumps(live_row(name), ensure_ascii=False) for name in names)
    return f'{{"sources": "{digest_sources(own_folder())}",\n"rows": [\n{rows}\n]}}\n'


def main() -> int:
    """Writes the file, or with ``--check`` says whether it is that of the families as they are."""
    path, text = own_folder() / DECLARED, listing()
    if sys.argv[1:] == ["--check"]:
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return 0
        print(f"{path} is not that of the families: run python tools/task_listing.py", file=sys.stderr)
        return 1
    path.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

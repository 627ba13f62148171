"""Write docs/papers.md from what the packages declare: ``python tools/papers_page.py`` rewrites it, ``--check`` compares."""

import sys
from pathlib import Path

from assay.core.papers import CONTROLS, Paper, load_papers

PAGE = Path(__file__).resolve().parents[1] / "docs" / "papers.md"

HEAD = """# Published systems

Which part of a paper is here, what is missing, and the command that runs it. `assay papers list` prints this table,
`assay papers show PAPER` one of them with its tests, and `assay papers run PAPER` runs it; further options go to the command.
A paper is found by its key, any of its names, its title or its arXiv id. *Whole* says that the paper's method is here as a whole
and has trained or run here, on a small model; its models, data, hardware and scores never are here. An entry without *measured*
has tests, and nothing was trained with it beside a control. The table is made of `papers.toml` in each package by
`python tools/papers_page.py`. What the pages of evidence measure:

| page | papers | what is measured, and beside which control |
|---|---|---|
"""


def page() -> str:
    """The page."""
    papers = load_papers()
    whole = [p for p in papers if p.whole]
    parts = [p for p in papers if not p.whole]
    return (
        "\n".join(
            [
                HEAD.rstrip(),
                *(f"| `{p}` | {sum(x.evidence == p for x in papers)} | {control} |" for p, control in CONTROLS.items()),
                "",
                f"{len(papers)} systems: {len(whole)} as a whole, {len(parts)} in part.",
                "",
                "## As a whole",
                "",
                *(line for p in whole for line in entry(p)),
                "## In part",
                "",
                *(line for p in parts for line in entry(p)),
            ]
        ).rstrip()
        + "\n"
    )


def entry(paper: Paper) -> list[str]:
    """A paper's lines."""
    source = f" (arXiv {paper.arxiv})" if paper.arxiv else ""
    name, title, here, missing = (x.replace("*", r"\*") for x in (paper.name, paper.title, paper.here, paper.missing))
    out = [f"**{name}** (`{paper.key}`): *{title}*{source}. {here}"]
    if missing:
        out.append(f"Missing: {missing}.")
    out.append("Parts: " + ", ".join(f"`{part}`" for part in paper.parts) + ".")
    if paper.evidence:
        out.append(f"Measured: `{paper.evidence}`.")
    return [*out, *(["", f"    {paper.run}"] if paper.run else []), ""]


def main() -> int:
    """Writes or compares the page."""
    made = page()
    if "--check" in sys.argv[1:]:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == made
        print(
            "docs/papers.md is current"
            if same
            else "docs/papers.md is not what the packages declare: python tools/papers_page.py"
        )
        return 0 if same else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

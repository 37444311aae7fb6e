"""What a process loads that only writes: services start often, and there are many of them on a machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.tables import SHORT, create, rows

HEAVY = ("pandas", "pyarrow.dataset")
"""Each costs a tenth of a second or more, and tens of megabytes."""


def heavy_ones_of(script: str, *arguments: str) -> list[str]:
    """Which of them a process has loaded that ran this."""
    told = f"import json, sys\n{script}\nprint(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", told, *arguments], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout)
    return loaded


@pytest.mark.slow
def test_importing_the_library_is_cheap() -> None:
    assert heavy_ones_of("from headgate_tables import catalog, opening\nfrom headgate_tables.hudi import change_writer") == []


@pytest.mark.slow
def test_taking_over_a_table_with_archived_instants_is_cheap(tmp_path: Path) -> None:
    """No checkpoint of a new owner commits before it has read them."""
    table = create(tmp_path, buckets=1)
    table.configure(SHORT)
    for number in range(6):
        table.upsert(rows((f"k{number}", 1, "x")))
    assert table.archive().instants
    script = (
        "from headgate_tables import hudi\n"
        "table = hudi.open_table(sys.argv[1])\n"
        "table.own()\n"
        "while table.largest_slice() is None:\n"
        "    table.maintain()"
    )
    assert heavy_ones_of(script, table.url) == []

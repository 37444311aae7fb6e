"""Every `./task bench NAME` begins: its modules are found, and its arguments are understood."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BENCHES = sorted(found.parent.name for found in (ROOT / "bench").glob("*/__main__.py"))

_HELPED = """
import runpy, sys
for name in sys.argv[1:]:
    print("bench", name, flush=True)
    sys.argv = [name, "--help"]
    try:
        runpy.run_module(f"bench.{name}", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        assert not ended.code, (name, ended.code)
"""


def test_every_bench_says_how_it_is_called() -> None:
    """In one process that knows no path but the root, as ./task starts it: two did not find what they share with the tests."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", _HELPED, *BENCHES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    for name in BENCHES:
        assert f"usage: ./task bench {name}" in done.stdout

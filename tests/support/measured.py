"""What a program of its own costs in memory: the peak of Arrow's pool while it runs, and of the whole process."""

import json
import subprocess
import sys
from dataclasses import dataclass

_FRAME = """
import json, sys
import pyarrow as pa
from headgate_tables import hudi
from headgate_tables.hudi import base_reader, batches
pool = pa.default_memory_pool()
def rss():
    # The most so far; ru_maxrss would begin with what the parent had.
    (line,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
"""


@dataclass(frozen=True)
class Peak:
    """``rows`` went through; ``arrow``: bytes of Arrow's pool at once; ``process``: what the process grew by. Both at most."""

    rows: int
    arrow: int
    process: int


def measure(script: str, *arguments: object) -> Peak:
    """Runs the program, which prints ``json.dumps([rows, peak of pool, growth of rss])`` with the names of the frame at hand."""
    command = [sys.executable, "-c", _FRAME + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Peak(*json.loads(done.stdout))

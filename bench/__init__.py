"""The benches: `./task bench` lists them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
"""Input batches and tables that a later run uses again; `./task clean` removes them."""

sys.path.insert(0, str(ROOT / "tests"))  # what tests and benchmarks share is in support

"""`./task bench tables`: the tables library against its peers, in one run on one machine."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "bench"
"""Input batches and tables that a later run uses again; `./task clean` removes them."""

sys.path.insert(0, str(ROOT / "tests"))  # support.events makes the row that tests and benchmarks share

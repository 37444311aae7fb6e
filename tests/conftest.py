"""For the whole run: processes that tests start find `support`, too."""

import os
from pathlib import Path

_HERE = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join([_HERE, *filter(None, [os.environ.get("PYTHONPATH")])])

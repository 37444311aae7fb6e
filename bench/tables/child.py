"""One measurement, one process: its CPU, memory and imports are its own.

``run_child`` starts ``python -m bench.tables.child MODULE:FUNCTION ANSWER`` with the arguments as JSON on standard input; the
function's return value comes back as JSON in the file ANSWER, away from what libraries print.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.tables import ROOT


class ChildFailed(Exception):
    """A contender's process ended with an error, which it printed."""


def run_child(function: str, python: str = sys.executable, environment: dict[str, str] | None = None, **arguments: Any) -> Any:
    """``function``: ``module:name``, called with ``arguments`` (JSON values) under ``python``, from the repository's root."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        ended = subprocess.run(
            [python, "-m", "bench.tables.child", function, str(answer)],
            input=json.dumps(arguments),
            text=True,
            stdout=sys.stderr,  # Spark's log; ours is for the figures
            cwd=ROOT,
            env=os.environ | (environment or {}),
            check=False,
        )
        if ended.returncode != 0:
            raise ChildFailed(f"{function} under {python} ended with {ended.returncode}")
        return json.loads(answer.read_text())


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    result = getattr(importlib.import_module(module), name)(**json.load(sys.stdin))
    Path(sys.argv[2]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()

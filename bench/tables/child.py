"""One measurement, one process: its CPU, memory and imports are its own.

``run_child`` starts ``python -m bench.tables.child MODULE:FUNCTION ANSWER`` with the arguments as JSON on standard input; the
function's return value comes back as JSON in the file ANSWER, away from what libraries print.
"""

import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.tables.progress import say

_SILENT_SECONDS = 15
_BRIEF = 60


class ChildFailed(Exception):
    """A contender's process ended with an error, which it printed."""


def run_child(function: str, python: str = sys.executable, /, **arguments: object) -> Any:
    """``function``: ``module:name``, called with ``arguments`` (JSON values) under ``python``, from the repository's root."""
    what = function.rpartition(".")[2]
    say(f"{what} {_brief(arguments)}".rstrip())
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [python, "-m", "bench.tables.child", function, str(answer)]
        # Standard output is for the figures; a contender's own log goes where the progress goes.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr, text=True, cwd=ROOT) as child:
            _wait(child, json.dumps(arguments), what)
        if child.returncode != 0:
            raise ChildFailed(f"{function} under {python} ended with {child.returncode}")
        return json.loads(answer.read_text())


def _wait(child: "subprocess.Popen[str]", arguments: str, what: str) -> None:
    began = time.monotonic()
    unsent: str | None = arguments
    while True:
        try:
            child.communicate(unsent, timeout=_SILENT_SECONDS)
            return
        except subprocess.TimeoutExpired:
            unsent = None
            say(f"{what} is at work for {time.monotonic() - began:.0f} s")
        except BaseException:
            child.kill()
            raise


def _brief(arguments: dict[str, object]) -> str:
    """The short ones, for people."""
    texts = {name: str(value).rpartition("/")[2] for name, value in arguments.items() if isinstance(value, str | int | float)}
    return " ".join(f"{name}={text}" for name, text in texts.items() if len(text) < _BRIEF)


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    result = getattr(importlib.import_module(module), name)(**json.load(sys.stdin))
    Path(sys.argv[2]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()

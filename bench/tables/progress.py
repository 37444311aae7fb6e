"""What a bench does, told as it does it: lines on standard error, with the seconds since its first line.

Runs in every contender's environment, so it knows the standard library only.
"""

import os
import sys
import time

_BEGIN = "HEADGATE_BENCH_BEGIN"
"""Handed down to child processes, whose clock is the same."""


def say(text: str) -> None:
    began = float(os.environ.setdefault(_BEGIN, str(time.monotonic())))
    # In one piece, since two threads may have something to tell.
    sys.stderr.write(f"{time.monotonic() - began:6.0f} s  {text}\n")
    sys.stderr.flush()

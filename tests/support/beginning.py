"""The program of test_harness.py that says how it was started, and ends with 3."""

import json
import os
import signal
import sys
import threading


def main() -> int:
    """One line of JSON on stdout."""
    begun = {
        "arguments": sys.argv[1:],
        "environment": dict(sorted(os.environ.items())),
        "path": sys.path,
        "threads": [thread.name for thread in threading.enumerate()],
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGCHLD)],
        "descriptors": [os.readlink(f"/proc/self/fd/{number}").split(":")[0] for number in open_descriptors()],
        "parent": os.getppid(),
        "folder": os.getcwd(),
    }
    print(json.dumps(begun), flush=True)
    return 3


def open_descriptors() -> list[int]:
    """Without the one that lists them."""
    return [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}") and int(name) < 100]


if __name__ == "__main__":
    sys.exit(main())

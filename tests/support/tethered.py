"""``python -m support.tethered COMMAND…``: becomes COMMAND, which the kernel kills when the one that started it dies.

So nothing is left behind when a test run is killed. The tie is to the *thread* that starts the process: it has to live as
long as the process should.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Keeps the process id, so that signals meet COMMAND."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()

"""``python -m support.fork_server SOCKET MODULE…``: imports the modules once, then forks a process for each program asked of it.

A request is one packet: JSON ``{"argv", "env", "cwd", "parent"}`` with three descriptors, the program's stdin, stdout and stderr.
The answer is the new process's id. The process is handed to the one that asks (``support.forked``), so that it is waited for and
signalled like any child. The server ends when the other end of its socket is closed.

It forks without running threads of Python's: importing gRPC starts none, the threads of OpenBLAS and jemalloc come back by
handlers of their own in the child. What a program does before it serves (settings, malloc's environment) is the program's own.
"""

import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PR_SET_PDEATHSIG = 1
_REQUEST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """``argv``: the module and its arguments, as behind ``python -m``. ``env``: the whole environment. ``cwd``: the folder.
    ``parent``: who asks.
    """

    argv: Sequence[str]
    env: dict[str, str]
    cwd: str
    parent: int


def main() -> None:
    """Returns in no process but a forked one, whose program is over then."""
    served = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    request = _next_child(served)
    if request is not None:
        _run(request)


def _next_child(served: socket.socket) -> Request | None:
    """Serves until the socket ends (None); in a forked child: what it was asked to be."""
    while True:
        message, standard, _, _ = socket.recv_fds(served, _REQUEST_BYTES, 3)
        if not message:
            return None
        received, sent = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child:  # the child outlives this process and falls to the one that asks
                os.write(sent, str(child).encode())
                os._exit(0)
            for descriptor in (received, sent):
                os.close(descriptor)
            served.close()
            return _become(json.loads(message), standard)
        os.waitpid(between, 0)
        served.send(os.read(received, 20))
        for descriptor in (received, sent, *standard):
            os.close(descriptor)


def _become(message: dict[str, Any], standard: Sequence[int]) -> Request:
    """Waits for the new parent, is tied to it as by ``support.tethered``, and takes the descriptors."""
    request = Request(**message)
    while os.getppid() != request.parent:
        time.sleep(0.0005)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != request.parent:
        os._exit(1)
    for number, given in enumerate(standard):
        os.dup2(given, number)
        os.close(given)
    os.chdir(request.cwd)
    return request


def _run(request: Request) -> None:
    """As ``python -m`` would, in this interpreter."""
    os.environ.clear()
    os.environ.update(request.env)
    module, *_ = sys.argv = list(request.argv)
    sys.orig_argv = [sys.executable, "-m", *request.argv]
    sys.modules.pop(module, None)  # it is executed anew
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

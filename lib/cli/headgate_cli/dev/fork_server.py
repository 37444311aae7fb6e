"""``python -m headgate_cli.dev.fork_server SOCKET MODULE…``: imports the modules once, then forks the processes of a cluster.

A request is one packet: a ``ForkRequest`` with two descriptors, the process's stdout and stderr.
The answer is ``{"pid"}``; when the process has ended, ``{"pid", "exit"}`` follows. The server ends with the other end of its
socket, and its processes get SIGTERM when it ends.

It forks without other threads of Python's: what services import starts none.
"""

import ctypes
import dataclasses
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Final, Self

from headgate_cli.dev.starting import die_with_parent
from headgate_runtime.lifecycle import importing

_REQUEST_BYTES: Final = 1 << 16
"""Most of a packet. Arguments and the variables that a process gets besides the server's own are some hundred bytes."""
_PR_SET_NAME: Final = 15


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """``arguments``: behind ``python -m module``. ``environment``: what is set besides the server's own."""

    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]

    def encode(self) -> bytes:
        """A packet."""
        return json.dumps(dataclasses.asdict(self)).encode()

    @classmethod
    def decode(cls, packet: bytes) -> Self:
        """What ``encode`` was given."""
        return cls(**json.loads(packet))


def main() -> None:
    """Serves; in a forked process, runs what was asked for instead."""
    door = socket.socket(fileno=int(sys.argv[1]))
    with importing():
        for module in sys.argv[2:]:
            importlib.import_module(module)
    request = _serve(door)
    if request is not None:
        _run(request)


def _serve(door: socket.socket) -> ForkRequest | None:
    """Until the socket ends (None); in a forked process: what it was asked to be."""
    ended, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _wake)
    while True:
        readable, _, _ = select.select([door.fileno(), ended], [], [])
        if ended in readable:
            os.read(ended, 4096)
            _report_ended(door)
        if door.fileno() not in readable:
            continue
        message, outputs, _, _ = socket.recv_fds(door, _REQUEST_BYTES, 2)
        if not message:
            return None
        server = os.getpid()
        pid = _fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (ended, woken):
                os.close(descriptor)
            door.close()
            request = ForkRequest.decode(message)
            _settle(request, outputs, server)
            return request
        for descriptor in outputs:
            os.close(descriptor)
        door.send(json.dumps({"pid": pid}).encode())


def _fork() -> int:
    with warnings.catch_warnings():
        # From 3.12 on Python warns of any thread. The one here is jemalloc's, of Arrow, which has fork handlers of its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _wake(number: int, frame: FrameType | None) -> None:
    """Does nothing, but is no SIG_DFL, with which the signal would not be written to the pipe."""


def _report_ended(door: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        door.send(json.dumps({"pid": pid, "exit": os.waitstatus_to_exitcode(status)}).encode())


def _settle(request: ForkRequest, outputs: Sequence[int], server: int) -> None:
    """Gives the process its outputs, a name for ``top``, and a session of its own, because the terminal's Ctrl-C must reach the
    supervisor alone.
    """
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_NAME, request.module.encode())
    die_with_parent()
    if os.getppid() != server:
        os._exit(1)  # the server ended before that
    for standard, output in zip((1, 2), outputs, strict=True):
        os.dup2(output, standard)
        os.close(output)


def _run(request: ForkRequest) -> None:
    """As ``python -m`` would, in this interpreter."""
    os.environ.update(request.environment)
    sys.argv = [request.module, *request.arguments]
    sys.orig_argv = [sys.executable, "-m", *sys.argv]
    runpy.run_module(request.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

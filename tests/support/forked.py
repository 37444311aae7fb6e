"""Processes of a test that are forked from a parent that has imported the program, instead of paying a second of imports each.

While ``serving`` lasts (tests/conftest.py: the whole run), ``start`` forks programs that are listed in ``PRELOADED``. Outside of
it, as in benches and ``./task nemesis``, every process is a fresh interpreter.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Final

_SERVICE = ("support.stepping", "headgate_runtime.logs", "headgate_runtime.lifecycle", "headgate_runtime.settings")
PRELOADED: Final[Mapping[str, Sequence[str]]] = {
    "headgate_coordinator": (*_SERVICE, "headgate_coordinator.service"),
    "headgate_writer": (*_SERVICE, "headgate_writer.process"),
    "headgate_compactor": (*_SERVICE, "headgate_compactor.process"),
    "support.producers": ("support.producers",),
    "support.step_service": _SERVICE,
    "support.beginning": _SERVICE,
    "support.crash_script": ("support.crash_script",),
    "headgate_cli": ("support.imported_cli",),
}
"""What each program's parent imports: what the program itself would until it serves. No ``__main__``, which runs in the child."""

_PR_SET_CHILD_SUBREAPER = 36
_servers: "dict[str, _Server] | None" = None
_turn = threading.Lock()


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Programs are forked meanwhile. Their parents start when they are first asked for, and end with the block."""
    global _servers
    _servers = {}
    try:
        yield
    finally:
        with _turn:
            ended, _servers = _servers, None
            for server in ended.values():
                server.close()


def start(program: str, argv: Sequence[str], env: Mapping[str, str], errors: int) -> "Forked | None":
    """``python -m argv…`` from the parent that has imported ``program``; None if there is no such parent: start it afresh.

    ``env``: the child's whole environment. ``errors``: the descriptor for its stderr; its stdout is a pipe, its stdin empty.
    """
    if _servers is None or program not in PRELOADED:
        return None
    read, write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = _fork(program, argv, env, os.getcwd(), (nothing, write, errors))
    except BaseException:
        os.close(read)
        raise
    finally:
        os.close(nothing)
        os.close(write)
    return Forked(pid, os.fdopen(read, "rb"))


def run(program: str, argv: Sequence[str], env: Mapping[str, str], cwd: str, standard: Sequence[int], timeout: float) -> int:
    """As ``start``, in the folder ``cwd`` and with these descriptors as stdin, stdout and stderr; returns its exit code."""
    return Forked(_fork(program, argv, env, cwd, standard), None).wait(timeout)


def _fork(program: str, argv: Sequence[str], env: Mapping[str, str], cwd: str, standard: Sequence[int]) -> int:
    with _turn:
        assert _servers is not None, "nothing is forked outside of `serving`"
        if program not in _servers:
            _servers[program] = _Server(PRELOADED[program], env)
        return _servers[program].fork(argv, env, cwd, standard)


class Forked:
    """A child of this process, with what ``Process`` needs of ``subprocess.Popen``."""

    def __init__(self, pid: int, stdout: IO[bytes] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self._code: int | None = None
        self._turn = threading.Lock()

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""
        with self._turn:
            if self._code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self._code = os.waitstatus_to_exitcode(status) if pid else None
            return self._code

    def wait(self, timeout: float) -> int:
        """As ``poll``, when it has ended. Raises subprocess.TimeoutExpired."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # somebody else has waited for it since
                watched = os.pidfd_open(self.pid)
                try:
                    select.select([watched], [], [], timeout)
                finally:
                    os.close(watched)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing happens when it is gone."""
        if self.poll() is None:
            os.kill(self.pid, number)


class _Server:
    """One ``support.fork_server``."""

    def __init__(self, modules: Sequence[str], env: Mapping[str, str]) -> None:
        from headgate_runtime.environment import ENVIRONMENT  # here, since ./task interop has the table library alone

        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "support.fork_server", str(theirs.fileno()), *modules]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env={**env, **ENVIRONMENT}, pass_fds=[theirs.fileno()]
            )

    def fork(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, standard: Sequence[int]) -> int:
        """The id of a child, which falls to this process because its own parent ends at once."""
        message = json.dumps({"argv": list(argv), "env": dict(env), "cwd": cwd, "parent": os.getpid()}).encode()
        with _adopting():
            socket.send_fds(self._socket, [message], standard)
            answer = self._socket.recv(20)
        assert answer, f"the fork server ended with {self._process.wait()}"
        return int(answer)

    def close(self) -> None:
        """The socket's end is the server's."""
        self._socket.close()
        self._process.wait()


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Processes below this one whose parents end meanwhile become children of this one."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)

"""Starts services by a fork server, which imports what all of them need once: a cluster starts with a third of the CPU."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, Final, Self

from headgate_cli.dev.fork_server import ForkRequest
from headgate_cli.dev.processes import ProcessSpec
from headgate_cli.dev.starting import FreshStarter, StartedProcess, die_with_parent
from headgate_runtime.environment import ENVIRONMENT

_SERVER: Final = "headgate_cli.dev.fork_server"
_ANSWER_BYTES: Final = 1 << 10
_STDERR: Final = 2


class ForkingStarter:
    """Forks the processes that are Python modules, on Linux; elsewhere, and any other process, starts them afresh.

    ``modules``: what the server imports, from when the block is entered. A server that dies is replaced at the next start.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._fresh = FreshStarter()
        self._server: _ForkServer | None = None

    def __enter__(self) -> Self:
        if sys.platform == "linux":
            self._server = _ForkServer(self._modules)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._server is not None:
            self._server.close()

    async def start(self, spec: ProcessSpec, log: BinaryIO | None) -> StartedProcess:
        """As ``Starter`` says."""
        if self._server is None or spec.module is None:
            return await self._fresh.start(spec, log)
        if self._server.ended:
            self._server.close()
            self._server = _ForkServer(self._modules)
        try:
            return await self._server.start(ForkRequest(spec.module, spec.arguments, dict(spec.environment)), log)
        except ConnectionError:
            return await self._fresh.start(spec, log)


class ForkedProcess:
    """A process whose parent is the fork server."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader) -> None:
        self.pid = pid
        self.stdout: asyncio.StreamReader | None = stdout
        self.returncode: int | None = None
        self._ended = asyncio.Event()

    def send_signal(self, signal: int) -> None:
        """Does nothing when it is gone."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Its ``returncode``, when it has ended."""
        await self._ended.wait()
        if self.returncode is None:
            raise RuntimeError("ended without an exit code")
        return self.returncode

    def end(self, code: int) -> None:
        """It has ended."""
        self.returncode = code
        self._ended.set()

    def end_unseen(self) -> None:
        """Its parent is gone, and nobody learns its exit code. It got SIGTERM: waits until it has ended."""
        try:
            watched = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return self.end(-signal.SIGTERM)
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(watched)
            os.close(watched)
            self.end(-signal.SIGTERM)

        loop.add_reader(watched, gone)
        return None


class _ForkServer:
    """One ``fork_server``, and the processes that it has forked."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-m", _SERVER, str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | ENVIRONMENT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        self.ended = False
        self._listens = False
        self._asked: deque[asyncio.Future[int]] = deque()
        self._running: dict[int, ForkedProcess] = {}
        self._codes: dict[int, int] = {}

    async def start(self, request: ForkRequest, log: BinaryIO | None) -> ForkedProcess:
        """Raises ConnectionError when the server ends meanwhile."""
        loop = asyncio.get_running_loop()
        if not self._listens:
            loop.add_reader(self._socket, self._receive)
            self._listens = True
        read, write = os.pipe()
        pipe, stdout = os.fdopen(read, "rb", buffering=0), asyncio.StreamReader()
        try:
            outputs = [write, log.fileno() if log else _STDERR]
            socket.send_fds(self._socket, [request.encode()], outputs)
        except OSError:
            pipe.close()
            raise
        finally:
            os.close(write)
        self._asked.append(answer := loop.create_future())
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), pipe)
        process = ForkedProcess(await answer, stdout)
        self._running[process.pid] = process
        if (code := self._codes.pop(process.pid, None)) is not None:
            self._running.pop(process.pid).end(code)
        elif self.ended:
            self._running.pop(process.pid).end_unseen()
        return process

    def _receive(self) -> None:
        try:
            message = self._socket.recv(_ANSWER_BYTES)
        except ConnectionError:
            message = b""
        if not message:
            return self._end()
        said = json.loads(message)
        if "exit" not in said:
            answer = self._asked.popleft()
            if not answer.cancelled():  # else nobody waits: the process ends with the server
                answer.set_result(said["pid"])
        elif (process := self._running.pop(said["pid"], None)) is not None:
            process.end(said["exit"])
        else:
            self._codes[said["pid"]] = said["exit"]  # its `start` has yet to take the answer
        return None

    def _end(self) -> None:
        self.ended = True
        asyncio.get_running_loop().remove_reader(self._socket)
        for answer in self._asked:
            if not answer.cancelled():
                answer.set_exception(ConnectionResetError("the fork server ended"))
        for process in self._running.values():
            process.end_unseen()
        self._asked.clear()
        self._running.clear()

    def close(self) -> None:
        """Ends the server; what it has forked and still runs gets SIGTERM."""
        self._socket.close()
        self._process.wait()

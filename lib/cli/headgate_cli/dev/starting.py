"""How a process of the cluster comes to life: as a fresh program, or forked from a server that has imported it."""

import asyncio
import ctypes
import os
import signal
import sys
from typing import BinaryIO, Protocol

from headgate_cli.dev.processes import ProcessSpec

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class StartedProcess(Protocol):
    """A running process; asyncio's own is one."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it runs."""

    @property
    def stdout(self) -> asyncio.StreamReader | None: ...

    def send_signal(self, signal: int) -> None: ...

    def kill(self) -> None: ...

    async def wait(self) -> int:
        """Its ``returncode``, when it has ended."""


class Starter(Protocol):
    """Starts processes."""

    async def start(self, spec: ProcessSpec, log: BinaryIO | None) -> StartedProcess:
        """Its stdout is a pipe, its stderr goes to ``log``, or to this process's. It gets SIGTERM when this process dies."""


class FreshStarter:
    """Each process is a program of its own."""

    async def start(self, spec: ProcessSpec, log: BinaryIO | None) -> StartedProcess:
        """As ``Starter`` says; only on Linux it ends with this process."""
        return await asyncio.create_subprocess_exec(
            *spec.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=os.environ | spec.environment,
            start_new_session=True,  # the terminal's Ctrl-C must reach the supervisor alone, which stops in order
            preexec_fn=die_with_parent,
        )


def die_with_parent() -> None:
    """Lets a killed supervisor leave no orphans, on Linux. The setting survives exec."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

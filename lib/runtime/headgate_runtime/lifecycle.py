"""The life of a service: start, ready, drain, stop."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Literal

from headgate_runtime import plain_structlog  # isort: skip  # noqa: F401 - before structlog
import structlog

from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.unused_memory import return_unused_memory
from headgate_runtime.without_pandas import run_without_pandas
from headgate_runtime.world import World

_SWITCH_S: Final = 0.0005
"""How long a thread waits for the interpreter's lock before it asks for it. With Python's default of 5 ms, a thread that computes
keeps the loop waiting so long each time that it wakes, and a turn of many kernels, which release the lock at each call, mostly
waits while the loop is busy. The price: some hundred switches a second."""

_log = structlog.get_logger()


class StartError(Exception):
    """A service cannot begin. The text says what is wrong and what to do, and is all that an operator has to see."""

    @classmethod
    def of_file(cls, setting: str, path: object, error: OSError, use: Literal["read", "write"] = "read") -> "StartError":
        """The setting names a file that cannot be used."""
        done = {"read": "read", "write": "written"}[use]
        return cls(f"{setting}: {path} cannot be {done}: {error.strerror}. Name a file that this service may {use}.")


def run_service(main: Callable[[asyncio.Event], Awaitable[None]]) -> int:
    """Runs ``main`` until it returns. Sets its argument at the first SIGTERM or SIGINT: ``main`` has to drain, then return.

    Returns the exit code: 0, or 1 after an exception, which it logs: with its stack, or, of a StartError, its text alone, so that
    the log's last line, which `kubectl describe` shows of a pod, has it. A second signal ends the process at once with 128 + its
    number; clients then send uncommitted rows again. Libraries read ENVIRONMENT only when a process starts, so the first call
    replaces the process by itself with these variables set (same process id, same arguments).
    """
    if any(name not in os.environ for name in ENVIRONMENT):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**ENVIRONMENT, **os.environ})  # noqa: S606 - ourselves
    run_without_pandas()
    try:
        asyncio.run(_run_until_drained(main))
    except Exception as e:  # noqa: BLE001 - the boundary: it is logged and becomes the exit code
        causes = list(_causes(e))
        if all(isinstance(cause, StartError) for cause in causes):
            _log.critical("service cannot start", why="; ".join(map(str, causes)))
        else:
            _log.critical("service failed", exc_info=e)
        return 1
    return 0


def share_interpreter() -> None:
    """For services that answer clients on the loop while their threads compute."""
    sys.setswitchinterval(_SWITCH_S)


def _causes(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each)
    else:
        yield error


async def _run_until_drained(main: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    drain = asyncio.Event()

    def signalled(number: signal.Signals) -> None:
        if drain.is_set():
            os._exit(128 + number)
        _log.info("draining", signal=number.name)
        drain.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled, number)
    async with asyncio.TaskGroup() as group:
        returning = group.create_task(return_unused_memory(World.real().clock))
        await main(drain)
        returning.cancel()


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Around the imports of a service. What they make lives as long as the process, so no cycles are looked for in it, neither
    meanwhile, which takes a tenth of a start's CPU, nor later.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def announce_ready(address: str) -> None:
    """Prints the line ``{"ready": "host:port"}`` on stdout: the service answers calls at ``address`` from now on."""
    sys.stdout.write(json.dumps({"ready": address}) + "\n")
    sys.stdout.flush()

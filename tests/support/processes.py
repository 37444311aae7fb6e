"""One process of a test: started, ready, killed, paused, restarted; what it says goes into a file."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from support import forked

READY_S = 300.0
"""For whatever a test waits for, on a machine that gives it a tenth of its time. What has not happened by then fails the
test, with what it waited for, before its own limit does (support.time_limits). Nobody waits so long when all is well."""


class Died(AssertionError):
    """A process ended that should not have."""


class Process:
    """``command`` runs under ``support.tethered``. Both its outputs are appended to ``log``.

    ``ready_line``: it prints ``{"ready": "host:port"}`` when it serves, which ``address`` then holds. ``program``: the command is
    ``python -m …`` and may be forked from a parent that has imported this one (``support.forked``).
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None, program: str = ""
    ) -> None:
        self.name = name
        self.log = log
        self.address = ""
        self._expected_end = False
        self._announced = threading.Event()
        environment = child_environment(env or {})
        with log.open("ab") as errors:
            self._child = forked.start(program, command[2:], environment, errors.fileno()) or subprocess.Popen(
                [sys.executable, "-S", "-m", "support.tethered", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
            )
        self._listener = threading.Thread(target=self._listen, name=f"output of {name}")
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    @property
    def ended_unasked(self) -> bool:
        """It is gone and nobody here killed it, stopped it or said that it would end."""
        return not self.is_alive and not self._expected_end

    def wait_ready(self, timeout: float = READY_S) -> str:
        """Returns the address that it announced. Raises Died with the end of its log."""
        if not self._announced.wait(timeout):
            raise Died(f"{self.name} was not ready within {timeout:.0f} s\n{self.tail()}")
        if not self.address:
            raise Died(f"{self.name} ended with {self.wait_end()} before it was ready\n{self.tail()}")
        return self.address

    def expect_end(self) -> None:
        """It will end by itself, for example because it is told to kill itself at a step."""
        self._expected_end = True

    def wait_end(self, timeout: float = READY_S) -> int:
        """Its exit code, or minus the number of the signal that killed it. Raises Died if it lives on."""
        try:
            code = self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Died(f"{self.name} still ran after {timeout:.0f} s\n{self.tail()}") from None
        self._listener.join()
        return code

    def kill(self) -> None:
        """kill -9; returns when it is gone. Nothing happens if it is gone already."""
        self._signal(signal.SIGKILL)
        self.wait_end()

    def terminate(self, timeout: float = READY_S) -> int:
        """SIGTERM: drain. Returns the exit code."""
        self._signal(signal.SIGTERM)
        return self.wait_end(timeout)

    def pause(self) -> None:
        """SIGSTOP, as when a machine freezes; its connections stay open."""
        self._child.send_signal(signal.SIGSTOP)

    def wait_stopped(self) -> None:
        """For a process that stops itself at a step."""
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT."""
        self._child.send_signal(signal.SIGCONT)

    def tail(self, lines: int = 60) -> str:
        """The end of its log, under its name."""
        said = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"--- {self.name} (pid {self.pid}, {len(said)} lines in {self.log})", *said[-lines:]])

    def _signal(self, number: signal.Signals) -> None:
        self._expected_end = True
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def _listen(self) -> None:
        """The child's stdout, to its end: the ready line is kept, everything goes to the log."""
        assert self._child.stdout is not None
        with self._child.stdout, self.log.open("ab") as log:
            for line in self._child.stdout:
                log.write(line)
                log.flush()
                if not self._announced.is_set() and line.startswith(b'{"ready"'):
                    self.address = json.loads(line)["ready"]
                    self._announced.set()
        self._announced.set()


def child_environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's, without settings of services that happen to be there, and with its import path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HEADGATE_", "PYTEST_"))}
    return {**inherited, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUNBUFFERED": "1", **more}

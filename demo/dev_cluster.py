"""The demo's cluster: `headgate dev` as a process of its own, and its events."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from demo.ports import free_port, is_free

USUAL_PORT = 7070
"""Used if it is free, so that the demo prints the address that users will use."""


class DevCluster:
    """A cluster that is ready on entry and stopped on exit. ``folder``: for logs; ``port``: of the first coordinator; ``python``:
    one that has the services; ``options``: more of `headgate dev`.
    """

    def __init__(
        self,
        store: str,
        folder: Path,
        interval: str,
        port: int | None = None,
        *,
        python: str = sys.executable,
        options: Sequence[str] = (),
    ) -> None:
        self.port = port or (USUAL_PORT if is_free(USUAL_PORT) else free_port())
        self.address = f"localhost:{self.port}"
        self.events: list[tuple[float, dict[str, Any]]] = []
        self.logs = folder
        folder.mkdir(exist_ok=True)
        self._log = (folder / "dev.log").open("wb")
        command = [python, "-m", "headgate_cli", "dev", "--json", "--store", store, "--port", str(self.port)]
        command += ["--checkpoint-interval", interval, "--logs", str(folder), *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True)
        self._news = threading.Condition()
        self._listener = threading.Thread(target=self._listen, name="dev-events", daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        try:
            self.wait_for("ready", seconds=60)
        except BaseException:
            self._process.kill()
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def wait_for(self, event: str, name: str | None = None, *, after: int = 0, seconds: float) -> tuple[float, dict[str, Any]]:
        """The moment and fields of the first such event after the first ``after`` events.

        Raises SystemExit when the cluster ends or stays silent.
        """
        deadline = time.monotonic() + seconds
        with self._news:
            while True:
                for moment, fields in self.events[after:]:
                    if fields["event"] == event and fields.get("name") == name:
                        return moment, fields
                left = deadline - time.monotonic()
                if left <= 0 or not self._listener.is_alive():
                    raise SystemExit(f"The cluster did not say {event} {name or ''} (logs: {self._log.name} and beside it).")
                self._news.wait(min(left, 0.5))

    def kill(self, name: str) -> float:
        """Kills one process with -9; returns the moment."""
        pid = [fields["pid"] for _, fields in self.events if fields["event"] == "started" and fields["name"] == name][-1]
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def stop(self) -> None:
        """Stops the cluster as Ctrl-C does, and waits for its end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._listener.join()
        self._log.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._news:
                    self.events.append((time.monotonic(), json.loads(line)))
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()

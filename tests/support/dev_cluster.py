"""`headgate dev` of another environment's Python: for tests in an environment that has no services."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from demo.ports import free_port


@contextlib.contextmanager
def dev_cluster(folder: Path, *, compactors: int = 0) -> Iterator[tuple[str, Path]]:
    """Address and store (``folder/store``) of a cluster; programs of this process find its credentials, as XDG_STATE_HOME is its
    own.

    ``HEADGATE_CLUSTER_PYTHON``: the Python that has the services.
    """
    store = folder / "store"
    program = [os.environ["HEADGATE_CLUSTER_PYTHON"], "-m", "headgate_cli", "dev"]
    sizes = ["--writers", "1", "--compactors", str(compactors), "--checkpoint-interval", "1s"]
    command = [*program, "--store", str(store), "--port", str(free_port()), *sizes, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        try:
            events = map(json.loads, process.stdout)
            [address] = [each["connect"] for each in _until_ready(events) if each["event"] == "ready"]
            yield address, store
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()


def _until_ready(events: Iterator[dict[str, str]]) -> Iterator[dict[str, str]]:
    for event in events:
        yield event
        if event["event"] == "ready":
            return

"""Calls of a local store in processes of their own: as another user, under strace, or racing each other."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from headgate_tables.storage.open import open_store
from headgate_tables.system import SystemIds
from support.processes import READY_S

_start: Barrier
"""Where the racers of one race wait for each other; set in their processes."""

_CALL = """
import json, os, sys
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
root, expression, user = sys.argv[1:]
store = LocalStore(root, SystemIds())
if user:
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
try:
    print(json.dumps(str(eval(expression))))
except Exception as error:
    print(json.dumps(f"{type(error).__name__}: {error}"))
"""


def call_store(root: Path, expression: str, *, under: list[str] | None = None, as_nobody: bool = False) -> str:
    """What ``expression`` (of ``store``) gives in a new process, as text, or ``ErrorClass: message``; "killed" if it was.

    ``under`` is put before the command. ``as_nobody`` gives up root's privileges first, since root may do everything.
    """
    user = "65534" if as_nobody and os.geteuid() == 0 else ""
    command = [*(under or []), sys.executable, "-c", _CALL, str(root), expression, user]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode in (-9, 137):
        return "killed"
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return str(json.loads(done.stdout))


def strace(log: Path, calls: str, fault: str | None = None, *options: str) -> list[str]:
    """A command prefix that writes the system calls named ``calls`` to ``log``, and lets them fail as ``fault`` says.

    Skips the test where strace is absent or may not trace.
    """
    program = shutil.which("strace")
    if not program:
        pytest.skip("strace is not installed")
    # With the filter the program runs at full speed, but strace 6.1 then loses injected signals.
    speed = [] if fault and fault.startswith("signal") else ["--seccomp-bpf"]
    command = [program, "-f", *speed, "-qq", "-o", str(log), "-e", f"trace={calls}", *options]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("strace may not trace processes here")
    return [*command, "-e", f"inject={calls}:{fault}"] if fault else command


def race_to_create(url: str, options: Mapping[str, str] | None, names: list[str], racers: int) -> list[dict[str, str]]:
    """Every racer, a process, creates every name with its number as content, all at once. The outcomes by name, per racer."""
    context = multiprocessing.get_context("spawn")
    # A racer that fails or dies raises here; it is not waited for.
    with ProcessPoolExecutor(racers, context, initializer=_line_up, initargs=(context.Barrier(racers),)) as pool:
        return list(pool.map(partial(_race, url, options, names), range(racers)))


def _line_up(line: Barrier) -> None:
    """Barriers go to a process when it starts, not with a task."""
    global _start
    _start = line


def _race(url: str, options: Mapping[str, str] | None, names: list[str], number: int) -> dict[str, str]:
    store = open_store(url, options, SystemIds())
    outcomes = {}
    for name in names:
        _start.wait(timeout=READY_S)
        outcomes[name] = store.create(name, [str(number).encode()], durable=True).value
    return outcomes

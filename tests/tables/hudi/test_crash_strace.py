"""The same kills as in test_crash.py, by the kernel and in a process in which nothing of Python's is replaced."""

import os
import re
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import forked
from support.crash_script import COMMITS
from support.crashes import examine_folder, processes
from support.processes import READY_S
from support.store_process import strace

pytestmark = pytest.mark.slow

POINTS = 25
ALL = os.environ.get("HEADGATE_CRASH_STEP") == "1"
"""Kills at all calls take half an hour; else at ``POINTS`` that are spread over the script."""
CALLS = ["openat", "write", "writev", "fsync", "link", "linkat", "rename", "renameat", "renameat2"]
CALLS += ["unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"]

Call = tuple[str, int]
"""A system call and how many of that name the main thread has made with it. strace counts each thread and name by itself."""


def run_under(tracer: list[str], root: Path) -> tuple[int, list[str]]:
    """Exit code, and what the script said. It is forked from a parent that has imported it, and traced from its first step on."""
    with root.with_name("errors").open("wb") as errors:
        script = forked.start("support.crash_script", ["support.crash_script", f"file://{root}"], os.environ, errors.fileno())
    assert script is not None
    os.waitid(os.P_PID, script.pid, os.WSTOPPED | os.WNOWAIT)
    with subprocess.Popen([*tracer, "-p", str(script.pid)]) as tracing:
        while not is_traced(script.pid):
            assert tracing.poll() is None
            time.sleep(0.002)
        script.send_signal(signal.SIGCONT)
        with script.stdout:
            said = script.stdout.read().decode().split()
    return script.wait(READY_S), said


def is_traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def calls_of_the_script(tmp_path: Path) -> list[Call]:
    """The main thread's calls, from the first to the last that names the table."""
    log, root = tmp_path / "log", tmp_path / "whole/table"
    root.parent.mkdir()
    _, said = run_under(strace(log, ",".join(f"?{name}" for name in CALLS)), root)
    assert said == ["created", *["returned"] * COMMITS], (root.parent / "errors").read_text()
    lines = log.read_text(errors="replace").splitlines()
    main, counts = re.compile(rf"{lines[0].split()[0]} +(\w+)\("), Counter[str]()
    calls, ours = [], []
    for line in lines:
        if found := main.match(line):
            counts[found[1]] += 1
            calls.append((found[1], counts[found[1]]))
            ours.append(str(root) in line)
    return calls[ours.index(True) : len(ours) - ours[::-1].index(True)]


def test_kill_by_the_kernel_loses_and_doubles_nothing(tmp_path: Path) -> None:
    calls = calls_of_the_script(tmp_path)
    assert len(calls) > COMMITS * 20
    assert {"fsync", "unlink", "mkdir", "openat"} <= {name for name, _ in calls}
    points = calls if ALL else calls[:: len(calls) // POINTS]

    missed: list[Call] = []

    def kill(call: Call) -> tuple[Path, list[str]]:
        name, count = call
        root = tmp_path / f"{name}-{count}/table"
        root.parent.mkdir()
        code, said = run_under(strace(tmp_path / f"log-{name}-{count}", name, f"signal=KILL:when={count}"), root)
        assert code in (0, -signal.SIGKILL), (root.parent / "errors").read_text()
        if code == 0:
            missed.append(call)
        return root, said

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        left = list(threads.map(kill, points))
    assert len(missed) <= 1, f"never made: {missed}; two runs may differ in the last call of a name"
    assert len({len(said) for _, said in left}) > COMMITS // 2, "the kills were not spread over the script"
    with processes() as pool:
        wrong = pool.map(examine_folder, *zip(*left, strict=True))
        assert [found for found in wrong if found] == []

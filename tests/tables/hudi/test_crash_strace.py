"""The same kills as in test_crash.py, by the kernel and in a process that nothing has prepared for them."""

import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.crash_script import COMMITS
from support.crashes import examine_folder, processes
from support.store_process import strace

pytestmark = pytest.mark.slow

POINTS = 25
ALL = os.environ.get("HEADGATE_CRASH_STEP") == "1"
"""Kills at all calls take half an hour; else at ``POINTS`` that are spread over the script."""
CALLS = ["openat", "write", "writev", "fsync", "link", "linkat", "rename", "renameat", "renameat2"]
CALLS += ["unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"]
TESTS = Path(__file__).parents[2]

Call = tuple[str, int]
"""A system call and how many of that name the main thread has made with it. strace counts each thread and name by itself."""


def run_under(prefix: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """The interpreter itself: behind a shim the script would not be the first process."""
    command = [*prefix, sys.executable, "-m", "support.crash_script", f"file://{root}"]
    settings = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=settings, cwd=TESTS)


def calls_of_the_script(tmp_path: Path) -> list[Call]:
    """The main thread's calls, from the first to the last that names the table."""
    log, root = tmp_path / "log", tmp_path / "whole/table"
    done = run_under(strace(log, ",".join(f"?{name}" for name in CALLS)), root)
    assert done.stdout.split() == ["created", *["returned"] * COMMITS], done.stderr
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
        done = run_under(strace(tmp_path / f"log-{name}-{count}", name, f"signal=KILL:when={count}"), root)
        assert done.returncode in (0, -9, 137), done.stderr
        if done.returncode == 0:
            missed.append(call)
        return root, done.stdout.split()

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        left = list(threads.map(kill, points))
    assert len(missed) <= 1, f"never made: {missed}; two runs may differ in the last call of a name"
    assert len({len(said) for _, said in left}) > COMMITS // 2, "the kills were not spread over the script"
    with processes() as pool:
        wrong = pool.map(examine_folder, *zip(*left, strict=True))
        assert [found for found in wrong if found] == []

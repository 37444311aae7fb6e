"""The same kills as in test_crash.py, by the kernel and in a process that nothing has prepared for them."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.crash_script import COMMITS
from support.crashes import examine_folder, processes
from support.store_process import strace

POINTS = 25
ALL = os.environ.get("HEADGATE_CRASH_STEP") == "1"
"""Kills at all calls take half an hour; else at ``POINTS`` that are spread over the script."""
CALLS = ",".join(
    f"?{name}"
    for name in "openat write writev fsync link linkat rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir".split()
)
TESTS = Path(__file__).parents[2]


def run_under(prefix: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """The interpreter itself: through a shim, the calls of a shell would be counted."""
    command = [*prefix, sys.executable, "-m", "support.crash_script", f"file://{root}"]
    settings = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=settings, cwd=TESTS)


def calls_of_the_script(tmp_path: Path) -> range:
    """The numbers, among all calls of the main thread, of those from the first that names the table on."""
    log, root = tmp_path / "log", tmp_path / "whole/table"
    done = run_under(strace(log, CALLS), root)
    assert done.stdout.split() == ["created", *["returned"] * COMMITS], done.stderr
    lines = log.read_text(errors="replace").splitlines()
    main = re.compile(rf"{lines[0].split()[0]} +\w+\(")
    ours = [number for number, line in enumerate(filter(main.match, lines), start=1) if str(root) in line]
    return range(ours[0], ours[-1] + 1)


def test_kill_by_the_kernel_loses_and_doubles_nothing(tmp_path: Path) -> None:
    calls = calls_of_the_script(tmp_path)
    assert len(calls) > COMMITS * 20
    points = calls if ALL else calls[:: max(1, len(calls) // POINTS)]

    def kill(at: int) -> tuple[Path, list[str]]:
        root = tmp_path / f"{at}/table"
        done = run_under(strace(tmp_path / f"log-{at}", CALLS, f"signal=KILL:when={at}"), root)
        assert done.returncode in (-9, 137), f"call {at} was never made: {done.stderr}"
        return root, done.stdout.split()

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        left = list(threads.map(kill, points))
    returned = {said.count("returned") for _, said in left}
    assert len(returned) > min(len(points), COMMITS) // 2, "the kills were not spread over the script"
    with processes() as pool:
        roots, said = zip(*left, strict=True)
        assert [wrong for wrong in pool.map(examine_folder, roots, said) if wrong] == []

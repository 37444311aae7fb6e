"""A service as a process of its own: ready line, drain, second signal, exit codes, malloc environment, logs."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from headgate_runtime.environment import ENVIRONMENT
from headgate_runtime.lifecycle import importing
from support.processes import READY_S, child_environment

SERVICE = Path(__file__).parent / "service.py"


@contextmanager
def service(*argv: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in child_environment({}).items() if name not in ENVIRONMENT} | env
    command = [sys.executable, str(SERVICE), *argv]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_until_ready(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith('{"ready"'):
            return lines
    raise AssertionError(f"never ready: {process.stderr.read() if process.stderr else ''}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_the_exit_code_is_0(number: signal.Signals) -> None:
    with service("drains") as process:
        [ready] = lines_until_ready(process)
        assert json.loads(ready) == {"ready": "127.0.0.1:70"}
        process.send_signal(number)
        out, _ = process.communicate(timeout=READY_S)
        assert out == "drained\n"
        assert process.returncode == 0


@pytest.mark.slow
def test_a_second_signal_ends_at_once() -> None:
    with service("hangs") as process:
        lines_until_ready(process)
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "draining\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(READY_S) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_an_exception_is_logged_with_its_cause_and_the_exit_code_is_1() -> None:
    with service("fails", "--log-format", "json") as process:
        _, errors = process.communicate(timeout=READY_S)
        assert process.returncode == 1
        [entry] = [json.loads(line) for line in errors.splitlines()]
        assert (entry["level"], entry["event"]) == ("critical", "service failed")
        assert "no disk" in json.dumps(entry["exception"])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["console", "json"])
def test_a_logged_exception_shows_where_but_no_variables(form: str) -> None:
    with service("fails", "--log-format", form) as process:
        _, errors = process.communicate(timeout=READY_S)
    assert "_fail" in errors
    assert "HUNTER2" not in errors, "variables hold rows and tokens"


def test_wrong_settings_end_with_2_before_anything_starts() -> None:
    with service("drains", "--log-level", "shouting") as process:
        out, errors = process.communicate(timeout=READY_S)
        assert (process.returncode, out) == (2, "")
        assert "--log-level" in errors


@pytest.mark.slow
def test_the_malloc_environment_is_set_in_the_same_process_and_a_users_own_values_stay() -> None:
    with service("environment", MALLOC_TOP_PAD_="4096") as process:
        out, _ = process.communicate(timeout=READY_S)
        told = json.loads(out)
        assert told["environment"] == {**ENVIRONMENT, "MALLOC_TOP_PAD_": "4096"}
        assert told["pid"] == process.pid
        assert told["pid"] != os.getpid()


@pytest.mark.slow
def test_a_service_that_used_two_hundred_mebibytes_for_a_moment_gives_them_back() -> None:
    with service("frees") as process:
        lines_until_ready(process)
        running = psutil.Process(process.pid)
        assert running.memory_info().rss > 200 << 20, "the allocator keeps them at first"
        end = time.monotonic() + READY_S
        while running.memory_info().rss > 150 << 20:
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.slow
def test_what_users_named_cannot_forge_a_line_of_the_log() -> None:
    for form in ("console", "json"):
        with service("logs", "--log-format", form) as process:
            _, errors = process.communicate(timeout=READY_S)
        assert len(errors.splitlines()) == 2, "one line of ours and one of a library's"
        assert "\x1b" not in errors
        assert "from a library" in errors


@pytest.mark.slow
def test_protobuf_in_pure_python_is_refused() -> None:
    with service("server", PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python") as process:
        _, errors = process.communicate(timeout=READY_S)
        assert process.returncode == 1
        assert "pure Python" in errors


@pytest.mark.slow
def test_arrays_of_pythons_values_import_no_pandas() -> None:
    """pyarrow does that where it is installed, and a coordinator that archived for the first time committed nothing for 2.4 s."""
    assert find_spec("pandas") is not None
    with service("arrays") as process:
        out, _ = process.communicate(timeout=READY_S)
    assert json.loads(out) == {"pandas": False}
    assert process.returncode == 0


def test_no_cycles_are_looked_for_during_imports_nor_later_in_what_they_made() -> None:
    before = gc.get_freeze_count()
    try:
        with importing():
            assert not gc.isenabled()
        assert gc.isenabled(), "nothing would be collected any more"
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("module", ["headgate_runtime.logs", "headgate_runtime.lifecycle", "headgate_coordinator.__main__"])
def test_a_service_imports_no_rich_and_other_programs_still_can(module: str) -> None:
    program = f"import sys, {module}; assert 'structlog' in sys.modules; print('rich' in sys.modules); import rich"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr

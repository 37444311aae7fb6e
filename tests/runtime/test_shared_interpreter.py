"""Services that answer clients while their threads compute: how long a thread may keep the loop waiting for the interpreter."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from support.processes import child_environment

_ASKED = """
import sys
from {package} import __main__ as service
service.run_service = lambda _main: print(sys.getswitchinterval())
sys.argv[0] = "service"
service.main()
"""


@pytest.mark.parametrize(
    ("package", "argv"),
    [("headgate_coordinator", ["--store", "file:///nowhere"]), ("headgate_writer", ["--coordinator", "localhost:1"])],
)
def test_a_thread_that_computes_gives_way_to_the_loop_within_a_millisecond(package: str, argv: Sequence[str]) -> None:
    """Python's own is 5 ms, for each step of a call that waits for the loop."""
    command = [sys.executable, "-c", _ASKED.format(package=package), *argv]
    said = subprocess.run(command, env=child_environment({}), capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert 0 < float(said.stdout) < 0.001

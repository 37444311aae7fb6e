"""The connection of a command to its cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import headgate


@dataclass(frozen=True, slots=True)
class Access:
    """Address of the cluster and credentials.

    ``addresses``: host:port of coordinators. ``timeout``: seconds that a call waits for an answer, through breaks and takeovers.
    ``tls_ca``: PEM file; empty: no TLS. ``front``: the addresses are of proxies, and no other can be reached.
    """

    addresses: Sequence[str]
    timeout: float
    token: str = field(default="", repr=False)
    tls_ca: str = ""
    front: bool = False

    def connect(self) -> headgate.Headgate:
        """A connection for blocking calls. Raises OSError for a file that cannot be read."""
        tls = headgate.Tls(ca=self.tls_ca) if self.tls_ca else None
        return headgate.connect(
            list(self.addresses), token=self.token or None, tls=tls, timeout=self.timeout, wait=self.timeout, front=self.front
        )

    def connect_async(self) -> headgate.aio.Headgate:
        """A connection for asyncio. Raises OSError for a file that cannot be read."""
        tls = headgate.Tls(ca=self.tls_ca) if self.tls_ca else None
        return headgate.aio.connect(
            list(self.addresses), token=self.token or None, tls=tls, timeout=self.timeout, wait=self.timeout, front=self.front
        )

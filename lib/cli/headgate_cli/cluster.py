"""The cluster that a command talks to."""

from collections.abc import Sequence
from dataclasses import dataclass

import headgate

_ANSWER_S = 5.0
"""How long a command waits for an answer; people would rather be told than wait through a takeover."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where the cluster is and who we are. ``addresses``: host:port of coordinators. ``tls_ca``: PEM file; empty: no TLS."""

    addresses: Sequence[str]
    token: str = ""
    tls_ca: str = ""

    def connect(self, *, timeout: float = _ANSWER_S) -> headgate.Headgate:
        """``timeout``: seconds that a call may take. Raises OSError for a file that cannot be read."""
        tls = headgate.Tls(ca=self.tls_ca) if self.tls_ca else None
        return headgate.connect(list(self.addresses), token=self.token or None, tls=tls, timeout=timeout)

    def at(self, address: str) -> "Access":
        """The same cluster, one coordinator."""
        return Access([address], self.token, self.tls_ca)

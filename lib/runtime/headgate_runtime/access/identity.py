"""Who calls: what a call brings to prove it, the identity that this proves, and what an authenticator is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias


class CallerKind(Enum):
    """What sort of caller it is. Roles are for clients; a service reads everything and may call the cluster's own methods."""

    ANONYMOUS = "anonymous"
    CLIENT = "client"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Identity:
    """``principal``: the name by which roles and channels know the caller.

    ``groups``: those that its authenticator found; the access file may put it into more. ``expires_ms``: when the credential
    ends, ms since the epoch; None: never. ``credential``: names the credential in the audit log and for its revocation, and is no
    secret, like the first digits of a token's digest or the serial number of a certificate.
    """

    principal: str
    kind: CallerKind = CallerKind.CLIENT
    groups: frozenset[str] = frozenset()
    expires_ms: int | None = None
    credential: str = ""

    def is_expired(self, now_ms: int) -> bool:
        """Whether its credential has ended."""
        return self.expires_ms is not None and now_ms >= self.expires_ms


ANONYMOUS: Final = Identity("anonymous", CallerKind.ANONYMOUS)
"""The caller of a process that wants no credentials."""

CLUSTER: Final = Identity("cluster", CallerKind.SERVICE, credential="cluster_token")
"""A service of the cluster that brought the token that all of them share."""

RESERVED: Final = frozenset({ANONYMOUS.principal, CLUSTER.principal})
"""No credential of a client may prove one of these names: a channel belongs to a name."""


CERTIFIED: Final = "cert:"
"""Begins the principals that certificates of clients name. No signed token may prove one."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a call brings. ``authorization``: the header of that name, empty without one.

    ``peer``: what TLS found out about the other end, under gRPC's names (``x509_subject_alternative_name``, ``x509_pem_cert``,
    …); empty without a client certificate.
    """

    authorization: str = field(default="", repr=False)
    peer: Mapping[str, Iterable[bytes]] = field(default_factory=dict, repr=False)

    @property
    def bearer(self) -> str:
        """The token of "Bearer TOKEN"; empty without one."""
        scheme, _, token = self.authorization.partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True, slots=True)
class Unauthenticated:
    """Credentials prove nothing, or nothing any more. ``message`` and ``fix`` go to the caller, and hold no secret."""

    message: str
    fix: str


Identified: TypeAlias = Identity | Unauthenticated | None


class Authenticator(Protocol):
    """One way to prove an identity: tokens of a file, signed tokens of an issuer, certificates.

    It is asked on the event loop, before a call's body is read, so it never waits: it works from what it has in memory, and
    fetches keys and files in the background.
    """

    def identify(self, credentials: Credentials, now_ms: int) -> Identified:
        """None: nothing among the credentials is of this kind, and the next authenticator is asked. Unauthenticated: something
        is, and is not good. ``now_ms``: ms since the epoch.
        """

    def renew(self, identity: Identity) -> Identity | None:
        """An identity that it returned earlier, as its credential proves it now; None when it is revoked. Others' as they are.

        Asked again and again for calls that run for long. Expiry is not looked at here: the caller does that.
        """

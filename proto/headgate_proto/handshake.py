"""What client and server say of themselves in the metadata of each call.

Versions, so that programs that do not understand each other refuse to talk; and addresses, for clients behind one front address,
a load balancer or gateway that chooses a server by itself.
"""

from collections.abc import Iterable, Mapping
from typing import Final

PROTOCOL: Final = "headgate-protocol"
"""Of a request and of an answer: the sender's ``VERSION``. It holds for clients, services, and services among themselves."""

VERSION: Final = 2
"""Raised by one, once a release at most, by a release that says what the one before does not understand, or leaves out what it
needs. Programs whose versions are one apart understand each other: to an older one a newer one says what that understands."""

UNSAID: Final = 1
"""The version of programs that were made before there was any."""

_DIGITS: Final = 6


def by_key(metadata: Iterable[tuple[str, str | bytes]] | None) -> dict[str, str | bytes]:
    """The metadata of an answer, pairs or an object of grpcio. Before 1.80, ``dict`` fails with that: its keys() are pairs."""
    return dict(iter(metadata or ()))


def version_in(metadata: Mapping[str, object]) -> int:
    """The version that the other end says; UNSAID for one that says none, or no number."""
    said = str(metadata.get(PROTOCOL, ""))
    return int(said) if said.isascii() and said.isdigit() and len(said) < _DIGITS else UNSAID


def skew(own: int, other: int, own_name: str, other_name: str) -> tuple[str, str] | None:
    """What is wrong between two ends of these versions, and which of them to upgrade; None: they understand each other."""
    if abs(own - other) <= 1:
        return None
    older = own_name if own < other else other_name
    newest = max(own, other)
    message = f"{own_name} speaks version {own} of the protocol and {other_name} version {other}: they may be one apart"
    return message, f"Upgrade {older} to a release with version {newest - 1} or {newest}."


DIALLED: Final = "headgate-dialled"
"""Of a request: the address, host:port, that the program gave to the SDK."""

TARGET: Final = "headgate-target"
"""Of a request through a front address: the coordinator that it is for, by the address that coordinators gave. The one that gets
it passes it on. A writer does not look at it, as any writer takes any channel."""

FRONT: Final = "headgate-front"
"""Of an answer: the dialled address is a front address by the coordinator's settings, so the client calls no other one."""

SERVER: Final = "headgate-server"
"""Of an answer: the server's own address, as coordinators give it. A client behind a front address learns which writer it has."""

FORWARDED: Final = "headgate-forwarded"
"""Of a request from one coordinator to another: the address of the client whose call, with its credentials, is passed on."""

"""Services among themselves: which kind of service a certificate proves, and which kind may call which method.

A service's certificate names its kind as a DNS name, ``SERVICE.DOMAIN``, and its process, where the platform issues one
certificate each, as ``PROCESS.SERVICE.DOMAIN`` or as a SPIFFE id. It is a DNS name, because the calling side checks it, too:
gRPC compares the server's names with the one that the caller wants, so a compactor cannot stand in for a coordinator.
"""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeAlias

import grpc

from headgate_proto.api.v1 import errors_pb2, maintenance_pb2
from headgate_proto.api.v1.errors_pb2 import Error
from headgate_runtime.errors import wire_error
from headgate_runtime.settings import ServiceSettings


class ServiceKind(StrEnum):
    """What a service is."""

    COORDINATOR = "coordinator"
    WRITER = "writer"
    COMPACTOR = "compactor"


_MAINTENANCE: Final = maintenance_pb2.DESCRIPTOR.services_by_name["MaintenanceService"]
CLUSTER_SERVICES: Final = "/headgate.cluster."
"""Begins the methods that are for services alone."""

STATUS: Final = "/headgate.api.v1.TableService/Status"
FORWARDED_METHODS: Final = frozenset(
    {STATUS, *(f"/headgate.api.v1.MaintenanceService/{method.name}" for method in _MAINTENANCE.methods)}
)
"""What only one coordinator can answer, and others pass on to it for clients."""

CALLERS: Final[Mapping[str, frozenset[ServiceKind]]] = {
    **dict.fromkeys(FORWARDED_METHODS, frozenset({ServiceKind.COORDINATOR})),
    "/headgate.cluster.v1.CoordinationService/Control": frozenset({ServiceKind.WRITER}),
    "/headgate.cluster.v1.CoordinationService/Members": frozenset({ServiceKind.WRITER, ServiceKind.COMPACTOR}),
    "/headgate.cluster.v1.CompactionService/Work": frozenset({ServiceKind.COMPACTOR}),
    "/headgate.cluster.v1.ExchangeService/Exchange": frozenset({ServiceKind.WRITER}),
    # A writer asks for a client why a table takes no rows.
    "/headgate.api.v1.TableService/DescribeTable": frozenset({ServiceKind.WRITER}),
    STATUS: frozenset({ServiceKind.WRITER, ServiceKind.COORDINATOR}),
}
"""All that services call of each other. A method that is not here, no service may call."""


_NAMES: Final = ("peer_dns", "peer_uri")
"""gRPC's keys of the names in a certificate, by kind: a mail address is no DNS name."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other end of a connection. ``address``: as gRPC names it (``ipv4:127.0.0.1:80``).

    ``dns``, ``uris``: names of its certificate, which `cluster_ca` has signed; empty without one.
    """

    address: str
    dns: Sequence[str] = ()
    uris: Sequence[str] = ()

    @property
    def is_on_this_machine(self) -> bool:
        """Whether it connected over loopback or a socket."""
        kind, _, rest = self.address.partition(":")
        if kind == "unix":
            return True
        host = rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def kinds(self, domain: str) -> frozenset[ServiceKind]:
        """Those that its certificate names. A wildcard names none."""
        return frozenset(
            kind for kind in ServiceKind for name in self.dns if name == f"{kind}.{domain}" or _process(name, kind, domain)
        )

    def process(self, domain: str) -> str:
        """The SPIFFE id of its certificate, or the DNS name of its process; "" if only the kind is named."""
        found = [uri for uri in self.uris if uri.startswith("spiffe://")]
        found += [name for kind in ServiceKind for name in self.dns if _process(name, kind, domain)]
        return found[0] if found else ""


PeerRule: TypeAlias = Callable[[str, Peer], Error | None]
"""Why a peer may not call a method ("/package.Service/Method"); None: it may."""


def server_name(kind: ServiceKind, domain: str) -> str:
    """The DNS name that the certificate of a server of this kind has to have."""
    return f"{kind}.{domain}"


def certificate_rule(domain: str) -> PeerRule:
    """On a connection with certificates: the peer's has to name a kind that may call the method."""
    return partial(certificate_refusal, domain=domain)


def peer_rule(settings: ServiceSettings) -> PeerRule:
    """On other connections: without any credentials of services, they are taken from this machine alone."""
    return _no_rule if settings.cluster_token.get_secret_value() else loopback_refusal


def peer_of(context: "grpc.aio.ServicerContext[Any, Any]") -> Peer:
    """The peer of a call that is being served. Names are those that the authority vouches for, by their kinds."""
    known = context.auth_context()
    return Peer(context.peer(), *([each.decode(errors="replace") for each in known.get(key, ())] for key in _NAMES))


def certificate_refusal(path: str, peer: Peer, domain: str) -> Error | None:
    """Why the certificate of a service is no right to call ``path`` ("/package.Service/Method"); None: it is.

    A certificate that names no kind proves no identity (CODE_UNAUTHENTICATED); one of another kind lacks the right.
    """
    wanted, kinds = CALLERS.get(path, frozenset()), peer.kinds(domain)
    if wanted & kinds:
        return None
    names = ", ".join(server_name(kind, domain) for kind in sorted(wanted))
    return wire_error(
        errors_pb2.CODE_PERMISSION_DENIED if kinds else errors_pb2.CODE_UNAUTHENTICATED,
        f"only {' and '.join(sorted(wanted)) or 'nobody'} may call {path}; the certificate says {_said(kinds)}",
        f"Give the service a cluster_cert with the DNS name {names}." if names else "Call a method that services call.",
    )


def is_coordinator(peer: Peer, domain: str) -> bool:
    """Whether its certificate says so. A coordinator passes calls of clients on, and says whose (``headgate-forwarded``)."""
    return ServiceKind.COORDINATOR in peer.kinds(domain)


def is_service(dns: Sequence[str], domain: str) -> bool:
    """Whether a certificate with these DNS names is one of a service."""
    return bool(Peer("", dns).kinds(domain))


def loopback_refusal(path: str, peer: Peer) -> Error | None:
    """Why, without any credentials of services, ``path`` may not be called from there; None: it may."""
    if not path.startswith(CLUSTER_SERVICES) or peer.is_on_this_machine:
        return None
    return wire_error(
        errors_pb2.CODE_UNAUTHENTICATED,
        "services on other machines need credentials",
        "Set cluster_listen, cluster_cert, cluster_key and cluster_ca for all services.",
    )


def _no_rule(path: str, peer: Peer) -> None:  # noqa: ARG001 - a rule's arguments
    return None


def _process(name: str, kind: ServiceKind, domain: str) -> bool:
    before, _, rest = name.partition(".")
    return rest == f"{kind}.{domain}" and bool(before) and "*" not in before


def _said(kinds: frozenset[ServiceKind]) -> str:
    return " and ".join(sorted(kinds)) or "no kind of service"

"""A cluster whose services demand certificates of clients (`client_ca`): three authorities, and a writer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

import headgate
from demo.ports import free_port
from support.certificates import Authority, Certificate, self_signed
from support.cluster import Cluster
from support.processes import READY_S


@dataclass(frozen=True, slots=True)
class CertifiedClients:
    """``clients``, ``services``: who signs their certificates. ``server``: a PEM file, the authority of what servers show."""

    cluster: Cluster
    clients: Authority
    services: Authority
    server: Path

    def connect(self, own: Certificate | None, token: str | None = None, *, timeout: float = READY_S) -> headgate.Headgate:
        """As a program with that certificate, or with none."""
        shown = (own.cert, own.key) if own else (None, None)
        tls = headgate.Tls(self.server, *shown)
        return headgate.connect(self.cluster.address, tls=tls, token=token, timeout=timeout, wait=timeout)

    def channel(self, part: str, own: Certificate) -> grpc.aio.Channel:
        """A bare one to where the part serves clients."""
        files = (self.server.read_bytes(), own.key.read_bytes(), own.cert.read_bytes())
        return grpc.aio.secure_channel(self.cluster.address_of(part), grpc.ssl_channel_credentials(*files))


@contextmanager
def certified_clients(folder: Path, access: Path, *flags: str) -> Iterator[CertifiedClients]:
    """With this access file; ``flags``: further ones of coordinator and writer."""
    clients, services, shown = Authority(folder / "clients"), Authority(folder / "services"), self_signed(folder / "server")
    own = f"127.0.0.1:{free_port()}"  # the ready line names another one
    options: dict[str, Sequence[str]] = {
        role: [
            *("--listen", "localhost:0", "--tls-cert", str(shown.cert), "--tls-key", str(shown.key)),
            *("--access", str(access), "--access-reload", "100ms", "--client-ca", str(clients.cert)),
            *("--cluster-listen", own if role == "coordinator" else "127.0.0.1:0", *_of_service(services, role)),
            *(
                ("--checkpoint-min-interval", "50ms", "--writer-timeout", "20s")
                if role == "coordinator"
                else ("--coordinator", own)
            ),
            *flags,
        ]
        for role in ("coordinator", "writer")
    }
    with Cluster(folder / "cluster", writers=1, options=options) as cluster:
        yield CertifiedClients(cluster, clients, services, shown.cert)


def _of_service(services: Authority, role: str) -> Sequence[str]:
    issued = services.issue(role, [f"{role}.headgate.internal"])
    files = {"cert": issued.cert, "key": issued.key, "ca": services.cert}
    return [word for what, path in files.items() for word in (f"--cluster-{what}", str(path))]

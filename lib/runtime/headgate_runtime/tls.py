"""TLS of servers and of services that call each other; PEM files are looked at again for each connection."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from headgate_runtime.settings import ServiceSettings


def server_credentials(cert: str, key: str, authority: str = "") -> grpc.ServerCredentials:
    """With ``authority``, a file, too, clients have to show a certificate that it has signed. Raises OSError.

    A renewed certificate, and a new authority, need no restart; connections that are open stay.
    """
    paths = [Path(each) for each in (key, cert, authority) if each]
    read = [path.read_bytes() for path in paths]

    def configuration(content: Sequence[bytes]) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration([(content[0], content[1])], content[2] if authority else None)

    def renewed() -> Any:
        """None, which grpcio takes for "as it was" and its stubs do not know, or what is new."""
        try:
            content = [path.read_bytes() for path in paths]
        except OSError:
            return None  # being replaced; the old ones serve on
        if content == read:
            return None
        read[:] = content
        return configuration(content)

    return grpc.dynamic_ssl_server_credentials(configuration(read), renewed, bool(authority))


def channel_files(settings: ServiceSettings) -> Sequence[bytes] | None:
    """The PEM files by which a service calls others, as they are now: authority, certificate and key, or the authority alone.

    None: no TLS. Raises OSError.
    """
    if settings.cluster_cert:
        names = (settings.cluster_ca, settings.cluster_cert, settings.cluster_key)
        return [Path(name).read_bytes() for name in names]
    return [Path(settings.tls_ca).read_bytes()] if settings.tls_ca else None


def channel_credentials(files: Sequence[bytes]) -> grpc.ChannelCredentials:
    """Of ``channel_files``."""
    authority, cert, key = (*files, None, None)[:3]
    return grpc.ssl_channel_credentials(root_certificates=authority, private_key=key, certificate_chain=cert)

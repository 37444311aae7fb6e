"""Whether the certificates that a service shows are valid."""

import datetime
from pathlib import Path

from cryptography import x509

from headgate_runtime.lifecycle import StartError
from headgate_runtime.settings import ServiceSettings


def check_certificates(settings: ServiceSettings, now_ms: int) -> None:
    """Raises StartError if a certificate that this service shows, to clients or to other services, has expired.

    Nobody would connect, and say why in a log of its own at best. One that expires later is for `headgate_runtime.tls`, which
    reads renewed files. ``now_ms``: milliseconds since the epoch. Raises OSError and ValueError if a file is wrong.
    """
    for name in ("tls_cert", "cluster_cert"):
        if path := getattr(settings, name):
            until = x509.load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc
            if until <= datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC):
                raise StartError(
                    f"{name}: the certificate in {path} has expired ({until:%Y-%m-%d %H:%M:%S} UTC), so nobody would connect. "
                    "Renew it and its key; if it is valid, correct the clock of this machine."
                )

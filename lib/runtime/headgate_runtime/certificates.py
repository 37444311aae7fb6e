"""Whether the certificates that a service shows, its keys, and the authority of its clients are valid."""

import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from headgate_runtime.lifecycle import StartError
from headgate_runtime.settings import ServiceSettings

_SHOWN: Final = {"tls_cert": "tls_key", "cluster_cert": "cluster_key"}
"""Settings that name a certificate, and those of their keys."""
_AUTHORITIES: Final = ("tls_ca", "cluster_ca")


def check_certificates(settings: ServiceSettings, now_ms: int) -> None:
    """Raises StartError if nobody could connect: a file cannot be read, a certificate that this service shows has expired, its
    key is another's, or the authority of clients has expired.

    gRPC reports a key that it cannot use as an address that it cannot bind, and clients say why in a log of their own at best. A
    certificate that expires later is for `headgate_runtime.tls`, which reads renewed files. ``now_ms``: milliseconds since the
    epoch.
    """
    for cert_setting, key_setting in _SHOWN.items():
        if path := getattr(settings, cert_setting):
            certificate = _certificate(cert_setting, path)
            _check_expiry(cert_setting, path, certificate, now_ms)
            _check_key(key_setting, getattr(settings, key_setting), certificate)
    if settings.client_ca:
        _check_authorities(settings.client_ca, now_ms)
    for setting in _AUTHORITIES:
        if path := getattr(settings, setting):
            _content(setting, path)


def _content(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise StartError.of_file(setting, path, e) from e


def _certificate(setting: str, path: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_content(setting, path))
    except ValueError as e:
        raise StartError(f"{setting}: {path} is not a certificate in PEM form.") from e


def _check_expiry(setting: str, path: str, certificate: x509.Certificate, now_ms: int) -> None:
    until = certificate.not_valid_after_utc
    if until <= datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC):
        raise StartError(
            f"{setting}: the certificate in {path} has expired ({until:%Y-%m-%d %H:%M:%S} UTC), so nobody would connect. "
            "Renew it and its key; if it is valid, correct the clock of this machine."
        )


def _check_key(setting: str, path: str, certificate: x509.Certificate) -> None:
    """A key with a password is refused as well: nobody is there to type it."""
    try:
        key = load_pem_private_key(_content(setting, path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise StartError(f"{setting}: {path} is not a private key in PEM form without a password.") from e
    if key.public_key() != certificate.public_key():
        raise StartError(f"{setting}: the key in {path} is not that of the certificate. Give the two that were issued together.")


def _check_authorities(path: str, now_ms: int) -> None:
    """Of clients. gRPC says nothing of a file without a valid one, and clients only that the connection is closed."""
    try:
        found = x509.load_pem_x509_certificates(_content("client_ca", path))
    except ValueError as error:
        raise StartError(f"client_ca: {path} is no PEM file of certificates: name that of the clients' authority.") from error
    now = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC)
    if all(each.not_valid_after_utc <= now for each in found):
        raise StartError(f"client_ca: what is in {path} has expired, so no client could connect. Name a valid authority.")

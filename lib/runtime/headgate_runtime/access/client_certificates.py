"""Certificates of clients, which the setting `client_ca` asks for: which principal one names. TLS has verified it before."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from cryptography import x509

from headgate_runtime.access.file import is_principal
from headgate_runtime.access.identity import CERTIFIED, Credentials, Identified, Identity, Unauthenticated
from headgate_runtime.access.rights import shortened

CREDENTIAL: Final = "x509:"
"""Stands before a certificate's serial number, in hexadecimal digits."""

EXPIRED: Final = Unauthenticated("the client's certificate has expired", "Connect again with a newer one.")

_PEM: Final = "x509_pem_cert"
"""gRPC's key of the client's own certificate."""
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_DNS: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_SPIFFE: Final = re.compile(r"spiffe://[a-z0-9._-]+(/(?!\.\.?(/|\Z))[A-Za-z0-9._-]+)+")
WANTED: Final = "one SPIFFE id with a path, else one DNS name in lower case without a wildcard, of 123 characters at most"
_ANOTHER: Final = f"Use a certificate with {WANTED}."


class ClientCertificates:
    """Identities that certificates of clients prove. They end with the certificate; there is no way to revoke one before.

    A call that brings a token as well is the token's: a wrong one does not fall back on the certificate. ``is_service``: whether
    DNS names of a certificate make it one of a service, which is no client.
    """

    def __init__(self, is_service: Callable[[Sequence[str]], bool]) -> None:
        self._is_service = is_service

    def identify(self, credentials: Credentials, now_ms: int) -> Identified:
        pem = next(iter(credentials.peer.get(_PEM, ())), b"")
        if credentials.authorization or not pem:
            return None
        try:
            shown = x509.load_pem_x509_certificate(pem)
            names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            uris = names.get_values_for_type(x509.UniformResourceIdentifier)
            dns = names.get_values_for_type(x509.DNSName)
        except x509.ExtensionNotFound:
            return _refused("names nobody")
        except (ValueError, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
            return _refused("cannot be read")
        ends_ms = round(shown.not_valid_after_utc.timestamp() * 1000)
        if now_ms >= ends_ms:
            return EXPIRED
        name = self._name(uris, dns)
        if isinstance(name, Unauthenticated):
            return name
        return Identity(f"{CERTIFIED}{name}", expires_ms=ends_ms, credential=f"{CREDENTIAL}{shown.serial_number:x}")

    def renew(self, identity: Identity) -> Identity | None:
        return identity

    def _name(self, uris: Sequence[str], dns: Sequence[str]) -> str | Unauthenticated:
        """The one name that nobody else's certificate can have, in one way to write it."""
        if self._is_service(dns):
            return _refused("is one of a service of the cluster")
        spiffe = [each for each in uris if each.lower().startswith("spiffe:")]
        found = uris if spiffe else dns
        if len(found) != 1:
            return _refused(f"has {len(found)} names that could count")
        if not is_name(found[0]):
            return _refused(f"has the name {shortened(found[0])}, which does not do")
        return found[0]


def is_name(name: str) -> bool:
    """Whether a client's certificate of this SPIFFE id or DNS name would be taken, as the principal ``cert:NAME``."""
    return is_principal(f"{CERTIFIED}{name}") and bool(_SPIFFE.fullmatch(name) or _DNS.fullmatch(name))


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(f"the client's certificate {why}", _ANOTHER)

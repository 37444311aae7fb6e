"""An authority of the cluster's own, and the certificates that it signs, as PEM."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

ROLES = ("coordinator", "writer", "compactor")
_SKEW = timedelta(hours=1)
"""Clocks of machines that read a new certificate may be behind by so much."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its key, PEM texts."""

    cert: str
    key: str = field(repr=False)


class Authority:
    """Signs certificates that serve servers and clients. ``issued``: its own, and behind it those that are trusted besides."""

    def __init__(self, issued: Issued) -> None:
        """Raises ValueError if the two are no PEM or do not belong together."""
        self.issued = issued
        self._certificate = x509.load_pem_x509_certificate(issued.cert.encode())
        self._key = _key(issued)
        if self._key.public_key() != self._certificate.public_key():
            raise ValueError("the authority's key is not that of its certificate")

    @classmethod
    def new(cls, name: str, now: datetime, valid: timedelta, before: "Authority | None" = None) -> "Authority":
        """``before``: its certificates are trusted besides, so that those which it signed count till their end."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name)
        builder = _builder(subject, subject, key, now, valid)
        basic = x509.BasicConstraints(ca=True, path_length=0)
        issued = _issued(builder.add_extension(basic, critical=True).sign(key, hashes.SHA256()), key)
        return cls(Issued(issued.cert + before.issued.cert, issued.key) if before else issued)

    @property
    def ends(self) -> datetime:
        """When its certificate is no longer valid."""
        return self._certificate.not_valid_after_utc

    def issue(self, name: str, hosts: Sequence[str], now: datetime, valid: timedelta) -> Issued:
        """For DNS names and IP addresses, never beyond the authority's own end."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = _builder(_subject(name), self._certificate.subject, key, now, min(valid, self.ends - now))
        builder = builder.add_extension(_names(hosts), critical=False).add_extension(usage, critical=False)
        return _issued(builder.sign(self._key, hashes.SHA256()), key)


def is_good(authority: str, issued: Issued, hosts: Sequence[str], at: datetime) -> bool:
    """Whether it is of the (first) authority of this PEM, for exactly these hosts, whole, and valid at that time."""
    try:
        certificate = x509.load_pem_x509_certificate(issued.cert.encode())
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.encode()))
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        whole = _key(issued).public_key() == certificate.public_key()
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return whole and set(names) == set(_names(hosts)) and certificate.not_valid_after_utc >= at


def _names(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_name(host) for host in hosts])


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _SKEW)
        .not_valid_after(now.astimezone(UTC) + valid)
    )


def _key(issued: Issued) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(issued.key.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("no key of an elliptic curve")  # noqa: TRY004 - of a file, not of a call
    return key


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Issued(certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode())

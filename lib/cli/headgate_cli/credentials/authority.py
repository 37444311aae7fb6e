"""An authority of the cluster's own, and the certificates that it signs, as PEM."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

SERVICES = ("coordinator", "writer", "compactor")
_DNS_NAME = re.compile(
    r"(?=.{1,253}\Z)(\*\.)?(?!\d+\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.(?!\d+\Z)|\Z))+", re.IGNORECASE
)
_SKEW = timedelta(hours=1)
"""Clocks of machines that read a new certificate may be behind by so much."""

_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
"""Python's TLS wants it of an authority since 3.13, and that certificates name the key that signed them."""


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
    def new(cls, name: str, now: datetime, valid: timedelta) -> "Authority":
        """Of names that differ, as two authorities of one name would be taken for each other."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(f"{name} {now:%Y-%m-%dT%H:%M:%SZ}")
        builder = _builder(subject, subject, key, now, valid)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return cls(_issued(builder.add_extension(own, critical=False).sign(key, hashes.SHA256()), key))

    def trusting(self, others: str, now: datetime) -> "Authority":
        """The same, with the certificates of this PEM behind its own that are others and have not ended. Raises ValueError."""
        behind = {each: None for each in _certificates(self.issued.cert + others) if each.not_valid_after_utc > now}
        certs = {self._certificate: None} | behind
        return Authority(Issued("".join(map(_pem, certs)), self.issued.key))

    @property
    def began(self) -> datetime:
        """When it was made."""
        return self._certificate.not_valid_before_utc + _SKEW

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
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(signer, critical=False)
        return _issued(builder.sign(self._key, hashes.SHA256()), key)


def is_host(text: str) -> bool:
    """Whether a certificate can be for it: an IP address, or a DNS name, whose first label may be ``*``."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _DNS_NAME.fullmatch(text) is not None
    return True


def is_good(trusted: str, issued: Issued, hosts: Sequence[str], at: datetime) -> bool:
    """Whether it is of an authority of this PEM, for exactly these hosts, whole, and valid at that time."""
    try:
        certificate = x509.load_pem_x509_certificate(issued.cert.encode())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        whole = _key(issued).public_key() == certificate.public_key()
        known = any(_has_signed(each, certificate) for each in _certificates(trusted))
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return whole and known and set(names) == set(_names(hosts)) and certificate.not_valid_after_utc >= at


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _certificates(pem: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem.encode()) if pem.strip() else []


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


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
    return Issued(_pem(certificate), private.decode())

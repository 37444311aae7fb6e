"""Certificates of a cluster on this machine: an authority of its own, one certificate for clients, one for each role."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from headgate_cli.dev.private import PrivateFolder

DOMAIN = "headgate.internal"
ROLES = ("coordinator", "writer", "compactor")
_SERVER = "server"
_LOOPBACK: Sequence[x509.GeneralName] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)
_VALID = timedelta(days=2 * 365)
_LEFT = timedelta(days=60)
"""Certificates with less time left are made anew at the cluster's next start; its clients have to connect again then."""
_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """PEM files of a certificate and its key."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files. ``server``: what clients see; ``roles``: what services show each other."""

    authority: Path
    server: Pair
    roles: dict[str, Pair]


def certificates_in(folder: PrivateFolder, now: datetime) -> Certificates:
    """Those that are there, so that clients of an earlier run go on; without any, or shortly before their end, new ones.

    The authority's key is not kept: nobody can make a further certificate.
    """
    found = Certificates(folder.path / "ca.pem", _pair(folder, _SERVER), {role: _pair(folder, role) for role in ROLES})
    if not _is_good(found, now + _LEFT):
        _make(folder, now)
    return found


def _pair(folder: PrivateFolder, name: str) -> Pair:
    return Pair(folder.path / f"{name}.pem", folder.path / f"{name}.key")


def _is_good(found: Certificates, at: datetime) -> bool:
    """Whether all files are there, are of this authority, and are valid at that time."""
    try:
        authority = x509.load_pem_x509_certificate(found.authority.read_bytes())
        for pair in (found.server, *found.roles.values()):
            serialization.load_pem_private_key(pair.key.read_bytes(), None)
            certificate = x509.load_pem_x509_certificate(pair.cert.read_bytes())
            certificate.verify_directly_issued_by(authority)
            if certificate.not_valid_after_utc < at:
                return False
    except (OSError, ValueError, TypeError, InvalidSignature):
        return False
    return True


def _make(folder: PrivateFolder, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "headgate dev")])
    basic = x509.BasicConstraints(ca=True, path_length=0)
    authority = _builder(name, name, key, now).add_extension(basic, critical=True).sign(key, hashes.SHA256())
    for role, names in ((_SERVER, _LOOPBACK), *((role, [x509.DNSName(f"{role}.{DOMAIN}")]) for role in ROLES)):
        _issue(folder, role, names, key, authority, now)
    folder.write("ca.pem", _pem(authority))  # at last: what an older authority signed is not good any more


def _issue(
    folder: PrivateFolder,
    name: str,
    names: Sequence[x509.GeneralName],
    authority_key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    now: datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"headgate dev {name}")])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = _builder(subject, authority.subject, key, now)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).add_extension(usage, critical=False)
    folder.write(f"{name}.pem", _pem(builder.sign(authority_key, hashes.SHA256())))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    folder.write(f"{name}.key", private.decode())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _SKEW)
        .not_valid_after(now.astimezone(UTC) + _VALID)
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()

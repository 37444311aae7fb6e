"""Certificates for tests with TLS, made on the spot."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files."""

    cert: Path
    key: Path

    @property
    def serial(self) -> int:
        """The certificate's serial number."""
        return x509.load_pem_x509_certificate(self.cert.read_bytes()).serial_number


def self_signed(folder: Path) -> Certificate:
    """For "localhost", from yesterday to tomorrow. The certificate is its own authority."""
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"headgate test {folder.name}")])
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    builder = _builder(name, name, key, DAY).add_extension(names, critical=False)
    authority = x509.BasicConstraints(ca=True, path_length=None)
    return _written(folder, builder.add_extension(authority, critical=True).sign(key, hashes.SHA256()), key)


class Authority:
    """Signs certificates. ``cert``: its own, a PEM file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"headgate authority {folder.name}")])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key, DAY).add_extension(basic, critical=True)
        self.cert = _written(folder, builder.sign(self._key, hashes.SHA256()), self._key).cert

    def issue(self, name: str, dns: Sequence[str], *, uris: Sequence[str] = (), valid: datetime.timedelta = DAY) -> Certificate:
        """From yesterday until ``valid`` from now, which may be in the past."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        names = [*(x509.DNSName(each) for each in dns), *(x509.UniformResourceIdentifier(each) for each in uris)]
        builder = _builder(subject, self._name, key, valid)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        (folder := self._folder / name).mkdir()
        return _written(folder, builder.sign(self._key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(now - DAY).not_valid_after(now + valid)


def _written(folder: Path, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certificate:
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    made.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made

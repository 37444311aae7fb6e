"""Certificates of a cluster on this machine: an authority of its own, a certificate for clients, one for each kind of service."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from headgate_cli.credentials.authority import SERVICES, Authority, Issued, is_good
from headgate_cli.dev.private import PrivateFolder

DOMAIN = "headgate.internal"
_SERVER = "server"
_HOSTS = {_SERVER: ["localhost", "127.0.0.1", "::1"], **{service: [f"{service}.{DOMAIN}"] for service in SERVICES}}
_VALID = timedelta(days=2 * 365)
_LEFT = timedelta(days=60)
"""Certificates with less time left are made anew at the cluster's next start; its clients find the new authority by then."""


@dataclass(frozen=True, slots=True)
class Pair:
    """PEM files of a certificate and its key."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files. ``server``: what clients see; ``services``: what services show each other."""

    authority: Path
    server: Pair
    services: dict[str, Pair]


def certificates_in(folder: PrivateFolder, now: datetime) -> Certificates:
    """Those that are there, so that clients of an earlier run go on; without any, or shortly before their end, new ones.

    The authority's key is not kept: nobody can make a further certificate.
    """
    found = Certificates(
        folder.path / "ca.pem", _pair(folder, _SERVER), {service: _pair(folder, service) for service in SERVICES}
    )
    if not _is_good(found, now + _LEFT):
        _make(folder, now)
    return found


def _pair(folder: PrivateFolder, name: str) -> Pair:
    return Pair(folder.path / f"{name}.pem", folder.path / f"{name}.key")


def _is_good(found: Certificates, at: datetime) -> bool:
    """Whether all files are there, are of this authority, and are valid at that time."""
    pairs = {_SERVER: found.server, **found.services}
    try:
        authority = found.authority.read_text()
        issued = {name: Issued(pair.cert.read_text(), pair.key.read_text()) for name, pair in pairs.items()}
    except (OSError, ValueError):
        return False
    return all(is_good(authority, each, _HOSTS[name], at) for name, each in issued.items())


def _make(folder: PrivateFolder, now: datetime) -> None:
    authority = Authority.new("headgate dev", now, _VALID)
    for name, hosts in _HOSTS.items():
        issued = authority.issue(f"headgate dev {name}", hosts, now, _VALID)
        folder.write(f"{name}.pem", issued.cert)
        folder.write(f"{name}.key", issued.key)
    folder.write("ca.pem", authority.issued.cert)  # at last: what an older authority signed is not good any more

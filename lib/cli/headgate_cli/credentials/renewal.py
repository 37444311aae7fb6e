"""All that makes a cluster safe: certificates, a client's token, the access file, the password of Redis.

Texts by ``FOLDER/FILE``. A folder is what one kind of process gets, so it may be a folder of files or a Secret of Kubernetes:

- ``ca``: keys of the two authorities and of their successors, for whatever makes certificates and nothing else
- ``tls``: the certificate that clients see
- ``cluster``: what services show each other
- ``access``: who may do what
- ``redis``: for the server and for coordinators
- ``client``: for a program that connects
- ``s3``: keys of an S3 server of the cluster's own

An authority is renewed without a gap: all trust its successor for a day before that signs, as files and Secrets do not reach all
processes at once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from headgate_cli.credentials.authority import SERVICES, Authority, Issued, is_good
from headgate_cli.credentials.further_token import with_token
from headgate_cli.credentials.one_principal import access_of_one
from headgate_cli.credentials.redis_user import USER, coordinators_user, password_digest
from headgate_runtime.access.tokens import digest_of, new_token
from headgate_runtime.world import Ids

PRINCIPAL: Final = "operator"
"""Of the token that is made; it may do everything."""
_AUTHORITY_VALID: Final = timedelta(days=3650)
_OVERLAP: Final = timedelta(days=1)
"""How long an authority is trusted before it signs, and a token that was replaced goes on to count."""


class Part(StrEnum):
    """What can be left to others: to cert-manager, to an operator."""

    TLS = "tls"
    CLUSTER = "cluster"
    ACCESS = "access"
    REDIS = "redis"
    REDIS_TLS = "redis-tls"
    S3 = "s3"


@dataclass(frozen=True, slots=True)
class Wanted:
    """``hosts``: names and addresses by which clients reach coordinators and writers; ``redis_hosts``: those of Redis, if any.

    Certificates are valid for ``valid`` and are made anew when less than ``left`` is left. ``replaces_token``: a token that is
    gone is replaced, and a line for the new one is added to the access file. ``reloads_redis``: Redis gets a user that may have
    it read renewed certificates.
    """

    hosts: Sequence[str]
    redis_hosts: Sequence[str] = ()
    domain: str = "headgate.internal"
    valid: timedelta = timedelta(days=365)
    left: timedelta = timedelta(days=60)
    parts: Collection[Part] = frozenset(Part) - {Part.S3}
    replaces_token: bool = False
    reloads_redis: bool = False

    def has(self, part: Part) -> bool:
        """Whether that is to be made."""
        return part in self.parts and (part not in (Part.REDIS, Part.REDIS_TLS) or bool(self.redis_hosts))


def renewed(found: Mapping[str, str], wanted: Wanted, now: datetime, ids: Ids) -> dict[str, str]:
    """Those texts that are missing, damaged, for other names or near their end, made anew. The others stay as they are.

    An access file that is there is never changed, but for a token that is replaced. What clients see has another authority than
    services have, because that of services makes a program a service.
    """
    wants = {**_certificates(found, wanted, now), **_access(found, wanted, now, ids), **_redis(found, wanted, ids)}
    if wanted.has(Part.S3):
        fresh = {"s3/AWS_ACCESS_KEY_ID": ids.token(), "s3/AWS_SECRET_ACCESS_KEY": ids.token() + ids.token()}
        wants |= {name: found.get(name) or text for name, text in fresh.items()}
    if (authority := wants.get("tls/ca.crt") or found.get("tls/ca.crt")) and wanted.has(Part.ACCESS):
        wants["client/ca.crt"] = authority
    return {name: text for name, text in wants.items() if found.get(name) != text}


def _certificates(found: Mapping[str, str], wanted: Wanted, now: datetime) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, folders in (("client", ("tls", "redis", "client")), ("cluster", ("cluster",))):
        leaves = dict(_leaves(name, wanted))
        if not leaves:
            continue
        signer, trusted, kept = _authority(found, name, folders, now, wanted.left)
        made |= kept
        for path, hosts in leaves.items():
            issued = Issued(found.get(f"{path}.crt", ""), found.get(f"{path}.key", ""))
            if not is_good(trusted, issued, hosts, min(now + wanted.left, signer.ends)):
                issued = signer.issue(f"headgate {path}", hosts, now, wanted.valid)
            made |= {f"{path}.crt": issued.cert, f"{path}.key": issued.key, f"{path.partition('/')[0]}/ca.crt": trusted}
    return made


def _leaves(authority: str, wanted: Wanted) -> Iterator[tuple[str, Sequence[str]]]:
    """Each certificate's path without its ending, and its names."""
    if authority == "client":
        if wanted.has(Part.TLS):
            yield "tls/tls", wanted.hosts
        if wanted.has(Part.REDIS_TLS):
            yield "redis/tls", wanted.redis_hosts
    elif wanted.has(Part.CLUSTER):
        for service in SERVICES:
            yield f"cluster/{service}", [f"{service}.{wanted.domain}"]


def _authority(
    found: Mapping[str, str], name: str, folders: Sequence[str], now: datetime, left: timedelta
) -> tuple[Authority, str, dict[str, str]]:
    """The one that signs now, PEM of all that are trusted, and the texts of ``ca``.

    What processes trust goes on to count until it ends, even if its key is lost.
    """
    path, title = f"ca/{name}", f"headgate {name} authority"
    seen = "".join(found.get(f"{folder}/ca.crt", "") for folder in folders)
    signer = _found_authority(found, path) or Authority.new(title, now, _AUTHORITY_VALID)
    following = _found_authority(found, f"{path}-next")
    if following is not None and following.began <= signer.began:
        following = None  # it signs already
    if following is None and signer.ends < now + left + 2 * _OVERLAP:
        following = Authority.new(title, now, _AUTHORITY_VALID)
    if following is not None and following.began <= now - _OVERLAP:
        signer, following = following.trusting(signer.issued.cert, now), None
    kept = {f"{path}.crt": signer.issued.cert, f"{path}.key": signer.issued.key}
    if following is not None:
        kept |= {f"{path}-next.crt": following.issued.cert, f"{path}-next.key": following.issued.key}
        seen += following.issued.cert
    return signer, _trusted(signer, seen, now), kept


def _trusted(signer: Authority, seen: str, now: datetime) -> str:
    try:
        return signer.trusting(seen, now).issued.cert
    except ValueError:  # a damaged text is replaced
        return signer.trusting("", now).issued.cert


def _found_authority(found: Mapping[str, str], path: str) -> Authority | None:
    try:
        return Authority(Issued(found[f"{path}.crt"], found[f"{path}.key"]))
    except (KeyError, ValueError, TypeError):
        return None


def _access(found: Mapping[str, str], wanted: Wanted, now: datetime, ids: Ids) -> dict[str, str]:
    """A line is added to an access file for a new token alone: of one that is there, somebody may have taken the line out."""
    if not wanted.has(Part.ACCESS):
        return {}
    text, token = found.get("access/access.toml"), found.get("client/token", "").strip()
    if text is not None and (token or not wanted.replaces_token):
        return {}
    token = token or new_token(ids)
    digest = digest_of(token)
    text = access_of_one(PRINCIPAL, digest) if text is None else with_token(text, digest, PRINCIPAL, now + _OVERLAP)
    return {"client/token": token + "\n", "access/access.toml": text}


def _redis(found: Mapping[str, str], wanted: Wanted, ids: Ids) -> dict[str, str]:
    """The server's users, and a coordinator's settings: a password may stand in a file, never among flags."""
    if not wanted.has(Part.REDIS):
        return {}
    password = found.get("redis/password", "").strip() or ids.token()
    made = {
        "redis/password": password + "\n",
        "redis/users.acl": f"user default off\n{coordinators_user(password)}\n",
        "redis/settings.toml": f'redis = "rediss://{USER}:{quote(password, safe="")}@{wanted.redis_hosts[0]}:6379/0"\n',
    }
    if wanted.reloads_redis:
        reload = found.get("redis/reload-password", "").strip() or ids.token()
        made["redis/reload-password"] = reload + "\n"
        made["redis/users.acl"] += f"user reload on #{password_digest(reload)} resetkeys resetchannels -@all +config|set +ping\n"
    return made

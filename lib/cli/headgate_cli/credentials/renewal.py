"""All that makes a cluster safe: certificates, a client's token, the access file, the password of Redis.

Texts by ``FOLDER/FILE``. A folder is what one kind of process gets, so it may be a folder of files or a Secret of Kubernetes:

- ``ca``: keys of the two authorities, for whatever makes certificates and nothing else
- ``tls``: the certificate that clients see
- ``cluster``: what services show each other
- ``access``: who may do what
- ``redis``: for the server and for coordinators
- ``client``: for a program that connects
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from headgate_cli.credentials.authority import ROLES, Authority, Issued, is_good
from headgate_cli.dev.redis import COMMANDS, USER
from headgate_runtime.access.tokens import digest_of, new_token
from headgate_runtime.world import Ids

PRINCIPAL = "operator"
"""Of the token that is made; it may do everything."""
_AUTHORITY_VALID = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class Wanted:
    """``hosts``: names and addresses by which clients reach coordinators and writers; ``redis_hosts``: those of Redis, if any.

    Certificates are valid for ``valid`` and are made anew when less than ``left`` is left.
    """

    hosts: Sequence[str]
    redis_hosts: Sequence[str] = ()
    domain: str = "headgate.internal"
    valid: timedelta = timedelta(days=365)
    left: timedelta = timedelta(days=60)


def renewed(found: Mapping[str, str], wanted: Wanted, now: datetime, ids: Ids) -> dict[str, str]:
    """Those texts that are missing, damaged, for other names or near their end, made anew. The others stay as they are.

    An access file that is there is never changed, and a token is made only with it. What clients see has another authority than
    services have, because that of services makes a program a service.
    """
    made: dict[str, str] = {}

    def keep(name: str, text: str) -> None:
        if found.get(name) != text:
            made[name] = text

    clients, services = (_authority(found, name, now, wanted.left) for name in ("client", "cluster"))
    for name, authority in (("client", clients), ("cluster", services)):
        keep(f"ca/{name}.crt", authority.issued.cert)
        keep(f"ca/{name}.key", authority.issued.key)
    for path, authority, hosts in _certificates(wanted, clients, services):
        issued = Issued(found.get(f"{path}.crt", ""), found.get(f"{path}.key", ""))
        if not is_good(authority.issued.cert, issued, hosts, now + wanted.left):
            issued = authority.issue(f"headgate {path}", hosts, now, wanted.valid)
            made |= {f"{path}.crt": issued.cert, f"{path}.key": issued.key}
    for folder in ("tls", "client", *(["redis"] if wanted.redis_hosts else [])):
        keep(f"{folder}/ca.crt", clients.issued.cert)
    keep("cluster/ca.crt", services.issued.cert)
    if "access/access.toml" not in found:
        token = new_token(ids)
        made |= {"client/token": token + "\n", "access/access.toml": _access(token)}
    if wanted.redis_hosts:
        password = found.get("redis/password", "").strip() or ids.token()
        for name, text in _redis(password, wanted.redis_hosts[0]).items():
            keep(f"redis/{name}", text)
    return made


def _certificates(wanted: Wanted, clients: Authority, services: Authority) -> Iterator[tuple[str, Authority, Sequence[str]]]:
    """Each certificate's path without its ending, which authority signs it, and its names."""
    yield "tls/tls", clients, wanted.hosts
    if wanted.redis_hosts:
        yield "redis/tls", clients, wanted.redis_hosts
    for role in ROLES:
        yield f"cluster/{role}", services, [f"{role}.{wanted.domain}"]


def _authority(found: Mapping[str, str], name: str, now: datetime, left: timedelta) -> Authority:
    """The one that is there, or a new one. Before its end a new one takes over, and both are trusted."""
    try:
        before = Authority(Issued(found[f"ca/{name}.crt"], found[f"ca/{name}.key"]))
    except (KeyError, ValueError, TypeError):
        return Authority.new(f"headgate {name} authority", now, _AUTHORITY_VALID)
    if before.ends >= now + left:
        return before
    return Authority.new(f"headgate {name} authority", now, _AUTHORITY_VALID, before)


def _access(token: str) -> str:
    return f"""[tokens]
"{digest_of(token)}" = {{ principal = "{PRINCIPAL}" }}

[[roles]]
principals = ["{PRINCIPAL}"]
may = ["admin"]
tables = ["*"]
"""


def _redis(password: str, host: str) -> dict[str, str]:
    """The server's users, and a coordinator's settings: a password may stand in a file, never among flags."""
    digest = hashlib.sha256(password.encode()).hexdigest()
    return {
        "password": password + "\n",
        "users.acl": f"user default off\nuser {USER} on #{digest} ~{USER}:* {COMMANDS}\n",
        "settings.toml": f'redis = "rediss://{USER}:{quote(password, safe="")}@{host}:6379/0"\n',
    }

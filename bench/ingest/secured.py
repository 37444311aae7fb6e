"""What TLS, a signed token, certificates among the services and the reconciliation of their reports cost."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

from bench.ingest.sections import WARM_UP, check, cluster_with_table, processes_of
from bench.ingest.workload import prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder
from demo.ports import free_port
from support.access import role, write_access
from support.certificates import Authority, self_signed
from support.issuer import Issuer, issuer
from support.planted import UNRECONCILED

PRICE: Final = "price of security"
CASE: Final = "1s checkpoints, 2 writers"
BARE: Final = "bare"
_PLAINTEXT: Final = "plaintext"
_CONTAINS: Final = (
    f"{BARE}: plaintext, no access file, no certificates, and reports of writers are not compared (rule RO10): no checksums of",
    "frames, no look at the reported files. Of RO10 it keeps the counts of rows, some integers a frame.",
    f"{_PLAINTEXT}: the same with the whole of RO10.",
    f"{OURS}: RO10; TLS between clients and services; an access file, and a token that an issuer signed (JWT, RS256, groups to",
    "roles), which is verified for every call and stream; a port for services with certificates on both sides.",
    f"So 'vs {BARE}' is the price of all of it, and 'vs {_PLAINTEXT}' that without RO10. The issuer's own CPU is not counted.",
)
_WRITERS: Final = 2
_AUDIENCE: Final = "headgate"
_VALID_S: Final = 6 * 3_600


@dataclass(frozen=True, slots=True)
class _Setup:
    """``options``: flags by kind of part and by part. ``login``: what clients need. ``plant``: as of ``Cluster``."""

    options: Mapping[str, list[str]] = field(default_factory=dict)
    login: Mapping[str, str] = field(default_factory=dict)
    plant: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def secured(figures: Figures, rows: int, rounds: int) -> None:
    """The same feed into a cluster without any of it, into one that reconciles, and into one that is set up as by the chart. They
    take turns, since the machine's speed may drift.
    """
    figures.note(PRICE, *_CONTAINS)
    asyncio.run(_secured(figures, prepare(rows, "uniform"), rounds))


async def _secured(figures: Figures, feed: str, rounds: int) -> None:
    async with issuer() as shown:
        shown.keys = {"bench": rsa.generate_private_key(public_exponent=65_537, key_size=2_048)}
        for _ in range(rounds):
            await asyncio.to_thread(_round, figures, feed, shown)


def _round(figures: Figures, feed: str, shown: Issuer) -> None:
    for name in (BARE, _PLAINTEXT, OURS):
        with scratch_folder("secured") as folder:
            setup = _safe(folder, shown) if name == OURS else _Setup(plant=UNRECONCILED if name == BARE else {})
            used = _load(feed, setup)
        for unit, per in (("rows/s", used["wall"]), ("rows/CPU-s", used["cpu"])):
            figures.add(PRICE, CASE, unit, name, used["rows"] / per, more_is_better=True)


def _load(feed: str, setup: _Setup) -> Mapping[str, float]:
    """What ``clients.load`` returns, once the table is what was sent."""
    with cluster_with_table("1s", _WRITERS, options=setup.options, login=setup.login, plant=setup.plant) as (cluster, url):
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 2 * _WRITERS, **setup.login}
        used: Mapping[str, float] = run_child(
            "bench.ingest.clients:load", warm_up=WARM_UP, processes=processes_of(cluster), **arguments
        )
        check(url, feed)
    return used


def _safe(folder: Path, shown: Issuer) -> _Setup:
    """As by the chart, with an issuer. The access file has no token, so that clients get in by the signed one or not at all."""
    clients, authority = self_signed(folder / "clients"), Authority(folder / "services")
    access = write_access(folder / "access.toml", {}, role("@jwt:bench", "write", "create"))
    inside = f"127.0.0.1:{free_port()}"
    options: dict[str, list[str]] = {}
    for kind, listens in (("coordinator", [inside]), ("writer", ["127.0.0.1:0"] * _WRITERS)):
        own = authority.issue(kind, [f"{kind}.headgate.internal"])
        options[kind] = ["--tls-cert", str(clients.cert), "--tls-key", str(clients.key), "--access", str(access)]
        options[kind] += ["--jwt-issuer", shown.address, "--jwt-audience", _AUDIENCE]
        options[kind] += ["--cluster-cert", str(own.cert), "--cluster-key", str(own.key), "--cluster-ca", str(authority.cert)]
        for number, listen in enumerate(listens, 1):
            options[f"{kind}-{number}"] = ["--cluster-listen", listen, "--listen", f"localhost:{free_port()}"]
    options["writer"] += ["--coordinator", inside]
    return _Setup(options, {"token": _token(shown), "ca": str(clients.cert)})


def _token(shown: Issuer) -> str:
    claims = {"iss": shown.address, "aud": _AUDIENCE, "sub": "loader", "exp": int(time.time()) + _VALID_S, "groups": ["bench"]}
    return shown.sign("bench", claims)

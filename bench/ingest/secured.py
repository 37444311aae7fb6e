"""What TLS, tokens and certificates among the services cost."""

from pathlib import Path

from bench.ingest.sections import WARM_UP, check, cluster_with_table, processes_of
from bench.ingest.workload import prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures
from bench.tables.scratch import scratch_folder
from demo.ports import free_port
from support.access import role, write_access
from support.certificates import Authority, self_signed

_WRITERS = 2
_TOKEN = "bench-token"
CASE = "1s checkpoints, 2 writers"


def secured(figures: Figures, rows: int, rounds: int) -> None:
    """The same feed into a cluster without any of it, and into one that is set up as by the chart: TLS for clients, an access
    file, and a second port for services with certificates of their own. They take turns, since the machine's speed may drift.
    """
    feed = prepare(rows, "uniform")
    for _ in range(rounds):
        for name, safe in (("plaintext", False), (OURS, True)):
            with scratch_folder("secured") as folder:
                options, login = _safe(folder) if safe else ({}, {})
                with cluster_with_table("1s", _WRITERS, options=options, login=login) as (cluster, url):
                    arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 2 * _WRITERS, **login}
                    pids = processes_of(cluster)
                    used = run_child("bench.ingest.clients:load", warm_up=WARM_UP, processes=pids, **arguments)
                    check(url, feed)
            for unit, per in (("rows/s", used["wall"]), ("rows/CPU-s", used["cpu"])):
                figures.add("price of security", CASE, unit, name, used["rows"] / per, more_is_better=True)


def _safe(folder: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Flags by kind of part and by part, and what clients need."""
    shown, authority = self_signed(folder / "clients"), Authority(folder / "services")
    access = write_access(folder / "access.toml", {_TOKEN: "bench"}, role("bench", "write", "create"))
    inside = f"127.0.0.1:{free_port()}"
    options: dict[str, list[str]] = {}
    for kind, listens in (("coordinator", [inside]), ("writer", ["127.0.0.1:0"] * _WRITERS)):
        own = authority.issue(kind, [f"{kind}.headgate.internal"])
        options[kind] = ["--tls-cert", str(shown.cert), "--tls-key", str(shown.key), "--access", str(access)]
        options[kind] += ["--cluster-cert", str(own.cert), "--cluster-key", str(own.key), "--cluster-ca", str(authority.cert)]
        for number, listen in enumerate(listens, 1):
            options[f"{kind}-{number}"] = ["--cluster-listen", listen, "--listen", f"localhost:{free_port()}"]
    options["writer"] += ["--coordinator", inside]
    return options, {"token": _TOKEN, "ca": str(shown.cert)}

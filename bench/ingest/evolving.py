"""What it costs that batches bring new columns while rows come in as fast as they are taken."""

from collections.abc import Mapping
from typing import Final

from bench.ingest.sections import WARM_UP, check, cluster_with_table, processes_of
from bench.ingest.workload import prepare
from bench.tables.child import run_child
from bench.tables.figures import OURS, Figures

PRICE: Final = "price of evolution"
CASE: Final = "100ms checkpoints, 2 writers"
STEADY: Final = "steady"
_EVERY_S: Final = 10.0
_WRITERS: Final = 2


def evolving(figures: Figures, rows: int, rounds: int) -> None:
    """The same feed, once with one column more in each batch, and once with another one for every 100 checkpoints. They take
    turns, since the machine's speed may drift.
    """
    figures.note(
        PRICE,
        f"{STEADY}: every batch has a column besides those that the table was made with; it is there after the first.",
        f"{OURS}: the same, and each {_EVERY_S:g} s the column has a new name, so that the table gets it; older ones are null.",
    )
    feed = prepare(rows, "uniform")
    for _ in range(rounds):
        for name, every in ((STEADY, 0.0), (OURS, _EVERY_S)):
            used = _load(feed, every)
            for unit, per in (("rows/s", used["wall"]), ("rows/CPU-s", used["cpu"])):
                figures.add(PRICE, CASE, unit, name, used["rows"] / per, more_is_better=True)
            figures.add(PRICE, CASE, "columns added", name, used["added"])


def _load(feed: str, every: float) -> Mapping[str, float]:
    """What ``clients.load_evolving`` returns, once the table is what was sent."""
    soon = {"coordinator": ["--checkpoint-min-interval", "100ms"]}
    with cluster_with_table("100ms", _WRITERS, options=soon) as (cluster, url):
        arguments = {"address": cluster.address, "table": "events", "feed": feed, "channels": 2 * _WRITERS, "every": every}
        used: Mapping[str, float] = run_child(
            "bench.ingest.clients:load_evolving", warm_up=WARM_UP, processes=processes_of(cluster), **arguments
        )
        check(url, feed)
    return used

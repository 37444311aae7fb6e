"""Quotas of principals in a cluster: channels beyond them are refused, and rows beyond the rate wait, of this principal alone."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

import headgate
from support.access import access_text, role
from support.bad_batches import SCHEMA
from support.cluster import Cluster
from support.processes import READY_S

TOKENS = {"ann-token": "ann", "bob-token": "bob", "cyd-token": "cyd"}
ROWS = 100
BATCHES = 4
NOTE = "n" * 1_000
# Each batch of ann, and each of cyd, takes a second.
QUOTAS = f"""
[[quotas]]
principals = ["ann"]
rows_per_s = {ROWS}
channels = 2

[[quotas]]
principals = ["cyd"]
bytes_per_s = {ROWS * len(NOTE)}
channels = 2
"""
COLUMNS: dict[str, Any] = {"key": "id", "partition_by": "part", "ordering": "ts", "buckets": 2}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    tmp_path = tmp_path_factory.mktemp("quotas")
    path = tmp_path / "access.toml"
    path.write_text(access_text(TOKENS, *(role(each, "write", "create") for each in TOKENS.values())) + QUOTAS)
    flags = ["--access", str(path)]
    with Cluster(
        tmp_path / "cluster",
        writers=1,
        options={"coordinator": [*flags, "--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"], "writer": flags},
        env={"HEADGATE_CLUSTER_TOKEN": "cluster-token"},
    ) as made:
        yield made


def send(channel: headgate.Channel) -> float:
    """Seconds for all batches."""
    begun = time.monotonic()
    for batch in range(BATCHES):
        channel.upsert([{"id": f"{batch}-{row}", "part": "p", "ts": 1, "note": NOTE} for row in range(ROWS)])
        channel.flush("durable")
    return time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.parametrize(("limited", "by"), [("ann", "rows"), ("cyd", "bytes")])
def test_a_principal_beyond_its_quotas_waits_or_is_refused_and_others_are_not(cluster: Cluster, limited: str, by: str) -> None:
    with (
        headgate.connect(cluster.address, token=f"{limited}-token", timeout=READY_S, wait=READY_S) as one,
        headgate.connect(cluster.address, token="bob-token", timeout=READY_S, wait=READY_S) as bob,
    ):
        one.create_table(by, SCHEMA, **COLUMNS)
        table = one.table(by)
        with table.channel("a1") as channel, table.channel("a2"):
            with pytest.raises(headgate.QuotaError, match="its quota `channels` is 2"):
                table.channel("a3")
            # The first batch is free, each other one waits until those before it are paid off.
            assert send(channel) >= BATCHES - 1
        with table.channel("a1"):
            pass
        for name in ("b1", "b2", "b3"):
            with bob.table(by).channel(name) as channel:
                channel.upsert([{"id": name, "part": "p", "ts": 1, "note": ""}])

"""`headgate table truncate` and `delete-partitions` by name: the owner of a running cluster's table removes the rows."""

from pathlib import Path
from typing import Any

import pytest

import headgate as sdk
from demo.dev_cluster import DevCluster
from headgate_cli.exits import ExitCode
from support.numbered_rows import SCHEMA
from support.processes import READY_S
from support.readers import read_by_hudi_rs

pytestmark = pytest.mark.usefixtures("connected")


def left(table: sdk.Table) -> list[int]:
    return sorted(read_by_hudi_rs(Path(table.info.url.removeprefix("file://")))["n"].to_pylist())


@pytest.mark.slow
def test_partitions_and_then_all_rows_go_while_a_channel_is_open(headgate: Any, cluster: DevCluster) -> None:
    with sdk.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg:
        table = hg.create_table("numbers", SCHEMA, key="id", partition_by="part", buckets=2)
        with table.channel("c") as channel:
            channel.upsert([{"id": f"{n}", "part": "ab"[n % 2], "n": n} for n in range(10)])
            channel.flush()
            command = ("table", "delete-partitions", "numbers", "a/")
            assert headgate(*command, "--plan-only") == (ExitCode.OK, [{"partitions": ["a"], "rows": 5}], {})
            assert headgate(*command)[0] == ExitCode.USAGE
            assert headgate("table", "delete-partitions", "numbers", "z", "--yes")[0] == ExitCode.FIX_CALL
            assert left(table) == list(range(10))
            code, (done,), _ = headgate(*command, "--yes")
            assert (code, done["rows"], bool(done["instant"])) == (ExitCode.OK, 5, True)
            assert left(table) == [1, 3, 5, 7, 9]
            code, (done,), _ = headgate("table", "truncate", "numbers", "--yes")
            assert (code, done["partitions"], done["rows"]) == (ExitCode.OK, [], 5)
            assert left(table) == []
            code, (done,), _ = headgate("table", "truncate", "numbers", "--yes")
            assert (code, done["rows"], done["instant"], done["replaced"]) == (ExitCode.OK, 0, "", 0)
            channel.upsert({"id": "x", "part": "a", "n": 11})
        assert channel.committed_offset == 11
        assert left(table) == [11]

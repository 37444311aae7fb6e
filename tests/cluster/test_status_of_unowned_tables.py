"""`headgate status TABLE` of a table that no coordinator owns: it is there, and a coordinator may be about to take it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headgate
from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from support.cluster import Cluster
from support.processes import READY_S

SCHEMA = pa.schema({"id": pa.string()})


def status(table: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    code = run(["status", table, "--connect", cluster.address, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out or said.err)


def test_a_table_without_an_owner_is_told_apart_from_one_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Redis no coordinator takes a table."""
    with (
        Cluster(tmp_path / "cluster", writers=0) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        cluster.kill("redis")
        while hg.status().redis_reachable:
            continue
        hg.create_table("orders", SCHEMA, key="id")
        code, found = status("orders", cluster, capsys)
        assert (code, [(table["name"], table["state"]) for table in found["tables"]]) == (ExitCode.OK, [("orders", "unowned")])
        assert run(["status", "orders", "--connect", cluster.address]) == ExitCode.OK
        assert "orders: no coordinator owns it just now, so it takes no rows." in capsys.readouterr().out
        code, failed = status("order", cluster, capsys)
        assert (code, failed["error"]["kind"]) == (ExitCode.FIX_CALL, "TableNotFoundError")
        assert failed["error"]["fix"].startswith("Did you mean 'orders'?")


@pytest.mark.slow
def test_a_watch_of_a_table_goes_on_through_a_takeover(tmp_path: Path) -> None:
    quick = {"coordinator": ["--lease-ttl", "3s", "--lease-renewal", "500ms"]}
    with (
        Cluster(tmp_path / "cluster", coordinators=2, writers=1, options=quick) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        hg.create_table("t", SCHEMA, key="id")
        command = [sys.executable, "-m", "headgate_cli", "status", "t", "--watch", "--json", "--interval", "0.1"]
        with subprocess.Popen([*command, "--connect", cluster.address], stdout=subprocess.PIPE) as watch:
            assert watch.stdout is not None
            tables = (json.loads(line)["tables"][0] for line in watch.stdout)
            owners = (table["owner"] for table in tables if table["state"] == "owned")
            owner = next(owners)
            cluster.kill(owner)
            assert any(other != owner for other in owners), "it ended"
            watch.terminate()

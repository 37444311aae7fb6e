"""Another program writes to a table of the cluster: its clients are told so, readers and other tables notice nothing."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs

SCHEMA = pa.schema({"id": pa.string(), "n": pa.int64()})
SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"]}


@pytest.mark.slow
def test_clients_of_a_table_that_another_program_wrote_get_an_error_that_says_so(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", writers=1, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        opened = {}
        for name in ("bad", "good"):
            opened[name] = hg.create_table(name, SCHEMA, key="id").channel("c")
            opened[name].upsert([{"id": "a", "n": 1}])
            opened[name].flush("queryable")
        folder = tmp_path / "cluster" / "store" / "bad"
        foreign = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")[:17]
        (folder / f".hoodie/timeline/{foreign}.deltacommit.requested").touch()
        opened["bad"].upsert([{"id": "a", "n": 2}])
        with pytest.raises(headgate.TableQuarantinedError, match="headgate status"):
            opened["bad"].flush("queryable")
        with pytest.raises(headgate.TableQuarantinedError):
            hg.table("bad").channel("another")
        opened["good"].upsert([{"id": "a", "n": 2}])
        opened["good"].flush("queryable")
        assert hg.status().tables[0].name == "bad"
        assert hg.status().tables[0].state == "quarantined"
        assert read_by_hudi_rs(folder)["n"].to_pylist() == [1]
        assert read_by_hudi_rs(tmp_path / "cluster" / "store" / "good")["n"].to_pylist() == [2]
        opened["good"].close()

"""A table gets another name while a producer sends rows: the producer hears it, and no row is lost or doubled (rule D11)."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import headgate
from support.cluster import Cluster
from support.processes import READY_S
from support.readers import read_by_hudi_rs

SCHEMA = pa.schema({"id": pa.int64(), "times": pa.int64()})
SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"]}
NAMES = ("first", "sales.second", "third")


class Producer(threading.Thread):
    """Sends rows 1, 2, … and follows its table from name to name, as the error says; each row is a key of its own."""

    def __init__(self, hg: headgate.Headgate) -> None:
        super().__init__(daemon=True)
        self._hg = hg
        self.heard: list[str] = []
        self.opened = threading.Event()
        self.stop = threading.Event()
        self.sent = 0

    def run(self) -> None:
        names = list(NAMES)
        while not self.stop.is_set():
            try:
                self._send(names[0])
            except headgate.TableRenamedError as error:
                self.heard.append(error.message)
                names.pop(0)

    def _send(self, name: str) -> None:
        with self._hg.table(name).channel("c") as channel:
            number = channel.committed_offset
            while not self.stop.is_set():
                number += 1
                channel.upsert([{"id": number, "times": len(self.heard)}])
                if number % 20 == 0:
                    channel.flush("queryable")
                    self.opened.set()
            channel.flush("queryable")
            self.sent = number


def test_a_producer_follows_its_table_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", coordinators=2, writers=2, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table(NAMES[0], SCHEMA, key="id")
        hg.create_table("stays", SCHEMA, key="id")
        producer = Producer(hg)
        producer.start()
        for name in NAMES[1:]:
            assert producer.opened.wait(READY_S), producer.heard
            producer.opened.clear()
            table.rename(name)
            assert table.info.name == name
            assert [each.name for each in hg.tables()] == sorted(["stays", name])
        assert producer.opened.wait(READY_S), producer.heard
        producer.stop.set()
        producer.join(READY_S)
        assert [message.rpartition(" and is ")[2] for message in producer.heard] == ["sales.second now", "third now"]
        seen = read_by_hudi_rs(tmp_path / "cluster/store/first")
        assert sorted(seen["id"].to_pylist()) == list(range(1, producer.sent + 1))
        assert hg.create_table(NAMES[-1], SCHEMA, key="id", exist_ok=True).info.uuid == table.info.uuid
        again = hg.create_table(NAMES[0], SCHEMA, key="id")
        assert again.info.url == f"{table.info.url}~2"
        with again.channel("c") as channel:
            assert channel.committed_offset == 0
        with pytest.raises(headgate.TableExistsError, match="there is a table stays"):
            table.rename("stays")

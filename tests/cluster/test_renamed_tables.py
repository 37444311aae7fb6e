"""A table gets another name while a producer sends rows: the producer hears it, and no row is lost or doubled (rule D11)."""

from pathlib import Path

import pytest

import headgate
from support.cluster import Cluster
from support.numbered import SCHEMA, assert_each_once, producing
from support.processes import READY_S

SOON = {"coordinator": ["--checkpoint-interval", "300ms", "--checkpoint-min-interval", "100ms"]}
NAMES = ("first", "sales.second", "third")


@pytest.mark.slow
def test_a_producer_follows_its_table_and_no_row_is_lost_or_doubled(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", coordinators=2, writers=2, options=SOON) as cluster,
        headgate.connect(cluster.address, timeout=READY_S, wait=READY_S) as hg,
    ):
        table = hg.create_table(NAMES[0], SCHEMA, key="id")
        hg.create_table("stays", SCHEMA, key="id")
        with producing(hg, NAMES[0], headgate.TableRenamedError, then=NAMES[1:]) as producer:
            for name in NAMES[1:]:
                producer.wait_sent()
                table.rename(name)
                assert table.info.name == name
                assert [each.name for each in hg.tables()] == sorted(["stays", name])
        assert [name in told for name, told in zip(NAMES[1:], producer.told, strict=True)] == [True, True]
        assert_each_once(tmp_path / "cluster/store/first", producer)
        assert hg.create_table(NAMES[-1], SCHEMA, key="id", exist_ok=True).info.uuid == table.info.uuid
        again = hg.create_table(NAMES[0], SCHEMA, key="id")
        assert again.info.url == f"{table.info.url}~2"
        with again.channel("c") as channel:
            assert channel.committed_offset == 0
        with pytest.raises(headgate.TableExistsError, match="there is a table stays"):
            table.rename("stays")

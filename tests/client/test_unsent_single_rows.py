"""Single rows that wait are sent, or their channel says that they are lost."""

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from support.scripted_service import Cluster
from support.scripted_table import SCHEMA, ids, table_of


async def test_a_batch_that_lacks_rows_of_acknowledged_calls_ends_the_channel(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with table_of(cluster) as table:
        channel: aio.Channel = await table.channel("c").open()
        one_row = pa.record_batch({"id": [7], "note": ["n"]}, SCHEMA)
        monkeypatch.setattr(channel.formats.upsert.reader, "batch", lambda *_: one_row)
        await channel.upsert((7, "n"), offset=10)
        await channel.upsert((8, "n"), offset=20)
        with pytest.raises(headgate.InternalError, match="2 offsets of 1 rows"):
            await channel.flush()
        assert channel.committed_offset == 0
    assert "t" not in cluster.tables or ids(cluster) == []

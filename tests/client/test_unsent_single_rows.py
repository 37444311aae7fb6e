"""Single rows that wait are sent, or their channel says that they are lost."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.channel_state import ChannelState
from headgate.encoding import Encoder
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


def interrupt_once(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises KeyboardInterrupt in the first call of this method."""
    method: Callable[..., object] = getattr(owner, name)

    def interrupted(*arguments: object) -> None:
        monkeypatch.setattr(owner, name, method)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("form", ["tuple", "RecordBatch"])
async def test_rows_whose_conversion_is_interrupted_are_sent_later(
    form: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row(number: int) -> object:
        return (number, "n") if form == "tuple" else pa.record_batch({"id": [number], "note": ["n"]}, SCHEMA)

    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(100):
            await channel.upsert(row(number))
        interrupt_once(Encoder, "encode", monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            channel.runner.channel.append_single_rows()
        assert channel.offset == 100
        await channel.upsert(row(100))
        await channel.flush()
        assert channel.committed_offset == 101
    assert ids(cluster) == list(range(101))


async def test_rows_that_an_interrupt_leaves_neither_waiting_nor_buffered_end_their_channel(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with table_of(cluster) as table:
        channel: aio.Channel = await table.channel("c").open()
        await channel.upsert((1, "n"))
        interrupt_once(ChannelState, "append_rows", monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            channel.runner.channel.append_single_rows()
        for call in (channel.flush, lambda: channel.upsert((2, "n"))):
            with pytest.raises(headgate.InternalError, match="lost: KeyboardInterrupt"):
                await call()

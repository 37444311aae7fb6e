"""Channels that must not go on: fenced, not explained, restored, without a token; each says why and never tries again."""

import pytest

import headgate
from headgate import aio
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2
from support.scripted_knobs import Answer
from support.scripted_service import Cluster, error
from support.scripted_table import ids, rows, table_of


async def test_an_older_producer_is_fenced_and_never_tries_again(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        older = await table.channel("c").open()
        await older.upsert(rows(0, 1))
        await older.flush()
        async with table.channel("c") as newer:
            await newer.upsert(rows(1, 2))
            await older.upsert(rows(90, 91))
            for _ in range(2):
                with pytest.raises(headgate.ChannelTakenOverError):
                    await older.flush()
            with pytest.raises(headgate.ChannelTakenOverError):
                await older.upsert(rows(91, 92))
            await newer.upsert(rows(2, 3))
    assert ids(cluster) == [0, 1, 2]
    assert len(cluster.opens) <= 3


LIES = {
    "acks": Answer(acks=ingest_pb2.Acks(received=999, durable=999, queryable=999)),
    "refused": Answer(refused=ingest_pb2.Refused(offset=999, accepted=998, error=error(err.CODE_NULL_KEY))),
    "opened twice": Answer(opened=ingest_pb2.Opened(incarnation=9, committed_offset=999)),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_an_answer_that_cannot_be_explained_stops_the_channel(cluster: Cluster, lie: Answer) -> None:
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        cluster.knobs.answers = [lie]
        await channel.upsert(rows(0, 3))
        for _ in range(2):
            with pytest.raises(headgate.ProtocolViolationError):
                await channel.flush()
        assert channel.committed_offset == 0
        assert channel.runner.channel.state.bytes_in_flight > 0


@pytest.mark.parametrize(("incarnation", "committed"), [(1, 0), (1, 9), (2, 5), (0, 5)])
async def test_a_reconnect_to_another_history_stops_the_channel(cluster: Cluster, incarnation: int, committed: int) -> None:
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 5))
        await channel.flush()
        cluster.knobs.opened = [ingest_pb2.Opened(incarnation=incarnation, committed_offset=committed)]
        cluster.knobs.break_after = [0]
        await cluster.stop_writer(cluster.writers[0])
        await channel.upsert(rows(5, 6))
        with pytest.raises(headgate.ProtocolViolationError):
            await channel.flush()
        assert channel.committed_offset == 5


async def test_a_restored_table_ends_a_channel_that_saw_more_committed(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 5))
        await channel.flush()
        cluster.restore("t", "c", offset=2, rows=2)
        await channel.upsert(rows(5, 6))
        with pytest.raises(headgate.TableRestoredError) as restored:
            await channel.flush()
        assert restored.value.committed_offset == 2
        async with table.channel("c") as again:
            assert again.committed_offset == 2
            await again.upsert(rows(2, 6))
    assert ids(cluster) == list(range(6))


async def test_a_producer_that_is_cut_off_during_a_restore_is_told_so_all_the_same(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 5))
        await channel.flush()
        await cluster.stop_writer(cluster.writers[0])
        cluster.restore("t", "c", offset=2, rows=2)
        await cluster.add_writer()
        await channel.upsert(rows(5, 6))
        with pytest.raises(headgate.TableRestoredError) as restored:
            await channel.flush()
        assert restored.value.committed_offset == 2


async def test_only_who_has_the_token_is_served(cluster: Cluster) -> None:
    async with table_of(cluster):
        pass
    cluster.knobs.token = "secret"
    async with aio.connect(cluster.coordinator, token="wrong") as hg:
        with pytest.raises(headgate.UnauthenticatedError, match="no such token"):
            await hg.table("t")
    async with table_of(cluster, token="secret") as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 1))
        cluster.knobs.token = "another"
        await cluster.stop_writer(cluster.writers[0])
        await channel.upsert(rows(1, 2))
        with pytest.raises(headgate.UnauthenticatedError):
            await channel.flush()
        cluster.knobs.token = None

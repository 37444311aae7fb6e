"""Channels over real gRPC against a scripted cluster: exactly once through breaks, levels, bounds, the wire."""

import asyncio
import contextlib

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.encoding import SMALL_BYTES
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2
from support.cutting_proxy import cutting_proxy
from support.scripted_service import Cluster, error
from support.scripted_table import NoPauses, give_up_silent_writer, ids, rows, table_of


@pytest.mark.parametrize("commit_before_break", [False, True])
@pytest.mark.parametrize("commit_every", [1, 3])
async def test_every_row_is_committed_once_and_in_order_through_breaks(
    cluster: Cluster, commit_before_break: bool, commit_every: int
) -> None:
    cluster.knobs.break_after = [2, 0, 1, 5, 0, 3, 1]
    cluster.knobs.commit_before_break = commit_before_break
    cluster.knobs.commit_every = commit_every
    cluster.knobs.lose_opened = 1
    async with table_of(cluster) as table, table.channel("c") as channel:
        for start in range(0, 400, 10):
            await channel.upsert(rows(start, start + 10))
            await channel.flush("received")
    assert ids(cluster) == list(range(400))
    assert not cluster.knobs.break_after


async def test_a_reconnect_presents_its_incarnation_and_a_new_producer_none(cluster: Cluster) -> None:
    cluster.knobs.break_after = [1]
    async with table_of(cluster) as table:
        async with table.channel("c") as channel:
            await channel.upsert(rows(0, 1))
            await channel.flush()
            await channel.upsert(rows(1, 2))
        async with table.channel("c") as again:
            assert again.committed_offset == 2
    assert [incarnation for _, _, incarnation in cluster.opens] == [0, 1, 0]


async def test_rows_whose_acknowledgement_was_lost_are_not_sent_again(cluster: Cluster) -> None:
    cluster.knobs.break_after = [0]
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 5))
    assert len(cluster.batches) == 1
    assert ids(cluster) == list(range(5))


async def test_rows_sent_again_keep_their_cut(cluster: Cluster) -> None:
    cluster.knobs.break_after = [0]
    cluster.knobs.commit_before_break = False
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(5):
            await channel.upsert(rows(number, number + 1))
    sent = [(batch.after, batch.offset) for batch in cluster.batches]
    first = cluster.batches[0]
    assert sent.count((first.after, first.offset)) == 2
    assert ids(cluster) == list(range(5))


async def test_a_channel_that_moves_goes_where_it_is_told(cluster: Cluster) -> None:
    there = cluster.writers[1]
    cluster.listed = cluster.writers[:1]
    cluster.knobs.ended = [error(err.CODE_MOVED, address=there)]
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 1))
        await channel.flush()
        await channel.upsert(rows(1, 2))
    assert [writer for writer, _, _ in cluster.opens] == [cluster.writers[0], there]
    assert ids(cluster) == [0, 1]


@pytest.mark.slow
async def test_a_rewound_channel_stays_with_its_writer(cluster: Cluster) -> None:
    world = NoPauses(drawn=0.9)
    cluster.knobs.ended = [error(err.CODE_REWOUND)] * 3
    async with table_of(cluster, world) as table, table.channel("c") as channel:
        world.drawn = 0.0
        await channel.upsert(rows(0, 1))
        await channel.upsert(rows(1, 2))
    assert {writer for writer, _, _ in cluster.opens} == {cluster.writers[1]}


async def test_a_channel_leaves_a_writer_that_is_gone(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 1))
        await channel.flush()
        await cluster.stop_writer(cluster.writers[0])
        await channel.upsert(rows(1, 2))
    assert [writer for writer, _, _ in cluster.opens] == cluster.writers
    assert ids(cluster) == [0, 1]


async def test_a_writer_that_failed_is_not_tried_first_again(cluster: Cluster) -> None:
    """The coordinators notice later than its clients."""
    async with table_of(cluster) as table, table.channel("c") as channel:
        await cluster.stop_writer(cluster.writers[0])
        cluster.listed = cluster.writers
        await channel.upsert(rows(0, 1))
    assert ids(cluster) == [0]


@pytest.mark.slow
async def test_a_silent_writer_is_left_when_the_cluster_gave_it_up_and_not_before(cluster: Cluster) -> None:
    """A stopped process keeps its connections; only the coordinators know."""
    world = NoPauses()
    async with cutting_proxy(cluster.writers[0]) as silent:
        other = cluster.writers[1]
        cluster.listed = [silent.address, other]
        async with table_of(cluster, world) as table, table.channel("c") as channel:
            await channel.upsert(rows(0, 1))
            await channel.flush()
            silent.hold()
            await channel.upsert(rows(1, 2))
            with pytest.raises(headgate.NotCommittedError):
                await channel.flush("received", timeout=0.2)
            await give_up_silent_writer(cluster, world, [other])
            await channel.flush()
    assert [writer for writer, _, _ in cluster.opens][-1] == other
    assert ids(cluster) == [0, 1]


@pytest.mark.slow
async def test_a_channel_that_a_writer_never_opens_is_opened_again(cluster: Cluster) -> None:
    world = NoPauses()
    world.look.set()
    cluster.knobs.mute = 1
    async with table_of(cluster, world) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 1))
    assert ids(cluster) == [0]
    assert 20 <= world.looks < 100, "gRPC ended the stream, not the SDK"


async def test_a_server_says_how_long_to_wait(cluster: Cluster) -> None:
    world = NoPauses()
    cluster.knobs.refuse_open = [error(err.CODE_UNAVAILABLE, retry_after_ms=700), error(err.CODE_OVERLOADED)]
    async with table_of(cluster, world) as table, table.channel("c"):
        pass
    assert world.pauses == [0.7, 0.0]


@pytest.mark.slow
async def test_pauses_double_to_one_second_and_begin_anew_after_progress(cluster: Cluster) -> None:
    world = NoPauses(drawn=0.5)
    cluster.knobs.refuse_open = [error(err.CODE_UNAVAILABLE)] * 6
    async with table_of(cluster, world) as table, table.channel("c") as channel:
        assert world.pauses == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]
        await channel.upsert(rows(0, 1))
        await channel.flush()
        cluster.knobs.ended = [error(err.CODE_REWOUND)]
        await channel.upsert(rows(1, 2))
    assert world.pauses[-1] == 0.05


# --- levels, bounds, time ---


async def test_a_wait_that_ends_says_what_is_not_committed(cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 7))
        await channel.flush("received")
        with pytest.raises(headgate.NotCommittedError, match="up to offset 7") as missed:
            await channel.flush("durable", timeout=0.05)
        assert (missed.value.offset, missed.value.level) == (7, "durable")
        assert missed.value.acks == headgate.Acks(received=7, durable=0, queryable=0)
        cluster.knobs.hold_checkpoints = False
        await channel.upsert(rows(7, 8))
        await channel.flush("durable")


async def test_memory_is_bounded_and_a_call_waits_for_room(cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster, in_flight_bytes=SMALL_BYTES) as table:
        channel = await table.channel("c").open()
        while channel.runner.channel.state.has_room(10_000):
            await channel.upsert(rows(channel.offset, channel.offset + 500))
        with pytest.raises(headgate.NotCommittedError, match="no room for more rows"):
            await channel.upsert(rows(0, 500), timeout=0.1)
        assert channel.runner.channel.state.bytes_in_flight <= SMALL_BYTES
        taken = channel.offset
        assert 500 <= taken < 10_000
        waiting = asyncio.create_task(channel.upsert(rows(taken, taken + 500)))
        await asyncio.sleep(0)
        assert not waiting.done()
        cluster.knobs.hold_checkpoints = False
        cluster.knobs.ended = [error(err.CODE_REWOUND)]
        await cluster.stop_writer(cluster.writers[0])
        assert (await waiting).offset == taken + 500
        await channel.flush()
    assert ids(cluster) == list(range(taken + 500))


async def test_a_call_behind_one_that_waits_for_room_has_its_own_timeout(cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    async with asyncio.timeout(30), table_of(cluster, in_flight_bytes=1000) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 100))
        first = asyncio.create_task(channel.upsert(rows(100, 200)))
        await asyncio.sleep(0)
        with pytest.raises(headgate.NotCommittedError, match="no room for more rows after offset 100"):
            await channel.upsert(rows(200, 300), timeout=0.05)
        assert not first.done()
        first.cancel()
        with pytest.raises(headgate.NotCommittedError):
            await channel.upsert(rows(100, 101), timeout=0.05)
        cluster.knobs.hold_checkpoints = False
        await cluster.stop_writer(cluster.writers[0])
        assert (await channel.upsert(rows(100, 101))).offset == 101


async def test_the_writer_may_allow_less(cluster: Cluster) -> None:
    cluster.knobs.max_in_flight_bytes = 2000
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 10))
        with pytest.raises(headgate.NotCommittedError):
            await channel.upsert(rows(10, 1000), timeout=0.05)


async def test_half_full_asks_for_a_checkpoint_without_a_flush(cluster: Cluster) -> None:
    cluster.knobs.commit_every = 1000
    async with table_of(cluster, in_flight_bytes=SMALL_BYTES) as table, table.channel("c") as channel:
        for start in range(0, 20_000, 500):
            await channel.upsert(rows(start, start + 500))
        assert cluster.flushes > 3
    assert ids(cluster) == list(range(20_000))


async def test_a_cluster_that_is_not_there_is_named_after_the_timeout() -> None:
    async with aio.connect("127.0.0.1:1", timeout=0.3) as hg:
        with pytest.raises(headgate.UnavailableError, match=r"127\.0\.0\.1:1"):
            await hg.table("t")


@pytest.mark.slow
async def test_a_channel_that_no_writer_takes_is_unavailable_after_the_timeout(cluster: Cluster) -> None:
    cluster.listed = []
    async with table_of(cluster, timeout=2.0) as table:
        while True:
            with pytest.raises(headgate.UnavailableError) as refused:
                await table.channel("c").open()
            if "no writer takes channels now" in str(refused.value):  # and not that no answer came in its time
                break


# --- offsets, ends, the wire ---


async def test_own_offsets_travel_with_their_rows_and_come_back_after_a_restart(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        async with table.channel("c") as channel:
            assert (await channel.upsert(rows(0, 3), offset=1000)).offset == 1000
            await channel.flush("received")
            assert (await channel.upsert([], offset=1500)).offset == 1500
            await channel.skip(1700)
            with pytest.raises(headgate.InvalidArgumentError, match="not above 1700"):
                await channel.upsert(rows(3, 4), offset=1700)
            assert (await channel.upsert(rows(3, 5))).offset == 1702
        async with table.channel("c") as again:
            assert again.committed_offset == 1702
            assert again.acks == headgate.Acks(1702, 1702, 1702)
    assert ids(cluster) == list(range(5))
    assert [offset for _, offset, _, _ in cluster.tables["t"].log] == [1000, 1500, 1700, 1702]


async def test_a_large_table_is_cut_and_its_receipt_is_that_of_the_last_row(cluster: Cluster) -> None:
    data = pa.table({"id": pa.array(range(300_000)), "note": pa.array(["n" * 20] * 300_000)})
    async with table_of(cluster, compression="lz4") as table, table.channel("c") as channel:
        receipt = await channel.upsert(data)
        assert receipt.offset == 300_000
        await receipt.wait("queryable")
    assert len(cluster.batches) > 5
    assert ids(cluster) == list(range(300_000))


async def test_the_schema_travels_only_when_it_changes(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for step in (channel.upsert, channel.upsert, channel.delete, channel.upsert):
            await step(rows(0, 1))
            await channel.flush("received")
    assert [bool(batch.schema) for batch in cluster.batches] == [True, False, True, True]
    assert [batch.operation for batch in cluster.batches] == [1, 1, 2, 1]


async def test_mixed_rows_travel_in_their_order(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.write([{"op": "upsert", "id": 1, "note": "n"}, {"op": "delete", "id": 1}])
        with pytest.raises(headgate.InvalidArgumentError, match="is a column of the table"):
            await channel.write([], operation_column="note")
    (batch,) = cluster.batches
    assert (batch.operation, batch.operation_column) == (ingest_pb2.OPERATION_MIXED, "op")
    assert cluster.tables["t"].rows == [{"op": "upsert", "id": 1, "note": "n"}, {"op": "delete", "id": 1, "note": None}]


async def test_leaving_by_an_exception_does_not_wait(cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster) as table:
        with contextlib.suppress(ZeroDivisionError):
            async with table.channel("c") as channel:
                await channel.upsert(rows(0, 1))
                raise ZeroDivisionError
        with pytest.raises(headgate.ClosedError):
            await channel.flush()
        await channel.close()


async def test_a_channel_that_nobody_opened_says_so(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        with pytest.raises(headgate.InvalidArgumentError, match="async with"):
            await table.channel("c").upsert(rows(0, 1))
        for name in ("", "a\nb", "x" * 256):
            with pytest.raises(headgate.InvalidArgumentError, match="cannot name a channel"):
                table.channel(name)


async def test_a_table_that_went_away_is_named(cluster: Cluster) -> None:
    async with table_of(cluster) as table:
        cluster.tables.clear()
        with pytest.raises(headgate.TableNotFoundError):
            await table.channel("c").open()


async def test_a_hundred_channels_share_few_connections(cluster: Cluster) -> None:
    async with table_of(cluster) as table, contextlib.AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(table.channel(f"c{number}")) for number in range(100)]
        async with asyncio.TaskGroup() as tasks:
            for number, channel in enumerate(channels):
                tasks.create_task(channel.upsert(rows(number, number + 1)))
        for channel in channels:
            await channel.flush()
    assert sorted(ids(cluster)) == list(range(100))

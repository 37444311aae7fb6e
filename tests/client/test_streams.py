"""Channels over real gRPC against a scripted cluster: exactly once through breaks, CH2, levels, bounds, who may go on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

import headgate
from headgate import aio
from headgate.encoding import SMALL_BYTES
from headgate.system import System
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2
from support.cutting_proxy import cutting_proxy
from support.scripted_service import Answer, Cluster, Row, error, scripted_cluster

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])


@dataclass
class NoPauses:
    """Backoff takes no time; the watch over silent streams looks when told to. Draws are the same each time."""

    drawn: float = 0.0
    pauses: list[float] = field(default_factory=list)
    look: asyncio.Event = field(default_factory=asyncio.Event)

    async def sleep(self, seconds: float) -> None:
        if seconds == 3.0:
            await self.look.wait()
            await asyncio.sleep(0.01)
        else:
            self.pauses.append(seconds)
            await asyncio.sleep(0)

    def random(self) -> float:
        return self.drawn


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with scripted_cluster(writers=2) as cluster:
        yield cluster


@contextlib.asynccontextmanager
async def table_of(cluster: Cluster, world: NoPauses | None = None, **options: Any) -> AsyncIterator[aio.Table]:
    world = world or NoPauses()
    async with aio.connect(cluster.coordinator, system=System(world, world), **{"timeout": 20, **options}) as hg:
        yield await hg.create_table("t", SCHEMA, key="id", exist_ok=True)


def rows(start: int, stop: int) -> list[Row]:
    return [{"id": number, "note": "n"} for number in range(start, stop)]


def ids(cluster: Cluster) -> list[int]:
    return [row["id"] for row in cluster.tables["t"].rows]


def refuse_id(number: int) -> Callable[[Row], "err.Code.ValueType | None"]:
    return lambda row: err.CODE_NULL_KEY if row["id"] == number else None


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
            world.look.set()
            with pytest.raises(headgate.NotCommittedError):
                await channel.flush("received", timeout=0.2)
            cluster.listed = [other]
            await channel.flush()
    assert [writer for writer, _, _ in cluster.opens][-1] == other
    assert ids(cluster) == [0, 1]


async def test_a_server_says_how_long_to_wait(cluster: Cluster) -> None:
    world = NoPauses()
    cluster.knobs.refuse_open = [error(err.CODE_UNAVAILABLE, retry_after_ms=700), error(err.CODE_OVERLOADED)]
    async with table_of(cluster, world) as table, table.channel("c"):
        pass
    assert world.pauses == [0.7, 0.0]


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


# --- refused batches (rule CH2) ---


async def test_a_refused_batch_raises_until_it_is_corrected_and_keeps_its_place(cluster: Cluster) -> None:
    cluster.knobs.refuse = refuse_id(101)
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 3))
        await channel.upsert(rows(101, 103))
        await channel.upsert(rows(3, 6))
        with pytest.raises(headgate.BatchRefusedError, match="is refused") as refused:
            await channel.flush()
        said = refused.value
        assert (said.reason, said.after, said.offset) == ("NULL_KEY", 3, 5)
        assert said.rows.to_pylist() == rows(101, 103)
        for _ in range(2):
            with pytest.raises(headgate.BatchRefusedError):
                await channel.upsert(rows(6, 9))
        assert channel.offset == 8
        await channel.delete([{"id": 50}, {"id": 51}, {"id": 52}], offset=said.offset)
        await channel.upsert(rows(6, 9))
    assert ids(cluster) == [0, 1, 2, 50, 51, 52, 3, 4, 5, 6, 7, 8]
    assert cluster.tables["t"].channels["c"].committed == 11


async def test_rows_of_a_slice_that_is_set_aside_are_told_apart_from_the_others_of_their_batch(cluster: Cluster) -> None:
    cluster.knobs.refuse = lambda row: err.CODE_SLICE_SET_ASIDE if row["id"] % 5 == 0 else None
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 12))
        await channel.upsert(rows(12, 14))
        with pytest.raises(headgate.SliceSetAsideError) as told:
            await channel.flush()
        refused = told.value
        assert refused.reason == "SLICE_SET_ASIDE"
        assert [row["id"] for row in refused.set_aside.to_pylist()] == [0, 5, 10]
        await channel.upsert(refused.others, offset=refused.offset)
        await channel.flush()
        assert channel.acks.queryable == 14
    assert ids(cluster) == [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13]


async def test_a_refused_batch_can_be_given_up(cluster: Cluster) -> None:
    cluster.knobs.refuse = refuse_id(1)
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(4):
            await channel.upsert(rows(number, number + 1))
        with pytest.raises(headgate.BatchRefusedError) as refused:
            await channel.flush()
        assert refused.value.rows.to_pylist() == rows(1, 2)
        await channel.skip()
        await channel.flush()
        assert channel.acks.queryable == 4
    assert ids(cluster) == [0, 2, 3]


async def test_behind_a_refusal_the_schema_is_said_again(cluster: Cluster) -> None:
    """A server need not take over the schema of a batch that it refused."""
    cluster.knobs.refuse = refuse_id(1)
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(1, 2))
        with pytest.raises(headgate.BatchRefusedError):
            await channel.flush()
        await channel.upsert(rows(2, 3), offset=1)
    assert [bool(batch.schema) for batch in cluster.batches] == [True, True]


async def test_a_corrected_batch_may_be_refused_again(cluster: Cluster) -> None:
    cluster.knobs.refuse = lambda row: err.CODE_SCHEMA if row["id"] < 0 else None
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(-1, 0))
        await channel.upsert(rows(1, 2))
        for worse in (-2, -3):
            with pytest.raises(headgate.BatchRefusedError):
                await channel.flush()
            await channel.upsert(rows(worse, worse + 1), offset=1)
        with pytest.raises(headgate.BatchRefusedError):
            await channel.flush()
        await channel.upsert(rows(0, 1), offset=1)
    assert ids(cluster) == [0, 1]


async def test_a_refusal_survives_a_break(cluster: Cluster) -> None:
    cluster.knobs.refuse = refuse_id(1)
    async with table_of(cluster) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 1))
        await channel.upsert(rows(1, 2))
        with pytest.raises(headgate.BatchRefusedError):
            await channel.flush()
        await cluster.stop_writer(cluster.writers[0])
        while len(cluster.opens) < 2:
            await asyncio.sleep(0.001)
        with pytest.raises(headgate.BatchRefusedError):
            await channel.flush()
        await channel.upsert(rows(5, 6), offset=2)
    assert ids(cluster) == [0, 5]


async def test_a_refused_batch_raises_at_the_end_of_the_block_too(cluster: Cluster) -> None:
    cluster.knobs.refuse = refuse_id(0)
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        await channel.upsert(rows(0, 1))
        with pytest.raises(headgate.BatchRefusedError):
            await channel.close()
        with pytest.raises(headgate.ClosedError):
            await channel.upsert(rows(1, 2))


async def test_rows_behind_a_refused_one_cannot_be_waited_for_and_those_before_it_can(cluster: Cluster) -> None:
    cluster.knobs.refuse = refuse_id(1)
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster) as table:
        channel = await table.channel("c").open()
        before = await channel.upsert(rows(0, 1))
        await before.wait("received")
        refused = await channel.upsert(rows(1, 2))
        with pytest.raises(headgate.BatchRefusedError):
            await refused.wait("durable")
        with pytest.raises(headgate.NotCommittedError):
            await before.wait("durable", timeout=0.05)


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


async def test_a_channel_that_no_writer_takes_is_unavailable_after_the_timeout(cluster: Cluster) -> None:
    cluster.listed = []
    async with table_of(cluster, timeout=0.3) as table:
        with pytest.raises(headgate.UnavailableError, match="no writer takes channels now"):
            await table.channel("c").open()


# --- who may go on, and what is believed ---


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

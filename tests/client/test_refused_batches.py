"""A batch that a writer refuses stops its channel until it is corrected or given up (rule CH2), through breaks and to the end."""

import asyncio

import pyarrow as pa
import pytest

import headgate
from headgate.acks import Acks
from headgate.channel_state import ChannelState
from headgate.entries import Control, EncodedRows, Entry, Pause
from headgate_proto.api.v1 import errors_pb2 as err
from support.row_formats import FORMAT
from support.scripted_service import Cluster
from support.scripted_table import ids, refuse_id, rows, table_of


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


async def test_a_refused_batch_is_corrected_while_it_fills_the_buffer(cluster: Cluster) -> None:
    cluster.knobs.refuse = refuse_id(0)
    async with table_of(cluster, in_flight_bytes=1_000) as table, table.channel("c") as channel:
        await channel.upsert(rows(0, 100))
        with pytest.raises(headgate.BatchRefusedError) as refused:
            await channel.flush()
        assert not channel.runner.channel.state.has_room(1)
        await channel.upsert(rows(1, 102), offset=refused.value.offset)
        await channel.flush()
        assert channel.runner.channel.state.bytes_in_flight == 0
    assert ids(cluster) == [*range(1, 102)]


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


@pytest.mark.parametrize("number", [5, None], ids=["corrected", "skipped"])
async def test_rows_that_were_received_before_a_refused_batch_are_there_after_a_break(
    cluster: Cluster, number: int | None
) -> None:
    cluster.knobs.refuse = refuse_id(1)
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster) as table, table.channel("c") as channel:
        before = await channel.upsert(rows(0, 1))
        await before.wait("received")
        refused = await channel.upsert(rows(1, 2))
        with pytest.raises(headgate.BatchRefusedError):
            await refused.wait("received")
        await cluster.stop_writer(cluster.writers[0])
        while len(cluster.opens) < 2:
            await asyncio.sleep(0.001)
        cluster.knobs.hold_checkpoints = False
        if number is None:
            await channel.skip()
        else:
            await channel.upsert(rows(number, number + 1), offset=2)
        await channel.flush()
    assert ids(cluster) == ([0] if number is None else [0, number])


def test_a_skip_between_two_streams_keeps_the_rows_before_the_refused_batch() -> None:
    state = ChannelState(1 << 20)
    state.stream_opened(1, 0, 0)
    for content in (b"first", b"refused"):
        state.append_rows(FORMAT, EncodedRows(1, len(content), content, False))
    for _ in range(2):
        assert isinstance(state.next_message(), Entry)
    state.batch_refused(2, 1, err.Error(code=err.CODE_NULL_KEY, action=err.ACTION_FIX_CALL))
    state.stream_ended()
    assert state.skip(None) == 2
    state.stream_opened(1, 0, 0)
    sent = state.next_message()
    assert isinstance(sent, Entry)
    assert [piece.content for piece in sent.pieces] == [b"first"]
    state.rows_acked(Acks(1, 1, 1))
    behind = state.next_message()
    assert isinstance(behind, Entry)
    assert (behind.after, behind.offset, list(behind.pieces)) == (1, 2, [])


def flushed(*batches: bytes) -> ChannelState:
    """Open, with a batch of one row each sent, of one call or of two, and a checkpoint asked for."""
    state = ChannelState(1 << 20)
    state.stream_opened(1, 0, 0)
    for content in batches:
        state.append_rows(FORMAT, EncodedRows(1, len(content), content, True, 1))
    state.request_flush()
    assert isinstance(state.next_message(), Entry)
    assert state.next_message() is Control.FLUSH
    return state


def sent(state: ChannelState) -> list[bytes | pa.Buffer | Control | Pause]:
    """What the channel sends now, the rows of each message as one; all of it is received."""
    found: list[bytes | pa.Buffer | Control | Pause] = []
    while (message := state.next_message()) is not None:
        if isinstance(message, Entry):
            found += [piece.content for piece in message.pieces]
            state.rows_acked(Acks(message.offset, 0, 0))
        else:
            found.append(message)
    return found


def test_a_flush_asks_for_a_checkpoint_of_the_corrected_rows() -> None:
    state = flushed(b"refused")
    state.batch_refused(1, 0, err.Error(code=err.CODE_NULL_KEY, action=err.ACTION_FIX_CALL))
    assert sent(state) == []
    state.append_rows(FORMAT, EncodedRows(1, 6, b"better", False), 1)
    state.request_flush()
    assert sent(state) == [b"better", Control.FLUSH]


def test_a_flush_asks_for_a_checkpoint_of_rows_that_a_writer_took_later() -> None:
    state = flushed(b"refused for now")
    state.batch_refused(1, 0, err.Error(code=err.CODE_OVERLOADED, action=err.ACTION_RETRY, retry_after_ms=500))
    assert sent(state) == [Pause(0.5), b"refused for now", Control.FLUSH]


def test_a_flush_asks_for_a_checkpoint_of_calls_that_are_sent_one_by_one_after_a_refusal() -> None:
    state = flushed(b"one", b"other")
    state.batch_refused(2, 0, err.Error(code=err.CODE_NULL_KEY, action=err.ACTION_FIX_CALL))
    assert sent(state) == [b"one", b"other", Control.FLUSH]


def test_a_checkpoint_of_rows_before_a_refused_batch_is_not_asked_for_again() -> None:
    state = flushed(b"good")
    state.append_rows(FORMAT, EncodedRows(1, 7, b"refused", False))
    assert isinstance(state.next_message(), Entry)
    state.rows_acked(Acks(1, 0, 0))
    state.batch_refused(2, 1, err.Error(code=err.CODE_NULL_KEY, action=err.ACTION_FIX_CALL))
    state.append_rows(FORMAT, EncodedRows(1, 6, b"better", False), 2)
    assert sent(state) == [b"better"]


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

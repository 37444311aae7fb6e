"""Calls with one row each: together in few messages, with the order, offsets, errors and limits of calls one by one."""

import asyncio
import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headgate
from headgate import aio
from headgate.single_rows import LONGEST_SECONDS, MESSAGE_SECONDS, MOST_ROWS, SINGLE_ROW_SECONDS, Pace
from headgate_proto.api.v1 import errors_pb2 as err
from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.limits import VALUE_BYTES
from support.processes import READY_S
from support.scripted_service import Cluster, cluster_in_thread, scripted_cluster
from support.scripted_table import SCHEMA, ids, refuse_id, rows, table_of
from support.strategies import effort
from support.waiting import wait_until


@dataclasses.dataclass
class Event:
    id: int
    note: str = "n"


class Pair(NamedTuple):
    id: int
    note: str


FORMS: dict[str, Callable[[int], object]] = {
    "dict": lambda number: {"id": number, "note": "n"},
    "list": lambda number: [{"id": number, "note": "n"}],
    "tuple": lambda number: (number, "n"),
    "NamedTuple": lambda number: Pair(number, "n"),
    "dataclass": Event,
    "RecordBatch": lambda number: arrow_row(number),
    "Table": lambda number: pa.Table.from_batches([arrow_row(number)]),
    "Table with empty chunks": lambda number: pa.Table.from_batches([arrow_row(-1)[:0], arrow_row(number), arrow_row(-1)[:0]]),
}


def arrow_row(number: int | None, note: str = "n") -> pa.RecordBatch:
    """The second of three rows: what programs send of Arrow data is a slice of more."""
    return pa.record_batch([pa.array([-1, number, -1], pa.int64()), pa.array(["", note, ""])], schema=SCHEMA).slice(1, 1)


async def test_rows_one_at_a_time_share_messages_and_keep_their_order_and_offsets(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(3_000):
            receipt = await channel.upsert(FORMS[[*FORMS][number % len(FORMS)]](number))
            assert receipt.offset == channel.offset == number + 1
        await channel.flush()
        assert channel.committed_offset == 3_000
    assert cluster.tables["t"].rows == rows(0, 3_000)
    assert len(cluster.batches) < 50


@pytest.mark.parametrize("form", ["RecordBatch", "Table", "Table with empty chunks"])
async def test_rows_of_arrow_data_share_messages_too(form: str, cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(500):
            receipt = await channel.upsert(FORMS[form](number), offset=2 * number + 2)
            assert receipt.offset == channel.offset == 2 * number + 2
        assert channel.runner.channel.single_rows.offsets
        await channel.flush()
    assert cluster.tables["t"].rows == rows(0, 500)
    assert len(cluster.batches) < 50


async def test_a_row_of_arrow_data_is_sent_as_it_was_when_its_call_returned(cluster: Cluster) -> None:
    numbers = np.array([0], np.int64)
    reused = pa.record_batch([pa.array(numbers), pa.array(["n"])], schema=SCHEMA)
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(100):
            numbers[0] = number
            assert reused.column(0).to_pylist() == [number]
            await channel.upsert(reused)
        numbers[0] = -1
    assert ids(cluster) == list(range(100))


async def test_a_row_of_arrow_data_that_does_not_fit_raises_at_its_call_and_large_ones_keep_their_place(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(20):
            await channel.upsert(arrow_row(number, "x" * (200_000 if number % 3 == 1 else 1)))
            with pytest.raises(headgate.RowError, match="has no value in 'id'"):
                await channel.upsert(arrow_row(None))
            with pytest.raises(headgate.TooLargeError):
                await channel.upsert(arrow_row(number, "x" * (VALUE_BYTES + 1)))
            with pytest.raises(headgate.SchemaError):
                await channel.upsert(pa.record_batch({"number": [number]}))
            assert channel.offset == number + 1
    assert ids(cluster) == list(range(20))


async def test_who_waits_until_rows_are_received_does_not_wait_for_those_of_other_channels(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "delay", lambda *_: 3600.0)
    async with table_of(cluster) as table, table.channel("c") as channel, asyncio.timeout(READY_S):

        async def sent(number: int) -> None:
            await (await channel.upsert({"id": number, "note": "n"})).wait("received")

        for first in (0, 50):
            await asyncio.gather(*(sent(number) for number in range(first, first + 50)))
        assert len(cluster.batches) < 50, "rows for which others wait share messages"


async def test_a_row_is_sent_without_another_call(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        receipt = await channel.upsert({"id": 1, "note": "n"})
        await receipt.wait("durable", timeout=20)
    assert ids(cluster) == [1]


async def test_a_row_that_does_not_fit_raises_at_its_call_and_takes_no_other_with_it(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(10):
            await channel.upsert({"id": number, "note": "n"})
            for wrong in ({"id": "x", "note": "n"}, (2**63, "n"), Event(number, note=b"bytes"), {"note": "n"}, (1, "n", 2)):  # type: ignore[arg-type]
                with pytest.raises(headgate.RowError):
                    await channel.upsert(wrong)
            assert channel.offset == number + 1
        with pytest.raises(headgate.InvalidArgumentError, match="10 is not above 10"):
            await channel.upsert({"id": 10, "note": "n"}, offset=10)
    assert ids(cluster) == list(range(10))


@pytest.mark.parametrize("form", ["tuple", "RecordBatch"])
@pytest.mark.parametrize("bad", [0, 1, 500, 999])
async def test_a_row_that_a_writer_refuses_is_the_only_one_refused_wherever_it_stands(
    cluster: Cluster, bad: int, form: str
) -> None:
    cluster.knobs.refuse = refuse_id(bad)
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(1_000):
            await channel.upsert(FORMS[form](number))
        with pytest.raises(headgate.BatchRefusedError) as told:
            await channel.flush()
        refused = told.value
        assert (refused.after, refused.offset, refused.rows.to_pylist()) == (bad, bad + 1, rows(bad, bad + 1))
        with pytest.raises(headgate.BatchRefusedError):
            await channel.upsert((1_000, "n"))
        assert channel.offset == 1_000
        await channel.upsert((5_000, "n"), offset=refused.offset)
        await channel.upsert((1_000, "n"))
    assert ids(cluster) == [*range(bad), 5_000, *range(bad + 1, 1_001)]


async def test_several_refused_rows_are_told_one_after_the_other(cluster: Cluster) -> None:
    cluster.knobs.refuse = lambda row: err.CODE_NULL_KEY if row["id"] % 100 == 7 else None
    skipped = []
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(400):
            await channel.upsert((number, "n"), offset=10 * number + 1)
        while channel.acks.queryable < channel.offset:
            try:
                await channel.flush()
            except headgate.BatchRefusedError as refused:
                skipped.append(refused.offset)
                await channel.skip()
    assert skipped == [71, 1_071, 2_071, 3_071]
    assert ids(cluster) == [number for number in range(400) if number % 100 != 7]


@pytest.mark.parametrize("commit_before_break", [False, True])
async def test_single_rows_are_committed_once_through_breaks(cluster: Cluster, commit_before_break: bool) -> None:
    cluster.knobs.break_after = [1, 0, 2, 1, 0, 3]
    cluster.knobs.commit_before_break = commit_before_break
    cluster.knobs.lose_opened = 1
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(600):
            await channel.upsert((number, "n"))
            if number % 50 == 49:
                await channel.flush("received")
            elif number % 20 == 0:
                await asyncio.sleep(0.006)
    assert ids(cluster) == list(range(600))
    assert not cluster.knobs.break_after


@pytest.mark.parametrize("row", [lambda number, note: (number, note), arrow_row], ids=["tuple", "RecordBatch"])
async def test_rows_that_are_not_sent_yet_count_against_the_memory(row: Callable[[int, str], object], cluster: Cluster) -> None:
    cluster.knobs.hold_checkpoints = True
    async with table_of(cluster, in_flight_bytes=20_000) as table:
        channel = await table.channel("c").open()
        await channel.upsert((0, "x" * 10))
        for number in range(1, 1_000):
            try:
                await channel.upsert(row(number, "x" * 100), timeout=0.1)
            except headgate.NotCommittedError:
                break
        taken = channel.offset
        assert 20 < taken < 200
        assert channel.runner.channel.state.bytes_in_flight < 22_000
        cluster.knobs.hold_checkpoints = False
        cluster.knobs.ended = [ingest_error()]
        await cluster.stop_writer(cluster.writers[0])
        await channel.upsert((taken, "x"))
        await channel.close()
    assert ids(cluster) == list(range(taken + 1))


def ingest_error() -> err.Error:
    return err.Error(code=err.CODE_REWOUND, action=err.ACTION_RESUME)


async def test_deletes_upserts_and_mixed_rows_keep_their_order(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(0, 30, 3):
            await channel.upsert((number, "n"))
            await channel.delete((number, "n"))
            await channel.write({"op": "upsert", "id": number + 2, "note": "m"})
    operations = [(operation, [row["id"] for row in each]) for _, _, operation, each in cluster.tables["t"].log]
    flat = [(operation, number) for operation, numbers in operations for number in numbers]
    kinds = (ingest_pb2.OPERATION_UPSERT, ingest_pb2.OPERATION_DELETE, ingest_pb2.OPERATION_MIXED)
    assert flat == [(kind, number + add) for number in range(0, 30, 3) for kind, add in zip(kinds, (0, 0, 2), strict=True)]


def test_the_rows_of_many_channels_become_messages_one_channel_after_the_other_and_soon() -> None:
    pace = Pace()
    delays = [pace.delay(10.0) for _ in range(1_000)]
    assert delays[0] == pytest.approx(SINGLE_ROW_SECONDS)
    assert [after - before for before, after in pairwise(delays[:50])] == pytest.approx([MESSAGE_SECONDS] * 49)
    assert max(delays) == pytest.approx(LONGEST_SECONDS)
    assert pace.delay(10.2) == pytest.approx(SINGLE_ROW_SECONDS)


# --- any calls, one at a time and as batches ---

_steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["upsert", "delete"]), st.sampled_from([*FORMS]), st.integers(1, 40), st.integers(0, 3)),
        st.tuples(st.just("batch"), st.just("dict"), st.integers(2, 9), st.just(0)),
        st.tuples(st.sampled_from(["pause", "flush", "turn"]), st.just(""), st.just(0), st.just(0)),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(_steps, st.lists(st.integers(0, 3), max_size=4), st.booleans())
@effort(40)
def test_any_calls_one_at_a_time_commit_what_the_same_rows_in_order_are(
    steps: list[tuple[str, str, int, int]], breaks: list[int], commits: bool
) -> None:
    async def run() -> None:
        async with scripted_cluster(writers=2) as cluster:
            cluster.knobs.break_after, cluster.knobs.commit_before_break = breaks, commits
            wanted: list[tuple[int, int]] = []
            offset = 0
            async with table_of(cluster) as table, table.channel("c") as channel:
                for step, form, count, gap in steps:
                    numbers = range(len(wanted), len(wanted) + count)
                    if step == "batch":
                        await channel.upsert([FORMS[form](number) for number in numbers])
                        offset += count
                    elif step in ("upsert", "delete"):
                        for number in numbers:
                            offset += 1 + gap
                            call = channel.upsert if step == "upsert" else channel.delete
                            receipt = await call(FORMS[form](number), offset if gap else None)
                            assert receipt.offset == channel.offset == offset
                    elif step == "flush":
                        await channel.flush()
                        assert channel.committed_offset == offset
                    else:
                        await asyncio.sleep(0.007 if step == "pause" else 0)
                    kind = ingest_pb2.OPERATION_DELETE if step == "delete" else ingest_pb2.OPERATION_UPSERT
                    wanted += [(kind, number) for number in numbers]
            log = cluster.tables["t"].log if wanted else []
            assert [(operation, row["id"]) for _, _, operation, each in log for row in each] == wanted
            assert not wanted or cluster.tables["t"].channels["c"].committed == offset

    asyncio.run(run())


# --- the blocking face ---


@contextlib.contextmanager
def blocking_channel(cluster: Cluster) -> Iterator[headgate.Channel]:
    with (
        headgate.connect(cluster.coordinator) as hg,
        hg.create_table("t", SCHEMA, key="id", exist_ok=True).channel("c") as channel,
    ):
        yield channel


def test_a_blocking_program_sends_single_rows_in_order_and_leaving_it_sends_the_rest() -> None:
    with cluster_in_thread(writers=2) as cluster:
        with blocking_channel(cluster) as channel:
            for number in range(3 * MOST_ROWS + 7):
                assert channel.upsert((number, "n")).offset == number + 1
        assert ids(cluster) == list(range(3 * MOST_ROWS + 7))
        assert len(cluster.batches) < 200


def test_a_single_row_of_a_blocking_program_arrives_while_it_does_nothing() -> None:
    with cluster_in_thread(writers=2) as cluster, blocking_channel(cluster) as channel:
        channel.upsert({"id": 7, "note": "n"})
        wait_until("the row arrives", lambda: "t" in cluster.tables and ids(cluster) == [7])


def test_threads_that_share_a_channel_lose_no_row_and_each_keeps_its_order() -> None:
    offsets: dict[int, list[int]] = {}

    def work(channel: headgate.Channel, thread: int) -> None:
        rows_of = range(thread * 10_000, thread * 10_000 + 3_000)
        offsets[thread] = [channel.upsert((number, "n")).offset for number in rows_of]

    with cluster_in_thread(writers=2) as cluster:
        with blocking_channel(cluster) as channel:
            threads = [threading.Thread(target=work, args=(channel, thread)) for thread in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        at = {offset: number * 10_000 + row for number, taken in offsets.items() for row, offset in enumerate(taken)}
        assert sorted(at) == list(range(1, 12_001))
        assert ids(cluster) == [at[offset] for offset in range(1, 12_001)]


async def test_a_program_that_awaits_nothing_else_lets_its_rows_be_sent(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        number = 0
        while channel.acks.received == 0:
            assert number < 200 * MOST_ROWS
            await channel.upsert((number, "n"))
            number += 1


async def test_an_unexpected_failure_of_the_conversion_ends_the_channel_and_loses_nothing_silently(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no memory")

    async with table_of(cluster) as table:
        channel: aio.Channel = await table.channel("c").open()
        monkeypatch.setattr(channel.formats.upsert.reader, "batch", broken)
        await channel.upsert((1, "n"))
        with pytest.raises(headgate.InternalError, match="no memory"):
            await channel.flush()
        with pytest.raises(headgate.InternalError, match="no memory"):
            await channel.upsert((2, "n"))


@pytest.mark.parametrize("call", ["batch", "delete", "skip"])
async def test_no_later_call_gets_the_offsets_of_single_rows_that_were_lost(
    call: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no memory")

    async with table_of(cluster) as table:
        channel: aio.Channel = await table.channel("c").open()
        await channel.upsert((0, "n"))
        await channel.flush()
        monkeypatch.setattr(channel.formats.upsert.reader, "batch", broken)
        for number in range(1, 10):
            await channel.upsert((number, "n"))
        later = [(number, "n") for number in range(100, 110)]
        calls = {
            "batch": lambda: channel.upsert(later),
            "delete": lambda: channel.delete(later),
            "skip": lambda: channel.skip(10),
        }
        with pytest.raises(headgate.InternalError, match="no memory"):
            await calls[call]()
        with pytest.raises(headgate.InternalError, match="no memory"):
            await channel.close()
        assert (await table.channel("c").open()).committed_offset == 1
    assert ids(cluster) == [0]


async def test_a_single_row_never_overtakes_a_call_that_waits_for_a_conversion(cluster: Cluster) -> None:
    many = pa.table({"id": list(range(1_000, 300_000)), "note": ["n"] * 299_000})

    async with table_of(cluster) as table, table.channel("c") as channel:

        async def send_many_and_one() -> int:
            await channel.upsert(many)
            return (await channel.upsert((1, "new"))).offset

        first = asyncio.create_task(send_many_and_one())
        await asyncio.sleep(0)
        second = await channel.upsert((1, "old"))
        assert second.offset < await first
    assert [row["note"] for row in cluster.tables["t"].rows if row["id"] == 1] == ["old", "new"]


async def test_calls_of_several_coroutines_keep_their_order(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:

        async def send(*numbers: int) -> list[int]:
            return [(await channel.upsert((number, "n"))).offset for number in numbers]

        assert await asyncio.gather(send(1, 4), send(2), send(3)) == [[1, 4], [2], [3]]
    assert ids(cluster) == [1, 2, 3, 4]


async def test_a_cancelled_call_of_one_row_has_buffered_nothing(cluster: Cluster) -> None:
    async with table_of(cluster) as table, table.channel("c") as channel:
        for number in range(200):
            call = asyncio.create_task(channel.upsert((number, "n")))
            await asyncio.sleep(0)
            if call.cancel():
                with contextlib.suppress(asyncio.CancelledError):
                    await call
                    pytest.fail("the call was cancelled and returned")
                await channel.upsert((number, "n"))
            await asyncio.sleep(0.006 if number % 10 == 0 else 0)
    assert ids(cluster) == list(range(200))


def test_the_offset_of_a_channel_never_goes_back_while_rows_are_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    askers: list[threading.Thread] = []
    with cluster_in_thread(writers=1) as cluster, blocking_channel(cluster) as channel:
        reader = channel._core.formats.upsert.reader
        convert = reader.batch

        def asked_meanwhile(*arguments: Any) -> pa.RecordBatch:
            askers.append(threading.Thread(target=lambda: seen.append(channel.offset)))
            askers[-1].start()
            askers[-1].join(0.1)
            return convert(*arguments)

        monkeypatch.setattr(reader, "batch", asked_meanwhile)
        for number in range(3):
            channel.upsert((number, "n"))
        channel.flush()
        for asker in askers:
            asker.join()
        assert seen == [3] * len(askers)
        assert askers

"""A client's stream against a running writer, from open to end."""

import threading
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.api.v1.parts_pb2 import Part
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_proto.serialized import PART_BYTES
from headgate_runtime.errors import wire_error
from headgate_writer import filling, refusal
from headgate_writer.admission import Admission
from support.arrow_batches import batch
from support.processes import READY_S
from support.running_writer import TABLE, cluster
from support.tables import keys, notes, rows

FLUSH = ingest_pb2.Flush()
CLOSE = ingest_pb2.CloseChannel()


async def test_rows_and_deletes_of_a_channel_are_in_the_table_when_they_are_queryable(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "first"), ("b", 1, "first"), ("c", 1, "first")))
        await channel.append(rows(("b", 2, "second")))
        await channel.append(keys(("c", 2)), operation=ingest_pb2.OPERATION_DELETE)
        await channel.acked(received=5)
        assert await made.commit(1) == {"c": 5}
        await channel.acked(received=5, durable=5, queryable=5)
        assert notes(made.table) == {"a": "first", "b": "second"}


async def test_a_batch_that_comes_in_parts_is_one_batch(tmp_path: Path) -> None:
    """6 MB of rows, more than a writer takes in a message."""
    note = "".join(f"{number:x}" for number in range(1_000))
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(*((f"{number}", 1, f"{number} {note}") for number in range(2_000))))
        await channel.append(rows(("small", 1, "")))
        await channel.acked(received=2_001)
        assert await made.commit(1) == {"c": 2_001}
        there = notes(made.table)
        assert (len(there), there["7"]) == (2_001, f"7 {note}")


async def test_a_message_that_should_have_come_in_parts_ends_its_stream_alone(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel, other = await made.channel("c"), await made.channel("d", hold=2)
        await channel.say_at_once(batch=ingest_pb2.Batch(rows=bytes(PART_BYTES + 100_000)))
        assert await channel.status() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await other.append(rows(("a", 1, "")))
        await other.acked(received=1)


async def test_parts_that_make_no_request_end_the_channel_with_the_reason(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.say(part=Part(content=b"x" * 10, request_bytes=300_000))
        await channel.say(flush=FLUSH)
        assert await channel.ended() == errors_pb2.CODE_INVALID_ARGUMENT


async def test_an_open_is_answered_with_what_the_owner_granted_and_the_table(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        producer = made.producer()
        await producer.open(TABLE, "loader", incarnation=4)
        asked = await made.owned.grant(made.links[0], committed=17)
        assert (asked.channel, asked.incarnation, asked.principal) == ("loader", 4, "anonymous")
        opened = await producer.opened()
        assert (opened.incarnation, opened.committed_offset) == (4, 17)
        assert (opened.table.name, list(opened.table.record_key), opened.table.ordering) == (TABLE, ["id"], "ts")
        assert opened.max_in_flight_bytes > 0


async def test_a_refused_open_ends_the_stream_with_the_owners_error(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        producer = made.producer()
        await producer.open(TABLE)
        asked = await made.links[0].report("open")
        error = wire_error(errors_pb2.CODE_CHANNEL_TAKEN_OVER, "a newer producer has it", "Stop.")
        made.owned.order(made.links[0], open_refused=wire.OpenRefused(request=asked.request, error=error))
        assert await producer.ended() == errors_pb2.CODE_CHANNEL_TAKEN_OVER


async def test_a_table_that_does_not_exist_is_told_from_one_that_nobody_owns_just_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusal, "ANSWER_S", READY_S)  # the coordinator answers, however slow this machine is
    async with cluster(tmp_path, attach_timeout=0.05) as made:
        producer = made.producer()
        await producer.open("nowhere")
        assert await producer.ended() == errors_pb2.CODE_TABLE_NOT_FOUND
        made.owner.tables.add("unowned")
        producer = made.producer()
        await producer.open("unowned")
        assert await producer.ended() == errors_pb2.CODE_UNAVAILABLE


async def test_an_open_waits_for_the_tables_owner(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        earlier = await made.channel("earlier")
        made.owned.order(made.links[0], detach=wire.Detach())
        await earlier.ended()
        made.owned.epoch = 2
        channel = made.producer()
        await channel.open(TABLE)
        made.owned.attach(made.links)
        await made.owned.grant(made.links[0])
        await channel.opened()


@pytest.mark.parametrize("name", ["", "x" * 256, "line\nbreak"])
async def test_a_name_that_is_no_channels_is_refused(tmp_path: Path, name: str) -> None:
    async with cluster(tmp_path) as made:
        producer = made.producer()
        await producer.open(TABLE, name)
        assert await producer.ended() == errors_pb2.CODE_INVALID_ARGUMENT


@pytest.mark.parametrize("name", ["", "x" * 200, "a b", "../x"])
async def test_a_name_that_is_no_tables_is_refused_for_good(tmp_path: Path, name: str) -> None:
    async with cluster(tmp_path) as made:
        producer = made.producer()
        await producer.open(name)
        assert await producer.ended() == errors_pb2.CODE_INVALID_ARGUMENT


async def test_a_stream_that_begins_with_something_else_is_refused(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        producer = made.producer()
        await producer.say(flush=FLUSH)
        assert await producer.ended() == errors_pb2.CODE_INVALID_ARGUMENT


async def test_a_message_that_has_no_place_on_an_open_stream_ends_it_with_what_is_wrong(tmp_path: Path) -> None:
    for message in ({"open": ingest_pb2.OpenChannel(table=TABLE, channel="other")}, {}):
        async with cluster(tmp_path / str(len(message))) as made:
            channel = await made.channel()
            await channel.say(**message)
            assert await channel.ended() == errors_pb2.CODE_INVALID_ARGUMENT
            assert (await made.links[0].report("channel_ended")).channel == "c"


async def test_a_schema_that_takes_time_to_read_is_read_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []
    read = Admission.schema

    def noted(admission: Admission, message: bytes) -> pa.Schema:
        threads.append(threading.current_thread() is threading.main_thread())
        return read(admission, message)

    monkeypatch.setattr(Admission, "schema", noted)
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        for number, columns in enumerate((1, 1_500)):
            table = pa.record_batch({f"c{n}": [1] for n in range(columns)})
            sent = batch(table)
            sent.offset = 1
            await channel.say(batch=sent)
            assert (await channel.answer()).WhichOneof("message") == "refused"
            assert threads == [True, False][: number + 1]


async def test_an_offset_out_of_range_ends_the_stream_with_its_range_and_what_was_accepted_is_kept(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        in_parts = ingest_pb2.Batch(after=2**64 - 1, rows=bytes(2 * PART_BYTES))
        wrong = ({"skip": ingest_pb2.Skip(offset=2**63)}, {"batch": ingest_pb2.Batch(after=2**64 - 1)}, {"batch": in_parts})
        for number, message in enumerate(wrong):
            channel = await made.channel(f"c{number}")
            await channel.append(rows((f"key {number}", 1, "")))
            await channel.acked(received=1)
            await channel.say(**message)
            while (answer := await channel.answer()).WhichOneof("message") == "acks":
                pass
            assert answer.ended.error.code == errors_pb2.CODE_INVALID_ARGUMENT
            assert f"between 0 and {2**63 - 1}" in answer.ended.error.message
        assert await made.commit(1) == {"c0": 1, "c1": 1, "c2": 1}


async def test_a_null_key_stops_its_channel_only_and_nothing_slips_past_it(tmp_path: Path) -> None:
    """Rule CH2: what was sent behind the bad batch is refused, in order, until it is corrected."""
    async with cluster(tmp_path) as made:
        bad, good = await made.channel("bad", hold=1), await made.channel("good", hold=2)
        await bad.append(rows(("a", 1, "kept")))
        await bad.append(rows((None, 1, "bad")))  # type: ignore[arg-type]
        await bad.append(rows(("b", 1, "behind")))
        await good.append(rows(("g", 1, "other")))
        first = await bad.refused()
        assert (first.offset, first.accepted, first.error.code) == (2, 1, errors_pb2.CODE_NULL_KEY)
        second = await bad.refused()
        assert (second.offset, second.accepted, second.error.code) == (3, 1, errors_pb2.CODE_AFTER_FAILED_BATCH)
        await good.acked(received=1)
        await bad.append(rows(("c", 1, "corrected")), after=1)
        await bad.acked(received=2)
        assert await made.commit(1) == {"bad": 2, "good": 1}
        assert notes(made.table) == {"a": "kept", "c": "corrected", "g": "other"}


async def test_deletes_that_would_fill_too_much_of_the_table_with_nulls_are_refused_and_fewer_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "FILLED_BYTES", 1_000)  # the table has one column that deletes leave out
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(*((f"{n}", 1, "") for n in range(400))))
        gone = [(f"{n}", 2) for n in range(400)]
        await channel.append(keys(*gone), operation=ingest_pb2.OPERATION_DELETE)
        refused = await channel.refused()
        assert (refused.offset, refused.error.code) == (800, errors_pb2.CODE_TOO_LARGE)
        assert "Send at most 242 rows" in refused.error.fix
        await channel.append(keys(*gone[:242]), after=400, operation=ingest_pb2.OPERATION_DELETE)
        await channel.acked(received=642)
        assert await made.commit(1) == {"c": 642}
        assert len(notes(made.table)) == 158


async def test_a_batch_that_is_no_arrow_is_refused_with_a_type_and_can_be_skipped(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "kept")))
        await channel.say(batch=ingest_pb2.Batch(after=1, offset=2, operation=1, rows=b"no arrow"))
        refused = await channel.refused()
        assert (refused.offset, refused.accepted, refused.error.code) == (2, 1, errors_pb2.CODE_CORRUPT_BATCH)
        await channel.say(skip=ingest_pb2.Skip(after=0, offset=2))
        assert (await channel.refused()).error.code == errors_pb2.CODE_OFFSET_OVERLAP
        await channel.say(skip=ingest_pb2.Skip(after=1, offset=2))
        await channel.append(rows(("b", 1, "behind")), after=2)
        await channel.acked(received=3)
        assert await made.commit(1) == {"c": 3}
        assert notes(made.table) == {"a": "kept", "b": "behind"}


async def test_what_was_sent_again_is_stored_once_and_acked_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel(committed=10)
        await channel.send(8, 10, rows(("x", 9, "committed before"), ("y", 9, "committed before")))
        assert (await channel.acked(received=10)).received == 10
        await channel.append(rows(("a", 1, "once")))
        await channel.acked(received=11)
        await channel.send(10, 11, rows(("a", 9, "again")))
        await channel.acked(received=11)
        assert await made.commit(1) == {"c": 11}
        assert notes(made.table) == {"a": "once"}


async def test_the_schema_of_a_duplicate_serves_the_batches_behind_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel(committed=1)
        await channel.send(0, 1, rows(("x", 1, "committed before")))
        message = rows(("a", 1, "new")).to_batches()[0].serialize().to_pybytes()
        await channel.say(batch=ingest_pb2.Batch(after=1, offset=2, operation=1, rows=message))
        await channel.acked(received=2)


async def test_a_gap_and_an_overlap_are_refused_and_say_where_to_go_on(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel(committed=5)
        await channel.send(6, 7, rows(("a", 1, "gap")))
        gap = await channel.refused()
        assert (gap.error.code, gap.accepted) == (errors_pb2.CODE_OFFSET_GAP, 5)
        await channel.send(5, 7, rows(("a", 1, "taken"), ("b", 1, "taken")))
        await channel.acked(received=7)
        await channel.send(6, 8, rows(("b", 1, "overlap"), ("c", 1, "overlap")))
        overlap = await channel.refused()
        assert (overlap.error.code, overlap.accepted) == (errors_pb2.CODE_OFFSET_OVERLAP, 7)


async def test_a_close_is_answered_when_all_is_queryable(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.say(close=CLOSE)
        await made.links[0].report("ask_checkpoint")
        await made.commit(1)
        assert await channel.ended() == 0
        ended = await made.links[0].report("channel_ended")
        assert (ended.channel, ended.hold, ended.uncommitted) == ("c", 1, False)


async def test_a_close_without_rows_is_answered_at_once(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.say(close=CLOSE)
        assert await channel.ended() == 0


async def test_flushes_of_many_channels_ask_for_one_checkpoint(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channels = [await made.channel(f"c{n}", hold=n) for n in range(1, 9)]
        for channel in channels:
            await channel.append(rows(("a", 1, "x")))
            await channel.say(flush=FLUSH)
            await channel.acked(received=1)
        await made.links[0].report("ask_checkpoint")
        assert made.links[0].count("ask_checkpoint") == 0
        await made.commit(1)
        await channels[0].append(rows(("a", 2, "x")))
        await channels[0].say(flush=FLUSH)
        await made.links[0].report("ask_checkpoint")


async def test_rows_of_a_client_that_vanished_are_kept_and_its_end_is_told(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "kept")))
        await channel.acked(received=1)
        channel.vanish()
        ended = await made.links[0].report("channel_ended")
        assert (ended.channel, ended.hold, ended.uncommitted) == ("c", 1, True)
        assert await made.commit(1) == {"c": 1}
        assert notes(made.table) == {"a": "kept"}


async def test_a_client_that_vanished_before_its_grant_leaves_no_hold(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        producer = made.producer()
        await producer.open(TABLE)
        asked = await made.links[0].report("open")
        producer.vanish()
        other = await made.channel("other", hold=2)  # behind it on the same loop: the first is gone by then
        await other.say(close=CLOSE)
        await other.ended()
        made.owned.order(made.links[0], grant=wire.Grant(request=asked.request, channel="c", incarnation=1, hold=1))
        ended = [await made.links[0].report("channel_ended") for _ in range(2)]
        assert {(each.hold, each.uncommitted) for each in ended} == {(1, False), (2, False)}


async def test_the_owner_ends_a_channel_and_is_told_whether_rows_are_left(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "kept")))
        await channel.acked(received=1)
        error = wire_error(errors_pb2.CODE_CHANNEL_TAKEN_OVER, "a newer producer has it", "Stop.")
        made.owned.order(made.links[0], end_channel=wire.EndChannel(channel="c", hold=1, error=error))
        ended = await made.links[0].report("channel_ended")
        assert (ended.hold, ended.uncommitted) == (1, True)
        assert await channel.ended() == errors_pb2.CODE_CHANNEL_TAKEN_OVER
        assert await made.commit(1) == {"c": 1}

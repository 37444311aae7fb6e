"""From clients to bucket sides, with one and two writers: where a barrier cuts, and what a full memory stops."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import wire_error
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.place import place
from headgate_writer import pipeline
from headgate_writer.admission import Admitted
from headgate_writer.attached import Member
from headgate_writer.routing import RoutedRows
from headgate_writer.table_writer import TableWriter
from support.processes import READY_S
from support.running_writer import cluster
from support.tables import notes, rows

MIB = 1 << 20


def many(first: int, count: int, note: str = "x") -> pa.Table:
    """``count`` rows with keys of their own."""
    return rows(*((f"k{number}", 1, note) for number in range(first, first + count)))


async def test_a_barrier_cuts_every_channel_at_one_place_and_rows_behind_it_are_the_next_checkpoints(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        left, right = await made.channel("left", hold=1), await made.channel("right", hold=2)
        await left.append(rows(("a", 1, "first")))
        await right.append(rows(("b", 1, "first")))
        await left.acked(received=1)
        await right.acked(received=1)
        assert await made.commit(1) == {"left": 1, "right": 1}
        await left.append(rows(("a", 2, "second")))
        await left.acked(received=2)
        assert notes(made.table) == {"a": "first", "b": "first"}
        assert await made.commit(2) == {"left": 2}
        assert notes(made.table) == {"a": "second", "b": "first"}


async def test_a_barrier_parts_batches_that_wait_together_where_it_came_between_them(tmp_path: Path) -> None:
    """Nothing is routed before all of it is there: the offset is that of the place in the line, not of the moment."""
    async with cluster(tmp_path) as made:
        writer, hold = await made.held()
        for number in range(1, 5):
            writer.append_entry(hold.take_batch(number, 1, Admitted(many(number, 1), None, 50)))
            if number == 3:
                writer.end_checkpoint(wire.Barrier(checkpoint=1, next=made.owned.membership(2, made.links)))
        passed = await made.links[0].report("barrier_passed")
        assert (dict(passed.offsets), passed.bytes) == ({"c": 3}, 150)
        (passed,) = await made.end_checkpoint(2)
        assert (dict(passed.offsets), passed.bytes) == ({"c": 4}, 50)


async def test_a_checkpoint_fills_while_the_one_before_it_waits_for_its_instant(tmp_path: Path) -> None:
    """Rule RO1: the barrier does not wait for a flush."""
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "one")))
        await channel.acked(received=1)
        (noted,) = await made.end_checkpoint(1)
        assert dict(noted.offsets) == {"c": 1}
        assert noted.bytes > 0
        await channel.append(rows(("b", 1, "two")))
        await channel.acked(received=2)
        assert [(await made.links[0].report("ask_instant")).checkpoint for _ in range(2)] == [1, 2]
        assert made.links[0].count("flushed") == 0


async def test_a_checkpoint_with_offsets_and_no_rows_asks_for_no_instant(tmp_path: Path) -> None:
    """Rule RO5. Its load is told, or no checkpoint would ever come."""
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.say(skip=ingest_pb2.Skip(offset=9))
        assert await made.links[0].loaded("table") == 1
        (noted,) = await made.end_checkpoint(1)
        assert (dict(noted.offsets), noted.bytes) == ({"c": 9}, 0)
        assert not (await made.links[0].report("flushed")).files
        assert made.links[0].count("ask_instant") == 0


@pytest.mark.slow
async def test_rows_cross_to_the_writer_that_has_their_key_group(tmp_path: Path) -> None:
    """Both writers take both channels' rows; both write files; each key is stored once, with the later note."""
    async with cluster(tmp_path, writers=2) as made:
        here, there = await made.channel("here", writer=0, hold=1), await made.channel("there", writer=1, hold=2)
        for number in range(8):
            await here.append(many(100 * number, 100, "here"))
            await there.append(many(1000 + 100 * number, 100, "there"))
        await here.acked(received=800)
        await there.acked(received=800)
        assert await made.commit(1) == {"here": 800, "there": 800}
        found = notes(made.table)
        assert len(found) == 1600
        assert {found[f"k{number}"] for number in range(800)} == {"here"}
        assert {found[f"k{number}"] for number in range(1000, 1800)} == {"there"}


@pytest.mark.slow
async def test_rows_in_front_of_the_barrier_are_flushed_with_their_checkpoint_wherever_they_go(tmp_path: Path) -> None:
    """Rule EX2: what one writer sent to another before the barrier is in that checkpoint, though nobody waited for its ack."""
    async with cluster(tmp_path, writers=2) as made:
        channel = await made.channel()
        stored: dict[str, str] = {}
        for number in range(1, 6):
            await channel.append(many(0, 50, f"checkpoint {number}"))
            noted = await made.commit(number)
            if noted:  # the offset says up to which batch: the barrier may come before the last one
                stored = {f"k{key}": f"checkpoint {noted['c'] // 50}" for key in range(50)}
            assert notes(made.table) == stored
        assert channel.offset == 250


async def test_a_bad_batch_among_many_channels_is_found_and_only_it_is_refused(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channels = [await made.channel(f"c{number}", hold=number + 1) for number in range(20)]
        for number, channel in enumerate(channels):
            await channel.append(rows(("bad" if number != 7 else None, 1, "x")))  # type: ignore[arg-type]
        for number, channel in enumerate(channels):
            if number == 7:
                assert (await channel.refused()).error.code == errors_pb2.CODE_NULL_KEY
            else:
                await channel.acked(received=1)
        assert set(await made.commit(1)) == {f"c{number}" for number in range(20) if number != 7}


async def test_a_client_past_its_bytes_in_flight_is_not_read_until_a_checkpoint_frees_them(tmp_path: Path) -> None:
    """Rule CH7: at half of it a checkpoint is asked for; the other channel goes on."""
    async with cluster(tmp_path, max_in_flight=20_000) as made:
        greedy, other = await made.channel("greedy", hold=1), await made.channel("other", hold=2)
        sending = asyncio.ensure_future(_send(greedy, batches=40))
        await made.links[0].report("ask_checkpoint")
        await other.append(many(90_000, 1))
        await other.acked(received=1)
        acked = asyncio.ensure_future(greedy.acked(received=4000))
        number = 0
        while not acked.done():
            number += 1
            await made.commit(number)
        await sending
        assert number > 4  # 40 batches of more than 2,000 bytes, 20,000 at a time


@pytest.mark.slow
async def test_a_full_memory_stops_clients_and_the_checkpoint_frees_it(tmp_path: Path) -> None:
    """More than the memory is sent; nothing is lost, nothing stands still, and the limit was felt."""
    async with cluster(tmp_path, memory_limit=256 * MIB) as made:
        writer = made.writers[0]
        channel = await made.channel()
        wide = rows(*((f"k{number}", 1, "x" * 1000) for number in range(2000)))
        sending = asyncio.ensure_future(_send(channel, batches=40, batch=wide))
        number, most = 0, 0
        while not sending.done() or made.links[0].loads.get("table"):
            number += 1
            most = max(most, writer.budget.used)
            await made.commit(number)
            await asyncio.wait_for(made.links[0].heartbeats.get(), READY_S)
        assert most < writer.budget.hard + 8 * MIB
        assert len(notes(made.table)) == 2000


async def _send(channel: object, *, batches: int, batch: pa.Table | None = None) -> None:
    for number in range(batches):
        await channel.append(many(100 * number, 100) if batch is None else batch)  # type: ignore[attr-defined]


async def test_a_flush_that_fails_is_told_to_the_owner(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        (tmp_path / "table" / ".hoodie" / ".headgate" / "stage").write_text("no folder")
        made.owned.order(made.links[0], instant=wire.Instant(checkpoint=1, instant="20270101000000000"))
        made.owned.barrier(made.links, 1)
        assert "flush" in (await made.links[0].report("broken")).why


async def test_a_checkpoint_that_has_its_share_asks_for_its_end_and_clients_keep_the_rest_until_the_next_one(
    tmp_path: Path,
) -> None:
    """Each batch is larger than the share: one is taken in each checkpoint, and nothing has to be sent twice."""
    async with cluster(tmp_path) as made:
        made.owned.intake_bytes = 1
        made.owned.generation = 2
        made.owned.attach(made.links)
        await made.attached(1, 2)
        channel = await made.channel()
        for number in range(5):
            await channel.append(many(number, 1))
        for number in range(1, 4):
            await made.links[0].report("ask_checkpoint")
            assert await made.commit(number) == {"c": number}
            assert made.links[0].count("ask_checkpoint") <= 1, "once a checkpoint"
        made.owned.intake_bytes = 0
        assert await made.commit(4) == {"c": 4}
        await channel.acked(received=5)
        assert await made.commit(5) == {"c": 5}
        assert len(notes(made.table)) == 5


async def test_what_is_routed_behind_a_barrier_is_told_as_progress_of_the_checkpoint_that_ended(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        writer, hold = await made.held()
        writer.append_entry(hold.take_batch(1, 1, Admitted(many(1, 1), None, 50)))
        writer.end_checkpoint(wire.Barrier(checkpoint=1, next=made.owned.membership(2, made.links)))
        assert (await made.links[0].report("progress")).checkpoint == 1
        assert (await made.links[0].report("barrier_passed")).checkpoint == 1


def sent_across(writer: TableWriter) -> list[int]:
    """Numbers of rows that the table's writer goes on to send to others, turn by turn."""
    sent: list[int] = []
    send_rows = writer._exchange.send_rows

    async def noted(member: Member, checkpoint: int, rows: RoutedRows, *rest: Any) -> None:
        sent.append(rows.rows.num_rows)
        await send_rows(member, checkpoint, rows, *rest)

    writer._exchange.send_rows = noted  # type: ignore[method-assign]
    return sent


@pytest.mark.parametrize("ends", ["a checkpoint ends", "much waits"])
async def test_rows_that_come_little_by_little_cross_to_another_writer_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr(pipeline, "PAUSE_AMONG_SEVERAL", READY_S)
    async with cluster(tmp_path, writers=2) as made, asyncio.timeout(READY_S / 10):
        writer, hold = await made.held()
        sent = sent_across(writer)
        for number in range(0, 1_000, 100):
            writer.append_entry(hold.take_batch(number + 100, 100, Admitted(many(number, 100), None, 50)))
            while not sent:
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert len(sent) == 1
        if ends == "a checkpoint ends":
            writer.end_checkpoint(wire.Barrier(checkpoint=1, next=made.owned.membership(2, made.links)))
        else:
            much = many(1_000, 100)
            writer.append_entry(hold.take_batch(1_100, 100, Admitted(much, None, 300 << 10)))
        while len(sent) < 2:
            await asyncio.sleep(0.001)
        assert sent == [100, 900 if ends == "a checkpoint ends" else 1_000]


@pytest.mark.parametrize("barrier_first", [True, False])
async def test_ro11_a_barrier_behind_rows_without_room_is_reported_as_waiting(tmp_path: Path, barrier_first: bool) -> None:
    async with cluster(tmp_path, writers=2) as made:
        writer, hold = await made.held()
        full = made.writers[1].budget.add_share(lambda: None)
        full.set_bytes(1 << 40, 0)
        much = many(0, 3_000, "x" * 8_000)  # 24 MB: the window of a stream takes 8
        writer.append_entry(hold.take_batch(3_000, 3_000, Admitted(much, None, much.nbytes)))
        barrier = wire.Barrier(checkpoint=1, next=made.owned.membership(2, made.links))
        if barrier_first:
            writer.end_checkpoint(barrier)
        else:
            while not writer._pipeline._waiting_for_room:
                await asyncio.sleep(0.01)
            assert made.links[0].count("waits_for_room") == 0, "no checkpoint waits for it"
            writer.end_checkpoint(barrier)
        assert (await made.links[0].report("waits_for_room")).checkpoint == 1
        assert made.links[0].count("barrier_passed") == 0
        full.set_bytes(0, 0)
        assert (await made.links[0].report("barrier_passed")).checkpoint == 1
        assert made.links[0].count("waits_for_room") == 0


async def test_a_table_that_is_closed_while_its_rows_wait_for_another_writer_gives_their_bytes_back_once(tmp_path: Path) -> None:
    async with cluster(tmp_path, writers=2) as made:
        writer, hold = await made.held()
        budgets = writer._pipeline._reservation._budgets
        made.writers[1].budget.add_share(lambda: None).set_bytes(1 << 40, 0)
        much = many(0, 3_000, "x" * 8_000)  # 24 MB: the window of a stream takes 8
        writer.append_entry(hold.take_batch(3_000, 3_000, Admitted(much, None, much.nbytes)))
        while not writer._pipeline._waiting_for_room:
            await asyncio.sleep(0.01)
        assert all(budget.used >= much.nbytes for budget in budgets)
        writer.close(errors_pb2.Error(code=errors_pb2.CODE_UNAVAILABLE, action=errors_pb2.ACTION_RESUME))
        for _ in range(20):
            await asyncio.sleep(0)
            assert [budget.used for budget in budgets] == [0 for _ in budgets]


async def test_only_batches_with_rows_of_a_refused_slice_are_refused_and_the_answer_says_which_rows(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        ids = [f"k{number}" for number in range(20)]
        assert made.table.definition is not None
        buckets = placed_buckets(made.table.definition, ids)
        why = wire_error(errors_pb2.CODE_SLICE_SET_ASIDE, "bucket 1 takes no rows", "Send the others.")
        slices = wire.RefuseSlices(slices=[wire.RefusedSlice(partition="p", bucket=1, why=why)])
        made.owned.order(made.links[0], refuse_slices=slices)
        mixed, healthy = await made.channel("mixed", hold=1), await made.channel("healthy", hold=2)
        await mixed.append(rows(*((key, 1, "x") for key in ids)))
        others = [key for key, bucket in zip(ids, buckets, strict=True) if bucket != 1]
        await healthy.append(rows(*((key, 1, "healthy") for key in others)))
        refused = await mixed.refused()
        assert (refused.error.code, refused.accepted) == (errors_pb2.CODE_SLICE_SET_ASIDE, 0)
        to_blame = [bool(refused.rows[at // 8] >> at % 8 & 1) for at in range(len(ids))]
        assert to_blame == [bucket == 1 for bucket in buckets]
        await healthy.acked(received=len(others))
        await mixed.send(0, len(ids), rows(*((key, 2, "in its place") for key in others)))
        await mixed.acked(received=len(ids))
        assert await made.commit(1) == {"mixed": len(ids), "healthy": len(others)}
        made.owned.order(made.links[0], refuse_slices=wire.RefuseSlices())
        late = await made.channel("late", hold=3)
        await late.append(rows(*((key, 3, "all") for key in ids)))
        await late.acked(received=len(ids))
        assert await made.commit(2) == {"late": len(ids)}
        assert notes(made.table) == dict.fromkeys(ids, "all")


def placed_buckets(definition: Definition, ids: list[str]) -> list[int]:
    placed = place(rows(*((key, 1, "x") for key in ids)), None, definition)
    return [placed.groups[group][1] for group in placed.group.tolist()]

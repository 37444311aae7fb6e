"""An owner forgets channels that nobody uses while it goes on owning the table, and no others (rule CH5)."""

import asyncio
from pathlib import Path

from headgate_coordinator.core.events import Broken, CheckpointAsked, InstantAsked, OffsetsRefused, OffsetsWon, Tick
from headgate_coordinator.core.instructions import CommitCheckpoint, Grant, Instruction, OpenRefused, WinOffsets
from headgate_coordinator.core.policy import CheckpointPolicy
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.hudi import open_table
from support.one_table import OneTable, only, orders
from support.running_coordinator import OPTIONS, Running, T, running_coordinator
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, rows

POLICY = CheckpointPolicy(first_checkpoint_bytes=0, channel_retention=30.0)
"""The owner looks every second."""
ORDERS = {"orders": [3, 50, "ann", 0]}


def idle(table: OneTable, seconds: float) -> list[Instruction]:
    """What the core says by itself when nothing but time passes."""
    until, out = table.now + seconds, []
    while (due := table.core.deadline()) is not None and due <= until:
        out += table.tell(Tick(), after=due - table.now)
    table.now = until
    return out


def forgotten(out: list[Instruction]) -> list[tuple[int, list[str]]]:
    """Numbers of slots, and what they forget."""
    return [(each.number, list(each.forget)) for each in only(WinOffsets, out) if each.forget]


def grants(out: list[Instruction]) -> list[tuple[str, int, int]]:
    return [(each.channel, each.incarnation, each.committed_offset) for _, each in orders(Grant, out)]


def test_ch5_a_channel_that_stays_idle_is_forgotten_once_and_one_that_is_open_is_not() -> None:
    table = OneTable("a", channels={**ORDERS, "open": [1, 7, "ann", 0]}, policy=POLICY)
    table.grant("a", "open", incarnation=1)
    assert idle(table, 29.0) == []
    assert idle(table, 1.0) == [WinOffsets(1, {}, ["orders"])]
    assert table.tell(OffsetsWon(1)) == []
    assert idle(table, 100.0) == []


def test_a_forgotten_channel_leaves_its_place_in_the_quota_to_another_once_the_slot_is_won() -> None:
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    assert forgotten(idle(table, 30.0)) == [(1, ["orders"])]
    refused = orders(OpenRefused, table.tell(table.opens("a", "more", channels=1)))
    assert [each.refusal.code for _, each in refused] == ["CODE_QUOTA"]
    table.tell(OffsetsWon(1))
    assert table.tell(table.opens("a", "more", channels=1)) == [WinOffsets(2, {"more": (1, 0, "ann")})]


def test_an_open_of_a_channel_that_is_being_forgotten_waits_and_begins_a_new_one() -> None:
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    idle(table, 30.0)
    assert table.tell(table.opens("a", "orders", principal="bob")) == []
    assert table.tell(OffsetsWon(1)) == [WinOffsets(2, {"orders": (1, 0, "bob")})]
    assert grants(table.tell(OffsetsWon(2))) == [("orders", 1, 0)]


def test_channels_that_the_store_did_not_forget_go_on_and_idle_ones_are_tried_again_at_the_next_look() -> None:
    table = OneTable("a", channels={**ORDERS, "other": [1, 7, "ann", 0]}, policy=POLICY)
    assert forgotten(idle(table, 30.0)) == [(1, ["orders", "other"])]
    table.tell(table.opens("a", "orders", incarnation=3))
    assert grants(table.tell(OffsetsRefused(1, "the store is busy"))) == [("orders", 3, 50)]
    assert forgotten(idle(table, 1.0)) == [(2, ["other"])]


def test_a_channel_that_was_open_for_a_moment_is_remembered_for_the_whole_retention_again() -> None:
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    idle(table, 20.5)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(table.ended("a", "orders", hold, uncommitted=False))
    assert idle(table, 30.0) == []
    assert forgotten(idle(table, 1.0)) == [(1, ["orders"])]


def test_a_channel_with_uncommitted_rows_is_not_forgotten_however_long_they_wait() -> None:
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    hold = table.grant("a", "orders", incarnation=3)
    table.tell(table.ended("a", "orders", hold, uncommitted=True))
    assert idle(table, 100.0) == []


def test_a_channel_that_was_open_up_to_an_abort_goes_on_after_it() -> None:
    """Its producer has to open it again first."""
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    table.grant("a", "orders", incarnation=3)
    idle(table, 100.0)
    table.tell(Broken("a", 1, "its disk is full"))
    assert forgotten(idle(table, 29.0)) == []
    assert grants(table.tell(table.opens("a", "orders", incarnation=3))) == [("orders", 3, 50)]


def test_ch5_rows_of_an_older_generation_are_decided_before_their_channel_is_forgotten() -> None:
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    table.grant("a", "orders", incarnation=3)
    table.tell(CheckpointAsked("a", 1), Tick(), after=0.5)
    assert only(CommitCheckpoint, table.commit(1, "a", {"orders": 60}))
    table.tell(Broken("a", 1, "its disk is full"))
    assert forgotten(idle(table, 100.0)) == []
    table.decide(1, generation=1)
    assert forgotten(idle(table, 1.0)) == [(1, ["orders"])]


def test_a_slot_of_opens_that_is_under_way_is_answered_before_idle_channels_are_forgotten() -> None:
    table = OneTable("a", channels=ORDERS, policy=POLICY)
    idle(table, 29.5)
    assert table.tell(table.opens("a", "new")) == [WinOffsets(1, {"new": (1, 0, "ann")})]
    assert idle(table, 1.0) == []
    assert grants(table.tell(OffsetsWon(1))) == [("new", 1, 0)]
    assert forgotten(idle(table, 1.0)) == [(2, ["orders"])]


def test_ro10_a_report_of_a_channel_that_is_forgotten_meanwhile_is_dropped() -> None:
    """Its offset was the committed one when it came, so nothing was wrong with it."""
    table = OneTable("a", "b", channels=ORDERS, policy=POLICY)
    assert forgotten(idle(table, 30.0)) == [(1, ["orders"])]
    number = table.core.checkpoint
    table.tell(CheckpointAsked("a", number), Tick(), after=0.5)
    table.tell(InstantAsked("a", table.core.generation, number), table.issued(number))
    table.tell(table.barrier("a", number, {"orders": 50}, 100), table.flushed("a", number, ["file"]), OffsetsWon(1))
    out = table.tell(table.barrier("b", number), table.flushed("b", number))
    assert [(each.checkpoint, dict(each.channels)) for each in only(CommitCheckpoint, out)] == [(number, {})]


async def channels(coordinator: Running) -> dict[str, int]:
    """Committed offsets of all channels that the table remembers."""
    answer = await MaintenanceServiceStub(coordinator.channel).ListChannels(api.ListChannelsRequest(table=T))
    return {each.name: each.committed_offset for each in answer.channels}


async def test_ch5_an_owner_that_stays_forgets_a_channel_that_stays_idle_and_keeps_one_that_is_open(
    tmp_path: Path, redis: str
) -> None:
    async with (
        running_coordinator(tmp_path, redis, channel_retention=0.5) as coordinator,
        scripted_writer(coordinator.address) as writer,
    ):
        url = (await coordinator.create(T, SCHEMA, **OPTIONS)).url
        await writer.order(T, "attach")
        began = writer.pair(T)
        for channel in ("open", "idle"):
            grant = await writer.open(T, channel)
            await writer.commit(T, rows((channel, 1, "x")), channel, 5)
        assert await channels(coordinator) == {"open": 5, "idle": 5}
        writer.report(T, channel_ended=wire.ChannelEnded(channel="idle", hold=grant.hold, uncommitted=False))
        while "idle" in await channels(coordinator):
            await asyncio.sleep(0.02)
        await writer.commit(T, rows(("more", 1, "x")), "open", 6)
        assert await channels(coordinator) == {"open": 6}
        again = await writer.open(T, "idle")
        assert (again.incarnation, again.committed_offset) == (1, 0)
        assert writer.pair(T) == began
        assert {name: record.offset for name, record in open_table(url).channels.items()} == {"open": 6, "idle": 0}

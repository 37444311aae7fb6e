"""Rows between writers over real gRPC: in order, once, across broken connections (rules EX1, EX2, EX4, EX5)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from headgate_proto.cluster.v1 import exchange_pb2 as wire
from headgate_proto.cluster.v1.exchange_pb2_grpc import ExchangeServiceStub
from headgate_runtime.world import SystemClock
from headgate_tables.backoff import Backoff
from headgate_tables.storage.local import LocalStore
from headgate_tables.system import SystemIds
from headgate_writer.attached import AttachedTable, Member
from headgate_writer.buffers import MemoryBudget
from headgate_writer.exchange import ExchangeSender, ExchangeService
from headgate_writer.frames import encode_rows
from headgate_writer.routing import RoutedRows
from headgate_writer.tallies import Tally
from headgate_writer.windows import WINDOW_BYTES
from support.arrow_batches import routed
from support.cutting_proxy import cutting_proxy
from support.exchange_peers import SETTINGS, TABLE, Attached, members_of, membership, receiving
from support.processes import READY_S


def rows(ids: range, note: str = "x") -> RoutedRows:
    return routed([{"id": n, "part": f"p{n % 3}", "ts": n, "note": note} for n in ids], TABLE)


@dataclass
class Sending:
    out: ExchangeSender
    budget: MemoryBudget
    why_broken: list[str] = field(default_factory=list)
    broken: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def sending(tmp_path: Path, *, epoch: int = 1, generation: int = 1) -> AsyncIterator[Sending]:
    """A block that takes more than a minute fails, and says what the sender heard."""
    attached = AttachedTable("t", epoch, generation, "", TABLE, LocalStore(str(tmp_path), SystemIds()))
    budget, heard = MemoryBudget(1 << 30, 1 << 30), list[str]()
    broken = asyncio.Event()

    def told(why: str) -> None:
        heard.append(why)
        broken.set()

    with ThreadPoolExecutor(1) as executor:
        out = ExchangeSender(attached, "sender", SETTINGS, SystemClock(), told, budget, executor)
        async with asyncio.TaskGroup() as group:
            run = group.create_task(out.run())
            try:
                async with asyncio.timeout(READY_S):
                    yield Sending(out, budget, heard, broken)
            except TimeoutError as waited:
                raise TimeoutError(f"what the sender heard: {heard}") from waited
            out.close()
            run.cancel()
    assert budget.used == 0, "every byte that was held is given back"


def expected(checkpoint: int, ids: range) -> list[object]:
    return [(checkpoint, n) for n in ids]


async def test_rows_and_barriers_arrive_once_and_in_the_order_in_which_they_were_sent(tmp_path: Path) -> None:
    async with receiving("receiver") as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        member = Member("receiver", there.address)
        await here.out.send_rows(member, 1, rows(range(10)), Tally())
        await here.out.send_rows(member, 1, rows(range(10, 20)), Tally())
        await here.out.send_barrier(member, 1)
        await here.out.send_rows(member, 2, rows(range(20, 30)), Tally())
        await here.out.send_barrier(member, 2)
        await side.until(("barrier", 2, "sender"))
        assert side.log == [
            *expected(1, range(20)),
            ("barrier", 1, "sender"),
            *expected(2, range(20, 30)),
            ("barrier", 2, "sender"),
        ]
        assert not here.why_broken


async def test_rows_keep_their_buckets_keys_deletes_and_types(tmp_path: Path) -> None:
    sent = routed(
        [{"id": 1, "part": "ä/b", "ts": 5, "note": None}, {"id": 2, "part": "c", "ts": 6, "note": "n"}], TABLE, [True, False]
    )
    got: list[RoutedRows] = []
    async with receiving("receiver") as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        side.add_rows = lambda checkpoint, rows, sender: got.append(rows)  # type: ignore[method-assign]
        await here.out.send_rows(Member("receiver", there.address), 1, sent, Tally())
        await here.out.send_barrier(Member("receiver", there.address), 1)
        await side.until(("barrier", 1, "sender"))
    (came,) = got
    assert came.rows.equals(sent.rows)
    assert came.rows.schema.equals(sent.rows.schema), "buckets mix rows from here and from elsewhere"
    assert came.keys.equals(sent.keys)
    assert came.deletes.equals(sent.deletes)
    assert [came.groups[at] for at in came.group] == [sent.groups[at] for at in sent.group]


@pytest.mark.parametrize("cut_after", [100, 5_000, 300_000, 2_000_000, 5_000_000])
async def test_a_connection_that_breaks_anywhere_loses_doubles_and_swaps_nothing(tmp_path: Path, cut_after: int) -> None:
    async with receiving("receiver") as there, cutting_proxy(there.address) as proxy, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        member = Member("receiver", proxy.address)
        proxy.cut_after = cut_after
        for start in range(0, 2_000, 100):
            await here.out.send_rows(member, 1, rows(range(start, start + 100), note="x" * 3_000), Tally())
        await here.out.send_barrier(member, 1)
        await side.until(("barrier", 1, "sender"))
        assert side.log == [*expected(1, range(2_000)), ("barrier", 1, "sender")]
        assert proxy.cuts == 1
        assert not here.why_broken


async def test_a_stream_to_a_writer_without_a_part_in_what_comes_ends_when_all_has_arrived(tmp_path: Path) -> None:
    async with receiving("receiver") as there, sending(tmp_path) as here:
        member = Member("receiver", there.address)
        for _ in range(2):  # the second time it has come back
            side = there.attached.attach("t", 1, 1)
            await here.out.send_rows(member, 1, rows(range(10)), Tally())
            await here.out.send_barrier(member, 1)
            here.out.finish_departed([])
            await side.until(("barrier", 1, "sender"))
            await there.service.until_all_ended()
            assert side.log == [*expected(1, range(10)), ("barrier", 1, "sender")]
        assert not here.why_broken


async def test_connections_that_break_again_and_again_are_resumed_each_time(tmp_path: Path) -> None:
    async with receiving("receiver") as there, cutting_proxy(there.address) as proxy, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        member = Member("receiver", proxy.address)
        for start in range(0, 300, 10):
            await here.out.send_rows(member, 1, rows(range(start, start + 10)), Tally())
            await side.until((1, start + 9))
            proxy.cut()
        await here.out.send_barrier(member, 1)
        await side.until(("barrier", 1, "sender"))
        assert side.log == [*expected(1, range(300)), ("barrier", 1, "sender")]


async def test_streams_that_break_at_once_for_a_while_do_not_end_the_checkpoint(tmp_path: Path) -> None:
    async with receiving("receiver") as there, sending(tmp_path) as here:
        there.service.willing = False
        side = there.attached.attach("t", 1, 1)
        await here.out.send_rows(Member("receiver", there.address), 1, rows(range(5)), Tally())
        await there.service.until_streams(3)
        there.service.willing = True
        await side.until((1, 4))
        assert not here.why_broken


async def test_streams_that_always_break_at_once_end_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate_writer.exchange_stream._PAUSES", Backoff(0.0001, 1.0))
    async with receiving("receiver") as there, sending(tmp_path) as here:
        there.service.willing = False
        await here.out.send_rows(Member("receiver", there.address), 1, rows(range(5)), Tally())
        await here.broken.wait()
        assert here.why_broken == [f"rows do not reach the writer at {there.address}: it ended the stream"]
        assert here.budget.used == 0


async def test_a_stream_of_a_newer_generation_waits_until_it_is_attached_and_then_loses_nothing(tmp_path: Path) -> None:
    """Rule EX5: dropping its rows would lose them, and nothing would tell."""
    async with receiving("receiver") as there, sending(tmp_path, generation=3) as here:
        older = there.attached.attach("t", 1, 1)
        await here.out.send_rows(Member("receiver", there.address), 7, rows(range(5)), Tally())
        await here.out.send_barrier(Member("receiver", there.address), 7)
        await there.attached.awaited.wait()
        skipped = there.attached.attach("t", 1, 2)
        await there.attached.awaited.wait()
        side = there.attached.attach("t", 1, 3)
        await side.until(("barrier", 7, "sender"))
        assert side.log == [*expected(7, range(5)), ("barrier", 7, "sender")]
        assert older.log == skipped.log == []


@pytest.mark.parametrize("pair", [(1, 2), (2, 1)])
async def test_a_stream_of_an_older_pair_is_refused_and_the_owner_hears_of_it(tmp_path: Path, pair: tuple[int, int]) -> None:
    async with receiving("receiver") as there, sending(tmp_path, epoch=1, generation=1) as here:
        side = there.attached.attach("t", *pair)
        await here.out.send_rows(Member("receiver", there.address), 1, rows(range(5)), Tally())
        await here.broken.wait()
        assert "is over" in here.why_broken[0]
        assert side.log == []


async def test_a_receiver_of_another_process_id_is_refused(tmp_path: Path) -> None:
    """Rule EX1: a process that restarted has lost what it was sent."""
    async with receiving("reborn") as there, sending(tmp_path) as here:
        there.attached.attach("t", 1, 1)
        await here.out.send_rows(Member("receiver", there.address), 1, rows(range(5)), Tally())
        await here.broken.wait()
        assert "another process" in here.why_broken[0]


async def test_a_receiver_that_has_forgotten_the_stream_ends_the_checkpoint(tmp_path: Path) -> None:
    async with receiving("receiver") as there, cutting_proxy(there.address) as proxy, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        member = Member("receiver", proxy.address)
        await here.out.send_rows(member, 1, rows(range(WINDOW_BYTES // 3_000), note="x" * 6_000), Tally())
        side.received.clear()
        proxy.cut()
        await here.out.send_rows(member, 1, rows(range(5)), Tally())
        await here.broken.wait()
        assert "the receiver has frame 0" in here.why_broken[0]


async def test_a_frame_is_not_taken_by_a_side_whose_generation_ended(tmp_path: Path) -> None:
    async with receiving("receiver") as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        member = Member("receiver", there.address)
        await here.out.send_rows(member, 1, rows(range(5)), Tally())
        await side.until((1, 4))
        side.over = True
        await here.out.send_rows(member, 1, rows(range(5, 10)), Tally())
        await here.broken.wait()
        assert side.log == expected(1, range(5))


@pytest.mark.slow
async def test_a_receiver_without_room_stops_its_senders_and_lets_them_go_on_later(tmp_path: Path) -> None:
    """Rule EX4: what is under way is bounded, and a barrier that needs no credit is not held up by other streams' bytes."""
    budget = MemoryBudget(1 << 20, 1 << 20)
    async with receiving("receiver", budget) as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        member = Member("receiver", there.address)
        buckets = budget.add_share(lambda: None)
        buckets.set_bytes(2 << 20, 0)
        much = rows(range(4_000), note="x" * 8_000)  # 32 MB
        async with asyncio.TaskGroup() as group:
            group.create_task(here.out.send_rows(member, 1, much, Tally()))
            while not here.budget.used:
                await asyncio.sleep(0)
            for _ in range(200):  # nothing can come: there is no credit
                await asyncio.sleep(0.001)
            assert side.log == []
            buckets.set_bytes(0, 0)
        await here.out.send_barrier(member, 1)
        await side.until(("barrier", 1, "sender"))
        assert side.log == [*expected(1, range(4_000)), ("barrier", 1, "sender")]


async def test_a_barrier_passes_although_there_is_no_credit(tmp_path: Path) -> None:
    budget = MemoryBudget(1 << 20, 1 << 20)
    async with receiving("receiver", budget) as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        budget.add_share(lambda: None).set_bytes(2 << 20, 0)
        await here.out.send_barrier(Member("receiver", there.address), 1)
        await side.until(("barrier", 1, "sender"))


async def test_two_writers_that_are_full_of_rows_for_each_other_go_on(tmp_path: Path) -> None:
    """Rows on their way here wait for a writer whose own are on their way to us: neither may refuse the other's."""
    budget = MemoryBudget(1 << 20, 2 << 20)
    async with receiving("receiver", budget) as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        budget.reserve(2 << 20)
        assert not budget.has_room
        await here.out.send_rows(Member("receiver", there.address), 1, rows(range(5)), Tally())
        await side.until((1, 4))


async def test_a_writer_that_cannot_be_reached_breaks_the_checkpoint_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate_writer.exchange_stream.UNREACHABLE_S", 0.2)
    async with sending(tmp_path) as here:
        nobody = Member("receiver", "127.0.0.1:1")
        async with asyncio.TaskGroup() as group:
            group.create_task(here.out.send_rows(nobody, 1, rows(range(8_000), note="x" * 4_000), Tally()))
        assert "cannot be reached" in here.why_broken[0]
        await here.out.send_rows(nobody, 1, rows(range(5)), Tally())
        assert here.budget.used == 0


async def test_a_peer_that_went_away_is_not_missed_once_everything_has_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that was drained leaves; its streams end, and no checkpoint may abort for that."""
    monkeypatch.setattr("headgate_writer.exchange_stream.UNREACHABLE_S", 0.2)
    async with sending(tmp_path) as here:
        async with receiving("receiver") as there:
            side = there.attached.attach("t", 1, 1)
            member = Member("receiver", there.address)
            await here.out.send_rows(member, 1, rows(range(5)), Tally())
            await here.out.send_barrier(member, 1)
            await side.until(("barrier", 1, "sender"))
            while here.budget.used:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.5)
        assert not here.why_broken


@dataclass
class Context:
    """A stream's requests, and its answers, by kind."""

    requests: Iterator[wire.ExchangeRequest]
    heard: list[str] = field(default_factory=list)

    async def read(self) -> object:
        return next(self.requests, grpc.aio.EOF)

    async def write(self, answer: wire.ExchangeResponse) -> None:
        kind = answer.WhichOneof("message") or ""
        self.heard.append(f"refused: {answer.refused.why}" if kind == "refused" else kind)


async def stream(side_of: Attached, *frames: wire.Frame, sender: str = "sender") -> Context:
    """A whole stream of these frames, whatever a sender of ours would have sent."""

    def requests() -> Iterator[wire.ExchangeRequest]:
        yield wire.ExchangeRequest(name=wire.StreamName(table="t", epoch=1, generation=1, sender=sender, receiver="receiver"))
        for frame in frames:
            yield wire.ExchangeRequest(frame=frame)

    context = Context(requests())
    with ThreadPoolExecutor(1) as executor:
        service = ExchangeService(side_of, "receiver", MemoryBudget(1 << 30, 1 << 30), executor, wire.ExchangeRequest.FromString)
        async with asyncio.timeout(READY_S):
            await service.Exchange(cast(Any, None), context)
    return context


async def test_a_frame_that_two_connections_bring_is_taken_once() -> None:
    attached = Attached()
    side = attached.attach("t", 1, 1)
    (content,) = encode_rows(rows(range(2)))
    frame = wire.Frame(number=1, checkpoint=1, rows=content.message)
    await stream(attached, frame)
    await stream(attached, frame, wire.Frame(number=2, checkpoint=1, barrier=1))
    assert side.log == [(1, 0), (1, 1), ("barrier", 1, "sender")]


async def test_a_barrier_that_counts_other_frames_than_came_breaks_the_checkpoint_at_the_receiver() -> None:
    attached = Attached()
    side = attached.attach("t", 1, 1)
    context = await stream(attached, wire.Frame(number=1, checkpoint=1, barrier=1))
    assert "0 frames of checkpoint 1" in side.why_broken
    assert not side.own, "the sender may have lost them"
    assert side.log == []
    assert context.heard[-1].startswith("refused: 0 frames")


async def test_a_frame_that_is_neither_rows_nor_a_barrier_is_refused_in_words() -> None:
    attached = Attached()
    side = attached.attach("t", 1, 1)
    context = await stream(attached, wire.Frame(number=1, checkpoint=1))
    assert "the content of a frame is unknown here" in context.heard[-1]
    assert side.log == []


@pytest.mark.slow
async def test_a_refusal_arrives_although_a_credit_is_being_written() -> None:
    """The first credit is written as the first frame comes; cancelled there, it would keep gRPC from writing the refusal."""
    async with receiving("receiver") as there, grpc.aio.insecure_channel(there.address) as channel:
        there.attached.attach("t", 1, 1)
        name = wire.StreamName(table="t", epoch=1, generation=1, sender="sender", receiver="receiver")
        said = [wire.ExchangeRequest(name=name), wire.ExchangeRequest(frame=wire.Frame(number=1, checkpoint=1))]
        for _ in range(200):
            answers = [answer async for answer in ExchangeServiceStub(channel).Exchange(iter(said), timeout=READY_S)]
            assert answers[-1].HasField("refused")


async def test_a_frame_that_cannot_be_read_is_refused_in_words() -> None:
    attached = Attached()
    side = attached.attach("t", 1, 1)
    context = await stream(attached, wire.Frame(number=1, checkpoint=1, rows=wire.Rows(batch=b"no arrow")))
    assert "cannot be read" in context.heard[-1]
    assert side.log == []


async def test_a_frame_for_a_side_that_is_over_is_refused() -> None:
    """Its rows would go nowhere, and the sender forget them."""
    attached = Attached()
    side = attached.attach("t", 1, 1)
    side.over = True
    (content,) = encode_rows(rows(range(2)))
    context = await stream(attached, wire.Frame(number=1, checkpoint=1, rows=content.message))
    assert context.heard[-1] == "refused: the table has moved on"
    assert side.log == []


async def test_ro12_a_frame_that_fails_half_taken_is_reported_and_never_taken_again() -> None:
    attached = Attached()
    side = attached.attach("t", 1, 1)

    def fail(*_: object) -> None:
        raise KeyError("ts")

    side.add_rows = fail  # type: ignore[method-assign]
    (content,) = encode_rows(rows(range(2)))
    frame = wire.Frame(number=1, checkpoint=1, rows=content.message)
    assert "failed at its receiver" in (await stream(attached, frame)).heard[-1]
    assert (side.why_broken, side.own) == ("KeyError: 'ts', while a frame of checkpoint 1 was taken", True)
    assert "moved on" in (await stream(attached, frame, wire.Frame(number=2, checkpoint=1, barrier=1))).heard[-1]
    assert side.log == []


FROM_STRANGERS = {
    "rows": wire.Frame(number=1, checkpoint=1, rows=wire.Rows(batch=b"not even read")),
    "a barrier that counts wrong": wire.Frame(number=1, checkpoint=1, barrier=7),
    "rows of a checkpoint that is over": wire.Frame(number=1, checkpoint=0, rows=wire.Rows(batch=b"not even read")),
    "rows of a checkpoint to come": wire.Frame(number=1, checkpoint=9, rows=wire.Rows(batch=b"not even read")),
}


@pytest.mark.parametrize("frame", FROM_STRANGERS.values(), ids=FROM_STRANGERS.keys())
async def test_ex7_a_frame_of_a_process_without_a_part_in_its_checkpoint_is_refused_and_breaks_nothing(frame: wire.Frame) -> None:
    attached = Attached()
    side = attached.attach("t", 1, 1)
    context = await stream(attached, frame, sender="stranger")
    assert context.heard[-1] == f"refused: process stranger has no part in checkpoint {frame.checkpoint} of the table"
    assert (side.log, side.over, side.received) == ([], False, {}), "nothing is kept of it"
    (content,) = encode_rows(rows(range(2)))
    await stream(attached, wire.Frame(number=1, checkpoint=1, rows=content.message))
    assert side.log == expected(1, range(2)), "others go on"


async def test_ex7_rows_that_are_faster_than_the_owner_wait_and_arrive_once_in_order(tmp_path: Path) -> None:
    async with receiving("receiver") as there, sending(tmp_path) as here:
        side = there.attached.attach("t", 1, 1)
        side.members = members_of(1)
        member = Member("receiver", there.address)
        for checkpoint in (1, 2):
            await here.out.send_rows(member, checkpoint, rows(range(5)), Tally())
            await here.out.send_barrier(member, checkpoint)
        await side.until(("barrier", 1, "sender"))
        for _ in range(50):  # nothing can come: the members of checkpoint 2 are not known
            await asyncio.sleep(0.001)
        assert side.log[-1] == ("barrier", 1, "sender")
        side.members.add_membership(membership(2, "receiver", "sender"))
        await side.until(("barrier", 2, "sender"))
        assert side.log[6:] == [*expected(2, range(5)), ("barrier", 2, "sender")]
        assert not here.why_broken

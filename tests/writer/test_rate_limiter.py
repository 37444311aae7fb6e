"""How fast a writer takes client batches of a table whose slices wait for compaction, and what it says when it takes none."""

import asyncio
import math
from pathlib import Path

import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import wire_error
from headgate_writer.rate_limiter import RateLimiter
from support.hand_clock import HandClock
from support.processes import READY_S
from support.running_writer import Cluster, cluster
from support.tables import notes, rows

WHY = wire_error(errors_pb2.CODE_OVERLOADED, "200 log files wait", "Start compactors.", retry_after_ms=1000)
STOP = wire.Throttle(stopped=True, why=WHY)
PAUSE = wire.Throttle(paused=True)


def paced(rate: int) -> tuple[RateLimiter, HandClock]:
    clock = HandClock()
    pace = RateLimiter(clock)
    pace.set_throttle(wire.Throttle(bytes_per_second=rate))
    return pace, clock


async def test_without_an_order_nothing_waits() -> None:
    pace = RateLimiter(HandClock())
    pace.count_bytes(1 << 40)
    assert pace.delay == 0
    await pace.wait_for_turn()


async def test_the_rate_holds_over_batches_of_any_size() -> None:
    pace, clock = paced(1000)
    began, taken = clock.now, 0
    for nbytes in (1, 5000, 10, 300, 2000, 1):
        clock.now += pace.delay
        pace.count_bytes(nbytes)
        taken += nbytes
    clock.now += pace.delay
    assert clock.now - began == pytest.approx(taken / 1000)


async def test_time_without_batches_is_not_saved_up() -> None:
    pace, clock = paced(1000)
    clock.now += 3600
    pace.count_bytes(500)
    assert pace.delay == pytest.approx(0.5)


async def test_a_higher_rate_shortens_the_wait_of_what_was_taken_and_none_ends_it() -> None:
    pace, clock = paced(1000)
    pace.count_bytes(4000)
    clock.now += 1
    pace.set_throttle(wire.Throttle(bytes_per_second=3000))
    assert pace.delay == pytest.approx(1.0)
    pace.set_throttle(wire.Throttle())
    assert pace.delay == 0


async def test_in_a_pause_no_time_lets_the_next_batch_in_and_what_was_taken_is_owed_at_the_rate_that_follows() -> None:
    pace, clock = paced(0)
    pace.set_throttle(PAUSE)
    assert pace.delay == math.inf
    pace.count_bytes(500)
    clock.now += 3600
    assert pace.delay == math.inf
    pace.set_throttle(wire.Throttle(bytes_per_second=1000))
    assert pace.delay == pytest.approx(0.5)


@pytest.mark.parametrize("order", [wire.Throttle(), STOP])
@pytest.mark.parametrize("before", [wire.Throttle(bytes_per_second=1), PAUSE])
async def test_who_waits_goes_on_when_the_table_is_free_or_stopped(before: wire.Throttle, order: wire.Throttle) -> None:
    pace = RateLimiter(HandClock())
    pace.set_throttle(before)
    pace.count_bytes(1 << 40)
    waiting = [asyncio.ensure_future(pace.wait_for_turn()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    pace.set_throttle(order)
    async with asyncio.timeout(READY_S):
        await asyncio.gather(*waiting)
    assert (pace.refusal is not None) == order.stopped


async def throttle(made: Cluster, order: wire.Throttle) -> RateLimiter:
    """Returns once the first writer has taken it in."""
    writer = made.writers[0].tables.writer_of("table")
    assert writer is not None
    changed = writer.rate._changed
    for link in made.links:
        made.owned.order(link, throttle=order)
    await changed.wait()
    return writer.rate


async def test_a_stopped_table_refuses_batches_with_the_owners_error_and_keeps_the_channel(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "before")))
        await channel.acked(received=1)
        await throttle(made, STOP)
        await channel.append(rows(("b", 1, "not yet")))
        await channel.append(rows(("c", 1, "not yet")))
        refused = await channel.refused()
        assert (refused.offset, refused.accepted) == (2, 1)
        assert refused.error == WHY
        assert (await channel.refused()).error.code == errors_pb2.CODE_AFTER_FAILED_BATCH
        assert await made.commit(1) == {"c": 1}, "what was accepted commits"
        await channel.acked(received=1, durable=1, queryable=1)
        await throttle(made, wire.Throttle())
        channel.offset = 1
        await channel.append(rows(("b", 1, "now")))
        await channel.append(rows(("c", 1, "now")))
        await channel.acked(received=3)
        assert await made.commit(2) == {"c": 3}
        assert notes(made.table) == {"a": "before", "b": "now", "c": "now"}


async def test_a_batch_that_came_before_is_repeated_and_flushes_are_heard_while_the_table_is_stopped(tmp_path: Path) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)
        await throttle(made, STOP)
        await channel.say(flush=ingest_pb2.Flush())
        await made.links[0].report("ask_checkpoint")
        channel.offset = 0
        await channel.append(rows(("a", 1, "x")))
        await channel.acked(received=1)


@pytest.mark.parametrize("order", [wire.Throttle(bytes_per_second=1), PAUSE])
async def test_a_slow_or_paused_table_reads_no_client_meanwhile_and_checkpoints_go_on(
    tmp_path: Path, order: wire.Throttle
) -> None:
    async with cluster(tmp_path) as made:
        channel = await made.channel()
        pace = await throttle(made, order)
        await channel.append(rows(("a", 1, "x")))
        await channel.append(rows(("b", 1, "x")))
        await channel.acked(received=1)
        assert pace.delay > 1
        assert await made.commit(1) == {"c": 1}, "the second one has not been read"
        await throttle(made, wire.Throttle())
        await channel.acked(received=2)

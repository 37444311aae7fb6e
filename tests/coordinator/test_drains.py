"""How long a coordinator that ends waits for the checkpoints of its tables."""

import asyncio
from pathlib import Path

import pytest

from headgate_coordinator.leadership.elections import DRAIN_EXTENSION_S, drain_deadline
from headgate_proto.api.v1 import tables_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.hudi import open_table
from support.redis_server import start_redis
from support.running_coordinator import Running, running_coordinator
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, by_hudi_rs, rows

FLIGHTS = "flights"
OPTIONS = {"partition_by": ["part"], "ordering": "ts", "buckets": 2}
DRAIN_TIMEOUT_S = 1.0


@pytest.mark.slow
@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_drain_goes_on_while_its_checkpoint_does(goes_on: bool, tmp_path: Path, redis: str) -> None:
    """What a checkpoint has flushed would be lost with the ownership, and under a load that takes long to flush each restart of a
    coordinator would lose it again.
    """
    async with (
        running_coordinator(tmp_path, redis, drain_timeout=DRAIN_TIMEOUT_S) as coordinator,
        scripted_writer(coordinator.address, flushes=False) as writer,
    ):
        table = await coordinator.create(FLIGHTS, SCHEMA, **OPTIONS)
        await writer.order(FLIGHTS, "attach")
        await writer.open(FLIGHTS, "c")
        writer.take(FLIGHTS, rows(("a", 1, "x")), "c", 1)
        ending = asyncio.ensure_future(coordinator.drain())
        number = (await writer.order(FLIGHTS, "barrier")).checkpoint
        if goes_on:
            for _ in range(4):
                await asyncio.sleep(0.4 * DRAIN_TIMEOUT_S)
                writer.report(FLIGHTS, progress=wire.Progress(checkpoint=number))
            await writer.flush(FLIGHTS, number)
        await ending
    committed = {name: record[1] for name, record in open_table(table.url).channels.items()}
    assert committed == {"c": 1 if goes_on else 0}
    assert [row["id"] for row in by_hudi_rs(table.url)] == (["a"] if goes_on else [])


@pytest.mark.parametrize(
    ("progressed_at", "deadline"),
    [
        (0.0, 110.0),  # nothing went on since it began
        (99.0, 110.0),
        (104.0, 114.0),
        (500.0, 110.0 + DRAIN_EXTENSION_S),  # the platform would kill it
    ],
)
def test_a_drain_lasts_from_the_last_progress_and_never_longer_than_a_grace_period(progressed_at: float, deadline: float) -> None:
    assert drain_deadline(100.0, progressed_at, 10.0) == deadline


@pytest.mark.slow
async def test_a_drain_while_redis_is_away_goes_on_committing_until_another_can_take_over(tmp_path: Path) -> None:
    """Both are restarted at once, say. The Redis that comes back is empty, but the heir waits for no holder."""
    redis = start_redis(tmp_path / "redis.log")
    never = {"lease_ttl": 600.0, "drain_timeout": 60.0}
    async with (
        running_coordinator(tmp_path / "store", redis.address, name="one", **never) as one,
        running_coordinator(tmp_path / "store", redis.address, name="two", **never) as two,
    ):
        table = await one.create(FLIGHTS, SCHEMA, **OPTIONS)
        owner, heir = await owner_and_heir(one, two)
        async with scripted_writer(owner.address) as before, scripted_writer(heir.address, address="w:2") as after:
            await before.order(FLIGHTS, "attach")
            await before.open(FLIGHTS, "c", principal="me")
            redis.kill()
            ending = asyncio.ensure_future(owner.drain())
            await asyncio.sleep(0.5)  # a drain of a table without rows takes a tenth of it
            await before.commit(FLIGHTS, rows(("a", 1, "x")), "c", 1)
            assert not ending.done()
            again = start_redis(tmp_path / "redis.log", int(redis.address.rpartition(":")[2]))
            await ending
            await after.order(FLIGHTS, "attach")
            grant = await after.open(FLIGHTS, "c", principal="me")
            assert (grant.incarnation, grant.committed_offset) == (2, 1)
            await after.commit(FLIGHTS, rows(("b", 1, "y")), "c", 2)
    again.kill()
    assert sorted(row["id"] for row in by_hudi_rs(table.url)) == ["a", "b"]


@pytest.mark.slow
@pytest.mark.parametrize("others", [False, True])
async def test_a_redis_that_stays_away_holds_a_drain_up_no_longer_than_its_timeout_and_alone_not_at_all(
    others: bool, tmp_path: Path
) -> None:
    redis = start_redis(tmp_path / "redis.log")
    loop = asyncio.get_running_loop()
    async with running_coordinator(tmp_path / "store", redis.address, drain_timeout=3.0) as owner:
        await owner.create(FLIGHTS, SCHEMA, **OPTIONS)
        await owner.until(FLIGHTS, state="owned")
        if others:
            async with running_coordinator(tmp_path / "store", redis.address, name="other"):
                while len((await owner.tables.Status(tables_pb2.StatusRequest())).coordinators) < 2:
                    await asyncio.sleep(0.02)  # and it is named for a while after its end
        redis.kill()
        began = loop.time()
        await owner.drain()
        assert (loop.time() - began >= 3.0) is others


async def owner_and_heir(*coordinators: Running) -> tuple[Running, Running]:
    """Waits until one of two owns the table."""
    while True:
        for owner, heir in (coordinators, coordinators[::-1]):
            if (await owner.status(FLIGHTS)).state == "owned":
                return owner, heir
        await asyncio.sleep(0.02)

"""The owner removes partitions that are past their time by itself, and never by a clock that nobody confirms (rule D10)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headgate_coordinator.metrics import Metrics
from headgate_coordinator.tables.expiring import Expiry
from headgate_coordinator.tables.guarded_clock import GuardedClock, TimeWitness
from headgate_proto.api.v1 import maintenance_pb2 as api
from headgate_proto.api.v1 import tables_pb2
from headgate_proto.api.v1.maintenance_pb2_grpc import MaintenanceServiceStub
from headgate_runtime.metrics import metrics
from headgate_tables import hudi
from support.hand_clock import HandClock
from support.running_coordinator import OPTIONS, Running, T, running_coordinator
from support.scripted_writer import scripted_writer
from support.systems import NOON, SetClock, system
from support.tables import SCHEMA, by_hudi_rs, create, rows

TTL = {"headgate.ttl": "30d", "headgate.ttl.by": "part"}
REDIS = TimeWitness("Redis", independent=True)
DAY = 86_400_000


async def ids(coordinator: Running) -> set[str]:
    answer = await coordinator.tables.DescribeTable(tables_pb2.DescribeTableRequest(name=T))
    return {row["id"] for row in by_hudi_rs(answer.table.url)}


@pytest.mark.slow
async def test_old_partitions_go_by_themselves_and_a_channel_goes_on_at_its_offset(tmp_path: Path, redis: str) -> None:
    async with running_coordinator(tmp_path, redis, expiry_interval=0.5, service_interval=0.1) as coordinator:
        await coordinator.create(T, SCHEMA, **OPTIONS)
        await coordinator.until(T, state="owned")
        async with scripted_writer(coordinator.address) as writer:
            await writer.order(T, "attach")
            await writer.open(T, "c")
            for offset, day in enumerate(("2020-01-01", "2999-01-01", "undated"), 1):
                await writer.commit(T, rows((day, 1, "x"), part=day), "c", offset)
            before = writer.pair(T)
            await MaintenanceServiceStub(coordinator.channel).Configure(api.ConfigureRequest(table=T, settings=TTL))
            await writer.order(T, "detach")
            await writer.order(T, "attach")
            assert writer.pair(T)[0] > before[0]
            assert await ids(coordinator) == {"2999-01-01", "undated"}
            grant = await writer.open(T, "c", incarnation=1)
            assert grant.committed_offset == 3
            await writer.commit(T, rows(("more", 1, "x"), part="2999-01-01"), "c", 4)
            assert await ids(coordinator) == {"2999-01-01", "undated", "more"}


class Owned:
    """Runs calls on a real table as an owned table does, without a cluster."""

    def __init__(self, table: hudi.Table) -> None:
        self.table = table
        self.removals = 0

    async def call_table(self, call: Any) -> Any:
        return call(self.table)

    async def call_table_alone(self, _: Any, call: Any) -> None:
        self.removals += 1
        call(self.table)


@pytest.mark.parametrize(
    ("says", "jumped", "goes"),
    [(0, False, True), (None, False, False), (400 * DAY, False, False), (-400 * DAY, False, False), (0, True, False)],
    ids=["agrees", "nobody", "witness ahead", "witness behind", "jumped"],
)
async def test_a_clock_that_no_other_confirms_or_that_has_jumped_expires_nothing(
    says: int | None, jumped: bool, goes: bool, tmp_path: Path
) -> None:
    wall, hand = SetClock(), HandClock()
    with create(tmp_path, system=system(wall)) as table:
        table.configure({"headgate.ttl": "30d"})
        for ts in (1, 2):
            table.upsert(rows(("a", ts, "x"), part="p"))
        while table.largest_slice() is None:
            table.maintain()
        assert table.plan_compaction(forced=True), "an open compaction is cancelled"
        wall.now = NOON + 40 * DAY
        guard = GuardedClock(wall, hand)
        if jumped:
            guard.note_reading(REDIS, wall.now, hand.now)
            guard.now_ms()
            wall.now += DAY
        if says is not None:
            guard.note_reading(REDIS, wall.now + says, hand.now)
        owned, sleeps = Owned(table), asyncio.Event()

        class Once:
            async def sleep(self, _: float) -> None:
                if sleeps.is_set():
                    raise asyncio.CancelledError
                sleeps.set()

        counted = Metrics(metrics("coordinator")).for_table("t")
        with pytest.raises(asyncio.CancelledError):
            await Expiry(owned, guard, Once(), 1.0, lambda: None, counted).run()  # type: ignore[arg-type]
        assert owned.removals == goes
        assert (table.scan().to_table().num_rows == 0) == goes
        assert counted.expired_partitions._value.get() == goes

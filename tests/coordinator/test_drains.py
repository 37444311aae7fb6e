"""How long a coordinator that ends waits for the checkpoints of its tables."""

import asyncio
from pathlib import Path

import pytest

from headgate_coordinator.leadership.elections import DRAIN_EXTENSION_S, drain_deadline
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_tables.hudi import open_table
from support.running_coordinator import running_coordinator
from support.scripted_writer import scripted_writer
from support.tables import SCHEMA, by_hudi_rs, rows

FLIGHTS = "flights"
OPTIONS = {"partition_by": ["part"], "ordering": "ts", "buckets": 2}
DRAIN_TIMEOUT_S = 1.0


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

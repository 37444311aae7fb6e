"""Sockets are reset in the middle of messages, in both directions; every row arrives once, in order."""

import asyncio
import random

import pyarrow as pa
import pytest

from headgate import aio
from support.cutting_proxy import cutting_proxy
from support.scripted_service import scripted_cluster

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_every_row_arrives_once_and_in_order_whatever_is_cut(seed: int) -> None:
    dice = random.Random(seed)
    async with scripted_cluster(writers=2) as cluster:
        cluster.knobs.commit_every = dice.choice([1, 4, 50])
        cluster.knobs.commit_before_break = dice.random() < 0.5
        async with cutting_proxy(cluster.writers[0]) as first, cutting_proxy(cluster.writers[1]) as second:
            cluster.listed = [first.address, second.address]
            async with aio.connect(cluster.coordinator, timeout=60) as hg:
                table = await hg.create_table("t", SCHEMA, key="id")
                async with table.channel("c") as channel:
                    sent = 0
                    # A slow machine reconnects rarely, so 4,000 rows may go out over few connections.
                    while sent < 4000 or len(cluster.opens) < 5:
                        count = dice.choice([1, 1, 3, 200])
                        note = "n" * dice.choice([1, 500])
                        await channel.upsert([{"id": number, "note": note} for number in range(sent, sent + count)])
                        sent += count
                        if dice.random() < 0.1:
                            for proxy in (first, second):
                                proxy.cut_after = dice.randrange(20_000)
                        if dice.random() < 0.1:
                            dice.choice((first, second)).cut()
                        if dice.random() < 0.3:
                            await asyncio.sleep(0)
                        if dice.random() < 0.05:
                            await channel.flush("durable")
                    first.cut_after = second.cut_after = None
            assert [row["id"] for row in cluster.tables["t"].rows] == list(range(sent))

"""What raw gRPC clients send wrongly, against real processes: a typed error says what to do, the channel stands still (rule CH2),
nothing accepted before it is lost, nobody else notices, and no process dies or swells."""

import asyncio
import re
from collections.abc import Iterator
from typing import NoReturn

import grpc
import numpy as np
import pytest

from headgate_proto.api.v1 import errors_pb2, ingest_pb2
from support.arrow_batches import batch, schema_message
from support.bad_batches import ALL, MIB, ROWS, SCHEMA, Bad, bomb
from support.cluster import Cluster
from support.memory import peak_memory, reset_peak_memory
from support.producer import Producer
from support.scene import WRITER, rows, scene
from support.tiers import slow_but

OPTIONS = {"coordinator": ["--checkpoint-min-interval", "50ms", "--writer-timeout", "20s"]}
"""A busy machine loses no writer: a table that is rewound here is a defect."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two writers, so that rows travel."""
    with Cluster(tmp_path_factory.mktemp("bad") / "cluster", options=OPTIONS) as running:
        yield running


@pytest.mark.parametrize("case", slow_but(["a column is missing", "a null key", "noise", "a gap"], ALL))
async def test_a_bad_batch_is_refused_alone(case: str, cluster: Cluster) -> None:
    """Rows in front of it are kept; those behind it wait for its correction, or in the second channel for the skip."""
    bad = ALL[case]
    async with scene(cluster, re.sub(r"\W+", "-", case)) as at:
        await at.neighbour_writes()
        for channel in ("corrected", "skipped"):
            victim = await at.channel(channel)
            wrong = await asyncio.to_thread(bad.make)
            if not wrong.offset:
                wrong.after, wrong.offset = 2, 4
            await asyncio.gather(_send_around(wrong, victim, channel), at.neighbour_writes())
            await victim.acked(received=2)
            refused = await victim.refused()
            assert (refused.offset, refused.accepted) == (wrong.offset, 2)
            assert_explained(refused.error, bad, cluster)
            await _stands_still(victim)
            await victim.send(4, 6, rows(f"{channel} slipped"))
            await _stands_still(victim)
            await at.neighbour_writes()
            if channel == "corrected":
                await victim.send(2, 4, rows("corrected"))
            else:
                await victim.say(skip=ingest_pb2.Skip(offset=4))
            await victim.send(4, 6, rows(f"{channel} behind"))
            await victim.say(close=ingest_pb2.CloseChannel())
            await victim.acked(received=6, queryable=6)
            assert await victim.ended() == errors_pb2.CODE_UNSPECIFIED
        await at.judge("corrected before", "corrected", "corrected behind", "skipped before", "skipped behind")


async def _send_around(wrong: ingest_pb2.Batch, victim: Producer, name: str) -> None:
    """Good rows, the wrong ones, good rows, without waiting for an answer."""
    await victim.send(0, 2, rows(f"{name} before"))
    await victim.say(batch=wrong)
    await victim.send(4, 6, rows(f"{name} slipped"))


async def _stands_still(victim: Producer) -> None:
    behind = await victim.refused()
    assert (behind.offset, behind.accepted, behind.error.code) == (6, 2, errors_pb2.CODE_AFTER_FAILED_BATCH)
    assert "with after=2, or skip it" in behind.error.fix


def assert_explained(error: errors_pb2.Error, bad: Bad, cluster: Cluster) -> None:
    """Code, what is wrong by name, the next step; nothing of the machine."""
    assert (error.code, error.action) == (bad.code, errors_pb2.ACTION_FIX_CALL), error
    assert re.search(bad.says, error.message), error.message
    assert re.search(bad.fix, error.fix), error.fix
    assert error.fix[0].isupper()
    assert error.fix.endswith(".")
    assert str(cluster.folder) not in error.message + error.fix


@pytest.mark.slow
async def test_bombs_cost_a_writer_no_memory(cluster: Cluster) -> None:
    """96 MiB each from eight channels at once; those that say less than they are fill no more than they say."""
    limit = 64 * MIB
    messages = [bomb(96 * MIB, "zstd"), bomb(96 * MIB, "zstd", says=MIB), bomb(96 * MIB, "lz4"), bomb(96 * MIB, "lz4", says=MIB)]
    schema = schema_message(SCHEMA)
    pid = cluster.part(WRITER).pid
    async with scene(cluster, "bombs") as at:
        await at.neighbour_writes()
        before = reset_peak_memory(pid)

        async def send_all(victim: Producer) -> None:
            for message in messages * 3:
                await victim.say(
                    batch=ingest_pb2.Batch(after=0, offset=1, operation=ingest_pb2.OPERATION_UPSERT, schema=schema, rows=message)
                )
                assert (await victim.refused()).error.code in (errors_pb2.CODE_TOO_LARGE, errors_pb2.CODE_CORRUPT_BATCH)

        victims = [await at.channel(f"victim {number}") for number in range(8)]
        await asyncio.gather(*map(send_all, victims), at.neighbour_writes(100))
        assert peak_memory(pid) - before < limit
        await at.judge()


async def all_answers(producer: Producer) -> NoReturn:
    """Until the stream breaks; what came before may be committed first."""
    while True:
        await producer.answer()


@pytest.mark.slow
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_a_message_over_the_limit_of_grpc_ends_its_stream_and_loses_nothing(
    compression: grpc.Compression, cluster: Cluster
) -> None:
    """gRPC refuses it before there is anything to answer; compressed it is a bomb. The producer goes on behind what it has."""
    pid = cluster.part(WRITER).pid
    async with scene(cluster, f"message-{compression.name}") as at:
        await at.neighbour_writes()
        victim = await at.channel("victim", compression=compression)
        await victim.append(rows("before"))
        await victim.acked(received=1)
        before = reset_peak_memory(pid)
        large = ingest_pb2.Batch(after=1, offset=2, operation=ingest_pb2.OPERATION_UPSERT, rows=bytes(256 * MIB))
        await victim.say_at_once(batch=large)
        with pytest.raises(grpc.aio.AioRpcError) as broken:
            await all_answers(victim)
        assert broken.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert peak_memory(pid) - before < 64 * MIB
        await at.neighbour_writes()
        again = await at.channel("victim", incarnation=1)
        assert again.offset == 1
        await again.append(rows("behind"))
        await again.say(close=ingest_pb2.CloseChannel())
        await again.acked(queryable=2)
        await at.judge("before", "behind")


async def test_an_unknown_table_is_told_as_such(cluster: Cluster) -> None:
    async with scene(cluster, "known") as at:
        stream = at.stream()
        await stream.open("unknown")
        error = (await stream.answer()).ended.error
        assert (error.code, error.action) == (errors_pb2.CODE_TABLE_NOT_FOUND, errors_pb2.ACTION_FIX_CALL)
        assert "Create it, or correct the name" in error.fix
        await at.judge()


async def test_a_producer_whose_channel_was_taken_over_is_told_so_and_its_accepted_rows_stay(cluster: Cluster) -> None:
    """Rules CH3 and CH4: the newer one begins behind what the older one was told is accepted; the older one never comes back."""
    async with scene(cluster, "taken-over") as at:
        await at.neighbour_writes()
        old = await at.channel("c")
        await old.append(rows("old"))
        await old.acked(received=1)
        new = await at.channel("c")
        assert new.offset == 1
        assert await old.ended() == errors_pb2.CODE_MOVED
        for _ in range(3):
            old = at.stream()
            await old.open(at.name, "c", incarnation=1)
            error = (await old.answer()).ended.error
            assert (error.code, error.action) == (errors_pb2.CODE_CHANNEL_TAKEN_OVER, errors_pb2.ACTION_GIVE_UP)
            assert "newer producer" in error.message
            assert "Stop this producer" in error.fix
        await new.append(rows("new"))
        await new.say(close=ingest_pb2.CloseChannel())
        await new.acked(queryable=2)
        await at.judge("old", "new")


async def test_values_that_look_like_paths_are_folders_inside_the_table(cluster: Cluster) -> None:
    values = ["../../../outside", "/root", "a/../b", "%2e%2e", "~", " ", "..x", "C:\\x", "a\nb", "ü/日本"]
    async with scene(cluster, "paths") as at:
        victim = await at.channel("c")
        for number, value in enumerate(values):
            await victim.append(rows(f"key {number}", part=value))
        await victim.say(close=ingest_pb2.CloseChannel())
        await victim.acked(queryable=len(values))
        await at.judge(*(f"key {number}" for number in range(len(values))))
        table = cluster.folder / "store" / at.name
        folders = {path.parent for path in table.rglob("*.log.*") if ".hoodie" not in path.parts}
        assert {folder.parent for folder in folders} == {table}
        assert len(folders) == len({"p", *values})
        assert {path.name for path in cluster.folder.iterdir()} == {"logs", "store"}


@pytest.mark.slow
async def test_damaged_bytes_are_refused_or_harmless(cluster: Cluster) -> None:
    """One bit of each byte of the metadata: the answer is an ack or a typed error, and what was accepted can be committed."""
    async with scene(cluster, "damaged") as at:
        await at.neighbour_writes()
        victim = await at.channel("c")
        verdicts = set()
        for damaged in _damaged(batch(ROWS)):
            damaged.after, damaged.offset = victim.offset, victim.offset + 1
            await victim.say(batch=damaged)
            answer = await victim.answer()
            while answer.WhichOneof("message") == "acks" and answer.acks.received < damaged.offset:
                answer = await victim.answer()
            verdicts.add(answer.WhichOneof("message"))
            if answer.WhichOneof("message") == "acks":
                victim.offset += 1
            else:
                assert answer.refused.error.action == errors_pb2.ACTION_FIX_CALL, answer
        assert verdicts == {"acks", "refused"}
        await victim.say(skip=ingest_pb2.Skip(offset=victim.offset + 1))
        await victim.say(close=ingest_pb2.CloseChannel())
        await victim.acked(queryable=victim.offset + 1)
        await at.undisturbed()


def _damaged(whole: ingest_pb2.Batch) -> Iterator[ingest_pb2.Batch]:
    draw = np.random.default_rng(7)
    for field, end in (("schema", len(whole.schema)), ("rows", 8 + int.from_bytes(whole.rows[4:8], "little"))):
        for place, bit in enumerate(draw.integers(0, 8, end).tolist()):
            damaged = bytearray(getattr(whole, field))
            damaged[place] ^= 1 << bit
            made = ingest_pb2.Batch()
            made.CopyFrom(whole)
            setattr(made, field, bytes(damaged))
            yield made

"""A table of a real cluster, a client that will send something bad, and a neighbour at the same writer who must not notice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pyarrow as pa
from hudi import HudiTableBuilder

from headgate_proto.api.v1 import ingest_pb2
from headgate_proto.api.v1.ingest_pb2_grpc import IngestServiceStub
from support.bad_batches import SCHEMA
from support.cluster import Cluster
from support.producer import Producer
from support.running_coordinator import Client, client_of

WRITER = "writer-1"
"""Where all clients of a scene are."""


class Scene:
    """Its table has the key ``id``, the partition ``part`` and the ordering ``ts``."""

    def __init__(self, name: str, url: str, cluster: Cluster, client: Client, stub: Any) -> None:
        self.name = name
        self.url = url
        self._cluster = cluster
        self._client = client
        self._stub = stub
        self._neighbour: Producer | None = None
        self._written: list[str] = []

    def stream(self, **how: Any) -> Producer:
        """A new one, on which nothing is said yet."""
        return Producer(self._stub.Append(**how))

    async def channel(self, name: str, incarnation: int = 0, **how: Any) -> Producer:
        """An open one; ``offset`` is what was committed."""
        producer = self.stream(**how)
        await producer.open(self.name, name, incarnation)
        producer.offset = (await producer.opened()).committed_offset
        return producer

    async def neighbour_writes(self, batches: int = 20) -> None:
        """Rows of another client: each batch is acknowledged, and it hears nothing else."""
        if self._neighbour is None:
            self._neighbour = await self.channel("neighbour")
        for _ in range(batches):
            self._written.append(f"neighbour-{len(self._written)}")
            await self._neighbour.append(rows(self._written[-1]))
        await self._neighbour.acked(received=len(self._written))

    async def judge(self, *keys: str) -> None:
        """Exactly these keys and the neighbour's are in the table, and it is ``undisturbed``."""
        await self.undisturbed()
        assert await asyncio.to_thread(keys_of, self.url) == sorted([*keys, *self._written])

    async def undisturbed(self) -> None:
        """The neighbour gets its rows committed, nothing was rewound, and all processes live."""
        await self.neighbour_writes()
        assert self._neighbour is not None
        await self._neighbour.say(flush=ingest_pb2.Flush())
        await self._neighbour.acked(queryable=len(self._written))
        status = await self._client.status(self.name)
        assert (status.epoch, status.generation) == (1, 1), status.alarms
        assert all(part.is_alive for part in self._cluster.parts.values())


@asynccontextmanager
async def scene(cluster: Cluster, name: str) -> AsyncIterator[Scene]:
    """With a new table of that name."""
    async with client_of(cluster.address) as client, grpc.aio.insecure_channel(cluster.address_of(WRITER)) as channel:
        table = await client.create(name, SCHEMA, partition_by=["part"], ordering="ts", buckets=2)
        yield Scene(name, table.url, cluster, client, IngestServiceStub(channel))


def rows(*keys: str, part: str = "p") -> pa.Table:
    """Good ones, with these keys."""
    columns: dict[str, list[Any]] = {
        "id": list(keys),
        "part": [part] * len(keys),
        "ts": [1] * len(keys),
        "note": [""] * len(keys),
    }
    return pa.Table.from_pydict(columns, SCHEMA)


def keys_of(url: str) -> list[str]:
    """What readers see, sorted."""
    batches = HudiTableBuilder.from_base_uri(url).build().read()
    return sorted(str(key) for batch in batches for key in pa.table(batch)["id"].to_pylist())

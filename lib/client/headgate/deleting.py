"""Deletes by a condition through a cluster: rows that match in a snapshot are deleted by key, through a channel of their own."""

import asyncio
import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from headgate.acks import Level
from headgate.reading.aio import ReadableByName
from headgate.reading.library import Options
from headgate.reading.matching import Matching


@dataclass(frozen=True, slots=True)
class Deletion:
    """What ``delete_where`` did, or with ``dry_run`` would do. ``partitions``: how many rows of each, by path.

    ``as_of``: completion time of the newest commit that was searched. ``channel``, ``offset``: what sent the deletes, and the
    offset of the last one; "" and 0 when there was none. ``left``: rows that match in a later snapshot, in which the deletes
    count: they came meanwhile. None when nothing was sent.
    """

    rows: int
    partitions: Mapping[str, int]
    as_of: str
    channel: str = ""
    offset: int = 0
    left: int | None = None


class Deletes(Protocol):
    """A channel, as far as it is needed here."""

    @property
    def offset(self) -> int: ...

    async def delete(self, rows: object, *, timeout: float | None = None) -> object: ...

    async def flush(self, level: Level, *, timeout: float | None = None) -> None: ...


def channel_of(where: str) -> str:
    """The name of the channel that deletes by this condition: a second run of a program takes it over from the first."""
    return f"delete:{hashlib.sha256(where.encode(errors='surrogatepass')).hexdigest()[:16]}"


class Deletable(ReadableByName):
    """A table of a cluster, of which rows can be deleted by a condition. The blocking method says what it does and raises."""

    @abstractmethod
    def channel(self, name: str) -> AbstractAsyncContextManager[Deletes]:
        """The channel of this name, not yet open."""

    async def delete_where(
        self,
        where: str,
        *,
        dry_run: bool = False,
        channel: str = "",
        timeout: float | None = None,
        storage_options: Options = None,
    ) -> Deletion:
        place = self._place(storage_options)
        found = await asyncio.to_thread(Matching, *place, where)
        if dry_run:
            rows = await asyncio.to_thread(found.count)
            return Deletion(rows, found.partitions, found.as_of)
        await asyncio.to_thread(found.check_ordered)
        name = channel or channel_of(where)
        offset = await self._send(found, name, timeout)
        rows = sum(found.partitions.values())
        if not rows:
            return Deletion(0, {}, found.as_of)
        now = await asyncio.to_thread(Matching, *place, where)
        return Deletion(rows, found.partitions, found.as_of, name, offset, await asyncio.to_thread(now.count))

    async def _send(self, found: Matching, name: str, timeout: float | None) -> int:
        """Returns the offset of the last delete when readers see all of them; opens no channel for none."""
        pieces = found.tables()
        piece = await asyncio.to_thread(next, pieces, None)
        if piece is None:
            return 0
        async with self.channel(name) as channel:
            while piece is not None:
                await channel.delete(piece, timeout=timeout)
                piece = await asyncio.to_thread(next, pieces, None)
            await channel.flush("queryable", timeout=timeout)
            return channel.offset

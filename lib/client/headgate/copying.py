"""Copies of tables through a cluster: the rows of one moment go into a new table, through a channel of its own."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from headgate.acks import Level
from headgate.errors import InvalidArgumentError, TableExistsError
from headgate.operating import ChannelSummary
from headgate.reading.aio import ReadableByName, Scan
from headgate.reading.library import Moment, Options

_PREFIX = "copy:"


@dataclass(frozen=True, slots=True)
class Copy:
    """What ``copy`` did. ``rows``: of the new table; ``as_of``: completion time of the newest commit whose rows are in it, ""
    when there was none. ``channel``: what sent them.
    """

    name: str
    rows: int
    as_of: str
    channel: str


class Upserts(Protocol):
    """A channel, as far as it is needed here."""

    async def upsert(self, rows: object, *, timeout: float | None = None) -> object: ...

    async def flush(self, level: Level, *, timeout: float | None = None) -> None: ...


class Target(Protocol):
    """The new table."""

    def channel(self, name: str) -> AbstractAsyncContextManager[Upserts]: ...

    async def channels(self, prefix: str = "") -> Sequence[ChannelSummary]: ...

    async def scan(self, *, storage_options: Options = None) -> Scan: ...


class Copyable(ReadableByName):
    """A table of a cluster that can be copied within it. The blocking method says what it does and raises."""

    @abstractmethod
    async def _create_like(self, name: str, *, exist_ok: bool) -> Target:
        """A table with this one's columns, key, partitions, ordering and buckets."""

    async def copy(
        self,
        to: str,
        *,
        as_of: Moment | None = None,
        go_on: bool = False,
        timeout: float | None = None,
        storage_options: Options = None,
        progress: Callable[[int], object] | None = None,
    ) -> Copy:
        target = await self._create_like(to, exist_ok=True) if go_on else None
        begun = await self._moment_of(target, storage_options) if target is not None else None
        # Before the new table is made: a moment that is gone makes none.
        scan = await self.scan(as_of=as_of if begun is None else begun, storage_options=storage_options)
        if begun is not None and as_of is not None:
            given = await self.scan(as_of=as_of, storage_options=storage_options)
            if given.as_of != begun:
                raise InvalidArgumentError(
                    f"the copy {to} was begun as of {begun}", fix="Go on without `as_of`, or drop that table and copy anew."
                )
        if target is None:
            target = await self._create_new(to)
        name = f"{_PREFIX}{self.info.uuid}:{scan.as_of}"
        rows = 0
        async with target.channel(name) as channel:
            async for batch in scan.batches():
                await channel.upsert(batch, timeout=timeout)
                rows += batch.num_rows
                if progress is not None:
                    progress(rows)
            await channel.flush("queryable", timeout=timeout)
        return Copy(to, rows, scan.as_of, name)

    async def _create_new(self, to: str) -> Target:
        try:
            return await self._create_like(to, exist_ok=False)
        except TableExistsError as error:
            fix = "Choose another name, or pass go_on=True to go on with a copy that broke off."
            raise TableExistsError(error.message, fix=fix) from None

    async def _moment_of(self, target: Target, storage_options: Options) -> str | None:
        """The moment of a copy into this table that was begun; None when none was. Raises InvalidArgumentError for a table that
        others have written.
        """
        own = f"{_PREFIX}{self.info.uuid}:"
        channels = [each.name for each in await target.channels()]
        if not channels and not (await target.scan(storage_options=storage_options)).as_of:
            return None
        if len(channels) != 1 or not channels[0].startswith(own):
            raise InvalidArgumentError(
                "the new table has rows of others, so it is no copy that could go on", fix="Choose another name, or drop it."
            )
        return channels[0].removeprefix(own)

"""What operators do with a table, for ``headgate.aio``; the blocking methods say what each does and raises."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from headgate.arguments import Settings, checked_text, checked_texts, setting_texts
from headgate.coordinators import ClusterConnection
from headgate.definition import Columns, Evolve, TableInfo, time_of
from headgate.errors import InvalidArgumentError
from headgate.maintenance import Maintenance
from headgate.schemas import SchemaLike, schema_of
from headgate_proto.api.v1 import maintenance_pb2 as api


@dataclass(frozen=True, slots=True)
class Compaction:
    """What ``compact`` did. ``plans``: the instants of those that were open or made.

    ``finished``: file slices that became base files; ``dropped``: those that stay as they were, because they failed too often;
    ``cancelled``: plans that were taken back before their end, by a restore for example.
    """

    plans: tuple[str, ...]
    finished: int
    dropped: int
    cancelled: int


@dataclass(frozen=True, slots=True)
class Restore:
    """What ``restore`` undid, or with ``plan_only`` would undo: instants, oldest first, and how many data files.

    ``instant``: of the restore itself; empty with ``plan_only``. ``cancelled_plans``: compactions that were pending.
    """

    instant: str
    undone: tuple[str, ...]
    files: int
    cancelled_plans: int


@dataclass(frozen=True, slots=True)
class Alteration:
    """What ``alter`` changed, or with ``plan_only`` would change, as texts such as ``gate: string``. Empty: nothing had to.

    ``schema``: the table's columns from then on.
    """

    added: tuple[str, ...]
    widened: tuple[str, ...]
    nullable: tuple[str, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class Truncation:
    """What ``truncate`` did. ``instant``: of its commit, "" when no row was there; ``file_groups``: how many had rows."""

    instant: str
    file_groups: int


@dataclass(frozen=True, slots=True)
class TableDrop:
    """What ``drop`` did, or with ``plan_only`` would do. ``at``: when the table was dropped, in UTC; None with ``plan_only``.

    ``by``: the principal; ``files``, ``bytes``: data files that this call deleted. ``left``: paths, from the table's folder, of
    files and folders that are not the table's and stay there: of ``left_count`` the first. ``until``: to when ``undrop_table``
    brings it back, and nothing is deleted; None: never.
    """

    at: datetime.datetime | None
    by: str
    files: int
    bytes: int
    left: tuple[str, ...]
    left_count: int
    until: datetime.datetime | None = None


@dataclass(frozen=True, slots=True)
class ChannelSummary:
    """A channel that a table remembers. ``committed_offset``: rows up to it are committed; ``principal``: who may open it.

    ``incarnation``: each new producer has a higher one. ``last_used``: when its newest rows were committed or its newest
    producer came, in UTC. ``lag``: offsets from the committed one to the last row that a writer has taken, by its last
    heartbeat.
    """

    name: str
    committed_offset: int
    incarnation: int
    principal: str
    last_used: datetime.datetime
    lag: int = 0


def channel_summary(said: api.ChannelSummary) -> ChannelSummary:
    """Reads what an owner says of a channel."""
    return ChannelSummary(
        name=said.name,
        committed_offset=said.committed_offset,
        incarnation=said.incarnation,
        principal=said.principal,
        last_used=datetime.datetime.fromtimestamp(said.last_used_ms / 1000, datetime.UTC),
        lag=said.lag,
    )


Types = Mapping[str, object]
"""Columns by path, as ``{"gate": str, "address.zip": pa.string()}``. Types are given as for ``create_table``."""


def _message(types: Types | None) -> bytes:
    return schema_of(list(types.items())).serialize().to_pybytes() if types else b""


class Operated:
    """A table that can be operated."""

    def __init__(self, connection: ClusterConnection, info: TableInfo) -> None:
        self._info = info
        self._connection = connection
        self._maintenance = Maintenance(connection, info.name)
        self._uuid = info.uuid

    @property
    def info(self) -> TableInfo:
        """The table's definition, with what this object last changed about it."""
        return self._info

    async def alter(
        self, *, add: Types | None = None, widen: Types | None = None, nullable: Columns = None, plan_only: bool = False
    ) -> Alteration:
        said = await self._maintenance.alter(
            _message(add), _message(widen), checked_texts(nullable, "nullable"), plan_only=plan_only
        )
        after = TableInfo.from_wire(said.table)
        if not plan_only:
            self._info = after
        return Alteration(tuple(said.added), tuple(said.widened), tuple(said.nullable), after.schema)

    async def evolve(self, columns: SchemaLike) -> Alteration:
        said = await self._maintenance.evolve(schema_of(columns).serialize().to_pybytes())
        self._info = TableInfo.from_wire(said.table)
        return Alteration(tuple(said.added), tuple(said.widened), (), self._info.schema)

    async def compact(self, *, sort: bool = False) -> Compaction:
        ended: Sequence[api.CompactedPlan] = ()
        async for answer in self._maintenance.compact(sort=sort):
            if answer.HasField("ended"):
                ended = answer.ended.plans
        return Compaction(
            plans=tuple(plan.instant for plan in ended),
            finished=sum(plan.finished for plan in ended),
            dropped=sum(len(plan.dropped) for plan in ended),
            cancelled=sum(plan.cancelled for plan in ended),
        )

    async def savepoint(self, comment: str = "") -> str:
        return (await self._maintenance.savepoint(checked_text(comment, "comment"))).instant

    async def remove_savepoint(self, instant: str) -> None:
        await self._maintenance.remove_savepoint(checked_text(instant, "instant"))

    async def savepoints(self) -> list[str]:
        return list((await self._maintenance.list_savepoints()).savepoints)

    async def restore(self, instant: str, *, plan_only: bool = False) -> Restore:
        said = await self._maintenance.restore(checked_text(instant, "instant"), plan_only=plan_only)
        return Restore(said.instant, tuple(said.undone), said.files, said.cancelled_plans)

    async def truncate(self, partitions: Columns = None) -> Truncation:
        chosen = checked_texts(partitions, "partitions")
        said = await self._maintenance.truncate(chosen, whole_table=partitions is None)
        return Truncation(said.instant, said.file_groups)

    async def drop(self, *, grace: datetime.timedelta | None = None, plan_only: bool = False) -> TableDrop:
        grace_ms = round(grace.total_seconds() * 1000) if grace is not None else 0
        if grace_ms < 0:
            raise InvalidArgumentError("a grace time is never negative", fix="Leave `grace` out to delete the table at once.")
        said = await self._maintenance.drop(self._uuid, plan_only=plan_only, grace_ms=grace_ms)
        at, until = (time_of(ms) if ms else None for ms in (said.dropped_ms, said.until_ms))
        return TableDrop(at, said.principal, said.files, said.bytes, tuple(said.left), said.left_count, until)

    async def rename(self, to: str) -> None:
        await self._maintenance.rename(self._uuid, checked_text(to, "to"))
        self._info = replace(self._info, name=to)
        self._maintenance = Maintenance(self._connection, to)

    async def configure(self, settings: Settings | None = None, *, unset: Columns = None) -> dict[str, str]:
        said = await self._maintenance.configure(setting_texts(settings), checked_texts(unset, "unset"))
        values = {setting.key: setting.value for setting in said.settings}
        self._info = replace(self._info, evolve=cast("Evolve", values.get("headgate.evolve", "refuse")))
        return values

    async def channels(self, prefix: str = "") -> list[ChannelSummary]:
        return [channel_summary(each) async for each in self._maintenance.list_channels(checked_text(prefix, "prefix"))]

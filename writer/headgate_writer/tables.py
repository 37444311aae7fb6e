"""The tables of this process: which owner has attached each, and the orders of owners to them.

An order of an older (epoch, generation) than the table's own is dropped, and a newer Attach replaces the older one (rule RO2). An
owner that another has replaced gets a report of it: it may have no other way to notice. A table that fails is dropped, and others
go on (rule RO12).
"""

import asyncio
import heapq
import operator
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, assert_never
from uuid import UUID

from headgate_proto.api.v1 import errors_pb2
from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import UnknownMessageError, wire_error
from headgate_runtime.logs import get_logger
from headgate_tables.errors import TablesError
from headgate_writer.bucket_side import BucketSide
from headgate_writer.failures import Failures
from headgate_writer.metrics import TableTotals
from headgate_writer.orders import read_attach, read_membership
from headgate_writer.table_writer import Owner, TableWriter, WriterResources, moved_error

_log = get_logger()

_Order: TypeAlias = Literal[
    "barrier", "instant", "decided", "grant", "open_refused", "end_channel", "throttle", "refuse_slices", "detach"
]
"""The orders about an attached table, by their field in ``wire.TableOrder``."""

_MOST_LAGS: Final = 1000
"""Channels in a heartbeat, as the contract says. With names of 255 bytes that is 0.3 MB."""

_NEW_GENERATION = "a checkpoint of the table failed, or its owner changed"


class _Change:
    """The next attachment or detachment of a table, and how many wait for it."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.waiting = 0


class Tables:
    """``group`` owns the tables' tasks. ``store``: the root below which tables lie, or ""; ``storage_options``: of it."""

    def __init__(self, parts: WriterResources, store: str, storage_options: Mapping[str, str], group: asyncio.TaskGroup) -> None:
        self._parts = parts
        self._store = store
        self._storage_options = storage_options
        self._group = group
        self._failures = Failures(parts.world.clock, group)
        self._writers: dict[str, TableWriter] = {}
        self._seen: dict[str, tuple[UUID, tuple[int, int]]] = {}
        self.totals: dict[str, TableTotals] = {}
        self._changes: dict[str, _Change] = {}
        self._leaving = False

    def receive_order(self, owner: Owner, order: wire.TableOrder) -> None:
        """Handles one order of a control stream. While a table changes hands, streams of two coordinators may name it.

        Raises UnknownMessageError.
        """
        pair = (order.epoch, order.generation)
        writer = self._writers.get(order.table)
        kind = order.WhichOneof("message")
        _, (newest, _) = self._seen.get(order.table, (None, (0, 0)))
        if order.epoch < newest and kind not in ("attach", "detach"):
            _report_newer_owner(owner, order.table, pair, newest)
        if kind is None:
            raise UnknownMessageError("an order of a coordinator about a table")
        if kind == "attach":
            self._attach(owner, order, pair)
        elif writer is None or writer.pair != pair or writer.owner is not owner:
            _log.debug("order of another epoch or generation dropped", table=order.table, order=kind, pair=pair)
        else:
            try:
                self._carry_out(writer, order, kind)
            except Exception as error:  # noqa: BLE001 - whatever it is, other tables go on; it is logged, and an alarm (rule RO12)
                writer.fail(error)

    def owner_lost(self, owner: Owner) -> None:
        """Drops the tables of an owner whose control stream has ended, with everything uncommitted in them (rule RO8)."""
        for writer in [writer for writer in self._writers.values() if writer.owner is owner]:
            self._drop(writer, _rewound("the owner of the table was lost"))

    def loads(self, owner: Owner) -> list[wire.Load]:
        """Returns the loads of the tables that this owner has attached, and where something is uncommitted. An idle table costs
        nobody a message: its owner would think about it at each heartbeat of each writer.
        """
        held = (
            (name, writer.uncommitted_bytes, _largest(writer.lags))
            for name, writer in self._writers.items()
            if writer.owner is owner
        )
        return [wire.Load(table=name, uncommitted_bytes=size, lags=lags) for name, size, lags in held if size or lags]

    def writer_of(self, table: str) -> TableWriter | None:
        """Returns the table's writer, None while the table is not attached here."""
        return self._writers.get(table)

    def attached(self) -> list[TableWriter]:
        """Returns all tables that are attached now."""
        return list(self._writers.values())

    @property
    def leaving(self) -> bool:
        """Whether this process drains, and takes no more clients."""
        return self._leaving

    def move_clients(self) -> None:
        """Sends clients of all tables to other writers, because this process drains."""
        self._leaving = True
        for writer in self._writers.values():
            writer.move_clients()

    def close(self) -> None:
        """Drops all tables, because the process ends."""
        for writer in self.attached():
            self._drop(writer, moved_error())

    # For the exchange (rule EX5).

    def current_side(self, table: str) -> tuple[int, int, BucketSide] | None:
        """Returns the current (epoch, generation, bucket side), None while this process has no part in the table."""
        writer = self._writers.get(table)
        return (*writer.pair, writer.side) if writer and writer.has_part else None

    async def wait_for_change(self, table: str) -> None:
        """Returns at the next attachment or detachment of that table after this call."""
        change = self._changes.setdefault(table, _Change())
        change.waiting += 1
        try:
            await change.event.wait()
        finally:
            change.waiting -= 1
            if not change.waiting and self._changes.get(table) is change:
                del self._changes[table]  # clients choose the names, and may never see a change

    def _attach(self, owner: Owner, order: wire.TableOrder, pair: tuple[int, int]) -> None:
        try:
            self._take(owner, order, pair)
        except TablesError as error:
            # Other tables go on; the owner of this one notices that it gets no reports.
            _log.error("a table is not attached: " + str(error), table=order.table)
        except UnknownMessageError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, other tables go on; it is logged, and an alarm (rule RO12)
            if (current := self._writers.get(order.table)) is not None and current.pair < pair:
                self._drop(current, _rewound(_NEW_GENERATION))
            self._failures.report(owner, order.table, pair, error, paced=True)

    def _take(self, owner: Owner, order: wire.TableOrder, pair: tuple[int, int]) -> None:
        current = self._writers.get(order.table)
        attached = read_attach(order, self._store, self._storage_options, self._parts.ids)
        uuid, seen = self._seen.get(order.table, (attached.definition.table_uuid, (0, 0)))
        if uuid != attached.definition.table_uuid:
            seen = (0, 0)  # another table has the name now, and its epochs begin anew
        # A writer that was excluded, and has a part again, is attached a second time under the same pair.
        if pair < seen or (current is not None and pair == seen and current.owner is owner and current.has_part):
            _log.debug("attachment of another epoch or generation dropped", table=order.table, pair=pair, seen=seen)
            if pair[0] < seen[0]:
                _report_newer_owner(owner, order.table, pair, seen[0])
            return
        if current is not None:
            if current.owner is not owner and current.pair[0] < pair[0]:
                _report_newer_owner(current.owner, order.table, current.pair, pair[0])
            self._drop(current, _rewound(_NEW_GENERATION))
        membership = read_membership(order.attach.membership, attached.definition.key_groups)
        totals = self.totals.setdefault(order.table, TableTotals())
        writer = TableWriter(attached, membership, owner, self._parts, totals, self._fail)
        self._seen[order.table] = attached.definition.table_uuid, pair
        self._writers[order.table] = writer
        self._group.create_task(writer.run())
        if self._leaving:
            writer.move_clients()
        self._signal_change(order.table)
        _log.info(
            "table attached", table=order.table, epoch=pair[0], generation=pair[1], checkpoint=order.attach.membership.checkpoint
        )

    def _carry_out(self, writer: TableWriter, order: wire.TableOrder, kind: _Order) -> None:
        match kind:
            case "barrier":
                writer.end_checkpoint(order.barrier)
            case "instant":
                writer.set_instant(order.instant)
            case "decided":
                writer.mark_decided(order.decided)
            case "grant":
                writer.grant_channel(order.grant)
            case "open_refused":
                writer.refuse_open(order.open_refused)
            case "end_channel":
                writer.end_channel(order.end_channel)
            case "throttle":
                writer.rate.set_throttle(order.throttle)
            case "refuse_slices":
                writer.refuse_slices(order.refuse_slices)
            case "detach":
                self._drop(writer, order.detach.error if order.detach.HasField("error") else moved_error())
            case _:
                assert_never(kind)

    def _fail(self, writer: TableWriter, error: Exception) -> None:
        """Rewinds the clients before the owner hears of it: what they send then is behind the abort (rule RO12)."""
        self._drop(writer, _rewound("an error in the writer ended this generation of the table"))
        self._failures.report(writer.owner, writer.name, writer.pair, error, paced=not writer.had_holds)

    def _drop(self, writer: TableWriter, error: errors_pb2.Error) -> None:
        writer.close(error)
        del self._writers[writer.attached.name]
        self._signal_change(writer.attached.name)

    def _signal_change(self, table: str) -> None:
        if (change := self._changes.pop(table, None)) is not None:
            change.event.set()


def _largest(lags: Mapping[str, int]) -> dict[str, int]:
    """Those above 0, at most as many as a heartbeat may have."""
    behind = ((channel, lag) for channel, lag in lags.items() if lag)
    return dict(heapq.nlargest(_MOST_LAGS, behind, key=operator.itemgetter(1)))


def _report_newer_owner(owner: Owner, table: str, pair: tuple[int, int], newest: int) -> None:
    report = wire.TableReport(table=table, epoch=pair[0], generation=pair[1], newer_owner=wire.NewerOwner(epoch=newest))
    owner.send(wire.ControlRequest(table=report))


def _rewound(why: str) -> errors_pb2.Error:
    return wire_error(
        errors_pb2.CODE_REWOUND, why, "Open the channel again, and send again the rows behind the committed offset."
    )

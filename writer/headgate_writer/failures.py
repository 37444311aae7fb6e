"""What the owner of a table hears when the table cannot go on here, because of an unexpected error (rule RO12)."""

from __future__ import annotations

import asyncio
from typing import Final

from headgate_proto.cluster.v1 import coordination_pb2 as wire
from headgate_runtime.errors import cut
from headgate_runtime.logs import get_logger
from headgate_runtime.world import Clock
from headgate_tables.backoff import Backoff
from headgate_writer.flushing import may_be_own
from headgate_writer.table_writer import Owner

_log = get_logger()

_CALM_S: Final = 60.0
"""Seconds after which a failure is no more in a row with the one before it."""

_PAUSES: Final = Backoff(first=0.1, longest=1.0)
"""Seconds before a report of a table that fails as soon as it is attached: the owner attaches it anew at once, and would do
nothing else. Below ``writer_timeout`` of coordinators."""

_WHY_BYTES: Final = 400


class Failures:
    """Of all tables of the process. ``group`` owns the reports that wait."""

    def __init__(self, clock: Clock, group: asyncio.TaskGroup) -> None:
        self._clock = clock
        self._group = group
        self._in_a_row: dict[str, tuple[int, float]] = {}

    def report(self, owner: Owner, table: str, pair: tuple[int, int], error: Exception, *, paced: bool) -> None:
        """Logs the error, and tells the owner that ``pair`` of the table cannot go on: it aborts, and attaches the table anew.

        Everything uncommitted has to be dropped before. ``paced``: the owner does not hold the next failure back itself, because
        it comes without a client.
        """
        _log.error("a table failed here, and other tables go on", table=table, pair=pair, exc_info=error)
        broken = wire.Broken(why=_why(error), own_error=may_be_own(error))
        report = wire.TableReport(table=table, epoch=pair[0], generation=pair[1], broken=broken)
        message = wire.ControlRequest(table=report)
        pause = _PAUSES.after(self._count(table) - 1) if paced else 0.0
        if pause:
            self._group.create_task(self._send_later(owner, message, pause))
        else:
            owner.send(message)

    def _count(self, table: str) -> int:
        now = self._clock.monotonic()
        count, last = self._in_a_row.get(table, (0, now))
        count = count + 1 if now - last < _CALM_S else 1
        self._in_a_row[table] = count, now
        return count

    async def _send_later(self, owner: Owner, message: wire.ControlRequest, pause: float) -> None:
        await self._clock.sleep(pause)
        owner.send(message)


def _why(error: Exception) -> str:
    """The sentence of the owner's alarm. It stands behind who failed, and ends with what to do."""
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    what = cut(f"{type(error).__name__}: {error}".partition("\n")[0], _WHY_BYTES) + cut(notes, _WHY_BYTES)
    return (
        f"{what}; it dropped the table, which is attached to it anew. If this lasts, restart that writer, and report the error "
        "with the lines 'a table failed here' of its log"
    )

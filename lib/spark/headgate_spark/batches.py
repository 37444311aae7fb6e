"""Batches of a stream, each of which is in a table once: a channel stands for the query, and its offset for what is committed."""

from __future__ import annotations

from typing import Final

from headgate_tables.errors import OptionError
from headgate_tables.face.log import ChannelRecord, Channels
from headgate_tables.face.owner import Table
from headgate_tables.system import System

_PREFIX: Final = "spark:"
_LONGEST: Final = 200


def channels_of(table: Table, query: str, number: int) -> Channels | None:
    """The records that a commit of this batch stores; None when the batch is in the table already. ``query``: its name;
    ``number``: of the batch, counted from 0. Raises OptionError for wrong ones, and what ``Table.own`` raises.
    """
    if not 0 < len(query) <= _LONGEST or not query.isprintable():
        raise OptionError(
            f"batch={(query, number)!r}: no name of a query", fix=f"Give a name of 1 to {_LONGEST} printable characters."
        )
    if number < 0:
        raise OptionError(f"batch={(query, number)!r}: no number of a batch", fix="Give the number that foreachBatch gives.")
    table.own()  # the record of an earlier owner may be newer than the one that this handle has read
    if (stored := table.channels.get(_PREFIX + query)) is not None and number < stored.offset:
        return None
    return {_PREFIX + query: ChannelRecord(0, number + 1, "", System.real().clock.now_ms())}

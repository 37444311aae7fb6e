"""The feed in two halves: the year as it was planned, which Spark loads, and what happened then, which producers send."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from demo.feed import SCHEMA, Feed
from headgate_tables.arrow import pc

_PLANNED = pc.field("status") == "scheduled"


def planned(feeds: Sequence[Feed]) -> pa.Table:
    """The first event of each flight."""
    return pa.concat_tables(feed.events.filter(_PLANNED).select(SCHEMA.names) for feed in feeds)


def happened(feeds: Sequence[Feed]) -> list[Feed]:
    """All later events, in the order of sending: departures, landings, and deletes, which have no status."""
    later = pc.is_null(pc.field("status")) | ~_PLANNED
    return [replace(feed, events=feed.events.filter(later).combine_chunks()) for feed in feeds]

"""The flights of a year as a change feed: scheduled, departed, landed or cancelled, in the order in which events are sent.

A flight is inserted two weeks before it is due, updated when it departs and when it lands, and deleted when it is cancelled. Some
events are late on purpose: a departure sent after the landing must not overwrite it, and a withdrawn cancellation sent after the
landing must not remove the flight. Only the ordering column ``updated_at`` shows the right order.

No insert is sent after its flight's delete: Hudi keeps a delete until the slice is compacted, and an older row that comes after
that appears again (rule DE2).

The oracle (``oracle.py``) does not use this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from headgate_tables.arrow import Array, ChunkedArray, pc

KEY = "id"
PARTITION = "month"
ORDERING = "updated_at"
OPERATION = "operation"
UPSERT, DELETE = 1, 2
ORIGINS = ("EWR", "JFK", "LGA")

_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS: Sequence[tuple[str, pa.DataType]] = (
    (KEY, pa.string()),
    (PARTITION, pa.string()),
    ("carrier", pa.string()),
    ("flight", pa.int64()),
    ("tailnum", pa.string()),
    ("origin", pa.string()),
    ("dest", pa.string()),
    ("distance", pa.int64()),
    ("scheduled_at", _TIME),
    ("status", pa.string()),
    ("dep_delay", pa.int64()),
    ("arr_delay", pa.int64()),
    ("air_time", pa.int64()),
    (ORDERING, _TIME),
)
SCHEMA = pa.schema(_COLUMNS)

_MINUTE = 60_000_000
_DAY = 24 * 60 * _MINUTE
_LEAD = 14 * _DAY
_TAXI = 20 * _MINUTE
_DIVERTED_FOR = 240  # minutes in the air of a flight that landed elsewhere first: the source has no figure
_WITHDRAWN = 2 * 60 * _MINUTE  # so long before a flight was due it was cancelled; it flew after all
_LATE_DEPARTURE_EVERY, _WITHDRAWN_EVERY = 37, 53


@dataclass(frozen=True, slots=True)
class Feed:
    """One producer's events in the order of sending. ``events``: SCHEMA and the column ``operation`` (int8)."""

    origin: str
    events: pa.Table


def read_feeds(path: Path, months: int) -> list[Feed]:
    """One feed an airport, of the first ``months`` months."""
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    flights = csv.read_csv(path, convert_options=options)
    events = _in_sending_order(_flights(flights.filter(pc.field("month") <= months)))
    return [Feed(origin, events.filter(pc.field("origin") == origin).combine_chunks()) for origin in ORIGINS]


def _flights(source: pa.Table) -> pa.Table:
    """Source columns and those that all events of a flight share, plus the times of its events in µs."""
    text = {name: pc.cast(source[name], pa.string()) for name in ("year", "month", "day", "flight", "sched_dep_time")}
    parts = [
        text["year"],
        text["month"],
        text["day"],
        source["carrier"],
        text["flight"],
        source["origin"],
        text["sched_dep_time"],
    ]
    hour = source["time_hour"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    due = pc.add(hour, pc.multiply(source["minute"], _MINUTE))
    departed = pc.add(due, pc.multiply(source["dep_delay"], _MINUTE))
    in_air = pc.multiply(pc.fill_null(source["air_time"], _DIVERTED_FOR), _MINUTE)
    landed = pc.if_else(pc.is_valid(source["arr_time"]), pc.add(pc.add(departed, in_air), _TAXI), pa.scalar(None, pa.int64()))
    shared = {
        KEY: pc.binary_join_element_wise(*parts, "-"),
        PARTITION: pc.binary_join_element_wise(text["year"], pc.utf8_lpad(text["month"], 2, "0"), "-"),
        **{name: source[name] for name in ("carrier", "flight", "tailnum", "origin", "dest", "distance")},
        "scheduled_at": due.cast(_TIME),
    }
    delays = {name: source[name] for name in ("dep_delay", "arr_delay", "air_time")}
    return pa.table({**shared, **delays, "due": due, "departed": departed, "landed": landed})


def _in_sending_order(flights: pa.Table) -> pa.Table:
    number = np.arange(flights.num_rows)
    cancelled = pc.is_null(flights["departed"])
    inserts = _events(flights, "scheduled", pc.subtract(flights["due"], _LEAD), 0 * number)
    departures = _events(flights, "departed", flights["departed"], _DAY * (number % _LATE_DEPARTURE_EVERY == 0), ["dep_delay"])
    landings = _events(flights, "landed", flights["landed"], 0 * number, ["dep_delay", "arr_delay", "air_time"])
    gone = pc.if_else(cancelled, flights["due"], pa.scalar(None, pa.int64()))
    deletes = _events(flights, None, gone, 0 * number)
    withdrawn = pc.and_(pc.is_valid(flights["departed"]), pa.array(number % _WITHDRAWN_EVERY == 0))
    undone = pc.if_else(withdrawn, pc.subtract(flights["due"], _WITHDRAWN), pa.scalar(None, pa.int64()))
    late_deletes = _events(flights, None, undone, 0 * number + 2 * _DAY)
    events = pa.concat_tables([inserts, departures, landings, deletes, late_deletes])
    # Equal times keep the order insert, departure, landing: the sort is stable.
    order = np.argsort(events["sent"].to_numpy(), kind="stable")
    return events.take(order).drop_columns(["sent"])


def _events(
    flights: pa.Table, status: str | None, time: Array | ChunkedArray, late: npt.NDArray[np.int64], known: Sequence[str] = ()
) -> pa.Table:
    """One event a flight for which ``time`` is not null; ``known`` are the delays that are known by then; no status: deleted."""
    rows = flights.num_rows
    unknown = pa.nulls(rows, pa.int64())
    columns: dict[str, Array | ChunkedArray] = {name: flights[name] for name in SCHEMA.names if name in flights.column_names}
    columns |= {name: unknown for name in ("dep_delay", "arr_delay", "air_time") if name not in known}
    columns |= {"status": pa.repeat(pa.scalar(status, pa.string()), rows), ORDERING: time.cast(_TIME)}
    operation = pa.repeat(pa.scalar(DELETE if status is None else UPSERT, pa.int8()), rows)
    events = pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
    events = events.append_column(OPERATION, operation).append_column("sent", pc.add(time, pa.array(late)))
    return events.filter(pc.is_valid(time))

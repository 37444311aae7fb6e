"""The demo's feed and its oracle agree where they should and differ where a broken cluster would make them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from demo.doubles import count_events
from demo.feed import DELETE, KEY, OPERATION, ORDERING, ORIGINS, SCHEMA, Feed, read_feeds
from demo.freshness import Trace, percentile
from demo.oracle import compare
from demo.report import Observations

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
    "carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
_HOUR = "2013-{month:02}-{day:02}T{utc:02}:00:00Z"
FLEW = "2013,{month},{day},{hour}17,{hour}15,2,830,819,11,UA,{number},N14228,{origin},IAH,227,1400,{hour},15," + _HOUR
CANCELLED = "2013,{month},{day},NA,{hour}15,NA,NA,819,NA,AA,{number},NA,{origin},DFW,NA,1389,{hour},15," + _HOUR
NEVER_LANDED = "2013,{month},{day},{hour}17,{hour}15,2,NA,819,NA,EV,{number},N1,{origin},IAD,NA,212,{hour},15," + _HOUR
DIVERTED = "2013,{month},{day},{hour}17,{hour}15,2,1830,819,NA,EV,{number},N1,{origin},IAD,NA,212,{hour},15," + _HOUR


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """480 flights of two months, of all four kinds and all airports."""
    lines = [HEADER]
    for number in range(480):
        kind = (FLEW, CANCELLED, NEVER_LANDED, DIVERTED)[number % 4]
        hour = 6 + number % 12
        place = {"origin": ORIGINS[number % 3], "month": 1 + number % 2, "day": 1 + number % 28, "hour": hour, "utc": hour + 5}
        lines.append(kind.format(number=number, **place))
    path = tmp_path / "flights.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def applied(feeds: list[Feed], by: str) -> pa.Table:
    """The last event of each flight by the column ``by``, less those that are deletes."""
    events = pa.concat_tables(feed.events for feed in feeds)
    events = events.append_column("told", pa.array(range(events.num_rows)))
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        db.register("events", events)
        newest = f"from events qualify row_number() over (partition by id, month order by {by} desc) = 1"
        rows = db.sql(f"select {', '.join(SCHEMA.names)} from ({newest}) where {OPERATION} <> {DELETE}")
        return rows.to_arrow_table()


def test_the_newest_event_of_each_flight_is_what_the_oracle_says(flights: Path) -> None:
    found = compare(flights, 12, applied(read_feeds(flights, 12), ORDERING))
    assert found.ok, found
    assert found.expected == 360


def test_a_table_that_believes_the_order_of_telling_is_wrong(flights: Path) -> None:
    found = compare(flights, 12, applied(read_feeds(flights, 12), "told"))
    assert not found.ok
    assert found.lost > 0, "flights are removed by a cancellation that was withdrawn, and is told late"
    assert found.wrong > 0, "a departure that is told late overwrites the landing"


def test_a_lost_a_doubled_and_a_changed_row_are_counted(flights: Path) -> None:
    right = applied(read_feeds(flights, 12), ORDERING)
    changed = right.slice(1, 1).set_column(right.schema.get_field_index("air_time"), "air_time", pa.array([1]))
    found = compare(flights, 12, pa.concat_tables([changed, right.slice(2), right.slice(5, 1)]))
    assert (found.lost, found.doubled, found.wrong, found.ghosts) == (1, 1, 1, 0)


def test_no_flight_has_two_events_of_one_time(flights: Path) -> None:
    events = pa.concat_tables(feed.events for feed in read_feeds(flights, 12))
    assert events.num_rows == 480 + 360 + 240 + 120 + 7
    assert len(set(zip(events["id"].to_pylist(), events[ORDERING].to_pylist(), strict=True))) == events.num_rows


def test_no_row_is_told_after_a_newer_delete_of_its_flight(flights: Path) -> None:
    """Rule DE2: once the slice is compacted nothing would hold such a row back."""
    for feed in read_feeds(flights, 12):
        deleted: dict[str, Any] = {}
        for id_, at, operation in zip(*(feed.events[name].to_pylist() for name in (KEY, ORDERING, OPERATION)), strict=True):
            if operation == DELETE:
                deleted[id_] = max(at, deleted.get(id_, at))
            assert operation == DELETE or id_ not in deleted or at > deleted[id_]


def test_a_quick_run_is_the_first_month_alone(flights: Path) -> None:
    feeds = read_feeds(flights, 1)
    assert {month for feed in feeds for month in feed.events["month"].to_pylist()} == {"2013-01"}
    assert compare(flights, 1, applied(feeds, ORDERING)).ok


def test_each_airport_tells_its_own_flights(flights: Path) -> None:
    for feed in read_feeds(flights, 12):
        assert set(feed.events["origin"].to_pylist()) == {feed.origin}


def test_freshness_is_from_sending_to_the_first_look_that_saw_it() -> None:
    trace = Trace(sent=[(0.0, 10), (1.0, 20), (2.0, 30)], seen=[(0.5, 10), (3.0, 25), (4.0, 30)])
    assert trace.waits()[1].tolist() == [0.5, 2.0, 2.0]
    assert percentile([trace], 50, since=0.0, until=1.0) == 0.5
    assert percentile([trace], 50, since=5.0, until=6.0) is None


class Growing(list[tuple[float, int]]):
    """A producer's batches, with another one whenever somebody has read them."""

    def __iter__(self) -> Iterator[tuple[float, int]]:
        yield from super().__iter__()
        moment, offset = self[-1]
        self.append((moment + 1.0, offset + 10))


def test_a_trace_can_be_read_while_its_producer_sends() -> None:
    """The demo observations every 20 ms whether rows flow again; once in 26 runs a batch was sent in the middle of a look."""
    trace = Trace(sent=Growing([(0.0, 10), (1.0, 20)]), seen=[(0.9, 10), (3.0, 20)])
    assert trace.waits()[1].tolist() == [0.9, 2.0]
    assert trace.back_after(0.5) == 2.5


def test_recovery_counts_only_what_was_sent_after_the_kill() -> None:
    trace = Trace(sent=[(0.0, 10), (1.0, 20)], seen=[(0.9, 10), (3.0, 20)])
    assert trace.back_after(0.5) == 2.5
    assert trace.back_after(1.5) is None


def test_an_event_in_two_log_files_and_a_file_that_nobody_read_are_counted() -> None:
    once = pa.table({KEY: ["a", "b"], ORDERING: [1, 1], "deleted": [False, False]})
    again = pa.table({KEY: ["b", "b"], ORDERING: [1, 1], "deleted": [False, True]})
    found = count_events({"1": once, "2": again, "of no commit": once}, {"1", "2", "3"})
    assert (found.events, found.files, found.doubled, found.unread) == (4, 3, 1, 1)


def test_bars_rise_and_fall_with_the_log_files_and_end_with_the_last_look() -> None:
    observations = Observations([(0.0, 0), (1.0, 1), (2.0, 7), (3.0, 7), (4.0, 3), (5.0, 0)])
    assert observations.line() == "▁▂██▄▁"
    assert (observations.first, observations.most, observations.last) == (1, 7, 0)
    assert observations.changes(since=0.0) == [(0.0, 0), (1.0, 1), (2.0, 7), (4.0, 3), (5.0, 0)]

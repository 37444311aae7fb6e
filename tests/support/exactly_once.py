"""Judges a table by its committed log blocks, unmerged, and by its merged rows, against what the producers wrote down.

Upserts hide doubles, so merged rows alone prove little. What must hold:

* no (producer, number) stands in two blocks: ``doubled``
* per key the order over (instant, file, block, position) is the producer's, and the numbers of a producer grow from instant to
  instant: ``swapped``
* an acknowledged number, and any number below one that is there, is absent only if its flush (same instant, same group) holds a
  row of that key that beats it; where nothing is dropped in a flush, it is there: ``lost``
* nothing is there that was not sent, or that a later attempt was told is not committed (an aborted checkpoint's row), or under
other
  values than sent, and no data file is there that no commit names: ``ghost``
* merged rows are what the history implies: ``merged``

Rows that their slice did not take, and that their producer kept (``History.kept``), come through a channel of their own. All of
this holds for each of the two channels, there with a row's place among those that were kept instead of its number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
from hudi import HudiTableBuilder

from support import committed_log
from support.journal import History
from support.workload import SCHEMA, Workload

SHOWN = 20
MEMORY, DISK = "6GB", "20GB"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that must not be. ``kind`` is one of the words above."""

    kind: str
    producer: str
    number: int
    detail: str


@dataclass(slots=True)
class Report:
    """``entries``: rows and deletes in the log; ``dropped``: numbers beaten in their flush; ``merged``: rows that readers see."""

    anomalies: list[Anomaly] = field(default_factory=list)
    entries: int = 0
    dropped: int = 0
    merged: int = 0

    @property
    def kinds(self) -> Counter[str]:
        return Counter(anomaly.kind for anomaly in self.anomalies)

    def __str__(self) -> str:
        shown = [f"  {a.kind}: {a.producer} {a.number}: {a.detail}" for a in self.anomalies[:SHOWN]]
        return "\n".join([f"{self.entries} entries, {self.dropped} dropped, {self.merged} merged; {dict(self.kinds)}", *shown])


def assert_exactly_once(
    url: str,
    histories: Sequence[History],
    workload: Workload,
    *,
    drop_beaten: bool = True,
    options: Mapping[str, str] | None = None,
    hudi_rs_options: Mapping[str, str] | None = None,
) -> Report:
    """Reads the table at ``url`` in three ways and judges it. Raises AssertionError with what is wrong."""
    store = committed_log.open_bytes(url, options)
    entries = committed_log.independent(store)
    assert entries.equals(committed_log.ours(store)), "the library reads other blocks than an independent reader"
    report = check_log(entries, histories, workload, drop_beaten=drop_beaten)
    report.anomalies += [Anomaly("ghost", "", 0, f"{path} is named by no commit") for path in committed_log.stray_files(store)]
    merged = read_merged(url, hudi_rs_options)
    report.merged = merged.num_rows
    report.anomalies += check_merged(merged, entries, histories, workload)
    assert not report.anomalies, str(report)
    return report


def read_merged(url: str, options: Mapping[str, str] | None = None) -> pa.Table:
    """The table's own columns, by hudi-rs, which shares no code with us."""
    batches = HudiTableBuilder.from_base_uri(url).with_options(dict(options or {})).build().read()
    return pa.concat_tables(
        [SCHEMA.empty_table(), *(pa.Table.from_batches([batch]).select(SCHEMA.names).cast(SCHEMA) for batch in batches)]
    )


def check_log(entries: pa.Table, histories: Sequence[History], workload: Workload, *, drop_beaten: bool = True) -> Report:
    """``entries`` as of ``committed_log``."""
    with _database() as db:
        _load(db, entries, histories, workload)
        absent = db.execute("SELECT count(*) FROM absent").fetchone()
        report = Report(entries=entries.num_rows)
        for kind, query in (*_CHECKS, ("lost", _LOST_WITH_DROPPING if drop_beaten else _LOST_WITHOUT_DROPPING)):
            report.anomalies += _found(db, kind, _ordered(query, workload))
        report.dropped = (absent[0] if absent else 0) - report.kinds["lost"]
    return report


def check_merged(merged: pa.Table, entries: pa.Table, histories: Sequence[History], workload: Workload) -> list[Anomaly]:
    """``merged``: SCHEMA, as a reader gives it."""
    with _database() as db:
        _load(db, entries, histories, workload)
        db.register("merged", merged)
        return _found(db, "merged", _ordered(_MERGED, workload))


@contextmanager
def _database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Millions of rows are judged on disk, which they never fill."""
    with TemporaryDirectory() as spilled:
        bounds = {"temp_directory": spilled, "max_temp_directory_size": DISK, "memory_limit": MEMORY}
        with duckdb.connect(config={**bounds, "threads": 2}) as db:
            yield db


def _ordered(query: str, workload: Workload) -> str:
    """Which of two rows of a key wins."""
    return query.replace("$WINS", "ts" if workload.event_time else "number")


def _found(db: duckdb.DuckDBPyConnection, kind: str, query: str) -> list[Anomaly]:
    return [Anomaly(kind, producer or "", number or 0, detail) for producer, number, detail in db.execute(query).fetchall()]


def _load(db: duckdb.DuckDBPyConnection, entries: pa.Table, histories: Sequence[History], workload: Workload) -> None:
    """Tables ``sent`` (by attempt), ``plan`` (every number that was sent, with what it does) and ``log`` (entries by number)."""
    db.execute("CREATE TABLE sent (producer VARCHAR, attempt INT, committed BIGINT, last BIGINT)")
    db.execute("CREATE TABLE known (producer VARCHAR, channel VARCHAR, committed BIGINT)")
    db.execute("CREATE TABLE kept (producer VARCHAR, number BIGINT, place BIGINT)")
    for history in histories:
        for attempt in history.attempts:
            db.execute(
                "INSERT INTO sent VALUES (?, ?, ?, ?)", [history.producer, attempt.number, attempt.committed, attempt.sent]
            )
        db.execute("INSERT INTO known VALUES (?, '', ?)", [history.producer, history.known_committed])
        db.execute("INSERT INTO known VALUES (?, 'kept', ?)", [history.producer, history.kept_acked])
        db.register("kept_by_one", _kept(history))
        db.execute("INSERT INTO kept FROM kept_by_one")
    planned = [_plan(history, workload) for history in histories]
    db.register("planned", pa.concat_tables([SCHEMA.append(pa.field("op", pa.int8())).empty_table(), *planned]))
    db.register("entries", entries)
    db.execute(_ordered(_TABLES, workload))


def _plan(history: History, workload: Workload) -> pa.Table:
    last = max([history.known_committed, *(attempt.sent for attempt in history.attempts)])
    return workload.rows(history.producer, 1, last, 0)


def _kept(history: History) -> pa.Table:
    columns: dict[str, pa.DataType] = {"producer": pa.string(), "number": pa.int64(), "place": pa.int64()}
    numbered = enumerate(history.kept, 1)
    rows = [{"producer": history.producer, "number": number, "place": place} for place, number in numbered]
    return pa.Table.from_pylist(rows, pa.schema(columns))


_TABLES = """
-- Where each number stands in which channel.
CREATE TABLE plan AS
SELECT p.id, p.part, p.ts, p.producer, p.number, p.op = 2 AS deletes,
       CASE WHEN k.place IS NULL THEN '' ELSE 'kept' END AS channel, coalesce(k.place, p.number) AS place
FROM planned p LEFT JOIN kept k ON k.producer = p.producer AND k.number = p.number;

-- A delete record does not say its number; its key does, and where keys are deleted more than once its ordering value.
CREATE TABLE log AS
WITH numbered AS (
    SELECT e.instant, e.rank, e.file_id, e.version, e.block, e.position, e.deleted, e.id, e.part, e.ts, e.attempt, e.note,
           CASE WHEN e.deleted THEN d.producer ELSE e.producer END AS producer,
           CASE WHEN e.deleted THEN d.number ELSE e.number END AS number
    FROM entries e LEFT JOIN plan d ON e.deleted AND d.deletes AND d.id = e.id AND (e.ts IS NULL OR e.ts = d.ts))
SELECT n.*, coalesce(p.channel, '') AS channel, coalesce(p.place, n.number) AS place
FROM numbered n LEFT JOIN plan p ON p.producer = n.producer AND p.number = n.number;

-- How far each channel certainly is committed: acknowledged, or something behind is there.
CREATE TABLE upto AS
SELECT producer, channel, greatest(k.committed, coalesce((
    SELECT max(place) FROM log l WHERE l.producer = k.producer AND l.channel = k.channel), 0)) AS last
FROM known k;

CREATE TABLE absent AS
SELECT p.* FROM plan p JOIN upto u ON u.producer = p.producer AND u.channel = p.channel AND p.place <= u.last
WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.producer = p.producer AND l.number = p.number);
"""

_CHECKS: Iterable[tuple[str, str]] = (
    (
        "doubled",
        """SELECT producer, number, count(*) || ' times: ' || string_agg(concat_ws(' ', instant, file_id, version), ', ')
        FROM log WHERE number IS NOT NULL GROUP BY producer, number HAVING count(*) > 1""",
    ),
    (
        "ghost",
        """SELECT producer, number, 'a delete of ' || id || ' that nobody sent, in ' || instant
        FROM log WHERE deleted AND number IS NULL""",
    ),
    (
        "ghost",
        """SELECT l.producer, l.number, 'attempt ' || l.attempt || ' did not send it'
        FROM log l WHERE NOT deleted AND NOT EXISTS (
            SELECT 1 FROM sent s
            WHERE s.producer = l.producer AND s.attempt = l.attempt AND l.number > s.committed AND l.number <= s.last)""",
    ),
    (
        "ghost",
        """SELECT l.producer, l.number, 'of attempt ' || l.attempt || '; attempt ' || s.attempt || ' was told ' || s.committed
        FROM log l JOIN sent s ON s.producer = l.producer AND s.attempt > l.attempt AND s.committed < l.number
        WHERE NOT deleted""",
    ),
    (
        "ghost",
        """SELECT l.producer, l.number, 'holds other values than were sent: ' || concat_ws(' ', l.id, l.part, l.ts, l.note)
        FROM log l LEFT JOIN plan p ON p.producer = l.producer AND p.number = l.number
        WHERE NOT l.deleted AND (p.number IS NULL OR p.deletes OR (l.id, l.part, l.ts) IS DISTINCT FROM (p.id, p.part, p.ts)
            OR l.note IS DISTINCT FROM l.producer || '/' || l.number || '/' || l.attempt)""",
    ),
    (
        # Rows and deletes of one file stand in different blocks, so their order among each other says nothing.
        "swapped",
        """SELECT producer, number, id || ' has ' || before || ' before it, in ' || instant FROM (
            SELECT *, lag(number) OVER w AS before, lag(place) OVER w AS place_before, lag(deleted) OVER w AS before_deleted,
                   lag((rank, file_id, version)) OVER w AS before_file
            FROM log WHERE number IS NOT NULL
            WINDOW w AS (PARTITION BY producer, channel, id ORDER BY rank, version, block, position))
        WHERE place_before > place AND NOT (before_deleted <> deleted AND before_file = (rank, file_id, version))""",
    ),
    (
        "swapped",
        """SELECT producer, low, 'in ' || instant || ', but ' || earlier || ' was in an earlier instant' FROM (
            SELECT producer, rank, instant, min(place) AS low, max(max(place)) OVER before AS earlier
            FROM log WHERE number IS NOT NULL GROUP BY producer, channel, rank, instant
            WINDOW before AS (PARTITION BY producer, channel ORDER BY rank ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        WHERE earlier > low""",
    ),
)

# Checkpoints cut a channel at an offset, so the instant of an absent number lies between those of its neighbours that are there.
# One join by equality per possible instant: hot keys have thousands of rows, and pairs of these fill any disk.
_LOST_WITH_DROPPING = """
WITH newest AS (SELECT max(rank) AS rank FROM log),
between_neighbours AS (
    SELECT a.*, coalesce(b.rank, 0) AS low, coalesce(c.rank, n.rank) AS high
    FROM newest n CROSS JOIN absent a
    ASOF LEFT JOIN (SELECT producer, channel, place, rank FROM log WHERE number IS NOT NULL) b
        ON b.producer = a.producer AND b.channel = a.channel AND b.place < a.place
    ASOF LEFT JOIN (SELECT producer, channel, place, rank FROM log WHERE number IS NOT NULL) c
        ON c.producer = a.producer AND c.channel = a.channel AND c.place > a.place),
possible AS (SELECT *, unnest(range(low, high + 1)) AS rank FROM between_neighbours),
best AS (
    SELECT l.producer, p.id, l.rank, max(p.$WINS) AS wins
    FROM log l JOIN plan p ON p.producer = l.producer AND p.number = l.number GROUP BY l.producer, p.id, l.rank)
SELECT producer, number, 'absent, and nothing in its flush beats it: ' || id
FROM between_neighbours a WHERE NOT EXISTS (
    SELECT 1 FROM possible f JOIN best b ON b.producer = f.producer AND b.id = f.id AND b.rank = f.rank
    WHERE f.producer = a.producer AND f.number = a.number AND b.wins > f.$WINS)
"""

_LOST_WITHOUT_DROPPING = "SELECT producer, number, 'absent, though nothing is dropped: ' || id FROM absent"

# The attempt that counts for a number is the last one that was told of less than it.
_MERGED = """
WITH committed AS (
    SELECT p.*, (SELECT max(s.attempt) FROM sent s
                 WHERE s.producer = p.producer AND s.committed < p.number AND s.last >= p.number) AS attempt
    FROM plan p JOIN upto u ON u.producer = p.producer AND u.channel = p.channel AND p.place <= u.last),
expected AS (
    SELECT id, part, ts, producer, number, attempt, producer || '/' || number || '/' || attempt AS note
    FROM (SELECT * FROM committed QUALIFY row_number() OVER (PARTITION BY part, id ORDER BY $WINS DESC) = 1)
    WHERE NOT deletes),
seen AS (SELECT id, part, ts, producer, number, attempt, note FROM merged)
SELECT producer, number, 'missing or other in the merged rows: ' || id || ' ' || note FROM (FROM expected EXCEPT ALL FROM seen)
UNION ALL
SELECT producer, number, 'should not be in the merged rows: ' || id || ' ' || note FROM (FROM seen EXCEPT ALL FROM expected)
"""

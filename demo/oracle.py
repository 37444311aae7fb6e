"""The rows that the table must have in the end, by DuckDB from the CSV. Shares no code with feed, cluster or library."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

_EXPECTED = """
create table expected as
with flights as (
    select *, time_hour::timestamptz + to_minutes(minute::int) as due
    from read_csv(?, nullstr = 'NA', timestampformat = '%Y-%m-%dT%H:%M:%SZ')
    where month <= ? and dep_time is not null
)
select concat_ws('-', year, month, day, carrier, flight, origin, sched_dep_time) as id,
       format('{}-{:02d}', year, month) as month,
       carrier, flight, tailnum, origin, dest, distance,
       due as scheduled_at,
       case when arr_time is null then 'departed' else 'landed' end as status,
       dep_delay, arr_delay, air_time,
       due + to_minutes(dep_delay::int)
           + to_minutes(case when arr_time is null then 0 else coalesce(air_time, 240)::int + 20 end) as updated_at
from flights
"""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Expected rows against those that a reader found. ``lost``: missing keys; ``ghosts``: keys that should not be there;
    ``doubled``: keys that are there more than once; ``wrong``: keys whose values differ.
    """

    expected: int
    found: int
    lost: int
    ghosts: int
    doubled: int
    wrong: int
    examples: Sequence[str]

    @property
    def ok(self) -> bool:
        """Whether the reader found exactly the expected rows."""
        return self.expected == self.found and not (self.lost or self.ghosts or self.doubled or self.wrong)


def compare(csv: Path, months: int, found: pa.Table) -> Comparison:
    """Compares ``found``, the rows of a reader, with the CSV; ignores columns that Hudi adds."""
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        db.execute(_EXPECTED, [str(csv), months])
        db.register("rows", found)
        columns = ", ".join(name for (name, *_) in db.execute("describe expected").fetchall())
        db.execute(f"create table found as select {columns} from rows")
        db.execute("create table lost as select id, month from expected anti join found using (id, month)")
        db.execute("create table ghosts as select id, month from found anti join expected using (id, month)")
        db.execute("create table doubled as select id, month from found group by all having count(*) > 1")
        db.execute("create table differing as select distinct id, month from (from found except from expected)")
        db.execute("create table wrong as from differing anti join ghosts using (id, month)")
        count = {name: db.execute(f"select count(*) from {name}").fetchall()[0][0] for name in _TABLES}
        examples = [
            f"{name}: {row[0]}" for name in _TABLES[2:] for row in db.execute(f"select id from {name} limit 3").fetchall()
        ]
    return Comparison(**count, examples=examples)


def count_where(csv: Path, months: int, condition: str) -> int:
    """The rows that a condition selects of those that the table must have."""
    with duckdb.connect() as db:
        db.execute("set timezone = 'UTC'")
        db.execute(_EXPECTED, [str(csv), months])
        return int(db.execute(f"select count(*) from expected where {condition}").fetchall()[0][0])


_TABLES = ("expected", "found", "lost", "ghosts", "doubled", "wrong")

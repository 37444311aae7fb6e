"""What is left of a dropped table: an object that says so, for those who still look for the table (rule D6)."""

from dataclasses import dataclass

from headgate_tables.commitlog.fields import Fields, Json, UnfitError, number, text
from headgate_tables.commitlog.layout import LogLayout
from headgate_tables.commitlog.log_format import LogFormat
from headgate_tables.commitlog.records import DropRecord, GraceRecord
from headgate_tables.commitlog.slot import seal, unfit, unseal
from headgate_tables.commitlog.win import create_for_certain
from headgate_tables.errors import TableDroppedError, TableInGraceError
from headgate_tables.storage.store import Store
from headgate_tables.system import Clock


@dataclass(frozen=True, slots=True)
class Tombstone:
    """``n``, ``epoch``: of the DROP slot; ``table``: the dropped table's own id."""

    n: int
    epoch: int
    table: str
    drop: DropRecord


def read_tombstone(store: Store, layout: LogLayout) -> Tombstone | None:
    """None where no table was dropped, or its data are not all deleted yet. Raises CorruptFileError, UnsupportedTableError."""
    try:
        data = store.get(layout.tombstone).to_pybytes()
    except FileNotFoundError:
        return None
    try:
        fields = Fields(unseal(data, layout.tombstone))
        time, by = fields.required("time", text), fields.required("by", text)
        n, epoch = fields.required("n", number), fields.required("epoch", number)
        found = Tombstone(n, epoch, fields.required("table", text), DropRecord(time, by))
        fields.refuse_others()
    except UnfitError as error:
        raise unfit(layout.tombstone, error) from error
    return found


def write_tombstone(store: Store, layout: LogFormat, clock: Clock, found: Tombstone) -> None:
    """Durable when it returns. Every process that gets here writes the same bytes."""
    drop = found.drop
    content: dict[str, Json] = {"n": found.n, "epoch": found.epoch, "table": found.table, "time": drop.time, "by": drop.by}
    create_for_certain(store, clock, layout.tombstone, seal(content), durable=True)


def dropped_error(drop: DropRecord) -> TableDroppedError:
    """For those who look for the table. It says no address: clients of a cluster see it."""
    return TableDroppedError(
        f"the table was {drop.describe()}",
        fix="Make a new table, in another place: what is left in this one keeps processes that still have the dropped table open "
        "from writing into another.",
    )


def grace_error(grace: GraceRecord, name: str = "NAME") -> TableInGraceError:
    """For those who look for a table that can be brought back. ``name``: of the table."""
    return TableInGraceError(
        f"the table was {grace.describe()}; `headgate table undrop {name}` brings it back until {grace.end}",
        fix=f"Bring it back, with its rows and offsets, or delete it before that: `headgate table drop {name} --now`.",
    )

"""Which slices lie in another order than the table's settings want. Their footers say so; the log does not know."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.parquet as pq

from headgate_tables.errors import OptionError
from headgate_tables.face.settings import TableSettings
from headgate_tables.hudi.definition import Definition
from headgate_tables.hudi.log.reader import PARQUET_ERRORS
from headgate_tables.hudi.services.compaction.sorted_writer import ORDER_KEY, is_sortable
from headgate_tables.hudi.services.stuck import Key
from headgate_tables.hudi.services.table_context import TableContext
from headgate_tables.hudi.view import FileSlice
from headgate_tables.near_names import did_you_mean
from headgate_tables.storage.store import Store
from headgate_tables.storage.workers import Workers

_PARALLEL = 16


def look_for_unsorted(table: TableContext) -> Callable[[], list[Key]]:
    """Returns a look at the footers of all present base files without logs, one request each: it may take long, and runs on any
    thread. It returns the slices that are not sorted as the settings want. Raises OptionError for settings that want no order.
    """
    wanted = table.settings.row_order
    if wanted is None:
        name = table.definition.name
        raise OptionError(
            f"the rows of {name} have no order to be sorted in",
            fix=f"Set one first: `headgate configure {name} hoodie.clustering.plan.strategy.sort.columns=COLUMN`.",
        )
    slices = [each for each in table.view().latest_slices() if each.base and not each.logs]
    order, store = wanted.among(table.definition.schema.names), table.store

    def look() -> list[Key]:
        found = Workers(_PARALLEL).map(lambda each: _order_of(store, each), slices)
        return [(each.partition, each.file_id) for each, its in zip(slices, found, strict=True) if its != str(order)]

    return look


def _order_of(store: Store, part: FileSlice) -> str:
    """As the footer says; empty also for a file that is missing or damaged, which its compaction reports."""
    path = f"{part.partition}/{part.base}".lstrip("/")
    try:
        with store.open_input(path) as source:
            return (pq.read_metadata(source).metadata or {}).get(ORDER_KEY.encode(), b"").decode()
    except (FileNotFoundError, *PARQUET_ERRORS):
        return ""


def check_row_order(settings: TableSettings, definition: Definition) -> None:
    """Raises OptionError for columns by which the table's rows cannot be sorted."""
    names = definition.schema.names
    for name in settings.row_order.columns if settings.row_order else ():
        if name not in names:
            near = did_you_mean(name, names)
            raise OptionError(
                f"{definition.name} has no column {name!r} to sort by", fix=f"{near}Its columns: {', '.join(names)}."
            )
        if not is_sortable(definition.schema.field(name)):
            raise OptionError(
                f"rows of {definition.name} cannot be sorted by {name!r}: {definition.schema.field(name).type}",
                fix="Choose columns of numbers, texts, dates, times or booleans.",
            )

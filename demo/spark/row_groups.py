"""How much of a table's base files a query has to read, by the statistics in their footers."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from demo.spark.query import Query
from headgate_tables import hudi


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Row groups of all base files, and of these the ones that may hold rows of a query."""

    total: int
    to_read: int

    def __str__(self) -> str:
        return f"{self.to_read} of {self.total}"


def row_groups(folder: Path, query: Query) -> RowGroups:
    """Those of the newest slices of a table on a local disk."""
    with hudi.open_table(str(folder)) as table:
        newest = [group.slices()[-1] for group in table.file_groups()]
    footers = [pq.read_metadata(folder / each.partition / each.base) for each in newest if each.base]
    groups = [meta.row_group(number) for meta in footers for number in range(meta.num_row_groups)]
    return RowGroups(len(groups), sum(_may_hold(group, query) for group in groups))


def _may_hold(group: pq.RowGroupMetaData, query: Query) -> bool:
    return not any(_rules_out(group.column(at), query) for at in range(group.num_columns))


def _rules_out(column: pq.ColumnChunkMetaData, query: Query) -> bool:
    value, bounds = query.equal.get(column.path_in_schema), column.statistics
    if value is None or bounds is None or not bounds.has_min_max:
        return False
    return not str(bounds.min) <= value <= str(bounds.max)

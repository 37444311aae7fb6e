"""A snapshot of rows: which slices, which columns, merged batches out.

One slice at a time: keys and ordering values of its logs decide the winners, then the base file streams past them, then the
winning log rows follow. Memory holds the keys of one slice's logs and one batch, whatever the table's size.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headgate_tables.errors import OptionError, SchemaError
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.keys.partition_path import PartitionSpec, parse_partition_path
from headgate_tables.hudi.schema.meta_columns import META_COLUMNS, with_meta
from headgate_tables.hudi.slice_reader import SliceReader, Wanted
from headgate_tables.hudi.snapshot import Snapshot
from headgate_tables.hudi.view import FileSlice
from headgate_tables.storage.store import Store

Partition = str | Mapping[str, Any]


class Scan:
    """A snapshot, fixed when it was made; reading it again gives the same rows."""

    def __init__(
        self,
        store: Store,
        layout: Layout,
        snapshot: Snapshot,
        columns: Sequence[str] | None,
        partitions: Sequence[Partition] | None,
        expression: pc.Expression | None,
        *,
        meta_columns: bool,
    ) -> None:
        self._store = store
        self._layout = layout
        self._snapshot = snapshot
        full = with_meta(snapshot.schema)
        output = [*(META_COLUMNS if meta_columns else ()), *(columns if columns is not None else snapshot.schema.names)]
        _check_names(output, full)
        used = _used_by(expression, full)
        self._wanted = Wanted(output, list(dict.fromkeys([*output, *used])), expression)
        self._slices = [part for part in snapshot.view.latest_slices() if self._selects(part.partition, partitions)]
        self.schema = pa.schema([full.field(name) for name in output])

    def to_reader(self) -> pa.RecordBatchReader:
        """A stream of record batches; rows come in no particular order."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(self._batches(), self.schema)

    def slices(self) -> Sequence[FileSlice]:
        """The file slices that will be read."""
        return tuple(self._slices)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        reader = SliceReader(self._store, self._layout, with_meta(self._snapshot.schema), self._snapshot.view.timeline)
        for part in self._slices:
            for table in reader.read(part, self._wanted):
                yield from table.to_batches()

    def _selects(self, path: str, partitions: Sequence[Partition] | None) -> bool:
        if not self._layout.partition_by:
            return True
        if partitions is None and self._wanted.filter is None:
            return True
        values = self._values(path)
        if partitions is not None and not any(_matches(partition, path, values) for partition in partitions):
            return False
        return self._wanted.filter is None or _may_match(self._wanted.filter, values, self._snapshot.schema)

    def _values(self, path: str) -> dict[str, Any]:
        layout = self._layout
        spec = PartitionSpec(layout.partition_by, layout.hive_style, layout.url_encode)
        return parse_partition_path(path, spec, [self._snapshot.schema.field(name).type for name in layout.partition_by])


def _check_names(names: Sequence[str], schema: pa.Schema) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise SchemaError(f"the table has no column {', '.join(map(repr, unknown))}", fix=f"Its columns are {', '.join(schema.names)}.")


def _used_by(expression: pc.Expression | None, schema: pa.Schema) -> list[str]:
    """Columns that the expression cannot be evaluated without. Raises SchemaError when it names others."""
    if expression is None:
        return []
    empty = schema.empty_table()
    _try_filter(empty, expression, raising=True)
    return [name for name in schema.names if not _try_filter(empty.drop_columns([name]), expression, raising=False)]


def _try_filter(table: pa.Table, expression: pc.Expression, *, raising: bool) -> bool:
    try:
        table.filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        if raising:
            raise SchemaError(f"the filter does not fit the table: {error}", fix=f"Its columns are {', '.join(table.column_names)}.") from error
        return False
    return True


def _matches(partition: Partition, path: str, values: Mapping[str, Any]) -> bool:
    if isinstance(partition, str):
        return partition == path
    unknown = partition.keys() - values.keys()
    if unknown:
        raise OptionError(f"{sorted(unknown)} are no partition columns", fix=f"The table is partitioned by {', '.join(values)}.")
    return all(values[name] == value for name, value in partition.items())


def _may_match(expression: pc.Expression, values: Mapping[str, Any], schema: pa.Schema) -> bool:
    """Whether a row with these partition values can pass the filter, as Arrow's own simplification sees it."""
    known = [pc.field(name) == pa.scalar(value, schema.field(name).type) for name, value in values.items() if value is not None]
    if not known:
        return True
    guarantee = known[0]
    for term in known[1:]:
        guarantee = guarantee & term
    fragment = ds.ParquetFileFormat().make_fragment("-", partition_expression=guarantee)
    dataset = ds.FileSystemDataset([fragment], with_meta(schema), ds.ParquetFileFormat())
    return any(True for _ in dataset.get_fragments(filter=expression))

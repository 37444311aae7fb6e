"""The rows of a query: chooses slices and columns, and yields merged batches.

One slice at a time: keys and ordering values of its logs decide the winners, then the base file streams past them, then the
winning log rows follow. Memory holds the keys of one slice's logs and one batch, whatever the table's size.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from headgate_tables.errors import OptionError, SchemaError, UnsupportedTypeError
from headgate_tables.face import reader
from headgate_tables.face.reader import Filter
from headgate_tables.hudi.definition import Layout
from headgate_tables.hudi.keys.partition_path import PartitionSpec, parse_partition_path
from headgate_tables.hudi.query import Selection
from headgate_tables.hudi.readable import check_slices, check_unknown
from headgate_tables.hudi.schema.meta_columns import COMMIT_TIME, META_COLUMNS, with_meta
from headgate_tables.hudi.slice_reader import ScanColumns, SliceReader
from headgate_tables.hudi.timeline.active import Timeline
from headgate_tables.hudi.view import FileSlice
from headgate_tables.name_lists import names_in
from headgate_tables.near_names import did_you_mean
from headgate_tables.storage.store import Store
from headgate_tables.where import where

Partition = str | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SliceQuery:
    """How the slices of one scan are read, also in another process: it pickles. ``schema``: with meta columns."""

    layout: Layout
    schema: pa.Schema
    timeline: Timeline
    as_of: str
    wanted: ScanColumns

    def batches(self, folder: Store, part: reader.FileSlice) -> Iterator[pa.RecordBatch]:
        """The rows of one slice. Raises CorruptFileError, MissingFileError, UnsupportedTableError, which name the file."""
        slices = SliceReader(folder, self.layout, self.schema, self.timeline, self.as_of)
        for table in slices.read(cast("FileSlice", part), self.wanted):
            yield from table.to_batches()


class Scan:
    """A query, fixed when it was made; reading it again gives the same rows. Raises UnsupportedTableError for files in it that
    cannot be read here, before anything is read.

    ``schema``: of the rows. ``as_of``: completion time of the newest commit that counts, "" when there is none; ``since=`` takes
    it to continue from here.
    """

    def __init__(
        self,
        store: Store,
        layout: Layout,
        selection: Selection,
        columns: Sequence[str] | None,
        partitions: Sequence[Partition] | None,
        filter_: Filter | None,
        *,
        meta_columns: bool,
    ) -> None:
        self._store = store
        self._layout = layout
        self.as_of = selection.as_of
        self._snapshot = snapshot = selection.snapshot
        full = with_meta(snapshot.schema)
        output = _output(columns, snapshot.schema, meta_columns=meta_columns)
        _check_names(output, full)
        expression = _expression_of(filter_, snapshot.schema)
        used = _used_by(expression, full)
        # Statistics leave NaN out of minimum and maximum (test_a_scan_gives_what_pyarrow_selects_from_the_whole_table).
        prune = None if any(_holds_floats(full.field(name).type) for name in used) else expression
        commits = pc.field(COMMIT_TIME).isin(list(selection.commits)) if selection.commits is not None else None
        used += [COMMIT_TIME] if commits is not None else []
        self._wanted = ScanColumns(output, list(dict.fromkeys([*output, *used])), expression, prune, commits)
        self._partitions = _checked_partitions(partitions, layout, snapshot.schema)
        partitions_of_files = {part.partition for part in selection.slices} | {partition for partition, _ in selection.unknown}
        selected = {path: self._selects(path) for path in partitions_of_files}
        self._slices = [part for part in selection.slices if selected[part.partition]]
        check_unknown(file for file in selection.unknown if selected[file[0]])
        check_slices(self._slices)
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

    def slice_query(self) -> SliceQuery:
        """How each of them is read."""
        schema, timeline = with_meta(self._snapshot.schema), self._snapshot.view.timeline
        return SliceQuery(self._layout, schema, timeline, self.as_of, self._wanted)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        query = self.slice_query()
        for part in self._slices:
            yield from query.batches(self._store, part)

    def _selects(self, path: str) -> bool:
        if self._partitions is not None and not any(self._is(partition, path) for partition in self._partitions):
            return False
        if self._wanted.filter is None or not self._layout.values_in_path:
            return True
        try:
            values = self._values(path)
        except UnsupportedTypeError:
            return True  # the path's text does not say it, the rows do
        return _may_match(self._wanted.filter, values, self._snapshot.schema)

    def _is(self, partition: Partition, path: str) -> bool:
        if isinstance(partition, str):
            return partition == path
        values = self._values(path)
        return all(values[name] == value for name, value in partition.items())

    def _values(self, path: str) -> dict[str, object]:
        layout = self._layout
        _check_names(layout.partition_by, self._snapshot.schema)
        spec = PartitionSpec(layout.partition_by, layout.hive_style, layout.url_encode)
        return parse_partition_path(path, spec, [self._snapshot.schema.field(name).type for name in layout.partition_by])


def _expression_of(filter_: Filter | None, schema: pa.Schema) -> pc.Expression | None:
    if isinstance(filter_, str):
        return where(filter_, schema)
    return filter_(schema) if callable(filter_) else filter_


def _check_names(names: Sequence[str], schema: pa.Schema) -> None:
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise SchemaError(
            f"the table has no column {', '.join(map(repr, unknown))}",
            fix=f"{did_you_mean(unknown[0], schema.names)}Its columns are {', '.join(schema.names)}.",
        )


def _output(columns: Sequence[str] | None, schema: pa.Schema, *, meta_columns: bool) -> list[str]:
    names = [*(META_COLUMNS if meta_columns else ()), *(schema.names if columns is None else names_in(columns, "columns"))]
    if columns is not None and not names:
        raise OptionError(f"columns={columns!r}", fix="Pass a list of at least one name, or None for all columns.")
    return names


def _checked_partitions(partitions: Sequence[Partition] | None, layout: Layout, schema: pa.Schema) -> list[Partition] | None:
    """Mappings get their values in the types of their columns. Raises OptionError for a value that can select nothing."""
    if partitions is None:
        return None
    if isinstance(partitions, str | Mapping) or not isinstance(partitions, Iterable):
        raise OptionError(f"partitions={partitions!r} is not a list", fix="Pass a list of partition paths or mappings.")
    if not layout.partition_by:
        raise OptionError("the table has no partitions", fix="Leave partitions=... out, or select rows with filter=....")
    return [partition if isinstance(partition, str) else _typed(partition, layout, schema) for partition in partitions]


def _typed(partition: object, layout: Layout, schema: pa.Schema) -> dict[str, object]:
    columns = ", ".join(layout.partition_by)
    if not isinstance(partition, Mapping) or partition.keys() - set(layout.partition_by):
        raise OptionError(
            f"{partition!r} selects no partition", fix=f"Pass a path, or a mapping of the partition columns: {columns}."
        )
    if not layout.values_in_path:
        raise OptionError(
            "the partition paths of this table are not the values of its columns", fix="Select partitions by their paths."
        )
    try:
        return {name: pa.scalar(value, schema.field(name).type).as_py() for name, value in partition.items()}
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        types = ", ".join(f"{name}: {schema.field(name).type}" for name in partition)
        raise OptionError(
            f"{partition!r} has a value of another type than its column: {error}", fix=f"Pass values of these types: {types}."
        ) from error


def _used_by(expression: object, schema: pa.Schema) -> list[str]:
    """Columns that the expression needs. Raises SchemaError for one that the table lacks, OptionError for no expression."""
    if expression is None:
        return []
    # A reference by position would mean another column in every smaller set of columns.
    if not isinstance(expression, pc.Expression) or "FieldPath(" in str(expression):
        raise OptionError(
            f"filter={expression!r} cannot be used",
            fix='Pass a pyarrow expression over column names, such as pc.field("ts") > 5.',
        )
    empty = schema.empty_table()
    _try_filter(empty, expression, raising=True)
    return [name for name in schema.names if not _try_filter(empty.drop_columns([name]), expression, raising=False)]


def _try_filter(table: pa.Table, expression: pc.Expression, *, raising: bool) -> bool:
    try:
        table.filter(expression)
    except pa.ArrowException as error:
        if raising:
            raise SchemaError(
                f"the filter does not fit the table: {error}", fix=f"Its columns are {', '.join(table.column_names)}."
            ) from error
        return False
    return True


def _holds_floats(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or any(_holds_floats(kind.field(i).type) for i in range(kind.num_fields))


def _may_match(expression: pc.Expression, values: Mapping[str, object], schema: pa.Schema) -> bool:
    """Whether a row with these partition values can pass the filter, according to Arrow's own simplification; True for values for
    which the filter fails, since it says so of the rows.
    """
    known = [pc.field(name) == pa.scalar(value, schema.field(name).type) for name, value in values.items() if value is not None]
    if not known:
        return True
    guarantee = known[0]
    for term in known[1:]:
        guarantee = guarantee & term
    import pyarrow.dataset as ds  # imports pandas, if that is installed: only scans with a filter pay for it

    # Never read: only its partition expression is used.
    parquet = ds.ParquetFileFormat()
    fragment = parquet.make_fragment(pa.py_buffer(b""), partition_expression=guarantee)  # type: ignore[arg-type]
    dataset = ds.FileSystemDataset([fragment], with_meta(schema), parquet)
    try:
        return any(True for _ in dataset.get_fragments(filter=expression))
    except pa.ArrowException:
        return True

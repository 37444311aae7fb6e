"""Rows as one Parquet file in memory: the content of a PARQUET_DATA block, and of a base file.

Every choice was measured with a row of 17 columns (bench tables), and every reader that was tried accepts the results without
settings: a codec and an encoding per column, page checksums. Byte-stream-split is smaller still, but Spark 3.5 cannot read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from headgate_tables.arrow import ChunkedArray, Field, pc
from headgate_tables.hudi.schema.meta_columns import META_COLUMNS, RECORD_KEY

Codec = Literal["zstd", "snappy", "none"]

SMALL_ROWS = 64
"""Below this a file is mostly footer: a zstd context costs 15 us per column, more than its rows do."""
_SAMPLE_ROWS = 4096
_ENOUGH_ROWS = 512
_SAMPLE_BYTES = 4 * 1024 * 1024
_ENOUGH_BYTES = 1024 * 1024
"""The same of rows so long that few of them say what zstd would gain; a file of 300 rows of 10 kB has as much to lose as one of
10,000 rows."""
_LOW_CARDINALITY = 16
"""A column is low-cardinality when the sample holds at least this many rows per distinct value."""
_WIDE_RANGE = 1 << 20
"""Integers that spread wider pack badly as deltas, so few distinct ones go to a dictionary like text."""
_FIXED_WORTH_ZSTD = 0.5
_TEXT_WORTH_ZSTD = 0.8
"""zstd is used when the sample shrinks below this share; numbers must shrink more, because plain ones cost nothing to decode."""
_GROUP_ROWS = 1 << 20
_WRITE_BATCH = 16_384
_FEW_CHUNKS = 3
_PAGE_BYTES = 4 * 1024 * 1024
"""Pages end between write batches, and readers keep whole pages in memory: rows of 10 kB would make pages of 160 MB."""


@dataclass(frozen=True, slots=True)
class _Column:
    """How one Parquet leaf is stored."""

    dictionary: bool
    deltas: bool
    codec: Codec


class ParquetLayout:
    """How one table's columns are stored; learnt from its rows, kept as long as the process.

    ``stats``: columns besides the record key that get min and max, for readers to prune by. Learns from the first file with
    ``_ENOUGH_ROWS`` or ``_ENOUGH_BYTES``, and from any later one with a sample twice as large, up to ``_SAMPLE_ROWS`` or
    ``_SAMPLE_BYTES``; smaller files are stored plainly. Threads may share it: what was learnt is replaced as a whole.
    """

    def __init__(self, stats: Collection[str] = ()) -> None:
        self._stats = [RECORD_KEY, *(name for name in stats if name != RECORD_KEY)]
        self._learnt: tuple[int, pa.Schema, dict[str, _Column]] | None = None

    def options(self, rows: pa.Table) -> dict[str, Any]:
        """Keyword arguments of ``pq.ParquetWriter`` for these rows."""
        columns = self._columns(rows)
        if columns is None:
            return {"compression": "SNAPPY", "use_dictionary": _dictionaries(rows.schema), "write_statistics": self._stats}
        zstd = {path: 1 for path, column in columns.items() if column.codec == "zstd"}
        return {
            "compression": {path: column.codec.upper() for path, column in columns.items()},
            "compression_level": zstd or None,
            "use_dictionary": [path for path, column in columns.items() if column.dictionary],
            "column_encoding": {path: "DELTA_BINARY_PACKED" for path, column in columns.items() if column.deltas} or None,
            "write_statistics": self._stats,
        }

    def _columns(self, rows: pa.Table) -> dict[str, _Column] | None:
        offered = min(rows.num_rows, _SAMPLE_ROWS)
        known = self._learnt
        if known is None or offered >= 2 * known[0] or not _same_leaves(known[1], rows.schema):
            if offered < _ENOUGH_ROWS and not _has_enough_bytes(rows):
                return None
            fitting = max(SMALL_ROWS, _SAMPLE_BYTES * rows.num_rows // max(1, rows.nbytes))
            sampled = rows.slice(0, min(offered, fitting))
            known = self._learnt = (offered if offered <= fitting else _SAMPLE_ROWS, rows.schema, dict(_learn(sampled)))
        return known[2] if rows.num_rows >= SMALL_ROWS else None


def encode(rows: pa.Table, layout: ParquetLayout) -> pa.Buffer:
    """A complete Parquet file. ``rows``: canonical columns, the meta columns as ``attach_meta`` makes them (a dictionary array
    is stored as its values); the schema's metadata become footer keys. Pages carry checksums (3 % of the time to write), so that
    a flipped bit in one is found by readers that look, as ours does.
    """
    sink = pa.BufferOutputStream()
    options = layout.options(rows)
    with pq.ParquetWriter(
        sink, rows.schema, store_schema=False, write_page_checksum=True, write_batch_size=write_batch(rows), **options
    ) as writer:
        writer.write_table(rows, row_group_size=_GROUP_ROWS)
        if rows.schema.metadata:
            writer.add_key_value_metadata(rows.schema.metadata)  # type: ignore[arg-type]
    return sink.getvalue()


def write_batch(rows: pa.Table) -> int:
    """Number of rows that Arrow encodes at a time, and so the fewest in a page."""
    if rows.get_total_buffer_size() <= _PAGE_BYTES:
        return _WRITE_BATCH  # to ask for the bytes of these rows, of buffers that they share, takes 20 times as long
    width = sum(map(_nbytes, rows.columns)) / max(1, rows.num_rows)
    return max(1, min(_WRITE_BATCH, int(_PAGE_BYTES / max(1.0, width))))


def _nbytes(column: ChunkedArray) -> int:
    """Arrow bytes, without the validity of a column of many chunks: Arrow takes 6 us to count those of each chunk."""
    kind = column.type
    nbytes: int
    if column.num_chunks > _FEW_CHUNKS and pat.is_primitive(kind):
        nbytes = len(column) * kind.bit_width // 8
    elif column.num_chunks > _FEW_CHUNKS and _is_text(kind):
        nbytes = 4 * len(column) + (pc.sum(pc.binary_length(column)).as_py() or 0)
    else:
        nbytes = column.nbytes
    return nbytes


def _has_enough_bytes(rows: pa.Table) -> bool:
    """The buffers are asked first, as of most small files they say enough: rows of others share theirs."""
    return rows.num_rows >= SMALL_ROWS and rows.get_total_buffer_size() >= _ENOUGH_BYTES and rows.nbytes >= _ENOUGH_BYTES


def _learn(sample: pa.Table) -> Iterator[tuple[str, _Column]]:
    """Leaf by leaf. The gain of zstd comes from the footer of a trial file with the columns for which it matters."""
    packed = {field.name: _packed(field, column) for field, column in zip(sample.schema, sample.columns, strict=True)}
    known = {name: column for name, column in packed.items() if column is not None}
    yield from known.items()
    rest = sample.drop_columns(list(known))
    shrinks = _shrinks(rest)
    for field in rest.schema:
        for path, kind in leaves(field):
            yield path, _Column(dictionary=False, deltas=False, codec=_codec(kind, shrinks[path]))


def _codec(kind: pa.DataType, shrink: float) -> Codec:
    """The codec of a leaf that no encoding makes small."""
    if _is_text(kind):
        return "zstd" if shrink < _TEXT_WORTH_ZSTD else "snappy"
    return "zstd" if shrink < _FIXED_WORTH_ZSTD else "none"


def _packed(field: Field, column: ChunkedArray) -> _Column | None:
    """The storage of a column that an encoding makes small; None for one that only a codec could."""
    kind = dict(leaves(field)).get(field.name)
    if kind is None:
        return None
    if _few_values(column, kind):
        # Snappy for the dictionary page, and in case the column turns out to hold long, distinct text.
        return _Column(dictionary=True, deltas=False, codec="snappy")
    return _Column(dictionary=False, deltas=True, codec="none") if _packs_as_deltas(kind) else None


def _shrinks(sample: pa.Table) -> dict[str, float]:
    """Compressed size, as a share of plain size, of every leaf under zstd."""
    if not sample.num_columns:
        return {}
    sink = pa.BufferOutputStream()
    pq.write_table(
        sample, sink, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=False, store_schema=False
    )
    group = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.total_compressed_size / max(1, chunk.total_uncompressed_size) for chunk in chunks}


def _few_values(column: ChunkedArray, kind: pa.DataType) -> bool:
    if pat.is_dictionary(column.type):
        return True
    if pat.is_boolean(kind) or len(column) == 0:
        return False
    if _packs_as_deltas(kind) and not _wide(column, kind):
        return False
    distinct: int = pc.count_distinct(column, mode="all").as_py()
    return distinct * _LOW_CARDINALITY <= len(column)


def _wide(column: ChunkedArray, kind: pa.DataType) -> bool:
    if kind.bit_width == 32:
        return False
    bounds = pc.min_max(column.cast(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    return low is not None and high - low >= _WIDE_RANGE


def _packs_as_deltas(kind: pa.DataType) -> bool:
    return pat.is_integer(kind) or pat.is_timestamp(kind) or pat.is_date(kind) or pat.is_time(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pat.is_string(kind) or pat.is_binary(kind)


def leaves(field: Field) -> Iterator[tuple[str, pa.DataType]]:
    """Parquet's leaf paths below a column, with their types."""
    kind = field.type
    if isinstance(kind, pa.StructType):
        for i in range(kind.num_fields):
            yield from ((f"{field.name}.{path}", leaf) for path, leaf in leaves(kind.field(i)))
    elif isinstance(kind, pa.ListType):
        yield from ((f"{field.name}.list.{path}", leaf) for path, leaf in leaves(kind.value_field.with_name("element")))
    elif isinstance(kind, pa.MapType):
        for child in (kind.key_field.with_name("key"), kind.item_field.with_name("value")):
            yield from ((f"{field.name}.key_value.{path}", leaf) for path, leaf in leaves(child))
    else:
        yield field.name, kind.value_type if isinstance(kind, pa.DictionaryType) else kind


def _dictionaries(schema: pa.Schema) -> list[str]:
    return [
        field.name
        for field in schema
        if pat.is_dictionary(field.type) or (field.name in META_COLUMNS and field.name.endswith(("time", "path", "name")))
    ]


def _same_leaves(first: pa.Schema, second: pa.Schema) -> bool:
    return first is second or first.equals(second)

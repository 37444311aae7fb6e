"""Parquet, ORC and Arrow IPC: files that know their types."""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_cli.reading.source import FileBatch, Source, numbered

_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 1 << 15
_ORC_ROWS = 1 << 13
_PROBED_ROWS = 1 << 10
_BUFFERS_BYTES = 32 << 20
"""Of all columns together. Without buffers, pyarrow reads whole row groups."""


def open_parquet(path: Path, select: Sequence[str] = ()) -> Source:
    """A Parquet file's rows; row groups before the skipped rows are not read, nor columns beside those of ``select``.

    Memory holds pages of each column and a batch, however large a row group is.
    """
    metadata = pq.read_metadata(path)
    buffer = min(1 << 20, max(1 << 14, _BUFFERS_BYTES // max(1, metadata.num_columns)))
    file = pq.ParquetFile(
        path, metadata=metadata, memory_map=False, buffer_size=buffer, coerce_int96_timestamp_unit="us", pre_buffer=False
    )
    counts = [metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    columns = list(select) or None

    def batches(skip: int) -> Iterator[FileBatch]:
        first, before = 0, 0
        while first < len(counts) and before + counts[first] <= skip:
            before += counts[first]
            first += 1
        groups = list(range(first, len(counts)))
        if not groups:
            return
        rows = file.iter_batches(batch_size=_batch_rows(file, groups[0], columns), row_groups=groups, columns=columns)
        for batch, ahead, *_ in numbered(rows, int, before):
            yield FileBatch(batch, ahead, ahead + batch.num_rows)

    return Source(path, file.schema_arrow, metadata.num_rows, "rows", batches)


def _batch_rows(file: pq.ParquetFile, group: int, columns: list[str] | None) -> int:
    """So many rows that a batch has about ``_BATCH_BYTES``, by what the first rows have and by what the file says of all."""
    probe = next(file.iter_batches(batch_size=_PROBED_ROWS, row_groups=[group], columns=columns), None)
    if probe is None or not probe.num_rows:
        return _BATCH_ROWS
    sizes = [probe.nbytes / probe.num_rows]
    if columns is None:
        described = file.metadata.row_group(group)
        sizes.append(described.total_byte_size / max(1, described.num_rows))
    return max(1, min(_BATCH_ROWS, int(_BATCH_BYTES / max(1.0, *sizes))))


def open_orc(path: Path) -> Source:
    """An ORC file's rows, by batches: a stripe may be larger than memory. Raises OSError, pa.ArrowException."""
    import pyarrow.dataset as ds
    from pyarrow import fs, orc  # pyarrow for Windows has no ORC

    file = orc.ORCFile(path)

    def batches(_skip: int) -> Iterator[FileBatch]:
        fragment = ds.OrcFileFormat().make_fragment(str(path.absolute()), fs.LocalFileSystem())
        rows = fragment.to_batches(batch_size=_ORC_ROWS, batch_readahead=0, fragment_readahead=0, use_threads=False)
        for batch, before, *_ in numbered(rows, int):
            yield FileBatch(batch, before, before + batch.num_rows)

    return Source(path, file.schema, file.nrows, "rows", batches)


def open_arrow(path: Path) -> Source:
    """Reads both Arrow formats: the file format (Feather) counts its batches, the stream format is read to its end."""
    with pa.OSFile(str(path), "rb") as file:
        if file.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(file)
            return Source(path, reader.schema, reader.num_record_batches, "batches", partial(_file_batches, path))
        total = file.size()
        file.seek(0)
        return Source(path, pa.ipc.open_stream(file).schema, total, "bytes", partial(_stream_batches, path))


def _file_batches(path: Path, _skip: int) -> Iterator[FileBatch]:
    with pa.OSFile(str(path), "rb") as file:
        reader = pa.ipc.open_file(file)
        yield from numbered(map(reader.get_batch, range(reader.num_record_batches)), itertools.count(1).__next__)


def _stream_batches(path: Path, _skip: int) -> Iterator[FileBatch]:
    with pa.OSFile(str(path), "rb") as file:
        yield from numbered(pa.ipc.open_stream(file), file.tell)

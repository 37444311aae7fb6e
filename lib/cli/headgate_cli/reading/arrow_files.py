"""Parquet, ORC and Arrow IPC: files that know their types."""

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headgate_cli.reading.source import PIECE_ROWS, FileBatch, Source, numbered


def open_parquet(path: Path, select: Sequence[str] = ()) -> Source:
    """A Parquet file's rows; row groups before the skipped rows are not read, nor columns beside those of ``select``."""
    file = pq.ParquetFile(path, memory_map=False, coerce_int96_timestamp_unit="us")
    counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]

    def batches(skip: int) -> Iterator[FileBatch]:
        first, before = 0, 0
        while first < len(counts) and before + counts[first] <= skip:
            before += counts[first]
            first += 1
        groups = list(range(first, len(counts)))
        rows = file.iter_batches(batch_size=PIECE_ROWS, row_groups=groups, columns=list(select) or None) if groups else ()
        for batch, ahead, *_ in numbered(rows, int, before):
            yield FileBatch(batch, ahead, ahead + batch.num_rows)

    return Source(path, file.schema_arrow, file.metadata.num_rows, "rows", batches)


def open_orc(path: Path) -> Source:
    """An ORC file's rows, stripe by stripe. Raises OSError, pa.ArrowException."""
    from pyarrow import orc  # pyarrow for Windows has none

    file = orc.ORCFile(path)

    def batches(_skip: int) -> Iterator[FileBatch]:
        return numbered(map(file.read_stripe, range(file.nstripes)), itertools.count(1).__next__)

    return Source(path, file.schema, file.nstripes, "batches", batches)


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

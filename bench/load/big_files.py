"""Two files of the same kind of rows, a CSV and a Parquet file of a given size, and what rows they hold."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench import CACHE
from bench.tables.progress import say
from support.events import EVENTS_SCHEMA, events

Kind = Literal["csv", "parquet"]
_PIECE = 250_000
_SAMPLE = 100_000

Digest = list[int]
"""Number of rows, and the sum of a hash of each row: the same for the same rows in any order."""


def prepare(kind: Kind, megabytes: int) -> tuple[str, Digest]:
    """Path of a file of about so many megabytes, and the digest of its rows: the 12-column event, each key once."""
    name = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    path = CACHE / f"load-{megabytes}-{name}.{kind}"
    facts = path.with_suffix(f".{kind}.json")
    if not facts.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        sample = path.with_suffix(f".{kind}.sample")
        _written(kind, sample, _SAMPLE)
        rows = round(megabytes * 1_000_000 / sample.stat().st_size * _SAMPLE)
        sample.unlink()
        say(f"making a {kind} file of {megabytes:,} MB, {rows:,} rows")
        facts.write_text(json.dumps(_written(kind, path, rows)))
    digest: Digest = json.loads(facts.read_text())
    return str(path), digest


def digest_of(
    source: str, connection: duckdb.DuckDBPyConnection | None = None, columns: Sequence[str] = tuple(EVENTS_SCHEMA.names)
) -> Digest:
    """``source``: what DuckDB can select the columns from."""
    query = f"SELECT count(*) AS rows, coalesce(sum(hash({', '.join(columns)})::HUGEINT), 0)::VARCHAR AS total FROM {source}"
    (found,) = (connection or connect()).sql(query).to_arrow_table().to_pylist()
    return [found["rows"], int(found["total"])]


def connect() -> duckdb.DuckDBPyConnection:
    """DuckDB, which says and reads times in UTC."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _written(kind: Kind, path: Path, rows: int) -> Digest:
    """The rows' digest. They are told from the rows in memory, so that no reader of the file has a part in it."""
    digest = [0, 0]
    connection = connect()

    def pieces() -> Iterator[pa.RecordBatch]:
        own = connect()
        for start in range(0, rows, _PIECE):
            piece = events(min(_PIECE, rows - start), start=start)
            own.register("piece", piece)
            count, total = digest_of("piece", own)
            digest[0] += count
            digest[1] += total
            yield from piece.to_batches()

    write: dict[Kind, Callable[[Any], None]] = {
        "csv": lambda reader: _write_csv(connection, reader, path),
        "parquet": lambda reader: _write_parquet(reader, path),
    }
    write[kind](pa.RecordBatchReader.from_batches(EVENTS_SCHEMA, pieces()))
    return digest


def _write_csv(connection: duckdb.DuckDBPyConnection, reader: pa.RecordBatchReader, path: Path) -> None:
    connection.register("reader", reader)
    connection.execute(f"COPY (FROM reader) TO '{path}' (FORMAT csv, HEADER)")


def _write_parquet(reader: pa.RecordBatchReader, path: Path) -> None:
    with pq.ParquetWriter(path, EVENTS_SCHEMA) as writer:
        for batch in reader:
            writer.write_batch(batch)

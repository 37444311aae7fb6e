"""Files that know their types: Parquet, Arrow, Avro and ORC, as programs write them."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import fastavro
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq

from support.real_files.case import RealFile, Rows, sql, text

_READ = sql("select * from read_parquet(FILE)")
_UTC = dt.UTC
_NS = pa.table({"id": [1, 2], "at": pa.array([1_767_322_800_123_456_000, None], pa.timestamp("ns", "UTC"))})
_LOCAL = pa.table({"id": [1], "at": pa.array([dt.datetime(2026, 7, 2, 3, 4, 5)])})  # noqa: DTZ001 - a clock time
_AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "net", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
        {"name": "kind", "type": {"type": "enum", "name": "kinds", "symbols": ["a", "b"]}},
        {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
_AVRO_ROWS: Rows = [
    {
        "id": 1,
        "day": dt.date(2026, 1, 2),
        "at": dt.datetime(2026, 1, 2, 3, 4, 5, 123456, _UTC),
        "net": Decimal("1.25"),
        "kind": "b",
        "key": UUID(int=5),
        "tags": ["x"],
    },
    {
        "id": 2,
        "day": dt.date(1969, 1, 2),
        "at": dt.datetime(1969, 1, 2, tzinfo=_UTC),
        "net": None,
        "kind": "a",
        "key": UUID(int=6),
        "tags": [],
    },
]


def parquet(rows: pa.Table, **options: Any) -> Callable[[Path], object]:
    return lambda path: pq.write_table(rows, path, **options)


def duck(query: str, options: str = "format parquet") -> Callable[[Path], object]:
    """A file or folder that DuckDB copies the query into."""

    def write(path: Path) -> None:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"copy ({query}) to '{path}' ({options})")

    return write


def spark_folder(path: Path) -> None:
    """What Spark leaves behind: files with long names in folders, checksums and a mark of success."""
    for day, at in (("2026-01-01", 1), ("2026-01-02", 3), ("__HIVE_DEFAULT_PARTITION__", 5)):
        folder = path / f"day={day}"
        folder.mkdir(parents=True)
        name = f"part-0000{at}-7a3f-c000.snappy.parquet"
        pq.write_table(pa.table({"id": [at, at + 1], "name": ["x", None]}), folder / name, compression="snappy")
        (folder / f".{name}.crc").write_bytes(b"crc\0")
    (path / "_SUCCESS").touch()
    (path / "._SUCCESS.crc").write_bytes(b"crc\0")


def csv_folder(path: Path) -> None:
    for year, month in (("2025", "12"), ("2026", "01")):
        folder = path / f"year={year}" / f"month={month}" / "place=K%C3%B6ln"
        folder.mkdir(parents=True)
        (folder / "data.csv").write_text(f"id,n\n{int(month)},2.5\n")


def arrow_stream(rows: pa.Table) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows)

    return write


def avro(schema: dict[str, Any], rows: Rows, codec: str = "null") -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with path.open("wb") as file:
            fastavro.writer(file, schema, rows, codec=codec)

    return write


def by_fastavro(path: Path) -> Rows:
    with path.open("rb") as file:
        rows = [dict(row) for row in fastavro.reader(file)]  # type: ignore[arg-type]
    return [row | {"key": str(row["key"])} if "key" in row else row for row in rows]


def by_pandas_parquet(path: Path) -> Rows:
    rows: Rows = pa.Table.from_pandas(pd.read_parquet(path).reset_index(), preserve_index=False).to_pylist()
    return rows


def by_polars(read: Callable[[Path], pl.DataFrame]) -> Callable[[Path], Rows]:
    return lambda path: read(path).to_dicts()


def _frame() -> pd.DataFrame:
    return pd.DataFrame({"id": [1, 2], "n": [1.5, None]}, index=pd.Index(["a", "b"], name="label"))


_POLARS = pl.DataFrame(
    {
        "id": pl.Series([1, 2], dtype=pl.UInt32),
        "name": ["Anna", None],
        "kind": pl.Series(["a", "b"], dtype=pl.Categorical),
        "small": pl.Series([1, 255], dtype=pl.UInt8),
        "tags": [["x"], []],
        "at": pl.Series([dt.datetime(2026, 1, 2, 3, 4, 5, 6)] * 2).dt.replace_time_zone("UTC"),  # noqa: DTZ001
    }
)
_WIDE = pa.table({"id": pa.array([1, 2], pa.uint64()), "big": pa.array([2**63, 5], pa.uint64())})
_DECIMALS = pa.table({name: pa.array([Decimal("1.25"), None], kind) for name, kind in {
    "small": pa.decimal128(7, 2), "middle": pa.decimal128(18, 2), "large": pa.decimal128(30, 2)}.items()}).append_column(
    "id", pa.array([1, 2]))  # fmt: skip

TYPED = {
    "Spark's folder with days": RealFile(
        "orders",
        spark_folder,
        (),
        sql("select id, name, day from read_parquet(concat(FILE, '/*/*.parquet'), hive_partitioning=true)"),
    ),
    "folders with year, month and place": RealFile(
        "sales",
        csv_folder,
        ("--cast", "month=string"),
        sql(
            "select id, n, year, month, place from read_csv(concat(FILE, '/**/*.csv'), hive_partitioning=true, "
            "hive_types={'year': BIGINT, 'month': VARCHAR})"
        ),
    ),
    "DuckDB's partitions": RealFile(
        "parts",
        duck("select range as id, range % 3 as part from range(9)", "format parquet, partition_by (part)"),
        (),
        sql("select id, part from read_parquet(concat(FILE, '/**/*.parquet'), hive_partitioning=true)"),
    ),
    "pandas with an index": RealFile("frame.parquet", lambda path: _frame().to_parquet(path), (), by_pandas_parquet),
    "pandas with numbered rows": RealFile(
        "frame.parquet", lambda path: _frame().reset_index(drop=True).to_parquet(path), (), _READ
    ),
    "pandas with an index without a name": RealFile(
        "frame.parquet", lambda path: _frame().rename_axis(None).to_parquet(path), (), _READ
    ),
    "polars": RealFile("frame.parquet", _POLARS.write_parquet, (), by_polars(pl.read_parquet)),
    "polars, Arrow file": RealFile("frame.arrow", _POLARS.write_ipc, (), by_polars(pl.read_ipc)),
    "polars, Avro": RealFile(
        "frame.avro", _POLARS.select("id", "name").cast({"id": pl.Int64}).write_avro, (), by_polars(pl.read_avro)
    ),
    "DuckDB's hugeint": RealFile(
        "huge.parquet", duck("select 1 as id, 170141183460469231731687303715884105727::hugeint as n"), (), _READ
    ),
    "DuckDB's map": RealFile("map.parquet", duck("select 1 as id, map {'k': 1} as m"), (), _READ),
    "DuckDB's times without a zone": RealFile(
        "local.parquet", duck("select 1 as id, timestamp '2026-01-02 03:04:05' as \"at\""), error="--timezone"
    ),
    "decimals as int32, int64 and bytes": RealFile(
        "decimals.parquet", parquet(_DECIMALS, store_decimal_as_integer=True), (), _READ
    ),
    "decimals as bytes": RealFile("decimals.parquet", parquet(_DECIMALS), (), _READ),
    "INT96": RealFile(
        "spark2.parquet",
        parquet(_LOCAL, use_deprecated_int96_timestamps=True),
        ("--timezone", "UTC"),
        sql('select id, "at"::timestamptz as "at" from read_parquet(FILE)'),
    ),
    "INT96 without a zone": RealFile("spark2.parquet", parquet(_LOCAL, use_deprecated_int96_timestamps=True), error="--timezone"),
    "clock times of a zone": RealFile(
        "local.parquet",
        parquet(_LOCAL),
        ("--timezone", "Europe/Berlin"),
        sql('select id, "at" at time zone \'Europe/Berlin\' as "at" from read_parquet(FILE)'),
    ),
    "nanoseconds": RealFile("ns.parquet", parquet(_NS), (), sql('select id, "at"::timestamptz as "at" from read_parquet(FILE)')),
    "nanoseconds that are no microseconds": RealFile(
        "ns.parquet", parquet(pa.table({"id": [1], "at": pa.array([1], pa.timestamp("ns", "UTC"))})), error="--cast 'at=timestamp"
    ),
    "categories": RealFile(
        "dictionary.parquet", parquet(pa.table({"id": [1, 2], "kind": pa.array(["a", None]).dictionary_encode()})), (), _READ
    ),
    "unsigned numbers above int64": RealFile("wide.parquet", parquet(_WIDE), error="--cast 'big="),
    "unsigned numbers as decimals": RealFile(
        "wide.parquet",
        parquet(_WIDE),
        ("--cast", "big=decimal(20,0)"),
        sql("select id::bigint as id, big::decimal(20,0) as big from read_parquet(FILE)"),
    ),
    "half floats": RealFile("half.parquet", parquet(pa.table({"id": [1], "x": pa.array([1.5], pa.float16())})), (), _READ),
    "lists of objects": RealFile("nested.parquet", parquet(pa.table({"id": [1, 2], "l": [[{"a": 1, "b": "x"}], []]})), (), _READ),
    "bytes": RealFile("bytes.parquet", parquet(pa.table({"id": [1], "b": [b"\0\xff"]})), (), _READ),
    "large texts, version 2 pages, Brotli": RealFile(
        "large.parquet",
        parquet(
            pa.table({"id": [1], "t": pa.array(["ü" * 9], pa.large_string())}), data_page_version="2.0", compression="brotli"
        ),
        (),
        _READ,
    ),
    "no rows": RealFile(
        "none.parquet", parquet(_NS.slice(0, 0)), (), sql('select id, "at"::timestamptz as "at" from read_parquet(FILE)')
    ),
    "names with spaces": RealFile("names.parquet", parquet(pa.table({"id": [1], "Net €": [2]})), error="--rename 'Net €=net'"),
    "Arrow stream": RealFile(
        "rows.arrows",
        arrow_stream(_NS),
        (),
        lambda _: [{"id": 1, "at": dt.datetime(2026, 1, 2, 3, 0, 0, 123456, _UTC)}, {"id": 2, "at": None}],
    ),
    "Feather, lz4": RealFile(
        "rows.feather",
        lambda path: feather.write_feather(pa.table({"id": [1], "n": [2.5]}), str(path), compression="lz4"),
        (),
        lambda path: pd.read_feather(path).to_dict("records"),
    ),
    "Avro with logical types": RealFile("rows.avro", avro(_AVRO, _AVRO_ROWS), (), by_fastavro),
    "Avro, deflate": RealFile("rows.avro", avro(_AVRO, _AVRO_ROWS, "deflate"), (), by_fastavro),
    "Avro with a union": RealFile(
        "union.avro",
        avro({"type": "record", "name": "r", "fields": [{"name": "id", "type": ["long", "string"]}]}, [{"id": 1}]),
        error="one type a column",
    ),
    "ORC": RealFile(
        "rows.orc",
        lambda path: orc.write_table(pa.table({"id": [1, 2], "t": ["x", None]}), str(path)),
        (),
        lambda path: pd.read_orc(path, dtype_backend="pyarrow").to_dict("records"),
    ),
    "what is no Parquet": RealFile("bad.parquet", text(b"PAR1 no PAR1"), error="Correct the file"),
}

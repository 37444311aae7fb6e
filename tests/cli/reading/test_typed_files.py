"""Avro and ORC files, and times without a zone in every format that knows its types."""

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

from headgate_cli.failures import CommandError
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import format_of, open_source
from headgate_tables import hudi

UTC = dt.UTC
NOON = dt.datetime.fromisoformat("2024-07-02 12:00")
TWICE = dt.datetime.fromisoformat("2024-10-27 02:30")
KEY = uuid.UUID(int=7)
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "n", "type": ["null", "long"]},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["A", "B"]}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": "double"}},
        {"name": "in", "type": ["null", {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}]},
    ],
}
ROW = {
    "id": str(KEY),
    "n": 2**60,
    "kind": "B",
    "day": dt.date(2024, 7, 2),
    "at": NOON.replace(tzinfo=UTC),
    "price": Decimal("1.10"),
    "tags": ["a", "b"],
    "more": {"x": 0.5},
    "in": {"x": 1},
}


def write_avro(path: Path, schema: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), rows, codec="deflate", sync_interval=1000)


def loaded(path: Path, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows of a table that a load of the file makes, as hudi-rs reads them, by ``id``."""
    source = open_source(path, format_of(path), None, ReadOptions(**options))
    with hudi.create_table(str(folder / "table"), source.schema, record_key="id", buckets=1) as table:
        for piece in source.pieces(0):
            table.upsert(pa.Table.from_batches([piece.rows]))
    batches = HudiTableBuilder.from_base_uri(str(folder / "table")).build().read()
    rows = [row for batch in batches for row in pa.record_batch(batch).select(source.schema.names).to_pylist()]
    return sorted(rows, key=lambda row: str(row["id"]))


@pytest.mark.slow
def test_an_avro_file_comes_back_through_hudi_rs_as_it_was_written(tmp_path: Path) -> None:
    rows = [ROW | {"id": str(uuid.UUID(int=at)), "n": None if at % 2 else at} for at in range(20_000)]
    write_avro(tmp_path / "rows.avro", AVRO, rows)
    found = loaded(tmp_path / "rows.avro", tmp_path)
    assert [row | {"more": dict(row["more"])} for row in found] == rows


@pytest.mark.slow
@pytest.mark.parametrize("skip", [0, 1, 8_192, 9_999, 10_000])
def test_rows_behind_those_that_are_skipped_are_read_from_avro_and_orc(skip: int, tmp_path: Path) -> None:
    write_avro(tmp_path / "rows.avro", AVRO, [ROW | {"n": at} for at in range(10_000)])
    orc.write_table(pa.table({"n": pa.array(range(10_000), pa.int64())}), tmp_path / "rows.orc", stripe_size=1 << 12)
    for name in ("rows.avro", "rows.orc"):
        pieces = list(open_source(tmp_path / name, format_of(tmp_path / name), None).pieces(skip))
        assert [n for piece in pieces for n in piece.rows["n"].to_pylist()] == list(range(skip, 10_000))
        assert not pieces or pieces[-1].last_row == 10_000


def test_an_orc_file_comes_back_through_hudi_rs_as_pandas_reads_it(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": ["a", "b"],
            "n": pa.array([1, None], pa.int8()),
            "price": [Decimal("1.10"), None],
            "at": pa.array([1_000, None], pa.timestamp("us", tz="UTC")),
            "tags": [["x"], []],
        }
    )
    orc.write_table(rows, tmp_path / "rows.orc")
    frame = pd.read_orc(tmp_path / "rows.orc", dtype_backend="pyarrow")
    theirs = pa.Table.from_pandas(frame, preserve_index=False).to_pylist()
    assert loaded(tmp_path / "rows.orc", tmp_path) == theirs == rows.to_pylist()


@pytest.mark.parametrize(
    ("kind", "words"),
    [({"name": "x", "type": ["string", "long"]}, "'x'"), ({"name": "x", "type": "row"}, "recursive")],
    ids=["a union of two types", "a record in itself"],
)
def test_an_avro_type_that_no_table_has_is_refused_by_name(kind: dict[str, Any], words: str, tmp_path: Path) -> None:
    write_avro(tmp_path / "rows.avro", {"type": "record", "name": "row", "fields": [kind]}, [])
    with pytest.raises(CommandError, match=words):
        open_source(tmp_path / "rows.avro", "avro", None)


@pytest.mark.parametrize("name", ["rows.avro", "rows.orc"])
@pytest.mark.parametrize("cut", [0, 10, -20])
def test_a_file_that_is_cut_off_is_refused(name: str, cut: int, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "rows.avro":
        write_avro(path, AVRO, [ROW] * 1000)
    else:
        orc.write_table(pa.table({"n": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CommandError, match=name):
        list(open_source(path, format_of(path), None).pieces(0))


def write_local_avro(rows: pa.Table, path: Path) -> None:
    kinds = {"id": "string", "at": {"type": "long", "logicalType": "local-timestamp-micros"}}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    write_avro(path, {"type": "record", "name": "row", "fields": fields}, rows.to_pylist())


LOCAL: dict[str, Callable[[pa.Table, Path], None]] = {
    "rows.parquet": pq.write_table,
    "spark.parquet": lambda rows, path: pq.write_table(rows, path, use_deprecated_int96_timestamps=True),
    "rows.feather": lambda rows, path: feather.write_feather(rows, str(path)),
    "rows.orc": orc.write_table,
    "rows.avro": write_local_avro,
}


@pytest.mark.parametrize("name", LOCAL)
def test_times_without_a_zone_get_one_by_an_option_or_are_refused(name: str, tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "at": pa.array([NOON], pa.timestamp("us"))})
    LOCAL[name](rows, tmp_path / name)
    with pytest.raises(CommandError, match="'at' has times without a time zone") as refused:
        open_source(tmp_path / name, format_of(tmp_path / name), None)
    assert "--timezone" in refused.value.fix
    (row,) = loaded(tmp_path / name, tmp_path, timezone="Europe/Berlin")
    assert row["at"] == dt.datetime(2024, 7, 2, 10, tzinfo=UTC)


def test_a_table_shows_a_clock_time_as_one_in_utc_so_none_is_kept_without_a_zone(tmp_path: Path) -> None:
    """The reason for refusing. When this fails, tables have learnt times without a zone, and a load may keep them."""
    rows = pa.table({"id": ["a"], "at": pa.array([NOON], pa.timestamp("us"))})
    with hudi.create_table(str(tmp_path / "t"), rows.schema, record_key="id", buckets=1) as table:
        table.upsert(rows)
    (batch,) = HudiTableBuilder.from_base_uri(str(tmp_path / "t")).build().read()
    assert pa.record_batch(batch).to_pylist()[0]["at"] == NOON.replace(tzinfo=UTC)


def test_times_without_a_zone_inside_objects_and_lists_get_one_too(tmp_path: Path) -> None:
    inner = pa.struct([("at", pa.timestamp("ns")), ("n", pa.int64())])
    kind = pa.list_(inner)
    values = [[{"at": NOON, "n": 1}, None], None, [], [{"at": None, "n": 2}]]
    pq.write_table(pa.table({"x": pa.array(values, kind)}), tmp_path / "rows.parquet")
    with pytest.raises(CommandError, match="'x' has times without a time zone"):
        open_source(tmp_path / "rows.parquet", "parquet", None)
    source = open_source(tmp_path / "rows.parquet", "parquet", None, ReadOptions(timezone="Europe/Berlin"))
    wanted = [[{"at": NOON.replace(hour=10, tzinfo=UTC), "n": 1}, None], *values[1:]]
    assert [row["x"] for piece in source.pieces(1) for row in piece.rows.to_pylist()] == wanted[1:]
    assert [row["x"] for piece in source.pieces(0) for row in piece.rows.to_pylist()] == wanted


@pytest.mark.parametrize(
    ("hour", "zone", "words"),
    [(TWICE, "Europe/Berlin", "row 2, column 'at'.*ambiguous"), (NOON, "Mars", "--timezone Mars")],
)
def test_a_clock_time_that_its_zone_has_twice_is_refused_with_its_row(
    hour: dt.datetime, zone: str, words: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"at": pa.array([NOON, hour], pa.timestamp("us"))}), tmp_path / "rows.parquet")
    with pytest.raises(CommandError, match=words):
        list(open_source(tmp_path / "rows.parquet", "parquet", None, ReadOptions(timezone=zone)).pieces(0))


def test_a_value_that_is_no_text_is_not_advised_to_become_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [b"\xff"]}), tmp_path / "rows.parquet")
    reading = ReadOptions(casts=(("s", pa.string()),))
    with pytest.raises(CommandError, match="is no string without loss") as refused:
        list(open_source(tmp_path / "rows.parquet", "parquet", None, reading).pieces(0))
    assert refused.value.fix == "Leave --cast out: the column stays binary. Or correct the file."

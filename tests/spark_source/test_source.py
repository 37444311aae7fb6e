"""`spark.read.format("headgate")` on real PySpark 4: rows, types, what is not read, and errors."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import hudi as hudi_rs
import pyarrow as pa
import pytest

from headgate_spark import read, typed_errors
from headgate_tables import hudi
from headgate_tables.errors import CorruptFileError, NotATableError, OptionError, SchemaError, TablesError
from headgate_tables.face.altering import Alteration
from support.bulk_rows import ROWS, SCHEMA, expected, new_table, row
from support.oracle import Oracle
from support.same_rows import assert_same_rows
from support.type_cases import CASES, column


def rows_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def later(number: int, ts: int) -> dict[str, Any]:
    return {**row(number), "ts": ts, "v": -number}


def load(spark: Any, url: str, **options: Any) -> Any:
    return spark.read.format("headgate").options(**options).load(url)


def by_hudi_rs(url: str) -> pa.Table:
    batches = hudi_rs.HudiTableBuilder.from_base_uri(url).build().read()
    return pa.Table.from_batches([pa.record_batch(batch) for batch in batches]).select(SCHEMA.names)


def test_merged_rows_are_those_of_the_oracle_and_of_hudi_rs_in_a_task_for_each_slice(spark: Any, tmp_path: Path) -> None:
    oracle, url = Oracle(["id"], ["part"], "ts"), new_table(tmp_path / "t")
    gone = [{name: later(n, 6000)[name] for name in ("id", "part", "ts")} for n in range(0, 90, 3)]
    with hudi.open_table(url) as table:
        for step, rows in enumerate((ROWS[:400], [later(n, 1 if n % 2 else 5000) for n in range(60)])):
            oracle.upsert(rows)
            table.upsert(rows_of(rows))
            if step == 0:
                table.compact()
        oracle.delete(gone)
        table.delete(pa.Table.from_pylist(gone, schema=pa.schema([SCHEMA.field(name) for name in gone[0]])))
        frame = load(spark, url)
        assert frame.rdd.getNumPartitions() == len(table.file_groups()) > 1
    wanted = rows_of(oracle.rows())
    assert_same_rows(frame.toArrow(), wanted, "the data source", fewer_types=True)
    assert_same_rows(by_hudi_rs(url), wanted, "hudi-rs", fewer_types=True)


def test_a_table_is_read_in_sql(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:90]))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING headgate OPTIONS (path '{url}', columns 'part, v')")
    found = spark.sql("SELECT part, count(v), max(v) FROM orders GROUP BY part ORDER BY part").collect()
    wanted = [
        [each["v"] for each in ROWS[:90] if each["part"] == part and each["v"] is not None] for part in ("p 0", "p 1", "p 2")
    ]
    assert [tuple(each) for each in found] == [(f"p {n}", len(values), max(values)) for n, values in enumerate(wanted)]


def test_every_type_is_that_of_the_reader_function(spark: Any, tmp_path: Path) -> None:
    given = pa.schema([("id", pa.string()), *((name, case.given) for name, case in CASES.items())])
    with hudi.create_table(str(tmp_path / "t"), given, record_key="id", buckets=1) as table:
        for numbers in ([0, 1, 2, 3, 4], [2, 3]):
            keys = pa.array([f"k{n}" for n in range(len(numbers))])
            table.upsert(pa.table([keys, *(column(name, case.given, numbers) for name, case in CASES.items())], schema=given))
        stored = table.scan().to_table()
    found, function = load(spark, str(tmp_path / "t")), read(spark, str(tmp_path / "t"))
    assert found.schema == function.schema
    shown = found.toArrow()
    assert_same_rows(shown, function.toArrow(), "the data source")
    assert_same_rows(shown, stored, "the library", fewer_types=True)


def test_queries_of_the_past_and_of_base_files(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:100]))
        table.compact()
        table.upsert(rows_of([later(n, 5000) for n in range(5)]))
        first, *_, last = table.commits()
    before, changed = expected(ROWS[:100]), rows_of([later(n, 5000) for n in range(5)])
    assert_same_rows(load(spark, url, asOf=first.completion).toArrow(), before, "as of", fewer_types=True)
    assert_same_rows(load(spark, url, mode="read_optimized").toArrow(), before, "base files", fewer_types=True)
    assert_same_rows(load(spark, url, since=first.completion).toArrow(), changed, "changes", fewer_types=True)
    assert load(spark, url, since=last.completion).count() == 0


def test_each_action_on_a_plan_reads_the_same_commit(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:10]))
        frame = load(spark, url)
        assert frame.count() == 10
        table.upsert(rows_of(ROWS[10:20]))
    assert len(frame.collect()) == 10
    assert load(spark, url).count() == 20


def test_a_frame_keeps_the_types_that_its_columns_had_before_the_table_was_altered(spark: Any, tmp_path: Path) -> None:
    spots, by = pa.list_(pa.struct([("x", pa.int32()), ("r", pa.float32())])), pa.map_(pa.string(), pa.float32())
    names = [("id", pa.string()), ("n", pa.int32()), ("real", pa.float32()), ("spots", spots), ("by", by)]
    hudi.create_table(str(tmp_path / "t"), before := pa.schema(names), record_key="id", buckets=1).close()
    one = {"id": "a", "n": 7, "real": 1.5, "spots": [{"x": 1, "r": 0.5}], "by": [("k", 0.5)]}
    other = {**one, "id": "b", "real": float("nan"), "by": None}
    new = {**other, "spots": [{"y": "new", **one["spots"][0]}], "gate": "A1"}
    wider = {"n": pa.int64(), "real": pa.float64(), "spots.element.x": pa.int64(), "spots.element.r": pa.float64()}
    large = [{"n": 2**40}, {"real": 0.1}, {"spots": [{"x": 2**40}]}, {"spots": [{"r": 1e300}]}, {"by": [("k", 0.1)]}]
    with hudi.open_table(str(tmp_path / "t")) as table:
        table.upsert(pa.Table.from_pylist([one], before))
        frame, *frames = [load(spark, table.url) for _ in range(6)]
        added = {"gate": pa.string(), "spots.element.y": pa.string()}
        table.alter(Alteration(add=added, widen={**wider, "by.value": pa.float64()}))
        table.upsert(pa.Table.from_pylist([new], table.schema))
        assert [repr(each) for each in frame.sort("id").toArrow().to_pylist()] == [repr(one), repr(other)]
        assert load(spark, table.url).dtypes[1:3] == [("n", "bigint"), ("real", "double")]
        for frame, each in zip(frames, large, strict=True):
            table.upsert(pa.Table.from_pylist([{**new, **each}], table.schema))
            with pytest.raises(SchemaError, match=f"column '{next(iter(each))}' is .*start the query again"), typed_errors():
                frame.collect()


def test_an_empty_table_has_its_columns_and_no_rows(spark: Any, tmp_path: Path) -> None:
    frame = load(spark, new_table(tmp_path / "t"))
    assert (frame.columns, frame.count()) == (SCHEMA.names, 0)


def test_partitions_that_a_filter_rules_out_are_not_read(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:90]))
    for left_out in ("p 1", "p 2"):
        shutil.rmtree(tmp_path / "t" / left_out)
        (tmp_path / "t" / left_out).mkdir()
    wanted = sorted(each["id"] for each in ROWS[:90] if each["part"] == "p 0" and each["ts"] > 50)
    for condition in ("part = 'p 0' AND ts > 50", "part IN ('p 0', 'x') AND ts > 50", "part < 'p 1' AND NOT ts <= 50"):
        frame = load(spark, url).where(condition).select("id")
        assert frame.rdd.getNumPartitions() == 2
        assert sorted(each.id for each in frame.collect()) == wanted


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"colums": "id"}, OptionError, "colums.*Did you mean.*columns"),
        ({"columns": "w"}, SchemaError, "no column 'w'"),
        ({"mode": "fast"}, OptionError, "mode='fast'"),
        ({"asOf": "yesterday"}, OptionError, "as_of='yesterday'"),
        ({"startingFrom": "latest"}, OptionError, "for streams"),
        ({"maxCommitsPerTrigger": "some"}, OptionError, "maxCommitsPerTrigger='some' is no number"),
        ({"path": "/nowhere"}, NotATableError, "/nowhere"),
    ],
)
def test_a_wrong_option_is_a_typed_error(
    spark: Any, tmp_path: Path, options: dict[str, str], error: type[TablesError], text: str
) -> None:
    url = new_table(tmp_path / "t")
    with pytest.raises(error, match=text), typed_errors():
        load(spark, options.pop("path", url), **options).collect()


def test_a_damaged_file_is_named_by_a_typed_error(spark: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url) as table:
        table.upsert(rows_of(ROWS[:90]))
    file = next((tmp_path / "t" / "p 1").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(CorruptFileError, match=f"p 1/{file.name}"), typed_errors():
        load(spark, url).collect()

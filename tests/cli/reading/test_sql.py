"""--sql: rows are what DuckDB itself makes of the file, the same each time, from the file alone."""

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.failures import CommandError
from headgate_cli.load.identity import identify
from headgate_cli.load.plan import schema_of_files
from headgate_cli.reading.bad_rows import BadRows
from headgate_cli.reading.options import ReadOptions
from headgate_cli.reading.sources import format_of, open_source

COUNT = 100_000
TABLE = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "g": [f"group {number * 7919 % 97}" for number in range(COUNT)],
        "x": pa.array([number * 0.1 for number in range(COUNT)], pa.float64()),
    }
)
QUERIES = (
    "select id + 1 as id, upper(g) as g from input where id % 3 = 0",
    "select g, sum(x) as total, count(*) as n from input group by g",
    "select id, row_number() over (partition by g order by x desc) as place from input order by g, place",
    "select a.id, b.g from input a join input b on a.id = b.id + 1",
    "with large as (select * from input where x > 5000) select id, x from large union all select id, -x from input",
    "from input",
    "select distinct g from input",
    "select g, unnest(list(id))::bigint as id from input group by g",
    "select 1.50::decimal(10,2) as d, id from input limit 10",
)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sql") / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=30_000)
    return path


def read(path: Path, sql: str, skip: int = 0, **more: Any) -> pa.Table:
    source = open_source(path, format_of(path), None, ReadOptions(sql=sql, **more))
    return pa.Table.from_batches([piece.rows for piece in source.pieces(skip)], source.schema)


def fault(path: Path, sql: str, **more: Any) -> CommandError:
    with pytest.raises(CommandError) as refused:
        read(path, sql, **more)
    return refused.value


@pytest.mark.slow
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_that_duckdb_makes_of_the_file_itself_and_the_same_each_time(sql: str, parquet: Path) -> None:
    found = read(parquet, sql)
    with duckdb.connect(config={"threads": 1}) as theirs:
        theirs.execute(f"create view input as select * from '{parquet}'")
        expected = theirs.sql(sql).to_arrow_table()
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert read(parquet, sql).equals(found)
    for skip in (1, 33, len(found) - 1):
        assert read(parquet, sql, skip).equals(found.slice(skip))


def test_texts_of_a_csv_have_the_types_that_were_found_or_given(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text('id;"Order Date";net\n1;31.12.2026;1,50\n2;01.01.2027;2,25\n')
    sql = 'select id, year("Order Date")::int as y, net * 2 as net from input'
    rows = read(path, sql, decimal=",", casts=(("net", pa.decimal128(10, 2)),))
    assert rows.to_pylist() == [{"id": 1, "y": 2026, "net": Decimal("3.00")}, {"id": 2, "y": 2027, "net": Decimal("4.50")}]
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "o": {"x": [1, 2]}, "nothing": null}\n')
    found = read(tmp_path / "rows.jsonl", "select id, o.x[2] as x, nothing from input")
    assert found.to_pylist() == [{"id": 1, "x": 2, "nothing": None}]


def test_types_come_back_exact(tmp_path: Path) -> None:
    path = tmp_path / "kinds.parquet"
    times = pa.array([1_700_000_000_123_456], pa.timestamp("us"))
    digits = pa.array([Decimal("12345678901234567890123456789012345.678")], pa.decimal128(38, 3))
    pq.write_table(
        pa.table({"d": digits, "local": times, "zoned": times.cast(pa.timestamp("us", "UTC")), "b": [b"\0\xff"]}), path
    )
    sql = "select d, local at time zone 'Europe/Berlin' as at, zoned, b, 255::utinyint as u from input"
    found = read(path, sql)
    assert found.schema.field("d").type == pa.decimal128(38, 3)
    assert found.schema.field("zoned").type == pa.timestamp("us", tz="UTC")
    assert found.schema.field("u").type == pa.int32()
    [row] = found.to_pylist()
    assert (row["d"], row["b"], row["u"]) == (digits[0].as_py(), b"\0\xff", 255)
    assert row["zoned"].isoformat() == "2023-11-14T22:13:20.123456+00:00"
    assert row["at"].isoformat() == "2023-11-14T21:13:20.123456+00:00"
    assert "--timezone" in fault(path, "select local from input").fix
    [berlin] = read(path, "select local from input", timezone="Europe/Berlin")["local"].to_pylist()
    assert berlin == row["at"]


@pytest.mark.parametrize(
    ("sql", "what", "fix"),
    [
        ("select sum(id) as total from input", "'total' as HUGEINT", "CAST(total AS BIGINT"),
        ("select [id::hugeint] as total from input", "'total'", "CAST(total AS BIGINT"),
        ("select interval 1 day as i from input", "'i' as INTERVAL", "VARCHAR"),
        ("select null as n from input", "'n'", "CAST(n AS VARCHAR)"),
        ("select id, id from input", "two columns 'id'", "AS NAME"),
        ("select 9223372036854775808::ubigint as u from input", "'u': 9223372036854775808 is no int64", "in the SQL"),
    ],
)
def test_a_type_or_a_value_that_no_table_has_is_refused_with_the_cast(sql: str, what: str, fix: str, parquet: Path) -> None:
    error = fault(parquet, sql)
    assert what in error.message
    assert fix in error.fix


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("select random() as r from input", "random()"),
        ("select Now() as r from input", "now()"),
        ("select current_timestamp as r from input", "current_timestamp"),
        ("select id from input where current_date > date '2026-01-01'", "current_date"),
        ("select uuid() as r from input", "uuid()"),
        ("select id from input order by random()", "random()"),
        ("select ago(interval 1 day) as r from input", "current_timestamp, called by ago"),
        ("select list_transform([id], lambda x: x + random()) as r from input", "random()"),
        ("with a as (select id, nextval('s') as n from input) select * from a", "nextval()"),
        ("select id from input using sample 10%", "sample"),
        ("select id from input tablesample 5", "sample"),
    ],
)
def test_what_gives_other_rows_each_time_is_refused_by_name(sql: str, named: str, parquet: Path) -> None:
    error = fault(parquet, sql)
    assert named in error.message
    assert "same rows in the same order" in error.fix


def test_a_column_may_have_the_name_of_a_clock_and_error_may_be_called(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,current_date\n1,2026-01-01\n")
    rows = read(path, "select id, current_date as day, case when id > 5 then error('id ' || id) else 'x' end as e from input")
    assert rows["day"][0].as_py().isoformat() == "2026-01-01"
    path.write_text("id,current_date\n7,2026-01-01\n")
    error = fault(path, "select case when id > 5 then error('id ' || id) else 'x' end as e from input")
    assert "rows.csv: --sql: " in error.message
    assert "id 7" in error.message


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select i.id, t.content from input i, read_text('/etc/hostname') t",
        "select * from query('select 1')",
        "select * from glob('/*'), input",
        "select * from duckdb_settings(), input",
        "select * from information_schema.tables, input",
        "select * from TABLE_OF_THIS_PROGRAM, input",
        "copy (select * from input) to 'out.csv'",
        "attach 'other.db'",
        "set enable_external_access = true",
        "install httpfs",
        "create table t as select * from input",
        "select id from input; select id from input",
        "select 1 as id",
        "",
        " ; ",
        "selec id from input",
    ],
)
def test_only_one_select_from_the_file_is_run(sql: str, parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = fault(parquet, sql or "-- nothing")
    assert "--sql" in error.message
    assert error.code is ExitCode.FIX_CALL
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("called", ["duckdb_settings()", "query('select 1 as one')", "repeat(1, 2)"])
def test_a_function_that_gives_rows_is_refused_by_name(called: str, parquet: Path) -> None:
    assert f"reads {called.partition('(')[0]}(…)" in fault(parquet, f"select id from {called}, input").message


def test_places_are_closed_also_to_what_the_look_at_the_text_would_let_pass(
    parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate_cli.reading.sql.check_text", lambda *_: None)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    places = [f"select * from read_csv('{tmp_path}/secret.csv')", f"select * from glob('{tmp_path}/*')"]
    for sql in [*places, f"copy (select 1) to '{tmp_path}/out.csv'", "set threads = 4"]:
        assert "--sql" in fault(parquet, sql).message
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize("sql", ["select nope from input", "select id::date as d from input", "select id from inptu"])
def test_an_error_of_the_sql_names_the_option_and_what_is_wrong(sql: str, parquet: Path) -> None:
    error = fault(parquet, sql)
    assert "--sql" in error.message
    assert any(word in error.message for word in ("nope", "DATE", "inptu"))


@pytest.mark.slow
def test_a_value_that_the_sql_cannot_convert_stops_the_load_and_try_cast_makes_it_null(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,n\n" + "".join(f"{number},{number}\n" for number in range(200_000)) + "x,1\n")
    error = fault(path, "select id::bigint as id from input", casts=(("id", pa.string()),))
    assert "'x'" in error.message
    assert "TRY_CAST" in error.fix
    assert read(path, "select try_cast(id as bigint) as id from input")["id"][-1].as_py() is None


def test_an_error_of_the_file_is_the_files_and_rows_that_are_left_out_count_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,n\n1,1\nx,2\n3,3\n")
    casts = (("id", pa.int64()),)
    assert fault(path, "select id from input", casts=casts).message == "rows.csv: row 2, column 'id': 'x' is no int64"
    options = ReadOptions(sql="select a.id from input a join input b using (id)", casts=casts, skip_bad=True, max_errors=1)
    bad = BadRows(options)
    pieces = list(open_source(path, "csv", None, options, bad).pieces(0))
    assert [row for piece in pieces for row in piece.rows["id"].to_pylist()] == [1, 3]
    assert len(bad.errors) == 1


@pytest.mark.slow
def test_sorting_more_than_the_memory_is_an_error_with_the_option_and_a_stream_needs_little(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, 400_000, 20_000):
            numbers = range(start, start + 20_000)
            writer.write_table(pa.table({"id": numbers, "text": [f"{number:0500}" for number in numbers]}, schema))
    error = fault(path, "select text, id from input order by text desc", sql_memory_mb=64)
    assert "--sql needs more than 64 MiB" in error.message
    assert "--sql-memory 128" in error.fix
    source = open_source(path, "parquet", None, ReadOptions(sql="select id, text from input where id >= 0", sql_memory_mb=64))
    batches = [(batch.rows.num_rows, batch.done) for batch in source.batches(0)]
    assert sum(rows for rows, _ in batches) == 400_000
    assert batches[0][1] < batches[-1][1] / 2, "the first rows come while the file is read"


def test_the_text_belongs_to_the_identity_of_a_load(parquet: Path) -> None:
    ways = [ReadOptions(), *(ReadOptions(sql=f"select {what} from input") for what in ("id", "g"))]
    ways.append(ReadOptions(sql="select id from input", sql_memory_mb=2048))
    assert len({identify(parquet, "upsert", way) for way in ways}) == len(ways)
    assert identify(parquet, "upsert", ReadOptions(sql_memory_mb=2048)) == identify(parquet, "upsert", ways[0])


def test_without_duckdb_one_message_names_the_extra(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    error = fault(parquet, "select id from input")
    assert "headgate-cli[sql]" in error.fix
    assert error.code is ExitCode.OPERATOR


def test_a_table_is_made_of_the_result_and_a_name_that_it_cannot_have_gets_another_in_the_sql(parquet: Path) -> None:
    schema = schema_of_files([parquet], None, ReadOptions(sql="select id, g as name from input"))
    assert schema.names == ["id", "name"]
    with pytest.raises(CommandError) as refused:
        schema_of_files([parquet], None, ReadOptions(sql="select id, upper(g) from input"))
    assert "AS upper_g" in refused.value.fix

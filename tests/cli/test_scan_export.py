"""`table scan` to files and to a pipe: every form holds the rows that hudi-rs reads."""

import io
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.main import run
from headgate_cli.table.export import csv_lines
from headgate_tables import hudi
from support.readers import read_by_hudi_rs, without_meta
from support.same_rows import assert_same_rows

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("born", pa.date32()),
        ("price", pa.decimal128(8, 2)),
        ("ratio", pa.float64()),
        ("ok", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("raw", pa.binary()),
    ]
)
PLAIN = SCHEMA.names[:7]
ROWS = pa.Table.from_pylist(
    [
        {
            "id": 1,
            "name": 'a "quoted", text\nof two lines',
            "at": datetime(2026, 1, 1, 5, 0, 0, 123_456, tzinfo=UTC),
            "born": date(1970, 2, 3),
            "price": Decimal("-1.50"),
            "ratio": 0.1,
            "ok": True,
            "tags": ["x", None, "ä"],
            "raw": b"\x00\xff",
        },
        {"id": 2, "name": "", "ok": False, "tags": []},
        {"id": 3},
    ],
    SCHEMA,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three rows: one in a log file, with the others in base files."""
    url = str(tmp_path_factory.mktemp("export") / "things")
    with hudi.create_table(url, SCHEMA, record_key="id", buckets=2) as made:
        made.upsert(ROWS)
        made.upsert(ROWS.slice(0, 1))
    return url


def expected(table: str) -> pa.Table:
    found = without_meta(read_by_hudi_rs(Path(table)))
    assert found.num_rows == 3
    return found


@pytest.mark.parametrize("target", ["rows.parquet", "rows.arrow"])
def test_parquet_and_arrow_keep_every_value_and_type(target: str, table: str, tmp_path: Path) -> None:
    path = tmp_path / target
    assert run(["table", "scan", table, "--output", str(path)]) == ExitCode.OK
    found = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_stream(path.read_bytes()).read_all()
    assert_same_rows(found, expected(table), target)
    assert found.schema.equals(SCHEMA)
    assert [each.name for each in tmp_path.iterdir()] == [target]


@pytest.mark.parametrize(("target", "read"), [("rows.csv", "read_csv"), ("rows.ndjson", "read_json")])
def test_duckdb_reads_the_same_values_from_text(target: str, read: str, table: str, tmp_path: Path) -> None:
    path = tmp_path / target
    assert run(["table", "scan", table, "--columns", ",".join(PLAIN), "--output", str(path)]) == ExitCode.OK
    types = ["BIGINT", "VARCHAR", "TIMESTAMPTZ", "DATE", "DECIMAL(8,2)", "DOUBLE", "BOOLEAN"]
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in zip(PLAIN, types, strict=True))
    # By itself DuckDB takes an empty text in quotes for null.
    options = ", header = true, nullstr = 'none', allow_quoted_nulls = false, auto_detect = false, delim = ',', quote = '\"'"
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        source = f"{read}('{path}', columns = {{{columns}}}{options.replace('none', '') if read == 'read_csv' else ''})"
        found = con.sql(f"SELECT * FROM {source} ORDER BY id").to_arrow_table().cast(SCHEMA.empty_table().select(PLAIN).schema)
    assert_same_rows(found, expected(table).select(PLAIN), target)


def test_what_text_has_no_form_for_is_json_and_hexadecimal(table: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    command = ["table", "scan", table, "--columns", "id,tags,raw", "--where", "id < 3", "--format"]
    assert run([*command, "csv"]) == ExitCode.OK
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[0] == '"id","tags","raw"'
    assert sorted(lines[1:]) == ['1,"[""x"", null, ""ä""]","00ff"', '2,"[]",']
    assert run([*command, "json"]) == ExitCode.OK
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert sorted(rows, key=lambda row: row["id"]) == [
        {"id": 1, "tags": ["x", None, "ä"], "raw": "00ff"},
        {"id": 2, "tags": [], "raw": None},
    ]


def test_every_kind_of_bytes_is_hexadecimal_in_csv() -> None:
    kinds = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)]
    columns = [pa.array([b"\x00\xff", None], kind) for kind in kinds]
    assert csv_lines(pa.record_batch(columns, list("abcd"))) == b'"00ff","00ff","00ff","00ff"\n,,,\n'


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_stdout_takes_binary_forms(kind: str, table: str) -> None:
    done = headgate("table", "scan", table, "--output", "-", "--format", kind)
    found = pq.read_table(io.BytesIO(done.stdout)) if kind == "parquet" else pa.ipc.open_stream(done.stdout).read_all()
    assert_same_rows(found, expected(table), kind)
    assert done.stderr == b""


def headgate(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "headgate_cli", *arguments], capture_output=True, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", [["--format", "csv"], ["--json", "--limit", "0"], ["--format", "arrow"], ["--format", "parquet"]])
def test_a_reader_that_has_enough_is_no_error(how: list[str], tmp_path: Path) -> None:
    """More is written than a pipe holds, and its reader goes after the first byte."""
    count = 300_000
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    texts = [f"{number * 7919 % 1_000_003:030d}" for number in range(count)]
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=1) as made:
        made.upsert(pa.table({"id": range(count), "text": texts}, schema))
    command = [sys.executable, "-m", "headgate_cli", "table", "scan", str(tmp_path / "t"), *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert os.read(program.stdout.fileno(), 1)
        program.stdout.close()
        assert program.stderr is not None
        assert program.stderr.read() == b""
        assert program.wait() == ExitCode.OK


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [["--format", "csv"], ["--format", "arrow"], ["--json"], []], ids=["csv", "arrow", "json", "table"]
)
def test_a_stdout_that_the_caller_has_closed_is_no_error(how: list[str], table: str) -> None:
    closed = ['exec "$@" >&-', "sh", sys.executable, "-m", "headgate_cli", "table", "scan", table, *how]
    done = subprocess.run(["sh", "-c", *closed], stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (ExitCode.OK, b"")


def test_all_rows_are_exported_unless_a_limit_is_given(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.schema([("id", pa.int64())])
    with hudi.create_table(str(tmp_path / "t"), schema, record_key="id", buckets=2) as made:
        made.upsert(pa.table({"id": range(50)}, schema))
    path = tmp_path / "rows.csv"
    for limit, rows in (([], 50), (["--limit", "30"], 30), (["--limit", "0"], 50)):
        run(["table", "scan", str(tmp_path / "t"), "--output", str(path), *limit])
        assert len(path.read_text().splitlines()) == rows + 1
    assert f"50 rows to {path}" in capsys.readouterr().err


def test_a_table_without_rows_gives_a_header(tmp_path: Path) -> None:
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=2):
        pass
    run(["table", "scan", str(tmp_path / "t"), "--output", str(tmp_path / "rows.csv"), "--columns", "id,name"])
    assert (tmp_path / "rows.csv").read_text() == '"id","name"\n'
    run(["table", "scan", str(tmp_path / "t"), "--output", str(tmp_path / "rows.parquet")])
    assert pq.read_table(tmp_path / "rows.parquet").equals(SCHEMA.empty_table())


def test_a_scan_that_fails_leaves_the_older_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with hudi.create_table(str(tmp_path / "t"), SCHEMA, record_key="id", buckets=1) as made:
        made.upsert(ROWS)
    next((tmp_path / "t").glob("*.parquet")).unlink()
    (tmp_path / "rows.csv").write_text("older\n")
    assert run(["table", "scan", str(tmp_path / "t"), "--output", str(tmp_path / "rows.csv")]) == ExitCode.OPERATOR
    assert (tmp_path / "rows.csv").read_text() == "older\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["rows.csv", "t"]


def test_a_name_that_says_no_form_is_refused(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for target in (str(tmp_path / "rows"), str(tmp_path / "rows.xlsx"), "-"):
        assert run(["table", "scan", table, "--output", target]) == ExitCode.USAGE
        assert "--format" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_where_and_filters_must_both_hold(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--json", "--columns", "id", "--where", "id IN (1, 2)", "--filter", "ok=true"])
    run(["table", "scan", table, "--json", "--columns", "id", "--where", "id > 2"])
    assert capfd.readouterr().out == '{"id":1}\n{"id":3}\n'
    assert run(["table", "scan", table, "--where", "id >"]) == ExitCode.FIX_CALL
    assert "is not a condition" in capfd.readouterr().err


def test_a_clock_time_is_taken(table: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(["table", "scan", table, "--json", "--count", "--as-of", "10 days ago"])
    run(["table", "scan", table, "--json", "--count", "--since", "1 hour ago"])
    run(["table", "scan", table, "--json", "--count", "--as-of", "2000-01-01 10:00"])
    assert capfd.readouterr().out == '{"rows": 0}\n{"rows": 3}\n{"rows": 0}\n'


def test_a_file_that_cannot_be_written_is_named_as_it_was_asked_for(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "nowhere" / "rows.csv"
    assert run(["table", "scan", table, "--output", str(target)]) == ExitCode.FIX_CALL
    assert capsys.readouterr().err.startswith(f"headgate: {target}: No such file or directory\n")

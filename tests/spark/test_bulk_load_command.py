"""`headgate bulk-load` with real Spark: what it shows before, meanwhile and at the end, and what it says of errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate_cli.exits import ExitCode
from headgate_cli.spark_session import read_source
from headgate_spark import planning, scans
from headgate_tables import hudi
from support.bulk_rows import ROWS, expected, new_table, row, write
from support.readers import assert_all_agree, read_by_us
from support.same_rows import assert_same_rows


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write(tmp_path / "rows.parquet", ROWS)


def test_a_load_is_planned_shown_as_its_tasks_end_and_then_counted(
    headgate: Any, spark: Any, tmp_path: Path, source: str
) -> None:
    url = new_table(tmp_path / "t")
    arguments = ["bulk-load", source, "--table", url, "--tasks", "3"]
    code, events, _ = headgate(*arguments, "--plan-only")
    size = Path(source).stat().st_size
    planned = {"event": "planned", "files": 1, "bytes": size, "tasks": 3, "replaced": 0, "read_by": "arrow", "why": ""}
    assert (code, events) == (ExitCode.OK, {"planned": [planned]})
    assert hudi.open_table(url).commits() == []
    code, events, _ = headgate(*arguments)
    assert code == ExitCode.OK
    assert events["planned"] == [planned]
    (loaded,) = events["loaded"]
    rows = expected(ROWS).num_rows
    assert (loaded["upserted"], loaded["superseded"], loaded["files"]) == (rows, len(ROWS) - rows, 6)
    assert [each["tasks"] for each in events["progress"]] == [1, 2, 3]
    last = events["progress"][-1]
    assert {name: last[name] for name in ("files", "rows", "bytes", "of_tasks")} == {
        "files": 6,
        "rows": rows,
        "bytes": loaded["bytes"],
        "of_tasks": 3,
    }
    assert_all_agree(spark, tmp_path / "t", expected(ROWS))


def test_a_mode_says_what_it_replaces_and_replaces_it(headgate: Any, tmp_path: Path, source: str) -> None:
    url = new_table(tmp_path / "t")
    assert headgate("bulk-load", source, "--table", url)[0] == ExitCode.OK
    new = [{**row(number), "part": "p 1", "ts": 0} for number in range(900, 930)]
    again = ["bulk-load", write(tmp_path / "new.parquet", new), "--table", url, "--tasks", "1"]
    for plan_only in (["--plan-only"], []):
        code, _, error = headgate(*again, *plan_only)
        assert (code, error["kind"]) == (ExitCode.FIX_CALL, "TransactionError")
    code, events, _ = headgate(*again, "--mode", "insert_overwrite")
    assert (code, events["planned"][0]["replaced"], events["loaded"][0]["replaced"]) == (ExitCode.OK, None, 2)
    kept = [each for each in ROWS if each["part"] != "p 1"]
    assert_same_rows(read_by_us(tmp_path / "t"), expected(kept, new), "our reader")
    code, events, _ = headgate(*again, "--mode", "insert_overwrite_table")
    assert (code, events["planned"][0]["replaced"], events["loaded"][0]["replaced"]) == (ExitCode.OK, 6, 6)
    assert_same_rows(read_by_us(tmp_path / "t"), expected(new), "our reader")
    changes = [*({**each, "ts": number % 2 * 5 - 1} for number, each in enumerate(new)), *ROWS[:50]]
    upsert = ["bulk-load", write(tmp_path / "changes.parquet", changes), "--table", url, "--mode", "upsert", "--tasks", "2"]
    size = (tmp_path / "changes.parquet").stat().st_size
    planned = {"event": "planned", "files": 1, "bytes": size, "tasks": 2, "replaced": 0, "read_by": "arrow", "why": ""}
    code, events, _ = headgate(*upsert, "--plan-only")
    assert (code, events) == (ExitCode.OK, {"planned": [planned]})
    code, events, _ = headgate(*upsert)
    assert (code, events["loaded"][0]["replaced"]) == (ExitCode.OK, 0)
    assert_same_rows(read_by_us(tmp_path / "t"), expected(new, changes), "our reader")


def test_a_load_that_is_planned_looks_at_its_source_once(
    headgate: Any, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, look = [], scans._Footers.look
    asked, bytes_of = [], planning._bytes_of
    monkeypatch.setattr(scans._Footers, "look", lambda self, place: [looked.append(place.name), look(self, place)][1])
    monkeypatch.setattr(planning, "_bytes_of", lambda df: [asked.append(1), bytes_of(df)][1])
    more = write(tmp_path / "more.parquet", [row(number) for number in range(900, 930)])
    code, events, _ = headgate("bulk-load", source, more, "--table", new_table(tmp_path / "t"), "--tasks", "2")
    assert (code, events["planned"][0]["read_by"]) == (ExitCode.OK, "arrow")
    assert (sorted(looked), len(asked)) == (["more.parquet", "rows.parquet"], 1)


def test_the_plan_says_why_spark_reads_and_an_option_makes_it(headgate: Any, tmp_path: Path, source: str) -> None:
    url = new_table(tmp_path / "t")
    arguments = ["bulk-load", source, "--table", url, "--plan-only", "--tasks", "2"]
    for options, why in ((["--read-by", "spark"], "it was asked for"), (["--option", "mergeSchema=true"], "mergeschema")):
        code, events, _ = headgate(*arguments, *options)
        assert (code, events["planned"][0]["read_by"]) == (ExitCode.OK, "spark")
        assert why in events["planned"][0]["why"]
    code, _, error = headgate(*arguments, "--option", "mergeSchema=true", "--read-by", "arrow")
    assert (code, error["kind"]) == (ExitCode.FIX_CALL, "OptionError")
    assert "mergeschema" in error["message"]
    assert "`spark`" in error["fix"]


COLUMNS = "id,part,ts,v\n"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (f"{COLUMNS}a,p,1,2\nb,p,not a number,2\n", "SparkFailed", "not a number"),
        ("id,ts,part,v\na,1,p,2\n", "SparkFailed", "header"),
        ("id,part,ts,v,more\na,p,1,2,lost\n", "SparkFailed", "header"),
        (f"{COLUMNS}a,p,1,2,lost\n", "SparkFailed", ""),
        (None, "SparkRefused", "nowhere"),
    ],
    ids=["a value", "other columns", "more columns", "more values", "no file"],
)
def test_what_spark_cannot_read_is_one_error_and_loads_nothing(
    headgate: Any, tmp_path: Path, text: str | None, kind: str, said: str
) -> None:
    source = tmp_path / ("rows.csv" if text else "nowhere.csv")
    if text:
        source.write_text(text)
    url = _small_table(tmp_path / "t")
    code, _, error = headgate("bulk-load", str(source), "--table", url)
    assert (code, error["kind"]) == (ExitCode.FIX_CALL if text is None else ExitCode.OPERATOR, kind)
    assert said in error["message"]
    assert "\n" not in error["message"]
    assert hudi.open_table(url).commits() == []


def test_an_error_of_a_task_is_the_table_librarys_own(headgate: Any, tmp_path: Path) -> None:
    url = new_table(tmp_path / "t")
    bad = write(tmp_path / "bad.parquet", [*ROWS, {**ROWS[0], "id": None}])
    code, _, error = headgate("bulk-load", bad, "--table", url)
    assert (code, error["kind"]) == (ExitCode.FIX_CALL, "NullKeyError")
    assert "'id' is null or empty in 1" in error["message"]


def test_a_table_of_a_cluster_is_taken_over_only_on_request(headgate: Any, tmp_path: Path, source: str) -> None:
    url = new_table(tmp_path / "t")
    with hudi.open_table(url, owner=hudi.OwnerProcess("cluster", "host", 1, "host:7070")) as cluster:
        cluster.own()
    code, _, error = headgate("bulk-load", source, "--table", url)
    assert (code, error["kind"]) == (ExitCode.OPERATOR, "TableOwnedError")
    assert "host:7070" in error["message"]
    assert "--take-over" in error["fix"]
    assert headgate("bulk-load", source, "--table", url, "--take-over")[0] == ExitCode.OK
    assert_same_rows(read_by_us(tmp_path / "t"), expected(ROWS), "our reader")


def test_the_command_starts_a_spark_of_its_own_and_reads_a_csv_with_the_tables_types(tmp_path: Path) -> None:
    url = _small_table(tmp_path / "t")
    (tmp_path / "rows.csv").write_text(f"{COLUMNS}007,p,1,2\n007,p,2,\nb,q,1,5\n")
    java = f"spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={tmp_path}"
    spark = ["--master", "local[1]", "--conf", java, "--conf", "spark.ui.enabled=false"]
    arguments = ["bulk-load", "rows.csv", "--table", "./t", "--tasks", "2", *spark]
    done = subprocess.run(
        [sys.executable, "-m", "headgate_cli", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert "2 rows in 2 files" in done.stdout
    assert "1 superseded by newer rows" in done.stdout
    found = hudi.open_table(url).scan(["id", "part", "ts", "v"]).to_table().sort_by("id").to_pylist()
    assert found == [{"id": "007", "part": "p", "ts": 2, "v": None}, {"id": "b", "part": "q", "ts": 1, "v": 5}]


@pytest.mark.parametrize(
    ("name", "separator", "options"),
    [
        ("rows.tsv", "\t", []),
        ("rows.TSV", "\t", ["--format", "csv"]),
        ("rows.tsv", ";", ["--option", "sep=;"]),
        ("rows.tsv", ";", ["--option", "Delimiter=;"]),
        ("rows.csv", ",", []),
    ],
)
def test_a_tsv_has_tabs_unless_an_option_says_what_it_has(
    headgate: Any, tmp_path: Path, name: str, separator: str, options: list[str]
) -> None:
    (tmp_path / name).write_text(f"{COLUMNS}a,p,1,2\n".replace(",", separator))
    url = _small_table(tmp_path / "t")
    assert headgate("bulk-load", str(tmp_path / name), "--table", url, *options)[::2] == (ExitCode.OK, {})
    assert hudi.open_table(url).scan(["id", "part", "ts", "v"]).to_table().to_pylist() == [
        {"id": "a", "part": "p", "ts": 1, "v": 2}
    ]


def test_json_is_read_with_the_types_that_spark_has_for_those_of_the_table(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"id": "a", "code": "YWJjZA==", "at": "2026-01-01T12:00:00"}\n')
    types = pa.schema([("id", pa.string()), ("code", pa.binary(4)), ("at", pa.timestamp("ms"))])
    rows = read_source(spark, [str(tmp_path / "rows.json")], "json", {}, types)
    assert rows.dtypes == [("id", "string"), ("code", "binary"), ("at", "timestamp_ntz")]
    assert [(row.id, bytes(row.code), row.at.isoformat()) for row in rows.collect()] == [("a", b"abcd", "2026-01-01T12:00:00")]


def _small_table(folder: Path) -> str:
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int32())])
    hudi.create_table(str(folder), schema, record_key=["id"], partition_by=["part"], ordering="ts", buckets=1).close()
    return str(folder)
